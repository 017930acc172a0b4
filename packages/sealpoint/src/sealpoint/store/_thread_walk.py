# SPDX-License-Identifier: Apache-2.0
"""Walking a stored thread from its first entry to its last, each verified before it is returned.

The walk feeds a `Follower` from the store and compares with the anchor. Entries that the anchor has
not seen are refused if their key has expired. The walk writes nothing, and trusts no head: only at
the end it is certain that no entry is missing. Blobs are left to a full verification.
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
    KINDS,
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
from sealpoint.store._covered_requests import CoveredRequestEntries
from sealpoint.store._genesis import claimed_name
from sealpoint.store._key_expiry import check_expiry
from sealpoint.store._store_chain_cache import verify_renewed
from sealpoint.store._store_parts import Core
from sealpoint.store._thread_list import all_threads

_TOGETHER = 64
"""This many entries are verified before the first is followed. So for a replaced entry the error
says that it was replaced, and not that other entries seem to be missing."""

_Row = tuple[int, Record]


class ThreadWalk:
    """A thread of an open store, from its first entry to its last.

    Args:
        core: The store.
        thread: The thread's id.
        anchored: The anchor's position of the thread, or a substitute.
        name: The thread's name, if it is known from another source than the thread itself.
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
        """Yield a walk for every thread of the namespace, by the anchor and by the store.

        The namespace of a thread is read from the anchored entry. If that entry is missing or
        different, the thread counts as one of this namespace, so that the walk finds the fault.

        Raises:
            SealpointError: The store chain does not verify, or the store or the anchor cannot be
                read.
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
        """Return a walk without an anchor position, as if the anchor had only reserved the name."""
        nowhere = Position(thread, 0, 0, RESERVED_SEQ, bytes(32))
        return cls(core, thread, nowhere, name, pool=pool)

    def steps(self) -> Iterator[ChainStep]:
        """Yield every entry; only at the end it is certain that none is missing.

        Like every reader, it accepts entries about requests whose own signature is damaged and
        covered by a later one, because honest entries follow them.

        Raises:
            Tampered, NotTrusted, Forked, RolledBack, Unanchored: The thread does not verify.
        """
        for _, step in self._entries(takes_covered=True):
            yield step
        self.finish()
        self.require_kept()

    def entries(self, *, for_restore: bool = False) -> Iterator[tuple[Record, ChainStep]]:
        """Yield every entry with its record; a caller that reads all of them calls `finish`.

        Args:
            for_restore: Also return bodies below an erasure. Otherwise they are left out, based on
                the store's unverified erasures, so nothing may be removed because of that. Also
                accept covered entries as `steps` does; otherwise every signature is checked.
        """
        return self._entries(takes_covered=for_restore, as_stored=for_restore)

    def _entries(
        self, *, takes_covered: bool, as_stored: bool = False
    ) -> Iterator[tuple[Record, ChainStep]]:
        core = self._core
        first = next(core.storage.scan(self.thread, 0), None)
        if first is None and self.anchored is not None:
            if self.anchored.reserved:
                return  # a process is about to begin it
            raise self._ends_before(self.anchored, -1)
        if first is None or first[0] != 0:
            raise Missing(f"{self._title()}: its genesis is missing")
        with suppress(Tampered):
            self.name = self.name or claimed_name(core.storage, self.thread)[1]
        place = Place(core.store_hex, parse_header(first[1].header).ns, self.thread.hex())
        follower = self._follower = Follower(place, core.trust())
        covered = self._covered(follower) if takes_covered else None
        erased = None if as_stored else self._newest_erasure()
        rows = self._consecutive(erased)
        for record, entry in self._verified(follower, rows, covered):
            step = follower.follow(entry, record.body)
            self._compare(record, step)
            if step.lost and (erased is None or entry.seq >= erased):
                step = step._replace(unreadable=True)
            yield record, step

    def finish(self) -> Tip | None:
        """Return the end of the thread, after all entries; None if it was only reserved.

        Raises:
            Missing, RolledBack: Entries are missing.
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
        """Refuse a thread that ends before the entry that the newest restore kept.

        A caller that reads only the beginning of a thread does not call this.

        Raises:
            RolledBack: It does, and the anchor has not seen more either.
            Missing, Edited: The list of kept entries is missing or different.
        """
        if self._follower is not None:
            self._follower.require_kept()

    def verified_prefix(self) -> tuple[Tip | None, SealpointError | None]:
        """Return how far the thread verifies, including bodies, and the error after that.

        Returns:
            The tip there, None if not even a genesis verifies; and the error that stops it, None if
            the store ends there.

        Raises:
            StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
        """
        good: Tip | None = None
        stop: SealpointError | None = None
        try:
            for record, step in self.entries(for_restore=True):
                needed = KINDS[step.entry.header.kind].needs_body
                if record.body is None and needed and stop is None:
                    # Such bodies may be missing only where an erasure follows.
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
        self, follower: Follower, rows: Iterator[_Row], covered: CoveredRequestEntries | None
    ) -> Iterator[tuple[Record, Entry]]:
        """Yield every record with its verified entry; with a pool, many are verified first."""

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

    def _covered(self, follower: Follower) -> CoveredRequestEntries:
        def verify(record: Record, seq: int) -> Entry:
            return self._verify(follower, (seq, record), PublicKey.verify)

        return CoveredRequestEntries(self._core.storage, self.thread, verify)

    def _verify(self, follower: Follower, row: _Row, check: Check | None) -> Entry:
        seq, record = row
        entry, follower.chain = verify_renewed(
            self._core, record, place=follower.place, seq=seq, chain=follower.chain, check=check
        )
        return entry

    def _consecutive(self, erased: int | None) -> Iterator[tuple[int, Record]]:
        for expected, (seq, record) in enumerate(self._core.storage.scan(self.thread, 0)):
            if seq != expected:
                raise Missing(
                    f"entry {expected} of thread {self.thread.hex()[:12]}: it is missing from the "
                    "store"
                )
            # An interrupted erasure must not show erased bodies again.
            gone = erased is not None and seq < erased
            yield seq, Record(record.header, record.seals, None) if gone else record

    def _newest_erasure(self) -> int | None:
        """Return the claimed position of the newest erasure; the walk itself must reach it."""
        with suppress(Tampered):  # the walk finds the fault, and returns the entries before it
            for seq, record in self._core.storage.scan(self.thread, 0, descending=True):
                header = parse_header(record.header)
                if header.kind is Kind.ERASE:
                    return seq
                if not header.gen and (self.anchored is None or seq <= self.anchored.seq):
                    break  # above that, an attacker may have added rows
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
    """Return the namespace of a thread; None if it cannot be determined."""
    vouched = anchored if anchored is not None and not anchored.reserved else None
    try:
        record = core.storage.read(thread, 0 if vouched is None else vouched.seq)
        if record is None or (vouched is not None and link_hash(record.header) != vouched.entry):
            return None
        return parse_header(record.header).ns
    except SealpointError:
        return None
