# SPDX-License-Identifier: Apache-2.0
"""The policy in force: the roster names its digest, the store chain's blobs hold its bytes."""

from hashlib import sha256

from sealpoint.errors import PolicyInvalid
from sealpoint.gate._policy import Policy
from sealpoint.ledger import STORE_CHAIN
from sealpoint.limits import POLICY_BYTES_MAX
from sealpoint.signing import ANY_NAMESPACE, Roster
from sealpoint.store import Core

__all__ = ["Policies", "policy_digest"]


def policy_digest(roster: Roster, namespace: str) -> str | None:
    """The digest of the policy that a roster names for a namespace, or else for all."""
    policies = roster.document.policies
    return policies.get(namespace, policies.get(ANY_NAMESPACE))


class Policies:
    """The policies of an open store, each read and checked once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[str, Policy] = {}
        self._told: set[str] = set()

    def in_force(self, roster: Roster) -> Policy | None:
        """The policy that a roster names for the store's namespace; None if it names none.

        Raises:
            PolicyInvalid: Its bytes are not there, or are not the ones that the root signed for.
        """
        digest = policy_digest(roster, self._core.namespace)
        policy = None if digest is None else self.get(digest)
        if policy is not None and policy.asks_nothing and policy.digest not in self._told:
            self._told.add(policy.digest)
            self._core.emit_lenient(policy.name)
        return policy

    def get(self, digest: str) -> Policy:
        """The policy of a digest.

        Raises:
            PolicyInvalid: Its bytes are not there, or are others.
        """
        policy = self._known.get(digest)
        if policy is None:
            data = self._core.storage.blob(STORE_CHAIN, bytes.fromhex(digest), POLICY_BYTES_MAX)
            if data is None or sha256(data).hexdigest() != digest:
                found = "none" if data is None else "another"
                raise PolicyInvalid(
                    f"policy {digest[:12]}: expected the file that the roster names, found {found}",
                    hint="Enter it again with sealpoint policy apply FILE.",
                )
            policy = self._known[digest] = Policy.parse(data)
        return policy
