# SPDX-License-Identifier: Apache-2.0
"""The world that is built from the parts of a graph or workflow.

The world counts code by the modules of the application (`sealpoint.config.read_application`), in
whatever form the code appears. Besides the code, settings determine the behavior: the arguments
given to objects of a framework or of another installed package. One rule reads them: an argument of
such a class's constructor is a setting, if the object holds it under that name and it differs from
the default. Fields that an application adds to such a class do not count: their values come from
its code, or change as it runs. For models, all fields count.

Secrets are left out. The world omits a text whose name marks it as a secret, keeps only the origin
of a URL, and keeps only a digest of a text that looks random, which cannot be guessed from its
digest.
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

from sealpoint.adapters.object_search import (
    Frameworks,
    Memory,
    Parts,
    attributes,
    cells_of,
    class_module,
    joined_digest,
    module_label,
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
from sealpoint.errors import UsageError
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
    "text_for_world",
    "watched_values",
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
"""A name that contains one of these words, or a word with one of these endings (`authtoken`), marks
a text under it as a secret.

Only a world leaves these out. Displays of a state hide fewer names, which are listed in
`views/masking.py`."""
_NO_SECRET = (bool, int, float, type, types.FunctionType, types.MethodType)
_UNSTABLE = frozenset({"callbacks", "id", "uuid"})
_CACHE = frozenset({"cache", "cached", "lock"})
_ENVIRONMENT = frozenset({"env", "environment"})
"""For these, only the names of the variables count."""
_WORDS = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_RANDOM = re.compile("(?=[A-Za-z0-9+=]*[0-9])(?=[A-Za-z0-9+=]*[A-Za-z])[A-Za-z0-9+=]{16,}")
_DRAWN = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PROMPT = re.compile("(prompt|instructions|template)$")
_HOLDERS = (dict, frozenset, list, set, tuple)
PLAIN_JSON = frozenset({bool, float, int, str, type(None)})
_AS_TEXT = (dt.date, dt.time, dt.timedelta, PurePath)


class WorldDraft:
    """The world under construction of one graph and of the graphs inside it.

    Args:
        memory: The results of an earlier search.
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
        """The tools that run without asking anyone."""
        self.unwritten: dict[str, set[str]] = {}
        self.origins: set[ModuleOrigin] = set()
        """Both have the form that `Parts` gives them."""
        self._settings: dict[str, Any] = {}
        self._objects: dict[str, list[str]] = {}
        self._runs: dict[str, set[str]] = {}

    def add_package(self, name: str) -> None:
        """Add a package that the graph depends on."""
        self.origins.add(ModuleOrigin(name, None))

    def add_parts(self, parts: Parts) -> None:
        """Add the code that a search found."""
        self.origins |= parts.origins
        for held, found in ((self._runs, parts.runs), (self.unwritten, parts.unwritten)):
            for place, names in found.items():
                held.setdefault(place, set()).update(names)

    def add_inner(self, name: str, world: World, draft: "WorldDraft") -> None:
        """Add the world of an inner graph; this world counts the code of all inner graphs."""
        put(self.agents, name, world)
        self.origins |= draft.origins
        for place, digests in draft.unwritten.items():
            self.unwritten.setdefault(place, set()).update(digests)

    def add_tool(self, holder: str, tool: Tool) -> str:
        """Add a tool; a different tool of the same name gets the name of its holder as well.

        Returns:
            The name of the tool in the world.
        """
        known = self.tools.get(tool.name, tool)
        if known is not tool and known != tool:
            tool = Tool(f"{tool.name} of {holder}", tool.definition, tool.launch)
        self.tools[tool.name] = tool
        return tool.name

    def add_settings(self, holder: str, value: Any) -> None:
        """Add the settings of a framework object, and the prompts that it holds."""
        own = not self._frameworks.has_class(type(value))
        if not own and _is_private(type(value)) and not isinstance(value, self._frameworks.apart):
            return  # the framework created it for internal use
        kind = str(self._frameworks.reference_to(type(value)))
        self._objects.setdefault(holder, []).append(kind.rpartition(".")[2])
        told = dict(self._memory.value_once(value, lambda: settings_of(value, self._frameworks)))
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
        """Return the world, after everything was added.

        Args:
            topology: The order of its steps.
            extra: Additional facts that the application declares.
            files: The data files that the application declares, by name.
            inner: Whether it is the world of an inner graph, whose code the outer world counts.

        Raises:
            WorldInvalid: It holds more than a world can, or two entries have the same name.
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
        """Return the world of the earlier search if the content is the same, else a new one."""
        try:
            key = msgspec.msgpack.encode(said)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return make()
        found = self._memory.worlds_before.get(key)
        made: World = make() if found is None else found
        self._memory.worlds[key] = made
        return made


def _code_of(application: Application, unwritten: Mapping[str, str]) -> Code:
    """Return the modules of an application, with their definitions up to a total size."""
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
    """Put a value under a free name: `agent`, `agent 2`, and so on; each value once."""
    place, number = name, 1
    while place in into:
        if into[place] == value:
            return
        number += 1
        place = f"{name} {number}"
    into[place] = value


def kind_of(value: Any) -> str:
    """Return the module and name of a class, or of an object's class."""
    kind = value if isinstance(value, type) else type(value)
    return f"{module_label(kind.__module__)}.{kind.__qualname__}"


