# SPDX-License-Identifier: Apache-2.0
"""The events of notifications, created from verified entries, findings and the roster.

An event says what happened, where, when and by whom, and links to the page with the details. It
holds no state, no question and no answer. It holds no reason either: a reason is a person's own
text, may quote the content of the run, and would stay in chats and logs that no erasure reaches.

A request becomes an event only if it fits its thread, and an answer only if it carries an
attestation of a person whom the roster knows; the request's page says whether it counts. The id of
an event is derived from its subject, so that a recipient can recognize duplicates.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec

from sealpoint.audit import AuditRecord, Finding
from sealpoint.gate import Request, Status
from sealpoint.signing import Action, Roster
from sealpoint.world import World, value_digest, visible

_ID_DIGITS = 32
_SHORT_DIGITS = 12
_NAME_CHARS_MAX = 120
_DAYS_BEFORE = (1, 7, 30)
"""The days before its expiry at which a key has an event, once each."""

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

REPORTED_ENTRIES = frozenset(_KINDS)
"""The words for the kinds of entries that make an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleEvent:
    """An event for notifications."""

    id: str
    """The same for every delivery of the same event."""
    kind: str
    """One of `CONSOLE_EVENTS`."""
    time: datetime
    """The time of an entry according to its writer; else the time of detection."""
    page: str
    """The path of the console page with the details."""
    thread: str = ""
    """The name of the thread; empty: no thread."""
    thread_id: str = ""
    request: str = ""
    """The id of the request; empty: no request."""
    by: str = ""
    """The identity that did it."""
    actor: str = ""
    """The person for whom it acted, as it claims."""
    identity: str = ""
    """The identity whose key is about to expire."""
    expires: datetime | None = None
    approved_by: tuple[str, ...] = ()
    """The identities that approved a request which a deploy will make void."""
    code: str = ""
    """The reason for a refusal: the code of the error, or `expired`."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the fields that are set, times as text."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: _time_text(value) if isinstance(value, datetime) else value
            for name, value in found.items()
            if value
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> "ConsoleEvent":
        """The event in a JSON form."""
        return msgspec.convert(found, cls)


def event_id(*parts: str) -> str:
    """The id for a combination of texts."""
    return sha256(json.dumps(["sealpoint event", *parts]).encode()).hexdigest()[:_ID_DIGITS]


def record_event(
    record: AuditRecord,
    store_id: str,
    asked: Collection[str],
    open_requests: Collection[str] = (),
) -> ConsoleEvent | None:
    """The event of an entry; None if it has none.

    Args:
        record: The entry.
        store_id: The store.
        asked: The ids of the earlier requests on the thread: no other request can be answered or
            expire there, whatever entries say.
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
        # With the thread: the page finds the request and shows its result, although the thread has
        # continued.
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


def voided_requests(rollout: Request, requests: Iterable[Request]) -> tuple[Request, ...]:
    """The open requests to resume that nobody can use once the runs have what a rollout accepts.

    Those already ask to resume with all of it stay usable.
    """
    return tuple(
        each
        for each in requests
        if each.statement.action is Action.RESUME
        and each.status in (Status.OPEN, Status.APPROVED)
        and each.statement.world_to is not None
        and not _has_all(each, rollout)
    )


def _has_all(request: Request, rollout: Request) -> bool:
    leaves = {} if request.world is None else World.from_dict(request.world).leaves()
    return all(
        (value_digest(leaves[leaf]) if leaf in leaves else None) == after
        for leaf, _, after in rollout.statement.differences
    )


def void_event(rollout: ConsoleEvent, request: Request, store_id: str) -> ConsoleEvent:
    """The event for the people of a request that will be void when a proposed deploy runs.

    Args:
        rollout: The event of the proposal.
        request: The request, with the approvals that it has.
        store_id: The store.
    """
    thread = request.statement.thread
    return ConsoleEvent(
        id=event_id(store_id, rollout.request, request.id, "deploy-voids"),
        kind="deploy-voids",
        time=rollout.time,
        page=f"/requests/{request.id}?thread={thread}",
        thread=request.thread,
        thread_id=thread,
        request=request.id,
        by=request.statement.requester,
        approved_by=request.approved_by,
    )


def _is_what_it_says(
    record: AuditRecord, asked: Collection[str], open_requests: Collection[str]
) -> bool:
    """Whether an entry about a request is genuine: every writer of the namespace may write one."""
    if record.kind == "request":
        # People would look for a request that they cannot find.
        return bool(record.request)
    is_known = record.request in asked
    if record.kind in _ANSWERS:
        # The attestation inside counts, and only on the thread of its request: an attacker may copy
        # a genuine attestation to another thread.
        return bool(record.word_of) and is_known
    # Anyone who believed a premature expiry, or one without a request, would leave the request to
    # others.
    return record.kind != "expiry" or (is_known and record.request not in open_requests)


def finding_event(finding: Finding, store_id: str, count: int, now: datetime) -> ConsoleEvent:
    """The event of a thread, or a store chain, that fails verification or was misused.

    Args:
        finding: The problem.
        store_id: The store.
        count: The number of times that the thread had this problem, this time included.
        now: The time of detection.
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
    """The events of keys that expire soon: 30 days before, 7 days and one."""
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
    """The event for a worker when a person wants its thread to resume."""
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
    """An event as a sentence for people, with all its text visible and without markup."""
    by = _shown(event.by) or "Someone"
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
        "deploy-voids": _void_words(event, by, request),
        "refused": _refusal(event, by, request),
        "unreadable": f"This does not verify, and is refused: {event.code}",
        "unjustified": "A full verification found what the policy of its time did not allow",
        "resume-wanted": f"{by} wants the thread to resume",
        "key-expires": f"A key of {_shown(event.identity)} expires on {expires}",
    }[event.kind]
    where = f" (thread {_shown(event.thread)})" if event.thread else ""
    return f"{said}{where}"


def _void_words(event: ConsoleEvent, by: str, request: str) -> str:
    approved = ", ".join(map(_shown, event.approved_by)) or "nobody yet"
    return (
        f"A rollout is proposed. Once it is deployed, {request} by {by} is void; approved by "
        f"{approved}"
    )


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
