# SPDX-License-Identifier: Apache-2.0
"""Accepted restores: where one epoch ended, and what of it still counts.

A restore lists, for every thread that was there, the newest entry that stays. Entries of earlier
epochs count up to there and no further: those that were lost are genuine in every other respect,
and must not come back by themselves.
"""

import msgspec

from sealpoint.errors import Misplaced
from sealpoint.ledger._cuts import CutLists
from sealpoint.ledger._header import Header

__all__ = ["Restore", "Restores"]


class Restore(msgspec.Struct, frozen=True):
    """One restore, as the store chain records it."""

    seq: int
    """Its position on the store chain."""
    kept: str
    """The digest of the list of what stays."""
    lost: str
    """The digest of the list of what the anchor had seen and is gone."""


class Restores(msgspec.Struct, frozen=True):
    """Every restore of a store, oldest first: the first one ended epoch 0."""

    all: tuple[Restore, ...] = ()

    @property
    def epoch(self) -> int:
        """The epoch that entries are written in now."""
        return len(self.all)

    def then(self, restore: Restore) -> "Restores":
        """These, and one more."""
        return Restores((*self.all, restore))

    def check(self, header: Header, entry: bytes, lists: CutLists) -> None:
        """Judge an entry of a thread by its epoch.

        Args:
            header: Its header.
            entry: Its hash.
            lists: Where the lists come from.

        Raises:
            Misplaced: A restore cut it off, or it names an epoch that has not begun.
            Missing, Edited: A list is not there, or is another.
        """
        where = f"entry {header.seq} of thread {header.thread[:12]}"
        if header.epoch > self.epoch:
            raise Misplaced(f"{where}: expected epoch {self.epoch}, found {header.epoch}")
        thread = bytes.fromhex(header.thread)
        for restore in self.all[header.epoch :]:
            last = lists.get(restore.kept).position(thread)
            if last is None or header.seq > last[0] or (header.seq == last[0] and entry != last[1]):
                stays = "nothing" if last is None else f"entries up to {last[0]}"
                raise Misplaced(
                    f"{where}: expected of epoch {header.epoch} {stays}, as the restore in entry "
                    f"{restore.seq} of the store chain says, found another"
                )

    def kept(self, thread: bytes, lists: CutLists) -> tuple[int, bytes] | None:
        """The newest entry of a thread that the newest restore kept; None if it kept nothing."""
        return lists.get(self.all[-1].kept).position(thread)
