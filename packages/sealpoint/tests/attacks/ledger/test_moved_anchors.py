# SPDX-License-Identifier: Apache-2.0
"""A member with a genuine key who may call the anchor, and moves it forward with other code.

The member never owned the thread. It adds entries that any role may add, takes rows away, makes
slots, and says of entries what they do not say. Honest processes are fresh ones.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealpoint.anchor import RESERVED_SEQ, Anchor, Position
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import (
    Forked,
    Misplaced,
    NotTrusted,
    Paused,
    RolledBack,
    SealpointError,
    UnknownThread,
    UsageError,
)
from sealpoint.ledger import (
    STORE_CHAIN,
    ExpiryBody,
    GenesisBody,
    Header,
    Kind,
    Marks,
    PositionList,
    encode_body,
    encode_header,
    link_hash,
    parse_header,
    skip_seq,
)
from sealpoint.storage import Record, Storage
from sealpoint.store import Core, ThreadOutcome, plan_restore, store_slot
from sealpoint.store._key_revocation import find_key_usage
from sealpoint.store._store_chain_writer import anchored_positions
from tests.deployment import Deployment, Opened, SimulatedAnchor
from tests.ledgers import SALT, key, seals
from tests.unit.gate.team import READ, Team, policy
from tests.unit.store.backup import accepted, planned


class _Scene:
    """A thread `t` of the worker's, and `spare`, who runs other code."""

    def __init__(self, folder: Path | None) -> None:
        self.world = Deployment(folder)
        self.team = Team(self.world, policy(needed=1))
        for number in range(2):
            self.team.thread().save({"n": number})
        self.slot = self.world.slot("t")
        self.id = self.world.thread_id("t")
        self.storage: Storage = self.team.store("spare").storage.inner

    @contextmanager
    def anchor(self) -> Iterator[Anchor]:
        """The anchor, as whoever may call it has it."""
        anchor = self.world._anchor(read_only=False)
        try:
            yield anchor
        finally:
            if self.world.folder is not None:
                anchor.close()

    def seen(self, name: str = "t") -> Position:
        """What the anchor has of a thread."""
        position = self.world.position(name)
        assert position is not None
        return position

    def rows(self, thread: bytes | None = None) -> list[Record]:
        """The records of a thread."""
        return [record for _, record in self.storage.scan(thread or self.id, 0)]

    def add(self, count: int = 1) -> None:
        """Add entries that any role may add, signed by spare."""
        for _ in range(count):
            rows = self.rows()
            seq, before = len(rows), parse_header(rows[-1].header)
            body = encode_body(ExpiryBody(salt=SALT, request=f"{seq:064x}"))
            self._append(
                body,
                msgspec.structs.replace(
                    before,
                    seq=seq,
                    prev=link_hash(rows[-1].header).hex(),
                    skip=link_hash(rows[skip_seq(seq)].header).hex(),
                    kind=Kind.EXPIRY,
                ),
            )

    def begin(self, name: str) -> Position:
        """Begin a thread of spare's own that calls itself so, and say where it is."""
        thread = os.urandom(16)
        body = encode_body(GenesisBody(salt=SALT, name=name, owner="spare"))
        first = parse_header(self.rows()[0].header)
        made = msgspec.structs.replace(first, thread=thread.hex())
        raw = self._append(body, made)
        entry = link_hash(raw)
        return Position(thread, 0, 0, 0, entry, fence=0, pause=0, owner=0, owner_entry=entry)

    def _append(self, body: bytes, header: Header) -> bytes:
        signer = key("spare")
        made = msgspec.structs.replace(
            header,
            by=signer.public.id.raw.hex(),
            body=hashlib.sha256(body).hexdigest(),
            at=self.world.now(),
            roster=self.team.store("spare").core.renewed_trust().roster.seq,
        )
        raw = encode_header(made)
        record = Record(raw, seals(raw, signer), body)
        self.storage.append(bytes.fromhex(made.thread), made.seq, [record], blobs={})
        return raw

    def cut(self, first: int) -> None:
        """Take the entries from a position on out of the store."""
        self.storage.truncate(self.id, first, self.rows()[first].header)

    def claim(self, **changes: Any) -> Position:
        """The newest entry as the anchor would have it, with some fields changed."""
        rows = self.rows()
        header = parse_header(rows[-1].header)
        marks = Marks.of(header)._asdict()
        fields = marks | {"seq": header.seq, "entry": link_hash(rows[-1].header)}
        return msgspec.structs.replace(self.seen(), **(fields | changes))

    def move(self, **changes: Any) -> None:
        """Move the anchor to the newest entry, with some fields changed."""
        claim = self.claim(**changes)
        with self.anchor() as anchor:
            assert anchor.advance(self.slot, self.seen(), claim) == claim

    def refuses(self, position: Position) -> bool:
        """Whether the anchor refuses to move the slot of `t`, and leaves it as it is."""
        before = self.seen()
        with self.anchor() as anchor, pytest.raises(UsageError):
            anchor.advance(self.slot, before, position)
        return self.seen() == before

    def process(self, who: str | None = "worker") -> Opened:
        """A fresh process of somebody."""
        return self.world.open(who, gated=True, read_only=who is None)

    def findings(self) -> list[tuple[str, str]]:
        """Code and thread of all that verify reports."""
        found = self.process(None).verify()
        assert found.ok == (not found.findings)
        return [(each.code, each.thread) for each in found.findings]

    def readers(self) -> list[Callable[[], object]]:
        """Fresh processes that read or write `t`."""
        return [
            lambda: self.process(None).thread("t").load(),
            lambda: self.process().thread("t").load(),
            lambda: self.process().thread("t").resume(world=None),
            lambda: self.process("operator").thread("t").pause("stop"),
        ]


