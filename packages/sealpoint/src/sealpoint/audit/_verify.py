# SPDX-License-Identifier: Apache-2.0
"""Full verification: every entry, body and blob of every thread, against pin and anchor.

A read verifies only what it needs. This verifies everything, so that it also finds damage to data
that nobody has read lately. It writes nothing, not even to the anchor. If there are many
signatures, processes on all cores verify them. For each thread, memory holds four bytes per entry,
for comparison with tables of ids, and the digests of its blobs. Entries pass through in batches.
Each checkpoint must list the blobs that its tree is the first to need.

Only data that was given up by a prune or an erasure may be missing. The walk goes from the first
entry to the last, so it reaches a prune or an erasure after the data that these removed. Therefore
the check first looks up the newest of each from the end, trusts it provisionally, and at the end
requires that it is the one in the verified chain.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from sealpoint.anchor import Position
from sealpoint.audit._report import (
    CALLED_IDEMPOTENT,
    QUESTION_PASSED,
    UNJUSTIFIED,
    Finding,
    Progress,
    Report,
    describe_unreadable,
    key_findings,
)
from sealpoint.codec import Reached, tree_blobs
from sealpoint.errors import (
    HeadMoved,
    Misplaced,
    Missing,
    NotTrusted,
    RolledBack,
    SealpointError,
)
from sealpoint.ledger import (
    KINDS,
    ROLLOUTS,
    STORE_CHAIN,
    ChainStep,
    CheckpointBody,
    Entry,
    Header,
    Kind,
    PruneBody,
    ResultsBody,
    ResumeBody,
    StoreChain,
    Tip,
    parse_body,
    parse_header,
)
from sealpoint.limits import VERIFY_ROUNDS_MAX
from sealpoint.signing import SignaturePool
from sealpoint.storage import Record
from sealpoint.store import (
    BlobReader,
    Core,
    ListedThread,
    ThreadWalk,
    all_threads,
    claimed_name,
    fresh_digests,
    named_slot,
    store_slot,
    thread_slot,
    tip_position,
)

_TELL_EVERY = 64
_FAR_AHEAD = timedelta(hours=24)

Judge = Callable[[ChainStep], Iterable[str]]
"""Receives every verified entry of a thread, with its body and the end of the thread before it.
Returns one sentence for each thing about the entry that was not justified."""


def verify_store(
    core: Core,
    progress: Callable[[Progress], object] | None = None,
    judge: Callable[[bytes], Judge] | None = None,
) -> Report:
    """Verify everything; if a thread fails, continue with the next one.

    Args:
        core: The store.
        progress: Called periodically with the progress so far.
        judge: Makes a judge that checks the decisions of a thread again; its sentences become
            findings.

    Raises:
        SealpointError: The store chain itself cannot be trusted, so nothing else can.
    """
    chain = core.renewed_trust()
    listed = all_threads(core)
    strays = list(_find_strays(core, chain.epoch))
    stored = [each for each in listed if each.stored]
    findings, entries = key_findings(core, chain), chain.seq + 1

    def tell(threads: int, more: int = 0) -> None:
        if progress is not None:
            done = Progress(threads=threads, threads_total=len(stored), entries=entries + more)
            progress(done)

    with SignaturePool() as pool:
        for number, each in enumerate(stored):
            check = _verify_again(core, each, pool, judge, partial(tell, number))
            findings += check.findings
            findings += _find_doubles(core, each)
            entries += check.entries
    findings += strays
    for each in listed:
        if not each.stored and each.anchored is not None:
            findings += _find_doubles(core, each)
            findings += _find_lost(core, core.restored_or_same(each.anchored))
    findings += _find_not_kept(chain, {each.thread for each in listed})
    tell(len(stored))
    findings.sort(key=lambda finding: finding.name)
    ok = not any(finding.refuses or finding.code == UNJUSTIFIED for finding in findings)
    return Report(ok=ok, entries=entries, findings=tuple(findings))


def verify_thread(core: Core, thread: bytes) -> None:
    """Verify every entry, body and blob of one thread, which the anchor need not know.

    Raises:
        Tampered, NotTrusted: Something is not as it was written.
    """
    with SignaturePool() as pool:
        for _ in _ThreadCheck(core, ThreadWalk.without_anchor(core, thread, pool=pool), None).run():
            pass


def _verify_again(
    core: Core,
    listed: ListedThread,
    pool: SignaturePool,
    judge: Callable[[bytes], Judge] | None,
    tell: Callable[[int], object],
) -> "_ThreadCheck":
    """Verify a thread, and again if a prune or an erasure removed data during the verification."""
    anchored = None if listed.anchored is None else core.restored_or_same(listed.anchored)
    rounds = 0
    while True:
        rounds += 1
        walk = ThreadWalk(core, listed.thread, anchored, pool=pool)
        judged = None if judge is None else judge(listed.thread)
        check = _ThreadCheck(core, walk, judged, listed.slot)
        try:
            for done in check.run():
                tell(done)
            walk.require_kept()
        except SealpointError as error:
            outdated = check.is_outdated()
            if outdated and rounds < VERIFY_ROUNDS_MAX:
                continue
            check.fail(_restless(walk.name) if outdated else error)
        return check


def _find_doubles(core: Core, listed: ListedThread) -> Iterator[Finding]:
    """Yield a finding for each anchor slot that names a thread but does not match its name."""
    slots = listed.doubles
    if listed.slot and not _is_named(core, listed):
        slots = (listed.slot, *slots)
    for slot in slots:
        yield Finding(
            code=Misplaced.code,
            thread=listed.thread.hex(),
            message=f"thread {listed.thread.hex()[:12]}: the anchor names it in slot "
            f"{slot.hex()[:12]} too, which is not that of its name: someone who may write the "
            "anchor has created it",
        )


def _is_named(core: Core, listed: ListedThread) -> bool:
    """Whether the slot of a thread matches its name, or the name is unknown."""
    with suppress(SealpointError):
        if (
            thread_slot(core.parts.secret, *claimed_name(core.storage, listed.thread))
            == listed.slot
        ):
            return True
    return named_slot(core, listed.thread) in (None, listed.slot)


def _find_strays(core: Core, epoch: int) -> Iterator[Finding]:
    """Yield findings for slots that wrongly name the store chain, or name a future restore."""
    own = store_slot(core.parts.secret)
    for slot, position in core.anchor.slots():
        if position.thread == STORE_CHAIN and slot != own:
            yield Finding(
                code=Misplaced.code,
                thread=STORE_CHAIN.hex(),
                message=f"store chain: the anchor names it in slot {slot.hex()[:12]} too, which is "
                "not its own: someone who may write the anchor has created it",
            )
        if position.epoch > epoch:
            yield Finding(
                code=NotTrusted.code,
                thread=position.thread.hex(),
                message=f"thread {position.thread.hex()[:12]}: the anchor names restore "
                f"{position.epoch} for it, and {epoch} were accepted: someone who may write the "
                "anchor has moved it, and the anchor has lost what it had recorded",
            )


def _find_lost(core: Core, anchored: Position) -> list[Finding]:
    """Return a finding for a thread that the anchor knows and the store did not list."""
    # No finding: an erased thread keeps its headers, a reserved one may never begin, and a thread
    # may have been created after the listing.
    if anchored.reserved or core.storage.read(anchored.thread, 0) is not None:
        return []
    return [_lost(anchored.thread, f"expected entry {anchored.seq}, which the anchor has seen")]


def _find_not_kept(chain: StoreChain, known: set[bytes]) -> Iterator[Finding]:
    """Yield threads that the newest restore kept and that neither anchor nor store knows."""
    with suppress(SealpointError):  # a missing list has its own finding
        for thread in chain.kept_threads():
            if thread not in known:
                yield _lost(thread, "expected what the newest restore kept of it")


def _lost(thread: bytes, expected: str) -> Finding:
    message = f"thread {thread.hex()[:12]}: {expected}, found no such thread in the store"
    return Finding(code=RolledBack.code, thread=thread.hex(), message=message)


def _restless(name: str) -> HeadMoved:
    """Return the error for a thread that keeps changing: it must not delay the other threads."""
    return HeadMoved(
        f"thread {name!r}: expected to verify it, found that more of it was given up in each of "
        f"{VERIFY_ROUNDS_MAX} rounds",
        hint="Verify again while nobody prunes or erases it. If it happens again, another program "
        "is editing the store: stop everything that can write to it, and verify then.",
    )


class _ThreadCheck:
    """The verification of one thread, from genesis to its end."""

    def __init__(
        self, core: Core, walk: ThreadWalk, judge: Judge | None, slot: bytes = b""
    ) -> None:
        self._core = core
        self._walk = walk
        self._judge = judge
        self._slot = slot
        self._horizon = core.now() + _FAR_AHEAD
        self._question = _OpenQuestion()
        self._answered_by: str | None = None
        """The identity that continued with an answer last."""
        self._retention: RetentionCheck | None = None
        self.entries = 0
        self.findings: list[Finding] = []

    def run(self) -> Iterator[int]:
        """Verify the thread and compare it with the anchor.

        Yields:
            After each batch, and at the end, the number of entries verified so far.
        """
        self._retention = retention = RetentionCheck(self._core, self._walk.thread)
        for record, step in self._walk.entries():
            retention.check(record, step)
            self._remark(record, step)
            self.entries += 1
            if not self.entries % _TELL_EVERY:
                yield self.entries
        retention.finish()
        yield self.entries
        self._walk.finish()

    def is_outdated(self) -> bool:
        """Whether more data has been given up since the verification began."""
        if self._retention is None:
            return False
        try:
            claims = RetentionCheck(self._core, self._walk.thread).claims
        except SealpointError:
            return False
        return claims != self._retention.claims

    def fail(self, error: SealpointError) -> None:
        """Record why the thread does not verify."""
        self._add(error.code, error.message, refuses=True)

    def _remark(self, record: Record, step: ChainStep) -> None:
        """Record what deserves a look but refuses nothing."""
        entry, header = step.entry, step.entry.header
        behind = step.before is not None and header.at < step.before.entry.header.at
        if step.before is not None and (behind or header.at > self._horizon):
            what = "before its predecessor" if behind else "far in the future"
            self._add("time", f"entry {entry.seq}: its time {header.at.isoformat()} is {what}")
        if step.unreadable:
            self._add(UNJUSTIFIED, describe_unreadable(entry, record.body))
        if self._is_misplaced(header):
            words = f"a {header.kind.word} entry has no place in the book of rollouts"
            self._add(NotTrusted.code, f"entry {entry.seq}: {words}", refuses=True)
        passed = self._question.follow(entry, step.body)
        if passed is not None:
            words = f"the run continued past its question in entry {passed} in the same session"
            self._add(QUESTION_PASSED, f"entry {entry.seq}: {words}, without an answer")
        self._remark_idempotent(entry, step.body)
        told = _describe_misled(self._walk.anchored, step.tip)
        if told is not None:
            self._add(NotTrusted.code, f"entry {entry.seq}: {told}", refuses=True)
        if self._judge is not None:
            for text in self._judge(step):
                self._add(UNJUSTIFIED, text)

    def _remark_idempotent(self, entry: Entry, body: Any) -> None:
        """Take note of a worker who says that what another did with an answer may be repeated."""
        if entry.header.kind is Kind.ERASE:
            self._answered_by = None
        if not isinstance(body, ResumeBody):
            return
        if body.idempotent and self._answered_by not in (None, entry.writer):
            words = f"{entry.writer!r} called it idempotent to repeat what {self._answered_by!r}"
            self._add(CALLED_IDEMPOTENT, f"entry {entry.seq}: {words} did with an answer")
        if body.idempotent or body.answer is not None:
            self._answered_by = entry.writer

    def _is_misplaced(self, header: Header) -> bool:
        """Whether an entry has a kind that the book of rollouts may not hold.

        An erasure removes the name that identifies a book; its slot stays.
        """
        if KINDS[header.kind].on_reserved or not self._slot:
            return False
        return thread_slot(self._core.parts.secret, header.ns, ROLLOUTS) == self._slot

    def _add(self, code: str, message: str, *, refuses: bool = False) -> None:
        self.findings.append(
            Finding(
                code=code,
                thread=self._walk.thread.hex(),
                name=self._walk.name,
                message=message,
                refuses=refuses,
            )
        )


def _describe_misled(anchored: Position | None, tip: Tip) -> str | None:
    """Describe wrong facts that an anchor holds about the entry that it has seen; None: none."""
    if anchored is None or anchored.entry != tip.entry.hash:
        return None
    true = replace(tip_position(tip), epoch=anchored.epoch)
    wrong = [
        f"{field} {getattr(anchored, field)} in place of {getattr(true, field)}"
        for field in ("gen", "erased", "fence", "pause", "owner", "paused")
        if getattr(anchored, field) != getattr(true, field)
    ]
    if anchored.owner_entry != true.owner_entry:
        wrong.append("another entry of the owner")
    said = ", ".join(wrong)
    return f"someone who may write the anchor made it say {said}" if wrong else None


class _OpenQuestion:
    """The question that the newest checkpoint of the main lane asks, followed entry by entry.

    A resume judges a question and records its outcome, so only the session that asked it can pass
    it without a record. This does not follow questions of tasks: they are in results, and a
    framework handles them itself. A copied history repeats questions, and a later checkpoint of it
    may ask nothing.
    """

    def __init__(self) -> None:
        self._seq: int | None = None
        self._rank = self._fence = -1

    def follow(self, entry: Entry, body: Any) -> int | None:
        """Take the next verified entry, with its body if that is readable.

        Returns:
            The position of the question that this entry passed; None: it passed none.
        """
        if entry.header.fence != self._fence or self._is_deleted_by(body):
            self._seq = None  # judged by the gate, or recorded as deleted
        self._fence = entry.header.fence
        if isinstance(body, CheckpointBody) and not body.lane:
            return self._take(entry.seq, body)
        return None

    def _is_deleted_by(self, body: Any) -> bool:
        return isinstance(body, PruneBody) and self._seq is not None and body.covers(self._seq)

    def _take(self, seq: int, body: CheckpointBody) -> int | None:
        rank = seq if body.again is None else body.again
        if self._seq is not None and rank < self._rank:
            return None  # an older checkpoint was saved again: the question is still the newest
        passed = self._seq if body.question is None and body.origin is None else None
        self._seq = None if body.question is None else seq
        self._rank = rank
        return passed


_REMOVES = re.compile(
    b'"kind":"(?:%b)"' % b"|".join(kind.encode() for kind in Kind if KINDS[kind].gives_up)
)
"""A pattern that only the headers of such entries match: inside a text, quotes are escaped."""


class Claims(NamedTuple):
    """The positions of the newest erasure and the newest prune after it, as the store claims."""

    erased: int | None = None
    prune: int | None = None
    rule: PruneBody | None = None


class RetentionCheck:
    """The data that was given up in one thread, checked entry by entry."""

    def __init__(self, core: Core, thread: bytes) -> None:
        self._core = core
        self._thread = thread
        self._reached = Reached()
        self._erased: int | None = None
        self._prune: int | None = None
        self.claims = _claimed(core, thread)

    def check(self, record: Record, step: ChainStep) -> None:
        """Check that the next verified entry has its body and the blobs that it must have.

        Raises:
            Missing: Something is gone that was not given up.
            Edited: Something differs from what was written.
        """
        entry, body, seq = step.entry, step.body, step.entry.header.seq
        rule = KINDS[entry.header.kind]
        if self.claims.erased is not None and seq < self.claims.erased:
            return
        if record.body is None and rule.needs_body:
            raise Missing(f"entry {seq}: its body is missing")
        if entry.header.kind is Kind.ERASE:
            self._erased, self._prune = seq, None
        elif rule.is_retention:
            self._prune = seq
        if rule.holds_payload:
            world = body.world if isinstance(body, CheckpointBody) else None
            self._check_payload(seq, body, world, record.payload)

    def finish(self) -> None:
        """Require that the provisional claims are what the chain says."""
        if (self._erased, self._prune) != self.claims[:2]:
            raise Missing(
                f"thread {self._thread.hex()[:12]}: something is gone, and no erasure or prune "
                "accounts for it"
            )

    def _check_payload(
        self, seq: int, body: CheckpointBody | ResultsBody, world: str | None, payload: bytes | None
    ) -> None:
        _, newest, rule = self.claims
        if rule is not None and rule.covers(seq):
            return
        root = bytes.fromhex(body.root)
        reader = BlobReader(
            self._core.storage,
            self._thread,
            self._core.registry.limits.blob_bytes_max,
            f"entry {seq} of thread {self._thread.hex()[:12]}",
            (root, payload),
        )
        reader.get(root)
        listed = set(fresh_digests(body.fresh, body.fresh_list, reader))
        beside = root if payload is not None and root not in self._reached.blobs else None
        tree = tree_blobs(
            root,
            reader.get,
            limits=self._core.registry.limits,
            reached=self._reached,
            fetch_all=True,
        )
        new = [digest for digest in tree if digest != beside]
        if beside is not None:
            self._reached.forget_root(beside)
        if world is not None and bytes.fromhex(world) not in self._reached.blobs:
            new.append(bytes.fromhex(world))
            self._reached.blobs.add(new[-1])
        for digest in listed.union(new):
            if digest not in reader.reached:
                reader.get(digest)
        # A checkpoint that was given up may list blobs that this one needs. A blob that none lists
        # would look like an orphan to a sweep.
        if (newest is None or seq > newest) and not listed.issuperset(new):
            name = next(digest for digest in new if digest not in listed).hex()[:12]
            raise Missing(
                f"entry {seq}: it needs blob {name}, which neither it nor an earlier lists"
            )


def _claimed(core: Core, thread: bytes) -> Claims:
    """Find the newest erasure and prune from the end; this is not trusted yet.

    It does not use what a checkpoint claims about them: a false claim would make honest entries
    appear to lack something.
    """
    prune: int | None = None
    for seq, record in core.storage.scan(thread, 0, descending=True):
        if prune is None and _REMOVES.search(record.header) is None:
            continue
        header = parse_header(record.header)
        if header.kind is Kind.ERASE:
            return _with_rule(core, thread, Claims(seq, prune))
        if prune is None and KINDS[header.kind].is_retention:
            prune = seq
        if prune is not None and not header.gen:
            break
    return _with_rule(core, thread, Claims(None, prune))


def _with_rule(core: Core, thread: bytes, claims: Claims) -> Claims:
    record = None if claims.prune is None else core.storage.read(thread, claims.prune)
    if record is None or record.body is None:
        return claims
    header = parse_header(record.header)
    if not KINDS[header.kind].is_retention:
        return claims
    rule: PruneBody = parse_body(header.kind, header.body, record.body)
    return claims._replace(rule=rule)
