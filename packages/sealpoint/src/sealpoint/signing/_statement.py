# SPDX-License-Identifier: Apache-2.0
"""A statement: the whole content of a request, in one spelling.

Approvers sign its digest, which is also the id of the request, so that no part of a request can
change without invalidating every approval. Parsing is a round trip, as for headers, and every text
has a bound. The gate decides whether a statement fits its thread, its policy and the time; this
module only reads it.
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
    ROLLOUT_DIFFERENCES_MAX,
    STATEMENT_BYTES_MAX,
)

DIGITS_LEAST = 8
"""How many digits of a digest are enough for people to name it."""

DIGITS_MAX = 64
"""How many digits a digest has."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]
_ID_DIGITS = 32
_PARSED_MAX = 32
_HEXADECIMAL = "0123456789abcdef"


@unique
class Action(StrEnum):
    """The requested action."""

    RESUME = "resume"
    ANSWER = "answer"
    """Answer the question of a thread: the approval is the signature of the person who answers."""
    HANDOFF = "handoff"
    ROLLOUT = "rollout"


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The requested action, the requester, and the expiry. See docs/formats/statement.md."""

    v: Literal[4] = 4
    store: str
    ns: str
    thread: str
    epoch: _Count
    gen: _Count
    basis: str
    """The hash of the newest entry that changes what a resume would do."""
    action: Action
    checkpoint: str | None
    """The hash of the checkpoint's entry."""
    release: str | None
    """The digest of everything that would be executed with it. See docs/formats/release.md."""
    world_from: str | None
    world_to: str | None
    answer: str | None
    """The SHA-256 of the answer's canonical JSON."""
    to: str | None
    """The new owner of the thread after a handoff."""
    differences: tuple[tuple[str, str | None, str | None], ...]
    """The differences between worlds that a rollout accepts: the leaf, the SHA-256 of its value
    before and of its value after; None where the leaf is absent. Each once, sorted."""
    requester: str
    actor: str | None
    """The person for whom the requester claims to act, who cannot approve it either. For an answer:
    the person who gives it, and nobody else can sign it."""
    policy: str | None
    needed: Annotated[int, msgspec.Meta(ge=0, le=16)]
    """The number of people that must approve, which the requester derived from the policy."""
    nonce: str
    expires: _Time
    reason: str

    def encode(self) -> bytes:
        """Encode the statement in its one spelling, as entries store it."""
        return _encode(self)

    @property
    def digest(self) -> str:
        """The SHA-256 of the encoding, in hexadecimal; approvers sign it. The request's id."""
        return hashlib.sha256(self.encode()).hexdigest()

    @property
    def asked_by(self) -> str:
        """The requester, and the claimed actor, in a few words."""
        return self.requester if self.actor is None else f"{self.requester} for {self.actor}"

    def expired_at(self, now: datetime, *, slack: timedelta = timedelta()) -> bool:
        """Whether the statement has expired.

        Args:
            now: The time to compare with.
            slack: How far the clocks of two machines may differ. The check compares it with the
                difference `now - expires`: the requester chooses `expires`, and adding to the last
                possible datetime would fail.
        """
        return now - self.expires >= slack

    @staticmethod
    def parse(data: bytes) -> "Statement":
        """Read a statement.

        Raises:
            Edited: The bytes are not exactly the output of `encode` for a meaningful statement.
        """
        if len(data) > STATEMENT_BYTES_MAX:
            raise Edited(
                f"statement: expected at most {STATEMENT_BYTES_MAX} bytes, found {len(data)}"
            )
        return _parsed(data)

    def check(self) -> None:
        """For writers: refuse a statement that no reader would accept, or that has no reason.

        Raises:
            UsageError: A field is invalid.
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
    """Read a statement, cached: each resume under a rollout stores the rollout's statement."""
    try:
        statement = _decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise Edited("statement: expected the fields of version 4, found other fields") from exc
    # Each time has one spelling: without this check, an offset other than Z would be accepted.
    if statement.expires.tzinfo is not UTC or statement.encode() != data:
        raise Edited("statement: its fields are not in canonical form")
    if (fault := _fault(statement)) is not None:
        raise Edited(f"statement: {fault}")
    return statement


