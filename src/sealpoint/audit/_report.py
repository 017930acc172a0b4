# SPDX-License-Identifier: Apache-2.0
"""What a full verification says."""

from dataclasses import dataclass

__all__ = ["UNJUSTIFIED", "Finding", "Progress", "Report", "nonsense"]

UNJUSTIFIED = "unjustified"
"""The code of a finding about a resume or handoff that the policy of its time did not allow, or
about an entry that says nothing."""


def nonsense(seq: int, kind: str, writer: str) -> str:
    """What is said of an entry whose body is as it was sealed, and cannot be read."""
    return (
        f"entry {seq}: expected the fields of a {kind}, found what {writer!r} sealed and nobody "
        "can read; it counts for nothing"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it was written, or worth a look."""

    code: str
    """The code of the error that a reader would get; `time` for a clock that went back,
    `key-expiry` for a key that has expired or soon will, and `unjustified` for a resume or handoff
    that the policy of its time did not allow, or an entry about a request that says nothing."""
    thread: str
    """The thread's id in hexadecimal; zeros for the store chain."""
    name: str = ""
    """What the thread calls itself, if that could be read: a claim where it was tampered with."""
    message: str
    refuses: bool = True
    """Whether a read would be refused; otherwise it is only worth a look."""

    def as_dict(self) -> dict[str, str | bool]:
        """The JSON form."""
        return {
            "code": self.code,
            "thread": self.thread,
            "name": self.name,
            "message": self.message,
            "refuses": self.refuses,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a verification has come."""

    threads: int
    threads_total: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a full verification."""

    ok: bool
    """Whether no finding refuses anything, and every resume and handoff was justified."""
    entries: int
    """How many entries verified."""
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "ok": self.ok,
            "entries": self.entries,
            "findings": [finding.as_dict() for finding in self.findings],
        }
