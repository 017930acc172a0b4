# SPDX-License-Identifier: Apache-2.0
"""Other keys in the place of the trusted ones, and rosters of another time."""

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealpoint.api import admin
from sealpoint.errors import Edited, Forged, Forked, Misplaced, NotTrusted, RolledBack
from sealpoint.ledger import STORE_CHAIN, Kind, RosterBody, parse_body, parse_header
from sealpoint.signing import Identity, PrivateKey, Role, RosterDocument, RosterKey
from sealpoint.storage import Record
from tests.attacks.ledger.insider import Insider, key_of, put, replace
from tests.attacks.ledger.tampered_store import TamperedStore, entry_rows, refused
from tests.ledgers import SALT, sealed


def _document(scene: TamperedStore) -> RosterDocument:
    """The roster that is in the store."""
    with scene.raw() as database:
        header, _, body = entry_rows(database, STORE_CHAIN)[-1]
    parsed: RosterBody = parse_body(Kind.ROSTER, parse_header(header).body, body)
    return parsed.roster


def _with_key(scene: TamperedStore, stranger: PrivateKey) -> RosterDocument:
    """The same roster, where the worker has the attacker's key as well."""
    document = _document(scene)
    worker, *others = document.identities
    keys = (*worker.keys, RosterKey("ed25519", str(stranger.public)))
    return msgspec.structs.replace(
        document, identities=(msgspec.structs.replace(worker, keys=keys), *others)
    )


def _roster(
    scene: TamperedStore, document: RosterDocument, signer: PrivateKey, **changes: Any
) -> Record:
    """The next roster, signed by whatever key."""
    insider = Insider(scene, "", thread=STORE_CHAIN)
    body = RosterBody(salt=SALT, roster=document)
    return insider.entry(Kind.ROSTER, body, signer, fence=0, **changes)


def _by_stranger(_: TamperedStore) -> PrivateKey:
    return PrivateKey.draw("root", os.urandom)


def _by(name: str) -> Callable[[TamperedStore], PrivateKey]:
    return lambda scene: key_of(scene, name)


@pytest.mark.parametrize("who", [_by_stranger, _by("worker"), _by("operator")])
def test_a_roster_that_the_root_did_not_sign_is_refused(
    scene: TamperedStore, who: Callable[[TamperedStore], PrivateKey]
) -> None:
    """A stranger, and identities with every other right, enter a key of their own."""
    record = _roster(scene, _with_key(scene, PrivateKey.draw("x", os.urandom)), who(scene))
    found = refused(scene.after(lambda database: put(database, STORE_CHAIN, 1, record)))

    assert set(found.values()) == {NotTrusted}
    assert "open" in found


def test_a_roster_in_the_root_s_name_is_refused(scene: TamperedStore) -> None:
    """The header names the root's key, the signature is the attacker's."""
    stranger = PrivateKey.draw("root", os.urandom)
    root = key_of(scene, "root")
    record = _roster(scene, _with_key(scene, stranger), stranger, by=root.public.id.raw.hex())
    seals = record.seals.replace(
        stranger.public.id.raw.hex().encode(), root.public.id.raw.hex().encode()
    )
    found = refused(
        scene.after(
            lambda database: put(
                database, STORE_CHAIN, 1, msgspec.structs.replace(record, seals=seals)
            )
        )
    )

    assert set(found.values()) == {Forged}


def test_an_edited_key_in_the_roster_is_refused(scene: TamperedStore) -> None:
    """The row of a public key replaced: keys come only from what the root signed."""
    worker, stranger = key_of(scene, "worker"), PrivateKey.draw("worker", os.urandom)

    def edit(database: sqlite3.Connection) -> None:
        database.execute(
            "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) "
            "WHERE thread = zeroblob(16)",
            (str(worker.public), str(stranger.public)),
        )

    found = refused(scene.after(edit))

    assert set(found.values()) == {Edited}
    assert "open" in found


def test_a_whole_store_of_another_root_is_refused(scene: TamperedStore, tmp_path: Path) -> None:
    """The store's id is copied, keys and roster are the attacker's own."""
    other = TamperedStore.make(tmp_path / "attacker")
    mine = Insider(scene, "", thread=STORE_CHAIN).headers[0]
    theirs = Insider(other, "", thread=STORE_CHAIN)
    root = key_of(other, "root")
    body = theirs.rows[0][2]
    header = msgspec.structs.replace(theirs.headers[0], store=mine.store)
    record = sealed(header, body, root)
    found = refused(scene.after(lambda database: replace(database, STORE_CHAIN, 0, record)))

    assert set(found.values()) == {NotTrusted}


