# SPDX-License-Identifier: Apache-2.0
"""Putting a policy in force, its digest into the roster and its bytes beside it; who can approve.

A request is never approved by the person who made it, so the persons of workers are not counted
among those who can approve: they can approve what other workers ask for, at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from sealpoint.api._location import StoreLocation, now
from sealpoint.errors import SealpointError
from sealpoint.gate import Policies, Policy, Rule, shipped_policy
from sealpoint.ids import KeyId
from sealpoint.ledger import STORE_CHAIN, StoreChain
from sealpoint.limits import POLICY_BYTES_MAX
from sealpoint.signing import ANY_NAMESPACE, Identity, Role, Roster
from sealpoint.store import Core, check_name


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPolicy:
    """A policy that was put in force."""

    policy: Policy
    namespace: str
    """Where; `*` for every namespace that has none of its own."""
    before: str | None
    """The digest of the one that was in force there."""
    before_name: str | None
    """Its name; None if there was none, or it cannot be read."""
    roster: int | None
    """The position of the roster that says so; None: it was in force already."""


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


class PolicyAdmin:
    """`admin.policy`: what the gate asks for, and who can give it."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def apply(
        self, policy: str | bytes, *, namespace: str = ANY_NAMESPACE, reason: str | None = None
    ) -> AppliedPolicy:
        """Put a policy in force. Open requests are void: they were made under another one.

        The root's private keys must be on this machine.

        Args:
            policy: `solo`, `team`, or the bytes of a policy file.
            namespace: Where it holds; `*`: in every namespace that has none of its own.
            reason: Why, for the record.

        Raises:
            PolicyInvalid: It is not a policy.
            KeyMissing: The root's keys are not here.
        """
        parsed = Policy.parse(shipped_policy(policy) if isinstance(policy, str) else policy)
        if namespace != ANY_NAMESPACE:
            check_name(namespace, "namespace")
        with self._location.open_core() as core:
            chain = core.renewed_trust()
            policies = chain.roster.document.policies
            before = policies.get(namespace)
            applied = AppliedPolicy(
                policy=parsed,
                namespace=namespace,
                before=before,
                before_name=_name(core, before),
                roster=None,
            )
            blobs = {bytes.fromhex(parsed.digest): parsed.source}
            if before == parsed.digest:
                # Its bytes may have been lost or changed: the roster says which they have to be.
                core.storage.put_blobs(STORE_CHAIN, blobs)
                return applied
            document = msgspec.structs.replace(
                chain.roster.document, policies={**policies, namespace: parsed.digest}
            )
            written = self._location.append_roster(
                core, chain, document, reason=reason, blobs=blobs
            )
        return replace(applied, roster=written.roster.seq)

    def approvers(self, policy: Policy | None, *, namespace: str = ANY_NAMESPACE) -> Approvers:
        """Say who can approve what a policy asks for in a namespace.

        Args:
            policy: The policy; None asks nobody.
            namespace: Where; `*`: of those who may approve everywhere.
        """
        with self._location.open_core(read_only=True) as core:
            return who_can_approve(core.renewed_trust().roster, policy, namespace, now())


def _name(core: Core, digest: str | None) -> str | None:
    """What the policy of a digest calls itself, for people to read."""
    try:
        name = bytes.fromhex(digest or "")
        data = core.storage.blob(STORE_CHAIN, name, POLICY_BYTES_MAX) if name else None
        found = None if data is None else Policy.parse(data)
    except SealpointError:
        return None
    return found.name if found is not None and found.digest == digest else None


def policy_in_force(core: Core, chain: StoreChain, namespace: str) -> Policy | None:
    """The policy that a store chain puts in force in a namespace; None: there is none."""
    digest = chain.roster.policy_digest(namespace)
    return None if digest is None else Policies(core).get(digest)


def who_can_approve(
    roster: Roster, policy: Policy | None, namespace: str, at: datetime
) -> Approvers:
    """Who can approve what a policy asks for, by a roster, at a time."""
    able = _persons(roster, roster.holders(), Role.APPROVER, namespace, at)
    askers = _persons(roster, roster.keys, Role.WRITER, namespace, at)
    return Approvers(
        needed=0 if policy is None else _needed(policy),
        people=tuple(sorted(able - askers)),
        askers=tuple(sorted(able & askers)),
    )


def _needed(policy: Policy) -> int:
    """How many people have to approve before a run goes on; a handoff is no run."""
    runs = (each for rule, each in policy.rules.items() if rule is not Rule.HANDOFF_BY_OPERATOR)
    return max(measure.people for measure in runs)


def _persons(
    roster: Roster,
    keys: Mapping[KeyId, tuple[Identity, object]],
    role: Role,
    namespace: str,
    at: datetime,
) -> set[str]:
    """Who has a role, and one of these keys that has not expired."""
    return {
        holder.person
        for key, (holder, _) in keys.items()
        if holder.may(role, namespace) and not roster.key_expired_at(key.raw.hex(), at)
    }
