# SPDX-License-Identifier: Apache-2.0
"""What somebody with the disk does to a thread, each edit chosen by two small numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from sealpoint.errors import SealpointError
from sealpoint.ledger import parse_header
from sealpoint.storage import Record
from tests.differential.disk import Disk, Rows
from tests.properties.model_cells import Changes, Content, Value

__all__ = ["EDITS", "Target"]

_PARTS = ("body", "header", "payload", "seals")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A thread that is to be edited."""

    disk: Disk
    content: Content
    """Every cell that nobody has edited yet."""
    thread: bytes
    other: bytes
    """Another thread, to take from."""
    end: int
    """The position after the newest record."""
    earlier: Sequence[Content]
    """What lay there at some earlier times."""

    def rows(self) -> Rows:
        """Its records."""
        return self.disk.rows(self.content, self.thread)

    def changed(self, rows: Mapping[int, Record | None]) -> Changes:
        """What changes if its records do."""
        return self.disk.with_rows(self.content, self.thread, rows)


Edit = Callable[[Target, int, int], Changes]


def _kind(row: Record) -> str:
    try:
        return str(parse_header(row.header).kind)
    except SealpointError:
        return ""


def _chosen(rows: Rows, number: int) -> int:
    """One of the newest positions, or the newest of some kind."""
    if number % 2:
        kinds = {_kind(row): seq for seq, row in rows.items()}
        return kinds[sorted(kinds)[number // 2 % len(kinds)]]
    newest = sorted(rows, reverse=True)
    return newest[number // 2 % min(len(newest), 5)]


def _without(target: Target, one: int, *parts: str) -> Changes:
    rows = target.rows()
    if not rows:
        return {}
    seq = _chosen(rows, one)
    return target.changed({seq: msgspec.structs.replace(rows[seq], **dict.fromkeys(parts))})


def _no_body(target: Target, one: int, _two: int) -> Changes:
    return _without(target, one, "body")


def _no_body_and_payload(target: Target, one: int, _two: int) -> Changes:
    return _without(target, one, "body", "payload")


def _no_payload(target: Target, one: int, _two: int) -> Changes:
    return _without(target, one, "payload")


def _no_bodies(target: Target, one: int, two: int) -> Changes:
    """None of the newest records has a body, or none of a kind."""
    rows = target.rows()
    newest = sorted(rows)[-1 - one % 6 :]
    if two % 2 and rows:
        kind = _kind(rows[_chosen(rows, one)])
        newest = [seq for seq, row in rows.items() if _kind(row) == kind]
    return target.changed({seq: msgspec.structs.replace(rows[seq], body=None) for seq in newest})


def _row_gone(target: Target, one: int, _two: int) -> Changes:
    rows = target.rows()
    return target.changed({_chosen(rows, one): None}) if rows else {}


def _tail_gone(target: Target, one: int, _two: int) -> Changes:
    return target.changed(dict.fromkeys(sorted(target.rows())[-1 - one % 5 :]))


def _front_gone(target: Target, one: int, _two: int) -> Changes:
    return target.changed(dict.fromkeys(sorted(target.rows())[: 1 + one % 6]))


def _flipped(data: bytes, number: int) -> bytes:
    found = bytearray(data)
    found[number % len(found)] ^= 1 << (number % 8)
    return bytes(found)


def _flip(target: Target, one: int, two: int) -> Changes:
    rows = target.rows()
    if not rows:
        return {}
    seq = _chosen(rows, one)
    name = _PARTS[two % len(_PARTS)]
    part = getattr(rows[seq], name)
    if not part:
        return {}
    return target.changed({seq: msgspec.structs.replace(rows[seq], **{name: _flipped(part, two)})})


def _swap(target: Target, one: int, two: int) -> Changes:
    """Exchange two records."""
    rows = target.rows()
    if not rows:
        return {}
    first, second = _chosen(rows, one), _chosen(rows, two)
    return target.changed({first: rows[second], second: rows[first]})


def _swap_bodies(target: Target, one: int, two: int) -> Changes:
    """Exchange what two records hold, and leave what is signed."""
    rows = target.rows()
    if not rows:
        return {}
    first, second = (rows[_chosen(rows, number)] for number in (one, two))
    changed = {
        _chosen(rows, one): Record(first.header, first.seals, second.body, second.payload),
        _chosen(rows, two): Record(second.header, second.seals, first.body, first.payload),
    }
    return target.changed(changed)


def _replay(target: Target, one: int, two: int) -> Changes:
    """Put a record once more: in the place of another, or after the newest."""
    rows = target.rows()
    if not rows:
        return {}
    place = target.end if two % 2 else _chosen(rows, two)
    return target.changed({place: rows[_chosen(rows, one)]})


def _of_another(target: Target, one: int, two: int) -> Changes:
    """Put a record of another thread at its own position, or after the newest."""
    rows = target.disk.rows(target.content, target.other)
    if not rows:
        return {}
    seq = _chosen(rows, one)
    return target.changed({target.end if two % 2 else min(seq, target.end): rows[seq]})


def _label(target: Target, one: int, two: int) -> Changes:
    """Take a label away, or let it lead elsewhere."""
    labels = target.disk.labels(target.content)
    if not labels:
        return {}
    key = labels[one % len(labels)]
    gone: dict[tuple[str, bytes, object], Value | None] = {key: None}
    if two % 2:
        kind, thread, place = key
        thread = thread and target.other
        place = place if thread else str(place).replace(target.thread.hex(), target.other.hex())
        gone[kind, thread, place] = target.content[key]
    return gone


def _blob(target: Target, one: int, two: int) -> Changes:
    """Take a blob away, flip a bit of it, or put another in its place."""
    blobs = target.disk.blobs(target.content, target.thread)
    if not blobs:
        return {}
    key, other = blobs[one % len(blobs)], blobs[two % len(blobs)]
    data = target.content[key][0]
    return {key: (None, (_flipped(data, two),), target.content[other])[two % 3]}


def _blobs_gone(target: Target, _one: int, _two: int) -> Changes:
    return dict.fromkeys(target.disk.blobs(target.content, target.thread))


def _as_before(target: Target, one: int, two: int) -> Changes:
    """Put something as it was before, such as what a prune or an erasure took."""
    if not target.earlier:
        return {}
    backup = target.earlier[one % len(target.earlier)]
    changed = sorted(key for key, value in backup.items() if target.content.get(key) != value)
    return {key: backup[key] for key in changed[two % max(len(changed), 1) :]}


EDITS: dict[str, Edit] = {
    "no body": _no_body,
    "no body and payload": _no_body_and_payload,
    "no payload": _no_payload,
    "no bodies": _no_bodies,
    "row gone": _row_gone,
    "tail gone": _tail_gone,
    "front gone": _front_gone,
    "flip": _flip,
    "swap": _swap,
    "swap bodies": _swap_bodies,
    "replay": _replay,
    "of another": _of_another,
    "label": _label,
    "blob": _blob,
    "blobs gone": _blobs_gone,
    "as before": _as_before,
}
