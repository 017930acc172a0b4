# SPDX-License-Identifier: Apache-2.0
"""What stops a guarded run when an operator pauses its thread."""

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from sealpoint.errors import Paused
from sealpoint.gate import GatedThread

__all__ = ["PAUSED", "PauseControl", "paused_error"]

PAUSED = "paused by an operator"
"""Why a run was stopped, as the framework tells it on."""


class PauseControl(RunControl):
    """Asks before every step whether the run may go on."""

    __slots__ = ("_also", "_at_exit", "_thread")

    def __init__(self, thread: GatedThread, also: RunControl | None, *, at_exit: bool) -> None:
        super().__init__()
        self._thread = thread
        self._also = also
        self._at_exit = at_exit
        """Whether all is saved when the run ends, and not before."""

    @property
    def drain_requested(self) -> bool:
        if self._also is not None and self._also.drain_requested:
            self.request_drain(self._also.drain_reason or "shutdown")
        elif self._thread.paused:
            if self._at_exit:
                # A subgraph that ends orderly saves nothing then; one that is broken off does.
                raise GraphDrained(PAUSED)
            self.request_drain(PAUSED)
        return super().drain_requested


def paused_error(thread: GatedThread) -> Paused:
    """What a call that a pause stopped ends with."""
    return Paused(
        f"thread {thread.name!r}: expected it to run, found it paused; what had been done is kept"
    )
