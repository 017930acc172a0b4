# SPDX-License-Identifier: Apache-2.0
"""Kinds that have their own storage, and kinds whose fields are plain attributes.

The first are pydantic models and msgspec structs, the others dataclasses and attrs classes. This
module imports neither pydantic nor attrs: the class that is given to a rule has imported its
library.
"""

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, cast

from sealpoint.codec._class_kinds import (
    Body,
    DictForm,
    check_fields,
    completed,
    run_application,
    storage_setter,
)
from sealpoint.codec._class_shape import ClassShape, resolved_annotations
from sealpoint.codec._dict_keys import generated_hash
from sealpoint.codec._field_defaults import (
    Defaults,
    attrs_defaults,
    dataclass_defaults,
    pydantic_defaults,
    struct_defaults,
)
from sealpoint.codec._wire_format import array_header, map_header
from sealpoint.errors import BytesMalformed, RuleInvalid, ValueNotAllowed

_REMEMBERED = 64


class PydanticKind:
    """A pydantic v2 model: fields by name (never by alias), and pydantic's additional storage.

    The body is `[fields, given, extra, private]`: `given` has one bit for each field that is in
    `model_fields_set`, lowest first, those of declared fields before those of extra ones; `extra`
    and `private` are maps or None.
    """

    def __init__(self, cls: Any, *, validate: bool) -> None:
        fields = cls.model_fields
        self._cls = cls
        self._names = tuple(fields)
        self._private = tuple(cls.__private_attributes__)
        self._allows_extra = cls.model_config.get("extra") == "allow"
        self._validate = validate
        self._is_root_model = bool(cls.__pydantic_root_model__)
        self._key_safe = validate or generated_hash(cls, self._names)
        self._all_given = (1 << len(self._names)) - 1
        self._all_names = set(self._names)
        self._last_given: tuple[frozenset[str], int] = (frozenset(), 0)
        self._given: dict[int, set[str]] = {}
        self.from_body = self._builder()
        self.shape = ClassShape.of(
            "pydantic", {name: field.annotation for name, field in fields.items()}
        )
        self.defaults = pydantic_defaults(cls, validate=validate)
        self.opening = array_header(4) + map_header(len(self._names))
        self.form = None if validate else DictForm(self._names, _model_body, **_MODEL_STORAGE)

    def to_body(self, value: Any) -> Body:
        attributes = value.__dict__
        if tuple(attributes) != self._names:
            attributes = self._in_order(attributes)
        given = value.__pydantic_fields_set__
        extra = value.__pydantic_extra__
        if given == self._all_names:
            mask = self._all_given
        elif extra:
            mask = _mask((*self._names, *extra), given)
        else:
            # Messages of a chat set the same few fields over and over.
            last, mask = self._last_given
            if given != last:
                mask = _mask(self._names, given)
                self._last_given = frozenset(given), mask
        private = value.__pydantic_private__
        if private is not None:
            private = {name: private[name] for name in self._private if name in private}
        return [attributes, mask, extra, private]

    def _in_order(self, attributes: dict[str, Any]) -> dict[str, Any]:
        for name in attributes:
            # A cached property is stored there too, and the model computes it again.
            known = name in self._all_names
            if not known and inspect.getattr_static(self._cls, name, None) is None:
                raise ValueNotAllowed(
                    f"attribute {name!r}: expected only declared fields, found this attribute"
                )
        for name in self._names:
            if name not in attributes:
                raise ValueNotAllowed(f"field {name!r}: it is not set")
        return {name: attributes[name] for name in self._names}

    def _builder(self) -> Callable[[Body], Any]:
        """Make the build function, with local names only: the hot path of loading a chat."""
        cls, names, all_given, all_names = self._cls, self._names, self._all_given, self._all_names
        bare = object.__new__
        # Write to pydantic's own storage directly: a model's __setattr__ does not run.
        set_fields = storage_setter(cls, "__dict__")
        set_extra = storage_setter(cls, "__pydantic_extra__")
        set_given = storage_setter(cls, "__pydantic_fields_set__")
        set_private = storage_setter(cls, "__pydantic_private__")

        def build(body: Body) -> Any:
            fields, mask, extra, private = body
            if type(fields) is not dict or tuple(fields) != names:
                check_fields(body, names, 4)
            if extra is not None:
                self._check_extra(extra)
            whole = type(mask) is int and mask == all_given
            given = all_names.copy() if whole else self._names_given(mask, extra)
            if private is not None:
                self._check_private(private)
            if self._validate:
                value = self._construct(fields, extra or {})
            else:
                value = bare(cls)
                set_fields(value, fields)
                set_extra(value, extra)
            set_given(value, given)
            set_private(value, private)
            return value

        return build

    def _check_extra(self, extra: Any) -> None:
        if type(extra) is not dict or not self._allows_extra:
            raise BytesMalformed("extra fields: expected none, since the model allows none")
        if not extra:
            return
        if any(type(name) is not str for name in extra):
            raise BytesMalformed("extra fields: expected names")
        if not self._all_names.isdisjoint(extra):
            raise BytesMalformed("extra fields: expected other names than the declared ones")

    def _check_private(self, private: Any) -> None:
        if type(private) is not dict or not private.keys() <= set(self._private):
            raise BytesMalformed("private attributes: expected those that the model declares")

    def _names_given(self, mask: Any, extra: dict[str, Any] | None) -> set[str]:
        if type(mask) is int and not extra and mask in self._given:
            return self._given[mask].copy()
        names = (*self._names, *(extra or ()))
        if type(mask) is not int or mask < 0 or mask >> len(names):
            raise BytesMalformed("given fields: expected one bit for each field")
        given = {name for place, name in enumerate(names) if mask >> place & 1}
        if not extra and len(self._given) < _REMEMBERED:
            self._given[mask] = given.copy()
        return given

    def _construct(self, fields: dict[str, Any], extra: dict[str, Any]) -> Any:
        validator = self._cls.__pydantic_validator__
        given = fields["root"] if self._is_root_model else {**fields, **extra}
        return run_application(validator.validate_python, given, by_name=True, by_alias=False)

    def upgrade_body(self, fields: dict[str, Any], body: Body) -> Body:
        whole = completed(fields, self._names, self.defaults)
        if len(body) != 4:
            return [whole, _mask(self._names, set(fields)), None, None]
        before, mask, extra, private = body
        if type(mask) is not int or mask < 0:
            raise BytesMalformed("given fields: expected one bit for each field")
        # A field keeps whether it was given. A field that an upgrade added counts as given; a field
        # that got its default does not, as in a model that was made without it.
        given = set(fields) - {name for place, name in enumerate(before) if not mask >> place & 1}
        extras = mask >> len(before) << len(self._names)
        return [whole, _mask(self._names, given) | extras, extra, private]

    def hash_parts(self, value: Any) -> Iterable[Any] | None:
        return value.__dict__.values() if self._key_safe else None


