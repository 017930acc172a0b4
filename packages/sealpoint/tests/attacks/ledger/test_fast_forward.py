# SPDX-License-Identifier: Apache-2.0
"""Positions far ahead, planted to block whoever comes later."""

import sqlite3
from datetime import UTC, datetime
from functools import partial

import pytest

from sealpoint.errors import Edited, Misplaced, Missing, SealpointError, Tampered
from sealpoint.storage import Record
from tests.attacks.ledger.insider import Insider, key_of, put
from tests.attacks.ledger.tampered_store import WORLD, TamperedStore, refused
from tests.ledgers import seals

_FAR = [8, 1000, 2**31, 2**53, 2**62, 2**63 - 1]


@pytest.mark.parametrize("seq", _FAR)
def test_a_genuine_entry_far_ahead_is_refused(scene: TamperedStore, seq: int) -> None:
    """The owner's key signed a header for a position that does not follow."""
    insider = Insider(scene, "alpha")
    record = insider.checkpoint(key_of(scene, "worker"), seq=7)
    found = refused(scene.after(lambda database: put(database, insider.thread, seq, record)))

    assert found["load alpha"] is Missing
    assert "load beta" not in found


@pytest.mark.parametrize("seq", [2**53, 2**63 - 1, 2**64, -1])
def test_a_header_with_a_number_out_of_range_is_refused(scene: TamperedStore, seq: int) -> None:
    """At the right place, with a position that no chain reaches."""
    insider = Insider(scene, "alpha")
    worker = key_of(scene, "worker")
    record = insider.checkpoint(worker)
    header = record.header.replace(b'"seq":7', b'"seq":%d' % seq)
    signed = Record(header, seals(header, worker), record.body, record.payload)
    found = refused(scene.after(lambda database: put(database, insider.thread, 7, signed)))

    assert found["load alpha"] is Edited


def test_rows_far_ahead_do_not_block_other_threads(scene: TamperedStore) -> None:
    """The attacked thread is refused until the rows are gone; then saves go on as before."""
    thread = scene.thread_id("alpha")
    scene.require_sound()

    def edit(database: sqlite3.Connection) -> None:
        for seq in _FAR:
            put(database, thread, seq, Record(b"", b"", b""))

    scene.commit(edit)
    with scene.open() as store:
        with pytest.raises(Tampered):
            store.thread("alpha").save({"note": "blocked"}, world=WORLD)
        scene.save(store, "beta", {"note": "not blocked"}, id="b-4")
    scene.commit(lambda database: database.execute("DELETE FROM entries WHERE header = x''"))
    with scene.open() as store:
        scene.save(store, "alpha", {"note": "free again"}, id="a-4")
    assert not refused(scene.read())


def test_an_entry_from_the_far_future_does_not_stop_time(scene: TamperedStore) -> None:
    """The owner's key with a clock gone wild: later saves still succeed, and say so."""
    insider = Insider(scene, "alpha")
    record = insider.checkpoint(
        key_of(scene, "worker"), at=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    )
    scene.commit(lambda database: put(database, insider.thread, insider.next_seq, record))
    with scene.open() as store:
        ref = store.thread("alpha").save({"note": "after the end"}, world=WORLD)
        assert store.thread("alpha").load().state == {"note": "after the end"}
        assert ref.time.year == 9999
        report = store.verify()

    assert report.ok
    assert {finding.code for finding in report.findings} == {"time"}


def test_an_unfitting_fence_or_roster_is_refused(scene: TamperedStore) -> None:
    """Sessions and rosters of the future, signed by the owner."""
    insider = Insider(scene, "alpha")
    worker = key_of(scene, "worker")
    for changes in ({"fence": 7}, {"fence": 2**52}, {"roster": 9}, {"epoch": 3}, {"gen": 1}):
        record = insider.checkpoint(worker, **changes)
        copy = scene.copy_of_the_store()
        scene.commit(partial(put, thread=insider.thread, seq=7, record=record))
        error = refused(scene.read())["load alpha"]
        scene.put_back(copy)

        assert issubclass(error, SealpointError)
        assert (error is Misplaced) == ("epoch" in changes or "gen" in changes)
