# SPDX-License-Identifier: Apache-2.0
"""Programs written like the framework's own tutorials, one module each."""

from tests.adapters.langgraph.programs import (
    delta_chat,
    edited_draft,
    failing_tools,
    functional_api,
    handoff,
    human_approval,
    long_chat,
    map_reduce,
    parallel_branches,
    react_agent,
    stateful_subgraph,
    streaming,
    subgraph_interrupts,
    time_travel,
    typed_state,
)
from tests.adapters.langgraph.turns import Program

__all__ = ["APPLICATION_TYPES", "PROGRAMS"]

PROGRAMS: dict[str, Program] = {
    module.PROGRAM.name: module.PROGRAM
    for module in (
        react_agent,
        human_approval,
        parallel_branches,
        subgraph_interrupts,
        map_reduce,
        time_travel,
        functional_api,
        streaming,
        long_chat,
        handoff,
        failing_tools,
        delta_chat,
        stateful_subgraph,
        typed_state,
        edited_draft,
    )
}

APPLICATION_TYPES: tuple[type, ...] = tuple(
    kind for program in PROGRAMS.values() for kind in program.types
)
"""What a saver with a list of allowed types must allow, besides the framework's own."""
