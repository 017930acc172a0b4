# SPDX-License-Identifier: Apache-2.0
"""LangGraph on a sealed store: `SealedSaver` is the checkpointer, `guard` gates a graph."""

from sealpoint.adapters.guarded_runs import extra_missing

try:
    from sealpoint_langgraph._declared_types import TypesNotAllowedWarning
    from sealpoint_langgraph._guard import declared_world, deliberately, guard
    from sealpoint_langgraph._resume_waiting import resume_waiting
    from sealpoint_langgraph._saver import SealedSaver
    from sealpoint_langgraph._world import world_of
except ImportError as exc:
    packages = {"langchain_core": "langchain-core", "langgraph": "langgraph"}
    raise extra_missing("sealpoint_langgraph", packages, exc) from exc

__all__ = [
    "SealedSaver",
    "TypesNotAllowedWarning",
    "declared_world",
    "deliberately",
    "guard",
    "resume_waiting",
    "world_of",
]
