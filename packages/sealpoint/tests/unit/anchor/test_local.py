# SPDX-License-Identifier: Apache-2.0
"""Where a local anchor lies, who may open it, and what an absent one answers."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sealpoint.anchor import local as _shared
from sealpoint.anchor.local import LocalAnchor
from sealpoint.errors import AnchorUnavailable, DirectoryUnusable, UsageError
from tests.unit.anchor.places import KEY, NAME, STORE, opened, position, slot


@pytest.fixture
def unprivileged_place() -> Iterator[Path]:
    """A directory of a user whom permissions bind, and this process as that user."""
    place = Path(tempfile.mkdtemp())
    user = os.geteuid()
    if user == 0:
        os.chown(place, 65534, 65534)
        os.seteuid(65534)
    try:
        yield place
    finally:
        os.seteuid(user)
        for path in (place, *place.rglob("*")):
            path.chmod(0o700)
        shutil.rmtree(place)


def _state(place: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in (place, *place.rglob("*"))
    }


def test_directory_and_file_are_open_to_the_user_alone(tmp_path: Path) -> None:
    """Directories that were made have mode 0700 and the file 0600, and nothing else is left."""
    directory = tmp_path / "state" / "anchors" / "one"
    with opened(directory, create=True):
        pass

    assert [path.stat().st_mode & 0o777 for path in (directory, directory.parent)] == [0o700] * 2
    assert (directory / NAME).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in directory.iterdir()] == [NAME]


def test_absent_anchor_knows_nothing_and_is_made_by_create(tmp_path: Path) -> None:
    """Without a file every slot is None and nothing is made until the first slot is."""
    directory = tmp_path / "anchor"
    with opened(directory) as anchor, opened(directory) as other:
        assert anchor.get(slot(1)) is None
        assert list(anchor.slots()) == []
        with pytest.raises(AnchorUnavailable, match="it has no position of this thread to advance"):
            anchor.advance(slot(1), position(0), position(1))
        assert not directory.exists()

        anchor.create(slot(1), position(0))

        assert other.get(slot(1)) == position(0)


def test_wrong_sizes_are_refused(tmp_path: Path) -> None:
    """Store id, key, slot and position have one size each; any other is a UsageError."""
    for store, key in ((b"s" * 15, KEY), (STORE, b"k" * 33), (STORE, b"")):
        with pytest.raises(UsageError, match="local anchor"):
            LocalAnchor(tmp_path / "anchor", store=store, key=key)
    with pytest.raises(UsageError, match="found both"):
        LocalAnchor(tmp_path / "anchor", store=STORE, key=KEY, create=True, read_only=True)
    with opened(tmp_path / "anchor", create=True) as anchor:
        anchor.create(slot(1), position(0))
        short = replace(position(0), thread=b"x")
        for wrong in (bytes(32), b"x" * 31):
            with pytest.raises(UsageError, match="anchor slot"):
                anchor.get(wrong)
        with pytest.raises(UsageError, match="anchor position"):
            anchor.create(slot(2), short)
        with pytest.raises(UsageError, match="anchor position"):
            anchor.advance(slot(1), short, position(1))

        assert dict(anchor.slots()) == {slot(1): position(0)}


def test_links_are_refused(tmp_path: Path) -> None:
    """A directory or a file that is a link is not used, wherever the link leads."""
    with opened(tmp_path / "real", create=True):
        pass
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "other").mkdir(mode=0o700)
    (tmp_path / "other" / NAME).symlink_to(tmp_path / "real" / NAME)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")

    for name in ("link", "other", "dangling"):
        for create in (False, True):
            with (
                pytest.raises(DirectoryUnusable, match=str(tmp_path / name)),
                opened(tmp_path / name, create=create),
            ):
                pass
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o777])
@pytest.mark.parametrize("name", [".", NAME])
def test_what_others_may_write_is_refused(tmp_path: Path, mode: int, name: str) -> None:
    """A directory or a file with write permission for group or others is not used."""
    with opened(tmp_path / "anchor", create=True):
        pass
    (tmp_path / "anchor" / name).chmod(mode)

    with (
        pytest.raises(DirectoryUnusable, match="only its owner writes"),
        opened(tmp_path / "anchor"),
    ):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", [".", NAME])
def test_what_another_user_owns_is_refused(tmp_path: Path, name: str) -> None:
    """A directory or a file of another user is not used."""
    with opened(tmp_path / "anchor", create=True):
        pass
    os.chown(tmp_path / "anchor" / name, 65534, 65534)

    with pytest.raises(DirectoryUnusable, match="as its owner"), opened(tmp_path / "anchor"):
        pass


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A named pipe or a directory in the place of the file is refused, and nobody waits for it."""
    for name, make in (("pipe", os.mkfifo), ("directory", os.mkdir)):
        (tmp_path / name).mkdir(mode=0o700)
        make(tmp_path / name / NAME)
        for read_only in (False, True):
            with (
                pytest.raises((DirectoryUnusable, AnchorUnavailable), match=str(tmp_path / name)),
                opened(tmp_path / name, read_only=read_only),
            ):
                pass


