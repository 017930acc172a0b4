# SPDX-License-Identifier: Apache-2.0
"""From which checkpoints a run begins, as the framework reads it from a configuration.

An id beside the thread is not the only way to name a checkpoint: a map names one for each
namespace, and counts for more. The gate judges what is going to be loaded, so it has to read the
configuration in the same way.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sealpoint.adapters.langgraph._tuples import Address, require_text
from sealpoint.errors import UsageError
from sealpoint.gate import Thread

__all__ = ["Aim", "is_nested", "map_of"]

_NESTED = "__pregel_read"
"""What the framework leaves in the configuration of a graph that a task of another one runs."""


def is_nested(config: Mapping[str, Any] | None) -> bool:
    """Whether a graph is run by a task of another one.

    What is left there is a function. A configuration that came over a network may have the name in
    it, but no function.
    """
    return callable(((config or {}).get("configurable") or {}).get(_NESTED))


class Aim(NamedTuple):
    """The checkpoints that a configuration names."""

    root: str | None
    """The one of the graph itself; None: the newest."""
    inner: dict[str, str]
    """Those of its subgraphs, by namespace."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Aim":
        """Read the configuration of a run that no other run has begun.

        Raises:
            UsageError: Something else than a name stands for one.
        """
        _, lane, named = Address.of(config)
        by_lane = map_of((config.get("configurable") or {}).get("checkpoint_map"))
        inner = {key: value for key, value in by_lane.items() if key and value}
        if lane:
            # The framework begins at the root; only the map tells where from.
            if named is not None and inner.setdefault(lane, named) != named:
                raise UsageError(
                    f"configuration: checkpoint_id and checkpoint_map name two checkpoints of "
                    f"namespace {lane!r}",
                    hint="Pass the configuration that get_state or get_state_history tells.",
                )
            lane, named = "", None
        if lane is not None and lane in by_lane:
            named = by_lane[lane] or None
        return cls(named, inner)

    def older(self, thread: Thread) -> dict[str, str]:
        """Those of subgraphs that are not the newest of their namespace."""
        found = {}
        for lane, name in self.inner.items():
            newest = thread.snapshot(lane)
            if newest is None or newest.ref.id != name:
                found[lane] = name
        return found


def map_of(found: object) -> dict[str, str]:
    """The checkpoints that a configuration names by namespace.

    Raises:
        UsageError: Something else stands there.
    """
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise UsageError(
            f"configuration: expected a map as checkpoint_map, found {type(found).__name__}",
            hint="Pass the configuration that get_state or get_state_history tells.",
        )
    for key, value in found.items():
        require_text(key, "name in checkpoint_map")
        require_text(value, "value in checkpoint_map")
    return dict(found)
