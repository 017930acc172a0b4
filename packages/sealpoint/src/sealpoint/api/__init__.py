# SPDX-License-Identifier: Apache-2.0
"""The public API for users, composed of the layers below.

The module for opening a store is loaded at once. The modules for administration, for answering
requests elsewhere and for explanations are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sealpoint.api._open import init, open_store
from sealpoint.api._store import Store

if TYPE_CHECKING:
    from sealpoint.api._admin import Admin, RestoreAdmin, admin
    from sealpoint.api._anchor import Adopted, AnchorAdmin, AnchorPosition, AnchorStanding, Joined
    from sealpoint.api._doctor import diagnose_anchor
    from sealpoint.api._key_list import KeyInfo, KeyStatus, PasskeyInfo
    from sealpoint.api._keys import KeyAdmin, Revocation, Rotation
    from sealpoint.api._known_stores import KnownStore, known_stores
    from sealpoint.api._move import MovedStore, MoveProgress
    from sealpoint.api._offline_requests import (
        ExaminedRequest,
        ExportedRequest,
        ShownRelease,
        ShownResult,
        ShownState,
        examine,
        export_request,
        open_bundle,
        open_request,
        read_release,
        relay_answer,
    )
    from sealpoint.api._policy import AppliedPolicy, Approvers, PolicyAdmin
    from sealpoint.api._policy_trial import PolicyTrial, TriedResume
    from sealpoint.api._roster import RootRotation, RosterAdmin
    from sealpoint.api._trust import TrustAdmin
    from sealpoint.api._watch import StoreWatch, ThreadPage, WatchState
    from sealpoint.api._watched_threads import WatchChanges, WatchEvent
    from sealpoint.api._why import Why, WhyApproval, verify_bundle
    from sealpoint.api.checks import Diagnosis, DoctorCheck, DoctorFinding, Severity, StoreFacts
    from sealpoint.audit import AuditRecord, BundleReport, BundleThread
    from sealpoint.store import (
        AcceptedRestore,
        CopiedStore,
        LostDecision,
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
    "CopiedStore",
    "Diagnosis",
    "DoctorCheck",
    "DoctorFinding",
    "ExaminedRequest",
    "ExportedRequest",
    "Joined",
    "KeyAdmin",
    "KeyInfo",
    "KeyStatus",
    "KnownStore",
    "LostDecision",
    "MoveProgress",
    "MovedStore",
    "PasskeyInfo",
    "PolicyAdmin",
    "PolicyTrial",
    "RestoreAdmin",
    "RestorePlan",
    "Revocation",
    "RootRotation",
    "RosterAdmin",
    "Rotation",
    "Severity",
    "ShownRelease",
    "ShownResult",
    "ShownState",
    "Store",
    "StoreFacts",
    "StoreWatch",
    "ThreadOutcome",
    "ThreadPage",
    "ThreadRestore",
    "TriedResume",
    "TrustAdmin",
    "UnverifiedThread",
    "WatchChanges",
    "WatchEvent",
    "WatchState",
    "Why",
    "WhyApproval",
    "admin",
    "diagnose_anchor",
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

# The modules of the other names; those that are most needed and fastest to load come first.
_HOMES = (
    *(
        "sealpoint.api._why",
        "sealpoint.store",
        "sealpoint.audit",
        "sealpoint.api._offline_requests",
    ),
    *(
        "sealpoint.api._policy",
        "sealpoint.api._policy_trial",
        "sealpoint.api._known_stores",
        "sealpoint.api._key_list",
        "sealpoint.api.checks",
    ),
    *("sealpoint.api._keys", "sealpoint.api._roster", "sealpoint.api._trust"),
    *("sealpoint.api._anchor", "sealpoint.api._admin"),
    *("sealpoint.api._move", "sealpoint.api._doctor", "sealpoint.api._watch"),
    *("sealpoint.api._watched_threads", "sealpoint.api.checks"),
)

if not TYPE_CHECKING:  # a type checker would otherwise accept any name

    def __getattr__(name: str) -> Any:
        """Load a public name on its first use."""
        if name in __all__:
            for home in _HOMES:
                module = import_module(home)
                if hasattr(module, name):
                    value = globals()[name] = getattr(module, name)
                    return value
        message = f"module 'sealpoint.api' has no attribute {name!r}"
        raise AttributeError(message)

    def __dir__() -> list[str]:
        """Return the public names, loaded or not."""
        return sorted({*globals(), *__all__})
