# SPDX-License-Identifier: Apache-2.0
"""Registries with a fault, for the fuzzer to find.

Each fault shows only for some input, as real ones do: where the bytes hold the planted word.
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz._types import Plan
from fuzz.decode_never_executes import Target
from sealpoint import Registry

WORD = b"\xa4name"


class Faulty:
    """A registry whose `decode` has a fault for input that holds the planted word."""

    def __init__(self, registry: Registry, fault: Callable[[Any], Any]) -> None:
        self._registry = registry
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)

    def decode(self, data: bytes) -> Any:
        """Decode, and then spoil what was decoded."""
        value = self._registry.decode(data)
        return self._fault(value) if WORD in data else value


def target_with(fault: Callable[[Any], Any]) -> Target:
    """The claim, over registries with a fault."""
    return Target(lambda registry: Faulty(registry, fault))


@dataclass
class Stranger:
    """A type that no rule allows."""


def raise_value_error(_: Any) -> Any:
    """Raise what a decoder must not raise."""
    raise ValueError("planted")


def raise_system_exit(_: Any) -> Any:
    """Raise what no `except Exception` would see."""
    raise SystemExit("planted")


def open_file(value: Any) -> Any:
    """Open a file."""
    with Path(os.devnull).open("rb"):
        return value


def compile_text(value: Any) -> Any:
    """Compile a text into code."""
    compile("1", "planted", "eval")
    return value


def import_module(value: Any) -> Any:
    """Import a module that is not loaded."""
    sys.modules.pop("this_is_planted", None)
    try:
        import this_is_planted  # type: ignore[import-not-found] # noqa: F401, PLC0415
    except ImportError:
        return value


def call_constructor(value: Any) -> Any:
    """Run application code."""
    Plan(None)
    return value


def return_stranger(value: Any) -> Any:
    """Return an object of a type that no rule allows."""
    return [value, Stranger()]


def return_plan(_: Any) -> Any:
    """Return an object of the application's, which some readers do not have."""
    return object.__new__(Plan)


def return_view(_: Any) -> Any:
    """Return what can be saved but never comes back as it is."""
    return memoryview(b"planted")


def sleep(value: Any) -> Any:
    """Keep the processor busy for longer than a case may."""
    end = time.thread_time() + 1.2
    while time.thread_time() < end:
        pass
    return value


class Drifting:
    """A fault that gives another value each time."""

    def __init__(self) -> None:
        self._times = 0

    def __call__(self, value: Any) -> Any:
        """Add how often this was called."""
        self._times += 1
        return [value, self._times]
