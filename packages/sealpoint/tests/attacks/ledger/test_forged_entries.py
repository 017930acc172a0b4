# SPDX-License-Identifier: Apache-2.0
"""Entries that nobody signed, and entries that the wrong key signed."""

import os
import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from sealpoint.api import admin
from sealpoint.errors import Edited, Forged, Misplaced, NotTrusted, SealpointError
from sealpoint.ledger import AdoptBody, GenesisBody, Kind, ResumeBody
from sealpoint.signing import PrivateKey
from sealpoint.storage import Record
from tests.attacks.ledger.insider import Insider, key_of, put
from tests.attacks.ledger.tampered_store import WORLD, TamperedStore, refused
from tests.ledgers import SALT


def _seals(record: Record, seals: bytes) -> Record:
    return msgspec.structs.replace(record, seals=seals)


def _appended(scene: TamperedStore, record: Record, seq: int) -> dict[str, type[SealpointError]]:
    thread = scene.thread_id("alpha")
    return refused(scene.after(lambda database: put(database, thread, seq, record)))


@pytest.mark.parametrize("seals", [b"", b"[]", b"null", b'[["",""]]', b"{}"])
def test_an_entry_without_a_signature_is_refused(scene: TamperedStore, seals: bytes) -> None:
    """There is no unsigned form of an entry, from whatever time."""
    insider = Insider(scene, "alpha")
    record = _seals(insider.checkpoint(key_of(scene, "worker")), seals)
    found = _appended(scene, record, insider.next_seq)

    assert found["load alpha"] is Edited
    assert found["history alpha"] is Edited
    assert "load beta" not in found


def test_an_entry_with_an_older_entry_s_signature_is_refused(scene: TamperedStore) -> None:
    """A genuine signature of the right key, over another header."""
    insider = Insider(scene, "alpha")
    record = _seals(insider.checkpoint(key_of(scene, "worker")), insider.rows[-1][1])

    assert _appended(scene, record, insider.next_seq)["load alpha"] is Forged


def test_an_entry_by_a_key_that_nobody_knows_is_refused(scene: TamperedStore) -> None:
    """Signed, and well, by a key of the attacker's own."""
    insider = Insider(scene, "alpha")
    record = insider.checkpoint(PrivateKey.draw("worker", os.urandom))

    assert _appended(scene, record, insider.next_seq)["load alpha"] is NotTrusted


def test_an_entry_by_a_stranger_in_the_worker_s_name_is_refused(scene: TamperedStore) -> None:
    """The header names the worker's key, the signature is the attacker's."""
    insider = Insider(scene, "alpha")
    stranger, worker = PrivateKey.draw("worker", os.urandom), key_of(scene, "worker")
    record = insider.checkpoint(stranger, by=worker.public.id.raw.hex())

    assert _appended(scene, record, insider.next_seq)["load alpha"] is Forged


def _helper(scene: TamperedStore, *namespaces: str) -> PrivateKey:
    """An identity of the roster who writes, in some namespaces."""
    admin(scene.url, **scene.places).keys.create("helper")
    rights: dict[str, Any] = {"roles": ["writer"], "namespaces": namespaces}
    admin(scene.url, **scene.places).keys.add("helper", person="another", **rights)
    return key_of(scene, "helper")


def _by_operator(scene: TamperedStore) -> PrivateKey:
    return key_of(scene, "operator")


def _by_root(scene: TamperedStore) -> PrivateKey:
    return key_of(scene, "root")


def _by_writer_elsewhere(scene: TamperedStore) -> PrivateKey:
    return _helper(scene, "elsewhere")


def _by_writer_here(scene: TamperedStore) -> PrivateKey:
    return _helper(scene, "default")


@pytest.mark.parametrize("who", [_by_operator, _by_root, _by_writer_elsewhere, _by_writer_here])
@pytest.mark.parametrize("kind", [Kind.CHECKPOINT, Kind.RESUME])
def test_a_valid_key_without_the_right_is_refused(
    scene: TamperedStore, who: Callable[[TamperedStore], PrivateKey], kind: Kind
) -> None:
    """The operator, the root, a writer of another namespace, a writer who is not the owner."""
    signer = who(scene)
    insider = Insider(scene, "alpha")
    roster = 1 if signer.name == "helper" else 0
    if kind is Kind.CHECKPOINT:
        record = insider.checkpoint(signer, roster=roster)
    else:
        body = ResumeBody(salt=SALT, owner="worker", basis=6)
        record = insider.entry(kind, body, signer, roster=roster)
    found = _appended(scene, record, insider.next_seq)

    assert found["load alpha"] is NotTrusted
    assert found["history alpha"] is NotTrusted
    assert "load beta" not in found


