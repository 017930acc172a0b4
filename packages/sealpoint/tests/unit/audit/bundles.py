# SPDX-License-Identifier: Apache-2.0
"""Bundles in the hands of somebody who changes them, with or without a key of the roster."""

import hashlib
import json
from typing import Any

import msgspec

from sealpoint.audit._bundle import BeginLine, EndLine, encode_line, signed_message
from sealpoint.signing import PrivateKey
from tests.unit.gate.team import SHELL, Team

__all__ = ["exported", "history", "lines_of", "resigned", "unsigned"]


def history(team: Team) -> None:
    """Two threads, one of them with an approved resume."""
    team.granted()
    team.thread().resume(world=SHELL)
    team.thread().save({"n": 3, "long": "x" * 70_000})
    team.thread(name="u").save([1])
    team.thread(name="u").save([2])


def exported(team: Team, who: str = "operator", **options: Any) -> bytes:
    """A bundle of all threads."""
    return b"".join(team.store(who).export(**options))


def lines_of(data: bytes) -> list[dict[str, Any]]:
    """The lines of a bundle, as JSON."""
    return [json.loads(line) for line in data.splitlines()]


def unsigned(lines: list[dict[str, Any]]) -> bytes:
    """Lines in their one spelling, whatever they say."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def resigned(lines: list[dict[str, Any]], signer: PrivateKey, **changes: Any) -> bytes:
    """Lines without their end, and an end that somebody signs for exactly these."""
    content = unsigned([line for line in lines if line["line"] != "end"])
    begin = msgspec.convert(lines[0], BeginLine)
    at = msgspec.convert(lines[-1], EndLine).at
    fields: dict[str, Any] = {
        "at": at,
        "by": signer.key,
        "lines": content.count(b"\n"),
        "content": hashlib.sha256(content).hexdigest(),
        "signature": "",
    }
    end = EndLine(**(fields | changes))
    signature = signer.sign(signed_message(end, begin)).hex()
    return content + encode_line(msgspec.structs.replace(end, signature=signature))
