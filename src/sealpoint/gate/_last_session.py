# SPDX-License-Identifier: Apache-2.0
"""What is known of the session in force: whether its run lives, has ended, and what came of it.

That a run lives, the anchor knows: the run holds the thread there for as long as its process lives,
and lets go when it stops at a question, finishes or fails. What came of a session, the thread
itself says: one that was given an answer and has saved nothing may have acted on it.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sealpoint.anchor import Hold, Holder
from sealpoint.errors import Busy, UnknownThread
from sealpoint.gate._policy import Rule
from sealpoint.ledger import KINDS, Header, Kind, ResultsBody, ResumeBody, parse_body
from sealpoint.storage import Record
from sealpoint.store import Release, ThreadReader, ThreadState


def saves_outcome(header: Header, body: Any) -> bool:
    """Whether an entry is something that a session did, and not what it was given."""
    if not KINDS[header.kind].holds_payload:
        return False
    return not (isinstance(body, ResultsBody) and body.answers)


def acts_on_answer(body: ResumeBody) -> bool:
    """Whether a session was given an answer, or goes on where nobody knew what came of one."""
    if body.edits:
        return False
    return body.answer is not None or Rule.UNKNOWN_OUTCOME in body.rules or body.idempotent


class Liveness(NamedTuple):
    """What the anchor knows of the run of the session in force."""

    holder: str | None
    """Whose run lives, and since when; None: none does."""
    died: bool
    """Whether its process ended before it did, or an operator has stopped it."""


NOBODY = Liveness(None, died=False)


class LastSession:
    """The session in force of one thread, whoever began it."""

    def __init__(self, state: ThreadState, reader: ThreadReader) -> None:
        self._state = state
        self._chain = state.chain
        self._core = state.core
        self._reader = reader

    def hold(self, who: str, now: datetime) -> Hold:
        """Let a run of this process have the thread, instead of one that a pause has stopped.

        Raises:
            Busy: Another run has it.
        """
        anchor, slot = self._core.anchor, self._chain.slot
        found = anchor.hold(slot, Holder(who, now))
        if isinstance(found, Holder) and self._is_known() and self.is_stopped():
            found = anchor.hold(slot, Holder(who, now), instead=True)
        if not isinstance(found, Holder):
            return found
        name = self._state.name
        raise Busy(f"thread {name!r}: a run is under way: {_told(found)}")

    def look(self) -> Liveness:
        """Whether a run has the thread, or had it when its process ended."""
        found = self._core.anchor.holder(self._chain.slot)
        if found is None:
            return NOBODY
        if not found.living or self.is_stopped():
            return Liveness(None, died=True)
        return Liveness(_told(found), died=False)

    def age(self, release: Release, session: int | None, now: datetime) -> timedelta | None:
        """How long ago the session last moved the thread; None if it has ended, or is one's own.

        Args:
            release: What would be executed.
            session: The session of whoever asks.
            now: The effective time.
        """
        tip = self._chain.tip()
        fence = tip.fence
        if not fence.is_session or fence.seq == session:
            return None
        if release.session == fence.seq and release.question is not None:
            return None  # it stopped at the question
        if self.is_stopped():
            return None  # an operator has stopped it
        if self._opening(fence.seq).held and self._core.anchor.holder(self._chain.slot) is None:
            return None  # its run has said that it ended
        return now - self._chain.descend(tip.basis[0])[1].at

    def unknown(self, *, died: bool) -> str | None:
        """Who went on with an answer, and when, if nobody knows what came of it.

        Args:
            died: Whether the run of the session did not come to its end.
        """
        if self._chain.head is None:
            return None
        fence = self._chain.tip().fence
        if died and fence.is_session and acts_on_answer(self._opening(fence.seq)):
            entry, _ = self._reader.opening(fence.seq)
            return died_with_answer(entry.writer, entry.header.at)
        for header, record in self._chain.walk():
            if _ends_what_came_before(header, record):
                return None
            if header.kind is Kind.RESUME and acts_on_answer(self._opening(header.seq)):
                return unknown_outcome(self._reader.opening(header.seq)[0].writer, header.at)
        return None

    def _is_known(self) -> bool:
        try:
            self._state.refresh(reads_back=False)
        except UnknownThread:
            return False
        return True

    def is_stopped(self) -> bool:
        """Whether an operator has paused the thread since the session began, and ended the pause.

        Nothing of a run counts after a pause but the step that it was at, and a person has said
        that others may go on.
        """
        head = self._chain.verified_head().header
        return head.pause > head.fence

    def _opening(self, session: int) -> ResumeBody:
        own = self._state.opened.get(session)
        return self._reader.opening(session)[1] if own is None else own


def died_with_answer(who: str, at: datetime) -> str:
    """What to say of a session that was given an answer and did not come to its end."""
    return (
        f"{who!r} went on with an answer at {at:%Y-%m-%d %H:%M:%S}Z and did not come to its end: "
        "what it was about to save has happened, or has not, and may happen again"
    )


def unknown_outcome(who: str, at: datetime) -> str:
    """What to say of a session that was given an answer and saved nothing."""
    return (
        f"{who!r} went on with an answer at {at:%Y-%m-%d %H:%M:%S}Z and saved nothing since: what "
        "the answer let happen may have happened, and may happen again"
    )


def _ends_what_came_before(header: Header, record: Record) -> bool:
    """Whether nothing before an entry is still to come: it begins a thread, or saves something."""
    if header.kind in (Kind.GENESIS, Kind.ERASE):
        return True
    body = None
    if header.kind is Kind.RESULTS and record.body is not None:
        body = parse_body(header.kind, header.body, record.body)
    return saves_outcome(header, body)


def _told(holder: Holder) -> str:
    if not holder.who:
        return "it began just now"
    return f"{holder.who!r}, since {holder.since:%Y-%m-%d %H:%M:%S}Z"