# A writer may ask, and anybody may relay: what counts is the statement or attestation inside.
_RELAYED = {Kind.REQUEST, Kind.APPROVAL, Kind.DENIAL, Kind.EXPIRY, Kind.BREAK_GLASS}


@pytest.mark.parametrize("kind", sorted(_RELAYED))
def test_an_entry_that_relays_nonsense_is_found(scene: TamperedStore, kind: Kind) -> None:
    """It changes no state and stops nobody; a full verification tells of it."""
    insider = Insider(scene, "alpha")
    record = insider.entry(kind, AdoptBody(salt=SALT, reason="nonsense"), key_of(scene, "worker"))
    scene.commit(lambda database: put(database, insider.thread, insider.next_seq, record))

    assert not refused(scene.read())
    with scene.open() as store:
        (finding,) = store.verify().findings
        assert (finding.code, finding.refuses) == ("unjustified", False)
        assert store.thread("alpha").resume(world=WORLD).state


# What the owner of a thread writes in its session, or at any time.
_OWNED = {Kind.CHECKPOINT, Kind.RESULTS, Kind.HANDOFF, Kind.PRUNE, Kind.DELETE}


@pytest.mark.parametrize("kind", sorted(_OWNED))
def test_nonsense_of_the_owner_is_refused(scene: TamperedStore, kind: Kind) -> None:
    """Under the kinds that are its to write, a body of another kind is none."""
    insider = Insider(scene, "alpha")
    record = insider.entry(kind, AdoptBody(salt=SALT, reason="nonsense"), key_of(scene, "worker"))
    found = _appended(scene, record, insider.next_seq)

    assert found
    assert {*found.values()} == {Edited}


@pytest.mark.parametrize("kind", sorted(set(Kind) - _OWNED - _RELAYED))
def test_the_worker_cannot_write_what_the_table_does_not_give_it(
    scene: TamperedStore, kind: Kind
) -> None:
    """The owner's own key, under every kind that is not its to write here and now."""
    insider = Insider(scene, "alpha")
    bodies = {
        Kind.GENESIS: GenesisBody(salt=SALT, name="alpha", owner="worker"),
        Kind.RESUME: ResumeBody(salt=SALT, owner="somebody else", basis=6),
        Kind.ADOPT: AdoptBody(salt=SALT, reason="mine now"),
    }
    body = bodies.get(kind, AdoptBody(salt=SALT, reason="whatever"))
    record = insider.entry(kind, body, key_of(scene, "worker"))
    found = _appended(scene, record, insider.next_seq)

    assert found["load alpha"] is (Misplaced if kind is Kind.GENESIS else NotTrusted)


def test_two_signatures_are_not_better_than_one(scene: TamperedStore) -> None:
    """The owner's signature with a stranger's beside it is not what the owner wrote."""
    insider = Insider(scene, "alpha")
    worker, stranger = key_of(scene, "worker"), PrivateKey.draw("stranger", os.urandom)
    record = insider.checkpoint(worker)
    other = insider.checkpoint(stranger, by=worker.public.id.raw.hex())
    both = record.seals[:-1] + b"," + other.seals[1:]

    assert _appended(scene, _seals(record, both), insider.next_seq)["load alpha"] is Forged


def test_the_control_entry_would_have_been_believed(scene: TamperedStore) -> None:
    """Signed by the owner's key in its own session, the same entry is the newest checkpoint."""
    insider = Insider(scene, "alpha")
    record = insider.checkpoint(key_of(scene, "worker"))

    def edit(database: sqlite3.Connection) -> None:
        put(database, insider.thread, insider.next_seq, record)

    scene.commit(edit)
    with scene.open() as store:
        assert store.thread("alpha").load().state == {"note": "bought"}
