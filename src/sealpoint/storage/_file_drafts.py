# SPDX-License-Identifier: Apache-2.0
"""Files on their way to their names: whole and on the disk before anybody can find them.

A draft is written under a name that no reader looks for, in the directory of its thread, whose
lock the caller holds. It guarantees this order, each step for all drafts before the next:

1. the bytes are on the disk;
2. the file gets its own name as a second one; a name that is taken is refused, or replaced in one
   piece where the caller says so;
3. the directory with that name is on the disk;
4. the name of the draft goes.

So a file that has its draft's name still (two links) is whole, and its own name perhaps not on
the disk yet. Whoever is about to rely on such a file makes its directory durable first: then what
somebody has seen is never gone after a power cut, although readers take no lock. A crash leaves
drafts behind; nobody reads them, and `compact` removes them.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from sealpoint.errors import StorageUnavailable
from sealpoint.storage._file_directory import Directory, sync

__all__ = ["Drafts", "draft_names"]

_PREFIX = "new-"
_SECOND = "-b"
# Open files at a time, and the most that one crash leaves behind.
_DRAFTS_MAX = 32
# Names that are passed over: what 128 crashes leave, or somebody who wants to keep writers busy.
_LEFT_MAX = 4096


@dataclass(slots=True)
class _Draft:
    draft: str
    descriptor: int
    directory: Directory
    name: str
    replaces: bool
    named: bool = False

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class Drafts:
    """The drafts of one call; use it in a `with` block, which settles them at its end.

    Args:
        home: Where drafts lie until they have their names; its lock is held.
    """

    __slots__ = ("_drafts", "_home", "_number")

    def __init__(self, home: Directory) -> None:
        self._home = home
        self._number = 0
        self._drafts: list[_Draft] = []

    def write(
        self, directory: Directory, name: str, pieces: Iterable[bytes], *, replaces: bool = False
    ) -> None:
        """Write a file that is to be called `name` in `directory`, which must stay open."""
        if len(self._drafts) >= _DRAFTS_MAX:
            self.settle()
        draft, descriptor = self._new()
        self._drafts.append(_Draft(draft, descriptor, directory, name, replaces))
        for piece in pieces:
            written = os.write(descriptor, piece)
            while written < len(piece):
                written += os.write(descriptor, memoryview(piece)[written:])

    def settle(self) -> None:
        """Give all drafts their names; when it returns, they survive a power cut."""
        # (1) Bytes.
        for draft in self._drafts:
            sync(draft.descriptor)
            draft.close()
        # (2) Names.
        for draft in self._drafts:
            self._name(draft)
        # (3) Names on the disk, once for each directory.
        for directory in {id(draft.directory): draft.directory for draft in self._drafts}.values():
            directory.sync()
        # (4) Only the one name.
        for draft in self._drafts:
            self._home.remove(draft.draft)
        self._drafts.clear()

    def _new(self) -> tuple[str, int]:
        """Make the file of a draft; names that a crash has left are passed over.

        Raises:
            StorageUnavailable: There are more of them than crashes leave.
        """
        for _ in range(_LEFT_MAX):
            name = f"{_PREFIX}{self._number}"
            self._number += 1
            with contextlib.suppress(FileExistsError):
                return name, self._home.new_file(name)
        raise StorageUnavailable(
            f"{self._home.path}: expected at most {_LEFT_MAX} files that crashes have left, found "
            "more",
            hint="sealpoint gc removes them.",
        )

    def _name(self, draft: _Draft) -> None:
        home, directory = self._home.descriptor, draft.directory.descriptor
        if draft.replaces:
            # A rename alone would leave one link, as if the name were on the disk already.
            second = draft.draft + _SECOND
            self._home.remove(second)
            _link(draft.draft, home, second, home)
            os.rename(second, draft.name, src_dir_fd=home, dst_dir_fd=directory)
        else:
            _link(draft.draft, home, draft.name, directory)
        draft.named = True

    def _abandon(self) -> None:
        """Leave nothing behind but drafts that have their names: those are not on the disk."""
        for draft in self._drafts:
            with contextlib.suppress(OSError):
                draft.close()
            if not draft.named:
                for name in (draft.draft, draft.draft + _SECOND):
                    with contextlib.suppress(OSError):
                        self._home.remove(name)
        self._drafts.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.settle()
        finally:
            self._abandon()


def _link(name: str, directory: int, new_name: str, new_directory: int) -> None:
    """Give a file a second name, unless that is taken."""
    os.link(name, new_name, src_dir_fd=directory, dst_dir_fd=new_directory, follow_symlinks=False)


def draft_names(home: Directory) -> Iterator[str]:
    """The drafts that lie in a directory."""
    return (name for name in home.names() if name.startswith(_PREFIX))
