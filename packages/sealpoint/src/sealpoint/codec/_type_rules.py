# SPDX-License-Identifier: Apache-2.0
"""Rules: which application types may be saved and loaded, under which name and version.

A rule's *label* (name, version and shape digest, framed by length) opens every value written under
it. Decoding looks up the complete label in one table: data chooses among the rules that the
application made and can do nothing else.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec

from sealpoint.codec._changed_class import (
    RuleText,
    another_kind,
    fields_changed,
    member_gone,
    where_registry_goes,
)
from sealpoint.codec._class_kinds import (
    Body,
    ClassKind,
    DictForm,
    EnumKind,
    NamedTupleKind,
    PairKind,
    run_application,
)
from sealpoint.codec._class_shape import SHAPE_BYTES
from sealpoint.codec._model_kinds import PydanticKind, StructKind, attrs_kind, dataclass_kind
from sealpoint.errors import BytesMalformed, RuleInvalid, UnknownType, VersionUnknown

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

_NAME = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*")
_NAME_CHARS_MAX = 100
_VERSION_MAX = (1 << 16) - 1
_FITTING_MAX = 64
_TEXT = frozenset({str})

LABEL_BYTES = 1 + 2 + SHAPE_BYTES
"""The length of a label without its name; the payload's first byte is the length of the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The beginning of a typed value: the type that it claims."""

    name: str
    version: int
    shape: bytes

    def __bytes__(self) -> bytes:
        name = self.name.encode("ascii")
        return bytes((len(name),)) + name + self.version.to_bytes(2, "big") + self.shape

    @classmethod
    def parse(cls, payload: bytes) -> "Label":
        """Read the label that opens `payload`.

        Raises:
            BytesMalformed: There is none.
        """
        name = payload[1 : 1 + payload[0]]
        rest = payload[1 + payload[0] : LABEL_BYTES + payload[0]]
        if len(rest) != 2 + SHAPE_BYTES or not name.isascii() or not _NAME.fullmatch(name.decode()):
            raise BytesMalformed("typed value: expected a name, a version and a shape digest")
        return cls(name=name.decode(), version=int.from_bytes(rest[:2], "big"), shape=rest[2:])


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRule:
    """One allowed application type."""

    cls: type
    name: str
    version: int
    kind: ClassKind = field(repr=False)
    upgrade: Mapping[int, Upgrade] = field(repr=False)
    label: bytes = field(repr=False)
    opening: bytes = field(repr=False)
    """The beginning of the body: array header, then (for fields) map header."""
    marked: bytes = field(repr=False)
    """The header of an array with room for one more part than the body has."""
    from_body: Callable[[Body], Any] = field(repr=False)
    """The kind's own `from_body`."""
    text: RuleText = field(repr=False)
    """The rule as program text."""
    form: DictForm | None = field(repr=False)
    """How objects hold their stored form in memory, if they do."""
    fitting: dict[tuple[bytes, tuple[str, ...]], tuple[str, ...]] = field(
        default_factory=dict, repr=False
    )
    """For older shapes that were met, with the stored fields: the fields that get their
    defaults."""

    def upgrade_body(self, version: int, body: Body) -> Body:
        """Upgrade a body of an older version to this one, step by step."""
        fields = self._first_part(version, body)
        if type(fields) is not dict and not isinstance(self.kind, PairKind):
            raise BytesMalformed(f"{self.name} version {version}: expected fields")
        for step in range(version, self.version):
            fields = run_application(self.upgrade[step], fields)
        return self.kind.upgrade_body(fields, body)

    def _first_part(self, version: int, body: Body) -> Any:
        if type(body) is not list or not body:
            raise BytesMalformed(f"{self.name} version {version}: expected a body")
        return body[0]

    def fields_added(self, digest: bytes, body: Body) -> tuple[str, ...]:
        """Return the fields that were added since a body of this version was stored.

        The body has another shape. Stored fields are never dropped, and are set only if the class
        still has them with the same annotation.

        Raises:
            ShapeChanged: A field is gone, had another annotation, or is new and has no default.
        """
        shape, fields = self.kind.shape, self._first_part(self.version, body)
        if isinstance(self.kind, EnumKind | PairKind):
            raise another_kind(self.text, shape)
        # Check this before comparing, hashing or showing a name: one that is not text may run its
        # own code.
        if type(fields) is not dict or not _TEXT.issuperset(map(type, fields)):
            raise BytesMalformed(f"{self.name} version {self.version}: expected fields by name")
        names = tuple(fields)
        known = self.fitting.get((digest, names))
        if known is not None:
            return known
        differing = shape.differing(digest, names)
        added = tuple(name for name in shape.fields if name not in fields)
        without = tuple(name for name in added if name not in self.kind.defaults)
        if differing != () or without:
            raise fields_changed(self.text, shape, names, differing, without)
        if len(self.fitting) < _FITTING_MAX:
            self.fitting[digest, names] = added
        return added

    def check_version(self, label: Label) -> None:
        """Check that a value of another version can be upgraded.

        Raises:
            VersionUnknown: A newer version, or an older one without an upgrade.
        """
        if label.version > self.version:
            raise VersionUnknown(
                f"{self.name}: expected at most version {self.version}, found version "
                f"{label.version}, which newer code wrote",
                hint="Run the newer code, or start again from an older checkpoint.",
            )
        for step in range(label.version, self.version):
            if step not in self.upgrade:
                raise VersionUnknown(
                    f"{self.name}: expected version {self.version}, found version {label.version}, "
                    f"and the rule has no upgrade from version {step}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class UntypedValue:
    """A value of a type that is unknown here: the name of the type, and its fields."""

    name: str
    version: int
    fields: dict[str, Any]
    """The fields by name; for a type without fields, the only value is under `value`."""

    @classmethod
    def of(cls, name: str, version: int, body: Any) -> "UntypedValue":
        """Make the value that a body holds, for any kind of class.

        Raises:
            BytesMalformed: It is not a body.
        """
        if type(body) is not list or not body:
            raise BytesMalformed(f"{name} version {version}: expected a body")
        # A dict with other keys is the result of a rule's `encode=`.
        fields = body[0] if _is_by_name(body[0]) else {"value": body[0]}
        # the additional maps of a pydantic model
        extra = [part for part in body[1:] if type(part) is dict]
        if not all(map(_is_by_name, extra)):
            raise BytesMalformed(f"{name} version {version}: expected fields by name")
        for part in extra:
            fields = {**part, **fields}
        return cls(name=name, version=version, fields=fields)


def _is_by_name(part: Any) -> bool:
    return type(part) is dict and all(type(key) is str for key in part)


def unknown_name(name: str) -> UnknownType:
    """Return the error for a typed value whose name no rule of the registry has."""
    return UnknownType(
        f"typed value: expected a name that a rule allows, found {name!r}",
        hint="If your application wrote it: "
        + where_registry_goes(f"registry.allow(TheType, name={name!r})"),
    )


def is_rule_name(name: str) -> bool:
    """Whether a text can be the name of a rule."""
    return len(name) <= _NAME_CHARS_MAX and _NAME.fullmatch(name) is not None


def _is_upgrade(step: object, function: object, version: int) -> bool:
    return type(step) is int and 1 <= step < version and callable(function)


def make_rule(
    cls: type,
    *,
    name: str,
    version: int = 1,
    upgrade: Mapping[int, Upgrade] | None = None,
    encode: Callable[[Any], Any] | None = None,
    decode: Callable[[Any], Any] | None = None,
    validate: bool = False,
) -> TypeRule:
    """Make a rule, or raise the reason why not.

    Raises:
        RuleInvalid: The name, version, upgrades or class do not make a rule.
    """
    if not isinstance(cls, type):
        raise RuleInvalid(f"rule {name!r}: expected a class, found {cls!r}")
    if not isinstance(name, str):
        found = type(name).__name__
        raise RuleInvalid(f"rule for {cls.__qualname__}: expected a name, found {found}")
    if not is_rule_name(name):
        raise RuleInvalid(
            f"rule for {cls.__qualname__}: expected a name such as 'invoice.plan' (lower case, "
            f"digits, '_', '-', '.', at most {_NAME_CHARS_MAX} characters), found {name!r}"
        )
    if type(version) is not int or not 1 <= version <= _VERSION_MAX:
        raise RuleInvalid(f"rule {name!r}: expected a version from 1, found {version!r}")
    if upgrade is not None and not isinstance(upgrade, Mapping):
        found = type(upgrade).__name__
        raise RuleInvalid(f"rule {name!r}: expected upgrade={{version: function}}, found {found}")
    steps = dict(upgrade or {})
    wrong = [step for step, each in steps.items() if not _is_upgrade(step, each, version)]
    if wrong:
        raise RuleInvalid(
            f"rule {name!r}: expected upgrades from versions 1 to {version - 1}, found {wrong[0]!r}"
        )
    text = RuleText(
        cls=cls,
        name=name,
        version=version,
        upgrade=steps,
        validate=validate,
        is_pair=encode is not None,
    )
    kind = _choose_kind(text, encode=encode, decode=decode)
    label = bytes(Label(name=name, version=version, shape=kind.shape.digest))
    return TypeRule(
        cls=cls,
        name=name,
        version=version,
        kind=kind,
        upgrade=steps,
        label=label,
        opening=kind.opening,
        marked=bytes((kind.opening[0] + 1,)),
        from_body=kind.from_body,
        text=text,
        form=kind.form,
    )


_CLASS_KINDS: tuple[tuple[Callable[[Any], bool], Callable[..., ClassKind]], ...] = (
    (lambda cls: issubclass(cls, msgspec.Struct), StructKind),
    (
        lambda cls: hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_fields"),
        PydanticKind,
    ),
    (lambda cls: hasattr(cls, "__attrs_attrs__"), attrs_kind),
    (lambda cls: hasattr(cls, "__dataclass_fields__"), dataclass_kind),
    (lambda cls: issubclass(cls, tuple) and hasattr(cls, "_fields"), NamedTupleKind),
)
"""How to recognize each kind of class; the first match decides."""


def _choose_kind(
    text: RuleText,
    *,
    encode: Callable[[Any], Any] | None,
    decode: Callable[[Any], Any] | None,
) -> ClassKind:
    cls: Any = text.cls
    name, validate = text.name, text.validate
    given = [function for function in (encode, decode) if function is not None]
    if not all(map(callable, given)):
        raise RuleInvalid(f"rule {name!r}: expected encode= and decode= to be functions")
    if encode is not None and decode is not None:
        return PairKind(cls, encode=encode, decode=decode, validate=validate)
    if given:
        raise RuleInvalid(f"rule {name!r}: expected both encode= and decode=, found one of them")
    if hasattr(cls, "__del__") and not validate:
        raise RuleInvalid(
            f"rule {name!r}: expected a class without __del__, which would run on fields that "
            f"data chose, found {cls.__qualname__}",
            hint="Give the rule validate=True, or encode= and decode= functions.",
        )
    if issubclass(cls, Enum):
        return EnumKind(cls, validate=validate, gone=lambda member: member_gone(text, member))
    for is_such, make_kind in _CLASS_KINDS:
        if is_such(cls):
            return make_kind(cls, validate=validate)
    raise RuleInvalid(
        f"rule {name!r}: expected a dataclass, pydantic model, attrs class, NamedTuple, Enum or "
        f"msgspec.Struct, found {cls.__qualname__}",
        hint=f"Write registry.allow({cls.__name__}, name={name!r}, encode=..., decode=...)",
    )
