# SPDX-License-Identifier: Apache-2.0
"""The face: what users hold, composed of everything below."""

from sealpoint.api._anchor import Adopted, AnchorPosition, Standing, adopt, anchor_positions
from sealpoint.api._init import init
from sealpoint.api._key_changes import (
    Revocation,
    Rotation,
    next_key,
    revoke_key,
    rotate_key,
    take_next_key,
)
from sealpoint.api._keys import (
    KeyInfo,
    KeyStatus,
    add_identity,
    change_passphrase,
    list_keys,
    new_key,
)
from sealpoint.api._offline import (
    ExaminedRequest,
    ExportedRequest,
    ShownRelease,
    ShownResult,
    examine,
    export_request,
    open_request,
    read_release,
    relay_answer,
)
from sealpoint.api._open import open_store
from sealpoint.api._policy import AppliedPolicy, Approvers, apply_policy, approvers
from sealpoint.api._restore import (
    accept_restore,
    export_roster,
    import_roster,
    plan_restore,
    set_restore_quorum,
)
from sealpoint.api._roster import RootRotation, rotate_root, set_pool
from sealpoint.api._status import StatusFault, StoreStatus, store_status
from sealpoint.api._store import Store
from sealpoint.api._trust import export_pin, import_pin, move_store
from sealpoint.api._why import Why, WhyApproval, verify_bundle
from sealpoint.audit import AuditRecord, BundleReport, BundleThread
from sealpoint.store import (
    AcceptedRestore,
    RestorePlan,
    ThreadOutcome,
    ThreadRestore,
    UnverifiedThread,
)

__all__ = [
    "AcceptedRestore",
    "Adopted",
    "AnchorPosition",
    "AppliedPolicy",
    "Approvers",
    "AuditRecord",
    "BundleReport",
    "BundleThread",
    "ExaminedRequest",
    "ExportedRequest",
    "KeyInfo",
    "KeyStatus",
    "RestorePlan",
    "Revocation",
    "RootRotation",
    "Rotation",
    "ShownRelease",
    "ShownResult",
    "Standing",
    "StatusFault",
    "Store",
    "StoreStatus",
    "ThreadOutcome",
    "ThreadRestore",
    "UnverifiedThread",
    "Why",
    "WhyApproval",
    "accept_restore",
    "add_identity",
    "adopt",
    "anchor_positions",
    "apply_policy",
    "approvers",
    "change_passphrase",
    "examine",
    "export_pin",
    "export_request",
    "export_roster",
    "import_pin",
    "import_roster",
    "init",
    "list_keys",
    "move_store",
    "new_key",
    "next_key",
    "open_request",
    "open_store",
    "plan_restore",
    "read_release",
    "relay_answer",
    "revoke_key",
    "rotate_key",
    "rotate_root",
    "set_pool",
    "set_restore_quorum",
    "store_status",
    "take_next_key",
    "verify_bundle",
]
