# SPDX-License-Identifier: Apache-2.0
"""The blob tree: a value as blobs, so that what did not change is not written again.

A container or byte string that is long is cut into chunks (`_chunks`); in its place stands a
*reference*: what it is, how many members it has, how many bytes its chunks hold together, and
their ids, below as many index levels as it takes. A reader joins the chunks, puts the container's
header in front and decodes as usual. Blobs are put before the blob that names them.
"""

import contextlib
import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum, unique
from typing import Any

from ormsgpack import Ext, packb

from sealpoint.codec._chunks import cut_bytes, cut_ids, cut_members
from sealpoint.codec._decode import Decoding, RuleTables
from sealpoint.codec._encode import Encoding
from sealpoint.codec._keys import is_plain_key
from sealpoint.codec._rules import TypeRule
from sealpoint.codec._wire import (
    SIZED_EXTENSIONS,
    Tag,
    array_header,
    leading_extension,
    map_header,
)
from sealpoint.errors import (
    BlobMismatch,
    BytesMalformed,
    DecodeLimitExceeded,
    EncodeLimitExceeded,
    UsageError,
    ValueNotAllowed,
)
from sealpoint.limits import ENCODE_DEPTH_MAX, Limits

__all__ = ["BlobId", "Get", "Put", "TreeDecoding", "TreeEncoding"]

BlobId = bytes | str
"""A blob's SHA-256: 32 bytes, or the same as 64 hexadecimal digits."""
Put = Callable[[bytes], BlobId]
Get = Callable[[BlobId], bytes]

_REFERENCE = struct.Struct(">BBIQ")
_ID_BYTES = 32
_INLINE_IDS = 8
_SPLIT_MEMBERS_BYTES = 8 * 1024
_SPLIT_BYTES_BYTES = 16 * 1024
_MANY_MEMBERS = 32
_SAMPLED_MEMBERS = 8
_OPENED_LEVELS = 3
_CHUNK_BYTES_MIN = 64
_SCALARS = frozenset({int, float, bool, type(None)})


@unique
class Stream(IntEnum):
    """What the joined chunks of a reference are."""

    VALUE = 0  # one whole encoding; only in a root blob, on its own
    LIST = 1
    MAP = 2
    TEXT = 3
    BYTES = 4


_STREAMS = {int(stream): stream for stream in Stream}


class TreeEncoding(Encoding):
    """One value on its way into blobs."""

    __slots__ = ("_expanded_bytes", "_level", "_put", "_seed")

    def __init__(
        self, rules: Mapping[type, TypeRule], limits: Limits, put: Put, seed: bytes
    ) -> None:
        super().__init__(rules, limits)
        if not isinstance(seed, bytes):
            raise UsageError(f"seed: expected bytes, found {type(seed).__name__}")
        self._put = put
        self._seed = int.from_bytes(hashlib.sha256(seed).digest()[:4], "big")
        self._level = 0
        self._expanded_bytes = 0

    def run_tree(self, value: Any) -> BlobId:
        """Put the value's blobs, children first.

        Returns:
            What `put` returned for the root blob.
        """
        self._check_whole(value)
        data = self._node(value)
        self._charge([data])
        if len(data) > _SPLIT_BYTES_BYTES:
            data = self._reference(Stream.VALUE, 0, cut_bytes(data, self._seed))
        root = self._put(data)
        _id_bytes(root, "put")
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
            self._check_depth(value, 0)

    def _node(self, value: Any) -> bytes:
        """Encode a value, long parts as references. Every part is encoded exactly once."""
        kind = type(value)
        if kind is list or kind is dict:
            self._level += 1
            if self._level <= self.limits.reference_depth_max:
                data = self._list(value) if kind is list else self._dict(value)
            else:
                data = self._plain(value)
            self._level -= 1
            return data
        if kind in (bytes, bytearray, memoryview):
            return self._byte_string(value)
        if kind is str and len(value) > _SPLIT_BYTES_BYTES // 4:
            return self._text(value)
        return self._plain(value)

    def _opened(self, value: list[Any] | dict[Any, Any]) -> bool:
        """Whether to look at members one by one: in Python, but cutting between them."""
        return self._level <= _OPENED_LEVELS or len(value) >= _MANY_MEMBERS

    def _list(self, value: list[Any]) -> bytes:
        header = array_header(len(value))
        if self._opened(value) and not _SCALARS.issuperset(map(type, value[:_SAMPLED_MEMBERS])):
            return self._joined(Stream.LIST, header, list(map(self._node, value)))
        return self._cut(Stream.LIST, header, len(value), self._plain(value))

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
        if sum(map(len, parts)) <= _SPLIT_MEMBERS_BYTES:
            return header + b"".join(parts)
        self._charge(parts)
        return self._reference(stream, len(parts), cut_members(parts, self._seed))

    def _cut(self, stream: Stream, header: bytes, count: int, data: bytes) -> bytes:
        """A container that is encoded whole, as a reference if it is long."""
        if len(data) <= _SPLIT_MEMBERS_BYTES:
            return data
        self._charge([data])
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
            size = self.limits.blob_bytes_max
            pieces = (chunk[start : start + size] for start in range(0, len(chunk), size))
            ids.extend(map(self._put_blob, pieces))
        self._expanded_bytes += total
        if self._expanded_bytes > self.limits.value_bytes_max:
            raise EncodeLimitExceeded(
                f"value: expected at most {self.limits.value_bytes_max} bytes (value_bytes_max), "
                f"found {self._expanded_bytes}"
            )
        levels = 0
        while len(ids) > _INLINE_IDS:
            ids = list(map(self._put_blob, cut_ids(ids)))
            levels += 1
        if levels > self.limits.tree_levels_max:
            raise EncodeLimitExceeded(
                f"value: expected at most {self.limits.tree_levels_max} index levels "
                f"(tree_levels_max), found {levels}"
            )
        fields = _REFERENCE.pack(stream, levels, count, total)
        return packb(Ext(Tag.REFERENCE, fields + b"".join(ids)))

    def _put_blob(self, blob: bytes | memoryview) -> bytes:
        return _id_bytes(self._put(bytes(blob)), "put")


