# SPDX-License-Identifier: Apache-2.0
"""The vectors of the gate: pauses, requests, verdicts, break-glass and handoffs, every byte fixed.

One store chain of two rosters, the second with a policy. Another store chain whose rosters change
policies, with entries and the policy that judges each. Seven threads: one that was paused, one
with a request that became a grant, one that was handed off twice, one that was erased while it was
paused, a book of rollouts, one that continued because of a rollout, and one under a reserved name
that a writer began. A refused case is one entry in the place of the next one of a genuine thread,
validly signed unless its name says otherwise.
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from itertools import product
from typing import Any

from msgspec.structs import replace

from sealpoint.gate._decision import Difference
from sealpoint.gate._requests import ShownDifference, shown_differences
from sealpoint.ledger import (
    Body,
    CheckpointBody,
    ExpiryBody,
    HandoffBody,
    Kind,
    PauseBody,
    PositionList,
    RequestBody,
    RestoreBody,
    ResumeBody,
    VerdictBody,
    encode_body,
    parse_header,
)
from sealpoint.signing import Action, Pool, Statement, TrustPin
from sealpoint.storage import Record
from sealpoint.world import World
from tests.ledgers import (
    NOW,
    SALT,
    StoreLedger,
    ThreadLedger,
    genesis_body,
    pin,
    resume_body,
    roster,
)
from tests.unit.ledger.gating import (
    add,
    approve,
    break_glass,
    deny,
    handoff,
    people,
    record,
    stated,
)
from tests.vectors.gate_refused import handoff_cases
from tests.vectors.ledger import vector_entry, vector_row
from tests.vectors.releases import Said

__all__ = ["gate_vectors"]

_POLICY = hashlib.sha256(b'version = 2\nname = "vectors"\n').hexdigest()
_POOLS = (
    Pool("pods", ("worker", "second")),
    Pool("mixed", ("worker", "operator")),
    Pool("empty", ()),
)
_WORLD = {"tools": [{"name": "pay"}, {"name": "read_file"}]}
_BEFORE = {"tools": [{"name": "read_file"}]}


def _pin() -> TrustPin:
    return pin()


def _store() -> StoreLedger:
    """A roster, and the same with a policy for all namespaces."""
    ledger, first = StoreLedger(_pin()), roster(*people(), pools=_POOLS)
    for document in (first, replace(first, policies={"*": _POLICY})):
        ledger.add(ledger.roster_record(document))
    return ledger


_WEAK, _STRONG, _OTHER = (hashlib.sha256(name).hexdigest() for name in (b"weak", b"strong", b"b"))
_LISTED, _UNLISTED = "11" * 16, "22" * 16


@cache
def _changed() -> StoreLedger:
    """Rosters 0, 1, 2, 3 and 5: weak, strong, its list once more, another namespace, weak again.

    Entry 4 is a restore, so the last change was in the next epoch.
    """
    ledger, first = StoreLedger(_pin()), roster(*people(), pools=_POOLS)

    def add(policies: dict[str, str], last: int | None) -> None:
        positions = None if last is None else ledger.cut_list(_line(last))
        document = replace(first, policies=policies)
        ledger.add(ledger.roster_record(document, positions=positions, epoch=ledger.chain.epoch))

    add({"*": _WEAK}, None)
    add({"*": _STRONG}, 3)
    add({"*": _STRONG}, 4)
    add({"*": _STRONG, "billing": _OTHER}, 6)
    kept = ledger.cut_list(_line(5)).digest.hex()
    nothing = ledger.cut_list().digest.hex()
    body = RestoreBody(salt=SALT, reason="disk", kept=kept, lost=nothing, released=nothing)
    ledger.add(ledger.record(Kind.RESTORE, body, "root", epoch=1))
    add({"*": _WEAK, "billing": _OTHER}, 8)
    return ledger


def _line(last: int) -> tuple[bytes, int, bytes]:
    return bytes.fromhex(_LISTED), last, bytes(32)


def _judged() -> Iterator[dict[str, Any]]:
    """Entries that name each roster, and the policy that judges each."""
    for ns, thread, named, epoch, seq in product(
        ("default", "billing"), (_LISTED, _UNLISTED), (0, 1, 2, 3, 5), (0, 1), range(3, 10)
    ):
        entry = {"ns": ns, "thread": thread, "roster": named, "epoch": epoch, "seq": seq}
        header = replace(parse_header(_changed().records[0].header), **entry)
        yield {**entry, "policy": _changed().chain.policy_at(header)}


def _policy_changes() -> str:
    ledger = _changed()
    parts = {
        "store_chain": _lines([vector_entry(each) for each in ledger.records]),
        "lists": json.dumps({name.hex(): data.hex() for name, data in ledger.blobs.items()}),
        "judged": _lines(list(_judged())),
    }
    return "{" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in parts.items()) + "}"


def _thread(number: int) -> ThreadLedger:
    """A new thread, whose id is made of this digit."""
    return ThreadLedger(_store().chain, thread=bytes([0x11 * number]) * 16)


def _checkpoint(ledger: ThreadLedger, **changes: Any) -> CheckpointBody:
    root = hashlib.sha256(b"state %d" % ledger.seq).hexdigest()
    return replace(CheckpointBody(salt=SALT, id=f"c{ledger.seq}", root=root), **changes)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


@cache
def _paused() -> ThreadLedger:
    """A checkpoint, a pause, a request, a prune, a second pause, an unpause, a checkpoint."""
    ledger = add(_thread(1), Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT, Kind.PAUSE, Kind.REQUEST)
    add(ledger, Kind.PRUNE)
    ledger.add(Kind.PAUSE, PauseBody(salt=SALT, reason="odd", actor="Zoë"), signer="operator")
    return add(ledger, Kind.UNPAUSE, Kind.CHECKPOINT)


@cache
def _decided() -> ThreadLedger:
    """A question, a request with an answer, two approvals, a denial, break-glass, the resume."""
    ledger = add(_thread(2), Kind.GENESIS, Kind.RESUME)
    question = {"pay": 12.5, "to": "Zoë"}
    ledger.add(Kind.CHECKPOINT, _checkpoint(ledger, question=question))
    answer, world = {"yes": True}, _digest(_WORLD)
    assert ledger.tip is not None
    released = Said(3, 2, basis=2, question=question).document(ledger)
    about = stated(
        ledger,
        action=Action.RESUME,
        checkpoint=ledger.tip.entry.hash.hex(),
        release=hashlib.sha256(released).hexdigest(),
        to=None,
        world_to=world,
        answer=_digest(answer),
        requester="worker",
        policy=_POLICY,
    )
    reasons = ("the tools are not those of the checkpoint", "a question is pending")
    request = RequestBody(salt=SALT, statement=about, reasons=reasons, answer=answer, world=_WORLD)
    ledger.add(Kind.REQUEST, request)
    for name in ("ann", "bob"):
        verdict = VerdictBody(salt=SALT, attestation=approve(about, name)[0])
        ledger.add(Kind.APPROVAL, verdict, signer="auditor")
    # Relayed by anybody; it counts for nothing, because an auditor decides nothing.
    verdict = VerdictBody(salt=SALT, attestation=deny(about, "auditor")[0])
    ledger.add(Kind.DENIAL, verdict, signer="officer")
    verdict = VerdictBody(salt=SALT, attestation=break_glass(about, "marked")[0])
    ledger.add(Kind.BREAK_GLASS, verdict, signer="auditor")
    add(ledger, Kind.EXPIRY)
    ledger.add(
        Kind.RESUME,
        ResumeBody(
            salt=SALT,
            owner="worker",
            basis=2,
            reason="as was approved",
            checkpoint=about.checkpoint,
            release=about.release,
            world=world,
            policy=_POLICY,
            rules=("tools", "answer"),
            request=about.digest,
            answer=about.answer,
            actor="Ann, by telephone",
            held=True,
            idempotent=True,
        ),
    )
    add(ledger, Kind.CHECKPOINT)
    edit = ResumeBody(salt=SALT, owner="worker", basis=ledger.seq - 1, edits=True)
    ledger.add(Kind.RESUME, edit)
    return ledger


@cache
def _rolled() -> ThreadLedger:
    """A book that an operator begins: a rollout of three differences, two approvals, a withdrawal.

    The last entry records its end, with the positions of the threads.
    """
    ledger = _thread(5)
    ledger.writer = ledger.owner = "operator"
    ledger.add(Kind.GENESIS, genesis_body("operator", "sealpoint:rollouts"))
    shown: tuple[ShownDifference, ...] = (
        ("permission.mail", (True,), ()),
        ("tool.pay", (), ({"name": "pay"},)),
        ("tool.read", ({"name": "read"},), ({"description": "reads", "name": "read"},)),
    )
    about = stated(
        ledger,
        action=Action.ROLLOUT,
        to=None,
        differences=shown_differences(shown),
        actor="marked",
        policy=_POLICY,
        needed=2,
    )
    request = RequestBody(salt=SALT, statement=about, differences=shown)
    ledger.add(Kind.REQUEST, request, signer="operator")
    for name in ("ann", "bob"):
        verdict = VerdictBody(salt=SALT, attestation=approve(about, name)[0])
        ledger.add(Kind.APPROVAL, verdict, signer=name)
    verdict = VerdictBody(salt=SALT, attestation=deny(about, "operator")[0], actor="marked")
    ledger.add(Kind.DENIAL, verdict, signer="operator")
    listed = PositionList.of([_line(2)]).digest.hex()
    body = ExpiryBody(salt=SALT, request=about.digest, positions=listed)
    ledger.add(Kind.EXPIRY, body, signer="operator")
    return ledger


@cache
def _reserved_by_writer() -> ThreadLedger:
    """A thread under a reserved name whose owner may write state elsewhere."""
    ledger = _thread(7)
    ledger.add(Kind.GENESIS, genesis_body("worker", "sealpoint:"))
    return add(ledger, Kind.REQUEST, Kind.ADOPT, Kind.EXPIRY)


@cache
def _deployed() -> ThreadLedger:
    """A thread that goes on in another world because a rollout lets it pass."""
    ledger, before, after = add(_thread(6), Kind.GENESIS), _digest(_BEFORE), _digest(_WORLD)
    begun = ResumeBody(salt=SALT, owner="worker", basis=0, world=before, leaves=_BEFORE)
    ledger.add(Kind.RESUME, begun)
    ledger.add(Kind.CHECKPOINT, _checkpoint(ledger, world=before))
    assert ledger.tip is not None
    released = Said(3, 2, basis=2, world=before).document(ledger)
    about = stated(
        _rolled(),
        action=Action.ROLLOUT,
        to=None,
        differences=shown_differences(
            (change.leaf, one, other)
            for change, one, other in World.from_dict(_BEFORE)
            .diff(World.from_dict(_WORLD))
            .values()
        ),
        policy=_POLICY,
        needed=2,
    )
    ledger.add(
        Kind.RESUME,
        ResumeBody(
            salt=SALT,
            owner="worker",
            basis=2,
            checkpoint=ledger.tip.entry.hash.hex(),
            release=hashlib.sha256(released).hexdigest(),
            released=2,
            world=after,
            leaves=_WORLD,
            policy=_POLICY,
            rules=("tools",),
            rollouts=(about,),
            attestations=approve(about, "ann", "bob"),
        ),
    )
    return add(ledger, Kind.CHECKPOINT)


@cache
def _handed_off() -> ThreadLedger:
    """By its owner to a pool, by a member to the other one, by an operator to a pool again."""
    ledger = add(_thread(3), Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT)
    ledger.add(Kind.HANDOFF, handoff("pods"))
    ledger.writer, ledger.owner = "second", "pods"
    add(ledger, Kind.RESUME, Kind.CHECKPOINT)
    ledger.add(Kind.HANDOFF, handoff("worker"))
    ledger.writer = ledger.owner = "worker"
    add(ledger, Kind.RESUME, Kind.PAUSE)
    about = stated(ledger, to="pods")
    ledger.add(Kind.REQUEST, RequestBody(salt=SALT, statement=about), signer="operator")
    body = HandoffBody(
        salt=SALT,
        owner="pods",
        reason="the worker is gone",
        statement=about,
        attestations=(*approve(about, "ann", "late", "mallory"), *deny(about, "auditor")),
    )
    ledger.add(Kind.HANDOFF, body, signer="operator")
    ledger.writer, ledger.owner = "second", "pods"
    return add(ledger, Kind.UNPAUSE, Kind.RESUME)


@cache
def _erased() -> ThreadLedger:
    """Handed off, paused and erased; the next generation has another owner."""
    ledger = add(_thread(4), Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT, Kind.HANDOFF)
    ledger.writer = ledger.owner = "second"
    add(ledger, Kind.RESUME, Kind.PAUSE, Kind.REQUEST, Kind.ERASE)
    return add(ledger, Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT)


_THREADS = {
    "paused": _paused,
    "decided": _decided,
    "handed off": _handed_off,
    "erased": _erased,
    "rolled out": _rolled,
    "deployed": _deployed,
    "reserved": _reserved_by_writer,
}
_ERASED_BELOW = {"erased": 7}


def cut(name: str, length: int) -> ThreadLedger:
    """The first entries of a thread, to go on from in another way."""
    whole = _THREADS[name]()
    again = ThreadLedger(whole.chain, thread=bytes.fromhex(whole.place.thread))
    for made in whole.records[:length]:
        again.tip = again.follow(made)
        again.records.append(made)
    return again


def _case(where: str, after: int, name: str, error: str, made: Record) -> dict[str, Any]:
    return {"name": name, "error": error, "thread": where, "after": after, **vector_row(made)}


def _pauses() -> Iterator[dict[str, Any]]:
    """What is written while entry 3, or 6, pauses the thread, and who pauses it."""
    for after in (4, 6, 7):
        ledger = cut("paused", after)
        for kind in (Kind.CHECKPOINT, Kind.RESUME):
            name = f"a {kind} at {after} while paused"
            yield _case("paused", after, name, "not-trusted", record(ledger, kind))
        genesis = ledger.record(Kind.GENESIS, gen=1)
        yield _case("paused", after, f"a genesis at {after} while paused", "not-trusted", genesis)
    for after in (3, 8):
        made = cut("paused", after).record(Kind.HELD)
        yield _case("paused", after, f"a held at {after} while running", "not-trusted", made)
    running, halted = cut("paused", 3), cut("paused", 4)
    for field, seq in (("released", 4), ("decided", 4), ("released", -1), ("decided", 10**6)):
        named = {"checkpoint": "22" * 32, "release": "77" * 32, field: seq}
        made = running.record(Kind.RESUME, resume_body("worker", running.seq - 1, **named))
        yield _case("paused", 3, f"a resume with {field} {seq}", "misplaced", made)
    for kind, ledger in ((Kind.PAUSE, running), (Kind.UNPAUSE, halted)):
        for who in ("worker", "ann", "auditor", "officer", "elsewhere", "mallory"):
            made = record(ledger, kind, signer=who)
            yield _case("paused", ledger.seq, f"a {kind} by {who}", "not-trusted", made)
        fence = record(ledger, kind, fence=ledger.seq)
        yield _case("paused", ledger.seq, f"a {kind} that sets the fence", "not-trusted", fence)
        other = record(ledger, kind, gen=1)
        yield _case("paused", ledger.seq, f"a {kind} of another generation", "misplaced", other)
        empty = ledger.record(kind, Body(salt=SALT), signer="operator")
        yield _case("paused", ledger.seq, f"a {kind} without a reason", "edited", empty)
        gone = replace(record(ledger, kind), body=None)
        yield _case("paused", ledger.seq, f"a {kind} without its body", "missing", gone)
    made = record(cut("erased", 8), Kind.PAUSE)
    yield _case("erased", 8, "a pause after an erasure", "misplaced", made)
    late = cut("erased", 6)
    late.writer = late.owner = "second"
    yield _case(
        "erased", 6, "a checkpoint while paused", "not-trusted", late.record(Kind.CHECKPOINT)
    )


def _marks() -> Iterator[dict[str, Any]]:
    """Headers that leave out a pause or a handoff, or make one up."""

    def case(where: str, name: str, ledger: ThreadLedger, made: Record) -> dict[str, Any]:
        return _case(where, ledger.seq, name, "not-trusted", made)

    running, halted, ended = cut("paused", 3), cut("paused", 4), cut("paused", 8)
    for kind in (Kind.REQUEST, Kind.CHECKPOINT, Kind.RESUME, Kind.PRUNE, Kind.HANDOFF):
        made = record(halted, kind, pause=0)
        yield case("paused", f"a {kind} that leaves out the pause", halted, made)
    for kind, ledger in ((Kind.PAUSE, running), (Kind.UNPAUSE, halted), (Kind.ERASE, halted)):
        made = record(ledger, kind, pause=ledger.seq - 1)
        yield case("paused", f"a {kind} that leaves out itself", ledger, made)
    made = record(ended, Kind.HELD, pause=6)
    yield case("paused", "a held that leaves out the end of the pause", ended, made)
    made = record(running, Kind.HELD, pause=2)
    yield case("paused", "a held that names another entry as the pause", running, made)
    given = cut("handed off", 7)
    given.owner = "pods"
    for kind in (Kind.REQUEST, Kind.RESUME, Kind.PRUNE, Kind.PAUSE):
        signer = "operator" if kind is Kind.PAUSE else "second"
        made = record(given, kind, signer=signer, owner=3)
        yield case("handed off", f"a {kind} that leaves out the handoff", given, made)
    made = record(given, Kind.RESUME, signer="second", owner=3, fence=4)
    yield case("handed off", "a resume that leaves out handoff and session", given, made)
    made = record(given, Kind.REQUEST, owner=7)
    yield case("handed off", "a request that says whose the thread is", given, made)
    made = record(given, Kind.HANDOFF, owner=6)
    yield case("handed off", "a handoff that leaves out itself", given, made)
    erased = cut("erased", 8)
    for mark in ("pause", "owner"):
        named: dict[str, Any] = {mark: 7}
        made = erased.record(Kind.GENESIS, **named)
        yield case("erased", f"a genesis that leaves out itself as {mark}", erased, made)


def _reserved() -> Iterator[dict[str, Any]]:
    """What a book of rollouts does not hold, each by a person who may write it elsewhere."""
    for after in (1, 5):
        book = cut("rolled out", after)
        book.owner = "operator"
        for kind in (Kind.CHECKPOINT, Kind.RESUME, Kind.HELD, Kind.PRUNE, Kind.ERASE, Kind.PAUSE):
            name = f"a {kind} at {after} in a book of rollouts"
            yield _case("rolled out", after, name, "not-trusted", record(book, kind))
        for kind in (Kind.UNPAUSE, Kind.HANDOFF):
            made = record(book, kind, signer="operator")
            name = f"a {kind} at {after} in a book of rollouts"
            yield _case("rolled out", after, name, "not-trusted", made)
    owned = cut("reserved", 4)
    for kind in (Kind.CHECKPOINT, Kind.RESUME, Kind.PRUNE, Kind.HANDOFF):
        made = record(owned, kind)
        yield _case("reserved", 4, f"a {kind} on a reserved thread", "not-trusted", made)


def _verdicts() -> Iterator[dict[str, Any]]:
    ledger = cut("decided", 4)
    about = stated(ledger)

    def case(name: str, error: str, kind: Kind, body: Any = None, who: str = "") -> dict[str, Any]:
        made = record(ledger, kind, who) if body is None else ledger.record(kind, body, signer=who)
        return _case("decided", 4, name, error, made)

    yes, no = (VerdictBody(salt=SALT, attestation=each[0]) for each in _words(about))
    yield case("an approval that denies", "edited", Kind.APPROVAL, no, "ann")
    yield case("a denial that approves", "edited", Kind.DENIAL, yes, "ann")
    yield case("a relay from elsewhere", "not-trusted", Kind.APPROVAL, None, "elsewhere")
    yield case("a relay by a stranger", "not-trusted", Kind.APPROVAL, None, "mallory")
    for name, at in (("", NOW), (" at an earlier time", NOW - timedelta(days=1))):
        relay = record(ledger, Kind.APPROVAL, "late", at=at)
        yield _case("decided", 4, f"a relay by an expired key{name}", "not-trusted", relay)
    for who in ("ann", "auditor", "officer"):
        yield case(f"a request by {who}", "not-trusted", Kind.REQUEST, None, who)
    yield case("break-glass that approves", "edited", Kind.BREAK_GLASS, yes, "marked")
    yield case("break-glass from elsewhere", "not-trusted", Kind.BREAK_GLASS, None, "elsewhere")
    for name, data in _edited(about, yes).items():
        kind = {"a": Kind.APPROVAL, "r": Kind.REQUEST, "e": Kind.EXPIRY, "c": Kind.CHECKPOINT}
        yield case(name[2:], "edited", kind[name[0]], data, "worker")
    gated = ResumeBody(salt=SALT, owner="worker", basis=2, checkpoint="22" * 32, release="77" * 32)
    for field in ("checkpoint", "release"):
        made = replace(gated, **{field: None})
        yield case(f"a resume without its {field}", "edited", Kind.RESUME, made, "worker")
    for field in ("released", "decided"):
        made = replace(gated, checkpoint=None, release=None, **{field: 2})
        name = f"a resume without a checkpoint that names what it {field}"
        yield case(name, "edited", Kind.RESUME, made, "worker")
    for field in ("checkpoint", "release", "world", "policy", "request", "answer"):
        made = replace(gated, **{field: "AB" * 32})
        yield case(f"a resume whose {field} is no digest", "edited", Kind.RESUME, made, "worker")
    wrong = replace(_words(about)[0][0], credential="Ann")
    made = replace(gated, attestations=(wrong,))
    yield case("a resume with a word by no key", "edited", Kind.RESUME, made, "worker")
    rolled = replace(about, action=Action.ROLLOUT, to=None, differences=(_DIFFERENCE,))
    other = replace(rolled, nonce="77" * 16)
    ordered = sorted((rolled, other), key=lambda each: each.digest)
    several = [replace(rolled, nonce=f"{number:032x}") for number in range(5)]
    for name, rollouts in {
        "by a rollout that is none": (replace(about, differences=(_DIFFERENCE,)),),
        "by a rollout twice": (rolled, rolled),
        "by rollouts that are not sorted": tuple(reversed(ordered)),
        "by five rollouts": tuple(sorted(several, key=lambda each: each.digest)),
    }.items():
        made = replace(gated, rollouts=rollouts)
        yield case(f"a resume {name}", "edited", Kind.RESUME, made, "worker")
    for field in ("held", "idempotent", "edits"):
        written = encode_body(gated)[:-1] + f',"{field}":false}}'.encode()
        name = f"a resume that says that it is not {field}"
        yield case(name, "edited", Kind.RESUME, written, "worker")
    unruly = encode_body(gated)[:-1] + b',"rules":[]}'
    yield case("a resume with an empty list of rules", "edited", Kind.RESUME, unruly, "worker")


_DIFFERENCE: Difference = ("tool.pay", None, "44" * 32)


def _words(about: Statement) -> tuple[Any, Any]:
    return approve(about, "ann"), deny(about, "ann")


def _edited(about: Statement, yes: VerdictBody) -> dict[str, bytes]:
    """Bodies that no writer writes, by the kind's first letter and a name."""
    request = encode_body(RequestBody(salt=SALT, statement=about))
    approval = encode_body(yes)
    low, high = "33" * 32, "44" * 32
    one = b'["tool.pay",null,"%b"]' % high.encode()
    asked = _rolled_out(about, (_DIFFERENCE,))
    return {
        "a an attestation with one more field": approval[:-2] + b',"x":1}}',
        "a an attestation without a proof": approval[: approval.index(b',"proof"')] + b"}}",
        "a a verdict in capitals": approval.replace(b'"approve"', b'"APPROVE"'),
        "r a statement of version 2": request.replace(b'"v":4', b'"v":2'),
        "r a statement of version 3": request.replace(b'"v":4', b'"v":3'),
        "r a statement without differences": request.replace(b'"differences":[],', b""),
        "r a statement without a number of approvals": request.replace(b'"needed":1,', b""),
        "r a statement that needs 17 approvals": request.replace(b'"needed":1', b'"needed":17'),
        "r a handoff with a difference": request.replace(
            b'"differences":[]', b'"differences":[%b]' % one
        ),
        "r a request with an empty list of differences": request[:-1] + b',"differences":[]}',
        "r a difference of two values before": asked[:-1] + b',"differences":[["m",[1,2],[3]]]}',
        "r a difference without a list": asked[:-1] + b',"differences":[["m",1,[3]]]}',
        "r a rollout without differences": _rolled_out(about, ()),
        "r a rollout with a difference twice": _rolled_out(about, (_DIFFERENCE, _DIFFERENCE)),
        "r a rollout whose differences are not sorted": _rolled_out(
            about, (("b", low, high), ("a", low, high))
        ),
        "r a rollout with null after a digest": _rolled_out(
            about, (("a", low, high), ("a", None, high))
        ),
        "r a rollout of no name": _rolled_out(about, (("", low, high),)),
        "r a rollout from a value to itself": _rolled_out(about, (("a", low, low),)),
        "r a rollout from nothing to nothing": _rolled_out(about, (("a", None, None),)),
        "r a rollout from no digest": _rolled_out(about, (("a", "AB" * 32, low),)),
        "r a rollout of 1025 differences": _rolled_out(
            about, tuple((f"m{number:04}", None, high) for number in range(1025))
        ),
        "r a rollout with a checkpoint": _rolled_out(about, (_DIFFERENCE,), checkpoint="22" * 32),
        "r a rollout with a new owner": _rolled_out(about, (_DIFFERENCE,), to="second"),
        "r a statement without a release": request.replace(b'"release":null,', b""),
        "r a handoff with a release": request.replace(
            b'"release":null', b'"release":"%b"' % (b"77" * 32)
        ),
        "a a credential in capitals": _word(yes, credential=yes.attestation.credential.upper()),
        "a a credential that is no key": _word(yes, credential="Ann"),
        "a a word on no statement": _word(yes, statement=""),
        "a a word without a reason": _word(yes, reason=""),
        "a a proof of half a byte": _word(yes, proof="abc"),
        "r a statement with another order": request.replace(
            b'"epoch":0,"gen":0', b'"gen":0,"epoch":0'
        ),
        "r a statement with a basis in capitals": request.replace(
            about.basis.encode(), about.basis.upper().encode()
        ),
        "r a statement without a reason": request.replace(about.reason.encode(), b""),
        "r a handoff without a new owner": request.replace(b'"to":"second"', b'"to":null'),
        "r a handoff with an answer": request.replace(
            b'"answer":null', b'"answer":"%b"' % (b"ab" * 32)
        ),
        "r a statement without a zone": request.replace(b'Z","reason"', b'","reason"'),
        "r a request whose answer is null": request[:-1] + b',"answer":null}',
        "r an answer of 33 levels": request[:-1] + b',"answer":%b}' % (b"[" * 33 + b"]" * 33),
        "e an expiry of no digest": b'{"salt":"%b","request":"ab"}' % SALT.encode(),
        "e an expiry without a request": b'{"salt":"%b"}' % SALT.encode(),
        "e an expiry whose positions are no digest": encode_body(
            ExpiryBody(salt=SALT, request="ab" * 32, positions="AB" * 32)
        ),
        "c a question that is null": encode_body(
            CheckpointBody(salt=SALT, id="c4", root="ab" * 32)
        )[:-1]
        + b',"question":null}',
        "c a question of 33 levels": encode_body(
            CheckpointBody(salt=SALT, id="c4", root="ab" * 32)
        )[:-1]
        + b',"question":%b}' % (b"[" * 33 + b"]" * 33),
    }


