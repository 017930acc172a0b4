# SPDX-License-Identifier: Apache-2.0
"""From bytes to values, for untrusted bytes.

Guarantees: only types of the built-in list and of the registry's rules are built; nothing is
imported, called, opened or looked up by a name from the data; every length is checked before it is
used. Refuses: unknown tags, names, versions and shapes, trailing bytes, and anything that exceeds a
limit. Left to others: whether the bytes are genuine (the store proves that first).

The native engine walks plain data and passes each extension to the hook. It ignores bytes after the
value and swallows the hook's exceptions. Therefore (1) each payload is decoded as the first of two
members, where the second is a random mark that was drawn when the process started and that data
cannot know, and (2) the hook stores the first exception separately.

`TreeDecoding` reads from blobs: it joins the chunks of a reference, puts the container's header
before them and decodes as usual. Every blob is proven to be the requested one, unless the caller's
`get` does that.
"""

import hashlib
import io
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ormsgpack
from ormsgpack import unpackb

from sealpoint.codec._arrays import check_raw
from sealpoint.codec._bounds import DECODING, Bounds
from sealpoint.codec._builtin_types import DECODERS
from sealpoint.codec._encoding_memo import Block, Roll, TreeMemo
from sealpoint.codec._msgpack import UNCHECKED_BYTES_MAX, is_deep
from sealpoint.codec._type_rules import (
    LABEL_BYTES,
    Label,
    TypeRule,
    UntypedValue,
    make_rule,
    unknown_name,
)
from sealpoint.codec._wire_format import (
    CHUNK_BYTES_MIN,
    SIZED_EXTENSIONS,
    TIMESTAMP,
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
from sealpoint.errors import (
    BlobMismatch,
    BytesMalformed,
    DecodeError,
    DecodeLimitExceeded,
    UnknownType,
)
from sealpoint.limits import DECODE_DEPTH_MAX, ENCODE_DEPTH_MAX, Limits

_MARK = int.from_bytes(os.urandom(8), "big") | 1 << 63
_MARK_ENCODED = b"\xcf" + _MARK.to_bytes(8, "big")
_PAIR = b"\x92"
_OPTIONS = ormsgpack.OPT_DATETIME_AS_TIMESTAMP_EXT
_TYPED = int(Tag.TYPED)
_UNCOPIED_TAGS = (Tag.ARRAY, Tag.TENSOR)


class RuleTables:
    """A registry's rules, by the keys that data can contain."""

    __slots__ = ("by_label", "by_name", "by_type", "untyped")

    def __init__(self) -> None:
        self.by_label: dict[bytes, TypeRule] = {}
        self.by_name: dict[str, TypeRule] = {}
        self.by_type: dict[type, TypeRule] = {}
        self.untyped: tuple[str, ...] = ()
        """The prefixes of the names of types to show without a rule."""

    def showing(self, beginnings: tuple[str, ...]) -> "RuleTables":
        """Return a copy that shows types without a rule whose names have these prefixes."""
        copied = RuleTables()
        copied.by_label = dict(self.by_label)
        copied.by_name = dict(self.by_name)
        # UntypedValue is encoded in order to compare two of them; no stored name leads to it.
        copied.by_type = {UntypedValue: make_rule(UntypedValue, name="untyped"), **self.by_type}
        copied.untyped = beginnings
        return copied


class Decoding:
    """The decoding of one value. Used once, by one thread."""

    __slots__ = (
        "_deep_at",
        "_depth",
        "_depth_max",
        "_error",
        "_tables",
        "_walks_depth",
        "added",
        "bounds",
        "limits",
    )

    def __init__(self, tables: RuleTables, limits: Limits) -> None:
        self._tables = tables
        self._depth = 0
        self._depth_max = limits.extension_depth_max + 1  # the whole value is one more level
        self._deep_at = 1  # the one level on a path that may be nested as deep as the engine allows
        self._walks_depth = limits.depth_max < ENCODE_DEPTH_MAX
        self.bounds = Bounds(tables.by_type, limits, DECODING)
        self._error: BaseException | None = None
        self.added: dict[str, tuple[str, ...]] = {}
        """By rule name, the fields that got their defaults because they were not stored."""
        self.limits = limits

    def run(self, data: bytes) -> Any:
        """Decode a value.

        Raises:
            DecodeError: `data` is not the encoding of an allowed value.
        """
        self.bounds.check_whole(data)
        leading = leading_extension(data)
        if leading is None or leading[0] == TIMESTAMP % 256:
            return self.unpack(data)
        self._depth = 1
        self._deep_at *= 2  # the engine begins inside this extension
        tag, start = leading
        payload = memoryview(data)[start:] if tag in _UNCOPIED_TAGS else data[start:]
        return self._hook(tag, payload)

    def unpack(self, *payload: bytes | memoryview) -> Any:
        """Decode the payload of an extension, or the whole value, which may come in parts."""
        marked = b"".join((_PAIR, *payload, _MARK_ENCODED))
        self.check_level()
        self._depth += 1
        if len(marked) > UNCHECKED_BYTES_MAX:
            self._check_nesting(marked)
        try:
            parts: list[Any] = unpackb(marked, ext_hook=self._hook, option=_OPTIONS)
        except ormsgpack.MsgpackDecodeError as exc:
            failure = self._refused(exc)
            raise failure from failure.__cause__
        mark = parts.pop()
        if type(mark) is not int or mark != _MARK:  # anything else is not even compared
            raise BytesMalformed("value: there are bytes after its end")
        self._depth -= 1  # a failed decoding never continues, so no try is needed
        if self._walks_depth:
            self.bounds.check_depth(parts[0])
        return parts[0]

    def unpack_into(
        self, payload: bytes | memoryview, size_bytes: int, allocate: Callable[[], memoryview]
    ) -> None:
        """Decode a byte string of exactly this length into memory from `allocate`."""
        raw = self.unpack(payload)
        check_raw(raw, size_bytes)
        allocate()[:] = raw

    def check_level(self) -> None:
        """Refuse one more level of extensions if there are too many already."""
        if self._depth >= self._depth_max:
            raise self.bounds.too_many_extensions()

    def _check_nesting(self, marked: bytes) -> None:
        """Refuse bytes that would make the engine recurse too deeply."""
        if self._depth != self._deep_at and is_deep(marked):
            raise self.bounds.too_deep()

    def _refused(self, exc: Exception) -> BaseException:
        """Return the cause of the engine's refusal: usually the exception that a hook stored."""
        if self._error is not None:
            return self._error
        if "Recursion limit" in str(exc):
            return DecodeLimitExceeded(
                f"value: it has more than {DECODE_DEPTH_MAX} lists and dicts in one another "
                "(DECODE_DEPTH_MAX)"
            )
        return BytesMalformed(f"value: not valid MessagePack: {exc}")

    def _hook(self, tag: int, payload: Any) -> Any:
        """Decode one extension, called by the engine. The first exception is stored."""
        try:
            if tag == _TYPED:
                return self._typed(payload)
            return _TABLE[tag](payload, self)
        except BaseException as exc:
            failure = self._named(exc, tag)
            if self._error is None:
                self._error = failure
            if failure is exc:
                raise
            raise failure from None

    def _named(self, exc: BaseException, tag: int) -> BaseException:
        """Replace exceptions of Python's constructors by our own; leave any other unchanged."""
        if tag not in _TABLE:
            return UnknownType(
                f"extension: expected a known tag, found {tag}",
                hint="The format has no such tag: do not use these bytes.",
            )
        if isinstance(exc, RecursionError):
            return DecodeLimitExceeded("value: expected less nesting than the interpreter allows")
        if isinstance(exc, ValueError | TypeError | ArithmeticError | LookupError | struct.error):
            found = type(exc).__name__
            return BytesMalformed(f"extension {tag}: expected a valid payload, found {found}")
        return exc

    def reference(self, payload: bytes) -> Any:  # noqa: ARG002
        """Refuse a reference of the blob tree, which a flat encoding cannot hold."""
        raise UnknownType("extension: expected no reference outside of a tree")

    def _typed(self, payload: bytes) -> Any:
        """Decode a value of an application type: only the complete label finds a rule."""
        size = LABEL_BYTES + payload[0]
        rule = self._tables.by_label.get(payload[:size])
        if rule is None:
            return self._other_version(payload, size)
        try:
            if not payload.startswith(rule.opening, size):
                self._check_opening(payload, size, rule)
            marked = rule.marked + payload[size + 1 :] + _MARK_ENCODED
            if self._depth >= self._depth_max:
                self.check_level()
            self._depth += 1
            if len(marked) > UNCHECKED_BYTES_MAX:
                self._check_nesting(marked)
            body = unpackb(marked, ext_hook=self._hook, option=_OPTIONS)
            mark = body.pop()
            if type(mark) is not int or mark != _MARK:
                raise BytesMalformed("value: there are bytes after its end")
            self._depth -= 1
            if self._walks_depth:
                self.bounds.check_depth(body)
            return rule.from_body(body)
        except (ormsgpack.MsgpackDecodeError, DecodeError) as exc:
            failure = self._within(exc, rule)
            raise failure from failure.__cause__

    def _within(self, exc: Exception, rule: TypeRule) -> BaseException:
        """Return the actual cause of an error, with the type of the value around it."""
        failure = exc if isinstance(exc, DecodeError) else self._refused(exc)
        if isinstance(failure, DecodeError):
            failure.within.append(rule.name)
        return failure

    def _check_opening(self, payload: bytes, size: int, rule: TypeRule) -> None:  # noqa: ARG002
        """Refuse a wrong number of fields: one is repeated or missing."""
        raise BytesMalformed("fields: expected each exactly once")

    def _other_version(self, payload: bytes, size: int) -> Any:
        label = Label.parse(payload)
        rule = self._tables.by_name.get(label.name)
        if rule is None:
            if not label.name.startswith(self._tables.untyped):
                raise unknown_name(label.name)
            return UntypedValue.of(label.name, label.version, self.unpack(payload[size:]))
        if label.version != rule.version:
            rule.check_version(label)
        with _inside(rule):
            body = self.unpack(payload[size:])
        if label.version != rule.version:
            with _inside(rule):
                return rule.from_body(rule.upgrade_body(label.version, body))
        added = rule.fields_added(label.shape, body)
        with _inside(rule):
            return self._older_shape(payload, size, rule, body, added)

    def _older_shape(
        self, payload: bytes, size: int, rule: TypeRule, body: Any, added: tuple[str, ...]
    ) -> Any:
        """Decode a value from before the class got more fields, or had them in another order."""
        opening = rule.opening[:1] + map_header(len(body[0]))
        if not payload.startswith(opening, size):
            self._check_opening(payload, size, rule)
        value = rule.from_body(rule.kind.upgrade_body(body[0], body))
        if added:
            self.added[rule.name] = added
        return value


@contextmanager
def _inside(rule: TypeRule) -> Iterator[None]:
    """Add the name of a rule to any failure inside its value."""
    try:
        yield
    except DecodeError as exc:
        exc.within.append(rule.name)
        raise


_TABLE: dict[int, Callable[[Any, Any], Any]] = {
    **DECODERS,
    _TYPED: lambda payload, session: session._typed(payload),  # noqa: SLF001
    int(Tag.REFERENCE): lambda payload, session: session.reference(payload),
}


_BATCH_IDS = 128
# Longer data is collected chunk by chunk, so that it is never in memory twice.
_JOINED_AT_ONCE_BYTES = 1024 * 1024
_REFERENCE_BYTES_MAX = 1024
_BYTES_REFERENCE = bytes((Tag.REFERENCE, Stream.BYTES))


class TreeDecoding(Decoding):
    """The decoding of one value from blobs."""

    __slots__ = (
        "_foreign",
        "_get",
        "_get_many",
        "_hexadecimal",
        "_memo",
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
        memo: TreeMemo | None = None,
    ) -> None:
        super().__init__(tables, limits)
        self._memo = None if self._walks_depth else memo
        self._get = get
        self._verified = verified
        self._get_many = get_many
        self._hexadecimal = False
        self._references = 0
        self._foreign: Exception | None = None

    def run_tree(self, root: BlobId) -> Any:
        """Decode the value below a root.

        Raises:
            BlobMismatch: A blob is missing or has changed.
            DecodeError: The blobs do not hold an allowed value.
        """
        self._hexadecimal = isinstance(root, str)
        # The root is small; the first long container on a path may be deep.
        self._deep_at = 0
        data = self._blob(id_bytes(root, "root"))
        leading = leading_extension(data)
        if leading is not None and leading[0] == Tag.REFERENCE:
            payload = data[leading[1] :]
            if payload[:1] == bytes((Stream.VALUE,)):
                _, levels, _, total, ids = self.bounds.parse_reference(payload)
                data = self._collected(ids, levels, total)
        return self.run(data)

    def _named(self, exc: BaseException, tag: int) -> BaseException:
        """Keep the blob store's own exceptions unchanged."""
        return exc if exc is self._foreign else super()._named(exc, tag)

    def _check_opening(self, payload: bytes, size: int, rule: TypeRule) -> None:
        """Accept fields that are a reference: they were counted there."""
        width = SIZED_EXTENSIONS.get(payload[size + 1])
        if (
            payload[size] != rule.opening[0]
            or width is None
            or payload[size + 2 + width] != Tag.REFERENCE
        ):
            super()._check_opening(payload, size, rule)

    def reference(self, payload: bytes) -> Any:
        """Decode a long container or byte string from its chunks."""
        stream, levels, count, total, ids = self.bounds.parse_reference(payload)
        if stream is Stream.VALUE:
            raise BytesMalformed("reference: expected a container or byte string")
        self._references += 1
        self.bounds.check_references(self._references)
        roll = None if self._memo is None else self._memo.roll_of(payload)
        if self._memo is not None and roll is not None and self._memo.again(roll.names):
            value: Any = self._unrolled(roll)
        else:
            value = self._stream_value(stream, count, self._collected(ids, levels, total))
        self._references -= 1
        return value

    def unpack_into(
        self, payload: bytes | memoryview, size_bytes: int, allocate: Callable[[], memoryview]
    ) -> None:
        """Do the same; the chunks of a long one are copied directly to their places."""
        data = bytes(payload) if len(payload) <= _REFERENCE_BYTES_MAX else b""
        leading = leading_extension(data)
        if leading is None or data[leading[1] - 1 : leading[1] + 1] != _BYTES_REFERENCE:
            super().unpack_into(payload, size_bytes, allocate)
            return
        self.check_level()
        _, levels, count, total, ids = self.bounds.parse_reference(data[leading[1] :])
        self._references += 1
        self.bounds.check_references(self._references)
        if count or total != size_bytes:
            raise BytesMalformed(f"array: expected {size_bytes} bytes, found {total} bytes")
        memory, place = allocate(), 0
        for blobs in self._chunks(ids, levels, total):
            for blob in blobs:
                memory[place : place + len(blob)] = blob
                place += len(blob)
        self._references -= 1

    def _unrolled(self, roll: Roll) -> list[Any]:
        """Build a list that was written here, from the engine's packed form."""
        members: list[Any] = []
        for block in roll.blocks:
            if isinstance(block, Block):
                members += self._block(block)
            elif block is not None:
                members += self._stream_value(Stream.LIST, len(block), b"".join(block))
        return members

    def _block(self, block: Block) -> list[Any]:
        """Build the members of a block, with the costs that a list and its objects would have."""
        self.bounds.check_nodes([block.packed])
        self._depth_max += 1
        for _ in range(2):
            self.check_level()
            self._depth += 1
        try:
            fields = unpackb(block.packed, ext_hook=self._hook, option=_OPTIONS)
        except ormsgpack.MsgpackDecodeError as exc:
            failure = self._refused(exc)
            raise failure from failure.__cause__
        self._depth -= 2
        self._depth_max -= 1
        return block.built(fields, self._tables.by_type)

    def _stream_value(self, stream: Stream, count: int, data: bytes) -> Any:
        if stream in (Stream.TEXT, Stream.BYTES):
            if count:
                raise BytesMalformed("reference: expected no members in a byte string")
            return data if stream is Stream.BYTES else data.decode()
        self.bounds.check_nodes([data])
        is_list = stream is Stream.LIST
        header = array_header(count) if is_list else map_header(count)
        self._depth_max += 1  # a reference is a level of its own, in addition to the extensions
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
        """Return the joined chunks of a reference."""
        chunks: list[bytes] = []
        joined = io.BytesIO()
        keep = chunks.extend if total <= _JOINED_AT_ONCE_BYTES else joined.writelines
        for blobs in self._chunks(ids, levels, total):
            keep(blobs)
        return b"".join(chunks) if chunks else joined.getvalue()

    def _chunks(self, ids: list[bytes], levels: int, total: int) -> Iterator[Sequence[bytes]]:
        """Walk the index levels down to the chunks, which must have exactly `total` bytes."""
        ids_max = 1 + total // CHUNK_BYTES_MIN
        for _ in range(levels):
            below: list[bytes] = []
            for blobs in self._batches(ids):
                for blob in blobs:
                    below.extend(split_ids(blob))
                    if len(below) > ids_max:
                        raise BytesMalformed(f"reference: expected at most {ids_max} chunks")
            ids = below
        found = 0
        for blobs in self._batches(ids):
            found += sum(map(len, blobs))
            if found > total or not all(blobs):
                raise BytesMalformed(f"reference: expected {total} bytes in full chunks")
            yield blobs
        if found != total:
            raise BytesMalformed(f"reference: expected {total} bytes in its chunks")

    def _batches(self, ids: list[bytes]) -> Iterator[Sequence[bytes]]:
        """Yield the blobs of these ids, several at a time if the store supports that."""
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
        """Fetch one blob and prove that it is the requested one."""
        try:
            blob = self._get(name.hex() if self._hexadecimal else name)
        except KeyError as exc:
            shown = name.hex()[:12]
            raise BlobMismatch(f"blob {shown}: it is missing") from exc
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
            raise BlobMismatch(f"blob {shown}: its bytes do not have that hash")
        return blob
