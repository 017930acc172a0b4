# SPDX-License-Identifier: Apache-2.0
"""The state of the newest session: whether its run is alive or has ended, and its outcome.

The anchor knows whether a run is alive: the run holds the thread there as long as its process
lives, and releases it when it stops at a question, finishes or fails. The thread itself shows the
outcome of a session: a session that received an answer and has saved nothing may have acted on it.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sealpoint.anchor import Hold, Holder
from sealpoint.errors import Busy, UnknownThread
from sealpoint.gate._policy import Rule
from sealpoint.gate._resume_call import answer_digest
from sealpoint.ids import KeyId
from sealpoint.ledger import (
    KINDS,
    Entry,
    GenesisBody,
    HandoffBody,
    Header,
    Kind,
    RequestBody,
    ResultsBody,
    ResumeBody,
    StoreChain,
    parse_body,
    readable_body,
)
from sealpoint.signing import Identity, Roster
from sealpoint.storage import Record
from sealpoint.store import Release, ThreadReader, ThreadState


def saves_outcome(header: Header, body: Any) -> bool:
    """Whether an entry is output of a session, and not input to it."""
    if not KINDS[header.kind].holds_payload:
        return False
    return not (isinstance(body, ResultsBody) and body.answers)


def acts_on_answer(body: ResumeBody) -> bool:
    """Whether a session received an answer, or resumed where the outcome of one was unknown.

    The input of an edit is not an answer: nothing runs in its session.
    """
    answered = body.answer is not None and not body.edits
    return answered or Rule.UNKNOWN_OUTCOME in body.rules or body.idempotent


def positions_of(release: Release) -> list[int]:
    """Where all lies that would run."""
    results = [*release.results, *(each for lane in release.lanes for each in lane.results)]
    return [release.seq, *(lane.seq for lane in release.lanes), *(each.seq for each in results)]


def stranger_words(
    author_of: Callable[[int], Identity | None],
    *,
    saved: Iterable[int],
    deleted: Iterable[int],
    works_with: Callable[[Identity], bool],
) -> str | None:
    """Say what a stranger did to what would run; None: no stranger did anything.

    Args:
        author_of: Returns the identity that signed the entry at a position, if it is known.
        saved: Where that lies which would run.
        deleted: Where deletions lie since a session last saved a new checkpoint.
        works_with: Whether an identity works together with the one that resumes.
    """
    for words, places in (
        ("what would run was saved by", saved),
        ("what would have run was deleted by", deleted),
    ):
        for seq in places:
            author = author_of(seq)
            if author is None or not works_with(author):
                return f"{words} {'unknown' if author is None else author.name!r}"
    return None


class Liveness(NamedTuple):
    """The anchor's information about the last run."""

    holder: str | None
    """The identity whose run is alive, and since when; None if no run is alive."""
    died: bool
    """Whether its process ended before it did, or an operator has stopped it."""


class Interrupted(NamedTuple):
    """A run that resumed with an answer, and may or may not have acted on it."""

    session: int
    """The newest session: the position of its resume."""
    actor: str | None
    """The person who answered, as the resume says."""
    answer: Any
    """The answer; None: it is not on record, because its call needed no request."""
    saved: bool
    """Whether anything was saved since the answer was given."""


NOBODY = Liveness(None, died=False)


