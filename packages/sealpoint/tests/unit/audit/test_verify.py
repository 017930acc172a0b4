# SPDX-License-Identifier: Apache-2.0
"""Full verification: a clean store is clean, and every kind of damage has its finding."""

import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from sealpoint.audit import QUESTION_PASSED, Finding, Progress, Report
from sealpoint.errors import RolledBack, SealpointError
from sealpoint.gate import Thread
from sealpoint.ledger import STORE_CHAIN, Origin, link_hash, parse_header
from sealpoint.signing import PrivateKey
from sealpoint.signing import _signature_workers as workers_module
from sealpoint.storage import Record
from sealpoint.store import Key, ResultsDraft, SaveDraft
from tests.deployment import Deployment
from tests.ledgers import identity, key, sealed
from tests.unit.gate.team import policy


@pytest.fixture
def world() -> Iterator[Deployment]:
    """Three threads of 10, 10 and 3 entries beside a store chain of one."""
    made = Deployment()
    store = made.open()
    for name in ("good", "bad"):
        for number in range(8):
            state = {"n": number, "long": [f"message {name} {n} {'x' * 60}" for n in range(60)]}
            store.thread(name).save(state, world={"tools": [name]}, metadata={"n": number})
    store.thread("short").save(1)
    yield made
    made.close()


_ENTRIES = 1 + 10 + 10 + 3


def _only(report: Report, world: Deployment) -> Finding:
    """The one finding, which is about the bad thread."""
    assert len(report.findings) == 1, report.findings
    assert report.findings[0].thread == world.thread_id("bad").hex()
    return report.findings[0]


def test_a_clean_store_is_clean(world: Deployment) -> None:
    """Everything is counted once, and nothing is found."""
    report = world.open().verify()

    assert report == Report(ok=True, entries=_ENTRIES, findings=())
    assert report.as_dict() == {"ok": True, "entries": _ENTRIES, "findings": ()}


def test_verification_writes_nothing(world: Deployment) -> None:
    """Neither store nor anchor changes, even where the anchor is behind."""
    position = world.position("bad")
    assert position is not None
    behind = type(position)(position.thread, 0, 0, -1, bytes(32))
    world.turn_anchor(world.slot("bad"), behind)
    store = world.open()
    before = store.anchor.writes

    assert store.verify().ok
    assert (store.anchor.writes, store.storage.offered) == (before, [])
    assert world.position("bad") == behind


def _set(world: Deployment, seq: int, **changes: Any) -> None:
    record = world.record("bad", seq)
    world.put(world.thread_id("bad"), seq, msgspec.structs.replace(record, **changes))


def _resigned(world: Deployment, seq: int, signer: PrivateKey, **changes: Any) -> None:
    record = world.record("bad", seq)
    by = signer.public.id.raw.hex()
    header = msgspec.structs.replace(parse_header(record.header), by=by, **changes)
    world.put(world.thread_id("bad"), seq, sealed(header, record.body, signer))


def _flipped(data: bytes | None) -> bytes:
    assert data is not None
    return data[:9] + bytes([data[9] ^ 1]) + data[10:]


def _cut(world: Deployment, first: int) -> None:
    for seq in range(first, 10):
        world.put(world.thread_id("bad"), seq, None)


def _first_blob(world: Deployment, blob: bytes | None) -> None:
    name = next(iter(world.blobs("bad")))
    world.put_blob("bad", name, blob)


