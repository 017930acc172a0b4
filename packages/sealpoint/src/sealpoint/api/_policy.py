# SPDX-License-Identifier: Apache-2.0
"""Putting a policy in force, with its digest in the roster and its bytes stored with it; approvers.

A request is never approved by the person who made it, so the persons of workers are not counted
among those who can approve: at most they can approve the requests of other workers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from sealpoint.api._store_location import StoreLocation, now
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
    """The namespace; `*` for every namespace without its own policy."""
    before: str | None
    """The digest of the previous policy there."""
    before_name: str | None
    """Its name; None if there was none, or it cannot be read."""
    roster: int | None
    """The position of the roster that names it; None: it was in force already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvers:
    """The people who can approve requests under a policy."""

    needed: int
    """How many people must approve; 0 if the policy never asks for approvals."""
    people: tuple[str, ...]
    """The persons who can approve every request."""
    askers: tuple[str, ...]
    """Persons with the right to approve who are workers too: never for their own requests."""
    missing: int
    """How many more people are needed before anything can be approved."""


class PolicyAdmin:
    """`admin.policy`: the policies in force, and the people who can approve."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def apply(
        self, policy: str | bytes, *, namespace: str = ANY_NAMESPACE, reason: str | None = None
    ) -> AppliedPolicy:
        """Put a policy in force. Open requests become void, because another policy was in force.

        The root's private keys must be on this machine.

        Args:
            policy: `solo`, `team`, `strict`, or the bytes of a policy file.
            namespace: The namespace; `*`: every namespace without its own policy.
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
                # Its bytes may have been lost or changed: the roster names the right ones.
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
        """Return the people who can approve the requests of a policy in a namespace.

        Args:
            policy: The policy; None asks for no approvals.
            namespace: The namespace; `*`: people who may approve everywhere.
        """
        with self._location.open_core(read_only=True) as core:
            return who_can_approve(core.renewed_trust().roster, policy, namespace, now())


def _name(core: Core, digest: str | None) -> str | None:
    """Return the name in the policy of a digest, for people to read."""
    try:
        name = bytes.fromhex(digest or "")
        data = core.storage.blob(STORE_CHAIN, name, POLICY_BYTES_MAX) if name else None
        found = None if data is None else Policy.parse(data)
    except SealpointError:
        return None
    return found.name if found is not None and found.digest == digest else None


def policy_in_force(core: Core, chain: StoreChain, namespace: str) -> Policy | None:
    """Return the policy that a store chain puts in force in a namespace; None if none is."""
    digest = chain.roster.policy_digest(namespace)
    return None if digest is None else Policies(core).get(digest)


def who_can_approve(
    roster: Roster, policy: Policy | None, namespace: str, at: datetime
) -> Approvers:
    """Return the people who can approve the requests of a policy, by a roster, at a time."""
    able = _persons(roster, roster.holders(), Role.APPROVER, namespace, at)
    askers = _persons(roster, roster.keys, Role.WRITER, namespace, at)
    needed, people = 0 if policy is None else _needed(policy), able - askers
    return Approvers(
        needed=needed,
        people=tuple(sorted(people)),
        askers=tuple(sorted(able & askers)),
        missing=max(0, needed - len(people)),
    )


def _needed(policy: Policy) -> int:
    """Return how many people must approve a resume; the rule for handoffs is not considered."""
    runs = (each for rule, each in policy.rules.items() if rule is not Rule.HANDOFF_BY_OPERATOR)
    return max(measure.people for measure in runs)


def _persons(
    roster: Roster,
    keys: Mapping[KeyId, tuple[Identity, object]],
    role: Role,
    namespace: str,
    at: datetime,
) -> set[str]:
    """Return the persons who have a role, and one of these keys that has not expired."""
    return {
        holder.person
        for key, (holder, _) in keys.items()
        if holder.may(role, namespace) and not roster.key_expired_at(key.raw.hex(), at)
    }
