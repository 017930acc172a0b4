# SPDX-License-Identifier: Apache-2.0
"""What cannot come back the same is refused when it is saved, not when it is loaded."""

import decimal
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from sealpoint import Registry
from sealpoint.errors import (
    DecodeError,
    EncodeError,
    LimitInvalid,
    RuleInvalid,
    SealpointError,
    UsageError,
    ValueNotAllowed,
)
from tests.arrays import ARRAYS, np, torch


class Shade(Enum):
    """An enum that makes members as it is asked for them."""

    DARK = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        made: Any = object.__new__(cls)
        made._name_, made._value_ = f"shade_{value}", value
        return made


class Note(BaseModel):
    """A model."""

    text: str = ""


def _noted() -> Note:
    note = Note()
    note.__dict__["beside"] = 1
    return note


_ARRAYS: dict[str, Callable[[], Any]] = {
    "booleans of 2": lambda: np.array([0, 2], "u1").view("b1"),
    "no code points": lambda: np.array([0x110000], "u4").view("U1"),
    "too many fields": lambda: np.zeros(1, [(f"field{n}", "i4") for n in range(6000)]),
    "a surrogate as a name": lambda: np.zeros(1, [("\ud800", "i4")]),
    "records": lambda: np.zeros(1, np.dtype((np.record, [("a", "i4")]))),
    "metadata": lambda: np.zeros(1, np.dtype("f4", metadata={"a": 1})),
    "tensor booleans of 2": lambda: torch.tensor([0, 2], dtype=torch.uint8).view(torch.bool),
}
_LOST: dict[str, Callable[[], Any]] = {
    **(_ARRAYS if ARRAYS else {}),
    "a late member": lambda: Shade(7),
    "an attribute of a model": _noted,
}


@pytest.mark.parametrize("make", _LOST.values(), ids=_LOST)
def test_what_would_be_lost_or_refused_later_is_refused_when_saved(make: Callable[[], Any]) -> None:
    """Each of these was once saved and then refused, or came back as something else."""
    registry = Registry()
    registry.allow(Shade, name="shade")
    registry.allow(Note, name="note")
    value = make()

    with pytest.raises(ValueNotAllowed):
        registry.encode(value)
    with pytest.raises(ValueNotAllowed):
        registry.encode_tree([value], lambda _: bytes(32))
    assert not registry.explain([value]).allowed


def test_a_decimal_is_the_same_in_every_context() -> None:
    """The thread's context decides how a Decimal prints, not how it is stored."""
    value = Decimal("1E+10")
    with decimal.localcontext(decimal.Context(capitals=0)):
        data = Registry().encode(value)

    assert data == Registry().encode(value)
    assert Registry().decode(data) == value


def test_fields_that_take_no_part_in_the_hash_may_be_anything() -> None:
    """A key is checked for what its hash looks at."""
    registry = Registry()

    @registry.allow(name="key")
    @dataclass(frozen=True)
    class Key:
        name: str
        tags: list[str] = field(default_factory=list, compare=False)

    state = {Key("a", ["b"]): 1}

    assert registry.decode(registry.encode(state)) == state


def test_a_wrong_call_is_an_error_of_ours() -> None:
    """Arguments of the wrong kind are refused by name."""
    released = memoryview(b"abc")
    released.release()
    registry = Registry()

    with pytest.raises(LimitInvalid):
        Registry(limits={"depth_max": 1})  # type: ignore[arg-type]
    with pytest.raises(RuleInvalid):
        registry.allow(Note, name="note", upgrade=5)  # type: ignore[call-overload]
    with pytest.raises(RuleInvalid):
        registry.allow(Note, name="note", encode=1, decode=2)  # type: ignore[call-overload]
    with pytest.raises(UsageError):
        registry.encode_tree(1, lambda _: bytes(32), seed="seed")  # type: ignore[arg-type]
    with pytest.raises(DecodeError):
        registry.decode(released)  # type: ignore[arg-type]
    with pytest.raises(EncodeError):
        registry.encode(released)
    with pytest.raises(EncodeError):
        registry.encode_tree(released, lambda _: bytes(32))


@pytest.mark.parametrize("root", [" " * 64, "A" * 64, "0" * 63, b"", 5])
def test_a_root_of_another_spelling_is_refused(root: Any) -> None:
    """An id in text has one spelling."""
    with pytest.raises(SealpointError, match="SHA-256"):
        Registry().decode_tree(root, lambda _: b"")


def test_a_suggested_name_can_always_be_used() -> None:
    """The line for a type is one that works, whatever the type is called."""
    for name in ("Ж", "A" * 150, "_", "Box[int]"):
        made: Any = dataclass(type(name, (), {"__annotations__": {"a": int}}))
        line = Registry().explain(made(1)).lines[0]
        suggested = line.partition('name="')[2].partition('"')[0]
        Registry().allow(made, name=suggested)

        assert "encode=" not in line
