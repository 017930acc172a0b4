# SPDX-License-Identifier: Apache-2.0
"""Seals of a running gateway read what can be new, and say the same as a reading of everything."""

from collections.abc import Callable
from typing import Any

import pytest

from sealpoint_openclaw import _databases as databases_module
from sealpoint_openclaw._inventory import Digests
from tests.openclaw.recorded_folder import AGENT, Recorded

_IDENTITY = (
    "INSERT OR REPLACE INTO transcript_event_identities (session_id, event_id, seq, event_type,"
    " created_at) SELECT session_id, ?, 0, 'message', 1 FROM session_windows LIMIT 1"
)
_WORDS = "INSERT INTO session_transcript_fts (text, session_id) VALUES (?, 's')"


def _fill(recorded: Recorded, numbers: range) -> None:
    for number in numbers:
        recorded.sql(AGENT, _IDENTITY, f"e{number}")
        recorded.sql(AGENT, _WORDS, f"word{number}")


@pytest.fixture
def long(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """A folder with tables that are long for these tests."""
    monkeypatch.setattr(databases_module, "_LONG", 20)
    monkeypatch.setattr(databases_module, "_TAIL", 4)
    _fill(recorded, range(40))
    with recorded.guard() as guard:
        guard.accept("a long history")
    return recorded


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables of which a whole reading was made, since it was cleared."""
    found: list[str] = []
    select = databases_module._TableReader._select_after

    def selected(reader: Any, mark: Any) -> Any:
        if mark is None:
            found.append(reader._name)
        return select(reader, mark)

    monkeypatch.setattr(databases_module._TableReader, "_select_after", selected)
    return found


_LONG_TABLES = {
    "transcript_event_identities",
    "session_transcript_fts_content",
    "session_transcript_fts_docsize",
}


def _grow(recorded: Recorded) -> None:
    _fill(recorded, range(100, 103))


def _replace_last(recorded: Recorded) -> None:
    recorded.sql(AGENT, _IDENTITY, "e39")


def _replace_old(recorded: Recorded) -> None:
    recorded.sql(AGENT, _IDENTITY, "e3")


def _change_last(recorded: Recorded) -> None:
    recorded.sql(
        AGENT, "UPDATE transcript_event_identities SET created_at = 9 WHERE event_id = 'e38'"
    )


def _remove_old(recorded: Recorded) -> None:
    recorded.sql(AGENT, "DELETE FROM transcript_event_identities WHERE event_id = 'e3'")


def _remove_last(recorded: Recorded) -> None:
    recorded.sql(AGENT, "DELETE FROM transcript_event_identities WHERE rowid > 60")


def _remove_all(recorded: Recorded) -> None:
    recorded.sql(AGENT, "DELETE FROM transcript_event_identities")
    recorded.sql(AGENT, "DELETE FROM session_transcript_fts")


@pytest.mark.parametrize(
    "change",
    [
        *(_grow, _replace_last, _replace_old, _change_last),
        *(_remove_old, _remove_last, _remove_all),
    ],
)
def test_a_seal_of_a_running_gateway_says_what_a_whole_reading_says(
    long: Recorded, change: Callable[[Recorded], None]
) -> None:
    """Twice, because the second one continues the first."""
    with long.guard() as guard, guard.running() as watch:
        for _ in range(2):
            change(long)
            long.turn()
            watch.seal()

            assert watch.latest.inventory == guard.read(None)[0]
        watch.end(crashed=False)


def test_of_long_tables_only_the_last_rows_are_read_again(long: Recorded, read: list[str]) -> None:
    """From the verified start on: the first seal continues what the verification has read."""
    with long.guard() as guard, guard.running() as watch:
        assert {*read} >= _LONG_TABLES
        read.clear()
        _grow(long)
        watch.seal()

        assert read
        assert _LONG_TABLES.isdisjoint(read)
        watch.end(crashed=False)
        assert {*read} >= _LONG_TABLES


def test_an_old_row_that_changed_in_place_is_in_the_last_seal(long: Recorded) -> None:
    """A seal of the running gateway may miss it; the last one reads everything."""
    with long.guard() as guard, guard.running() as watch:
        long.sql(
            AGENT, "UPDATE transcript_event_identities SET created_at = 9 WHERE event_id = 'e3'"
        )
        watch.seal()
        watch.end(crashed=False)
    with long.guard() as guard:
        assert guard.verify().differences == ()


def test_rows_that_people_decide_about_are_read_each_time(
    long: Recorded, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are."""
    monkeypatch.setattr(databases_module, "_LONG", 0)
    monkeypatch.setattr(databases_module, "_TAIL", 0)
    with long.guard() as guard, guard.running() as watch:
        read.clear()
        long.sql("state/openclaw.sqlite", "UPDATE cron_jobs SET name = 'nightly'")
        watch.seal()

        assert "cron_jobs" in read
        assert watch.latest.world is not None
        assert any("nightly" in name for name in watch.latest.world.topology)
        watch.end(crashed=False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([("a", "1")], [("a", 1)]),
        ([("a", 1)], [("a", 1.0)]),
        ([("a", "x")], [("a", b"x")]),
        ([("a", "bc")], [("ab", "c")]),
        ([("a", "b"), ("c", "d")], [("a", "bcd")]),
        ([("a", "\udc80")], [("a", b"\x80")]),
        ([("a", "\udc80")], [("a", "\udc81")]),
        ([("a", "\udc80"), ("b", "x")], [("a", "\udc80"), ("b", b"x")]),
        ([("a", 0.0)], [("a", -0.0)]),
    ],
)
def test_rows_that_differ_have_other_digests(
    one: list[tuple[str, Any]], other: list[tuple[str, Any]]
) -> None:
    """In a type, a name, or where one value ends."""
    digests = Digests(bytes(32))

    assert digests.row(one) != digests.row(other)
    assert digests.row(one) == digests.row([*one, ("z", None)])
