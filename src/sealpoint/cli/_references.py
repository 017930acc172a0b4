# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as people name them, and how references to them are shown."""

import re
from datetime import UTC, datetime
from typing import Any

from sealpoint.cli._terminal import Styled, short_hex, shown_name, working
from sealpoint.cli._values import short_text
from sealpoint.errors import IdMalformed, UnknownCheckpoint, UnknownType
from sealpoint.gate import Thread
from sealpoint.ids import CheckpointId
from sealpoint.ledger import STORE_CHAIN
from sealpoint.store import CheckpointRef, Loaded

_SEQ = re.compile(r"(?:#|seq:)(0|[1-9][0-9]{0,18})")
_METADATA_CHARS_LEAST = 24


def find_ref(thread: Thread, text: str | None) -> "CheckpointRef | str | None":
    """What `Thread.load` takes for an id, `seq:N` or `#N`; None for the newest.

    Raises:
        UnknownCheckpoint: No checkpoint lies at that position.
    """
    seq = None if text is None else _SEQ.fullmatch(text)
    if seq is None:
        return text
    with working("looking for the checkpoint"):
        for ref in thread.history():
            if ref.seq == int(seq[1]):
                return ref
            if ref.seq < int(seq[1]):
                break
    raise UnknownCheckpoint(
        f"thread {thread.name!r}: expected a checkpoint at position {seq[1]}, found none"
    )


def find_pair(
    thread: Thread, older: str | None, newer: str | None
) -> tuple[CheckpointRef, CheckpointRef]:
    """Two checkpoints: the newest where `newer` is None, the one before it where `older` is.

    Raises:
        UnknownCheckpoint: The thread has no such checkpoint.
    """
    found: CheckpointRef | None = None
    first: CheckpointRef | None = None
    with working("looking for the checkpoints"):
        for ref in thread.history():
            if older is None and first is not None:
                found = ref
            if first is None and (newer is None or _is_named(ref, newer)):
                first = ref
            if older is not None and _is_named(ref, older):
                found = ref
            if first is not None and found is not None:
                return found, first
    if first is None:
        missing = "a checkpoint" if newer is None else f"checkpoint {newer!r}"
    elif older is None:
        missing = f"a checkpoint before entry {first.seq}"
    else:
        missing = f"checkpoint {older!r}"
    raise UnknownCheckpoint(f"thread {thread.name!r}: expected {missing}, found none")


def _is_named(ref: CheckpointRef, text: str) -> bool:
    seq = _SEQ.fullmatch(text)
    return ref.id == text if seq is None else ref.seq == int(seq[1])


def load(thread: Thread, ref: "CheckpointRef | str | None") -> Loaded:
    """Load a checkpoint, and say how to decode types of the application."""
    with working("loading"):
        try:
            return thread.load(ref)
        except UnknownType as error:
            error.hint = (
                "Show it as plain data with --untyped, or name the application's registry: "
                "--registry MODULE:OBJECT."
            )
            raise


def ref_document(ref: CheckpointRef) -> dict[str, Any]:
    """The JSON form of a reference."""
    return {
        "id": ref.id,
        "seq": ref.seq,
        "time": ref.time.isoformat(),
        "writer": ref.writer,
        "metadata": ref.metadata,
        "pruned": ref.pruned,
        "question": ref.question,
    }


def thread_text(name: str | None, thread: str) -> str | Styled:
    """A thread by its name, else by the first digits of its id."""
    if thread == STORE_CHAIN.hex():
        return Styled("(store chain)", "heading")
    return shown_name(name) if name else Styled(f"(id {short_hex(thread)}...)", "quiet")


def when(time: datetime) -> str:
    """A time for people, in UTC, to the second."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def short_id(text: str) -> str:
    """An id that the caller chose as it is; a random one as its first digits and three dots."""
    try:
        return f"{CheckpointId.parse(text).short()}..."
    except IdMalformed:
        return text


def short_metadata(metadata: dict[str, Any], chars: int) -> str:
    """Metadata in about so many characters; what is left out is counted."""
    chars_max = max(chars, _METADATA_CHARS_LEAST)
    line = ""
    for place, (key, value) in enumerate(metadata.items()):
        longer = f"{line} {key}={short_text(value, chars_max // 2)}".lstrip()
        left = len(metadata) - place
        if line and len(longer) + (len(_more(left - 1)) if left > 1 else 0) > chars_max:
            return line + _more(left)
        line = longer
    return line


def _more(count: int) -> str:
    return f" ... and {count} more"