class LastSession:
    """The newest session of one thread, regardless of the identity that began it."""

    def __init__(self, state: ThreadState, reader: ThreadReader) -> None:
        self._state = state
        self._chain = state.chain
        self._core = state.core
        self._reader = reader

    def hold(self, who: str, now: datetime) -> Hold:
        """Give a run of this process exclusive use of the thread; it may replace a paused run.

        Raises:
            Busy: Another run holds the thread.
        """
        anchor, slot = self._core.anchor, self._chain.slot
        found = anchor.hold(slot, Holder(who, now))
        if isinstance(found, Holder) and self._is_known() and self.is_stopped():
            found = anchor.hold(slot, Holder(who, now), instead=True)
        if not isinstance(found, Holder):
            return found
        name = self._state.name
        raise Busy(f"thread {name!r}: a run is under way: {_holder_text(found)}")

    def look(self) -> Liveness:
        """Return whether a run holds the thread, or held it when its process ended."""
        found = self._core.anchor.holder(self._chain.slot)
        if found is None:
            return NOBODY
        if not found.living or self.is_stopped():
            return Liveness(None, died=True)
        return Liveness(_holder_text(found), died=False)

    def age(self, release: Release, session: int | None, now: datetime) -> timedelta | None:
        """Return how long ago a foreign session last moved the thread; None if it has ended.

        Args:
            release: The state that would be executed.
            session: The caller's own session, which is not foreign.
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
        """Describe the session that resumed with an answer, if its outcome is unknown.

        Args:
            died: Whether the last run was interrupted.
        """
        found = self._unknown(died=died)
        if found is None:
            return None
        entry, body, died = found
        return unknown_outcome(entry, body, died=died)

    def interrupted(self) -> Interrupted | None:
        """Return the newest run, which was interrupted, if it had been given an answer."""
        found = self._unknown(died=True)
        session = self.newest()
        if found is None or session is None:
            return None
        entry, body, _ = found
        answer = self._answer_before(entry.header, body)
        return Interrupted(session, body.actor, answer, saved=self._has_saved(entry.seq, None))

    def _answer_before(self, resume: Header, body: ResumeBody) -> Any:
        """Return the answer that a resume names, from the requests that it was based on."""
        for header, record in self._chain.walk(resume):
            if KINDS[header.kind].moves_basis:
                break
            if header.kind is Kind.REQUEST:
                asked = readable_body(header, record.body)
                if isinstance(asked, RequestBody) and answer_digest(asked.answer) == body.answer:
                    return asked.answer
        return None

    def _unknown(self, *, died: bool) -> tuple[Entry, ResumeBody, bool] | None:
        """Return the session that resumed with an answer, if its outcome is unknown.

        The third of the result is whether the interrupted run was of this session.
        """
        for session, above in self._sessions():
            body = self._opening(session)
            if acts_on_answer(body):
                # If this session held nothing, its run is not the one that died.
                died = died and body.held
                if not died and not body.edits and self._has_saved(session, above):
                    return None
                return self._reader.opening(session)[0], body, died
            if self._is_own(session):
                return None
            # It is not the one that died, and another member may have left out that one did.
            if died and not body.held:
                continue
            # Nothing runs in an edit, so what it saved did not come of the answer before it.
            if not body.edits and self._has_saved(session, above):
                return None
        return None

    def was_cut(self, trust: StoreChain) -> bool:
        """Whether a restore has cut the thread and not released it, and no session has run since.

        A session that another member began after the restore, and that has saved nothing, may have
        begun without a check for the restore.
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

    def is_retried_by(self, release: Release) -> bool:
        """Whether a release repeats that of the newest session, which this store's key began."""
        session = self.newest()
        if session is None or not self._is_own(session):
            return False
        removed = self._state.retention.seq()
        is_same = self._opening(session).checkpoint == release.entry
        return is_same and (removed is None or removed < session)

    def stranger(self, release: Release, roster: Roster, who: str) -> str | None:
        """Say what a stranger saved or deleted of it, if the thread was handed over since.

        None if no stranger did anything, if another person approved the handoff, or if a session
        began since.

        Args:
            release: The release.
            roster: Says who work together.
            who: The identity that resumes.
        """
        head = self._chain.verified_head().header
        if head.fence != head.owner:
            return None
        saved, deleted = positions_of(release), self._state.deletions_since_save()
        return stranger_words(
            lambda seq: self._author(self._chain.descend(seq)[1]),
            saved=() if self._was_approved(head.owner, max(saved)) else saved,
            deleted=() if deleted and self._was_approved(head.owner, max(deleted)) else deleted,
            works_with=lambda author: roster.work_together(who, author),
        )

    def _was_approved(self, owner: int, since: int) -> bool:
        """Whether an operator's handoff, which others approved, lies above a position.

        Args:
            owner: The position of the newest entry that says whose the thread is.
            since: The position.
        """
        while owner > since:
            header = self._chain.descend(owner)[1]
            author, owner = self._author(header), next(self._chain.walk(header))[0].owner
            record, below = self._chain.descend(owner)
            roster = self._chain.trust.get().roster_at(header.roster)
            if author is None or roster is None or record.body is None:
                return False
            body: GenesisBody | HandoffBody = parse_body(below.kind, below.body, record.body)
            if not roster.owns(author.name, body.owner):
                return True
        return False

    def _author(self, header: Header) -> Identity | None:
        """The identity that signed an entry, by the roster that it names."""
        roster = self._chain.trust.get().roster_at(header.roster)
        holder = None if roster is None else roster.holder(KeyId(bytes.fromhex(header.by)))
        return None if holder is None else holder[0]

    def _sessions(self) -> Iterator[tuple[int, Header | None]]:
        """Yield the sessions of this generation, newest first, each with the resume that ended it.

        Each session records what was unknown when it began. Another member may have omitted that,
        so a session that another key began, and that has saved nothing, does not settle the
        question for the session before it.
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
        """Return the newest session, even if a handoff has ended it; None if there is none."""
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
        """Return the basis of the thread before a session began, from the entries themselves."""
        below = self._chain.walk(self._chain.descend(session)[1])
        return next((header.seq for header, _ in below if KINDS[header.kind].moves_basis), 0)

    def _is_own(self, session: int) -> bool:
        """Whether this store's key began a session: this code then recorded everything."""
        signer = self._core.parts.signer
        return signer is not None and self._chain.descend(session)[1].by == signer.key

    def _has_saved(self, session: int, above: Header | None) -> bool:
        """Whether a session has saved something, up to the head or to the resume above it."""
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
        """Whether an operator has stopped the newest session by a pause, or a handoff has ended it.

        After a pause, only the step that the run was executing counts; after a handoff, nothing
        counts. In both cases a person has decided that others may resume.
        """
        head, session = self._chain.verified_head().header, self.newest()
        return session is not None and session < max(head.pause, head.owner)

    def _opening(self, session: int) -> ResumeBody:
        own = self._state.opened.get(session)
        return self._reader.opening(session)[1] if own is None else own


