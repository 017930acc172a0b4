# SPDX-License-Identifier: Apache-2.0
"""The lines of an evidence bundle: one JSON object each, in one spelling, with a bound.

A bundle is read from its first line to its last and never held as a whole. Each line is bounded
before it is read and parsed as a round trip, so a bundle has no second spelling. See
docs/formats/bundle.md for every field.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from typing import Annotated, BinaryIO, Literal

import msgspec

from sealpoint.errors import BundleInvalid
from sealpoint.limits import BUNDLE_BYTES_MAX, BUNDLE_LINE_BYTES_MAX
from sealpoint.signing import pae

__all__ = [
    "BUNDLE_TYPE",
    "BeginLine",
    "BlobLine",
    "EndLine",
    "EntryLine",
    "Line",
    "ThreadLine",
    "encode_line",
    "is_text",
    "read_lines",
    "signed_message",
]

BUNDLE_TYPE = b"application/vnd.sealpoint.bundle.v1+json"
"""The type of what the exporter of a bundle signs."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class BeginLine(
    msgspec.Struct, tag="bundle", tag_field="line", frozen=True, forbid_unknown_fields=True
):
    """The first line: what the bundle is about."""

    v: Literal[1]
    store: str
    ns: str
    payloads: bool
    """Whether the states are in it as well."""


class EntryLine(
    msgspec.Struct,
    tag="entry",
    tag_field="line",
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """An entry of the store chain, or of the thread that was named last."""

    header: str
    seals: str
    body: str | None
    """None: an erasure has taken it, or it is `raw`."""
    raw: bytes | None = None
    """A body that is no UTF-8: nonsense, and yet what its writer sealed; otherwise left out."""


class BlobLine(
    msgspec.Struct, tag="blob", tag_field="line", frozen=True, forbid_unknown_fields=True
):
    """A list or policy of the store chain, or a world or part of a state of a thread."""

    digest: str
    data: bytes


class ThreadLine(
    msgspec.Struct, tag="thread", tag_field="line", frozen=True, forbid_unknown_fields=True
):
    """From here on the entries are those of this thread."""

    thread: str


class EndLine(msgspec.Struct, tag="end", tag_field="line", frozen=True, forbid_unknown_fields=True):
    """The last line: who has exported what is before it, and when."""

    at: _Time
    by: str
    """The digits of the key's id."""
    lines: _Count
    """How many lines are before this one."""
    content: str
    """The SHA-256 of their bytes, in hexadecimal."""
    signature: str


Line = BeginLine | EntryLine | BlobLine | ThreadLine | EndLine

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


def encode_line(line: Line) -> bytes:
    """The one spelling of a line.

    Raises:
        BundleInvalid: It is longer than a reader would take.
    """
    data: bytes = _encode(line) + b"\n"
    if len(data) > BUNDLE_LINE_BYTES_MAX:
        raise BundleInvalid(
            f"bundle: expected lines of at most {BUNDLE_LINE_BYTES_MAX} bytes, found {len(data)}"
        )
    return data


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8, as every body is that can be read."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def signed_message(line: EndLine, begin: BeginLine) -> bytes:
    """What the exporter signs."""
    claim = {
        "v": begin.v,
        "store": begin.store,
        "ns": begin.ns,
        "payloads": begin.payloads,
        "at": line.at,
        "by": line.by,
        "lines": line.lines,
        "content": line.content,
    }
    return pae(BUNDLE_TYPE, _encode(claim))


def read_lines(source: bytes | BinaryIO) -> Iterator[tuple[Line, str, int]]:
    """Every line, with the digest and the number of the lines before it.

    Raises:
        BundleInvalid: There is something else than a line, or more than a reader takes.
    """
    stream = BytesIO(source) if isinstance(source, bytes) else source
    hashed, number, total = hashlib.sha256(), 0, 0
    while True:
        # (1) Bounds before anything is parsed.
        data = stream.readline(BUNDLE_LINE_BYTES_MAX + 1)
        if not data:
            return
        total += len(data)
        where = f"bundle line {number + 1}"
        if len(data) > BUNDLE_LINE_BYTES_MAX or total > BUNDLE_BYTES_MAX:
            raise BundleInvalid(
                f"{where}: expected lines of at most {BUNDLE_LINE_BYTES_MAX} bytes and "
                f"{BUNDLE_BYTES_MAX} in all, found more"
            )
        # (2) One spelling. Lines are flat: no nesting can be deep.
        try:
            line = _decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
            raise BundleInvalid(f"{where}: expected a line of version 1, found another") from exc
        if _encode(line) + b"\n" != data or (
            isinstance(line, EndLine) and line.at.tzinfo is not UTC
        ):
            raise BundleInvalid(f"{where}: expected the one spelling of it, found another")
        yield line, hashed.hexdigest(), number
        hashed.update(data)
        number += 1
