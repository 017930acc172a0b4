# SPDX-License-Identifier: Apache-2.0
"""How each kind of application type is taken apart and put together again.

Taking apart gives a *body*: a list whose first item is the fields by name, in declared order.
Putting together sets the fields on a bare object: no `__init__`, no `__new__` of the class, no
`__post_init__`, no validator, no `__setattr__`, unless the rule says `validate=True`; then the
class's constructor runs. A pair of functions is the application's own code by definition.
"""

import contextlib
import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, Flag
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from sealpoint.codec._keys import generated_hash
from sealpoint.codec._shape import annotation_text, resolved_annotations, shape_digest
from sealpoint.codec._wire import array_header, map_header
from sealpoint.errors import BytesMalformed, DecodeError, RuleFailed, RuleInvalid, ValueNotAllowed

__all__ = [
    "Body",
    "EnumKind",
    "FieldsKind",
    "Kind",
    "NamedTupleKind",
    "PairKind",
    "attrs_kind",
    "check_fields",
    "dataclass_kind",
    "in_order",
    "run_application",
    "shape_of",
    "storage_setter",
]

Body = list[Any]
_P = ParamSpec("_P")
_R = TypeVar("_R")
_set = object.__setattr__


class Kind(Protocol):
    """One application type, seen as fields."""

    shape: bytes
    """The shape digest."""
    opening: bytes
    """What the encoded body MUST begin with: it proves how many fields were written."""

    def take(self, value: Any) -> Body:
        """Take an object apart. MUST lose nothing, or raise `ValueNotAllowed`."""
        ...

    def build(self, body: Body) -> Any:
        """Put an object together. MUST run no application code unless the rule validates."""
        ...

    def upgraded(self, fields: dict[str, Any], body: Body) -> Body:
        """The body of this version, from upgraded fields and the stored older body."""
        ...

    def hashed(self, value: Any) -> Iterable[Any] | None:
        """What hashing `value` looks at, or None when hashing would run application code."""
        ...


