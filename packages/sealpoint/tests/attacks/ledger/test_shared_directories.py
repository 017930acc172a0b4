# SPDX-License-Identifier: Apache-2.0
"""A member of a group who renames what a colleague is making, and puts links in its place.

Both are real users by number, in processes of their own. Before each thing that the colleague's
process asks of the system, as Python's audit events tell them, the member gets a turn: whatever the
moment, nothing private is opened to the group.
"""

import errno
import itertools
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest

from sealpoint import disk
from sealpoint.config._group_sharing import Group, group_faults, make_shared_directory
from sealpoint.disk import make_directory
from sealpoint.errors import SealpointError
from sealpoint.storage._file_root import create_root
from sealpoint.storage._sqlite_file import create_file
from tests.effort import SOAKING

_ANN, _BOB, _TEAM = 64011, 64012, 64010
_as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="acting as two users needs root"
)
_GROUP = Group(name="team", gid=_TEAM, state_dir="unused")

_MAKERS: dict[str, Callable[[Path], None]] = {
    "config": lambda shared: make_shared_directory(shared / "made", _GROUP),
    "anchor": lambda shared: make_directory(shared / "made" / "anchors", _TEAM, parents=True),
    "file": lambda shared: create_root(shared / "made", 1.0, _TEAM),
    "sqlite": lambda shared: create_file(shared / "made", _TEAM),
}
_every_maker = pytest.mark.parametrize("maker", _MAKERS)


class Office:
    """A directory that the team shares, and a home of Ann's with a private file and directory."""

    def __init__(self, base: Path) -> None:
        self.shared, self.home = base / "shared", base / "home"
        self.directory, self.file = self.home / "private", self.home / "private.txt"
        self.shared.mkdir()
        os.chown(self.shared, 0, _TEAM)
        self.shared.chmod(0o2770)
        self.home.mkdir()
        self.directory.mkdir(mode=0o700)
        self.file.write_text("of Ann")
        self.file.chmod(0o600)
        for path in (self.directory, self.file):
            os.chown(path, _ANN, _ANN)

    def private(self) -> list[tuple[int, int, int]]:
        """Whose the private things are, and who may do what with them."""
        found = [path.stat() for path in (self.directory, self.file)]
        return [(each.st_uid, each.st_gid, stat.S_IMODE(each.st_mode)) for each in found]

    def exchange(self, lure: str) -> None:
        """What Bob does: all that Ann has in the shared directory makes way for lures."""
        for place in list(self.shared.iterdir()):
            if place.lstat().st_uid != _ANN:
                continue
            is_directory = place.is_dir()
            place.rename(self.shared / f".gone-{place.name}")
            if not is_directory:
                place.symlink_to(self.file)
            elif lure == "link":
                place.symlink_to(self.directory)
            else:
                place.mkdir()
                place.chmod(0o777)
                (place / "store.db").symlink_to(self.file)


@pytest.fixture
def bases() -> Iterator[Callable[[], Path]]:
    """Directories that other users can reach, which those of pytest are not."""
    made: list[Path] = []

    def base() -> Path:
        made.append(Path(tempfile.mkdtemp(prefix="sealpoint-office-")))
        made[-1].chmod(0o755)
        return made[-1]

    yield base
    for path in made:
        shutil.rmtree(path)


def _become(user: int) -> None:
    os.setgroups([_TEAM])
    os.setgid(user)
    os.setuid(user)


def _bob(office: Office, lure: str, called: int, done: int) -> NoReturn:
    status = 2
    try:
        _become(_BOB)
        if os.read(called, 1):
            with suppress(OSError):
                office.exchange(lure)
            os.write(done, b"x")
        status = 0
    finally:
        os._exit(status)


def _ann(make: Callable[[Path], None], office: Office, turn: int, call: int, done: int) -> NoReturn:
    """Make something, and let Bob do his work at one of the moments when there is something."""
    passed, at_work, status = 0, False, 2

    def hook(event: str, _arguments: tuple[object, ...]) -> None:
        nonlocal passed, at_work
        if at_work or not event.startswith(("open", "os.", "sqlite3.", "shutil.")):
            return
        at_work = True
        if any(office.shared.iterdir()):
            if passed == turn:
                os.write(call, b"x")
                os.read(done, 1)
            passed += 1
        at_work = False

    try:
        _become(_ANN)
        sys.addaudithook(hook)
        with suppress(SealpointError, OSError):
            make(office.shared)
        status = int(passed > turn)
    finally:
        os._exit(status)


def _attacked(make: Callable[[Path], None], office: Office, lure: str, turn: int) -> bool:
    """Whether there was such a moment."""
    call, done = os.pipe(), os.pipe()
    bob = os.fork()
    if bob == 0:
        os.close(call[1])
        _bob(office, lure, call[0], done[1])
    ann = os.fork()
    if ann == 0:
        _ann(make, office, turn, call[1], done[0])
    os.close(call[1])
    statuses = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in (ann, bob)]
    for descriptor in (call[0], *done):
        os.close(descriptor)
    assert statuses in ([0, 0], [1, 0])
    return statuses[0] == 1


@_as_root
@_every_maker
@pytest.mark.parametrize("lure", ["link", "directory"])
def test_a_member_gets_at_nothing_private_by_a_link(
    bases: Callable[[], Path], maker: str, lure: str
) -> None:
    """Whenever the exchange comes, the private file and directory keep their group and mode."""
    # Daily, one lure comes at every even moment and the other at every odd one.
    first, every = (0, 1) if SOAKING else (int(lure == "link"), 2)
    for turns in itertools.count(first, every):
        office = Office(bases())
        before = office.private()
        attacked = _attacked(_MAKERS[maker], office, lure, turns)

        assert office.private() == before, f"at moment {turns}"
        assert office.file.read_text() == "of Ann"
        assert not any(office.directory.iterdir())
        if not attacked:
            break
    assert turns > every


@_as_root
@_every_maker
def test_without_an_exchange_it_is_made_for_the_group(
    bases: Callable[[], Path], maker: str
) -> None:
    """The group may write it, nobody else, and nothing else is left there."""
    office = Office(bases())
    _attacked(_MAKERS[maker], office, "link", 10_000)
    found = (office.shared / "made").stat()

    assert [each.name for each in office.shared.iterdir()] == ["made"]
    assert (found.st_uid, found.st_gid) == (_ANN, _TEAM)
    assert stat.S_IMODE(found.st_mode) == (0o660 if maker == "sqlite" else 0o2770)


def test_a_repair_follows_no_link_and_runs_nothing_else(tmp_path: Path) -> None:
    """What `status` tells a member to run is about the thing itself; for a link it is a look."""
    private = tmp_path / "private"
    private.write_text("of Ann")
    link, odd, linked = tmp_path / "agents.db-wal", tmp_path / "-a b; touch x", tmp_path / "state"
    link.symlink_to(private)
    odd.mkdir()
    linked.symlink_to(tmp_path)
    (wal,) = group_faults(_GROUP, [], [link])
    (plain,) = group_faults(_GROUP, [odd], [])
    (state,) = group_faults(_GROUP, [linked], [])

    assert wal == (f"{link}: expected a file, found a symbolic link", f"ls -ld -- {link}")
    assert plain[1] == f"chgrp -h -- team '{odd}'; chmod -- 2770 '{odd}'"
    assert "a symbolic link" in state[0]
    assert state[1] == f"ls -ld -- {linked}"
    assert not group_faults(_GROUP, [], [tmp_path / "none"])


@pytest.mark.parametrize(("replace", "group"), [(False, None), (False, _TEAM), (True, _TEAM)])
def test_a_file_that_was_swapped_when_it_got_its_name_is_not_taken_for_the_one_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, replace: bool, group: int | None
) -> None:
    """Whoever may rename in the directory cannot have its own file believed in its place."""
    made = _swapped_when_made(tmp_path, monkeypatch)
    group = None if group is None else tmp_path.stat().st_gid

    with pytest.raises(OSError, match="another") as caught:
        disk.write_file(made, b"ours", replace=replace, group=group)

    assert caught.value.errno == errno.ESTALE
    assert made.read_bytes() == b"theirs"


def test_two_who_replace_a_file_of_their_own_do_not_refuse_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody else may write, another file in its place is the user's own, and newer."""
    made = _swapped_when_made(tmp_path, monkeypatch)

    disk.write_file(made, b"ours", replace=True)

    assert made.read_bytes() == b"theirs"


def _swapped_when_made(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in whose place another is put as soon as its name is on the disk."""
    made, theirs, sync = directory / "made", directory / "theirs", disk.sync
    theirs.write_bytes(b"theirs")

    def sync_and_swap(descriptor: int) -> None:
        sync(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            theirs.replace(made)

    monkeypatch.setattr(disk, "sync", sync_and_swap)
    return made
