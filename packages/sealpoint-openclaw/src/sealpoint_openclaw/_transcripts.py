# SPDX-License-Identifier: Apache-2.0
"""The reports of a gateway to its guard, compared with its transcripts.

After guard and gateway have both died, rows follow the newest seal that nobody sealed. A message
among them is accounted for if all of this holds; every other row stays a difference that people
decide about.

1. The row is a message as OpenClaw spells it, with nothing else in it.
2. It follows the row before it in its session, and points at it.
3. The plugin reported a message with its digest for the conversation of its session.
4. No other message used that report, sealed ones included, and it is not far before the last one
   that was used. So messages that were repeated or moved are not accounted for. OpenClaw itself
   stores a message of a user a few places away from where it reported it.
5. No sealed event has its id.

Reports without a row are differences too: a message that was reported since the newest seal, but
for the last one of a conversation, which may not have been stored yet; and a tool call without its
result, because it may have had its effect.

The digest covers the message as OpenClaw's own JSON has it, with its time. OpenClaw adds the id of
the run to some messages after they were reported, and nothing else. The id and the time of the
event around a message are in no report.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import zstandard

from sealpoint_openclaw._classes import DatabaseKind, StateClass
from sealpoint_openclaw._databases import open_database, reading
from sealpoint_openclaw._differences import Change, Concern, Difference, RowName, row_name
from sealpoint_openclaw._inventory import Inventory, Table

_TABLE = "transcript_events"

_EVENT_BYTES_MAX = 4 << 20
_MOVED_MAX = 4
_CALL_LETTERS_MAX = 200
_MEMBERS = ["type", "id", "parentId", "timestamp", "message"]
_NOTES, _RUN = "__openclaw", "runId"
_CONVERSATION = "SELECT session_key FROM session_windows WHERE session_id = ?"
_IDENTITY = "SELECT seq FROM transcript_event_identities WHERE session_id = ? AND event_id = ?"
_EVENTS = (
    "SELECT seq, event_json, event_zstd, navigation_json FROM transcript_events"
    " WHERE session_id = ? AND seq >= ? ORDER BY seq"
)
# Releases that pack no events, such as 2026.8.2, lack the two columns.
_UNPACKED_EVENTS = _EVENTS.replace("event_zstd, navigation_json", "NULL, NULL")
_PACKS = "SELECT 1 FROM pragma_table_info('transcript_events') WHERE name = 'event_zstd'"


@dataclass(slots=True)
class _Conversation:
    """The reports of a conversation, and what its rows say of them."""

    messages: list[Mapping[str, Any]] = field(default_factory=list)
    due: int = 0
    """How many of the last messages were reported since the newest seal."""
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    """The tool calls since then."""
    used: set[int] = field(default_factory=set)
    results: set[str] = field(default_factory=set)

    def add(self, report: Mapping[str, Any], *, due: bool) -> None:
        """Add the next report."""
        if report["kind"] == "message":
            self.messages.append(report)
            self.due += due
        elif report["kind"] == "tool" and due:
            self.calls.append(report)

    def use(self, message: str, first: int) -> int | None:
        """Use the report of a message, from a place on; return its place."""
        digests = list(_digests(message))
        for place in range(max(first, 0), len(self.messages)):
            if place not in self.used and self.messages[place]["digest"] in digests:
                self.used.add(place)
                return place
        return None

    def note_result(self, message: str) -> None:
        """Note which tool call a message is the result of."""
        members = _members(message)
        if members.get("role") == '"toolResult"' and "toolCallId" in members:
            self.results.add(str(json.loads(members["toolCallId"]))[:_CALL_LETTERS_MAX])

    def missing(self) -> Iterator[str]:
        """Yield what was reported since the newest seal and has no row."""
        last = len(self.messages) - 1
        for place in range(last + 1 - self.due, last):
            if place not in self.used:
                each = self.messages[place]
                yield f"message of {each['role']} {_reported(each)}"
        for each in self.calls:
            if each["call"] not in self.results:
                yield f"result of the tool call {each['tool']} {each['call']} {_reported(each)}"


def _reported(report: Mapping[str, Any]) -> str:
    return f"that the gateway reported in {report['session']} ({report['digest'][:16]})"


def compare_reports(
    databases: Mapping[str, tuple[Path, DatabaseKind]],
    base: Inventory,
    sealed: Inventory,
    now: Inventory,
    *,
    reports: Sequence[Mapping[str, Any]],
    due: int,
) -> tuple[frozenset[RowName], tuple[Difference, ...]]:
    """Return the added rows of transcripts that are accounted for, and the reports without a row.

    Args:
        databases: The databases of the folder.
        base: The inventory of an earlier seal of the same run.
        sealed: The inventory of the newest seal.
        now: The inventory of the folder.
        reports: The acts that the plugin reported since the earlier seal, in order.
        due: How many of the last ones it reported since the newest seal.

    Raises:
        StorageUnavailable: A database cannot be read.
    """
    conversations: defaultdict[str, _Conversation] = defaultdict(_Conversation)
    for place, report in enumerate(reports):
        conversations[report["session"]].add(report, due=place >= len(reports) - due)
    found: set[RowName] = set()
    for path, (file, kind) in databases.items():
        if kind is not DatabaseKind.AGENT or path not in sealed.databases:
            continue
        earlier, before = _numbers(base, path), _numbers(sealed, path)
        with open_database(file) as connection, reading(file):
            for group, numbers in _numbers(now, path).items():
                if recent := numbers - earlier.get(group, set()):
                    (session,) = json.loads(group)
                    added = numbers - before.get(group, set())
                    key = connection.execute(_CONVERSATION, [session]).fetchone()
                    conversation = conversations[key[0]] if key is not None else _Conversation()
                    found.update(
                        row_name(_TABLE, path, group, number)
                        for number in _accounted(
                            connection, session, min(recent), added, conversation
                        )
                    )
    return frozenset(found), tuple(
        Difference(
            concern=Concern.UNSEALED,
            place=words,
            row=None,
            change=Change.MISSING,
            state_class=StateClass.APPEND,
        )
        for conversation in conversations.values()
        for words in conversation.missing()
    )


def _numbers(inventory: Inventory, path: str) -> dict[str, set[int]]:
    """Return the numbers of the events of each session."""
    if path not in inventory.databases:
        return {}
    groups = inventory.databases[path].tables.get(_TABLE, Table()).groups
    return {group: set(rows.numbers) for group, rows in groups.items()}


def _accounted(
    connection: Connection,
    session: object,
    first: int,
    added: Collection[int],
    conversation: _Conversation,
) -> Iterator[int]:
    """Yield the added messages of a session that are accounted for; sealed ones use reports too."""
    latest = 0
    before = ""
    events = _UNPACKED_EVENTS if connection.execute(_PACKS).fetchone() is None else _EVENTS
    for number, *columns in connection.execute(events, [session, first - 1]):
        text = _text(*columns)
        members = {} if text is None else _members(text)
        follows = members.get("parentId") == before
        # The first event of a session is its header, which nothing points at.
        before = "null" if members.get("type") == '"session"' else members.get("id", "")
        if "message" not in members:
            continue
        conversation.note_result(members["message"])
        is_message = list(members) == _MEMBERS and members["type"] == '"message"'
        if number in added and not (
            is_message and follows and _is_own(connection, session, number, members["id"])
        ):  # (1) (2) (5)
            continue
        place = conversation.use(members["message"], latest - _MOVED_MAX)  # (3) (4)
        if place is not None:
            latest = max(latest, place)
            if number in added:
                yield number


def _is_own(connection: Connection, session: object, number: int, spelled: str) -> bool:
    """Whether no other event that OpenClaw has on record has this id."""
    if not spelled.startswith('"') or "\\" in spelled or not spelled.isascii():
        return False
    row = connection.execute(_IDENTITY, [session, spelled[1:-1]]).fetchone()
    return row is None or row[0] == number


def _text(plain: object, packed: object, navigation: object) -> str | None:
    """Return an event as OpenClaw wrote it; None if it is not stored as OpenClaw does."""
    if isinstance(plain, str) and packed is None and navigation is None:
        return plain
    if plain is not None or not isinstance(packed, bytes) or not isinstance(navigation, str):
        return None
    try:
        # `decompress` believes the size that the data gives for itself.
        unpacker = zstandard.ZstdDecompressor(max_window_size=2 * _EVENT_BYTES_MAX)
        text = unpacker.stream_reader(packed).read(_EVENT_BYTES_MAX + 1).decode()
        if len(text) > _EVENT_BYTES_MAX:
            return None
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
