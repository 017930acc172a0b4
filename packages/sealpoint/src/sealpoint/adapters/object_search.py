# SPDX-License-Identifier: Apache-2.0
"""A search for the parts of a graph or workflow that inspects objects and never calls them.

The search starts from what a framework runs and follows fields, closures, defaults, partials,
methods, classes and the global names that the application's functions use. It finds tools, models,
prompts, inner graphs and other objects of the framework, the functions that run, and the modules
that define any of these. The world counts code by these modules, not by this search: an object in
an unforeseen form can hide a tool at most, and no code. The search does not enter models, which may
hold secrets.

With `Kinds`, an adapter declares which objects of its framework are tools, models, prompts or
graphs.
"""

import functools
import hashlib
import sys
import types
import weakref
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sealpoint.config import ModuleOrigin, imported_name, is_application_file
from sealpoint.errors import WorldInvalid

__all__ = [
    "PLAIN",
    "Found",
    "Frameworks",
    "Identical",
    "Kinds",
    "Memory",
    "Parts",
    "Search",
    "attributes",
    "cells_of",
    "class_module",
    "joined_digest",
    "module_label",
    "outermost",
    "unwrap",
]

_bases = type.__dict__["__bases__"].__get__
_module = type.__dict__["__module__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_module_namespace = vars(types.ModuleType)["__dict__"].__get__
# These descriptors read the attributes of `type` and of modules directly, so that no metaclass or
# subclass can change the result.

PLAIN = frozenset({type(None), bool, bytes, float, int, str})
"""Types whose values have no parts."""

_VISITS_MAX = 20_000
_CONTENT_LEVELS = 3
_REMEMBERED_MAX = 8_192
_LENGTH_BYTES = 8
_LEVELS_MAX = 8
"""How many wrappers to unwrap: a wrapper may claim to wrap itself."""
_BUILTINS = (types.BuiltinFunctionType, types.MethodDescriptorType)
_NAMED = frozenset({types.FunctionType, *_BUILTINS})
_OF_PYTHON = (types.SimpleNamespace, UserDict, UserList, property)
"""Objects of Python's own classes that hold other objects."""
_HELD: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools.partialmethod: ("func",),
    functools.singledispatchmethod: ("func", "dispatcher"),
    functools._lru_cache_wrapper: ("__wrapped__",),  # noqa: SLF001 - it has no other name
}
"""The attributes in which the wrappers of the standard library hold the wrapped object."""


class Frameworks:
    """The packages of a framework; the version of each package identifies its behavior.

    Args:
        packages: Their names.
        apart: Classes whose objects have their own entry in a world, such as tools and models. They
            are not settings of the object that holds them.
    """

    def __init__(self, *packages: str, apart: tuple[type, ...] = ()) -> None:
        self._packages = frozenset(packages)
        self.apart = apart

    def __contains__(self, package: object) -> bool:
        return package in self._packages

    def has_class(self, kind: type) -> bool:
        """Whether the framework defines a class."""
        return outermost(class_module(kind)) in self._packages

    def made(self, value: Any) -> bool:
        """Whether the framework defines a function, a method or the class of an object."""
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            return self.has_function(function)
        return self.has_class(function if isinstance(function, type) else type(function))

    def has_function(self, function: types.FunctionType) -> bool:
        """Whether the framework defines a function, whatever name the function claims."""
        return outermost(_home(function)) in self._packages

    def package_of(self, kind: type) -> str:
        """Return the outermost package that defines a class."""
        return outermost(class_module(kind))

    def reference_to(self, value: Any) -> str | None:
        """Return the module and name of a function, a class or a builtin; None for anything else.

        For a framework this is only the outermost package: its inner structure is an implementation
        detail.
        """
        kind = type(value)
        if kind is types.FunctionType:
            # Use the name in the code object: a wrapper copies the name of the function that it
            # wraps.
            home = module_label(_home(value), value.__globals__.get("__file__"))
            return self._reference(home, value.__code__.co_qualname)
        if issubclass(kind, type):
            return self._reference(module_label(class_module(value)), _qualname(value))
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

    def _reference(self, module: Any, name: str) -> str:
        package = outermost(_text(module))
        return f"{package if package in self._packages else imported_name(_text(module))}.{name}"


