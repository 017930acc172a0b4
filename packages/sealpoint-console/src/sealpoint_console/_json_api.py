# SPDX-License-Identifier: Apache-2.0
"""The console for programs: the same data, rights and errors as the pages, as JSON.

A program returns the displayed state as `expect` when it acts, as a form returns its ticket: if the
state has changed, nothing is written. Answers to requests are attestations that a person signed
elsewhere, such as with `sealpoint approve --offline`; they are relayed.

The OpenAPI description is made from the table of routes below and the types of their answers, so it
has every route. Every call is checked against the lengths in the description.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sealpoint.api import WatchState, examine
from sealpoint.audit import AuditRecord, TimelinePage
from sealpoint.errors import NeedsApproval, NoRight, SealpointError, UsageError
from sealpoint.gate import Request, Standing, Status, ThreadPhase
from sealpoint.limits import WATCH_PAGE_MAX
from sealpoint.signing import Attestation, RosterDocument
from sealpoint.views.documents import (
    ExaminedDocument,
    RequestsDocument,
    RolloutsDocument,
    ThreadDocument,
    examined_document,
    requests_document,
    rollouts_document,
    thread_document,
)
from sealpoint.world import json_form
from sealpoint_console._app import PageCall, Right, Routes
from sealpoint_console._health import Verification
from sealpoint_console._openapi import API_ROOT, DIGEST, Operation, Schema, openapi, ref
from sealpoint_console._outbox import HookStatus
from sealpoint_console._request_pages import find_request, proposed_here
from sealpoint_console._store_pages import read_audit, read_phase

_RECORDS_MAX = 1000
_REASON = {"type": "string", "minLength": 1, "maxLength": 1000}
_EXPECT = {"type": "string", "maxLength": 32_768}
_NUMBER = {"type": "integer", "minimum": 0, "maximum": 10**9}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": WATCH_PAGE_MAX}
_TEXT = {"type": "string", "maxLength": 512}
_DAY = {"type": "string", "format": "date"}


class _Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document that only the API has."""


class ThreadList(_Answer, frozen=True, kw_only=True):
    """A page of threads."""

    threads: list[ThreadDocument]
    total: int
    counts: dict[ThreadPhase, int]
    state: WatchState


class ThreadStanding(ThreadDocument, frozen=True, kw_only=True):
    """One thread, and its standing."""

    digest: str
    expect: str
    standing: Standing


class RequestList(RequestsDocument, frozen=True, kw_only=True):
    """Requests, and how fresh the list is."""

    state: WatchState


class AuditList(_Answer, frozen=True, kw_only=True):
    """A page of the audit."""

    records: list[AuditRecord]
    after: str | None


class People(_Answer, frozen=True, kw_only=True):
    """The newest roster."""

    roster: int
    document: RosterDocument


class HealthDocument(_Answer, frozen=True, kw_only=True):
    """The last full verification, how fresh lists are, and what the hooks received."""

    hooks: tuple[HookStatus, ...]
    hooks_fault: SealpointError | None
    watch: WatchState
    fault: SealpointError | None
    verification: Verification | None


class Written(_Answer, frozen=True, kw_only=True):
    """The position of the entry that was written."""

    entry: int


class HandedOff(_Answer, frozen=True, kw_only=True):
    """The entry that handed a thread off, or the request for the handoff."""

    entry: int | None
    request: str | None


class RolloutStatus(_Answer, frozen=True, kw_only=True):
    """The status of a rollout."""

    rollout: str
    status: Status


def operations() -> tuple[Operation, ...]:
    """Return all operations of the API."""
    return (*_reads(), *_acts())


def _read(path: str, summary: str, answer: Callable[[PageCall], Any], **query: Schema) -> Operation:
    return Operation("get", path, summary, Right.SIGNED_IN, answer, query, {})


def _act(
    path: str,
    summary: str,
    answer: Callable[[PageCall], Any],
    body: Mapping[str, Schema],
    *,
    right: Right = Right.OPERATOR,
) -> Operation:
    return Operation("post", path, summary, right, answer, {}, body)


