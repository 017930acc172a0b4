# SPDX-License-Identifier: Apache-2.0
"""Explaining a value: one pass finds everything that stands between it and the store."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

from sealpoint import Limits, Registry
from sealpoint.errors import EncodeError
from tests.application import make_registry
from tests.arrays import ARRAYS, np
from tests.attacks.codec import samples
from tests.unit.codec.plain_types import Handle, HTTPStep, Outer, Plan


def _state() -> dict[str, Any]:
    return {
        "plan": Plan([HTTPStep("a"), HTTPStep("b"), Outer.Inner(1)]),
        "handle": [Handle()],
        "plain": [1, "text", {"x": None}],
        "times": (1, {2}),
    }


def test_one_pass_finds_every_type_also_inside_of_those_not_allowed() -> None:
    """Types inside of types that no rule allows yet are found as well."""
    explanation = Registry().explain(_state())
    refused = {use.type_name.rpartition(".")[2] for use in explanation.types if not use.allowed}

    assert refused == {"Plan", "HTTPStep", "Inner", "Handle"}
    assert not explanation.allowed


def test_writing_all_the_lines_allows_the_whole_value() -> None:
    """After the lines of one explanation are written, a second one has nothing to say."""
    registry = Registry()
    value = _state()
    del value["handle"]

    scope: dict[str, Any] = {"registry": registry}
    for each in registry.explain(value).lines:
        line, _, imported = each.partition("  # ")
        exec(f"{imported}\n{line}", scope)  # noqa: S102 # the line is there to be pasted

    assert registry.explain(value).allowed
    assert registry.explain(value).lines == ()
    assert registry.decode(registry.encode(value)) == value


def test_refused_types_come_first_with_count_and_path() -> None:
    """Each type has the number of its objects and where the first one lies."""
    uses = Registry().explain(_state()).types
    (step,) = [use for use in uses if use.type_name.endswith("HTTPStep")]
    order = [use.allowed for use in uses]

    assert order == sorted(order)
    assert (step.count, step.path) == (2, 'state["plan"].steps[0]')
    assert step.detail.startswith("registry.allow(HTTPStep, name=")


def test_allowed_types_have_a_reason() -> None:
    """Built-in types are listed with why they are safe, application types with their rule."""
    uses = {use.type_name: use for use in make_registry().explain(list(samples.ALL)).types}

    assert all(use.allowed and use.detail for use in uses.values())
    assert uses["tests.application.Step"].detail == "rule app.step version 1"
    assert ("numpy.ndarray" in uses) is ARRAYS


@pytest.mark.parametrize(
    "value",
    [
        *([np.array([object()], dtype=object)] if ARRAYS else []),
        defaultdict(lambda: 0),
        1 << 600_000,
        {"a": [1, {Handle(): 1}]},
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_has_no_form_is_found_although_its_type_is_allowed(value: Any) -> None:
    """What encoding would refuse, the explanation refuses too."""
    registry = Registry()

    with pytest.raises(EncodeError):
        registry.encode([value])
    assert not registry.explain([value]).allowed


def test_a_limit_that_the_whole_value_exceeds_is_found() -> None:
    """A value of allowed types that is too large is not called allowed."""
    registry = Registry(limits=Limits(value_bytes_max=100))
    explanation = registry.explain(["x" * 60, "y" * 60])

    assert not explanation.allowed
    assert any("value_bytes_max" in line for line in explanation.lines)
    assert "value_bytes_max" in str(explanation)


def test_an_explanation_prints_one_line_for_each_type() -> None:
    """The text form says allowed or REFUSED, the type, how many, where, and why or what to do."""
    lines = str(Registry().explain([HTTPStep(), 1])).splitlines()

    assert lines[0].startswith("REFUSED  tests.unit.codec.plain_types.HTTPStep  x1  state[0]  ")
    assert lines[1].startswith("allowed  ")


def test_a_value_with_cycles_is_explained() -> None:
    """A list that holds itself is walked once, and refused."""
    loop: list[Any] = [HTTPStep()]
    loop.append(loop)

    assert not Registry().explain(loop).allowed


def test_an_explanation_agrees_with_the_encoder() -> None:
    """A value is called allowed exactly when it can be encoded."""
    registry = make_registry()

    @dataclass
    class Unknown:
        x: int

    for value in (*samples.ALL, Unknown(1), [Unknown(1)], {1: Unknown(2)}):
        try:
            registry.encode(value)
            encodes = True
        except EncodeError:
            encodes = False
        assert registry.explain(value).allowed is encodes
