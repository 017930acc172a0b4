# SPDX-License-Identifier: Apache-2.0
"""Which messages of a transcript its gateway had reported to the guard before it stored them.

After guard and gateway have both died, rows follow the newest seal that nobody sealed. A message
among them is accounted for if all of this holds; every other row stays a difference that people
decide about.

1. The row is a message as OpenClaw spells it, with nothing else in it.
2. It follows the row before it in its session, and points at it.
3. The plugin reported a message with its digest for the conversation of its session.
4. No other message used that report, and it is not far before the last one that was used. So
   messages that were repeated or moved are not accounted for. OpenClaw itself stores a message of
   a user a few places away from where it reported it.

The digest covers the message as OpenClaw's own JSON has it, with its time. OpenClaw adds the id of
the run to some messages after they were reported, and nothing else.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import zstandard

from sealpoint_openclaw._classes import DatabaseKind
from sealpoint_openclaw._databases import open_database, reading
from sealpoint_openclaw._differences import RowName, row_name
from sealpoint_openclaw._inventory import Inventory, Table

_TABLE = "transcript_events"

_EVENT_BYTES_MAX = 4 << 20
_MOVED_MAX = 4
_MEMBERS = ["type", "id", "parentId", "timestamp", "message"]
_NOTES, _RUN = "__openclaw", "runId"
_CONVERSATION = "SELECT session_key FROM session_windows WHERE session_id = ?"
_EVENTS = (
    "SELECT seq, event_json, event_zstd, navigation_json FROM transcript_events"
    " WHERE session_id = ? AND seq >= ? ORDER BY seq"
)


def reported_rows(
    databases: Mapping[str, tuple[Path, DatabaseKind]],
    sealed: Inventory,
    now: Inventory,
    reports: Sequence[Mapping[str, Any]],
) -> frozenset[RowName]:
    """Return the added rows of transcripts that are accounted for.

    Args:
        databases: The databases of the folder.
        sealed: The inventory of the newest seal.
        now: The inventory of the folder.
        reports: The acts that the plugin reported, in order.

    Raises:
        StorageUnavailable: A database cannot be read.
    """
    digests: dict[str, list[str]] = {}
    for report in reports:
        if report["kind"] == "message":
            digests.setdefault(report["session"], []).append(report["digest"])
    found: set[RowName] = set()
    for path, (file, kind) in databases.items():
        if kind is not DatabaseKind.AGENT or path not in sealed.databases:
            continue
        before = sealed.databases[path].tables.get(_TABLE, Table()).groups
        after = now.databases[path].tables.get(_TABLE, Table()).groups
        with open_database(file) as connection, reading(file):
            for group, rows in after.items():
                old = before[group].numbers if group in before else ()
                added = set(rows.numbers).difference(old)
                if added:
                    (session,) = json.loads(group)
                    found.update(
                        row_name(_TABLE, path, group, number)
                        for number in _accounted(connection, session, min(added), digests)
                        if number in added
                    )
    return frozenset(found)


def _accounted(
    connection: Connection, session: object, first: int, reports: Mapping[str, Sequence[str]]
) -> Iterator[int]:
    """Yield the accounted messages of a session, from a position on."""
    key = connection.execute(_CONVERSATION, [session]).fetchone()
    reported = reports.get(key[0], []) if key is not None else []
    used: set[int] = set()
    before = ""
    for number, *columns in connection.execute(_EVENTS, [session, first - 1]):
        text = _text(*columns)
        members = {} if text is None else _members(text)
        follows = members.get("parentId") == before
        # The first event of a session is its header, which nothing points at.
        before = "null" if members.get("type") == '"session"' else members.get("id", "")
        if list(members) != _MEMBERS or members["type"] != '"message"' or not follows:  # (1) (2)
            continue
        digests = list(_digests(members["message"]))
        for place in range(max([0, *used]) - _MOVED_MAX, len(reported)):
            if place >= 0 and place not in used and reported[place] in digests:  # (3) (4)
                used.add(place)
                yield number
                break


def _text(plain: object, packed: object, navigation: object) -> str | None:
    """Return an event as OpenClaw wrote it; None if it is not stored as OpenClaw does."""
    if isinstance(plain, str) and packed is None and navigation is None:
        return plain
    if plain is not None or not isinstance(packed, bytes) or not isinstance(navigation, str):
        return None
    try:
        data = zstandard.ZstdDecompressor().decompress(packed, max_output_size=_EVENT_BYTES_MAX)
        text = data.decode()
        whole, parts = json.loads(text), json.loads(navigation)
    except (zstandard.ZstdError, ValueError, RecursionError):
        return None
    # Navigation repeats parts of the event, so that OpenClaw need not unpack it.
    if not isinstance(parts, dict) or parts.get("version") != 1:
        return None
    report = parts.pop("report", None)
    if not isinstance(report, dict) or report.get("kind") != "canonical":
        return None
    copies = [report.get("entry"), *(part for part in parts.values() if isinstance(part, dict))]
    return text if all(_is_part(part, whole) for part in copies) else None


def _is_part(part: object, whole: object) -> bool:
    """Whether a JSON value is blank, or the same as another one in all that it has."""
    if isinstance(part, dict):
        found = whole if isinstance(whole, dict) else {}
        return all(_is_part(each, found.get(key)) for key, each in part.items())
    return part == whole or part in ("", [], None, False)


def _digests(message: str) -> Iterator[str]:
    """Yield the digests under which a message may have been reported."""
    yield _digest(message)
    members = _members(message)
    if list(_members(members.get(_NOTES, ""))) == [_RUN]:
        kept = (f"{json.dumps(key)}:{text}" for key, text in members.items() if key != _NOTES)
        yield _digest(f"{{{','.join(kept)}}}")


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _members(text: str) -> dict[str, str]:
    """Return the members of an object, as they are spelled; none if it is not plain JSON."""
    members: dict[str, str] = {}
    decoder, place = json.JSONDecoder(), 0
    try:
        while text[place] == ("," if members else "{") and text[place + 1] == '"':
            key, start = decoder.raw_decode(text, place + 1)
            _, end = decoder.raw_decode(text, start + 1)
            if text[start] != ":" or key in members:
                return {}
            members[key], place = text[start + 1 : end], end
        return members if text[place:] == "}" else {}
    except (IndexError, ValueError, RecursionError):
        return {}
