# SPDX-License-Identifier: Apache-2.0
"""Rows made to exhaust a reader, or to be read in two ways."""

import hashlib
import json
import sqlite3
import tracemalloc
from functools import partial
from typing import Any

import pytest

from sealpoint.errors import Edited, NotTrusted, SealpointError
from sealpoint.ledger import STORE_CHAIN, Kind
from sealpoint.storage import Record
from tests.attacks.ledger.insider import Insider, key_of, put
from tests.attacks.ledger.tampered_store import WORLD, TamperedStore, refused
from tests.cpu_time import CpuTime
from tests.ledgers import seals

_MIB = 1024 * 1024
_DEEP = 100_000


def _json(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


_HUGE = {
    "a gigantic header": ("header", "zeroblob(40000000)"),
    "gigantic seals": ("seals", "zeroblob(40000000)"),
    "a gigantic body": ("body", "zeroblob(40000000)"),
    "a gigantic payload": ("payload", "zeroblob(40000000)"),
    "a gigantic text": ("header", "CAST(zeroblob(20000000) AS TEXT)"),
    "a number": ("header", "9223372036854775807"),
    "a fraction": ("seals", "1e308"),
}


@pytest.mark.parametrize("what", _HUGE)
def test_a_gigantic_value_is_refused_before_it_is_read(scene: TamperedStore, what: str) -> None:
    """SQLite tells type and size; the bytes never reach this process."""
    column, value = _HUGE[what]
    thread = scene.thread_id("alpha")
    scene.require_sound()
    with scene.raw() as database:
        sql = f"UPDATE entries SET {column} = {value} WHERE thread = ? AND seq = 6"  # noqa: S608
        assert database.execute(sql, (thread,)).rowcount == 1
    tracemalloc.start()
    with CpuTime() as cpu_time:
        found = refused(scene.read())

    took_s = cpu_time.seconds
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert found["load alpha"] is Edited
    assert peak_bytes < 16 * _MIB
    assert took_s < 10


def test_a_gigantic_blob_is_refused_before_it_is_read(scene: TamperedStore) -> None:
    """The world's blob replaced by 40 MB of zeros."""
    scene.require_sound()
    with scene.raw() as database:
        edit = "UPDATE blobs SET data = zeroblob(40000000) WHERE thread = ?"
        database.execute(edit, (scene.thread_id("alpha"),))
    tracemalloc.start()
    found = refused(scene.read())
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert found["load alpha"] is Edited
    assert peak_bytes < 16 * _MIB


def test_a_gigantic_policy_is_refused_before_it_is_read(scene: TamperedStore) -> None:
    """The policy's blob replaced by 40 MB of zeros: nothing is resumed, what is only read is."""
    with scene.raw() as database:
        edit = "UPDATE blobs SET data = zeroblob(40000000) WHERE thread = ?"
        database.execute(edit, (STORE_CHAIN,))
    tracemalloc.start()
    found = refused(scene.read())
    with scene.open() as store, pytest.raises(Edited):
        store.thread("alpha").resume(world={**WORLD, "more": True})
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert not found
    assert peak_bytes < 16 * _MIB


_SEALS = {
    "a million seals": b"[" + b'["00","00"],' * 1_000_000 + b'["00","00"]]',
    "seventeen seals": _json([[f"{place:064x}", "00" * 64] for place in range(17)]),
    "deep lists": b"[" * 4000 + b"]" * 4000,
    "deeper lists": b"[" * _DEEP + b"]" * _DEEP,
    "numbers": b"[[1,2]]",
    "a gigantic number": b"[" + b"9" * 5000 + b"]",
    "no list": b'{"key":"signature"}',
    "half a pair": b'[["00"]]',
    "lone surrogates": b'[["\\ud800","\\udfff"]]',
    "not UTF-8": b'[["\xff\xfe","\xff"]]',
    "zero bytes": bytes(64),
}


@pytest.mark.parametrize("what", _SEALS)
def test_hostile_seals_are_refused_quickly(scene: TamperedStore, what: str) -> None:
    """Many, deep, gigantic or malformed seals on the newest entry."""
    thread = scene.thread_id("alpha")
    sql = "UPDATE entries SET seals = ? WHERE thread = ? AND seq = 6"
    with CpuTime() as cpu_time:
        found = refused(scene.after(lambda database: database.execute(sql, (_SEALS[what], thread))))

        assert issubclass(found["load alpha"], SealpointError)
        assert found["load alpha"].code in {"edited", "forged"}

    assert cpu_time.seconds < 10


def _spellings(header: bytes) -> dict[str, bytes]:
    """The same header, or nearly, in other bytes."""
    fields = json.loads(header)
    backwards = dict(reversed(fields.items()))
    return {
        "spaces": json.dumps(fields).encode(),
        "a space at the end": header + b" ",
        "a line at the end": header + b"\n",
        "another order": _json(backwards),
        "a key twice": header[:-1] + b',"seq":7}',
        "a key twice, first": b'{"seq":3,' + header[1:],
        "a fraction": header.replace(b'"seq":7', b'"seq":7.0'),
        "an exponent": header.replace(b'"seq":7', b'"seq":7e0'),
        "a leading zero": header.replace(b'"epoch":0', b'"epoch":00'),
        "minus zero": header.replace(b'"epoch":0', b'"epoch":-0'),
        "NaN": header.replace(b'"epoch":0', b'"epoch":NaN'),
        "infinity": header.replace(b'"epoch":0', b'"epoch":Infinity'),
        "text": header.replace(b'"seq":7', b'"seq":"7"'),
        "true": header.replace(b'"gen":0', b'"gen":false'),
        "an escape in a key": header.replace(b'"seq"', b'"s\\u0065q"'),
        "an escape in a value": header.replace(b'"ns":"default"', b'"ns":"d\\u0065fault"'),
        "a byte order mark": b"\xef\xbb\xbf" + header,
        "UTF-16": header.decode().encode("utf-16"),
        "another zone": header.replace(b'Z","by"', b'+00:00","by"'),
        "a comment": header + b"// and so on",
        "two documents": header + header,
        "a list": b"[" + header + b"]",
        "deep": header[:-1] + b',"x":' + b"[" * 1500 + b"]" * 1500 + b"}",
        "capital digits": header.replace(fields["prev"].encode(), fields["prev"].upper().encode()),
    }


def test_another_spelling_of_a_header_is_refused_even_when_the_owner_signs_it(
    scene: TamperedStore,
) -> None:
    """What one parser reads in one way and another in another way is no entry."""
    insider = Insider(scene, "alpha")
    worker = key_of(scene, "worker")
    record = insider.checkpoint(worker)
    for what, header in _spellings(record.header).items():
        assert header != record.header, what
        made = Record(header, seals(header, worker), record.body, record.payload)
        with scene.undone():
            scene.commit(partial(put, thread=insider.thread, seq=7, record=made))
            error = refused(scene.read())["load alpha"]

        assert error.code in {"edited", "misplaced"}, what


def test_another_spelling_of_a_stored_header_is_refused(scene: TamperedStore) -> None:
    """The attacker without a key writes the same meaning in other bytes over a genuine entry."""
    insider = Insider(scene, "alpha")
    header = insider.rows[-1][0]
    sql = "UPDATE entries SET header = ? WHERE thread = ? AND seq = 6"
    for what, spelled in _spellings(header).items():
        if spelled == header:
            continue

        def edit(database: sqlite3.Connection, of: bytes = spelled) -> None:
            database.execute(sql, (of, insider.thread))

        scene.commit(edit)
        found = refused(scene.read())
        scene.commit(lambda database: database.execute(sql, (header, insider.thread)))
        assert issubclass(found["load alpha"], SealpointError), what
    scene.require_sound()


def test_another_spelling_of_a_body_is_refused_even_when_the_owner_signs_it(
    scene: TamperedStore,
) -> None:
    """Keys twice, other orders, unknown fields, deep metadata: the body has one spelling too."""
    insider = Insider(scene, "alpha")
    worker = key_of(scene, "worker")
    body = insider.rows[-1][2]
    fields = json.loads(body)
    for what, spelled in {
        "spaces": json.dumps(fields).encode(),
        "another order": _json(dict(reversed(fields.items()))),
        "a key twice": body[:-1] + b',"id":"other"}',
        "an unknown field": body[:-1] + b',"more":1}',
        "a default spelled out": body[:-1] + b',"parent":null}',
        "deep metadata": body.replace(b'"step":3', b'"step":' + b"[" * 5000 + b"]" * 5000),
        "NaN": body.replace(b'"step":3', b'"step":NaN'),
        "a number that is infinite": body.replace(b'"step":3', b'"step":1e999'),
        "a list": b"[]",
        "nothing": b"",
    }.items():
        record = insider.entry(insider.headers[-1].kind, spelled, worker)
        with scene.undone():
            scene.commit(partial(put, thread=insider.thread, seq=7, record=record))
            found = refused(scene.read())
        assert found["load alpha"] is Edited, what
        assert found["history alpha"] is Edited, what


def test_a_digest_that_is_none_is_refused(scene: TamperedStore) -> None:
    """The owner signs a body whose digests are not even hexadecimal: no foreign exception."""
    insider = Insider(scene, "alpha")
    worker = key_of(scene, "worker")
    fields = json.loads(insider.rows[-1][2])
    wrong: list[dict[str, Any]] = [
        *({"root": text} for text in ("not hexadecimal", "", "00", "0" * 63 + " ", "A" * 64)),
        *({"world": text} for text in ("zz", "00" * 31, "0 " * 32)),
        {"fresh": ["zz"]},
        {"fresh_list": "zz"},
    ]
    for changes in wrong:
        record = insider.entry(Kind.CHECKPOINT, _json({**fields, **changes}), worker)
        with scene.undone():
            scene.commit(partial(put, thread=insider.thread, seq=7, record=record))
            found = refused(scene.read())
            with scene.open() as store:
                assert not store.verify().ok
                with pytest.raises(Edited):
                    store.thread("alpha").save({"note": "again"}, id="new", world=WORLD)
        assert found["load alpha"] is Edited, changes
        assert found["history alpha"] is Edited, changes


@pytest.mark.parametrize("data", [b"", b"[]", b"no JSON", b"[" * 5000, b"\xff", b'{"a":1e999}'])
def test_a_world_that_is_none_is_refused(scene: TamperedStore, data: bytes) -> None:
    """The owner signs the digest of a blob that is no JSON object, and not that of its session."""
    insider = Insider(scene, "alpha")
    fields = json.loads(insider.rows[-1][2])
    name = hashlib.sha256(data).digest()
    record = insider.entry(
        Kind.CHECKPOINT, _json({**fields, "world": name.hex()}), key_of(scene, "worker")
    )
    with scene.raw() as database:
        sql = "SELECT payload FROM entries WHERE thread = ? AND seq = 6"
        (payload,) = database.execute(sql, (insider.thread,)).fetchone()

    def edit(database: sqlite3.Connection) -> None:
        whole = Record(record.header, record.seals, record.body, payload)
        put(database, insider.thread, 7, whole)
        database.execute(
            "INSERT INTO blobs (thread, digest, data) VALUES (?, ?, ?)",
            (insider.thread, name, data),
        )

    scene.commit(edit)
    with scene.open() as store, pytest.raises(NotTrusted):
        store.thread("alpha").load()
