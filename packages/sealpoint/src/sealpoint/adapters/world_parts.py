# SPDX-License-Identifier: Apache-2.0
"""The world that is put together from what was found in a graph or a workflow.

Code counts by the modules of the application (`sealpoint.config.read_application`), whatever form
it has. What decides beside the code are settings: what somebody gave to the objects of a framework
or of another installed package. They are read by one rule: what the constructor of such a class
takes is a setting, if it is there under that name and not what it would be anyway. Fields that an
application adds to such a class do not count: their values stand in its code, or change as it runs.
Of models all fields are told.

Secrets do not count. A text whose name says that it is one is left out, of an address only the
origin is told, and a digest of what looks as if it was drawn at random: nobody can guess that.
"""

import ast
import dataclasses
import datetime as dt
import dis
import functools
import inspect
import json
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

import msgspec

from sealpoint.adapters.search import (
    Frameworks,
    Memory,
    Parts,
    attributes,
    cells_of,
    class_module,
    joined_digest,
    told_module,
)
from sealpoint.config import (
    Application,
    Module,
    ModuleOrigin,
    is_application_file,
    place_in_project,
    read_application,
    read_data_files,
)
from sealpoint.world import JSON, Code, Tool, World

__all__ = [
    "PLAIN_JSON",
    "WorldDraft",
    "declared_files",
    "json_digest",
    "kind_of",
    "model_settings",
    "origin_of",
    "plain_setting",
    "plain_value",
    "put",
    "settings_of",
    "told_text",
]

_ABSENT: Any = object()
_CLASSES_MAX = 8_192
_ITEMS_MAX = 256
_LEVELS_MAX = 5
_TEXT_CHARS_MAX = 512
_DEFINITIONS_BYTES_MAX = 64 * 1024
_DIGEST_CHARS = 16
_SECRET = frozenset(
    {
        *("access", "assertion", "auth", "authentication", "authorization", "basic", "bearer"),
        *("cert", "certificate", "conn", "connection", "connstr", "cookie", "cookies", "cred"),
        *("creds", "dsn", "header", "headers", "jwt", "keys", "license", "login", "mnemonic"),
        *("nonce", "otp", "pass", "passcode", "passphrase", "passwd", "pat", "pem", "pin"),
        *("private", "pwd", "refresh", "salt", "sas", "secrets", "session", "sig", "signature"),
        *("signing", "ticket", "tokens"),
    }
)
_SECRET_ENDS = ("credential", "credentials", "key", "password", "secret", "token")
"""A name with one of these words in it, or with a word that ends so (`authtoken`), is that of a
secret, if there is a text under it."""
_NO_SECRET = (bool, int, float, type, types.FunctionType, types.MethodType)
_UNSTABLE = frozenset({"callbacks", "id", "uuid"})
_CACHE = frozenset({"cache", "cached", "lock"})
_ENVIRONMENT = frozenset({"env", "environment"})
"""Of these only the names of the variables are told."""
_WORDS = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_RANDOM = re.compile("(?=[A-Za-z0-9+=]*[0-9])(?=[A-Za-z0-9+=]*[A-Za-z])[A-Za-z0-9+=]{16,}")
_DRAWN = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PROMPT = re.compile("(prompt|instructions|template)$")
_HOLDERS = (dict, frozenset, list, set, tuple)
PLAIN_JSON = frozenset({bool, float, int, str, type(None)})
_AS_TEXT = (dt.date, dt.time, dt.timedelta, PurePath)