_MODEL_STORAGE: Any = {
    "given": "__pydantic_fields_set__",
    "beside": ("__pydantic_extra__", "__pydantic_private__"),
}


def _model_body(fields: Any, mask: int, extra: Any, private: Any) -> Body:
    return [fields, mask, extra, private]


def _mask(names: Iterable[str], given: set[str]) -> int:
    """Return a number with one bit for each name that was given."""
    return sum(1 << place for place, name in enumerate(names) if name in given)


class StructKind:
    """A msgspec Struct. Without `__post_init__`, its constructor runs only native code."""

    form: DictForm | None = None

    def __init__(self, cls: Any, *, validate: bool) -> None:
        self._cls = cls
        self._names: tuple[str, ...] = cls.__struct_fields__
        self._validate = validate
        self._key_safe = validate or generated_hash(cls, self._names)
        hints = resolved_annotations(cls)
        self.shape = ClassShape.of("struct", {name: hints.get(name, "") for name in self._names})
        self.defaults = struct_defaults(cls, validate=validate)
        self.opening = array_header(1) + map_header(len(self._names))
        self._template = None
        if not validate and hasattr(cls, "__post_init__"):
            self._template = self._bare_template()
        self._setters = [inspect.getattr_static(cls, name).__set__ for name in self._names]

    def _bare_template(self) -> Any:
        """Make an object of the class without running `__post_init__`, to be copied and filled.

        Structs cannot be made bare. But a subclass whose `__post_init__` does nothing can be
        called, has the same layout, and so its object's class can be changed to the original one.
        """
        try:
            silent = type(self._cls)(
                self._cls.__name__, (self._cls,), {"__post_init__": lambda _: None}
            )
            template = silent(**dict.fromkeys(self._names))
            object.__dict__["__class__"].__set__(template, self._cls)
        except TypeError as exc:
            raise RuleInvalid(
                f"{self._cls.__qualname__}: expected a struct that can be built without "
                "__post_init__",
                hint="Give the rule validate=True, or encode= and decode= functions.",
            ) from exc
        return template

    def to_body(self, value: Any) -> Body:
        if getattr(value, "__dict__", None):
            raise ValueNotAllowed("struct: expected fields only, found attributes of its own")
        try:
            return [{name: getattr(value, name) for name in self._names}]
        except AttributeError as exc:
            raise ValueNotAllowed("struct: expected every field set, found one unset") from exc

    def from_body(self, body: Body) -> Any:
        fields = check_fields(body, self._names, 1)
        if self._validate:
            return run_application(self._cls, **fields)
        if self._template is None:
            return self._cls(**fields)
        value = self._template.__copy__()
        for setter, field in zip(self._setters, fields.values(), strict=True):
            setter(value, field)
        return value

    def upgrade_body(self, fields: dict[str, Any], body: Body) -> Body:  # noqa: ARG002
        return [completed(fields, self._names, self.defaults)]

    def hash_parts(self, value: Any) -> Iterable[Any] | None:
        return self.to_body(value)[0].values() if self._key_safe else None


