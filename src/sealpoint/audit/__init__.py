# SPDX-License-Identifier: Apache-2.0
"""Is the past still what it was? Full verification of a store, with findings."""

from sealpoint.audit._report import Finding, Progress, Report
from sealpoint.audit._verify import verify_store, verify_thread

__all__ = ["Finding", "Progress", "Report", "verify_store", "verify_thread"]
