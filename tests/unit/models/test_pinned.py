# SPDX-License-Identifier: Apache-2.0
"""The view of a file whose structure cannot change."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint.errors import ModelUnreadable
from sealpoint.models._pt import PinnedView, read_at
from sealpoint.scan import ZipPiece

_SIZE = 20
_PIECES = (
    ZipPiece(offset=0, data=b"AAAA"),
    ZipPiece(offset=10, data=b"BB"),
    ZipPiece(offset=15, data=b"CCCCC"),
)
_SEEN = b"AAAA......BB...CCCCC"


@pytest.fixture(name="view")
def _view(tmp_path: Path) -> Iterator[PinnedView]:
    path = tmp_path / "f"
    path.write_bytes(b"." * _SIZE)
    with io.FileIO(path) as file:
        yield PinnedView(file, _SIZE, _PIECES, "f")


def test_every_read_gives_pieces_and_elements(view: PinnedView) -> None:
    """From every place and of every length, across all borders."""
    for at in range(_SIZE + 2):
        for length in range(_SIZE + 2):
            assert view.seek(at) == at
            assert view.read(length) == _SEEN[at : at + length]
            assert view.tell() == at + len(_SEEN[at : at + length])


def test_seeking_is_that_of_a_file(view: PinnedView) -> None:
    """From the beginning, from here, and from the end."""
    assert view.seek(-3, os.SEEK_END) == 17
    assert view.seek(1, os.SEEK_CUR) == 18
    assert view.read() == b"CC"
    assert view.readable()
    assert view.seekable()


def test_elements_go_straight_into_any_buffer(view: PinnedView) -> None:
    """A buffer of wider elements is filled by its bytes."""
    buffer = memoryview(bytearray(16)).cast("I")
    view.seek(2)

    assert view.readinto(buffer) == 16
    assert bytes(buffer) == _SEEN[2:18]


def test_elements_that_are_gone_are_told(tmp_path: Path) -> None:
    """The error is kept, since torch forgets it."""
    path = tmp_path / "f"
    path.write_bytes(b"")
    with io.FileIO(path) as file:
        view = PinnedView(file, _SIZE, _PIECES, "f")
        with pytest.raises(ModelUnreadable, match="f: expected 6 bytes at 4, found its end"):
            view.read(20)

    assert view.fault is not None


def test_failing_reads_are_told(tmp_path: Path) -> None:
    """A file that is open for writing cannot be read."""
    descriptor = os.open(tmp_path / "f", os.O_CREAT | os.O_WRONLY)
    with io.FileIO(descriptor, "r") as file:
        with pytest.raises(ModelUnreadable, match="f: expected to read it, found Bad file"):
            read_at(file, 0, 1, "f")
        with pytest.raises(ModelUnreadable, match="f: expected 6 bytes at 4, found Bad file"):
            PinnedView(file, _SIZE, _PIECES, "f").read(20)
