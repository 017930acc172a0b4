# SPDX-License-Identifier: Apache-2.0
"""Framework adapters: each translates between one framework and a Sealpoint store.

Each adapter is a separate part, built on `sealpoint.adapters.guarded_runs`. It registers a
`Framework` through the entry points `sealpoint.frameworks`, under the packages of the framework's
classes and under its own package. The command line can therefore tell from the class of an object
which framework the object belongs to, and imports an adapter only for an object of its framework.
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
    """The description of a framework that its adapter registers."""

    name: str
    registry: str
    """Where to find the registry of the adapter's own types, in the form that `--registry`
    takes."""
    declared_world: Callable[[Any], World]
    """Return the world of one of the framework's graphs or workflows."""
    declared_types: Callable[[Any], Registry]
    """Return a registry with the types of one of the framework's graphs or workflows."""


def framework_of(value: Any) -> Framework | None:
    """Return the framework that an object belongs to, by its class; None if there is none.

    Raises:
        ExtraMissing: The adapter of that framework is not installed.
    """
    modules = [f"{each.__module__}." for each in type(value).__mro__]
    for package in framework_packages():
        if any(module.startswith(f"{package}.") for module in modules):
            return framework_named(package)
    return None


def framework_named(package: str) -> Framework:
    """Return the framework that has a package of this name.

    Raises:
        ExtraMissing: Its adapter is not installed.
    """
    found: Framework = _parts.load(_parts.FRAMEWORKS, package)
    return found


def framework_packages() -> tuple[str, ...]:
    """Return the packages of every framework that has an adapter, installed or not."""
    return _parts.names(_parts.FRAMEWORKS)