def test_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A directory whose parent is a file is DirectoryUnusable with its name."""
    (tmp_path / "file").write_bytes(b"")
    directory = tmp_path / "file" / "anchor"

    with pytest.raises(DirectoryUnusable, match=str(directory)), opened(directory, create=True):
        pass


def test_unwritable_directory_is_named(unprivileged_place: Path) -> None:
    """Making an anchor without permission is DirectoryUnusable, or AnchorUnavailable later."""
    unprivileged_place.chmod(0o500)
    directory = unprivileged_place / "anchor"

    for wanted in (directory, unprivileged_place):
        with pytest.raises(DirectoryUnusable, match=str(wanted)), opened(wanted, create=True):
            pass
        with opened(wanted) as anchor, pytest.raises(AnchorUnavailable, match=str(wanted)):
            anchor.create(slot(1), position(0))


def test_reading_needs_no_write_permission(unprivileged_place: Path) -> None:
    """A read-only anchor opens what it may not write, and one that writes says it cannot."""
    directory = unprivileged_place / "anchor"
    with opened(directory, create=True) as anchor:
        anchor.create(slot(1), position(0))
    (directory / NAME).chmod(0o400)
    directory.chmod(0o500)

    with pytest.raises(AnchorUnavailable, match=str(directory)), opened(directory):
        pass
    with opened(directory, read_only=True) as anchor:
        assert anchor.get(slot(1)) == position(0)
        assert anchor.get(slot(2)) is None
        assert dict(anchor.slots()) == {slot(1): position(0)}


def test_unreadable_file_is_unavailable(unprivileged_place: Path) -> None:
    """A file without read permission is AnchorUnavailable, never an absent anchor."""
    with opened(unprivileged_place, create=True):
        pass
    (unprivileged_place / NAME).chmod(0)

    for read_only in (False, True):
        with (
            pytest.raises(AnchorUnavailable, match=str(unprivileged_place)),
            opened(unprivileged_place, read_only=read_only),
        ):
            pass


def test_read_only_writes_nothing(tmp_path: Path) -> None:
    """A read-only anchor follows what others write, changes no byte, and makes nothing."""
    with opened(tmp_path / "none", read_only=True) as anchor:
        assert anchor.get(slot(1)) is None
        with pytest.raises(AnchorUnavailable, match="reading only"):
            anchor.create(slot(1), position(0))
    assert not (tmp_path / "none").exists()
    with opened(tmp_path / "anchor", create=True) as writer:
        writer.create(slot(0), position(0))
        with opened(tmp_path / "anchor", read_only=True) as anchor:
            for number in range(1, 400):
                writer.create(slot(number), position(number))
                assert anchor.get(slot(number)) == position(number)
            before = _state(tmp_path)
            with pytest.raises(AnchorUnavailable, match="reading only"):
                anchor.create(slot(1), position(0))
            with pytest.raises(AnchorUnavailable, match="reading only"):
                anchor.advance(slot(1), position(1), position(2))

            assert len(dict(anchor.slots())) == 400
            assert _state(tmp_path) == before


def test_removed_file_is_unavailable_and_never_empty(tmp_path: Path) -> None:
    """Once opened, a file that is removed or replaced takes no more writes."""
    directory = tmp_path / "anchor"
    with opened(directory, create=True) as anchor:
        anchor.create(slot(1), position(0))
        shutil.copytree(directory, tmp_path / "copy")
        (directory / NAME).unlink()
        for _ in range(2):
            with pytest.raises(AnchorUnavailable, match="removed or replaced"):
                anchor.advance(slot(1), position(0), position(1))
            with pytest.raises(AnchorUnavailable, match="removed or replaced"):
                anchor.create(slot(2), position(0))
            shutil.copy(tmp_path / "copy" / NAME, directory / NAME)

        assert anchor.get(slot(1)) == position(0)
    with opened(directory) as anchor:
        assert dict(anchor.slots()) == {slot(1): position(0)}


def test_listing_outlives_growth(tmp_path: Path) -> None:
    """A listing that was begun before growth gives the positions that were written after it."""
    with opened(tmp_path / "anchor", create=True) as anchor, opened(tmp_path / "anchor") as other:
        for number in range(150):
            anchor.create(slot(number), position(0))
        listing = anchor.slots()
        for number in range(150, 320):
            other.create(slot(number), position(0))
        for number in range(320):
            other.advance(slot(number), position(0), position(1))
        found = dict(listing)

        assert {slot(number) for number in range(150)} <= set(found)
        assert set(found.values()) == {position(1)}


def test_slots_that_were_read_are_found_again_after_growth(tmp_path: Path) -> None:
    """Where a slot lay in the file before says nothing about the larger one."""
    with opened(tmp_path / "anchor", create=True) as anchor, opened(tmp_path / "anchor") as other:
        for number in range(150):
            other.create(slot(number), position(0))
        before = [anchor.get(slot(number)) for number in range(150)]
        for number in range(150, 320):
            other.create(slot(number), position(0))
        for number in range(0, 150, 2):
            other.advance(slot(number), position(0), position(1))
        after = [anchor.get(slot(number)) for number in range(150)]

        assert before == [position(0)] * 150
        assert after == [position(1), position(0)] * 75


def test_system_without_file_locks_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no fcntl the anchor says so in one sentence instead of failing later."""
    monkeypatch.setattr(_shared, "fcntl", None)

    with pytest.raises(AnchorUnavailable, match="without the fcntl module"), opened(tmp_path):
        pass
