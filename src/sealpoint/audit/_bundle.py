# SPDX-License-Identifier: Apache-2.0
"""Writing an evidence bundle: what proves the history of some threads, for whoever has the pin.

Everything that is written has been verified on the way, against the anchor too. It holds no key,
and no state unless that is asked for; what was erased is not in it. It is yielded line by line,
and must be thrown away if the end is not reached: without its last line it is no bundle.
"""

import hashlib
from collections.abc import Iterable, Iterator

from sealpoint.audit._bundle_lines import (
    BeginLine,
    BlobLine,
    EndLine,
    EntryLine,
    Line,
    ThreadLine,
    encode_line,
    is_text,
    signed_message,
)
from sealpoint.audit._payloads import Retention
from sealpoint.audit._trail import select_threads
from sealpoint.audit._walk import Source, Step, ThreadWalk, sources
from sealpoint.codec import Reached, tree_blobs
from sealpoint.errors import Edited, HeadMoved, Missing, NotTrusted
from sealpoint.ledger import STORE_CHAIN, CheckpointBody, StoreChain
from sealpoint.limits import CUT_BYTES_MAX
from sealpoint.storage import Record
from sealpoint.store import BlobReader, Core

__all__ = ["export_bundle"]


def export_bundle(
    core: Core, threads: Iterable[str] | None = None, *, payloads: bool = False
) -> Iterator[bytes]:
    """Write the evidence of some threads of the namespace, line by line.

    Args:
        core: The store; its signer says who exports.
        threads: Their names; None: all threads of the namespace.
        payloads: Also the states.

    Raises:
        ReadOnly: The store was opened without a key.
        UnknownThread, Unanchored: There is no such thread.
        Tampered, NotTrusted, RolledBack, Forked: Something does not verify: it is no evidence.
        HeadMoved: The roster has changed meanwhile; export again.
    """
    signer = core.signer()
    chain = core.renewed_trust()
    holder = core.holder(chain)
    if holder is None or not holder[0].covers(core.namespace):
        raise NotTrusted(
            f"export by {signer.name!r}: expected an identity of namespace {core.namespace!r}"
        )
    if threads is None:
        chosen = [("", source) for source in sources(core)]
    else:
        chosen = select_threads(core, sorted(set(threads)))
    return _lines(core, chain, chosen, payloads=payloads)


def _lines(
    core: Core, chain: StoreChain, chosen: list[tuple[str, Source]], *, payloads: bool
) -> Iterator[bytes]:
    signer = core.signer()
    begin = BeginLine(1, core.store_hex, core.namespace, payloads)
    hashed, number = hashlib.sha256(), 0
    for line in _content(core, chain, chosen, begin):
        data = encode_line(line)
        hashed.update(data)
        number += 1
        yield data
    end = EndLine(core.now(), signer.key, number, hashed.hexdigest(), "")
    signature = signer.sign(signed_message(end, begin)).hex()
    yield encode_line(EndLine(end.at, end.by, end.lines, end.content, signature))


def _content(
    core: Core, chain: StoreChain, chosen: list[tuple[str, Source]], begin: BeginLine
) -> Iterator[Line]:
    yield begin
    for seq, record in core.storage.scan(STORE_CHAIN, 0, chain.seq):
        line = _entry(record)
        # What was verified before is what is written: the hash and the body's digest bind it.
        if hashlib.sha256(record.header).digest() != chain.hashes[seq]:
            raise Edited(f"store chain entry {seq}: expected it as it was verified, found another")
        yield line
    for digest in chain.blobs:
        yield BlobLine(digest.hex(), _blob(core, STORE_CHAIN, digest, CUT_BYTES_MAX))
    for name, source in sorted(chosen, key=lambda pair: pair[1].thread):
        yield ThreadLine(source.thread.hex())
        beside = _Beside(core, source.thread, payloads=begin.payloads)
        for step in ThreadWalk(core, source.thread, source.anchored, name).steps():
            if step.chain.seq != chain.seq:
                raise HeadMoved(
                    f"store chain: expected it to end at entry {chain.seq}, found a newer roster",
                    hint="The roster has changed during the export: export again.",
                )
            yield _entry(step.record)
            yield from beside.of(step)


def _entry(record: Record) -> EntryLine:
    header, seals = record.header.decode(), record.seals.decode()
    if record.body is None:
        return EntryLine(header, seals, None)
    if not is_text(record.body):
        return EntryLine(header, seals, None, record.body)
    return EntryLine(header, seals, record.body.decode())


def _blob(core: Core, thread: bytes, digest: bytes, bytes_max: int) -> bytes:
    data = core.storage.blob(thread, digest, bytes_max)
    where = f"blob {digest.hex()[:12]} of thread {thread.hex()[:12]}"
    if data is None:
        raise Missing(f"{where}: expected it in the store, found none")
    if hashlib.sha256(data).digest() != digest:
        raise Edited(f"{where}: expected the bytes that an entry names, found others")
    return data


class _Beside:
    """The blobs of a thread that go into a bundle, each once."""

    def __init__(self, core: Core, thread: bytes, *, payloads: bool) -> None:
        self._core = core
        self._thread = thread
        self._payloads = payloads
        self._reached = Reached()
        self._worlds: set[str] = set()
        self._pruned = Retention(core, thread).claims.rule

    def of(self, step: Step) -> Iterator[BlobLine]:
        """The world of a checkpoint, and its state where that is wanted and was not given up."""
        body, seq = step.body, step.entry.seq
        if not isinstance(body, CheckpointBody) or (
            self._pruned is not None and self._pruned.covers(seq)
        ):
            return
        limits = self._core.registry.limits
        if body.world is not None and body.world not in self._worlds:
            self._worlds.add(body.world)
            digest = bytes.fromhex(body.world)
            yield BlobLine(
                body.world, _blob(self._core, self._thread, digest, limits.blob_bytes_max)
            )
        if not self._payloads:
            return
        root = bytes.fromhex(body.root)
        reader = BlobReader(
            self._core.storage,
            self._thread,
            limits.blob_bytes_max,
            f"entry {seq} of thread {self._thread.hex()[:12]}",
            (root, step.record.payload),
        )
        for digest in tree_blobs(
            root, reader.get, limits=limits, reached=self._reached, fetch_all=True
        ):
            yield BlobLine(digest.hex(), reader.get(digest))
