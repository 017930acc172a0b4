# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as people name them, and the display of references to them."""

import re
from typing import Any

from sealpoint.cli.terminal import working
from sealpoint.errors import UnknownCheckpoint, UnknownType
from sealpoint.gate import Thread
from sealpoint.ids import CheckpointId
from sealpoint.ledger import STORE_CHAIN
from sealpoint.store import CheckpointRef, Loaded
from sealpoint.views.values import short_text
from sealpoint.views.words import Styled, short_hex, shown_name

__all__ = [
    "find_pair",
    "find_ref",
    "load",
    "short_metadata",
    "thread_text",
]

_SHORTENED = re.compile(r"(?:checkpoint:)?([0-9a-f]{8,31})(?:\.\.\.)?")
_SEQ = re.compile(r"(?:#|seq:)(0|[1-9][0-9]{0,18})")
_METADATA_CHARS_LEAST = 24


def find_ref(thread: Thread, text: str | None) -> "CheckpointRef | str | None":
    """Return the argument of `Thread.load` for an id, whole or short, `seq:N` or `#N`.

    None stands for the newest checkpoint.

    Raises:
        UnknownCheckpoint: There is no such checkpoint, or more than one has this prefix.
    """
    if text is None or not (_SEQ.fullmatch(text) or _SHORTENED.fullmatch(text)):
        return text
    with working("looking for the checkpoint"):
        return _find_named(thread, text)


def _find_named(thread: Thread, text: str) -> CheckpointRef:
    """Return the one checkpoint that a text names; an exact match of the id comes first."""
    found = []
    for ref in thread.history():
        if _is_named(ref, text):
            return ref
        if _begins(ref, text):
            found.append(ref)
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} begin so" if found else "there is none"
    raise UnknownCheckpoint(f"thread {thread.name!r}: no checkpoint is called {text!r}: {what}")


def _begins(ref: CheckpointRef, text: str) -> bool:
    short = _SHORTENED.fullmatch(text)
    return short is not None and ref.id.startswith(f"{CheckpointId.prefix}:{short[1]}")


def find_pair(
    thread: Thread, older: str | None, newer: str | None
) -> tuple[CheckpointRef, CheckpointRef]:
    """Return two checkpoints: by default the newest, and the one before it.

    Raises:
        UnknownCheckpoint: The thread has no such checkpoint.
    """
    with working("looking for the checkpoints"):
        last = next(thread.history(), None) if newer is None else _find_named(thread, newer)
        if last is None:
            raise UnknownCheckpoint(f"thread {thread.name!r}: it has no checkpoint")
        if older is not None:
            return _find_named(thread, older), last
        for ref in thread.history():
            if ref.seq < last.seq:
                return ref, last
    raise UnknownCheckpoint(f"thread {thread.name!r}: there is no checkpoint before {last.seq}")


def _is_named(ref: CheckpointRef, text: str) -> bool:
    """Whether a text is the id or the position of a checkpoint."""
    seq = _SEQ.fullmatch(text)
    return ref.id == text if seq is None else ref.seq == int(seq[1])


def load(thread: Thread, ref: "CheckpointRef | str | None") -> Loaded:
    """Load a checkpoint; an error about application types says how to decode them."""
    with working("loading"):
        try:
            return thread.load(ref)
        except UnknownType as error:
            error.hint = (
                "Show it as plain data with --untyped, or name the application's registry, or its "
                "graph or workflow: --registry MODULE:OBJECT."
            )
            raise


def thread_text(name: str | None, thread: str) -> str | Styled:
    """Return a thread's name, or else the first digits of its id."""
    if thread == STORE_CHAIN.hex():
        return Styled("(store chain)", "heading")
    return shown_name(name) if name else Styled(f"(id {short_hex(thread)}...)", "quiet")


def short_metadata(metadata: dict[str, Any], chars: int) -> str:
    """Return metadata in about this many characters, with a count of the omitted rest."""
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
