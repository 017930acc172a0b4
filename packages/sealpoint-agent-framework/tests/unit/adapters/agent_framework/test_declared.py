# SPDX-License-Identifier: Apache-2.0
"""The application's types are found from what its workflows are annotated with."""

from dataclasses import dataclass
from typing import Any, Never

import pytest
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler

from sealpoint.codec import Registry
from sealpoint.errors import RuleInvalid, UsageError
from sealpoint_agent_framework._declared_types import allow_types_of, types_of_workflow


@dataclass
class Taken:
    """What an executor takes."""

    inside: "list[Inside]"


@dataclass
class Inside:
    """What that holds."""


@dataclass
class Asked:
    """What it asks."""


@dataclass
class Answer:
    """What answers."""


@dataclass
class Yielded:
    """What comes out."""


@dataclass
class Kept:
    """What is in the state, and no annotation names."""


class Opaque:
    """Something that no rule can be made for without functions."""


class _Clerk(Executor):
    @handler
    async def take(self, message: Taken | dict[str, int], ctx: WorkflowContext[Never]) -> None: ...

    @response_handler
    async def answered(
        self, request: Asked, answer: list[Answer] | None, ctx: WorkflowContext[Never, Yielded]
    ) -> None: ...


def _workflow() -> Any:
    return WorkflowBuilder(start_executor=_Clerk(id="clerk"), name="bills").build()


def test_what_handlers_take_ask_and_yield_is_found() -> None:
    """Also in unions, in lists, and in the fields of what is found; built-in types need no rule."""
    assert set(types_of_workflow(_workflow())) == {Taken, Inside, Asked, Answer, Yielded}


def test_types_may_be_named_besides() -> None:
    """What no annotation says; where no rule can be made, that is told."""
    assert types_of_workflow(_workflow(), [Kept])[0] is Kept
    with pytest.raises(UsageError, match="expected classes, found str"):
        types_of_workflow(_workflow(), ["Kept"])  # type: ignore[list-item]
    with pytest.raises(RuleInvalid, match="Opaque"):
        allow_types_of(_workflow(), Registry(), [Opaque])


def test_rules_are_named_by_module_and_class() -> None:
    """The scheme is that of every adapter; a rule that is there is left alone."""
    mine = Registry()
    mine.allow(Asked, name="bills.asked")
    names = allow_types_of(_workflow(), mine)
    module = "app.tests.unit.adapters.agent_framework.test_declared"

    assert set(names) == {f"{module}.{each}" for each in ("taken", "inside", "answer", "yielded")}
    assert allow_types_of(_workflow(), mine) == []


@pytest.mark.parametrize("other", [None, "workflow", _Clerk(id="clerk")])
def test_what_is_no_workflow_is_refused(other: Any) -> None:
    """By its name, before anything is looked at."""
    with pytest.raises(UsageError, match="expected a workflow of Agent Framework"):
        types_of_workflow(other)
