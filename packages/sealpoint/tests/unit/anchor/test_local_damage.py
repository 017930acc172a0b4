# SPDX-License-Identifier: Apache-2.0
"""A damaged local anchor is refused or is one step behind; it is never wrong and never empty."""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealpoint.anchor import RESERVED_SEQ, Position
from sealpoint.anchor._slot_table import CAPACITY_MIN, COPIES, HEADER_BYTES, SLOT_BYTES
from sealpoint.errors import AnchorUnavailable
from tests.unit.anchor.places import KEY, NAME, STORE, chained, opened, position, slot

_COPY_BYTES = COPIES[1] - COPIES[0]
_FILE_BYTES = HEADER_BYTES + CAPACITY_MIN * SLOT_BYTES
# Growth from 256 slots comes with the 154th.
_FULL = 153


@pytest.fixture
def anchor_file(tmp_path: Path) -> Path:
    """A file with a chain over its end, and slots elsewhere: each at position 1, before that 0."""
    with opened(tmp_path / "anchor", create=True) as anchor:
        for name in _names():
            anchor.create(name, position(0))
            anchor.advance(name, position(0), position(1))
    return tmp_path / "anchor" / NAME


def _names() -> list[bytes]:
    return [chained(number) for number in range(4)] + [slot(number) for number in range(3)]


def _occupied(data: bytes) -> list[int]:
    return [
        offset
        for offset in range(HEADER_BYTES, len(data), SLOT_BYTES)
        if any(data[offset : offset + 32])
    ]


def _flips(path: Path, offsets: Iterator[int], bits: int) -> Iterator[int]:
    """Flip bits of one byte after another, each time giving the file back as it was."""
    data = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for offset in offsets:
            os.pwrite(file.fileno(), bytes([data[offset] ^ bits]), offset)
            yield offset
            os.pwrite(file.fileno(), data[offset : offset + 1], offset)


def _or_unavailable(get: Callable[[bytes], Position | None], name: bytes) -> Position | str | None:
    try:
        return get(name)
    except AnchorUnavailable:
        return "unavailable"


def _read(directory: Path, name: bytes) -> Position | str | None:
    try:
        with opened(directory) as anchor:
            return anchor.get(name)
    except AnchorUnavailable:
        return "unavailable"


def _lay(directory: Path, data: bytes) -> Path:
    """Write a file by hand, as a crash may have left it."""
    directory.mkdir(mode=0o700, exist_ok=True)
    path = directory / NAME
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("bits", [0x01, 0xFF])
def test_flipped_byte_never_gives_another_position(anchor_file: Path, bits: int) -> None:
    """Whichever byte is flipped, a slot is the newest or previous position or unavailable."""
    data = anchor_file.read_bytes()
    dense = {*range(96), *(at + n for at in _occupied(data) for n in range(SLOT_BYTES))}
    sample = set(range(96, len(data), 97))
    found: dict[Position | str | None, int] = {}
    for _ in _flips(anchor_file, iter(sorted(dense | sample)), bits):
        try:
            with opened(anchor_file.parent, read_only=True) as anchor:
                results = [_or_unavailable(anchor.get, name) for name in _names()]
                absent = _or_unavailable(anchor.get, chained(99))
        except AnchorUnavailable:
            results = ["unavailable"]
            absent = None
        for result in results:
            found[result] = found.get(result, 0) + 1
        assert absent in (None, "unavailable")

    assert set(found) == {position(0), position(1), "unavailable"}
    assert anchor_file.read_bytes() == data


def test_flipped_key_is_damage_in_every_call(anchor_file: Path) -> None:
    """A slot whose key was changed is neither absent nor made again nor left out of a listing."""
    first = HEADER_BYTES + 254 * SLOT_BYTES
    for _ in _flips(anchor_file, iter(range(first, first + 32)), 0x10):
        with opened(anchor_file.parent) as anchor:
            with pytest.raises(AnchorUnavailable, match="both copies are damaged"):
                anchor.get(chained(0))
            with pytest.raises(AnchorUnavailable, match="both copies are damaged"):
                anchor.create(chained(0), position(5))
            with pytest.raises(AnchorUnavailable):
                anchor.advance(chained(0), position(1), position(2))
            with pytest.raises(AnchorUnavailable, match="both copies are damaged"):
                list(anchor.slots())

            assert anchor.get(chained(1)) == position(1)


