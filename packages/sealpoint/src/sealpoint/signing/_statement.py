# SPDX-License-Identifier: Apache-2.0
"""A statement: everything that a request is about, in one spelling.

Its digest is what approvers sign and what a request is called, so that nothing about a request
can be changed without voiding every approval of it. Parsing is a round trip, as for headers, and
every text has a bound. Whether a statement fits its thread, its policy and the hour is for the
gate; here it is only read.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum, unique
from functools import lru_cache
from typing import Annotated, Literal

import msgspec

from sealpoint.errors import Edited, UsageError
from sealpoint.limits import (
    NAME_BYTES_MAX,
    REASON_BYTES_MAX,
    ROLLOUT_PAIRS_MAX,
    STATEMENT_BYTES_MAX,
)

DIGITS_LEAST = 8
"""So many digits of a digest may stand for it where people name one."""

DIGITS_MAX = 64
"""So many it has."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]
_ID_DIGITS = 32
_PARSED_MAX = 32
_HEXADECIMAL = "0123456789abcdef"


@unique
class Action(StrEnum):
    """What is asked for."""

    RESUME = "resume"
    HANDOFF = "handoff"
    ROLLOUT = "rollout"


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What exactly is asked for, by whom, and until when. See docs/formats/statement.md."""

    v: Literal[4] = 4
    store: str
    ns: str
    thread: str
    epoch: _Count
    gen: _Count
    basis: str
    """The hash of the newest entry that changes what a resume would mean."""
    action: Action
    checkpoint: str | None
    """The hash of the checkpoint's entry."""
    release: str | None
    """The digest of all that would be executed with it. See docs/formats/release.md."""
    world_from: str | None
    world_to: str | None
    answer: str | None
    """The SHA-256 of the answer's canonical JSON."""
    to: str | None
    """Who is to own the thread after a handoff."""
    pairs: tuple[tuple[str, str], ...]
    """The worlds between which runs may go on after a rollout: from, to; each once, sorted."""
    requester: str
    actor: str | None
    """The person for whom the requester asks, as it claims: who cannot approve it either."""
    policy: str | None
    needed: Annotated[int, msgspec.Meta(ge=0, le=16)]
    """How many people have to approve, as the requester found by the policy."""
    nonce: str
    expires: _Time
    reason: str

    def encode(self) -> bytes:
        """The one spelling of it: what lies in the entry."""
        return _encode(self)

    @property
    def digest(self) -> str:
        """The SHA-256 of that, in hexadecimal: what approvers sign, and the request's id."""
        return hashlib.sha256(self.encode()).hexdigest()

    @property
    def asked_by(self) -> str:
        """Who asks, and for whom as it claims, in a few words."""
        return self.requester if self.actor is None else f"{self.requester} for {self.actor}"

    def expired_at(self, now: datetime, *, slack: timedelta = timedelta()) -> bool:
        """Whether the statement has expired.

        Args:
            now: The time to compare with.
            slack: How far the clocks of two machines may differ. It is compared with a difference,
                because the requester chooses `expires`: nothing can be added to the last datetime.
        """
        return now - self.expires >= slack

    @staticmethod
    def parse(data: bytes) -> "Statement":
        """Read a statement.

        Raises:
            Edited: The bytes are not exactly what `encode` writes for a statement that makes
                sense.
        """
        if len(data) > STATEMENT_BYTES_MAX:
            raise Edited(
                f"statement: expected at most {STATEMENT_BYTES_MAX} bytes, found {len(data)}"
            )
        return _parsed(data)

    def check(self) -> None:
        """For writers: refuse to ask for what no reader would accept, or without saying why.

        Raises:
            UsageError: A field is not as it must be.
        """
        check_reason(self.reason, "statement")
        try:
            self.parse(self.encode())
        except Edited as exc:
            raise UsageError(exc.message) from exc
        except (TypeError, ValueError) as exc:
            raise UsageError(
                "statement: a field has the wrong type; they are texts, numbers and a time"
            ) from exc


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Statement).decode


@lru_cache(maxsize=_PARSED_MAX)
def _parsed(data: bytes) -> Statement:
    """Read a statement; that of a rollout lies in the entry of each resume under it."""
    try:
        statement = _decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise Edited("statement: expected the fields of version 4, found other fields") from exc
    # One instant has one spelling: an offset other than Z would be read back as it is.
    if statement.expires.tzinfo is not UTC or statement.encode() != data:
        raise Edited("statement: its fields are not in canonical form")
    if (fault := _fault(statement)) is not None:
        raise Edited(f"statement: {fault}")
    return statement


