# SPDX-License-Identifier: Apache-2.0
"""What the names in an application's code lead to, found by looking.

Modules and classes are read by their dictionaries: nothing is called or imported, and no property,
`__getattr__` or metaclass of the application runs. Modules that are imported inside a function are
read from their files, so that it makes no difference whether somebody imported them before.
"""

import dis
import functools
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from sealpoint.adapters.langgraph._function_code import (
    FRAMEWORKS,
    Identical,
    class_module,
    outermost,
)
from sealpoint.config import imported_name, module_digest

__all__ = [
    "BUILTINS",
    "base_classes",
    "defined_in",
    "globals_used",
    "modules_imported",
    "reference_to",
    "unwrap",
]

BUILTINS = (types.BuiltinFunctionType, types.MethodDescriptorType)
"""Code that is not Python's own language, and counts by its name."""

_CODE_MAX = 8_192
"""How many functions are remembered with the names that they use."""
_FILES_MAX = 512
_LEVELS_MAX = 8
"""How many wrappers are taken off: one may say that it wraps itself."""

# As `type` and modules themselves have them, whatever a metaclass or a subclass says.
_bases = type.__dict__["__bases__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_module_namespace = vars(types.ModuleType)["__dict__"].__get__

_HELD: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools.partialmethod: ("func",),
    functools.singledispatchmethod: ("func", "dispatcher"),
    functools._lru_cache_wrapper: ("__wrapped__",),  # noqa: SLF001 - it has no other name
}
"""In which attributes the wrappers of the standard library hold what they wrap."""


def globals_used(function: types.FunctionType, package: str | None) -> dict[str, Any]:
    """What the global names of a function lead to, by name.

    What the code names of a module of the given package is there too, as `module.name`.
    """
    names = _names_of(Identical(function.__code__))
    space = function.__globals__
    found = {name: space[name] for name in names if name in space}
    modules = deque(item for item in found.items() if _is_module_of(item[1], package))
    seen = {id(module) for _, module in modules}
    while modules:
        path, module = modules.popleft()
        inside = _module_namespace(module)
        for name in names:
            if name not in inside:
                continue
            value = found[f"{path}.{name}"] = inside[name]
            if id(value) not in seen and _is_module_of(value, package):
                seen.add(id(value))
                modules.append((f"{path}.{name}", value))
    return found


@functools.lru_cache(maxsize=_CODE_MAX)
def _names_of(compiled: Identical) -> tuple[str, ...]:
    """The names that code may look up, each once."""
    return tuple(dict.fromkeys(name for code in _codes(compiled.value) for name in code.co_names))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_module_of(value: Any, package: str | None) -> bool:
    return issubclass(type(value), types.ModuleType) and outermost(_module_name(value)) == package


def _module_name(module: Any) -> str:
    return _text((_module_namespace(module) or {}).get("__name__"))


def _text(value: Any) -> str:
    return value if type(value) is str else ""


def reference_to(value: Any) -> str | None:
    """The module and name of a function, a class, a builtin or a module; None for all else.

    Of a framework only its outermost package: where in it something lies is its own business.
    """
    kind = type(value)
    if kind is types.FunctionType:
        return _reference(value.__module__, value.__qualname__)
    if issubclass(kind, type):
        return _reference(class_module(value), _qualname(value))
    if issubclass(kind, types.ModuleType):
        return f"module {imported_name(_module_name(value))}"
    if kind is types.MethodDescriptorType:
        owner = value.__objclass__
    elif kind is types.BuiltinFunctionType:
        if type(value.__module__) is str:
            return _reference(value.__module__, value.__name__)
        held = value.__self__
        owner = held if issubclass(type(held), type) else type(held)
    else:
        return None
    return _reference(class_module(owner), f"{_qualname(owner)}.{value.__name__}")


def _reference(module: Any, name: str) -> str:
    package = outermost(_text(module))
    return f"{package if package in FRAMEWORKS else imported_name(_text(module))}.{name}"


def base_classes(kind: type) -> tuple[type, ...]:
    """The classes that a class is derived from."""
    found: tuple[type, ...] = _bases(kind)
    return found


def defined_in(kind: type) -> dict[str, Any]:
    """What a class defines itself, by name; of methods and properties their functions."""
    found: dict[str, Any] = {}
    for name, value in _namespace(kind).items():
        inner = list(unwrap(value))
        for number, each in enumerate(inner):
            found[name if len(inner) == 1 else f"{name}.{number}"] = each
    return found


def unwrap(value: Any, levels: int = _LEVELS_MAX) -> Iterator[Any]:
    """What a wrapper of the standard library wraps, or the value itself."""
    names = _HELD.get(type(value))
    if names is None or not levels:
        yield value
        return
    for name in names:
        yield from unwrap(getattr(value, name, None), levels - 1)


def modules_imported(function: types.FunctionType, package: str) -> dict[str, str]:
    """The modules of its own package that a function imports when it runs, with their digests."""
    found: dict[str, str] = {}
    top = Identical(sys.modules.get(package))
    for level, name, wanted in _imports_of(Identical(function.__code__)):
        module = _absolute(name, level, _text(function.__globals__.get("__package__")))
        if outermost(module) != package:
            continue
        inside = {f"{module}.{each}": _digest(f"{module}.{each}", top) for each in wanted}
        if not wanted or None in inside.values():
            inside[module] = _digest(module, top)
        found |= {each: digest for each, digest in inside.items() if digest is not None}
    return found


def _absolute(name: str, level: int, around: str) -> str:
    """The whole name of a module that is imported from so many levels up; empty beyond the top."""
    if not level:
        return name
    parts = around.split(".")
    above = parts[: max(0, len(parts) + 1 - level)]
    return ".".join([*above, name] if name else above) if above else ""


@functools.lru_cache(maxsize=_FILES_MAX)
def _digest(module: str, _top: Identical) -> str | None:
    """Read a file once: one that is replaced later is not what was imported."""
    return module_digest(module)


@functools.lru_cache(maxsize=_CODE_MAX)
def _imports_of(compiled: Identical) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    """The imports in code: how many levels up, the name, and what is imported from it."""
    found = []
    for code in _codes(compiled.value):
        before: list[dis.Instruction] = []
        for each in dis.get_instructions(code):
            if each.opname == "IMPORT_NAME":
                # The two values on the stack are put there right before.
                level, wanted = (instruction.argval for instruction in before[-2:])
                found.append((level, each.argval, wanted or ()))
            if each.opname != "EXTENDED_ARG":
                before = [*before[-1:], each]
    return tuple(found)
