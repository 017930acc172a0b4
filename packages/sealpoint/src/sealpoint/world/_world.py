# SPDX-License-Identifier: Apache-2.0
"""`World`: the capabilities of a run, as its application declares them.

A world is a value: it cannot be changed, has one encoding, and equals another if and only if their
encodings are equal. It trusts its input; the code that runs must make sure that a run cannot do
more than its world says.

`Code` is the identity of the code of a run, as the application declares it. Nothing is looked up
here; `sealpoint.config.code_of` reads versions, sources and revisions.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Self

import msgspec

from sealpoint.errors import WorldInvalid
from sealpoint.ids import Digest
from sealpoint.limits import AGENT_LEVELS_MAX
from sealpoint.world._diff import WorldDiff, compare, leaves_of
from sealpoint.world._json import (
    JSON,
    check_depth,
    check_size,
    decode_json,
    encode_json,
    freeze,
    name_text,
    named_object,
    plain_object,
    shown,
)
from sealpoint.world._tool import Tool, read_tools

_DIGEST = re.compile("[0-9a-f]{64}")
_SHORT = re.compile("[0-9a-f]{12,64}")
_FIELDS = ("application", "modules", "revision", "version")


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """The identity of the code of a run.

    Args:
        version: The version of its package.
        modules: The modules that run, and functions that are in no module, by name. Each value is a
            SHA-256 of the source's meaning, in hexadecimal, or an object that has this digest under
            the empty name, and prefixes of the digests of the module's definitions under their
            names.
        revision: The revision of its repository.
        application: The other modules of the application, in the same form.

    Raises:
        WorldInvalid: A field is not of this form.
    """

    version: str | None = None
    modules: Mapping[str, JSON] = field(default_factory=dict)
    revision: str | None = None
    application: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, text in (("version", self.version), ("revision", self.revision)):
            if text is not None:
                name_text(text, f"code.{name}")
        for part in ("modules", "application"):
            modules, _ = named_object(getattr(self, part), f"code.{part}")
            for name, told in modules.items():
                _check_module(told, part, name)
            object.__setattr__(self, part, freeze(modules))

    @classmethod
    def of(cls, value: object) -> Self | None:
        """Read an object with some of the fields; None if it is empty.

        Raises:
            WorldInvalid: It has other fields, or is not an object.
        """
        if value is None:
            return None
        if not isinstance(value, cls):
            data, _ = plain_object(value, "code")
            for name in data:
                if name not in _FIELDS:
                    raise WorldInvalid(
                        f"code: expected the fields {', '.join(_FIELDS)}, found {shown(name)}"
                    )
            value = cls(**data)
        return value if value.to_dict() else None

    def to_dict(self) -> dict[str, Any]:
        """Return the nonempty fields as plain JSON."""
        made: dict[str, Any] = {"version": self.version, "revision": self.revision}
        for part, modules in (("modules", self.modules), ("application", self.application)):
            made[part] = {
                name: dict(told) if isinstance(told, Mapping) else told
                for name, told in modules.items()
            }
        return {name: value for name, value in made.items() if value}

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Code) else NotImplemented

    def __hash__(self) -> int:
        return hash(encode_json(self.to_dict()))


def _check_module(told: object, part: str, module: str) -> None:
    """Check a digest, or an object with a digest under the empty name and prefixes of others."""
    parts = told if isinstance(told, dict) else {"": told}
    for name, digest in ({"": None} | parts).items():
        expected = _SHORT if name else _DIGEST
        if type(digest) is not str or not expected.fullmatch(digest):
            raise WorldInvalid(
                f"code.{part}[{shown(module)}]: expected a SHA-256 as 64 lower-case hexadecimal "
                f"digits{f', or 12 or more of them for {shown(name)}' if name else ''}, found a "
                "text that is not one"
            )


_KNOWN = (*("agents", "code", "model", "permissions", "prompts", "runtime", "tools", "topology"),)
# The lists and objects that enclose a part: the world's own, and the one for all such parts.
_AROUND_FIELD = 1
_AROUND_TOOL = 2
_AROUND_AGENT = 2
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class World:
    """The capabilities of a run.

    Args:
        code: The identity of its code.
        tools: The tools that it can call: tools, objects with a `name`, names alone, or an object
            of definitions by name.
        permissions: The actions that it is allowed, one text each; leave out forbidden ones.
        model: The model and its settings.
        prompts: Its fixed prompts, by name.
        agents: The runs that it can start, by name.
        topology: The order of its steps, by name: the connections, and where it stops.
        runtime: The versions of the interpreter, frameworks and packages.
        extra: Anything else whose change needs a person's attention.

    Raises:
        WorldInvalid: A part has another form, occurs twice, or is beyond the bounds.
    """

    code: Code | None
    tools: tuple[Tool, ...]
    permissions: tuple[str, ...]
    model: Mapping[str, JSON] | None
    prompts: Mapping[str, str]
    agents: "Mapping[str, World]"
    topology: Mapping[str, JSON]
    runtime: Mapping[str, str]
    extra: Mapping[str, JSON]
    depth: int
    """The nesting depth of lists and objects in its encoding."""
    _encoded: bytes

    def __init__(
        self,
        *,
        code: Code | None = None,
        tools: Iterable[Tool | Mapping[str, JSON] | str] = (),
        permissions: Iterable[str] = (),
        model: Mapping[str, JSON] | None = None,
        prompts: Mapping[str, str] = _NONE,
        agents: "Mapping[str, World]" = _NONE,
        topology: Mapping[str, JSON] = _NONE,
        runtime: Mapping[str, str] = _NONE,
        extra: Mapping[str, JSON] = _NONE,
    ) -> None:
        known_code = Code.of(code)
        known_tools = read_tools(tools, "tools")
        known_permissions = _read_permissions(permissions)
        known_model, model_depth = named_object({} if model is None else model, "model")
        known_prompts = _read_texts(prompts, "prompts")
        known_agents = _read_agents(agents)
        known_topology, topology_depth = named_object(topology, "topology")
        known_runtime = _read_texts(runtime, "runtime", named=True)
        known_extra, extra_depth = named_object(extra, "extra")
        taken = sorted(known_extra.keys() & _KNOWN)
        if taken:
            raise WorldInvalid(f"extra: expected names of its own, found {shown(taken[0])}")
        # Each part was checked on its own; only here is the combined depth known. Code,
        # permissions, prompts and runtime are never deep.
        deepest = max(
            _AROUND_FIELD + model_depth,
            _AROUND_FIELD + topology_depth,
            extra_depth,
            *(_AROUND_TOOL + tool.depth for tool in known_tools),
            *(_AROUND_AGENT + agent.depth for agent in known_agents.values()),
        )
        check_depth(deepest, "world")
        parts = {
            "code": known_code.to_dict() if known_code else None,
            "tools": [msgspec.Raw(tool.encoded) for tool in known_tools],
            "permissions": known_permissions,
            "model": known_model,
            "prompts": known_prompts,
            "agents": {name: msgspec.Raw(agent.encode()) for name, agent in known_agents.items()},
            "topology": known_topology,
            "runtime": known_runtime,
        }
        told = {name: value for name, value in parts.items() if value}
        encoded = encode_json(told | known_extra)
        check_size(encoded)
        put = object.__setattr__
        put(self, "code", known_code)
        put(self, "tools", known_tools)
        put(self, "permissions", known_permissions)
        put(self, "model", freeze(known_model) or None)
        put(self, "prompts", freeze(known_prompts))
        put(self, "agents", MappingProxyType(known_agents))
        put(self, "topology", freeze(known_topology))
        put(self, "runtime", freeze(known_runtime))
        put(self, "extra", freeze(known_extra))
        put(self, "_encoded", encoded)
        put(self, "depth", deepest)
        if _agent_levels(self) > AGENT_LEVELS_MAX:
            raise WorldInvalid(f"agents: they are nested more than {AGENT_LEVELS_MAX} deep")

    @classmethod
    def from_dict(cls, mapping: Mapping[str, JSON]) -> Self:
        """Read a world from a JSON object, such as `to_dict` returns.

        Args:
            mapping: Any of `code`, `tools`, `permissions`, `model`, `prompts`, `agents`, `topology`
                and `runtime`; everything else in it goes into `extra`.

        Raises:
            WorldInvalid: One of them has another form; the message has the path.
        """
        # Check all bounds first: after this nothing is endless.
        rest, _ = plain_object(mapping, "world")
        known = {name: rest.pop(name) for name in _KNOWN if name in rest}
        return cls(**known, extra=rest)

    @classmethod
    def of(cls, value: "World | Mapping[str, JSON] | None") -> "World | None":
        """Return the world itself, a world from a mapping, or None for None.

        Raises:
            WorldInvalid: It is neither.
        """
        if value is None or isinstance(value, World):
            return value
        return cls.from_dict(value)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the output of `encode`.

        Raises:
            WorldInvalid: The bytes are not a world, or are another spelling of one.
        """
        # (1) Its size and that it is JSON; (2) its depth and its form; (3) its spelling.
        made = cls.from_dict(decode_json(data))
        if made.encode() != data:
            raise WorldInvalid("world: it is not in canonical form")
        return made

    def encode(self) -> bytes:
        """Return the one encoding: JSON without spaces, sorted."""
        return self._encoded

    @property
    def digest(self) -> str:
        """The SHA-256 of the encoding, in hexadecimal."""
        return Digest.of(self._encoded).raw.hex()

    def to_dict(self) -> dict[str, Any]:
        """Return a new copy of the world as plain JSON, which `from_dict` reads back."""
        made: dict[str, Any] = decode_json(self._encoded)
        return made

    def leaves(self) -> dict[str, Any]:
        """Return the whole content of the world, flat: each leaf with its value, sorted by name."""
        return dict(sorted(leaves_of(self.to_dict()).items()))

    def diff(self, later: "World") -> WorldDiff:
        """Return the differences of a later world."""
        if self._encoded == later.encode():
            return WorldDiff()
        return compare(self.leaves(), later.leaves())

    def __eq__(self, other: object) -> bool:
        return self._encoded == other.encode() if isinstance(other, World) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._encoded)

    def __repr__(self) -> str:
        return f"<World {self.digest[:12]}: {len(self.tools)} tools, {len(self.agents)} agents>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _agent_levels(world: World) -> int:
    return max((1 + _agent_levels(agent) for agent in world.agents.values()), default=0)


