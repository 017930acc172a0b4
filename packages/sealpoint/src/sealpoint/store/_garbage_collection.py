# SPDX-License-Identifier: Apache-2.0
"""Removing data that no remaining checkpoint needs: pruned or erased data, and orphans.

A sweep decides by the verified chain alone, and reads the remaining data before it drops anything.
A thread whose remaining blobs cannot be read is left unchanged. Data is dropped only while the head
is where the sweep read it, so a save at the same time never loses a blob that it names. A sweep can
be repeated at any time.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from sealpoint.codec import Reached, tree_blobs
from sealpoint.errors import HeadMoved, Missing, SealpointError
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    CheckpointBody,
    ExpiryBody,
    Header,
    Kind,
    PruneBody,
    ResultsBody,
    parse_body,
    readable_body,
)
from sealpoint.storage import Record
from sealpoint.store._blobs import BlobReader, fresh_digests
from sealpoint.store._checkpoint_index import CheckpointIndex, require_newest_kept
from sealpoint.store._return_values import Collected
from sealpoint.store._store_parts import Core
from sealpoint.store._thread_list import ListedThread, all_threads
from sealpoint.store._unvouched_entries import judge_unvouched
from sealpoint.store._verified_chain import Chain

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Swept:
    """The data that a sweep removed."""

    blobs: int = 0
    size_bytes: int = 0
    payloads: int = 0
    """How many entries lost the payload stored with them, or their body."""

    def __add__(self, other: "Swept") -> "Swept":
        return Swept(
            self.blobs + other.blobs,
            self.size_bytes + other.size_bytes,
            self.payloads + other.payloads,
        )


class _Living:
    """The data that a thread needs, from the entries below a verified head."""

    def __init__(
        self, chain: Chain, prune: PruneBody | None = None, *, erased: bool = False
    ) -> None:
        self._chain = chain
        self._reached = Reached()
        self.blobs: set[bytes] = set()
        self.payloads: list[int] = []
        """Pruned or deleted entries that still have a payload stored with them."""
        self.bodies: list[int] = []
        """Erased entries that still have a body."""
        for header, record in chain.walk():
            if erased:
                if record.body is not None or record.payload is not None:
                    self.bodies.append(header.seq)
            elif header.kind is Kind.ERASE:
                erased = True
            elif KINDS[header.kind].gives_up and prune is None:
                prune = parse_body(header.kind, header.body, _body(header, record))
            elif KINDS[header.kind].holds_payload:
                self._add(header, record, prune)
            elif header.kind is Kind.EXPIRY:
                self._add_positions(header, record)

    def follow(self, seq: int) -> bool:
        """Add the data of entries that were saved after `seq`.

        Returns:
            False if other entries came too, so that everything must be read again.
        """
        for header, record in _newer(self._chain, seq):
            if KINDS[header.kind].gives_up:
                return False
            if KINDS[header.kind].holds_payload:
                self._add(header, record, None)
            elif header.kind is Kind.EXPIRY:
                self._add_positions(header, record)
        return True

    def _add_positions(self, header: Header, record: Record) -> None:
        """Keep the list that the end of a rollout names; an unreadable body names none."""
        body: ExpiryBody | None = readable_body(header, record.body)
        if body is not None and body.positions is not None:
            self.blobs.add(bytes.fromhex(body.positions))

    def _add(self, header: Header, record: Record, prune: PruneBody | None) -> None:
        """Keep the data that an entry needs, unless a later prune or delete removed the entry."""
        if prune is not None and prune.covers(header.seq):
            if record.payload is not None:
                self.payloads.append(header.seq)
            return
        body: CheckpointBody | ResultsBody = parse_body(
            header.kind, header.body, _body(header, record)
        )
        world = body.world if isinstance(body, CheckpointBody) else None
        root = bytes.fromhex(body.root)
        core = self._chain.core
        reader = BlobReader(
            core.storage,
            self._chain.thread,
            core.registry.limits.blob_bytes_max,
            f"entry {header.seq} of thread {self._chain.name!r}",
            (root, record.payload),
        )
        self.blobs.add(root)
        self.blobs.update(
            bytes.fromhex(name) for name in (body.fresh_list, world) if name is not None
        )
        if prune is None:
            # An older checkpoint that remains references the other blobs.
            self.blobs.update(fresh_digests(body.fresh, body.fresh_list, reader))
        else:
            limits = core.registry.limits
            self.blobs.update(tree_blobs(root, reader.get, limits=limits, reached=self._reached))


def _looked(chain: Chain, prune: PruneBody | None = None, *, erased: bool = False) -> _Living:
    """Return the needed data; read again if another sweep removed data during the read."""
    while True:
        seq = chain.verified_head().seq
        try:
            return _Living(chain, prune, erased=erased)
        except Missing:
            chain.refresh()
            _judge(chain)
            if not any(KINDS[header.kind].gives_up for header, _ in _newer(chain, seq)):
                raise


def _judge(chain: Chain) -> None:
    """Judge the prunes and deletes; an erasure removes false ones as well.

    If another key pruned or deleted, every lane is checked: the writers that continued from it
    checked only the lanes that they needed.
    """
    if chain.verified_head().header.kind is Kind.ERASE:
        return
    judge_unvouched(chain)
    found = _newest_removal(chain)
    signer = chain.core.parts.signer
    if found is None or (signer is not None and found[0].by == signer.key):
        return
    index = CheckpointIndex(chain)
    for lane in index.lanes():
        require_newest_kept(chain, index, lane, (found[0].seq, found[1]))


def _newest_removal(chain: Chain) -> tuple[Header, PruneBody] | None:
    """Return the newest prune or delete of the generation."""
    for header, record in chain.walk():
        if header.kind is Kind.ERASE:
            break
        if KINDS[header.kind].is_retention:
            return header, parse_body(header.kind, header.body, _body(header, record))
    return None


def _newer(chain: Chain, seq: int) -> Iterator[tuple[Header, Record]]:
    """Yield the entries after a position, newest first."""
    return takewhile(lambda found: found[0].seq > seq, chain.walk())


def sweep(chain: Chain) -> Swept:
    """Drop the data of the newest prune or erasure, and blobs that no entry names.

    Args:
        chain: A thread with a verified head.

    Raises:
        Tampered: Needed data is missing or damaged, or the prune or delete is false; nothing was
            dropped.
    """
    swept = Swept()
    while True:
        _judge(chain)
        sweeper = _Sweeper(chain)
        finished = sweeper.run()
        swept += sweeper.swept
        if finished:
            return swept


class _Sweeper:
    """A sweep by the data that is needed now; data saved during the sweep is added to that."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._living = _looked(chain)
        self._head = chain.verified_head().seq
        self.swept = Swept()

    def run(self) -> bool:
        """Drop all unneeded data; False if more was removed, so that the sweep must start again."""
        if self._chain.verified_head().header.kind is Kind.ERASE:
            # The label first, while the bodies still contain the name: `gc` may have to do it. Not
            # once there is a new generation, which has the same name.
            try:
                self._chain.core.storage.drop(
                    self._chain.thread, self._head, label=self._chain.label
                )
            except HeadMoved:
                return self._follow() and self.run()
        return all(self._drop(batch) for batch in _batches(self._chain, self._living))

    def _drop(self, batch: "_Batch") -> bool:
        """Drop a batch; after a concurrent save, try again without the newly needed blobs."""
        while True:
            blobs = [pair for pair in batch.blobs if pair[0] not in self._living.blobs]
            try:
                self._chain.core.storage.drop(
                    self._chain.thread,
                    self._head,
                    payloads=batch.payloads,
                    bodies=batch.bodies,
                    blobs=[digest for digest, _ in blobs],
                )
            except HeadMoved:
                if not self._follow():
                    return False
            else:
                self.swept += _counted(replace(batch, blobs=blobs))
                return True

    def _follow(self) -> bool:
        """Add the data saved since; return False if a removal was recorded as well."""
        self._chain.refresh()
        followed = self._living.follow(self._head)
        self._head = self._chain.verified_head().seq
        return followed