class WorldDraft:
    """A world that is being put together, of one graph and of those inside of it.

    Args:
        memory: What an earlier look has found.
        frameworks: The packages of the framework.
    """

    def __init__(self, memory: Memory, frameworks: Frameworks) -> None:
        self._memory = memory
        self._frameworks = frameworks
        self.tools: dict[str, Tool] = {}
        self.models: dict[str, Any] = {}
        self.prompts: dict[str, str] = {}
        self.agents: dict[str, World] = {}
        self.unasked: set[str] = set()
        """The tools that are called without asking anybody."""
        self.unwritten: dict[str, set[str]] = {}
        self.origins: set[ModuleOrigin] = set()
        """Both as `Parts` has them."""
        self._settings: dict[str, Any] = {}
        self._objects: dict[str, list[str]] = {}
        self._runs: dict[str, set[str]] = {}

    def add_package(self, name: str) -> None:
        """Add a package that it rests on."""
        self.origins.add(ModuleOrigin(name, None))

    def add_parts(self, parts: Parts) -> None:
        """Add the code that was found."""
        self.origins |= parts.origins
        for held, found in ((self._runs, parts.runs), (self.unwritten, parts.unwritten)):
            for place, names in found.items():
                held.setdefault(place, set()).update(names)

    def add_inner(self, name: str, world: World, draft: "WorldDraft") -> None:
        """Add the world of a graph inside; the code of all of them counts here."""
        put(self.agents, name, world)
        self.origins |= draft.origins
        for place, digests in draft.unwritten.items():
            self.unwritten.setdefault(place, set()).update(digests)

    def add_tool(self, holder: str, tool: Tool) -> str:
        """Add a tool; another one of the same name, in another place, is called by its holder.

        Returns:
            What it is called.
        """
        known = self.tools.get(tool.name, tool)
        if known is not tool and known != tool:
            tool = Tool(f"{tool.name} of {holder}", tool.definition, tool.launch)
        self.tools[tool.name] = tool
        return tool.name

    def add_settings(self, holder: str, value: Any) -> None:
        """Add what an object of the framework was set up with, and the prompts that it holds."""
        own = not self._frameworks.has_class(type(value))
        if not own and _is_private(type(value)) and not isinstance(value, self._frameworks.apart):
            return  # the framework made that for itself
        kind = str(self._frameworks.reference_to(type(value)))
        self._objects.setdefault(holder, []).append(kind.rpartition(".")[2])
        told = dict(self._memory.told_once(value, lambda: settings_of(value, self._frameworks)))
        for name in [each for each in told if _PROMPT.search(each) and type(told[each]) is str]:
            del told[name]
            held = attributes(value)
            put(self.prompts, f"{holder}: {name}", held.get(name, held.get(f"_{name}")))
        if told:
            put(self._settings, f"{holder}: {kind.rpartition('.')[2]}", {"kind": kind, **told})

    def world(
        self,
        *,
        topology: Mapping[str, Any],
        extra: Mapping[str, JSON],
        files: Mapping[str, str] | None = None,
        inner: bool = False,
    ) -> World:
        """The world, when everything was added.

        Args:
            topology: How its steps follow each other.
            extra: What the application says besides.
            files: The data files that the application declares, by name.
            inner: Whether it is the world of a graph inside of another one, which has the code.

        Raises:
            WorldInvalid: It says more than a world can hold, or a name in it is taken.
        """
        runs = {place: dict.fromkeys(sorted(names), True) for place, names in self._runs.items()}
        told = {"objects": self._objects, "runs": runs, "settings": self._settings}
        topology = {**topology, **{name: part for name, part in told.items() if part}}
        application = None if inner else read_application(self.origins)
        prompts = {**self.prompts, **(files or {})}
        tools = [tool.encoded for tool in self.tools.values()]
        agents = {name: agent.encode() for name, agent in self.agents.items()}
        unwritten = {place: joined_digest(sorted(each)) for place, each in self.unwritten.items()}
        said = [tools, self.models, prompts, agents, topology, extra, sorted(self.unasked)]
        return self._known(
            [*said, unwritten, id(application)],
            lambda: World(
                code=None if application is None else _code_of(application, unwritten),
                tools=self.tools.values(),
                permissions=[f"call {name} without asking" for name in self.unasked],
                model=self.models,
                prompts=prompts,
                agents=self.agents,
                topology=topology,
                runtime={} if application is None else _runtime(application),
                extra=extra,
            ),
        )

    def _known(self, said: list[Any], make: Callable[[], World]) -> World:
        """The world of the look before, if it said exactly this; otherwise another one."""
        try:
            key = msgspec.msgpack.encode(said)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return make()
        found = self._memory.worlds_before.get(key)
        made: World = make() if found is None else found
        self._memory.worlds[key] = made
        return made