def _read_permissions(value: object) -> tuple[str, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise WorldInvalid(f"permissions: expected a list of texts, found {type(value).__name__}")
    made = sorted(name_text(item, f"permissions[{place}]") for place, item in enumerate(value))
    for one, other in pairwise(made):
        if one == other:
            raise WorldInvalid(f"permissions: expected each once, found {shown(one)} twice")
    return tuple(made)


def _read_texts(value: object, path: str, *, named: bool = False) -> dict[str, str]:
    """Copy texts by name; with `named`, refuse an empty text."""
    made, _ = named_object(value, path)
    for name, text in made.items():
        if type(text) is not str:
            raise WorldInvalid(f"{path}[{shown(name)}]: expected text, found {type(text).__name__}")
        if named:
            name_text(text, f"{path}[{shown(name)}]")
    return made


def _read_agents(value: object) -> dict[str, World]:
    if not isinstance(value, Mapping):
        raise WorldInvalid(f"agents: expected an object, found {type(value).__name__}")
    made = {}
    for name, agent in value.items():
        path = f"agent {shown(name_text(name, 'agents: the name of one'))}"
        try:
            world = World.of(agent)
        except WorldInvalid as exc:
            raise WorldInvalid(f"{path}: {exc.message}", hint=exc.hint) from exc
        if world is None:
            raise WorldInvalid(f"{path}: there is no world")
        made[name] = world
    return made
