# SPDX-License-Identifier: Apache-2.0
"""Audit: verify the history of a store, show who did what, and export proof of it."""

from sealpoint.audit._bundle import export_bundle
from sealpoint.audit._bundle_check import BundleReport, BundleThread, fill_storage, verify_bundle
from sealpoint.audit._report import (
    CALLED_IDEMPOTENT,
    QUESTION_PASSED,
    UNJUSTIFIED,
    Finding,
    Progress,
    Report,
)
from sealpoint.audit._timeline import TimelineEntry, TimelinePage, read_timeline
from sealpoint.audit._trail import (
    NOT_RELEASED,
    AuditRecord,
    audit_trail,
    record_of,
    select_threads,
    store_chain_record,
)
from sealpoint.audit._verify import verify_store, verify_thread

__all__ = [
    "CALLED_IDEMPOTENT",
    "NOT_RELEASED",
    "QUESTION_PASSED",
    "UNJUSTIFIED",
    "AuditRecord",
    "BundleReport",
    "BundleThread",
    "Finding",
    "Progress",
    "Report",
    "TimelineEntry",
    "TimelinePage",
    "audit_trail",
    "export_bundle",
    "fill_storage",
    "read_timeline",
    "record_of",
    "select_threads",
    "store_chain_record",
    "verify_bundle",
    "verify_store",
    "verify_thread",
]
