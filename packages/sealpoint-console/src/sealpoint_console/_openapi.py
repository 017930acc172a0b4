# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI 3.1 description of the API for programs: its parameters and its responses.

The description of an answer comes from the type of the answer, so the two cannot differ.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

import sealpoint
from sealpoint.errors import SealpointError
from sealpoint.signing import Attestation
from sealpoint_console._app import PageCall, Right

API_ROOT = "/api/v1"

Schema = Mapping[str, Any]

_REF = "#/components/schemas/{name}"
ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_DIGITS: Schema = {"type": "string", "pattern": "^[0-9a-f]{8,64}$"}


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error, as `SealpointError.as_dict` returns it."""

    code: str
    message: str
    hint: str
    exit_status: int


class Error(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why the console did nothing."""

    error: Fault


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that a program can call."""

    method: str
    path: str
    """Below the root; names in braces are its parameters."""
    summary: str
    right: Right
    answer: Callable[[PageCall], Any]
    """Its return annotation is the type of the answer."""
    query: Mapping[str, Schema]
    body: Mapping[str, Schema]
    """The fields of a JSON object, all of them required."""


def ref(name: str) -> Schema:
    """Return a reference to a named schema."""
    return {"$ref": _REF.format(name=name)}


_REFUSALS = {
    "400": "The request is invalid.",
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


def openapi(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the description of operations."""
    paths: dict[str, Any] = {}
    described = tuple(operations)
    answers = [each.answer.__annotations__["return"] for each in described]
    schemas, components = msgspec.json.schema_components(
        (*answers, Error, Attestation), schema_hook=_hook, ref_template=_REF
    )
    for each, schema in zip(described, schemas, strict=False):
        paths.setdefault(f"{API_ROOT}{each.path}", {})[each.method] = _described(each, schema)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sealpoint console", "version": sealpoint.__version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-sealpoint"}
            },
        },
        "security": [{"session": []}],
    }


def _hook(kind: type) -> dict[str, Any]:
    """Return the schema of a type that is not plain data."""
    if kind is SealpointError:
        return dict(ref("Fault"))
    raise NotImplementedError


def _name(each: Operation) -> str:
    """Return its name in generated programs, such as `get_threads_thread`."""
    parts = each.path.strip("/").split("/")
    last = parts[-1].strip("{}")
    is_item = parts[-1] != last
    return "_".join((each.method, parts[0], *((last,) if is_item or len(parts) > 1 else ())))


def _described(each: Operation, answer: Schema) -> dict[str, Any]:
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
        "responses": {"200": {"description": "Done.", "content": _json(answer)}, **refusals},
    }
    if each.body:
        schema = {"type": "object", "required": list(each.body), "properties": dict(each.body)}
        described["requestBody"] = {"required": True, "content": _json(schema)}
    return described


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
