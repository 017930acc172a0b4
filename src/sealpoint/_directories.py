# SPDX-License-Identifier: Apache-2.0
"""How a directory is made, for this user alone or for a group that shares it.

In a directory that a group shares, a member can rename whatever another makes there and put a link
in its place. So nothing is changed by its path: a directory is made in an open one, opened without
following a link, and opened to the group through its descriptor, after a look whether it is still
the one that was made. Its name is on the disk before anything is made in it.
"""

import errno
import os
from contextlib import ExitStack, suppress
from pathlib import Path

_OWN_MODE = 0o700
_GROUP_MODE = 0o2770


def make_directory(path: Path, group: int | None = None, *, parents: bool = False) -> None:
    """Make a directory unless there is something of its name, which stays as it is.

    Args:
        path: The directory.
        group: The number of the group whose members may read and write in it, beside this user.
        parents: Whether to make what is missing above it, too, in the same way.

    Raises:
        FileNotFoundError: There is nothing to make it in.
        OSError: It cannot be made, or another directory or a link was put in its place.
    """
    missing = [part for part in (path, *path.parents) if not os.path.lexists(part)]
    with suppress(OSError), ExitStack() as opened:
        # Whoever made the lowest that is there may have died before its name was on the disk.
        lowest = missing[-1].parent if missing else path
        os.fsync(_opened(opened, lowest.parent))
    if not missing:
        return
    if not parents:
        del missing[1:]
    with ExitStack() as opened:
        within = _opened(opened, missing[-1].parent)
        for part in reversed(missing):
            is_new = True
            try:
                os.mkdir(part.name, _OWN_MODE, dir_fd=within)
            except FileExistsError:
                is_new = False  # Another process was faster, and opens it to the group itself.
            made = _opened(opened, part.name, within)
            if is_new and group is not None:
                _share(made, group)
            os.fsync(within)
            within = made


def _opened(opened: ExitStack, path: Path | str, within: int | None = None) -> int:
    """Open a directory; one below another that is open must not be a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if within is not None:
        flags |= os.O_NOFOLLOW
    descriptor = os.open(path, flags, dir_fd=within)
    opened.callback(os.close, descriptor)
    return descriptor


def _share(descriptor: int, group: int) -> None:
    """Open a directory to a group, if it is as new as the one that was made."""
    # One that is this user's and empty holds nothing that the members could not see anyway.
    if os.fstat(descriptor).st_uid != os.geteuid() or os.listdir(descriptor):
        raise OSError(errno.ESTALE, "another one in the place of the one that was made")
    os.fchown(descriptor, -1, group)
    os.fchmod(descriptor, _GROUP_MODE)
