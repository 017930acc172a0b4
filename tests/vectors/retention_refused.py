# SPDX-License-Identifier: Apache-2.0
"""What must be refused beside the genuine chains of retention and restore, each with its code.

A case says how much of the genuine store chain and of a genuine thread comes first, and what comes
then: the last entry is the one that is refused. Each is validly signed unless its name says
otherwise, and breaks one rule.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from sealpoint.ledger import (
    AdoptBody,
    Body,
    Kind,
    PositionList,
    PruneBody,
    encode_body,
)
from sealpoint.storage import Record
from tests.ledgers import NOW, SALT, StoreLedger, ThreadLedger, genesis_body, key, seals
from tests.vectors import retention_chains as chains
from tests.vectors.ledger import vector_row
from tests.vectors.retention_chains import (
    CHILDREN,
    Made,
    checkpoint,
    digest,
    restore_body,
    restore_record,
)

__all__ = ["refused_vectors", "row"]

_MISPLACED, _NOT_TRUSTED, _EDITED = "misplaced", "not-trusted", "edited"
_MISSING = "missing"


def row(record: Record) -> dict[str, Any]:
    """A record as a vector has it, with its payload."""
    beside = {} if record.payload is None else {"payload": record.payload.hex()}
    return {**vector_row(record), **beside}


def _hexes(blobs: dict[str, bytes | None]) -> dict[str, str | None]:
    return {name: None if data is None else data.hex() for name, data in blobs.items()}


def _store_case(name: str, error: str, trust: int, record: Record) -> dict[str, Any]:
    return {"name": name, "error": error, "trust": trust, "store_chain": [row(record)]}


def _case(
    where: tuple[str, int, int], name: str, error: str, *records: Record, **more: Any
) -> dict[str, Any]:
    thread, after, trust = where
    entries = [row(record) for record in records]
    place = {"thread": thread, "after": after, "trust": trust}
    return {"name": name, "error": error, **place, **more, "entries": entries}


def _cut(ledger: ThreadLedger, length: int) -> ThreadLedger:
    """The first entries of a thread, to go on from in another way."""
    again = ThreadLedger(
        ledger.chain,
        writer=ledger.writer,
        owner=ledger.owner,
        thread=bytes.fromhex(ledger.place.thread),
    )
    for record in ledger.records[:length]:
        again.tip = again.follow(record)
        again.records.append(record)
    return again


def _pruned() -> Iterator[dict[str, Any]]:
    made = chains.pruned()
    ledger = made.ledger
    where = ("pruned", 10, 1)
    # What was given up is still there: only what the entries say is wrong.
    unswept = {
        "blobs": _hexes({digest(blob): blob for blob in chains.GIVEN_UP}),
        "payloads": {str(seq): data.hex() for seq, data in chains.given_up().items()},
    }

    def prune(name: str, error: str, before: int, *kept: int, **changes: Any) -> dict[str, Any]:
        earlier = changes.pop("earlier", 8)
        body = PruneBody(salt=SALT, before=before, kept=kept, earlier=earlier)
        record = ledger.record(Kind.PRUNE, body, **changes)
        return _case(where, name, error, record, **(unswept if error == _MISPLACED else {}))

    yield prune("a prune of the newest checkpoint", _MISPLACED, 10, 4, 7)
    yield prune("a prune of all", _MISPLACED, 10)
    yield prune("a prune that goes less far", _MISPLACED, 6, 4)
    yield prune("a prune that keeps what the first one gave up", _MISPLACED, 9, 3, 4, 7)
    yield prune("a prune that keeps what the second one gave up", _MISPLACED, 9, 2, 4, 7)
    yield prune("a prune that keeps what is no checkpoint and was given up", _MISPLACED, 9, 5)
    yield prune("a prune of what is yet to come", _MISPLACED, 12, 4, 7, 9)
    yield prune("positions that fall", _EDITED, 9, 7, 4)
    yield prune("a position twice", _EDITED, 9, 4, 4)
    yield prune("a kept position at the bound", _EDITED, 9, 4, 9)
    yield prune("a kept position below 0", _EDITED, 9, -1, 4)
    yield prune("a prune by a writer who is not the owner", _NOT_TRUSTED, 9, 4, signer="second")
    yield prune("a prune by the privacy role", _NOT_TRUSTED, 9, 4, signer="officer")
    yield prune("a prune that sets the fence", _NOT_TRUSTED, 9, 4, fence=10)
    yield prune("a prune of another generation", _MISPLACED, 9, 4, gen=1)
    yield prune("a prune that names no prune before it", _MISPLACED, 9, 4, 7, earlier=None)
    yield prune("a prune that names an older prune", _MISPLACED, 9, 4, 7, earlier=5)
    yield prune("a prune that names itself", _MISPLACED, 9, 4, 7, earlier=10)
    yield prune("a prune whose one before is below 0", _EDITED, 9, 4, 7, earlier=-1)
    for name, data in {
        "a prune whose one before is null": b'{"salt":"%b","before":9,"earlier":null}',
        "an empty list of kept positions": b'{"salt":"%b","before":9,"kept":[]}',
        "a kept position as a text": b'{"salt":"%b","before":9,"kept":["4"]}',
        "a prune without a bound": b'{"salt":"%b","kept":[4]}',
        "a prune with the fields in another order": b'{"salt":"%b","kept":[4],"before":9}',
    }.items():
        record = ledger.record(Kind.PRUNE, data % SALT.encode())
        yield _case(where, name, _EDITED, record)
    gone = msgspec.structs.replace(ledger.record(Kind.PRUNE), body=None)
    yield _case(where, "a prune without its body", _MISSING, gone, **unswept)
    names = {None: "no prune", 5: "an older prune", 9: "what is no prune", 10: "itself as a prune"}
    for named, name in names.items():
        record = ledger.record(Kind.CHECKPOINT, checkpoint(10, named))
        yield _case(where, f"a checkpoint that names {name}", _MISPLACED, record, **unswept)
    yield from _pruned_payloads(made)


def _pruned_payloads(made: Made) -> Iterator[dict[str, Any]]:
    """Bytes that live are gone, or are others."""
    last, where = made.records[9], ("pruned", 9, 1)
    first, _, third = CHILDREN
    whole, listed = made.blobs[3], made.blobs[4]
    for name, blob in {
        "a part that a given up checkpoint had listed": first,
        "a part that a kept checkpoint lists": third,
        "the world of a kept checkpoint": made.blobs[2],
        "the root of the newest checkpoint": whole,
        "the list of the newest checkpoint": listed,
    }.items():
        absent: dict[str, bytes | None] = {digest(blob): None}
        yield _case(where, f"{name}, gone", _MISSING, last, blobs=_hexes(absent))
        other: dict[str, bytes | None] = {digest(blob): blob + b"\0"}
        yield _case(where, f"{name}, edited", _EDITED, last, blobs=_hexes(other))
    record = made.ledger.record(Kind.CHECKPOINT, checkpoint(10, 8))
    yield _case(("pruned", 10, 1), "a payload gone", _MISSING, record)
    other_payload = msgspec.structs.replace(record, payload=b"\x01")
    yield _case(("pruned", 10, 1), "a payload edited", _EDITED, other_payload)


def _erasures() -> Iterator[dict[str, Any]]:
    """An erasure in the place of the next entry of a thread that has its bodies."""
    ledger, where = chains.pruned().ledger, ("pruned", 10, 1)

    def erase(name: str, error: str, body: Body | bytes | None = None, **changes: Any) -> Any:
        changes = {"signer": "officer"} | changes
        return _case(where, name, error, ledger.record(Kind.ERASE, body, **changes))

    yield erase("an erasure by the owner", _NOT_TRUSTED, signer="worker")
    yield erase("an erasure by an operator", _NOT_TRUSTED, signer="ann")
    yield erase("an erasure by the privacy role of another namespace", _NOT_TRUSTED, signer="clerk")
    yield erase("an erasure that sets no fence", _NOT_TRUSTED, fence=1)
    yield erase("an erasure that ends no pause", _NOT_TRUSTED, pause=0)
    yield erase("an erasure that ends no ownership", _NOT_TRUSTED, owner=0)
    yield erase("an erasure of the next generation", _MISPLACED, gen=1)
    yield erase("an erasure without a reason", _EDITED, Body(salt=SALT))
    yield erase(
        "an erasure whose reason is null", _EDITED, b'{"salt":"%b","reason":null}' % SALT.encode()
    )
    gone = msgspec.structs.replace(ledger.record(Kind.ERASE, signer="officer"), body=None)
    yield _case(where, "an erasure without its body", _MISSING, gone)
    second = ledger.record(Kind.GENESIS, gen=1)
    yield _case(where, "a next generation without an erasure", _MISPLACED, second)


def _generations() -> Iterator[dict[str, Any]]:
    whole = chains.erased().ledger
    six, seven, eight = (_cut(whole, length) for length in (6, 7, 8))

    def case(ledger: ThreadLedger, name: str, error: str, record: Record) -> dict[str, Any]:
        return _case(("erased", ledger.seq, 1), name, error, record)

    def genesis(name: str, error: str, **changes: Any) -> dict[str, Any]:
        return case(six, name, error, six.record(Kind.GENESIS, **changes))

    yield genesis("a genesis of the erased generation", _MISPLACED, gen=0)
    yield genesis("a genesis of a generation too far", _MISPLACED, gen=2)
    yield genesis("a genesis without links", _MISPLACED, prev=None, skip=None)
    first: dict[str, Any] = {"prev": None, "skip": None, "fence": 0, "pause": 0, "owner": 0}
    yield genesis("a genesis at position 0", _MISPLACED, seq=0, **first)
    for mark in ("fence", "pause", "owner"):
        yield genesis(f"a genesis under the {mark} of the erasure", _NOT_TRUSTED, **{mark: 5})
    yield genesis("a genesis for another owner", _NOT_TRUSTED, body=genesis_body("worker"))
    gone = msgspec.structs.replace(six.record(Kind.GENESIS), body=None)
    yield case(six, "a genesis without its body", _MISSING, gone)
    other = msgspec.structs.replace(gone, body=encode_body(genesis_body("second", "other")))
    yield case(six, "a genesis with another body", _EDITED, other)
    adopt = six.record(Kind.ADOPT, AdoptBody(salt=SALT, reason="moved"), signer="ann")
    for name, record in {
        "a resume after an erasure": six.record(Kind.RESUME, gen=1),
        "a resume after an erasure, in its generation": six.record(Kind.RESUME, gen=0),
        "a checkpoint after an erasure": six.record(Kind.CHECKPOINT, checkpoint(6)),
        "a prune after an erasure": six.record(Kind.PRUNE, PruneBody(salt=SALT, before=0)),
        "an adoption after an erasure": adopt,
        "a second erasure": six.record(Kind.ERASE, signer="officer", gen=0),
    }.items():
        yield case(six, name, _MISPLACED, record)
    old = seven.record(Kind.RESUME, gen=0)
    yield case(seven, "a resume of the erased generation", _MISPLACED, old)
    owner = seven.record(Kind.RESUME, signer="worker")
    yield case(seven, "a resume by the owner of the erased generation", _NOT_TRUSTED, owner)
    record = seven.record(Kind.CHECKPOINT, checkpoint(7))
    yield case(seven, "a checkpoint before the session", _NOT_TRUSTED, record)
    record = seven.record(Kind.PRUNE, PruneBody(salt=SALT, before=0))
    yield case(seven, "a prune where no checkpoint is", _MISPLACED, record)
    record = eight.record(Kind.CHECKPOINT, checkpoint(8, 3))
    yield case(
        eight, "a checkpoint that names a prune of the erased generation", _MISPLACED, record
    )
    record = eight.record(Kind.CHECKPOINT, checkpoint(8), signer="worker", fence=1)
    yield case(eight, "a checkpoint of the session before the erasure", _NOT_TRUSTED, record)


def _restores() -> Iterator[dict[str, Any]]:
    """Restores in the place of the first one, which the root signs, and what follows them."""
    one, four = chains.store_chain(1), chains.store_chain(4)
    empty = b""

    def case(name: str, error: str, *signers: str, **changes: Any) -> dict[str, Any]:
        record = restore_record(one, empty, empty, *signers, **changes)
        return _store_case(name, error, 1, record)

    yield case("a restore of the epoch before it", _MISPLACED, epoch=0)
    yield case("a restore of an epoch too far", _MISPLACED, epoch=2)
    yield case("a restore of another store", _MISPLACED, store="ff" * 16)
    yield case("a restore by another root", _NOT_TRUSTED, "mallory")
    yield case("a restore by operators where there is no quorum", _NOT_TRUSTED, "ann", "bob")
    yield case("a restore whose first seal is another", "forged", by=key("ann").key)
    record = restore_record(one, empty, empty)
    other = msgspec.structs.replace(record, seals=seals(b"{}", key("root")))
    yield _store_case("a restore with a seal over other bytes", "forged", 1, other)
    gone = msgspec.structs.replace(record, body=None)
    yield _store_case("a restore without its body", "tampered", 1, gone)
    body = restore_body(empty, empty, empty, "disk died")
    whole = encode_body(body)
    for name, data in {
        "a list in capitals": whole.replace(digest(empty).encode(), digest(empty).upper().encode()),
        "a list of 31 bytes": whole.replace(digest(empty).encode(), digest(empty)[:62].encode()),
        "a restore without a list": whole[: whole.index(b',"lost"')] + b"}",
        "a restore without the list of released threads": whole[: whole.index(b',"released"')]
        + b"}",
        "a restore without a reason": whole.replace(b'"reason":"disk died",', b""),
        "a restore with one more field": whole[:-1] + b',"x":1}',
    }.items():
        yield _store_case(name, _EDITED, 1, one.record(Kind.RESTORE, data, "root", epoch=1))
    for name, record in {
        "a roster of the epoch before": four.roster_record(chains.QUORUM, epoch=1),
        "an adoption of the epoch before": four.adopt_record("ann", epoch=1),
        "the same restore once more": restore_record(four, empty, empty, epoch=2),
    }.items():
        yield _store_case(name, _MISPLACED, 4, record)
    twice = four.adopt_record("ann", "bob", epoch=2)
    yield _store_case("an adoption with two seals", "forged", 4, twice)


def _quorums() -> Iterator[dict[str, Any]]:
    """Restores in the place of the second one, which two persons sign."""
    three = chains.store_chain(3)
    for name, signers in {
        "one operator of two": ("ann",),
        "two keys of one operator": ("ann", "ann-2"),
        "two identities of one person": ("ann", "ann-at-night"),
        "an operator of one namespace": ("ann", "carl"),
        "an operator whose key has expired": ("ann", "dora"),
        "an operator and a writer": ("ann", "worker"),
    }.items():
        record = restore_record(three, b"", b"", *signers)
        yield _store_case(f"a quorum of {name}", _NOT_TRUSTED, 3, record)
    header = restore_record(three, b"", b"", "root", "ann").header
    good, bad = (
        msgspec.json.decode(seals(raw, key(who))) for raw, who in ((header, "root"), (b"{}", "ann"))
    )
    record = restore_record(three, b"", b"", "root")
    mixed = msgspec.structs.replace(record, seals=msgspec.json.encode([*good, *bad]))
    yield _store_case("a restore by the root with a wrong seal of an operator", "forged", 3, mixed)


def _epochs() -> Iterator[dict[str, Any]]:
    ends, whole = chains.restored(), chains.restored().ledger
    lost, later = (chains.restored(epochs, lost=True).records for epochs in (1, 2))

    def case(after: int, trust: int, name: str, *records: Record, **more: Any) -> dict[str, Any]:
        return _case(("restored", after, trust), name, _MISPLACED, *records, **more)

    yield case(5, 2, "a lost entry that comes back", lost[5])
    yield case(5, 5, "a lost entry below what a later restore kept", lost[5])
    yield case(7, 4, "an entry that the second restore lost", later[7])
    twin = _cut(whole, 4).record(Kind.CHECKPOINT, checkpoint(4), at=NOW, roster=0)
    yield case(4, 2, "another entry at the kept position", twin)
    five, nine = _cut(whole, 5), whole
    early = five.record(Kind.CHECKPOINT, checkpoint(5), epoch=1, roster=0)
    yield case(5, 1, "an epoch that has not begun", early)
    for epoch, name in {3: "an epoch still to come", 1: "a worker of the epoch before"}.items():
        record = nine.record(Kind.CHECKPOINT, checkpoint(9), epoch=epoch)
        yield case(9, 5, name, record)
    old = chains.begun_again(0).records
    yield _case(("begun again", 0, 5), "a thread that was lost, come back", _MISPLACED, old[0])
    body = restore_body(b"", b"", b"", "mine")
    record = nine.record(Kind.RESTORE, body, epoch=2)
    yield _case(("restored", 9, 5), "a restore on a thread", _NOT_TRUSTED, record)
    yield _backwards(_cut(whole, 2))
    yield from _lists(ends)


def _backwards(ledger: ThreadLedger) -> dict[str, Any]:
    """An entry that a restore kept, after one of a later epoch."""
    made = Made(ledger)
    for seq, epoch in ((2, 1), (3, 0)):
        record = ledger.record(Kind.CHECKPOINT, checkpoint(seq), epoch=epoch, roster=0)
        ledger.records.append(record)
        made.payloads[seq] = chains.restored().payloads[seq]
    store, listed = chains.store_chain(1), PositionList.of([made.line(3)]).data
    return _case(
        ("restored", 2, 1),
        "an epoch that goes back",
        _MISPLACED,
        *made.records[2:],
        store_chain=[row(restore_record(store, listed, b""))],
        lists=_hexes({digest(listed): listed, digest(b""): b""}),
    )


def _lists(made: Made) -> Iterator[dict[str, Any]]:
    """Lists that are gone or are none: they refuse the entries that they would judge."""
    start, genesis = ("restored", 0, 5), made.records[0]
    genuine = chains.store_chain()
    for restore, name in zip(genuine.chain.restores.all, ("first", "second"), strict=True):
        data = genuine.blobs[bytes.fromhex(restore.kept)]
        for what, found in {_MISSING: None, _EDITED: data[:-1] + b"\0"}.items():
            changed = _hexes({restore.kept: found})
            yield _case(start, f"the {name} list, {what}", what, genesis, lists=changed)
    lines = [each.line(last) for each, last in ((made, 4), (chains.pruned(), 9))]
    first, second = (PositionList.of([line]).data for line in lines)
    longer = PositionList.of([made.line(3)]).data
    for name, data in {
        "threads in falling order": second + first,
        "a thread twice": first + first,
        "a thread twice with two positions": longer + first,
        "half a line": first + second[:28],
        "one byte more": first + b"\0",
    }.items():
        store: StoreLedger = chains.store_chain(1)
        yield _case(
            ("restored", 0, 1),
            f"a list with {name}",
            _NOT_TRUSTED,
            genesis,
            store_chain=[row(restore_record(store, data, b""))],
            lists=_hexes({digest(data): data, digest(b""): b""}),
        )


def refused_vectors() -> list[dict[str, Any]]:
    """Every case."""
    parts = (_pruned, _erasures, _generations, _restores, _quorums, _epochs)
    return [case for part in parts for case in part()]