# ---------------------------------------------------------------------- settings


def settings_of(
    value: Any, frameworks: Frameworks, levels: int = _LEVELS_MAX, *, complete: bool = False
) -> dict[str, Any]:
    """Return the settings of an object.

    Args:
        value: The object.
        frameworks: The packages of the framework.
        levels: How many levels of nested objects to read.
        complete: Whether to include defaults, and fields that an application adds to the class.
    """
    held = attributes(value)
    if isinstance(value, tuple):
        held |= dict(zip(getattr(value, "_fields", ()), value, strict=False))
    made: dict[str, Any] = {}
    kind: Any = type(value)
    inner = functools.partial(plain_setting, frameworks=frameworks, levels=levels)
    if isinstance(value, functools.partial):
        given = {"function": value.func, "arguments": value.args, **value.keywords}
        return _items_for_world(list(given.items()), inner)
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
"""The attributes that mark a class made mainly of fields."""
_COMPARED = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)


@functools.lru_cache(maxsize=_CLASSES_MAX)
def _parameters(kind: Any, *, complete: bool) -> dict[str, Any]:
    """Return the parameters of a class's constructor, with their defaults."""
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
    """Return the attributes in which a constructor keeps its arguments or values made from them."""
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
    """Return which attributes other methods of a class assign: counters, and values made later."""
    methods = (each for name, each in namespace.items() if name != "__init__")
    return {
        each.argval
        for method in methods
        if isinstance(method, types.FunctionType) and not kept.isdisjoint(method.__code__.co_names)
        for each in dis.get_instructions(method)
        if each.opname == "STORE_ATTR"
    }


def _default_of(found: Any) -> Any:
    """Return the default of a field; a default that is created per object counts as absent."""
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
    """Return a setting as plain JSON; None if it may be a secret, or differs between processes."""
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
    """Return a setting as plain JSON; None if it is left out."""
    kind = type(value)
    inner = functools.partial(plain_setting, frameworks=frameworks, levels=levels - 1)
    if kind in (bool, int):
        return value
    if kind is float:
        return value if abs(value) < float("inf") else repr(value)
    if kind is str:
        return text_for_world(value)
    if isinstance(value, Enum):
        return value.name
    if kind is bytes:
        return text_for_world(value.hex())
    if kind is re.Pattern:
        return [inner(value.pattern), value.flags]
    if issubclass(kind, _AS_TEXT):
        return text_for_world(str(value))
    if value is None or hasattr(value, "get_secret_value"):
        return None
    if issubclass(kind, _HOLDERS) and not levels:
        return f"sha256:{json_digest(plain_value(value))}"
    if issubclass(kind, dict):
        return _items_for_world(list(dict.items(value)), inner)
    if issubclass(kind, set | frozenset):
        return _bounded(sorted((inner(each) for each in value), key=str))
    if kind is list or kind is tuple:
        return _bounded([inner(each) for each in value])
    if issubclass(kind, types.MethodType | types.FunctionType):
        function = getattr(value, "__func__", value)
        if not frameworks.has_function(function):
            return frameworks.reference_to(function)
        # The framework's own functions are not settings, but their closures may hold some.
        return _items_for_world(_given_in(function, frameworks), inner) or None if levels else None
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
    """Return the closure of a framework function, without other functions of the framework."""
    return [
        (name, value)
        for name, value in cells_of(function).items()
        if not (isinstance(value, types.FunctionType) and frameworks.has_function(value))
    ]