def would_sweep(chain: Chain, *, prune: PruneBody | None = None, erased: bool = False) -> Swept:
    """Return what a sweep would drop after this prune, after an erasure, or now."""
    return sum(
        (_counted(batch) for batch in _batches(chain, _looked(chain, prune, erased=erased))),
        Swept(),
    )


def drop_orphans(core: Core, thread: bytes, *, dry_run: bool = False) -> Swept:
    """Drop the blobs of a thread that never got an entry."""
    swept = Swept()
    try:
        for blobs in _chunked(core.storage.stored_blobs(thread)):
            if not dry_run:
                core.storage.drop(thread, -1, blobs=[digest for digest, _ in blobs])
            swept += Swept(len(blobs), sum(size for _, size in blobs))
    except HeadMoved:
        pass  # a process saved there just now: its blobs are no longer orphans
    return swept


@dataclass(frozen=True, slots=True)
class _Batch:
    blobs: list[tuple[bytes, int]]
    payloads: list[int]
    bodies: list[int]


def _batches(chain: Chain, living: _Living) -> Iterator[_Batch]:
    """Yield unneeded data in small batches: transactions stay short, and lists stay small."""
    for place in range(0, len(living.payloads), _BATCH):
        yield _Batch([], living.payloads[place : place + _BATCH], [])
    for place in range(0, len(living.bodies), _BATCH):
        yield _Batch([], [], living.bodies[place : place + _BATCH])
    stored = chain.core.storage.stored_blobs(chain.thread)
    for blobs in _chunked(pair for pair in stored if pair[0] not in living.blobs):
        yield _Batch(blobs, [], [])


