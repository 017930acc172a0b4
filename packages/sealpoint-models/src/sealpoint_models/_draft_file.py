# SPDX-License-Identifier: Apache-2.0
"""Model files in progress: written next to their path, made durable, then moved there.

The old file stays complete until a draft is moved to its path; afterwards the new one is complete.
An abandoned draft is removed; if its process was killed, the next save to the path removes it: the
writer of a draft holds a lock on it.

A file that a store vouches for waits next to its path while the entry is written, under a name that
is derived from its digest. If the process ends in between, a load of the entry's file finds it
there: see `waiting_path`.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

try:
    import fcntl
except ImportError:  # not a POSIX system: drafts of ended processes stay
    fcntl = None  # type: ignore[assignment]

from sealpoint import disk
from sealpoint.errors import ModelUnreadable
from sealpoint_models._file_reader import (
    FileDigests,
    TensorPiece,
    batches_of,
    digests_of,
    header_digest,
    in_parallel,
    move_piece,
    unreadable,
)
from sealpoint_models.scan._safetensors import ModelHeader

Source = Callable[[], memoryview]
"""Returns the bytes of one tensor, in the order of the file."""

_MODE = 0o666
_STEM_CHARS_MAX = 20
_NAME_DIGITS = 16


def waiting_path(path: Path, root: bytes) -> Path:
    """The path of the file with this digest until its entry is written.

    Raises:
        ModelUnreadable: The path has no name.
    """
    with _reported(path):
        return path.with_name(f"{_beginning(path)}{root.hex()}.waiting")


def _beginning(path: Path) -> str:
    """The prefix of related files in the same directory."""
    # The digest of the whole name: two files of a run may have the same prefix.
    digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:_NAME_DIGITS]
    return f".{path.name[:_STEM_CHARS_MAX]}.{digest}."


@contextlib.contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as exc:
        raise unreadable(str(path), exc) from exc


def real_path(path: str | os.PathLike[str]) -> Path:
    """Where the file of this path is, to be read: a link leads to the file that it names.

    Raises:
        ModelUnreadable: The path is none.
    """
    place = Path(path)
    with _reported(place):
        return _resolved(place) if place.is_symlink() else place


def _resolved(path: Path) -> Path:
    """A path without links; unlike that of `Path`, it takes links that lead in a circle."""
    return Path(os.path.realpath(path))


def target_path(path: str | os.PathLike[str]) -> Path:
    """Where a file of this path is to be written.

    A link of this user is followed to a file in the same directory or below it. Any other link
    could have been planted by an attacker who may write to the directory, so that a save replaces a
    file that the attacker may not write, such as the anchor.

    Raises:
        ModelUnreadable: The path is none, or such a link.
    """
    place = Path(path)
    with _reported(place):
        if not place.is_symlink():
            return place
        directory = _resolved(place.parent)
        named = Path(os.path.normpath(directory / place.readlink()))
        # Only one step: a second link on the way may belong to another user.
        within = named.is_relative_to(directory) and _resolved(named) == named
        own = not hasattr(os, "geteuid") or place.lstat().st_uid in (0, os.geteuid())
        if within and own:
            return named
    raise ModelUnreadable(
        f"{place}: it is a link that is not this user's, or that leads out of its directory",
        hint="Save to the path of the file itself. If nobody you know made the link, find out who "
        "can write to its directory.",
    )


def _mode_at(path: Path) -> int | None:
    """The permissions of the file that is at a path; None if there is none.

    Checked early, before a store vouches for the file: whether the path can hold a file.
    """
    try:
        found = path.lstat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found):
        raise ValueError("something that is not a file, and is not replaced by one")
    return stat.S_IMODE(found)


def put_in_place(source: Path, path: Path) -> None:
    """Give a durable file its name, durably.

    Raises:
        ModelUnreadable: The directory cannot be written to.
    """
    with _reported(path):
        disk.move_file(source, path)


def _begun(path: Path) -> tuple[Path, int]:
    """A new locked draft, and its descriptor."""
    while True:
        draft = path.with_name(f"{_beginning(path)}{secrets.token_hex(8)}.draft")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
        if fcntl is None:
            return draft, fd
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:  # else somebody took it for abandoned before it was locked
            return draft, fd
        os.close(fd)


def _remove_abandoned(path: Path) -> None:
    """Remove drafts of this file whose writers have ended."""
    if fcntl is None:
        return
    beginning = _beginning(path)
    for draft in path.parent.iterdir():
        if draft.name.startswith(beginning) and draft.name.endswith(".draft"):
            with contextlib.suppress(OSError):
                # For reading: a draft may have got the permissions of a file that is read only.
                fd = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    draft.unlink()
                finally:
                    os.close(fd)


class ModelDraft:
    """A file that is being written; its `with` block removes it unless it was moved to a path.

    Args:
        path: Its final path.

    Raises:
        ModelUnreadable: Its directory cannot be written to, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_placed = False
        with _reported(path):
            mode = _mode_at(path)
            _remove_abandoned(path)
            self._at, self._fd = _begun(path)
            if mode is not None:
                os.fchmod(self._fd, mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        if not self._is_placed:
            with contextlib.suppress(OSError):
                self._at.unlink()

    def write(
        self, header: ModelHeader, sources: Mapping[str, Source], *, hashing: bool
    ) -> FileDigests | None:
        """Write the file, durably, and hash what is written.

        Args:
            header: Its header.
            sources: The bytes of each tensor, by name; each is asked once, in order.
            hashing: Whether digests are wanted.
        """
        tensors = list(header.tensors.values())
        size = tensors[-1].end if tensors else len(header.raw)

        def batches() -> Iterator[list[tuple[TensorPiece, memoryview]]]:
            held: tuple[str, memoryview] = ("", memoryview(b""))
            for batch in batches_of(tensors):
                filled = []
                for piece in batch:
                    if held[0] != piece.tensor.name:
                        held = (piece.tensor.name, sources[piece.tensor.name]())
                    filled.append((piece, held[1][piece.at : piece.at + piece.size]))
                yield filled

        def write(batch: Sequence[tuple[TensorPiece, memoryview]]) -> dict[tuple[str, int], bytes]:
            digests = {
                (piece.tensor.name, piece.at): move_piece(
                    piece, memory, self._write_all, hashing=hashing
                )
                for piece, memory in batch
            }
            first, last = batch[0][0], batch[-1][0]
            self._start_writing(
                first.tensor.begin + first.at, last.tensor.begin + last.at + last.size
            )
            return digests

        digests: dict[tuple[str, int], bytes] = {}
        with _reported(self._path):
            self._write_all(memoryview(header.raw), 0)
            for found in in_parallel(write, batches()):
                digests.update(found)
            disk.sync(self._fd)
        if not hashing:
            return None
        return FileDigests(
            size=size, header=header_digest(header.raw), tensors=digests_of(tensors, digests)
        )

    def _start_writing(self, begin: int, end: int) -> None:
        """Have the disk begin with these bytes, so that less is left to wait for at the end.

        The advice says that nobody will read them soon. Linux then starts to write them, and a
        checkpoint does not push what programs do read out of memory.
        """
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, begin, end - begin, os.POSIX_FADV_DONTNEED)

    def _write_all(self, memory: memoryview, offset: int) -> None:
        done = 0
        while done < len(memory):
            done += os.pwrite(self._fd, memory[done:], offset + done)

    def move_to(self, path: Path) -> None:
        """Give the draft a name, durably; it is not removed any more.

        Raises:
            ModelUnreadable: The directory cannot be written to.
        """
        put_in_place(self._at, path)
        self._is_placed = True

    def move_to_free(self, path: Path) -> None:
        """Give the draft a name that nothing has, durably.

        Raises:
            FileExistsError: Something has it.
            ModelUnreadable: The directory cannot be written to.
        """
        try:
            # Unlike a rename, a second name is never given in the place of a file. The first is
            # taken away with the draft.
            os.link(self._at, path, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a disk without second names
            if os.path.lexists(path):
                raise FileExistsError(path) from None
            self.move_to(path)
        else:
            with _reported(path):
                disk.sync_directory(path.parent)

    def is_at(self, path: Path) -> bool:
        """Whether the file at a path is this draft, and not the file of another writer."""
        try:
            return os.path.samestat(os.fstat(self._fd), path.lstat())
        except OSError:
            return False
