# SPDX-License-Identifier: Apache-2.0
"""What the tests of the gate judge: policies with given measures, and facts that trigger rules.

`ORDINARY` is an ordinary continuation. Each entry of `TRIGGERS` is one change of it that makes one
rule apply, and each entry of `BARS` one that is refused whatever the policy says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, cast

from sealpoint.gate import Facts, GrantFacts, Measure, Policy, Rule
from sealpoint.world import LeafClass, WorldDiff

AGE_MAX = timedelta(days=7)
NEEDED = 2
TAKEOVER_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class Difference:
    """A difference of worlds with any combination of flags, also those that no two worlds have."""

    same: bool
    differs: frozenset[LeafClass]
    narrower: frozenset[LeafClass]
    told: tuple[str, ...] = ("+ tool shell", "~ tool read")

    def lines(self) -> tuple[str, ...]:
        """What differs, for people."""
        return self.told


def difference(
    *,
    same: bool = False,
    code_changed: bool = False,
    narrowing: bool = False,
    widening: bool = False,
) -> WorldDiff:
    """A difference that says of itself what it is told to."""
    made = Difference(
        same=same,
        differs=frozenset([LeafClass.CODE] * code_changed + [LeafClass.TOOLS] * widening),
        narrower=frozenset([LeafClass.PERMISSIONS] * narrowing),
    )
    return cast("WorldDiff", made)


ORDINARY = Facts(
    thread="invoice-7",
    paused=None,
    owner=True,
    diff=difference(same=True),
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
        Rule.CHANGED_CODE: {"diff": difference(code_changed=True)},
        Rule.WIDER_WORLD: {"diff": difference(widening=True)},
        Rule.NARROWER_WORLD: {"diff": difference(narrowing=True)},
        Rule.FIRST_WORLD: {**_UNDECLARED, "world_now": True},
        Rule.MISSING_WORLD: {**_UNDECLARED, "world_before": True},
        Rule.ANSWER: {"question": True},
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
) -> GrantFacts:
    """What has become of a request."""
    return GrantFacts(
        approved_by=approved_by, denied_by=denied_by, expired=expired, broken_glass=broken_glass
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
    found: dict[str, str] = dict.fromkeys(Rule, default)
    found["after-restore"] = max(default, Measure.DELIBERATE)
    found["handoff-by-operator"] = max(default, Measure.APPROVAL)
    found.update({name.replace("_", "-"): measure for name, measure in rules.items()})
    return found


def text(rules: Mapping[str, str], *, needed: int = NEEDED) -> str:
    """A policy file with every table."""
    lines = "".join(f'{rule} = "{measure}"\n' for rule, measure in rules.items())
    return (
        'version = 1\nname = "tested"\n'
        f"[rules]\n{lines}"
        f'[approvals]\nneeded = {needed}\nexpires = "24h"\n'
        '[age]\nmax = "7d"\n'
        '[session]\ntakeover_after = "5m"\n'
    )


def policy(default: Measure = Measure.REFUSE, *, needed: int = NEEDED, **rules: str) -> Policy:
    """A policy with one measure for every rule, and others for some."""
    return Policy.parse(text(measures(default, **rules), needed=needed).encode())
