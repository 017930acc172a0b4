# SPDX-License-Identifier: Apache-2.0
"""The vectors of chains: a store chain with two rosters, a thread, and what must be refused.

Keys, salts and times are fixed, and Ed25519 signatures are deterministic, so every byte is. Each
refused case is one record in the place of the next one of a genuine chain, validly signed unless
its text says otherwise, with the code of the error that a reader gives.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from sealpoint.ledger import (
    AdoptBody,
    Body,
    CheckpointBody,
    Kind,
    RosterBody,
    encode_body,
    link_hash,
)
from sealpoint.signing import Pool, Role, RosterDocument, TrustPin
from sealpoint.storage import Record
from tests.ledgers import (
    SALT,
    StoreLedger,
    ThreadLedger,
    genesis_body,
    identity,
    key,
    pin,
    resume_body,
    roster,
    seals,
)

__all__ = ["as_bytes", "ledger_vectors", "vector_entry", "vector_row"]

_ROOTS = ("root-1", "root-2", "root-3")
_BY = ("root-1", "root-3")
_DIGEST = "c0" * 32
_FIRST = roster(
    identity("worker"),
    identity("operator", Role.OPERATOR, Role.APPROVER),
    identity("biller", namespaces=("billing",)),
    identity("pod-1"),
)
_SECOND = roster(
    identity("worker", keys=("worker", "worker-2")),
    *_FIRST.identities[1:],
    identity("pod-2", Role.AUDITOR, Role.WRITER),
    pools=[Pool("pods", ("pod-1", "pod-2"))],
)


def _pin() -> TrustPin:
    return pin(*_ROOTS, threshold=2)


def _store(length: int = 3) -> StoreLedger:
    """A roster, an adoption, a roster."""
    ledger = StoreLedger(_pin())
    body = RosterBody(salt=SALT, roster=_FIRST, reason="init")
    for seq in range(length):
        if seq == 0:
            ledger.add(ledger.record(Kind.ROSTER, body, *_BY))
        elif seq == 1:
            ledger.add(ledger.adopt_record("operator"))
        else:
            ledger.add(ledger.roster_record(_SECOND, "root-2", "root-1", "root-3"))
    return ledger


def _checkpoint(seq: int) -> CheckpointBody:
    some: dict[int, dict[str, Any]] = {
        3: {"parent": "c2", "metadata": {"step": 3, "f": [1.5, -0.0, 1e300, None, True]}},
        4: {"fresh": (), "metadata": {'ü\u2028"\\\n\x01\x7f': "\U0001f4c4"}},
        6: {"fresh": (), "fresh_list": _DIGEST},
    }
    given: dict[str, Any] = {"id": f"c{seq}", "root": _DIGEST, "fresh": (_DIGEST,)} | some.get(
        seq, {}
    )
    return CheckpointBody(salt=SALT, **given)


def _thread(length: int = 21) -> ThreadLedger:
    """Several sessions, a newer roster, a second key, an adoption."""
    store = _store()
    ledger = ThreadLedger(store.chain)
    for seq in range(length):
        if seq == 0:
            ledger.add(Kind.GENESIS, genesis_body("worker", "Rechnung №7"), roster=0)
        elif seq == 1:
            ledger.add(Kind.RESUME, resume_body(world="ab" * 32), roster=0)
        elif seq == 11:
            ledger.add(Kind.RESUME, roster=2)
        elif seq == 8:
            ledger.add(Kind.ADOPT, signer="operator")
        elif seq == 16:
            ledger.add(Kind.RESUME, signer="worker-2")
        else:
            signer = "worker-2" if seq > 16 else "worker"
            ledger.add(Kind.CHECKPOINT, _checkpoint(seq), signer=signer, roster=0 if seq < 8 else 2)
    ledger.writer = "worker" if length < 16 else "worker-2"
    return ledger


def _text(data: bytes) -> Any:
    """Bytes as text where they are UTF-8, and else in hexadecimal."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def as_bytes(text: Any) -> bytes:
    """What a vector says, as bytes again."""
    return bytes.fromhex(text["hex"]) if isinstance(text, dict) else str(text).encode()


def vector_row(record: Record) -> dict[str, Any]:
    """A record as a vector has it."""
    return {
        "header": _text(record.header),
        "seals": _text(record.seals),
        "body": None if record.body is None else _text(record.body),
    }


def vector_entry(record: Record) -> dict[str, Any]:
    """A genuine record, with its hash."""
    return {**vector_row(record), "hash": link_hash(record.header).hex()}