_DAMAGE: dict[str, tuple[Callable[[Deployment], object], str, int]] = {
    "an edited header": (lambda w: _set(w, 4, header=_flipped(w.record("bad", 4).header)), "?", 4),
    "another spelling": (
        lambda w: _set(w, 4, header=w.record("bad", 4).header + b" "),
        "edited",
        4,
    ),
    "an edited body": (lambda w: _set(w, 4, body=_flipped(w.record("bad", 4).body)), "edited", 4),
    "a body of another entry": (lambda w: _set(w, 4, body=w.record("bad", 5).body), "edited", 4),
    "edited seals": (lambda w: _set(w, 4, seals=b"[]"), "edited", 0),
    "seals of another entry": (
        lambda w: _set(w, 4, seals=w.record("bad", 5).seals),
        "forged",
        0,
    ),
    "an entry of another thread": (
        lambda w: w.put(w.thread_id("bad"), 4, w.record("good", 4)),
        "misplaced",
        0,
    ),
    "an entry twice": (
        lambda w: w.put(w.thread_id("bad"), 5, w.record("bad", 4)),
        "misplaced",
        0,
    ),
    "a hole": (lambda w: w.put(w.thread_id("bad"), 4, None), "missing", 0),
    "no genesis": (lambda w: w.put(w.thread_id("bad"), 0, None), "missing", 0),
    "an edited genesis": (lambda w: _set(w, 0, header=b"{}"), "edited", 0),
    "a shortened thread": (lambda w: _cut(w, 9), "rolled-back", 9),
    "a dropped thread": (lambda w: _cut(w, 0), "rolled-back", 0),
    "an unknown thread": (lambda w: w.forget("bad"), "unanchored", 10),
    "a key of another role": (
        lambda w: _resigned(w, 4, key("operator")),
        "not-trusted",
        0,
    ),
    "a stranger's key": (lambda w: _resigned(w, 4, key("stranger")), "not-trusted", 0),
    "a fence that is none": (lambda w: _resigned(w, 4, key("worker"), fence=0), "not-trusted", 4),
    "another genuine entry": (
        lambda w: _resigned(w, 9, key("worker"), at=datetime(2026, 1, 2, 3, 9, tzinfo=UTC)),
        "forked",
        10,
    ),
    "a missing blob": (lambda w: _first_blob(w, None), "missing", 2),
    "an edited blob": (lambda w: _first_blob(w, b"evil"), "edited", 2),
    "a swollen blob": (lambda w: _first_blob(w, bytes((16 << 20) + 1)), "edited", 2),
}


@pytest.mark.parametrize(("damage", "code", "entries"), _DAMAGE.values(), ids=_DAMAGE)
def test_damage_is_found_and_the_rest_still_verifies(
    world: Deployment, damage: Callable[[Deployment], object], code: str, entries: int
) -> None:
    """The finding has the code of what a reader would get; other threads are verified as ever."""
    store = world.open()
    bad = world.thread_id("bad").hex()
    damage(world)
    report = store.verify()
    found = report.findings

    assert not report.ok
    assert [finding.thread for finding in found] == [bad]
    assert found[0].refuses
    assert found[0].code == code or (code == "?" and found[0].code in {"edited", "forged"})
    good = _ENTRIES - 10
    assert good <= report.entries <= good + 10
    assert report.entries <= good + max(entries, 10)


def test_a_payload_beside_an_entry_is_checked(world: Deployment) -> None:
    """A small root blob that lies with its entry is proven like any other."""
    thread = world.thread_id("short")
    record = world.record("short", 2)
    assert record.payload is not None
    codes = []
    for payload in (None, record.payload + b"x", b""):
        world.put(thread, 2, msgspec.structs.replace(record, payload=payload))
        codes += [finding.code for finding in world.open().verify().findings]

    assert codes == ["missing", "edited", "edited"]


def test_a_missing_body_is_found(world: Deployment) -> None:
    """No erasure came after it, so a body that is gone was taken away."""
    _set(world, 9, body=None)
    report = world.open().verify()
    with pytest.raises(SealpointError) as caught:
        world.open().thread("bad").load()

    assert not report.ok
    assert _only(report, world).code == caught.value.code == "missing"


def test_a_planted_copy_is_found(world: Deployment) -> None:
    """Genuine entries under another id are misplaced; the original is not blamed."""
    for seq in range(10):
        world.put(b"x" * 16, seq, world.record("good", seq))
    report = world.open().verify()

    assert [(finding.code, finding.thread) for finding in report.findings] == [
        ("misplaced", (b"x" * 16).hex())
    ]
    assert report.entries == _ENTRIES


def test_every_damaged_thread_has_its_finding(world: Deployment) -> None:
    """One bad thread does not hide another."""
    for name in ("good", "bad", "short"):
        world.put(world.thread_id(name), 1, None)
    report = world.open().verify()

    assert sorted(finding.thread for finding in report.findings) == sorted(
        world.thread_id(name).hex() for name in ("good", "bad", "short")
    )
    assert {finding.code for finding in report.findings} == {"missing"}


