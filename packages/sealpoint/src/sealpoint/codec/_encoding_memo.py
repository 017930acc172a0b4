# SPDX-License-Identifier: Apache-2.0
"""A memory of the long lists in the last encoding, for the next one of the same thread.

A chat grows at its end and rarely changes otherwise, but any member may have been edited in place.
So every member is checked each time: the engine packs the members of a *block* of neighbors in one
call, with the hook and the options of every encoding, and the result is compared with the previous
one. The bytes show every difference that the encoding can show; attributes of an object outside its
fields, which the engine does not see, are compared as well. Where nothing changed, the encoded
members are used again, and are cut into the same chunks with the same ids, which need not be
joined, hashed and put again.

Members are encoded from their packed form and never from the object a second time, so that a block
and its bytes agree even if another OS thread edits an object in between. The blocks of a list, its
*roll*, are found by the reference to the list, which contains the digests of all its chunks: a list
that is loaded again is built from its roll, and there is no roll for bytes that were not written
here.

Left to others: the memory limit for all memos of a store together.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import ormsgpack
from ormsgpack import unpackb

from sealpoint.codec._chunking import ByteCuts
from sealpoint.codec._class_kinds import DictForm, empty_of
from sealpoint.codec._type_rules import TypeRule
from sealpoint.codec._wire_format import Tag, extension_header
from sealpoint.limits import STATE_MEMORY_BYTES_MAX

BLOCK_MEMBERS = 64
_BYTES_MAX = STATE_MEMORY_BYTES_MAX * 3 // 4  # of one value
_LONG_MEMBERS_MAX = 16  # of one block: lists of long members are cut again each time
_LONG_BYTES_MAX = 256 * 1024
# the memory of a member in addition to its bytes: the objects that hold them, and ids
_MEMBER_BYTES = 192
_SETS = frozenset({set})

Pack: TypeAlias = Callable[[Any], bytes]


class Block:
    """Neighbors in a list, all of them objects that hold their stored form in memory."""

    __slots__ = (
        "beside",
        "form",
        "given",
        "kinds",
        "long",
        "masks",
        "packed",
        "parts",
        "size_bytes",
    )

    def __init__(self, form: DictForm) -> None:
        self.form = form
        self.kinds: list[type] = []
        self.given: list[frozenset[str]] = []
        self.masks: list[int] = []
        self.beside: list[list[type]] = [[] for _ in form.beside]
        self.packed = form.header(0)
        """Their fields, as the engine packs them in one call."""
        self.parts: list[bytes | None] = []
        """The encoding of each member; None: it is long and must be cut."""
        self.long: dict[int, bytes] = {}
        """The packed fields of the long members, by their places."""
        self.size_bytes = 0
        """The total encoded size of the members that are not long."""

    def __len__(self) -> int:
        return len(self.kinds)

    def matches(self, members: list[Any], pack: Pack) -> bool:
        """Whether these members would be written exactly like those of the block."""
        form = self.form
        if [*map(type, members)] != self.kinds:
            return False
        if form.given_of is not None:
            given = [*map(form.given_of, members)]
            if not _SETS.issuperset(map(type, given)) or given != self.given:
                return False
        for get, kinds in zip(form.beside_of, self.beside, strict=True):
            values = [*map(get, members)]
            # Check their types first, so that only None and dicts are asked whether they are empty.
            if [*map(type, values)] != kinds or any(values):
                return False
        return pack(form.nested([each.__dict__ for each in members])) == self.packed

    def grown(
        self, members: list[Any], rules: Mapping[type, TypeRule], pack: Pack, bytes_max: int
    ) -> "Block | None":
        """Return the block with additional members at its end; the existing ones stay unchanged.

        Returns:
            None if one of them cannot be represented by the engine's packed form.
        """
        form = self.form
        grown = self._copy()
        fields = [self.packed[len(form.header(len(self))) :]]
        for value in members[len(self) :]:
            rule = rules.get(type(value))
            packed = None if rule is None else grown.add(value, rule, pack, bytes_max)
            if packed is None or len(grown.long) > _LONG_MEMBERS_MAX:
                return None
            fields.append(packed)
        grown.packed = form.header(len(grown)) + b"".join(fields)
        grown.size_bytes = sum(map(len, filter(None, grown.parts)))
        return grown

    def _copy(self) -> "Block":
        made = Block(self.form)
        made.kinds, made.given, made.masks = self.kinds[:], self.given[:], self.masks[:]
        made.beside = [kinds[:] for kinds in self.beside]
        made.parts, made.long = self.parts[:], self.long.copy()
        return made

    def add(self, value: Any, rule: TypeRule, pack: Pack, bytes_max: int) -> bytes | None:
        """Pack one more member; None if the packed form cannot represent it."""
        form = rule.form
        taken = None if form is None or form.family != self.form.family else form.take(value)
        if form is None or taken is None:
            return None
        packed = pack(form.nested([taken.fields]))[form.depth :]
        opening, closing = form.frame(taken.mask, taken.beside)
        payload = b"".join((rule.label, opening, packed, closing))
        if len(payload) > bytes_max:
            if len(packed) > _LONG_BYTES_MAX or not _is_plain(packed):
                return None
            self.long[len(self)] = packed
            self.parts.append(None)
        else:
            self.parts.append(extension_header(Tag.TYPED, len(payload)) + payload)
        self.kinds.append(type(value))
        self.given.append(taken.given)
        self.masks.append(taken.mask)
        for column, kind in zip(self.beside, taken.beside, strict=True):
            column.append(kind)
        return packed

    def copy_of(self, place: int, rules: Mapping[type, TypeRule]) -> Any:
        """Make a new object with the content of the long member at a place."""
        fields, mask = unpackb(self.long[place]), self.masks[place]
        beside = [empty_of(kinds[place]) for kinds in self.beside]
        return rules[self.kinds[place]].from_body(self.form.body(fields, mask, *beside))

    def built(self, packed: Any, rules: Mapping[type, TypeRule]) -> list[Any]:
        """Make new objects from the unpacked form of `packed`, by the rules."""
        for _ in range(self.form.depth - 1):
            (packed,) = packed
        if self.form.build is not None:
            return self.form.build(self.kinds, packed, self.given)
        body = self.form.body
        makers = {kind: rules[kind].from_body for kind in set(self.kinds)}
        beside = [map(empty_of, kinds) for kinds in self.beside]
        return [
            makers[kind](body(*parts))
            for kind, *parts in zip(self.kinds, packed, self.masks, *beside, strict=True)
        ]


def new_block(members: list[Any], rules: Mapping[type, TypeRule]) -> Block | None:
    """Return an empty block for members like the first; None if that has no form."""
    rule = rules.get(type(members[0]))
    return None if rule is None or rule.form is None else Block(rule.form)


def _is_plain(packed: bytes) -> bool:
    """Whether the packed bytes contain no extensions."""
    try:
        unpackb(packed)
    except ormsgpack.MsgpackDecodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ChunkedList:
    """The cuts of a long list, or of one level of an index: where chunks end, and their ids."""

    parts: list[bytes]
    ends: list[int]
    ids: list[bytes]
    target: int
    seed: int

    def chunks_kept(self, same: int) -> int:
        """Return how many chunks stay the same if this many members at the start are unchanged.

        The last chunk of the earlier list ended because the list did, so it never counts. A chunk
        split into several blobs has more ids than ends; that is rare, and then nothing is kept.
        """
        if len(self.ids) != len(self.ends):
            return 0
        return min(bisect_right(self.ends, same), len(self.ends) - 1)


class Roll:
    """A long list of objects, as it was encoded."""

    __slots__ = ("blocks", "cut", "fresh", "long", "names", "reference")

    def __init__(self) -> None:
        self.blocks: list[Block | list[bytes] | None] = []
        """In order, all except the last of one size. Members that no block could hold are stored in
        their encoded form; None: there was no room for them."""
        self.long: dict[int, list[bytes]] = {}
        """The encoded members of blocks that have long ones, by the places of the blocks."""
        self.cut: ChunkedList | None = None
        """Where its chunks end, and their ids."""
        self.names: list[bytes] = []
        """The ids of all blobs below the list."""
        self.fresh: list[bytes] = []
        """Those of them that were put, and not kept from the earlier list."""
        self.reference = b""
        """The reference to the list, without its header; empty if the list is short."""

    def add(
        self, block: Block | None, parts: list[bytes], before: "Roll", *, has_room: bool
    ) -> int:
        """Add the next members.

        Args:
            block: Their block; None: no block could hold them.
            parts: The encoding of each member.
            before: The earlier list at this place.
            has_room: Whether they may be kept.

        Returns:
            How many of them, from the first, have the same encoding as before at their place.
        """
        place = len(self.blocks)
        self.blocks.append((parts if block is None else block) if has_room else None)
        if block is not None and block.long:
            self.long[place] = parts
        known = before.blocks[place] if place < len(before.blocks) else None
        if known is None:
            return 0
        if not isinstance(known, Block):
            return _common(known, parts)
        if known.long:
            return _common(before.long[place], parts)
        return len(parts) if known is block else _common(known.parts, parts)

    @property
    def is_whole(self) -> bool:
        """Whether the list can be built from it."""
        return bool(self.reference) and None not in self.blocks


_NO_ROLL = Roll()


class TreeMemo:
    """Passed to each `encode_tree` and `decode_tree`, by one OS thread at a time.

    Args:
        again: Receives the ids of blobs that the value still has. False: they must be put again.
    """

    __slots__ = (
        "_before",
        "_by_reference",
        "_now",
        "_now_bytes",
        "_rolls",
        "_rolls_before",
        "again",
        "byte_cuts",
        "rolled",
        "size_bytes",
        "was_long",
    )

    def __init__(self, again: Callable[[Sequence[bytes]], bool]) -> None:
        self.again = again
        self._before: list[ChunkedList | None] = []
        self._now: list[ChunkedList | None] = []
        self._rolls_before: list[Roll] = []
        self._rolls: list[Roll] = []
        self._by_reference: dict[bytes, Roll] = {}
        self._now_bytes = 0
        self.size_bytes = 0
        """The memory that it takes."""
        self.byte_cuts = ByteCuts()
        self.rolled: list[bytes] = []
        """The ids of the blobs that were put for lists with rolls."""
        self.was_long = False
        """Whether the last value had a list that was cut."""

    def begin(self) -> None:
        """Prepare for encoding a value; the remains of a failed encoding are dropped."""
        self._now, self._rolls, self._now_bytes = [], [], 0
        self.byte_cuts.begin()

    def end(self) -> None:
        """Finish after encoding a value."""
        self._before, self._now = self._now, []
        self.byte_cuts.end()
        self._rolls_before, self._rolls = self._rolls, []
        self._by_reference = {roll.reference: roll for roll in self._rolls_before if roll.is_whole}
        self.rolled = [*chain.from_iterable(roll.fresh for roll in self._rolls_before)]
        self.size_bytes = self._now_bytes + self.byte_cuts.size_bytes
        self.was_long = bool(self._before) or any(roll.cut for roll in self._rolls_before)

    def kept(self, parts: list[bytes], target: int, seed: int) -> tuple[list[int], list[bytes]]:
        """Return the chunks that are unchanged since the earlier list at this place.

        Returns:
            Their ends, and their ids, which need not be put; empty if it was cut differently.
        """
        place = len(self._now)
        found = self._before[place] if place < len(self._before) else None
        same = 0 if found is None else _common(found.parts, parts)
        return self.kept_of(found, same, target, seed)

    def kept_of(
        self, found: ChunkedList | None, same: int, target: int, seed: int
    ) -> tuple[list[int], list[bytes]]:
        """Do the same for a list that begins with this many of the members of `found`."""
        if found is None or (found.target, found.seed) != (target, seed):
            return [], []
        count = found.chunks_kept(same)
        if not count or not self.again(found.ids[:count]):
            return [], []
        return found.ends[:count], found.ids[:count]

    def remember(self, found: ChunkedList, size_bytes: int) -> None:
        """Keep a list for the next encoding, unless it takes too much memory."""
        self._now.append(found if self.has_room(size_bytes) else None)

    def begin_list(self) -> tuple[Roll, Roll]:
        """Return the new roll of a list, and that of the earlier list at this place."""
        place, before = len(self._rolls), self._rolls_before
        self._rolls.append(Roll())
        return self._rolls[place], before[place] if place < len(before) else _NO_ROLL

    def has_room_for(self, size_bytes: int, members: int) -> bool:
        """Whether this many members may be kept, packed and encoded; if so, count them."""
        return self.has_room(2 * size_bytes + _MEMBER_BYTES * members)

    def has_room(self, size_bytes: int) -> bool:
        """Whether this much more memory may be used; if so, count it."""
        fits = self._now_bytes + size_bytes <= _BYTES_MAX
        self._now_bytes += size_bytes if fits else 0
        return fits

    def roll_of(self, reference: bytes) -> Roll | None:
        """Return the roll that was written here for a reference, or None."""
        return self._by_reference.get(reference)


def _common(before: Sequence[bytes | None], now: list[bytes]) -> int:
    """Return how many members the two lists have in common at their start."""
    low, high = 0, min(len(before), len(now))
    if before[:high] == now[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == now[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
