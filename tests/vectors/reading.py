# SPDX-License-Identifier: Apache-2.0
"""What the parts of the second verifier have in common: JSON in one spelling, and signatures.

Like `verifier.py` it is made from docs/formats alone and uses nothing of Sealpoint.
"""

import hashlib
import json
import re
from datetime import datetime
from typing import Any, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = [
    "DIGEST",
    "FAULTS",
    "ID",
    "TIME",
    "Fault",
    "as_time",
    "check_signature",
    "framed",
    "parse",
    "require",
    "sha256",
    "spelled",
]

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
DIGEST = re.compile("[0-9a-f]{64}")
ID = re.compile("[0-9a-f]{32}")


class Fault(Exception):
    """Something that is not as the specification says."""


FAULTS = (Fault, InvalidSignature, ValueError, KeyError, TypeError, RecursionError)


def require(holds: object, what: str) -> None:
    """Raise a fault unless something holds."""
    if not holds:
        raise Fault(what)


def sha256(data: bytes) -> str:
    """A digest, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def spelled(value: Any) -> bytes:
    """The one spelling of what `parse` has read."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r'"\\u0000([-+.eE\d]+)"', r"\1", text).encode()


def parse(data: bytes, bytes_max: int) -> Any:
    """JSON in its one spelling; numbers with a fraction are left as they are spelled."""
    require(len(data) <= bytes_max, "bound")
    value = json.loads(data.decode(), parse_float=_Spelled, parse_constant=_refuse)
    require(spelled(value) == data, "one spelling")
    return value


class _Spelled(str):
    """A number as it is spelled, behind a mark that no text in this place has."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        return super().__new__(cls, "\0" + text)


def _refuse(text: str) -> None:
    raise Fault(text)


def as_time(text: str) -> datetime:
    """A time, if it is spelled as it must be."""
    require(TIME.fullmatch(text) and not text.endswith(".000000Z"), "time")
    return datetime.fromisoformat(text)


def check_signature(key: Ed25519PublicKey, signature: bytes, kind: bytes, data: bytes) -> None:
    """Raise unless a key signed this, as a payload of this type."""
    key.verify(signature, framed(kind, data))


def framed(kind: bytes, data: bytes) -> bytes:
    """What is signed of a payload of a type."""
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(data), data)
