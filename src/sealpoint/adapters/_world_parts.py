# SPDX-License-Identifier: Apache-2.0
"""What a graph or a workflow consists of, and the world that is put together from it.

Found by looking, never by calling: from what a framework runs through its fields, closures,
defaults, partials, methods, classes and the global names that functions use. All code counts that
these lead to in the packages whose functions the framework runs: they are the application. Of
another package that an object or a closure leads to, functions count, and what else a name leads to
counts by its own name. What an application looks up in another way (a file, a request) cannot be
seen. Secrets are not looked at: models are not entered, and texts and numbers that an application
holds do not count.

What a framework calls a tool, a model, a prompt or a graph, an adapter says with `Kinds`.
"""

import functools
import inspect
import json
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

from sealpoint.adapters._function_code import (
    BUILTINS,
    PLAIN,
    Frameworks,
    Memory,
    base_classes,
    defined_in,
    globals_used,
    joined_digest,
    modules_imported,
    unwrap,
)
from sealpoint.config import code_of, imported_name
from sealpoint.errors import WorldInvalid
from sealpoint.world import JSON, Code, Tool, World

_VISITS_MAX = 20_000
_CLASSES_MAX = 8_192
"""How many classes are remembered with how their objects are looked at."""
_LIST_MAX = 64
_CODE = (functools.partial, types.FunctionType, types.MethodType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What was found, each list in the order of finding."""

    code: dict[str, list[str]] = field(default_factory=dict)
    """For each place and function there (`node.agent: answer`, `tool.search: search`), and for all
    functions of frameworks at a place (`node.agent`), the digests of the code, each once. For each
    class (`class.app.tools.Search`) those of its bases and of what it takes from elsewhere; for
    each module that is imported in a function (`module.app.tools`) that of its file."""
    functions: list[tuple[str, types.FunctionType]] = field(default_factory=list)
    """The application's functions, each with its place."""
    tools: list[Any] = field(default_factory=list)
    models: list[Any] = field(default_factory=list)
    prompts: list[Any] = field(default_factory=list)
    graphs: list[Any] = field(default_factory=list)
    agents: list[Any] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    """Other objects of the framework that an adapter wants to be told of."""


class Found(NamedTuple):
    """Something that is to be looked at."""

    value: Any
    place: str
    package: str
    """Code or an object of this package refers to it."""
    own: bool
    """Whether it is the application that holds it, and not the framework."""


_Form = Callable[["Search", Found], None]
_Forms = tuple[tuple[type | tuple[type, ...], _Form], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kinds:
    """What an adapter knows of its framework's objects."""

    noun: str
    """What is looked at, in words: a graph, a workflow."""
    frameworks: Frameworks
    forms: _Forms
    """How objects of a class are looked at, the first that fits."""
    objects: tuple[type, ...]
    """Classes whose objects are entered wherever they are found, if no other form fits."""
    collected: tuple[type, ...]
    """A list or a dict that holds one of these collects them: what is added later counts."""
    calls: tuple[str, ...]
    """By which methods the framework calls an object."""

    def parts_of(
        self, root: Any, place: str, memory: Memory | None = None, *, called: bool = False
    ) -> Parts:
        """Find what something that the framework runs consists of.

        Args:
            root: A function, an object, or a list of them.
            place: What its code is called.
            memory: What an application's own objects held at an earlier look.
            called: Whether the framework calls it itself, also if it is an object of no class that
                it knows.

        Raises:
            WorldInvalid: It is too large to be looked through.
        """
        search = Search(self, memory or Memory())
        (search.add_called if called else search.add)([root], place, "")
        search.run()
        return search.parts


class Search:
    """One search under way."""

    def __init__(self, kinds: Kinds, memory: Memory) -> None:
        self.parts = Parts()
        self._kinds = kinds
        self._frameworks = kinds.frameworks
        self._collected = (*kinds.collected, *_CODE)
        self._memory = memory
        self._waiting: deque[Found] = deque()
        self._seen: dict[int, Any] = {}
        self._applications: set[str] = set()

    def add(self, values: Iterable[Any], place: str, package: str, *, own: bool = False) -> None:
        """Look at these later."""
        for value in values:
            if type(value) not in PLAIN:
                self._waiting.append(Found(value, place, package, own))

    def run(self) -> None:
        """Look at everything that was added, and at what that leads to."""
        waiting, seen, kinds = self._waiting, self._seen, self._kinds
        while waiting:
            found = waiting.popleft()
            value = found.value
            kind: Any = type(value)
            form = _form_of(kinds, kind)
            if form is None or id(value) in seen:
                continue
            # What was seen is kept, or another object could get its identity.
            seen[id(value)] = value
            if len(seen) > _VISITS_MAX:
                raise WorldInvalid(
                    f"{found.place}: the {kinds.noun} holds more than {_VISITS_MAX} objects to "
                    "look through",
                    hint=f"Give the {kinds.noun}'s world yourself with world=.",
                )
            form(self, found)

    def add_called(self, values: Iterable[Any], place: str, package: str) -> None:
        """Look at what the framework calls, also if it is an object of no class that it knows."""
        for value in values:
            kind: Any = type(value)
            if _form_of(self._kinds, kind) is not Search.OTHERWISE:
                self.add([value], place, package)
            elif kind not in PLAIN and self._frameworks.package_of(kind) not in self._frameworks:
                self._object(Found(value, place, "", own=False))

    def enter(self, owner: Any, place: str, within: str, *, remembered: bool = False) -> None:
        """Look at what an object holds: all of it, if it is the framework's.

        Args:
            owner: The object.
            place: What the code in it is called.
            within: The package that refers to it.
            remembered: Whether what was empty at the first look stays out, as it does in an
                application's own objects.
        """
        slots, package = attributes(owner), self._frameworks.package_of(type(owner))
        own = package not in self._frameworks
        if own or remembered:
            slots = self._memory.held(owner, slots)
        if self._is_application(package, within):
            self.add([type(owner)], place, package)
        self.add(slots.values(), place, package, own=own)

    def _object(self, found: Found) -> None:
        """An object that is entered, with the code of an application's own callable one."""
        value, place, package, _ = found
        self.enter(value, place, package)
        package_of, frameworks = self._frameworks.package_of, self._frameworks
        if package_of(type(value)) in frameworks:
            return
        for name in self._kinds.calls:
            method = inspect.getattr_static(type(value), name, None)
            if isinstance(method, types.FunctionType) and package_of(method) not in frameworks:
                self.add([method], place, package_of(method))

    def _other(self, found: Found) -> None:
        """Any other object, if it is of the package that refers to it."""
        package = found.package
        if not package or package in self._frameworks:
            return
        if self._frameworks.package_of(type(found.value)) == package:
            self._object(found)

    def _method(self, found: Found) -> None:
        value, place, package, _ = found
        self.add([value.__func__], place, package)
        # The object that a node is a method of belongs to the application, like the method.
        if isinstance(value.__self__, tuple):
            of_class = self._frameworks.package_of(type(value.__self__))
            self.add(value.__self__, place, of_class)
        self.enter(value.__self__, place, package)

    def _partial(self, found: Found) -> None:
        value, place, package, _ = found
        self.add([value.func, value.args, value.keywords], place, package)

    def _mapping(self, found: Found) -> None:
        self._collection(found, dict(found.value))

    def _sequence(self, found: Found) -> None:
        self._collection(found, dict(enumerate(found.value)))

    def _collection(self, found: Found, slots: dict[Any, Any]) -> None:
        owner, place, package, own = found
        if own:
            slots = self._memory.held(owner, slots, self._collected)
        self.add(slots.values(), place, package, own=own)

    def _builtin(self, found: Found) -> None:
        value = found.value
        digest = joined_digest(["builtin", str(self._frameworks.reference_to(value))])
        self._count(f"{found.place}: {value.__name__}", digest)

    def _class(self, found: Found) -> None:
        """A class, if it is of the application that refers to it: all that it defines."""
        kind, place, package, _ = found
        frameworks = self._frameworks
        if package not in self._applications or frameworks.package_of(kind) != package:
            return
        bases = base_classes(kind)
        names = [f"{frameworks.reference_to(base)}" for base in bases]
        self.add(bases, place, package)
        for name, value in sorted(self._memory.held(kind, defined_in(kind)).items()):
            if type(value) is types.FunctionType and frameworks.is_of(value, package):
                self._named(value, package)
            elif not name.startswith("__"):  # those are Python's own, and some come later
                names += self._named_references({name: value})
                self._value(value, place, package)
        self._count(f"class.{frameworks.reference_to(kind)}", joined_digest(["class", *names]))

    def _named(self, function: types.FunctionType, package: str) -> None:
        """A function of an application that is found by its name, wherever that is used."""
        self.add([function], f"function.{self._frameworks.reference_to(function)}", package)

    def _value(self, value: Any, place: str, package: str) -> None:
        """What a name of an application leads to."""
        for each in unwrap(value):
            if type(each) is not types.FunctionType:
                if type(each) not in BUILTINS:  # the name that leads to it says what it is
                    self.add([each], place, package, own=True)
            elif self._frameworks.is_of(each, package):
                self._named(each, package)

    def _count(self, name: str, digest: str) -> None:
        found = self.parts.code.setdefault(name, [])
        if digest not in found:
            found.append(digest)

    def _is_application(self, package: str, within: str) -> bool:
        """Whether a package is the application: the framework runs something of it."""
        if package not in self._frameworks and (not within or within in self._frameworks):
            self._applications.add(package)
        return package in self._applications

    def _function(self, found: Found) -> None:
        function, place, within, _ = found
        frameworks = self._frameworks
        package = frameworks.package_of(function)
        if package not in frameworks and within not in frameworks:
            package = within if frameworks.is_of(function, within) else package
        digest = frameworks.function_digest(function)
        self.add(function.__defaults__ or (), place, package)
        self.add((function.__kwdefaults__ or {}).values(), place, package)
        self.add([getattr(function, "__wrapped__", None)], place, package)
        if package in frameworks:
            self._count(frameworks.code_name(place, function), digest)
            self.add(_cells(function).values(), place, package)
            return  # its version says what it does
        self.parts.functions.append((place, function))
        cells = self._memory.held(function, _cells(function))
        application = self._is_application(package, within)
        reached = globals_used(function, package if application else None)
        used = self._memory.held(function.__code__, reached)
        names = self._named_references(cells) + self._named_references(used)
        if names:
            digest = joined_digest(["names", digest, *names])
        self._count(frameworks.code_name(place, function), digest)
        self.add(cells.values(), place, package, own=True)
        for value in used.values():
            self._value(value, place, package)
        if application:
            for module, file in modules_imported(function, package).items():
                self._count(f"module.{module}", file)

    def _named_references(self, slots: Mapping[str, Any]) -> list[str]:
        """What names lead to, where that has a name of its own."""
        reference_to = self._frameworks.reference_to
        found = (
            (name, reference_to(each)) for name, held in slots.items() for each in unwrap(held)
        )
        return sorted(f"{name} = {reference}" for name, reference in found if reference is not None)

    BEFORE: ClassVar[_Forms] = ((type, _class), (BUILTINS, _builtin))
    """How objects of Python's own classes are looked at, whatever an adapter says of them."""
    AFTER: ClassVar[_Forms] = (
        (types.FunctionType, _function),
        (types.MethodType, _method),
        (functools.partial, _partial),
        (Mapping, _mapping),
        ((list, tuple), _sequence),
    )
    """The same, if an adapter says nothing of them."""
    ENTERED, OTHERWISE = _object, _other


@functools.lru_cache(maxsize=_CLASSES_MAX)
def _form_of(kinds: Kinds, kind: type) -> _Form | None:
    """How objects of a class are looked at; None: not at all."""
    if issubclass(kind, types.ModuleType):
        return None
    for classes, form in (*Search.BEFORE, *kinds.forms, *Search.AFTER):
        if issubclass(kind, classes):
            return form
    return Search.ENTERED if issubclass(kind, kinds.objects) else Search.OTHERWISE


def _cells(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # nothing was put into it yet
    return found


def attributes(value: Any) -> dict[str, Any]:
    """What an object holds in its dictionary, by name."""
    found = getattr(value, "__dict__", None)
    return dict(found) if isinstance(found, dict) else {}


# ---------------------------------------------------------------------- the world


class WorldDraft:
    """A world that is being put together."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.tools: dict[str, Tool] = {}
        self.models: dict[str, Any] = {}
        self.prompts: dict[str, str] = {}
        self.agents: dict[str, World] = {}
        self._code: dict[str, set[str]] = {}

    def add_code(self, parts: Parts) -> None:
        """Add all code that was found."""
        for place, digests in parts.code.items():
            self._code.setdefault(place, set()).update(digests)

    def add_tool(
        self, holder: str, name: str, definition: Mapping[str, Any], launch: str | None = None
    ) -> None:
        """Add a tool; another one of the same name, in another place, is called by its holder."""
        made = Tool(name, definition, launch)
        if name in self.tools and self.tools[name] != made:
            made = Tool(f"{name} of {holder}", definition, launch)
        self.tools[made.name] = made

    def world(
        self, *, topology: Mapping[str, Any], runtime: Mapping[str, str], extra: Mapping[str, JSON]
    ) -> World:
        """The world, when everything was added.

        Raises:
            WorldInvalid: It says more than a world can hold, or a name in it is taken.
        """
        code = {place: joined_digest(sorted(each)) for place, each in self._code.items()}
        tools = [tool.encoded for tool in self.tools.values()]
        agents = {name: agent.encode() for name, agent in self.agents.items()}
        said = [code, tools, self.models, self.prompts, agents, topology, runtime, extra]
        return self._memory.world(
            said,
            lambda: World(
                code=Code(modules=code),
                tools=self.tools.values(),
                model=self.models,
                prompts=self.prompts,
                agents=self.agents,
                topology=topology,
                runtime=runtime,
                extra=extra,
            ),
        )


def put(into: dict[str, Any], name: str, value: Any) -> None:
    """Put a value under a name that is free: `agent`, `agent 2`, and so on; each value once."""
    place, number = name, 1
    while place in into:
        if into[place] == value:
            return
        number += 1
        place = f"{name} {number}"
    into[place] = value


def runtime_of(packages: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of those of the packages that are installed."""
    made = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for package in packages:
        try:
            version = code_of(package).version
        except WorldInvalid:
            continue  # not all of them are needed
        if version is not None:
            made[package] = version
    return made


def kind_of(value: Any) -> str:
    """The module and name of a class, or of an object's class."""
    kind = value if isinstance(value, type) else type(value)
    return f"{imported_name(kind.__module__)}.{kind.__qualname__}"


def model_of(
    kind: str, fields: Mapping[str, Any], names: Iterable[str], addresses: Iterable[str]
) -> dict[str, Any]:
    """A model: its class, and what a closed list of its fields says in plain values.

    Of an address only the origin is told: the rest may hold a secret.
    """
    made = {"class": kind, **settings_of(fields, names)}
    for name in addresses:
        origin = origin_of(fields.get(name))
        if origin is not None:
            made[name] = origin
    return made


def settings_of(fields: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """What those of the named fields say that hold plain values."""
    found = ((name, fields.get(name)) for name in names)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in found
        if value is not None and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) <= _LIST_MAX and all(type(item) is str for item in value)
    return type(value) in (str, int, float, bool)


def origin_of(address: Any) -> str | None:
    """Where an address leads, without the rest of it; None if it is none."""
    if type(address) is not str:
        return None
    try:
        parts = urlsplit(address)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else None


def plain_json(value: Any) -> Any:
    """A value as plain JSON, with the names of classes in place of what is none."""
    return json.loads(json.dumps(value, default=kind_of))


def json_digest(value: Any) -> str:
    """The SHA-256 of a value that is plain JSON."""
    return joined_digest([json.dumps(value, sort_keys=True)])
