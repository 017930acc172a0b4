# SPDX-License-Identifier: Apache-2.0
"""What the tests of the file backend share: where things lie, and other processes."""

import os
import stat
import subprocess
from pathlib import Path

from sealpoint.storage import Record
from tests.warm import run_command

__all__ = [
    "DIGEST",
    "RECORD",
    "THREAD",
    "blob_path",
    "group_path",
    "record_of",
    "run",
    "thread_path",
    "tree",
]

THREAD = bytes(range(16))
DIGEST = bytes(range(32))
RECORD = Record(b"header", b"seals", b"body", b"payload")


def record_of(number: int) -> Record:
    """Make a record that is like no other."""
    return Record(b"header %d" % number, b"seals", b"body %d" % number, b"payload %d" % number)


def thread_path(store: Path, thread: bytes = THREAD) -> Path:
    """The directory of a thread."""
    return store / "threads" / thread.hex()[:2] / thread.hex()


def group_path(store: Path, first: int, last: int) -> Path:
    """The file of a group."""
    digits = f"{last:x}"
    leaf = thread_path(store).joinpath(f"{len(digits):02x}", *digits[:-1])
    return leaf / f"{first:016x}-{last:016x}"


def blob_path(store: Path, digest: bytes = DIGEST) -> Path:
    """The file of a blob."""
    return thread_path(store) / "blobs" / digest.hex()[0] / digest.hex()


def tree(store: Path) -> dict[str, tuple[int, int, bytes | None]]:
    """Everything below a directory: mode, time of the last change, and bytes."""
    found = {}
    for path in sorted(store.rglob("*")):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        found[str(path.relative_to(store))] = status.st_mode, status.st_ctime_ns, data
    return found


def run(program: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run a program that has the names of this package in another process."""
    prelude = (
        "import errno, os, signal, sys, threading, time\n"
        "from pathlib import Path\n"
        "from sealpoint.errors import *\n"
        "from sealpoint.storage import Record\n"
        "from sealpoint.storage.file import FileStorage\n"
        "path = Path(sys.argv[1])\n"
        "thread, digest = bytes(range(16)), bytes(range(32))\n"
    )
    words = ["python", "-c", prelude + program, *map(str, arguments)]
    return run_command(words, Path.cwd(), dict(os.environ), 60, apart=True)
