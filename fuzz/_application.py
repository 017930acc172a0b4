# SPDX-License-Identifier: Apache-2.0
"""The registry of an application: every kind of rule, over the types that tell when they run."""

from typing import Any

from fuzz import _types as app
from sealpoint import Registry
from sealpoint.codec import DictForm
from sealpoint.limits import Limits

__all__ = ["FIELDS", "make_registry"]

_AB = ("a", "b")

FIELDS: dict[type, tuple[str, ...]] = {
    app.Plan: _AB,
    app.Key: _AB,
    app.Lookup: ("a",),
    app.Slotted: _AB,
    app.Checked: _AB,
    app.Wide: tuple(f"{letter}{digit}" for letter in "ab" for digit in range(10))[:16],
    app.Step: ("a", "_b"),
    app.Cached: ("a",),
    app.Opened: ("_a", "b"),
    app.Record: _AB,
    app.Entry: _AB,
    app.Strict: ("a",),
    app.Newer: ("a",),
    app.Money: ("cents",),
    app.Parcel: ("inside",),
    app.Word: ("text",),
    app.Weight: ("grams",),
    app.Third: ("a", "c"),
    app.Row: _AB,
    app.Span: _AB,
    app.Later: ("a",),
    **dict.fromkeys((app.Colour, app.Text, app.Access, app.Bits, app.Shade), ()),
    **dict.fromkeys((app.Message, app.Point, app.Account, app.Second), ()),
}
"""Every allowed application type, with the fields to look into (models keep theirs apart)."""

_RULES: tuple[tuple[str, type], ...] = (
    *(("d", app.Plan), ("k", app.Key), ("g", app.Lookup), ("s", app.Slotted), ("w", app.Wide)),
    *(("p", app.Message), ("pf", app.Point), ("at", app.Step), ("ac", app.Cached), ("n", app.Row)),
    *(("e", app.Colour), ("t", app.Text), ("f", app.Access), ("i", app.Bits)),
    *(("m", app.Record), ("mp", app.Entry)),
)
_VALIDATED: tuple[tuple[str, type], ...] = (
    *(("dv", app.Checked), ("pv", app.Account), ("av", app.Opened), ("nv", app.Span)),
    ("mv", app.Strict),
)


def _encode_money(value: app.Money) -> Any:
    """Fail for an amount that has no whole number."""
    if value.cents is ...:
        raise ValueError("cents: expected a value")
    return value.cents


def _decode_money(cents: Any) -> Any:
    """Fail in each of the ways that a decode function can."""
    if type(cents) is str:
        return cents
    if type(cents) is int and cents < 0:
        raise ValueError("cents: expected no negative number")
    return app.Money(cents)


def _encode_parcel(value: app.Parcel) -> Any:
    return [value.__dict__]


def _decode_parcel(form: Any) -> Any:
    (fields,) = form
    return app.Parcel(fields["inside"])


def _with_c(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "c": 0}


def _renamed(fields: dict[str, Any]) -> dict[str, Any]:
    """Move `b` to `a`; whatever else is in the fields stays, and may then be refused."""
    return {"a": fields.pop("b"), **fields}


def _as_it_is(value: Any) -> Any:
    return value


def make_registry(limits: Limits | None = None) -> Registry:
    """A registry that allows the whole application."""
    registry = Registry(limits=limits)
    for name, cls in _RULES:
        registry.allow(cls, name=name)
    for name, cls in _VALIDATED:
        registry.allow(cls, name=name, validate=True)
    registry.allow(app.Money, name="x.money", encode=_encode_money, decode=_decode_money)
    registry.allow(app.Parcel, name="x.parcel", encode=_encode_parcel, decode=_decode_parcel)
    registry.roll(app.Parcel, DictForm(("inside",), lambda fields, _mask: [[fields]]))
    registry.allow(
        app.Word, name="x.word", encode=lambda value: value.text, decode=app.Word, validate=True
    )
    registry.allow(app.Third, name="u.d", version=3, upgrade={1: _with_c, 2: _renamed})
    registry.allow(app.Second, name="u.p", version=2, upgrade={1: _renamed})
    registry.allow(app.Later, name="u.n", version=2, upgrade={1: _renamed})
    registry.allow(app.Newer, name="u.m", version=2, upgrade={1: _renamed})
    registry.allow(app.Shade, name="u.e", version=2, upgrade={1: _as_it_is})
    registry.allow(
        app.Weight,
        name="u.x",
        version=4,
        upgrade={2: _as_it_is, 3: _as_it_is},
        encode=lambda value: value.grams,
        decode=app.Weight,
    )
    return registry
