# SPDX-License-Identifier: Apache-2.0
"""The live feed: what is sent when, and that a store which cannot be read does not end it."""

import json
from collections.abc import Iterator

import pytest

from sealpoint.api import StoreWatch
from sealpoint.errors import StorageUnavailable
from sealpoint.ledger import StoreChain
from sealpoint_console import _live_updates
from tests.console.scene import Served, until


def _events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, object]]]:
    """Names and data of events; a comment is one without either."""
    name = ""
    for line in lines:
        if line.startswith(":"):
            yield ":", {}
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


class _Outage:
    """A store that cannot be read while `is_on`: every look at who may do what asks it."""

    def __init__(self, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_on = False
        core = served.console.desk.watch._core
        self._read = core.trust
        monkeypatch.setattr(core, "trust", self)

    def __call__(self) -> StoreChain:
        if self.is_on:
            raise StorageUnavailable("the disk is gone")
        return self._read()


def test_pages_do_not_wait_for_a_store_that_cannot_be_reached(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They say so by what the watch has found, without asking the store themselves."""
    desk, outage = served.console.desk, _Outage(served, monkeypatch)
    with served.client("vera") as vera:
        outage.is_on = True
        until(lambda: desk.fault is not None)
        with monkeypatch.context() as patch:
            patch.setattr(StoreWatch, "roster", property(lambda _: pytest.fail("it was asked")))
            told = [vera.get(path) for path in ("/", "/health", "/api/v1/threads")]
        outage.is_on = False
        until(lambda: desk.fault is None)
        back = vera.get("/")

    assert [each.status_code for each in told] == [503, 503, 503]
    assert "storage-unavailable" in told[0].text
    assert told[2].json()["error"]["code"] == "storage-unavailable"
    assert back.status_code == 200


def test_a_store_that_cannot_be_read_is_told_and_the_feed_goes_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so once, and tells what moved when the store is back."""
    outage = _Outage(served, monkeypatch)
    with served.client("vera") as vera, vera.stream("GET", "/live") as answer:
        events = _events(answer.iter_lines())
        assert next(events)[0] == "standing"
        outage.is_on = True
        until(lambda: served.console.desk.fault is not None)
        told = next(each for each in events if each[1].get("code"))
        outage.is_on = False
        back = next(events)
        request = served.scene.ask()
        moved = next(each for each in events if each[0] == "moved")
        later = next(each for each in events if each[0] == "standing")

    assert told[0] == "fault"
    assert told[1]["code"] == "storage-unavailable"
    assert "storage-unavailable" in str(told[1]["freshness"])
    assert back[0] == "standing"
    assert moved[1]["threads"]
    assert (request != "", later[1]["open_requests"]) == (True, 1)


def test_who_comes_while_the_store_cannot_be_read_is_told_that(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser would not come again to a feed that was refused."""
    outage = _Outage(served, monkeypatch)
    with served.client("vera") as vera:
        outage.is_on = True
        with vera.stream("GET", "/live") as answer:
            events = _events(answer.iter_lines())
            first = next(events)
            outage.is_on = False
            second = next(events)

    assert (first[0], second[0]) == ("fault", "standing")


def test_what_has_not_changed_is_not_sent_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the store is looked at all the time; a comment keeps the connection."""
    monkeypatch.setattr(_live_updates, "_BEAT_S", 1.0)
    with served.client("vera") as vera, vera.stream("GET", "/live") as answer:
        events = _events(answer.iter_lines())
        before = served.console.desk.looks
        found = [next(events)[0] for _ in range(3)]

    assert served.console.desk.looks > before + 2
    assert found == ["standing", ":", ":"]
