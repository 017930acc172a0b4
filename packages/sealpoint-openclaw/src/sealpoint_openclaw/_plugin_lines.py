# SPDX-License-Identifier: Apache-2.0
"""The lines that the plugin in a gateway sends to its guard: JSON, each of a known kind.

A line is refused unless it is short, has exactly the fields of its kind in their order, and is
spelled in the one way that both sides spell JSON. The plugin sends digests and names, no content.
"""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

LINE_BYTES_MAX = 16 << 10
VERSION = 1

_Text: TypeAlias = Annotated[str, Meta(max_length=200)]
_Digest: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Id: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]
_Facts: TypeAlias = Annotated[dict[_Text, _Text], Meta(max_length=16)]


class MalformedLine(Exception):
    """A line is not one of these. Nobody is shown it: the connection ends."""


class _Line(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    v: int


class Hello(_Line, frozen=True, tag="hello"):
    """The plugin has connected."""


class AskTool(_Line, frozen=True, tag="tool"):
    """Whether a tool may be called."""

    id: _Id
    agent: _Text
    session: _Text
    run: _Text
    call: _Text
    tool: _Text
    digest: _Digest
    """Of the arguments."""
    files: Annotated[list[_Text], Meta(max_length=16)]
    """The files that the arguments name."""


class AskRun(_Line, frozen=True, tag="run"):
    """Whether an agent may run."""

    id: _Id
    agent: _Text
    session: _Text
    run: _Text
    trigger: _Text
    digest: _Digest
    """Of the prompt."""


class Message(_Line, frozen=True, tag="message"):
    """A message that is stored next."""

    agent: _Text
    session: _Text
    role: _Text
    digest: _Digest
    """Of the message as JSON."""


class Act(_Line, frozen=True, tag="act"):
    """Something that the gateway did."""

    agent: _Text
    session: _Text
    name: _Text
    facts: _Facts


Question: TypeAlias = AskTool | AskRun
PluginLine: TypeAlias = Hello | AskTool | AskRun | Message | Act

_DECODER: msgspec.json.Decoder[PluginLine] = msgspec.json.Decoder(PluginLine)
_ENCODER = msgspec.json.Encoder()


def parse_line(data: bytes) -> PluginLine:
    """Return what a line says.

    Args:
        data: The line, without its end.

    Raises:
        MalformedLine: It is another one, too long, or spelled in another way.
    """
    if len(data) > LINE_BYTES_MAX:
        raise MalformedLine
    try:
        line = _DECODER.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise MalformedLine from exc
    if line.v != VERSION or _ENCODER.encode(line) != data:
        raise MalformedLine
    return line


def answer(question: Question, refusal: str | None) -> bytes:
    """Return the line that answers a question: allowed, or refused with a sentence."""
    said = {"id": question.id, "allow": refusal is None} | (
        {} if refusal is None else {"reason": refusal}
    )
    return _ENCODER.encode(said) + b"\n"
