# SPDX-License-Identifier: Apache-2.0
"""Everything a process does to the files below a directory, in order, as a disk would learn it.

It guarantees that nothing is left out: a call that changes files or names and is not understood
ends the recording with an error, and so does a file that reaches the directory unseen. Bytes
that are written through a shared map are noticed when the map or its file is synced, or the map
is given up. The one exception are files whose name ends with `-shm`, which SQLite makes anew
after a crash whatever they hold.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from struct import Struct

from tests.faults.calls import Call, Reached, reached
from tests.faults.disk import ROOT, SECTOR_BYTES, Disk
from tests.faults.events import (
    Event,
    Link,
    LostSync,
    Make,
    Mark,
    Mode,
    Rename,
    Resize,
    Sync,
    Unlink,
    Write,
)

__all__ = ["MEMORY_SUFFIX", "Recorder"]

MEMORY_SUFFIX = "-shm"
_SHARED, _WRITABLE, _ANONYMOUS = 1, 2, 0x20
_EXCHANGE = 2
_VECTOR = Struct("=QQ")
_HARMLESS = frozenset(
    {
        *("read", "pread64", "readv", "preadv", "preadv2", "close", "newfstatat", "fstat"),
        *("fcntl", "flock", "getdents64", "faccessat", "statx", "munmap", "msync"),
    }
)


class Recorder:
    """Listens to the calls of a process; see `Watcher`.

    Args:
        root: The directory, resolved. What is in it now is taken to be on the disk.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.events: list[Event] = []
        self._disk = Disk()
        self._nodes: dict[tuple[int, int], int] = {_identity(self.root): ROOT}
        self._newest = ROOT
        self._maps: dict[int, int] = {}
        self._existed: set[str] = set()
        self._scan(root)

    def _scan(self, directory: Path) -> None:
        for path in sorted(directory.iterdir()):
            self._made(str(path))
            if path.is_dir():
                self._scan(path)
            elif size := path.stat().st_size:
                node = self._node(str(path))
                self._add(Write(node, 0, path.read_bytes()[:size]))
                self._add(Sync(node))
        self._add(Sync(self._node(str(directory))))

    def enter(self, call: Call) -> None:
        """Before a call: what it is about to hide is looked at."""
        if call.name in {"msync", "munmap"} or (call.name in {"fsync", "fdatasync"} and self._maps):
            self._see_maps()
        elif call.name in {"sync", "io_uring_setup"}:
            raise NotImplementedError(f"{call.name}: not understood")
        elif call.name in {"open", "openat", "creat", "openat2"}:
            self._existed = set()
            found = reached(call, self.root)
            if found is not None and os.path.lexists(found.paths[0]):
                self._existed.add(found.paths[0])

    def leave(self, call: Call, result: int) -> None:
        """After a call: what it has done is noted."""
        found = reached(call, self.root) if call.name != "close" else None
        if found is None or found.name in _HARMLESS:
            return
        if found.name in {"fsync", "fdatasync"}:
            node = self._node(found.descriptor())
            self._add(Sync(node) if result == 0 else LostSync(node))
        elif result >= 0:
            _NOTED.get(found.name, Recorder._unknown)(self, call, found, result)

    def mark(self, text: str) -> None:
        """Put what the process said among its calls."""
        self._add(Mark(text))

    def _add(self, event: Event) -> None:
        self._disk.apply(event)
        self.events.append(event)

    def _node(self, path: str) -> int:
        identity = _identity(path)
        if identity not in self._nodes:
            raise NotImplementedError(f"{os.path.realpath(path)}: came into being unseen")
        return self._nodes[identity]

    def _name(self, path: str) -> tuple[int, str]:
        parent, _, name = path.rpartition("/")
        return self._disk.node(os.path.relpath(parent, self.root)), name

    def _made(self, path: str) -> None:
        status = Path(path).lstat()
        if stat.S_ISLNK(status.st_mode):
            raise NotImplementedError(f"{path}: a symbolic link")
        identity = status.st_dev, status.st_ino
        # A number that was given up is given again: from here on it means the new file.
        self._newest += 1
        self._nodes[identity] = self._newest
        self._add(Make(*self._name(path), self._newest, status.st_mode))

    # ------------------------------------------------------------------ one method for each call

    def _open(self, _call: Call, found: Reached, _result: int) -> None:
        path, flags = found.paths[0], found.args[2]
        if found.name == "openat2":
            raise NotImplementedError("openat2: not understood")
        if flags & os.O_CREAT and path not in self._existed:
            self._made(path)
        elif flags & os.O_TRUNC and flags & (os.O_WRONLY | os.O_RDWR):
            self._add(Resize(self._node(path), 0))
        elif flags & os.O_TMPFILE == os.O_TMPFILE:
            raise NotImplementedError("O_TMPFILE: not understood")

    def _write(self, call: Call, found: Reached, result: int) -> None:
        if not result:
            return
        path = found.descriptor()
        data = _given(call)[:result]
        flags, position = _state_of(found)
        if found.name in {"pwrite64", "pwritev", "pwritev2"} and not flags & os.O_APPEND:
            offset = found.args[3]
        else:
            # The position is behind what has just been written.
            offset = position - result
        node = self._node(path)
        self._add(Write(node, offset, data))
        if flags & os.O_DSYNC:
            self._add(Sync(node))

    def _resize(self, _call: Call, found: Reached, _result: int) -> None:
        path = found.paths[0] if found.name == "truncate" else found.descriptor()
        self._add(Resize(self._node(path), Path(path).stat().st_size))

    def _allocate(self, call: Call, found: Reached, result: int) -> None:
        if found.args[1]:
            raise NotImplementedError("fallocate: not understood with a mode")
        self._resize(call, found, result)

    def _make_directory(self, _call: Call, found: Reached, _result: int) -> None:
        self._made(found.paths[0])

    def _link(self, _call: Call, found: Reached, _result: int) -> None:
        self._add(Link(*self._name(found.paths[1]), self._node(found.paths[1])))

    def _unlink(self, _call: Call, found: Reached, _result: int) -> None:
        self._add(Unlink(*self._name(found.paths[0])))

    def _rename(self, call: Call, found: Reached, _result: int) -> None:
        if call.name == "renameat2" and found.args[4] & _EXCHANGE:
            raise NotImplementedError("renameat2: not understood as an exchange")
        old, new = found.paths
        self._add(Rename(*self._name(old), *self._name(new)))

    def _mode(self, _call: Call, found: Reached, _result: int) -> None:
        path = found.paths[0] if found.name == "fchmodat" else found.descriptor()
        self._add(Mode(self._node(path), Path(path).stat().st_mode))

    def _map(self, _call: Call, found: Reached, _result: int) -> None:
        shared = found.args[3] & _SHARED and not found.args[3] & _ANONYMOUS
        if shared and found.args[2] & _WRITABLE and not found.paths[0].endswith(MEMORY_SUFFIX):
            node = self._node(found.descriptor(4))
            if node not in self._maps:
                self._maps[node] = os.open(found.descriptor(4), os.O_RDONLY | os.O_CLOEXEC)

    def _unknown(self, _call: Call, found: Reached, _result: int) -> None:
        raise NotImplementedError(f"{found.name}: not understood on {found.paths}")

    def _see_maps(self) -> None:
        """Note as writes what has changed in mapped files."""
        for node, descriptor in self._maps.items():
            known = self._disk.files[node].current
            data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            for start in range(0, len(data), SECTOR_BYTES):
                piece = data[start : start + SECTOR_BYTES]
                if known[start : start + SECTOR_BYTES] != piece:
                    self._add(Write(node, start, piece))

    def close(self) -> None:
        """Give up what was opened to look at maps."""
        for descriptor in self._maps.values():
            os.close(descriptor)
        self._maps.clear()


