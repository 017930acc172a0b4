# SPDX-License-Identifier: Apache-2.0
"""Chains: whatever a writer builds verifies, and whatever an attacker changes is never believed."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sealpoint.errors import HeadMoved, SealpointError, Superseded
from sealpoint.ledger import Place, Tip, begin, extend, verify_entry
from sealpoint.storage import Record
from sealpoint.store import CheckpointRef
from tests.deployment import Deployment
from tests.effort import examples
from tests.ledgers import identity

_STATES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
_LARGE = st.integers(0, 5).map(lambda n: [f"message {m} {'x' * 70}" for m in range(80 + n)])
_PARTS = st.sampled_from(["header", "seals", "body", "payload"])
_STEPS = st.lists(
    st.tuples(st.sampled_from(["save", "other", "reopen", "late", "early", "roster"]), _STATES),
    min_size=1,
    max_size=12,
)


@settings(max_examples=examples(40))
@given(_STEPS)
def test_whatever_the_writer_builds_verifies(steps: list[tuple[str, Any]]) -> None:
    """Sessions, processes, clocks and rosters in any order give a chain that the rules accept."""
    world = Deployment()
    store, saved = world.open(), []
    for number, (step, state) in enumerate(steps):
        if step == "reopen":
            store = world.open()
        elif step in {"late", "early"}:
            world.clock += timedelta(days=5 if step == "late" else -5)
        elif step == "roster":
            world.enrol(identity(f"extra-{number}"))
        else:
            thread = (world.open() if step == "other" else store).thread("t")
            with suppress(HeadMoved, Superseded):
                thread.save(state)
                saved.append(state)
                continue
            thread.load()
            thread.save(state)
            saved.append(state)
    report = world.open().verify()

    assert not [finding for finding in report.findings if finding.code != "time"]
    if saved:
        refs = list(world.open().thread("t").history())
        assert [world.open().thread("t").load(ref).state for ref in refs] == saved[::-1]
        assert _followed(world) == report.entries - world.open().core.trust().seq - 1
        times = [ref.time for ref in refs]
        assert times == sorted(times, reverse=True)
    world.close()


def _followed(world: Deployment) -> int:
    """How many entries of the thread follow one another, by the pure rules alone."""
    chain = world.open().core.trust()
    thread = world.thread_id("t")
    place = Place(chain.pin.store.raw.hex(), "default", thread.hex())
    tip: Tip | None = None
    for seq, row in world.memory.scan(thread, 0):
        entry = verify_entry(row.header, row.seals, place=place, seq=seq, chain=chain)
        if tip is None:
            tip = begin(entry, row.body or b"", chain)
        else:
            tip = extend(tip, entry, row.body, chain)
    return 0 if tip is None else tip.entry.seq + 1


class _Genuine:
    """A thread that is changed and put back again."""

    def __init__(self) -> None:
        self.world = Deployment()
        self.states: list[Any] = [{"n": 0}, ["long " * 30] * 90, {"n": 2}, ["x" * 3000], {"n": 4}]
        for number, state in enumerate(self.states):
            thread = self.world.open().thread("t")
            thread.save(state, id=f"c{number}", world={"n": number}, metadata={"n": number})
        self.thread = self.world.thread_id("t")
        self.length = len(self.world.memory._records[self.thread])
        self.blobs = sorted(self.world.blobs("t"))

    def reads(self) -> list[tuple[Callable[[], Any], Any]]:
        """What can be read, and what it genuinely is."""
        thread = self.world.open(None, read_only=True).thread("t")
        ids = [f"c{number}" for number in range(len(self.states))]
        return [
            (lambda: thread.load().state, self.states[-1]),
            (lambda: [ref.id for ref in thread.history()], ids[::-1]),
            *(
                (lambda name=name: thread.load(name).state, state)
                for name, state in zip(ids, self.states, strict=True)
            ),
        ]

    def outcomes(self) -> list[str]:
        """The code of each read that was refused; the others gave what is genuine."""
        codes = []
        for read, genuine in self.reads():
            try:
                assert read() == genuine
            except SealpointError as error:
                codes.append(error.code)
        return codes


_GENUINE = _Genuine()


def _changed(data: bytes, place: int, mask: int) -> bytes:
    place %= len(data)
    return data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


@settings(max_examples=examples(200))
@given(st.integers(0, 10_000), _PARTS, st.integers(0, 1 << 16), st.integers(1, 255))
def test_any_changed_byte_of_an_entry_is_refused(
    seq: int, part: str, place: int, mask: int
) -> None:
    """A read gives what is genuine or an error; a full verification notices every change."""
    genuine = _GENUINE
    seq %= genuine.length
    row = genuine.world.record("t", seq)
    old: bytes | None = getattr(row, part)
    if not old:
        return
    changed = msgspec.structs.replace(row, **{part: _changed(old, place, mask)})
    genuine.world.put(genuine.thread, seq, changed)
    try:
        codes, report = genuine.outcomes(), genuine.world.open().verify()
    finally:
        genuine.world.put(genuine.thread, seq, row)

    assert [finding.thread for finding in report.findings] == [genuine.thread.hex()]
    assert not report.ok
    assert set(codes) <= {"edited", "forged", "not-trusted", "misplaced", "forked"}
    if part == "header":
        assert codes


@settings(max_examples=examples(60))
@given(st.integers(0, 10_000), st.integers(0, 1 << 16), st.integers(0, 255))
def test_any_changed_byte_of_a_blob_is_refused(which: int, place: int, mask: int) -> None:
    """A blob that differs in one byte, or is gone, is refused by whoever needs it."""
    genuine = _GENUINE
    name = genuine.blobs[which % len(genuine.blobs)]
    blob = genuine.world.blobs("t")[name]
    genuine.world.put_blob("t", name, _changed(blob, place, mask) if mask else None)
    try:
        codes, report = genuine.outcomes(), genuine.world.open().verify()
    finally:
        genuine.world.put_blob("t", name, blob)

    assert set(codes) <= {"edited", "missing"}
    assert [finding.code for finding in report.findings] == ["edited" if mask else "missing"]


class StoreModel(RuleBasedStateMachine):
    """Two processes, their saves and loads, and somebody who changes the store behind them.

    A read gives exactly what was saved last, or an error. While nobody has changed anything, it
    gives no error either.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world = Deployment()
        self.saved: list[tuple[CheckpointRef, Any]] = []
        self.undo: list[Callable[[], None]] = []

    @initialize()
    def begin(self) -> None:
        """Open two processes."""
        self.handles = [self.world.open().thread("t") for _ in range(2)]

    def teardown(self) -> None:
        """Close everything."""
        self.world.close()

    def _length(self) -> int:
        return len(self.world.memory._records.get(self.world.thread_id("t"), {}))

    def _read(self, call: Callable[[], Any], genuine: Any) -> None:
        """A read may fail only where something was changed."""
        try:
            found = call()
        except SealpointError:
            assert self.undo or not self.saved
            return
        assert found == genuine

    # ------------------------------------------------------------------ honest work

    @rule(which=st.integers(0, 1), state=_STATES | _LARGE)
    def save(self, which: int, state: Any) -> None:
        """A save is acknowledged, or refused because others wrote or something was changed."""
        try:
            ref = self.handles[which].save(state)
        except (HeadMoved, Superseded):
            with suppress(SealpointError):
                self.handles[which].load()
        except SealpointError:
            assert self.undo
        else:
            self.saved.append((ref, state))

    @rule(which=st.integers(0, 1))
    def load(self, which: int) -> None:
        """The newest state, as it was saved."""
        self._read(lambda: self.handles[which].load().state, self.saved[-1:] and self.saved[-1][1])

    @precondition(lambda self: self.saved)
    @rule(which=st.integers(0, 1), back=st.integers(0, 20), by_id=st.booleans())
    def load_older(self, which: int, back: int, by_id: bool) -> None:  # noqa: FBT001 - drawn
        """An older state, by its ref or by its id."""
        ref, state = self.saved[-1 - back % len(self.saved)]
        self._read(lambda: self.handles[which].load(ref.id if by_id else ref).state, state)

    @rule(which=st.integers(0, 1))
    def history(self, which: int) -> None:
        """All that was acknowledged, newest first."""
        expected = [ref for ref, _ in reversed(self.saved)]
        self._read(lambda: list(self.handles[which].history()), expected)

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        """A process ends, and another one begins."""
        self.handles[which] = self.world.open().thread("t")

    # ------------------------------------------------------------------ the attacker

    def _replace(self, seq: int, record: Record | None) -> None:
        thread = self.world.thread_id("t")
        before = self.world.memory._records[thread][seq]
        self.undo.append(lambda: self.world.put(thread, seq, before))
        self.world.put(thread, seq, record)

    @precondition(lambda self: self.saved and len(self.undo) < 3)
    @rule(seq=st.integers(0, 1000), part=_PARTS, place=st.integers(0, 5000))
    def edit(self, seq: int, part: str, place: int) -> None:
        """A byte of an entry is changed."""
        rows = self.world.memory._records.get(self.world.thread_id("t"), {})
        if not rows:
            return
        chosen = sorted(rows)[seq % len(rows)]
        old: bytes | None = getattr(rows[chosen], part)
        if old:
            changed = {part: _changed(old, place, 1)}
            self._replace(chosen, msgspec.structs.replace(rows[chosen], **changed))

    @precondition(lambda self: self.saved and len(self.undo) < 3)
    @rule(one=st.integers(0, 1000), other=st.integers(0, 1000))
    def swap(self, one: int, other: int) -> None:
        """An entry lies where another one was."""
        rows = self.world.memory._records.get(self.world.thread_id("t"), {})
        if rows:
            places = sorted(rows)
            target, source = places[one % len(places)], places[other % len(places)]
            self._replace(target, rows[source])

    @precondition(lambda self: self.saved and not self.undo)
    @rule(count=st.integers(1, 5))
    def roll_back(self, count: int) -> None:
        """The newest entries are gone."""
        rows = self.world.memory._records.get(self.world.thread_id("t"), {})
        for seq in sorted(rows)[-count:]:
            self._replace(seq, None)

    @precondition(lambda self: self.saved and len(self.undo) < 3)
    @rule(which=st.integers(0, 1000))
    def lose_blob(self, which: int) -> None:
        """A blob is gone."""
        blobs = self.world.blobs("t")
        if blobs:
            name = sorted(blobs)[which % len(blobs)]
            blob = blobs[name]
            self.undo.append(lambda: self.world.put_blob("t", name, blob))
            self.world.put_blob("t", name, None)

    @precondition(lambda self: self.undo)
    @rule()
    def heal(self) -> None:
        """The genuine rows come back, and new processes begin."""
        while self.undo:
            self.undo.pop()()
        self.handles = [self.world.open().thread("t") for _ in range(2)]

    @invariant()
    def verification_agrees(self) -> None:
        """An untouched store verifies, and nothing that was acknowledged is missing from it."""
        if not self.undo and self.saved:
            assert self._length() >= len(self.saved)
            assert self.world.open(None, read_only=True).verify().ok


TestStoreModel = StoreModel.TestCase
TestStoreModel.settings = settings(max_examples=40, stateful_step_count=25)
