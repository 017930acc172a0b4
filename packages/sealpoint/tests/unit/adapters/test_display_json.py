# SPDX-License-Identifier: Apache-2.0
"""Values as people are shown them before they approve."""

import json
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Any

import pytest

from sealpoint.adapters.guarded_runs import question_to_display_json, to_display_json
from sealpoint.codec import Registry
from sealpoint.errors import UsageError
from sealpoint.limits import BODY_BYTES_MAX, QUESTION_BYTES_MAX
from sealpoint.store import SaveDraft


class Speed(Enum):
    """How fast."""

    FAST = 1


class Opaque:
    """It prints nothing but where it lies in memory."""

    def __init__(self, amount: int) -> None:
        self.amount = amount


@dataclass
class Order:
    """What is asked about."""

    to: str
    amount: int = field(repr=False)
    speed: Speed = Speed.FAST
    inside: Any = None


_REGISTRY = Registry()
_REGISTRY.allow(Speed, name="tests.speed")
_REGISTRY.allow(Order, name="tests.order")
_REGISTRY.allow(
    Opaque,
    name="tests.opaque",
    encode=lambda value: value.amount,
    decode=Opaque,
)


def _text(value: Any) -> str:
    shown: str = to_display_json(value, _REGISTRY)["$object"]["text"]
    return shown


def test_an_object_is_told_by_all_that_would_be_sealed() -> None:
    """Fields that its class does not print, and objects inside that print only an address."""
    order = Order("acme", 42, inside=[Opaque(7), {"due": date(2026, 12, 1)}])

    assert _text(order) == (
        "Order(to='acme', amount=42, speed=Speed(name='FAST'), "
        "inside=[Opaque(value=7), {'due': datetime.date(2026, 12, 1)}])"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1,), "(1,)"),
        ((), "()"),
        ({"c", "b", "a"}, "{'a', 'b', 'c'}"),
        (set(), "set()"),
        (frozenset({2, 1}), "frozenset({1, 2})"),
        (deque([Opaque(1)]), "deque([Opaque(value=1)])"),
        (OrderedDict(a=Opaque(1)), "OrderedDict({'a': Opaque(value=1)})"),
        (defaultdict(list, {1: [2]}), "defaultdict({1: [2]})"),
        ({1: (Opaque(2),)}, "{1: (Opaque(value=2),)}"),
        (b"\x00", "b'\\x00'"),
    ],
)
def test_a_text_is_the_same_in_every_process(value: Any, text: str) -> None:
    """A statement binds it: no address, and no order that a process chose."""
    assert _text(value) == text


def test_a_question_that_is_too_long_is_shown_by_its_beginning() -> None:
    """With its digest, and where the rest is; it fits the entry of its checkpoint."""
    whole = "pay " * QUESTION_BYTES_MAX
    shown = question_to_display_json(whole, _REGISTRY)["$object"]

    assert shown["type"] == "str"
    assert shown["text"].startswith("'pay pay")
    assert shown["text"].endswith("more characters: sealpoint show THREAD --full --untyped")
    assert len(json.dumps(shown)) < QUESTION_BYTES_MAX
    assert shown["sha256"] != question_to_display_json(f"{whole}.", _REGISTRY)["$object"]["sha256"]


@pytest.mark.parametrize("char", ["\U0001f600", "\x00", '"', "\\"])
def test_a_part_of_a_question_keeps_its_bound(char: str) -> None:
    """Whatever its characters become as JSON."""
    shown = question_to_display_json([char * 100_000], _REGISTRY, bytes_max=1000)

    assert len(json.dumps(shown)) < 1200


def test_a_question_that_fits_is_shown_whole() -> None:
    """Plain data as they are."""
    asked = {"pay": ["acme", 42]}

    assert question_to_display_json(asked, _REGISTRY) == asked


def test_a_question_that_fits_no_entry_is_refused_by_name() -> None:
    """Before anything is written, with what to do instead."""
    with pytest.raises(UsageError, match="question: expected at most") as refused:
        SaveDraft({}, None, None, {}, None, question="x" * BODY_BYTES_MAX)

    assert "keep the thing itself in the state" in refused.value.hint
