# SPDX-License-Identifier: Apache-2.0
"""The frameworks' models as plain data.

The form of a pydantic model is `[fields, given]`, or `[fields, given, extra, private]` for an
object that has more to say. `fields` is a map by name: the *settled* fields, which are listed
beside the rule, and of any others those that were given or differ from their defaults. So a field
that a framework adds changes nothing about the bytes of objects that do not use it. `given` has one
bit for each name of `fields`, then of `extra`, that the object counts as given, lowest first.

Putting together sets fields on a bare object: no constructor and no validator runs. Fields that
are not stored get their defaults; one that the installed version does not have is refused, never
dropped.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import is_, itemgetter
from typing import Any

from ormsgpack import MsgpackEncodeError, packb, unpackb
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sealpoint.adapters._field_forms import REQUIRED, Pair, is_named, unknown_field
from sealpoint.codec import ObjectMemo
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
    """The functions that take objects of exactly this model apart and put them together again.

    Args:
        cls: The model.
        settled: The fields that are always stored, in this order, where the model has them.
    """
    model = _Model(cls, settled)
    return _taker(model), _builder(model)


class _Model:
    """What is known of one model class."""

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
        """Take any object apart.

        Raises:
            ValueNotAllowed: It has something that has no place in a form.
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
            # A cached property lies there too, and the model computes it again.
            if name not in self.declared and not inspect.getattr_static(self.cls, name, None):
                raise ValueNotAllowed(
                    f"attribute {name!r}: expected only declared fields, found this attribute"
                )
        for name in self.declared:
            if name not in attributes:
                raise ValueNotAllowed(f"field {name!r}: it is not set")

    def build(self, form: Any) -> Any:
        """Put an object together from any form.

        Raises:
            DecodeError: The form is not one that `take` gives.
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
        """Fields, which were given, extra and private attributes, as `take` gives them."""
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
    """Whether a value is the default; nothing but plain values of one type is even compared."""
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


# Memos of messages, so that a long chat is not taken apart and put together in every turn.
#
# A memo is taken of a message whose fields are scalars and small plain containers. It matches as
# long as each scalar is the very same object, and each container is of its type and would be
# written as before.


_PACKED_BYTES_MAX = 1024
_DEPTH_MAX = 8
_PLANS_MAX = 256


class _Plan:
    """Which fields of a message hold what; many messages share one."""

    __slots__ = ("count", "empty", "empty_of", "full", "full_of", "kinds", "scalars_of")

    def __init__(
        self,
        scalars: tuple[str, ...],
        empty: tuple[tuple[str, type], ...],
        full: tuple[str, ...],
    ) -> None:
        self.count = len(scalars) + len(empty) + len(full)
        self.empty = empty
        self.full = full
        self.kinds = [kind for _, kind in empty]
        self.scalars_of = _getter(scalars)
        self.empty_of = _getter(tuple(name for name, _ in empty))
        self.full_of = _getter(full)


class _MessageMemo:
    """What a message said when it was saved."""

    __slots__ = ("_cls", "_extra", "_fields", "_given", "_packed", "_plan", "_scalars")

    def __init__(self, value: BaseModel, plan: _Plan, packed: bytes) -> None:
        self._cls = type(value)
        self._plan = plan
        self._fields = dict(value.__dict__)
        self._scalars = plan.scalars_of(self._fields)
        self._packed = packed
        self._given = frozenset(value.__pydantic_fields_set__)
        self._extra = value.__pydantic_extra__ is not None

    def matches(self, value: Any) -> bool:
        fields, plan = value.__dict__, self._plan
        try:
            same = all(map(is_, plan.scalars_of(fields), self._scalars))
            empty = plan.empty_of(fields)
            full = plan.full_of(fields) if plan.full else ()
        except KeyError:
            return False  # a field was removed
        return (
            same
            and len(fields) == plan.count
            and [*map(type, empty)] == plan.kinds
            and not any(empty)
            and value.__pydantic_fields_set__ == self._given
            and not value.__pydantic_extra__
            and (not full or _packed(full) == self._packed)
        )

    def rebuild(self) -> Any:
        fields, plan = self._fields.copy(), self._plan
        for name, kind in plan.empty:
            fields[name] = kind()
        if plan.full:
            fields.update(zip(plan.full, unpackb(self._packed), strict=True))
        value = object.__new__(self._cls)
        set_fields(value, fields)
        set_extra(value, {} if self._extra else None)
        set_given(value, set(self._given))
        set_private(value, None)
        return value


def message_memo(value: BaseModel) -> ObjectMemo | None:
    """Take a memo of a message, or none if its changes could not be told."""
    fields, names = value.__dict__, _names(type(value))
    if tuple(fields) != names or not value.__pydantic_fields_set__.issubset(names):
        return None  # something lies there that is no field, and would not come back
    if value.__pydantic_extra__ != _no_extra(type(value)) or value.__pydantic_private__:
        return None
    plan = _plan_of(fields)
    if plan is None:
        return None
    packed = _packed(plan.full_of(fields)) if plan.full else b""
    if packed is None or len(packed) > _PACKED_BYTES_MAX:
        return None
    return _MessageMemo(value, plan, packed)


def _plan_of(fields: Mapping[str, Any]) -> "_Plan | None":
    """Which fields are scalars, empty and full containers; None if one is something else."""
    scalars: list[str] = []
    empty: list[tuple[str, type]] = []
    full: list[str] = []
    for name, item in fields.items():
        kind = type(item)
        if kind in _SCALARS:
            scalars.append(name)
        elif kind is not dict and kind is not list:
            return None
        elif item:
            full.append(name)
        else:
            empty.append((name, kind))
    return _plan(tuple(scalars), tuple(empty), tuple(full))


@lru_cache(maxsize=_PLANS_MAX)
def _names(cls: type[BaseModel]) -> tuple[str, ...]:
    return tuple(cls.model_fields)


@lru_cache(maxsize=_PLANS_MAX)
def _no_extra(cls: type[BaseModel]) -> dict[str, Any] | None:
    """What a model has that was decoded, if nothing was added to it."""
    return {} if cls.model_config.get("extra") == "allow" else None


_plan = lru_cache(maxsize=_PLANS_MAX)(_Plan)


def _getter(names: tuple[str, ...]) -> Any:
    """What takes some fields out of all, always as a tuple."""
    if not names:
        return lambda _fields: ()
    if len(names) == 1:
        return lambda fields: (fields[names[0]],)
    return itemgetter(*names)


def _packed(containers: tuple[Any, ...]) -> bytes | None:
    """What containers hold; None if that is more than plain values."""
    if not all(map(_is_plain, containers)):
        return None
    try:
        return packb([*containers])
    except (MsgpackEncodeError, ValueError):
        return None


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value holds scalars, and lists and dicts of them with names as keys."""
    kind = type(value)
    if kind is dict:
        members: Any = value.values()
        if any(type(name) is not str for name in value):
            return False
    elif kind is list:
        members = value
    else:
        return kind in _SCALARS
    return depth < _DEPTH_MAX and all(_is_plain(each, depth + 1) for each in members)
