# SPDX-License-Identifier: Apache-2.0
"""The face: what users hold, composed of everything below."""

from sealpoint.api._adopt import Adopted, adopt
from sealpoint.api._anchor import AnchorPosition, Standing, anchor_positions
from sealpoint.api._approvers import Approvers, approvers
from sealpoint.api._examine import Examined, ShownRelease, ShownResult, examine, read_release
from sealpoint.api._init import init
from sealpoint.api._key_list import KeyInfo, KeyStatus, list_keys
from sealpoint.api._keys import add_identity, new_key
from sealpoint.api._offline import ExportedRequest, export_request, open_request, relay_answer
from sealpoint.api._open import open_store
from sealpoint.api._passphrase import change_passphrase
from sealpoint.api._policy import AppliedPolicy, apply_policy
from sealpoint.api._pools import set_pool
from sealpoint.api._restore import (
    accept_restore,
    export_roster,
    import_roster,
    plan_restore,
    set_restore_quorum,
)
from sealpoint.api._review import verify_bundle
from sealpoint.api._revoke import Revocation, revoke_key
from sealpoint.api._roots import RootRotation, rotate_root
from sealpoint.api._rotate import Rotation, next_key, rotate_key, take_next_key
from sealpoint.api._status import StatusFault, StoreStatus, store_status
from sealpoint.api._store import Store
from sealpoint.api._trust import export_pin, import_pin, move_store
from sealpoint.api._why_report import Why, WhyApproval
from sealpoint.audit import AuditRecord, BundleReport, BundleThread
from sealpoint.store import AcceptedRestore, Doubt, RestorePlan, ThreadOutcome, ThreadRestore

__all__ = [
    "AcceptedRestore",
    "Adopted",
    "AnchorPosition",
    "AppliedPolicy",
    "Approvers",
    "AuditRecord",
    "BundleReport",
    "BundleThread",
    "Doubt",
    "Examined",
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