def class_module(kind: type) -> str:
    """Return the module of a class as `type` stores it, whatever a metaclass claims."""
    try:
        return _text(_module(kind))
    except AttributeError:
        return ""  # the attribute was deleted


def module_label(module: str, file: Any = None) -> str:
    """Return the name of a module, or of its file if the file was loaded under another name."""
    file = file or getattr(sys.modules.get(module), "__file__", None)
    if type(file) is not str or module.startswith("__") or not is_application_file(file):
        return imported_name(module)
    path = Path(file)
    name = path.parent.name if path.name.startswith("__init__.") else path.name.partition(".")[0]
    return module if module.rpartition(".")[2] == name else name


@functools.lru_cache(maxsize=_REMEMBERED_MAX)
def outermost(module: str) -> str:
    """Return the outermost package of a module."""
    return imported_name(module).partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The result of a search; each list is in the order of discovery."""

    runs: dict[str, set[str]] = field(default_factory=dict)
    """By place (`node.agent`, `tool.search`), the functions that the framework runs there or
    received, by module and name."""
    functions: list[tuple[str, types.FunctionType]] = field(default_factory=list)
    """The application's functions, each with its place."""
    origins: set[ModuleOrigin] = field(default_factory=set)
    """The modules that define the functions and classes of the application."""
    unwritten: dict[str, set[str]] = field(default_factory=dict)
    """By place and name, digests of functions that are in no file: functions of an interactive
    session, or generated ones."""
    tools: list[Any] = field(default_factory=list)
    models: list[Any] = field(default_factory=list)
    prompts: list[Any] = field(default_factory=list)
    graphs: list[Any] = field(default_factory=list)
    agents: list[Any] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    """Other objects of the framework."""


class Found(NamedTuple):
    """An object to inspect."""

    value: Any
    place: str
    own: bool
    """Whether the application holds the object, and not the framework."""
    by_name: bool = False
    """Whether only a name in code leads to the object."""