def test_slot_without_a_valid_copy_is_damage(anchor_file: Path) -> None:
    """When both copies are invalid the slot is unavailable, not unknown, in every call."""
    data = bytearray(anchor_file.read_bytes())
    offset = data.index(slot(1))
    data[offset + 40] ^= 1
    data[offset + 40 + _COPY_BYTES] ^= 1
    anchor_file.write_bytes(data)

    with opened(anchor_file.parent) as anchor:
        for call in (
            lambda: anchor.get(slot(1)),
            lambda: anchor.create(slot(1), position(0)),
            lambda: anchor.advance(slot(1), position(1), position(2)),
            lambda: list(anchor.slots()),
        ):
            with pytest.raises(AnchorUnavailable, match=f"slot at byte {offset}"):
                call()
        assert anchor.get(slot(2)) == position(1)


def test_copy_of_another_slot_is_not_believed(anchor_file: Path) -> None:
    """Genuine copies that were moved under another slot's key are invalid there."""
    data = bytearray(anchor_file.read_bytes())
    one, other = data.index(slot(1)), data.index(slot(2))
    data[one + 32 : one + SLOT_BYTES] = data[other + 32 : other + SLOT_BYTES]
    anchor_file.write_bytes(data)

    assert _read(anchor_file.parent, slot(1)) == "unavailable"
    assert _read(anchor_file.parent, slot(2)) == position(1)


def test_foreign_files_are_refused(tmp_path: Path, anchor_file: Path) -> None:
    """The anchor of another store or under another secret is refused when it is opened."""
    with (
        pytest.raises(AnchorUnavailable, match="anchor of store"),
        opened(anchor_file.parent, store=b"o" * 16),
    ):
        pass
    with (
        pytest.raises(AnchorUnavailable, match="under another secret"),
        opened(anchor_file.parent, key=b"o" * 32),
    ):
        pass
    with opened(tmp_path / "foreign", store=b"o" * 16, create=True) as anchor:
        anchor.create(slot(1), position(9))
    foreign = (tmp_path / "foreign" / NAME).read_bytes()
    own = anchor_file.read_bytes()
    _lay(anchor_file.parent, own[:HEADER_BYTES] + foreign[HEADER_BYTES:])

    assert _read(anchor_file.parent, slot(1)) == "unavailable"


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"x", bytes(HEADER_BYTES), bytes(_FILE_BYTES), b"SQLite format 3"),
        b"SEALANCH" + bytes(_FILE_BYTES - 8),
    ],
)
@pytest.mark.parametrize("create", [False, True])
def test_garbage_is_refused_and_kept(tmp_path: Path, data: bytes, *, create: bool) -> None:
    """A file that is no anchor is unavailable, whether or not one is to be made, and stays."""
    path = _lay(tmp_path / "anchor", data)

    with (
        pytest.raises(AnchorUnavailable, match=str(path)),
        opened(tmp_path / "anchor", create=create),
    ):
        pass
    assert path.read_bytes() == data


def test_truncated_or_longer_file_is_refused(anchor_file: Path) -> None:
    """A file of any other length than its header says is unavailable."""
    data = anchor_file.read_bytes()
    lengths = [*range(64), 4095, 4096, 4097, *range(4096, len(data), 1021), len(data) - 1]
    for length in lengths:
        anchor_file.write_bytes(data[:length])
        assert _read(anchor_file.parent, slot(1)) == "unavailable"
    anchor_file.write_bytes(data + b"\x00")

    assert _read(anchor_file.parent, slot(1)) == "unavailable"


