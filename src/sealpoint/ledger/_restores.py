# SPDX-License-Identifier: Apache-2.0
"""Accepted restores: where one epoch ended, and what of it still counts.

A restore lists, for every thread that was there, the newest entry that stays. Entries of earlier
epochs count up to there and no further: those that were lost are genuine in every other respect,
and must not come back by themselves. It also lists the threads it cut that may go on all the same:
each from exactly the entry that it kept, and not after a later restore.
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
    released: str
    """The digest of the list of the cut threads that may go on from the entry that stays."""

    @property
    def lists(self) -> tuple[str, str, str]:
        """The digests of its lists."""
        return self.kept, self.lost, self.released


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

    def cuts_off(
        self, thread: bytes, lists: CutLists, *, basis: int, since: int, until: int | None = None
    ) -> bool:
        """Whether a restore cut a thread, and did not release it as it is now.

        The newest restore that cut it decides: what an earlier one released, it did not know.

        Args:
            thread: Its id.
            lists: Where the lists come from.
            basis: The position of the newest entry that changes what a resume would mean: a
                release is for the thread as it was kept, and for nothing that came after it.
            since: The epoch in which it was last executed.
            until: The epoch to judge in; without it, the one in force.

        Raises:
            Missing, Edited: A list is not there, or is another.
        """
        for restore in reversed(self.all[since:until]):
            if lists.get(restore.lost).position(thread) is not None:
                released = lists.get(restore.released).position(thread)
                kept = lists.get(restore.kept).position(thread)
                return released is None or released != kept or basis > released[0]
        return False

    def kept(self, thread: bytes, lists: CutLists) -> tuple[int, bytes] | None:
        """The newest entry of a thread that the newest restore kept; None if it kept nothing."""
        return lists.get(self.all[-1].kept).position(thread)