def _reads() -> Iterator[Operation]:
    yield _read(
        "/threads",
        "Threads by what they are at.",
        _threads,
        phase={"type": "string", "enum": [str(each) for each in ThreadPhase]},
        text=_TEXT,
        offset=_NUMBER,
        limit=_LIMIT,
    )
    yield _read("/threads/{thread}", "One thread, and where it stands.", _thread)
    yield _read(
        "/threads/{thread}/entries",
        "Its entries, newest first, each verified.",
        _entries,
        offset=_NUMBER,
        limit=_LIMIT,
    )
    yield _read("/requests", "What is asked for.", _requests, all={"type": "boolean"})
    yield _read("/requests/{request}", "One request with all that people are shown.", _request)
    yield _read("/rollouts", "Rollouts, and how they stand.", _rollouts)
    yield _read(
        "/audit",
        "The audit records, oldest first.",
        _audit,
        **dict.fromkeys(("thread", "actor", "kind"), _TEXT),
        **dict.fromkeys(("since", "until"), _DAY),
        after=_TEXT,
    )
    yield _read("/people", "Identities, roles and keys by the newest roster.", _people)
    yield _read(
        "/health",
        "The last full verification, how fresh lists are, and what hooks took.",
        _health,
    )


def _acts() -> Iterator[Operation]:
    said = {"reason": _REASON, "expect": _EXPECT}
    whole = {"reason": _REASON, "expect": DIGEST}
    yield _act("/threads/{thread}/pause", "Stop a thread.", _pause, said)
    yield _act("/threads/{thread}/unpause", "Let a thread go on.", _unpause, said)
    yield _act(
        "/threads/{thread}/handoff",
        "Give a thread to another owner, or ask for it.",
        _handoff,
        {**said, "to": _TEXT},
    )
    yield _act(
        "/requests/{request}/rollout",
        "Propose a rollout of the change of worlds that a request waits for.",
        _propose,
        whole,
    )
    yield _act(
        "/rollouts/{request}/revoke",
        "End a rollout that the console proposed, for good.",
        _revoke,
        whole,
    )
    yield _act(
        "/requests/{request}/attestations",
        "Record a person's own signed word on a request.",
        _relay,
        {"attestation": ref("Attestation")},
        right=Right.SIGNED_IN,
    )


def json_routes(make: Routes) -> Iterator[Route]:
    """Return the routes of the API, and of its description."""
    for each in operations():
        add = make.get if each.method == "get" else make.post
        yield add(f"{API_ROOT}{each.path}", each.right, _as_json(each))
    described = openapi(operations())
    yield make.get(f"{API_ROOT}/openapi.json", Right.SIGNED_IN, lambda _: JSONResponse(described))


def _as_json(operation: Operation) -> Callable[[PageCall], Response]:
    def handler(call: PageCall) -> Response:
        _check_bounds(call, operation)
        data = msgspec.json.encode(json_form(operation.answer(call)))
        if operation.method == "post":
            call.desk.catch_up()
        return Response(data, media_type="application/json")

    return handler


def _check_bounds(call: PageCall, operation: Operation) -> None:
    """Check the parameters of a call against the description.

    Raises:
        UsageError: A text is too long, too short or not one of the allowed values; or a parameter
            is unknown, such as a misspelled filter, which would otherwise return everything.
    """
    if others := call.request.query_params.keys() - operation.query.keys():
        taken = ", ".join(operation.query) or "nothing"
        raise UsageError(f"query: expected {taken}, found {min(others)[:64]!r}")
    texts = {name: call.query(name) for name in operation.query if call.query(name)}
    texts |= {name: text for name, text in call.fields.items() if isinstance(text, str)}
    for name, schema in (*operation.query.items(), *operation.body.items()):
        text = texts.get(name)
        if text is None:
            continue
        least, most = schema.get("minLength", 0), schema.get("maxLength", len(text))
        if not least <= len(text) <= most:
            raise UsageError(f"{name}: expected {least} to {most} characters, found {len(text)}")
        if schema.get("type") == "boolean" and text not in ("true", "false"):
            raise UsageError(f"{name}: expected true or false, found another text")


# ---------------------------------------------------------------------- reading


def _threads(call: PageCall) -> ThreadList:
    watch = call.desk.watch
    found = watch.page(
        phase=read_phase(call.query("phase")),
        text=call.query("text"),
        offset=call.number("offset", 0),
        limit=call.number("limit", 50, WATCH_PAGE_MAX),
    )
    return ThreadList(
        threads=[thread_document(each) for each in found.threads],
        total=found.total,
        counts=watch.counts(),
        state=watch.state,
    )


