# SPDX-License-Identifier: Apache-2.0
"""The guard of one gateway: seals its state, verifies it before a start, and records what changed.

A seal is a checkpoint of one thread: its state is the inventory, its world what an operator
decided. A start, and everything that people accept, is a run of that thread, so the gate of
Sealpoint decides about it by the policy in force.

Changes are judged by when they happened. While the gateway was stopped, nothing may change past the
guard. While it ran under a guard, exact rows may change: that is a decision of the gateway's users,
which the guard records at once if the policy allows it, and asks about at the end otherwise.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sealpoint.errors import (
    HistoryChanged,
    NeedsApproval,
    Paused,
    ResumeRefused,
    RolledBack,
    StateChanged,
    StateUnsealed,
    UnknownThread,
    UsageError,
)
from sealpoint.gate import Outcome, Thread
from sealpoint.store import CheckpointRef
from sealpoint.views.words import count_text
from sealpoint.world import World
from sealpoint_openclaw._acts import ActLog
from sealpoint_openclaw._differences import (
    Change,
    Concern,
    Difference,
    RowName,
    digest_of,
    find_differences,
)
from sealpoint_openclaw._folder import Folder, Seen
from sealpoint_openclaw._inventory import Digests, Inventory
from sealpoint_openclaw._seals import GATEWAY_RUNS, Moment, Seal, read_seal, seal_state
from sealpoint_openclaw._transcripts import compare_reports
from sealpoint_openclaw._world import read_world

_OLDER_SEALS_MAX = 50
_SHOWN = 20
_VERSION = "openclaw"
_NO_ACTS = -1
_STORED_WITHIN = timedelta(minutes=10)
"""A message is stored at once after it was reported; this is far longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The folder as it is, compared with the newest seal."""

    seal: Seal
    inventory: Inventory
    world: World
    differences: tuple[Difference, ...]

    def of(self, concern: Concern) -> tuple[Difference, ...]:
        """Return the differences of one concern."""
        return tuple(each for each in self.differences if each.concern is concern)


class Guard:
    """Seals and verifies the state of one gateway.

    Args:
        open_thread: Opens a thread of the guard's store by its name.
        name: The name of the thread of the seals; those of the acts begin with it.
        folder: The gateway's folder.
        digests: Makes the digests of rows and files, with the guard's secret.
        runtime: Versions of what runs the gateway, as far as they are known.
    """

    def __init__(
        self,
        open_thread: Callable[[str], Thread],
        name: str,
        folder: Folder,
        digests: Digests,
        runtime: Mapping[str, str] | None = None,
    ) -> None:
        self.thread = open_thread(name)
        self.open_thread = open_thread
        self.folder = folder
        self._digests = digests
        self._runtime = dict(runtime or {})

    # ------------------------------------------------------------------ reading

    def newest(self) -> Seal:
        """Return the newest seal, verified.

        Raises:
            UsageError: There is none.
            RolledBack, Tampered, Forked, Unanchored: The store of the seals is not what it was.
        """
        try:
            seal = self.seal()
        except UnknownThread:
            raise UsageError(
                f"{self.folder.root}: no seal of it exists",
                hint="Make the first one: sealpoint openclaw init",
            ) from None
        held = None if seal.started is None else self.acts(seal.started).held(seal.ref.id)
        return seal if held is None else read_seal(*held, seal.world)

    def seal(self, ref: CheckpointRef | str | None = None) -> Seal:
        """Return a seal of the thread, verified; without a reference, its newest one."""
        loaded = self.thread.load(ref)
        world = None if loaded.world is None else World.from_dict(loaded.world)
        return read_seal(loaded.ref, loaded.state, world)

    def acts(self, started: int) -> ActLog:
        """Return the acts of the run that began with the seal at a position."""
        return ActLog(self.open_thread(f"{self.thread.name}/acts/{started}"))

    def check(self, before: Seal | None = None, seen: Seen | None = None) -> Check:
        """Compare the folder with the newest seal; every row is read.

        Args:
            before: The newest seal, if it is known.
            seen: Is given what was read; empty so far.
        """
        self.folder.require()
        seal = self.newest() if before is None else before
        inventory, world = self.read(seal, seen)
        reported, missing = self._reported(seal, inventory)
        found = find_differences(
            seal.inventory, inventory, may_have_run=seal.may_have_run, reported=reported
        )
        return Check(
            seal=seal,
            inventory=inventory,
            world=world,
            differences=tuple(sorted([*found, *missing])),
        )

    def _reported(
        self, seal: Seal, now: Inventory
    ) -> tuple[frozenset[RowName], tuple[Difference, ...]]:
        """Return the messages that the gateway reported, and what it reported that is missing."""
        if seal.started is None:
            return frozenset(), ()
        base, acts = self._seal_before_reports(seal, seal.started), self.acts(seal.started)
        return compare_reports(
            self.folder.databases(),
            base.inventory,
            seal.inventory,
            now,
            reports=acts.since(base.acts),
            due=len(acts.since(seal.acts)),
        )

    def _seal_before_reports(self, seal: Seal, started: int) -> Seal:
        """Return a seal of the run from before every report whose message may not be sealed."""
        for ref in self.thread.history():
            if ref.pruned:
                break
            if ref.seq <= started or ref.time < seal.time - _STORED_WITHIN:
                return self.seal(ref)
        return seal

    def verify(self, seen: Seen | None = None) -> Check:
        """Compare the folder with the newest seal, and refuse any difference that nobody decided.

        Args:
            seen: See `check`.

        Raises:
            StateChanged: Something changed that must not change while the gateway is stopped.
            HistoryChanged: The past of a history changed.
            RolledBack: The folder is an older copy.
            StateUnsealed: A guarded gateway was not seen to end, and what it wrote or reported
                since the newest seal differs.
        """
        check = self.check(seen=seen)
        if len(check.differences) == len(check.of(Concern.REPORTED)):
            return check
        if any(each.change is not Change.MISSING for each in check.differences):
            self._refuse_older_copy(check)
        lines = tuple(each.words for each in check.differences)
        since = f"since the seal of {check.seal.time:%Y-%m-%d %H:%M:%S} UTC ({check.seal.moment})"
        more = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
        if found := check.of(Concern.STATE):
            raise StateChanged(
                f"{self.folder.root}: OpenClaw's state was changed {since}: {found[0].words}{more}",
                differences=lines,
            )
        if found := check.of(Concern.HISTORY):
            raise HistoryChanged(
                f"{self.folder.root}: a history of OpenClaw was changed {since}: "
                f"{found[0].words}{more}",
                differences=lines,
            )
        raise StateUnsealed(
            f"{self.folder.root}: a guarded gateway was started, and no seal of its end exists: it "
            f"runs, or its guard was killed. Nobody saw what it did {since}: "
            f"{check.of(Concern.UNSEALED)[0].words}{more}",
            differences=lines,
        )

    def _refuse_older_copy(self, check: Check) -> None:
        """Refuse a folder that is exactly what an older seal says.

        Of a gateway that runs there are many seals, so those of a stopped one count by themselves.
        """
        compared = Counter[bool]()
        for count, ref in enumerate(self.thread.history()):
            runs = ref.metadata["seal"] in GATEWAY_RUNS
            if count == 0 or ref.pruned or compared[runs] == _OLDER_SEALS_MAX:
                continue
            compared[runs] += 1
            older = self.seal(ref)
            if not find_differences(older.inventory, check.inventory, may_have_run=False):
                raise RolledBack(
                    f"{self.folder.root}: OpenClaw's state is the one that was sealed at "
                    f"{older.time:%Y-%m-%d %H:%M:%S} UTC; {count_text(count, 'newer seal')} "
                    f"{'exists' if count == 1 else 'exist'}",
                    hint="Bring back the newest copy. If the older one is meant: sealpoint "
                    "openclaw accept --reason WHY",
                )

    def read(self, seal: Seal | None, seen: Seen | None = None) -> tuple[Inventory, World]:
        """Return the folder as it is, and the world that it makes.

        Args:
            seal: The newest seal; None: there is none.
            seen: See `Folder.inventory`.
        """
        inventory = self.folder.inventory(self._digests, seen)
        return inventory, self._world(inventory, seal, None if seal is None else seal.accepted)

    def _world(self, inventory: Inventory, seal: Seal | None, accepted: str | None) -> World:
        """Return the world of a folder; without a command, OpenClaw's version is the last one."""
        runtime = self._runtime
        if seal is not None and seal.world is not None and _VERSION in seal.world.runtime:
            runtime = {_VERSION: seal.world.runtime[_VERSION], **runtime}
        return read_world(self.folder, inventory, runtime=runtime, accepted=accepted)

    # ------------------------------------------------------------------ sealing

    def seal_first(self) -> CheckpointRef:
        """Take the first seal, of the folder as it is.

        Raises:
            UsageError: There is a seal already.
        """
        self.folder.require()
        if next(iter(self._history()), None) is not None:
            raise UsageError(
                f"{self.folder.root}: a seal of it exists",
                hint="sealpoint openclaw status shows it.",
            )
        inventory, world = self.read(None)
        return self.save(inventory, Moment.FIRST, None, world=world)

    def _history(self) -> list[CheckpointRef]:
        try:
            return list(self.thread.history())
        except UnknownThread:
            return []

    def accept(self, reason: str, actor: str | None = None) -> tuple[Check, CheckpointRef]:
        """Seal the folder as it is, by a decision about everything that differs.

        An approval binds the digest of all of it. So if anything changes in between, people are
        asked again.

        Raises:
            NeedsApproval: Other people have to approve it first.
            ResumeRefused: The policy does not allow it.
        """
        check = self.check()
        accepted, world = check.seal.accepted, check.world
        if check.differences:
            accepted = digest_of(check.differences, check.inventory)
            world = self._world(check.inventory, check.seal, accepted)
        with self.thread.run(world=world, deliberate=reason, actor=actor):
            ref = self.save(check.inventory, Moment.ACCEPTED, accepted, by=actor)
        return check, ref

    def refusal(self) -> str | None:
        """Return why no agent may run and no tool may be called now; None if they may."""
        if not self.thread.paused:
            return None
        pause = self.thread.standing().paused
        return None if pause is None else f"{pause.author_text} paused OpenClaw: {pause.reason}"

    def seal_command(
        self, before: Check, reason: str | None, actor: str | None
    ) -> tuple[Check, CheckpointRef | None]:
        """Seal what a command of OpenClaw changed, which this guard ran after `verify`.

        Returns:
            The folder compared with the seal from before, and the new seal; None if nothing
            changed.

        Raises:
            NeedsApproval: Other people have to approve the change of the world.
            ResumeRefused: The policy requires a reason, or does not allow it.
        """
        check = self.check(before.seal)
        if not check.differences:
            return check, None
        decision = self.thread.judge(world=check.world, deliberate=reason)
        if decision.outcome is not Outcome.ALLOW and reason is not None:
            return self.accept(reason, actor)
        with self.thread.run(world=check.world, deliberate=reason, actor=actor):
            ref = self.save(check.inventory, Moment.COMMAND, check.seal.accepted, by=actor)
        return check, ref

    def save(
        self,
        inventory: Inventory,
        moment: Moment,
        accepted: str | None,
        *,
        world: World | None = None,
        by: str | None = None,
        started: int | None = None,
        acts: int = _NO_ACTS,
    ) -> CheckpointRef:
        """Save a seal in the session under way."""
        state = seal_state(inventory, moment, accepted, started, acts)
        metadata: dict[str, Any] = {"seal": str(moment)}
        if by is not None:
            metadata["by"] = by
        return self.thread.save(state, metadata=metadata, world=world)

    # ------------------------------------------------------------------ running

    @contextmanager
    def running(self, *, reason: str | None = None, actor: str | None = None) -> Iterator["Watch"]:
        """Verify the folder, and hold the thread while the gateway runs.

        Raises:
            StateChanged, HistoryChanged, RolledBack, StateUnsealed: See `verify`.
            NeedsApproval, ResumeRefused, Busy: The gate does not let it start.
        """
        seen = Seen()
        check = self.verify(seen)
        with ExitStack() as run:
            run.enter_context(self.thread.run(world=check.world, deliberate=reason, actor=actor))
            watch = Watch(self, run, check.world, seen)
            watch.begin(check)
            yield watch


