# SPDX-License-Identifier: Apache-2.0
"""The plan of a restore: the data of a restored store that would be kept or lost.

Every thread is compared with its position in the anchor and judged as its next writer would judge
it, and nothing is written. A thread that a writer would refuse is cut before the first refused
entry. The store chain must be the newest that the anchor has seen, so no restore brings back a key.
The anchor also knows whether a thread was paused, and the positions of its newest session and
handoff: the plan lists what a cut thread loses of these. No restore lifts a pause: the thread stays
paused until an operator decides. `accept_restore` records the plan that was shown. ADR 0010 gives
the reasons.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from math import inf

from sealpoint.anchor import RESERVED_SEQ, Position
from sealpoint.errors import (
    AnchorUnavailable,
    Edited,
    HeadMoved,
    KeyMissing,
    Missing,
    NotTrusted,
    RolledBack,
    SealpointError,
    StorageUnavailable,
    Tampered,
    UsageError,
)
from sealpoint.ledger import (
    KINDS,
    RESERVED,
    ROLLOUTS,
    Entry,
    Kind,
    Place,
    PositionList,
    StoreChain,
    Tip,
    link_hash,
    parse_header,
)
from sealpoint.signing import PrivateKey, check_reason
from sealpoint.storage import Record
from sealpoint.store._garbage_collection import drop_orphans
from sealpoint.store._genesis import claimed_name
from sealpoint.store._names import label_of, thread_slot
from sealpoint.store._store_chain_cache import verify_renewed
from sealpoint.store._store_chain_writer import append_restore
from sealpoint.store._store_parts import Core
from sealpoint.store._thread_list import all_threads
from sealpoint.store._thread_walk import ThreadWalk
from sealpoint.store._unvouched_entries import judge_unvouched
from sealpoint.store._verified_chain import Chain

Progress = Callable[[int, int], object]
_Line = tuple[bytes, int, bytes]

_DECISIONS_MAX = 100
"""The plan names at most this many lost decisions for each thread, because an attacker with write
access to the store can add any number of rows."""


@unique
class ThreadOutcome(StrEnum):
    """The state of a restored thread, compared with the anchor."""

    INTACT = "intact"
    """Every entry that the anchor has seen is there."""
    BEHIND = "behind"
    """The newest entries are missing."""
    BESIDE = "beside"
    """It has diverged from the history that the anchor has seen."""
    DAMAGED = "damaged"
    """Every entry that the anchor has seen is there, and the entries after it do not verify."""
    ERASED = "erased"
    """It was erased since: nothing is kept, so that it stays erased."""
    GONE = "gone"
    """No entry of it verifies."""
    LEFTOVER = "leftover"
    """It is complete, and entries that an earlier restore has cut off follow it."""
    UNSEEN = "unseen"
    """This anchor has never seen it: it is kept unchanged, for an anchor that has."""


_LOSES_NOTHING = (
    ThreadOutcome.INTACT,
    ThreadOutcome.DAMAGED,
    ThreadOutcome.LEFTOVER,
    ThreadOutcome.UNSEEN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDecision:
    """A decision of a person in a lost entry that the store still shows."""

    seq: int
    """The position of the entry."""
    kind: str
    """The kind of decision: a pause, a handoff, a request, an approval, a denial."""
    by: str
    """The identity that signed the entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRestore:
    """The effect of a restore on one thread."""

    thread: str
    """Its id in hexadecimal."""
    name: str
    """Its claimed name; empty if the name is gone."""
    outcome: ThreadOutcome
    kept: int | None
    """The position of the newest entry that stays; None: no entry stays."""
    seen: int
    """The position of the newest entry that the anchor has seen; -1: none."""
    beyond: int = 0
    """How many entries of the store come after the kept ones, and will be removed."""
    stopped: str = ""
    """Why the first of those does not count; empty if there are none."""
    paused: bool = False
    """Whether the thread was paused when the anchor last saw it. Such a thread is never
    released."""
    loses_pause: bool = False
    """Whether that pause is lost and no kept entry pauses the thread. If any entry of the thread is
    kept, the restore records that it stays paused until an operator decides."""
    lost_handoff: int | None = None
    """The position of the newest handoff, if it is lost: an earlier owner has the thread again."""
    lost_session: int | None = None
    """The position of the newest session that the anchor has seen, if it is lost."""
    decisions: tuple[LostDecision, ...] = ()
    """The lost decisions that the store still shows, as far as their entries verify."""

    @property
    def reserved(self) -> bool:
        """Whether it is one of Sealpoint's own threads: the book of rollouts."""
        return self.name.startswith(RESERVED)

    @property
    def lost_range(self) -> tuple[int, int] | None:
        """Return the first and the last lost position, if entries are lost and these are known."""
        if not self.lost or self.outcome is ThreadOutcome.BESIDE:
            return None
        return (0 if self.kept is None else self.kept + 1), self.seen

    @property
    def lost(self) -> int:
        """Return how many anchored entries are lost; for a diverged thread, the minimum."""
        if self.outcome in _LOSES_NOTHING:
            return 0
        return self.seen - (-1 if self.kept is None else min(self.kept, self.seen - 1))

    @property
    def is_cut(self) -> bool:
        """Whether it lost something and something stays: the next resume then needs a reason."""
        return self.kept is not None and (self.lost > 0 or self.loses_pause)

    @property
    def not_released(self) -> str:
        """Return why the thread cannot be released; empty if it can."""
        if not self.is_cut:
            gone = "nothing of it is left to resume from"
            return gone if self.lost or self.loses_pause else "this restore does not cut it"
        if self.loses_pause:
            return "it was paused, and the restore loses the pause"
        return "it is paused" if self.paused else ""

    def is_called(self, name: str) -> bool:
        """Whether the text is its name or its id."""
        return name == self.thread or (name == self.name and bool(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """The data that accepting the store in its current state would keep and lose."""

    threads: int
    """How many threads the anchor knows."""
    losses: tuple[ThreadRestore, ...]
    """The threads that would change."""
    leftovers: tuple[ThreadRestore, ...]
    """The threads that entries cut off by an earlier restore still block."""
    unseen: tuple[ThreadRestore, ...]
    """The threads in the store that this anchor has never seen."""
    kept: PositionList = field(repr=False)
    lost: PositionList = field(repr=False)

    @property
    def digest(self) -> str:
        """Return a digest of the whole plan: equal plans have equal digests."""
        return (self.kept.digest + self.lost.digest + self.paused.digest).hex()

    @property
    def voids_rollouts(self) -> bool:
        """Whether entries about rollouts are lost: what ended a rollout may be among them."""
        return any(each.reserved and each.lost for each in self.losses)

    @property
    def paused(self) -> PositionList:
        """Return the kept positions of the threads whose pause is lost: they stay paused."""
        return self.lines([each for each in self.losses if each.is_cut and each.loses_pause])

    def lines(self, threads: Sequence[ThreadRestore]) -> PositionList:
        """Return the kept positions of these threads, from the list of all kept positions."""
        ids = (bytes.fromhex(each.thread) for each in threads)
        kept = ((thread, self.kept.position(thread)) for thread in ids)
        return PositionList.of((thread, *line) for thread, line in kept if line is not None)

    def released(
        self,
        release: bool | Collection[str],  # noqa: FBT001 # the same choice as accept_restore takes
    ) -> tuple[ThreadRestore, ...]:
        """Return the cut threads that a choice names, without those that were paused.

        Args:
            release: True for all of them, False for none; or their names, or ids in hexadecimal.

        Raises:
            UsageError: A name belongs to no cut thread, to one that was paused, or to several.
        """
        cut = tuple(each for each in self.losses if not each.not_released)
        if isinstance(release, bool):
            return cut if release else ()
        if isinstance(release, str):
            raise UsageError(
                f"release: expected True, or a list of names, found the text {release!r}",
                hint=f"Write release=[{release!r}].",
            )
        chosen = {self._cut_thread(cut, name).thread for name in release}
        return tuple(each for each in cut if each.thread in chosen)

    def _cut_thread(self, cut: tuple[ThreadRestore, ...], name: str) -> ThreadRestore:
        found = [each for each in cut if each.is_called(name)]
        if not found:
            named = [each for each in self.losses if each.is_called(name)]
            why = named[0].not_released if named else "this restore does not cut it"
            raise UsageError(
                f"release: thread {name!r} cannot be released: {why}",
                hint="Look at the plan: sealpoint accept-restore --dry-run --reason '...'",
            )
        if len(found) > 1:
            ids = ", ".join(each.thread for each in found)
            raise UsageError(
                f"release: {len(found)} threads are called {name!r}",
                hint=f"They are in several namespaces. Name the one you mean by its id: {ids}",
            )
        return found[0]


def plan_restore(core: Core, progress: Progress | None = None) -> RestorePlan:
    """Compare every thread with the anchor. Writes nothing, but the anchor may advance.

    Args:
        core: The store.
        progress: Called after each thread with the number of finished threads and the total.

    Raises:
        RolledBack: The store chain is older than the anchor has seen: bring back the roster first.
        Tampered, NotTrusted, Forked: The store chain does not verify.
        StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
    """
    try:
        core.renewed_trust()
    except RolledBack as exc:
        raise RolledBack(
            exc.message,
            hint="A restore never brings back an older roster. Run sealpoint roster import: the "
            "newest one that was seen here is kept with the keys. If a newer one was exported, "
            "name its FILE.",
        ) from exc
    return _Planner(core).run(progress)


class _Planner:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._chain: StoreChain = core.trust()
        self._kept: list[_Line] = []
        self._lost: list[_Line] = []
        self._found: list[ThreadRestore] = []

    def run(self, progress: Progress | None) -> RestorePlan:
        threads = all_threads(self._core)
        for number, each in enumerate(threads, start=1):
            if each.anchored is None:
                self._look_unseen(each.thread)
            else:
                self._look(each.slot, each.anchored)
            if progress is not None:
                progress(number, len(threads))
        self._found.sort(key=lambda each: (each.name, each.thread))
        apart = (ThreadOutcome.LEFTOVER, ThreadOutcome.UNSEEN)
        return RestorePlan(
            threads=sum(each.anchored is not None for each in threads),
            losses=tuple(each for each in self._found if each.outcome not in apart),
            leftovers=self._of(ThreadOutcome.LEFTOVER),
            unseen=self._of(ThreadOutcome.UNSEEN),
            kept=PositionList.of(self._kept),
            lost=PositionList.of(self._lost),
        )

    def _of(self, outcome: ThreadOutcome) -> tuple[ThreadRestore, ...]:
        return tuple(each for each in self._found if each.outcome is outcome)

    def _look(self, slot: bytes, position: Position) -> None:
        """Plan a thread that the anchor knows."""
        core, thread = self._core, position.thread
        seen = self._seen(position)
        misled = position.epoch > self._chain.epoch
        if seen is None and not misled and first_beyond(core, thread, -1) is None:
            # A name that nothing was saved under, or a thread that was lost before.
            core.follow_restore(slot, position)
            return
        is_book = _is_book(core, thread, slot)
        title = ROLLOUTS if is_book else _title(core, thread)
        tip: Tip | None = None
        walk = ThreadWalk.without_anchor(core, thread)
        try:
            chain = Chain(core, title)
            chain.slot = slot
            chain.bind(thread, _namespace(core, thread, 0 if seen is None else seen[0]))
            chain.refresh()
            walk = ThreadWalk(core, thread, core.restored_or_same(position), title)
            # Judge it as the next writer would: readable is not enough.
            judge_unvouched(chain, by_own_key=False)
            head: Entry | None = chain.verified_head()
            outcome, stop = ThreadOutcome.INTACT, None
        except (StorageUnavailable, AnchorUnavailable):
            raise
        except SealpointError as error:
            tip, stop = walk.verified_prefix()
            if is_book and tip is not None and not tip.owner.reserved:
                tip = None  # without its name, the permitted kinds of entries are unknown
            head = None if tip is None else tip.entry
            outcome = self._outcome(position, seen, head)
            stop = error if stop is None else stop
            if outcome is ThreadOutcome.ERASED:
                head = tip = None
        loss = self._note(thread, seen, outcome, head, stop)
        if loss is not None and is_book:
            self._found[-1] = loss = replace(loss, name=ROLLOUTS)
        if loss is not None and loss.lost:
            self._found[-1] = self._with_what_is_lost(loss, position, tip)
        if loss is not None and misled:
            # Another program moved the anchor to an epoch that never began, and wiped its marks.
            self._found[-1] = replace(self._found[-1], paused=True, loses_pause=True)

    def _seen(self, position: Position) -> tuple[int, bytes] | None:
        """Return the newest anchored entry; after a restore, at least the kept one."""
        kept = self._chain.kept(position.thread)
        if position.epoch < self._chain.epoch or (kept is not None and kept[0] > position.seq):
            return kept
        return None if position.reserved else (position.seq, position.entry)

    def _outcome(
        self, position: Position, seen: tuple[int, bytes] | None, head: Entry | None
    ) -> ThreadOutcome:
        """Return the outcome of a thread that is refused."""
        if seen is not None:
            if head is None:
                return ThreadOutcome.ERASED if position.erased else ThreadOutcome.GONE
            # Erasures that the anchor has seen, and those up to the newest remaining entry. An
            # erasure names the owner, so if it is lost, the anchor's owner mark is above the head.
            erased = head.header.gen + (head.header.kind is Kind.ERASE)
            if erased < position.gen + position.erased and position.owner > head.seq:
                return ThreadOutcome.ERASED
            if head.seq < seen[0]:
                return ThreadOutcome.BEHIND
            record = self._core.storage.read(position.thread, seen[0])
            if record is None or link_hash(record.header) != seen[1]:
                return ThreadOutcome.BESIDE
        beyond = first_beyond(self._core, position.thread, -1 if head is None else head.seq)
        if beyond is not None and _epoch(beyond[1]) < self._chain.epoch:
            return ThreadOutcome.LEFTOVER
        return ThreadOutcome.DAMAGED

    def _with_what_is_lost(
        self, loss: ThreadRestore, position: Position, tip: Tip | None
    ) -> ThreadRestore:
        """Add the anchor's facts about the lost entries, and the decisions still in the store.

        Args:
            loss: A thread that loses entries.
            position: The anchor's position of the thread.
            tip: The end of the kept entries; None: nothing is kept.
        """
        if loss.outcome is ThreadOutcome.ERASED:
            return loss
        handoff, session = self._lost_marks(loss, position, tip)
        return replace(
            loss,
            paused=position.paused,
            loses_pause=position.paused and (tip is None or tip.paused is None),
            lost_handoff=handoff,
            lost_session=None if session == handoff else session,
            decisions=tuple(self._lost_decisions(loss)),
        )

    def _lost_marks(
        self, loss: ThreadRestore, position: Position, tip: Tip | None
    ) -> tuple[int | None, int | None]:
        """Return the positions of the newest handoff and session, each None if it is not lost."""
        if tip is None or position.epoch < self._chain.epoch:
            return None, None  # nothing to hand off, or the marks are from before a restore
        if loss.outcome is ThreadOutcome.BESIDE:
            # The histories diverge at an unknown position; only the owner's entry is comparable.
            record = self._core.storage.read(position.thread, position.owner)
            same = record is not None and link_hash(record.header) == position.owner_entry
            return None if same else position.owner, None
        marks = (position.owner, position.fence)
        handoff, session = (mark if mark > tip.entry.seq else None for mark in marks)
        return handoff, session

    def _lost_decisions(self, loss: ThreadRestore) -> Iterator[LostDecision]:
        """Yield the decisions after the kept entries that the store still shows and that verify."""
        thread = bytes.fromhex(loss.thread)
        entries = self._core.storage.scan(thread, 0 if loss.kept is None else loss.kept + 1)
        count = 0
        with suppress(Edited):  # the rest cannot be read
            for seq, record in entries:
                entry = self._verified_decision(thread, seq, record)
                if entry is not None and count < _DECISIONS_MAX:
                    count += 1
                    yield LostDecision(seq=seq, kind=entry.header.kind.word, by=entry.writer)

    def _verified_decision(self, thread: bytes, seq: int, record: Record) -> Entry | None:
        """Return an entry that verifies on its own and records a person's decision or a request."""
        try:
            header = parse_header(record.header)
            rule = KINDS[header.kind]
            decides = rule.settles_pause or rule.settles_owner or rule.about_requests
            if not decides or header.kind is Kind.GENESIS:
                return None
            place = Place(self._core.store_hex, header.ns, thread.hex())
            return verify_renewed(self._core, record, place=place, seq=seq, chain=self._chain)[0]
        except (Tampered, NotTrusted):
            return None

    def _look_unseen(self, thread: bytes) -> None:
        """Plan a thread that this anchor does not know; a thread that is not genuine is ignored."""
        tip, stop = ThreadWalk.without_anchor(self._core, thread).verified_prefix()
        if tip is not None:
            self._note(thread, None, ThreadOutcome.UNSEEN, tip.entry, stop)

    def _note(
        self,
        thread: bytes,
        seen: tuple[int, bytes] | None,
        outcome: ThreadOutcome,
        head: Entry | None,
        stop: SealpointError | None,
    ) -> ThreadRestore | None:
        if head is not None:
            self._kept.append((thread, head.seq, head.hash))
        if outcome is ThreadOutcome.INTACT:
            return None
        beyond = _count_beyond(self._core, thread, -1 if head is None else head.seq)
        found = ThreadRestore(
            thread=thread.hex(),
            name=_name(self._core, thread),
            outcome=outcome,
            kept=None if head is None else head.seq,
            seen=RESERVED_SEQ if seen is None else seen[0],
            beyond=beyond,
            stopped=stop.message if beyond and stop is not None else "",
        )
        self._found.append(found)
        if found.lost and seen is not None:
            self._lost.append((thread, *seen))
        return found


def first_beyond(core: Core, thread: bytes, seq: int) -> tuple[int, bytes | None] | None:
    """Return position and header of the first record after a position; None if unreadable."""
    try:
        found = next(core.storage.scan(thread, seq + 1), None)
    except Edited:
        return seq + 1, None
    return None if found is None else (found[0], found[1].header)


def _epoch(header: bytes | None) -> float:
    """Return the epoch that a header names; infinity if it is unreadable."""
    try:
        return inf if header is None else parse_header(header).epoch
    except Edited:
        return inf


def _count_beyond(core: Core, thread: bytes, seq: int) -> int:
    count = 0
    try:
        for _ in core.storage.scan(thread, seq + 1):
            count += 1
    except Edited:
        count += 1
    return count


def _is_book(core: Core, thread: bytes, slot: bytes) -> bool:
    """Whether a slot belongs to a book of rollouts, whose name may have been erased."""
    with suppress(Tampered):
        return slot == thread_slot(core.parts.secret, _namespace(core, thread, 0), ROLLOUTS)
    return False


def _namespace(core: Core, thread: bytes, seq: int) -> str:
    """Return the namespace that an entry of a thread claims; its signature will prove it."""
    record = core.storage.read(thread, seq)
    if record is None:
        raise Missing(f"thread {thread.hex()[:12]}: entry {seq} is missing from the store")
    return parse_header(record.header).ns


def _title(core: Core, thread: bytes) -> str:
    """Return the name of a thread for messages."""
    return _name(core, thread) or thread.hex()[:12]


def _name(core: Core, thread: bytes) -> str:
    try:
        return claimed_name(core.storage, thread)[1]
    except Tampered:
        return ""


# Accepting a restored store: record the restore, and make the store follow it.
#
# The plan is made again and must equal the plan that was shown. Then the entries that the restore
# has cut off are removed from the store, because no entry could be saved in their place and no
# reader may use them; only entries that were shown are removed. ADR 0010 gives the reasons.


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRestore:
    """The result of accepting a restored store."""

    plan: RestorePlan
    epoch: int
    """The epoch in force from now on."""
    entry: int | None
    """The position of the restore on the store chain; None: only leftovers were removed."""
    removed: int
    """How many entries that do not count were removed from the store."""
    compacted: bool
    """Whether the files no longer contain them either; if not, `gc` removes them."""
    released: tuple[ThreadRestore, ...]
    """The cut threads that may resume from the kept entry without a reason."""
    in_the_way: tuple[ThreadRestore, ...]
    """Threads with uncounted entries that were not shown, because a process saved in between."""


def accept_restore(
    core: Core,
    plan: RestorePlan,
    reason: str,
    *,
    release: bool | Collection[str] = False,
    roots: Sequence[PrivateKey] = (),
    operators: Sequence[PrivateKey] = (),
    progress: Progress | None = None,
) -> AcceptedRestore:
    """Record that the store is accepted as the plan says, and remove entries that do not count.

    It may be repeated if it was interrupted; a plan with only leftovers records nothing.

    Args:
        core: The store.
        plan: The plan that the person saw who decided.
        reason: Why.
        release: The cut threads that may resume from the kept entry: all of them, or those of these
            names. The choice is signed. No thread that was paused is released.
        roots: The available root keys.
        operators: Keys of operators, for a quorum that the roster may require.
        progress: Called after each thread with the number of finished threads and the total.

    Raises:
        UsageError: There is no reason, nothing to accept, or a thread that cannot be released.
        HeadMoved: The store no longer matches the plan; nothing was written.
        KeyMissing: Neither enough root keys nor a quorum of operators is available.
    """
    check_reason(reason, "accept-restore")
    if not plan.losses and not plan.leftovers:
        raise UsageError(
            "accept-restore: the store has lost nothing, so there is nothing to accept"
        )
    plan.released(release)  # check the requested names before anything is signed
    chain = core.renewed_trust()
    signers = _signers(core, chain, roots, operators) if plan.losses else []
    now = plan_restore(core, progress)
    if _contents(now) != _contents(plan):
        raise HeadMoved(
            "store: it changed after the plan was made",
            hint="Stop the workers, look at the new plan, and decide again.",
        )
    released = now.released(release)
    entry: int | None = None
    if plan.losses:
        written = append_restore(
            core,
            chain,
            kept=now.kept,
            lost=now.lost,
            released=now.lines(released),
            paused=now.paused,
            reason=reason,
            signers=signers,
        )
        chain, entry = core.written(written), written.seq
    concerned = (*now.losses, *now.leftovers)
    removed = sum(_removed(core, chain, each) for each in concerned)
    compacted = not any(each.beyond for each in concerned) or _is_compacted(core)
    # Planning again also lets the anchor advance.
    return AcceptedRestore(
        plan=now,
        epoch=chain.epoch,
        entry=entry,
        removed=removed,
        compacted=compacted,
        released=released,
        in_the_way=plan_restore(core, progress).leftovers,
    )


def _contents(plan: RestorePlan) -> tuple[object, ...]:
    return plan.digest, plan.losses, plan.leftovers, plan.unseen


def _is_compacted(core: Core) -> bool:
    try:
        core.storage.compact()
    except StorageUnavailable:
        return False  # a reader is active; the record stands, and gc compacts later
    return True


def _signers(
    core: Core, chain: StoreChain, roots: Sequence[PrivateKey], operators: Sequence[PrivateKey]
) -> list[PrivateKey]:
    """Return the number of root keys that the root requires, or of operators for the roster."""
    root = chain.root
    found = [signer for signer in roots if signer.public in root.keys][: root.threshold]
    if len(found) == root.threshold:
        return found
    quorum = chain.roster.document.restore_quorum
    persons: Mapping[str, PrivateKey] = dict(_by_person(core, chain, operators))
    if quorum and len(persons) >= quorum:
        return list(persons.values())[:quorum]
    asked, there = "", ""
    if quorum:
        asked = f", or operators who are {quorum} persons,"
        there = f" root keys and {len(persons)} persons"
    raise KeyMissing(
        f"restore: {root.threshold} root keys{asked} are needed here, found {len(found)}{there}",
        hint="Run this where the root keys are.",
    )


def _by_person(
    core: Core, chain: StoreChain, operators: Sequence[PrivateKey]
) -> Iterator[tuple[str, PrivateKey]]:
    for signer in operators:
        holder = chain.restorer(signer.public.id, core.now())
        if holder is not None:
            yield holder[0].person, signer


def _removed(core: Core, chain: StoreChain, shown: ThreadRestore) -> int:
    """Remove the entries after the kept ones of a thread; all entries if nothing is kept."""
    thread = bytes.fromhex(shown.thread)
    label = _label(core, thread) if shown.kept is None else None
    beyond = first_beyond(core, thread, -1 if shown.kept is None else shown.kept)
    try:
        if beyond is not None:
            if _is_of_epoch(beyond[1], chain.epoch):
                return 0  # a process saves there already
            core.storage.truncate(thread, *beyond)
        if shown.kept is None:
            drop_orphans(core, thread)
            core.storage.drop(thread, -1, label=label)
    except HeadMoved:
        return 0  # other entries are there now: the second plan shows them
    return shown.beyond


def _is_of_epoch(header: bytes | None, epoch: int) -> bool:
    try:
        return header is not None and parse_header(header).epoch == epoch
    except Edited:
        return False


def _label(core: Core, thread: bytes) -> bytes | None:
    try:
        return label_of(core.store.raw, *claimed_name(core.storage, thread))
    except Tampered:
        return None
