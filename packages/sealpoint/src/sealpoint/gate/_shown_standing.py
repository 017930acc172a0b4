# SPDX-License-Identifier: Apache-2.0
"""The position of a thread as a person saw it, so that an action applies to what they saw.

A standing is a value: it reads nothing and proves nothing. The writer of an entry compares it with
the thread at the very position that the entry takes, and writes nothing if the thread has moved. A
standing may have passed through untrusted places, such as a form in a browser, so it is parsed as
strictly as all other input. A change to it can only produce a standing that its holder could have
been shown.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from sealpoint.errors import UsageError
from sealpoint.limits import BODY_BYTES_MAX

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class StandingPause(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The pause that is in force."""

    seq: _Count
    """The position of its entry."""
    entry: str
    """The hash of that entry."""
    at: _Time
    by: str
    """The identity that signed it."""
    actor: str | None
    """The person for whom it was written, as the writer claims."""
    reason: str

    @property
    def author_text(self) -> str:
        """Return the identity that paused, and the person on whose behalf, as it claims."""
        return self.by if self.actor is None else f"{self.by} for {self.actor}"


class Standing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The position of a thread, as people see it before they act."""

    thread: str
    """The thread's id, in hexadecimal."""
    name: str
    generation: _Count
    """How often the thread was erased."""
    epoch: _Count
    """How often a restored store was accepted."""
    owner: str | None
    """The identity or pool that owns it."""
    paused: StandingPause | None
    basis: str
    """The hash of the newest entry that changes what a resume would mean."""
    basis_seq: _Count
    """Its position."""
    head: str
    """The hash of the newest entry."""
    head_seq: _Count
    """Its position."""

    def encode(self) -> bytes:
        """Return its one encoding, as JSON: for a form, or another place that returns it later."""
        return _encode(self)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the encoding, in hexadecimal, for people to compare."""
        return hashlib.sha256(self.encode()).hexdigest()

    @staticmethod
    def parse(data: bytes) -> "Standing":
        """Parse the output of `encode`.

        Raises:
            UsageError: The bytes are anything else.
        """
        if len(data) > BODY_BYTES_MAX:
            raise UsageError(
                f"standing: expected at most {BODY_BYTES_MAX} bytes, found {len(data)}", hint=_HINT
            )
        try:
            found = _decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
            raise UsageError(
                "standing: expected the fields of one, found other fields", hint=_HINT
            ) from exc
        is_utc = found.paused is None or found.paused.at.tzinfo is UTC
        if not is_utc or found.encode() != data:
            raise UsageError("standing: its fields are not in canonical form", hint=_HINT)
        return found

    def changes(self, now: "Standing", *, basis: bool) -> tuple[str, ...]:
        """Return the differences from the thread's current position, one sentence each.

        Args:
            now: The current position.
            basis: Whether a resumed thread counts as a change; otherwise a new checkpoint is not a
                change.
        """
        return tuple(self._changes(now, basis=basis))

    def _changes(self, now: "Standing", *, basis: bool) -> Iterator[str]:
        if self.thread != now.thread:
            yield f"it is thread {now.thread[:12]}, and {self.thread[:12]} was shown"
            return
        if self.epoch != now.epoch:
            yield f"a restored store was accepted: its epoch is {now.epoch}, and was {self.epoch}"
        if self.generation != now.generation:
            yield f"it was erased, and is now of generation {now.generation}"
        if self.owner != now.owner:
            yield f"it belongs to {now.owner!r}, and belonged to {self.owner!r}"
        if (pause := now.paused) != self.paused:
            if pause is None:
                yield "it is not paused any more"
            else:
                yield f"it was paused by {pause.author_text} in entry {pause.seq}: {pause.reason}"
        if basis and self.basis != now.basis:
            yield f"it continued: entry {now.basis_seq} changed what a resume would mean"


_HINT = "Take it from Thread.standing, and give it back as Standing.encode wrote it."
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Standing).decode
