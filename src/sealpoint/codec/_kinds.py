# SPDX-License-Identifier: Apache-2.0
"""How each kind of application type is taken apart and put together again.

Taking apart gives a *body*: a list whose first item is the fields by name, in declared order.
Putting together sets the fields on a bare object: no `__init__`, no `__new__` of the class, no
`__post_init__`, no validator, no `__setattr__`, unless the rule says `validate=True`; then the
class's constructor runs. A pair of functions is the application's own code by definition.
"""

import contextlib
from collections.abc import Callable, Iterable
from enum import Enum, Flag
from typing import Any, ParamSpec, Protocol, TypeVar

from sealpoint.codec._defaults import Defaults, named_tuple_defaults
from sealpoint.codec._keys import generated_hash
from sealpoint.codec._shape import ClassShape, resolved_annotations
from sealpoint.codec._wire import array_header, map_header
from sealpoint.errors import BytesMalformed, DecodeError, RuleFailed, RuleInvalid, ValueNotAllowed

Body = list[Any]
_P = ParamSpec("_P")
_R = TypeVar("_R")


class ClassKind(Protocol):
    """One application type, seen as fields."""

    shape: ClassShape
    defaults: Defaults
    """What a field gets that was not stored because the class did not have it yet."""
    opening: bytes
    """What the encoded body MUST begin with: it proves how many fields were written."""

    def to_body(self, value: Any) -> Body:
        """Take an object apart. MUST lose nothing, or raise `ValueNotAllowed`."""
        ...

    def from_body(self, body: Body) -> Any:
        """Put an object together. MUST run no application code unless the rule validates."""
        ...

    def upgrade_body(self, fields: dict[str, Any], body: Body) -> Body:
        """The body of this shape, from older fields and the stored body they are from.

        Fields that are not there get their defaults.
        """
        ...

    def hash_parts(self, value: Any) -> Iterable[Any] | None:
        """What hashing `value` looks at, or None when hashing would run application code."""
        ...


def run_application(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call a function of the application while decoding; its failures become `RuleFailed`."""
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
    """The fields of a body of `length` parts, if they are exactly `names` in order."""
    fields = body[0] if type(body) is list and len(body) == length else None
    if type(fields) is dict and tuple(fields) == names:
        return fields
    raise BytesMalformed(
        f"fields: expected {_listed(names)} in this order, found other names or another order"
    )


def completed(fields: dict[str, Any], names: tuple[str, ...], defaults: Defaults) -> dict[str, Any]:
    """Older fields in declared order, with the defaults of those that are not there.

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
    """What sets a slot, or the `__dict__`, of an object past any `__setattr__`."""
    for base in cls.__mro__:
        descriptor: Any = base.__dict__.get(name)
        if hasattr(descriptor, "__set__"):
            setter: Callable[[Any, Any], None] = descriptor.__set__
            return setter
    raise RuleInvalid(f"{cls.__qualname__}: expected objects that hold {name}")


class NamedTupleKind:
    """A `NamedTuple` or `collections.namedtuple` class."""

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

    A member that was added changes nothing about old data, so the shape is the same for all.
    """

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
            # Compared by type: isinstance would ask the object, which may be the application's.
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
            # Flag's own: an application's _missing_ does not run.
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
        except MemoryError:
            raise
        except Exception as exc:
            message = f"encode function of the rule: failed with {type(exc).__name__}"
            raise ValueNotAllowed(message) from exc

    def from_body(self, body: Body) -> Any:
        if type(body) is not list or len(body) != 1:
            raise BytesMalformed("pair: expected one encoded value")
        try:  # `run_application` without a call: there are many of these
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
