# SPDX-License-Identifier: Apache-2.0
"""What is known of the newest session: whether its run lives, has ended, and what came of it.

That a run lives, the anchor knows: the run holds the thread there for as long as its process lives,
and lets go when it stops at a question, finishes or fails. What came of a session, the thread
itself says: one that was given an answer and has saved nothing may have acted on it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sealpoint.anchor import Hold, Holder
from sealpoint.errors import Busy, UnknownThread
from sealpoint.gate._policy import Rule
from sealpoint.ledger import (
    KINDS,
    Entry,
    Header,
    Kind,
    ResultsBody,
    ResumeBody,
    StoreChain,
    parse_body,
)
from sealpoint.storage import Record
from sealpoint.store import Release, ThreadReader, ThreadState


def saves_outcome(header: Header, body: Any) -> bool:
    """Whether an entry is something that a session did, and not what it was given."""
    if not KINDS[header.kind].holds_payload:
        return False
    return not (isinstance(body, ResultsBody) and body.answers)


def acts_on_answer(body: ResumeBody) -> bool:
    """Whether a session was given an answer, or goes on where nobody knew what came of one.

    What an edit brings is no answer: nothing runs in it.
    """
    answered = body.answer is not None and not body.edits
    return answered or Rule.UNKNOWN_OUTCOME in body.rules or body.idempotent


class Liveness(NamedTuple):
    """What the anchor knows of the last run."""

    holder: str | None
    """Whose run lives, and since when; None: none does."""
    died: bool
    """Whether its process ended before it did, or an operator has stopped it."""


NOBODY = Liveness(None, died=False)


class LastSession:
    """The newest session of one thread, whoever began it."""

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
        holder = self._core.anchor.holder(self._chain.slot)
        if self._opening(fence.seq).held and (holder is None or not holder.living):
            return None  # its run has ended, or its process has
        return now - self._chain.descend(tip.basis[0])[1].at

    def unknown(self, *, died: bool) -> str | None:
        """Who went on with an answer, and when, if nobody knows what came of it.

        Args:
            died: Whether the last run did not come to its end.
        """
        for session, above in self._sessions():
            body = self._opening(session)
            if acts_on_answer(body):
                # The run of a session that held nothing is not the one that died.
                died = died and body.held
                if not died and not body.edits and self._has_saved(session, above):
                    return None
                return unknown_outcome(self._reader.opening(session)[0], body, died=died)
            if self._is_own(session) or self._has_saved(session, above):
                return None
        return None

    def was_cut(self, trust: StoreChain) -> bool:
        """Whether a restore has cut the thread and not released it, and no session has run since.

        A session that another member began after the restore, and that has saved nothing, may have
        begun without being asked about it.
        """
        if not trust.epoch:
            return False
        executed, basis, thread = 0, self._chain.tip().basis[0], self._chain.thread
        for session, above in self._sessions():
            epoch = self._chain.descend(session)[1].epoch
            if epoch < trust.epoch or self._is_own(session) or self._has_saved(session, above):
                executed = epoch
                break
            basis = self._basis_before(session)
        return trust.restores.cuts_off(thread, trust.lists, basis=basis, since=executed)

    def _sessions(self) -> Iterator[tuple[int, Header | None]]:
        """The sessions of this generation, newest first, each with the resume that ended it.

        Each records what was not known when it began. Another member may have left that out, so a
        session that another key began, and that has saved nothing, does not answer for the one
        before it.
        """
        newest = self.newest()
        if newest is None:
            return
        yield newest, None
        above = self._reader.opening(newest)[0].header
        for header, _ in self._chain.walk(above):
            if header.kind is Kind.RESUME:
                yield header.seq, above
                above = header
            if header.kind in (Kind.GENESIS, Kind.ERASE):
                return

    def newest(self) -> int | None:
        """The newest session, also one that a handoff has ended; None: this generation has none."""
        fence = self._chain.in_force().fence
        if fence.is_session:
            return fence.seq
        for header, _ in self._chain.walk():
            if header.kind is Kind.RESUME:
                return header.seq
            if header.kind in (Kind.GENESIS, Kind.ERASE):
                break
        return None

    def _basis_before(self, session: int) -> int:
        """The basis of the thread before a session began, from the entries themselves."""
        below = self._chain.walk(self._chain.descend(session)[1])
        return next((header.seq for header, _ in below if KINDS[header.kind].moves_basis), 0)

    def _is_own(self, session: int) -> bool:
        """Whether this store's key began a session: by this code, which left nothing out."""
        signer = self._core.parts.signer
        return signer is not None and self._chain.descend(session)[1].by == signer.key

    def _has_saved(self, session: int, above: Header | None) -> bool:
        """Whether something was saved in a session: up to the head, or to the resume above it."""
        for header, record in self._chain.walk(above):
            if header.seq == session:
                break
            if saves_outcome(header, _results(header, record)):
                return True
        return False

    def _is_known(self) -> bool:
        try:
            self._state.refresh(reads_back=False)
        except UnknownThread:
            return False
        return True

    def is_stopped(self) -> bool:
        """Whether somebody has stopped the newest session: paused the thread, or handed it off.

        Nothing of a run counts after a pause but the step that it was at, and after a handoff
        nothing at all; and a person has said that others may go on.
        """
        head, session = self._chain.verified_head().header, self.newest()
        return session is not None and session < max(head.pause, head.owner)

    def _opening(self, session: int) -> ResumeBody:
        own = self._state.opened.get(session)
        return self._reader.opening(session)[1] if own is None else own


def unknown_outcome(entry: Entry, body: ResumeBody, *, died: bool = False) -> str:
    """What to say of a session that acts on an answer, if nobody knows what came of that.

    Args:
        entry: The resume that began it.
        body: Its body.
        died: Whether its run did not come to its end; else nothing was saved in it.
    """
    who, at = entry.writer, f"{entry.header.at:%Y-%m-%d %H:%M:%S}Z"
    again = "what the answer let happen may have happened, and may happen again"
    if body.edits:
        return f"{who!r} edited at {at} where nobody knew what came of an answer: {again}"
    if died:
        again = "what it was about to save has happened, or has not, and may happen again"
        return f"{who!r} went on with an answer at {at} and did not come to its end: {again}"
    return f"{who!r} went on with an answer at {at} and saved nothing since: {again}"


def _results(header: Header, record: Record) -> ResultsBody | None:
    """The body of an entry, if it holds results and has not been taken."""
    if header.kind is not Kind.RESULTS or record.body is None:
        return None
    found: ResultsBody = parse_body(header.kind, header.body, record.body)
    return found


def _told(holder: Holder) -> str:
    if not holder.who:
        return "it began just now"
    return f"{holder.who!r}, since {holder.since:%Y-%m-%d %H:%M:%S}Z"
