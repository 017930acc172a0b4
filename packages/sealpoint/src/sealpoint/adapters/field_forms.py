# SPDX-License-Identifier: Apache-2.0
"""Framework objects as maps of their fields.

The form of an object is a map of the fields that differ from their defaults, by name. So a new
field in a framework does not change the bytes of objects that do not use it.

Decoding checks the types of the fields, as far as they are declared, and sets the fields on a bare
object: no constructor and no code of the framework runs. Fields that are not stored get their
defaults. A field that the installed version does not have is refused, never dropped. Encoding
refuses everything that decoding would refuse.
"""

import dataclasses
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import compress
from operator import is_not
from typing import Any

from sealpoint.errors import BytesMalformed, ValueNotAllowed, VersionUnknown

__all__ = [
    "REQUIRED",
    "Fault",
    "FieldForm",
    "FieldKind",
    "Pair",
    "StoredAs",
    "defaults_of",
    "is_named",
    "named_tuple_pair",
    "object_pair",
    "unknown_field",
]

Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""The functions that convert an object to its form and back."""

REQUIRED = object()
"""The marker for a field without a default."""

_SHOWN_CHARS_MAX = 60
_TEXT = frozenset({str})
_SINGLE = (type(None), bool, Enum)
"""Types that have one object for each value."""
_CONTAINERS = (list, dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldKind:
    """The types that a field may hold, including their subclasses."""

    types: tuple[type, ...]
    members: tuple[type, ...] = ()
    """The allowed types of list items or dict values; empty allows any type."""

    def fits(self, item: Any) -> bool:
        """Whether a value matches."""
        if not issubclass(type(item), self.types):
            return False
        if not self.members or item is None:
            return True
        held = item.values() if isinstance(item, dict) else item
        return all(issubclass(each, self.members) for each in set(map(type, held)))

    def found_in(self, item: Any) -> str:
        """Return the type of a value that does not match, in words."""
        found = _name_of(type(item))
        return f"{found} of others" if issubclass(type(item), self.types) else found

    def __str__(self) -> str:
        names = " or ".join(_name_of(each) for each in self.types)
        return f"{names} of {' or '.join(map(_name_of, self.members))}" if self.members else names


def _name_of(cls: type) -> str:
    return "None" if cls is type(None) else cls.__qualname__


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAs:
    """The conversions for the stored form of one field."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


Fault = Callable[[Mapping[str, Any]], str | None]
"""Return an error text about the fields of an object as a whole, or None."""


def unknown_field(cls: type, name: str) -> VersionUnknown:
    """The error for a stored field that the installed version of a class does not have."""
    shown = repr(name) if name.isidentifier() and len(name) <= _SHOWN_CHARS_MAX else "another"
    package = cls.__module__.partition(".")[0].replace("_", "-")
    return VersionUnknown(
        f"{cls.__qualname__}: expected fields that the installed {package} has, found {shown}",
        hint=f"Install the version of {package} that wrote the checkpoint, or a newer one.",
    )


def is_named(form: Any) -> bool:
    """Whether a form is a map with text keys."""
    return type(form) is dict and _TEXT.issuperset(map(type, form))


