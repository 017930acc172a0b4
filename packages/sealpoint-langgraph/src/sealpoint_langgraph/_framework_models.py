# SPDX-License-Identifier: Apache-2.0
"""The frameworks' models as plain data.

The form of a pydantic model is `[fields, given]`, or `[fields, given, extra, private]` for an
object that has extra or private attributes. `fields` is a map by name: the *settled* fields, which
the rule lists, and of the other fields those that were given or differ from their defaults. So a
field that a framework adds does not change the bytes of objects that do not use it. `given` has one
bit for each name of `fields`, then of `extra`, that the object counts as given, lowest first.

Decoding sets fields on a bare object: no constructor and no validator runs. Fields that are not
stored get their defaults; a field that the installed version does not have is refused, never
dropped.
"""

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sealpoint.adapters.field_forms import REQUIRED, Pair, is_named, unknown_field
from sealpoint.codec import DictForm
from sealpoint.errors import BytesMalformed, ValueNotAllowed

_SHORT, _LONG = 2, 4
_MASKS_MAX = 256
_SCALARS = frozenset({type(None), bool, int, float, str})

# pydantic's own storage, written to directly: a model's __setattr__ does not run.
set_fields = BaseModel.__dict__["__dict__"].__set__
set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
set_given = BaseModel.__dict__["__pydantic_fields_set__"].__set__
set_private = BaseModel.__dict__["__pydantic_private__"].__set__


def model_pair(cls: type[BaseModel], settled: Iterable[str]) -> Pair:
    """The functions that convert objects of exactly this model to parts and back.

    Args:
        cls: The model.
        settled: The fields that are always stored, in this order, where the model has them.
    """
    model = _Model(cls, settled)
    return _taker(model), _builder(model)


class _Model:
    """The analyzed definition of one model class."""

    def __init__(self, cls: type[BaseModel], settled: Iterable[str]) -> None:
        self.cls = cls
        self.allows_extra = cls.model_config.get("extra") == "allow"
        self.declared = cls.model_fields
        self.settled = tuple(name for name in settled if name in self.declared)
        self.others = tuple(name for name in self.declared if name not in self.settled)

    def mask(self, names: Iterable[str], given: Iterable[str]) -> int:
        """One bit for each name that was given."""
        return sum(1 << place for place, name in enumerate(names) if name in given)

    def take(self, value: BaseModel) -> list[Any]:
        """Convert any object to its parts.

        Raises:
            ValueNotAllowed: It has an attribute that has no place in a form.
        """
        attributes, given = value.__dict__, value.__pydantic_fields_set__
        self._require_fields_only(attributes)
        fields = {name: attributes[name] for name in self.settled}
        for name in self.others:
            if name in given or not _is_model_default(attributes[name], self.declared[name]):
                fields[name] = attributes[name]
        extra, private = value.__pydantic_extra__, value.__pydantic_private__
        if extra and not self.allows_extra:
            raise ValueNotAllowed("extra attributes: the model allows none, found some")
        if not extra and not private:
            return [fields, self.mask(fields, given)]
        extra = extra or {}
        return [fields, self.mask((*fields, *extra), given), extra, private or {}]

    def _require_fields_only(self, attributes: Mapping[str, Any]) -> None:
        for name in attributes:
            # The instance dict also holds cached properties, which the model computes again.
            if name not in self.declared and not inspect.getattr_static(self.cls, name, None):
                raise ValueNotAllowed(
                    f"attribute {name!r}: expected only declared fields, found this attribute"
                )
        for name in self.declared:
            if name not in attributes:
                raise ValueNotAllowed(f"field {name!r}: it is not set")

    def build(self, form: Any) -> Any:
        """Build an object from any form.

        Raises:
            DecodeError: The form is not one that `take` creates.
        """
        fields, mask, extra, private = self._parts_of(form)
        names = (*fields, *extra)
        # An extra attribute that the installed version declares has become that field.
        filled = {
            name: fields[name] if name in fields else extra.pop(name, REQUIRED)
            for name in self.declared
        }
        for name, item in filled.items():
            if item is REQUIRED:
                filled[name] = _default(self.declared[name])
                if filled[name] is PydanticUndefined:
                    raise BytesMalformed(f"field {name!r}: its value is missing")
        value = object.__new__(self.cls)
        set_fields(value, filled)
        set_extra(value, extra if self.allows_extra else None)
        set_given(value, {name for place, name in enumerate(names) if mask >> place & 1})
        set_private(value, self._private(private))
        return value

    def _parts_of(self, form: Any) -> tuple[dict[str, Any], int, dict[str, Any], dict[str, Any]]:
        """Fields, given names, extra and private attributes, in the form of `take`."""
        if type(form) is not list or len(form) not in (_SHORT, _LONG):
            raise BytesMalformed("model: expected fields and which of them were given")
        fields, mask, extra, private = form if len(form) == _LONG else (*form, {}, {})
        if not all(map(is_named, (fields, extra, private))):
            raise BytesMalformed("model: expected maps with names as keys")
        self._require_declared(fields, self.declared)
        if not fields.keys().isdisjoint(extra) or (extra and not self.allows_extra):
            raise BytesMalformed("extra attributes: expected other names than those of fields")
        if type(mask) is not int or mask < 0 or mask >> (len(fields) + len(extra)):
            raise BytesMalformed("given fields: expected one bit for each field")
        return fields, mask, extra, private

    def _require_declared(self, names: Iterable[str], declared: Mapping[str, Any]) -> None:
        for name in names:
            if name not in declared:
                raise unknown_field(self.cls, name)

    def _private(self, stored: dict[str, Any]) -> dict[str, Any] | None:
        declared = self.cls.__private_attributes__
        self._require_declared(stored, declared)
        if not declared:
            return None
        fresh = ((name, each.get_default()) for name, each in declared.items())
        made = {name: item for name, item in fresh if item is not PydanticUndefined}
        return made | stored


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True, validated_data={})


