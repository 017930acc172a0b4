# SPDX-License-Identifier: Apache-2.0
"""Doors for frameworks: each translates between one framework and a Sealpoint store.

Each door is a package here, built on `sealpoint.adapters.face`, and a row of `FRAMEWORKS`, by which
the command line knows it. No framework is imported here: an adapter brings its own, and each is an
extra.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sealpoint.world import World

__all__ = ["FRAMEWORKS", "Framework"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """What is known of a framework before it is imported."""

    name: str
    types: tuple[str, ...]
    """How the names of its own types begin."""
    registry: str
    """Where the registry of its own types is, as `--registry` names it."""
    declared_world: Callable[[Any], World]
    """The world of one of its graphs or workflows; it imports the framework."""


def _langgraph_world(graph: Any) -> World:
    from sealpoint.adapters.langgraph import declared_world  # noqa: PLC0415 - an extra

    return declared_world(graph)


FRAMEWORKS = (
    Framework(
        name="LangGraph",
        types=("langchain.", "langgraph."),
        registry="sealpoint.adapters.langgraph.framework:registry",
        declared_world=_langgraph_world,
    ),
)
"""Every framework that has a door."""
