# SPDX-License-Identifier: Apache-2.0
"""Labels: from a digest of a name to the threads that were appended with it.

A label is the empty file `labels/<first two digits>/<label>-<thread>-<position>`, all in
hexadecimal digits: it is a hint, and its name says it all. The position is the first one of the
append that brought it. The label is on the disk before that entry, and counts once the entry is
there: so both appear at once, and what a crash leaves of an append is no label. It leaves to its
caller to hold the thread's lock for whatever writes.
"""

import re
from collections.abc import Iterator
from itertools import islice

from sealpoint.errors import Edited
from sealpoint.storage._file_directory import Directory
from sealpoint.storage._file_entries import read_record
from sealpoint.storage._file_threads import open_thread

__all__ = ["LABELS", "drop_label", "labelled_threads", "put_label"]

LABELS = "labels"
_LABELLED_MAX = 4096
_SHELF_DIGITS = 2
_NAME = re.compile(r"[0-9a-f]{64}-([0-9a-f]{32})-([0-9a-f]{16})", re.ASCII)


def put_label(root: Directory, thread: Directory, label: bytes, seq: int) -> None:
    """Make a label lead to a thread once it has an entry at a position."""
    with _labels(root) as labels, labels.made(label.hex()[:_SHELF_DIGITS]) as shelf:
        start = f"{label.hex()}-{thread.name}-"
        if not any(_counts(thread, position) for _, _, position in _found(shelf, start)):
            shelf.new_empty_file(f"{start}{seq:016x}")
        # Also where it was there already: a crash may have come before the sync.
        shelf.sync()


def drop_label(root: Directory, thread: bytes, label: bytes) -> None:
    """Make a label no longer lead to a thread."""
    shelf = _shelf(root, label, writing=True)
    if shelf is not None:
        with shelf:
            for name, _, _ in _found(shelf, f"{label.hex()}-{thread.hex()}-"):
                shelf.remove(name)
            shelf.sync()


def labelled_threads(root: Directory, label: bytes) -> list[bytes]:
    """The threads that a label leads to, in order.

    Raises:
        Edited: They are more than 4096.
    """
    shelf = _shelf(root, label)
    if shelf is None:
        return []
    with shelf:
        found = _found(shelf, f"{label.hex()}-")
    threads = set()
    for _, thread, position in found:
        directory = None if thread in threads else open_thread(root, thread)
        if directory is not None:
            with directory:
                if _counts(directory, position):
                    threads.add(thread)
    return sorted(threads)


def _counts(thread: Directory, position: int) -> bool:
    return read_record(thread, position) is not None


def _found(shelf: Directory, start: str) -> list[tuple[str, bytes, int]]:
    """The labels whose names begin with some digits: name, thread and position."""
    found = list(islice(_matching(shelf, start), _LABELLED_MAX + 1))
    if len(found) > _LABELLED_MAX:
        raise Edited(f"{shelf.path}: expected at most {_LABELLED_MAX} of a label, found more")
    return found


def _matching(shelf: Directory, start: str) -> Iterator[tuple[str, bytes, int]]:
    for name in shelf.names():
        match = _NAME.fullmatch(name) if name.startswith(start) else None
        if match is not None:
            yield name, bytes.fromhex(match[1]), int(match[2], 16)


def _shelf(root: Directory, label: bytes, *, writing: bool = False) -> Directory | None:
    with _labels(root) as labels:
        return labels.child(label.hex()[:_SHELF_DIGITS], writing=writing)


def _labels(root: Directory) -> Directory:
    labels = root.child(LABELS)
    if labels is None:
        raise Edited(f"{root.path}/{LABELS}: expected a directory, found none")
    return labels
