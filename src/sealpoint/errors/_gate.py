# SPDX-License-Identifier: Apache-2.0
"""Pausing, approving and resuming: when the gate does not say yes, or evidence of it is none."""

from datetime import datetime
from typing import Any, Protocol

from sealpoint.errors._root import SealpointError
from sealpoint.errors._usage import UsageError

__all__ = [
    "AskedRequest",
    "BundleInvalid",
    "Busy",
    "NeedsApproval",
    "Paused",
    "PolicyInvalid",
    "RequestClosed",
    "ResumeRefused",
    "UnknownEntry",
    "UnknownRequest",
    "WorldInvalid",
]


class AskedRequest(Protocol):
    """What an error shows of a `sealpoint.gate.Request`, which lies in a higher layer."""

    @property
    def id(self) -> str:
        """What approvers sign, and what the request is called."""

    @property
    def short(self) -> str:
        """The first digits of the id, for people to compare."""

    @property
    def thread(self) -> str:
        """The name of the thread."""

    @property
    def asked_at(self) -> datetime:
        """When it was asked."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it needs approval, one sentence each."""

    @property
    def answer(self) -> Any:
        """What the run would be answered."""

    @property
    def world(self) -> dict[str, Any] | None:
        """What the run would be able to do."""

    @property
    def status(self) -> str:
        """How it stands."""

    @property
    def approved_by(self) -> tuple[str, ...]:
        """Whose approvals count, one for each person."""

    @property
    def denied_by(self) -> tuple[str, ...]:
        """Whose denials count."""

    @property
    def needed(self) -> int:
        """How many approvals the policy asks for."""


class ResumeRefused(SealpointError):
    """The gate does not let this run go on; `.reasons` says why, one sentence each."""

    code = "resume-refused"
    exit_status = 70
    hint = "sealpoint resume THREAD shows what the gate says, and the policy what would change it."

    def __init__(
        self, message: str, *, reasons: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.reasons = reasons


class NeedsApproval(SealpointError):
    """Other people have to approve this first; `.request` is what they are asked."""

    code = "needs-approval"
    exit_status = 71
    hint = "sealpoint requests lists what is open, sealpoint approve ID answers it; then resume."

    def __init__(
        self,
        message: str,
        *,
        request: AskedRequest,
        reasons: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.request = request
        self.reasons = reasons


class Paused(SealpointError):
    """An operator has paused the thread: nothing is saved or resumed until it is unpaused."""

    code = "paused"
    exit_status = 72
    hint = "Keep the state and save it after sealpoint unpause; the session goes on then."


class Busy(SealpointError):
    """Another session of the thread is too young to be taken over."""

    code = "busy"
    exit_status = 73
    hint = "Wait until it has ended or is old enough; the policy says how old (takeover_after)."


class UnknownRequest(SealpointError):
    """There is no such open request."""

    code = "unknown-request"
    exit_status = 74
    hint = (
        "sealpoint requests lists the open ones; once a thread has gone on, sealpoint why ID tells "
        "what became of it."
    )


class UnknownEntry(SealpointError):
    """There is no entry, and no request, of these digits."""

    code = "unknown-entry"
    exit_status = 78
    hint = "sealpoint audit lists every entry with its digits, sealpoint requests --all requests."


class RequestClosed(SealpointError):
    """The request was denied, has expired, or is void because the thread or policy moved on."""

    code = "request-closed"
    exit_status = 75
    hint = "Resume, or propose the rollout, again: that makes a new request, for what is there now."


class PolicyInvalid(SealpointError):
    """A policy is not one, or not the one that the roster names."""

    code = "policy-invalid"
    exit_status = 76
    hint = "sealpoint policy check FILE says what is wrong; policy show --name solo prints one."


class WorldInvalid(UsageError):
    """A world does not say what a run can do in a way that can be compared."""

    code = "world-invalid"
    exit_status = 2
    hint = "Give each tool its whole definition; the guide to resuming shows a world."


class BundleInvalid(SealpointError):
    """An evidence bundle does not prove what it says."""

    code = "bundle-invalid"
    exit_status = 77
    hint = "Do not rely on it: ask for a new export, and compare the pin with its origin."
