# SPDX-License-Identifier: Apache-2.0
"""Other formats, other types, other spellings of a signature."""

import hashlib
import hmac
import json
import sqlite3
from functools import partial

import msgspec
import pytest

from sealpoint.errors import Edited, Forged, NotTrusted
from sealpoint.ledger import STORE_CHAIN, Kind
from sealpoint.signing import Seal, encode_seals, pae
from sealpoint.storage import Record
from tests.attacks.ledger.insider import Insider, key_of, put, replace
from tests.attacks.ledger.tampered_store import TamperedStore, entry_rows, refused
from tests.ledgers import seals

_GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


def _after_appending(scene: TamperedStore, record: Record) -> str:
    thread = scene.thread_id("alpha")
    found = refused(scene.after(lambda database: put(database, thread, 7, record)))
    assert "load beta" not in found
    assert found["load alpha"] is found["history alpha"]
    return found["load alpha"].__name__


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"v":3', b'"v":0'),
        (b'"v":3', b'"v":1'),
        (b'"v":3', b'"v":4'),
        (b'"v":3', b'"v":"3"'),
        (b'"v":3,', b""),
        (b'"enc":"none"', b'"enc":"aes-256"'),
        (b'"enc":"none"', b'"enc":null'),
        (b'"enc":"none"', b'"enc":"none","alg":"none"'),
        (b'"kind":"checkpoint"', b'"kind":"Checkpoint"'),
    ],
)
def test_another_format_is_refused_even_when_the_owner_signs_it(
    scene: TamperedStore, old: bytes, new: bytes
) -> None:
    """The reader's own version decides how bytes are read; a row never does."""
    worker = key_of(scene, "worker")
    record = Insider(scene, "alpha").checkpoint(worker)
    header = record.header.replace(old, new)
    assert header != record.header

    made = Record(header, seals(header, worker), record.body, record.payload)
    assert _after_appending(scene, made) == "Edited"


@pytest.mark.parametrize("where", ["thread", "store chain"])
def test_an_earlier_format_is_refused_with_what_to_do(scene: TamperedStore, where: str) -> None:
    """Whether an old version wrote it or somebody made it look so, the hint says what to do."""
    thread = scene.thread_id("alpha") if where == "thread" else STORE_CHAIN

    def edit(database: sqlite3.Connection) -> None:
        for seq, row in enumerate(entry_rows(database, thread)):
            header = row[0].replace(b'"v":3', b'"v":2')
            sql = "UPDATE entries SET header = ? WHERE thread = ? AND seq = ?"
            database.execute(sql, (header, thread, seq))

    found = scene.after(edit)
    error = found["load alpha"]

    assert isinstance(error, Edited)
    assert "found an earlier one, which this release does not read" in str(error)
    assert "sealpoint init" in error.hint
    assert "restore a good copy" in error.hint


def test_a_seal_cannot_choose_its_algorithm(scene: TamperedStore) -> None:
    """A code under a public value, a plain hash, or a field that names another algorithm."""
    worker = key_of(scene, "worker")
    record = Insider(scene, "alpha").checkpoint(worker)
    message = pae(b"application/vnd.sealpoint.entry.v1+json", record.header)
    code = hmac.digest(worker.public.raw, message, "sha512")
    for seal in (
        encode_seals([Seal(worker.public.id, code)]),
        encode_seals([Seal(worker.public.id, hashlib.sha512(message).digest())]),
        encode_seals([Seal(worker.public.id, b"")]),
        encode_seals([Seal(worker.public.id, bytes(64))]),
        record.seals.replace(b"]]", b',"none"]]'),
        b'[{"key":"' + worker.public.id.raw.hex().encode() + b'","alg":"none"}]',
    ):
        made = msgspec.structs.replace(record, seals=seal)
        copy = scene.copy_of_the_store()
        assert _after_appending(scene, made) in {"Forged", "Edited"}
        scene.put_back(copy)


@pytest.mark.parametrize("payload_type", ["root", "statement", "manifest", "bundle", "entry.v2"])
def test_a_signature_over_another_type_is_refused(scene: TamperedStore, payload_type: str) -> None:
    """The same key, the same bytes, another purpose."""
    worker = key_of(scene, "worker")
    record = Insider(scene, "alpha").checkpoint(worker)
    name = payload_type if "." in payload_type else f"{payload_type}.v1"
    other = seals(
        record.header, worker, payload_type=f"application/vnd.sealpoint.{name}+json".encode()
    )

    assert _after_appending(scene, msgspec.structs.replace(record, seals=other)) == "Forged"


