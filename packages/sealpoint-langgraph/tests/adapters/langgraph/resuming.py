# SPDX-License-Identifier: Apache-2.0
"""What a careful user does who finds the process dead in the middle of a turn.

He sees what `get_state` shows, before the turn and now, and knows what he was about to do. That is
enough to do each turn once; it does not look into the saver.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

from langgraph.types import Interrupt, StateSnapshot

from tests.adapters.langgraph.turns import Answer, Edit, Run, Turn

__all__ = ["are_alike", "by_id", "still_asked", "what_next"]

_PLACEHOLDER_STEP = -2


def are_alike(one: StateSnapshot, other: StateSnapshot) -> bool:
    """Whether a user sees the same in two looks at a state."""
    return (
        _checkpoint_id(one) == _checkpoint_id(other)
        and one.values == other.values
        and one.next == other.next
        and one.tasks == other.tasks
    )


def what_next(
    turn: Turn,
    before: StateSnapshot,
    now: StateSnapshot,
    is_skipped: Callable[[Turn, StateSnapshot], bool] | None = None,
) -> Literal["again", "go on", "done"]:
    """Decide whether to do the turn again, to go on from what was saved, or to see it as done."""
    moved = _checkpoint_id(now) != _checkpoint_id(before)
    # (1) An edit is one checkpoint: it is there or not.
    if isinstance(turn, Edit):
        return "done" if moved else "again"
    # (2) Nothing of this turn was saved; a checkpoint that only holds a delta channel's first
    # writes in place (step -2) is nothing yet.
    if are_alike(before, now) or (now.metadata or {}).get("step") == _PLACEHOLDER_STEP:
        return "again"
    # (3) A question that this turn answered still waits: the answer did not arrive.
    if isinstance(turn, Answer) and still_asked(before, now):
        return "again"
    # (4) The graph stands at the breakpoint that this turn leads to.
    if isinstance(turn, Run) and turn.until and now.next == turn.until and moved:
        return "done"
    # (5) Going on from here would leave something out.
    if is_skipped and is_skipped(turn, now):
        return "again"
    # (6) A step is open: its tasks are listed, finished or not. Finished tasks do not name what
    # comes after them (`next` is then empty), so only the list of tasks tells. Where nothing is
    # listed and the checkpoint is still the same, a command was saved and not yet obeyed.
    # An error that this turn does not end with is about to be handled by the graph itself.
    waiting = Counter(
        task.name
        for task in now.tasks
        if (task.interrupts or _is_expected(turn, task.error)) and not task.result
    )
    if now.tasks:
        return "go on" if not waiting or Counter(now.next) - waiting else "done"
    return "done" if moved else "go on"


def _checkpoint_id(state: StateSnapshot) -> object:
    return state.config["configurable"].get("checkpoint_id")


def _is_expected(turn: Run | Answer, error: object) -> bool:
    # A saved error comes back as its text.
    return error is not None and turn.raises is not None and turn.raises.__name__ in str(error)


def still_asked(before: StateSnapshot, now: StateSnapshot) -> Sequence[Interrupt]:
    """List the questions that waited before the turn and still do."""
    return [question for question in now.interrupts if question in before.interrupts]


def by_id(reply: Callable[[Sequence[Interrupt]], Any]) -> Callable[[Sequence[Interrupt]], Any]:
    """Address an answer to its question, as is wise when it is given a second time."""

    def addressed(asked: Sequence[Interrupt]) -> Any:
        value = reply(asked)
        if isinstance(value, dict) and value.keys() <= {question.id for question in asked}:
            return value
        return {asked[0].id: value}

    return addressed