_NOTED: dict[str, Callable[[Recorder, Call, Reached, int], None]] = {
    **dict.fromkeys(("openat", "openat2"), Recorder._open),
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2"), Recorder._write),
    **dict.fromkeys(("ftruncate", "truncate"), Recorder._resize),
    **dict.fromkeys(("fchmod", "fchmodat"), Recorder._mode),
    "fallocate": Recorder._allocate,
    "mkdirat": Recorder._make_directory,
    "linkat": Recorder._link,
    "unlinkat": Recorder._unlink,
    "renameat2": Recorder._rename,
    "mmap": Recorder._map,
}


def _identity(path: str) -> tuple[int, int]:
    found = Path(path).stat()
    return found.st_dev, found.st_ino


def _given(call: Call) -> bytes:
    """The bytes that a call was given to write."""
    if call.name in {"write", "pwrite64"}:
        return call.data(call.args[1], call.args[2])
    pairs = _VECTOR.iter_unpack(call.data(call.args[1], call.args[2] * _VECTOR.size))
    return b"".join(call.data(address, size) for address, size in pairs)


def _state_of(found: Reached) -> tuple[int, int]:
    """The flags of an open file, and the position in it."""
    text = Path(f"/proc/{found.process}/fdinfo/{found.args[0]}").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return int(fields["flags"], 8), int(fields["pos"])
