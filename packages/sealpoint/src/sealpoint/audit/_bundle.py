# SPDX-License-Identifier: Apache-2.0
"""Writing an evidence bundle: proof of the history of some threads, for anyone with the pin.

Everything in the bundle was verified during the export, against the anchor too. It holds no key,
and no state unless the caller asks for states; erased data is not in it. The export yields the
bundle line by line. The caller must discard the output if the export does not reach its end:
without its last line it is not a bundle.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from typing import Annotated, BinaryIO, Literal

import msgspec

from sealpoint.audit._trail import select_threads
from sealpoint.audit._verify import RetentionCheck
from sealpoint.codec import Reached, tree_blobs
from sealpoint.errors import (
    BundleInvalid,
    Edited,
    HeadMoved,
    KeyNotInForce,
    Missing,
    NoRight,
    Tampered,
)
from sealpoint.ledger import STORE_CHAIN, ChainStep, CheckpointBody, ExpiryBody, StoreChain
from sealpoint.limits import BUNDLE_BYTES_MAX, BUNDLE_LINE_BYTES_MAX, POSITION_LIST_BYTES_MAX
from sealpoint.signing import Role, pae
from sealpoint.storage import Record
from sealpoint.store import BlobReader, Core, ThreadWalk

# The lines of an evidence bundle: one JSON object each, in one spelling, with a bound.
#
# A reader processes a bundle from its first line to its last and never holds all of it. It bounds
# each line before reading it, and parses it as a round trip, so a bundle has no second spelling.
# See docs/formats/bundle.md for every field.


BUNDLE_TYPE = b"application/vnd.sealpoint.bundle.v1+json"
"""The payload type of the exporter's signature."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class BeginLine(
    msgspec.Struct, tag="bundle", tag_field="line", frozen=True, forbid_unknown_fields=True
):
    """The first line: the subject of the bundle."""

    v: Literal[1]
    store: str
    ns: str
    payloads: bool
    """Whether the bundle includes the states."""


