# SPDX-License-Identifier: Apache-2.0
"""The console for programs: the same data, rights and errors as the pages, as JSON.

What a program is shown it gives back as `expect` when it acts, as a form gives back its ticket:
if the thread has moved since, nothing is written. Answers to requests are attestations that a
person signed elsewhere, such as with `sealpoint approve --offline`; they are relayed.

The description of it all is made of the table of routes below, so that none is without.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import sealpoint
from sealpoint.api import examine
from sealpoint.console._app import PageCall, Right, Routes
from sealpoint.console._pages import read_day
from sealpoint.errors import NeedsApproval, UsageError
from sealpoint.gate import Standing, Status, ThreadPhase, ThreadSummary
from sealpoint.limits import WATCH_PAGE_MAX
from sealpoint.signing import Attestation
from sealpoint.views.documents import (
    examined_document,
    requests_document,
    rollouts_document,
    thread_document,
)
from sealpoint.world import json_form

_ROOT = "/api/v1"
_RECORDS_MAX = 1000
_ID = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_DIGITS = {"type": "string", "pattern": "^[0-9a-f]{8,64}$"}
_REASON = {"type": "string", "minLength": 1, "maxLength": 1000}
_EXPECT = {"type": "string", "maxLength": 65536}
_NUMBER = {"type": "integer", "minimum": 0, "maximum": 10**9}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": WATCH_PAGE_MAX}
_TEXT = {"type": "string", "maxLength": 512}
_DAY = {"type": "string", "format": "date"}

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a program can ask for."""

    method: str
    path: str
    """Below the root; names in braces are its parameters."""
    summary: str
    right: Right
    answer: Callable[[PageCall], Any]
    query: Mapping[str, Schema]
    body: Mapping[str, Schema]
    """The fields of a JSON object, all of them required."""


def operations() -> tuple[Operation, ...]:
    """All that programs can ask for."""
    reads: dict[str, tuple[str, Callable[[PageCall], Any], dict[str, Schema]]] = {
        "/threads": (
            "Threads by what they are at.",
            _threads,
            {
                "phase": {"type": "string", "enum": [str(each) for each in ThreadPhase]},
                "text": _TEXT,
                "offset": _NUMBER,
                "limit": _LIMIT,
            },
        ),
        "/threads/{thread}": ("One thread, and where it stands.", _thread, {}),
        "/threads/{thread}/entries": (
            "Its entries, newest first, each verified.",
            _entries,
            {"offset": _NUMBER, "limit": _LIMIT},
        ),
        "/requests": ("What is asked for.", _requests, {"all": {"type": "boolean"}}),
        "/requests/{request}": ("One request with all that people are shown.", _request, {}),
        "/rollouts": ("Rollouts, and how they stand.", _rollouts, {}),
        "/audit": (
            "Who did what and when, oldest first.",
            _audit,
            {
                **dict.fromkeys(("thread", "actor", "kind"), _TEXT),
                **dict.fromkeys(("since", "until"), _DAY),
                "offset": _NUMBER,
            },
        ),
        "/people": ("Identities, roles and keys by the newest roster.", _people, {}),
        "/health": ("The last full verification, and how fresh lists are.", _health, {}),
    }
    acts: dict[str, tuple[str, Right, Callable[[PageCall], Any], dict[str, Schema]]] = {
        "/threads/{thread}/pause": (
            *("Stop a thread.", Right.OPERATOR, _pause),
            {"reason": _REASON, "expect": _EXPECT},
        ),
        "/threads/{thread}/unpause": (
            *("Let a thread go on.", Right.OPERATOR, _unpause),
            {"reason": _REASON, "expect": _EXPECT},
        ),
        "/threads/{thread}/handoff": (
            *("Give a thread to another owner, or ask for it.", Right.OPERATOR, _handoff),
            {"reason": _REASON, "expect": _EXPECT, "to": _TEXT},
        ),
        "/requests/{request}/attestations": (
            *("Record a person's own signed word on a request.", Right.SIGNED_IN, _relay),
            {"attestation": {"type": "object"}},
        ),
    }
    return (
        *(
            Operation("get", path, words, Right.SIGNED_IN, answer, query, {})
            for path, (words, answer, query) in reads.items()
        ),
        *(
            Operation("post", path, words, right, answer, {}, body)
            for path, (words, right, answer, body) in acts.items()
        ),
    )


def json_routes(make: Routes) -> Iterator[Route]:
    """The routes of the API, and of its description."""
    for each in operations():
        add = make.get if each.method == "get" else make.post
        yield add(f"{_ROOT}{each.path}", each.right, _as_json(each.answer))
    document = openapi()
    yield make.get(f"{_ROOT}/openapi.json", Right.SIGNED_IN, lambda _: JSONResponse(document))


