# SPDX-License-Identifier: Apache-2.0
"""One history: workers that go on, somebody who edits the disk meanwhile, and every reader asked.

What is true is what a process that knows nothing reads from the genuine bytes: they are put back
for that moment. While the store is edited, every reader, warm or cold, gives that or refuses; once
it is as it was, every reader gives exactly that.

One exception is meant: a process that wrote in the place of rows that were gone, and was told so,
keeps to its own history until it ends. What it wrote is taken out, and the process begins anew.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sealpoint.api import Store
from sealpoint.errors import (
    Forked,
    HeadMoved,
    NotTrusted,
    Paused,
    RolledBack,
    SealpointError,
    Superseded,
    Tampered,
    Unanchored,
)
from sealpoint.gate import Status, Thread
from sealpoint.store import CheckpointRef, CommitDraft, Key, Outcome, SaveDraft
from sealpoint.world import World
from tests.differential.disk import Disk
from tests.differential.edits import EDITS, Target
from tests.differential.place import Place
from tests.differential.reads import LANES, Readings, read_all, unsound, untrue
from tests.properties.model_cells import Changes, Content
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.laned import put, results

__all__ = ["ACTIONS", "WORKERS", "Difference", "History", "Step"]

WORKERS = 3
_NAMES = ("t", "u")
_ALARMS = (Tampered, RolledBack, Forked, Unanchored, NotTrusted)
_WORLD = World.of(READ)
_EARLIER_MAX = 6


class Step(NamedTuple):
    """One step of a history; the numbers choose among what there is then."""

    what: str
    who: int = 0
    thread: int = 0
    one: int = 0
    two: int = 0

    def __repr__(self) -> str:
        return f"Step({self.what!r}, {self.who}, {self.thread}, {self.one}, {self.two})"


class Difference(AssertionError):
    """A reader gave what it must not give, or a worker did what it must not do."""

    steps = 0
    """After how many steps of the history."""


class _Written(NamedTuple):
    """What the workers have written on a thread."""

    name: str
    ids: dict[str, list[str]]
    """By lane."""

    def next_id(self, lane: str) -> str:
        """A name above all others of the lane."""
        self.ids[lane].append(f"{len(self.ids[lane]) + 1:04}")
        return self.ids[lane][-1]

    def keys(self) -> list[Key]:
        """Checkpoints to ask for: the newest ones of each lane, and the first."""
        return [
            Key(lane, name)
            for lane, names in self.ids.items()
            for name in dict.fromkeys((*names[:1], *names[-2:]))
        ]

    def some(self, number: int, lane: str) -> str:
        """One of the newest names of a lane, which need not be there."""
        newest = [*self.ids[lane][-3:], "0001"]
        return newest[number % len(newest)]


class History:
    """Workers, and who has the disk.

    Args:
        place: The store, which is empty.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._disk: Disk = place.disk
        self._workers: list[Store] = [place.process() for _ in range(WORKERS)]
        self._threads = [_Written(name, {lane: [] for lane in LANES}) for name in _NAMES]
        self._ids: dict[str, bytes] = {}
        self._undo: dict[Any, Any] = {}
        """The genuine value of every cell that is edited."""
        self._touched: set[str] = set()
        """Threads that somebody has written or edited since they were compared."""
        self._earlier: list[Content] = []
        self.tally: Counter[str] = Counter()

    def run(self, steps: Sequence[Step]) -> None:
        """Take some steps, and compare after each edit and when all is as it was.

        Raises:
            Difference: Somebody read what is not true, or refused what is.
        """
        for number, step in enumerate((*steps, Step("end")), start=1):
            try:
                self._take(step)
            except Exception as error:
                told = str(error)
                if not isinstance(error, Difference):
                    told = f"{type(error).__name__} escaped: {error}"
                found = Difference(f"after step {number}, {step}: {told}")
                found.steps = number
                raise found from error

    def _take(self, step: Step) -> None:
        self.tally[step.what] += 1
        written, worker = self._threads[step.thread % len(_NAMES)], step.who % WORKERS
        self._touched.add(written.name)
        if step.what in EDITS:
            if self._edit(step, written):
                self._compare(step)
        elif step.what == "end":
            self._put_back(None)
            self._touched.update(each.name for each in self._threads)
            self._compare(step)
            self._verify()
        elif step.what in ("put back", "put all back"):
            if self._undo:
                self._put_back(None if step.what == "put all back" else step.one)
                self._compare(step)
        elif step.what == "look":
            self._look(worker, step.one)
        elif step.what == "begin anew":
            self._reopen(worker)
        elif not self._undo:
            self._earlier = [*self._earlier, self._content()][-_EARLIER_MAX:]
            self._act(step, written, worker, edited=False)
        elif step.what not in _TAKES_AWAY:
            self._act_edited(step, written, worker)

    # ------------------------------------------------------------------ the disk

    def _known(self) -> list[bytes]:
        """The ids of the threads, as far as there are any."""
        for written in self._threads:
            for store in () if written.name in self._ids else self._workers:
                if found := store.thread(written.name).id:
                    self._ids[written.name] = bytes.fromhex(found)
        return list(self._ids.values())

    def _content(self) -> Content:
        return self._disk.content(self._known())

    def _edit(self, step: Step, written: _Written) -> bool:
        """Edit what nobody has edited yet; False if nothing changed."""
        content, threads = self._content(), self._known()
        thread = self._ids.get(written.name)
        if thread is None:
            return False
        ends = [span.stop for key in content if (span := self._disk.positions(thread, key))]
        target = Target(
            disk=self._disk,
            content={key: value for key, value in content.items() if key not in self._undo},
            thread=thread,
            other=next((each for each in threads if each != thread), thread),
            end=max(ends, default=0),
            earlier=self._earlier,
        )
        found = EDITS[step.what](target, step.one, step.two)
        changes = {
            key: value
            for key, value in found.items()
            if key not in self._undo and content.get(key) != value
        }
        self._undo |= {key: content.get(key) for key in changes}
        self._disk.put(changes)
        self.tally[f"{step.what}, landed"] += bool(changes)
        return bool(changes)

    def _put_back(self, number: int | None) -> None:
        """Put some of what was edited back as it was, or all of it."""
        keys = list(self._undo)
        if number is not None:
            keys = keys[number % len(keys) :][: 1 + number % 3]
        self._disk.put({key: self._undo.pop(key) for key in keys})

    # ------------------------------------------------------------------ the readers

    def _compare(self, step: Step) -> None:
        """Ask every reader for everything; the step says in which order."""
        edited, turn = bool(self._undo), step.one + step.two
        truth = self._truth(turn)
        for verb, reading in truth.items():
            if unsound(reading):
                raise Difference(f"on the genuine bytes a new process, {verb}: {reading.told()}")
        readers: list[tuple[str, Callable[[], Readings]]] = [
            (f"worker {who}", lambda store=store, who=who: self._read(store, turn + 7 * who))  # type: ignore[misc]
            for who, store in enumerate(self._workers)
        ]
        if edited:
            readers.append(("a new process", lambda: self._cold(turn + 3)))
        for reader, read in readers:
            found = read()
            for verb, reading in found.items():
                self.tally["reads"] += 1
                self.tally["reads refused"] += reading.error is not None
                if untrue(reading, truth[verb], edited=edited):
                    state = "edited" if edited else "genuine"
                    raise Difference(
                        f"on {state} bytes {reader}, {verb}: {reading.told(truth[verb])}\n"
                        f"  a new process, on the genuine bytes: {truth[verb].told(reading)}"
                    )
        if not edited:
            self._touched.clear()

    def _verify(self) -> None:
        """Whoever verifies the store finds it whole, and every resume justified."""
        with self.place.process() as store:
            report = store.verify()
        if not report.ok:
            raise Difference(f"on the genuine bytes verify finds {report.findings}")

    def _truth(self, turn: int) -> Readings:
        """What a new process reads from the genuine bytes."""
        content = self._content()
        edited: Changes = {key: content.get(key) for key in self._undo}
        self._disk.put(self._undo)
        try:
            return self._cold(turn)
        finally:
            self._disk.put(edited)

    def _cold(self, turn: int) -> Readings:
        try:
            store = self.place.process()
        except SealpointError:
            return {}  # who cannot open a store is shown nothing
        with store:
            return self._read(store, turn)

    def _read(self, store: Store, turn: int) -> Readings:
        chosen = {each.name: each.keys() for each in self._threads if each.name in self._touched}
        return read_all(store, chosen, turn)

    def _look(self, worker: int, number: int) -> None:
        """A worker reads something, while others do not."""
        thread = self._workers[worker].thread(self._threads[number % len(_NAMES)].name)
        lane = LANES[number // 2 % len(LANES)]
        reads: list[Callable[[], object]] = [
            thread.load,
            lambda: thread.adapter.snapshot(lane),
            lambda: list(thread.adapter.snapshots(lane)),
            lambda: thread.question,
            lambda: list(thread.history()),
        ]
        with self._excused():
            reads[number // 4 % len(reads)]()

    def _excused(self) -> Any:
        """Errors of ours are nobody's fault; what was read is compared elsewhere."""
        return suppress(SealpointError)

    # ------------------------------------------------------------------ the workers

    def _reopen(self, worker: int) -> None:
        try:
            store = self.place.process()
        except SealpointError:
            if not self._undo:
                raise
            return
        self._workers[worker].close()
        self._workers[worker] = store

    def _act(self, step: Step, written: _Written, worker: int, *, edited: bool) -> bool:
        """Do what a worker or somebody of the team does; False if it was refused."""
        try:
            ACTIONS[step.what](self, step, written, self._workers[worker].thread(written.name))
        except SealpointError as error:
            self.tally[f"{step.what} refused: {error.code}"] += 1
            if not edited and isinstance(error, _ALARMS):
                raise Difference(f"on genuine bytes: {type(error).__name__}: {error}") from error
            return False
        return True

    def _act_edited(self, step: Step, written: _Written, worker: int) -> None:
        """The same while the store is edited; whatever lands is genuine, or taken out again."""
        before = self._content()
        done = self._act(step, written, worker, edited=True)
        thread = self._ids.get(written.name)
        if thread is None:
            return
        after = self._content()
        if done:
            # A blob that somebody put there need not be written once more: it stays.
            for key in set(self._disk.blobs(after, thread)).intersection(self._undo):
                if self._undo[key] is None:
                    del self._undo[key]
        made = after.keys() - before.keys()
        taken = {
            seq
            for key, value in self._undo.items()
            if value is not None
            for seq in self._disk.positions(thread, key)
        }
        beside = [key for key in made if taken.intersection(self._disk.positions(thread, key))]
        if beside:
            if done:
                raise Difference(f"acknowledged beside the history: {sorted(beside)}")
            self.tally["written beside the history and refused"] += 1
            self._disk.put(dict.fromkeys(made))
            self.place.renew()
            for each in range(WORKERS):
                self._reopen(each)

    def write(self, thread: Thread, drafts: Callable[[], list[CommitDraft]]) -> None:
        """Write; who has lost the thread loads and tries once more, as an application would."""
        outcomes = self._written(thread, drafts())
        if any(isinstance(each, HeadMoved | Superseded) for each in outcomes):
            thread.load()
            outcomes = self._written(thread, drafts())
        for outcome in outcomes:
            if isinstance(outcome, SealpointError):
                raise outcome

    def _written(self, thread: Thread, drafts: list[CommitDraft]) -> list[Outcome]:
        for draft in drafts:
            if isinstance(draft, SaveDraft):
                draft.holds = draft.id is not None  # as a framework's adapter does
        outcomes = thread.adapter.commit(drafts)
        held = [each for each in outcomes if isinstance(each, CheckpointRef) and each.held]
        self.tally["held back"] += len(held)
        return [each for each in outcomes if not isinstance(each, Paused)]


_Action = Callable[[History, Step, _Written, Thread], object]


def _state(number: int) -> dict[str, list[str]]:
    """A state of several blobs, half of which are in every state."""
    return {
        "shared": [f"line {place} that all have {'x' * 60}" for place in range(40)],
        "own": [f"line {place} of {number} {'y' * 60}" for place in range(20)],
    }


def _draft(step: Step, written: _Written, lane: str) -> SaveDraft:
    return put(
        _state(step.one) if step.one % 4 == 0 else {"n": step.one},
        written.next_id(lane),
        lane,
        world=_WORLD,
        metadata={"n": step.one},
        question={"pay": step.one} if step.one % 7 == 0 else None,
    )


def _save(history: History, step: Step, written: _Written, thread: Thread) -> None:
    history.write(thread, lambda: [_draft(step, written, "")])


def _save_in_lane(history: History, step: Step, written: _Written, thread: Thread) -> None:
    history.write(thread, lambda: [_draft(step, written, "sub")])


def _add(history: History, step: Step, written: _Written, thread: Thread) -> None:
    lane = LANES[step.two % 2]
    draft = results(
        [step.one, "done"],
        written.some(step.two, lane),
        f"task {step.one % 3}",
        lane,
        question={"pay": step.one} if step.one % 5 == 0 else None,
        answers=step.one % 6 == 0,
        world=_WORLD,
    )
    history.write(thread, lambda: [draft])


def _step_on(history: History, step: Step, written: _Written, thread: Thread) -> None:
    """Results and the checkpoint after them, as one group."""

    def drafts() -> list[CommitDraft]:
        added = results([step.two], written.some(0, ""), "task", world=_WORLD)
        return [added, _draft(step, written, "")]

    history.write(thread, drafts)


def _save_again(history: History, step: Step, written: _Written, thread: Thread) -> None:
    """Another state under a name that is there."""
    lane = LANES[step.two % 2]
    name = written.some(step.one, lane)
    history.write(thread, lambda: [put({"again": step.two}, name, lane, world=_WORLD)])


def _resume(_history: History, step: Step, written: _Written, thread: Thread) -> None:
    wishes: tuple[dict[str, Any], ...] = (
        {"world": READ},
        {"world": READ, "answer": "yes"},
        {"world": SHELL, "deliberate": "a wider world"},
        {"world": READ, "ref": written.some(step.two, ""), "deliberate": "an older one"},
    )
    thread.resume(**wishes[step.one % len(wishes)])


def _approve(history: History, step: Step, written: _Written, _thread: Thread) -> None:
    place = history.place
    for request in place.of("operator").thread(written.name).requests():
        if request.status is Status.OPEN:
            if step.one % 5 == 0:
                place.deny(request)
            else:
                place.approve(request)


def _pause(history: History, step: Step, written: _Written, _thread: Thread) -> None:
    operated = history.place.of("operator").thread(written.name)
    if operated.paused:
        operated.unpause("it may go on")
    elif step.one % 2:
        operated.pause("let me look")


def _hide(_history: History, step: Step, written: _Written, thread: Thread) -> None:
    lane = LANES[step.two % 2]
    keys = [Key(lane, written.some(step.one, lane))]
    thread.adapter.delete(None if step.one % 9 == 0 else keys)


def _prune(_history: History, step: Step, _written: _Written, thread: Thread) -> None:
    thread.prune(keep_last=1 + step.one % 2, compact=False)


def _erase(history: History, _step: Step, written: _Written, _thread: Thread) -> None:
    history.place.of("officer").thread(written.name).erase(reason="as was asked for")


ACTIONS: dict[str, _Action] = {
    "save": _save,
    "save in a lane": _save_in_lane,
    "add": _add,
    "step on": _step_on,
    "save again": _save_again,
    "resume": _resume,
    "approve": _approve,
    "pause": _pause,
    "hide": _hide,
    "prune": _prune,
    "erase": _erase,
}
_TAKES_AWAY = frozenset({"hide", "prune", "erase"})
"""What changes rows that are there, so that nobody could put an edited one back as it was."""
