# SPDX-License-Identifier: Apache-2.0
"""The blobs that a tree reaches, found without decoding it and without the application's types.

Guarantees: for a tree that a reader accepts, exactly the blobs that the reader fetches are listed,
whatever its rules are. Refuses: references that break the rules of the format, and anything that
exceeds a limit. Left to others: whether a blob is the requested one (`get` proves that), and
whether the bytes between references form a value (`_msgpack` only steps over them).

A blob can play several parts: the bytes of a file may equal those of a list's chunk, and then they
contain references in one place and none in the other. Or a chunk begins in the middle of an object,
and its bytes mean something else than between objects. So a walked blob is remembered together with
its part, never by its id alone: a pruned store must not lose blobs that only looked known.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from sealpoint.codec._bounds import DECODING, Bounds
from sealpoint.codec._msgpack import ReferenceScan, ScanState
from sealpoint.codec._wire_format import (
    CHUNK_BYTES_MIN,
    Get,
    Stream,
    Tag,
    id_bytes,
    leading_extension,
    split_ids,
)
from sealpoint.errors import BlobMismatch, BytesMalformed, DecodeLimitExceeded, UsageError
from sealpoint.limits import Limits

_DEFAULTS = Limits()

# Parts that are not states of a scan: a chunk of text or bytes; and a root, which has no level.
_LEAF = -1
_ROOT_LEVEL = -1

# A blob can be walked from as many states as it has bytes; those of little use are not remembered.
_REMEMBERED_BYTES_MIN = 1024

_Frame: TypeAlias = Iterator["bytes | _Frame"]
_Passed: TypeAlias = dict[tuple[int, bytes, ScanState], tuple[ScanState, int]]


class Reached:
    """The blobs reached by walks so far: pass it to `tree_blobs` again to visit only new blobs.

    Versions of one state share most of their blobs, and shared blobs are walked once. A walk that
    failed, or was abandoned, leaves nothing incorrect behind.

    Attributes:
        blobs: Every id that was yielded.
    """

    __slots__ = ("_passed", "blobs")

    def __init__(self) -> None:
        self.blobs: set[bytes] = set()
        self._passed: tuple[_Passed, _Passed] = ({}, {})

    def forget_root(self, root: bytes) -> None:
        """Drop a root that no other tree shares; the blobs below it stay."""
        self.blobs.discard(root)
        for passed in self._passed:
            passed.pop((_ROOT_LEVEL, root, 0), None)

    def passed(self, *, fetch_all: bool) -> _Passed:
        """Map a level, an id and the state before a blob to the state after it and its size."""
        return self._passed[fetch_all]


def tree_blobs(
    root: bytes,
    get: Get,
    *,
    limits: Limits = _DEFAULTS,
    reached: Reached | None = None,
    fetch_all: bool = False,
) -> Iterator[bytes]:
    """Yield the root and every blob reached from it, each id once, before it is fetched.

    Memory use depends on the number of ids and the longest blob, not on the size of the tree.

    Args:
        root: The root that `Registry.encode_tree` returned, as bytes.
        get: Returns a blob by its id, and has proved that it is the right one; `KeyError` if
            missing.
        limits: The bounds of the registry that wrote the tree.
        reached: The blobs that earlier walks reached: they are not yielded, and rarely fetched.
        fetch_all: Fetch chunks of text and bytes too. They name no other blobs, so only a caller
            that checks that they exist and are complete needs this.

    Raises:
        BlobMismatch: A blob is missing.
        DecodeError: The blobs are not a tree that a reader accepts.
    """
    if not isinstance(root, bytes):
        raise UsageError(f"root: expected bytes, found {type(root).__name__}")
    known = Reached() if reached is None else reached
    return _TreeWalk(get, limits, known, fetch_all=fetch_all).run(id_bytes(root, "root"))


class _Chunks:
    """The chunks of one stream that were walked so far.

    Args:
        total_bytes: The bytes of all of them.
        depth: The number of enclosing references.
        scan: Finds the references in them; None for text and bytes, which have none.
        is_fetched: Whether they are fetched at all.
    """

    __slots__ = ("_id_counts", "_scan", "_total_bytes", "depth", "is_fetched", "walked_bytes")

    def __init__(
        self, total_bytes: int, depth: int, scan: ReferenceScan | None, *, is_fetched: bool = True
    ) -> None:
        self.depth = depth
        self.is_fetched = is_fetched
        self.walked_bytes = 0
        self._scan = scan
        self._total_bytes = total_bytes
        self._id_counts: dict[int, int] = {}

    def state(self) -> ScanState | None:
        """Return the state after the chunks so far; None if it is too long to remember."""
        return _LEAF if self._scan is None else self._scan.state()

    def go_past(self, state: ScanState, size_bytes: int) -> None:
        """Skip a part that was walked before, and continue from the state after it."""
        self._add(size_bytes)
        if self._scan is not None:
            self._scan.go_on_from(state)

    def enter(self, level: int, count: int) -> None:
        """Count the ids in an index blob of this level."""
        self._id_counts[level] = found = self._id_counts.get(level, 0) + count
        count_max = 1 + self._total_bytes // CHUNK_BYTES_MIN
        if found > count_max:
            raise BytesMalformed(f"reference: expected at most {count_max} chunks")

    def feed(self, chunk: bytes) -> Sequence[bytes]:
        """Return the references that end in the next chunk."""
        if not chunk:
            raise BytesMalformed("blob: it is empty")
        self._add(len(chunk))
        return () if self._scan is None else self._scan.feed(chunk)

    def end(self) -> None:
        """Check that the stream is complete, since there are no more chunks."""
        if self.is_fetched and self.walked_bytes != self._total_bytes:
            raise BytesMalformed(f"reference: expected {self._total_bytes} bytes in its chunks")
        if self._scan is not None and not self._scan.is_between_objects():
            raise BytesMalformed("value: expected all of its bytes, found fewer")

    def _add(self, size_bytes: int) -> None:
        self.walked_bytes += size_bytes
        if self.walked_bytes > self._total_bytes:
            raise BytesMalformed(f"reference: expected {self._total_bytes} bytes in its chunks")


class _TreeWalk:
    """One walk through a tree. Frames yield ids, and other frames that must end first."""

    __slots__ = ("_blobs", "_bounds", "_fetch_all", "_get", "_limits", "_passed")

    def __init__(self, get: Get, limits: Limits, reached: Reached, *, fetch_all: bool) -> None:
        self._get = get
        self._limits = limits
        self._fetch_all = fetch_all
        self._blobs = reached.blobs
        self._passed = reached.passed(fetch_all=fetch_all)
        self._bounds = Bounds({}, limits, DECODING)

    def run(self, root: bytes) -> Iterator[bytes]:
        """Yield the ids. Frames are on an explicit stack, so that no data can exhaust Python's."""
        frames = [self._tree(root)]
        while frames:
            for found in frames[-1]:
                if not isinstance(found, bytes):
                    frames.append(found)
                    break
                yield found
            else:
                frames.pop()

    def _tree(self, root: bytes) -> _Frame:
        """Walk a root and everything below it."""
        key = (_ROOT_LEVEL, root, 0)
        if key in self._passed:
            return
        if root not in self._blobs:
            self._blobs.add(root)
            yield root
        data = self._fetch(root)
        scan = ReferenceScan(self._limits.blob_bytes_max)
        start = _value_reference(data)
        if start is None:
            chunks = _Chunks(len(data), 0, scan)
            for payload in chunks.feed(data):
                yield self._reference(payload, 1)
        else:
            _, levels, _, total, ids = self._bounds.parse_reference(data[start:])
            chunks = _Chunks(total, 0, scan)
            yield self._stream(chunks, levels, ids)
        chunks.end()
        self._passed[key] = 0, chunks.walked_bytes

    def _reference(self, payload: bytes, depth: int) -> _Frame:
        """Walk everything that a reference names."""
        stream, levels, count, total, ids = self._bounds.parse_reference(payload)
        if stream is Stream.VALUE:
            raise BytesMalformed("reference: expected a container or byte string")
        self._bounds.check_references(depth)
        if stream in (Stream.LIST, Stream.MAP):
            chunks = _Chunks(total, depth, ReferenceScan(self._limits.blob_bytes_max))
        elif count:
            raise BytesMalformed("reference: expected no members in a byte string")
        else:
            chunks = _Chunks(total, depth, None, is_fetched=self._fetch_all)
        yield self._stream(chunks, levels, ids)
        chunks.end()

    def _stream(self, chunks: _Chunks, level: int, ids: list[bytes]) -> _Frame:
        """Walk the chunks of these ids, or, for a level above 0, those below these index blobs."""
        passed, blobs = self._passed, self._blobs
        for name in ids:
            before, bytes_before = chunks.state(), chunks.walked_bytes
            if before is not None and (behind := passed.get((level, name, before))) is not None:
                chunks.go_past(*behind)
                continue
            if name not in blobs:
                blobs.add(name)
                yield name
            if level:
                below = split_ids(self._fetch(name))
                chunks.enter(level, len(below))
                yield self._stream(chunks, level - 1, below)
            elif chunks.is_fetched:
                for payload in chunks.feed(self._fetch(name)):
                    yield self._reference(payload, chunks.depth + 1)
            else:
                continue  # only its id was requested
            # Only here: a part that failed was not walked.
            after, size_bytes = chunks.state(), chunks.walked_bytes - bytes_before
            is_of_use = before in (0, _LEAF) or size_bytes >= _REMEMBERED_BYTES_MIN
            if is_of_use and before is not None and after is not None:
                passed[level, name, before] = after, size_bytes

    def _fetch(self, name: bytes) -> bytes:
        try:
            blob: object = self._get(name)
        except KeyError as exc:
            shown = name.hex()[:12]
            raise BlobMismatch(f"blob {shown}: it is missing") from exc
        if not isinstance(blob, bytes):
            found = type(blob).__name__
            raise BlobMismatch(f"blob {name.hex()[:12]}: expected bytes, found {found}")
        if len(blob) > self._limits.blob_bytes_max:
            raise DecodeLimitExceeded(
                f"blob {name.hex()[:12]}: expected at most {self._limits.blob_bytes_max} bytes "
                f"(blob_bytes_max), found {len(blob)}"
            )
        return blob


def _value_reference(data: bytes) -> int | None:
    """Return the payload's start if a root blob is a reference to a whole value, else None."""
    leading = leading_extension(data)
    if leading is None or leading[0] != Tag.REFERENCE:
        return None
    start = leading[1]
    return start if data[start : start + 1] == bytes((Stream.VALUE,)) else None