@pytest.fixture(params=["memory", "local"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[_Scene]:
    """A scene in memory, and one with the anchor and the store in files."""
    scene = _Scene(None if request.param == "memory" else tmp_path)
    yield scene
    scene.world.close()


# ---------------------------------------------------------------------- one slot more


@pytest.mark.parametrize("seq", [RESERVED_SEQ, 0, 3, 10**12])
def test_another_slot_of_a_thread_blocks_nobody(
    scene: _Scene, seq: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are revoked and policies changed all the same, and verify tells of the slot."""
    lists: list[PositionList] = []
    plain = PositionList.of

    def noted(lines: Iterable[tuple[bytes, int, bytes]]) -> PositionList:
        lists.append(plain(lines))
        return lists[-1]

    monkeypatch.setattr(PositionList, "of", noted)
    planted = msgspec.structs.replace(scene.seen(), seq=seq, fence=-1, pause=-1, owner=-1)
    with scene.anchor() as anchor:
        anchor.create(os.urandom(32), planted)
        anchor.create(b"\x01" * 32, planted)
    scene.team.apply(policy("strict", needed=3))
    scene.team.end("spare")

    assert lists
    assert {made.position(scene.id) for made in lists} <= {None, (3, scene.seen().entry)}
    assert scene.findings() == [("misplaced", scene.id.hex())] * 2
    assert list(scene.process().threads()) == ["t"]
    assert planned(scene.world).losses == ()


def test_another_slot_of_a_thread_without_a_genesis_blocks_nobody(scene: _Scene) -> None:
    """Where the store does not show which slot is the thread's, the lowest is what is signed."""
    seen = scene.seen()
    for other in (0, 10**12):
        planted = msgspec.structs.replace(seen, seq=other, fence=-1, pause=-1, owner=-1)
        with scene.anchor() as anchor:
            anchor.create(os.urandom(32), planted)
    scene.cut(0)
    scene.team.apply(policy("strict", needed=3))
    chain = scene.process(None).core.trust()
    listed = chain.lists.get(chain.roster.positions or "").position(scene.id)
    scene.team.end("spare")

    assert listed == (0, seen.entry)
    assert ("misplaced", scene.id.hex()) in scene.findings()
    assert ("rolled-back", scene.id.hex()) in scene.findings()


def test_slot_that_names_the_store_chain_blocks_nobody(scene: _Scene) -> None:
    """The store chain is no thread, whatever a slot says."""
    with scene.anchor() as anchor:
        anchor.create(os.urandom(32), Position(STORE_CHAIN, 0, 0, 0, bytes(32)))
    scene.team.apply(policy("strict", needed=3))
    scene.team.end("spare")

    assert scene.findings() == [("misplaced", STORE_CHAIN.hex())]


def test_epoch_that_never_began_blocks_one_thread(scene: _Scene) -> None:
    """A slot far ahead in epochs keeps nobody from ending a key, nor from planning a restore."""
    scene.move(epoch=7)
    scene.team.end("spare")

    with pytest.raises(NotTrusted):
        scene.process().thread("t").load()
    scene.process().thread("u").save({"n": 1})
    assert [each.name for each in planned(scene.world).losses] == ["t"]


# ---------------------------------------------------------------------- another thread


def test_slot_is_not_moved_to_another_thread(scene: _Scene) -> None:
    """A second thread of the same name does not take the place of the first."""
    other = msgspec.structs.replace(scene.begin("t"), seq=9)

    assert scene.refuses(other)
    assert scene.refuses(msgspec.structs.replace(other, epoch=1))
    assert scene.process().thread("t").load().state == {"n": 1}


@pytest.mark.parametrize("whose", ["worker", "spare"])
def test_thread_is_not_read_under_another_name(scene: _Scene, whose: str) -> None:
    """A slot that names a thread of another name is refused, by whoever reads or writes there."""
    position = scene.seen() if whose == "worker" else scene.begin("mine")
    with scene.anchor() as anchor:
        anchor.create(scene.world.slot("u"), position)

    for call in ("load", "pause"):
        thread = scene.process("operator").thread("u")
        with pytest.raises(Misplaced, match="another name"):
            thread.load() if call == "load" else thread.pause("stop")
    with pytest.raises(Misplaced, match="another name"):
        scene.process().thread("u").save({"n": 2})
    assert ("misplaced", position.thread.hex()) in scene.findings()


# ---------------------------------------------------------------------- what is said of an entry


def test_pause_is_not_lifted_by_the_anchor(scene: _Scene) -> None:
    """The anchor that has seen a pause does not say otherwise of it."""
    scene.process("operator").thread("t").pause("stop")
    scene.add()

    assert scene.refuses(scene.claim(paused=False))


@pytest.mark.parametrize("paused", [True, False])
def test_pause_that_the_anchor_denies_is_refused(scene: _Scene, paused: bool) -> None:  # noqa: FBT001
    """Who moves the anchor past a pause, or past its end, cannot say something else of it."""
    stale = scene.seen()
    operator = scene.process("operator").thread("t")
    operator.pause("stop")
    if not paused:
        operator.unpause("go on")
    scene.add()
    scene.world.turn_anchor(scene.slot, stale)  # the operator's process died before the anchor
    scene.move(paused=not paused)

    for call in scene.readers():
        with pytest.raises(NotTrusted, match="the anchor says that it is not so"):
            call()
    assert scene.findings() == [("not-trusted", scene.id.hex())]
    accepted(scene.world)
    assert scene.process("operator").thread("t").paused is paused
    assert scene.findings() == []


def test_mark_that_was_left_out_is_put_right(scene: _Scene) -> None:
    """Who moves the anchor past a pause without its mark gains nothing once anybody has looked."""
    stale = scene.seen()
    scene.process("operator").thread("t").pause("stop")
    true = scene.seen()
    scene.world.turn_anchor(scene.slot, stale)
    scene.move(pause=0, paused=False)
    assert scene.findings() == [("not-trusted", scene.id.hex())]
    scene.process().thread("t").load()

    assert scene.seen() == true
    assert scene.findings() == []


def test_local_anchor_is_told_what_was_judged() -> None:
    """A machine that saw a pause does not follow a shared anchor that says otherwise of it."""
    scene = _Scene(None)
    memory = MemoryAnchor()

    def process(who: str) -> Opened:
        shared = SimulatedAnchor(scene.world.anchored, closes=False)
        local = SimulatedAnchor(memory, closes=False)
        return scene.world.open(who, gated=True, anchor=local, shared_anchor=shared)

    with scene.anchor() as anchor:
        chain = anchor.get(scene.team.store("worker").core._slot)
        assert chain is not None
        memory.create(scene.team.store("worker").core._slot, chain)
    warm = process("worker").thread("t")
    warm.load()
    stale = scene.seen()
    process("operator").thread("t").pause("stop")
    scene.add()
    scene.world.turn_anchor(scene.slot, stale)
    scene.move(paused=False)

    for thread in (warm, process("worker").thread("t")):
        with pytest.raises(NotTrusted):
            thread.load()
    local = memory.get(scene.slot)
    assert local is not None
    assert (local.seq, local.paused) == (4, True)


def test_restore_loses_no_pause_that_the_anchor_denies(scene: _Scene) -> None:
    """The plan of a restore still knows of the pause after somebody moved the anchor."""
    scene.process("operator").thread("t").pause("stop")
    scene.add()
    with pytest.raises(UsageError):
        scene.move(paused=False)
    scene.move()
    scene.cut(4)
    (loss,) = planned(scene.world).losses

    assert (loss.paused, loss.loses_pause) == (True, True)
    accepted(scene.world, release=True)
    assert scene.process().thread("t").paused


@pytest.mark.parametrize("lie", [{"erased": True}, {"gen": 3}])
def test_erasure_that_only_the_anchor_knows_of_hides_nothing(
    scene: _Scene, lie: dict[str, Any]
) -> None:
    """Requests are listed, verify tells of it, and a restore keeps the thread."""
    asked = scene.team.ask(world=READ)
    scene.add()
    scene.move(**lie)

    assert [each.id for each in scene.process(None).requests().requests] == [asked.id]
    assert scene.findings() == [("not-trusted", scene.id.hex())]
    scene.cut(5)
    (loss,) = planned(scene.world).losses
    assert (loss.outcome, loss.kept) == (ThreadOutcome.BEHIND, 4)
    with pytest.raises(SealpointError, match="leave out"):
        list(scene.process(None).threads())
    (failure,) = scene.process(None).requests().failures
    assert failure[0] == scene.id.hex()
    accepted(scene.world)
    assert scene.process().thread("t").load().state == {"n": 1}


def test_erasure_that_only_the_anchor_knows_of_is_put_right(scene: _Scene) -> None:
    """Whoever reads the thread lets the anchor say what its entries say."""
    scene.add()
    true = scene.claim()
    scene.move(erased=True, gen=2)
    assert scene.process().thread("t").load().state == {"n": 1}

    assert scene.seen() == true
    assert scene.findings() == []


def test_erased_thread_is_listed_nowhere(scene: _Scene) -> None:
    """What was erased on purpose asks for nothing and fails nothing."""
    scene.team.ask(world=READ)
    scene.process("officer").thread("t").erase(reason="asked for")
    found = scene.process("ann").requests()

    assert (found.requests, found.failures) == ((), ())
    assert list(scene.process().threads()) == []
    assert scene.findings() == []


def test_entry_is_not_replaced_in_its_place(scene: _Scene) -> None:
    """The owner's newest checkpoint does not give way to an entry of somebody else's."""
    scene.cut(3)
    scene.add()

    assert scene.refuses(scene.claim())
    with pytest.raises(Forked):
        scene.process().thread("t").load()


# ---------------------------------------------------------------------- a new epoch


def _restored(scene: _Scene) -> Position:
    """A store in epoch 1 that kept a pause of `t`, and what an anchor held of it before."""
    scene.process("operator").thread("t").pause("stop")
    other = scene.process("spare").thread("other")
    for number in range(2):
        other.save({"n": number})
    stale, lost = scene.seen(), scene.world.thread_id("other")
    rows = scene.rows(lost)
    scene.storage.truncate(lost, len(rows) - 1, rows[-1].header)
    accepted(scene.world)
    return stale


def test_new_epoch_leaves_out_nothing_that_was_kept(scene: _Scene) -> None:
    """An anchor that has not looked since a restore is moved to the new epoch, below a pause."""
    stale = _restored(scene)
    scene.world.turn_anchor(scene.slot, stale)
    scene.cut(4)
    scene.move(epoch=1, paused=False)

    for call in scene.readers():
        with pytest.raises(RolledBack, match="the newest restore kept"):
            call()
    assert scene.findings() == [("rolled-back", scene.id.hex())]
    (loss,) = planned(scene.world).losses
    assert (loss.outcome, loss.seen) == (ThreadOutcome.BEHIND, 4)


def test_new_epoch_puts_nothing_in_the_place_of_what_was_kept(scene: _Scene) -> None:
    """The same, with entries of the new epoch in place of the pause."""
    stale = _restored(scene)
    scene.world.turn_anchor(scene.slot, stale)
    scene.cut(4)
    rows = scene.rows()
    before = parse_header(rows[-1].header)
    body = encode_body(ExpiryBody(salt=SALT, request="1" * 64))
    scene._append(
        body,
        msgspec.structs.replace(
            before,
            epoch=1,
            seq=4,
            prev=link_hash(rows[-1].header).hex(),
            skip=link_hash(rows[skip_seq(4)].header).hex(),
            kind=Kind.EXPIRY,
        ),
    )
    scene.add()
    scene.move(epoch=1, paused=False)

    for call in scene.readers():
        with pytest.raises((Forked, Misplaced)):
            call()
    assert scene.findings() == [("misplaced", scene.id.hex())]


def test_new_epoch_does_not_begin_a_thread_anew(scene: _Scene) -> None:
    """The same, as if the restore had kept nothing of the thread."""
    stale = _restored(scene)
    scene.world.turn_anchor(scene.slot, stale)
    scene.cut(0)
    with scene.anchor() as anchor:
        nothing = Position(scene.id, 1, 0, RESERVED_SEQ, bytes(32))
        assert anchor.advance(scene.slot, scene.seen(), nothing) == nothing

    for call in (scene.process().thread("t").load, lambda: scene.process().thread("t").save({})):
        with pytest.raises(RolledBack, match="the newest restore kept"):
            call()
    with pytest.raises(UnknownThread):
        scene.process().thread("never").load()


# ---------------------------------------------------------------------- a shared anchor


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("lie", ["slot", "name", "epoch", "chain"])
def test_shared_anchor_blocks_no_look_at_all_threads(lie: str, memory: bool) -> None:  # noqa: FBT001
    """Whatever a member makes of slots, on a machine that has seen the thread and on a new one."""
    scene = _Scene(None)
    local = MemoryAnchor()
    store_slot = scene.team.store("worker").core._slot
    for slot in (store_slot, *((scene.slot,) if memory else ())):
        position = scene.world.anchored.get(slot)
        assert position is not None
        local.create(slot, position)
    planted = {
        "slot": (b"\x01" * 32, scene.seen()),
        "name": (scene.world.slot("u"), scene.seen()),
        "chain": (scene.world.slot("u"), Position(STORE_CHAIN, 0, 0, 0, bytes(32))),
    }
    if lie == "epoch":
        scene.move(epoch=7)
    else:
        scene.world.anchored.create(*planted[lie])

    def look(core: Core) -> tuple[int, int, int]:
        usage = find_key_usage(core, frozenset({key("worker").public.id.raw.hex()}))
        listed = anchored_positions(core, core.trust())
        return len(next(iter(usage.positions.values()))), len(listed), plan_restore(core).threads

    shared = SimulatedAnchor(scene.world.anchored, closes=False)
    parts = {"anchor": SimulatedAnchor(local, closes=False), "shared_anchor": shared}

    assert scene.world.using(look, "operator", **parts) == (1, 1, 1)
    scene.world.open("worker", gated=True, **parts).thread("v").save({"n": 1})


def test_epoch_that_never_began_lifts_no_pause(scene: _Scene) -> None:
    """It wipes what the anchor had seen; the restore that explains the rest keeps the pause."""
    kept = len(scene.rows())
    scene.team.thread().save({"n": 2})
    scene.team.thread("operator").pause("fraud")
    seen, rows = scene.seen(), scene.rows()
    header = parse_header(rows[kept - 1].header)
    scene.cut(kept)
    earlier = msgspec.structs.replace(
        seen,
        epoch=1,
        seq=header.seq,
        entry=link_hash(rows[kept - 1].header),
        fence=header.fence,
        pause=header.pause,
        paused=False,
    )
    with scene.anchor() as anchor:
        assert anchor.advance(scene.slot, seen, earlier) == earlier
    report = scene.world.open(None, read_only=True, gated=True).verify()
    (loss,) = planned(scene.world).losses
    accepted(scene.world)

    assert not report.ok
    assert loss.loses_pause
    with pytest.raises(Paused):
        scene.team.fresh().save({"n": "through the pause"})


def test_thread_that_was_begun_anew_is_not_read_under_another_name(scene: _Scene) -> None:
    """The slot is made at its erasure, where the thread has no name."""
    scene.team.fresh("officer").erase(reason="asked for")
    erased = scene.seen()
    scene.team.fresh().save({"amount": 1000})
    with scene.anchor() as anchor:
        anchor.create(scene.world.slot("invoice-7"), erased)

    reader = scene.world.open(None, read_only=True, gated=True)
    for load in (reader.thread("invoice-7").load, scene.team.fresh(name="invoice-7").load):
        with pytest.raises(Misplaced, match="another name"):
            load()
    assert scene.team.fresh().load().state == {"amount": 1000}


@pytest.mark.parametrize("mark", ["fence", "pause"])
def test_marks_of_the_store_chain_stop_nobody(scene: _Scene, mark: str) -> None:
    """They mean nothing there, and never go down."""
    slot = store_slot(scene.world.secret)
    with scene.anchor() as anchor:
        seen = anchor.get(slot)
        assert seen is not None
        raised = msgspec.structs.replace(seen, **{mark: 0})
        assert anchor.advance(slot, seen, raised) == raised

    assert scene.team.fresh().load().state == {"n": 1}
    scene.team.apply(policy(needed=2))
    assert scene.team.fresh().save({"n": 2}).seq
