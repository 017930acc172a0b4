# SPDX-License-Identifier: Apache-2.0
"""The bytes of a local anchor: header, slots, copies, and the code that authenticates them.

All integers are little-endian. The file is a header of 4096 bytes and `capacity` slots of 256.

Header, at offset 0:

| Offset | Bytes | Field |
|---|---|---|
| 0 | 8 | magic, `SEALANCH` |
| 8 | 4 | version, 1 |
| 12 | 4 | zeros |
| 16 | 16 | store id |
| 32 | 8 | capacity: how many slots, a power of two, 256 or more |
| 40 | 16 | code over bytes 0 to 40 |
| 64 | 1 | superseded: not 0 while and after a larger file takes the place of this one |
| 72 | 8 | used: about how many slots are taken; a hint that only decides when to count |
| 80 | 4016 | zeros, not read |

Slot number `i`, at offset 4096 + 256 * i:

| Offset | Bytes | Field |
|---|---|---|
| 0 | 32 | slot key; zeros: the slot is free, whatever follows |
| 32 | 112 | copy A |
| 144 | 112 | copy B |

Copy:

| Offset | Bytes | Field |
|---|---|---|
| 0 | 8 | counter, from 1; 0: never written |
| 8 | 4 | epoch |
| 12 | 4 | generation |
| 16 | 8 | sequence number, signed; -1: reserved |
| 24 | 16 | thread id |
| 40 | 32 | hash of the entry |
| 72 | 1 | flags: 1 erased; no other value is known |
| 73 | 23 | zeros |
| 96 | 16 | code over the slot key and bytes 0 to 96 of the copy |

A code is BLAKE2b with the secret as its key, 16 bytes long, over the store id and then the bytes
named above; the personalisation is `sealpoint/header` for the header and `sealpoint/anchor` for
a copy. A slot key belongs to number `first 8 bytes mod capacity`, or else to the next free one
after it, going round at the end. Slots are never freed. A slot whose key ends in a zero byte, whose
copy A has counter 1 and sequence number -1, whose copy B is zeros, and of which no copy is valid is
what an insertion left that was cut short: it is free.

This module computes; it opens and writes nothing.
"""

import hashlib
from hmac import compare_digest
from struct import Struct

from sealpoint.anchor._contract import RESERVED_SEQ, Position
from sealpoint.errors import AnchorUnavailable

__all__ = [
    "CAPACITY_MIN",
    "COPIES",
    "FREE",
    "HEADER_BYTES",
    "KEY_BYTES",
    "SLOT_BYTES",
    "SUPERSEDED_AT",
    "USED",
    "USED_AT",
    "Seal",
    "body_at",
    "body_of",
    "counter_of",
    "home_of",
    "position_of",
]

CAPACITY_MIN = 256
HEADER_BYTES = 4096
SLOT_BYTES = 256
KEY_BYTES = 32
FREE = bytes(KEY_BYTES)
SUPERSEDED_AT = 64
USED_AT = 72
USED = Struct("<Q")

COPIES = (32, 144)
"""Where the two copies of a slot begin."""

_COPY_A, _COPY_B = COPIES
_BODY_AT = 8
_CODE_AT = 96
_COPY_BYTES = 112
_CODE_BYTES = 16

_MAGIC = b"SEALANCH"
_VERSION = 1
_HEADER = Struct("<8sI4x16sQ")
_BODY = Struct("<IIq16s32sB23x")
_COUNTER = Struct("<Q")
_COUNTERS = Struct("<32xQ104xQ")
_ERASED = 1


def home_of(slot: bytes) -> int:
    """The number of a slot before it is reduced to a capacity: keys are uniform already."""
    home: int = _COUNTER.unpack_from(slot)[0]
    return home


def body_of(position: Position) -> bytes:
    """A position as it lies in a copy, between the counter and the code."""
    return _BODY.pack(
        position.epoch,
        position.gen,
        position.seq,
        position.thread,
        position.entry,
        _ERASED if position.erased else 0,
    )


def position_of(raw: bytes, start: int) -> Position:
    """The position in the copy of a slot that begins at `start` and has been verified.

    Raises:
        AnchorUnavailable: The copy is genuine and carries a flag that this version does not know.
    """
    epoch, gen, seq, thread, entry, flags = _BODY.unpack_from(raw, start + _BODY_AT)
    if flags > _ERASED:
        raise AnchorUnavailable(f"anchor slot: expected flags 0 or 1, found {flags}")
    return Position(thread, epoch, gen, seq, entry, flags == _ERASED)


def counter_of(raw: bytes, start: int) -> int:
    """The counter of the copy that begins at `start`."""
    return int(_COUNTER.unpack_from(raw, start)[0])


