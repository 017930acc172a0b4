# SPDX-License-Identifier: Apache-2.0
"""The application's types that a workflow names.

The sources are the annotations of executor handlers (input, messages, output, requests and
responses), the response formats of agents, and the parameters and results of functional workflows
and their steps. Each is the application's own statement that such values are in the workflow's
checkpoints (`declared_types`).

Nothing is imported to find a type, and stored data takes no part in it. A type that no annotation
names is not found: it is refused when it is saved, with the line that allows it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from agent_framework import (
    AgentExecutor,
    Executor,
    FunctionalWorkflow,
    Workflow,
    WorkflowExecutor,
)
from agent_framework._workflows._functional import FunctionalWorkflowDefinition

from sealpoint.adapters.declared_types import (
    BUILT_IN_TYPES,
    allow_declared,
    annotations_of,
    find_types,
)
from sealpoint.codec import Registry
from sealpoint.errors import UsageError
from sealpoint_agent_framework._framework_types import WORKFLOW_TYPES

_ALLOWED_ALREADY = BUILT_IN_TYPES | {each.cls for each in WORKFLOW_TYPES}


def types_of_workflow(workflow: Any, named: Iterable[type] = ()) -> list[type]:
    """The application's types that a workflow and its sub-workflows name.

    Args:
        workflow: A workflow, or a functional one, built or not.
        named: More types, which the workflow does not name; those in their fields are found.

    Raises:
        UsageError: The value is not a workflow, or a named type is not a type.
    """
    return find_types(_declarations(workflow, []), named, _is_data)


def allow_types_of(workflow: Any, registry: Registry, named: Iterable[type] = ()) -> list[str]:
    """Add a rule for each type that a workflow names and the registry does not cover.

    Returns:
        The names of the rules that were added.

    Raises:
        UsageError: As of `types_of_workflow`.
        RuleInvalid: As of `allow_declared`.
    """
    return allow_declared(registry, types_of_workflow(workflow, named))


def _is_data(cls: type) -> bool:
    return cls not in _ALLOWED_ALREADY and not issubclass(cls, Executor)


def _declarations(workflow: Any, above: list[Any]) -> Iterator[Any]:
    """Every annotation of the values that a workflow stores."""
    if isinstance(workflow, FunctionalWorkflow | FunctionalWorkflowDefinition):
        yield from _functional(workflow)
        return
    if not isinstance(workflow, Workflow):
        found = type(workflow).__name__
        raise UsageError(f"workflow: expected a workflow of Agent Framework, found {found}")
    if any(workflow is each for each in above):
        return
    for executor in workflow.executors.values():
        yield from executor.input_types
        yield from executor.output_types
        yield from executor.workflow_output_types
        for pair in executor._response_handlers:  # noqa: SLF001 (what was asked, and its answer)
            yield from pair
        if isinstance(executor, AgentExecutor):
            yield from _response_formats(executor.agent)
        if isinstance(executor, WorkflowExecutor):
            yield from _declarations(executor.workflow, [*above, workflow])


def _response_formats(agent: Any) -> Iterator[Any]:
    """The response format of an agent, where it always answers in one."""
    options = getattr(agent, "default_options", None)
    if isinstance(options, dict):
        yield options.get("response_format")


def _functional(workflow: Any) -> Iterator[Any]:
    """The parameter and result types of a functional workflow, and of the steps that it uses."""
    function = workflow._func  # noqa: SLF001 - the function itself
    steps, _ = FunctionalWorkflow._discover_workflow_dependencies(function)  # noqa: SLF001
    yield from annotations_of(function).values()
    for step in steps:
        yield from annotations_of(step._func).values()  # noqa: SLF001