class FieldForm:
    """The rules for storing the fields of one class.

    Args:
        cls: The class.
        defaults: The default of each field, or `REQUIRED`, in the order of the fields; an empty
            list or dict stands for a new one.
        kinds: The allowed types of fields; a field without an entry may hold any type.
        stored_as: Fields that are stored in another form.
        dropped: Fields that are not stored.
        fault: A check of the object as a whole.
    """

    def __init__(
        self,
        cls: type,
        defaults: Mapping[str, Any],
        *,
        kinds: Mapping[str, FieldKind] | None = None,
        stored_as: Mapping[str, StoredAs] | None = None,
        dropped: Iterable[str] = (),
        fault: Fault | None = None,
    ) -> None:
        self.cls = cls
        self.names = tuple(defaults)
        self._values = tuple(defaults.values())
        self._blank = dict(defaults)
        self._required = frozenset(_where(defaults, lambda each: each is REQUIRED))
        self._fresh = _where(defaults, lambda each: type(each) in _CONTAINERS)
        self._compared = _where(
            defaults, lambda each: each is not REQUIRED and not isinstance(each, _SINGLE)
        )
        self._kinds = {
            name: (frozenset(() if each.members else each.types), each)
            for name, each in (kinds or {}).items()
        }
        self._stored_as = dict(stored_as or {})
        self._dropped = tuple(name for name in dropped if name in defaults)
        self._fault = fault

    def stored(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the fields whose values differ from their defaults.

        Args:
            found: All fields, in the order of their names.

        Raises:
            ValueNotAllowed: A field holds a type that is not allowed.
        """
        form = dict(compress(found.items(), map(is_not, found.values(), self._values)))
        for name, default in self._compared.items():
            item = form.get(name)
            # A value of another type than the default differs without a comparison.
            if type(item) is type(default) and item == default:
                del form[name]
        for name in self._dropped:
            form.pop(name, None)
        if (fault := self._first_fault(form)) is not None:
            raise ValueNotAllowed(fault)
        for name, stored in self._stored_as.items():
            if name in form:
                form[name] = stored.encode(form[name])
        return form

    def filled(self, form: Any) -> dict[str, Any]:
        """Return all fields in the order of their names, from the stored ones.

        Raises:
            DecodeError: The form could not have come from `told`.
        """
        self._check_names(form)
        for name, stored in self._stored_as.items():
            if name in form:
                form[name] = stored.decode(form[name])
        if (fault := self._first_fault(form)) is not None:
            raise BytesMalformed(fault)
        filled = {**self._blank, **form}
        for name, empty in self._fresh.items():
            if name not in form:
                filled[name] = empty.copy()
        return filled

    def completed(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return all fields in order, from the attributes that an object had in another format.

        Fields that are not stored are ignored, and get their defaults.

        Raises:
            DecodeError: There is an attribute that is not a field, or a field without a default is
                missing.
        """
        kept = {name: each for name, each in attributes.items() if name not in self._dropped}
        self._check_names(kept)
        fresh = {name: empty.copy() for name, empty in self._fresh.items()}
        return {**self._blank, **fresh, **kept}

    def _check_names(self, form: Any) -> None:
        if not is_named(form):
            raise BytesMalformed("fields: expected a map with names as keys, found another value")
        if not form.keys() <= self._blank.keys():
            raise unknown_field(self.cls, next(name for name in form if name not in self._blank))
        if not self._required <= form.keys():
            missing = next(name for name in self.names if name in self._required - form.keys())
            raise BytesMalformed(f"field {missing!r}: its value is missing")
        for name in self._dropped:
            if name in form:
                raise BytesMalformed(f"field {name!r}: expected that it is not stored")

    def _first_fault(self, form: dict[str, Any]) -> str | None:
        kinds = self._kinds
        for name, item in form.items():
            exact, kind = kinds.get(name, _ANYTHING)
            if type(item) not in exact and kind is not None and not kind.fits(item):
                return f"field {name!r}: expected {kind}, found {kind.found_in(item)}"
        return None if self._fault is None else self._fault(form)


def _where(defaults: Mapping[str, Any], is_such: Callable[[Any], bool]) -> dict[str, Any]:
    return {name: each for name, each in defaults.items() if is_such(each)}


_ANYTHING: tuple[frozenset[type], FieldKind | None] = (frozenset(), None)


def defaults_of(cls: type) -> dict[str, Any]:
    """Return the default of each field of a dataclass."""
    fields: Any = dataclasses.fields(cls)
    return {field.name: _default(field) for field in fields}


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    made = REQUIRED if field.default_factory is dataclasses.MISSING else field.default_factory()
    return made if type(made) in _CONTAINERS and not made else REQUIRED


def object_pair(form: FieldForm) -> Pair:
    """Return the pair for a class that keeps its fields in slots, or all of them in `__dict__`."""
    slots = {name: _slot(form.cls, name) for name in form.names}
    if form.names and None not in slots.values():
        return _slots_pair(form, slots)
    return _attributes_pair(form)


def _slots_pair(form: FieldForm, slots: Mapping[str, Any]) -> Pair:
    def take(value: Any) -> dict[str, Any]:
        if getattr(value, "__dict__", None):
            raise ValueNotAllowed(
                "attributes: expected only declared fields, found attributes of its own"
            )
        try:
            found = {name: slot.__get__(value) for name, slot in slots.items()}
        except AttributeError as exc:
            raise ValueNotAllowed(
                "fields: expected every field to be set, found one that is not"
            ) from exc
        return form.stored(found)

    def build(stored: Any) -> Any:
        value: Any = object.__new__(form.cls)
        for name, item in form.filled(stored).items():
            slots[name].__set__(value, item)
        return value

    return take, build


def _attributes_pair(form: FieldForm) -> Pair:
    cls, names, told, filled, bare = form.cls, form.names, form.stored, form.filled, object.__new__
    set_attributes: Any = types.GetSetDescriptorType.__set__  # bypasses any __setattr__
    attributes_of: Any = _slot(cls, "__dict__")

    def take(value: Any) -> dict[str, Any]:
        attributes = value.__dict__
        return told(attributes if tuple(attributes) == names else _ordered(attributes, names))

    def build(stored: Any) -> Any:
        value: Any = bare(cls)
        set_attributes(attributes_of, value, filled(stored))
        return value

    return take, build


def _ordered(attributes: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the attributes in the order of the fields, if they are the same names."""
    for name in attributes:
        # `Class[X](...)` sets this attribute, which carries no data of the object.
        if name not in names and name != "__orig_class__":
            raise ValueNotAllowed(
                f"attribute {name!r}: expected only declared fields, found this attribute"
            )
    for name in names:
        if name not in attributes:
            raise ValueNotAllowed(f"field {name!r}: it is not set")
    return {name: attributes[name] for name in names}


def named_tuple_pair(cls: Any) -> Pair:
    """Return the pair for a named tuple."""
    given: dict[str, Any] = cls._field_defaults
    form = FieldForm(cls, {name: given.get(name, REQUIRED) for name in cls._fields})

    def take(value: Any) -> dict[str, Any]:
        return form.stored(dict(zip(form.names, value, strict=True)))

    def build(stored: Any) -> Any:
        return tuple.__new__(cls, form.filled(stored).values())

    return take, build


def _slot(cls: type, name: str) -> Any:
    """Return the descriptor of a slot, or of `__dict__`, for objects of a class."""
    for base in cls.__mro__:
        slot = base.__dict__.get(name)
        if hasattr(slot, "__set__"):
            return slot
    return None
