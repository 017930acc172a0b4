# SPDX-License-Identifier: Apache-2.0
"""Junk that somebody of the roster relays: it counts for nothing, and nobody falls over it.

Whoever has any role may append words, and whoever writes may ask; what they put into the fields is
theirs to choose. Every verb that reads and every action is then run, beside a twin of the thread
that nobody has touched: both must come out the same, and nothing but our own errors may come up.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sealpoint.api import examine, verify_bundle
from sealpoint.audit import UNJUSTIFIED
from sealpoint.cli._request_display import print_examined
from sealpoint.errors import NeedsApproval, RequestClosed
from sealpoint.gate import Request, Status
from sealpoint.ledger import (
    Body,
    ExpiryBody,
    Kind,
    RequestBody,
    VerdictBody,
    encode_body,
)
from sealpoint.limits import JSON_DEPTH_MAX
from sealpoint.signing import Action, Attestation, Role, Statement, Verdict, attest
from sealpoint.storage import Record
from sealpoint.views.documents import examined_document
from sealpoint.world import json_form
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.deployment import Deployment
from tests.effort import examples
from tests.ledgers import NOW, identity, key
from tests.unit.gate.team import READ, SHELL, Team

_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_RELAYED = {
    Verdict.APPROVE: Kind.APPROVAL,
    Verdict.DENY: Kind.DENIAL,
    Verdict.BREAK_GLASS: Kind.BREAK_GLASS,
}
_JUNK = (
    "",
    "zz",
    "not hexadecimal",
    "0" * 63,
    "0" * 65,
    "A" * 64,
    "g" * 64,
    "00 " * 21 + "0",
    "\u0660" * 64,
    "\u00e9" * 64,
    "\x00\x1b[2J",
    "\u202egnitirw",
    "x" * 5000,
    "0" * 5000,
)


class RelayTeam(AttackedTeam):
    """A team in memory, with threads that wait for what has been approved, and their twins."""

    def __init__(self) -> None:
        Team.__init__(self, Deployment())
        self.world.enrol(identity("reader", Role.AUDITOR))
        self.asked = {name: self._to_resume(name) for name in ("t", "t twin")}
        self.asked |= {name: self._to_hand_off(name) for name in ("h", "h twin")}

    def _to_resume(self, name: str) -> Request:
        for number in (1, 2):
            self.thread(name=name).save({"n": number}, id=f"c{number}", world=READ)
        request = self.ask(name=name)
        self.approve(request)
        return request

    def _to_hand_off(self, name: str) -> Request:
        self.thread(name=name).save({"n": 1}, world=READ)
        with pytest.raises(NeedsApproval) as needs:
            self.hand_off(name)
        request = needs.value.request
        assert isinstance(request, Request)
        self.approve(request)
        return request

    def hand_off(self, name: str) -> int:
        """Let an operator give a thread away."""
        return self.fresh("operator", name).handoff(to="spare", reason="gone")

    def rows(self, name: str = "t") -> dict[int, Record]:
        """The records of a thread."""
        return dict(self.world.memory._records[self.world.thread_id(name)])

    def put(self, rows: dict[int, Record | None], name: str = "t") -> None:
        """Put records in the place of others."""
        for seq, row in rows.items():
            self.world.put(self.world.thread_id(name), seq, row)

    def relay(self, name: str, signer: str, kind: Kind, body: Body | bytes, at: datetime) -> None:
        """Append an entry of somebody, at a time of their choice."""
        roster = self.store().core.renewed_trust().roster.seq
        self.append(self.forged(kind, body, signer, name=name, roster=roster, at=at), name=name)


# ---------------------------------------------------------------------- what is relayed


def _changed(made: Any, fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """A struct with one or more of its fields replaced."""
    some = st.lists(st.sampled_from(sorted(fields)), min_size=1, max_size=3, unique=True)
    return some.flatmap(
        lambda names: st.fixed_dictionaries({name: fields[name] for name in names})
    ).map(lambda chosen: msgspec.structs.replace(made, **chosen))


_TEXTS = st.one_of(st.sampled_from(_JUNK), st.text(max_size=70))
_DIGITS = st.one_of(_TEXTS, st.just("ab" * 32), st.none())


@st.composite
def _words(draw: st.DrawFn, request: Request) -> tuple[str, Kind, Body]:
    """A word on a request that is none: at least one field of a genuine one is another."""
    verdict = draw(st.sampled_from(sorted(Verdict)))
    genuine = attest(key(draw(st.sampled_from(["ann", "reader"]))), request.id, verdict, "looked")
    texts = dict.fromkeys(("scheme", "credential", "statement", "reason", "proof"), _TEXTS)
    texts["credential"] |= st.sampled_from([key("bob").key, key("worker").key, "00" * 32])
    word: Attestation = draw(_changed(genuine, texts).filter(lambda made: made != genuine))
    return "reader", _RELAYED[Verdict(verdict)], VerdictBody(salt=_salt(), attestation=word)


@st.composite
def _requests(draw: st.DrawFn, request: Request) -> tuple[str, Kind, Body]:
    """A request of another writer, with fields of its choice."""
    own: Statement = msgspec.structs.replace(request.statement, requester="spare", nonce="ab" * 16)
    fields: dict[str, st.SearchStrategy[Any]] = dict.fromkeys(
        ("checkpoint", "world_from", "world_to", "answer", "policy", "basis", "to"), _DIGITS
    )
    texts = ("nonce", "reason", "ns", "requester", "actor", "thread", "store")
    fields |= dict.fromkeys(texts, _TEXTS)
    fields["action"] = st.sampled_from(sorted(Action))
    fields["expires"] = st.sampled_from([_FIRST, _LAST, NOW])
    fields["epoch"] = fields["gen"] = st.sampled_from([0, 1, 2**53 - 1])
    answers = st.sampled_from([None, "yes", 10**40, _nested(33), _nested(400), 1e308, "\x1b[2J"])
    answer, world = draw(answers), draw(st.sampled_from([None, request.world, {"v": 1}, _deep()]))
    statement = draw(_changed(own, fields))
    reasons = draw(st.lists(_TEXTS, max_size=2).map(tuple))
    made = RequestBody(
        salt=_salt(), statement=statement, reasons=reasons, answer=answer, world=world
    )
    return "spare", Kind.REQUEST, made


@st.composite
def _remarks(draw: st.DrawFn, request: Request) -> tuple[str, Kind, Body]:
    """An expiry by nobody who has a say in it, or a glass that the word does not break."""
    named = draw(_TEXTS.filter(lambda text: text != request.id))
    if draw(st.booleans()):
        body = ExpiryBody(salt=_salt(), request=draw(st.sampled_from([named, request.id])))
        return "reader", Kind.EXPIRY, body
    genuine = attest(key("reader"), request.id, Verdict.BREAK_GLASS, "it burns")
    word = msgspec.structs.replace(genuine, statement=named, credential=key("chief").key)
    made = VerdictBody(salt=_salt(), attestation=word, actor=draw(_TEXTS))
    return "reader", Kind.BREAK_GLASS, made


def _salt() -> str:
    return "00" * 32


def _nested(levels: int) -> Any:
    made: Any = []
    for _ in range(levels - 1):
        made = [made]
    return made


def _deep() -> dict[str, Any]:
    return {"v": 1, "leaves": {"prompt.a": _nested(60)}}


_TIMES = st.sampled_from([_FIRST, NOW, _LAST])
_MAKERS: dict[str, Callable[[Request], st.SearchStrategy[tuple[str, Kind, Body]]]] = {
    "word": _words,
    "request": _requests,
    "remark": _remarks,
}


# ---------------------------------------------------------------------- what is then done


def _read_everything(relayed: RelayTeam) -> None:
    """Every verb that reads, in a new process; junk is left out of what it tells."""
    store = relayed.world.open("ann", gated=True)
    listed = store.requests()

    assert listed.failures == ()
    assert store.threads().complete
    for name, request in relayed.asked.items():
        thread = store.thread(name)
        found = {each.id: each for each in thread.requests()}
        assert found[request.id].status is Status.APPROVED
        assert found[request.id].approved_by == ("ann", "bob")
        assert not thread.paused
        assert thread.question is None
        assert thread.load().ref in tuple(thread.history())
        assert thread.adapter.snapshot() is not None
        thread.judge(world=READ)
        for each in found.values():
            asked = store.request(each.id)
            shown = examine(store, asked)
            print_examined(shown)
            json.dumps(json_form(examined_document(shown)))
    for record in store.audit():
        assert record.finding is None
        assert store.why(record.entry).as_dict()
    report = store.verify()
    assert {each.code for each in report.findings} <= {UNJUSTIFIED, "time"}
    assert not any(each.refuses for each in report.findings)


def _bundled(relayed: RelayTeam) -> None:
    """An evidence bundle is made and verified."""
    store = relayed.world.open("operator", gated=True)
    bundle = b"".join(store.export())
    verify_bundle(bundle, relayed.world.pin)


@contextmanager
def _relayed() -> Iterator[RelayTeam]:
    made = RelayTeam()
    try:
        yield made
    finally:
        made.world.close()


@given(st.data())
@settings(max_examples=examples(25), phases=[Phase.generate])
def test_junk_from_anybody_of_the_roster_counts_for_nothing(data: st.DataObject) -> None:
    """Whatever is relayed is read, judged, audited and spent over as if it were not there."""
    with _relayed() as relayed:
        for name in data.draw(st.lists(st.sampled_from(["t", "h"]), min_size=1, max_size=4)):
            maker = data.draw(st.sampled_from(sorted(_MAKERS)))
            signer, kind, body = data.draw(_MAKERS[maker](relayed.asked[name]))
            relayed.relay(name, signer, kind, body, data.draw(_TIMES))
        _read_everything(relayed)
        _bundled(relayed)
        for name in ("t", "t twin"):
            worker = relayed.fresh(name=name)
            assert worker.resume(world=SHELL).state == {"n": 2}
            assert worker.save({"n": 3}, world=SHELL).seq == len(relayed.rows(name)) - 1
        for name in ("h", "h twin"):
            assert relayed.hand_off(name) == len(relayed.rows(name)) - 1
        report = relayed.world.open(None, read_only=True, gated=True).verify()

        assert not any(each.refuses for each in report.findings)


# ---------------------------------------------------------------------- one by one


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_junk_credential_ends_no_approved_handoff(verdict: Verdict) -> None:
    """An auditor's words that name no key: the thread goes to its new owner, as its twin does."""
    with _relayed() as relayed:
        genuine = attest(key("reader"), relayed.asked["h"].id, verdict, "junk")
        for credential in _JUNK:
            word = msgspec.structs.replace(genuine, credential=credential)
            body = VerdictBody(salt=_salt(), attestation=word)
            relayed.relay("h", "reader", _RELAYED[verdict], body, NOW)
        for name in ("h twin", "h"):
            assert relayed.hand_off(name) == len(relayed.rows(name)) - 1
            assert relayed.fresh("spare", name).resume(world=READ).state == {"n": 1}


