# SPDX-License-Identifier: Apache-2.0
"""The gate's second look at what the audit has verified: in an open store and in a bundle."""

import hashlib
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from sealpoint.api._place import read_pin
from sealpoint.audit import BundleReport
from sealpoint.audit import verify_bundle as verify_lines
from sealpoint.errors import BytesMalformed, PolicyInvalid
from sealpoint.gate import Policies, Policy, Reviewer
from sealpoint.limits import WORLD_BYTES_MAX
from sealpoint.signing import TrustPin
from sealpoint.store import Core, decode_world

__all__ = ["read_world", "reviewer", "verify_bundle"]


def read_world(core: Core, thread: bytes, digest: str) -> dict[str, Any] | None:
    """A world that a checkpoint of a thread names; None if it was pruned, or is none."""
    data = core.storage.blob(thread, bytes.fromhex(digest), WORLD_BYTES_MAX)
    if data is None or hashlib.sha256(data).hexdigest() != digest:
        return None  # that nobody gave it up, `verify` finds
    try:
        return decode_world(data)
    except BytesMalformed:
        return None


def reviewer(core: Core, policies: Policies, thread: bytes) -> Reviewer:
    """What judges the decisions of a thread of an open store again."""
    return Reviewer(policies.get, lambda digest: read_world(core, thread, digest))


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