def test_a_damaged_store_chain_is_no_finding_but_an_error(world: Deployment) -> None:
    """Without the roster nothing can be judged."""
    world.enrol(identity("second"))
    store = world.open()
    world.put(STORE_CHAIN, 1, None)

    with pytest.raises(RolledBack):
        world.open()
    record = world.memory._records[STORE_CHAIN][0]
    world.put(STORE_CHAIN, 0, Record(record.header, record.seals, b""))
    assert store.core.trust().seq == 1


def test_threads_of_all_namespaces_are_verified(world: Deployment) -> None:
    """An audit is of the store, whatever namespace it is opened for."""
    world.open(namespace="billing").thread("bill").save(1)

    assert world.open().verify().entries == _ENTRIES + 3
    assert world.open(namespace="elsewhere").verify().entries == _ENTRIES + 3
    world.put(world.thread_id("bill", "billing"), 2, None)
    assert [finding.code for finding in world.open().verify().findings] == ["rolled-back"]


def test_a_reserved_slot_is_no_finding(world: Deployment) -> None:
    """A name that was only reserved misses nothing."""
    store = world.open()
    store.storage.fail(KeyboardInterrupt(), after=False)
    with pytest.raises(KeyboardInterrupt):
        store.thread("begun").save(1)

    assert store.verify().ok


def test_a_thread_made_during_the_verification_is_no_finding(world: Deployment) -> None:
    """A store in use verifies: what comes into being meanwhile is neither lost nor unknown."""
    store, writer = world.open(), world.open()
    made = iter(range(100))

    def meanwhile(_progress: Progress | None = None) -> None:
        writer.thread(f"new {next(made)}").save(1)
        writer.thread("good").save(next(made))

    store.anchor.listing.before = meanwhile
    store.storage.listing.before = meanwhile
    report = store.verify(meanwhile)

    assert report.findings == ()
    assert report.ok


def test_progress_is_told(world: Deployment) -> None:
    """It begins below the end, never goes back, and ends with everything."""
    seen: list[Progress] = []
    report = world.open().verify(seen.append)

    assert [each.threads for each in seen] == sorted(each.threads for each in seen)
    assert [each.entries for each in seen] == sorted(each.entries for each in seen)
    assert {each.threads_total for each in seen} == {3}
    assert seen[0].threads < 3
    assert seen[-1] == Progress(threads=3, threads_total=3, entries=report.entries)
    assert len(seen) >= 4


def test_time_that_runs_backwards_is_worth_a_look(world: Deployment) -> None:
    """It refuses nothing, and the report stays good."""
    position = world.position("bad")
    assert position is not None
    old = datetime(2001, 1, 1, tzinfo=UTC)
    _resigned(world, 9, key("worker"), at=old)
    changed = world.record("bad", 9)
    moved = msgspec.structs.replace(position, seq=8, entry=link_hash(world.record("bad", 8).header))
    world.turn_anchor(world.slot("bad"), moved)
    report = world.open().verify()
    finding = _only(report, world)

    assert report.ok
    assert report.entries == _ENTRIES
    assert (finding.code, finding.refuses) == ("time", False)
    assert "entry 9" in finding.message
    assert "2001-01-01" in finding.message
    assert parse_header(changed.header).at == old
    assert finding.as_dict()["refuses"] is False


def test_time_far_ahead_is_worth_a_look(world: Deployment) -> None:
    """An entry more than a day in the future is told; one within the day is not."""
    genuine = world.clock
    world.clock = genuine + timedelta(hours=23)
    world.open().thread("short").save(2)
    world.clock = genuine
    assert world.open().verify().findings == ()
    world.clock = genuine + timedelta(days=30)
    world.open().thread("short").save(3)
    world.clock = genuine
    report = world.open().verify()

    assert report.ok
    assert [finding.code for finding in report.findings] == ["time", "time"]
    assert "far in the future" in report.findings[0].message