def body_at(raw: bytes, start: int) -> bytes:
    """The body of the copy that begins at `start`, to be compared with `body_of`."""
    return raw[start + _BODY_AT : start + _CODE_AT]


class Seal:
    """Makes and checks the codes of one store's anchor.

    Args:
        key: The secret, 32 bytes.
        store: The store's id, 16 bytes.
    """

    __slots__ = ("_copy", "_header", "_store")

    def __init__(self, key: bytes, store: bytes) -> None:
        # Hashing the key and the store once and copying that state halves the time of a code.
        self._copy = hashlib.blake2b(
            store, key=key, digest_size=_CODE_BYTES, person=b"sealpoint/anchor"
        )
        self._header = hashlib.blake2b(
            store, key=key, digest_size=_CODE_BYTES, person=b"sealpoint/header"
        )
        self._store = store

    def header(self, capacity: int) -> bytes:
        """The authenticated beginning of a file."""
        fields = _HEADER.pack(_MAGIC, _VERSION, self._store, capacity)
        code = self._header.copy()
        code.update(fields)
        return fields + code.digest()

    def capacity_of(self, header: bytes, size_bytes: int) -> int:
        """The capacity that a header gives, after everything about it has been checked.

        Raises:
            ValueError: With what was expected and found.
        """
        # (1) Long enough to be read.
        if len(header) < HEADER_BYTES:
            raise ValueError(f"expected a header of {HEADER_BYTES} bytes, found {len(header)}")
        magic, version, store, capacity = _HEADER.unpack_from(header)
        # (2) The format is ours, in a version we know.
        if magic != _MAGIC:
            raise ValueError("expected the file of a local anchor, found another beginning")
        if version != _VERSION:
            raise ValueError(f"expected version {_VERSION}, found version {version}")
        # (3) The store is this one.
        if store != self._store:
            raise ValueError(
                f"expected the anchor of store {self._store.hex()}, found that of {store.hex()}"
            )
        # (4) Written under this secret: the same bytes come out again.
        genuine = self.header(capacity)
        if not compare_digest(genuine, header[: len(genuine)]):
            raise ValueError("expected a header written under this secret, found another code")
        # (5) The file is whole.
        expected = HEADER_BYTES + capacity * SLOT_BYTES
        if capacity < CAPACITY_MIN or capacity & (capacity - 1) or size_bytes != expected:
            raise ValueError(f"expected {expected} bytes of file, found {size_bytes}")
        return int(capacity)

    def copy(self, slot: bytes, counter: int, body: bytes) -> bytes:
        """One copy, ready to be written."""
        counted = _COUNTER.pack(counter) + body
        code = self._copy.copy()
        code.update(slot + counted)
        return counted + code.digest()

    def newest_if_clear(self, slot: bytes, raw: bytes) -> int:
        """Where the newest copy begins, or 0 if a writer may have been at work on the slot.

        Only one code is checked. That is enough when the two counters are neighbours. A copy
        that is no longer the newest is taken only if the other one seems to be its predecessor;
        but that other one was written later, and no mixture of its counter with those written
        over it has the low byte of that predecessor.
        """
        first, second = _COUNTERS.unpack_from(raw)
        if first - second == 1:
            start = _COPY_A
        elif second - first == 1:
            start = _COPY_B
        else:
            return 0
        return start if self._holds(slot, raw, start) else 0

    def newest(self, slot: bytes, raw: bytes) -> int:
        """Where the valid copy with the highest counter begins, or 0 if both are invalid.

        To be asked only while no writer can be at work on the slot.
        """
        first, second = _COUNTERS.unpack_from(raw)
        order = (_COPY_A, _COPY_B) if first >= second else (_COPY_B, _COPY_A)
        return next((start for start in order if self._holds(slot, raw, start)), 0)

    def is_torn(self, raw: bytes) -> bool:
        """Whether a slot is what an insertion left that could not write the whole key.

        The key then ends in zeros, and what was to be inserted was a reserved name: nothing is
        lost if it is forgotten. Anything else without a valid copy is damage.
        """
        return (
            not raw[KEY_BYTES - 1]
            and _COUNTERS.unpack_from(raw) == (1, 0)
            and raw[_COPY_B:] == bytes(_COPY_BYTES)
            and _BODY.unpack_from(raw, _COPY_A + _BODY_AT)[2] == RESERVED_SEQ
            and not self.newest(raw[:KEY_BYTES], raw)
        )

    def _holds(self, slot: bytes, raw: bytes, start: int) -> bool:
        middle = start + _CODE_AT
        code = self._copy.copy()
        code.update(slot + raw[start:middle])
        return compare_digest(code.digest(), raw[middle : start + _COPY_BYTES])