class Watch:
    """The guard of a gateway that runs: it seals what the gateway writes."""

    def __init__(self, guard: Guard, run: ExitStack, world: World, seen: Seen) -> None:
        self._guard = guard
        self._run = run
        self._world = world
        self._seen = seen
        self.latest: Seal
        """The newest seal."""
        self.basis: str
        """The id of the newest one in the thread of the seals."""
        self._refused: World | None = None
        """The world of the gateway, if the policy does not let it pass by itself."""
        self.waits: tuple[str, ...] = ()
        """Changes of the world that the next start has to be approved for, in a line each."""

    def begin(self, check: Check) -> CheckpointRef:
        """Record the verified start."""
        return self._save(check.inventory, Moment.STARTED, check.seal.accepted)

    @property
    def acts(self) -> ActLog:
        """The acts of this run."""
        if self.latest.started is None:
            raise UsageError("acts: the run has ended, so nothing more is recorded of it")
        return self._guard.acts(self.latest.started)

    def seal(self) -> CheckpointRef | None:
        """Seal the state of the running gateway; None if nothing has changed.

        Files that have not changed are not read again, and of long histories only newer rows.
        """
        latest, acts = self.latest, self.acts.position()
        inventory, world = self._guard.read(latest, self._seen)
        if inventory == latest.inventory:
            return None
        self._follow_world(world)
        return self._save(inventory, Moment.RUNNING, latest.accepted, acts)

    def end(self, *, crashed: bool) -> CheckpointRef:
        """Seal what the gateway left; every row is read.

        If the policy wants approvals for what changed while it ran, the request for the next start
        is made now.
        """
        latest = self.latest
        inventory, world = self._guard.read(latest)
        self._follow_world(world)
        moment = Moment.CRASHED if crashed else Moment.STOPPED
        ref = self._save(inventory, moment, latest.accepted)
        self._run.close()
        if self.waits:
            with suppress(NeedsApproval, ResumeRefused):  # the next start says the same
                self._guard.thread.resume(world=world, deliberate=_reason(self.waits))
        return ref

    def _follow_world(self, world: World) -> None:
        """Continue in the world as it is now, if the policy lets this pass; otherwise note it."""
        if world == self._world:
            self._refused, self.waits = None, ()
            return
        if world == self._refused or self._guard.thread.paused:
            return
        thread, lines = self._guard.thread, self._world.diff(world).lines()
        reason = _reason(lines)
        self._run.close()  # the gate would say that this run is busy
        if thread.judge(world=world, deliberate=reason).outcome is Outcome.ALLOW:
            self._run.enter_context(thread.run(world=world, deliberate=reason))
            self._world, self._refused, self.waits = world, None, ()
        else:
            self._run.enter_context(thread.run(world=self._world))
            self._refused, self.waits = world, lines

    def _save(
        self, inventory: Inventory, moment: Moment, accepted: str | None, acts: int = _NO_ACTS
    ) -> CheckpointRef:
        """Save a seal; while the gateway is paused, next to its acts."""
        started = None if moment is Moment.STARTED else self.latest.started
        kept = started if moment in GATEWAY_RUNS else None
        try:
            ref = self._guard.save(inventory, moment, accepted, started=kept, acts=acts)
            self.basis = ref.id
        except Paused:
            if started is None:
                raise
            state = seal_state(inventory, moment, accepted, kept, acts)
            ref = self._guard.acts(started).hold(state, self.basis)
        self.latest = Seal(
            ref=ref,
            moment=moment,
            inventory=inventory,
            accepted=accepted,
            world=self._world,
            started=ref.seq if moment is Moment.STARTED else kept,
            acts=acts,
        )
        return ref


def _reason(lines: Sequence[str]) -> str:
    """Return the reason that the guard records for changes of the world that it saw."""
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return f"changed while OpenClaw ran: {'; '.join(lines[:_SHOWN])}{more}"