def test_a_key_id_is_only_a_hint(scene: TamperedStore) -> None:
    """The attacker's signature under the id of the worker's key, and the other way round."""
    insider = Insider(scene, "alpha")
    worker, stranger = key_of(scene, "worker"), PrivateKey.draw("worker", os.urandom)
    record = insider.checkpoint(stranger, by=worker.public.id.raw.hex())
    ((_, signature),) = json.loads(record.seals)
    seal = json.dumps([[worker.public.id.raw.hex(), signature]], separators=(",", ":")).encode()
    made = msgspec.structs.replace(record, seals=seal)
    found = refused(scene.after(lambda database: put(database, insider.thread, 7, made)))

    assert found["load alpha"] is Forged


def _add_helper(scene: TamperedStore) -> None:
    admin(scene.url, **scene.places).keys.create("helper")
    rights: dict[str, Any] = {"roles": ["writer"], "namespaces": ["default"]}
    admin(scene.url, **scene.places).keys.add("helper", person="another", **rights)


def test_an_older_roster_is_refused(scene: TamperedStore) -> None:
    """The newest roster removed: the anchor has seen it."""
    _add_helper(scene)
    sql = "DELETE FROM entries WHERE thread = zeroblob(16) AND seq = 1"
    found = refused(scene.after(lambda database: database.execute(sql)))

    assert set(found.values()) == {RolledBack}


def test_another_genuine_roster_at_the_same_place_is_a_fork(scene: TamperedStore) -> None:
    """The root signed two rosters for one position; the anchor has seen the other."""
    record = _roster(
        scene, _with_key(scene, PrivateKey.draw("x", os.urandom)), key_of(scene, "root")
    )
    _add_helper(scene)
    found = refused(scene.after(lambda database: replace(database, STORE_CHAIN, 1, record)))

    assert set(found.values()) == {Forked}


def test_an_older_roster_is_refused_by_the_pin_alone(scene: TamperedStore, tmp_path: Path) -> None:
    """On a machine whose anchor knows nothing, the pin names the least roster."""
    older = scene.copy_of_the_store()
    _add_helper(scene)
    pin = admin(scene.url, **scene.places).trust.export_pin()
    there = TamperedStore(scene.folder)
    there.places = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    admin(there.url, **there.places).trust.import_pin(pin.encode())
    scene.put_back(older)

    admin(there.url, **there.places).keys.create("operator")
    with pytest.raises(RolledBack):
        admin(there.url, **there.places).anchor.adopt(reason="a new machine")


def test_a_roster_that_takes_rights_away_is_refused(scene: TamperedStore) -> None:
    """Even the root cannot drop a key silently: its entries would change their meaning."""
    document = _document(scene)
    fewer = msgspec.structs.replace(document, identities=document.identities[:1])
    record = _roster(scene, fewer, key_of(scene, "root"))
    found = refused(scene.after(lambda database: put(database, STORE_CHAIN, 1, record)))

    assert set(found.values()) == {NotTrusted}


def test_an_old_roster_signed_again_as_the_next_is_refused(scene: TamperedStore) -> None:
    """The bytes of roster 0 at position 1: genuine, and written for another place."""
    with scene.raw() as database:
        row = entry_rows(database, STORE_CHAIN)[0]
    found = refused(scene.after(lambda database: put(database, STORE_CHAIN, 1, Record(*row))))

    assert set(found.values()) == {Misplaced}


def test_an_entry_under_an_older_roster_is_refused(scene: TamperedStore) -> None:
    """Along a thread the roster never goes back, so an older set of rights cannot be revived."""
    _add_helper(scene)
    with scene.open() as store:
        scene.save(store, "alpha", {"note": "under the new roster"}, id="a-4")
    insider = Insider(scene, "alpha")
    record = insider.checkpoint(key_of(scene, "worker"), roster=0)
    found = refused(
        scene.after(lambda database: put(database, insider.thread, insider.next_seq, record))
    )

    assert insider.headers[-1].roster == 1
    assert found["load alpha"] is NotTrusted


def test_an_identity_counts_from_its_own_roster_on(scene: TamperedStore) -> None:
    """A key that a later roster adds did not write under an earlier one."""
    _add_helper(scene)
    insider = Insider(scene, "alpha")
    record = insider.checkpoint(key_of(scene, "helper"), roster=0)
    found = refused(scene.after(lambda database: put(database, insider.thread, 7, record)))

    assert found["load alpha"] is NotTrusted


def test_a_roster_cannot_give_one_key_to_two(scene: TamperedStore) -> None:
    """Two identities with one key: refused, even if the root signs it."""
    document = _document(scene)
    worker = document.identities[0]
    twin = Identity("twin", "another", (Role.APPROVER,), ("*",), worker.keys)
    both = msgspec.structs.replace(document, identities=(*document.identities, twin))
    record = _roster(scene, both, key_of(scene, "root"))
    found = refused(scene.after(lambda database: put(database, STORE_CHAIN, 1, record)))

    assert set(found.values()) == {NotTrusted}