def _fault(statement: Statement) -> str | None:
    """What is wrong with the fields, in words; None if nothing is."""
    digests = ("basis", "checkpoint", "release", "world_from", "world_to", "answer", "policy")
    lengths = dict.fromkeys(digests, DIGITS_MAX)
    lengths |= dict.fromkeys(("store", "thread", "nonce"), _ID_DIGITS)
    for name, digits in lengths.items():
        text = getattr(statement, name)
        if text is not None and not (len(text) == digits and is_hexadecimal(text)):
            return (
                f"{name}: expected {digits} lower-case hexadecimal digits, found a text of "
                "another form"
            )
    for name in ("ns", "requester", "actor", "to"):
        text = getattr(statement, name)
        if text is not None and not fits(text, NAME_BYTES_MAX):
            return f"{name}: expected 1 to {NAME_BYTES_MAX} bytes, found {_found(text)}"
    if not fits(statement.reason, REASON_BYTES_MAX):
        found = _found(statement.reason)
        return f"reason: expected 1 to {REASON_BYTES_MAX} bytes, found {found}"
    return _PARTS_FAULT[statement.action](statement)


def _resume_fault(statement: Statement) -> str | None:
    if None in (statement.checkpoint, statement.release) or statement.to or statement.pairs:
        return (
            "a resume has a checkpoint and a release, and neither a new owner nor pairs of worlds"
        )
    return None


def _handoff_fault(statement: Statement) -> str | None:
    if statement.to is None or _executes(statement) or statement.pairs:
        return "a handoff has a new owner, and neither release, worlds nor answer"
    return None


def _rollout_fault(statement: Statement) -> str | None:
    if statement.to is not None or statement.checkpoint is not None or _executes(statement):
        return "a rollout has pairs of worlds and nothing else"
    pairs = statement.pairs
    if not 1 <= len(pairs) <= ROLLOUT_PAIRS_MAX or list(pairs) != sorted(set(pairs)):
        return (
            f"pairs: expected 1 to {ROLLOUT_PAIRS_MAX}, each once and sorted, found none, too "
            "many, a repeated or an unsorted one"
        )
    if not all(is_digest(world) for pair in pairs for world in pair):
        return "pairs: expected digests of worlds, found a text that is not one"
    if any(before == after for before, after in pairs):
        return "pairs: expected two worlds in each, found one"
    return None


def _executes(statement: Statement) -> bool:
    """Whether it names anything that would be executed."""
    named = (statement.release, statement.world_from, statement.world_to, statement.answer)
    return any(each is not None for each in named)


_PARTS_FAULT: Mapping[Action, Callable[[Statement], str | None]] = {
    Action.RESUME: _resume_fault,
    Action.HANDOFF: _handoff_fault,
    Action.ROLLOUT: _rollout_fault,
}


def is_hexadecimal(text: str) -> bool:
    """Whether a text is lower-case hexadecimal digits alone; an empty one is."""
    return not text.strip(_HEXADECIMAL)


def is_digest(text: str) -> bool:
    """Whether a text is 64 lower-case hexadecimal digits."""
    return len(text) == DIGITS_MAX and is_hexadecimal(text)


def begins_digest(text: str) -> bool:
    """Whether a text is enough of the first digits of a digest to name it, or all of them."""
    return DIGITS_LEAST <= len(text) <= DIGITS_MAX and is_hexadecimal(text)


def fits(text: str, bytes_max: int) -> bool:
    """Whether a text is not empty, has a form in UTF-8, and that is no longer than a bound."""
    if not 1 <= len(text) <= bytes_max:
        return False
    try:
        return len(text.encode()) <= bytes_max
    except UnicodeEncodeError:
        return False


def _found(text: str) -> str:
    return "none" if not text else "others"


def check_reason(reason: object, where: str) -> None:
    """For writers: a reason says something that can be seen.

    Readers ask only whether there is one: which characters can be seen changes with time.

    Raises:
        UsageError: It is no text, shows nothing, or is too long.
    """
    if not isinstance(reason, str):
        raise UsageError(f"{where}: expected a reason as text, found {type(reason).__name__}")
    if not any(each.isprintable() and not each.isspace() for each in reason):
        raise UsageError(
            f"{where}: a reason is needed, and none was given",
            hint="Say in a few words why: it is read later.",
        )
    check_reason_size(reason, where)


def check_reason_size(reason: str, where: str) -> None:
    """For writers: a reason fits its entry.

    Raises:
        UsageError: It is too long, or has no form in UTF-8.
    """
    try:
        size_bytes = len(reason.encode())
    except UnicodeEncodeError as exc:
        raise UsageError(f"{where}: expected a reason without lone surrogates, found one") from exc
    if size_bytes > REASON_BYTES_MAX:
        raise UsageError(
            f"{where}: expected a reason of at most {REASON_BYTES_MAX} bytes, found {size_bytes}",
            hint="Say the most important in it, and where the rest can be read.",
        )
