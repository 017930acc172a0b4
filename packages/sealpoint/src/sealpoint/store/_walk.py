# SPDX-License-Identifier: Apache-2.0
"""Going through a stored thread from its first entry to its last, each verified before it is shown.

It feeds a `Follower` from the store and compares with the anchor; what the anchor has not seen is
refused where its key has expired. It writes nothing, and believes no head: only at the end is it
certain that nothing is missing. Blobs are left to a full verification.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Self

from sealpoint.anchor import RESERVED_SEQ, Position
from sealpoint.errors import (
    AnchorUnavailable,
    Edited,
    Forged,
    Forked,
    Missing,
    RolledBack,
    SealpointError,
    StorageUnavailable,
    Tampered,
    Unanchored,
)
from sealpoint.ledger import (
    ChainStep,
    Entry,
    Follower,
    Header,
    Kind,
    Place,
    Tip,
    claimed_signatures,
    link_hash,
    parse_header,
)
from sealpoint.signing import Check, PublicKey, SignaturePool, Signed
from sealpoint.storage import Record
from sealpoint.store._call_trust import verify_renewed
from sealpoint.store._core import Core
from sealpoint.store._covered import CoveredWords
from sealpoint.store._expiry import check_expiry
from sealpoint.store._genesis import claimed_name
from sealpoint.store._thread_list import all_threads

_TOGETHER = 64
"""So many entries are verified before the first is followed: of one that was put in the place of
another it is said that it is, and not what seems to be missing because of it."""

_Row = tuple[int, Record]


class ThreadWalk:
    """A thread of an open store, from its first entry to its last.

    Args:
        core: The store.
        thread: The thread's id.
        anchored: What the anchor knows of it, or what stands for that.
        name: What it is called, where that is known otherwise than from the thread itself.
        pool: Checks signatures ahead on all cores; without it, they are checked here.
    """

    def __init__(
        self,
        core: Core,
        thread: bytes,
        anchored: Position | None,
        name: str = "",
        *,
        pool: SignaturePool | None = None,
    ) -> None:
        self._core = core
        self._pool = pool
        self._follower: Follower | None = None
        self.thread = thread
        self.anchored = anchored
        self.name = name

    @classmethod
    def each(cls, core: Core) -> Iterator[Self]:
        """A walk for every thread of the namespace, by the anchor and by the store.

        The namespace of a thread is taken from an entry that the anchor vouches for. Where that is
        not there, or is another, the thread counts as one of this namespace, so that it is found
        out.

        Raises:
            SealpointError: The store chain cannot be believed, or nobody can look.
        """
        core.renewed_trust()
        for each in all_threads(core):
            anchored = None if each.anchored is None else core.restored_or_same(each.anchored)
            is_begun = anchored is None or not anchored.reserved or each.stored
            if is_begun and _namespace(core, each.thread, anchored) in (None, core.namespace):
                yield cls(core, each.thread, anchored)

    @classmethod
    def without_anchor(
        cls, core: Core, thread: bytes, name: str = "", *, pool: SignaturePool | None = None
    ) -> Self:
        """A walk that asks no anchor, as if it had only reserved the name: nothing was seen."""
        nowhere = Position(thread, 0, 0, RESERVED_SEQ, bytes(32))
        return cls(core, thread, nowhere, name, pool=pool)

    def steps(self) -> Iterator[ChainStep]:
        """Every entry; at the end, and only there, it is certain that none is missing.

        As every reader does, it takes words about requests whose own signature is damaged and
        covered by a later one: honest work lies on top of them.

        Raises:
            Tampered, NotTrusted, Forked, RolledBack, Unanchored: The thread does not verify.
        """
        for _, step in self._entries(takes_covered=True):
            yield step
        self.finish()
        self.require_kept()

    def entries(self, *, for_restore: bool = False) -> Iterator[tuple[Record, ChainStep]]:
        """The same with what the store has of each; whoever takes all of them calls `finish`.

        Args:
            for_restore: Show bodies that lie below an erasure too. Else they are left out, by what
                the store says of erasures: nothing may be given up because of that. And take what
                `steps` takes; else every signature is checked.
        """
        return self._entries(takes_covered=for_restore, as_stored=for_restore)

    def _entries(
        self, *, takes_covered: bool, as_stored: bool = False
    ) -> Iterator[tuple[Record, ChainStep]]:
        core = self._core
        first = next(core.storage.scan(self.thread, 0), None)
        if first is None and self.anchored is not None:
            if self.anchored.reserved:
                return  # somebody is about to begin it
            raise self._ends_before(self.anchored, -1)
        if first is None or first[0] != 0:
            raise Missing(f"{self._title()}: its genesis is missing")
        with suppress(Tampered):
            self.name = self.name or claimed_name(core.storage, self.thread)[1]
        place = Place(core.store_hex, parse_header(first[1].header).ns, self.thread.hex())
        follower = self._follower = Follower(place, core.trust())
        covered = self._covered(follower) if takes_covered else None
        rows = self._consecutive(as_stored=as_stored)
        for record, entry in self._verified(follower, rows, covered):
            step = follower.follow(entry, record.body)
            self._compare(record, step)
            yield record, step

    def finish(self) -> Tip | None:
        """The end of the thread, once all entries were taken; None if it was only reserved.

        Raises:
            Missing, RolledBack: Something is gone.
            Unanchored: The anchor does not know the thread.
        """
        if self._follower is None:
            return None
        tip = self._follower.finish()
        if self.anchored is None:
            raise Unanchored(f"{self._title()}: expected the anchor to know it")
        if self.anchored.seq > tip.entry.seq:
            raise self._ends_before(self.anchored, tip.entry.seq)
        return tip

    def require_kept(self) -> None:
        """Refuse a thread that ends before what the newest restore kept of it.

        Whoever looks at a beginning of a thread does not ask.

        Raises:
            RolledBack: It does, and the anchor has seen no more either.
            Missing, Edited: The list of what was kept is not there, or is another.
        """
        if self._follower is not None:
            self._follower.require_kept()

    def verified_prefix(self) -> tuple[Tip | None, SealpointError | None]:
        """How far the thread verifies, bodies included, and what comes then.

        Returns:
            The tip there, None if not even a genesis verifies; and why it goes no further, None if
            the store ends there.

        Raises:
            StorageUnavailable, AnchorUnavailable: Nobody can look.
        """
        good: Tip | None = None
        stop: SealpointError | None = None
        try:
            for record, step in self.entries(for_restore=True):
                if record.body is None and stop is None:
                    # Bodies may be missing only where an erasure follows.
                    where = f"entry {step.entry.seq} of {self._title()}"
                    stop = Missing(f"{where}: its body is missing")
                if step.entry.header.kind is Kind.ERASE:
                    stop = None
                if stop is None:
                    good = step.tip
        except (StorageUnavailable, AnchorUnavailable):
            raise
        except SealpointError as error:
            stop = error if stop is None else stop
        return good, stop

    def _verified(
        self, follower: Follower, rows: Iterator[_Row], covered: CoveredWords | None
    ) -> Iterator[tuple[Record, Entry]]:
        """Every record with its entry, verified on its own; with a pool, many before the first."""

        def signed(row: _Row) -> tuple[Signed, ...]:
            return claimed_signatures(row[1].header, row[1].seals, follower.chain)

        def verified(row: _Row, check: Check) -> tuple[Record, Entry]:
            try:
                return row[1], self._verify(follower, row, check)
            except (Edited, Forged):
                if covered is None or not covered.covers(row[1]):
                    raise
                return row[1], self._verify(follower, row, None)

        if self._pool is None:
            for row in rows:
                yield verified(row, PublicKey.verify)
            return
        found = (verified(row, check) for row, check in self._pool.checked(rows, signed))
        while together := list(islice(found, _TOGETHER)):
            yield from together

    def _covered(self, follower: Follower) -> CoveredWords:
        def verify(record: Record, seq: int) -> Entry:
            return self._verify(follower, (seq, record), PublicKey.verify)

        return CoveredWords(self._core.storage, self.thread, verify)

    def _verify(self, follower: Follower, row: _Row, check: Check | None) -> Entry:
        seq, record = row
        entry, follower.chain = verify_renewed(
            self._core, record, place=follower.place, seq=seq, chain=follower.chain, check=check
        )
        return entry

    def _consecutive(self, *, as_stored: bool) -> Iterator[tuple[int, Record]]:
        erased = None if as_stored else self._newest_erasure()
        for expected, (seq, record) in enumerate(self._core.storage.scan(self.thread, 0)):
            if seq != expected:
                raise Missing(
                    f"entry {expected} of thread {self.thread.hex()[:12]}: it is missing from the "
                    "store"
                )
            # What an erasure has taken is not shown again because it was interrupted.
            gone = erased is not None and seq < erased
            yield seq, Record(record.header, record.seals, None) if gone else record

    def _newest_erasure(self) -> int | None:
        """Where the newest erasure lies, as the store says; the walk itself must come to it."""
        with suppress(Tampered):  # the walk finds what is wrong, and tells what lies before it
            for seq, record in self._core.storage.scan(self.thread, 0, descending=True):
                header = parse_header(record.header)
                if header.kind is Kind.ERASE:
                    return seq
                if not header.gen and (self.anchored is None or seq <= self.anchored.seq):
                    break  # above that, anybody can have put a row
        return None

    def _compare(self, record: Record, step: ChainStep) -> None:
        anchored, entry = self.anchored, step.entry
        if anchored is None:
            return
        if entry.seq > anchored.seq:
            before: Header | None = None if step.before is None else step.before.entry.header
            check_expiry(self._core, step.chain, entry, record.body, before)
        elif entry.seq == anchored.seq and entry.hash != anchored.entry:
            raise Forked(
                f"{self._title()}: expected entry {anchored.seq} as the anchor has it, found "
                "another genuine one"
            )

    def _ends_before(self, anchored: Position, last: int) -> RolledBack:
        return RolledBack(
            f"{self._title()}: expected entry {anchored.seq}, which the anchor has seen, found "
            f"entry {last} to be the last"
        )

    def _title(self) -> str:
        return f"thread {self.name or self.thread.hex()[:12]!r}"


def _namespace(core: Core, thread: bytes, anchored: Position | None) -> str | None:
    """The namespace of a thread; None if nobody can tell."""
    vouched = anchored if anchored is not None and not anchored.reserved else None
    try:
        record = core.storage.read(thread, 0 if vouched is None else vouched.seq)
        if record is None or (vouched is not None and link_hash(record.header) != vouched.entry):
            return None
        return parse_header(record.header).ns
    except SealpointError:
        return None
