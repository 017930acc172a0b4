# SPDX-License-Identifier: Apache-2.0
"""What checkpoints, prunes and deletions say of the entries before them.

A signature does not make that true: its writer may run other code. So it is compared with the
entries themselves, one after the other in their order, by whoever follows them: a full
verification, a bundle, the plan of a restore, and whoever goes on from another person's entries.
Everything here is pure, and what it remembers grows by four bytes with each entry.
"""

from collections.abc import Iterator
from typing import Any

from sealpoint.errors import Misplaced
from sealpoint.ledger._bodies import CheckpointBody, IdTable, PruneBody
from sealpoint.ledger._entry import NO_ID, PRINT_BYTES, Header, id_print
from sealpoint.ledger._kinds import KINDS, Kind

_NOTHING = PruneBody(salt="", before=0)


class GivenUpCheck:
    """What the entries of a generation have given up, one after the other.

    Args:
        newest: The newest prune or deletion of the entries before, with its position.
        checkpoint: The position of the newest checkpoint among them; -1: there is none.
    """

    def __init__(self, newest: tuple[int, PruneBody] | None = None, checkpoint: int = -1) -> None:
        self._newest = newest
        self._checkpoint = checkpoint
        self._lacks_bodies = False
        """Whether an erasure has taken what a later one would be compared with."""

    def follow(self, header: Header, body: Any) -> None:
        """Take the next verified entry with its body, if that is there.

        Raises:
            Misplaced: A prune or deletion brings back what was given up, or takes what it must
                not; or a checkpoint does not name the newest one.
        """
        rule = KINDS[header.kind]
        if header.kind in (Kind.GENESIS, Kind.ERASE):
            self._newest, self._checkpoint, self._lacks_bodies = None, -1, False
        elif rule.is_retention or rule.is_checkpoint:
            self._lacks_bodies = self._lacks_bodies or body is None
            if self._lacks_bodies:
                return
            if rule.is_retention:
                self._follow_retention(header, body)
            else:
                self._follow_checkpoint(header, body)

    def _follow_retention(self, header: Header, body: PruneBody) -> None:
        seq, is_prune = header.seq, header.kind is Kind.PRUNE
        prune, earlier = self._newest or (None, _NOTHING)
        if not body.includes(earlier):
            raise Misplaced(f"entry {seq}: it keeps what an earlier prune or delete gave up")
        if body.earlier != prune:
            raise Misplaced(f"entry {seq}: it does not name the prune or delete before it")
        if body.end > seq:
            raise Misplaced(f"entry {seq}: it gives up entries that were not there yet")
        needed = self._checkpoint >= 0 or is_prune
        if needed and body.covers(self._checkpoint) and not body.deletes(self._checkpoint):
            raise Misplaced(f"entry {seq}: it gives up the newest checkpoint")
        if is_prune and body.deleted != earlier.deleted:
            raise Misplaced(f"entry {seq}: a prune deletes nothing, and this one claims to")
        self._newest = seq, body

    def _follow_checkpoint(self, header: Header, body: CheckpointBody) -> None:
        prune = None if self._newest is None else self._newest[0]
        if body.prune != prune:
            raise Misplaced(
                f"entry {header.seq}: expected it to name prune {prune}, found {body.prune}"
            )
        self._checkpoint = header.seq


class TableCheck:
    """The ids of a generation as its entries have them: every table must repeat them.

    Args:
        first: The position of the genesis of the generation.
        prints: The prints of its entries so far.
    """

    def __init__(self, first: int = 0, prints: bytes = b"") -> None:
        self._first = first
        self._prints = bytearray(prints)
        self.lacks_bodies = False
        """Whether an erasure has taken what an entry would be compared with."""

    def follow(self, header: Header, body: Any) -> None:
        """Take the next verified entry with its body, if that is there.

        Raises:
            Misplaced: Its table is not that of the entries before it.
        """
        if header.kind is Kind.GENESIS:
            self._first, self.lacks_bodies = header.seq, False
            self._prints.clear()
        if not KINDS[header.kind].is_checkpoint or body is None:
            self.lacks_bodies = self.lacks_bodies or KINDS[header.kind].is_checkpoint
            self._prints += NO_ID
            return
        if body.ids is not None and not self.lacks_bodies:
            self._compare(header.seq, body.ids)
        self._prints += id_print(body.lane, body.id)

    def print_at(self, seq: int) -> bytes:
        """The print of an entry; nothing if it lies before the generation."""
        at = (seq - self._first) * PRINT_BYTES
        return b"" if at < 0 else bytes(self._prints[at : at + PRINT_BYTES])

    def _compare(self, seq: int, table: IdTable) -> None:
        if table.first < self._first:
            raise Misplaced(
                f"entry {seq}: expected its table of ids to begin at entry {self._first} or later, "
                f"found entry {table.first}"
            )
        expected = self._prints[(table.first - self._first) * PRINT_BYTES :].hex()
        if table.prints == expected:
            return
        pairs = zip(_each(expected), _each(table.prints), strict=True)
        at, one, other = next(
            (at, one, other) for at, (one, other) in enumerate(pairs, table.first) if one != other
        )
        raise Misplaced(
            f"entry {seq}: expected its table of ids to have {one} for entry {at}, found {other}"
        )


def _each(prints: str) -> Iterator[str]:
    size = 2 * PRINT_BYTES
    return (prints[at : at + size] for at in range(0, len(prints), size))


class IdCheck:
    """The same, and whatever has an id once more must keep the first one's place."""

    def __init__(self) -> None:
        self._tables = TableCheck()
        self._starts: dict[int, int] = {}
        """Where results begin that were added before their checkpoint, by its position."""

    def follow(self, header: Header, body: Any) -> None:
        """Take the next verified entry with its body, if that is there.

        Raises:
            Misplaced: Its table is not that of the entries before it, or its rank not that of the
                first checkpoint of its name.
        """
        if header.kind is Kind.GENESIS:
            self._starts.clear()
        self._tables.follow(header, body)
        if body is None or not KINDS[header.kind].is_checkpoint:
            return
        if body.again is not None:
            self._require_first(header.seq, body)
        elif body.since is not None:
            self._starts[header.seq] = body.since

    def _require_first(self, seq: int, body: CheckpointBody) -> None:
        again, mark = body.again or 0, id_print(body.lane, body.id)
        since = again if body.since is None else body.since
        is_first = self._tables.print_at(again) == mark and since == self._starts.get(again, again)
        if not is_first and not self._tables.lacks_bodies:
            raise Misplaced(
                f"entry {seq}: expected the rank of the first checkpoint {body.id!r}, and its "
                f"results, found rank {again} and results from entry {since} on"
            )