def _fault(statement: Statement) -> str | None:
    """Return what is wrong with the fields, in words; None if they are valid."""
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
    if None in (statement.checkpoint, statement.release) or statement.to or statement.differences:
        return "a resume has a checkpoint and a release, and neither a new owner nor differences"
    return None


def _answer_fault(statement: Statement) -> str | None:
    needed = (statement.checkpoint, statement.release, statement.answer, statement.actor)
    if None in needed or statement.needed != 1:
        return "an answer has a checkpoint, a release, the answer, and one person who gives it"
    if statement.world_from or statement.world_to or statement.to or statement.differences:
        return "an answer has neither worlds nor a new owner"
    return None


def _handoff_fault(statement: Statement) -> str | None:
    if statement.to is None or _executes(statement) or statement.differences:
        return "a handoff has a new owner, and neither release, worlds nor answer"
    return None


def _rollout_fault(statement: Statement) -> str | None:
    if statement.to is not None or statement.checkpoint is not None or _executes(statement):
        return "a rollout has differences between worlds and nothing else"
    found = statement.differences
    ordered = list(found) == sorted(set(found), key=difference_order)
    if not 1 <= len(found) <= ROLLOUT_DIFFERENCES_MAX or not ordered:
        return (
            f"differences: expected 1 to {ROLLOUT_DIFFERENCES_MAX}, each once and sorted, found "
            "none, too many, a repeated or an unsorted one"
        )
    for leaf, before, after in found:
        if not fits(leaf, STATEMENT_BYTES_MAX):
            return "differences: expected the name of a leaf in each, found none"
        if not all(is_digest(each) for each in (before, after) if each is not None):
            return "differences: expected digests of values, found a text that is not one"
        if before == after:
            return "differences: expected two values in each, found one"
    return None


def difference_order(difference: tuple[str, str | None, str | None]) -> tuple[str, str, str]:
    """Return the key that sorts the differences of a rollout; an absent value comes first."""
    leaf, before, after = difference
    return leaf, before or "", after or ""


def _executes(statement: Statement) -> bool:
    """Whether it names anything that would be executed."""
    named = (statement.release, statement.world_from, statement.world_to, statement.answer)
    return any(each is not None for each in named)


_PARTS_FAULT: Mapping[Action, Callable[[Statement], str | None]] = {
    Action.RESUME: _resume_fault,
    Action.ANSWER: _answer_fault,
    Action.HANDOFF: _handoff_fault,
    Action.ROLLOUT: _rollout_fault,
}


def is_hexadecimal(text: str) -> bool:
    """Whether a text consists only of lower-case hexadecimal digits; true for an empty one."""
    return not text.strip(_HEXADECIMAL)


def is_digest(text: str) -> bool:
    """Whether a text is 64 lower-case hexadecimal digits."""
    return len(text) == DIGITS_MAX and is_hexadecimal(text)


def begins_digest(text: str) -> bool:
    """Whether a text is enough of the first digits of a digest to name it, or all of them."""
    return DIGITS_LEAST <= len(text) <= DIGITS_MAX and is_hexadecimal(text)


def fits(text: str, bytes_max: int) -> bool:
    """Whether a text is nonempty, valid in UTF-8, and not longer than a bound."""
    if not 1 <= len(text) <= bytes_max:
        return False
    try:
        return len(text.encode()) <= bytes_max
    except UnicodeEncodeError:
        return False


def _found(text: str) -> str:
    return "none" if not text else "others"


def check_reason(reason: object, where: str) -> None:
    """For writers: require a reason with visible characters.

    Readers only check that it is not empty: the set of visible characters changes over time.

    Raises:
        UsageError: It is not a text, shows nothing, or is too long.
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
    """For writers: require a reason that fits its entry.

    Raises:
        UsageError: It is too long, or not valid in UTF-8.
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
