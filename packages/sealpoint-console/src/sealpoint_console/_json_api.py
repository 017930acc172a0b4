# SPDX-License-Identifier: Apache-2.0
"""The console for programs: the same data, rights and errors as the pages, as JSON.

What a program is shown it gives back as `expect` when it acts, as a form gives back its ticket:
if that has moved since, nothing is written. Answers to requests are attestations that a
person signed elsewhere, such as with `sealpoint approve --offline`; they are relayed.

The description of it all is made of the table of routes below, so that none is without; what it
says of lengths is asked of every call.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sealpoint.api import examine
from sealpoint.errors import NeedsApproval, NoRight, UsageError
from sealpoint.gate import Request, Standing, Status, ThreadPhase, ThreadSummary
from sealpoint.limits import WATCH_PAGE_MAX
from sealpoint.signing import Attestation
from sealpoint.views.documents import (
    examined_document,
    requests_document,
    rollouts_document,
    thread_document,
)
from sealpoint.world import json_form
from sealpoint_console._app import PageCall, Right, Routes
from sealpoint_console._openapi import (
    API_ROOT,
    DIGEST,
    TEXT,
    Schema,
    document,
    list_of,
    maybe,
    openapi,
    ref,
)
from sealpoint_console._pages import read_audit, read_phase
from sealpoint_console._request_pages import find_request, proposed_here

_RECORDS_MAX = 1000
_REASON = {"type": "string", "minLength": 1, "maxLength": 1000}
_EXPECT = {"type": "string", "maxLength": 32_768}
_NUMBER = {"type": "integer", "minimum": 0, "maximum": 10**9}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": WATCH_PAGE_MAX}
_TEXT = {"type": "string", "maxLength": 512}
_DAY = {"type": "string", "format": "date"}
_COUNT = {"type": "integer", "minimum": 0}
_ENTRY = document(entry=_COUNT)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a program can ask for."""

    method: str
    path: str
    """Below the root; names in braces are its parameters."""
    summary: str
    right: Right
    answer: Callable[[PageCall], Any]
    gives: Schema
    """What the answer is."""
    query: Mapping[str, Schema]
    body: Mapping[str, Schema]
    """The fields of a JSON object, all of them required."""


def operations() -> tuple[Operation, ...]:
    """All that programs can ask for."""
    return (*_reads_of_threads(), *_other_reads(), *_acts())


def _read(
    path: str,
    summary: str,
    answer: Callable[[PageCall], Any],
    gives: Schema,
    **query: Schema,
) -> Operation:
    return Operation("get", path, summary, Right.SIGNED_IN, answer, gives, query, {})


def _act(
    path: str,
    summary: str,
    answer: Callable[[PageCall], Any],
    gives: Schema,
    body: Mapping[str, Schema],
    *,
    right: Right = Right.OPERATOR,
) -> Operation:
    return Operation("post", path, summary, right, answer, gives, {}, body)


def _reads_of_threads() -> Iterator[Operation]:
    counts = document(**{str(each): _COUNT for each in ThreadPhase})
    yield _read(
        "/threads",
        "Threads by what they are at.",
        _threads,
        document(
            threads=list_of(ref("Thread")), total=_COUNT, counts=counts, state=ref("WatchState")
        ),
        phase={"type": "string", "enum": [str(each) for each in ThreadPhase]},
        text=_TEXT,
        offset=_NUMBER,
        limit=_LIMIT,
    )
    yield _read(
        "/threads/{thread}", "One thread, and where it stands.", _thread, ref("ThreadStanding")
    )
    yield _read(
        "/threads/{thread}/entries",
        "Its entries, newest first, each verified.",
        _entries,
        document(
            entries=list_of(ref("TimelineEntry")),
            total=_COUNT,
            head=TEXT,
            finding=maybe(ref("Finding")),
        ),
        offset=_NUMBER,
        limit=_LIMIT,
    )


