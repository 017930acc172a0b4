# SPDX-License-Identifier: Apache-2.0
"""The checklist of `sealpoint doctor`, and what an examination of a store notes.

A line of the checklist holds if it was looked at and nothing was found, and is unanswered if it
could not be looked at, which is a finding of its own. No finding is no line of it, but for errors,
which keep their own codes. A fix is something to execute as it stands: a command line, or SQL for
whoever administers the database. Where only a person can say what is meant, the command has a
variable of the shell that it refuses to run without.

A part adds lines of its own, and looks at them, by an entry point of `sealpoint.checks` that leads
to `PartChecks`.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from sealpoint import _parts
from sealpoint.anchor import AnchorUrl
from sealpoint.config import StoreUrl
from sealpoint.errors import ExtraMissing, SealpointError

__all__ = [
    "CHECKS",
    "Commands",
    "Diagnosis",
    "DoctorCheck",
    "DoctorFinding",
    "Examination",
    "Examined",
    "PartChecks",
    "Severity",
    "away",
    "error_finding",
    "part_checks",
]


class Severity(StrEnum):
    """How bad a finding is."""

    CRITICAL = "critical"
    """Somebody can read, change or lose what they should not, or the store cannot be used."""
    WARNING = "warning"
    """It holds today, and one mistake or theft more breaks it."""
    NOTE = "note"
    """Worth knowing; a deployment may be meant so."""


_CRITICAL, _WARNING, _NOTE = Severity.CRITICAL, Severity.WARNING, Severity.NOTE

CHECKS: dict[str, tuple[Severity, str]] = {
    # The place of the store, and what lies around it.
    "store-writable": (_CRITICAL, "only those who share the store can write to it"),
    "store-readable": (_WARNING, "only those who share the store can read it"),
    "store-owner": (_CRITICAL, "the files of the store are of the user who uses it"),
    "store-linked": (_WARNING, "the file of the store has one name"),
    "parent-writable": (_CRITICAL, "nobody else can replace a directory on the way"),
    "config-writable": (_CRITICAL, "only this user can change keys, pin and settings"),
    "key-readable": (_CRITICAL, "only this user can read private keys and the anchor's secret"),
    "key-linked": (_WARNING, "the file of a private key has one name"),
    "key-copies": (_WARNING, "no copies of private keys lie about"),
    "anchor-writable": (_CRITICAL, "only those who share the anchor can change it"),
    "password-readable": (_CRITICAL, "only this user can read files of passwords"),
    "group-modes": (_CRITICAL, "files that a group shares have its modes"),
    "network-disk": (_CRITICAL, "a SQLite store lies on a disk of its machine"),
    "disk-space": (_WARNING, "the disks of store and anchor have space left"),
    # Keys.
    "root-here": (_WARNING, "the root's private key is kept elsewhere"),
    "duties-together": (
        _WARNING,
        "keys of workers and of those who approve or operate are on different machines",
    ),
    "key-unlocked": (_WARNING, "the private keys of people have passphrases"),
    "key-unlisted": (_NOTE, "every private key here is one of the roster, or of the root"),
    "key-expired": (_CRITICAL, "no key of the roster has expired"),
    "key-expires-soon": (_WARNING, "every key of the roster is valid for 30 days at least"),
    "key-without-expiry": (_NOTE, "every key of the roster expires, so that it is rotated"),
    "roster-copy": (_WARNING, "the newest roster is kept beside the keys, for a restore"),
    "pin-stale": (_NOTE, "the pin believes no roster older than the one in force"),
    # The anchor, and time.
    "threads-unanchored": (_CRITICAL, "the anchor knows every thread of the store"),
    "anchors-apart": (_WARNING, "the shared anchor has seen as much as this machine"),
    "anchor-same-disk": (_NOTE, "store and anchor are on different disks, or another is shared"),
    "clock-entries": (_WARNING, "no entry is from the future"),
    # What runs read.
    "runs-unsealed": (_NOTE, "runs read nothing that is not sealed"),
    # People.
    "policy-missing": (_WARNING, "a policy is in force in the namespace"),
    "policy-solo": (_WARNING, "where several people are, others are asked"),
    "approvers-missing": (_CRITICAL, "enough people can approve what the policy asks for"),
    # What could not be answered.
    "not-looked-at": (_NOTE, "everything could be looked at"),
}
"""Code: how bad it is, and what should be so. Each is explained in the documentation. Parts add
more."""

_UNANSWERED = "not-looked-at"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """Something that is not as it should be, and what mends it."""

    code: str
    """One of the checklist, or that of the error which it is."""
    severity: Severity
    reason: str
    """What was found, in a sentence."""
    fix: str
    """A command line, or SQL; empty if there is none."""
    sql: bool = False
    """Whether it is for the administrator of the database, in psql."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """A line of the checklist, and whether it is so."""

    code: str
    claim: str
    holds: bool | None
    """None if it could not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What `doctor` found."""

    url: str
    checks: tuple[DoctorCheck, ...] = ()
    """The lines of the checklist that are about a store like this one."""
    findings: tuple[DoctorFinding, ...] = ()
    """The worst first."""

    @property
    def ok(self) -> bool:
        """Whether there is nothing above a note."""
        return all(finding.severity is Severity.NOTE for finding in self.findings)


class Examination:
    """The findings and answers of one look at a store."""

    def __init__(self, url: str, parts: "Sequence[PartChecks]" = ()) -> None:
        self._url = url
        self._checks = {code: line for code, line in CHECKS.items() if code != _UNANSWERED}
        for part in parts:
            self._checks.update(part.lines)
        self._checks[_UNANSWERED] = CHECKS[_UNANSWERED]
        self._answers: dict[str, bool | None] = {}
        self._findings: dict[DoctorFinding, None] = {}

    def found(
        self,
        code: str,
        reason: str,
        fix: str = "",
        *,
        sql: bool = False,
        severity: Severity | None = None,
    ) -> None:
        """Note that a line does not hold."""
        made = DoctorFinding(
            code=code, severity=severity or self._checks[code][0], reason=reason, fix=fix, sql=sql
        )
        self._findings[made] = None
        self._answer(code, holds=False)

    def unanswered(self, codes: tuple[str, ...], reason: str, fix: str) -> None:
        """Note lines that this user cannot answer, and who can."""
        for code in codes:
            self._answer(code, holds=None)
        self.found(_UNANSWERED, reason, fix)

    def failed(self, error: SealpointError) -> None:
        """Note an error as the finding that it is."""
        self._findings[error_finding(error)] = None

    @contextmanager
    def look(self, *codes: str) -> Iterator[None]:
        """Answer lines: they hold unless the block finds something, or cannot look."""
        try:
            yield
        except SealpointError as error:
            self.failed(error)
            holds: bool | None = None
        except OSError as error:
            path = str(error.filename or ".")
            why = error.strerror or type(error).__name__
            self.found(
                _UNANSWERED,
                f"{path}: it cannot be looked at: {why}",
                f"ls -ld -- {shlex.quote(path)}",
            )
            holds = None
        else:
            holds = True
        for code in codes:
            self._answer(code, holds=holds)

    def _answer(self, code: str, *, holds: bool | None) -> None:
        """Answer a line, unless an answer that is worse is there."""
        before = self._answers.get(code, True)
        self._answers[code] = next(each for each in (False, None, True) if each in (before, holds))

    def diagnosis(self) -> Diagnosis:
        """What it came to."""
        self._answers.setdefault(_UNANSWERED, True)
        order = [*Severity]
        return Diagnosis(
            url=self._url,
            checks=tuple(
                DoctorCheck(code=code, claim=claim, holds=self._answers[code])
                for code, (_, claim) in self._checks.items()
                if code in self._answers
            ),
            findings=tuple(sorted(self._findings, key=lambda each: order.index(each.severity))),
        )


class Commands(Protocol):
    """Command lines for the store that is looked at."""

    def sealpoint(self, *words: str, store: str | None = None) -> str:
        """A verb of the command line, for the store or another way to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The store, the shared anchor, or both, that a part may look at."""

    store: StoreUrl | None
    anchor: AnchorUrl | None
    commands: Commands
    """Writes the command lines of fixes."""
    works_here: bool
    """Whether this machine has the key of a worker."""
    store_password: Callable[[], str] | None = field(default=None, repr=False)
    anchor_password: Callable[[], str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChecks:
    """The checks that a part adds to the checklist."""

    lines: Mapping[str, tuple[Severity, str]]
    """As `CHECKS`."""
    look: Callable[[Examination, Examined], None]
    """Looks at what the part knows, and at nothing if that is not in use."""


def part_checks() -> tuple[PartChecks, ...]:
    """The checks that installed parts add to the checklist."""
    found = []
    for name in _parts.installed_names(_parts.CHECKS):
        with suppress(ExtraMissing):  # a part that cannot be loaded has no store here either
            found.append(_parts.load(_parts.CHECKS, name))
    return tuple(found)


def error_finding(error: SealpointError) -> DoctorFinding:
    """The finding that an error is."""
    return DoctorFinding(
        code=error.code,
        severity=Severity.CRITICAL,
        reason=error.message,
        fix=_command_in(error.hint or ""),
    )


_PROGRAMS = ("chgrp", "chmod", "chown", "mkdir", "sealpoint", "sudo")


def _command_in(hint: str) -> str:
    """The command line in a hint, or the hint as it is."""
    for program in _PROGRAMS:
        before, found, rest = hint.partition(f": {program} ")
        if found and program not in before:
            return f"{program} {rest}".partition(". ")[0].removesuffix(".")
    return hint


def away(path: str) -> str:
    """The command that brings a file to a medium which only a person can name."""
    return f'mv -n -- {shlex.quote(path)} "${{OFFLINE:?the directory of another medium}}"/'
