# SPDX-License-Identifier: Apache-2.0
"""The code of a function, as a digest that is the same in every process, and what its names mean.

The syntax of its definition counts, with decorators, parameters, defaults and annotations, and not
how it is written down. Where there is no source (an interactive session, code that a program made
up), or it has several definitions that cannot be told apart, what was compiled counts. A function
of a framework counts by its name: the version of the framework, which is in the world too, says
what it does. Which packages are the framework is for an adapter to say.
"""

import dis
import functools
import hashlib
import inspect
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from sealpoint.config import imported_name, module_digest
from sealpoint.world import FunctionSyntax, World, read_syntax

_bases = type.__dict__["__bases__"].__get__
_module = type.__dict__["__module__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_module_namespace = vars(types.ModuleType)["__dict__"].__get__
# As `type` and modules themselves have them, whatever a metaclass or a subclass says.

BUILTINS = (types.BuiltinFunctionType, types.MethodDescriptorType)
"""Code that is not Python's own language, and counts by its name."""

_LENGTH_BYTES = 8
_CODE_MAX = 8_192
"""How many functions are remembered with the digest of their code and the names that they use."""
_FILES_MAX = 512
"""Of how many files the functions are remembered."""
_MODULES_MAX = 4_096
_LEVELS_MAX = 8
"""How many wrappers are taken off: one may say that it wraps itself."""

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


class Identical:
    """Something that is the same only if it is the very same object.

    Python calls code equal that differs in defaults and annotations, which stand around it.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identical) and other.value is self.value


def class_module(kind: type) -> Any:
    """The module of a class as `type` has it, whatever a metaclass says."""
    try:
        return _module(kind)
    except AttributeError:
        return ""  # somebody deleted it


@functools.lru_cache(maxsize=_MODULES_MAX)
def outermost(module: str) -> str:
    """The outermost package of a module."""
    return imported_name(module).partition(".")[0]


def _home(function: types.FunctionType) -> str:
    """The module whose names a function sees, whatever it calls itself."""
    return str(function.__globals__.get("__name__"))


class Frameworks:
    """The packages that count by name, and how code is called with regard to them."""

    def __init__(self, *packages: str) -> None:
        self._packages = frozenset(packages)

    def __contains__(self, package: object) -> bool:
        return package in self._packages

    def package_of(self, value: Any) -> str:
        """The outermost package that a function, a class or an object's class is defined in."""
        is_class = issubclass(type(value), type)
        module = class_module(value) if is_class else getattr(value, "__module__", None)
        package = outermost(module) if type(module) is str else ""
        if package in self._packages and isinstance(value, types.FunctionType):
            # A wrapper takes over the names of what it wraps: around a function of a framework it
            # is the application's all the same.
            return outermost(_home(value))
        return package

    def is_of(self, function: types.FunctionType, package: str) -> bool:
        """Whether a function is a package's, by its name or by where it stands.

        A wrapper of another package around one of the package's has its name; a wrapper of the
        package's around another's stands in it.
        """
        return package in (self.package_of(function), outermost(_home(function)))

    def code_name(self, place: str, function: types.FunctionType) -> str:
        """What the code of a function is called: its place, and its name if no framework's."""
        return place if self._has(_home(function)) else f"{place}: {function.__qualname__}"

    def function_digest(self, function: types.FunctionType) -> str:
        """The SHA-256 of a function's code, or of its name if it is a framework's."""
        home = _home(function)
        if self._has(home):
            return _name_digest(home, function.__code__.co_qualname)
        # Of the code, not of the function: that would be the source of what it wraps.
        return _code_digest(Identical(function.__code__))

    def reference_to(self, value: Any) -> str | None:
        """The module and name of a function, a class, a builtin or a module; None for all else.

        Of a framework only its outermost package: where in it something lies is its own business.
        """
        kind = type(value)
        if kind is types.FunctionType:
            return self._reference(value.__module__, value.__qualname__)
        if issubclass(kind, type):
            return self._reference(class_module(value), _qualname(value))
        if issubclass(kind, types.ModuleType):
            return f"module {imported_name(_module_name(value))}"
        if kind is types.MethodDescriptorType:
            owner = value.__objclass__
        elif kind is types.BuiltinFunctionType:
            if type(value.__module__) is str:
                return self._reference(value.__module__, value.__name__)
            held = value.__self__
            owner = held if issubclass(type(held), type) else type(held)
        else:
            return None
        return self._reference(class_module(owner), f"{_qualname(owner)}.{value.__name__}")

    def _has(self, module: str) -> bool:
        return outermost(module) in self._packages

    def _reference(self, module: Any, name: str) -> str:
        package = outermost(_text(module))
        return f"{package if package in self._packages else imported_name(_text(module))}.{name}"


@functools.lru_cache(maxsize=_CODE_MAX)
def _name_digest(home: str, name: str) -> str:
    return joined_digest(["framework", imported_name(home), name])


@functools.lru_cache(maxsize=_CODE_MAX)
def _code_digest(compiled: Identical) -> str:
    """Read the source once: a file that is replaced later is not what runs."""
    code: types.CodeType = compiled.value
    found = sorted({each.digest for each in _definitions(code)})
    if len(found) == 1:
        return joined_digest(["syntax", *found])
    # Of several definitions, what was compiled says which one this is.
    return joined_digest(["compiled", *found, *_code_parts(code)])


def _definitions(code: types.CodeType) -> list[FunctionSyntax]:
    """What code was compiled from: one definition, or several that cannot be told apart."""
    try:
        lines, _ = inspect.findsource(code)
    except (OSError, TypeError, IndexError):
        return []
    found = _functions_in(Identical(lines)).get((code.co_firstlineno, code.co_name), [])
    if len(found) < 2:  # noqa: PLR2004 - nothing to choose from
        return found
    # Several lambdas in one line: the innermost that all of the code comes from.
    spans = _spans(code)
    around = [each for each in found if _is_around(each, spans)]
    if not spans or not around:
        return found
    innermost = max(each.begin for each in around)
    return [each for each in around if each.begin == innermost]


def _spans(code: types.CodeType) -> list[tuple[tuple[Any, Any], tuple[Any, Any]]]:
    """Where code lies in its file: begin and end of each piece, as lines and columns."""
    known = (place for place in code.co_positions() if None not in place)
    found = (((first, begin), (last, end)) for first, last, begin, end in known)
    return [(begin, end) for begin, end in found if begin != end]


def _is_around(function: FunctionSyntax, spans: Iterable[tuple[Any, Any]]) -> bool:
    return all(function.begin <= begin and end <= function.end for begin, end in spans)


@functools.lru_cache(maxsize=_FILES_MAX)
def _functions_in(lines: Identical) -> dict[tuple[int, str], list[FunctionSyntax]]:
    """The functions of a file by first line and name."""
    syntax = read_syntax("".join(lines.value))
    made: dict[tuple[int, str], list[FunctionSyntax]] = {}
    for each in () if syntax is None else syntax.functions:
        made.setdefault((each.line, each.name), []).append(each)
    return made


def joined_digest(texts: Iterable[str]) -> str:
    """The SHA-256 of texts, framed so that no character can move from one to another."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(_LENGTH_BYTES, "big"))
        digest.update(data)
    return digest.hexdigest()


def _code_parts(code: types.CodeType) -> Iterator[str]:
    """What compiled code does, without where it stands."""
    yield code.co_code.hex()
    yield code.co_exceptiontable.hex()
    yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags))
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield joined_digest(_code_parts(constant))
        elif isinstance(constant, frozenset):
            # The order of a set differs between processes.
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)


# What the names in an application's code lead to, found by looking.
#
# Modules and classes are read by their dictionaries: nothing is called or imported, and no
# property, `__getattr__` or metaclass of the application runs. Modules that are imported inside a
# function are read from their files, so that it makes no difference whether somebody imported
# them before.


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


# What an application's own objects held when they were first looked at.
#
# A graph is looked at again at each run, because anybody in the process can change it. An
# application also fills names while it runs, such as a client that is made when it is first
# needed; that is not another graph, and a new process would not have it. So a name, an attribute
# or a place in a list that was empty at the first look stays out of later looks. What takes the
# place of something is looked at, and so is whatever is added to a list or a dict that held
# tools, models, graphs or code.


PLAIN = frozenset({type(None), bool, bytes, float, int, str})
"""Values of these have no parts."""


_Slots = Mapping[Any, Any]


class Memory:
    """What was found where, for as long as it can still be found there."""

    def __init__(self, before: "Memory | None" = None) -> None:
        """Remember what an earlier look found; that one stays as it is."""
        self._before = {} if before is None else before.found
        self._worlds_before = {} if before is None else before.worlds
        self.worlds: dict[bytes, World] = {}
        """By what they say, encoded."""
        self.found: dict[int, tuple[object, frozenset[Any] | None]] = {}
        """By the identity of an owner: the owner, or another object could get its identity, and
        which of its slots count; None: each of them."""

    def held(self, owner: object, slots: _Slots, parts: tuple[type, ...] = ()) -> dict[Any, Any]:
        """The slots of an owner that are to be looked at.

        Args:
            owner: What has the slots.
            slots: What they hold now.
            parts: If one of these is in a slot, the owner is a collection of such things, and
                each of its slots counts.
        """
        known = self.found.get(id(owner)) or self._before.get(id(owner))
        if known is None or known[0] is not owner:
            collects = any(issubclass(type(value), parts) for value in slots.values())
            keys = frozenset(key for key, value in slots.items() if not _is_empty(value))
            known = (owner, None if collects else keys)
        self.found[id(owner)] = known
        counted = known[1]
        return {key: slots[key] for key in slots if counted is None or key in counted}

    def world(self, said: list[Any], make: Callable[[], World]) -> World:
        """The world of the look before, if it said exactly this; otherwise another one.

        Args:
            said: All that the world says.
            make: Makes it, or says what is wrong with it.
        """
        try:
            key = msgspec.msgpack.encode(said)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return make()
        found = self._worlds_before.get(key)
        self.worlds[key] = found = make() if found is None else found
        return found


def _is_empty(value: object) -> bool:
    # By its type: a proxy that is asked for its class may look for something that is not there.
    kind = type(value)
    return kind in PLAIN or (issubclass(kind, list | tuple | dict | set) and not value)
