# SPDX-License-Identifier: Apache-2.0
"""Backends that break one promise each, to see that the suite notices.

Each is a whole backend otherwise: memory, or SQLite where files are searched; anchors come
last.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from sealpoint.anchor import Hold, Holder, Position
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import AnchorUnavailable, HeadMoved, Missing, UsageError
from sealpoint.storage import Record
from sealpoint.storage.memory import MemoryStorage
from sealpoint.storage.sqlite import SqliteStorage

__all__ = [
    "AllAtOnce",
    "AnyThread",
    "AnyThreadLater",
    "BlobsFirst",
    "Collecting",
    "EndingAnyRun",
    "ForgetfulOfPayloads",
    "Headless",
    "HoldingNames",
    "KeepingBlobs",
    "KeepingPayloads",
    "LiftingPauses",
    "LookingAhead",
    "LookingBeforeHolding",
    "MakingPauses",
    "MixedHeaders",
    "MixedUp",
    "Needless",
    "NeverClosed",
    "NeverCompact",
    "NeverEnding",
    "NothingNew",
    "OneOnly",
    "OneRunForAll",
    "OnlyForward",
    "OnlyWithEntries",
    "OnlyWithPositions",
    "OthersCounted",
    "Overwriting",
    "Remembering",
    "RemovingLabels",
    "RemovingRecords",
    "SharingRuns",
    "Sideways",
    "Strict",
    "Unasked",
    "Unbounded",
    "UnboundedTogether",
    "Unordered",
    "WithoutHolder",
]


class _Appending(MemoryStorage):
    """Lets a subclass do something else before an append, or with its records or needs."""

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        needs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Append what the subclass makes of it."""
        records, needs = self.changed(thread, seq, records, blobs, needs)
        super().append(thread, seq, records, blobs=blobs, needs=needs, label=label)

    def changed(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        blobs: Mapping[bytes, bytes],
        needs: Collection[bytes],
    ) -> tuple[Sequence[Record], Collection[bytes]]:
        """Make something of the records and the needs."""
        raise NotImplementedError


class Overwriting(_Appending):
    """Breaks the first promise: the later append wins."""

    def changed(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        _blobs: Mapping[bytes, bytes],
        needs: Collection[bytes],
    ) -> tuple[Sequence[Record], Collection[bytes]]:
        """Forget what lies at the positions."""
        for number in range(seq, seq + len(records)):
            if self._records.get(thread, {}).pop(number, None) is not None:
                self._positions[thread].remove(number)
        return records, needs


class BlobsFirst(_Appending):
    """Breaks all-or-nothing: the blobs of a refused append stay."""

    def changed(
        self,
        thread: bytes,
        _seq: int,
        records: Sequence[Record],
        blobs: Mapping[bytes, bytes],
        needs: Collection[bytes],
    ) -> tuple[Sequence[Record], Collection[bytes]]:
        """Write the blobs in a step of their own."""
        self.put_blobs(thread, blobs)
        return records, needs


class ForgetfulOfPayloads(_Appending):
    """Breaks the record: what lies beside an entry is not kept."""

    def changed(
        self,
        _thread: bytes,
        _seq: int,
        records: Sequence[Record],
        _blobs: Mapping[bytes, bytes],
        needs: Collection[bytes],
    ) -> tuple[Sequence[Record], Collection[bytes]]:
        """Leave the payloads out."""
        return [Record(record.header, record.seals, record.body) for record in records], needs


class Needless(_Appending):
    """Breaks the needs: nobody looks for them."""

    def changed(
        self,
        _thread: bytes,
        _seq: int,
        records: Sequence[Record],
        _blobs: Mapping[bytes, bytes],
        needs: Collection[bytes],
    ) -> tuple[Sequence[Record], Collection[bytes]]:
        """Need nothing."""
        del needs
        return records, ()


