# SPDX-License-Identifier: Apache-2.0
"""Who can approve what a policy asks people for, by name, and how many are missing.

A request is never approved by the person who made it, so the persons of workers are not counted:
they can approve what other workers ask for, at most.
"""

import os
from dataclasses import dataclass
from datetime import datetime

from sealpoint.api._place import StorePlace, now
from sealpoint.api._revoke import opened
from sealpoint.gate import Policy, Rule
from sealpoint.signing import ANY_NAMESPACE, Identity, Role, Roster

__all__ = ["Approvers", "approvers"]

_Directory = str | os.PathLike[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvers:
    """Who can approve requests under a policy."""

    needed: int
    """How many people have to approve; 0 if the policy asks nobody."""
    people: tuple[str, ...]
    """The persons who can, whoever asks."""
    askers: tuple[str, ...]
    """Persons with the right to approve who are workers too: never for what they ask themselves."""

    @property
    def missing(self) -> int:
        """How many more people are needed before anything can be approved."""
        return max(0, self.needed - len(self.people))


def approvers(
    url: str,
    policy: Policy | None,
    *,
    namespace: str = ANY_NAMESPACE,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
) -> Approvers:
    """Say who can approve what a policy asks for in a namespace.

    Args:
        url: The store.
        policy: The policy; None asks nobody.
        namespace: Where; `*`: of those who may approve everywhere.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    with opened(place, read_only=True) as core:
        return who_can_approve(core.renewed_trust().roster, policy, namespace, now())


def who_can_approve(
    roster: Roster, policy: Policy | None, namespace: str, at: datetime
) -> Approvers:
    """The same by a roster, at a time."""
    able = _persons(roster, Role.APPROVER, namespace, at)
    askers = _persons(roster, Role.WRITER, namespace, at)
    return Approvers(
        needed=0 if policy is None else _needed(policy),
        people=tuple(sorted(able - askers)),
        askers=tuple(sorted(able & askers)),
    )


def _needed(policy: Policy) -> int:
    """How many people have to approve before a run goes on; a handoff is no run."""
    runs = (each for rule, each in policy.rules.items() if rule is not Rule.HANDOFF_BY_OPERATOR)
    return max(measure.people for measure in runs)


def _persons(roster: Roster, role: Role, namespace: str, at: datetime) -> set[str]:
    return {
        each.person
        for each in roster.identities
        if each.may(role, namespace) and _has_key(roster, each, at)
    }


def _has_key(roster: Roster, identity: Identity, at: datetime) -> bool:
    for key, (holder, _) in roster.keys.items():
        expires = roster.expires(key.raw.hex())
        if holder.name == identity.name and (expires is None or at < expires):
            return True
    return False
