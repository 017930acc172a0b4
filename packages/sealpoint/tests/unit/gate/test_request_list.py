# SPDX-License-Identifier: Apache-2.0
"""The list: every request of a namespace, verified where it lies, and nothing hidden."""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.errors import (
    AnchorUnavailable,
    NeedsApproval,
    StorageUnavailable,
    UnknownRequest,
    UnknownThread,
    UsageError,
)
from sealpoint.gate import Request, Status
from sealpoint.ledger import (
    Body,
    Kind,
    Marks,
    PauseBody,
    UnpauseBody,
    VerdictBody,
    encode_body,
    encode_header,
    link_hash,
    parse_header,
    skip_seq,
)
from sealpoint.signing import Verdict, attest
from sealpoint.storage import Record
from sealpoint.store import NearEntries
from tests.ledgers import key, seals
from tests.unit.gate.team import READ, SHELL, Team, policy
from tests.unit.store.backup import Backup, accepted


def _listed(team: Team, who: str = "ann") -> list[tuple[str, str]]:
    found = team.store(who).requests()
    assert found.failures == ()
    return [(each.thread, str(each.status)) for each in found.requests]


def _ask(team: Team, *names: str) -> list[Request]:
    found = []
    for name in names:
        team.thread(name=name).save(1, world=READ)
        found.append(team.ask(name=name))
    return found


def test_every_request_is_listed_oldest_first(team: Team) -> None:
    """Of every thread, with all that an approver has to be shown."""
    team.thread(name="quiet").save(1, world=READ)
    assert _listed(team) == []
    asked = _ask(team, "b", "a", "c")
    found = team.store("ann").requests().requests

    assert [each.thread for each in found] == ["b", "a", "c"]
    assert [each.id for each in found] == [each.id for each in asked]
    assert found[0].world == SHELL
    assert found[0].statement.requester == "worker"
    assert found[0].statement.policy == team.digest
    assert found[0].needed == 2
    assert "+ tool shell" in found[0].reasons[0]


def test_a_request_of_a_known_thread_is_found_there(team: Team) -> None:
    """As the list has it, by its id or its first digits, and on no other thread."""
    asked, _ = _ask(team, "a", "b")
    store = team.store("ann")
    (listed, other) = store.requests().requests

    for digits in (asked.id, asked.id[:8]):
        assert team.store("ann").request(digits, thread="a") == listed
    with pytest.raises(UnknownRequest):
        store.request(asked.id, thread="b")
    with pytest.raises(UnknownThread):
        store.request(asked.id, thread="never")
    team.approve(other)
    assert store.request(other.id).status is Status.APPROVED
    assert store.request(other.id, thread="b").status is Status.APPROVED


def test_a_rollout_is_found_where_rollouts_are(team: Team) -> None:
    """The book is named as its thread, as the list names it."""
    rollout = team.store("operator").rollouts.propose([(READ, SHELL)], reason="the new release")
    found = team.store("ann").request(rollout.id, thread=rollout.thread)

    assert (found.id, found.statement) == (rollout.id, rollout.statement)


def test_a_request_that_was_listed_and_is_gone_is_looked_for_everywhere(team: Team) -> None:
    """A thread that has gone on since, or was erased, has no answer of its own."""
    asked, _ = _ask(team, "a", "b")
    store = team.store("ann")
    store.requests()
    team.thread(name="a").save(2, world=READ)

    with pytest.raises(UnknownRequest, match="found 0"):
        store.request(asked.id)


def test_a_request_is_shown_as_it_stands(team: Team) -> None:
    """Open, approved, denied, expired or void; gone once the thread has moved on."""
    open_, approved, denied, moved, spent = _ask(team, "o", "a", "d", "m", "s")
    team.approve(open_, "ann")
    team.approve(approved)
    team.approve(spent)
    team.store("carl").deny(denied.id, reason="no")
    team.thread(name="m").save(2, world=READ)
    team.thread(name="s").resume(world=SHELL)

    expected = [("o", "open"), ("a", "approved"), ("d", "denied")]
    for _ in range(2):
        assert _listed(team) == expected
    with pytest.raises(UnknownRequest):
        team.store("ann").request(moved.id)
    team.later(hours=2)
    assert _listed(team) == [("o", "expired"), ("a", "expired"), ("d", "denied")]
    team.apply(policy("another"))
    assert _listed(team, "bob")[0] == ("o", "expired")


def test_another_policy_voids_what_was_asked_for(team: Team) -> None:
    """Nobody can approve it any more, and it says so."""
    (request,) = _ask(team, "t")
    team.approve(request)
    team.apply(policy("another", needed=1))

    assert _listed(team) == [("t", "void")]


