# SPDX-License-Identifier: Apache-2.0
"""Lists of last positions: sorted lines, found by thread, believed by their digests alone."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import Edited, Missing, NotTrusted
from sealpoint.ledger import PositionList, PositionLists
from sealpoint.ledger import _position_lists as module
from sealpoint.limits import POSITION_LIST_BYTES_MAX

_POSITIONS = st.dictionaries(
    st.binary(min_size=16, max_size=16),
    st.tuples(st.integers(0, 2**53 - 1), st.binary(min_size=32, max_size=32)),
    max_size=40,
)


def _line(thread: int, seq: int = 0) -> bytes:
    return bytes([thread]) * 16 + seq.to_bytes(8, "big") + b"h" * 32


def _lists(*lists: bytes) -> tuple[PositionLists, list[bytes]]:
    """Lists that say what they were asked for."""
    asked: list[bytes] = []
    stored = {hashlib.sha256(data).digest(): data for data in lists}

    def fetch(digest: bytes) -> bytes | None:
        asked.append(digest)
        return stored.get(digest)

    return PositionLists(fetch), asked


@given(_POSITIONS, st.binary(min_size=16, max_size=16))
def test_every_listed_thread_is_found_and_no_other(
    positions: dict[bytes, tuple[int, bytes]], other: bytes
) -> None:
    """Whatever the order in which they were given, a thread leads to its position and hash."""
    made = PositionList.of((thread, seq, entry) for thread, (seq, entry) in positions.items())

    assert len(made) == len(positions)
    assert list(made.threads()) == sorted(positions)
    for thread, place in positions.items():
        assert made.position(thread) == place
    assert made.position(other) == positions.get(other)
    assert PositionList(made.data).digest == hashlib.sha256(made.data).digest()


def test_the_bytes_of_a_list_are_fixed() -> None:
    """Thread, position and hash of each thread, in the order of the threads."""
    made = PositionList.of([(b"b" * 16, 258, b"2" * 32), (b"a" * 16, 1, b"1" * 32)])

    assert made.data == (
        b"a" * 16 + bytes(7) + b"\x01" + b"1" * 32 + b"b" * 16 + bytes(6) + b"\x01\x02" + b"2" * 32
    )


def test_an_empty_list_lists_nothing() -> None:
    """A key that wrote nothing has an empty list."""
    made = PositionList.of([])

    assert (made.data, len(made), made.position(bytes(16))) == (b"", 0, None)


@pytest.mark.parametrize(
    "data",
    [
        _line(1)[:-1],
        _line(1) + b"x",
        _line(2) + _line(1),
        _line(1) + _line(1),
        _line(1, 1) + _line(1, 2),
        _line(1) + _line(3) + _line(2),
    ],
)
def test_other_bytes_are_no_list(data: bytes) -> None:
    """Part of a line, another order, or a thread twice: refused, though the root signed it."""
    with pytest.raises(NotTrusted, match=r"^list of positions: expected"):
        PositionList(data)


def test_a_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """More bytes than the bound are no list, however well formed."""
    monkeypatch.setattr(module, "POSITION_LIST_BYTES_MAX", 112)

    assert POSITION_LIST_BYTES_MAX % 56 != 0
    assert len(PositionList(_line(1) + _line(2))) == 2
    with pytest.raises(NotTrusted, match="at most 112 in all, found 168 bytes"):
        PositionList(_line(1) + _line(2) + _line(3))


def test_a_list_is_fetched_once() -> None:
    """It is proven by its digest and then kept."""
    lists, asked = _lists(_line(1))
    digest = hashlib.sha256(_line(1)).hexdigest()
    first = lists.get(digest)

    assert first.data == _line(1)
    assert lists.get(digest) is first
    assert len(asked) == 1


def test_a_list_that_is_missing_or_edited_is_refused() -> None:
    """Nothing is kept of it: once it is back, it is found."""
    digest = hashlib.sha256(_line(1)).digest()
    stored: dict[bytes, bytes] = {}
    lists = PositionLists(stored.get)

    with pytest.raises(Missing, match=f"list of positions {digest.hex()[:12]}: it is missing"):
        lists.get(digest.hex())
    stored[digest] = _line(2)
    with pytest.raises(Edited, match="the store has bytes of another hash"):
        lists.get(digest.hex())
    stored[digest] = _line(1)
    assert lists.get(digest.hex()).data == _line(1)
    with pytest.raises(Missing):
        PositionLists().get(digest.hex())


def test_what_the_root_signed_may_still_be_no_list() -> None:
    """A digest that is right does not make a list of other bytes."""
    lists, _ = _lists(b"no list")

    with pytest.raises(NotTrusted, match="expected lines of 56 bytes"):
        lists.get(hashlib.sha256(b"no list").hexdigest())


def test_lists_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were used last are kept, as many as the bound has room for."""
    monkeypatch.setattr(module, "POSITION_LIST_BYTES_MAX", 112)
    lists, asked = _lists(*(_line(number) for number in range(3)))
    names = [hashlib.sha256(_line(number)).hexdigest() for number in range(3)]
    for number in (0, 1, 0, 2):
        assert lists.get(names[number]).data == _line(number)

    assert len(asked) == 3
    lists.get(names[0])
    lists.get(names[2])
    assert len(asked) == 3
    lists.get(names[1])
    assert len(asked) == 4


def test_a_list_that_two_fetch_at_once_is_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads of a verification meet the same key: neither waits, and the bound holds."""
    monkeypatch.setattr(module, "POSITION_LIST_BYTES_MAX", 56)
    digest = hashlib.sha256(_line(1)).hexdigest()
    inner: list[PositionList] = []
    asked: list[bytes] = []

    def fetch(name: bytes) -> bytes:
        asked.append(name)
        if not inner:
            inner.append(PositionList(b""))  # so that the second look fetches for itself
            inner.append(lists.get(digest))
        return _line(1)

    lists = PositionLists(fetch)
    found = lists.get(digest)

    assert found.data == inner[1].data == _line(1)
    assert lists.get(digest).data == _line(1)
    assert len(asked) == 2, "it was counted twice, and dropped"
