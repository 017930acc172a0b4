# SPDX-License-Identifier: Apache-2.0
"""The system calls that reach files, by number, and which files a call reaches.

Older calls are told in the words of the newer ones that replaced them, so that a watcher meets
one spelling of each. Calls that are not listed pass unseen: they neither write to files nor
change names. Those that would and are not understood are listed so that they can be refused.
"""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["NUMBERS", "Call", "Reached", "reached"]

_TEXT_BYTES_MAX = 4096

_X86_64 = """
    read 0, write 1, open 2, close 3, stat 4, fstat 5, lstat 6, mmap 9, munmap 11, pread64 17,
    pwrite64 18, readv 19, writev 20, access 21, msync 26, sendfile 40, fcntl 72, flock 73,
    fsync 74, fdatasync 75, truncate 76, ftruncate 77, rename 82, mkdir 83, rmdir 84, creat 85,
    link 86, unlink 87, symlink 88, chmod 90, fchmod 91, sync 162, getdents64 217, openat 257,
    mkdirat 258, newfstatat 262, unlinkat 263, renameat 264, linkat 265, symlinkat 266,
    fchmodat 268, faccessat 269, splice 275, fallocate 285, preadv 295, pwritev 296, syncfs 306,
    renameat2 316, copy_file_range 326, preadv2 327, pwritev2 328, statx 332, io_uring_setup 425,
    openat2 437, faccessat2 439, fchmodat2 452
"""
_AARCH64 = """
    fcntl 25, flock 32, mkdirat 34, unlinkat 35, symlinkat 36, linkat 37, renameat 38,
    truncate 45, ftruncate 46, fallocate 47, faccessat 48, fchmod 52, fchmodat 53, openat 56,
    close 57, getdents64 61, read 63, write 64, readv 65, writev 66, pread64 67, pwrite64 68,
    preadv 69, pwritev 70, sendfile 71, splice 76, newfstatat 79, fstat 80, sync 81, fsync 82,
    fdatasync 83, munmap 215, mmap 222, msync 227, syncfs 267, renameat2 276,
    copy_file_range 285, preadv2 286, pwritev2 287, statx 291, io_uring_setup 425, openat2 437,
    faccessat2 439, fchmodat2 452
"""
NUMBERS = {
    machine: {name: int(number) for name, number in map(str.split, listed.split(","))}
    for machine, listed in (("x86_64", _X86_64), ("aarch64", _AARCH64))
}
"""The numbers of the calls that are watched, by architecture."""

_HERE = -100
_SET_LOCK = (6, 7, 37, 38)
_UNLOCK = 2
_UNLOCK_FILE = 8
_REMOVE_DIRECTORY = 0x200
# The call that replaced an older one, and where its arguments come from: a number of an argument,
# or the working directory.
_NEWER: dict[str, tuple[str, tuple[int, ...]]] = {
    "open": ("openat", (_HERE, 0, 1, 2)),
    "creat": ("openat", (_HERE, 0)),
    "stat": ("newfstatat", (_HERE, 0, 1)),
    "lstat": ("newfstatat", (_HERE, 0, 1)),
    "access": ("faccessat", (_HERE, 0, 1)),
    "faccessat2": ("faccessat", (0, 1, 2)),
    "mkdir": ("mkdirat", (_HERE, 0, 1)),
    "rmdir": ("unlinkat", (_HERE, 0)),
    "unlink": ("unlinkat", (_HERE, 0)),
    "rename": ("renameat2", (_HERE, 0, _HERE, 1)),
    "renameat": ("renameat2", (0, 1, 2, 3)),
    "link": ("linkat", (_HERE, 0, _HERE, 1)),
    "symlink": ("symlinkat", (0, _HERE, 1)),
    "chmod": ("fchmodat", (_HERE, 0, 1)),
    "fchmodat2": ("fchmodat", (0, 1, 2)),
    "truncate": ("truncate", (_HERE, 0, 1)),
}
_AT_PATH = {
    **dict.fromkeys(("openat", "openat2", "newfstatat", "faccessat", "mkdirat", "unlinkat"), (0,)),
    **dict.fromkeys(("fchmodat", "truncate", "statx"), (0,)),
    **dict.fromkeys(("renameat2", "linkat"), (0, 2)),
    "symlinkat": (1,),
}
"""Where the directory of a path stands among the arguments; the path follows it."""
_AT_DESCRIPTOR = {
    **dict.fromkeys(("read", "pread64", "readv", "preadv", "preadv2", "write", "pwrite64"), (0,)),
    **dict.fromkeys(("writev", "pwritev", "pwritev2", "fstat", "fcntl", "flock", "close"), (0,)),
    **dict.fromkeys(("fsync", "fdatasync", "ftruncate", "fchmod", "getdents64"), (0,)),
    **dict.fromkeys(("fallocate", "sendfile", "syncfs"), (0,)),
    **dict.fromkeys(("copy_file_range", "splice"), (0, 2)),
    "mmap": (4,),
}