def test_what_was_verified_is_not_trusted_to_stay(team: Team) -> None:
    """A list that was made before takes in what came since."""
    (request,) = _ask(team, "t")
    assert _listed(team) == [("t", "open")]
    team.approve(request, "bob")
    assert team.store("ann").request(request.id).approved_by == ("bob",)
    team.end("bob")
    assert team.store("ann").request(request.id).approved_by == ()
    team.thread("officer").erase(reason="asked for")

    assert _listed(team) == []


def test_a_restore_voids_what_was_asked_for(team: Team) -> None:
    """Also on a desk that has listed it before, and though its thread lost nothing."""
    _ask(team, "t")
    team.thread(name="u").save(1, world=READ)
    assert _listed(team) == [("t", "open")]
    backup = Backup(team.world)
    team.thread(name="u").save(2, world=READ)
    backup.put_back()
    accepted(team.world)
    team.store("ann").core.renewed_trust()

    assert _listed(team) == []
    assert _listed(team, "bob") == []


def test_a_request_is_found_by_its_first_digits(team: Team) -> None:
    """Eight or more; what is no id is refused before anything is read."""
    (request,) = _ask(team, "t")
    store = team.store("ann")

    assert (
        store.request(request.id) == store.request(request.id[:8]) == store.request(request.short)
    )
    for digits in ("", request.id[:7], request.id + "0", request.id.upper(), "z" * 10, "../../etc"):
        with pytest.raises(UsageError, match="8 to 64 digits"):
            store.request(digits)
    with pytest.raises(UnknownRequest):
        store.request("0" * 64)


