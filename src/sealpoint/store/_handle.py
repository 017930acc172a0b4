# SPDX-License-Identifier: Apache-2.0
"""What a handle knows of its thread: the verified head, and what was given up or erased.

`_view.py` reads what is left, `_retention.py` gives up more, `_thread.py` writes.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from sealpoint.errors import Erased, Misplaced, Missing, Pruned, SealpointError
from sealpoint.ledger import (
    CheckpointBody,
    Entry,
    Header,
    Kind,
    PruneBody,
    parse_body,
)
from sealpoint.storage import Record
from sealpoint.store._chain import Chain
from sealpoint.store._core import Core
from sealpoint.store._lanes import LaneIndex, Trails, entry_body
from sealpoint.store._names import check_name

__all__ = ["ThreadHandle"]

_T = TypeVar("_T")

_RETENTION = frozenset({Kind.CHECKPOINT, Kind.PRUNE, Kind.HIDE, Kind.ERASE, Kind.GENESIS})
_GIVES_UP = (Kind.PRUNE, Kind.HIDE, Kind.ERASE)


class ThreadHandle:
    """The head of a thread, and what the entries below it have given up."""

    _called = "Thread"
    """What a handle calls itself, whichever of our classes it is."""

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self._name = check_name(name, "thread name")
        self._lock = threading.RLock()
        self._chain = Chain(core, self._name, self._observe, self._cut_off)
        self._trails = Trails()
        self._index: LaneIndex | None = None
        """Where everything lies, once somebody has asked for something by its name."""
        self._prune: tuple[int, PruneBody] | None = None
        self._prune_known = False
        """Whether `_prune` is the newest prune or hide, with its position."""
        self._given_up = 0
        """How often others gave something up, as far as this handle has met it."""

    @property
    def name(self) -> str:
        """What the application calls the thread."""
        return self._name

    @property
    def id(self) -> str:
        """The thread's id in hexadecimal; empty while nobody has looked or saved."""
        return self._chain.thread.hex()

    def __repr__(self) -> str:
        return f"<{self._called} {self._name!r}>"

    def _take_up(self) -> None:
        """The caller is given what is newest."""

    def _look(self) -> None:
        """Learn what is newest."""
        self._chain.refresh()

    def _settled(self, call: Callable[[], _T]) -> _T:
        """The result of a call, which begins anew where a prune or an erasure came in between.

        Whoever reads while somebody else gives up what is read would take it for damage.
        """
        while True:
            given_up = self._given_up
            try:
                return call()
            except Missing:
                with suppress(SealpointError):
                    self._look()
                if self._given_up == given_up:
                    raise

    def _observe(self, entry: Entry, record: Record) -> None:
        """An entry that this handle did not know has been verified."""
        kind = entry.header.kind
        if kind in _RETENTION:
            self._prune_known = False
            self._given_up += kind in _GIVES_UP
        if kind is Kind.ERASE:
            self._forget_all()
        elif kind in (Kind.CHECKPOINT, Kind.HIDE):
            self._trails.lose_known()
        # Without a body, an erasure follows; if none does, whoever asks for the body is told.
        if self._index is not None and record.body is not None:
            self._index.follow(entry.header, entry.hash, record.body)

    def _cut_off(self) -> None:
        """A restore has cut off what this handle knew."""
        self._forget_all()
        self._prune, self._prune_known = None, False
        self._given_up += 1

    def _forget_all(self) -> None:
        """Let go of what lies where, and of all that was proven about it."""
        self._trails.forget()
        self._index = None

    def _looked_up(self) -> LaneIndex:
        """The index, or one that is not kept: what it holds follows the length of the thread."""
        return LaneIndex(self._chain) if self._index is None else self._index

    def _indexed(self) -> LaneIndex:
        """The index of the verified chain."""
        if self._index is None:
            self._index = LaneIndex(self._chain)
        return self._index

    def _require_kept(self, header: Header) -> None:
        """(6) Refuse a checkpoint whose state was given up, whether or not its bytes are there."""
        if self._is_pruned(header):
            how = "it was deleted" if self._is_hidden(header.seq) else "a prune gave its state up"
            raise Pruned(f"entry {header.seq} of thread {self._name!r}: {how}")

    def _is_pruned(self, header: Header) -> bool:
        prune = self._retention()
        return prune is not None and prune.covers(header.seq)

    def _is_hidden(self, seq: int) -> bool:
        prune = self._retention()
        return prune is not None and prune.hides(seq)

    def _retention(self) -> PruneBody | None:
        """What the newest prune or hide says; the newest checkpoint names it."""
        if not self._prune_known:
            self._prune = self._found_prune()
            self._prune_known = True
        return None if self._prune is None else self._prune[1]

    def _found_prune(self) -> tuple[int, PruneBody] | None:
        seq = self._prune_named()
        if seq is None or (self._prune is not None and self._prune[0] == seq):
            return None if seq is None else self._prune
        record, header = self._chain.descend(seq)
        self._chain.verify(record, seq)
        if header.kind not in (Kind.PRUNE, Kind.HIDE) or record.body is None:
            raise Missing(f"entry {seq} of thread {self._name!r}: expected a prune, found none")
        body: PruneBody = parse_body(header.kind, header.body, record.body)
        if body.end > seq:
            raise Misplaced(
                f"entry {seq} of thread {self._name!r}: expected a prune of what was there, found "
                "one of more"
            )
        return seq, body

    def _prune_named(self) -> int | None:
        """The position of the newest prune entry, as the first entry below the head says."""
        head, head_record = self._chain.verified_head().header, self._chain.head_record
        if head.kind is Kind.CHECKPOINT and head_record is not None:
            return self._body(head, head_record).prune
        for header, record in self._chain.walk():
            if header.kind is Kind.CHECKPOINT:
                return self._body(header, record).prune
            if header.kind in (Kind.PRUNE, Kind.HIDE):
                return header.seq
            if header.kind in (Kind.GENESIS, Kind.ERASE):
                break
        return None

    def _require_generation(self, header: Header) -> None:
        """(6) Refuse what an erasure took, whether or not its bytes are there."""
        head = self._chain.verified_head().header
        if head.kind is Kind.ERASE:
            raise self._erased(head)
        if header.gen < head.gen:
            raise Erased(f"entry {header.seq} of thread {self._name!r}: it was erased on purpose")

    def _erased(self, header: Header) -> Erased:
        return Erased(f"thread {self._name!r}: it was erased at entry {header.seq}")

    def _body(self, header: Header, record: Record) -> CheckpointBody:
        # No erasure came after it, or nobody would have asked for the body.
        body: CheckpointBody = entry_body(self._name, header, record.body)
        return body

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except SealpointError as error:
            self._refused(error)
            raise

    def _refused(self, error: SealpointError) -> None:
        self._core.emit_refused(error, self._chain.place.thread)