class TreeDecoding(Decoding):
    """One value on its way back from blobs."""

    __slots__ = ("_expanded_bytes", "_foreign", "_get", "_hexadecimal", "_references", "_verified")

    def __init__(self, tables: RuleTables, limits: Limits, get: Get, *, verified: bool) -> None:
        super().__init__(tables, limits)
        self._get = get
        self._verified = verified
        self._hexadecimal = False
        self._references = 0
        self._expanded_bytes = 0
        self._foreign: Exception | None = None

    def run_tree(self, root: BlobId) -> Any:
        """The value below a root.

        Raises:
            BlobMismatch: A blob is missing or is not the one that was put.
            DecodeError: The blobs do not hold an allowed value.
        """
        self._hexadecimal = isinstance(root, str)
        # The root is small; the first long container on a path is what may be deep.
        self._deep_at = 0
        data = self._blob(_id_bytes(root, "root"))
        leading = leading_extension(data)
        if leading is not None and leading[0] == Tag.REFERENCE:
            payload = data[leading[1] :]
            if payload[:1] == bytes((Stream.VALUE,)):
                _, levels, _, total, ids = self._parsed(payload)
                data = self._collected(ids, levels, total)
        return self.run(data)

    def _named(self, exc: BaseException, tag: int) -> BaseException:
        """The blob store's own failures keep their names."""
        return exc if exc is self._foreign else super()._named(exc, tag)

    def _check_opening(self, payload: bytes, size: int, rule: TypeRule) -> None:
        """Fields that are a reference were counted there."""
        width = SIZED_EXTENSIONS.get(payload[size + 1])
        if (
            payload[size] != rule.opening[0]
            or width is None
            or payload[size + 2 + width] != Tag.REFERENCE
        ):
            super()._check_opening(payload, size, rule)

    def _parsed(self, payload: bytes) -> tuple[Stream, int, int, int, list[bytes]]:
        if len(payload) < _REFERENCE.size or payload[0] not in _STREAMS:
            raise BytesMalformed("reference: expected a stream, levels, a count and a length")
        code, levels, count, total = _REFERENCE.unpack_from(payload)
        ids = _split_ids(payload[_REFERENCE.size :])
        if levels > self.limits.tree_levels_max:
            raise DecodeLimitExceeded(
                f"reference: expected at most {self.limits.tree_levels_max} index levels "
                f"(tree_levels_max), found {levels}"
            )
        self._expanded_bytes += total
        if self._expanded_bytes > self.limits.value_bytes_max:
            raise DecodeLimitExceeded(
                f"value: expected at most {self.limits.value_bytes_max} bytes (value_bytes_max), "
                f"found {self._expanded_bytes}"
            )
        return _STREAMS[code], levels, count, total, ids

    def reference(self, payload: bytes) -> Any:
        """A long container or byte string, from its chunks."""
        stream, levels, count, total, ids = self._parsed(payload)
        if stream is Stream.VALUE:
            raise BytesMalformed("reference: expected a container or byte string")
        self._references += 1
        if self._references > self.limits.reference_depth_max + 1:
            raise DecodeLimitExceeded(
                f"reference: expected at most {self.limits.reference_depth_max} in one another "
                "(reference_depth_max), found more"
            )
        data = self._collected(ids, levels, total)
        value = self._stream_value(stream, count, data)
        self._references -= 1
        return value

    def _stream_value(self, stream: Stream, count: int, data: bytes) -> Any:
        if stream in (Stream.TEXT, Stream.BYTES):
            if count:
                raise BytesMalformed("reference: expected no members in a byte string")
            return data if stream is Stream.BYTES else data.decode()
        self.charge(data)
        is_list = stream is Stream.LIST
        header = array_header(count) if is_list else map_header(count)
        self._depth_max += 1  # a reference is a level of its own, beside the extensions
        deep_at = self._deep_at
        if self._references == 1:
            self._deep_at = self._depth + 1
        value = self.unpack(header + data)
        self._deep_at = deep_at
        self._depth_max -= 1
        if len(value) != count:
            raise BytesMalformed(f"map: expected {count} distinct keys, found {len(value)}")
        return value

    def _collected(self, ids: list[bytes], levels: int, total: int) -> bytes:
        """Walk the index levels down to the chunks and join those."""
        ids_max = 1 + total // _CHUNK_BYTES_MIN
        for _ in range(levels):
            below: list[bytes] = []
            for name in ids:
                below.extend(_split_ids(self._blob(name)))
                if len(below) > ids_max:
                    raise BytesMalformed(f"reference: expected at most {ids_max} chunks")
            ids = below
        chunks = []
        found = 0
        for name in ids:
            chunk = self._blob(name)
            found += len(chunk)
            if found > total or not chunk:
                raise BytesMalformed(f"reference: expected {total} bytes in full chunks")
            chunks.append(chunk)
        if found != total:
            raise BytesMalformed(f"reference: expected {total} bytes in its chunks")
        return b"".join(chunks)

    def _blob(self, name: bytes) -> bytes:
        """Fetch one blob and prove that it is the one that was asked for."""
        shown = name.hex()
        try:
            blob = self._get(shown if self._hexadecimal else name)
        except KeyError as exc:
            raise BlobMismatch(f"blob {shown[:12]}: expected it in the store, found none") from exc
        except Exception as exc:
            self._foreign = exc
            raise
        if not isinstance(blob, bytes):
            found = type(blob).__name__
            raise BlobMismatch(f"blob {shown[:12]}: expected bytes, found {found}")
        if len(blob) > self.limits.blob_bytes_max:
            raise DecodeLimitExceeded(
                f"blob {shown[:12]}: expected at most {self.limits.blob_bytes_max} bytes "
                f"(blob_bytes_max), found {len(blob)}"
            )
        if not self._verified and hashlib.sha256(blob).digest() != name:
            raise BlobMismatch(f"blob {shown[:12]}: expected the bytes that were put, found others")
        return blob


def _id_bytes(name: object, where: str) -> bytes:
    """The bytes of an id in either form that callers may use."""
    if isinstance(name, str) and len(name) == 2 * _ID_BYTES:
        with contextlib.suppress(ValueError):
            raw = bytes.fromhex(name)
            if raw.hex() == name:
                return raw
    if isinstance(name, bytes) and len(name) == _ID_BYTES:
        return name
    raise UsageError(
        f"{where}: expected a blob's SHA-256 (32 bytes, or 64 hexadecimal digits), "
        f"found {type(name).__name__} of another form"
    )


def _split_ids(data: bytes) -> list[bytes]:
    if not data or len(data) % _ID_BYTES:
        raise BytesMalformed(f"blob ids: expected a multiple of {_ID_BYTES} bytes")
    return [data[place : place + _ID_BYTES] for place in range(0, len(data), _ID_BYTES)]
