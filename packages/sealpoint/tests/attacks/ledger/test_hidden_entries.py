# SPDX-License-Identifier: Apache-2.0
"""Entries and threads kept from view while what remains is genuine.

The list of names is only what the anchor proves, and it says when it is not complete.
"""

import sqlite3
from functools import partial
from typing import Any

import msgspec
import pytest

from sealpoint.anchor import Position
from sealpoint.errors import (
    AnchorUnavailable,
    Edited,
    ListIncomplete,
    SealpointError,
    UnknownThread,
)
from tests.attacks.ledger.insider import Insider, key_of, put
from tests.attacks.ledger.tampered_store import TamperedStore, contents, entry_rows, refused
from tests.ledgers import sealed

_LEAF_OF_AN_INDEX = 10
_PAGE_BYTES = 4096


def _index_pages(data: bytes) -> list[int]:
    """Where the pages of indexes begin."""
    starts = range(_PAGE_BYTES, len(data), _PAGE_BYTES)
    return [start for start in starts if data[start] == _LEAF_OF_AN_INDEX]


@pytest.mark.parametrize("keep", ["first", "last", "none"])
def test_an_index_that_hides_rows_is_noticed(scene: TamperedStore, keep: str) -> None:
    """The rows stay in the table; the index that leads to them is edited in the file."""
    scene.require_sound()
    data = scene.path.read_bytes()
    with scene.raw() as database:
        before = contents(database)
    verdicts = []
    for start in _index_pages(data):
        cells = int.from_bytes(data[start + 3 : start + 5], "big")
        edited = bytearray(data)
        kept = 0 if keep == "none" else cells - 1
        edited[start + 3 : start + 5] = kept.to_bytes(2, "big")
        if keep == "last":
            pointers = data[start + 10 : start + 8 + 2 * cells]
            edited[start + 8 : start + 8 + len(pointers)] = pointers
        scene.put_back({scene.path.name: bytes(edited)})
        with scene.raw() as database:
            assert contents(database)["entries"] == before["entries"], "the rows are all there"
        verdicts.append(bool(refused(scene.read())))

    assert any(verdicts)
    assert len(verdicts) >= 2


def test_an_index_out_of_order_ends_every_read(scene: TamperedStore) -> None:
    """Leaps from thread to thread must not go round for ever, nor a save try for ever."""
    data = scene.path.read_bytes()
    anchor = next(scene.places["state_dir"].rglob("anchor.slots"))
    anchored = anchor.read_bytes()
    for start in _index_pages(data):
        cells = int.from_bytes(data[start + 3 : start + 5], "big")
        places = [start + 8 + 2 * cell for cell in range(cells)]
        pointers = [data[place : place + 2] for place in places]
        for turn in range(1, cells):
            edited = bytearray(data)
            for place, pointer in zip(places, pointers[turn:] + pointers[:turn], strict=True):
                edited[place : place + 2] = pointer
            scene.put_back({scene.path.name: bytes(edited)})
            anchor.write_bytes(anchored)
            truth = {name: list(saved) for name, saved in scene.truth.items()}
            try:
                scene.read()
                with scene.open() as store:
                    scene.save(store, "alpha", {"turn": turn}, id="turn")
            except SealpointError:
                continue
            finally:
                scene.truth = truth


def test_a_row_far_from_its_thread_hides_nothing(scene: TamperedStore) -> None:
    """Rows of an unknown thread, or of no thread at all, change neither names nor states."""
    alpha = scene.thread_id("alpha")

    def edit(database: sqlite3.Connection) -> None:
        for thread in (b"\xff" * 16, b"\x01" * 16):
            database.execute(
                "INSERT INTO entries (thread, seq, header, seals, body) "
                "SELECT ?, seq, header, seals, body FROM entries WHERE thread = ?",
                (thread, alpha),
            )

    assert not refused(scene.after(edit))


@pytest.mark.parametrize("thread", [b"", b"short", b"\xff" * 17, "text", 7])
def test_a_thread_that_cannot_be_one_is_refused_by_the_list(
    scene: TamperedStore, thread: bytes | str | int
) -> None:
    """The list refuses; threads themselves stay readable."""

    def edit(database: sqlite3.Connection) -> None:
        database.execute(
            "INSERT INTO entries (thread, seq, header, seals) VALUES (?, 0, x'00', x'00')",
            (thread,),
        )

    assert refused(scene.after(edit)) == {"threads": Edited}


@pytest.mark.parametrize("seq", [0, 6])
def test_the_list_is_not_complete_without_first_or_newest_entry(
    scene: TamperedStore, seq: int
) -> None:
    """A thread that cannot be read any more is not passed over in silence."""
    thread = scene.thread_id("alpha")
    for sql in (
        "DELETE FROM entries WHERE thread = ? AND seq = ?",
        "UPDATE entries SET header = x'7b7d' WHERE thread = ? AND seq = ?",
    ):
        copy = scene.copy_of_the_store()
        scene.require_sound()
        scene.commit(partial(_execute, sql, (thread, seq)))
        assert refused(scene.read())["threads"] is ListIncomplete
        scene.put_back(copy)


def _execute(sql: str, parameters: tuple[Any, ...], database: sqlite3.Connection) -> None:
    database.execute(sql, parameters)


def test_a_renamed_genesis_gives_no_name(scene: TamperedStore) -> None:
    """The name in a genesis is a claim; the anchor's slot proves or disproves it."""

    def edit(database: sqlite3.Connection) -> None:
        database.execute(
            "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), 'alpha', 'gamma') AS BLOB) "
            "WHERE seq = 0"
        )

    found = refused(scene.after(edit))

    assert found["threads"] is ListIncomplete
    with scene.open() as store:
        assert store.threads(partial=True).names == ("beta",)
        assert not store.threads().complete
        with pytest.raises(UnknownThread):
            store.thread("gamma").load()


def test_a_second_thread_of_a_known_name_is_not_listed(scene: TamperedStore) -> None:
    """The owner's key wrote another genesis of that name; the anchor knows only the first."""
    insider = Insider(scene, "alpha")
    other = b"\x07" * 16
    worker = key_of(scene, "worker")
    header, body = insider.headers[0], insider.rows[0][2]
    record = sealed(msgspec.structs.replace(header, thread=other.hex()), body, worker)
    found = refused(scene.after(lambda database: put(database, other, 0, record)))

    assert not found
    with scene.raw() as database:
        assert len(entry_rows(database, other)) == 1


def test_a_thread_between_its_entries_and_the_anchor_is_listed(scene: TamperedStore) -> None:
    """A crash before the anchor followed: the name is reserved, the thread is there."""
    anchor = next(scene.places["state_dir"].rglob("anchor.slots"))
    with scene.open() as store:
        thread = store.thread("gamma")
        core = store._checkpoints.core
        core.anchor.advance = _fail  # type: ignore[method-assign, assignment] # the power goes
        with pytest.raises(AnchorUnavailable):
            thread.save({"note": "saved, not anchored"}, id="g-0")

    assert anchor.exists()
    with scene.open() as store:
        assert store.threads().names == ("alpha", "beta", "gamma")
        assert store.threads().complete
        assert store.thread("gamma").load().state == {"note": "saved, not anchored"}


def _fail(_slot: bytes, _expected: Position, _position: Position) -> Position:
    raise AnchorUnavailable("anchor: expected to write, found a power cut")
