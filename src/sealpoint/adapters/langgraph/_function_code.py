# SPDX-License-Identifier: Apache-2.0
"""The code of a function, as a digest that is the same in every process that runs it.

The syntax of its definition counts, with decorators, parameters, defaults and annotations, and not
how it is written down. Where there is no source (an interactive session, code that a program made
up), or it has several definitions that cannot be told apart, what was compiled counts. A function
of a framework counts by its name: the version of the framework, which is in the world too, says
what it does.
"""

import functools
import hashlib
import inspect
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sealpoint.config import imported_name
from sealpoint.world import FunctionSyntax, read_syntax

FRAMEWORKS = frozenset({"langchain", "langchain_core", "langgraph"})
"""Packages whose functions count by name."""

_module = type.__dict__["__module__"].__get__
_LENGTH_BYTES = 8
_CODE_MAX = 8_192
"""How many functions are remembered with the digest of their code."""
_FILES_MAX = 512
"""Of how many files the functions are remembered."""
_MODULES_MAX = 4_096


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


def package_of(value: Any) -> str:
    """The outermost package that a function, a class or an object's class is defined in."""
    is_class = issubclass(type(value), type)
    module = class_module(value) if is_class else getattr(value, "__module__", None)
    package = outermost(module) if type(module) is str else ""
    if package in FRAMEWORKS and isinstance(value, types.FunctionType):
        # A wrapper takes over the names of what it wraps: around a function of a framework it is
        # the application's all the same.
        return outermost(_home(value))
    return package


def is_of(function: types.FunctionType, package: str) -> bool:
    """Whether a function is a package's, by its name or by where it stands.

    A wrapper of another package around one of the package's has its name; a wrapper of the
    package's around another's stands in it.
    """
    return package in (package_of(function), outermost(_home(function)))


@functools.lru_cache(maxsize=_MODULES_MAX)
def outermost(module: str) -> str:
    """The outermost package of a module."""
    return imported_name(module).partition(".")[0]


def _home(function: types.FunctionType) -> str:
    """The module whose names a function sees, whatever it calls itself."""
    return str(function.__globals__.get("__name__"))


def _is_framework(module: str) -> bool:
    return outermost(module) in FRAMEWORKS


def code_name(place: str, function: types.FunctionType) -> str:
    """What the code of a function is called: its place, and its name if it is no framework's."""
    return place if _is_framework(_home(function)) else f"{place}: {function.__qualname__}"


def function_digest(function: types.FunctionType) -> str:
    """The SHA-256 of a function's code, or of its name if it is a framework's."""
    # Of the code, not of the function: that would be the source of what it wraps.
    return _code_digest(Identical(function.__code__), _home(function))


@functools.lru_cache(maxsize=_CODE_MAX)
def _code_digest(compiled: Identical, home: str) -> str:
    """Read the source once: a file that is replaced later is not what runs."""
    code: types.CodeType = compiled.value
    if _is_framework(home):
        return joined_digest(["framework", imported_name(home), code.co_qualname])
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


def _is_empty(value: object) -> bool:
    # By its type: a proxy that is asked for its class may look for something that is not there.
    kind = type(value)
    return kind in PLAIN or (issubclass(kind, list | tuple | dict | set) and not value)
