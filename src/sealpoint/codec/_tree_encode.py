# SPDX-License-Identifier: Apache-2.0
"""A value on its way into blobs, so that what did not change is not written again.

A container or byte string that is long is cut into chunks (`_chunks`) and replaced by a reference
(`_reference`). Blobs are put before the blob that names them. What is short is encoded at the
engine's full speed, as in the flat encoding: nothing in it is long enough to refer to.
"""

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from ormsgpack import Ext, packb

from sealpoint.codec._encode import Encoding
from sealpoint.codec._keys import is_plain_key
from sealpoint.codec._memo import ChunkedList, TreeMemo
from sealpoint.codec._rules import TypeRule
from sealpoint.codec._wire import (
    ID_BYTES,
    REFERENCE,
    BlobId,
    Put,
    Stream,
    Tag,
    array_header,
    id_bytes,
    map_header,
)
from sealpoint.errors import UsageError, ValueNotAllowed
from sealpoint.limits import ENCODE_DEPTH_MAX, Limits

# ---------------------------------------------------------------------- chunks
# Content-defined boundaries: where a long container or byte string is cut into chunks.
#
# A cut depends only on the bytes near it (or on one member), never on a position, so an insertion
# moves the chunks behind it without changing them. Where the cuts lie is the writer's business
# alone: a reader joins chunks and never asks. The seed keeps an outsider who can only choose
# content from learning where a store cuts; sizes are bounded whatever the content.


# A cut in bytes lies behind one of these pairs. They are dense in text, numbers and random data
# alike (about 1 in 128), which lets the regular expression engine do nearly all of the work.
_CANDIDATE = re.compile(
    b"[%s][%s]"
    % (
        b"".join(b"\\x%02x" % code for code in range(1, 256, 16)),
        b"".join(b"\\x%02x" % code for code in range(4, 256, 8)),
    )
)
_CANDIDATE_ODDS = 128
_WINDOW_BYTES = 48
_SMALLEST_PART = 4
_LARGEST_FACTOR = 8
_CRC_RANGE = 1 << 32

_BYTES_TARGET = 4096
_MEMBERS_TARGET = 1024
_IDS_TARGET = 8
_IDS_SMALLEST = 4  # whatever the ids are, each level of an index is a quarter of the one below


def _target(size_bytes: int, base: int) -> int:
    """The size to aim at: it grows with the whole, so that the chunks stay in the thousands."""
    target, reach = base, base * 1024
    while size_bytes > reach:
        target, reach = target * 4, reach * 16
    return target


def cut_bytes(data: bytes | memoryview, seed: int) -> Iterator[memoryview]:
    """Cut a byte string where its content says so."""
    view = memoryview(data)
    target = _target(len(view), _BYTES_TARGET)
    smallest, largest = target // _SMALLEST_PART, target * _LARGEST_FACTOR
    threshold = _CRC_RANGE * _CANDIDATE_ODDS // target
    start = 0
    while len(view) - start > smallest:
        stop = min(start + largest, len(view))
        for match in _CANDIDATE.finditer(view, start + smallest, stop):
            place = match.end()
            if zlib.crc32(view[place - _WINDOW_BYTES : place], seed) < threshold:
                stop = place
                break
        yield view[start:stop]
        start = stop
    if start < len(view):
        yield view[start:]


def members_target(size_bytes: int) -> int:
    """The size of chunks to aim at for members of so many bytes together."""
    return _target(size_bytes, _MEMBERS_TARGET)


def member_ends(parts: Sequence[bytes], seed: int, target: int, first: int = 0) -> Iterator[int]:
    """Where chunks of encoded members end, cutting behind members whose content says so.

    A member ends a chunk with odds in proportion to its length, and surely if it is as long as
    the chunk to aim at.

    Args:
        parts: The members.
        seed: Moves the boundaries.
        target: The size of chunks to aim at.
        first: Where a chunk begins; what lies before it is left out.
    """
    smallest, largest = target // _SMALLEST_PART, target * _LARGEST_FACTOR
    scale = _CRC_RANGE // target
    crc32 = zlib.crc32
    held_bytes = 0
    place = first
    for part in islice(parts, first, None):
        place += 1
        size = len(part)
        held_bytes += size
        if held_bytes >= smallest and (
            size >= target or held_bytes >= largest or crc32(part, seed) < size * scale
        ):
            yield place
            held_bytes = 0
    if held_bytes:
        yield place


