# SPDX-License-Identifier: Apache-2.0
"""Content-defined boundaries: where a long container or byte string is cut into chunks.

A cut depends only on the bytes near it (or on one member), never on a position, so an insertion
moves the chunks behind it without changing them. Where the cuts lie is the writer's business alone:
a reader joins chunks and never asks. The seed keeps an outsider who can only choose content from
learning where a store cuts; sizes are bounded whatever the content.
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice

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