def _is_private(kind: type) -> bool:
    """Whether a class is private, so that applications do not create its objects."""
    return kind.__name__.startswith("_")


def _items_for_world(items: list[tuple[Any, Any]], inner: Callable[[Any], Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in items:
        if name == "properties" and type(value) is dict:
            # In a schema these are field names, and a schema has no secret values.
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
    """Return a list with a limited number of items; the rest is replaced by the digest of all."""
    if len(values) <= _ITEMS_MAX:
        return values
    return [*values[:_ITEMS_MAX], f"sha256:{json_digest(values)}"]


def plain_value(value: Any) -> Any:
    """Return a value as plain JSON, in full; any other object becomes its class name."""
    if isinstance(value, Mapping):
        return {str(name): plain_value(each) for name, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain_value, value), key=str)
    if isinstance(value, list | tuple):
        return list(map(plain_value, value))
    return value if type(value) in PLAIN_JSON else kind_of(value)


@functools.lru_cache(maxsize=_CLASSES_MAX)
def text_for_world(text: str) -> str | None:
    """Return the part of a text that the world may show; None if it differs between processes.

    A URL is reduced to its origin, and a path within the project to its relative path. A long text,
    or a text that may be a secret, becomes a digest. A name that is drawn in each process gives
    None.
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
    """Return the origin of a URL; None if the text is not a URL."""
    if type(address) is not str or "://" not in address or " " in address.strip():
        return None
    try:
        parts = urlsplit(address)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else None


def json_digest(value: Any) -> str:
    """Return the SHA-256 of a plain JSON value."""
    return joined_digest([json.dumps(value, sort_keys=True)])


# ---------------------------------------------------------------------- data files


def declared_files(files: Iterable[str | PurePath]) -> dict[str, str]:
    """Return the data files that an application declares, as prompts of its world.

    Args:
        files: Files, and folders with everything in them.

    Raises:
        WorldInvalid: A file is missing, or two have the same name.
    """
    return {f"file {name}": text for name, text in read_data_files(files).items()}


def watched_values(watch: Mapping[str, JSON] | None, world: object = None) -> dict[str, JSON]:
    """Return the values that an application watches, as other values of its world.

    Values come with names, because a value alone does not tell one: equal numbers and texts are
    often one object.

    Args:
        watch: The values, by name.
        world: The world that the application declares itself, which would leave them out.

    Raises:
        UsageError: They have no names, or the application declares its own world.
    """
    if watch is None:
        return {}
    given: Any = watch  # an application without a type checker may give anything
    if not isinstance(given, Mapping) or not all(type(name) is str and name for name in given):
        raise UsageError(
            f"guard: watch= expected values by name, found {type(watch).__name__}",
            hint='Name each value: guard(..., watch={"limit": LIMIT})',
        )
    if watch and world is not None:
        raise UsageError(
            "guard: watch= and world= cannot be combined: a declared world is all that counts",
            hint="Put the values into the world that you declare: World(..., extra={...})",
        )
    return {f"watch.{name}": value for name, value in watch.items()}


def model_settings(
    value: Any, bound: Mapping[str, Any], frameworks: Frameworks, memory: Memory
) -> dict[str, Any]:
    """Return the settings of a model and the arguments bound to it.

    For fields that an application adds to the class, the values of the first search count: such a
    field may be a counter that changes as it runs.
    """
    told = settings_of(value, frameworks, complete=True)
    kind: Any = type(value)
    known = _parameters(kind, complete=False)
    own = {name: each for name, each in told.items() if name not in known}
    given = _items_for_world(
        list(bound.items()), functools.partial(plain_setting, frameworks=frameworks)
    )
    return {**told, **memory.value_at_first(value, own), **given}