def _thread(call: PageCall) -> ThreadStanding:
    summary = call.summary(call.path("thread"))
    standing = call.desk.store.thread(summary.name).standing()
    return ThreadStanding(
        **msgspec.structs.asdict(thread_document(summary)),
        digest=standing.digest,
        expect=standing.encode().decode(),
        standing=standing,
    )


def _entries(call: PageCall) -> TimelinePage:
    return call.desk.watch.timeline(
        call.summary(call.path("thread")).name,
        offset=call.number("offset", 0),
        limit=call.number("limit", 50, WATCH_PAGE_MAX),
    )


def _requests(call: PageCall) -> RequestList:
    found = call.desk.watch.requests()
    everything = call.query("all") == "true"
    shown = [each for each in found.requests if everything or each.status is Status.OPEN]
    told = requests_document(call.desk.store.namespace, shown, found)
    return RequestList(**msgspec.structs.asdict(told), state=call.desk.watch.state)


def _request(call: PageCall) -> ExaminedDocument:
    return examined_document(examine(call.desk.store, find_request(call), states=True))


def _rollouts(call: PageCall) -> RolloutsDocument:
    return rollouts_document(call.desk.store.namespace, call.desk.store.rollouts.list())


def _audit(call: PageCall) -> AuditList:
    page = read_audit(call, _RECORDS_MAX)
    return AuditList(records=page.records, after=page.after or None)


def _people(call: PageCall) -> People:
    roster = call.desk.watch.roster
    return People(roster=roster.seq, document=roster.document)


def _health(call: PageCall) -> HealthDocument:
    desk = call.desk
    return HealthDocument(
        hooks=desk.notifier.status(),
        hooks_fault=desk.feed.fault,
        watch=desk.watch.state,
        fault=desk.fault,
        verification=desk.health.last,
    )


# ---------------------------------------------------------------------- acting


def _shown(call: PageCall) -> Standing:
    try:
        return Standing.parse(call.text("expect").encode(errors="replace"))
    except UsageError as exc:
        raise UsageError(
            exc.message,
            hint="Give back as expect, unchanged, what GET /api/v1/threads/ID has there.",
        ) from exc


def _pause(call: PageCall) -> Written:
    thread, actor = call.acting_on(call.path("thread")), call.viewer.person
    return Written(entry=thread.pause(call.text("reason"), actor=actor, expect=_shown(call)))


def _unpause(call: PageCall) -> Written:
    thread, actor = call.acting_on(call.path("thread")), call.viewer.person
    return Written(entry=thread.unpause(call.text("reason"), actor=actor, expect=_shown(call)))


def _handoff(call: PageCall) -> HandedOff:
    thread = call.acting_on(call.path("thread"))
    try:
        entry = thread.handoff(
            to=call.text("to"),
            reason=call.text("reason"),
            actor=call.viewer.person,
            expect=_shown(call),
        )
    except NeedsApproval as needed:
        return HandedOff(entry=None, request=needed.request.id)
    return HandedOff(entry=entry, request=None)


def _require_whole_id(call: PageCall, found: Request) -> None:
    if call.text("expect") != found.id:
        raise UsageError(
            f"expect: expected the whole id that begins with {found.short}, found another text"
        )


def _propose(call: PageCall) -> RolloutStatus:
    found = find_request(call)
    _require_whole_id(call, found)
    made = call.desk.acting.rollouts.propose_for(
        [found], reason=call.text("reason"), actor=call.viewer.person
    )
    return RolloutStatus(rollout=made.id, status=made.status)


def _revoke(call: PageCall) -> RolloutStatus:
    rollouts, reason = call.desk.acting.rollouts, call.text("reason")
    found = rollouts.get(call.path("request"))
    _require_whole_id(call, found)
    if not proposed_here(call, found):
        raise NoRight(
            f"rollout {found.short} was not proposed by the console",
            hint="An approver revokes it, or the one who proposed it: sealpoint rollout revoke.",
        )
    rollouts.revoke(found.id, reason=reason, actor=call.viewer.person)
    return RolloutStatus(rollout=found.id, status=rollouts.get(found.id).status)


def _relay(call: PageCall) -> Written:
    try:
        word = msgspec.convert(call.fields.get("attestation"), Attestation)
    except msgspec.ValidationError as exc:
        raise UsageError("attestation: expected its fields, found other fields") from exc
    if not word.statement.startswith(call.path("request")):
        raise UsageError("attestation: expected one on this request, found one on another")
    return Written(entry=call.desk.acting.relay(word))
