# SPDX-License-Identifier: Apache-2.0
"""Times come back as they were: instant, calendar fields, fold, zone and the zone's class."""

from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

import pydantic
import pytest

from sealpoint import Registry
from sealpoint.codec._scalars import known_zones
from sealpoint.errors import ValueNotAllowed
from tests.sameness import same

REGISTRY = Registry()
_PARIS = ZoneInfo("Europe/Paris")


def _loaded(value: Any) -> Any:
    return REGISTRY.decode(REGISTRY.encode(value))


@pytest.mark.parametrize("zone", sorted(known_zones())[::25])
def test_every_zone_comes_back_by_its_name(zone: str) -> None:
    """A ZoneInfo comes back as the one of its name, in times and on its own."""
    value = datetime(2024, 7, 1, 12, tzinfo=ZoneInfo(zone))

    assert _loaded(value).tzinfo is ZoneInfo(zone)
    assert _loaded(ZoneInfo(zone)) is ZoneInfo(zone)
    assert same([value, value.timetz()], _loaded([value, value.timetz()]))


@pytest.mark.parametrize("fold", [0, 1])
def test_the_two_readings_of_a_repeated_hour_stay_apart(fold: int) -> None:
    """Fold is kept, and with it the instant."""
    value = datetime(2024, 10, 27, 2, 30, tzinfo=_PARIS, fold=fold)

    assert _loaded(value).fold == fold
    assert _loaded(value).timestamp() == value.timestamp()


@pytest.mark.parametrize(
    "value",
    [
        *(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
        *(
            datetime(1, 1, 1),  # noqa: DTZ001 # naive on purpose
            datetime(9999, 12, 31, 23, 59),  # noqa: DTZ001 # naive on purpose
            time.min,
            time.max,
            datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        ),
        *(datetime(1970, 1, 1, tzinfo=UTC), datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC)),
        *(datetime(2514, 5, 30, 1, 53, 4, 1, UTC), datetime(2024, 1, 1, tzinfo=UTC, fold=1)),
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(0), "UTC")),
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(microseconds=1))),
        datetime(2024, 1, 1, tzinfo=timezone(-timedelta(hours=23, minutes=59), "\ud800")),
    ],
    ids=str,
)
def test_the_edges_of_time_come_back(value: Any) -> None:
    """Extremes, epochs, forms of the timestamp and unusual zones."""
    assert same(value, _loaded(value))
    assert same({value: [value]}, _loaded({value: [value]}))


def test_what_pydantic_parsed_keeps_its_zone_class() -> None:
    """A time with pydantic's own zone comes back with it."""
    value = pydantic.TypeAdapter(datetime).validate_python("2024-01-01T00:00:00+02:30")

    assert same(value, _loaded(value))
    assert type(_loaded(value).tzinfo) is type(value.tzinfo)


class _Own(tzinfo):
    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta(0)

    dst = utcoffset

    def tzname(self, _: datetime | None) -> str:
        return "own"


def test_a_zone_of_the_application_is_refused() -> None:
    """A tzinfo that is none of the known classes has no form."""
    with pytest.raises(ValueNotAllowed, match="tzinfo"):
        REGISTRY.encode([datetime(2024, 1, 1, tzinfo=_Own())])


def test_a_zone_without_a_name_is_refused() -> None:
    """A ZoneInfo that was read from a file and has no name cannot be looked up again."""
    data = _tokyo_file()

    with data as file, pytest.raises(ValueNotAllowed):
        REGISTRY.encode(ZoneInfo.from_file(file))


def test_a_zone_under_a_false_name_does_not_move_the_instant() -> None:
    """A ZoneInfo whose content is not that of its name is refused, or keeps its instants."""
    with _tokyo_file() as file:
        value = datetime(2024, 1, 1, tzinfo=ZoneInfo.from_file(file, key="Europe/Paris"))

    try:
        data = REGISTRY.encode(value)
    except ValueNotAllowed:
        return
    assert REGISTRY.decode(data).timestamp() == value.timestamp()


def _tokyo_file() -> Any:
    return files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").open("rb")
