# SPDX-License-Identifier: Apache-2.0
"""Registries for read-only tools: with the frameworks' own types, and with those of a graph.

On the command line: `--registry sealpoint_langgraph.framework:registry`, or
`--registry MODULE:GRAPH`.
"""

from typing import Any

from sealpoint.adapters import Framework
from sealpoint.codec import Registry
from sealpoint_langgraph._declared_types import allow_types, graph_types
from sealpoint_langgraph._framework_types import allow_framework_types
from sealpoint_langgraph._guard import declared_world

__all__ = ["FRAMEWORK", "registry", "registry_of"]

registry = Registry()
"""Allows messages, documents and the other types that LangGraph stores by itself."""

allow_framework_types(registry)


def registry_of(graph: Any) -> Registry:
    """A registry that allows the same types as `SealedSaver.for_graph` for this graph.

    Raises:
        UsageError: The value is not a graph.
        RuleInvalid: Two of its types have one name.
    """
    made = Registry()
    allow_framework_types(made)
    allow_types(made, graph_types(graph))
    return made


FRAMEWORK = Framework(
    name="LangGraph",
    registry="sealpoint_langgraph.framework:registry",
    declared_world=declared_world,
    declared_types=registry_of,
)
"""The value of the entry points of `sealpoint.frameworks`."""
