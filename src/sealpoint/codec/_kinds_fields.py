# SPDX-License-Identifier: Apache-2.0
"""Dataclasses and attrs classes: the kinds whose fields are plain attributes."""

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, cast

from sealpoint.codec._defaults import Defaults, attrs_defaults, dataclass_defaults
from sealpoint.codec._keys import generated_hash
from sealpoint.codec._kinds import (
    Body,
    check_fields,
    completed,
    run_application,
    storage_setter,
)
from sealpoint.codec._shape import Shape, resolved_annotations
from sealpoint.codec._wire import array_header, map_header
from sealpoint.errors import RuleInvalid, ValueNotAllowed

__all__ = ["FieldsKind", "attrs_kind", "dataclass_kind"]

_set = object.__setattr__


class FieldsKind:
    """Dataclasses and attrs classes, with or without `__slots__`.

    Args:
        cls: The class.
        kind: `dataclass` or `attrs`.
        annotations: Every stored field's annotation, in declared order.
        defaults: What gives the default of a field that has one.
        arguments: For each field that the constructor takes, the argument's name.
        hashed: The fields that a generated hash or equality looks at.
        presets: Attributes that are no fields and that a bare object needs all the same.
        validate: Whether the constructor builds objects.
    """

    def __init__(
        self,
        cls: type,
        *,
        kind: str,
        annotations: dict[str, Any],
        defaults: Defaults,
        arguments: dict[str, str],
        hashed: tuple[str, ...],
        presets: dict[str, Any],
        validate: bool,
    ) -> None:
        self._cls = cls
        self._names = tuple(annotations)
        self._arguments = arguments
        own: object = cls.__hash__
        self._hashed = () if own is object.__hash__ else hashed
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
        # A class of slots without any field has neither: its objects hold nothing at all.
        has_dict = cls.__dictoffset__ != 0
        self._only_dict = has_dict and not self._slots and not self._other_slots
        # Where all fields lie in __dict__, the fields that were decoded become it.
        self._set_fields: Callable[[Any, dict[str, Any]], None] | None = None
        if has_dict and not self._slots and not presets and not validate:
            self._set_fields = storage_setter(cls, "__dict__")
        self._key_safe = validate or generated_hash(cls, self._names)
        self.build = self._builder()
        self.shape = Shape.of(kind, annotations)
        self.defaults = defaults
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
        return [completed(fields, self._names, self.defaults)]

    def hashed(self, value: Any) -> Iterable[Any] | None:
        if not self._key_safe:
            return None
        fields = self.take(value)[0]
        return [fields[name] for name in self._hashed]


def _is_filled(slot: types.MemberDescriptorType, value: Any) -> bool:
    try:
        slot.__get__(value, type(value))
    except AttributeError:
        return False
    return True


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
        defaults=dataclass_defaults(cls, validate=validate),
        arguments={field.name: field.name for field in fields if field.init},
        hashed=tuple(field.name for field in fields if field.compare or field.hash),
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
        defaults=attrs_defaults(cls, validate=validate),
        arguments={each.name: each.alias for each in attributes if each.init},
        hashed=tuple(each.name for each in attributes if each.eq or each.hash),
        presets={"_attrs_cached_hash": None} if caches_hash else {},
        validate=validate,
    )