@dataclass(slots=True)
class Call:
    """One system call of a process that is waiting for us."""

    process: int
    name: str
    args: tuple[int, ...]
    memory: int = field(repr=False)

    def data(self, address: int, size_bytes: int) -> bytes:
        """Bytes of the process."""
        found = b""
        while len(found) < size_bytes:
            more = os.pread(self.memory, size_bytes - len(found), address + len(found))
            if not more:
                raise OSError(f"{size_bytes} bytes at {address:#x}: found {len(found)}")
            found += more
        return found

    def text(self, address: int) -> str:
        """A string of the process that ends with a zero byte."""
        found = b""
        while b"\0" not in found and len(found) < _TEXT_BYTES_MAX:
            # Never across the end of a page: the next one may not be there.
            at = address + len(found)
            found += os.pread(self.memory, min(256, 4096 - at % 4096), at)
        return os.fsdecode(found.partition(b"\0")[0])


@dataclass(frozen=True, slots=True)
class Reached:
    """A call that reaches files below a directory, in the words of the newest call of its kind."""

    process: int
    name: str
    args: tuple[int, ...]
    paths: tuple[str, ...]
    """The files as they were named, absolute; for a descriptor, the name it was opened under."""
    unlocks: bool = False
    """Whether it gives up a lock, which cannot fail."""

    def descriptor(self, number: int = 0) -> str:
        """A path that leads to the open file in an argument, whatever its name is now."""
        return f"/proc/{self.process}/fd/{self.args[number]}"


def reached(call: Call, root: str) -> Reached | None:
    """Which files below `root`, a resolved path, a call reaches, or None."""
    name, order = _NEWER.get(call.name, (call.name, ()))
    args = tuple(_HERE if at == _HERE else call.args[at] for at in order) if order else call.args
    if name in _AT_PATH:
        paths = tuple(_path(call, args[at], args[at + 1]) for at in _AT_PATH[name])
    elif name in _AT_DESCRIPTOR:
        paths = tuple(_opened(call.process, args[at]) for at in _AT_DESCRIPTOR[name])
    else:
        return None
    if not any(path == root or path.startswith(f"{root}/") for path in paths):
        return None
    if call.name == "rmdir":
        args = (*args, _REMOVE_DIRECTORY)
    elif call.name == "creat":
        args = (*args, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    elif call.name == "unlink":
        args = (*args, 0)
    return Reached(call.process, name, args, paths, _unlocks(call))


def _unlocks(call: Call) -> bool:
    if call.name == "fcntl" and call.args[1] in _SET_LOCK:
        return int.from_bytes(call.data(call.args[2], 2), sys.byteorder) == _UNLOCK
    return call.name == "flock" and call.args[1] == _UNLOCK_FILE


def _opened(process: int, descriptor: int) -> str:
    try:
        return str(Path(f"/proc/{process}/fd/{_signed(descriptor)}").readlink())
    except OSError:
        return ""


def _path(call: Call, directory: int, address: int) -> str:
    text = call.text(address)
    if _signed(directory) == _HERE and not text.startswith("/"):
        text = f"{Path(f'/proc/{call.process}/cwd').readlink()}/{text}"
    elif not text.startswith("/"):
        text = f"{_opened(call.process, directory)}/{text}"
    return os.path.normpath(text)


def _signed(value: int) -> int:
    """An argument as the 32-bit number that it is."""
    return (value & 0xFFFF_FFFF ^ 0x8000_0000) - 0x8000_0000
