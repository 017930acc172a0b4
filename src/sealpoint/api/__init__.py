# SPDX-License-Identifier: Apache-2.0
"""The face: what users hold, composed of everything below."""

from sealpoint.api._admin import Admin, RestoreAdmin, admin
from sealpoint.api._anchor import Adopted, AnchorAdmin, AnchorPosition, AnchorStanding
from sealpoint.api._init import init
from sealpoint.api._key_list import KeyInfo, KeyStatus
from sealpoint.api._keys import KeyAdmin, Revocation, Rotation
from sealpoint.api._offline import (
    ExaminedRequest,
    ExportedRequest,
    ShownRelease,
    ShownResult,
    examine,
    export_request,
    open_bundle,
    open_request,
    read_release,
    relay_answer,
)
from sealpoint.api._open import open_store
from sealpoint.api._policy import AppliedPolicy, Approvers, PolicyAdmin
from sealpoint.api._roster import RootRotation, RosterAdmin
from sealpoint.api._status import KnownStore, StatusFault, StoreStatus, known_stores
from sealpoint.api._store import Store
from sealpoint.api._trust import TrustAdmin
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
    "Admin",
    "Adopted",
    "AnchorAdmin",
    "AnchorPosition",
    "AnchorStanding",
    "AppliedPolicy",
    "Approvers",
    "AuditRecord",
    "BundleReport",
    "BundleThread",
    "ExaminedRequest",
    "ExportedRequest",
    "KeyAdmin",
    "KeyInfo",
    "KeyStatus",
    "KnownStore",
    "PolicyAdmin",
    "RestoreAdmin",
    "RestorePlan",
    "Revocation",
    "RootRotation",
    "RosterAdmin",
    "Rotation",
    "ShownRelease",
    "ShownResult",
    "StatusFault",
    "Store",
    "StoreStatus",
    "ThreadOutcome",
    "ThreadRestore",
    "TrustAdmin",
    "UnverifiedThread",
    "Why",
    "WhyApproval",
    "admin",
    "examine",
    "export_request",
    "init",
    "known_stores",
    "open_bundle",
    "open_request",
    "open_store",
    "read_release",
    "relay_answer",
    "verify_bundle",
]