def _chunked(stored: Iterable[tuple[bytes, int]]) -> Iterator[list[tuple[bytes, int]]]:
    pairs = iter(stored)
    while batch := list(islice(pairs, _BATCH)):
        yield batch


def _counted(batch: _Batch) -> Swept:
    size_bytes = sum(size for _, size in batch.blobs)
    return Swept(len(batch.blobs), size_bytes, len(batch.payloads) + len(batch.bodies))


def _body(header: Header, record: Record) -> bytes:
    if record.body is None:
        raise Missing(f"entry {header.seq}: its body is missing")
    return record.body


# Collecting garbage over a whole store: unfinished sweeps, and blobs of saves that never finished.


def collect_garbage(
    core: Core,
    *,
    dry_run: bool = False,
    compact: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Collected:
    """Sweep every thread that the anchor knows, and the blobs that belong to no thread at all."""
    if not dry_run:
        core.signer()
    core.trust()
    threads = [each for each in all_threads(core) if each.anchored is not None]
    swept, failures = Swept(), []
    # A thread that the anchor has seen and the store lacks is damage: its blobs are not touched.
    seen = {STORE_CHAIN}
    for number, each in enumerate(threads, start=1):
        try:
            if (chain := _seen_chain(core, each)) is not None:
                seen.add(each.thread)
                chain.refresh()
                swept += would_sweep(chain) if dry_run else sweep(chain)
        except SealpointError as error:
            seen.add(each.thread)
            failures.append((each.thread.hex(), error.message))
        if progress is not None:
            progress(number, len(threads))
    for thread in _without_entries(core, seen):
        swept += drop_orphans(core, thread, dry_run=dry_run)
    if compact and not dry_run:
        core.storage.compact()
    return Collected(
        threads=len(threads),
        blobs=swept.blobs,
        size_bytes=swept.size_bytes,
        failures=tuple(failures),
    )


def _without_entries(core: Core, seen: set[bytes]) -> Iterator[bytes]:
    """Yield the threads that have only blobs."""
    for thread in core.storage.blob_threads():
        if thread not in seen and core.storage.read(thread, 0) is None:
            yield thread


def _seen_chain(core: Core, listed: ListedThread) -> Chain | None:
    """Return the chain of a thread of which the anchor has seen an entry; else None.

    A thread that was lost in a restore counts as one that was never saved.
    """
    anchored = listed.anchored
    if anchored is None or core.follow_restore(listed.slot, anchored).reserved:
        return None
    return Chain.at_slot(core, listed.slot, listed.thread)
