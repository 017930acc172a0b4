# SPDX-License-Identifier: Apache-2.0
"""What the tests of the gate judge: policies with given measures, and facts that trigger rules.

`ORDINARY` is an ordinary continuation. Each entry of `TRIGGERS` is one change of it that makes one
rule apply, and each entry of `BARS` one that is refused whatever the policy says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from sealpoint.gate import Facts, GrantFacts, Measure, Policy, RolloutFacts, Rule
from sealpoint.world import LeafChange, LeafClass, WorldDiff, value_digest

AGE_MAX = timedelta(days=7)
TAKEOVER_AFTER = timedelta(minutes=5)
MEASURES = (
    Measure.ALLOW,
    Measure.RECORD,
    Measure.REASON,
    Measure.approve(1),
    Measure.approve(2),
    Measure.REFUSE,
)
"""Some of every kind, from the mildest to the strictest."""

_ADDED = {
    LeafClass.TOOLS: "tool.shell",
    LeafClass.PERMISSIONS: "permission.net",
    LeafClass.MODEL: "model.name",
    LeafClass.PROMPTS: "prompt.system",
    LeafClass.TOPOLOGY: "topology.edges",
    LeafClass.CODE: "code.version",
    LeafClass.APPLICATION: "application.jobs",
    LeafClass.RUNTIME: "runtime.langgraph",
    LeafClass.OTHER: "extra.region",
}
_GONE = {
    LeafClass.TOOLS: "tool.read",
    LeafClass.PERMISSIONS: "permission.read",
    LeafClass.TOPOLOGY: "agent.researcher",
}
ALL_LEAVES = frozenset({*_ADDED.values(), *_GONE.values()})
"""Everything that differs in differences of this module."""
NARROWABLE = tuple(_GONE)
"""The classes in which something can be gone without anything else being more."""


def difference(*differs: LeafClass, narrower: Iterable[LeafClass] = ()) -> WorldDiff:
    """A difference in which something came in some classes, and something went in others."""
    return WorldDiff(
        added=tuple(LeafChange(_ADDED[each]) for each in LeafClass if each in differs),
        removed=tuple(LeafChange(_GONE[each]) for each in NARROWABLE if each in narrower),
    )


ORDINARY = Facts(
    thread="invoice-7",
    paused=None,
    owner=True,
    diff=difference(),
    world_before=True,
    world_now=True,
    newest=True,
    deleted=0,
    copied=False,
    question=False,
    answered=False,
    age=timedelta(hours=1),
    restored=False,
    living_session=None,
    deliberate=None,
    grant=None,
)

_UNDECLARED = {"diff": None, "world_before": False, "world_now": False}

TRIGGERS: Mapping[Rule, Mapping[str, Any]] = MappingProxyType(
    {
        Rule.OLDER_CHECKPOINT: {"newest": False},
        **{Rule(each): {"diff": difference(each)} for each in LeafClass},
        Rule.NARROWER_WORLD: {"diff": difference(narrower=[LeafClass.PERMISSIONS])},
        Rule.FIRST_WORLD: {**_UNDECLARED, "world_now": True},
        Rule.MISSING_WORLD: {**_UNDECLARED, "world_before": True},
        Rule.ANSWER: {"question": True},
        Rule.UNKNOWN_OUTCOME: {"unknown": "'worker' resumed with an answer at noon"},
        Rule.OLD_AGE: {"age": AGE_MAX + timedelta(microseconds=1)},
        Rule.AFTER_RESTORE: {"restored": True},
    }
)
"""One change for each rule that a resume can meet; a handoff is no resume."""


def grant(
    *approved_by: str,
    denied_by: tuple[str, ...] = (),
    expired: bool = False,
    broken_glass: str | None = None,
    needed: int = 2,
) -> GrantFacts:
    """What has become of a request that two people were asked for."""
    return GrantFacts(
        approved_by=approved_by,
        denied_by=denied_by,
        expired=expired,
        broken_glass=broken_glass,
        needed=needed,
    )


def rollout(*approved_by: str, needed: int = 2, leaves: Iterable[str] = ALL_LEAVES) -> RolloutFacts:
    """A rollout in force for what came and went in differences of this module, or some of it."""
    value = value_digest(None)
    came = ((leaf, None, value) for leaf in _ADDED.values() if leaf in leaves)
    went = ((leaf, value, None) for leaf in _GONE.values() if leaf in leaves)
    return RolloutFacts(
        id="ab" * 32,
        approved_by=approved_by,
        needed=needed,
        reason="release 7 of the agent",
        differences=(*came, *went),
    )


BARS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "paused": {"paused": "olga: looking at it"},
        "not-owner": {"owner": False},
        "busy": {"living_session": TAKEOVER_AFTER - timedelta(microseconds=1)},
        "denied": {"grant": grant("alice", "bob", denied_by=("carol",))},
        "expired": {"grant": grant("alice", "bob", expired=True)},
    }
)


def facts(*changes: Mapping[str, Any], **more: Any) -> Facts:
    """An ordinary continuation with changes."""
    changed = ORDINARY
    for change in (*changes, more):
        changed = replace(changed, **change)
    return changed


def measures(default: Measure = Measure.REFUSE, **rules: str) -> dict[str, str]:
    """Every rule with a measure it may have, and some with others (`older_checkpoint="allow"`)."""
    found = {str(rule): str(default) for rule in Rule}
    for always_told in ("unknown-outcome", "after-restore"):
        found[always_told] = str(max(default, Measure.RECORD))
    found["handoff-by-operator"] = str(max(default, Measure.approve(1)))
    found.update({name.replace("_", "-"): measure for name, measure in rules.items()})
    return found


def text(rules: Mapping[str, str]) -> str:
    """A policy file with every table."""
    lines = "".join(f'{rule} = "{measure}"\n' for rule, measure in rules.items())
    return (
        'version = 2\nname = "tested"\n'
        f"[rules]\n{lines}"
        '[approvals]\nexpires = "24h"\n'
        '[age]\nmax = "7d"\n'
        '[session]\ntakeover_after = "5m"\n'
    )


def policy(default: Measure = Measure.REFUSE, **rules: str) -> Policy:
    """A policy with one measure for every rule, and others for some."""
    return Policy.parse(text(measures(default, **rules)).encode())