def _as_json(answer: Callable[[PageCall], Any]) -> Callable[[PageCall], Response]:
    def handler(call: PageCall) -> Response:
        data = msgspec.json.encode(answer(call), enc_hook=str)
        return Response(data, media_type="application/json")

    return handler


# ---------------------------------------------------------------------- reading


def _summary(summary: ThreadSummary) -> dict[str, Any]:
    return {"id": summary.id, **thread_document(summary), "code": summary.code or None}


def _threads(call: PageCall) -> dict[str, Any]:
    phase, watch = call.query("phase"), call.desk.watch
    if phase and phase not in tuple(ThreadPhase):
        raise UsageError(f"phase: expected {', '.join(ThreadPhase)}, found {phase[:64]!r}")
    found = watch.page(
        phase=ThreadPhase(phase) if phase else None,
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
    return requests_document(call.desk.store.namespace, shown, found)


def _request(call: PageCall) -> dict[str, Any]:
    store = call.desk.store
    return examined_document(examine(store, store.request(call.path("request"))))


def _rollouts(call: PageCall) -> dict[str, Any]:
    return rollouts_document(call.desk.store.namespace, call.desk.store.rollouts.list())


def _audit(call: PageCall) -> dict[str, Any]:
    records = call.desk.store.audit(
        thread=call.query("thread") or None,
        actor=call.query("actor") or None,
        kind=call.query("kind") or None,
        since=read_day(call.query("since"), "since"),
        until=read_day(call.query("until"), "until"),
    )
    offset = call.number("offset", 0)
    shown = list(islice(records, offset, offset + _RECORDS_MAX + 1))
    return {
        "records": [each.as_dict() for each in shown[:_RECORDS_MAX]],
        "more": len(shown) > _RECORDS_MAX,
    }


def _people(call: PageCall) -> dict[str, Any]:
    roster = call.desk.watch.roster
    return {"roster": roster.seq, "document": msgspec.to_builtins(roster.document)}


def _health(call: PageCall) -> dict[str, Any]:
    last, fault = call.desk.health.last, call.desk.fault
    return {
        "watch": json_form(call.desk.watch.state),
        "fault": None if fault is None else fault.as_dict(),
        "verification": None
        if last is None
        else {
            **json_form(last, "begun", "done", "total", "ended"),
            "report": None if last.report is None else last.report.as_dict(),
            "fault": None if last.fault is None else last.fault.as_dict(),
        },
    }


# ---------------------------------------------------------------------- acting


def _shown(call: PageCall) -> Standing:
    return Standing.parse(call.text("expect").encode(errors="replace"))


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


def _relay(call: PageCall) -> dict[str, Any]:
    try:
        word = msgspec.convert(call.fields.get("attestation"), Attestation)
    except msgspec.ValidationError as exc:
        raise UsageError("attestation: expected its fields, found other fields") from exc
    if not word.statement.startswith(call.path("request")):
        raise UsageError("attestation: expected one on this request, found one on another")
    return {"entry": call.desk.acting.relay(word)}


# ---------------------------------------------------------------------- description

_ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": "string"},
                "exit_status": {"type": "integer"},
            },
        }
    },
}
_REFUSALS = {
    "400": "What was asked for makes no sense.",
    "401": "Nobody is signed in.",
    "403": "This person may not, or it came from another site.",
    "404": "There is no such thing.",
    "409": "It moved, is closed, or does not verify: the code says which.",
    "429": "Too often.",
    "503": "The store or its anchor cannot be reached.",
}


def openapi() -> dict[str, Any]:
    """The description of the API, as OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for each in operations():
        paths.setdefault(f"{_ROOT}{each.path}", {})[each.method] = _described(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sealpoint console", "version": sealpoint.__version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-sealpoint"}
            },
        },
        "security": [{"session": []}],
    }


def _described(each: Operation) -> dict[str, Any]:
    names = {"thread": _ID, "request": _DIGITS}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name, schema in names.items()
        if f"{{{name}}}" in each.path
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in each.query.items()
    ]
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    refusals = {
        status: {"description": words, "content": error} for status, words in _REFUSALS.items()
    }
    done = {"description": "Done.", "content": {"application/json": {"schema": {"type": "object"}}}}
    described: dict[str, Any] = {
        "summary": each.summary,
        "parameters": parameters,
        "responses": {"200": done, **refusals},
    }
    if each.body:
        schema = {"type": "object", "required": list(each.body), "properties": dict(each.body)}
        content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described
