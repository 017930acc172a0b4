# SPDX-License-Identifier: Apache-2.0
"""What a person does with a graph, turn by turn.

A program is a graph and the turns of its user: run it with an input, answer its questions, edit
its state, go back to an older checkpoint. A turn says what the user would do, not how often: when
the process is killed in the middle, the harness does what a careful user does next.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel
from langgraph.types import Interrupt, StateSnapshot

__all__ = ["Answer", "Durability", "Edit", "Graph", "Pick", "Program", "Run", "Turn", "by_question"]

Durability: TypeAlias = Literal["sync", "async", "exit"]
_ALL: tuple[Durability, ...] = ("sync", "async", "exit")
Graph: TypeAlias = Pregel[Any, Any, Any, Any]
Pick: TypeAlias = Callable[[Sequence[StateSnapshot]], StateSnapshot]
"""Chooses an older state from the history, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run the graph with an input, with a `Command`, or, with None, from where it stands.

    `at` goes back to an older checkpoint. `until` names the nodes before which the graph has a
    breakpoint that this turn reaches. `raises` is the error that it ends with.
    """

    given: Any
    at: Pick | None = None
    context: Any = None
    until: tuple[str, ...] = ()
    raises: type[Exception] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer the questions that wait: `reply` makes the value for `Command(resume=...)`."""

    reply: Callable[[Sequence[Interrupt]], Any]
    raises: type[Exception] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Edit the state, of the newest or an older checkpoint."""

    values: Any
    as_node: str | None = None
    at: Pick | None = None


Turn: TypeAlias = Run | Answer | Edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A graph and what its user does with it.

    `types` are the application's own types that reach the saver. `keys` are its own entries of
    `configurable`, which the framework keeps in the metadata of every checkpoint. `streams` says
    that the order of what it streams is part of its result. `durabilities` are those in which the
    turns make sense: when a run is saved only as it exits, there is nothing in its middle to go
    back to. `survives` are those in which the framework, with any saver, can go on after a kill.
    `is_skipped` says whether going on from a state would leave out what a turn was to do.
    """

    name: str
    build: Callable[[BaseCheckpointSaver[Any]], Graph]
    turns: tuple[Turn, ...]
    types: tuple[type, ...] = ()
    keys: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    streams: bool = False
    durabilities: tuple[Durability, ...] = _ALL
    survives: tuple[Durability, ...] = _ALL
    is_skipped: Callable[[Turn, StateSnapshot], bool] | None = None


def by_question(replies: Mapping[str, Any]) -> Callable[[Sequence[Interrupt]], Any]:
    """Answer each question that waits by its id, with the reply to its text."""

    def reply(questions: Sequence[Interrupt]) -> dict[str, Any]:
        return {
            question.id: replies[
                question.value if isinstance(question.value, str) else question.value["question"]
            ]
            for question in questions
        }

    return reply
