# SPDX-License-Identifier: Apache-2.0
"""What people are told of: events, made from verified entries, findings and the roster.

An event says what happened, where, when and by whom, and leads to the page that shows the rest. It
holds no state, no question and no answer. It holds no reason either: a reason is somebody's own
words, may quote what the run was about, and would stay in chats and logs that no erasure reaches.

A request is told as such only if it fits the thread that it is made on, and an answer to it only if
it carries the word of somebody whom the roster knows; whether it counts, the request's page says.
The id of an event follows from what it is about, so that whoever gets it twice can tell.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec

from sealpoint.audit import AuditRecord, Finding
from sealpoint.signing import Roster
from sealpoint.world import visible

_ID_DIGITS = 32
_SHORT_DIGITS = 12
_NAME_CHARS_MAX = 120
_DAYS_BEFORE = (1, 7, 30)
"""How long before its end a key is told of, once each."""

_KINDS = {
    "request": "request",
    "approval": "approved",
    "denial": "denied",
    "break-glass": "broken-glass",
    "pause": "paused",
    "unpause": "unpaused",
    "handoff": "handed-off",
    "expiry": "refused",
}
"""The events of entries, by the words for their kinds."""

_ANSWERS = frozenset({"approval", "denial", "break-glass"})

TOLD_ENTRIES = frozenset(_KINDS)
"""The words for the kinds of entries that make an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleEvent:
    """Something that people are told of."""

    id: str
    """The same whenever the same thing is told."""
    kind: str
    """One of `CONSOLE_EVENTS`."""
    time: datetime
    """Of an entry, when its writer says that it was written; else when it was found out."""
    page: str
    """The path of the page that shows more, in the console."""
    thread: str = ""
    """The name of the thread; empty: it is about none."""
    thread_id: str = ""
    request: str = ""
    """The id of the request; empty: it is about none."""
    by: str = ""
    """The identity that did it."""
    actor: str = ""
    """The person for whom it did, as it claims."""
    identity: str = ""
    """Whose key is about to expire."""
    expires: datetime | None = None
    code: str = ""
    """Why something is refused: the code of the error, or `expired`."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: what there is, times as text."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: _time_text(value) if isinstance(value, datetime) else value
            for name, value in found.items()
            if value
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> "ConsoleEvent":
        """The event of a JSON form."""
        return msgspec.convert(found, cls)


def event_id(*parts: str) -> str:
    """The id of what some texts name together."""
    return sha256(json.dumps(["sealpoint event", *parts]).encode()).hexdigest()[:_ID_DIGITS]


def record_event(
    record: AuditRecord,
    store_id: str,
    asked: Collection[str],
    open_requests: Collection[str] = (),
) -> ConsoleEvent | None:
    """What people are told of an entry; None: nothing.

    Args:
        record: The entry.
        store_id: The store.
        asked: The ids of the requests that were made on the thread before: nothing else can be
            answered or expire there, whatever entries say.
        open_requests: The ids of requests that have not expired, whatever entries say.
    """
    kind = _KINDS.get(record.kind)
    if kind is None or record.time is None:
        return None
    by, code = record.word_of or record.by, "expired" if record.kind == "expiry" else ""
    if not _is_what_it_says(record, asked, open_requests):
        kind, by, code = "refused", record.by, "not-trusted"
    page = f"/threads/{record.thread_id}"
    if record.request:
        # With the thread: it is found, and told what became of it, although the thread has gone on.
        page = f"/requests/{record.request}?thread={record.thread_id}"
    return ConsoleEvent(
        id=event_id(store_id, record.entry, kind),
        kind=kind,
        time=record.time,
        page=page,
        thread=record.thread,
        thread_id=record.thread_id,
        request=record.request,
        by=by,
        actor=record.actor,
        code=code,
    )


def _is_what_it_says(
    record: AuditRecord, asked: Collection[str], open_requests: Collection[str]
) -> bool:
    """Whether an entry about a request is one: anybody of the namespace may write any of them."""
    if record.kind == "request":
        # People would look for what they cannot find.
        return bool(record.request)
    is_known = record.request in asked
    if record.kind in _ANSWERS:
        # The word inside is what counts, and only where its request was made: somebody's genuine
        # word may be copied to another thread.
        return bool(record.word_of) and is_known
    # Whoever believed an end before its time, or of what nobody asked, would leave it to others.
    return record.kind != "expiry" or (is_known and record.request not in open_requests)


def finding_event(finding: Finding, store_id: str, count: int, now: datetime) -> ConsoleEvent:
    """What people are told of a thread, or a store chain, that does not verify or was misused.

    Args:
        finding: What is wrong.
        store_id: The store.
        count: How often that thread was found so, this time included.
        now: When it was found out.
    """
    is_thread = finding.thread.strip("0") != ""
    kind = "unreadable" if finding.refuses else "unjustified"
    return ConsoleEvent(
        id=event_id(store_id, finding.thread, finding.code, str(count), kind),
        kind=kind,
        time=now,
        page=f"/threads/{finding.thread}" if is_thread else "/health",
        thread=finding.name,
        thread_id=finding.thread if is_thread else "",
        code=finding.code,
    )


def expiry_events(
    roster: Roster, store_id: str, namespace: str, now: datetime
) -> Iterable[ConsoleEvent]:
    """What people are told of keys that expire soon: 30 days before, 7 days and one."""
    for identity in roster.identities:
        for key in identity.keys if identity.covers(namespace) else ():
            if key.expires is None or key.expires <= now:
                continue
            near = [days for days in _DAYS_BEFORE if key.expires - now <= timedelta(days=days)]
            if near:
                about = (key.public, key.expires.isoformat(), str(near[0]))
                yield ConsoleEvent(
                    id=event_id(store_id, *about, "key-expires"),
                    kind="key-expires",
                    time=now,
                    page="/people",
                    identity=identity.name,
                    expires=key.expires,
                )


def resume_event(
    store_id: str, thread_id: str, thread: str, person: str, now: datetime
) -> ConsoleEvent:
    """What a worker is told when somebody wants its thread to go on."""
    return ConsoleEvent(
        id=event_id(store_id, thread_id, now.isoformat(), "resume-wanted"),
        kind="resume-wanted",
        time=now,
        page=f"/threads/{thread_id}",
        thread=thread,
        thread_id=thread_id,
        actor=person,
    )


def sentence(event: ConsoleEvent) -> str:
    """An event in a sentence for people; nothing in it is hidden, and no markup is meant."""
    by = _shown(event.by) or "Somebody"
    if event.actor:
        by = f"{by} for {_shown(event.actor)}" if event.by else _shown(event.actor)
    request = f"request {event.request[:_SHORT_DIGITS]}"
    expires = "" if event.expires is None else _time_text(event.expires)
    said = {
        "request": f"{by} asks for approval: {request}",
        "approved": f"{by} approved {request}",
        "denied": f"{by} denied {request}",
        "broken-glass": f"{by} broke the glass: {request} passes without the approvals it needs",
        "paused": f"{by} paused the thread",
        "unpaused": f"{by} unpaused the thread",
        "handed-off": f"{by} gave the thread to another owner",
        "refused": _refusal(event, by, request),
        "unreadable": f"This does not verify, and is refused: {event.code}",
        "unjustified": "A full verification found what the policy of its time did not allow",
        "resume-wanted": f"{by} wants the thread to go on",
        "key-expires": f"A key of {_shown(event.identity)} expires on {expires}",
    }[event.kind]
    where = f" (thread {_shown(event.thread)})" if event.thread else ""
    return f"{said}{where}"


def _refusal(event: ConsoleEvent, by: str, request: str) -> str:
    if event.code == "expired":
        return f"Nobody approved {request} in time: what it asks for is refused"
    if not event.request:
        return f"{by} asked for something that does not fit the thread: it is refused"
    return f"{by} wrote an answer to {request}, or its end, that is none: it is refused"


def _shown(text: str) -> str:
    shown = visible(text)
    if len(shown) <= _NAME_CHARS_MAX:
        return shown
    return f"{shown[:_NAME_CHARS_MAX]}... and {len(shown) - _NAME_CHARS_MAX} more characters"


def _time_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
