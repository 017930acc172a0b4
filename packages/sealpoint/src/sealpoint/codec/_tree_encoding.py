# SPDX-License-Identifier: Apache-2.0
"""From values to blobs, so that unchanged parts are not written again.

A long container or byte string is cut into chunks (`_chunking`) and replaced by a reference. Blobs
are put before the blob that names them. Short values are encoded at the engine's full speed, as in
the flat encoding: nothing in them is long enough for a reference.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, cast

from ormsgpack import Ext, Fragment, packb

from sealpoint.codec._chunking import (
    CutBytes,
    bytes_target,
    id_ends,
    member_ends,
    members_target,
    recut,
)
from sealpoint.codec._dict_keys import is_plain_key
from sealpoint.codec._encode import Encoding
from sealpoint.codec._encoding_memo import BLOCK_MEMBERS, Block, ChunkedList, TreeMemo
from sealpoint.codec._type_rules import TypeRule
from sealpoint.codec._wire_format import (
    ID_BYTES,
    REFERENCE,
    BlobId,
    Put,
    Stream,
    Tag,
    array_header,
    id_bytes,
    leading_extension,
    map_header,
)
from sealpoint.errors import EncodeError, UsageError, ValueNotAllowed
from sealpoint.limits import ENCODE_DEPTH_MAX, Limits

_INLINE_IDS = 8
_SPLIT_MEMBERS_BYTES = 8 * 1024
_SPLIT_BYTES_BYTES = 16 * 1024
_MANY_MEMBERS = 32
_SHORT_NODES = 64
_TYPED_BYTES = 512
"""The assumed size of an application's value before it is encoded."""
_TYPED_BYTES_LONG = _SPLIT_MEMBERS_BYTES // 2 + 1
"""The same inside a long value, where several of them are likely long."""
_SAMPLED_MEMBERS = 8
_OPENED_LEVELS = 3
_SCALARS = frozenset({int, float, bool, type(None)})
_LENGTHS = frozenset({str, bytes, bytearray})
# A memoryview may be released, which its encoding refuses.
_SUPPOSED_BYTES = {memoryview: _SPLIT_MEMBERS_BYTES + 1}