def test_a_request_until_the_end_of_time_is_audited() -> None:
    """Nobody approves one; the thread goes on by what was approved, and both are judged again."""
    with _relayed() as relayed:
        for name, expires in (("t twin", NOW.replace(year=2099)), ("t", _LAST)):
            asked = relayed.asked[name]
            statement = msgspec.structs.replace(asked.statement, expires=expires, nonce="ab" * 16)
            body = RequestBody(salt=_salt(), statement=statement, world=asked.world)
            relayed.relay(name, "worker", Kind.REQUEST, body, relayed.world.now())
            with pytest.raises(RequestClosed):
                relayed.approve(relayed.store("ann").request(statement.digest))
            worker = relayed.fresh(name=name)
            worker.resume(world=SHELL)
            worker.save({"n": 3}, world=SHELL)
        store = relayed.world.open("ann", gated=True)

        assert store.verify().findings == ()
        assert all(store.why(each.entry).as_dict() for each in store.audit(kind="resume"))
        verify_bundle(
            b"".join(relayed.world.open("operator", gated=True).export()), relayed.world.pin
        )


@pytest.mark.parametrize("levels", [JSON_DEPTH_MAX + 1, 400, 20_000])
def test_an_answer_that_is_too_deep_to_be_shown_is_no_request(levels: int) -> None:
    """Whatever depth this Python reads: beyond what a writer may write, nobody is asked."""
    with _relayed() as relayed:
        for name, deep in (("t twin", JSON_DEPTH_MAX), ("t", levels)):
            own = {"requester": "spare", "answer": sha256(_lists(deep)).hexdigest()}
            statement = msgspec.structs.replace(relayed.asked[name].statement, **own)
            made = RequestBody(salt=_salt(), statement=statement, answer=0, world=SHELL)
            body = encode_body(made).replace(b'"answer":0', b'"answer":' + _lists(deep))
            relayed.relay(name, "spare", Kind.REQUEST, body, NOW)
        store = relayed.world.open("ann", gated=True)
        found = [each for each in store.requests().requests if each.statement.answer is not None]
        _read_everything(relayed)

        assert [each.thread for each in found] == ["t twin"]
        assert sha256(_lists(JSON_DEPTH_MAX)).hexdigest() == found[0].statement.answer


def _lists(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels
