# SPDX-License-Identifier: Apache-2.0
"""Files that others could read or change are refused; nothing is ever half-written."""

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpoint.config._protected_files import (
    check_directory,
    make_directory,
    read_file,
    replace_file,
    write_new_file,
)
from sealpoint.errors import DirectoryUnusable, KeyFileUnsafe

_OLD, _NEW = b"old" * 1000, b"new" * 1000


def _read(path: Path, *, secret: bool = True, follow: bool = False) -> bytes | None:
    return read_file(path, bytes_max=4096, secret=secret, follow=follow)


def _file(path: Path, mode: int = 0o600, data: bytes = b"data") -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_of_the_users_own_is_read(tmp_path: Path, mode: int) -> None:
    """Only the owner can read it, so it is believed."""
    assert _read(_file(tmp_path / "f", mode)) == b"data"


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    """Absence is not an error here; callers know what it means."""
    assert _read(tmp_path / "f") is None
    assert _read(tmp_path / "directory" / "f") is None


@pytest.mark.parametrize("bit", [0o040, 0o020, 0o010, 0o004, 0o002, 0o001, 0o044, 0o077])
def test_a_secret_that_others_can_touch_is_refused(tmp_path: Path, bit: int) -> None:
    """Any bit for the group or for others is one too many, and the message says which."""
    path = _file(tmp_path / "f", 0o600 | bit)

    with pytest.raises(KeyFileUnsafe) as caught:
        _read(path)
    assert caught.value.message == f"{path}: expected mode 0600, found {0o600 | bit:04o}"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_public_file_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    """What is no secret may be read by all and changed by none."""
    path = _file(tmp_path / "f", 0o655)

    assert _read(path, secret=False) == b"data"
    path.chmod(mode)
    with pytest.raises(KeyFileUnsafe, match=f"only its owner writes, found {mode:04o}"):
        _read(path, secret=False)


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever owns a file can read and change it whatever its mode says."""
    path = _file(tmp_path / "f")
    owner = os.getuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)

    with pytest.raises(KeyFileUnsafe) as caught:
        _read(path)
    assert f"expected user {owner + 1} as its owner, found user {owner}" in str(caught.value)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of root and of others")
def test_root_may_own_what_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pin that root put there is fine; a key must be the user's own, and others are nobody."""
    path = _file(tmp_path / "f")
    monkeypatch.setattr(os, "geteuid", lambda: 1234)

    assert _read(path, secret=False) == b"data"
    assert check_directory(tmp_path)
    with pytest.raises(KeyFileUnsafe, match="found user 0"):
        _read(path)
    os.chown(path, 5678, -1)
    with pytest.raises(KeyFileUnsafe, match="found user 5678"):
        _read(path, secret=False)
    os.chown(tmp_path, 5678, -1)
    with pytest.raises(DirectoryUnusable, match="found user 5678"):
        check_directory(tmp_path)
    os.chown(tmp_path, 0, -1)


def test_a_link_is_refused_unless_it_may_be_one(tmp_path: Path) -> None:
    """A link could lead to a file that was never meant to be a key."""
    _file(tmp_path / "f")
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "dangling").symlink_to("nothing")

    for name in ("link", "dangling"):
        with pytest.raises(KeyFileUnsafe, match="a symbolic link"):
            _read(tmp_path / name)
    assert _read(tmp_path / "link", follow=True) == b"data"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    """A directory in the place of a file is named as one."""
    with pytest.raises(KeyFileUnsafe, match="expected a file, found a directory"):
        _read(tmp_path)


def test_a_pipe_is_refused_and_does_not_block(tmp_path: Path) -> None:
    """Opening a pipe that nobody writes would wait for ever."""
    os.mkfifo(tmp_path / "f", 0o600)

    with pytest.raises(KeyFileUnsafe, match="expected a file, found a pipe"):
        _read(tmp_path / "f")


def test_a_device_or_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither has bytes of its own."""
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s")
        with pytest.raises(KeyFileUnsafe, match=r"expected a file|cannot be read"):
            _read(tmp_path / "s")
    with pytest.raises(KeyFileUnsafe, match="expected a file, found a device"):
        _read(Path(os.devnull))


def test_a_file_below_a_file_has_no_directory(tmp_path: Path) -> None:
    """The directory is what is wrong, and is named."""
    path = _file(tmp_path / "f")

    with pytest.raises(DirectoryUnusable, match="Not a directory") as caught:
        _read(path / "below")
    assert str(path) in str(caught.value)


def test_a_read_is_bounded(tmp_path: Path) -> None:
    """A file of the largest size is read, one byte more is refused."""
    path = _file(tmp_path / "f", data=b"x" * 4096)

    assert _read(path) == b"x" * 4096
    _file(path, data=b"x" * 4097)
    with pytest.raises(KeyFileUnsafe, match="larger than 4096 bytes"):
        _read(path)


def test_a_file_that_changes_its_name_meanwhile_is_the_one_that_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is checked and what is read is one open file, whatever the name leads to later."""
    path = _file(tmp_path / "f", data=b"checked")
    true_fstat = os.fstat

    def swap_after(descriptor: int) -> os.stat_result:
        found = true_fstat(descriptor)
        if path.read_bytes() == b"checked":
            _file(tmp_path / "other", 0o666, b"planted").rename(path)
        return found

    monkeypatch.setattr(os, "fstat", swap_after)

    assert _read(path) == b"checked"
    assert path.read_bytes() == b"planted"


def test_a_failing_read_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails while a file is opened or read gives one of our errors."""
    path = _file(tmp_path / "f")

    for function in ("fstat", "open"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, _failing(OSError(errno.EIO, "Input/output error")))
            with pytest.raises(KeyFileUnsafe, match="found Input/output error"):
                _read(path)


def _failing(error: BaseException) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


def test_a_directory_is_made_for_the_user_alone(tmp_path: Path) -> None:
    """Its mode is 0700 whatever the umask is, and making it again changes nothing."""
    before = os.umask(0)
    try:
        make_directory(tmp_path / "d")
        make_directory(tmp_path / "d")
        make_directory(tmp_path / "a" / "b", parents=True)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o777, 0o1777])
def test_a_directory_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    """Who can write a directory can put other files into it."""
    path = tmp_path / "d"
    path.mkdir()
    path.chmod(mode)

    for function in (check_directory, make_directory):
        with pytest.raises(DirectoryUnusable) as caught:
            function(path)
        assert (
            caught.value.message
            == f"{path}: expected a mode in which only its owner writes, found {mode:04o}"
        )
        assert f"chmod go-w {path}" in caught.value.hint


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    """A file, a link, or something below a file."""
    path = _file(tmp_path / "f")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("nothing")

    for function in (check_directory, make_directory):
        with pytest.raises(DirectoryUnusable, match="expected a directory, found a file"):
            function(path)
        with pytest.raises(DirectoryUnusable, match="Not a directory"):
            function(path / "below")
        with pytest.raises(DirectoryUnusable, match="expected a directory, found a symbolic link"):
            function(tmp_path / "link")
    with pytest.raises(DirectoryUnusable, match="found a link to nothing"):
        make_directory(tmp_path / "dangling", follow=True)
    assert check_directory(tmp_path / "link", follow=True)
    assert not check_directory(tmp_path / "nothing")


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """The message is one sentence with the path and the system's reason."""
    with pytest.raises(DirectoryUnusable, match="No such file") as caught:
        make_directory(tmp_path / "a" / "b")
    assert str(tmp_path / "a" / "b") in str(caught.value)


def test_a_new_file_is_the_users_alone_and_complete(tmp_path: Path) -> None:
    """Its mode is 0600 whatever the umask is, and nothing else is left behind."""
    for umask in (0, 0o777):
        path = tmp_path / f"f{umask}"
        before = os.umask(umask)
        try:
            assert write_new_file(path, _NEW)
        finally:
            os.umask(before)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert _read(path) == _NEW
        assert path.stat().st_nlink == 1

    assert len(list(tmp_path.iterdir())) == 2


def test_a_new_file_never_overwrites(tmp_path: Path) -> None:
    """A file, a directory or a link of that name stays as it is, and nothing is followed."""
    _file(tmp_path / "f", data=_OLD)
    (tmp_path / "d").mkdir()
    (tmp_path / "dangling").symlink_to("target")

    for name in ("f", "d", "dangling"):
        assert not write_new_file(tmp_path / name, _NEW)
    assert (tmp_path / "f").read_bytes() == _OLD
    assert (tmp_path / "d").is_dir()
    assert (tmp_path / "dangling").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "dangling", "f"]


def test_replacing_puts_a_new_file_in_the_place(tmp_path: Path) -> None:
    """An old file with a wide mode and a link are replaced, not written through."""
    _file(tmp_path / "f", 0o666, _OLD)
    _file(tmp_path / "target", data=_OLD)
    (tmp_path / "link").symlink_to("target")

    for name in ("f", "link", "new"):
        replace_file(tmp_path / name, _NEW)
        assert _read(tmp_path / name) == _NEW
    assert (tmp_path / "target").read_bytes() == _OLD
    assert len(list(tmp_path.iterdir())) == 4


class _Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("error", [_Crash(), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("step", ["fchmod", "fsync", "link", "replace", "unlink"])
@pytest.mark.parametrize("write", [write_new_file, replace_file])
def test_a_failure_at_any_step_leaves_no_part_of_a_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Path, bytes], object],
    step: str,
    error: BaseException,
) -> None:
    """Whatever has the final name afterwards is the old file, the new one, or nothing."""
    path = tmp_path / "f"
    if write is replace_file:
        _file(path, data=_OLD)
    monkeypatch.setattr(os, step, _failing(error))
    try:
        write(path, _NEW)
    except (_Crash, DirectoryUnusable):
        pass
    finally:
        monkeypatch.undo()

    found = _read(path)
    assert found in ({_OLD, _NEW} if write is replace_file else {None, _NEW})
    if step != "unlink":
        assert [entry for entry in tmp_path.iterdir() if entry != path] == []


@pytest.mark.parametrize("write", [write_new_file, replace_file])
def test_bytes_are_durable_before_they_have_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, bytes], object]
) -> None:
    """The file is synced, then named, then its directory is synced."""
    steps = []
    true_sync = os.fsync
    path = tmp_path / "f"

    def watched(descriptor: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        steps.append((kind, os.fstat(descriptor).st_size if kind == "file" else None))
        steps.append(("named", path.exists()))
        true_sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    write(path, _NEW)

    assert steps == [("file", len(_NEW)), ("named", False), ("directory", None), ("named", True)]


@pytest.mark.parametrize("write", [write_new_file, replace_file])
def test_a_directory_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, bytes], object]
) -> None:
    """Root may write everywhere, so the refusal of the system is simulated."""
    with pytest.raises(DirectoryUnusable, match="No such file"):
        write(tmp_path / "none" / "f", _NEW)
    monkeypatch.setattr(os, "open", _failing(PermissionError(errno.EACCES, "Permission denied")))
    with pytest.raises(DirectoryUnusable) as caught:
        write(tmp_path / "f", _NEW)

    assert caught.value.message == (
        f"{tmp_path}: expected a directory that can be read and written, found Permission denied"
    )


def test_a_system_without_owners_and_modes_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that lacks these names, as Windows does, checks the kind of a file alone."""
    for name in ("geteuid", "fchmod", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK"):
        monkeypatch.delattr(os, name)
    make_directory(tmp_path / "d")

    assert write_new_file(tmp_path / "d" / "f", _OLD)
    assert _read(tmp_path / "d" / "f") == _OLD
    replace_file(tmp_path / "d" / "f", _NEW)
    (tmp_path / "d" / "f").chmod(0o666)
    (tmp_path / "d").chmod(0o777)
    assert _read(tmp_path / "d" / "f") == _NEW
    assert check_directory(tmp_path / "d")
