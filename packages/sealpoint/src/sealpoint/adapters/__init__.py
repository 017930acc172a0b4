# SPDX-License-Identifier: Apache-2.0
"""Doors for frameworks: each translates between one framework and a Sealpoint store.

Each door is a part, built on `sealpoint.adapters.face`, and registers a `Framework` under the
packages of the framework's classes and of its own, by the entry points `sealpoint.frameworks`. So
the command line knows whose an object is by its class, and imports a door only for an object of its
framework.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sealpoint import _parts
from sealpoint.codec import Registry
from sealpoint.world import World

__all__ = ["Framework", "framework_named", "framework_of", "framework_packages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """What a door tells of its framework."""

    name: str
    registry: str
    """Where the registry of its own types is, as `--registry` names it."""
    declared_world: Callable[[Any], World]
    """The world of one of its graphs or workflows."""
    declared_types: Callable[[Any], Registry]
    """A registry with the types of one of them."""


def framework_of(value: Any) -> Framework | None:
    """The framework that an object is of, by its class.

    Raises:
        ExtraMissing: The door of that framework is not installed.
    """
    modules = [f"{each.__module__}." for each in type(value).__mro__]
    for package in framework_packages():
        if any(module.startswith(f"{package}.") for module in modules):
            return framework_named(package)
    return None


def framework_named(package: str) -> Framework:
    """The framework that has a package called this.

    Raises:
        ExtraMissing: Its door is not installed.
    """
    found: Framework = _parts.load(_parts.FRAMEWORKS, package)
    return found


def framework_packages() -> tuple[str, ...]:
    """The packages of every framework that has a door, installed or not."""
    return _parts.names(_parts.FRAMEWORKS)
