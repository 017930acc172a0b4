# SPDX-License-Identifier: Apache-2.0
"""Restores of a store from a backup: what of each earlier epoch counts, and what was lost."""

import msgspec

from sealpoint.errors import (
    Misplaced,
)
from sealpoint.ledger._entry import Header
from sealpoint.ledger._position_lists import PositionLists


class Restore(msgspec.Struct, frozen=True):
    """One restore, as the store chain records it."""

    seq: int
    """Its position on the store chain."""
    kept: str
    """The digest of the list of the entries that stay."""
    lost: str
    """The digest of the list of the entries that the anchor had seen and that are gone."""
    released: str
    """The digest of the list of the cut threads that may continue from the entry that stays."""
    paused: str | None = None
    """The digest of the list of the threads whose pause was lost; None: no pause was lost."""

    @property
    def lists(self) -> tuple[str, ...]:
        """The digests of its lists."""
        lists = self.kept, self.lost, self.released
        return lists if self.paused is None else (*lists, self.paused)


class Restores(msgspec.Struct, frozen=True):
    """Every restore of a store, oldest first: the first one ended epoch 0.

    A restore lists the newest entry that stays, for every thread that existed. Entries of earlier
    epochs count up to there and no further: lost entries are genuine in every other respect, and
    must not silently reappear. It also lists the threads that it cut but that may continue anyway:
    each only from exactly the entry that it kept, and not after a later restore. And it lists the
    threads whose pause it lost: they stay paused until an operator decides.
    """

    all: tuple[Restore, ...] = ()

    @property
    def epoch(self) -> int:
        """The current epoch, in which entries are written."""
        return len(self.all)

    def then(self, restore: Restore) -> "Restores":
        """Return these, and one more."""
        return Restores((*self.all, restore))

    def check(self, header: Header, entry: bytes, lists: PositionLists) -> None:
        """Judge an entry of a thread by its epoch.

        Args:
            header: Its header.
            entry: Its hash.
            lists: The source of the lists.

        Raises:
            Misplaced: A restore cut it off, or it names an epoch that has not begun.
            Missing, Edited: A list is missing or has changed.
        """
        where = f"entry {header.seq} of thread {header.thread[:12]}"
        if header.epoch > self.epoch:
            raise Misplaced(f"{where}: expected epoch {self.epoch}, found {header.epoch}")
        thread = bytes.fromhex(header.thread)
        for restore in self.all[header.epoch :]:
            last = lists.get(restore.kept).position(thread)
            if last is None or header.seq > last[0] or (header.seq == last[0] and entry != last[1]):
                stays = "nothing" if last is None else f"entries up to {last[0]}, and not this one"
                raise Misplaced(
                    f"{where}: it is of epoch {header.epoch}, of which the restore in entry "
                    f"{restore.seq} of the store chain kept {stays}"
                )

    def check_first(
        self, header: Header, before: tuple[int, bytes] | None, lists: PositionLists
    ) -> None:
        """Require that a thread's first entry in an epoch follows the entry that the restore kept.

        Args:
            header: Its header, of a later epoch than the entry before it.
            before: Position and hash of the entry before it; None: it is the first of its thread.
            lists: The source of the lists.

        Raises:
            Misplaced: The restore that began the epoch kept something else.
            Missing, Edited: A list is missing or has changed.
        """
        restore = self.all[header.epoch - 1]
        kept = lists.get(restore.kept).position(bytes.fromhex(header.thread))
        if kept != before:
            stays = "nothing" if kept is None else f"entry {kept[0]} {kept[1].hex()[:12]}"
            raise Misplaced(
                f"entry {header.seq} of thread {header.thread[:12]}: it is of epoch "
                f"{header.epoch}, and does not follow what the restore in entry {restore.seq} of "
                f"the store chain kept: {stays}"
            )

    def cuts_off(
        self,
        thread: bytes,
        lists: PositionLists,
        *,
        basis: int,
        since: int,
        until: int | None = None,
    ) -> bool:
        """Whether a restore cut a thread, and did not release it in its current state.

        The newest restore that cut it decides: an earlier restore could not know about it when it
        released the thread.

        Args:
            thread: Its id.
            lists: The source of the lists.
            basis: The position of the newest entry that changes what a resume would do: a release
                is for the thread as it was kept, and not for anything later.
            since: The epoch in which it was last executed.
            until: The epoch to judge in; without it, the one in force.

        Raises:
            Missing, Edited: A list is missing or has changed.
        """
        for restore in reversed(self.all[since:until]):
            if lists.get(restore.lost).position(thread) is not None:
                released = lists.get(restore.released).position(thread)
                kept = lists.get(restore.kept).position(thread)
                return released is None or released != kept or basis > released[0]
        return False

    def last_cut(self, thread: bytes, lists: PositionLists, *, until: int | None = None) -> int:
        """Return the epoch that the newest restore which lost entries of a thread began.

        Args:
            thread: Its id.
            lists: The source of the lists.
            until: The epoch to judge in; without it, the one in force.

        Returns:
            The epoch; 0 if no restore lost anything of the thread.

        Raises:
            Missing, Edited: A list is missing or has changed.
        """
        restores = list(enumerate(self.all[:until], start=1))
        for epoch, restore in reversed(restores):
            if lists.get(restore.lost).position(thread) is not None:
                return epoch
        return 0

    def lost_pause(
        self, thread: bytes, lists: PositionLists, *, pause: int, epoch: int
    ) -> Restore | None:
        """Return the restore that lost a thread's pause, if no operator has decided about it since.

        Args:
            thread: Its id.
            lists: The source of the lists.
            pause: The mark `pause` of an entry: the newest entry that determines the pause.
            epoch: The epoch of that entry.

        Raises:
            Missing, Edited: A list is missing or has changed.
        """
        for number, restore in enumerate(self.all[:epoch]):
            if restore.paused is None:
                continue
            last = lists.get(restore.paused).position(thread)
            # A later restore may have reassigned positions below the listed one.
            for later in self.all[number + 1 : epoch] if last is not None else ():
                kept = lists.get(later.kept).position(thread)
                last = None if last is None or kept is None else min(last, kept)
            if last is not None and pause <= last[0]:
                return restore
        return None

    def kept(self, thread: bytes, lists: PositionLists) -> tuple[int, bytes] | None:
        """Return the newest entry of a thread that the newest restore kept, or None."""
        return lists.get(self.all[-1].kept).position(thread)
