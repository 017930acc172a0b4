# SPDX-License-Identifier: Apache-2.0
"""Verifying a thread from its genesis on without the anchor: for adoption and for restores."""

from sealpoint.anchor import RESERVED_SEQ, Position
from sealpoint.errors import (
    AnchorUnavailable,
    Missing,
    RolledBack,
    SealpointError,
    StorageUnavailable,
)
from sealpoint.ledger import Entry, Kind, parse_body, require_past
from sealpoint.storage import Record
from sealpoint.store._chain import Chain

__all__ = ["WholeChain"]


class WholeChain(Chain):
    """A thread's chain that begins with its genesis, whatever the anchor has seen of it."""

    def verify_all(self) -> None:
        """Verify every entry, and that it goes as far as the newest restore says.

        Raises:
            Tampered, NotTrusted: One of them does not verify.
            RolledBack: It ends before an entry that was announced.
        """
        for seq, record in self.core.storage.scan(self.thread, 0):
            self._step(record, seq)
        if self.head is None:
            raise Missing(f"{self._shown}: expected a genesis in the store, found none")
        self._cuts.require_settled(self._shown)
        self.tip()
        kept = self.core.trust().kept(self.thread)
        if kept is not None and kept[0] > self.head.seq:
            raise RolledBack(
                f"{self._shown}: expected entry {kept[0]}, which the newest restore kept, "
                f"found the store to end at entry {self.head.seq}"
            )

    def verify_prefix(self) -> tuple[Entry | None, SealpointError | None]:
        """The last entry up to which the thread verifies, bodies included, and what comes then.

        Returns:
            The entry, None if not even a genesis verifies; and why it goes no further, None if
            the store ends there.

        Raises:
            StorageUnavailable, AnchorUnavailable: Nobody can look.
        """
        good: Entry | None = None
        stop: SealpointError | None = None
        try:
            for seq, record in self.core.storage.scan(self.thread, 0):
                entry = self._step(record, seq)
                if record.body is not None:
                    require_past(
                        entry.header,
                        parse_body(entry.header.kind, entry.header.body, record.body),
                    )
                elif stop is None:
                    # Bodies may be missing only where an erasure follows.
                    stop = Missing(f"{self._entry(seq)}: expected its body, found none")
                if entry.header.kind is Kind.ERASE:
                    stop = None
                if stop is None:
                    good = entry
        except (StorageUnavailable, AnchorUnavailable):
            raise
        except SealpointError as error:
            stop = error if stop is None else stop
        return good, stop

    def _step(self, record: Record, seq: int) -> Entry:
        """Verify the entry after the head, or the genesis, and move to it."""
        expected = 0 if self.head is None else self.head.seq + 1
        if seq != expected:
            raise Missing(f"{self._entry(expected)}: expected it in the store, found none")
        nowhere = Position(self.thread, 0, 0, RESERVED_SEQ, bytes(32))
        self.head, self._tip = self._next(record, seq, nowhere, self._tip)
        self.head_record = record
        return self.head
