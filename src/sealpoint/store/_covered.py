# SPDX-License-Identifier: Apache-2.0
"""Which words about requests need no signature of their own to be looked at.

Any member may add entries about requests, as many as they like. The links of each bind all below
it, so its signature covers the earlier ones of the same key: one is verified of each key in a
batch. Whoever reads, judges or restores a thread takes the same ones, else honest work would lie on
top of what another refuses.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from sealpoint.errors import Forged, NotTrusted, Tampered
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
        self._last: int | None = None
        self._covers: dict[str, int] = {}
        """By key, where a genuine word lies that was looked for."""

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
            self._last = last
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
                if header.by in signers or self._is_not_genuine_but_covered(seq, record, header):
                    covered.add(seq)
                signers.add(header.by)
            except (Tampered, NotTrusted):  # whoever comes to this entry refuses it
                signers.clear()
        return frozenset(covered)

    def _is_not_genuine_but_covered(self, seq: int, record: Record, header: Header) -> bool:
        try:
            self._verify(record, seq)
        except Forged:
            if self.covers(seq, header):
                return True
            raise
        return False

    def covers(self, seq: int, header: Header) -> bool:
        """Whether a later signature covers that of an entry, however far above it lies."""
        if not KINDS[header.kind].about_requests:
            return False
        if self._covers.get(header.by, -1) < seq:
            self._covers[header.by] = self._find(seq, header.by)
        return self._covers[header.by] > seq

    def _find(self, seq: int, key: str) -> int:
        """Where the next genuine word of a key lies that is linked to an entry; -1: nowhere."""
        below: bytes | None = None
        with suppress(Tampered, NotTrusted):
            for at, record in self._entries.scan(self._thread, seq, self._last):
                header = parse_header(record.header)
                if below is not None and header.prev != below.hex():
                    break
                below = link_hash(record.header)
                if at > seq and header.by == key and KINDS[header.kind].about_requests:
                    with suppress(Forged):
                        self._verify(record, at)
                        return at
        return -1
