# SPDX-License-Identifier: Apache-2.0
"""Taking objects apart loses nothing: what a rule cannot keep, it refuses."""

import dataclasses
import enum
import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import attrs
import msgspec
import pydantic
import pytest

from sealpoint import Registry
from sealpoint.errors import (
    DecodeError,
    RuleFailed,
    RuleInvalid,
    TypeNotAllowed,
    ValueNotAllowed,
)
from tests.sameness import same


def _registry(cls: type, **options: Any) -> Registry:
    registry = Registry()
    registry.allow(cls, name="app.thing", **options)
    return registry


def _loaded(value: Any, **options: Any) -> Any:
    registry = _registry(type(value), **options)
    return registry.decode(registry.encode(value))


@dataclass
class _Open:
    x: int


def test_an_attribute_that_is_no_field_is_refused() -> None:
    """A dataclass object with an attribute beside its fields is not saved without it."""
    value = _Open(1)
    value.note = "kept?"  # type: ignore[attr-defined]

    with pytest.raises(ValueNotAllowed, match="note"):
        _registry(_Open).encode(value)


def test_an_unset_field_is_refused() -> None:
    """An object that lacks a field is not saved."""
    value = _Open(1)
    del value.x

    with pytest.raises(ValueNotAllowed, match="x"):
        _registry(_Open).encode(value)


@dataclass(slots=True)
class _NoFields:
    pass


@dataclass
class _NoFieldsByHand:
    __slots__ = ()


@attrs.define
class _NoAttributes:
    pass


@pytest.mark.parametrize("validate", [False, True])
@pytest.mark.parametrize("cls", [_NoFields, _NoFieldsByHand, _NoAttributes])
def test_a_class_of_slots_without_a_field_is_kept(cls: type, *, validate: bool) -> None:
    """A mark that holds nothing has neither slots nor a `__dict__`, and comes back all the same."""
    assert _loaded(cls(), validate=validate) == cls()


class _Slot:
    __slots__ = ("cache",)


@dataclass(slots=True)
class _OnSlot(_Slot):
    x: int


@dataclass
class _OnSlotWithDict(_Slot):
    x: int


@pytest.mark.parametrize("cls", [_OnSlot, _OnSlotWithDict])
def test_a_filled_slot_that_is_no_field_is_refused(cls: Any) -> None:
    """A value in an inherited slot that is no field is kept or refused, never lost."""
    value = cls(1)
    value.cache = "kept?"
    registry = _registry(cls)

    try:
        data = registry.encode(value)
    except ValueNotAllowed:
        return
    assert registry.decode(data).cache == "kept?"


class _LooseStruct(msgspec.Struct, dict=True):
    x: int


def test_an_attribute_of_a_struct_that_is_no_field_is_refused() -> None:
    """A struct with a `__dict__` keeps what is in it, or is refused."""
    value = _LooseStruct(1)
    value.note = "kept?"  # type: ignore[attr-defined]
    registry = _registry(_LooseStruct)

    try:
        data = registry.encode(value)
    except ValueNotAllowed:
        return
    assert registry.decode(data).note == "kept?"