class LookingAhead(_Appending):
    """Breaks the needs: they are looked for in a step of their own."""

    def changed(
        self,
        thread: bytes,
        _seq: int,
        records: Sequence[Record],
        _blobs: Mapping[bytes, bytes],
        needs: Collection[bytes],
    ) -> tuple[Sequence[Record], Collection[bytes]]:
        """Look, and let time pass."""
        for digest in needs:
            if self.blob(thread, digest, 2**40) is None:
                raise Missing("looked for too early")
        if needs:
            time.sleep(0.002)
        return records, ()


class KeepingBlobs(MemoryStorage):
    """Breaks replacement: the first bytes under a digest stay."""

    def _put(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        super()._put(thread, {d: b for d, b in blobs.items() if (thread, d) not in self._blobs})


class Unbounded(MemoryStorage):
    """Breaks the bound: a blob comes back however large it is."""

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """Ignore the bound."""
        del size_bytes_max
        return super().blob(thread, digest, 2**40)


class UnboundedTogether(MemoryStorage):
    """Breaks the bound of several blobs: the large ones come along."""

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Ignore the bound."""
        del size_bytes_max
        return super().blobs(thread, digests, 2**40)


class MixedUp(MemoryStorage):
    """Breaks the naming of several blobs: each comes under the digest of its neighbour."""

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Shift the bytes by one place."""
        found = super().blobs(thread, digests, size_bytes_max)
        data = list(found.values())
        return dict(zip(found, data[1:] + data[:1], strict=True))


class MixedHeaders(MemoryStorage):
    """Breaks the places of several headers: each comes at the position of its neighbour."""

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """Shift the bytes by one place."""
        found = super().headers(thread, seqs)
        data = list(found.values())
        return dict(zip(found, data[1:] + data[:1], strict=True))


class NeverClosed(MemoryStorage):
    """Breaks closing: it goes on after it."""

    def close(self) -> None:
        """Do nothing."""


class _Dropping(MemoryStorage):
    """Lets a subclass do something else after, or in place of, a drop."""

    def drop(
        self,
        thread: bytes,
        head: int,
        *,
        payloads: Sequence[int] = (),
        bodies: Sequence[int] = (),
        blobs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Drop, then let the subclass go on."""
        before = dict(self._records.get(thread, {}))
        super().drop(thread, head, payloads=payloads, bodies=bodies, blobs=blobs, label=label)
        self.after(thread, bodies, blobs, label, before)

    def after(
        self,
        thread: bytes,
        bodies: Sequence[int],
        blobs: Collection[bytes],
        label: bytes | None,
        before: dict[int, Record],
    ) -> None:
        """Go on after a drop."""
        raise NotImplementedError


class Headless(MemoryStorage):
    """Breaks the condition of a drop: it takes place whatever lies after the head."""

    def drop(
        self,
        thread: bytes,
        head: int,
        *,
        payloads: Sequence[int] = (),
        bodies: Sequence[int] = (),
        blobs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Go by a head that is beyond every entry."""
        del head
        super().drop(thread, 2**60, payloads=payloads, bodies=bodies, blobs=blobs, label=label)


class KeepingPayloads(_Dropping):
    """Breaks the drop of a body: its payload stays."""

    def after(
        self,
        thread: bytes,
        bodies: Sequence[int],
        blobs: Collection[bytes],
        label: bytes | None,
        before: dict[int, Record],
    ) -> None:
        """Bring the payloads back."""
        del blobs, label
        for seq in bodies:
            if seq in before:
                old = before[seq]
                self._records[thread][seq] = Record(old.header, old.seals, None, old.payload)


class RemovingRecords(_Dropping):
    """Breaks the records: one whose body goes is not there any more."""

    def after(
        self,
        thread: bytes,
        bodies: Sequence[int],
        blobs: Collection[bytes],
        label: bytes | None,
        before: dict[int, Record],
    ) -> None:
        """Remove the records."""
        del blobs, label, before
        for seq in bodies:
            if self._records.get(thread, {}).pop(seq, None) is not None:
                self._positions[thread].remove(seq)


class RemovingLabels(_Dropping):
    """Breaks the label: it goes for every thread."""

    def after(
        self,
        thread: bytes,
        bodies: Sequence[int],
        blobs: Collection[bytes],
        label: bytes | None,
        before: dict[int, Record],
    ) -> None:
        """Remove the label."""
        del thread, bodies, blobs, before
        if label is not None:
            self._labels.pop(label, None)


class Strict(_Dropping):
    """Breaks the repetition: what is absent is an error."""

    def after(
        self,
        thread: bytes,
        bodies: Sequence[int],
        blobs: Collection[bytes],
        label: bytes | None,
        before: dict[int, Record],
    ) -> None:
        """Refuse what was not there."""
        del thread, blobs, label
        if any(seq not in before for seq in bodies):
            raise UsageError("there is no such entry")


class Remembering(_Dropping):
    """Breaks the drop: what went once never comes again."""

    def __init__(self) -> None:
        super().__init__()
        self._gone: set[bytes] = set()

    def after(
        self,
        thread: bytes,
        bodies: Sequence[int],
        blobs: Collection[bytes],
        label: bytes | None,
        before: dict[int, Record],
    ) -> None:
        """Remember the digests."""
        del thread, bodies, label, before
        self._gone.update(blobs)

    def _put(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        super()._put(thread, {d: b for d, b in blobs.items() if d not in self._gone})


class Unordered(MemoryStorage):
    """Breaks the order of blobs: the last comes first."""

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """Turn the list round."""
        return reversed(list(super().stored_blobs(thread)))


class AllAtOnce(MemoryStorage):
    """Breaks the memory of a list of blobs: it is made as a whole."""

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """Make a list."""
        return iter(list(super().stored_blobs(thread)))


class FirstPositions(MemoryStorage):
    """Breaks what is about the ends of threads: where one begins is given."""

    def heads(self) -> Iterator[tuple[bytes, int]]:
        """Give the first position of each."""
        return iter([(thread, next(self.scan(thread, 0))[0]) for thread, _ in super().heads()])


class OnlyWithEntries(MemoryStorage):
    """Breaks what is about threads without entries: they are not listed, and keep their blobs."""

    def blob_threads(self) -> Iterator[bytes]:
        """Leave threads without entries out."""
        return (thread for thread in super().blob_threads() if thread in self._records)

    def _forget(self, thread: bytes, digests: Collection[bytes]) -> None:
        if thread in self._records:
            super()._forget(thread, digests)


class Collecting(MemoryStorage):
    """Breaks compacting: blobs of threads without entries go."""

    def compact(self) -> None:
        """Drop orphans that nobody asked to be dropped."""
        for thread in set(self.blob_threads()) - {*dict(self.heads())}:
            with suppress(HeadMoved):
                self.drop(thread, -1, blobs=[digest for digest, _ in self.stored_blobs(thread)])


class NeverCompact(SqliteStorage):
    """Breaks compacting: nothing happens."""

    def compact(self) -> None:
        """Do nothing."""


class NothingNew(SqliteStorage):
    """Breaks the version: it tells of no commit."""

    def version(self) -> tuple[int, int, int]:
        """Say that all is as it was."""
        return 1, 1, 1


class OthersCounted(SqliteStorage):
    """Breaks the version: it counts the commits of others like those of the handle."""

    def version(self) -> tuple[int, int, int] | None:
        """Add both."""
        found = super().version()
        return None if found is None else (found[0], 0, found[1] + found[2])


class Unasked(MemoryStorage):
    """Breaks the comparison of truncate: it takes away whatever lies there by now."""

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """Ask nobody."""
        record = self._records.get(thread, {}).get(seq)
        super().truncate(thread, seq, header if record is None else record.header)


class OneOnly(MemoryStorage):
    """Breaks the rest of truncate: what lies after the record stays."""

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """Take the one record away."""
        after = list(self.scan(thread, seq + 1))
        super().truncate(thread, seq, header)
        for number, record in after:
            self.append(thread, number, [record], blobs={})


class _Advancing(MemoryAnchor):
    """An anchor that looks at another position than the one it writes."""

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Judge what it is made to look at, and write what it was given."""
        shown = self.shown(expected, position)
        found = super().advance(slot, expected, shown)
        if found == shown:
            self._positions[slot] = found = position
        return found

    def shown(self, expected: Position, position: Position) -> Position:
        """What it looks at."""
        raise NotImplementedError


class AnyThread(_Advancing):
    """Breaks the thread of a slot: another may take its place."""

    def shown(self, expected: Position, position: Position) -> Position:
        """Look away from the thread."""
        return replace(position, thread=expected.thread)


class AnyThreadLater(_Advancing):
    """Breaks the thread of a slot: another may take its place in a later epoch."""

    def shown(self, expected: Position, position: Position) -> Position:
        """Look away from the thread of a later epoch."""
        is_later = position.epoch > expected.epoch
        return replace(position, thread=expected.thread) if is_later else position


class Sideways(_Advancing):
    """Breaks the entry: another may take its place."""

    def shown(self, expected: Position, position: Position) -> Position:
        """Look away from the entry."""
        same = position.seq == expected.seq
        return replace(position, entry=expected.entry) if same else position


class LiftingPauses(_Advancing):
    """Breaks the pause: its end needs no entry."""

    def shown(self, expected: Position, position: Position) -> Position:
        """Look away from a pause that is gone."""
        same = position.pause == expected.pause and expected.paused
        return replace(position, paused=True) if same else position


class MakingPauses(_Advancing):
    """Breaks the pause: it needs no entry."""

    def shown(self, expected: Position, position: Position) -> Position:
        """Look away from a pause that is new."""
        same = position.pause == expected.pause and not expected.paused
        return replace(position, paused=False) if same else position


class HoldingNames(MemoryAnchor):
    """Breaks the reserved name: it keeps its thread."""

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Refuse another thread whatever was seen of it."""
        if position.thread != expected.thread:
            raise UsageError("another thread")
        return super().advance(slot, expected, position)


class OnlyForward(MemoryAnchor):
    """Breaks what may be told of the same entry: nothing."""

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Refuse the same place."""
        if (position.epoch, position.seq) == (expected.epoch, expected.seq):
            raise UsageError("the same place")
        return super().advance(slot, expected, position)


class SharingRuns(MemoryAnchor):
    """Breaks the one run: the newest takes the thread over."""

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Forget who has it."""
        self._holds.pop(slot, None)
        return super().hold(slot, holder, instead=instead)


class LookingBeforeHolding(SharingRuns):
    """Breaks the one run: it looks who has the thread in a step of its own."""

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Look, and let time pass."""
        found = self.holder(slot)
        time.sleep(0.002)
        return super().hold(slot, holder, instead=instead) if found is None else found


class _Ending:
    """A hold whose end is something else."""

    left = False

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end

    def end(self, *, begun: bool = True) -> None:
        """Do it."""
        del begun
        self._end()


class EndingAnyRun(MemoryAnchor):
    """Breaks the end: whichever run has the thread ends."""

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Remember no more than the slot."""
        found = super().hold(slot, holder, instead=instead)
        return found if isinstance(found, Holder) else _Ending(lambda: self._holds.pop(slot, None))


class NeverEnding(MemoryAnchor):
    """Breaks the end: the run stays."""

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Give a hold that does nothing."""
        found = super().hold(slot, holder, instead=instead)
        return found if isinstance(found, Holder) else _Ending(lambda: None)


class OneRunForAll(MemoryAnchor):
    """Breaks the threads: a run has all of them."""

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Hold the same slot for each."""
        del slot
        return super().hold(b"\x01" * 32, holder, instead=instead)


class OnlyWithPositions(MemoryAnchor):
    """Breaks what is about slots without a position: no run may have them."""

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Ask for a position."""
        if self.get(slot) is None:
            raise AnchorUnavailable("no position")
        return super().hold(slot, holder, instead=instead)


class WithoutHolder(MemoryAnchor):
    """Breaks the holder: it names nobody."""

    def holder(self, slot: bytes) -> Holder | None:
        """Know nothing."""
        super().holder(slot)
        return None
