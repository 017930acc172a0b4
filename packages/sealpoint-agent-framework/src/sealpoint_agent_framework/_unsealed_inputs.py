# SPDX-License-Identifier: Apache-2.0
"""The unsealed sources that an agent reads in addition to its checkpoints.

A session, and the data that providers keep in it, is part of the checkpoint. A history or a memory
elsewhere is read before each call of a model; an agent that runs elsewhere answers from the data
there. Anyone who can write there steers the run, and `verify` finds nothing.

The classes of the framework decide. A provider is unsealed unless its framework class is known to
keep everything in the session or in the process. An application's own `ContextProvider` is covered
by its code, which the world shows.
"""

from collections.abc import Collection, Iterator
from typing import Any

from agent_framework import HistoryProvider

from sealpoint.adapters.object_search import attributes, outermost
from sealpoint.adapters.unsealed_inputs import UNSEALED, UnsealedKind, check_kinds, refuse_unsealed
from sealpoint.adapters.world_parts import kind_of, origin_of
from sealpoint.world import World

MEMORY, REMOTE = "memory", "remote"
_KINDS = {
    MEMORY: UnsealedKind(
        "anyone who can write it controls the input of models",
        "keep it in the session (InMemoryHistoryProvider)",
    ),
    REMOTE: UnsealedKind("what it answers is another process's", "run the agent here"),
}
_CORE, _LOCAL = "agent_framework", ("agent_framework", "agent_framework_orchestrations")
# Listed by name: some are not in every version, and some warn when they are imported.
_SEALED = frozenset(
    {
        *("AgentModeProvider", "BackgroundAgentsProvider", "CompactionProvider"),
        *("ContextProvider", "InMemoryHistoryProvider", "SecureAgentConfig", "SkillsProvider"),
    }
)
"""Providers that keep their data in the session, in the process, or in files of the application."""
_STORES = frozenset({"InMemoryAgentFileStore", "TodoSessionStore"})
_ADDRESSES = ("url", "base_url", "endpoint", "project_endpoint", "host")


def unsealed_of(name: str, agent: Any) -> Iterator[tuple[str, str, str]]:
    """The unsealed sources of an agent: the kind, a name, and a description."""
    fields = attributes(agent)
    package, _ = _of_framework(agent)
    if package not in ("", *_LOCAL):
        told = (origin_of(fields.get(each)) for each in _ADDRESSES)
        origin = next((f" at {each}" for each in told if each), "")
        yield REMOTE, name, f"{kind_of(agent)}{origin}"
    for provider in fields.get("context_providers") or ():
        if not _is_sealed(provider):
            yield MEMORY, f"{name}: {provider.source_id}", kind_of(provider)


def _is_sealed(provider: Any) -> bool:
    package, kind = _of_framework(provider)
    if not package or (package == _CORE and kind in _SEALED):
        return True
    if isinstance(provider, HistoryProvider) and not provider.load_messages:
        return True  # nothing is read
    return _of_framework(attributes(provider).get("store")) in ((_CORE, each) for each in _STORES)


def _of_framework(value: Any) -> tuple[str, str]:
    """Package and name of the class of the framework that an object's class is derived from.

    Both are empty if no such class exists: any object with the methods of an agent is one.
    """
    for kind in type(value).__mro__:
        package = outermost(kind.__module__)
        if package == _CORE or package.startswith(f"{_CORE}_"):
            return package, kind.__name__
    return "", ""


def check_names(accepted: Collection[str]) -> frozenset[str]:
    """The kinds that a caller accepts.

    Raises:
        UsageError: There is no such kind.
    """
    return check_kinds(accepted, _KINDS)


def require_accepted(world: World, accepted: frozenset[str]) -> None:
    """Refuse a workflow that reads an unsealed source, unless that source was accepted.

    Raises:
        UsageError: It reads one.
    """
    refuse_unsealed("workflow", world.topology.get(UNSEALED) or {}, accepted, _KINDS)
