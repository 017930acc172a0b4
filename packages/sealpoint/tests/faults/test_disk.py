# SPDX-License-Identifier: Apache-2.0
"""The simulated disk loses what a real one may lose, and nothing that a real one keeps."""

import stat
from random import Random

import pytest

from tests.faults.disk import ROOT, SECTOR_BYTES, Cut, Disk, Image
from tests.faults.events import (
    Event,
    Link,
    LostSync,
    Make,
    Rename,
    Resize,
    Sync,
    Unlink,
    Write,
)

_FILE = stat.S_IFREG | 0o600
_A, _B, _C = (letter * SECTOR_BYTES for letter in (b"a", b"b", b"c"))


def _disk(*events: Event) -> Disk:
    """A disk with a file `f`, number 1, that is there with one sector, and then the events."""
    disk = Disk()
    for event in (Make(ROOT, "f", 1, _FILE), Write(1, 0, _A), Sync(1), Sync(ROOT), *events):
        disk.apply(event)
    return disk


def _bytes(image: Image, name: str = "f") -> bytes | None:
    return image[name][2] if name in image else None


def _mixtures(disk: Disk, name: str = "f") -> set[bytes | None]:
    """All that a file may hold, as far as many cuts find it."""
    cuts = [Cut.mixed(Random(seed)) for seed in range(300)]  # noqa: S311 # which writes are lost
    return {_bytes(disk.image(cut), name) for cut in cuts}


def test_unsynced_write_is_there_or_not() -> None:
    """A write is lost, kept, or zeros behind a size that came first."""
    assert _mixtures(_disk(Write(1, SECTOR_BYTES, _B))) == {_A, _A + _B, _A + bytes(SECTOR_BYTES)}


def test_synced_write_stays() -> None:
    """A write whose sync returned is there after every cut."""
    assert _mixtures(_disk(Write(1, 0, _B), Sync(1))) == {_B}


def test_writes_are_reordered_and_torn() -> None:
    """Of two writes the later may be there alone, and of one write any of its sectors."""
    disk = _disk(Write(1, 0, _A + _A), Sync(1), Write(1, 0, _B), Write(1, SECTOR_BYTES, _B))
    torn = _disk(Write(1, 0, _A + _A), Sync(1), Write(1, 0, _B + _B))

    assert _mixtures(disk) == _mixtures(torn) == {_A + _A, _B + _A, _A + _B, _B + _B}


def test_sector_is_never_a_mixture() -> None:
    """What was written to one sector later never comes without what was written before."""
    disk = _disk(Write(1, 0, b"x"), Write(1, 9, b"y"))
    first = b"x" + _A[1:]

    assert _mixtures(disk) == {_A, first, first[:9] + b"y" + first[10:]}


def test_file_that_was_cut_off_may_be_long_again() -> None:
    """A size that was not synced may be the old one."""
    assert _mixtures(_disk(Resize(1, 3))) >= {_A, b"aaa"}


def test_name_needs_the_sync_of_its_directory() -> None:
    """The sync of a file keeps its bytes, not its name."""
    disk = _disk(Make(ROOT, "g", 2, _FILE), Write(2, 0, _B), Sync(2))

    assert _bytes(disk.image(Cut.dropped()), "g") is None
    assert _bytes(disk.image(Cut.names_only()), "g") == _B
    disk.apply(Sync(ROOT))
    assert _mixtures(disk, "g") == {_B}


def test_rename_happens_in_one_piece() -> None:
    """The file that is replaced is there until the new one is."""
    disk = _disk(Make(ROOT, "g", 2, _FILE), Write(2, 0, _B), Sync(2), Rename(ROOT, "g", ROOT, "f"))
    cuts = [Cut.mixed(Random(seed)) for seed in range(100)]  # noqa: S311 # which changes are lost
    found = {(_bytes(image), _bytes(image, "g")) for image in map(disk.image, cuts)}

    assert found == {(_A, None), (_A, _B), (_B, None)}


def test_changes_of_different_names_are_reordered() -> None:
    """A second name may be gone while the first, which went before it, is still there."""
    disk = _disk(Link(ROOT, "g", 1), Sync(ROOT), Unlink(ROOT, "f"), Unlink(ROOT, "g"))
    cuts = [Cut.mixed(Random(seed)) for seed in range(100)]  # noqa: S311 # which changes are lost

    assert {tuple(sorted(disk.image(cut))) for cut in cuts} == {(), ("f",), ("g",), ("f", "g")}


@pytest.mark.parametrize("again", [False, True])
def test_sync_that_failed_has_lost_its_writes(*, again: bool) -> None:
    """A later sync says nothing about them; only what is written again gets to the disk."""
    disk = _disk(Write(1, 0, _B), Write(1, SECTOR_BYTES, _B), LostSync(1))
    if again:
        disk.apply(Write(1, 1, b"c"))
    disk.apply(Write(1, 2 * SECTOR_BYTES, _C))
    disk.apply(Sync(1))
    rewritten = b"bc" + _B[2:] if again else _A

    assert _mixtures(disk) == {rewritten + bytes(SECTOR_BYTES) + _C}