def test_torn_write_leaves_the_position_before(anchor_file: Path) -> None:
    """Whatever part of a copy was written, the slot is at the old position and can go on."""
    before = anchor_file.read_bytes()
    with opened(anchor_file.parent) as anchor:
        anchor.advance(slot(1), position(1), position(2))
    after = anchor_file.read_bytes()
    changed = [
        index for index, pair in enumerate(zip(before, after, strict=True)) if len({*pair}) > 1
    ]
    start = before.index(slot(1)) + 32
    start += _COPY_BYTES if changed[0] >= start + _COPY_BYTES else 0
    end = start + _COPY_BYTES
    assert start <= changed[0] <= changed[-1] < end

    for cut in range(start, end + 1):
        for torn in (
            before[:start] + after[start:cut] + before[cut:],
            before[:cut] + after[cut:end] + before[end:],
            before[:start] + after[start:cut] + bytes(end - cut) + before[end:],
        ):
            _lay(anchor_file.parent, torn)
            with opened(anchor_file.parent) as anchor:
                found = anchor.get(slot(1))
                assert found == (position(2) if torn == after else position(1))
                assert dict(anchor.slots())[slot(1)] == found
                assert anchor.advance(slot(1), found, position(7)) == position(7)
                assert anchor.advance(slot(1), position(7), position(8)) == position(8)
                assert anchor.get(slot(1)) == position(8)


def test_slot_that_was_half_made_is_absent(anchor_file: Path) -> None:
    """A new slot whose copy was written and whose key was not is absent and can be made."""
    before = anchor_file.read_bytes()
    with opened(anchor_file.parent) as anchor:
        anchor.create(slot(50), position(0))
    after = anchor_file.read_bytes()
    start = after.index(slot(50)) + 32

    for cut in range(start, start + _COPY_BYTES + 1):
        _lay(anchor_file.parent, before[:start] + after[start:cut] + before[cut:])
        with opened(anchor_file.parent) as anchor:
            assert anchor.get(slot(50)) is None
            assert slot(50) not in dict(anchor.slots())
            assert anchor.create(slot(50), position(3)) == position(3)
            assert anchor.get(slot(50)) == position(3)


def _stages(place: Path) -> Iterator[tuple[str, bytes, bytes | None]]:
    """The two files as they lie after each step of growth, taken from a real one."""
    with opened(place, create=True) as anchor:
        for number in range(_FULL):
            anchor.create(slot(number), position(number))
        before = (place / NAME).read_bytes()
        anchor.create(slot(_FULL), position(_FULL))
    grown = (place / NAME).read_bytes()
    assert len(before) < len(grown)
    # The slot that asked for growth was written after it.
    offset = grown.index(slot(_FULL))
    grown = grown[:offset] + bytes(SLOT_BYTES) + grown[offset + SLOT_BYTES :]
    marked = before[:64] + b"\x01" + before[65:]
    shutil.rmtree(place)
    for length in (0, 1, 56, 4096, 5000, len(grown) - 1):
        yield f"{length} bytes of the larger file", before, grown[:length]
    yield "the larger file", before, grown
    yield "the mark", marked, grown
    yield "the mark alone", marked, None
    yield "the rename", grown, None


def test_growth_that_stopped_anywhere_loses_nothing(tmp_path: Path) -> None:
    """After a crash at any step of growth all slots are there, for readers and for writers."""
    names = {slot(number): position(number) for number in range(_FULL)}
    place = tmp_path / "anchor"
    for stage, file, larger in list(_stages(place)):
        _lay(place, file)
        if larger is not None:
            (place / "anchor.grown").write_bytes(larger)
        with opened(place, read_only=True) as reader, opened(place) as writer:
            for _ in range(2):
                assert dict(reader.slots()) == names, stage
                assert [reader.get(name) for name in names] == list(names.values()), stage
            writer.advance(slot(0), position(0), position(1000))
            assert reader.get(slot(0)) == position(1000), stage
            assert (place / NAME).read_bytes()[64] == 0, stage
            for number in range(_FULL, 330):
                assert writer.create(slot(number), position(number)) == position(number), stage
                assert reader.get(slot(number)) == position(number), stage
            assert len(dict(reader.slots())) == 330, stage
        assert [path.name for path in place.iterdir()] == [NAME], stage
        shutil.rmtree(place)


