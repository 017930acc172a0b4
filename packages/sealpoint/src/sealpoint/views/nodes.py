# SPDX-License-Identifier: Apache-2.0
"""Steps of a run in the words of its program: nodes, tools and subgraphs instead of ids.

LangGraph names the node of a task in its path, and the subgraph in its lane. Agent Framework counts
iterations. The texts are for people, with unprintable characters made visible; a path that has
another form is shown as it is.
"""

from collections.abc import Iterable, Mapping

from sealpoint.audit import TimelineEntry
from sealpoint.world import visible

__all__ = ["finished_nodes", "lane_names", "lane_text", "node_name", "step_text"]

_PULL, _PUSH = "~__pregel_pull", "~__pregel_push"
_CHECKPOINTS = ("checkpoint", "held")


def node_name(path: str) -> str:
    """Return the node at which LangGraph runs a task, or the path; empty for one that was sent."""
    kind, comma, node = path.partition(", ")
    if kind == _PUSH:
        return ""
    return visible(node if comma and kind == _PULL else path)


def lane_names(lane: str) -> list[str]:
    """Return the nodes whose subgraphs a lane leads into, outermost first."""
    return [visible(each.partition(":")[0]) for each in lane.split("|") if each]


def lane_text(lane: str) -> str:
    """Return a lane in one word for each subgraph; empty for the main lane."""
    return " / ".join(lane_names(lane))


def finished_nodes(entries: Iterable[TimelineEntry]) -> dict[tuple[str, str], str]:
    """Return the nodes that finished after each checkpoint, by its lane and id."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for entry in entries:
        facts = entry.facts
        if entry.record.kind in ("results", "writes") and "asks" not in facts:
            name = node_name(facts["path"]) if "path" in facts else ""
            if name and not name.startswith("__"):
                place = facts.get("lane", ""), facts.get("checkpoint", "")
                found.setdefault(place, {})[name] = None
    return {place: ", ".join(sorted(names)) for place, names in found.items()}


def step_text(entry: TimelineEntry, finished: Mapping[tuple[str, str], str]) -> str:
    """Return what an entry of a timeline is in the words of the program; empty if unknown."""
    facts, kind = entry.facts, entry.record.kind
    lane = facts.get("lane", "")
    inside = f" in {lane_text(lane)}" if lane else ""
    if kind in ("results", "writes"):
        if "answers" in facts:
            return f"The answer{inside}"
        path = facts.get("path", "")
        name = node_name(path) if path else ""
        what = f"Node {name}" if name else "A task that was sent" if path else ""
        verb = "asks" if "asks" in facts else "finished"
        return f"{what}{inside} {verb}" if what else ""
    if kind not in _CHECKPOINTS:
        return ""
    after = finished.get((lane, facts.get("parent", "")), "")
    step = f"Step {visible(facts['step'])}" if "step" in facts else ""
    words = f"{step or 'Saved'}{inside}, after {after}" if after else f"{step}{inside}"
    return words if step or after else ""