def id_ends(ids: Sequence[bytes], first: int = 0) -> Iterator[int]:
    """Where the index blobs over blob ids end; ids are digests, so their own first byte decides.

    Args:
        ids: The ids.
        first: Where an index blob begins; what lies before it is left out.
    """
    for place, each in enumerate(islice(ids, first, None), start=first + 1):
        held = place - first
        cut = each[0] < 256 // _IDS_TARGET and held >= _IDS_SMALLEST
        if cut or held >= _IDS_TARGET * _LARGEST_FACTOR:
            yield place
            first = place
    if first < len(ids):
        yield len(ids)


# ---------------------------------------------------------------------- tree encode

_INLINE_IDS = 8
_SPLIT_MEMBERS_BYTES = 8 * 1024
_SPLIT_BYTES_BYTES = 16 * 1024
_MANY_MEMBERS = 32
_SHORT_NODES = 64
_TYPED_BYTES = 512
"""What an application's value is taken for before it is encoded."""
_SAMPLED_MEMBERS = 8
_OPENED_LEVELS = 3
_SCALARS = frozenset({int, float, bool, type(None)})


class TreeEncoding(Encoding):
    """One value on its way into blobs."""

    __slots__ = ("_level", "_long", "_memo", "_put", "_seed", "_short")

    def __init__(
        self,
        rules: Mapping[type, TypeRule],
        limits: Limits,
        put: Put,
        seed: bytes,
        memo: TreeMemo | None = None,
    ) -> None:
        super().__init__(rules, limits)
        if not isinstance(seed, bytes):
            raise UsageError(f"seed: expected bytes, found {type(seed).__name__}")
        self._put = put
        self._seed = _seed_number(seed)
        self._level = 0
        self._short = Encoding(rules, limits, self.bounds)
        self._long: set[type] = set()
        self._memo = memo

    def run_tree(self, value: Any) -> BlobId:
        """Put the value's blobs, children first.

        Returns:
            What `put` returned for the root blob.
        """
        self._check_whole(value)
        if self._memo is not None:
            self._memo.begin()
        data = self._node(value)
        self.bounds.check_nodes([data])
        if len(data) > _SPLIT_BYTES_BYTES:
            data = self._reference(Stream.VALUE, 0, cut_bytes(data, self._seed))
        root = self._put(data)
        id_bytes(root, "put")
        if self._memo is not None:
            self._memo.end()
        return root

    def pack(self, value: Any) -> bytes:
        """Encode the payload of an extension, with references for what is long in it."""
        self._enter()
        self._check_whole(value)
        self._level += 1
        data = self._node(value)
        self._level -= 1
        self._leave()
        return data

    def pack_body(self, body: list[Any]) -> bytes:
        """Encode a typed value's body: long parts become references, the body itself never."""
        self._enter()
        self._check_whole(body)
        self._level += 1
        data = array_header(len(body)) + b"".join(map(self._node, body))
        self._level -= 1
        self._leave()
        return data

    def pack_items(self, parts: Sequence[bytes]) -> bytes:
        """An array of encoded members, or a reference to it."""
        if self._level >= self.limits.reference_depth_max:
            return super().pack_items(parts)
        return self._joined(Stream.LIST, array_header(len(parts)), parts)

    def _check_whole(self, value: Any) -> None:
        """Members are encoded one by one here, so a lowered depth is checked from the top."""
        if self.limits.depth_max < ENCODE_DEPTH_MAX:
            self.bounds.check_depth(value)

    def _node(self, value: Any) -> bytes:
        """Encode a value, long parts as references."""
        kind = type(value)
        if kind is list or kind is dict:
            return self._container(value)
        rule = self._rules.get(kind)
        if rule is not None and kind not in self._long:
            data = self._at_full_speed(value, rule)
            if data is not None:
                return data
            # Others of its type are likely as long: they are not tried in vain.
            self._long.add(kind)
        if kind in (bytes, bytearray, memoryview):
            return self._byte_string(value)
        if kind is str and len(value) > _SPLIT_BYTES_BYTES // 4:
            return self._text(value)
        return self._plain(value)

    def _container(self, value: list[Any] | dict[Any, Any]) -> bytes:
        # The whole is long, so several values of the application's in here are likely to be.
        if _seems_short(value, typed_bytes=_SPLIT_MEMBERS_BYTES // 2 + 1):
            data = self._at_full_speed(value, None)
            if data is not None:
                return data
        self._level += 1
        if self._level > self.limits.reference_depth_max:
            data = self._plain(value)
        else:
            data = self._dict(value) if isinstance(value, dict) else self._list(value)
        self._level -= 1
        return data

    def _at_full_speed(self, value: Any, rule: TypeRule | None) -> bytes | None:
        """The flat encoding if it is short, else None.

        Nothing in a short one is long enough for a reference, so the bytes are the same.
        """
        short = self._short
        try:
            return short.run_short(value, rule, self._depth, _SPLIT_MEMBERS_BYTES)
        except BaseException:
            self.error, self.culprit = short.error, short.culprit
            raise

    def _opened(self, value: list[Any] | dict[Any, Any]) -> bool:
        """Whether to look at members one by one: in Python, but cutting between them."""
        return self._level <= _OPENED_LEVELS or len(value) >= _MANY_MEMBERS

    def _list(self, value: list[Any]) -> bytes:
        header = array_header(len(value))
        if self._opened(value) and not _SCALARS.issuperset(map(type, value[:_SAMPLED_MEMBERS])):
            return self._joined(Stream.LIST, header, self._members(value))
        return self._cut(Stream.LIST, header, len(value), self._plain(value))

    def _members(self, value: list[Any]) -> list[bytes]:
        """The members of a list, those of application types at full speed."""
        if self.limits.depth_max < ENCODE_DEPTH_MAX:
            return list(map(self._node, value))
        short = self._short
        try:
            found = short.run_members(
                value,
                self._long,
                self._depth,
                _SPLIT_MEMBERS_BYTES,
                None if self._memo is None else self._memo.objects,
            )
        except BaseException:
            self.error, self.culprit = short.error, short.culprit
            raise
        return [
            part if part is not None else self._node(member)
            for member, part in zip(value, found, strict=True)
        ]

    def _dict(self, value: dict[Any, Any]) -> bytes:
        if not all(map(is_plain_key, value)):
            return self._plain(value)
        header = map_header(len(value))
        if self._opened(value):
            parts = [packb(key) + self._node(member) for key, member in value.items()]
            return self._joined(Stream.MAP, header, parts)
        return self._cut(Stream.MAP, header, len(value), self._plain(value))

    def _joined(self, stream: Stream, header: bytes, parts: Sequence[bytes]) -> bytes:
        """A container of encoded members, as a reference if it is long."""
        total = sum(map(len, parts))
        if len(header) + total <= _SPLIT_MEMBERS_BYTES:
            return header + b"".join(parts)
        self.bounds.check_nodes(parts)
        return self._members_reference(stream, list(parts), total)

    def _members_reference(self, stream: Stream, parts: list[bytes], total: int) -> bytes:
        """Put members in chunks, except those that the encoding before has put already."""
        target, memo = members_target(total), self._memo
        ends, ids = ([], []) if memo is None else memo.kept(parts, target, self._seed)
        first = ends[-1] if ends else 0
        put, whole = self._put_blob, True
        for end in member_ends(parts, self._seed, target, first):
            chunk = parts[first] if end - first == 1 else b"".join(parts[first:end])
            if len(chunk) <= self.limits.blob_bytes_max:
                ids.append(put(chunk))
            else:
                ids.extend(map(put, self._pieces(chunk)))
                whole = False
            ends.append(end)
            first = end
        if memo is not None:
            # A chunk in pieces has more ids than ends; it is rare and not remembered.
            cut = ChunkedList(parts, ends, ids, target, self._seed) if whole else None
            memo.remember(cut, total)
        return self._refer(stream, len(parts), total, ids)

    def _cut(self, stream: Stream, header: bytes, count: int, data: bytes) -> bytes:
        """A container that is encoded whole, as a reference if it is long."""
        if len(data) <= _SPLIT_MEMBERS_BYTES:
            return data
        self.bounds.check_nodes([data])
        body = memoryview(data)[len(header) :]
        return self._reference(stream, count, cut_bytes(body, self._seed))

    def _byte_string(self, value: bytes | bytearray | memoryview) -> bytes:
        try:
            view = memoryview(value)
        except ValueError as exc:
            raise ValueNotAllowed("memoryview: expected one that is not released") from exc
        if view.nbytes <= _SPLIT_BYTES_BYTES:
            return packb(bytes(value))
        view = view.cast("B") if view.c_contiguous else memoryview(view.tobytes())
        return self._reference(Stream.BYTES, 0, cut_bytes(view, self._seed))

    def _text(self, value: str) -> bytes:
        if not is_plain_key(value):
            return self._plain(value)
        data = value.encode()
        if len(data) <= _SPLIT_BYTES_BYTES:
            return packb(value)
        return self._reference(Stream.TEXT, 0, cut_bytes(data, self._seed))

    def _reference(self, stream: Stream, count: int, chunks: Iterable[bytes | memoryview]) -> bytes:
        total = 0
        ids: list[bytes] = []
        for chunk in chunks:
            total += len(chunk)
            ids.extend(map(self._put_blob, self._pieces(chunk)))
        return self._refer(stream, count, total, ids)

    def _pieces(self, chunk: bytes | memoryview) -> Iterator[bytes | memoryview]:
        """A chunk in parts that are not longer than a blob may be; mostly it is its only part."""
        size = self.limits.blob_bytes_max
        return (chunk[start : start + size] for start in range(0, len(chunk), size))

    def _refer(self, stream: Stream, count: int, total: int, ids: list[bytes]) -> bytes:
        """The reference to chunks that were put, below as many index levels as it takes."""
        self.bounds.expand(total)
        levels = 0
        while len(ids) > _INLINE_IDS:
            ids = self._index(ids)
            levels += 1
        self.bounds.check_levels(levels, "value")
        fields = REFERENCE.pack(stream, levels, count, total)
        return packb(Ext(Tag.REFERENCE, fields + b"".join(ids)))

    def _index(self, ids: list[bytes]) -> list[bytes]:
        """Put one level of an index, except what the encoding before has put already."""
        memo = self._memo
        ends, names = ([], []) if memo is None else memo.kept(ids, 0, 0)
        first = ends[-1] if ends else 0
        for end in id_ends(ids, first):
            names.append(self._put_blob(b"".join(ids[first:end])))
            ends.append(end)
            first = end
        if memo is not None:
            memo.remember(ChunkedList(ids, ends, names, 0, 0), len(ids) * ID_BYTES)
        return names

    def _put_blob(self, blob: bytes | memoryview) -> bytes:
        name = self._put(bytes(blob))
        return name if type(name) is bytes and len(name) == ID_BYTES else id_bytes(name, "put")


def encode_short(value: Any, encoding: Encoding, memo: TreeMemo | None) -> bytes | None:
    """The root blob of a value that seems short and is: then there is no tree to build."""
    if (type(value) is not dict and type(value) is not list) or (memo and memo.was_long):
        return None
    if not _seems_short(value, typed_bytes=_TYPED_BYTES):
        return None
    limits = encoding.limits
    bytes_max = min(_SPLIT_MEMBERS_BYTES, limits.value_bytes_max, limits.value_nodes_max)
    return encoding.run_short(value, None, 0, bytes_max)


@lru_cache(maxsize=1024)
def _seed_number(seed: bytes) -> int:
    return int.from_bytes(hashlib.sha256(seed).digest()[:4], "big")


def _seems_short(value: list[Any] | dict[Any, Any], *, typed_bytes: int) -> bool:
    """Whether a container is likely to take few bytes: few nodes, and no long text among them."""
    if len(value) >= _MANY_MEMBERS:
        return False
    nodes, size = _SHORT_NODES, _SPLIT_MEMBERS_BYTES
    waiting: list[Any] = [value]
    while waiting:
        members = waiting.pop()
        nodes -= len(members)
        if nodes < 0:
            return False
        for member in members.values() if type(members) is dict else members:
            kind = type(member)
            if kind is list or kind is dict:
                waiting.append(member)
            elif kind is str or kind is bytes:
                size -= len(member)
            elif kind not in _SCALARS:
                nodes -= 1
                size -= typed_bytes
        if size < 0:
            return False
    return True
