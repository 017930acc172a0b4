# SPDX-License-Identifier: Apache-2.0
"""Full verification: every entry, body and blob of every thread, against pin and anchor.

A read verifies what it needs; this verifies everything, so that damage to what nobody has read
lately is found as well. It writes nothing, not even to the anchor. Signatures are checked on all
cores: the library underneath lets go of the interpreter while it computes. Memory does not follow
the length of a thread: entries pass through in batches, and each checkpoint names the blobs that
were stored with it.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from itertools import islice
from typing import Any

from sealpoint.anchor import Position
from sealpoint.audit._payloads import Retention
from sealpoint.audit._report import UNJUSTIFIED, Finding, Progress, Report, key_findings, nonsense
from sealpoint.errors import (
    Forked,
    HeadMoved,
    Misplaced,
    Missing,
    NotTrusted,
    RolledBack,
    SealpointError,
    Unanchored,
)
from sealpoint.ledger import (
    STORE_CHAIN,
    CutoffCheck,
    Entry,
    Header,
    Place,
    StoreChain,
    Tip,
    begin,
    extend,
    verify_entry,
)
from sealpoint.limits import VERIFY_ROUNDS_MAX
from sealpoint.storage import Record
from sealpoint.store import Core, check_expiry, claimed_name

_BATCH = 64
_FAR_AHEAD = timedelta(hours=24)

_Verified = list[tuple[Entry, Record]]

Judge = Callable[[Entry, Any, Tip | None, StoreChain], Iterable[str]]
"""Is told every verified entry of a thread, with its body and the end of the thread before it, and
says what was not justified about it, a sentence each."""


def verify_store(
    core: Core,
    progress: Callable[[Progress], object] | None = None,
    judge: Callable[[bytes], Judge] | None = None,
) -> Report:
    """Verify everything, and go on to the next thread where one fails.

    Args:
        core: The store.
        progress: Called now and then with how far it has come.
        judge: Makes what judges the decisions of a thread again; what it says becomes findings.

    Raises:
        SealpointError: The store chain itself cannot be believed, so nothing else can.
    """
    chain = core.renewed_trust()
    # Threads before slots: a name is reserved before it has an entry, so one that comes into being
    # meanwhile has its slot. Entries after slots: the store then has what the anchor has seen.
    threads = [thread for thread in core.storage.threads() if thread != STORE_CHAIN]
    slots = {position.thread: _restored(core, position) for _, position in core.anchor.slots()}
    slots.pop(STORE_CHAIN, None)
    findings = key_findings(core, chain)
    entries = chain.seq + 1
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for number, thread in enumerate(threads):
            anchored = slots.pop(thread, None)
            rounds = 0
            while True:
                rounds += 1
                check = _ThreadCheck(
                    core, chain, pool, thread, None if judge is None else judge(thread)
                )
                try:
                    for done in check.run(anchored):
                        if progress is not None:
                            progress(
                                Progress(
                                    threads=number,
                                    threads_total=len(threads),
                                    entries=entries + done,
                                )
                            )
                except SealpointError as error:
                    outdated = check.outdated()
                    if outdated and rounds < VERIFY_ROUNDS_MAX:
                        continue  # a prune or an erasure took away what was being read
                    found = _restless(check.name) if outdated else error
                    findings.append(_finding(found, thread, check.name))
                break
            findings.extend(check.remarks)
            entries += check.entries
    for thread, position in slots.items():
        if position.reserved:
            continue  # what was erased is still there: its headers stay
        # It may have come into being since the threads were listed.
        if core.storage.read(thread, 0) is None:
            message = (
                f"thread {thread.hex()[:12]}: expected entry {position.seq}, which the anchor has "
                "seen, found no such thread in the store"
            )
            findings.append(_finding(RolledBack(message), thread))
    if progress is not None:
        progress(Progress(threads=len(threads), threads_total=len(threads), entries=entries))
    findings.sort(key=lambda finding: finding.name)
    ok = not any(finding.refuses or finding.code == UNJUSTIFIED for finding in findings)
    return Report(ok=ok, entries=entries, findings=tuple(findings))


def verify_thread(core: Core, thread: bytes) -> None:
    """Verify every entry, body and blob of one thread that the anchor need not know.

    Raises:
        Tampered, NotTrusted: Something is not as it was written.
    """
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for _ in _ThreadCheck(core, core.trust(), pool, thread).entries_verified():
            pass


def _restored(core: Core, position: Position) -> Position:
    """What the anchor says after the restores; what the store lacks of it, the check will tell."""
    try:
        return core.restored(position)
    except SealpointError:
        return position


def _restless(name: str) -> HeadMoved:
    """What is found of a thread that never holds still: nobody may keep the rest from its turn."""
    return HeadMoved(
        f"thread {name!r}: expected to verify it, found that more of it was given up in each of "
        f"{VERIFY_ROUNDS_MAX} rounds",
        hint="Verify again while nobody prunes or erases it. If it goes on, somebody edits the "
        "store meanwhile: stop whoever can write to it, and verify then.",
    )


def _finding(error: SealpointError, thread: bytes, name: str = "") -> Finding:
    return Finding(code=error.code, thread=thread.hex(), name=name, message=error.message)


class _ThreadCheck:
    """The verification of one thread, from genesis to its end."""

    def __init__(
        self,
        core: Core,
        chain: StoreChain,
        pool: ThreadPoolExecutor,
        thread: bytes,
        judge: Judge | None = None,
    ) -> None:
        self._core = core
        self._chain = chain
        self._pool = pool
        self._thread = thread
        self._judge = judge
        self._tip: Tip | None = None
        self._cuts = CutoffCheck()
        self._retention: Retention | None = None
        self._place = Place(core.store_hex, core.namespace, thread.hex())
        self.name = ""
        self.entries = 0
        self.remarks: list[Finding] = []

    def run(self, anchored: Position | None) -> Iterator[int]:
        """Verify the thread and compare it with the anchor.

        Yields:
            After each batch, and at the end, how many entries were found good so far.
        """
        passed = anchored is None or anchored.reserved
        before: Header | None = None
        for entry, record in self.entries_verified():
            if anchored is not None and entry.seq > anchored.seq:
                check_expiry(self._core, self._chain, entry, record.body, before)
            before = entry.header
            if anchored is not None and entry.seq == anchored.seq:
                passed = entry.hash == anchored.entry
                if not passed:
                    raise Forked(
                        f"thread {self.name!r}: expected entry {entry.seq} as the anchor has it"
                    )
            if not self.entries % _BATCH:
                yield self.entries
        yield self.entries
        if anchored is None:
            raise Unanchored(f"thread {self.name!r}: expected the anchor to know it")
        if not passed:
            raise RolledBack(
                f"thread {self.name!r}: expected entry {anchored.seq}, which the anchor has seen, "
                f"found entry {self.entries - 1} to be the last"
            )

    def entries_verified(self) -> Iterator[tuple[Entry, Record]]:
        """Every entry, each verified together with its body and blobs before it is yielded."""
        namespace, self.name = claimed_name(self._core, self._thread)
        self._retention = retention = Retention(self._core, self._thread)
        self._place = Place(self._core.store_hex, namespace, self._thread.hex())
        for batch in self._batches():
            for entry, record in batch:
                before = self._tip
                self._follow(entry, record)
                body = retention.check(entry, record)
                if retention.nonsense:
                    said = nonsense(entry.seq, entry.header.kind, entry.writer)
                    self.remarks.append(self._remark(UNJUSTIFIED, said))
                if self._judge is not None:
                    self.remarks += [
                        self._remark(UNJUSTIFIED, words)
                        for words in self._judge(entry, body, before, self._chain)
                    ]
                self.entries += 1
                yield entry, record
        if self._tip is not None:
            self._tip.require_owner()
        self._cuts.require_settled(f"thread {self.name!r}")
        retention.finish()

    def outdated(self) -> bool:
        """Whether more has been given up since the verification began."""
        if self._retention is None:
            return False
        try:
            return Retention(self._core, self._thread).claims != self._retention.claims
        except SealpointError:
            return False

    def _batches(self) -> Iterator[_Verified]:
        """Entries with their signatures verified, in order, a few batches ahead."""
        records = self._consecutive()
        waiting: deque[Future[_Verified]] = deque()
        while True:
            batch = list(islice(records, _BATCH))
            if batch:
                waiting.append(self._pool.submit(self._signed, batch))
            if waiting and (not batch or len(waiting) > 2 * (os.cpu_count() or 1)):
                yield waiting.popleft().result()
            elif not batch:
                return

    def _consecutive(self) -> Iterator[tuple[int, Record]]:
        for expected, (seq, record) in enumerate(self._core.storage.scan(self._thread, 0)):
            if seq != expected:
                raise Missing(
                    f"entry {expected} of thread {self._place.thread[:12]}: expected it in the "
                    "store, found none"
                )
            yield seq, record

    def _signed(self, batch: list[tuple[int, Record]]) -> _Verified:
        return [(self._entry(record, seq), record) for seq, record in batch]

    def _entry(self, record: Record, seq: int) -> Entry:
        try:
            return verify_entry(
                record.header, record.seals, place=self._place, seq=seq, chain=self._chain
            )
        except (NotTrusted, Misplaced):
            # It may have been written under a roster that came while this runs.
            self._chain = self._core.renewed_trust()
            return verify_entry(
                record.header, record.seals, place=self._place, seq=seq, chain=self._chain
            )

    def _follow(self, entry: Entry, record: Record) -> None:
        self._cuts.follow(entry, record.body, self._chain)
        if self._tip is None:
            tip = begin(entry, record.body, self._chain)
        else:
            tip = extend(self._tip, entry, record.body, self._chain)
            self._check_time(self._tip.entry, entry)
        self._tip = tip

    def _check_time(self, before: Entry, entry: Entry) -> None:
        """Time that runs backwards or far ahead is worth a look; it refuses nothing."""
        behind = entry.header.at < before.header.at
        if behind or entry.header.at > self._core.now() + _FAR_AHEAD:
            what = "before its predecessor" if behind else "far in the future"
            message = f"entry {entry.seq}: its time {entry.header.at.isoformat()} is {what}"
            self.remarks.append(self._remark("time", message))

    def _remark(self, code: str, message: str) -> Finding:
        """Something that no reader is refused for."""
        return Finding(
            code=code, thread=self._place.thread, name=self.name, message=message, refuses=False
        )
