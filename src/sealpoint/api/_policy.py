# SPDX-License-Identifier: Apache-2.0
"""Putting a policy in force: its digest into the roster, its bytes beside it."""

import os
from dataclasses import dataclass, replace

import msgspec

from sealpoint.api._place import StorePlace
from sealpoint.api._revoke import opened
from sealpoint.config import PassphraseSource
from sealpoint.errors import SealpointError
from sealpoint.gate import Policy, shipped_policy
from sealpoint.ledger import STORE_CHAIN
from sealpoint.limits import POLICY_BYTES_MAX
from sealpoint.signing import ANY_NAMESPACE
from sealpoint.store import Core, append_roster, check_name, require_roots

__all__ = ["AppliedPolicy", "apply_policy"]


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


def apply_policy(
    url: str,
    policy: str | bytes,
    *,
    namespace: str = ANY_NAMESPACE,
    reason: str | None = None,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    passphrase: PassphraseSource | None = None,
) -> AppliedPolicy:
    """Put a policy in force. Open requests are void: they were made under another one.

    The root's private keys must be on this machine.

    Args:
        url: The store.
        policy: `solo`, `team`, or the bytes of a policy file.
        namespace: Where it holds; `*`: in every namespace that has none of its own.
        reason: Why, for the record.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the root's keys if they are encrypted, as for `open_store`.

    Raises:
        PolicyInvalid: It is not a policy.
        KeyMissing: The root's keys are not here.
    """
    parsed = Policy.parse(shipped_policy(policy) if isinstance(policy, str) else policy)
    if namespace != ANY_NAMESPACE:
        check_name(namespace, "namespace")
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    with opened(place) as core:
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
            # Its bytes may have been lost or changed: the roster says which ones they have to be.
            core.storage.put_blobs(STORE_CHAIN, blobs)
            return applied
        document = msgspec.structs.replace(
            chain.roster.document, policies={**policies, namespace: parsed.digest}
        )
        roots = require_roots(chain.root, place.root_signers(chain.root))
        written = core.written(
            append_roster(core, chain, document, roots, reason=reason, blobs=blobs)
        )
    return replace(applied, roster=written.roster.seq)


def _name(core: Core, digest: str | None) -> str | None:
    """What the policy of a digest calls itself, for people to read."""
    try:
        name = bytes.fromhex(digest or "")
        data = core.storage.blob(STORE_CHAIN, name, POLICY_BYTES_MAX) if name else None
        found = None if data is None else Policy.parse(data)
    except SealpointError:
        return None
    return found.name if found is not None and found.digest == digest else None
