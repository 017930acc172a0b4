# SPDX-License-Identifier: Apache-2.0
"""States as lines: types are told, and what is left out is counted."""

import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.views.values import render, short_text
from tests.arrays import ARRAYS, np
from tests.cli.shop import Order


class _Textless:
    def __init__(self, **own: Any) -> None:
        self.__dict__.update(own)


class _Broken:
    def __repr__(self) -> str:
        raise RuntimeError


def _arrays() -> list[tuple[Any, str]]:
    return [
        (np.float32(1.5), "np.float32(1.5)"),
        (np.array([1, 2]), "ndarray int64 of shape (2,): [1, 2]"),
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        ("a\tb", '"a\\tb"'),
        (b"abc", "b'abc'"),
        ([], "[]"),
        ((1,), "(1,)"),
        (set(), "set()"),
        ({1}, "{1}"),
        (frozenset({"a"}), 'frozenset({"a"})'),
        ({}, "{}"),
        ({"a": (1, 2)}, '{"a": (1, 2)}'),
        ({1: "x"}, '{1: "x"}'),
        (Decimal("1.50"), "Decimal('1.50')"),
        (date(2026, 1, 5), "date(2026-01-05)"),
        (datetime(2026, 1, 5, tzinfo=UTC), "datetime(2026-01-05T00:00:00+00:00)"),
        (
            datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
            "datetime(2026-10-25T02:30:00+01:00 Europe/Berlin fold=1)",
        ),
        (timedelta(days=1), "datetime.timedelta(days=1)"),
        (uuid.UUID(int=1), "UUID('00000000-0000-0000-0000-000000000001')"),
        (Order(["tea"]), 'Order(items=["tea"])'),
        *(_arrays() if ARRAYS else ()),
        (_Textless(role="user", name=None), '_Textless(role="user")'),
        (_Textless(), "_Textless()"),
        (_Broken(), "<_Broken without a text>"),
        (range(3), "range(0, 3)"),
    ],
)
def test_a_small_value_is_one_line(value: Any, expected: str) -> None:
    """Its type can be told from how it is written."""
    assert list(render(value)) == [f"state: {expected}"]


def test_nested_values_stand_further_in() -> None:
    """A list of messages is a tree; a text of several lines stands behind a bar."""
    state = {
        "messages": [
            {"role": "user", "content": "first line of it\nsecond line of it, longer\n"},
            {"role": "assistant", "content": "ok"},
        ],
        "orders": (Order(["tea" * 30, 2]),),
        "seen": {"x" * 70},
    }

    assert list(render(state)) == [
        "state: dict, 3 keys",
        '  "messages": list, 2 items',
        "    [0]: dict, 2 keys",
        '      "role": "user"',
        '      "content": str, 3 lines',
        "        | first line of it",
        "        | second line of it, longer",
        "        | ",
        '    [1]: {"role": "assistant", "content": "ok"}',
        '  "orders": tuple, 1 item',
        "    [0]: tests.cli.shop.Order, 1 field",
        "      .items: list, 2 items",
        f'        [0]: "{"tea" * 30}"',
        "        [1]: 2",
        '  "seen": set, 1 member',
        f'    -: "{"x" * 70}"',
    ]


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (list(range(1000)), "... and 960 more"),
        ("x" * 2000, "... and 1,400 more characters"),
        ("\n" * 100, "... and 89 more lines"),
        (f"a\n{'x' * 2000}", "... and 1,400 more characters"),
        (b"x" * 2000, "... and 1,400 more bytes"),
        (1 << 20_000, "more digits"),
        *([(np.zeros(2000), "... and its 2,000 elements")] if ARRAYS else ()),
    ],
    ids=["list", "text", "lines", "long line", "bytes", "number", *(["array"] if ARRAYS else ())],
)
def test_what_is_left_out_is_counted(value: Any, left: str) -> None:
    """And with everything asked for, nothing is left out."""
    assert any(left in line for line in render(value))
    assert not any("... and" in line for line in render(value, everything=True))


def test_numbers_that_python_refuses_to_print_are_shown() -> None:
    """A fraction of huge numbers has no decimal text; it does not end in an error."""
    assert "without a text" in short_text(Fraction(1 << 20_000, 3))
    assert short_text(1 << 20_000, 40).startswith("0x1000")


def test_deep_values_end() -> None:
    """Nesting beyond what can be shown is said."""
    deep: list[Any] = ["x" * 80]
    for _ in range(240):
        deep = [deep]
    lines = list(render(deep))

    assert lines[-1].strip() == "... nested deeper than can be shown"
    assert len(short_text(deep)) < 200


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    ),
    st.integers(1, 100),
)
def test_a_short_text_is_short(value: Any, chars: int) -> None:
    """Whatever the value, one line of about the length that was asked for."""
    assert len(short_text(value, chars)) <= 6 * chars + 200