class TreeEncoding(Encoding):
    """The encoding of one value into blobs."""

    __slots__ = ("_fresh", "_level", "_long", "_memo", "_names", "_put", "_seed", "_short")

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
        self._names: list[bytes] = []  # of every blob so far
        self._fresh: list[bytes] = []  # of those that were put

    def run_tree(self, value: Any) -> BlobId:
        """Put the value's blobs, children first.

        Returns:
            The result of `put` for the root blob.
        """
        self._check_whole(value)
        memo = self._memo
        if memo is not None:
            memo.begin()
        # A value that was long is usually still long; if not, the bytes are the same.
        data = self._node(value, is_long=memo is not None and memo.was_long)
        self.bounds.check_nodes([data])
        if len(data) > _SPLIT_BYTES_BYTES:
            data = self._reference(Stream.VALUE, 0, memoryview(data))
        root = self._put(data)
        id_bytes(root, "put")
        if memo is not None:
            memo.end()
        return root

    def pack(self, value: Any) -> bytes:
        """Encode the payload of an extension, with references for its long parts."""
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
        """Encode an array of encoded members, or a reference to it."""
        if self._level >= self.limits.reference_depth_max:
            return super().pack_items(parts)
        return self._joined(Stream.LIST, array_header(len(parts)), parts)

    def _check_whole(self, value: Any) -> None:
        """Check a lowered depth limit from the top, since members are encoded one by one here."""
        if self.limits.depth_max < ENCODE_DEPTH_MAX:
            self.bounds.check_depth(value)

    def _node(self, value: Any, *, is_long: bool = False) -> bytes:
        """Encode a value, long parts as references; the caller may know that it is long."""
        kind = type(value)
        if kind is list or kind is dict:
            return self._long_container(value) if is_long else self._container(value)
        rule = self._rules.get(kind)
        if rule is not None and kind not in self._long:
            data = self._at_full_speed(value, rule)
            if data is not None:
                return data
            # Others of its type are probably as long: do not try them in vain.
            self._long.add(kind)
        if kind in (bytes, bytearray, memoryview):
            return self._byte_string(value)
        if kind is str and len(value) > _SPLIT_BYTES_BYTES // 4:
            return self._text(value)
        return self._plain(value)

    def _container(self, value: list[Any] | dict[Any, Any]) -> bytes:
        # The whole is long, so it probably contains several of the application's values.
        if _seems_short(value, typed_bytes=_TYPED_BYTES_LONG):
            data = self._at_full_speed(value, None)
            if data is not None:
                return data
        return self._long_container(value)

    def _long_container(self, value: list[Any] | dict[Any, Any]) -> bytes:
        self._level += 1
        if self._level > self.limits.reference_depth_max:
            data = self._plain(value)
        else:
            data = self._dict(value) if isinstance(value, dict) else self._list(value)
        self._level -= 1
        return data

    def _at_full_speed(self, value: Any, rule: TypeRule | None) -> bytes | None:
        """Return the flat encoding if it is short, else None.

        Nothing in a short one is long enough for a reference, so the bytes are the same.
        """
        short = self._short
        try:
            return short.run_short(value, rule, self._depth, _SPLIT_MEMBERS_BYTES)
        except BaseException:
            self.error, self.culprit = short.error, short.culprit
            raise

    def _list(self, value: list[Any]) -> bytes:
        # A snapshot: another OS thread may add or remove members during the encoding.
        value = value[:]
        header = array_header(len(value))
        if _is_opened(value, self._level) and not _SCALARS.issuperset(
            map(type, value[:_SAMPLED_MEMBERS])
        ):
            memo, rule = self._memo, self._rules.get(type(value[0]))
            if memo is None or rule is None or rule.form is None or not self.has_room():
                return self._joined(Stream.LIST, header, self._members(value))
            return self._rolled(value, header, memo)
        return self._cut(Stream.LIST, header, len(value), self._plain(value))

    def _members(self, value: list[Any]) -> list[bytes]:
        """Encode the members of a list, those of application types at full speed."""
        if not self.has_room():
            return list(map(self._node, value))
        short = self._short
        try:
            found = short.run_members(value, self._long, self._depth, _SPLIT_MEMBERS_BYTES)
        except BaseException:
            self.error, self.culprit = short.error, short.culprit
            raise
        return [
            part if part is not None else self._node(member)
            for member, part in zip(value, found, strict=True)
        ]

    def _rolled(self, value: list[Any], header: bytes, memo: TreeMemo) -> bytes:
        """Encode a list of objects by blocks, each compared with the earlier one at its place."""
        first, fresh, short = len(self._names), len(self._fresh), self._short
        now, before = memo.begin_list()
        groups: list[list[bytes]] = []
        total = same = 0  # the number of unchanged members at the beginning
        for place, start in enumerate(range(0, len(value), BLOCK_MEMBERS)):
            members = value[start : start + BLOCK_MEMBERS]
            known = before.blocks[place] if place < len(before.blocks) else None
            try:
                block = short.run_block(members, known, self._depth, _SPLIT_MEMBERS_BYTES)
            except BaseException:
                self.error, self.culprit = short.error, short.culprit
                raise
            group = self._members(members) if block is None else self._block_parts(block, members)
            groups.append(group)
            size_bytes = sum(map(len, group)) if block is None or block.long else block.size_bytes
            total += size_bytes
            has_room = memo.has_room_for(size_bytes, len(members))
            kept = now.add(block, group, before, has_room=has_room)
            same += kept if same == start else 0
        if len(header) + total <= _SPLIT_MEMBERS_BYTES:
            return header + b"".join(chain.from_iterable(groups))
        self.bounds.check_members(groups, total)
        target = members_target(total)
        ends, ids = memo.kept_of(before.cut, same, target, self._seed)
        # All groups have the same size, and those inside unchanged chunks can be skipped.
        done = ends[-1] // BLOCK_MEMBERS if ends else 0
        parts = [*chain.from_iterable(groups[done:])]
        now.cut = self._put_members(parts, target, ends, ids, done * BLOCK_MEMBERS)
        data = self._refer(Stream.LIST, len(value), total, now.cut.ids)
        now.names, now.fresh = self._names[first:], self._fresh[fresh:]
        leading = leading_extension(data)
        now.reference = b"" if leading is None else data[leading[1] :]
        return data

    def _block_parts(self, block: Block, members: list[Any]) -> list[bytes]:
        """Return the encoded members of a block; long ones are cut, from their packed form."""
        parts = block.parts[:]
        for place in block.long:
            try:
                parts[place] = self._node(block.copy_of(place, self._rules))
            except EncodeError:
                self.culprit = members[place]
                raise
        return cast("list[bytes]", parts)

    def _dict(self, value: dict[Any, Any]) -> bytes:
        if not all(map(is_plain_key, value)):
            return self._plain(value)
        header = map_header(len(value))
        if _is_opened(value, self._level):
            # Usually all is short except for a list or two: then one call of the engine does the
            # rest.
            around = {
                key: member if _is_short(member) else Fragment(self._node(member, is_long=True))
                for key, member in value.items()
            }
            if (data := self._at_full_speed(around, None)) is not None:
                return data
            parts = [packb(key) + self._node(member) for key, member in around.items()]
            return self._joined(Stream.MAP, header, parts)
        return self._cut(Stream.MAP, header, len(value), self._plain(value))

    def _joined(self, stream: Stream, header: bytes, parts: Sequence[bytes]) -> bytes:
        """Encode a container of encoded members, as a reference if it is long."""
        total = sum(map(len, parts))
        if len(header) + total <= _SPLIT_MEMBERS_BYTES:
            return header + b"".join(parts)
        self.bounds.check_nodes(parts)
        parts, memo, target = list(parts), self._memo, members_target(total)
        kept = ([], []) if memo is None else memo.kept(parts, target, self._seed)
        cut = self._put_members(parts, target, *kept)
        if memo is not None:
            memo.remember(cut, total)
        return self._refer(stream, len(parts), total, cut.ids)

    def _put_members(
        self, parts: list[bytes], target: int, ends: list[int], ids: list[bytes], start: int = 0
    ) -> ChunkedList:
        """Put members in chunks, except those that the last encoding has put already.

        Args:
            parts: The members, from `start` on.
            target: The target chunk size.
            ends: Where the unchanged chunks end; the others are added.
            ids: The ids of the unchanged chunks; the others are added.
            start: The number of members to skip, all of them in unchanged chunks.
        """
        self._names += ids
        first = ends[-1] - start if ends else 0
        put, most = self._put_blob, self.limits.blob_bytes_max
        for end in member_ends(parts, self._seed, target, first):
            chunk = parts[first] if end - first == 1 else b"".join(parts[first:end])
            ids.extend(map(put, _pieces(chunk, most)) if len(chunk) > most else (put(chunk),))
            ends.append(start + end)
            first = end
        return ChunkedList([] if start else parts, ends, ids, target, self._seed)

    def _cut(self, stream: Stream, header: bytes, count: int, data: bytes) -> bytes:
        """Return a container that was encoded as a whole, as a reference if it is long."""
        if len(data) <= _SPLIT_MEMBERS_BYTES:
            return data
        self.bounds.check_nodes([data])
        body = memoryview(data)[len(header) :]
        return self._reference(stream, count, body)

    def _byte_string(self, value: bytes | bytearray | memoryview) -> bytes:
        try:
            view = memoryview(value)
        except ValueError as exc:
            raise ValueNotAllowed("memoryview: expected one that is not released") from exc
        if view.nbytes <= _SPLIT_BYTES_BYTES:
            return packb(bytes(value))
        view = view.cast("B") if view.c_contiguous else memoryview(view.tobytes())
        return self._reference(Stream.BYTES, 0, view)

    def _text(self, value: str) -> bytes:
        if not is_plain_key(value):
            return self._plain(value)
        data = value.encode()
        if len(data) <= _SPLIT_BYTES_BYTES:
            return packb(value)
        return self._reference(Stream.TEXT, 0, memoryview(data))

    def _reference(self, stream: Stream, count: int, view: memoryview) -> bytes:
        """Put bytes in chunks, except those that the last encoding has put already."""
        target, memo = bytes_target(len(view)), self._memo
        before = None if memo is None else memo.byte_cuts.before()
        ends = [0]
        ids: list[bytes] = []
        for new_ends, known in recut(view, target, self._seed, before):
            if known and memo is not None and memo.again(known):
                ids += known
                self._names += known
            else:
                ids += self._put_chunks(view, [ends[-1], *new_ends])
            ends += new_ends
        if memo is not None:
            memo.byte_cuts.remember(CutBytes.of(view, target, self._seed, ends[1:], ids))
        return self._refer(stream, count, len(view), ids)

    def _put_chunks(self, view: memoryview, ends: list[int]) -> list[bytes]:
        """Put the bytes between the ends."""
        chunks = (view[start:end] for start, end in pairwise(ends))
        return [
            self._put_blob(piece)
            for chunk in chunks
            for piece in _pieces(chunk, self.limits.blob_bytes_max)
        ]

    def _refer(self, stream: Stream, count: int, total: int, ids: list[bytes]) -> bytes:
        """Return the reference to chunks that were put, with as many index levels as necessary."""
        self.bounds.expand(total)
        levels = 0
        while len(ids) > _INLINE_IDS:
            ids = self._index(ids)
            levels += 1
        self.bounds.check_levels(levels, "value")
        fields = REFERENCE.pack(stream, levels, count, total)
        return packb(Ext(Tag.REFERENCE, fields + b"".join(ids)))

    def _index(self, ids: list[bytes]) -> list[bytes]:
        """Put one level of an index, except what the last encoding has put already."""
        memo = self._memo
        ends, names = ([], []) if memo is None else memo.kept(ids, 0, 0)
        self._names += names
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
        if type(name) is not bytes or len(name) != ID_BYTES:
            name = id_bytes(name, "put")
        self._names.append(name)
        self._fresh.append(name)
        return name