def _case(chain: str, after: int, name: str, error: str, record: Record) -> dict[str, Any]:
    return {"name": name, "chain": chain, "after": after, "error": error, **vector_row(record)}


def _less(whose: str, **changes: Any) -> RosterDocument:
    people = [
        msgspec.structs.replace(each, **changes) if each.name == whose else each
        for each in _FIRST.identities
    ]
    return roster(*people)


def _refused_on_store_chain() -> Iterator[dict[str, Any]]:
    empty, one = _store(0), _store(1)

    def case(name: str, error: str, record: Record) -> dict[str, Any]:
        return _case("store", 1, name, error, record)

    def changed(**changes: Any) -> Record:
        return one.roster_record(_SECOND, *_BY, **changes)

    first = empty.roster_record(_FIRST, *_BY)
    yield _case(
        "store",
        0,
        "one root signature of two",
        "not-trusted",
        empty.roster_record(_FIRST, "root-1"),
    )
    yield _case(
        "store", 0, "a foreign root", "not-trusted", empty.roster_record(_FIRST, "mallory", "eve")
    )
    yield _case(
        "store", 0, "an adoption before any roster", "not-trusted", empty.adopt_record("operator")
    )
    yield _case(
        "store",
        0,
        "a root signature over other bytes",
        "forged",
        Record(first.header, seals(b"{}", *map(key, _BY)), first.body),
    )
    yield _case(
        "store",
        0,
        "a root signature of another type",
        "forged",
        Record(first.header, seals(first.header, *map(key, _BY), payload_type=b"x"), first.body),
    )
    yield _case(
        "store", 0, "a root key twice", "edited", empty.roster_record(_FIRST, "root-1", "root-1")
    )
    yield case("another store", "misplaced", changed(store="ff" * 16))
    yield case("a gap", "misplaced", changed(seq=2))
    yield case("another link", "misplaced", changed(prev=_DIGEST))
    yield case("an epoch", "misplaced", changed(epoch=1))
    for mark in ("fence", "pause", "owner"):
        yield case(f"a {mark} on the store chain", "misplaced", changed(**{mark: 1}))
    yield case("the same roster again", "misplaced", _store(1).records[0])
    yield case(
        "a right taken away", "not-trusted", one.roster_record(_less("operator", roles=()), *_BY)
    )
    other = one.roster_record(_less("operator", person="somebody else"), *_BY)
    yield case("another person", "not-trusted", other)
    yield case(
        "a namespace taken away",
        "not-trusted",
        one.roster_record(_less("worker", namespaces=("billing",)), *_BY),
    )
    yield case("an adoption by a writer", "not-trusted", one.adopt_record("worker"))
    yield case(
        "a checkpoint on the store chain",
        "not-trusted",
        one.record(Kind.CHECKPOINT, _checkpoint(1), "root-1", "root-2"),
    )
    yield case("an entry of a thread", "misplaced", _thread(2).records[1])


