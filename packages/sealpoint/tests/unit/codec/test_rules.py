# SPDX-License-Identifier: Apache-2.0
"""Versions and upgrades: old data is brought forward step by step, or refused with a reason."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest

from sealpoint import Registry
from sealpoint.codec._type_rules import Label
from sealpoint.errors import BytesMalformed, RuleFailed, UnknownType, VersionUnknown
from tests.blobs import Blobs


@dataclass
class _One:
    name: str


@dataclass
class _Two:
    first: str
    last: str


@dataclass
class _Three:
    last: str
    first: str
    age: int


def _split(fields: dict[str, Any]) -> dict[str, Any]:
    first, _, last = fields["name"].partition(" ")
    return {"first": first, "last": last}


def _age(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "age": 0}


def _writer(cls: type, version: int, **options: Any) -> Registry:
    registry = Registry()
    registry.allow(cls, name="person", version=version, **options)
    return registry


_READER = _writer(_Three, 3, upgrade={1: _split, 2: _age})


def test_old_versions_are_upgraded_step_by_step() -> None:
    """Version 1 goes through 2 to 3, version 2 takes one step; fields end in declared order."""
    one = _writer(_One, 1).encode([_One("Ada Lovelace")])
    two = _writer(_Two, 2).encode({"p": _Two("Ada", "Lovelace")})
    three = _READER.encode(_Three("Lovelace", "Ada", 36))

    assert _READER.decode(one) == [_Three("Lovelace", "Ada", 0)]
    assert _READER.decode(two) == {"p": _Three("Lovelace", "Ada", 0)}
    assert _READER.decode(three) == _Three("Lovelace", "Ada", 36)
    assert list(vars(_READER.decode(two)["p"])) == ["last", "first", "age"]


def test_old_versions_are_upgraded_from_a_tree() -> None:
    """The same for blobs, also where the old fields were so long that they were cut."""
    blobs = Blobs()
    root = _writer(_One, 1).encode_tree([_One("Ada " + "L" * 100_000)] * 3, blobs.put)

    assert _READER.decode_tree(root, blobs.get) == [_Three("L" * 100_000, "Ada", 0)] * 3


def test_a_newer_version_is_refused() -> None:
    """Data that newer code wrote is not guessed at."""
    data = _READER.encode(_Three("a", "b", 1))

    with pytest.raises(VersionUnknown, match="newer code") as caught:
        _writer(_One, 1).decode(data)
    assert "newer code" in caught.value.hint


def test_a_missing_upgrade_is_refused() -> None:
    """The error names the step that is missing."""
    data = _writer(_One, 1).encode(_One("a b"))

    with pytest.raises(VersionUnknown, match="no upgrade from version 1"):
        _writer(_Three, 3, upgrade={2: _age}).decode(data)
    with pytest.raises(VersionUnknown, match="no upgrade from version 2"):
        _writer(_Three, 3, upgrade={1: _split}).decode(data)


@pytest.mark.parametrize(
    "result", [None, [], {}, {"first": 1}, {"first": 1, "last": 2, "more": 3}, "text", {1: 2}]
)
def test_an_upgrade_that_returns_other_fields_is_a_failed_rule(result: Any) -> None:
    """An upgrade returns exactly the fields of the next version."""
    data = _writer(_One, 1).encode(_One("a b"))

    with pytest.raises(RuleFailed):
        _writer(_Two, 2, upgrade={1: lambda _: result}).decode(data)


def test_an_upgrade_that_raises_is_a_failed_rule_with_its_cause() -> None:
    """The application's own exception is chained."""
    data = _writer(_One, 1).encode([[_One("a b")]])

    with pytest.raises(RuleFailed, match="inside person") as caught:
        _writer(_Two, 2, upgrade={1: lambda fields: {"first": fields["nope"]}}).decode(data)
    assert type(caught.value.__cause__) is KeyError


def test_every_kind_is_upgraded() -> None:
    """Models, attrs classes, structs, named tuples and pairs have upgrades too."""

    class Model(pydantic.BaseModel):
        first: str
        last: str = ""

    @attrs.define
    class Attrs:
        first: str
        last: str

    class Struct(msgspec.Struct):
        first: str
        last: str

    class Named(NamedTuple):
        first: str
        last: str

    data = _writer(_One, 1).encode(_One("Ada Lovelace"))
    kinds: list[Any] = [Attrs, Struct, Named]

    for cls in kinds:
        loaded = _writer(cls, 2, upgrade={1: _split}).decode(data)
        assert (type(loaded), loaded.first, loaded.last) == (cls, "Ada", "Lovelace")
    loaded = _writer(Model, 2, upgrade={1: _split}).decode(data)
    assert loaded == Model(first="Ada", last="Lovelace")


def test_an_upgraded_model_keeps_which_fields_were_given() -> None:
    """A field that was not given stays so; one that the upgrade added counts as given."""

    class Old(pydantic.BaseModel):
        a: int = 1
        b: int = 2

    class New(pydantic.BaseModel):
        b: int = 2
        a: int = 1
        c: int = 3

    data = _writer(Old, 1).encode(Old(b=5))
    loaded = _writer(New, 2, upgrade={1: lambda fields: {**fields, "c": 9}}).decode(data)

    assert loaded.model_dump() == {"a": 1, "b": 5, "c": 9}
    assert loaded.model_fields_set == {"b", "c"}


def test_a_pair_is_upgraded_on_its_encoded_value() -> None:
    """The upgrade of a pair of functions gets what the older encode function returned."""

    class Thing:
        def __init__(self, x: Any) -> None:
            self.x = x

    old = _writer(Thing, 1, encode=lambda thing: {"x": thing.x}, decode=lambda v: Thing(v["x"]))
    new = _writer(
        Thing,
        2,
        encode=lambda thing: {"y": thing.x},
        decode=lambda v: Thing(v["y"]),
        upgrade={1: lambda fields: {"y": fields["x"] + 1}},
    )

    assert new.decode(old.encode(Thing(1))).x == 2


def test_a_type_that_no_rule_allows_is_named_with_the_line_to_write() -> None:
    """The error has the stored name and the line that would allow it."""
    data = _writer(_One, 1).encode([_One("a")])

    with pytest.raises(UnknownType, match="'person'") as caught:
        Registry().decode(data)
    assert "registry.allow(" in caught.value.hint
    assert "name='person'" in caught.value.hint


@pytest.mark.parametrize("head", [b"", b"\x00", b"\x05abc", b"\x01A" + bytes(10), b"\xff" * 20])
def test_a_head_that_is_none_is_refused(head: bytes) -> None:
    """A typed value opens with a name, a version and a digest."""
    with pytest.raises((BytesMalformed, IndexError)):
        Label.parse(head)


def test_a_head_is_a_round_trip() -> None:
    """The bytes of a head parse back to it."""
    head = Label(name="app.thing", version=513, shape=b"12345678")

    assert Label.parse(bytes(head) + b"rest") == head
