# SPDX-License-Identifier: Apache-2.0
"""How to convert each kind of application type to a body and back.

Encoding produces a *body*: a list whose first item is the fields by name, in declared order.
Decoding sets the fields on a bare object: no `__init__`, no `__new__` of the class, no
`__post_init__`, no validator, no `__setattr__`, unless the rule has `validate=True`; then the
class's constructor runs. A pair of functions is the application's own code by definition.
"""

import contextlib
from collections.abc import Callable, Iterable
from enum import Enum, Flag
from operator import attrgetter
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from ormsgpack import packb

from sealpoint.codec._class_shape import ClassShape, resolved_annotations
from sealpoint.codec._dict_keys import generated_hash
from sealpoint.codec._field_defaults import Defaults, named_tuple_defaults
from sealpoint.codec._wire_format import array_header, map_header
from sealpoint.errors import (
    BytesMalformed,
    DecodeError,
    EncodeError,
    RuleFailed,
    RuleInvalid,
    ValueNotAllowed,
)

Body = list[Any]
_P = ParamSpec("_P")
_R = TypeVar("_R")
_FIELDS = "fields"
_EMPTY = frozenset({type(None), dict})
_FRAMES_MAX = 256


BuildMany = Callable[[list[type], list[dict[str, Any]], list[frozenset[str]]], list[Any]]


def empty_of(kind: type) -> dict[str, Any] | None:
    """Return None or an empty dict, depending on the type."""
    return {} if kind is dict else None


class TakenObject(NamedTuple):
    """A snapshot of an object of a `DictForm`."""

    fields: dict[str, Any]
    given: frozenset[str]
    mask: int
    beside: tuple[type, ...]
    """The types of the attributes outside the fields, all of them empty."""


class DictForm:
    """Declares that objects of a class hold their stored form in their `__dict__`.

    The encoder then compares long lists of them with the last save by the engine's packed form of
    `__dict__`, instead of converting each object. An object that does not match this form is
    encoded by its rule, like one of a class without a form.

    Args:
        names: The keys of `__dict__`, in order.
        body: Makes the stored body from the fields, a number and a value for each of `beside`,
            which is None or an empty dict. The fields are the first leaf of the result, and nothing
            else determines the rest.
        given: The attribute with the set of fields that were given: the number has one bit for each
            of `names` in the set, lowest first. None: objects have no such set.
        beside: Attributes that are None or an empty dict in an object that matches this form.
        build: A faster way to make what the rules would make of many bodies, from their classes,
            their fields and the names of the given fields.
    """

    __slots__ = (
        "_frames",
        "_masks",
        "beside",
        "beside_of",
        "body",
        "build",
        "depth",
        "family",
        "given_of",
        "names",
    )

    def __init__(
        self,
        names: Iterable[str],
        body: Callable[..., Body],
        *,
        given: str | None = None,
        beside: tuple[str, ...] = (),
        build: BuildMany | None = None,
    ) -> None:
        self.names = tuple(names)
        self.body = body
        self.build = build
        self.given_of = None if given is None else attrgetter(given)
        self.beside = beside
        self.beside_of = tuple(map(attrgetter, beside))
        self.family = (body, given, beside, build)
        """The properties that objects in one block must share."""
        self._masks: dict[frozenset[str], tuple[frozenset[str], int]] = {}
        self._frames: dict[tuple[int, tuple[type, ...]], tuple[bytes, bytes]] = {}
        opening, _ = self.frame(0, (type(None),) * len(beside))
        self.depth = len(opening)
        """The nesting depth of the fields in lists."""

    def take(self, value: Any) -> "TakenObject | None":
        """Return a snapshot of an object; None if it does not match this form."""
        fields = value.__dict__
        given = set() if self.given_of is None else self.given_of(value)
        if type(fields) is not dict or type(given) is not set or not given.issubset(self.names):
            return None
        fields, beside = fields.copy(), [get(value) for get in self.beside_of]
        kinds = tuple(map(type, beside))
        if tuple(fields) != self.names or not _EMPTY.issuperset(kinds) or any(beside):
            return None
        return TakenObject(fields, *self.mask(frozenset(given)), kinds)

    def mask(self, given: frozenset[str]) -> tuple[frozenset[str], int]:
        """Return the same names as one shared object, and the number that encodes them."""
        found = self._masks.get(given)
        if found is None:
            places = enumerate(self.names)
            found = given, sum(1 << place for place, name in places if name in given)
            if len(self._masks) < _FRAMES_MAX:
                self._masks[given] = found
        return found

    def frame(self, mask: int, kinds: tuple[type, ...]) -> tuple[bytes, bytes]:
        """Return the bytes before and after the packed fields in an encoded body."""
        found = self._frames.get((mask, kinds))
        if found is None:
            body = self.body(_FIELDS, mask, *map(empty_of, kinds))
            opening, _, closing = packb(body).partition(packb(_FIELDS))
            found = (opening, closing)
            if len(self._frames) < _FRAMES_MAX:
                self._frames[mask, kinds] = found
        return found

    def header(self, count: int) -> bytes:
        """Return the bytes before the packed fields of this many objects."""
        return b"\x91" * (self.depth - 1) + array_header(count)

    def nested(self, fields: list[Any]) -> list[Any]:
        """Return the fields of several objects, nested in lists as deep as in each one's body."""
        for _ in range(self.depth - 1):
            fields = [fields]
        return fields


