# SPDX-License-Identifier: Apache-2.0
"""The vectors of key changes: a new root, the end of a key, its list, and what must be refused.

A store chain of a roster, a new root and a roster with a cut; a thread that the ended key wrote
up to position 4, and its new key from 5 on. Everything is fixed, so every byte is.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from sealpoint.ledger import Kind, link_hash
from sealpoint.signing import Cutoff, Root, RosterDocument, TrustPin
from sealpoint.storage import Record
from tests.ledgers import NOW, StoreLedger, ThreadLedger, cut, identity, key, pin, roster
from tests.vectors.ledger import vector_entry, vector_row

__all__ = ["key_change_vectors"]

_FIRST = roster(identity("worker"), identity("second"))
_RENEWED = (identity("worker", keys=("worker-2",)), identity("second"))


def _root(*names: str, version: int = 2) -> Root:
    keys = [key(name).public for name in names]
    return Root(version=version, threshold=len(keys), keys=keys)


_NEXT = _root("new-1", "new-2")


def _pin() -> TrustPin:
    return pin().with_root(_NEXT)


def _store(length: int) -> StoreLedger:
    ledger = StoreLedger(_pin())
    made = ledger.cut_list(_last())
    documents = {0: _FIRST, 2: roster(*_RENEWED, cutoffs=[cut("worker", made)])}
    for seq in range(length):
        if seq == 1:
            ledger.add(ledger.root_record(_NEXT, "root", "new-1", "new-2"))
        else:
            signers = ("root",) if seq == 0 else ("new-2", "new-1")
            ledger.add(ledger.roster_record(documents[seq], *signers))
    return ledger


def _written() -> ThreadLedger:
    """What the ended key wrote."""
    ledger = StoreLedger(_pin())
    ledger.add(ledger.roster_record(_FIRST))
    thread = ThreadLedger(ledger.chain)
    for kind in (Kind.GENESIS, Kind.RESUME, *[Kind.CHECKPOINT] * 3):
        thread.add(kind)
    return thread


def _last() -> tuple[bytes, int, bytes]:
    thread = _written()
    return bytes.fromhex(thread.place.thread), 4, link_hash(thread.records[4].header)


def _thread() -> ThreadLedger:
    thread = _written()
    thread.chain = _store(3).chain
    for kind in (Kind.RESUME, Kind.CHECKPOINT):
        thread.add(kind, signer="worker-2")
    return thread


def _refused_rosters() -> Iterator[tuple[str, RosterDocument]]:
    """Rosters in the place of the one with the cut."""
    ended = _store(3).chain.roster.document
    yield "a key gone without a cut", roster(*_RENEWED)
    yield "a key held in spite of its cut", roster(*_FIRST.identities, cutoffs=ended.cutoffs)
    yield (
        "a cut of a key that nobody held",
        roster(*_RENEWED, cutoffs=[*ended.cutoffs, Cutoff("ab" * 32, "cd" * 32)]),
    )
    yield (
        "a cut in capitals",
        roster(
            *_RENEWED, cutoffs=[Cutoff(ended.cutoffs[0].key.upper(), ended.cutoffs[0].positions)]
        ),
    )
    yield "a key cut twice", roster(*_RENEWED, cutoffs=[*ended.cutoffs, *ended.cutoffs])


def _refused() -> Iterator[dict[str, Any]]:
    def case(chain: str, after: int, name: str, error: str, record: Record) -> dict[str, Any]:
        row = vector_row(record)
        return {"name": name, "chain": chain, "after": after, "error": error, **row}

    one, two, three = (_store(length) for length in (1, 2, 3))
    roots: dict[str, tuple[Root, tuple[str, ...]]] = {
        "a root that the old one did not sign": (_NEXT, ("new-1", "new-2")),
        "a root that the new one did not sign": (_NEXT, ("root", "new-1")),
        "a root of a later version": (_root("new-1", version=3), ("root", "new-1")),
        "another root than the pin has": (_root("new-1"), ("root", "new-1")),
    }
    for name, (root, signers) in roots.items():
        yield case("store", 1, name, "not-trusted", one.root_record(root, *signers))
    old = two.roster_record(_FIRST, "root")
    yield case("store", 2, "a roster by the old root", "not-trusted", old)
    for name, document in _refused_rosters():
        record = two.roster_record(document, "new-1", "new-2")
        yield case("store", 2, name, "not-trusted", record)
    for name, cuts in {"a cut gone": (), "another list": (cut("worker", two.cut_list()),)}.items():
        record = three.roster_record(roster(*_RENEWED, cutoffs=cuts), "new-1", "new-2")
        yield case("store", 3, name, "not-trusted", record)
    ended = _written()
    late: dict[str, dict[str, Any]] = {
        "beyond the cut": {},
        "beyond the cut, with an older time": {"at": NOW},
        "beyond the cut, under the newer roster": {"roster": 2},
    }
    for name, changes in late.items():
        record = ended.record(Kind.CHECKPOINT, **changes)
        yield case("thread", 5, name, "not-trusted", record)
    ended.records.pop()
    twin = ended.record(Kind.CHECKPOINT, at=NOW)
    yield case("thread", 4, "another entry at the cut", "not-trusted", twin)


def key_change_vectors() -> str:
    """The text of the frozen file."""
    store, thread = _store(3), _thread()
    (listed,) = store.blobs.values()
    head = {
        "pin": json.loads(_pin().encode()),
        "fingerprint": str(_pin().fingerprint()),
        "place": msgspec.to_builtins(thread.place),
        "list": listed.hex(),
    }
    lists = {
        "store_chain": [vector_entry(record) for record in store.records],
        "thread": [vector_entry(record) for record in thread.records],
        "refused": list(_refused()),
    }
    parts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    for name, vectors in lists.items():
        lines = ",\n".join(json.dumps(vector) for vector in vectors)
        parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"
