# SPDX-License-Identifier: Apache-2.0
"""A value on its way back from blobs.

A reader joins the chunks of a reference, puts the container's header in front and decodes as
usual. Every blob is proven to be the one that was asked for, unless the caller's `get` does that.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from sealpoint.codec._decode import Decoding, RuleTables
from sealpoint.codec._memo import ObjectMemos
from sealpoint.codec._rules import TypeRule
from sealpoint.codec._wire import (
    CHUNK_BYTES_MIN,
    SIZED_EXTENSIONS,
    BlobId,
    Get,
    GetMany,
    Stream,
    Tag,
    array_header,
    id_bytes,
    leading_extension,
    map_header,
    split_ids,
)
from sealpoint.errors import BlobMismatch, BytesMalformed, DecodeLimitExceeded
from sealpoint.limits import Limits

_BATCH_IDS = 128


class TreeDecoding(Decoding):
    """One value on its way back from blobs."""

    __slots__ = (
        "_foreign",
        "_get",
        "_get_many",
        "_hexadecimal",
        "_objects",
        "_references",
        "_verified",
    )

    def __init__(
        self,
        tables: RuleTables,
        limits: Limits,
        get: Get,
        *,
        verified: bool,
        get_many: GetMany | None,
        objects: ObjectMemos | None = None,
    ) -> None:
        super().__init__(tables, limits)
        self._objects = None if self._walks_depth else objects
        self._get = get
        self._verified = verified
        self._get_many = get_many
        self._hexadecimal = False
        self._references = 0
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
        data = self._blob(id_bytes(root, "root"))
        leading = leading_extension(data)
        if leading is not None and leading[0] == Tag.REFERENCE:
            payload = data[leading[1] :]
            if payload[:1] == bytes((Stream.VALUE,)):
                _, levels, _, total, ids = self.bounds.parse_reference(payload)
                data = self._collected(ids, levels, total)
        if self._objects is not None:
            self._objects.forget_objects()
        return self.run(data)

    def _known(self, payload: bytes) -> Any:
        if self._objects is None or self._depth >= self._depth_max:
            return None
        return self._objects.value_of(payload)

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

    def reference(self, payload: bytes) -> Any:
        """A long container or byte string, from its chunks."""
        stream, levels, count, total, ids = self.bounds.parse_reference(payload)
        if stream is Stream.VALUE:
            raise BytesMalformed("reference: expected a container or byte string")
        self._references += 1
        self.bounds.check_references(self._references)
        data = self._collected(ids, levels, total)
        value = self._stream_value(stream, count, data)
        self._references -= 1
        return value

    def _stream_value(self, stream: Stream, count: int, data: bytes) -> Any:
        if stream in (Stream.TEXT, Stream.BYTES):
            if count:
                raise BytesMalformed("reference: expected no members in a byte string")
            return data if stream is Stream.BYTES else data.decode()
        self.bounds.check_nodes([data])
        is_list = stream is Stream.LIST
        header = array_header(count) if is_list else map_header(count)
        self._depth_max += 1  # a reference is a level of its own, beside the extensions
        deep_at = self._deep_at
        if self._references == 1:
            self._deep_at = self._depth + 1
        value = self.unpack(header, data)
        self._deep_at = deep_at
        self._depth_max -= 1
        if len(value) != count:
            raise BytesMalformed(f"map: expected {count} distinct keys, found {len(value)}")
        return value

    def _collected(self, ids: list[bytes], levels: int, total: int) -> bytes:
        """Walk the index levels down to the chunks and join those."""
        ids_max = 1 + total // CHUNK_BYTES_MIN
        for _ in range(levels):
            below: list[bytes] = []
            for blobs in self._batches(ids):
                for blob in blobs:
                    below.extend(split_ids(blob))
                    if len(below) > ids_max:
                        raise BytesMalformed(f"reference: expected at most {ids_max} chunks")
            ids = below
        chunks: list[bytes] = []
        found = 0
        for blobs in self._batches(ids):
            found += sum(map(len, blobs))
            if found > total or not all(blobs):
                raise BytesMalformed(f"reference: expected {total} bytes in full chunks")
            chunks.extend(blobs)
        if found != total:
            raise BytesMalformed(f"reference: expected {total} bytes in its chunks")
        return b"".join(chunks)

    def _batches(self, ids: list[bytes]) -> Iterator[Sequence[bytes]]:
        """The blobs of these ids, several at a time where the store can fetch them so."""
        if self._get_many is None or len(ids) == 1:
            for name in ids:
                yield (self._blob(name),)
            return
        for start in range(0, len(ids), _BATCH_IDS):
            batch = ids[start : start + _BATCH_IDS]
            try:
                blobs = self._get_many(batch)
            except Exception as exc:
                self._foreign = exc
                raise
            yield list(map(self._checked, batch, blobs))

    def _blob(self, name: bytes) -> bytes:
        """Fetch one blob and prove that it is the one that was asked for."""
        try:
            blob = self._get(name.hex() if self._hexadecimal else name)
        except KeyError as exc:
            shown = name.hex()[:12]
            raise BlobMismatch(f"blob {shown}: expected it in the store, found none") from exc
        except Exception as exc:
            self._foreign = exc
            raise
        return self._checked(name, blob)

    def _checked(self, name: bytes, blob: object) -> bytes:
        if self._verified and isinstance(blob, bytes) and len(blob) <= self.limits.blob_bytes_max:
            return blob
        shown = name.hex()[:12]
        if not isinstance(blob, bytes):
            raise BlobMismatch(f"blob {shown}: expected bytes, found {type(blob).__name__}")
        if len(blob) > self.limits.blob_bytes_max:
            raise DecodeLimitExceeded(
                f"blob {shown}: expected at most {self.limits.blob_bytes_max} bytes "
                f"(blob_bytes_max), found {len(blob)}"
            )
        if hashlib.sha256(blob).digest() != name:
            raise BlobMismatch(f"blob {shown}: expected the bytes that were put, found others")
        return blob