def _code_of(application: Application, unwritten: Mapping[str, str]) -> Code:
    """The modules of an application, with what they define as long as that is not too much."""
    left, parts = _DEFINITIONS_BYTES_MAX, list[dict[str, Any]]()
    for modules in (application.code, application.rest):
        left -= sum(len(module.encoded) for module in modules.values())
        parts.append({name: _module(each, told=left >= 0) for name, each in modules.items()})
    code, rest = parts
    return Code(modules={**code, **unwritten}, application=rest)


def _module(module: Module, *, told: bool) -> Any:
    return {"": module.digest, **module.definitions} if told else module.digest


def _runtime(application: Application) -> dict[str, str]:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {**application.versions, "python": python}


def put(into: dict[str, Any], name: str, value: Any) -> None:
    """Put a value under a name that is free: `agent`, `agent 2`, and so on; each value once."""
    place, number = name, 1
    while place in into:
        if into[place] == value:
            return
        number += 1
        place = f"{name} {number}"
    into[place] = value


def kind_of(value: Any) -> str:
    """The module and name of a class, or of an object's class."""
    kind = value if isinstance(value, type) else type(value)
    return f"{told_module(kind.__module__)}.{kind.__qualname__}"


# ---------------------------------------------------------------------- settings


def settings_of(
    value: Any, frameworks: Frameworks, levels: int = _LEVELS_MAX, *, complete: bool = False
) -> dict[str, Any]:
    """What an object was set up with.

    Args:
        value: The object.
        frameworks: The packages of the framework.
        levels: How deep it is looked into.
        complete: Whether defaults count, and what an application adds to the class.
    """
    held = attributes(value)
    if isinstance(value, tuple):
        held |= dict(zip(getattr(value, "_fields", ()), value, strict=False))
    made: dict[str, Any] = {}
    kind: Any = type(value)
    inner = functools.partial(plain_setting, frameworks=frameworks, levels=levels)
    if isinstance(value, functools.partial):
        given = {"function": value.func, "arguments": value.args, **value.keywords}
        return _told_items(list(given.items()), inner)
    for name, default in _parameters(kind, complete=complete).items():
        found = held.get(name, held.get(f"_{name}", _ABSENT))
        if found is _ABSENT or found is None or (not complete and _is_same(found, default)):
            continue
        told = _setting(name, found, inner)
        if told is not None:
            made[name] = told
    return made


def _is_same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return type(value) is type(default) and isinstance(value, _COMPARED) and value == default


_OF_FIELDS = ("__pydantic_fields__", "__dataclass_fields__", "_field_defaults")
"""A class with one of these is little more than its fields."""
_COMPARED = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)


@functools.lru_cache(maxsize=_CLASSES_MAX)
def _parameters(kind: Any, *, complete: bool) -> dict[str, Any]:
    """What the constructor of a class takes, with what it is otherwise."""
    made: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        file = getattr(sys.modules.get(class_module(each)), "__file__", None)
        if each is object:
            continue
        if not complete and type(file) is str and is_application_file(file):
            continue
        own = vars(each)
        if isinstance(own.get("__pydantic_fields__"), dict):
            fields = own["__pydantic_fields__"]
            made |= {name: _default_of(found) for name, found in fields.items()}
        elif "__dataclass_fields__" in own:
            fields = own["__dataclass_fields__"]
            made |= {name: _default_of(found) for name, found in fields.items() if found.init}
        elif "_field_defaults" in own:
            made |= {name: own["_field_defaults"].get(name, _ABSENT) for name in own["_fields"]}
        elif isinstance(own.get("__init__"), types.FunctionType):
            given = _arguments(own["__init__"])
            kept = _kept(own["__init__"]) - {f"_{name}" for name in given}
            made |= {**dict.fromkeys(sorted(kept - _changed_later(own, kept)), _ABSENT), **given}
    return made


