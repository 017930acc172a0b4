# SPDX-License-Identifier: Apache-2.0
"""How the API for programs is described, as OpenAPI 3.1: what it takes, and what it answers.

What a document of the package holds is taken from the type that it is made of, so that it cannot
say anything else; what is put together for the API alone is written down here, and a test holds
every answer against it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

import sealpoint
from sealpoint.api import WatchState
from sealpoint.audit import AuditRecord, Finding, Report, TimelineEntry
from sealpoint.gate import Standing, Status, ThreadPhase
from sealpoint.signing import Attestation, RosterDocument, Statement
from sealpoint_console._outbox import HookStatus

API_ROOT = "/api/v1"

Schema = Mapping[str, Any]

_REF = "#/components/schemas/{name}"
_MADE_OF = (
    *(AuditRecord, Finding, HookStatus, Report, TimelineEntry, WatchState),
    *(Standing, Attestation, RosterDocument, Statement),
)

TEXT: Schema = {"type": "string"}
ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_DIGITS: Schema = {"type": "string", "pattern": "^[0-9a-f]{8,64}$"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TIME: Schema = {"type": "string", "format": "date-time"}
_YES: Schema = {"type": "boolean"}
_ANYTHING: Schema = {}
_TEXTS: Schema = {"type": "array", "items": TEXT}


class Described(Protocol):
    """What is told of one operation; see `Operation`."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def gives(self) -> Schema: ...
    @property
    def query(self) -> Mapping[str, Schema]: ...
    @property
    def body(self) -> Mapping[str, Schema]: ...


def ref(name: str) -> Schema:
    """What has a name in the description."""
    return {"$ref": _REF.format(name=name)}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema) -> Schema:
    """A list of the same."""
    return {"type": "array", "items": schema}


def document(**fields: Schema) -> Schema:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "required": list(fields),
        "properties": fields,
        "additionalProperties": False,
    }


_THREAD: dict[str, Schema] = {
    "id": ID,
    "thread": TEXT,
    "changed": maybe(_TIME),
    "owner": maybe(TEXT),
    "state": {"type": "string", "enum": [str(each) for each in ThreadPhase]},
    "entries": maybe(_COUNT),
    "reason": maybe(TEXT),
    "cut_by_restore": _YES,
    "code": maybe(TEXT),
}
_REQUEST: dict[str, Schema] = {
    "id": DIGEST,
    "thread": TEXT,
    "asked_at": _TIME,
    "needed": _COUNT,
    "status": {"type": "string", "enum": [str(each) for each in Status]},
    **dict.fromkeys(("approved_by", "denied_by", "ignored", "broken_glass_by"), _TEXTS),
    "broken_glass": maybe(TEXT),
    "statement": ref("Statement"),
    "answer": _ANYTHING,
    "world": maybe({"type": "object"}),
    "worlds": list_of({"type": "object"}),
    "requester_says": _TEXTS,
}
_ERROR = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {"code": TEXT, "message": TEXT, "hint": TEXT, "exit_status": _COUNT},
}
_DOCUMENTS: dict[str, Schema] = {
    "Error": document(error=ref("Fault")),
    "Fault": _ERROR,
    "Thread": document(**_THREAD),
    "ThreadStanding": document(**_THREAD, digest=DIGEST, expect=TEXT, standing=ref("Standing")),
    "Request": document(**_REQUEST),
    "ExaminedRequest": document(
        **_REQUEST,
        release=maybe({"type": "object"}),
        diff=maybe(_TEXTS),
        difference=maybe({"type": "object"}),
        fault=maybe(ref("Fault")),
    ),
    "Verification": document(
        begun=_TIME,
        done=_COUNT,
        total=_COUNT,
        ended=maybe(_TIME),
        elsewhere=_COUNT,
        report=maybe(ref("Report")),
        fault=maybe(ref("Fault")),
    ),
}
_REFUSALS = {
    "400": "What was asked for makes no sense.",
    "401": "Nobody is signed in.",
    "403": "This person may not, or it came from another site.",
    "404": "There is no such thing.",
    "405": "There is no such method for it.",
    "409": "It moved, is closed, or does not verify: the code says which.",
    "413": "It has too many bytes.",
    "421": "The console is at another name.",
    "429": "Too often.",
    "503": "The store or its anchor cannot be reached.",
}


def openapi(operations: Iterable[Described]) -> dict[str, Any]:
    """The description of some operations."""
    paths: dict[str, Any] = {}
    for each in operations:
        paths.setdefault(f"{API_ROOT}{each.path}", {})[each.method] = _described(each)
    _, made = msgspec.json.schema_components(_MADE_OF, ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sealpoint console", "version": sealpoint.__version__},
        "paths": paths,
        "components": {
            "schemas": {**made, **_DOCUMENTS},
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-sealpoint"}
            },
        },
        "security": [{"session": []}],
    }


def _name(each: Described) -> str:
    """What generated programs call it, such as `get_threads_thread` or `post_threads_pause`."""
    parts = each.path.strip("/").split("/")
    last = parts[-1].strip("{}")
    is_item = parts[-1] != last
    return "_".join((each.method, parts[0], *((last,) if is_item or len(parts) > 1 else ())))


def _described(each: Described) -> dict[str, Any]:
    names = {"thread": ID, "request": _DIGITS}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name, schema in names.items()
        if f"{{{name}}}" in each.path
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in each.query.items()
    ]
    refusals = {
        status: {"description": words, "content": _json(ref("Error"))}
        for status, words in _REFUSALS.items()
    }
    described: dict[str, Any] = {
        "operationId": _name(each),
        "summary": each.summary,
        "parameters": parameters,
        "responses": {"200": {"description": "Done.", "content": _json(each.gives)}, **refusals},
    }
    if each.body:
        schema = {"type": "object", "required": list(each.body), "properties": dict(each.body)}
        described["requestBody"] = {"required": True, "content": _json(schema)}
    return described


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
