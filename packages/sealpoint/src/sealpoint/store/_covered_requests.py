# SPDX-License-Identifier: Apache-2.0
"""Which entries about requests can be read without a valid signature of their own.

Any member may add any number of entries about requests. The links of each entry bind everything
below it, so its signature covers the earlier entries of the same key: in a batch, one signature of
each key is verified. If the signature of such an entry is damaged, a later entry can cover it, at
any distance. Every code that reads, judges, lists, adopts or restores a thread checks here;
otherwise honest entries could follow one that another reader refuses. Only a full verification and
a bundle require every signature.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from sealpoint.errors import Edited, Forged, NotTrusted, Tampered
from sealpoint.ledger import KINDS, Header, link_hash, parse_header
from sealpoint.storage import Record
from sealpoint.store._entry_reader import EntryReader

_BATCH = 64


class CoveredRequestEntries:
    """Entries about requests that a later genuine entry of the same key covers by its links.

    Args:
        entries: Gives the records of threads.
        thread: The thread.
        verify: Verifies an entry on its own, including its signature.
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
        """The hashes of entries with a damaged signature that were found to be covered."""

    def rows(self, first: int, last: int | None = None) -> Iterator[tuple[int, Record, bool]]:
        """Yield records in order, and whether a later entry covers the signature of each.

        Without `last`, it ends at the entry that is newest after one batch. A writer that appends
        as fast as a reader judges could otherwise keep the reader busy forever; later entries are
        left to the next read.
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
            except (Tampered, NotTrusted):  # the reader of this entry refuses it
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
        """Whether a later entry covers the damaged signature of this one, at any distance.

        Links lead from that entry to exactly the given bytes, regardless of the store's current
        bytes.

        Raises:
            Edited: The bytes are not an entry.
        """
        header, entry = parse_header(record.header), link_hash(record.header)
        if KINDS[header.kind].about_requests and entry not in self._damaged:
            self._look_above(header, entry)
        return entry in self._damaged

    def _look_above(self, word: Header, entry: bytes) -> None:
        """Find the next entry of the same key that is genuine, or known to be covered itself."""
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
