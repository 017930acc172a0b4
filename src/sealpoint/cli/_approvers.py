# SPDX-License-Identifier: Apache-2.0
"""Who can approve, in the words of `init`, `policy apply` and `status`."""

from typing import Any

from sealpoint.api import Approvers
from sealpoint.world import visible

__all__ = ["approver_lines", "approvers_document"]

_NUMBERS = {1: "one person", 2: "two people", 3: "three people"}


def approver_lines(found: Approvers, namespace: str = "*") -> list[str]:
    """What to tell somebody who put a policy in force; nothing if it asks nobody."""
    if not found.needed:
        return []
    needed = _people(found.needed)
    names = ", ".join(visible(each) for each in found.people)
    askers = ", ".join(visible(each) for each in found.askers)
    lines = [f"What this policy asks people for needs {needed} who did not ask for it."]
    if not found.missing:
        return [*lines, f"Who can approve: {names}."]
    also = f", who {_asks(found)} for the workers" if askers else ""
    if found.people:
        lines.append(f"Who can approve: {names}. That is too few: add {_people(found.missing)}.")
    else:
        lines.append(f"Nobody can approve yet: add {_people(found.missing)}.")
    if askers:
        lines.append(f"({askers}{also}, cannot approve that as well.)")
    return [
        *lines,
        "For each of them:",
        "  sealpoint keys new NAME",
        f"  sealpoint keys add NAME --person 'WHO' --role approver --namespace '{namespace}'",
    ]


def approvers_document(found: Approvers) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "needed": found.needed,
        "people": list(found.people),
        "askers": list(found.askers),
        "missing": found.missing,
    }


def _people(count: int) -> str:
    return _NUMBERS.get(count, f"{count} people")


def _asks(found: Approvers) -> str:
    return "asks" if len(found.askers) == 1 else "ask"