def _refused_in_thread() -> Iterator[dict[str, Any]]:
    ledger = _thread(10)

    def case(name: str, error: str, record: Record) -> dict[str, Any]:
        return _case("thread", 10, name, error, record)

    def changed(**changes: Any) -> Record:
        return ledger.record(Kind.CHECKPOINT, _checkpoint(10), **changes)

    good = changed()
    places: dict[str, dict[str, Any]] = {
        "another store": {"store": "ff" * 16},
        "another namespace": {"ns": "billing"},
        "another thread": {"thread": "ff" * 16},
        "a later position": {"seq": 11},
        "another previous hash": {"prev": _DIGEST},
        "no skip hash": {"skip": None},
        "an epoch": {"epoch": 1},
        "a generation": {"gen": 1},
    }
    for name, changes in places.items():
        yield case(name, "misplaced", changed(**changes))
    yield case("an older roster", "not-trusted", changed(roster=0))
    yield case("an unknown roster", "not-trusted", changed(roster=1))
    yield case("another fence", "not-trusted", changed(fence=0))
    yield case("a pause that is not there", "not-trusted", changed(pause=9))
    yield case("an owner that is not there", "not-trusted", changed(owner=10))
    for signer, why in {
        "operator": "a key of another role",
        "biller": "a key of another namespace",
        "pod-1": "a writer who is not the owner",
        "worker-2": "a key that did not open the session",
        "stranger": "a key of nobody",
    }.items():
        yield case(why, "not-trusted", changed(signer=signer))
    yield case(
        "a resume for another owner",
        "not-trusted",
        ledger.record(Kind.RESUME, resume_body("pods", 9)),
    )
    yield case("a second genesis", "misplaced", ledger.record(Kind.GENESIS))
    yield case("a reserved kind", "not-trusted", ledger.record(Kind.PAUSE, Body(salt=SALT)))
    yield case(
        "an adoption by the owner",
        "not-trusted",
        ledger.record(Kind.ADOPT, AdoptBody(salt=SALT, reason="mine")),
    )
    yield case("the entry before it again", "misplaced", ledger.records[9])
    yield case(
        "two seals",
        "forged",
        Record(good.header, seals(good.header, key("worker"), key("worker-2")), good.body),
    )
    yield case(
        "a seal of another entry", "forged", Record(good.header, ledger.records[9].seals, good.body)
    )
    yield case(
        "a seal of another type",
        "forged",
        Record(good.header, seals(good.header, key("worker"), payload_type=b"x"), good.body),
    )
    yield case("no seal", "edited", Record(good.header, b"[]", good.body))
    resume = ledger.record(Kind.RESUME)
    yield case(
        "another body",
        "edited",
        Record(resume.header, resume.seals, encode_body(resume_body("worker", 8))),
    )
    yield from _refused_spellings(good)
    start = _thread(0)
    yield _case(
        "thread",
        0,
        "a thread for another owner",
        "not-trusted",
        start.record(Kind.GENESIS, genesis_body("operator")),
    )
    yield _case(
        "thread", 0, "a genesis with a link", "misplaced", start.record(Kind.GENESIS, prev=_DIGEST)
    )
    yield _case(
        "thread",
        1,
        "a checkpoint without a session",
        "not-trusted",
        _thread(1).record(Kind.CHECKPOINT),
    )


def _refused_spellings(good: Record) -> Iterator[dict[str, Any]]:
    """Headers that mean the same and are spelled otherwise, with valid signatures over them."""
    raw = good.header
    for name, changed in {
        "a space": raw.replace(b":", b": ", 1),
        "a duplicate key": raw.replace(b'"seq":10', b'"seq":10,"seq":10'),
        "a float": raw.replace(b'"seq":10', b'"seq":10.0'),
        "an exponent": raw.replace(b'"seq":10', b'"seq":1e1'),
        "an escape": raw.replace(b'"seq"', b'"s\\u0065q"'),
        "another order": json.dumps(
            dict(reversed(json.loads(raw).items())), separators=(",", ":")
        ).encode(),
        "an unknown field": raw[:-1] + b',"x":1}',
        "an unknown kind": raw.replace(b'"checkpoint"', b'"snapshot"'),
        "version 1": raw.replace(b'"v":3', b'"v":1'),
        "version 2": raw.replace(b'"v":3', b'"v":2'),
        "version 4": raw.replace(b'"v":3', b'"v":4'),
        "no pause": raw.replace(b'"pause":0,', b""),
        "no owner": raw.replace(b'"owner":0,', b""),
        "the fields of version 2": raw.replace(b'"v":3', b'"v":2').replace(
            b'"pause":0,"owner":0,', b""
        ),
        "an encryption": raw.replace(b'"none"', b'"aes"'),
        "a time of another zone": raw.replace(b"Z", b"+00:00"),
        "a time without zone": raw.replace(b'Z"', b'"'),
        "a number of 54 bits": raw.replace(b'"fence":1', b'"fence":9007199254740992'),
        "bytes that are no UTF-8": raw.replace(b"default", b"\xff"),
        "a line end": raw + b"\n",
        "too many bytes": raw.replace(b"default", b"x" * 4096),
    }.items():
        assert changed != raw, name
        yield _case(
            "thread",
            10,
            f"spelling: {name}",
            "edited",
            Record(changed, seals(changed, key("worker")), good.body),
        )


def ledger_vectors() -> str:
    """The text of the frozen file."""
    store, thread = _store(), _thread()
    head = {
        "pin": json.loads(_pin().encode()),
        "place": {"namespace": thread.place.ns, "thread": thread.place.thread},
    }
    lists = {
        "store_chain": [vector_entry(record) for record in store.records],
        "thread": [vector_entry(record) for record in thread.records],
        "refused": [*_refused_on_store_chain(), *_refused_in_thread()],
    }
    parts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    for name, vectors in lists.items():
        lines = ",\n".join(json.dumps(vector) for vector in vectors)
        parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"
