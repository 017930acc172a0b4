# SPDX-License-Identifier: Apache-2.0
"""The sources that a graph reads in addition to its checkpoints, and Sealpoint does not seal.

A node cache returns results that no node has computed; nodes and models read a long-term memory; a
remote graph answers for a node. Anyone who can write there steers the run, and `verify` finds
nothing. Data in the memory of the process has no other writer.
"""

from collections.abc import Collection
from typing import Any

from langgraph.cache.memory import InMemoryCache
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore

from sealpoint.adapters.unsealed_inputs import UnsealedKind, check_kinds, refuse_unsealed
from sealpoint.adapters.world_parts import kind_of, origin_of

CACHE, MEMORY, REMOTE = "cache", "memory", "remote"
_OWN = (InMemoryCache, InMemoryStore)
_KINDS = {
    CACHE: UnsealedKind(
        "anyone who can write it controls the result of a node", "compile without cache="
    ),
    MEMORY: UnsealedKind(
        "anyone who can write it controls the input of nodes and models", "compile without store="
    ),
    REMOTE: UnsealedKind("what it returns is another process's", "run it here"),
}


def unsealed_of(graph: Any) -> dict[str, dict[str, str]]:
    """The unsealed sources of a graph by kind: a name, and a description."""
    found: dict[str, dict[str, str]] = {}
    for kind, held in ((CACHE, graph.cache), (MEMORY, graph.store)):
        if held is not None and type(held) not in _OWN:
            found[kind] = {kind: kind_of(held)}
    for name, each in graph.get_subgraphs(recurse=True):
        if not isinstance(each, Pregel):
            found.setdefault(REMOTE, {})[name] = _remote(each)
    return found


def _remote(graph: Any) -> str:
    """The assistant, and the origin of its address, as far as that is visible."""
    named = getattr(graph, "assistant_id", None) or kind_of(graph)
    for client in (getattr(graph, "sync_client", None), getattr(graph, "client", None)):
        sent_by = getattr(getattr(client, "http", None), "client", None)
        origin = origin_of(str(getattr(sent_by, "base_url", "")))
        if origin is not None:
            return f"{named} at {origin}"
    return str(named)


def check_names(accepted: Collection[str]) -> frozenset[str]:
    """The kinds that a caller accepts.

    Raises:
        UsageError: There is no such kind.
    """
    return check_kinds(accepted, _KINDS)


def require_accepted(graph: Any, accepted: frozenset[str]) -> None:
    """Refuse a graph that reads an unsealed source, unless that source was accepted.

    Raises:
        UsageError: It reads one.
    """
    refuse_unsealed("graph", unsealed_of(graph), accepted, _KINDS)
