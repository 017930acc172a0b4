# SPDX-License-Identifier: Apache-2.0
"""What lies under the name of a store, and beside it, that no store has."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from sealpoint.errors import Edited, StorageUnavailable
from sealpoint.storage._sqlite_connections import connect
from sealpoint.storage._sqlite_file import file_identity
from sealpoint.storage._sqlite_schema import Purpose
from sealpoint.storage.sqlite import SqliteStorage

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX file kinds")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a store."""
    path = tmp_path / "store.db"
    SqliteStorage(path, create=True).close()
    return path


def test_a_link_in_the_place_of_the_store_is_refused(path: Path) -> None:
    """SQLite would look for journals beside what the link leads to."""
    path.rename(path.with_name("elsewhere.db"))
    path.symlink_to("elsewhere.db")

    for read_only in (False, True):
        with pytest.raises(StorageUnavailable, match="found a link"):
            SqliteStorage(path, read_only=read_only)


def test_a_link_to_nowhere_or_to_an_endless_name_is_refused(path: Path) -> None:
    """No foreign error comes out, whatever the link says."""
    for target in ("nowhere", "x" * 300, "/proc/1/cwd/x"):
        path.unlink()
        try:
            path.symlink_to(target)
        except OSError:
            path.touch()
            continue
        with pytest.raises(StorageUnavailable):
            SqliteStorage(path, create=True)


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_the_store_is_refused_at_once(path: Path) -> None:
    """Opening a pipe would wait for ever."""
    path.unlink()
    os.mkfifo(path)

    with pytest.raises(StorageUnavailable, match="found a link or something else"):
        SqliteStorage(path)


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_with_another_name_elsewhere_is_refused(path: Path, suffix: str) -> None:
    """SQLite would overwrite the file that has the other name."""
    victim = path.with_name("victim")
    victim.write_bytes(b"precious")
    path.with_name(path.name + suffix).hardlink_to(victim)

    with pytest.raises(Edited, match="expected a file of its own"):
        SqliteStorage(path)
    assert victim.read_bytes() == b"precious"


def test_two_connections_are_never_on_two_files(path: Path) -> None:
    """A file that was exchanged after the first connection is not opened by the second."""
    identity = file_identity(path)
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)

    with pytest.raises(Edited, match="found it exchanged"):
        connect(path, identity=identity, purpose=Purpose.WRITE, wait_seconds_max=1)


def test_making_a_store_leaves_nothing_else_behind(tmp_path: Path) -> None:
    """The directory in which it was made goes, whether the store was new or there already."""
    for _ in range(2):
        with closing(SqliteStorage(tmp_path / "store.db", create=True)):
            pass

    assert [each.name for each in tmp_path.iterdir()] == ["store.db"]