def _other_reads() -> Iterator[Operation]:
    failures = list_of(document(thread=TEXT, message=TEXT))
    yield _read(
        "/requests",
        "What is asked for.",
        _requests,
        document(
            namespace=TEXT,
            requests=list_of(ref("Request")),
            failures=failures,
            state=ref("WatchState"),
        ),
        all={"type": "boolean"},
    )
    yield _read(
        "/requests/{request}",
        "One request with all that people are shown.",
        _request,
        ref("ExaminedRequest"),
    )
    yield _read(
        "/rollouts",
        "Rollouts, and how they stand.",
        _rollouts,
        document(namespace=TEXT, rollouts=list_of(ref("Request"))),
    )
    yield _read(
        "/audit",
        "Who did what and when, oldest first.",
        _audit,
        document(records=list_of(ref("AuditRecord")), after=maybe(TEXT)),
        **dict.fromkeys(("thread", "actor", "kind"), _TEXT),
        **dict.fromkeys(("since", "until"), _DAY),
        after=_TEXT,
    )
    yield _read(
        "/people",
        "Identities, roles and keys by the newest roster.",
        _people,
        document(roster=_COUNT, document=ref("RosterDocument")),
    )
    yield _read(
        "/health",
        "The last full verification, how fresh lists are, and what hooks took.",
        _health,
        document(
            hooks=list_of(ref("HookStatus")),
            hooks_fault=maybe(ref("Fault")),
            watch=ref("WatchState"),
            fault=maybe(ref("Fault")),
            verification=maybe(ref("Verification")),
        ),
    )


def _acts() -> Iterator[Operation]:
    said = {"reason": _REASON, "expect": _EXPECT}
    yield _act("/threads/{thread}/pause", "Stop a thread.", _pause, _ENTRY, said)
    yield _act("/threads/{thread}/unpause", "Let a thread go on.", _unpause, _ENTRY, said)
    yield _act(
        "/threads/{thread}/handoff",
        "Give a thread to another owner, or ask for it.",
        _handoff,
        document(entry=maybe(_COUNT), request=maybe(DIGEST)),
        {**said, "to": _TEXT},
    )
    yield _act(
        "/requests/{request}/rollout",
        "Propose a rollout of the change of worlds that a request waits for.",
        _propose,
        document(rollout=DIGEST, status=TEXT),
        {"reason": _REASON, "expect": DIGEST},
    )
    yield _act(
        "/rollouts/{request}/revoke",
        "End a rollout that the console proposed, for good.",
        _revoke,
        document(rollout=DIGEST, status=TEXT),
        {"reason": _REASON, "expect": DIGEST},
    )
    yield _act(
        "/requests/{request}/attestations",
        "Record a person's own signed word on a request.",
        _relay,
        _ENTRY,
        {"attestation": ref("Attestation")},
        right=Right.SIGNED_IN,
    )


def json_routes(make: Routes) -> Iterator[Route]:
    """The routes of the API, and of its description."""
    for each in operations():
        add = make.get if each.method == "get" else make.post
        yield add(f"{API_ROOT}{each.path}", each.right, _as_json(each))
    described = openapi(operations())
    yield make.get(f"{API_ROOT}/openapi.json", Right.SIGNED_IN, lambda _: JSONResponse(described))


def _as_json(operation: Operation) -> Callable[[PageCall], Response]:
    def handler(call: PageCall) -> Response:
        _check_bounds(call, operation)
        data = msgspec.json.encode(operation.answer(call), enc_hook=str)
        if operation.method == "post":
            call.desk.catch_up()
        return Response(data, media_type="application/json")

    return handler


