# SPDX-License-Identifier: Apache-2.0
"""The functional API: an entrypoint with tasks, a question, and what it remembers between runs."""

from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.func import entrypoint, task
from langgraph.types import interrupt

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.turns import Answer, Graph, Program, Run

__all__ = ["PROGRAM"]


@dataclass(frozen=True)
class Essay:
    """What a run returns."""

    topic: str
    text: str
    words: int


@task
def research(topic: str, number: int) -> str:
    """Look for one source."""
    happen(f"source {number} on {topic}")
    return f"source {number} on {topic}"


@task
def write(topic: str, sources: list[str]) -> str:
    """Write the essay."""
    happen(f"wrote on {topic}")
    return f"An essay about {topic}, after {' and '.join(sources)}."


@task
def publish(essay: Essay, verdict: dict[str, Any]) -> None:
    """Publish the essay; there is nothing to return."""
    happen(f"published {essay.topic}: {verdict['comment']}")


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the workflow."""

    @entrypoint(checkpointer=checkpointer)
    def workflow(
        topic: str, *, previous: list[str] | None = None
    ) -> entrypoint.final[Essay | None, list[str]]:
        found = [research(topic, number) for number in (1, 2, 3)]
        text = write(topic, [item.result() for item in found]).result()
        essay = Essay(topic=topic, text=text, words=len(text.split()))
        verdict = interrupt({"essay": essay, "earlier": previous or []})
        earlier = [*(previous or []), topic]
        if not verdict["approved"]:
            return entrypoint.final(value=None, save=earlier)
        publish(essay, verdict).result()
        return entrypoint.final(value=essay, save=earlier)

    return workflow


PROGRAM = Program(
    name="functional-api",
    build=build,
    types=(Essay,),
    turns=(
        Run(given="cats"),
        Answer(reply=lambda _: {"approved": True, "comment": "fine"}),
        Run(given="dogs"),
        Answer(reply=lambda asked: {asked[0].id: {"approved": False, "comment": "no"}}),
        Run(given="owls"),
        Answer(reply=lambda _: {"approved": True, "comment": "good"}),
    ),
)
