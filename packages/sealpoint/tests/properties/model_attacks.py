# SPDX-License-Identifier: Apache-2.0
"""Edits of a store's raw content, each chosen by a few small numbers."""

from collections.abc import Callable, Sequence

from sealpoint.ledger import STORE_CHAIN
from tests.properties.model_cells import (
    BLOB,
    ENTRY,
    FILE,
    LABEL,
    Changes,
    Content,
    Key,
    Value,
    entries_of,
)

__all__ = ["EDITS", "Edit", "drop_newest", "must_alarm", "older", "reinserted"]

Edit = Callable[[Content, int, int, int], Changes]
_THREAD_BYTES = 16
_GARBAGE = b"\x00garbage that nobody signed\xff"


def _keys(content: Content) -> list[Key]:
    return sorted(content)


def _flip(content: Content, one: int, two: int, three: int) -> Changes:
    """Change a byte of some value."""
    keys = _keys(content)
    key = keys[one % len(keys)]
    value = content[key]
    places = [place for place, part in enumerate(value) if isinstance(part, bytes) and part]
    if not places or key[0] == LABEL:
        return {}
    place = places[two % len(places)]
    part = bytearray(value[place])
    part[three % len(part)] ^= 1 << (three % 8)
    return {key: (*value[:place], bytes(part), *value[place + 1 :])}


def _delete(content: Content, one: int, _two: int, _three: int) -> Changes:
    """Delete a row."""
    keys = _keys(content)
    return {keys[one % len(keys)]: None}


def _pair(content: Content, one: int, two: int) -> tuple[Key, Key]:
    keys = _keys(content)
    first = keys[one % len(keys)]
    others = [key for key in keys if key[0] == first[0]]
    return first, others[two % len(others)]


def _swap(content: Content, one: int, two: int, _three: int) -> Changes:
    """Exchange the values of two rows of one kind."""
    first, second = _pair(content, one, two)
    return {first: content[second], second: content[first]}


def _copy(content: Content, one: int, two: int, _three: int) -> Changes:
    """Write the value of a row, of this thread or another, into another row."""
    first, second = _pair(content, one, two)
    return {first: content[second]}


def _insert(content: Content, one: int, two: int, three: int) -> Changes:
    """Insert a row: garbage or a copy, after a head, beyond it, in a thread of nobody's."""
    keys = _keys(content)
    source = content[keys[one % len(keys)]]
    if keys[0][0] == FILE:
        folder = keys[one % len(keys)][2].rpartition("/")[0]
        name = f"{folder}/garbage" if two % 2 else f"{folder}/{three:016x}-{three:016x}"
        return {(FILE, b"", name.lstrip("/")): source if three % 2 else (_GARBAGE,)}
    threads = sorted({key[1] for key in keys if key[0] == ENTRY})
    thread = threads[two % len(threads)]
    if three % 4 == 0:
        return {(BLOB, thread, bytes([one % 256]) * 32): (_GARBAGE,)}
    if three % 4 == 1:
        thread, place = bytes([1 + one % 255]) * _THREAD_BYTES, 0
    else:
        place = entries_of(content, thread)[-1][2] + 1 + (three % 4 == 3) * (one % 3)
    genuine = [content[key] for key in keys if key[0] == ENTRY]
    garbage: Value = (_GARBAGE, _GARBAGE, _GARBAGE, None)
    value = genuine[one % len(genuine)] if one % 2 else garbage
    return {} if (ENTRY, thread, place) in content else {(ENTRY, thread, place): value}


EDITS: Sequence[Edit] = (_flip, _delete, _swap, _copy, _insert, _flip, _delete)


def drop_newest(content: Content, one: int, two: int) -> Changes:
    """Delete the newest entries of a thread."""
    threads = sorted({key[1] for key in content if key[0] == ENTRY} - {STORE_CHAIN})
    if not threads:
        return {}
    entries = entries_of(content, threads[one % len(threads)])
    return dict.fromkeys(entries[-1 - two % 3 :])


def older(content: Content, backups: Sequence[Content], one: int, two: int) -> Changes:
    """Give one row the value that it had at the time of a backup."""
    backup = backups[one % len(backups)]
    changed = sorted(key for key, value in backup.items() if content.get(key) != value)
    if not changed:
        return {}
    key = changed[two % len(changed)]
    return {key: backup[key]}


def reinserted(content: Content, lost: Content) -> Changes:
    """Put rows back that a restore was accepted without, where nothing lies now."""
    return {key: value for key, value in lost.items() if key not in content}


def must_alarm(
    before: Content, changes: Changes, erased_before: dict[bytes, int], threads: set[bytes]
) -> bool:
    """Whether a full verification has to notice changes, as far as rows alone can tell.

    Args:
        before: The content before.
        changes: What was changed.
        erased_before: For each thread, below which position bodies may be gone.
        threads: The threads that the anchor has seen, and the store chain.
    """
    for (kind, thread, place), value in changes.items():
        if kind != ENTRY or thread not in threads:
            continue
        old = before.get((kind, thread, place))
        if value is None or old is None or value[:2] != old[:2]:
            return True
        if value[2] != old[2] and place >= erased_before.get(thread, 0):
            return True
    return False
