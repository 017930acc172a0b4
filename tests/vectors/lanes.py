# SPDX-License-Identifier: Apache-2.0
"""The text of the frozen vectors of lanes, results, held-back checkpoints and deletions.

One thread, every byte of it fixed, and what a reader shows of it after so many entries: said here,
never computed.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any

import msgspec

from sealpoint.ledger import (
    KINDS,
    Body,
    CheckpointBody,
    IdTable,
    Kind,
    Origin,
    PauseBody,
    PruneBody,
    ResultsBody,
    UnpauseBody,
    id_print,
    parse_header,
)
from sealpoint.storage import Record
from tests.ledgers import NOW, SALT, ThreadLedger
from tests.vectors.building import encoded
from tests.vectors.ledger import vector_entry
from tests.vectors.retention_chains import digest, store_chain, trusted
from tests.vectors.retention_refused import row

__all__ = ["lane_vectors"]

_THREAD = bytes([0x55]) * 16
SHOWN: dict[int, dict[str, list[list[Any]]]] = {
    3: {},
    4: {"": [["1", 3, [2]]]},
    8: {"": [["2", 7, []], ["1", 3, [2, 4]]], "sub": [["1", 5, [6]]]},
    9: {"": [["2", 7, []], ["1", 8, [2, 4]]], "sub": [["1", 5, [6]]]},
    12: {"": [["3", 11, []], ["2", 7, [10]], ["1", 8, [2, 4]]], "sub": [["1", 5, [6]]]},
    14: {"": [["3", 13, []], ["2", 7, [10]], ["1", 8, [2, 4]]], "sub": [["1", 5, [6]]]},
    15: {"": [["3", 13, []], ["2", 7, [10]], ["1", 8, [2, 4]]]},
    17: {"": [["3", 13, []], ["2", 7, [10]], ["1", 8, [2, 4]]], "sub": [["1", 15, [16]]]},
    18: {"": [["3", 13, []], ["2", 7, [10]]], "sub": [["1", 15, [16]]]},
    20: {"": [["4", 18, []], ["3", 13, []]], "sub": [["1", 15, [16]]]},
    21: {"": [["4", 18, [20]], ["3", 13, []]], "sub": [["1", 15, [16]]]},
    22: {"": [["5", 21, []], ["4", 18, [20]], ["3", 13, []]], "sub": [["1", 15, [16]]]},
    23: {
        "": [["6", 22, []], ["5", 21, []], ["4", 18, [20]], ["3", 13, []]],
        "sub": [["1", 15, [16]]],
    },
}
"""By the number of entries: for each lane, the newest first, id, position and results."""


def _value(seq: int) -> bytes:
    return encoded({"step": seq})


def _saved(seq: int, name: str, **fields: Any) -> tuple[Kind, Body]:
    body = CheckpointBody(salt=SALT, id=name, root=digest(_value(seq)))
    return Kind.CHECKPOINT, msgspec.structs.replace(body, **fields)


def _added(seq: int, name: str, task: str, **fields: Any) -> tuple[Kind, Body]:
    body = ResultsBody(salt=SALT, checkpoint=name, task=task, root=digest(_value(seq)))
    return Kind.RESULTS, msgspec.structs.replace(body, **fields)


_NAMES = {
    3: ("", "1"),
    5: ("sub|1:2", "1"),
    7: ("", "2"),
    8: ("", "1"),
    11: ("", "3"),
    13: ("", "3"),
    15: ("sub|1:2", "1"),
    18: ("", "4"),
    21: ("", "5"),
}
"""The lane and the id of each checkpoint."""


def _table(first: int, end: int, names: dict[int, tuple[str, str]] = _NAMES) -> IdTable:
    prints = (id_print(*names[seq]) if seq in names else bytes(4) for seq in range(first, end))
    return IdTable(first=first, prints=b"".join(prints).hex())


def _gone(
    kind: Kind, before: int, *kept: int, deleted: Any, earlier: int | None = None
) -> tuple[Kind, Body]:
    return kind, PruneBody(salt=SALT, before=before, kept=kept, deleted=deleted, earlier=earlier)


@cache
def _made() -> ThreadLedger:
    """Every entry once; see `SHOWN` for what they make of the thread."""
    ledger = ThreadLedger(store_chain(1).chain, thread=_THREAD)
    ledger.add(Kind.GENESIS)
    ledger.add(Kind.RESUME)
    origin = Origin(thread="66" * 16, entry="77" * 32, at=NOW - timedelta(days=2))
    for kind, body in (
        _added(2, "1", "a"),
        _saved(3, "1", since=2, parent="0", metadata={"step": 1}),
        _added(4, "1", "b", path="~pull, b"),
        _saved(5, "1", lane="sub|1:2", origin=origin),
        _added(6, "1", "a", lane="sub|1:2", question={"pay": 5}, origin=origin),
        _saved(7, "2"),
        _saved(8, "1", again=3, since=2),
        (Kind.PAUSE, PauseBody(salt=SALT, reason="a look")),
        _added(10, "2", "a"),
        (Kind.HELD, _saved(11, "3", parent="2", question="sure?")[1]),
        (Kind.UNPAUSE, UnpauseBody(salt=SALT, reason="fine")),
        _saved(13, "3", again=11, parent="2", question="sure?"),
        _gone(Kind.DELETE, 0, deleted=((5, 6),)),
        _saved(15, "1", lane="sub|1:2", prune=14),
        _added(16, "1", "a", lane="sub|1:2", answers=True),
        _gone(Kind.PRUNE, 9, 7, deleted=((5, 6),), earlier=14),
        _saved(18, "4", prune=17),
        _gone(Kind.DELETE, 9, 7, deleted=((5, 7), (10, 10)), earlier=17),
        _added(20, "4", "c"),
        _saved(21, "5", prune=19, ids=_table(7, 21)),
        _saved(22, "6", prune=19, ids=_table(0, 22)),
    ):
        ledger.add(kind, body, signer="ann" if kind in {Kind.PAUSE, Kind.UNPAUSE} else "")
    return ledger


def _record(seq: int) -> Record:
    """A genuine entry with its payload, although it may have been given up."""
    record = _made().records[seq]
    holds = KINDS[parse_header(record.header).kind].holds_payload
    return msgspec.structs.replace(record, payload=_value(seq)) if holds else record


def _cut(length: int) -> ThreadLedger:
    again = ThreadLedger(_made().chain, thread=_THREAD)
    for record in _made().records[:length]:
        again.tip = again.follow(record)
        again.records.append(record)
    return again


def _case(after: int, name: str, error: str, record: Record) -> dict[str, Any]:
    return {"name": name, "error": error, "after": after, **row(record)}


def _with_value(record: Record, seq: int) -> Record:
    return msgspec.structs.replace(record, payload=_value(seq))


def _results() -> Iterator[dict[str, Any]]:
    for after in (12, 21):
        ledger, body = _cut(after), _added(after, "2", "z")[1]
        for who in ("second", "officer", "ann", "clerk"):
            made = _with_value(ledger.record(Kind.RESULTS, body, signer=who), after)
            yield _case(after, f"results at {after} by {who}", "not-trusted", made)
        others: list[tuple[str, str, dict[str, Any]]] = [
            ("that set the fence", "not-trusted", {"fence": after}),
            ("of an older fence", "not-trusted", {"fence": 0}),
            ("of another generation", "misplaced", {"gen": 1}),
        ]
        for name, error, changes in others:
            made = _with_value(ledger.record(Kind.RESULTS, body, **changes), after)
            yield _case(after, f"results at {after} {name}", error, made)
    early = _with_value(_cut(1).record(Kind.RESULTS, _added(1, "1", "a")[1]), 1)
    yield _case(1, "results before any session", "not-trusted", early)
    ledger, body = _cut(21), _added(21, "4", "z")[1]
    made = ledger.record(Kind.RESULTS, body)
    yield _case(21, "results without their payload", "missing", made)
    yield _case(21, "results with another payload", "edited", _with_value(made, 20))
    gone = msgspec.structs.replace(_with_value(made, 21), body=None)
    yield _case(21, "results without their body", "missing", gone)
    paused = _with_value(_cut(11).record(Kind.CHECKPOINT, _saved(11, "3")[1]), 11)
    yield _case(11, "a checkpoint while results pass", "not-trusted", paused)


def _held() -> Iterator[dict[str, Any]]:
    """Checkpoints that a pause held back, where none does, or by others than the session."""
    for after, when in ((9, "before the pause"), (13, "after the pause"), (21, "without a pause")):
        prune = 19 if after == 21 else None
        body = _saved(after, "9", prune=prune)[1]
        made = _with_value(_cut(after).record(Kind.HELD, body), after)
        yield _case(after, f"a checkpoint held back {when}", "not-trusted", made)
    ledger, body = _cut(11), _saved(11, "3")[1]
    for who in ("second", "officer", "ann", "clerk"):
        made = _with_value(ledger.record(Kind.HELD, body, signer=who), 11)
        yield _case(11, f"a checkpoint held back by {who}", "not-trusted", made)
    fence = _with_value(ledger.record(Kind.HELD, body, fence=11), 11)
    yield _case(11, "a checkpoint held back that sets the fence", "not-trusted", fence)
    later = _with_value(ledger.record(Kind.HELD, body, gen=1), 11)
    yield _case(11, "a checkpoint held back in another generation", "misplaced", later)
    made = ledger.record(Kind.HELD, body)
    yield _case(11, "a checkpoint held back without its payload", "missing", made)
    yield _case(11, "a checkpoint held back with another payload", "edited", _with_value(made, 10))
    results = ledger.record(Kind.HELD, _added(11, "3", "a")[1])
    yield _case(11, "results in the place of a checkpoint", "edited", _with_value(results, 11))
    unnamed = ledger.record(Kind.HELD, _saved(11, "3", prune=7)[1])
    text = "a checkpoint held back that names what is no prune"
    yield _case(11, text, "misplaced", _with_value(unnamed, 11))


_ORIGIN = b'{"thread":"%b","entry":"%b","at":"2026-01-02T03:04:05Z"}' % (b"66" * 16, b"77" * 32)
_ORIGINS = {
    "without a time": _ORIGIN.replace(b',"at":"2026-01-02T03:04:05Z"', b""),
    "without an entry": _ORIGIN.replace(b'"entry":"%b",' % (b"77" * 32), b""),
    "in another order": b'{"at":"2026-01-02T03:04:05Z",%b}' % _ORIGIN[1:-29],
    "with one more field": _ORIGIN[:-1] + b',"x":1}',
    "whose thread is none": _ORIGIN.replace(b"66" * 16, b"66" * 15),
    "whose entry is no digest": _ORIGIN.replace(b"77" * 32, b"77" * 31),
    "whose time has an offset": _ORIGIN.replace(b"05Z", b"05+00:00"),
    "whose time is of another zone": _ORIGIN.replace(b"05Z", b"05+02:00"),
    "whose time has no zone": _ORIGIN.replace(b"05Z", b"05"),
    "whose time is null": _ORIGIN.replace(b'"2026-01-02T03:04:05Z"', b"null"),
}


def _spellings() -> Iterator[dict[str, Any]]:
    ledger, root = _cut(21), digest(_value(21))
    start = b'{"salt":"%b","checkpoint":"4","task":"z","root":"%b"' % (SALT.encode(), root.encode())
    for name, rest in {
        "an empty lane": b',"lane":""}',
        "an empty path": b',"path":""}',
        "a default that is written": b',"answers":false}',
        "a mark of what was held back": b',"held":true}',
        "an answer as a number": b',"answers":1}',
        "an answer as a text": b',"answers":"true"}',
        "an unknown field": b',"world":"%b"}' % root.encode(),
        "fields in another order": b',"answers":true,"question":1}',
        "no fresh blobs, written": b',"fresh":[]}',
        "a fresh blob that is no digest": b',"fresh":["ab"]}',
        "an origin as a list": b',"origin":["%b","%b"]}' % (b"66" * 16, root.encode()),
        **{f"an origin {name}": b',"origin":%b}' % text for name, text in _ORIGINS.items()},
    }.items():
        made = ledger.record(Kind.RESULTS, start + rest)
        yield _case(21, f"results: {name}", "edited", _with_value(made, 21))
    for name, field in {
        "a rank as a text": b'"again":"3"',
        "a beginning as null": b'"since":null',
        "an empty lane": b'"lane":""',
    }.items():
        data = b'{"salt":"%b","id":"5","root":"%b","prune":19,%b}'
        made = ledger.record(Kind.CHECKPOINT, data % (SALT.encode(), root.encode(), field))
        yield _case(21, f"a checkpoint: {name}", "edited", _with_value(made, 21))


def _positions() -> Iterator[dict[str, Any]]:
    """Checkpoints that name what was not there when they were written."""
    ledger = _cut(21)
    for field in ("again", "since", "prune"):
        for name, seq in {"below 0": -1, "of its own": 21, "of what is yet to come": 22}.items():
            body = _saved(21, "5", **{"prune": 19, field: seq})[1]
            made = _with_value(ledger.record(Kind.CHECKPOINT, body), 21)
            yield _case(21, f"a checkpoint whose {field} is a position {name}", "misplaced", made)
    for name, again, since in (
        ("a rank that its name never had", 13, None),
        ("the rank of another lane's checkpoint", 15, None),
        ("results that begin behind its rank", 18, 20),
        ("results that begin before those of the first", 18, 17),
    ):
        body = _saved(21, "4", prune=19, again=again, since=since)[1]
        made = _with_value(ledger.record(Kind.CHECKPOINT, body), 21)
        yield _case(21, f"a checkpoint with {name}", "misplaced", made)
    made = ledger.record(Kind.CHECKPOINT, _saved(21, "5", prune=19, since=1)[1])
    text = "a checkpoint with results from before its session"
    yield _case(21, text, "misplaced", _with_value(made, 21))


def _tables() -> Iterator[dict[str, Any]]:
    """Checkpoints with tables of ids that say something else than the entries do."""
    ledger, good = _cut(21), _table(7, 21)
    less, more = dict(_NAMES), {**_NAMES, 20: ("", "4")}
    del less[13]

    def made(name: str, error: str, body: Any) -> dict[str, Any]:
        record = ledger.record(Kind.CHECKPOINT, body)
        return _case(21, f"a table of ids {name}", error, _with_value(record, 21))

    for name, table in {
        "that leaves one out": _table(7, 21, less),
        "that has one more": _table(7, 21, more),
        "that has another": _table(7, 21, {**_NAMES, 13: ("", "9")}),
        "of another lane": _table(7, 21, {**_NAMES, 15: ("", "1")}),
        "that is shifted": IdTable(first=7, prints=_table(6, 20).prints),
        "that has its own": _table(7, 22),
        "that ends before the last": _table(7, 20),
        "that begins below 0": IdTable(first=-1, prints="0" * 8 + _table(0, 21).prints),
        "that begins at its own": IdTable(first=21, prints="0" * 8),
    }.items():
        yield made(name, "misplaced", _saved(21, "5", prune=19, ids=table)[1])
    start = f'{{"salt":"{SALT}","id":"5","root":"{digest(_value(21))}","prune":19,"ids":'
    for name, text in {
        "of nothing": '{"first":21,"prints":""}',
        "in capitals": f'{{"first":7,"prints":"{good.prints.upper()}"}}',
        "with half a print": f'{{"first":7,"prints":"{good.prints}00"}}',
        "with other digits": f'{{"first":7,"prints":"{good.prints[:-1]}g"}}',
        "in another order": f'{{"prints":"{good.prints}","first":7}}',
        "with one more field": f'{{"first":7,"prints":"{good.prints}","x":1}}',
        "without its beginning": f'{{"prints":"{good.prints}"}}',
        "that begins at a text": f'{{"first":"7","prints":"{good.prints}"}}',
        "that is null": "null",
    }.items():
        yield made(name, "edited", f"{start}{text}}}".encode())


def _deletions() -> Iterator[dict[str, Any]]:
    ledger = _cut(21)
    deleted = ((5, 7), (10, 10))

    def gone(
        name: str, error: str, kind: Kind, spans: Any, before: int = 9, *kept: int, **changes: Any
    ) -> dict[str, Any]:
        earlier = changes.pop("earlier", 19)
        body = _gone(kind, before, *kept, deleted=spans, earlier=earlier)[1]
        return _case(21, name, error, ledger.record(kind, body, **changes))

    for who in ("second", "officer", "ann"):
        yield gone(f"a deletion by {who}", "not-trusted", Kind.DELETE, deleted, signer=who)
    yield gone("a deletion that sets the fence", "not-trusted", Kind.DELETE, deleted, fence=21)
    yield gone("a deletion of another generation", "misplaced", Kind.DELETE, deleted, gen=1)
    yield gone("a deletion that shows again", "misplaced", Kind.DELETE, ((5, 6), (10, 10)))
    yield gone("a deletion that shows all", "misplaced", Kind.DELETE, ())
    yield gone("a deletion of less", "misplaced", Kind.DELETE, ((5, 7),))
    yield gone("a deletion that goes less far", "misplaced", Kind.DELETE, deleted, 8)
    yield gone("a deletion that keeps what was given up", "misplaced", Kind.DELETE, deleted, 9, 8)
    yield gone("a deletion of what is yet to come", "misplaced", Kind.DELETE, ((5, 7), (10, 21)))
    yield gone("a prune that deletes", "misplaced", Kind.PRUNE, ((5, 7), (10, 10), (13, 13)), 9)
    yield gone("a prune that shows again", "misplaced", Kind.PRUNE, ((5, 7),), 9)
    for name, earlier in {
        "none": None,
        "an older one": 17,
        "itself": 21,
        "what is none": 18,
    }.items():
        for kind in (Kind.DELETE, Kind.PRUNE):
            text = f"a {kind} that names {name} as the one before it"
            yield gone(text, "misplaced", kind, deleted, 9, 7, earlier=earlier)
    yield gone("a deletion whose one before is below 0", "edited", Kind.DELETE, deleted, earlier=-1)
    for name, spans in {
        "stretches that fall": ((10, 10), (5, 7)),
        "stretches that touch": ((5, 7), (8, 10)),
        "stretches that overlap": ((5, 7), (7, 10)),
        "a stretch that ends before it begins": ((5, 7), (10, 9)),
        "a stretch below 0": ((-1, 7), (10, 10)),
    }.items():
        yield gone(name, "edited", Kind.DELETE, spans)
    for name, rest in {
        "a stretch of one number": b"[[5]]",
        "a stretch of texts": b'[["5","7"]]',
        "no stretches, written": b"[]",
    }.items():
        data = b'{"salt":"%b","before":9,"hidden":%b}' % (SALT.encode(), rest)
        yield _case(21, name, "edited", ledger.record(Kind.DELETE, data))
    for name, prune in {"no deletion": None, "the one before": 17, "itself": 21}.items():
        made = ledger.record(Kind.CHECKPOINT, _saved(21, "5", prune=prune)[1])
        text = f"a checkpoint that names {name}"
        yield _case(21, text, "misplaced", _with_value(made, 21))


def _lines(vectors: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, vectors)) + "\n]"


def lane_vectors() -> str:
    """The text of the frozen file: an entry or a case to a line."""
    records = [_record(seq) for seq in range(len(_made().records))]
    shown = [
        {"after": after, "lanes": {lane.replace("sub", "sub|1:2"): each for lane, each in found}}
        for after, found in ((after, lanes.items()) for after, lanes in SHOWN.items())
    ]
    parts = {
        "pin": json.dumps(json.loads(trusted().encode())),
        "store_chain": _lines([vector_entry(record) for record in store_chain(1).records]),
        "blobs": "{}",
        "place": json.dumps({"namespace": "default", "thread": _THREAD.hex()}),
        "entries": _lines([{**vector_entry(record), **row(record)} for record in records]),
        "shown": _lines(shown),
        "refused": _lines(
            [
                *(*_results(), *_held(), *_spellings()),
                *(*_positions(), *_tables(), *_deletions()),
            ]
        ),
    }
    body = ",\n".join(f"{json.dumps(name)}: {text}" for name, text in parts.items())
    return "{\n" + body + "\n}\n"
