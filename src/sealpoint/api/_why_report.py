# SPDX-License-Identifier: Apache-2.0
"""What an explanation of a decision says."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sealpoint.audit import AuditRecord
from sealpoint.gate import Policy, Reason

__all__ = ["Why", "WhyApproval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyApproval:
    """One person's word on a request."""

    identity: str
    """Empty if nobody of the roster said it."""
    person: str
    time: datetime
    """When it was recorded."""
    verdict: str
    reason: str
    counts: bool
    """Whether it counted, by the roster of the decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why something was decided as it was."""

    subject: AuditRecord
    """The entry that was asked about; of a request, the entry that made it."""
    decision: str
    """What was decided, in a sentence."""
    rules: tuple[Reason, ...]
    """Every rule that applied, with its measure by the policy of that time."""
    facts: tuple[tuple[str, str], ...]
    """What it was decided on, each with its name."""
    policy: Policy | None
    """The policy of that time, with its text in `source`; None if none was named, or it is gone."""
    approvals: tuple[WhyApproval, ...]
    entries: tuple[AuditRecord, ...]
    """The entries that it rests on, oldest first."""
    unjustified: tuple[str, ...]
    """What the policy of that time did not allow, as the audit finds it."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        policy = self.policy
        return {
            "subject": self.subject.as_dict(),
            "decision": self.decision,
            "rules": [each.as_dict() for each in self.rules],
            "facts": dict(self.facts),
            "policy": None
            if policy is None
            else {
                "name": policy.name,
                "digest": policy.digest,
                "text": policy.source.decode(),
            },
            "approvals": [
                {
                    "identity": each.identity,
                    "person": each.person,
                    "time": each.time.isoformat(),
                    "verdict": each.verdict,
                    "reason": each.reason,
                    "counts": each.counts,
                }
                for each in self.approvals
            ],
            "entries": [each.as_dict() for each in self.entries],
            "unjustified": list(self.unjustified),
        }