def unknown_outcome(entry: Entry, body: ResumeBody, *, died: bool = False) -> str:
    """Describe a session that acts on an answer whose outcome is unknown.

    Args:
        entry: The resume that began the session.
        body: Its body.
        died: Whether its run was interrupted; otherwise the session has saved nothing.
    """
    who, at = entry.writer, f"{entry.header.at:%Y-%m-%d %H:%M:%S}Z"
    again = "what the answer let happen may have happened, and may happen again"
    if body.edits:
        return f"{who!r} edited at {at} where nobody knew what came of an answer: {again}"
    if died:
        again = "what it was about to save has happened, or has not, and may happen again"
        return f"{who!r} resumed with an answer at {at} and did not come to its end: {again}"
    return f"{who!r} resumed with an answer at {at} and saved nothing since: {again}"


def _results(header: Header, record: Record) -> ResultsBody | None:
    """Return the body of an entry, if the entry holds results and the body was not removed."""
    if header.kind is not Kind.RESULTS or record.body is None:
        return None
    found: ResultsBody = parse_body(header.kind, header.body, record.body)
    return found


def _holder_text(holder: Holder) -> str:
    if not holder.who:
        return "it began just now"
    return f"{holder.who!r}, since {holder.since:%Y-%m-%d %H:%M:%S}Z"
