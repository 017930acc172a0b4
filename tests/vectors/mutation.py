# SPDX-License-Identifier: Apache-2.0
"""Mutations that stay well-formed far enough to reach the checks deep inside.

Half of them change bytes wherever they lie. The other half take an encoding apart into objects,
change or exchange one of those, and put everything together again with the right lengths.
"""

import random
from dataclasses import dataclass, field

from tests.vectors.building import blob_id

__all__ = ["Pool"]

_SINGLE = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_COUNTED = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_FIXED = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_LENGTHS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_TAGS = (*range(26), 31, 32, 33, 34, 35, 127, 128, 255)
_OPAQUE = {2, 3, 9, 10, 11, 12, 13, 14, 16, 17, 18, 24, 255}
_BYTES = bytes((0, 1, 0x7F, 0x80, 0x81, 0x90, 0x91, 0x92, 0xA0, 0xA1, 0xC0, 0xC1, 0xC4, 0xD9, 0xFF))


@dataclass(slots=True)
class Node:
    """One object: bytes of its own, then members; an extension's members are in its payload."""

    own: bytes
    members: list["Node"] = field(default_factory=list)
    kind: str = "leaf"
    tag: int = 0

    def __bytes__(self) -> bytes:
        inside = b"".join(map(bytes, self.members))
        if self.kind == "extension":
            payload = self.own + inside
            size = len(payload)
            fixed = next((first for first, length in _FIXED.items() if length == size), None)
            if fixed is not None:
                return bytes((fixed, self.tag)) + payload
            if size < 1 << 8:
                return bytes((0xC7, size, self.tag)) + payload
            return b"\xc8" + (size % (1 << 16)).to_bytes(2, "big") + bytes((self.tag,)) + payload
        if self.kind == "leaf":
            return self.own
        count = len(self.members) // (2 if self.kind == "map" else 1)
        short, long = (0x80, b"\xde") if self.kind == "map" else (0x90, b"\xdc")
        return (bytes((short | count,)) if count < 16 else long + count.to_bytes(2, "big")) + inside

    def walk(self) -> list["Node"]:
        """This object and all below it."""
        return [self, *(below for member in self.members for below in member.walk())]


def _parsed(data: bytes, at: int) -> tuple[Node, int]:
    """The object at a place, and where it ends; an `IndexError` where there is none."""
    first = data[at]
    if 0x80 <= first < 0xA0 or first in _COUNTED:
        kind = "map" if first < 0x90 or first >= 0xDE else "list"
        width = _COUNTED.get(first, 0)
        count = int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else first & 15
        node, at = Node(b"", kind=kind), at + 1 + width
        for _ in range(count * (2 if kind == "map" else 1)):
            member, at = _parsed(data, at)
            node.members.append(member)
        return node, at
    if first in _FIXED or first in _LENGTHS:
        width = _LENGTHS.get(first, 0)
        size = _FIXED.get(first) or int.from_bytes(data[at + 1 : at + 1 + width], "big")
        start = at + 2 + width
        return _extension(data[start - 1], data[start : start + size]), start + size
    width = _SIZED.get(first, 0)
    size = int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else _SINGLE.get(first, 0)
    if 0xA0 <= first < 0xC0:
        size = first & 31
    end = at + 1 + width + size
    return Node(data[at:end]), end


def _extension(tag: int, payload: bytes) -> Node:
    """An extension, with what its payload holds as members where it holds values."""
    start = 0
    if tag == 1 and payload:
        start = 11 + payload[0]
    elif tag == 21:
        start = 1
    elif tag in (32, 33, 34):
        start = 2 + int.from_bytes(payload[:2], "big")
    node = Node(payload[:start], kind="extension", tag=tag)
    try:
        while tag not in _OPAQUE and start < len(payload):
            member, start = _parsed(payload, start)
            node.members.append(member)
    except (IndexError, RecursionError):
        node.members.clear()
    if not node.members:
        node.own = payload
    return node


class Pool:
    """Encodings to change, and parts of them to put into one another."""

    def __init__(self, seeds: list[bytes]) -> None:
        self._seeds = seeds
        self._parts = sorted({bytes(node) for seed in seeds for node in self._nodes(seed)})

    def _nodes(self, data: bytes) -> list[Node]:
        try:
            return _parsed(data, 0)[0].walk()
        except (IndexError, RecursionError):
            return []

    def mutated(self, rng: random.Random, data: bytes | None = None) -> bytes:
        """A changed encoding: of `data`, or of any seed."""
        data = rng.choice(self._seeds) if data is None else data
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            change = self._structure if rng.random() < 0.5 else self._bytes
            data = change(rng, data)
        return data

    def tree(self, rng: random.Random, blobs: list[bytes]) -> tuple[bytes, dict[bytes, bytes]]:
        """A tree with one changed blob, whose new id mostly stands where the old one stood."""
        place = rng.choice((len(blobs) - 1, rng.randrange(len(blobs))))
        renamed: dict[bytes, bytes] = {}
        store: dict[bytes, bytes] = {}
        root = b""
        for number, blob in enumerate(blobs):
            found = blob
            for old, new in renamed.items():
                found = found.replace(old, new)
            if number == place:
                found = self.mutated(rng, found)
            root = blob_id(found)
            if rng.random() < 0.98:  # else it keeps its old name, or is lost
                renamed |= {blob_id(blob): root} if root != blob_id(blob) else {}
                store[root] = found
            else:
                store[blob_id(blob)] = found
        return root, store

    def _bytes(self, rng: random.Random, data: bytes) -> bytes:
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 1, 2, 4, 8)))
        match rng.randrange(8):
            case 0 | 1 if at < len(data):  # a bit
                return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
            case 2:  # a byte that means something
                return data[:at] + rng.choice(_BYTES).to_bytes(1, "big") + data[at + 1 :]
            case 3:  # a length or a number, one more or less
                step = data[at:end] and bytes(((data[at] + rng.choice((-1, 1))) % 256,))
                return data[:at] + step + data[at + 1 :]
            case 4:  # more bytes
                return data[:at] + rng.randbytes(rng.choice((1, 1, 2))) + data[at:]
            case 5:  # fewer bytes
                return data[:at] + data[end:]
            case 6:  # the beginning of one, the end of another
                other = rng.choice(self._seeds)
                return data[:at] + other[rng.randrange(len(other) + 1) :]
            case _:  # nothing more
                return data[:at]

    def _structure(self, rng: random.Random, data: bytes) -> bytes:
        nodes = self._nodes(data)
        if not nodes:
            return self._bytes(rng, data)
        node = rng.choice(nodes)
        match rng.randrange(8):
            case 0 if node.kind == "extension":
                node.tag = rng.choice(_TAGS)
            case 1 if node.members:
                del node.members[rng.randrange(len(node.members))]
            case 2 if node.members:
                node.members.append(rng.choice(node.members))
            case 3 if node.members:
                rng.shuffle(node.members)
            case 4 if node.own:
                node.own = self._bytes(rng, node.own)
            case 5:
                inner = Node(bytes(node))
                node.own, node.members = b"", [inner]
                node.kind, node.tag = rng.choice((("list", 0), ("extension", rng.choice(_TAGS))))
            case 6 if node.members:
                node.members[rng.randrange(len(node.members))] = Node(rng.choice(self._parts))
            case _:
                node.own, node.members, node.kind = rng.choice(self._parts), [], "leaf"
        return bytes(nodes[0])
