# SPDX-License-Identifier: Apache-2.0
"""The vectors of releases: threads, and what a resume of them would release, every byte fixed.

What a release has is said here, as positions of entries, and never computed by what is tested. Each
resume of these threads records the digest of the release that is said for its place.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from sealpoint.ledger import (
    KINDS,
    Body,
    CheckpointBody,
    Kind,
    Origin,
    PauseBody,
    PruneBody,
    ResultsBody,
    ResumeBody,
    UnpauseBody,
    link_hash,
    parse_header,
)
from sealpoint.storage import Record
from tests.ledgers import NOW, SALT, ThreadLedger
from tests.unit.ledger.gating import handoff
from tests.vectors.building import encoded
from tests.vectors.ledger import vector_entry
from tests.vectors.retention_chains import digest, store_chain, trusted
from tests.vectors.retention_refused import row

__all__ = ["Said", "release_vectors"]

_WORLD = b'{"tools":[{"name":"pay"}]}'
_PAY = {"pay": 1.5, "to": "Zoë"}
_ORIGIN = Origin(thread="66" * 16, entry="77" * 32, at=NOW.replace(microsecond=0))
_ORIGIN_SAID = {"at": "2026-01-02T03:04:05Z", "entry": "77" * 32, "thread": "66" * 16}


class Said(NamedTuple):
    """What a release has; entries are named by their positions."""

    after: int
    """How many entries of the thread there are."""
    checkpoint: int
    basis: int
    newest: bool = True
    held: bool = False
    world: str | None = None
    origin: dict[str, str] | None = None
    copied: bool = False
    question: Any = None
    results: Sequence[int] = ()
    lanes: Sequence[tuple[str, int, Sequence[int]]] = ()
    deleted: Sequence[int] = ()

    def document(self, ledger: ThreadLedger) -> bytes:
        """The bytes whose digest the release has."""
        entries = [link_hash(record.header).hex() for record in ledger.records]
        gen = parse_header(ledger.records[self.after - 1].header).gen
        fields = {
            "basis": entries[self.basis],
            "checkpoint": entries[self.checkpoint],
            "copied": self.copied,
            "deleted": [entries[seq] for seq in self.deleted],
            "gen": gen,
            "held": self.held,
            "lanes": [
                [lane, entries[seq], [entries[result] for result in results]]
                for lane, seq, results in self.lanes
            ],
            "newest": self.newest,
            "origin": self.origin,
            "question": self.question,
            "results": [entries[seq] for seq in self.results],
            "thread": ledger.place.thread,
            "v": 1,
            "world": self.world,
        }
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


Step = tuple[Kind, Callable[[ThreadLedger], Body] | Body | None]

_GENESIS: Step = (Kind.GENESIS, None)
_BEGIN: Step = (Kind.RESUME, None)
_PAUSE: Step = (Kind.PAUSE, PauseBody(salt=SALT, reason="a look"))
_UNPAUSE: Step = (Kind.UNPAUSE, UnpauseBody(salt=SALT, reason="fine"))


def _begun_in(world: bytes) -> Step:
    return Kind.RESUME, ResumeBody(salt=SALT, owner="worker", basis=0, world=digest(world))


def _value(seq: int) -> bytes:
    return encoded({"step": seq})


_WITH_WORLD = (digest(_value(2)), digest(_WORLD))
"""What the first checkpoint of a session in a world lists."""


def _saved(name: str, kind: Kind = Kind.CHECKPOINT, **fields: Any) -> Step:
    def made(ledger: ThreadLedger) -> Body:
        root = digest(_value(ledger.seq))
        body = CheckpointBody(
            salt=SALT, id=name, root=root, fresh=(root,), prune=ledger.retention_seq
        )
        return msgspec.structs.replace(body, **fields)

    return kind, made


def _added(name: str, task: str, **fields: Any) -> Step:
    def made(ledger: ThreadLedger) -> Body:
        root = digest(_value(ledger.seq))
        body = ResultsBody(salt=SALT, checkpoint=name, task=task, root=root, fresh=(root,))
        return msgspec.structs.replace(body, **fields)

    return Kind.RESULTS, made


def _gone(kind: Kind, before: int, *kept: int, deleted: Any = ()) -> Step:
    def made(ledger: ThreadLedger) -> Body:
        earlier = ledger.retention_seq
        return PruneBody(salt=SALT, before=before, kept=kept, deleted=deleted, earlier=earlier)

    return kind, made


def _resumed(*said: Said) -> Step:
    """A resume of the release that is said for its place, the last of these."""

    def made(ledger: ThreadLedger) -> Body:
        found = said[-1]
        return ResumeBody(
            salt=SALT,
            owner=ledger.owner,
            basis=found.basis,
            checkpoint=link_hash(ledger.records[found.checkpoint].header).hex(),
            release=digest(found.document(ledger)),
            released=found.checkpoint,
        )

    return Kind.RESUME, made


_PLAIN = (
    Said(3, 2, basis=2, world=digest(_WORLD)),
    Said(4, 3, basis=3, world=digest(_WORLD)),
    Said(5, 3, basis=4, world=digest(_WORLD)),
    Said(6, 5, basis=5),
    Said(7, 5, basis=5),
    Said(8, 5, basis=5),
)
_OLDER = (
    Said(5, 4, basis=4),
    Said(5, 3, basis=4, newest=False),
    Said(5, 2, basis=4, newest=False, question="which?"),
    Said(7, 2, basis=6, newest=False, question="which?", results=(6,)),
    Said(7, 4, basis=6),
)
_PENDING = (
    Said(4, 2, basis=3, results=(3,)),
    Said(5, 2, basis=4, results=(3, 4), question=[_PAY]),
    Said(6, 2, basis=5, results=(3, 4, 5), question=[_PAY]),
    Said(7, 2, basis=6, results=(3, 4, 5), question=[_PAY]),
    Said(8, 2, basis=7, newest=False, results=(3, 4, 5), question=[_PAY]),
    Said(8, 7, basis=7, results=(6,), question=["sure?"]),
    Said(10, 7, basis=9, results=(6, 9)),
    Said(11, 7, basis=10, results=(6, 9)),
    Said(12, 7, basis=11, results=(6, 9, 11), question=[["now?"]]),
    Said(13, 12, basis=12, question=_PAY),
)
_HELD = (
    Said(6, 5, basis=5, held=True, question="sure?"),
    Said(6, 2, basis=5, newest=False, results=(4,)),
    Said(7, 6, basis=6, held=True, results=()),
    Said(8, 6, basis=6, held=True),
    Said(10, 9, basis=9),
    Said(10, 5, basis=9, newest=False, held=True, question="sure?"),
)
_SUBS = (("sub|1", 7, ()), ("sub|2", 5, ()))
_LANES = (
    Said(5, 2, basis=4, lanes=(("sub|1", 3, (4,)),)),
    Said(8, 6, basis=7, lanes=(("sub|1", 7, ()),)),
    Said(8, 2, basis=7, newest=False, lanes=_SUBS),
    Said(
        *(8, 3),
        basis=7,
        newest=False,
        question=["in a lane?"],
        results=(4,),
        lanes=(("", 6, ()), ("sub|2", 5, ())),
    ),
    Said(8, 7, basis=7, newest=False),
    Said(9, 6, basis=8, lanes=(("sub|1", 7, ()),)),
    Said(9, 8, basis=8, newest=False, lanes=_SUBS),
    Said(9, 2, basis=8, newest=False, lanes=_SUBS),
    Said(9, 7, basis=8, newest=False, lanes=(("", 6, ()),)),
    Said(10, 6, basis=9, lanes=(("sub|1", 7, (9,)),)),
)
_DELETED = (
    Said(7, 4, basis=6, lanes=(("sub", 6, ()),)),
    Said(8, 3, basis=7, lanes=(("sub", 5, ()),), deleted=(4, 6)),
    Said(8, 2, basis=7, newest=False, lanes=(("sub", 5, ()),), deleted=(4, 6)),
    Said(9, 3, basis=8, lanes=(("sub", 5, ()),), deleted=(4, 6)),
    Said(10, 3, basis=9, deleted=(4, 5, 6)),
    Said(11, 10, basis=10),
    Said(12, 10, basis=11),
    Said(13, 3, basis=12, deleted=(5, 10)),
    Said(14, 3, basis=13, deleted=(5, 10)),
)
_COPY = (
    Said(3, 2, basis=2, origin=_ORIGIN_SAID, copied=True),
    Said(4, 2, basis=3, origin=_ORIGIN_SAID, copied=True, results=(3,)),
    Said(6, 5, basis=5),
)
_AGAIN = (
    Said(7, 6, basis=6),
    Said(8, 6, basis=7),
    Said(9, 6, basis=8),
)
_BELOW = (
    Said(4, 3, basis=3),
    Said(5, 3, basis=4, lanes=(("sub", 2, (4,)),)),
    Said(6, 3, basis=5, lanes=(("sub", 2, (4, 5)),)),
    Said(8, 3, basis=7, lanes=(("sub", 2, (4, 5)),)),
    Said(
        *(8, 2),
        basis=7,
        newest=False,
        question=["pay?"],
        results=(4, 5),
        lanes=(("", 3, ()),),
    ),
    Said(10, 3, basis=9, deleted=(4, 5)),
)

_THREADS: dict[str, tuple[tuple[Said, ...], tuple[Step, ...]]] = {
    "plain": (
        _PLAIN,
        (
            *(_GENESIS, _begun_in(_WORLD), _saved("1", fresh=_WITH_WORLD), _saved("2")),
            *(_resumed(_PLAIN[1]), _saved("3"), _PAUSE, _UNPAUSE),
        ),
    ),
    "older": (
        _OLDER,
        (
            *(_GENESIS, _BEGIN, _saved("1", question="which?"), _saved("2"), _saved("3")),
            *(_resumed(_OLDER[2]), _added("1", "a", answers=True)),
        ),
    ),
    "pending results": (
        _PENDING,
        (
            *(_GENESIS, _BEGIN, _saved("1"), _added("1", "a")),
            *(_added("1", "b", question=_PAY), _added("1", "b", answers=True)),
            *(_added("2", "c", question="sure?", path="~pull, c"), _saved("2", since=6)),
            *(_resumed(_PENDING[5]), _added("2", "c")),
            *(_added("1", "d", question="again?"), _added("2", "a", question=["now?"])),
            _saved("3", question=_PAY),
        ),
    ),
    "held back": (
        _HELD,
        (
            *(_GENESIS, _BEGIN, _saved("1"), _PAUSE, _added("1", "a")),
            *(_saved("2", Kind.HELD, question="sure?"), _saved("3", Kind.HELD), _UNPAUSE),
            *(_resumed(_HELD[3]), _saved("4")),
        ),
    ),
    "lanes": (
        _LANES,
        (
            *(_GENESIS, _BEGIN, _saved("1"), _saved("1", lane="sub|1")),
            *(_added("1", "a", lane="sub|1", question="in a lane?"), _saved("1", lane="sub|2")),
            *(_saved("2"), _saved("2", lane="sub|1"), _saved("1", again=2)),
            *(_added("2", "a", lane="sub|1"), _resumed(_LANES[9])),
        ),
    ),
    "deleted above": (
        _DELETED,
        (
            *(_GENESIS, _BEGIN, _saved("1"), _saved("2"), _saved("3")),
            *(_saved("1", lane="sub"), _saved("2", lane="sub")),
            *(_gone(Kind.DELETE, 0, deleted=((4, 4), (6, 6))), _resumed(_DELETED[1])),
            *(_gone(Kind.DELETE, 0, deleted=((4, 6),)), _saved("4")),
            _gone(Kind.PRUNE, 4, 3, deleted=((4, 6),)),
            *(_gone(Kind.DELETE, 4, 3, deleted=((4, 6), (10, 10))), _resumed(_DELETED[7])),
        ),
    ),
    "copy": (
        _COPY,
        (
            *(_GENESIS, _BEGIN, _saved("1", origin=_ORIGIN), _added("1", "a", origin=_ORIGIN)),
            *(_resumed(_COPY[1]), _saved("2")),
        ),
    ),
    "begun again": (
        _AGAIN,
        (
            *(_GENESIS, _BEGIN, _saved("1"), (Kind.ERASE, None)),
            *(_GENESIS, _BEGIN, _saved("1"), _resumed(_AGAIN[0])),
            (Kind.HANDOFF, handoff("second")),
        ),
    ),
    "results below": (
        _BELOW,
        (
            *(_GENESIS, _BEGIN, _saved("1", lane="sub"), _saved("1")),
            *(
                _added("1", "a", lane="sub", question="pay?"),
                _added("1", "a", lane="sub", answers=True),
            ),
            *(_added("2", "b", lane="sub"), _added("1", "c", lane="nothing saved")),
            *(_resumed(_BELOW[3]), _gone(Kind.DELETE, 0, deleted=((4, 6),))),
        ),
    ),
}
_SIGNERS = {Kind.PAUSE: "ann", Kind.UNPAUSE: "ann", Kind.ERASE: "officer"}


@cache
def _made(name: str) -> ThreadLedger:
    number = 1 + list(_THREADS).index(name)
    ledger = ThreadLedger(store_chain(1).chain, thread=bytes([0x11 * number]) * 16)
    for kind, step in _THREADS[name][1]:
        body = step(ledger) if callable(step) else step
        ledger.add(kind, body, signer=_SIGNERS.get(kind, ""))
    return ledger


def _record(name: str, seq: int) -> Record:
    """An entry with its payload, although it may have been given up; what was erased is gone."""
    record, kinds = _made(name).records[seq], [kind for kind, _ in _THREADS[name][1]]
    if Kind.ERASE in kinds[seq + 1 :]:
        return msgspec.structs.replace(record, body=None)
    holds = KINDS[kinds[seq]].holds_payload
    return msgspec.structs.replace(record, payload=_value(seq)) if holds else record


def _case(name: str, said: Said) -> dict[str, Any]:
    document = said.document(_made(name))
    return {
        "thread": name,
        "after": said.after,
        "checkpoint": said.checkpoint,
        "digest": digest(document),
        "document": document.decode(),
    }


def _lines(vectors: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, vectors)) + "\n]"


def release_vectors() -> str:
    """The text of the frozen file: an entry or a release to a line."""
    threads = {}
    for name in _THREADS:
        ledger = _made(name)
        place = json.dumps({"namespace": ledger.place.ns, "thread": ledger.place.thread})
        records = [_record(name, seq) for seq in range(len(ledger.records))]
        entries = _lines([{**vector_entry(record), **row(record)} for record in records])
        threads[name] = f'{{"place": {place}, "entries": {entries}}}'
    cases = [_case(name, said) for name, (all_said, _) in _THREADS.items() for said in all_said]
    parts = {
        "pin": json.dumps(json.loads(trusted().encode())),
        "store_chain": _lines([vector_entry(record) for record in store_chain(1).records]),
        "blobs": json.dumps({digest(_WORLD): _WORLD.hex()}),
        "threads": "{\n" + ",\n".join(f"{json.dumps(k)}: {v}" for k, v in threads.items()) + "\n}",
        "releases": _lines(cases),
    }
    body = ",\n".join(f"{json.dumps(name)}: {text}" for name, text in parts.items())
    return "{\n" + body + "\n}\n"