def _is_model_default(item: Any, field: FieldInfo) -> bool:
    """Whether a value is the default; only plain values of one type are even compared."""
    default = _default(field)
    if type(item) is not type(default):
        return False
    return item == default if type(item) in _SCALARS else type(item) in (dict, list) and not item


def _taker(model: _Model) -> Callable[[Any], Any]:
    """The hot path of saving a chat, with everything it needs in local names."""
    names, has_private = model.settled, bool(model.cls.__private_attributes__)
    if model.others or has_private:
        return model.take
    masks: dict[frozenset[str], int] = {}
    # Messages of a chat give the same few fields again and again.
    last: tuple[frozenset[str], int] = (frozenset(), 0)

    def take(value: Any) -> list[Any]:
        nonlocal last
        attributes = value.__dict__
        if tuple(attributes) != names or value.__pydantic_extra__:
            return model.take(value)
        given = value.__pydantic_fields_set__
        before, mask = last
        if given != before:
            before = frozenset(given)
            found = masks.get(before)
            mask = model.mask(names, before) if found is None else found
            if len(masks) < _MASKS_MAX:
                masks[before] = mask
            last = before, mask
        return [attributes, mask]

    return take


def _builder(model: _Model) -> Callable[[Any], Any]:
    """The hot path of loading a chat, with everything it needs in local names."""
    cls, names, allows_extra = model.cls, model.settled, model.allows_extra
    if model.others or model.cls.__private_attributes__:
        return model.build
    bare = object.__new__
    known: dict[int, set[str]] = {}

    def build(form: Any) -> Any:
        if type(form) is not list or len(form) != _SHORT:
            return model.build(form)
        fields, mask = form
        if type(fields) is not dict or tuple(fields) != names or type(mask) is not int:
            return model.build(form)
        given = known.get(mask)
        if given is None:
            value = model.build(form)
            if len(known) < _MASKS_MAX:
                known[mask] = value.__pydantic_fields_set__.copy()
            return value
        value = bare(cls)
        set_fields(value, fields)
        set_extra(value, {} if allows_extra else None)
        set_given(value, given.copy())
        set_private(value, None)
        return value

    return build


def model_form(cls: type[BaseModel], settled: Iterable[str]) -> DictForm | None:
    """The memory layout of objects of a model, if it always stores all its fields."""
    model = _Model(cls, settled)
    if model.others or cls.__private_attributes__:
        return None
    return DictForm(
        model.settled,
        _short_form,
        given="__pydantic_fields_set__",
        beside=("__pydantic_extra__",),
        build=_build_open if model.allows_extra else _build_closed,
    )


def _short_form(fields: Any, mask: int, _extra: Any) -> list[Any]:
    return [[fields, mask]]


def _build_closed(kinds: list[type], fields: list[Any], given: list[frozenset[str]]) -> list[Any]:
    """Objects of models that forbid extra attributes, built without a Python step for each."""
    values: list[Any] = [*map(object.__new__, kinds)]
    for setter, parts in (
        (set_fields, fields),
        (set_extra, repeat(None)),
        (set_given, map(set, given)),
        (set_private, repeat(None)),
    ):
        deque(map(setter, values, parts), 0)
    return values


def _build_open(kinds: list[type], fields: list[Any], given: list[frozenset[str]]) -> list[Any]:
    """Objects of models that allow extra attributes."""
    values = _build_closed(kinds, fields, given)
    for value in values:
        set_extra(value, {})
    return values