def test_a_signature_over_the_bare_bytes_is_refused(scene: TamperedStore) -> None:
    """What another protocol made the key sign is no entry."""
    worker = key_of(scene, "worker")
    record = Insider(scene, "alpha").checkpoint(worker)
    bare = encode_seals([Seal(worker.public.id, worker.sign(record.header))])

    assert _after_appending(scene, msgspec.structs.replace(record, seals=bare)) == "Forged"


def test_an_entry_of_the_store_chain_is_no_entry_of_a_thread(scene: TamperedStore) -> None:
    """A roster that the root signed, in the place of a thread's entry."""
    with scene.raw() as database:
        row = entry_rows(database, STORE_CHAIN)[0]

    assert _after_appending(scene, Record(*row)) == "NotTrusted"


def test_an_entry_of_a_thread_is_no_entry_of_the_store_chain(scene: TamperedStore) -> None:
    """A genuine entry of a thread as the next roster."""
    with scene.raw() as database:
        row = entry_rows(database, scene.thread_id("alpha"))[2]
    found = refused(scene.after(lambda database: put(database, STORE_CHAIN, 1, Record(*row))))

    assert set(found.values()) == {found["open"]}
    assert found["open"].code == "misplaced"


@pytest.mark.parametrize("kind", [Kind.GENESIS, Kind.RESUME, Kind.ADOPT])
def test_a_body_of_another_kind_is_refused(scene: TamperedStore, kind: Kind) -> None:
    """The owner signs a header of one kind over the body of another."""
    insider = Insider(scene, "alpha")
    worker = key_of(scene, "worker")
    checkpoint = insider.rows[-1][2]
    record = insider.entry(kind, checkpoint, worker)

    assert _after_appending(scene, record) in {"Edited", "Misplaced", "NotTrusted"}


def test_a_checkpoint_with_the_body_of_a_resume_is_refused(scene: TamperedStore) -> None:
    """The other way round: the read that needs the body refuses it."""
    insider = Insider(scene, "alpha")
    record = insider.entry(Kind.CHECKPOINT, insider.rows[1][2], key_of(scene, "worker"))

    assert _after_appending(scene, record) == "Edited"


def test_a_second_spelling_of_a_signature_is_refused(scene: TamperedStore) -> None:
    """The scalar plus the order of the group fits the same equation, and is no signature."""
    insider = Insider(scene, "alpha")
    thread, (header, stored, body) = insider.thread, insider.rows[-1]
    ((key, signature),) = json.loads(stored)
    raw = bytes.fromhex(signature)
    scalar = int.from_bytes(raw[32:], "little") + _GROUP_ORDER
    other = raw[:32] + scalar.to_bytes(32, "little")
    seal = json.dumps([[key, other.hex()]], separators=(",", ":")).encode()

    def edit(database: sqlite3.Connection) -> None:
        database.execute(
            "UPDATE entries SET seals = ? WHERE thread = ? AND header = ?", (seal, thread, header)
        )

    found = refused(scene.after(edit))

    assert body
    assert found["load alpha"] is Forged


def test_other_spellings_of_the_seals_are_refused(scene: TamperedStore) -> None:
    """Capital digits, spaces, and the same seal twice: one spelling only."""
    insider = Insider(scene, "alpha")
    header, stored, body = insider.rows[-1]
    (payload,) = _payload(scene, insider.thread)
    for seal in (
        stored.upper(),
        stored.replace(b",", b", "),
        stored[:-1] + b"," + stored[1:],
        b" " + stored,
        stored + b"\n",
        stored.replace(b'"', b'"\\u0030', 1),
    ):
        record = Record(header, seal, body, payload)
        copy = scene.copy_of_the_store()
        scene.commit(partial(replace, thread=insider.thread, seq=6, record=record))
        assert refused(scene.read())["load alpha"] is Edited
        scene.put_back(copy)
    scene.require_sound()


def _payload(scene: TamperedStore, thread: bytes) -> tuple[bytes]:
    with scene.raw() as database:
        sql = "SELECT payload FROM entries WHERE thread = ? AND seq = 6"
        row: tuple[bytes] = database.execute(sql, (thread,)).fetchone()
    return row


def test_a_new_kind_is_not_read_past(scene: TamperedStore) -> None:
    """An entry that this version does not judge stops it, instead of being skipped."""
    insider = Insider(scene, "alpha")
    operator = key_of(scene, "operator")
    for kind in (Kind.RESULTS, Kind.DELETE):
        record = insider.entry(kind, insider.rows[1][2], operator)
        copy = scene.copy_of_the_store()
        scene.commit(partial(put, thread=insider.thread, seq=7, record=record))
        assert refused(scene.read())["load alpha"] is NotTrusted
        scene.put_back(copy)
