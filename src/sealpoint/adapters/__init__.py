# SPDX-License-Identifier: Apache-2.0
"""Doors for frameworks: each translates between one framework and a Sealpoint store.

Each door is a package here, built on `sealpoint.adapters.face`, and a row of `FRAMEWORKS`, by which
the command line knows it. No framework is imported here: an adapter brings its own, and each is an
extra.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sealpoint.codec import Registry
from sealpoint.world import World

__all__ = ["FRAMEWORKS", "Framework", "framework_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """What is known of a framework before it is imported."""

    name: str
    noun: str
    """What it calls that which runs."""
    packages: tuple[str, ...]
    """The outermost packages of its classes, and that of its door."""
    types: tuple[str, ...]
    """How the names of its own types begin."""
    registry: str
    """Where the registry of its own types is, as `--registry` names it."""
    declared_world: Callable[[Any], World]
    """The world of one of its graphs or workflows; it imports the framework."""
    declared_types: Callable[[Any], Registry]
    """A registry with the types of one of them; it imports the framework."""


def framework_of(value: Any) -> Framework | None:
    """The framework that an object is of, by its class; nothing is imported for it."""
    modules = [f"{each.__module__}." for each in type(value).__mro__]
    for framework in FRAMEWORKS:
        if any(each.startswith(f"{name}.") for each in modules for name in framework.packages):
            return framework
    return None


def _langgraph_world(graph: Any) -> World:
    from sealpoint.adapters.langgraph import declared_world  # noqa: PLC0415 - an extra

    return declared_world(graph)


def _langgraph_types(graph: Any) -> Registry:
    from sealpoint.adapters.langgraph.framework import registry_of  # noqa: PLC0415 - an extra

    return registry_of(graph)


def _agent_framework_world(workflow: Any) -> World:
    from sealpoint.adapters.agent_framework import declared_world  # noqa: PLC0415 - an extra

    return declared_world(workflow)


def _agent_framework_types(workflow: Any) -> Registry:
    from sealpoint.adapters.agent_framework.framework import registry_of  # noqa: PLC0415 - an extra

    return registry_of(workflow)


FRAMEWORKS = (
    Framework(
        name="LangGraph",
        noun="a compiled graph",
        packages=("langchain", "langchain_core", "langgraph", "sealpoint.adapters.langgraph"),
        types=("langchain.", "langgraph."),
        registry="sealpoint.adapters.langgraph.framework:registry",
        declared_world=_langgraph_world,
        declared_types=_langgraph_types,
    ),
    Framework(
        name="Agent Framework",
        noun="a workflow",
        packages=(
            *("agent_framework", "agent_framework_orchestrations", "agent_framework_declarative"),
            "sealpoint.adapters.agent_framework",
        ),
        types=("agent_framework.",),
        registry="sealpoint.adapters.agent_framework.framework:registry",
        declared_world=_agent_framework_world,
        declared_types=_agent_framework_types,
    ),
)
"""Every framework that has a door."""