_Form = Callable[["Search", Found], None]
_Forms = tuple[tuple[type | tuple[type, ...], _Form], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kinds:
    """An adapter's description of its framework's objects."""

    noun: str
    """The word for the object that is inspected: a graph, a workflow."""
    frameworks: Frameworks
    forms: _Forms
    """The function that inspects objects of a class; the first match counts."""
    collected: tuple[type, ...]
    """A list or dict that holds one of these is a collection: items added later count."""

    def parts_of(self, root: Any, place: str, memory: "Memory | None" = None) -> Parts:
        """Find the parts of something that the framework runs.

        Args:
            root: A function, an object, or a list of them.
            place: Its name.
            memory: The contents of the application's own objects in an earlier search.

        Raises:
            WorldInvalid: It is too large to search.
        """
        search = Search(self, memory or Memory())
        search.add([root], place)
        search.run()
        return search.parts


class Search:
    """One search in progress."""

    def __init__(self, kinds: Kinds, memory: "Memory") -> None:
        self.parts = Parts()
        self._kinds = kinds
        self._frameworks = kinds.frameworks
        self._collected = (*kinds.collected, functools.partial, types.FunctionType)
        self._memory = memory
        self._waiting: deque[Found] = deque()
        self._seen: dict[int, Any] = {}

    def add(
        self, values: Iterable[Any], place: str, *, own: bool = False, by_name: bool = False
    ) -> None:
        """Queue objects for inspection."""
        for value in values:
            if type(value) not in PLAIN:
                self._waiting.append(Found(value, place, own, by_name))

    def run(self) -> None:
        """Inspect every queued object, and every object that these lead to."""
        waiting, seen, kinds = self._waiting, self._seen, self._kinds
        while waiting:
            found = waiting.popleft()
            value = found.value
            kind: Any = type(value)
            if kind in _NAMED and not found.by_name:
                self._refer(value, found.place)
            if id(value) in seen:
                continue
            form = _form_of(kinds, kind)
            # Keep a reference to each visited object, or a new object could get its id.
            seen[id(value)] = value
            if len(seen) > _VISITS_MAX:
                raise WorldInvalid(
                    f"{found.place}: the {kinds.noun} holds more than {_VISITS_MAX} objects to "
                    "look through",
                    hint=f"Give the {kinds.noun}'s world yourself with world=.",
                )
            form(self, found)

    def _refer(self, value: Any, place: str) -> None:
        """Record the name of a function that the framework received, but not one of its own."""
        if type(value) is types.FunctionType and self._frameworks.has_function(value):
            return
        self.parts.runs.setdefault(place, set()).add(str(self._frameworks.reference_to(value)))

    def note(self, kind: type) -> bool:
        """Record the module of a class, and return whether it belongs to the application."""
        origin, is_own = _class_origin(kind)
        self.parts.origins.add(origin)
        return is_own and outermost(origin.module) not in self._frameworks

    def enter(self, owner: Any, place: str, *, remembered: bool = False) -> None:
        """Inspect the attributes of an object: all of them, if the framework defines its class.

        Args:
            owner: The object.
            place: Its name.
            remembered: Whether to skip attributes that were empty in the first search, as for the
                application's own objects.
        """
        slots, kind = attributes(owner), type(owner)
        own = not self._frameworks.has_class(kind)
        if own or remembered:
            slots = self._memory.held(owner, slots)
        self.add([kind], place, by_name=True)
        self.add(slots.values(), place, own=own)

    def _object(self, found: Found) -> None:
        self.enter(found.value, found.place)

    def _other(self, found: Found) -> None:
        """Inspect any other object, if its class belongs to the application."""
        kind: Any = type(found.value)
        origin, is_own = _class_origin(kind)
        if is_own and origin.file is not None and not self._frameworks.has_class(kind):
            self.enter(found.value, found.place)

    def _method(self, found: Found) -> None:
        self.add([found.value.__func__], found.place, by_name=found.by_name)
        owner = found.value.__self__
        kind: Any = type(owner)
        self.add([owner], found.place, by_name=found.by_name)
        # If a node is a method, inspect the object that it is bound to, whatever its class.
        if _form_of(self._kinds, kind) is Search.OTHERWISE and id(owner) not in self._seen:
            self._seen[id(owner)] = owner
            self.enter(owner, found.place)

    def _partial(self, found: Found) -> None:
        value, place = found.value, found.place
        self.add([value.func, value.args, value.keywords], place, by_name=found.by_name)
        if not self._frameworks.made(value.func):
            self.parts.objects.append(value)

    def _mapping(self, found: Found) -> None:
        self._collection(found, dict(dict.items(found.value)))

    def _proxy(self, found: Found) -> None:
        self._collection(found, dict(found.value))

    def _sequence(self, found: Found) -> None:
        base = next(each for each in _SEQUENCES if issubclass(type(found.value), each))
        values = base.__iter__(found.value)
        if base in (set, frozenset):  # the order of a set differs between processes
            values = sorted(values, key=self._content)
        self._collection(found, dict(enumerate(values)))

    def _content(self, value: Any, levels: int = _CONTENT_LEVELS) -> str:
        """Return a text of an object's type and contents that does not depend on its id."""
        kind = type(value)
        if kind in PLAIN:
            return repr(value)
        named = self._frameworks.reference_to(value)
        if named is not None or not levels:
            return named or str(self._frameworks.reference_to(kind))
        held: Iterable[Any] = sorted(attributes(value).items())
        if issubclass(kind, tuple | frozenset):
            held = enumerate(kind.__iter__(value))
        parts = [f"{name}={self._content(each, levels - 1)}" for name, each in held]
        return f"{self._frameworks.reference_to(kind)}({', '.join(parts)})"

    def _collection(self, found: Found, slots: dict[Any, Any]) -> None:
        owner, place, own, by_name = found
        if own:
            slots = self._memory.held(owner, slots, self._collected)
        if type(owner) not in (dict, *_SEQUENCES):
            self.add([type(owner)], place, by_name=True)
        self.add(slots.values(), place, own=own, by_name=by_name)

    def _class(self, found: Found) -> None:
        """Inspect a class of the application: its methods may use tools, and its bases may too."""
        kind, place = found.value, found.place
        if not self.note(kind):
            return
        self.add(_bases(kind), place, by_name=True)
        held = self._memory.held(kind, dict(_namespace(kind)))
        for _, value in sorted(held.items()):
            self.add(unwrap(value), place, own=True, by_name=True)

    def _wrapper(self, found: Found) -> None:
        self.add(unwrap(found.value), found.place, own=found.own, by_name=found.by_name)

    def _function(self, found: Found) -> None:
        function, place, _, by_name = found
        # Use the function's globals: a wrapper copies the names of the function that it wraps.
        file = function.__globals__.get("__file__")
        origin, is_own = _origin_of(_home(function), file if type(file) is str else None)
        self.parts.origins.add(origin)
        is_own = is_own and outermost(origin.module) not in self._frameworks
        for held in (function.__defaults__, function.__kwdefaults__, function.__dict__):
            if held:
                values = held.values() if type(held) is dict else held
                self.add(values, place, by_name=by_name)
        cells = cells_of(function)
        if not is_own:
            self.add(cells.values(), place, by_name=by_name)
            return
        self.parts.functions.append((place, function))
        # Methods that a decorator generates for a class, such as `__init__`, follow from the class.
        is_made = by_name and function.__name__.startswith("__") and not _is_interactive(function)
        if _is_unwritten(function) and not is_made:
            name = f"{place}: {function.__qualname__}"
            digest = joined_digest(["compiled", *_code_parts(function.__code__)])
            self.parts.unwritten.setdefault(name, set()).add(digest)
        held = self._memory.held(function, cells)
        self.add(held.values(), place, own=True, by_name=by_name)
        used = self._memory.held(function.__code__, _globals_used(function))
        for value in used.values():
            self.add(unwrap(value), place, own=True, by_name=True)

    BEFORE: _Forms = ((type, _class), ((types.ModuleType, *_BUILTINS), lambda *_: None))
    """How to inspect objects of Python's own classes, whatever an adapter declares for them."""
    AFTER: _Forms = (
        (types.FunctionType, _function),
        (types.MethodType, _method),
        (functools.partial, _partial),
        (tuple(_HELD), _wrapper),
        (dict, _mapping),
        (types.MappingProxyType, _proxy),
        ((list, tuple, set, frozenset, deque), _sequence),
        (_OF_PYTHON, _object),
    )
    """How to inspect them if an adapter declares nothing for them."""
    OTHERWISE = _other


@functools.lru_cache(maxsize=_REMEMBERED_MAX)
def _origin_of(module: str, file: str | None) -> tuple[ModuleOrigin, bool]:
    """Return a module by its import name, and whether it belongs to the application."""
    return ModuleOrigin(imported_name(module), file), file is None or is_application_file(file)


@functools.lru_cache(maxsize=_REMEMBERED_MAX)
def _class_origin(kind: type) -> tuple[ModuleOrigin, bool]:
    """Return the module of a class, and whether it belongs to the application."""
    module = class_module(kind)
    file = getattr(sys.modules.get(module), "__file__", None)
    return _origin_of(module, file if type(file) is str else None)


_SEQUENCES: tuple[Any, ...] = (list, tuple, set, frozenset, deque)


@functools.lru_cache(maxsize=_REMEMBERED_MAX)
def _form_of(kinds: Kinds, kind: type) -> _Form:
    """Return the function that inspects objects of a class."""
    for classes, form in (*Search.BEFORE, *kinds.forms, *Search.AFTER):
        if issubclass(kind, classes):
            return form
    return Search.OTHERWISE


def unwrap(value: Any, levels: int = _LEVELS_MAX) -> Iterator[Any]:
    """Yield what a wrapper of the standard library wraps, or the value itself."""
    names = _HELD.get(type(value))
    if names is None or not levels:
        yield value
        return
    for name in names:
        yield from unwrap(getattr(value, name, None), levels - 1)


def attributes(value: Any) -> dict[str, Any]:
    """Return what an object holds in its dictionary and in the slots of its class, by name."""
    found = getattr(value, "__dict__", None)
    kind: Any = type(value)
    made = dict(found) if isinstance(found, dict) else {}
    for name, slot in _slots_of(kind):
        try:
            made.setdefault(name, slot.__get__(value))
        except AttributeError:
            continue  # the slot is still empty
    return made


@functools.lru_cache(maxsize=_REMEMBERED_MAX)
def _slots_of(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return the slots of a class and its bases."""
    return tuple(
        (name, each)
        for base in type.__dict__["__mro__"].__get__(kind)
        for name, each in _namespace(base).items()
        if type(each) is types.MemberDescriptorType
    )


def cells_of(function: types.FunctionType) -> dict[str, Any]:
    """Return the contents of a function's closure, by name."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # the cell is still empty
    return found


# The objects that names in an application's code refer to. Modules are read through their
# dictionaries: nothing is called or imported, and no property, `__getattr__` or metaclass of the
# application runs.


def _home(function: types.FunctionType) -> str:
    """Return the module whose globals a function sees, whatever module it claims."""
    return _text(function.__globals__.get("__name__"))


def _globals_used(function: types.FunctionType) -> dict[str, Any]:
    """Return the objects that the global names of a function refer to, by name.

    Attributes of the application's modules that the code names are included, as `module.name`.
    """
    names = _names_of(Identical(function.__code__))
    space = function.__globals__
    found = {name: space[name] for name in names if name in space}
    modules = deque(item for item in found.items() if _is_own_module(item[1]))
    seen = {id(module) for _, module in modules}
    while modules:
        path, module = modules.popleft()
        inside = _module_namespace(module)
        for name in names:
            if name not in inside:
                continue
            value = found[f"{path}.{name}"] = inside[name]
            if id(value) not in seen and _is_own_module(value):
                seen.add(id(value))
                modules.append((f"{path}.{name}", value))
    return found


def _is_own_module(value: Any) -> bool:
    if not issubclass(type(value), types.ModuleType):
        return False
    file = (_module_namespace(value) or {}).get("__file__")
    return type(file) is str and is_application_file(file)


class Identical:
    """A wrapper that compares by identity.

    Python treats two code objects as equal even if the defaults and annotations of their functions
    differ.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identical) and other.value is self.value


@functools.lru_cache(maxsize=_REMEMBERED_MAX)
def _names_of(compiled: Identical) -> tuple[str, ...]:
    """Return the names that code may look up, each once."""
    return tuple(dict.fromkeys(name for code in _codes(compiled.value) for name in code.co_names))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object, and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_unwritten(function: types.FunctionType) -> bool:
    """Whether a function is in no file, so that the digest of its module does not cover it."""
    module = function.__globals__.get("__file__")
    file = function.__code__.co_filename
    return not _is_in_file(file, module if type(module) is str else None)


def _is_interactive(function: types.FunctionType) -> bool:
    return type(function.__globals__.get("__file__")) is not str


@functools.lru_cache(maxsize=_REMEMBERED_MAX)
def _is_in_file(file: str, module: str | None) -> bool:
    """Whether a code object comes from a file, given its file name and the file of its module."""
    if module is not None and Path(module).name == Path(file).name:
        return True  # a module that was compiled in another place
    return not file.startswith("<") and Path(file).is_file()


def joined_digest(texts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, framed so that no character can move from one to another."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(_LENGTH_BYTES, "big"))
        digest.update(data)
    return digest.hexdigest()


def _code_parts(code: types.CodeType) -> Iterator[str]:
    """Yield the behavior of compiled code, without its position in a file."""
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


def _text(value: Any) -> str:
    return value if type(value) is str else ""


# Memory of what an application's own objects held in the first search.
#
# Each run searches the graph again, because any code in the process can change it. An application
# also fills names while it runs, such as a client that it creates on first use. That does not make
# another graph, and a new process would not have the client yet. So a name, an attribute or a place
# in a list that was empty in the first search is skipped in later searches. The search does inspect
# a replaced value, and anything added to a list or dict that held tools, models, graphs or code.


class Memory:
    """The results of a search by object, for as long as the objects exist."""

    def __init__(self, before: "Memory | None" = None) -> None:
        """Start from the results of an earlier search, which stay unchanged."""
        self._before = {} if before is None else before.found
        self.worlds_before = {} if before is None else before.worlds
        self.worlds: dict[bytes, Any] = {}
        """Worlds by their encoded content."""
        self.found: dict[int, tuple[object, frozenset[Any] | None]] = {}
        """By the id of an owner: the owner itself, because another object could get its id, and the
        slots that count; None: all of them."""
        self._told: dict[int, tuple[object, Any]] = {}

    def value_at_first(self, owner: object, told: Any) -> Any:
        """Return the settings of an object from the first search that met it."""
        return _SETTINGS.first(owner, told)

    def value_once(self, owner: object, tell: Callable[[], Any]) -> Any:
        """Return the settings of an object in this search, reading them only once."""
        if id(owner) not in self._told:
            self._told[id(owner)] = owner, tell()
        return self._told[id(owner)][1]

    def held(
        self, owner: object, slots: Mapping[Any, Any], parts: tuple[type, ...] = ()
    ) -> dict[Any, Any]:
        """Return the slots of an owner that the search must inspect.

        Args:
            owner: The object that has the slots.
            slots: Their current contents.
            parts: If a slot holds an object of one of these types, the owner is a collection of
                them, and each of its slots counts.
        """
        known = self.found.get(id(owner)) or self._before.get(id(owner))
        if known is not None and known[0] is owner:
            counted = known[1]
        else:
            collects = any(issubclass(type(value), parts) for value in slots.values())
            keys = frozenset(key for key, value in slots.items() if not _is_empty(value))
            counted = _SLOTS.first(owner, None if collects else keys)
        self.found[id(owner)] = owner, counted
        return {key: slots[key] for key in slots if counted is None or key in counted}


class _FirstValues:
    """Data about objects from when this process first met them, for as long as they exist.

    Without it, a guard that is created for each request would meet a client that an earlier request
    has created. Objects that do not support weak references, such as lists, are not recorded.
    """

    def __init__(self) -> None:
        self._told: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def first(self, owner: Any, told: Any) -> Any:
        """Return the data that was first recorded about an object, or record and return this."""
        known = self._told.get(id(owner))
        if known is not None and known[0]() is owner:
            return known[1]
        with suppress(TypeError):
            place = id(owner)
            gone = weakref.ref(owner, lambda each: self._forget(place, each))
            self._told[place] = gone, told
        return told

    def _forget(self, place: int, gone: Any) -> None:
        if (known := self._told.get(place)) is not None and known[0] is gone:
            del self._told[place]


_SLOTS = _FirstValues()
_SETTINGS = _FirstValues()


def _is_empty(value: object) -> bool:
    # By its type: asking a proxy for its class may trigger a lookup that fails.
    kind = type(value)
    return kind in PLAIN or (issubclass(kind, list | tuple | dict | set) and not value)