def _pieces(chunk: bytes | memoryview, size_bytes: int) -> Iterator[bytes | memoryview]:
    """Split a chunk into parts that fit a blob; usually there is only one part."""
    return (chunk[start : start + size_bytes] for start in range(0, len(chunk), size_bytes))


def may_be_short(value: Any, memo: TreeMemo | None) -> bool:
    """Whether a value is likely to be one short blob, so that there is no tree to build."""
    if (type(value) is not dict and type(value) is not list) or (memo and memo.was_long):
        return False
    return _seems_short(value, typed_bytes=_TYPED_BYTES)


def encode_short(value: Any, encoding: Encoding) -> bytes | None:
    """Return the root blob of a value if it is short, else None."""
    limits = encoding.limits
    bytes_max = min(_SPLIT_MEMBERS_BYTES, limits.value_bytes_max, limits.value_nodes_max)
    return encoding.run_short(value, None, 0, bytes_max)


@lru_cache(maxsize=1024)
def _seed_number(seed: bytes) -> int:
    digest = hashlib.sha256(seed).digest()
    # CRC-32 uses the lower half.
    return int.from_bytes(digest[4:8] + digest[:4], "big")


def _is_opened(value: list[Any] | dict[Any, Any], level: int) -> bool:
    """Whether to read members one by one: slower, in Python, but with cuts between them."""
    return level <= _OPENED_LEVELS or len(value) >= _MANY_MEMBERS


def _is_short(value: Any) -> bool:
    """Whether a value of a dict probably takes few bytes."""
    kind = type(value)
    if kind is dict or kind is list:
        return _seems_short(value, typed_bytes=_TYPED_BYTES_LONG)
    return kind in _SCALARS or (kind is str and len(value) <= _TYPED_BYTES)


def _seems_short(value: list[Any] | dict[Any, Any], *, typed_bytes: int) -> bool:
    """Whether a container probably takes few bytes: few nodes, and no long text among them."""
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
            elif kind in _LENGTHS:
                size -= len(member)
            elif kind not in _SCALARS:
                nodes -= 1
                size -= _SUPPOSED_BYTES.get(kind, typed_bytes)
                if size < 0:  # a few objects are enough
                    return False
        if size < 0:
            return False
    return True