class ClassKind(Protocol):
    """One application type, seen as fields."""

    shape: ClassShape
    defaults: Defaults
    """The default of each field that may be missing because the class did not have it yet."""
    opening: bytes
    """The bytes with which an encoded body MUST begin: they prove how many fields were written."""
    form: DictForm | None
    """How objects hold their stored form in memory, if they do."""

    def to_body(self, value: Any) -> Body:
        """Convert an object to a body. MUST lose nothing, or raise `ValueNotAllowed`."""
        ...

    def from_body(self, body: Body) -> Any:
        """Make an object from a body. MUST run no application code unless the rule validates."""
        ...

    def upgrade_body(self, fields: dict[str, Any], body: Body) -> Body:
        """Return the body of this shape, from older fields and their stored body.

        Missing fields get their defaults.
        """
        ...

    def hash_parts(self, value: Any) -> Iterable[Any] | None:
        """Return the parts that hashing `value` reads, or None if it would run application code."""
        ...


def run_application(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call a function of the application during decoding; its exceptions become `RuleFailed`."""
    try:
        return function(*args, **kwargs)
    except (MemoryError, DecodeError):
        raise
    except Exception as exc:
        raise _failed(function, exc) from exc


def _failed(function: Callable[..., object], exc: Exception) -> RuleFailed:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return RuleFailed(f"{name}: failed with {type(exc).__name__}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def check_fields(body: Body, names: tuple[str, ...], length: int) -> dict[str, Any]:
    """Return the fields of a body of `length` parts; require exactly `names` in order."""
    fields = body[0] if type(body) is list and len(body) == length else None
    if type(fields) is dict and tuple(fields) == names:
        return fields
    raise BytesMalformed(
        f"fields: expected {_listed(names)} in this order, found other names or another order"
    )


def completed(fields: dict[str, Any], names: tuple[str, ...], defaults: Defaults) -> dict[str, Any]:
    """Return older fields in declared order, with defaults for the missing ones.

    Raises:
        RuleFailed: One is unknown, or is missing and has no default.
    """
    if type(fields) is dict:
        missing = [name for name in names if name not in fields and name not in defaults]
        others = [name for name in fields if name not in names]
        if not missing and not others:
            return {
                name: fields[name] if name in fields else run_application(defaults[name])
                for name in names
            }
        found = f"{_listed(missing) or 'none'} missing and {len(others)} unknown"
    else:
        found = type(fields).__name__
    raise RuleFailed(
        f"upgrade: expected the fields {_listed(names)}, found {found}",
        hint="An upgrade returns the fields of the next version, and no others; those that have "
        "a default may be left out.",
    )


def storage_setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """Return the function that sets a slot, or `__dict__`, bypassing any `__setattr__`."""
    for base in cls.__mro__:
        descriptor: Any = base.__dict__.get(name)
        if hasattr(descriptor, "__set__"):
            setter: Callable[[Any, Any], None] = descriptor.__set__
            return setter
    raise RuleInvalid(f"{cls.__qualname__}: expected objects that hold {name}")


class NamedTupleKind:
    """A `NamedTuple` or `collections.namedtuple` class."""

    form: DictForm | None = None

    def __init__(self, cls: Any, *, validate: bool) -> None:
        self._cls = cls
        self._names: tuple[str, ...] = cls._fields
        self._validate = validate
        self._key_safe = validate or generated_hash(cls)
        hints = resolved_annotations(cls)
        self.shape = ClassShape.of(
            "namedtuple", {name: hints.get(name, "") for name in self._names}
        )
        self.defaults = named_tuple_defaults(cls, validate=validate)
        self.opening = array_header(1) + map_header(len(self._names))

    def to_body(self, value: Any) -> Body:
        if getattr(value, "__dict__", None):
            raise ValueNotAllowed(
                "attributes: expected only declared fields, found attributes of its own"
            )
        return [dict(zip(self._names, value, strict=True))]

    def from_body(self, body: Body) -> Any:
        fields = check_fields(body, self._names, 1)
        if self._validate:
            return run_application(self._cls, *fields.values())
        return tuple.__new__(self._cls, fields.values())

    def upgrade_body(self, fields: dict[str, Any], body: Body) -> Body:  # noqa: ARG002
        return [completed(fields, self._names, self.defaults)]

    def hash_parts(self, value: Any) -> Iterable[Any] | None:
        return tuple.__iter__(value) if self._key_safe else None


class EnumKind:
    """An Enum: members by name, combined flags by value.

    Adding a member does not affect old data, so the shape is the same for all.
    """

    form: DictForm | None = None

    def __init__(
        self, cls: type[Enum], *, validate: bool, gone: Callable[[str], DecodeError]
    ) -> None:
        self._cls = cls
        self._gone = gone
        self._members = dict(cls.__members__)
        self._key_safe = validate or generated_hash(cls)
        self.shape = ClassShape("enum", {"flag" if issubclass(cls, Flag) else "member": ""})
        self.defaults: Defaults = {}
        self.opening = array_header(1) + map_header(1)

    def to_body(self, value: Any) -> Body:
        name = value._name_
        if self._members.get(name) is value:
            return [{"name": name}]
        if not issubclass(self._cls, Flag):
            raise ValueNotAllowed(
                f"{self._cls.__qualname__}: expected a member of the enum, found one made later"
            )
        return [{"value": value._value_}]

    def from_body(self, body: Body) -> Any:
        fields = body[0] if type(body) is list and len(body) == 1 else None
        if type(fields) is dict and len(fields) == 1:
            # Compare the type: isinstance would read an attribute of the object, which may run its
            # code.
            name, value = fields.get("name"), fields.get("value")
            if type(name) is str and name in self._members:
                return self._members[name]
            if type(name) is str:
                raise self._gone(name)
            if type(value) is int and issubclass(self._cls, Flag):
                return self._combined(value)
        raise BytesMalformed(f"{self._cls.__qualname__}: expected a member of the enum")

    def _combined(self, value: int) -> Any:
        combined: Any = None
        with contextlib.suppress(ValueError):
            # Flag's own method: an application's _missing_ does not run.
            combined = Flag._missing_.__func__(self._cls, value)  # type: ignore[attr-defined]
        if type(combined) is not self._cls or combined._value_ != value:
            raise BytesMalformed(f"{self._cls.__qualname__}: expected a combination of its flags")
        if self._members.get(combined._name_) is combined:
            raise BytesMalformed(f"{self._cls.__qualname__}: expected a single flag by its name")
        return combined

    def upgrade_body(self, fields: dict[str, Any], body: Body) -> Body:  # noqa: ARG002
        return [fields]

    def hash_parts(self, value: Any) -> Iterable[Any] | None:  # noqa: ARG002
        return () if self._key_safe else None


class PairKind:
    """A type with the application's own pair of functions."""

    form: DictForm | None = None

    def __init__(
        self,
        cls: type,
        *,
        encode: Callable[[Any], Any],
        decode: Callable[[Any], Any],
        validate: bool,
    ) -> None:
        self._cls = cls
        self._encode = encode
        self._decode = decode
        self._key_safe = validate or generated_hash(cls)
        self.shape = ClassShape("pair", {})
        self.defaults: Defaults = {}
        self.opening = array_header(1)

    def to_body(self, value: Any) -> Body:
        try:
            return [self._encode(value)]
        except (MemoryError, EncodeError):
            raise
        except Exception as exc:
            message = f"encode function of the rule: failed with {type(exc).__name__}"
            raise ValueNotAllowed(message) from exc

    def from_body(self, body: Body) -> Any:
        if type(body) is not list or len(body) != 1:
            raise BytesMalformed("pair: expected one encoded value")
        try:  # inlined `run_application`, since there are many of these
            value = self._decode(body[0])
        except (MemoryError, DecodeError):
            raise
        except Exception as exc:
            raise _failed(self._decode, exc) from exc
        if type(value) is not self._cls:
            found = type(value).__qualname__
            raise RuleFailed(
                f"decode function: expected {self._cls.__qualname__}, found {found}",
                hint="The rule's decode= function must return an object of exactly the class.",
            )
        return value

    def upgrade_body(self, fields: dict[str, Any], body: Body) -> Body:  # noqa: ARG002
        return [fields]

    def hash_parts(self, value: Any) -> Iterable[Any] | None:  # noqa: ARG002
        return () if self._key_safe else None
