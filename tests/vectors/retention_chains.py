# SPDX-License-Identifier: Apache-2.0
"""The genuine chains of the vectors of retention and restore, every byte of them fixed.

One store chain: a roster, a restore by the root, a roster with a quorum, a restore by that quorum,
an adoption. Four threads: one that was pruned twice, one that was erased and goes on, one that
lost entries in both restores, and one that lost all and begins again.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from sealpoint.ledger import (
    CheckpointBody,
    Kind,
    PositionList,
    PruneBody,
    RestoreBody,
    link_hash,
)
from sealpoint.signing import Role, RosterDocument, TrustPin
from sealpoint.storage import Record
from tests.ledgers import (
    NOW,
    SALT,
    StoreLedger,
    ThreadLedger,
    genesis_body,
    identity,
    pin,
    resume_body,
    roster,
)
from tests.vectors.building import encoded, reference

__all__ = [
    "CHILDREN",
    "FIRST",
    "GIVEN_UP",
    "QUORUM",
    "Made",
    "begun_again",
    "checkpoint",
    "digest",
    "erased",
    "given_up",
    "pruned",
    "restore_body",
    "restore_record",
    "restored",
    "store_chain",
    "trusted",
]

Line = tuple[bytes, int, bytes]

_EXPIRED = msgspec.structs.replace(identity("dora", Role.OPERATOR).keys[0], expires=NOW)
_PEOPLE = (
    identity("worker"),
    identity("second"),
    identity("officer", Role.PRIVACY),
    identity("clerk", Role.PRIVACY, namespaces=("billing",)),
    identity("ann", Role.OPERATOR, keys=("ann", "ann-2")),
    msgspec.structs.replace(identity("ann-at-night", Role.OPERATOR), person="ann"),
    identity("bob", Role.OPERATOR),
    identity("carl", Role.OPERATOR, namespaces=("default",)),
    msgspec.structs.replace(identity("dora", Role.OPERATOR), keys=(_EXPIRED,)),
)
FIRST: RosterDocument = roster(*_PEOPLE)
QUORUM: RosterDocument = msgspec.structs.replace(FIRST, restore_quorum=2)

CHILDREN = (b"\x01\xa1", b"a", b"b")
"""Parts of two lists: the second one shares the first part with the first one."""
_BOTH = reference(1, 0, 2, 3, *CHILDREN[:2])
GIVEN_UP = (CHILDREN[1], _BOTH)
"""Blobs that only a checkpoint needed that was given up."""


def digest(data: bytes) -> str:
    """What a blob is called."""
    return hashlib.sha256(data).hexdigest()


@dataclass
class Made:
    """A thread as it lies in the store."""

    ledger: ThreadLedger
    payloads: dict[int, bytes] = field(default_factory=dict)
    blobs: list[bytes] = field(default_factory=list)
    erased: int = 0
    """The bodies below this position are gone."""

    @property
    def records(self) -> list[Record]:
        """Every record, without what was given up."""
        return [
            Record(
                record.header,
                record.seals,
                None if seq < self.erased else record.body,
                self.payloads.get(seq),
            )
            for seq, record in enumerate(self.ledger.records)
        ]

    def line(self, seq: int) -> Line:
        """The line of a list for an entry."""
        entry = link_hash(self.ledger.records[seq].header)
        return bytes.fromhex(self.ledger.place.thread), seq, entry


def trusted() -> TrustPin:
    """The pin."""
    return pin()


def checkpoint(seq: int, prune: int | None = None, **changes: Any) -> CheckpointBody:
    """The body of a checkpoint whose state is a number, beside its entry."""
    body = CheckpointBody(salt=SALT, id=f"c{seq}", root=digest(_state(seq)), prune=prune)
    return msgspec.structs.replace(body, **changes)


def _state(seq: int) -> bytes:
    return encoded({"step": seq})


def _thread(number: int) -> ThreadLedger:
    """A new thread, whose id is made of this digit."""
    return ThreadLedger(store_chain(1).chain, thread=bytes([0x11 * number]) * 16)


@cache
def pruned() -> Made:
    """Checkpoints at 2, 3 and 4, a prune, 6 and 7, a prune, 9.

    What is left of the first five is 4, which needs a part that 3 had stored.
    """
    first, second, third = CHILDREN
    kept = reference(1, 0, 2, 3, first, third)
    world, last = b'{"model":"m-1"}', _state(9)
    bodies = {
        3: checkpoint(3, root=digest(_BOTH), fresh=tuple(map(digest, (first, second, _BOTH)))),
        4: checkpoint(4, root=digest(kept), fresh=(digest(third),)),
        9: checkpoint(9, 8, fresh_list=digest(bytes.fromhex(digest(last)))),
    }
    begun = resume_body(world=digest(world))
    ledger = _thread(2)
    for seq, kind in enumerate((Kind.GENESIS, Kind.RESUME, *[Kind.CHECKPOINT] * 3)):
        made = {Kind.CHECKPOINT: bodies.get(seq, checkpoint(seq)), Kind.RESUME: begun}
        ledger.add(kind, made.get(kind))
    ledger.add(Kind.PRUNE, PruneBody(salt=SALT, before=5, kept=(2, 4), reason="monthly"))
    for seq in (6, 7):
        ledger.add(Kind.CHECKPOINT, checkpoint(seq, 5))
    ledger.add(Kind.PRUNE, PruneBody(salt=SALT, before=7, kept=(4,), earlier=5))
    ledger.add(Kind.CHECKPOINT, bodies[9])
    listed = bytes.fromhex(digest(last))
    return Made(ledger, {4: kept, 7: _state(7)}, [first, third, world, last, listed])


def given_up() -> dict[int, bytes]:
    """The payloads that the prunes gave up."""
    return {seq: _state(seq) for seq in (2, 6)}


@cache
def erased() -> Made:
    """A checkpoint, a prune, a checkpoint, the erasure; the next generation has another owner."""
    ledger = _thread(3)
    for kind in (Kind.GENESIS, Kind.RESUME):
        ledger.add(kind)
    ledger.add(Kind.CHECKPOINT, checkpoint(2))
    ledger.add(Kind.PRUNE, PruneBody(salt=SALT, before=2))
    ledger.add(Kind.CHECKPOINT, checkpoint(4, 3))
    ledger.add(Kind.ERASE, signer="officer")
    ledger.owner = ledger.writer = "second"
    ledger.add(Kind.GENESIS, genesis_body("second", "invoice-8"))
    ledger.add(Kind.RESUME)
    ledger.add(Kind.CHECKPOINT, checkpoint(8))
    return Made(ledger, {8: _state(8)}, erased=5)


def _grow(made: Made, epoch: int, *kinds: Kind) -> None:
    """Let a thread go on in an epoch."""
    made.ledger.chain = store_chain((1, 3, 5)[epoch]).chain
    for kind in kinds:
        seq = made.ledger.seq
        body = checkpoint(seq) if kind is Kind.CHECKPOINT else None
        made.ledger.add(kind, body, epoch=epoch)
        if body is not None:
            made.payloads[seq] = _state(seq)


@cache
def restored(epochs: int = 3, *, lost: bool = False) -> Made:
    """Entries up to 4 of the first epoch, 5 and 6 of the second one, 7 and 8 of the third one.

    Args:
        epochs: As it was in the last of so many epochs.
        lost: With the two entries that the restore after it lost.
    """
    made = Made(_thread(1))
    _grow(made, 0, Kind.GENESIS, Kind.RESUME, *[Kind.CHECKPOINT] * 3)
    for epoch in range(1, epochs):
        _grow(made, epoch, Kind.RESUME, Kind.CHECKPOINT)
    if lost:
        _grow(made, epochs - 1, *[Kind.CHECKPOINT] * 2)
    return made


@cache
def begun_again(epoch: int = 2) -> Made:
    """A thread that is in no list: it was lost, and its name was used again."""
    made = Made(_thread(4))
    _grow(made, epoch, Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT)
    return made


def restore_body(kept: bytes, lost: bytes, released: bytes, reason: str) -> RestoreBody:
    """A restore with these lists."""
    lists = dict(
        zip(("kept", "lost", "released"), map(digest, (kept, lost, released)), strict=True)
    )
    return RestoreBody(salt=SALT, reason=reason, **lists)


def restore_record(
    ledger: StoreLedger,
    kept: bytes,
    lost: bytes,
    *signers: str,
    released: bytes = b"",
    **changes: Any,
) -> Record:
    """The next record of a store chain, with a restore; the chain finds its lists."""
    for data in (kept, lost, released):
        ledger.blobs[hashlib.sha256(data).digest()] = data
    body = restore_body(kept, lost, released, "disk died")
    epoch = changes.pop("epoch", ledger.chain.epoch + 1)
    return ledger.record(Kind.RESTORE, body, *(signers or ("root",)), epoch=epoch, **changes)


def store_chain(length: int = 5) -> StoreLedger:
    """So many entries of the store chain, with the lists that they name."""
    ledger = StoreLedger(trusted())
    for seq in range(length):
        if seq in {1, 3}:
            epoch = (seq + 1) // 2
            stays = [made.line(last) for made, last in ((pruned(), 9), (erased(), 8))]
            stays.append(restored(epoch).line(2 + 2 * epoch))
            gone = [restored(epoch, lost=True).line(4 + 2 * epoch)]
            if seq == 1:
                gone.append(begun_again(0).line(2))
            lists = (PositionList.of(stays).data, PositionList.of(gone).data)
            # The first one releases nothing, the second one the thread that it cut.
            signers, released = (("root",), []) if seq == 1 else (("bob", "ann"), stays[-1:])
            listed = PositionList.of(released).data
            ledger.add(restore_record(ledger, *lists, *signers, released=listed))
        elif seq == 4:
            ledger.add(ledger.adopt_record("ann", epoch=2))
        else:
            epoch = ledger.chain.epoch
            ledger.add(ledger.roster_record(QUORUM if seq else FIRST, epoch=epoch))
    return ledger
