# SPDX-License-Identifier: Apache-2.0
"""What a run of a program came to, written down for comparing."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import StateSnapshot

from tests.adapters.langgraph.outside import Life, Saved
from tests.adapters.langgraph.same import Names
from tests.adapters.langgraph.turns import Program

__all__ = ["Result", "written_down"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run came to.

    `lasting` is what a kill must not change, `whole` what it may: outputs, old writes. `happened`
    counts what tasks did outside whose results were saved, and `unsure` those whose results were
    being saved when the process died.
    """

    lasting: Any
    whole: Any
    happened: Counter[str]
    unsure: Counter[str]
    lives: int
    writes: int
    saved: Sequence[Saved] = field(repr=False)

    def repeated(self, reference: "Result") -> Counter[str]:
        """Count what happened more often than in the reference, although it had been saved."""
        return self.happened - reference.happened

    def left_out(self, reference: "Result") -> Counter[str]:
        """Count what happened in the reference, and not here."""
        return reference.happened - self.happened - self.unsure


def written_down(
    program: Program,
    *,
    lives: Sequence[Life],
    states: Sequence[StateSnapshot],
    outcomes: Sequence[Any],
    history: Sequence[StateSnapshot],
    entries: Sequence[CheckpointTuple],
) -> Result:
    """Write down what a run came to.

    Args:
        program: What was run.
        lives: The processes that it took.
        states: The state after each turn.
        outcomes: What each turn gave back.
        history: All states of the thread.
        entries: Everything that the saver holds of the thread.
    """
    names = Names((_lane(entry), entry.checkpoint["id"]) for entry in entries)
    newest: dict[str, str] = {}
    for entry in entries:
        newest[_lane(entry)] = max(newest.get(_lane(entry), ""), entry.checkpoint["id"])
    written_history = [names.snapshot(state) for state in history]
    lasting = {
        "states": [names.snapshot(state) for state in states],
        "history": [
            {**state, "tasks": [task["name"] for task in state["tasks"]], "interrupts": []}
            for state in written_history
        ],
        "stored": _sorted(
            names.stored(entry, whole=False, writes=newest[_lane(entry)] == entry.checkpoint["id"])
            for entry in entries
            if not names.is_orphan(entry)
        ),
    }
    if program.is_skipped:
        # Its user may have sent an input twice, which leaves one more checkpoint.
        lasting = {"states": [names.placeless(state) for state in states]}
    return Result(
        lasting=lasting,
        whole={
            "outcomes": [_in_order(program, names.plain(outcome)) for outcome in outcomes],
            "history": written_history,
            "stored": _sorted(names.stored(entry, whole=True, writes=True) for entry in entries),
        },
        happened=Counter(what for life in lives for what in life.kept(acknowledged=True)),
        unsure=Counter(what for life in lives for what in life.kept(acknowledged=False)),
        lives=len(lives),
        writes=sum(len(life.saved) for life in lives),
        saved=[saved for life in lives for saved in life.saved],
    )


def _lane(entry: CheckpointTuple) -> str:
    return str(entry.config["configurable"]["checkpoint_ns"])


def _in_order(program: Program, outcome: Any) -> Any:
    # Parallel nodes stream in the order in which they happen to finish.
    if isinstance(outcome, list) and not program.streams:
        return sorted(map(str, outcome))
    return outcome


def _sorted(written: Iterable[Any]) -> list[Any]:
    return sorted(written, key=lambda entry: (entry["lane"], entry["at"], str(entry)))