def _rolled_out(about: Statement, differences: tuple[Difference, ...], **changes: Any) -> bytes:
    """A request for a rollout, whether or not it may be asked for."""
    rolled = {"action": Action.ROLLOUT, "to": None, "differences": differences}
    asked = replace(about, **(rolled | changes))
    return encode_body(RequestBody(salt=SALT, statement=asked))


def _word(verdict: VerdictBody, **changes: str) -> bytes:
    return encode_body(replace(verdict, attestation=replace(verdict.attestation, **changes)))


def _lines(vectors: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, vectors)) + "\n]"


def _entries(name: str) -> list[dict[str, Any]]:
    below = _ERASED_BELOW.get(name, 0)
    return [
        vector_entry(replace(made, body=None) if seq < below else made)
        for seq, made in enumerate(_THREADS[name]().records)
    ]


def gate_vectors() -> str:
    """The text of the frozen file: an entry or a case to a line."""
    threads = {}
    for name, made in _THREADS.items():
        place = json.dumps({"namespace": "default", "thread": made().place.thread})
        threads[name] = f'{{"place": {place}, "entries": {_lines(_entries(name))}}}'
    handoffs = [_case(*each) for each in handoff_cases(cut)]
    parts = {
        "pin": json.dumps(json.loads(_pin().encode())),
        "store_chain": _lines([vector_entry(each) for each in _store().records]),
        "threads": "{\n" + ",\n".join(f"{json.dumps(k)}: {v}" for k, v in threads.items()) + "\n}",
        "refused": _lines([*_pauses(), *_marks(), *_reserved(), *_verdicts(), *handoffs]),
        "policy_changes": _policy_changes(),
    }
    body = ",\n".join(f"{json.dumps(name)}: {text}" for name, text in parts.items())
    return "{\n" + body + "\n}\n"