def _kept(constructor: types.FunctionType) -> set[str]:
    """The attributes in which a constructor keeps what it was given, or what it makes of that."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(constructor)))
    except (OSError, SyntaxError, TypeError):
        return set()
    code = constructor.__code__
    given = {*code.co_varnames[1:], *code.co_cellvars} - {*code.co_varnames[:1]}
    made = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(
                isinstance(each, ast.Name) and each.id in given for each in ast.walk(node.value)
            ):
                made.update(each.attr for each in targets if isinstance(each, ast.Attribute))
    return {name for name in made if _CACHE.isdisjoint(_WORDS.findall(name))}


def _changed_later(namespace: Mapping[str, Any], kept: set[str]) -> set[str]:
    """Which attributes other methods of a class assign: counters, and what is made later."""
    methods = (each for name, each in namespace.items() if name != "__init__")
    return {
        each.argval
        for method in methods
        if isinstance(method, types.FunctionType) and not kept.isdisjoint(method.__code__.co_names)
        for each in dis.get_instructions(method)
        if each.opname == "STORE_ATTR"
    }


def _default_of(found: Any) -> Any:
    """What a field is if nobody says; something that is made for each object is asked for."""
    if found.default_factory not in (None, dataclasses.MISSING):
        plain = found.default_factory in (dict, list, set, tuple)
        return found.default_factory() if plain else _ABSENT
    return found.default


def _arguments(function: types.FunctionType) -> dict[str, Any]:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    named = (each for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD))
    return {each.name: each.default for each in named if each.name != "self"}


def _setting(name: str, value: Any, inner: Callable[[Any], Any]) -> Any:
    """What is told of a setting; None if it may be a secret, or is another one in every process."""
    if name in _UNSTABLE or (not isinstance(value, _NO_SECRET) and _is_secret(name)):
        return None
    if name.strip("_") in _ENVIRONMENT and isinstance(value, Mapping):
        return sorted(map(str, value))
    return inner(value)


@functools.lru_cache(maxsize=_CLASSES_MAX)
def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return not _SECRET.isdisjoint(words) or any(word.endswith(_SECRET_ENDS) for word in words)


def plain_setting(value: Any, frameworks: Frameworks, levels: int = _LEVELS_MAX) -> Any:
    """A setting as plain JSON; None if nothing is told of it."""
    kind = type(value)
    inner = functools.partial(plain_setting, frameworks=frameworks, levels=levels - 1)
    if kind in (bool, int):
        return value
    if kind is float:
        return value if abs(value) < float("inf") else repr(value)
    if kind is str:
        return told_text(value)
    if isinstance(value, Enum):
        return value.name
    if kind is bytes:
        return told_text(value.hex())
    if kind is re.Pattern:
        return [inner(value.pattern), value.flags]
    if issubclass(kind, _AS_TEXT):
        return told_text(str(value))
    if value is None or hasattr(value, "get_secret_value"):
        return None
    if issubclass(kind, _HOLDERS) and not levels:
        return f"sha256:{json_digest(plain_value(value))}"
    if issubclass(kind, dict):
        return _told_items(list(dict.items(value)), inner)
    if issubclass(kind, set | frozenset):
        return _bounded(sorted((inner(each) for each in value), key=str))
    if kind is list or kind is tuple:
        return _bounded([inner(each) for each in value])
    if issubclass(kind, types.MethodType | types.FunctionType):
        function = getattr(value, "__func__", value)
        if not frameworks.has_function(function):
            return frameworks.reference_to(function)
        # What the framework made itself is nothing that somebody has set, but for what it holds.
        return _told_items(_given_in(function, frameworks), inner) or None if levels else None
    named = frameworks.reference_to(value) or frameworks.reference_to(kind)
    if isinstance(value, frameworks.apart) or not levels:
        return named
    has_fields = any(hasattr(kind, mark) for mark in _OF_FIELDS)
    told = {}
    is_framework = any(map(frameworks.has_class, kind.__mro__)) and not _is_private(kind)
    if has_fields or is_framework or kind is functools.partial:
        told = settings_of(value, frameworks, levels - 1)
    return {"kind": named, **told} if told or has_fields else named


def _given_in(function: types.FunctionType, frameworks: Frameworks) -> list[tuple[str, Any]]:
    """What a function of the framework holds, but for other functions of its own."""
    return [
        (name, value)
        for name, value in cells_of(function).items()
        if not (isinstance(value, types.FunctionType) and frameworks.has_function(value))
    ]


def _is_private(kind: type) -> bool:
    """Whether a class is none that somebody would make an object of."""
    return kind.__name__.startswith("_")


def _told_items(items: list[tuple[Any, Any]], inner: Callable[[Any], Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in items:
        if name == "properties" and type(value) is dict:
            # Of a schema the names are those of fields, and it has no values.
            told = plain_value(value)
        else:
            told = _setting(str(name), value, inner)
        if told is not None:
            made[str(name)] = told
    if len(made) > _ITEMS_MAX:
        kept = dict(list(made.items())[:_ITEMS_MAX])
        return {**kept, "...": f"sha256:{json_digest(made)}"}
    return made


def _bounded(values: list[Any]) -> list[Any]:
    """A list that is not too long: after so many values the digest of them all."""
    if len(values) <= _ITEMS_MAX:
        return values
    return [*values[:_ITEMS_MAX], f"sha256:{json_digest(values)}"]


def plain_value(value: Any) -> Any:
    """A value as plain JSON, in full, with the names of classes in place of what is none."""
    if isinstance(value, Mapping):
        return {str(name): plain_value(each) for name, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain_value, value), key=str)
    if isinstance(value, list | tuple):
        return list(map(plain_value, value))
    return value if type(value) in PLAIN_JSON else kind_of(value)


@functools.lru_cache(maxsize=_CLASSES_MAX)
def told_text(text: str) -> str | None:
    """What may be told of a text: of an address its origin, of a long one the digest.

    Of what may be a secret too. Of a path within a project its place there. Nothing of a name that
    is drawn in each process.
    """
    origin = origin_of(text)
    if origin is not None:
        return origin
    if _DRAWN.search(text):
        return None
    place = place_in_project(text) if len(text) <= _TEXT_CHARS_MAX else None
    if place is not None:
        return place
    if len(text) > _TEXT_CHARS_MAX or _RANDOM.search(text):
        return f"sha256:{joined_digest([text])[:_DIGEST_CHARS]}"
    return text


def origin_of(address: Any) -> str | None:
    """Where an address leads, without the rest of it; None if it is none."""
    if type(address) is not str or "://" not in address or " " in address.strip():
        return None
    try:
        parts = urlsplit(address)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else None


def json_digest(value: Any) -> str:
    """The SHA-256 of a value that is plain JSON."""
    return joined_digest([json.dumps(value, sort_keys=True)])


# ---------------------------------------------------------------------- data files


def declared_files(files: Iterable[str | PurePath]) -> dict[str, str]:
    """The data files that an application declares, as prompts of its world.

    Args:
        files: Files, and folders with all that is in them.

    Raises:
        WorldInvalid: One is not there, or two have one name.
    """
    return {f"file {name}": text for name, text in read_data_files(files).items()}


def model_settings(
    value: Any, bound: Mapping[str, Any], frameworks: Frameworks, memory: Memory
) -> dict[str, Any]:
    """What a model was set up with, and what it was bound with.

    Of the fields that an application adds to its class, what they held at the first look: they may
    count something as it runs.
    """
    told = settings_of(value, frameworks, complete=True)
    kind: Any = type(value)
    known = _parameters(kind, complete=False)
    own = {name: each for name, each in told.items() if name not in known}
    given = _told_items(
        list(bound.items()), functools.partial(plain_setting, frameworks=frameworks)
    )
    return {**told, **memory.told_first(value, own), **given}
