# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that a pause held back: it exists because of the pause, and never gets past it."""

import hashlib
import sqlite3

import pytest

from sealpoint.errors import NotTrusted, ResumeRefused, UsageError
from sealpoint.ledger import CheckpointBody, Kind
from sealpoint.store._append_entries import EntryDraft, append
from tests.attacks.ledger.insider import Insider, key_of, put
from tests.attacks.ledger.tampered_store import WORLD, TamperedStore, refused
from tests.ledgers import SALT

_BOUGHT = {"note": "bought"}


def _pause(scene: TamperedStore) -> None:
    with scene.open(identity="operator") as store:
        store.thread("alpha").pause("a look")


def _unpause(scene: TamperedStore) -> None:
    with scene.open(identity="operator") as store:
        store.thread("alpha").unpause("all is well")


def _forge(scene: TamperedStore, kind: Kind, signer: str = "worker") -> Insider:
    """Put an entry behind the newest one, signed by a key of the scene."""
    insider, worker = Insider(scene, "alpha"), key_of(scene, signer)
    record = insider.held(worker) if kind is Kind.HELD else insider.checkpoint(worker)

    def edit(database: sqlite3.Connection) -> None:
        put(database, insider.thread, insider.next_seq, record)

    scene.commit(edit)
    return insider


def test_a_checkpoint_held_back_by_no_pause_is_refused(scene: TamperedStore) -> None:
    """The owner's key in its own session makes no such entry while the thread runs."""
    scene.require_sound()
    _forge(scene, Kind.HELD)
    found = refused(scene.read())

    assert found["load alpha"] is NotTrusted
    assert found["history alpha"] is NotTrusted
    assert "load beta" not in found


def test_a_pause_that_has_ended_holds_nothing_back(scene: TamperedStore) -> None:
    """That there was one once is no leave to go on as if there still were."""
    _pause(scene)
    _unpause(scene)
    scene.require_sound()
    _forge(scene, Kind.HELD)

    assert refused(scene.read())["load alpha"] is NotTrusted


@pytest.mark.parametrize("signer", ["operator", "root"])
def test_nobody_but_the_owner_holds_back(scene: TamperedStore, signer: str) -> None:
    """Whoever may pause a thread writes no state of it."""
    _pause(scene)
    _forge(scene, Kind.HELD, signer)

    assert refused(scene.read())["load alpha"] is NotTrusted


def test_a_checkpoint_is_not_saved_while_paused(scene: TamperedStore) -> None:
    """Under its ordinary kind the same state stops every reader: it would run without a word."""
    _pause(scene)
    _forge(scene, Kind.CHECKPOINT)

    assert refused(scene.read())["load alpha"] is NotTrusted


def test_what_a_pause_holds_back_is_read_and_not_resumed(scene: TamperedStore) -> None:
    """The control: the same entry while paused is genuine, and nobody goes on from it before."""
    _pause(scene)
    _forge(scene, Kind.HELD)
    with scene.open() as store:
        thread = store.thread("alpha")
        loaded = thread.load()
        with pytest.raises(ResumeRefused, match="paused"):
            thread.resume(world=WORLD)

    assert loaded.state == _BOUGHT
    assert loaded.ref.held
    _unpause(scene)
    with scene.open() as store:
        resumed = store.thread("alpha").resume(world=WORLD, deliberate="it was held back")
        assert resumed.state == _BOUGHT
        assert store.verify().ok


def _draft(world: str | None = None) -> EntryDraft:
    payload = b"\x81\xa4note\xa6bought"
    root = hashlib.sha256(payload).hexdigest()
    return EntryDraft(
        Kind.HELD, CheckpointBody(salt=SALT, id="held", root=root, world=world), payload
    )


def test_our_writer_does_not_sign_what_no_pause_holds_back(scene: TamperedStore) -> None:
    """The writer refuses before it signs, so that no bug of a caller leaves such an entry."""
    with scene.open() as store:
        thread = store.thread("alpha")
        thread.load()
        with pytest.raises(UsageError, match="held back only while the thread is paused"):
            append(thread._state.chain, _draft())
    scene.require_sound()


def test_our_writer_signs_what_a_pause_holds_back(scene: TamperedStore) -> None:
    """The control: while the thread is paused the same call writes it, in the same session."""
    with scene.open() as store:
        thread = store.thread("alpha")
        thread.load()
        _pause(scene)
        thread.load()
        entry = append(thread._state.chain, _draft(thread._state.chain.tip().fence.world))
        loaded = thread.load()

    assert entry.header.kind is Kind.HELD
    assert loaded.state == _BOUGHT
