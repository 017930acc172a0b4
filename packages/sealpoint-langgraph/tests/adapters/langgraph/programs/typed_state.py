# SPDX-License-Identifier: Apache-2.0
"""State of the application's own types: models, data classes, enums, dates, money, sets."""

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any
from uuid import UUID

from langchain_core.documents import Document
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.turns import Answer, Graph, Program, Run

__all__ = ["PROGRAM"]


class Grade(Enum):
    """An enum of texts."""

    GOOD = "good"
    POOR = "poor"


class Priority(IntEnum):
    """An enum of numbers."""

    LOW = 1
    HIGH = 2


@dataclass
class Part:
    """A data class inside the state."""

    name: str
    sizes: list[int] = field(default_factory=list)
    grade: Grade = Grade.GOOD


class Offer(BaseModel):
    """A model inside the state."""

    price: Decimal
    until: date
    parts: list[Part] = []


@dataclass
class Dossier:
    """The state of the graph, a data class itself."""

    title: str
    offer: Offer | None = None
    parts: list[Part] = field(default_factory=list)
    priority: Priority = Priority.LOW
    tags: set[str] = field(default_factory=set)
    seen: frozenset[int] = frozenset()
    at: datetime | None = None
    takes: timedelta | None = None
    opens: time | None = None
    number: UUID | None = None
    scan: bytes = b""
    recent: deque[int] | None = None
    pages: list[Document] = field(default_factory=list)
    weights: dict[str, float | None] = field(default_factory=dict)
    by_year: dict[int, str] = field(default_factory=dict)
    ready: bool = False


def fill(state: Dossier) -> dict[str, Any]:
    """Fill the dossier with everything that the framework's own serialiser brings back."""
    happen(f"filled {state.title}")
    return {
        "parts": [Part("lid", [3, 4]), Part("box", [], Grade.POOR)],
        "priority": Priority.HIGH,
        "tags": {"red", "blue"},
        "seen": frozenset({1, 2}),
        "at": datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        "takes": timedelta(days=1, seconds=2, microseconds=3),
        "opens": time(7, 30),
        "number": UUID(int=7),
        "scan": b"\x00\xffscan",
        "recent": deque([1, 2, 3]),
        "pages": [Document("text", metadata={"page": 1}, id="d1")],
        "weights": {"a": 0.1, "b": -0.0, "c": None},
        "by_year": {2026: "now"},
    }


def price(state: Dossier) -> dict[str, Any]:
    """Ask for the price, which comes back as money."""
    amount = interrupt({"parts": state.parts, "grade": Grade.GOOD})
    happen(f"priced {state.title} at {amount}")
    return {"offer": Offer(price=amount, until=date(2026, 2, 3), parts=state.parts)}


def close(state: Dossier) -> dict[str, Any]:
    """Check that what came back is what was put in, then close."""
    assert state.offer is not None
    assert isinstance(state.offer.price, Decimal)
    assert [type(part) for part in state.parts] == [Part, Part]
    assert state.parts[1].grade is Grade.POOR
    assert state.priority is Priority.HIGH
    return {"ready": True}


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the way of a dossier."""
    builder = StateGraph(Dossier)
    for node in (fill, price, close):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "fill")
    builder.add_edge("fill", "price")
    builder.add_conditional_edges("price", lambda state: [Send("close", state)], ["close"])
    return builder.compile(checkpointer=checkpointer)


PROGRAM = Program(
    name="typed-state",
    build=build,
    types=(Dossier, Offer, Part, Grade, Priority),
    turns=(
        Run(given={"title": "bridge"}),
        Answer(reply=lambda _: Decimal("12.50")),
    ),
)
