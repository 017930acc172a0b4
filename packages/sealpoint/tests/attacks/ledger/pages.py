# SPDX-License-Identifier: Apache-2.0
"""Pages of a SQLite file, written by hand: what no SQL can say, and whoever holds the file can.

A page of a table has its kind, the number of its cells, where they begin, and an array with the
place of each; page 1 has the header of the file before that. See https://sqlite.org/fileformat.html.
"""

import struct

__all__ = ["PAGE_BYTES", "in_circles", "index_number", "on_two_pages", "with_rows_repeated"]

PAGE_BYTES = 4096
_FILE_HEADER_BYTES = 100
_PAGES_AT = 28
_INTERIOR, _LEAF, _INDEX_LEAF = 5, 13, 10
_LEAF_HEADER_BYTES, _INTERIOR_HEADER_BYTES = 8, 12
_INDEX_ROW = b"sqlite_autoindex_entries_1"


def _split(data: bytes) -> list[bytes]:
    return [data[place : place + PAGE_BYTES] for place in range(0, len(data), PAGE_BYTES)]


def _schema_places(page: bytes) -> list[int]:
    """Where each row of the schema lies on page 1, a leaf with nothing else."""
    kind, _, count = struct.unpack_from(">BHH", page, _FILE_HEADER_BYTES)
    assert kind == _LEAF
    return list(struct.unpack_from(f">{count}H", page, _FILE_HEADER_BYTES + _LEAF_HEADER_BYTES))


def _leaf(page: bytes, places: list[int]) -> bytes:
    """A leaf with some rows of page 1, each as often as it is named."""
    made = bytearray(page)
    made[: min(places)] = bytes(min(places))
    struct.pack_into(">BHHHB", made, 0, _LEAF, 0, len(places), min(places), 0)
    struct.pack_into(f">{len(places)}H", made, _LEAF_HEADER_BYTES, *places)
    return bytes(made)


def _interior(children: list[int], at: int = 0) -> bytes:
    """A page that leads to others, by their numbers."""
    *before, last = children
    made, place, places = bytearray(PAGE_BYTES), PAGE_BYTES, []
    for child in before:
        place -= 5
        struct.pack_into(">IB", made, place, child, 1)
        places.append(place)
    struct.pack_into(">BHHHBI", made, at, _INTERIOR, 0, len(places), place, 0, last)
    struct.pack_into(f">{len(places)}H", made, at + _INTERIOR_HEADER_BYTES, *places)
    return bytes(made)


def _under_root(pages: list[bytes], children: list[int]) -> bytes:
    """The file whose page 1 leads to other pages of the schema."""
    root = bytearray(_interior(children, _FILE_HEADER_BYTES))
    root[:_FILE_HEADER_BYTES] = pages[0][:_FILE_HEADER_BYTES]
    struct.pack_into(">I", root, _PAGES_AT, len(pages))
    return b"".join([bytes(root), *pages[1:]])


def on_two_pages(data: bytes) -> bytes:
    """The same file with the rows of its schema on two pages: unusual, and nothing else."""
    pages = _split(data)
    places = _schema_places(pages[0])
    pages += [_leaf(pages[0], places[:3]), _leaf(pages[0], places[3:])]
    return _under_root(pages, [len(pages) - 1, len(pages)])


def with_rows_repeated(data: bytes, times: int) -> bytes:
    """The file with all rows of its schema, and then one of them so many times more."""
    pages = _split(data)
    places = _schema_places(pages[0])
    (index,) = [place for place in places if _is_index_row(pages[0], place)]
    pages += [_leaf(pages[0], places), _leaf(pages[0], [index] * times)]
    return _under_root(pages, [len(pages) - 1, len(pages)])


def in_circles(data: bytes, *, levels: int = 16, children: int = 550) -> bytes:
    """The file with a row of its schema as often as the pages of each level lead to the next."""
    pages = _split(data)
    places = _schema_places(pages[0])
    (index,) = [place for place in places if _is_index_row(pages[0], place)]
    pages += [_leaf(pages[0], places), _leaf(pages[0], [index])]
    genuine = len(pages) - 1
    for _ in range(levels - 1):
        pages.append(_interior([len(pages)] * children))
    return _under_root(pages, [genuine, len(pages)])


def _is_index_row(page: bytes, place: int) -> bool:
    """Whether a row is about the index of entries: SQLite takes such a row any number of times."""
    return 0 < page.find(_INDEX_ROW, place) - place < len(_INDEX_ROW)


def index_number(data: bytes, thread: bytes, seq: int, shown: int) -> bytes:
    """The file with another number for an entry in the index by which entries are found."""
    (place,) = [
        start
        for number, page in enumerate(_split(data))
        if page[0] == _INDEX_LEAF
        for start in _places_of(page, thread + bytes([seq]), number * PAGE_BYTES)
    ]
    made = bytearray(data)
    made[place + len(thread)] = shown
    return bytes(made)


def _places_of(page: bytes, key: bytes, base: int) -> list[int]:
    found, place = [], page.find(key)
    while place >= 0:
        found.append(base + place)
        place = page.find(key, place + 1)
    return found