def test_growth_refuses_to_bury_a_damaged_slot(tmp_path: Path) -> None:
    """A file with a damaged slot does not grow: the slot would no longer be found as damaged."""
    place = tmp_path / "anchor"
    with opened(place, create=True) as anchor:
        for number in range(_FULL):
            anchor.create(slot(number), position(number))
        data = (place / NAME).read_bytes()
        with (place / NAME).open("r+b", buffering=0) as file:
            os.pwrite(file.fileno(), b"?", data.index(slot(7)))
        # Far from the damage, so that nothing but growth can find it.
        free = next(n for n in range(1000, 2000) if _or_unavailable(anchor.get, slot(n)) is None)

        with pytest.raises(AnchorUnavailable, match="both copies are damaged"):
            anchor.create(slot(free), position(0))
        assert anchor.get(slot(8)) == position(8)
        assert (place / NAME).stat().st_size == len(data)


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that writes one byte at a time writes every position whole all the same."""
    write = os.pwrite
    with opened(tmp_path / "anchor", create=True) as anchor:
        monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[:1], at))
        anchor.create(slot(1), position(0))
        anchor.advance(slot(1), position(0), position(1))
        monkeypatch.undo()

        assert dict(anchor.slots()) == {slot(1): position(1)}


@pytest.mark.parametrize("stop", [OSError(errno.EIO, "broken"), None])
@pytest.mark.parametrize("taken_back", [True, False])
@pytest.mark.parametrize("part", [1, 16, 31])
def test_key_written_in_part_is_no_damage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop: OSError | None,
    *,
    taken_back: bool,
    part: int,
) -> None:
    """A disk that fails in the middle of a key leaves a slot that counts as free."""
    write, reserved = os.pwrite, Position(bytes(16), 0, 0, RESERVED_SEQ, bytes(32))
    near = next(n for n in range(2, 10_000) if slot(n)[:1] == slot(1)[:1])

    def fail(file: int, data: bytes, at: int) -> int:
        if data == slot(1):
            return write(file, data[:part], at)
        if data == slot(1)[part:] or (data == bytes(32) and not taken_back):
            if stop is not None:
                raise stop
            return 0
        return write(file, data, at)

    with opened(tmp_path / "anchor", create=True) as anchor:
        monkeypatch.setattr(os, "pwrite", fail)
        with pytest.raises(AnchorUnavailable, match=r"broken|expected to write 32 bytes, wrote"):
            anchor.create(slot(1), reserved)
        monkeypatch.undo()
        assert dict(anchor.slots()) == {}
        assert anchor.get(slot(1)) is None

        assert anchor.create(slot(near), position(0)) == position(0)
        assert anchor.create(slot(1), position(3)) == position(3)
        assert dict(anchor.slots()) == {slot(near): position(0), slot(1): position(3)}
        for number in range(20_000, 20_300):
            anchor.create(slot(number), reserved)
        assert anchor.get(slot(1)) == position(3)


@pytest.mark.parametrize("used", [0, 2**64 - 1])
def test_wrong_count_is_corrected(tmp_path: Path, used: int) -> None:
    """The count of slots is only a hint: too high or too low, no slot is refused or lost."""
    place = tmp_path / "anchor"
    with opened(place, create=True) as anchor:
        for number in range(300):
            anchor.create(slot(number), position(number))
            if number in {20, 150, 290}:
                with (place / NAME).open("r+b", buffering=0) as file:
                    os.pwrite(file.fileno(), used.to_bytes(8, "little"), 72)

        assert dict(anchor.slots()) == {slot(number): position(number) for number in range(300)}


def test_full_file_grows_even_if_its_count_is_wrong(tmp_path: Path) -> None:
    """A file without one free slot is still read, and grows with the next slot."""
    place = tmp_path / "anchor"
    with opened(place, create=True) as anchor, (place / NAME).open("r+b", buffering=0) as file:
        for number in range(CAPACITY_MIN):
            anchor.create(slot(number), position(number))
            os.pwrite(file.fileno(), bytes(8), 72)
        assert anchor.get(slot(CAPACITY_MIN)) is None
        anchor.create(slot(CAPACITY_MIN), position(0))

        assert len(dict(anchor.slots())) == CAPACITY_MIN + 1
        assert (place / NAME).stat().st_size == HEADER_BYTES + 2 * CAPACITY_MIN * SLOT_BYTES


def _u32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def _u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


def _code(purpose: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(STORE + data, key=KEY, digest_size=16, person=purpose).digest()


def test_bytes_are_as_written_down(tmp_path: Path) -> None:
    """Two saved positions lie at the offsets and with the codes that the format gives."""
    name, reserved = chained(0, home=3), Position(b"t" * 16, 1, 2, -1, bytes(32))
    seen = Position(
        *(b"t" * 16, 1, 2, 5, b"e" * 32),
        erased=True,
        fence=5,
        pause=4,
        owner=3,
        owner_entry=b"o" * 32,
        paused=True,
    )
    with opened(tmp_path / "anchor", create=True) as anchor:
        anchor.create(name, reserved)
        anchor.advance(name, reserved, seen)
    data = (tmp_path / "anchor" / NAME).read_bytes()
    fields = b"SEALANCH" + _u32(2) + bytes(4) + STORE + _u64(256)
    first = _u64(1) + _u32(1) + _u32(2) + b"\xff" * 8 + b"t" * 16 + bytes(32)
    first += b"\xff" * 24 + bytes(32 + 32)
    second = _u64(2) + _u32(1) + _u32(2) + _u64(5) + b"t" * 16 + b"e" * 32
    second += _u64(5) + _u64(4) + _u64(3) + b"o" * 32 + b"\x03" + bytes(31)
    expected = bytearray(4096 + 256 * 512)
    expected[:56] = fields + _code(b"sealpoint/header", fields)
    expected[72:80] = _u64(1)
    expected[4096 + 3 * 512 : 4096 + 4 * 512] = (
        name
        + (first + _code(b"sealpoint/anchor", name + first))
        + (second + _code(b"sealpoint/anchor", name + second))
        + bytes(128)
    )

    assert data == bytes(expected)


def test_flag_that_this_version_does_not_know_is_refused(tmp_path: Path) -> None:
    """A genuine copy with another flag was written by a later version, and is not guessed at."""
    name = chained(0, home=3)
    with opened(tmp_path / "anchor", create=True) as anchor:
        anchor.create(name, position(0))
    data = bytearray((tmp_path / "anchor" / NAME).read_bytes())
    start = data.index(name) + COPIES[0]
    copy = bytes(data[start : start + 128]) + b"\x04" + bytes(31)
    data[start : start + _COPY_BYTES] = copy + _code(b"sealpoint/anchor", name + copy)
    _lay(tmp_path / "anchor", bytes(data))

    with (
        opened(tmp_path / "anchor") as anchor,
        pytest.raises(AnchorUnavailable, match="expected flags 0 to 3, found 4"),
    ):
        anchor.get(name)


def test_file_of_an_earlier_version_is_refused(anchor_file: Path) -> None:
    """Its slots have no marks: what was seen of the threads could not be told."""
    data = anchor_file.read_bytes()
    fields = data[:8] + _u32(1) + data[12:40]
    _lay(anchor_file.parent, fields + _code(b"sealpoint/header", fields) + data[56:])

    with (
        pytest.raises(AnchorUnavailable, match="expected version 2, found version 1"),
        opened(anchor_file.parent),
    ):
        pass
