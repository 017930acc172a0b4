# SPDX-License-Identifier: Apache-2.0
"""Which words about requests need no signature of their own to be looked at.

Any member may add entries about requests, as many as they like. The links of each bind all below
it, so its signature covers the earlier ones of the same key: one is verified of each key in a
batch. A word whose own signature is damaged is read where a later one covers it, however far above
that lies. Whoever reads, judges, lists, adopts or restores a thread asks here, else honest work
would lie on top of what another refuses. Only a full verification and a bundle ask for every
signature.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from sealpoint.errors import Edited, Forged, NotTrusted, Tampered
from sealpoint.ledger import KINDS, Header, link_hash, parse_header
from sealpoint.storage import Record
from sealpoint.store._entry_reader import EntryReader

_BATCH = 64


class CoveredWords:
    """Words about requests with a later one of the same key that is genuine and linked to them.

    Args:
        entries: Gives the records of threads.
        thread: Which thread.
        verify: Verifies an entry on its own, its signature included.
    """

    def __init__(
        self,
        entries: EntryReader,
        thread: bytes,
        verify: Callable[[Record, int], object],
    ) -> None:
        self._entries = entries
        self._thread = thread
        self._verify = verify
        self._damaged: set[bytes] = set()
        """The hashes of words with a damaged signature that were found to be covered."""

    def rows(self, first: int, last: int | None = None) -> Iterator[tuple[int, Record, bool]]:
        """Records in their order, and whether a later entry covers the signature of each.

        Without `last`, it ends at what is the newest after one batch: whoever appends as fast as a
        reader judges would keep it for ever, and what comes later is left to the next look.
        """
        records = iter(self._entries.scan(self._thread, first, last))
        while batch := list(islice(records, _BATCH)):
            if last is None and len(batch) == _BATCH:
                newest = self._entries.scan(self._thread, batch[-1][0], descending=True)
                last = next((seq for seq, _ in newest), batch[-1][0])
            covered = self._in_batch(batch) if len(batch) > 1 else frozenset[int]()
            for seq, record in batch:
                yield seq, record, seq in covered
                if seq == last:
                    return

    def _in_batch(self, batch: Sequence[tuple[int, Record]]) -> frozenset[int]:
        signers, covered, above = set[str](), set[int](), None
        for seq, record in reversed(batch):
            try:
                header = parse_header(record.header)
                if above is not None and above.prev != link_hash(record.header).hex():
                    signers.clear()
                above = header
                if not KINDS[header.kind].about_requests:
                    continue
                if header.by in signers or self._is_damaged_but_covered(seq, record):
                    covered.add(seq)
                signers.add(header.by)
            except (Tampered, NotTrusted):  # whoever comes to this entry refuses it
                signers.clear()
        return frozenset(covered)

    def _is_damaged_but_covered(self, seq: int, record: Record) -> bool:
        try:
            self._verify(record, seq)
        except (Edited, Forged):
            if self.covers(record):
                return True
            raise
        return False

    def covers(self, record: Record) -> bool:
        """Whether a later word covers the damaged signature of this one, however far above it lies.

        Links lead from that one to the very bytes that were given, whatever the store has by now.

        Raises:
            Edited: The bytes are not an entry.
        """
        header, entry = parse_header(record.header), link_hash(record.header)
        if KINDS[header.kind].about_requests and entry not in self._damaged:
            self._look_above(header, entry)
        return entry in self._damaged

    def _look_above(self, word: Header, entry: bytes) -> None:
        """Find the next word of the same key that is genuine, or known to be covered itself."""
        passed, below = [entry], entry
        with suppress(Tampered, NotTrusted):
            for seq, record in self._entries.scan(self._thread, word.seq + 1):
                header = parse_header(record.header)
                if header.prev != below.hex():
                    return
                below = link_hash(record.header)
                if header.by != word.by or not KINDS[header.kind].about_requests:
                    continue
                if below in self._damaged or self._is_genuine(record, seq):
                    self._damaged.update(passed)
                    return
                passed.append(below)

    def _is_genuine(self, record: Record, seq: int) -> bool:
        try:
            self._verify(record, seq)
        except (Edited, Forged):
            return False
        return True
