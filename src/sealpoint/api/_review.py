# SPDX-License-Identifier: Apache-2.0
"""The gate's second look at what the audit has verified: in an open store and in a bundle."""

import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from sealpoint.api._place import read_pin
from sealpoint.audit import BundleReport
from sealpoint.audit import verify_bundle as verify_lines
from sealpoint.errors import PolicyInvalid
from sealpoint.gate import Policies, Policy, Reviewer, RolloutBook
from sealpoint.signing import TrustPin
from sealpoint.store import Core, read_world

__all__ = ["reviewer", "verify_bundle"]


def reviewer(
    core: Core,
    policies: Policies,
    thread: bytes,
    book: RolloutBook | None = None,
) -> Reviewer:
    """What judges the decisions of a thread of an open store again."""
    rollouts = None if book is None else book.history()
    return Reviewer(
        policies.get,
        lambda digest: read_world(core, thread, digest),
        {} if rollouts is None else {core.namespace: rollouts},
    )


def verify_bundle(
    source: bytes | BinaryIO, trust: TrustPin | str | os.PathLike[str]
) -> BundleReport:
    """Verify an evidence bundle, without its store: nothing but the pin is needed.

    Everything is verified that a reader of the store would verify, but for the states, and every
    resume and handoff is judged again by the policy of its time. What is proven ends at the head
    of each thread that the report names: later entries may exist.

    Args:
        source: The bundle, or a file that is open for reading its bytes.
        trust: The pin of the store, or the path of one.

    Raises:
        BundleInvalid: It is no bundle, or not as it was exported.
        NotTrusted: It is of another store, or somebody signed who may not.
        Tampered, Forked: An entry is not what was written.
        RolledBack: Its roster is older than the pin, a cut or a restore says.
    """
    known: dict[str, Policy] = {}

    def judge(blobs: Mapping[str, bytes], worlds: Any) -> Any:
        def policy(digest: str) -> Policy:
            if digest not in known:
                if digest not in blobs:
                    raise PolicyInvalid(f"policy {digest[:12]}: expected it here, found none")
                known[digest] = Policy.parse(blobs[digest])
            return known[digest]

        return Reviewer(policy, worlds).take

    return verify_lines(source, read_pin(trust), judge)