class EntryLine(
    msgspec.Struct,
    tag="entry",
    tag_field="line",
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """An entry of the store chain, or of the thread named by the last thread line."""

    header: str
    seals: str
    body: str | None
    """None: an erasure removed it, or the body is in `raw`."""
    raw: bytes | None = None
    """A body that is not UTF-8: meaningless, but sealed by its writer; otherwise left out."""


class BlobLine(
    msgspec.Struct, tag="blob", tag_field="line", frozen=True, forbid_unknown_fields=True
):
    """A list or policy of the store chain, or a world or part of a state of a thread."""

    digest: str
    data: bytes


class ThreadLine(
    msgspec.Struct, tag="thread", tag_field="line", frozen=True, forbid_unknown_fields=True
):
    """The start of a thread: the entries that follow belong to it."""

    thread: str


class EndLine(msgspec.Struct, tag="end", tag_field="line", frozen=True, forbid_unknown_fields=True):
    """The last line: who exported the lines before it, and when."""

    at: _Time
    by: str
    """The key id, in hexadecimal."""
    lines: _Count
    """The number of lines before this one."""
    content: str
    """The SHA-256 of their bytes, in hexadecimal."""
    signature: str


Line = BeginLine | EntryLine | BlobLine | ThreadLine | EndLine

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


def encode_line(line: Line) -> bytes:
    """Encode a line in its one spelling.

    Raises:
        BundleInvalid: It is longer than a reader would accept.
    """
    data: bytes = _encode(line) + b"\n"
    if len(data) > BUNDLE_LINE_BYTES_MAX:
        raise BundleInvalid(
            f"bundle: expected lines of at most {BUNDLE_LINE_BYTES_MAX} bytes, found {len(data)}"
        )
    return data


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8, as every readable body is."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def signed_message(line: EndLine, begin: BeginLine) -> bytes:
    """Return the message that the exporter signs."""
    claim = {
        "v": begin.v,
        "store": begin.store,
        "ns": begin.ns,
        "payloads": begin.payloads,
        "at": line.at,
        "by": line.by,
        "lines": line.lines,
        "content": line.content,
    }
    return pae(BUNDLE_TYPE, _encode(claim))


def read_lines(source: bytes | BinaryIO) -> Iterator[tuple[Line, str, int]]:
    """Yield every line, with the digest and the number of the lines before it.

    Raises:
        BundleInvalid: There is something other than a line, or more than a reader accepts.
    """
    stream = BytesIO(source) if isinstance(source, bytes) else source
    hashed, number, total = hashlib.sha256(), 0, 0
    while True:
        # (1) Check the bounds before parsing anything.
        data = stream.readline(BUNDLE_LINE_BYTES_MAX + 1)
        if not data:
            return
        total += len(data)
        where = f"bundle line {number + 1}"
        if len(data) > BUNDLE_LINE_BYTES_MAX or total > BUNDLE_BYTES_MAX:
            raise BundleInvalid(
                f"{where}: it is longer than a line may be ({BUNDLE_LINE_BYTES_MAX} bytes), or "
                f"than a bundle may be ({BUNDLE_BYTES_MAX})"
            )
        # (2) Accept one spelling. Lines are flat, so nothing can be nested deeply.
        try:
            line = _decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
            raise BundleInvalid(f"{where}: it is not a line of a version 1 bundle") from exc
        if _encode(line) + b"\n" != data or (
            isinstance(line, EndLine) and line.at.tzinfo is not UTC
        ):
            raise BundleInvalid(f"{where}: it is not in canonical form")
        yield line, hashed.hexdigest(), number
        hashed.update(data)
        number += 1


def export_bundle(
    core: Core, threads: Iterable[str] | None = None, *, payloads: bool = False
) -> Iterator[bytes]:
    """Write the evidence of some threads of the namespace, line by line.

    Args:
        core: The store; its signer is the exporter.
        threads: Their names; None: all threads of the namespace.
        payloads: Whether to include the states.

    Raises:
        ReadOnly: The store was opened without a key.
        UnknownThread, Unanchored: There is no such thread.
        Tampered, NotTrusted, RolledBack, Forked: Something does not verify, so it is not evidence.
        HeadMoved: The roster changed during the export; export again.
    """
    signer = core.signer()
    chain = core.renewed_trust()
    holder = core.holder(chain)
    if holder is None:
        raise KeyNotInForce(
            f"export by {signer.name!r}: its key {signer.key[:12]} is not in roster "
            f"{chain.roster.seq}"
        )
    if not holder[0].covers(core.namespace):
        found, hint = holder[0].lacking((Role.AUDITOR,), core.namespace)
        raise NoRight(
            f"export by {signer.name!r}: this needs a role in namespace {core.namespace!r}; "
            f"{signer.name!r} has {found}",
            hint=hint,
        )
    chosen = ThreadWalk.each(core) if threads is None else select_threads(core, set(threads))
    return _lines(core, chain, list(chosen), payloads=payloads)


def _lines(
    core: Core, chain: StoreChain, chosen: list[ThreadWalk], *, payloads: bool
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
    core: Core, chain: StoreChain, chosen: list[ThreadWalk], begin: BeginLine
) -> Iterator[Line]:
    yield begin
    for seq, record in core.storage.scan(STORE_CHAIN, 0, chain.seq):
        line = _entry(record)
        # Write exactly the verified bytes: the hash and the digest of the body bind them.
        if hashlib.sha256(record.header).digest() != chain.hashes[seq]:
            raise Edited(f"store chain entry {seq}: it changed after it was verified")
        yield line
    for digest in chain.blobs:
        yield BlobLine(digest.hex(), _blob(core, STORE_CHAIN, digest, POSITION_LIST_BYTES_MAX))
    for walk in sorted(chosen, key=lambda walk: walk.thread):
        yield ThreadLine(walk.thread.hex())
        beside = _Beside(core, walk.thread, payloads=begin.payloads)
        for record, step in walk.entries():
            if step.chain.seq != chain.seq:
                raise HeadMoved(
                    f"store chain: expected it to end at entry {chain.seq}, found a newer roster",
                    hint="The roster has changed during the export: export again.",
                )
            yield _entry(record)
            yield from beside.of(step, record.payload)
        walk.finish()
        walk.require_kept()


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
        raise Missing(f"{where}: it is missing from the store")
    if hashlib.sha256(data).digest() != digest:
        raise Edited(f"{where}: its bytes do not have the hash that an entry names")
    return data


class _Beside:
    """The blobs of a thread that go into a bundle, each once."""

    def __init__(self, core: Core, thread: bytes, *, payloads: bool) -> None:
        self._core = core
        self._thread = thread
        self._payloads = payloads
        self._reached = Reached()
        self._worlds: set[str] = set()
        self._pruned = RetentionCheck(core, thread).claims.rule

    def of(self, step: ChainStep, payload: bytes | None) -> Iterator[BlobLine]:
        """Yield the world of a checkpoint, and its state if wanted and not pruned.

        For the end of a rollout, yield the list of positions. Any member can name a list that does
        not exist: the export omits it, and a verifier that needs it reports that.
        """
        body, seq = step.body, step.entry.seq
        if isinstance(body, ExpiryBody) and body.positions is not None:
            digest = bytes.fromhex(body.positions)
            with suppress(Tampered):
                data = _blob(self._core, self._thread, digest, POSITION_LIST_BYTES_MAX)
                yield BlobLine(body.positions, data)
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
            (root, payload),
        )
        for digest in tree_blobs(
            root, reader.get, limits=limits, reached=self._reached, fetch_all=True
        ):
            yield BlobLine(digest.hex(), reader.get(digest))