def test_a_report_is_json(world: Deployment) -> None:
    """What the command line prints can be read back."""
    world.put(world.thread_id("bad"), 4, None)
    report = world.open().verify()
    read = json.loads(json.dumps(report.as_dict()))

    assert read["ok"] is False
    assert read["findings"][0]["code"] == "missing"
    assert list(read["findings"][0]) == ["code", "thread", "name", "message", "refuses"]
    assert read["findings"][0]["name"] == "bad"


def test_no_finding_quotes_a_payload(world: Deployment) -> None:
    """A finding names places and digests, whatever was found there."""
    _set(world, 4, body=b'{"secret":"stolen payload"}')
    _first_blob(world, b"stolen payload")

    assert "stolen" not in json.dumps(world.open().verify().as_dict())


def _peak(entries: int) -> int:
    world = Deployment()
    thread = world.open().thread("t")
    for number in range(entries - 2):
        thread.save(number)
    store = world.open(None, read_only=True)
    store.storage.notes_reads = False
    tracemalloc.start()
    try:
        report = store.verify()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    world.close()

    assert report.entries == entries + 1
    return peak


def test_memory_does_not_follow_the_length_of_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the entries take no more memory, once there are more than fit into the batches."""
    monkeypatch.setattr(workers_module, "_BATCH", 4)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    _peak(20)
    short, long = _peak(200), _peak(2000)

    # An entry takes more than 1,000 bytes once it is parsed; the interpreter itself may keep up
    # to 2,000 freed tuples of each size.
    assert long < short + 300_000


# ------------------------------------------------------------------ signatures in processes


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every signature is checked by them, however small the store is; how many each was asked."""
    asked: list[int] = []
    ask = workers_module._Worker.ask

    def noted(worker: Any, batch: Any) -> None:
        asked.append(len(batch.signed))
        ask(worker, batch)

    monkeypatch.setattr(workers_module._Worker, "ask", noted)
    monkeypatch.setattr(workers_module, "_FEW", -1)
    monkeypatch.setattr(workers_module, "_BATCH", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(workers_module, "_WAITING_MAX", 99)
    return asked


def test_processes_find_a_clean_store_clean(world: Deployment, processes: list[int]) -> None:
    """All signatures of threads go there."""
    report = world.open().verify()

    assert report == Report(ok=True, entries=_ENTRIES, findings=())
    assert sum(processes) == _ENTRIES - 1


def _other_signature(record: Record) -> Record:
    (pair,) = json.loads(record.seals)
    pair[1] = ("0" if pair[1][0] != "0" else "1") + pair[1][1:]
    return msgspec.structs.replace(record, seals=json.dumps([pair], separators=(",", ":")).encode())


_HARM: dict[str, Callable[[Record], Record]] = {
    "a signature": _other_signature,
    "a short signature": lambda record: msgspec.structs.replace(
        record, seals=record.seals[:-6] + record.seals[-4:]
    ),
    "no signature": lambda record: msgspec.structs.replace(record, seals=b"[]"),
    "a header": lambda record: msgspec.structs.replace(
        record, header=record.header.replace(b'"gen":0', b'"gen":1')
    ),
    "a place": lambda record: msgspec.structs.replace(
        record, header=record.header.replace(b'"seq":4', b'"seq":5')
    ),
}


@pytest.mark.parametrize("harm", _HARM)
def test_processes_find_the_same(
    world: Deployment, request: pytest.FixtureRequest, harm: str
) -> None:
    """What is amiss is said as this process says it, in the same words."""
    changed = _HARM[harm](world.record("bad", 4))
    assert changed != world.record("bad", 4)
    world.put(world.thread_id("bad"), 4, changed)
    here = world.open().verify()
    request.getfixturevalue("processes")

    assert _only(here, world).refuses
    assert world.open().verify().findings == here.findings


def test_processes_are_started_for_many_entries_alone(
    world: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small store is verified before a process would have started."""
    started: list[int] = []

    def start() -> list[Any]:
        started.append(1)
        return []

    monkeypatch.setattr(workers_module, "_start_workers", start)

    assert world.open().verify().ok
    assert not started


# ------------------------------------------------------------------ questions


def _passed(world: Deployment) -> list[str]:
    """The notes about questions; the report must be good."""
    report = world.open("operator", gated=True).verify()
    assert report.ok, report.findings
    assert all(not each.refuses and each.name == "ask" for each in report.findings)
    assert {each.code for each in report.findings} <= {QUESTION_PASSED}
    return [each.message for each in report.findings]


def _draft(state: int, name: str, **options: Any) -> SaveDraft:
    return SaveDraft(state, name, None, None, None, **options)


def _commit(thread: Thread, *drafts: SaveDraft | ResultsDraft) -> None:
    """Save as an adapter does."""
    for outcome in thread.adapter.commit(drafts):
        assert not isinstance(outcome, SealpointError), outcome


def _ask(world: Deployment) -> Thread:
    """A run of one session whose newest checkpoint, in entry 3, asks something."""
    world.apply(policy(needed=1, answer="record", older_checkpoint="record"))
    thread = world.open("worker", gated=True).thread("ask")
    thread.save(1, id="1")
    thread.save(2, id="2", question="May I pay?")
    return thread


@pytest.mark.parametrize("name", ["2", "3"])
def test_a_run_that_continues_past_its_question_is_worth_a_look(
    world: Deployment, name: str
) -> None:
    """Both entries are named, also where the same checkpoint is saved again; nothing is refused."""
    thread = _ask(world)
    assert _passed(world) == []
    _commit(thread, _draft(3, name, supersedes=True))
    thread.save(4, id="4")

    (message,) = _passed(world)
    assert message == (
        "entry 4: the run continued past its question in entry 3 in the same session, without an "
        "answer"
    )


def test_a_question_that_was_answered_is_not_passed(world: Deployment) -> None:
    """The resume records the answer."""
    _ask(world)
    thread = world.open("worker", gated=True).thread("ask")
    thread.resume(world=None, answer="yes")
    thread.save(3, id="3")

    assert _passed(world) == []


def test_a_question_that_a_resume_went_on_from_elsewhere_is_not_passed(world: Deployment) -> None:
    """The policy has judged that the run continues from an older checkpoint."""
    _ask(world)
    thread = world.open("worker", gated=True).thread("ask")
    thread.resume(world=None, ref="1")
    thread.save(3, id="3")

    assert _passed(world) == []


def test_a_question_that_was_deleted_is_not_passed(world: Deployment) -> None:
    """A deletion is recorded, and judged with what is resumed next."""
    thread = _ask(world)
    thread.adapter.delete([Key("", "2")])
    thread.save(3, id="3")

    assert _passed(world) == []


def test_a_question_that_is_asked_again_is_not_passed(world: Deployment) -> None:
    """A run that still waits, and an older checkpoint that is saved again, pass nothing."""
    thread = _ask(world)
    thread.save(3, id="3", question="May I pay now?")
    thread.save(1, id="1")  # an exact repetition, which writes nothing
    _commit(thread, _draft(9, "1", supersedes=True))
    assert _passed(world) == []
    thread.save(4, id="4")

    assert ["in entry 4 in" in message for message in _passed(world)] == [True]


def test_a_copied_history_passes_no_question(world: Deployment) -> None:
    """A copy repeats what became of its questions elsewhere; the first save of its own does not."""
    world.apply(policy(needed=1, answer="record", older_checkpoint="record"))
    thread = world.open("worker", gated=True).thread("ask")
    origin = Origin(thread="ab" * 16, entry="cd" * 32, at=world.clock)
    drafts = [
        _draft(number, str(number), question=question, origin=origin)
        for number, question in enumerate(["May I?", None, "And this?"])
    ]
    _commit(thread, *drafts)
    assert _passed(world) == []
    thread.save(3, id="3")

    assert len(_passed(world)) == 1


def test_a_question_of_a_lane_is_not_followed(world: Deployment) -> None:
    """A subgraph asks by its results, and its framework takes them in by itself."""
    thread = _ask(world)
    _commit(thread, _draft(1, "sub", lane="sub"))
    _commit(thread, ResultsDraft([], checkpoint="2", task="task", question="And this?"))

    assert _passed(world) == []
