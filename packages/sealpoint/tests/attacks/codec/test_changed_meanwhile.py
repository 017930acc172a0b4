# SPDX-License-Identifier: Apache-2.0
"""A list that another OS thread makes longer or shorter while it is encoded.

What is stored is the list of one moment: never bytes that say another number of members than they
have, which nobody could load again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from sealpoint.codec import Registry, TreeMemo
from tests.blobs import Blobs

_CHANGES: dict[str, Callable[[list[Any]], object]] = {
    "longer": lambda steps: steps.append(_Step("late")),
    "shorter": lambda steps: steps.pop(),
    "empty": lambda steps: steps.clear(),
}


@dataclass
class _Step:
    text: str
    found: Any = None


class _Moment:
    """Something happens elsewhere while it is encoded."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self.happens = happens


def _encode(moment: _Moment) -> None:
    moment.happens()


@pytest.mark.parametrize("rolled", [False, True], ids=["plain", "rolled"])
@pytest.mark.parametrize("count", [20, 40, 400])
@pytest.mark.parametrize("change", _CHANGES)
def test_a_list_that_changes_while_it_is_encoded_is_that_of_one_moment(
    change: str, count: int, *, rolled: bool
) -> None:
    """It comes back with the members that it had when its turn came, and so does all beside it."""
    registry = Registry()
    registry.allow(_Step, name="step")
    registry.allow(_Moment, name="moment", encode=_encode, decode=lambda _: _Moment(list))
    steps = [_Step("x" * 100) for _ in range(count)]
    steps[2].found = _Moment(lambda: _CHANGES[change](steps))
    blobs, memo = Blobs(), TreeMemo(lambda _names: False) if rolled else None
    root = registry.encode_tree({"steps": steps, "beside": 1}, blobs.put, seed=b"s", memo=memo)
    loaded = registry.decode_tree(root, blobs.get)

    assert [step.text for step in loaded["steps"]] == ["x" * 100] * count
    assert loaded["beside"] == 1
