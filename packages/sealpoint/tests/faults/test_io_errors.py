# SPDX-License-Identifier: Apache-2.0
"""Disks that fail, fill up or are taken away: a clear error, and nothing acknowledged is lost.

The real system calls of a real process fail, one after the other, where no patch of Python code
could reach them: inside SQLite, too. Only one call fails and the next one works, or the trouble
stays until the save is over. Then the same handle tries again, and another process looks.
"""

from pathlib import Path

import pytest

from tests.faults.killed_children import CLEAR, Bench, calls, every_kind, hit_each, saves
from tests.faults.traced import Traced

_CLEAR_AT_OPENING = CLEAR | {"DirectoryUnusable", "KeyFileUnsafe"}


@every_kind
@saves("new session", every=19)
def test_error_at_any_call_of_a_save(
    tmp_path: Path, tracer: Traced, kind: str, situation: str, every: int
) -> None:
    """Whichever call of a save fails once, the save has succeeded or said why, and can be tried."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(bench, situation, counted="all", every=every, fault="EIO")

    assert len(outcomes) > 2
    assert all(outcome.words("saved") for outcome in outcomes)
    assert any(outcome.words("failed") for outcome in outcomes) or every > 1


@every_kind
@saves("small state")
def test_error_at_every_write_and_sync_of_a_save(
    tmp_path: Path, tracer: Traced, kind: str, situation: str, every: int
) -> None:
    """A write or sync that fails is never taken for done."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(bench, situation, every=every, counted="changes", fault="EIO")

    assert len(outcomes) > 5
    assert sum(bool(outcome.words("failed")) for outcome in outcomes) > len(outcomes) // 2


@every_kind
@saves("large state", every=5)
@pytest.mark.parametrize("fault", ["ENOSPC", "half"])
def test_disk_that_is_full(
    tmp_path: Path, tracer: Traced, kind: str, situation: str, *, every: int, fault: str
) -> None:
    """From some write on, or in the middle of it, there is no space left; later there is again."""
    bench = Bench(tmp_path, kind, tracer)
    counted = "writes" if fault == "half" else "space"
    outcomes = hit_each(bench, situation, every=every, counted=counted, fault=fault, then="ENOSPC")

    assert outcomes
    assert all(outcome.words("failed") for outcome in outcomes)


@every_kind
@saves("new thread", every=12)
@pytest.mark.parametrize(("counted", "fault"), [("names", "EACCES"), ("changes", "EROFS")])
def test_disk_that_is_taken_away(
    tmp_path: Path,
    tracer: Traced,
    kind: str,
    situation: str,
    *,
    every: int,
    counted: str,
    fault: str,
) -> None:
    """From some call on files may not be opened, or not be changed; later they may again."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(bench, situation, every=every, counted=counted, fault=fault, then=fault)

    # An open SQLite store needs no names any more.
    assert outcomes or (kind, counted) == ("sqlite", "names")


@every_kind
@calls(29)
def test_error_while_a_store_is_opened_and_read(
    tmp_path: Path, tracer: Traced, kind: str, every: int
) -> None:
    """Whichever call fails, what is read is right or there is an error that accuses nobody."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(
        bench, "loading", every=every, clear=_CLEAR_AT_OPENING, counted="all", fault="EIO"
    )

    assert any(outcome.words("failed") for outcome in outcomes)
    for outcome in outcomes:
        assert {note.number for note in outcome.words("loaded")} <= {4}
        assert {note.number for note in outcome.words("listed")} <= {2}


@every_kind
@calls(5)
def test_error_while_a_store_is_closed(
    tmp_path: Path, tracer: Traced, kind: str, every: int
) -> None:
    """What was acknowledged does not need the store to be closed well."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(
        bench, "closing", every=every, clear=CLEAR, counted="all", fault="EIO", then="EIO"
    )

    # A store of files has nothing left to do.
    assert outcomes or kind == "file"


@every_kind
@calls(70)
def test_error_while_a_store_is_made(tmp_path: Path, tracer: Traced, kind: str, every: int) -> None:
    """An `init` that failed says why, and can be repeated, or has come to its end."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(
        bench, "making", every=every, clear=_CLEAR_AT_OPENING, counted="all", fault="EIO"
    )

    assert any(outcome.words("failed") for outcome in outcomes)


@every_kind
@calls(41)
@pytest.mark.parametrize(("fault", "then"), [("EIO", ""), ("ENOSPC", "ENOSPC")])
def test_error_while_states_are_given_up(
    tmp_path: Path, tracer: Traced, kind: str, *, every: int, fault: str, then: str
) -> None:
    """A prune that failed has taken nothing away that was to be kept, and can be repeated."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(bench, "pruning", every=every, counted="changes", fault=fault, then=then)

    assert any(outcome.words("failed") for outcome in outcomes)
