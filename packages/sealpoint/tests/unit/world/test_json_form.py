# SPDX-License-Identifier: Apache-2.0
"""What programs are given of a record."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sealpoint.errors import SealpointError, Tampered
from sealpoint.world import json_data, json_form


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    at: datetime
    fault: SealpointError | None = None
    names: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.names)


_LOOK = _Look(at=datetime(2026, 1, 5, 9, 30, tzinfo=UTC), fault=Tampered("odd"), names=("a\ud800",))


def test_a_record_has_times_in_utc_and_errors_as_they_are_printed() -> None:
    """A time ends in Z, as in every signed document; an error has its one shape."""
    form = json_form(_LOOK)

    assert form["at"] == "2026-01-05T09:30:00Z"
    assert form["fault"] == Tampered("odd").as_dict()
    assert list(form["names"]) == ["a\ud800"]
    assert json_data([{"look": _LOOK}]) == [{"look": form}]


def test_only_the_fields_and_properties_that_are_named_are_told() -> None:
    """In the order in which they are named."""
    assert list(json_form(_LOOK, "count", "at").items()) == [
        ("count", 1),
        ("at", "2026-01-05T09:30:00Z"),
    ]