def run_application(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call a function of the application while decoding; its failures become `RuleFailed`."""
    try:
        return function(*args, **kwargs)
    except (MemoryError, DecodeError):
        raise
    except Exception as exc:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        raise RuleFailed(f"{name}: failed with {type(exc).__name__}") from exc


def shape_of(kind: str, annotations: Mapping[str, Any]) -> bytes:
    """The shape digest of a kind with these fields."""
    return shape_digest(kind, ((name, annotation_text(hint)) for name, hint in annotations.items()))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def check_fields(body: Body, names: tuple[str, ...], length: int) -> dict[str, Any]:
    """The fields of a body of `length` parts, if they are exactly `names` in order."""
    fields = body[0] if type(body) is list and len(body) == length else None
    if type(fields) is dict and tuple(fields) == names:
        return fields
    raise BytesMalformed(f"fields: expected {_listed(names)}, found others, or another order")


def in_order(fields: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """What an upgrade returned, in declared order; missing or unknown fields are refused."""
    if type(fields) is not dict or set(fields) != set(names):
        found = type(fields).__name__
        if type(fields) is dict:
            missing = [name for name in names if name not in fields]
            others = len(fields) - len(names) + len(missing)
            found = f"{_listed(missing) or 'none'} missing and {others} unknown"
        raise RuleFailed(
            f"upgrade: expected the fields {_listed(names)}, found {found}",
            hint="An upgrade returns all fields of the next version, and no others.",
        )
    return {name: fields[name] for name in names}


class FieldsKind:
    """Dataclasses and attrs classes, with or without `__slots__`.

    Args:
        cls: The class.
        kind: `dataclass` or `attrs`.
        annotations: Every stored field's annotation, in declared order.
        arguments: For each field that the constructor takes, the argument's name.
        presets: Attributes that are no fields and that a bare object needs all the same.
        validate: Whether the constructor builds objects.
    """

    def __init__(
        self,
        cls: type,
        *,
        kind: str,
        annotations: dict[str, Any],
        arguments: dict[str, str],
        presets: dict[str, Any],
        validate: bool,
    ) -> None:
        self._cls = cls
        self._names = tuple(annotations)
        self._arguments = arguments
        self._presets = presets
        self._validate = validate
        self._slots = {
            name: descriptor.__set__
            for name in (*self._names, *presets)
            if isinstance(
                descriptor := inspect.getattr_static(cls, name, None), types.MemberDescriptorType
            )
        }
        self._other_slots = {
            name: slot
            for base in cls.__mro__
            for name, slot in base.__dict__.items()
            if isinstance(slot, types.MemberDescriptorType) and name not in self._slots
        }
        self._only_dict = not self._slots and not self._other_slots
        # Where all fields lie in __dict__, the fields that were decoded become it.
        self._set_fields: Callable[[Any, dict[str, Any]], None] | None = None
        if not self._slots and not presets and not validate:
            self._set_fields = storage_setter(cls, "__dict__")
        self._key_safe = validate or generated_hash(cls, self._names)
        self.build = self._builder()
        self.shape = shape_of(kind, annotations)
        self.opening = array_header(1) + map_header(len(self._names))
        if not validate:
            _check_bare(cls)

    def take(self, value: Any) -> Body:
        if self._only_dict and tuple(attributes := value.__dict__) == self._names:
            return [attributes]
        missing = object()
        fields = {name: getattr(value, name, missing) for name in self._names}
        for name, found in fields.items():
            if found is missing:
                raise ValueNotAllowed(f"field {name!r}: expected a value, found it unset")
        if not self._validate:
            self._refuse_others(value)
        return [fields]

    def _refuse_others(self, value: Any) -> None:
        filled = [name for name, slot in self._other_slots.items() if _is_filled(slot, value)]
        for name in (*getattr(value, "__dict__", ()), *filled):
            if name in self._names or name in self._presets or name == "__orig_class__":
                continue
            if isinstance(inspect.getattr_static(self._cls, name, None), functools.cached_property):
                continue
            raise ValueNotAllowed(
                f"attribute {name!r}: expected fields only, found an attribute that is no field",
                hint="Make it a field, give the rule encode= and decode=, or validate=True so that "
                "the constructor makes it again.",
            )

    def _builder(self) -> Callable[[Body], Any]:
        """How objects are put together: by the constructor, by `__dict__`, or field by field."""
        cls, names, bare = self._cls, self._names, object.__new__
        set_fields = self._set_fields

        def build(body: Body) -> Any:
            (fields,) = body
            if type(fields) is not dict or tuple(fields) != names:
                check_fields(body, names, 1)
            if set_fields is None:
                return self._construct(fields) if self._validate else self._filled(fields)
            value: Any = bare(cls)
            set_fields(value, fields)
            return value

        return build

    def _filled(self, fields: dict[str, Any]) -> Any:
        value: Any = object.__new__(self._cls)
        for name, field in (fields | self._presets).items():
            setter = self._slots.get(name)
            if setter is not None:
                setter(value, field)
            else:
                object.__getattribute__(value, "__dict__")[name] = field
        return value

    def _construct(self, fields: dict[str, Any]) -> Any:
        arguments = {
            self._arguments[name]: fields[name] for name in fields if name in self._arguments
        }
        value = run_application(self._cls, **arguments)
        for name in self._names:
            if name not in self._arguments:
                _set(value, name, fields[name])
        return value

    def upgraded(self, fields: dict[str, Any], body: Body) -> Body:  # noqa: ARG002
        return [in_order(fields, self._names)]

    def hashed(self, value: Any) -> Iterable[Any] | None:
        return self.take(value)[0].values() if self._key_safe else None


def _is_filled(slot: types.MemberDescriptorType, value: Any) -> bool:
    try:
        slot.__get__(value, type(value))
    except AttributeError:
        return False
    return True


def storage_setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """What sets a slot, or the `__dict__`, of an object past any `__setattr__`."""
    for base in cls.__mro__:
        descriptor: Any = base.__dict__.get(name)
        if hasattr(descriptor, "__set__"):
            setter: Callable[[Any, Any], None] = descriptor.__set__
            return setter
    raise RuleInvalid(f"{cls.__qualname__}: expected objects that hold {name}")


def _check_bare(cls: type) -> None:
    """Refuse a class whose objects cannot be made bare (a subclass of Exception, say)."""
    try:
        object.__new__(cls)
    except TypeError as exc:
        raise RuleInvalid(
            f"{cls.__qualname__}: expected a class of its own, found one that extends a built-in "
            "type or is abstract",
            hint="Give the rule encode= and decode= functions.",
        ) from exc


def dataclass_kind(cls: type, *, validate: bool) -> FieldsKind:
    """A dataclass: its fields, not its `InitVar`s."""
    hints = resolved_annotations(cls)
    fields = dataclasses.fields(cls)
    return FieldsKind(
        cls,
        kind="dataclass",
        annotations={field.name: hints.get(field.name, field.type) for field in fields},
        arguments={field.name: field.name for field in fields if field.init},
        presets={},
        validate=validate,
    )


def attrs_kind(cls: type, *, validate: bool) -> FieldsKind:
    """An attrs class; private attributes keep their names, whatever their arguments are called."""
    hints = resolved_annotations(cls)
    attributes = cast("Any", cls).__attrs_attrs__
    hash_code = getattr(cls.__hash__, "__code__", None)
    caches_hash = hash_code is not None and "_attrs_cached_hash" in hash_code.co_names
    return FieldsKind(
        cls,
        kind="attrs",
        annotations={each.name: hints.get(each.name, each.type) for each in attributes},
        arguments={each.name: each.alias for each in attributes if each.init},
        presets={"_attrs_cached_hash": None} if caches_hash else {},
        validate=validate,
    )


class NamedTupleKind:
    """A `NamedTuple` or `collections.namedtuple` class."""

    def __init__(self, cls: Any, *, validate: bool) -> None:
        self._cls = cls
        self._names: tuple[str, ...] = cls._fields
        self._validate = validate
        self._key_safe = validate or generated_hash(cls)
        hints = resolved_annotations(cls)
        self.shape = shape_of("namedtuple", {name: hints.get(name, "") for name in self._names})
        self.opening = array_header(1) + map_header(len(self._names))

    def take(self, value: Any) -> Body:
        if getattr(value, "__dict__", None):
            raise ValueNotAllowed("attributes: expected fields only, found attributes of its own")
        return [dict(zip(self._names, value, strict=True))]

    def build(self, body: Body) -> Any:
        fields = check_fields(body, self._names, 1)
        if self._validate:
            return run_application(self._cls, *fields.values())
        return tuple.__new__(self._cls, fields.values())

    def upgraded(self, fields: dict[str, Any], body: Body) -> Body:  # noqa: ARG002
        return [in_order(fields, self._names)]

    def hashed(self, value: Any) -> Iterable[Any] | None:
        return tuple.__iter__(value) if self._key_safe else None


class EnumKind:
    """An Enum: members by name, combined flags by value.

    A member that was added changes nothing about old data, so the shape is the same for all.
    """

    def __init__(self, cls: type[Enum], *, validate: bool) -> None:
        self._cls = cls
        self._members = dict(cls.__members__)
        self._key_safe = validate or generated_hash(cls)
        self.shape = shape_digest("enum", [("flag" if issubclass(cls, Flag) else "member", "")])
        self.opening = array_header(1) + map_header(1)

    def take(self, value: Any) -> Body:
        name = value._name_
        if self._members.get(name) is value:
            return [{"name": name}]
        return [{"value": value._value_}]

    def build(self, body: Body) -> Any:
        fields = body[0] if type(body) is list and len(body) == 1 else None
        if type(fields) is dict and len(fields) == 1:
            # Compared by type: isinstance would ask the object, which may be the application's.
            name, value = fields.get("name"), fields.get("value")
            if type(name) is str and name in self._members:
                return self._members[name]
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

    def upgraded(self, fields: dict[str, Any], body: Body) -> Body:  # noqa: ARG002
        return [fields]

    def hashed(self, value: Any) -> Iterable[Any] | None:  # noqa: ARG002
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
        self.shape = shape_digest("pair", [])
        self.opening = array_header(1)

    def take(self, value: Any) -> Body:
        try:
            return [self._encode(value)]
        except MemoryError:
            raise
        except Exception as exc:
            message = f"encode function of the rule: failed with {type(exc).__name__}"
            raise ValueNotAllowed(message) from exc

    def build(self, body: Body) -> Any:
        if type(body) is not list or len(body) != 1:
            raise BytesMalformed("pair: expected one encoded value")
        value = run_application(self._decode, body[0])
        if type(value) is not self._cls:
            found = type(value).__qualname__
            raise RuleFailed(
                f"decode function: expected {self._cls.__qualname__}, found {found}",
                hint="The rule's decode= function must return an object of exactly the class.",
            )
        return value

    def upgraded(self, fields: dict[str, Any], body: Body) -> Body:  # noqa: ARG002
        return [fields]

    def hashed(self, value: Any) -> Iterable[Any] | None:  # noqa: ARG002
        return () if self._key_safe else None
