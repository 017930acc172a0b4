# SPDX-License-Identifier: Apache-2.0
"""What a call of a guarded graph does, as JSON: people are shown it, and a statement binds it.

No two different calls have the same JSON. At its top stand tags and nothing else (`resume`,
`update`, `goto`, `graph`, `input`, `go on`, `edit`, `namespace`, `interrupt_before`,
`interrupt_after`, `from`); what a caller has chosen stands below the tag of its form.

A call whose configuration makes it do something else than it says is refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.types import All, Command, Send, StateUpdate

from sealpoint.adapters.langgraph._passes import DELIBERATE, TICKET
from sealpoint.adapters.langgraph._shown import shown
from sealpoint.codec import Registry
from sealpoint.errors import UsageError

__all__ = ["Stops", "edit_operation", "require_own_words", "run_operation"]

_FRAMEWORK = "__pregel_"
_COPY = "__copy__"
_HARMLESS = {
    *(DELIBERATE, TICKET),
    "__pregel_node_finished",
    "__pregel_runtime",
    "__pregel_stream_messages_v2",
    "__pregel_strict_resume",
    "__pregel_timed_attempt_observer",
}
"""Names that a server of the framework uses, or the guarded graph itself; none of them answers a
question, jumps, or makes another saver be asked."""
_Nodes = All | Sequence[str] | None


class Stops(NamedTuple):
    """Breakpoints: before and after which nodes a run stops."""

    before: _Nodes
    after: _Nodes

    def told(self) -> dict[str, Any]:
        """Those that there are, by the framework's names for them."""
        named = {"interrupt_before": self.before, "interrupt_after": self.after}
        return {
            name: nodes if isinstance(nodes, str) else list(nodes)
            for name, nodes in named.items()
            if nodes
        }

    def lifts(self, own: "Stops") -> bool:
        """Whether breakpoints of a call take the place of those of the graph, and lack some."""
        return any(_lacks(nodes, stop) for nodes, stop in zip(self, own, strict=True))


def _lacks(nodes: _Nodes, own: _Nodes) -> bool:
    if not nodes or not own or nodes == "*":
        return False
    return isinstance(nodes, str) or own == "*" or not set(own) <= set(nodes)


def run_operation(
    value: Any, registry: Registry, *, own: Stops, call: Stops, binds: bool
) -> dict[str, Any] | None:
    """What a run is given, beside what was saved; None if nothing.

    Args:
        value: The input, or a command, or None.
        registry: Which types are allowed.
        own: The breakpoints of the graph.
        call: Those that the call has of its own.
        binds: Whether a new turn answers something, or needs the approval of people.

    Raises:
        TypeNotAllowed: It holds a type that the registry does not allow.
    """
    if isinstance(value, Command):
        told = _command(value, registry)
        if told:
            return told | call.told()
        value = None
    if value is None:
        # A breakpoint leaves no question behind: who lets the run pass it answers one.
        stops = any((*own, *call))
        return {"go on": "past a breakpoint"} | call.told() if stops else None
    if binds or call.lifts(own):
        return {"input": shown(value, registry)} | call.told()
    return None


def _command(command: Command[Any], registry: Registry) -> dict[str, Any]:
    goto = command.goto
    jumps = [goto] if isinstance(goto, str | Send) else goto
    parts = {
        "resume": command.resume,
        "update": command.update,
        "goto": list(jumps) if isinstance(jumps, list | tuple) else jumps,
        "graph": command.graph,
    }
    return {
        name: shown(part, registry)
        for name, part in parts.items()
        if part is not None and (name != "goto" or goto)
    }


def edit_operation(
    supersteps: Sequence[Sequence[StateUpdate]], lane: str | None, registry: Registry
) -> dict[str, Any]:
    """What an edit writes: its steps in their order, and the writes of each.

    Raises:
        TypeNotAllowed: It holds a type that the registry does not allow.
    """
    told = [[_edit(edit, registry) for edit in superstep] for superstep in supersteps]
    return {"edit": told, "namespace": lane} if lane else {"edit": told}


def _edit(edit: Sequence[Any], registry: Registry) -> dict[str, Any]:
    if not isinstance(edit, Sequence):
        return {"values": shown(edit, registry)}
    values, as_node, task = (*edit, None, None)[:3]
    if as_node == _COPY and isinstance(values, list):
        # A copy of a checkpoint, with edits of its own.
        told = {"edits": [_edit(each, registry) for each in values]}
    else:
        told = {"values": shown(values, registry)}
    return told | {"as_node": as_node} | ({} if task is None else {"task_id": task})


def require_own_words(config: Mapping[str, Any]) -> None:
    """Refuse a call that steers the framework by names which graphs use to their subgraphs.

    They would answer a question, resume or load in the place of what the call says, and what was
    judged and approved would not be what runs.

    Raises:
        UsageError: There is such a name.
    """
    for name in config.get("configurable") or {}:
        if str(name).startswith(_FRAMEWORK) and name not in _HARMLESS:
            raise UsageError(
                f"configuration: expected no names of the framework's own, found {name!r}",
                hint="Take out of configurable what begins with __pregel_, and answer with "
                "Command(resume=...).",
            )