_set = object.__setattr__


class FieldsKind:
    """Dataclasses and attrs classes, with or without `__slots__`.

    Args:
        cls: The class.
        kind: `dataclass` or `attrs`.
        annotations: Every stored field's annotation, in declared order.
        defaults: For each field with a default, the function that returns it.
        arguments: For each field that the constructor takes, the argument's name.
        hashed: The fields that a generated hash or equality reads.
        presets: Attributes that are not fields but that a bare object needs.
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
        self._slots, self._other_slots = _slots_of(cls, (*self._names, *presets))
        # A class with slots but without any field has neither: its objects hold nothing at all.
        has_dict = cls.__dictoffset__ != 0
        self._only_dict = has_dict and not self._slots and not self._other_slots
        # If all fields are in __dict__, the decoded fields become the __dict__.
        self._set_fields: Callable[[Any, dict[str, Any]], None] | None = None
        if has_dict and not self._slots and not presets and not validate:
            self._set_fields = storage_setter(cls, "__dict__")
        self._key_safe = validate or generated_hash(cls, self._names)
        self.from_body = self._builder()
        self.shape = ClassShape.of(kind, annotations)
        self.defaults = defaults
        self.opening = array_header(1) + map_header(len(self._names))
        is_its_dict = self._only_dict and self._set_fields is not None
        self.form = DictForm(self._names, _fields_body) if is_its_dict else None
        if not validate:
            _check_bare(cls)

    def to_body(self, value: Any) -> Body:
        if self._only_dict and tuple(attributes := value.__dict__) == self._names:
            return [attributes]
        missing = object()
        fields = {name: getattr(value, name, missing) for name in self._names}
        for name, found in fields.items():
            if found is missing:
                raise ValueNotAllowed(f"field {name!r}: it is not set")
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
                f"attribute {name!r}: expected only declared fields, found this attribute",
                hint="Make it a field, give the rule encode= and decode=, or validate=True so that "
                "the constructor makes it again.",
            )

    def _builder(self) -> Callable[[Body], Any]:
        """Make the build function: by the constructor, by `__dict__`, or field by field."""
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

    def upgrade_body(self, fields: dict[str, Any], body: Body) -> Body:  # noqa: ARG002
        return [completed(fields, self._names, self.defaults)]

    def hash_parts(self, value: Any) -> Iterable[Any] | None:
        if not self._key_safe:
            return None
        fields = self.to_body(value)[0]
        return [fields[name] for name in self._hashed]


def _fields_body(fields: Any, _mask: int) -> Body:
    return [fields]


def _slots_of(
    cls: type, names: Iterable[str]
) -> tuple[dict[str, Callable[[Any, Any], None]], dict[str, types.MemberDescriptorType]]:
    """Return the setters of the names that are slots, and all other slots of the class."""
    found = {name: inspect.getattr_static(cls, name, None) for name in names}
    setters = {
        name: slot.__set__
        for name, slot in found.items()
        if isinstance(slot, types.MemberDescriptorType)
    }
    others = {
        name: slot
        for base in cls.__mro__
        for name, slot in base.__dict__.items()
        if isinstance(slot, types.MemberDescriptorType) and name not in setters
    }
    return setters, others


def _is_filled(slot: types.MemberDescriptorType, value: Any) -> bool:
    try:
        slot.__get__(value, type(value))
    except AttributeError:
        return False
    return True


def _check_bare(cls: type) -> None:
    """Refuse a class whose objects cannot be made bare (such as a subclass of Exception)."""
    try:
        object.__new__(cls)
    except TypeError as exc:
        raise RuleInvalid(
            f"{cls.__qualname__}: expected a class of its own, found one that extends a built-in "
            "type or is abstract",
            hint="Give the rule encode= and decode= functions.",
        ) from exc


def dataclass_kind(cls: type, *, validate: bool) -> FieldsKind:
    """Describe a dataclass: its fields, not its `InitVar`s."""
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
    """Describe an attrs class; private attributes keep their names, not their arguments' names."""
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
