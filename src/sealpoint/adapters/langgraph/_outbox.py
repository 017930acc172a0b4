# SPDX-License-Identifier: Apache-2.0
"""The queue of one thread: order is given at the call, and what waits is written together.

The framework puts checkpoints and results from several OS threads or tasks of an event loop.
Whoever comes first writes for all that wait, in one durable step; the others find their outcome
when their turn comes. Results wait a moment for the checkpoint that a run puts right after them.
There is no thread of its own that could die or outlive the saver.
"""

import threading
from collections import deque

from sealpoint.errors import SealpointError, StorageUnavailable
from sealpoint.gate import Thread
from sealpoint.store import CommitDraft, Outcome

_GROUP_MAX = 64


class Ticket:
    """Something that waits to be written."""

    __slots__ = ("draft", "outbox", "outcome", "settled")

    def __init__(self, draft: CommitDraft, outbox: "Outbox") -> None:
        self.draft = draft
        self.outbox = outbox
        """Who holds a ticket holds the queue, so that a thread has only one."""
        self.outcome: Outcome | None = None
        self.settled = threading.Event()

    def end(self, outcome: Outcome) -> None:
        """Say what became of it."""
        self.outcome = outcome
        self.settled.set()


class Outbox:
    """What is to be written to one thread."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self._waiting: deque[Ticket] = deque()
        self._writing = threading.Lock()

    def put(self, draft: CommitDraft) -> Ticket:
        """Give something its place in the order."""
        ticket = Ticket(draft, self)
        self._waiting.append(ticket)
        return ticket

    def settle(self, ticket: Ticket, *, patience_s: float = 0.0) -> None:
        """Come back when it is written, and everything that was put before it.

        Args:
            ticket: What was put.
            patience_s: How long to wait for somebody who has more to write.

        Raises:
            SealpointError: It was not written, or only what came after it failed.
        """
        if patience_s:
            ticket.settled.wait(patience_s)
        while ticket.outcome is None:
            with self._writing:
                if ticket.outcome is None:
                    self._write()
        if isinstance(ticket.outcome, SealpointError):
            raise ticket.outcome

    def _write(self) -> None:
        group = [self._waiting.popleft() for _ in range(min(len(self._waiting), _GROUP_MAX))]
        try:
            outcomes = self._thread.commit([ticket.draft for ticket in group])
        except BaseException as exc:
            # Whoever waits must not wait for ever; what became of it is looked up by the next.
            error = StorageUnavailable("saver: expected to write, found it interrupted")
            error.__cause__ = exc
            for ticket in group:
                ticket.end(error)
            raise
        for ticket, outcome in zip(group, outcomes, strict=True):
            ticket.end(outcome)