def test_requests_of_another_namespace_are_not_listed(team: Team) -> None:
    """Each namespace has its own desk."""
    (mine,) = _ask(team, "t")
    billing = team.world.open("worker", gated=True, namespace="billing")
    billing.thread("t").save(1, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        billing.thread("t").resume(world=SHELL)
    assert isinstance(needs.value.request, Request)

    assert [each.id for each in team.store("ann").requests().requests] == [mine.id]
    assert [each.id for each in billing.requests().requests] == [needs.value.request.id]
    far = team.world.open("far", gated=True, namespace="billing")
    far.approve(needs.value.request.id, reason="fine")
    assert billing.request(needs.value.request.id).approved_by == ("far",)


def test_whoever_only_reads_may_look(team: Team) -> None:
    """Listing writes nothing, neither store nor anchor."""
    (request,) = _ask(team, "t")
    before = team.everything()
    reader = team.world.open(None, read_only=True, gated=True)

    assert reader.request(request.id).status is Status.OPEN
    assert reader.thread("t").requests()[0].id == request.id
    assert team.everything() == before


def test_a_thread_that_cannot_be_read_is_named(memory: Team) -> None:
    """The others are listed, and that one is not taken for quiet."""
    _ask(memory, "good", "bad")
    thread = memory.world.thread_id("bad")
    record = memory.world.record("bad", 3)
    memory.world.put(thread, 3, Record(record.header[:-2] + b" }", record.seals, record.body))
    found = memory.world.open("ann", gated=True).requests()

    assert [each.thread for each in found.requests] == ["good"]
    assert [failed for failed, _ in found.failures] == [thread.hex()]


def _written(team: Team, kind: Kind, body: Body, who: str, at: datetime) -> None:
    """Append an entry to thread t as somebody whose clock is their own."""
    thread = team.world.thread_id("t")
    rows = dict(team.store("operator").storage.inner.scan(thread, 0))
    seq, newest = len(rows), parse_header(rows[len(rows) - 1].header)
    data = encode_body(body)
    header = replace(
        newest,
        seq=seq,
        prev=link_hash(rows[seq - 1].header).hex(),
        skip=link_hash(rows[skip_seq(seq)].header).hex(),
        kind=kind,
        **Marks.of(newest).after(kind, seq)._asdict(),
        by=key(who).public.id.raw.hex(),
        body=hashlib.sha256(data).hexdigest(),
        at=at,
    )
    raw = encode_header(header)
    team.world.put(thread, seq, Record(raw, seals(raw, key(who)), data))


def test_the_desk_takes_no_time_from_what_anybody_may_write(memory: Team) -> None:
    """An approver's clock that runs ahead ends no request in the list."""
    (request,) = _ask(memory, "t")
    word = attest(key("ann"), request.id, Verdict.APPROVE, "fine")
    ahead = memory.world.clock + timedelta(days=3000)
    _written(memory, Kind.APPROVAL, VerdictBody(salt="ab" * 32, attestation=word), "ann", ahead)

    assert _listed(memory, "bob") == [("t", "open")]


def test_the_desk_does_not_follow_a_clock_that_goes_back(memory: Team) -> None:
    """What had expired by an operator's entry stays so in the list, whatever came after it."""
    _ask(memory, "t")
    start, late = memory.world.clock, memory.world.clock + timedelta(hours=2)
    pause = PauseBody(salt="ab" * 32, reason="look")
    _written(memory, Kind.PAUSE, pause, "operator", late)
    _written(memory, Kind.UNPAUSE, UnpauseBody(salt="ab" * 32, reason="fine"), "operator", start)

    assert _listed(memory, "bob") == [("t", "expired")]


def test_whoever_cannot_look_is_told(memory: Team) -> None:
    """A list that could not be made is no empty list."""
    _ask(memory, "t")
    store = memory.store("ann")
    store.anchor.listing.before = _failing(AnchorUnavailable("gone"))
    with pytest.raises(AnchorUnavailable):
        store.requests()
    store.storage.scanning.before = _failing(StorageUnavailable("gone"))

    assert len(store.requests().failures) == 1


def _failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_a_thread_is_read_by_two_looks(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its newest entry, then those below it at once; one that waits for nobody by a single look."""
    _ask(team, "t")
    team.thread(name="quiet").save(1, world=READ)
    store = team.store("ann")
    storage, looks = store.storage, list[bytes]()

    def noting(look: Callable[..., Any]) -> Callable[..., Any]:
        def noted(thread: bytes, *args: Any, **options: Any) -> Any:
            looks.append(thread)
            return look(thread, *args, **options)

        return noted

    for name in ("scan", "read"):
        monkeypatch.setattr(storage, name, noting(getattr(storage, name)))
    ids = [team.world.thread_id(name) for name in ("t", "quiet")]

    assert len(store.requests().requests) == 1
    assert [looks.count(each) for each in ids] == [2, 1]


@pytest.mark.parametrize("batch", [1, 2, None])
def test_a_desk_of_many_threads_is_read_whole(
    memory: Team, monkeypatch: pytest.MonkeyPatch, batch: int | None
) -> None:
    """On all cores or on one: every request in its order, and every thread that cannot be read."""
    if batch is not None:
        monkeypatch.setattr("sealpoint.gate._request_list._FEW", 1)
        monkeypatch.setattr("sealpoint.signing._signature_workers._FEW", 0)
        monkeypatch.setattr("sealpoint.signing._signature_workers._BATCH", batch)
        monkeypatch.setattr("os.cpu_count", lambda: 2)
    names = [f"run {number}" for number in range(7)]
    asked = _ask(memory, *names)
    damaged = memory.world.thread_id(names[3])
    memory.world.put(damaged, 2, None)
    found = memory.store("ann").requests()

    assert [each.id for each in found.requests] == [
        each.id for number, each in enumerate(asked) if number != 3
    ]
    assert [thread for thread, _ in found.failures] == [damaged.hex()]
    assert memory.store("ann").requests() == found


@pytest.mark.parametrize("seq", [1, 3])
def test_a_signature_that_is_not_good_is_found_by_processes_too(
    memory: Team, monkeypatch: pytest.MonkeyPatch, seq: int
) -> None:
    """That of the request, and that of the session before it: in the same words as by one core."""
    asked = _ask(memory, *(f"run {number}" for number in range(7)))
    for number in (2, 6):
        thread = memory.world.thread_id(f"run {number}")
        record = memory.world.record(f"run {number}", seq)
        (pair,) = json.loads(record.seals)
        pair[1] = ("0" if pair[1][0] != "0" else "1") + pair[1][1:]
        edited = json.dumps([pair], separators=(",", ":")).encode()
        memory.world.put(thread, seq, replace(record, seals=edited))
    here = memory.store("ann").requests()
    monkeypatch.setattr("sealpoint.gate._request_list._FEW", 1)
    monkeypatch.setattr("sealpoint.signing._signature_workers._FEW", 0)
    monkeypatch.setattr("sealpoint.signing._signature_workers._BATCH", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)

    assert len(here.requests) == len(asked) - 2
    assert ["expected a valid one" in words for _, words in here.failures] == [True, True]
    assert memory.store("ann").requests() == here


def test_what_is_written_while_a_thread_is_read_is_no_damage(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The anchor may have seen more than what was read at once before: then it is read anew."""
    (request,) = _ask(team, "t")
    near = NearEntries

    def read_then_approved(*args: Any) -> NearEntries:
        made = near(*args)
        monkeypatch.undo()
        team.approve(request, "bob")
        return made

    monkeypatch.setattr("sealpoint.gate._thread_status.NearEntries", read_then_approved)
    found = team.store("ann").requests()

    assert found.failures == ()
    assert [each.approved_by for each in found.requests] == [("bob",)]


def test_requests_far_below_the_newest_entry_are_listed(team: Team) -> None:
    """Whatever was said to them since, and however much of that is read apart."""
    (request,) = _ask(team, "t")
    for number in range(40):
        team.thread("operator").pause(reason=f"{number}")
        team.thread("operator").unpause(reason=f"{number}")

    assert _listed(team) == [("t", "open")]
    assert team.store("bob").request(request.id).status is Status.OPEN
