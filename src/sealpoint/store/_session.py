# SPDX-License-Identifier: Apache-2.0
"""The session of a handle: who may go on writing, and how it learns that somebody else did.

One handle is one worker's view of a thread. It adopts the verified head at its first use. Its
first save opens a session, whose resume entry is the fence; when somebody else opens a later one,
this handle's saves are refused (`Superseded`, or `HeadMoved` if it had no session yet) until it
loads again.
"""

from hashlib import sha256
from typing import NoReturn

from sealpoint.errors import HeadMoved, SealpointError, Superseded, UnknownThread
from sealpoint.ids import ThreadId
from sealpoint.ledger import KINDS, Entry, Kind, ResumeBody, StoreChain, encode_body
from sealpoint.storage import Record
from sealpoint.store._append import Draft, append
from sealpoint.store._core import Core
from sealpoint.store._retention import RetainedThread
from sealpoint.store._save_draft import ResultsDraft, SaveDraft

__all__ = ["SessionThread"]


class SessionThread(RetainedThread):
    """A thread that this handle may hold a session of."""

    def __init__(self, core: Core, name: str) -> None:
        super().__init__(core, name)
        self._session: int | None = None
        self._lost: type[SealpointError] | None = None
        self._uncertain = False
        self._looked = self._moved = False  # moved: somebody else has written since it looked
        self._under: StoreChain | None = None  # by whose roster the session to open was decided
        self._own: frozenset[str] = frozenset()
        """Digests of the bodies of an attempt whose outcome is unknown."""

    def _enter(self) -> None:
        """Adopt the verified head at first use; refuse to go on after having lost the thread."""
        if self._lost is not None:
            raise self._lost(
                f"thread {self._name!r}: expected it to be loaded again since another session "
                "wrote it, found a save"
            )
        # A look that failed halfway has a head and nothing that it was compared with.
        chain = self._chain
        unknown = chain.head is None or chain.anchored is None or chain.is_outdated()
        # A pause that was met may be over, although its results were let pass meanwhile.
        if unknown or self._uncertain or chain.tip().paused is not None:
            try:
                self._look()
            except UnknownThread:
                if chain.head is not None:
                    raise
                if not chain.thread:
                    chain.bind(ThreadId.draw(self._core.parts.random_bytes).raw)
            self._uncertain = False
        self._check_session()

    def _check_session(self) -> None:
        """Refuse to go on where others have written, whichever call has met their entries.

        The anchor may show them even to a save that succeeded.
        """
        head = self._chain.head
        if self._session is not None and head is not None and head.header.fence != self._session:
            self._lose(Superseded)
        if self._moved:
            self._lose(HeadMoved)

    def _open_session(self, body: ResumeBody, trust: StoreChain) -> Entry | None:
        """Begin a session of its own, without a save, under the roster that it was decided by.

        Returns:
            None if somebody else wrote first, and everything has to be looked at anew.
        """
        chain = self._chain
        try:
            entry = append(chain, Draft(Kind.RESUME, body), trust=trust)
        except HeadMoved:
            before = chain.head
            chain.refresh()
            self._require_moved(before)
            return None
        except BaseException:
            self._uncertain = True
            self._own = frozenset({sha256(encode_body(body)).hexdigest()})
            raise
        self._session = entry.seq
        self._core.emit("session-opened", entry.header.thread, entry.seq, entry.hash)
        return entry

    def _lost_swap(self, draft: SaveDraft | ResultsDraft) -> None:
        """Somebody else wrote first. Entries that move no basis are let pass, but not for ever."""
        before = self._chain.head
        self._chain.refresh()
        self._check_session()
        self._require_moved(before)
        draft.repeat_after(self._chain.verified_head(), self._name)

    def _lose(self, error: type[SealpointError]) -> NoReturn:
        self._session, self._lost = None, error
        head = self._chain.head
        if head is None:
            raise error(f"thread {self._name!r}: expected it as it was, found it lost in a restore")
        raise error(
            f"thread {self._name!r}: expected nobody else to write, found entry {head.seq} of "
            f"session {head.header.fence} by {head.writer!r}"
        )

    def _observe(self, entry: Entry, record: Record) -> None:
        # First: an edited body ends the next line, and must not hide that somebody wrote.
        # A prune keeps what the newest checkpoint holds, so a session goes on after it.
        kind, own = entry.header.kind, entry.header.body in self._own
        if KINDS[kind].moves_basis and kind not in (Kind.PRUNE, Kind.HIDE) and not own:
            self._moved = True
        super()._observe(entry, record)

    def _cut_off(self) -> None:
        super()._cut_off()
        self._moved = True

    def _look(self) -> None:
        """Learn what is newest. At first use that is adopted; later it may be others' entries."""
        first, self._looked = not self._looked, True
        try:
            super()._look()
        except SealpointError as error:
            # Unless it was seen that nobody has saved, the caller has been shown nothing.
            self._looked = not first or isinstance(error, UnknownThread)
            raise
        finally:
            if first:
                self._moved = False

    def _take_up(self) -> None:
        # Only now: a load that failed has shown the caller nothing.
        head, moved, self._moved = self._chain.head, self._moved, False
        self._lost, self._uncertain = None, False
        # After a restore the session of somebody else may begin at the very position of this one.
        if head is None or moved or head.header.fence != self._session:
            self._session = None