def _check_bounds(call: PageCall, operation: Operation) -> None:
    """Hold what was sent against what the description says of it.

    Raises:
        UsageError: A text is too long or too short, or is none of those that there are; or nobody
            asked for it, such as a filter that is misspelt: all would be told.
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


def _summary(summary: ThreadSummary) -> dict[str, Any]:
    return {"id": summary.id, **thread_document(summary), "code": summary.code or None}


def _threads(call: PageCall) -> dict[str, Any]:
    watch = call.desk.watch
    found = watch.page(
        phase=read_phase(call.query("phase")),
        text=call.query("text"),
        offset=call.number("offset", 0),
        limit=call.number("limit", 50, WATCH_PAGE_MAX),
    )
    return {
        "threads": [_summary(each) for each in found.threads],
        "total": found.total,
        "counts": {str(each): count for each, count in watch.counts().items()},
        "state": json_form(watch.state),
    }


def _thread(call: PageCall) -> dict[str, Any]:
    summary = call.summary(call.path("thread"))
    standing = call.desk.store.thread(summary.name).standing()
    return {
        **_summary(summary),
        "digest": standing.digest,
        "expect": standing.encode().decode(),
        "standing": msgspec.to_builtins(standing),
    }


def _entries(call: PageCall) -> dict[str, Any]:
    page = call.desk.watch.timeline(
        call.summary(call.path("thread")).name,
        offset=call.number("offset", 0),
        limit=call.number("limit", 50, WATCH_PAGE_MAX),
    )
    return {
        "entries": [each.as_dict() for each in page.entries],
        "total": page.total,
        "head": page.head,
        "finding": None if page.finding is None else page.finding.as_dict(),
    }


def _requests(call: PageCall) -> dict[str, Any]:
    found = call.desk.watch.requests()
    everything = call.query("all") == "true"
    shown = [each for each in found.requests if everything or each.status is Status.OPEN]
    told = requests_document(call.desk.store.namespace, shown, found)
    return {**told, "state": json_form(call.desk.watch.state)}


def _request(call: PageCall) -> dict[str, Any]:
    return examined_document(examine(call.desk.store, find_request(call)))


def _rollouts(call: PageCall) -> dict[str, Any]:
    return rollouts_document(call.desk.store.namespace, call.desk.store.rollouts.list())


def _audit(call: PageCall) -> dict[str, Any]:
    page = read_audit(call, _RECORDS_MAX)
    return {"records": [each.as_dict() for each in page.records], "after": page.after or None}


def _people(call: PageCall) -> dict[str, Any]:
    roster = call.desk.watch.roster
    return {"roster": roster.seq, "document": msgspec.to_builtins(roster.document)}


def _health(call: PageCall) -> dict[str, Any]:
    desk = call.desk
    last, fault, hooks_fault = desk.health.last, desk.fault, desk.feed.fault
    return {
        "hooks": [json_form(each) for each in desk.notifier.status()],
        "hooks_fault": None if hooks_fault is None else hooks_fault.as_dict(),
        "watch": json_form(call.desk.watch.state),
        "fault": None if fault is None else fault.as_dict(),
        "verification": None
        if last is None
        else {
            **json_form(last, "begun", "done", "total", "ended", "elsewhere"),
            "report": None if last.report is None else last.report.as_dict(),
            "fault": None if last.fault is None else last.fault.as_dict(),
        },
    }


# ---------------------------------------------------------------------- acting


def _shown(call: PageCall) -> Standing:
    try:
        return Standing.parse(call.text("expect").encode(errors="replace"))
    except UsageError as exc:
        raise UsageError(
            exc.message,
            hint="Give back as expect, unchanged, what GET /api/v1/threads/ID has there.",
        ) from exc


def _pause(call: PageCall) -> dict[str, Any]:
    thread, actor = call.acting_on(call.path("thread")), call.viewer.person
    return {"entry": thread.pause(call.text("reason"), actor=actor, expect=_shown(call))}


def _unpause(call: PageCall) -> dict[str, Any]:
    thread, actor = call.acting_on(call.path("thread")), call.viewer.person
    return {"entry": thread.unpause(call.text("reason"), actor=actor, expect=_shown(call))}


def _handoff(call: PageCall) -> dict[str, Any]:
    thread = call.acting_on(call.path("thread"))
    try:
        entry = thread.handoff(
            to=call.text("to"),
            reason=call.text("reason"),
            actor=call.viewer.person,
            expect=_shown(call),
        )
    except NeedsApproval as needed:
        return {"entry": None, "request": needed.request.id}
    return {"entry": entry, "request": None}


def _require_whole_id(call: PageCall, found: Request) -> None:
    if call.text("expect") != found.id:
        raise UsageError(
            f"expect: expected the whole id that begins with {found.short}, found another text"
        )


def _propose(call: PageCall) -> dict[str, Any]:
    found = find_request(call)
    _require_whole_id(call, found)
    made = call.desk.acting.rollouts.propose_for(
        [found], reason=call.text("reason"), actor=call.viewer.person
    )
    return {"rollout": made.id, "status": str(made.status)}


def _revoke(call: PageCall) -> dict[str, Any]:
    rollouts, reason = call.desk.acting.rollouts, call.text("reason")
    found = rollouts.get(call.path("request"))
    _require_whole_id(call, found)
    if not proposed_here(call, found):
        raise NoRight(
            f"rollout {found.short} was not proposed by the console",
            hint="An approver revokes it, or the one who proposed it: sealpoint rollout revoke.",
        )
    rollouts.revoke(found.id, reason=reason, actor=call.viewer.person)
    return {"rollout": found.id, "status": str(rollouts.get(found.id).status)}


def _relay(call: PageCall) -> dict[str, Any]:
    try:
        word = msgspec.convert(call.fields.get("attestation"), Attestation)
    except msgspec.ValidationError as exc:
        raise UsageError("attestation: expected its fields, found other fields") from exc
    if not word.statement.startswith(call.path("request")):
        raise UsageError("attestation: expected one on this request, found one on another")
    return {"entry": call.desk.acting.relay(word)}
