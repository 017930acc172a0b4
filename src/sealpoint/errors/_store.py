# SPDX-License-Identifier: Apache-2.0
"""Threads, sessions and checkpoints: who may write, and what is there."""

from sealpoint.errors._root import SealpointError

__all__ = [
    "Erased",
    "HeadMoved",
    "IdReused",
    "ListIncomplete",
    "NotOwner",
    "Pruned",
    "ReadOnly",
    "Superseded",
    "UnknownCheckpoint",
    "UnknownThread",
]


class NotOwner(SealpointError):
    """The thread belongs to another identity."""

    code = "not-owner"
    exit_status = 40
    hint = "Open the store as the owner of the thread, or use another thread."


class Superseded(SealpointError):
    """A later session took the thread over; this one may not write any more."""

    code = "superseded"
    exit_status = 41
    hint = "Load the thread again and decide anew; the next save opens a new session."


class HeadMoved(SealpointError):
    """Somebody else wrote the position that this handle was about to write."""

    code = "head-moved"
    exit_status = 42
    hint = "Load the thread again and decide anew."


class IdReused(SealpointError):
    """The thread has a checkpoint of this id that says something else."""

    code = "id-reused"
    exit_status = 43
    hint = "Give every checkpoint an id of its own; only an exact repetition may reuse one."


class UnknownThread(SealpointError):
    """There is no thread of this name."""

    code = "unknown-thread"
    exit_status = 44
    hint = "sealpoint threads lists the names; the first save makes a thread."


class UnknownCheckpoint(SealpointError):
    """The thread has no such checkpoint."""

    code = "unknown-checkpoint"
    exit_status = 45
    hint = "sealpoint log THREAD lists the checkpoints of a thread."


class Erased(SealpointError):
    """What was asked for has been erased on purpose, and the erasure is recorded."""

    code = "erased"
    exit_status = 46
    hint = "It cannot be brought back; a new save starts a new generation of the thread."


class Pruned(SealpointError):
    """The payload of this checkpoint was given up on purpose, and that is recorded."""

    code = "pruned"
    exit_status = 48
    hint = "sealpoint log THREAD shows which checkpoints still have their state."


class ReadOnly(SealpointError):
    """The store was opened for reading only."""

    code = "read-only"
    exit_status = 47
    hint = "Open the store without read_only=True to write."


class ListIncomplete(SealpointError):
    """A list would leave something out, and was not asked to.

    Attributes:
        left_out: What it leaves out.
    """

    code = "list-incomplete"
    exit_status = 49
    hint = "sealpoint anchor show tells what is missing; partial=True gives what is there."

    def __init__(
        self, message: str, *, hint: str | None = None, left_out: tuple[object, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.left_out = left_out