class _Extra(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    x: int = 0


@pytest.mark.parametrize("validate", [False, True])
def test_the_set_of_given_fields_is_kept_for_extra_fields_too(*, validate: bool) -> None:
    """Extra fields that were not given explicitly do not come back as given."""
    value = _Extra.model_construct(_fields_set=set(), x=1, other=2)

    assert same(value, _loaded(value, validate=validate))


@pytest.mark.parametrize("given", [set(), {"x"}, {"other"}, {"x", "other"}])
def test_every_subset_of_given_fields_is_kept(given: set[str]) -> None:
    """The set of given fields comes back as it was."""
    value = _Extra.model_construct(_fields_set=given, x=1, other=2)

    assert _loaded(value).model_fields_set == given


class _Private(pydantic.BaseModel):
    x: int = 0
    _hidden: Any = pydantic.PrivateAttr(default=1)


def test_private_attributes_and_assignments_are_kept() -> None:
    """Private attributes and the marks that assignments leave come back."""
    value = _Private()
    value.x = 5
    value._hidden = {"a": (1,)}

    loaded = _loaded(value)

    assert same(value, loaded)
    assert loaded._hidden == {"a": (1,)}
    assert loaded.model_fields_set == {"x"}


def test_a_loaded_model_works_on() -> None:
    """A model that was loaded can be changed, copied, dumped and compared."""
    loaded = _loaded(_Private(x=3))
    loaded.x = 4
    loaded._hidden = 2

    assert loaded.model_copy().model_dump() == {"x": 4}
    assert loaded == loaded.model_copy()
    assert _loaded(_Extra.model_validate({"y": 1})).y == 1


@pytest.mark.parametrize("options", [{}, {"validate": True}])
def test_a_root_model_comes_back(options: dict[str, Any]) -> None:
    """A model that is one bare value can be allowed, saved and loaded."""

    class Names(pydantic.RootModel[dict[str, int]]):
        pass

    value = Names({"a": 1})

    assert same(value, _loaded(value, **options))


class _Parent(pydantic.BaseModel):
    child: _Private


@pytest.mark.parametrize("validate", [False, True])
def test_a_model_inside_a_model_comes_back(*, validate: bool) -> None:
    """Nested models keep their own given fields and private attributes."""
    child = _Private()
    child._hidden = 7
    registry = Registry()
    registry.allow(_Parent, name="app.parent", validate=validate)
    registry.allow(_Private, name="app.private", validate=validate)
    value = _Parent(child=child)

    assert same(value, registry.decode(registry.encode(value)))


@dataclass
class _Lazy:
    x: int

    @functools.cached_property
    def double(self) -> int:
        """Twice the field."""
        return 2 * self.x


def test_a_cached_property_is_computed_again() -> None:
    """What a cached property holds is no state."""
    value = _Lazy(2)
    assert value.double == 4

    loaded = _loaded(value)

    assert "double" not in vars(loaded)
    assert loaded.double == 4


@dataclass
class _WithClassVariable:
    shared: ClassVar[int] = 5
    given: dataclasses.InitVar[int] = 0
    x: int = 1


def test_class_variables_and_init_variables_are_no_fields() -> None:
    """Only fields are saved."""
    loaded = _loaded(_WithClassVariable(given=3, x=2))

    assert loaded.x == 2
    assert vars(loaded) == {"x": 2}


def test_a_validating_rule_runs_the_constructor_and_its_refusal() -> None:
    """With `validate=True` a stored object that its class would refuse is refused."""

    @dataclass
    class Positive:
        x: int
        checked: bool = field(default=False, init=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                message = "negative"
                raise ValueError(message)

    plain, strict = _registry(Positive), _registry(Positive, validate=True)
    value = Positive(1)
    value.x = -1

    assert plain.decode(plain.encode(value)).x == -1
    with pytest.raises(RuleFailed) as caught:
        strict.decode(strict.encode(value))
    assert type(caught.value.__cause__) is ValueError


class _Abstract(ABC):
    @abstractmethod
    def run(self) -> None:
        """Do it."""


def test_classes_that_cannot_be_made_bare_are_refused() -> None:
    """Abstract classes, exceptions and subclasses of built-in types need functions."""

    @dataclass
    class Task(_Abstract):
        x: int

    @dataclass
    class Failure(Exception):
        x: int

    @dataclass
    class Listing(list[int]):
        x: int

    for cls in (Task, Failure, Listing):
        with pytest.raises(RuleInvalid):
            Registry().allow(cls, name="app.bad")


class _Base(NamedTuple):
    x: int


class _Named(_Base):
    pass


def test_a_named_tuple_with_attributes_of_its_own_is_refused() -> None:
    """A subclass of a NamedTuple has a `__dict__`, which must be empty."""
    value = _Named(1)
    registry = _registry(_Named)

    assert same(value, registry.decode(registry.encode(value)))
    value.note = "kept?"  # type: ignore[attr-defined]
    with pytest.raises(ValueNotAllowed):
        registry.encode(value)


class _Shade(enum.Enum):
    DARK = 1
    DIM = 1  # noqa: PIE796 # an alias
    LIGHT = 2


def test_enum_members_are_stored_by_name() -> None:
    """A member whose value changed comes back as the member of its name."""

    class Renumbered(enum.Enum):
        DARK = 10
        LIGHT = 20
        NEW = 30

    data = _registry(_Shade).encode([_Shade.LIGHT, _Shade.DIM])

    assert _registry(Renumbered).decode(data) == [Renumbered.LIGHT, Renumbered.DARK]


def test_an_unknown_enum_member_is_refused() -> None:
    """A member that the class no longer has is an error."""

    class Fewer(enum.Enum):
        DARK = 1

    with pytest.raises(DecodeError):
        _registry(Fewer).decode(_registry(_Shade).encode(_Shade.LIGHT))


class _Right(enum.Flag):
    READ = 1
    WRITE = 2


def test_flags_come_back_as_the_same_object() -> None:
    """Single flags, combinations and the empty flag are the singletons they were."""
    registry = _registry(_Right)

    for value in (_Right.READ, _Right.READ | _Right.WRITE, _Right(0), ~_Right.READ):
        assert registry.decode(registry.encode(value)) == value
        assert registry.decode(registry.encode(value)).name == value.name


def test_a_flag_of_unknown_bits_is_refused() -> None:
    """Bits that no flag has are refused, unless the class keeps them."""

    class Wider(enum.Flag):
        READ = 1
        WRITE = 2
        RUN = 4

    data = _registry(Wider).encode(Wider.WRITE | Wider.RUN)

    with pytest.raises(DecodeError):
        _registry(_Right).decode(data)


def test_a_pair_that_decodes_to_another_type_is_refused() -> None:
    """A decode function that returns something else is a failure of the rule."""
    registry = Registry()
    registry.allow(_Slot, name="app.slot", encode=lambda _: 1, decode=lambda _: "text")  # type: ignore[arg-type,return-value]

    with pytest.raises(RuleFailed, match="_Slot"):
        registry.decode(registry.encode(_Slot()))


def test_a_pair_says_by_itself_what_it_refuses() -> None:
    """Its message and its hint arrive, with the path to the object; other failures have a name."""
    registry = Registry()

    def refuse(_: _Slot) -> None:
        raise TypeNotAllowed("slot: expected another, found this", hint="Take another.")

    registry.allow(_Slot, name="app.slot", encode=refuse, decode=lambda _: _Slot())

    with pytest.raises(TypeNotAllowed, match=r'state\["a"\]: slot: expected another') as told:
        registry.encode({"a": _Slot()})
    assert told.value.hint == "Take another."
    assert not registry.explain([_Slot()]).allowed


def test_attrs_private_names_converters_and_aliases_come_back() -> None:
    """Fields are stored by attribute name, whatever the constructor calls them."""

    @attrs.define
    class Account:
        _owner: str
        balance: int = attrs.field(alias="start", converter=int, default=0)
        derived: int = attrs.field(init=False, default=9)

    value = Account("me", start=5)
    value.derived = 11

    assert same(value, _loaded(value))
    assert same(value, _loaded(value, validate=True))


def test_a_struct_with_post_init_is_built_without_it() -> None:
    """`__post_init__` of a struct runs with `validate=True` only."""
    ran: list[int] = []

    class Counted(msgspec.Struct, frozen=True, kw_only=True):
        x: int

        def __post_init__(self) -> None:
            ran.append(self.x)

    value = Counted(x=1)
    ran.clear()

    assert same(value, _loaded(value))
    assert ran == []
    assert same(value, _loaded(value, validate=True))
    assert ran == [1]


def test_structs_with_every_option_come_back() -> None:
    """Tags, renames, array form and weak references do not change what is stored."""

    class Tagged(msgspec.Struct, tag="t", rename="camel", array_like=True, weakref=True):
        some_field: int
        other_field: list[int] = msgspec.field(default_factory=list)

    class Lean(msgspec.Struct, gc=False, frozen=True, cache_hash=True, omit_defaults=True):
        x: int = 0

    assert same(Tagged(1, [2]), _loaded(Tagged(1, [2])))
    assert same(Lean(3), _loaded(Lean(3)))
    registry = _registry(Lean)
    assert registry.decode(registry.encode({Lean(1): 2})) == {Lean(1): 2}
