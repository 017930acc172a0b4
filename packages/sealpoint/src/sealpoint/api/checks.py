# SPDX-License-Identifier: Apache-2.0
"""The checklist of `sealpoint doctor`, and the examination of a store.

A line of the checklist holds if it was checked and nothing was found. If it could not be checked,
it is unanswered, which is a finding of its own. Every finding belongs to a line, except errors,
which keep their own codes. A fix can be executed unchanged: a command line, or SQL for the
administrator of the database. If only a person can supply a value, the command has a shell variable
that it refuses to run without.

A part adds and checks its own lines, by an entry point of `sealpoint.checks` that leads to
`PartChecks`.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from sealpoint import _parts
from sealpoint.anchor import AnchorUrl
from sealpoint.api._policy import Approvers
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
    "StoreFacts",
    "away",
    "error_finding",
    "part_checks",
]


class Severity(StrEnum):
    """How bad a finding is."""

    CRITICAL = "critical"
    """An attacker can read, change or remove protected data, or the store cannot be used."""
    WARNING = "warning"
    """The protection holds now, and one more mistake or theft breaks it."""
    NOTE = "note"
    """Worth knowing; a deployment may intend it."""


_CRITICAL, _WARNING, _NOTE = Severity.CRITICAL, Severity.WARNING, Severity.NOTE

CHECKS: dict[str, tuple[Severity, str]] = {
    # The place of the store, and its surroundings.
    "store-writable": (_CRITICAL, "only those who share the store can write to it"),
    "store-readable": (_WARNING, "only those who share the store can read it"),
    "store-owner": (_CRITICAL, "the files of the store are of the user who uses it"),
    "store-linked": (_WARNING, "the file of the store has one name"),
    "parent-writable": (_CRITICAL, "nobody else can replace a directory on the way"),
    "config-writable": (_CRITICAL, "only this user can change keys, pin and settings"),
    "key-readable": (_CRITICAL, "only this user can read private keys and the anchor's secret"),
    "key-linked": (_WARNING, "the file of a private key has one name"),
    "key-copies": (_WARNING, "no stray copies of private keys exist"),
    "anchor-writable": (_CRITICAL, "only those who share the anchor can change it"),
    "password-readable": (_CRITICAL, "only this user can read files of passwords"),
    "group-modes": (_CRITICAL, "files that a group shares have its modes"),
    "network-disk": (_CRITICAL, "a SQLite store is on a disk of its machine"),
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
    "roster-copy": (_WARNING, "the newest roster is kept next to the keys, for a restore"),
    "pin-stale": (_NOTE, "the pin believes no roster older than the one in force"),
    # The anchor, and time.
    "threads-unanchored": (_CRITICAL, "the anchor knows every thread of the store"),
    "anchors-apart": (_WARNING, "the shared anchor has seen as much as this machine"),
    "anchor-same-disk": (_NOTE, "store and anchor are on different disks, or another is shared"),
    "clock-entries": (_WARNING, "no entry is from the future"),
    # Inputs of runs.
    "runs-unsealed": (_NOTE, "runs read nothing that is not sealed"),
    # People.
    "policy-missing": (_WARNING, "a policy is in force in the namespace"),
    "policy-solo": (_WARNING, "a roster with several people has a policy that asks for approvals"),
    "approvers-missing": (_CRITICAL, "enough people can approve what the policy asks for"),
    # Unanswered lines.
    "not-looked-at": (_NOTE, "everything could be looked at"),
}
"""Code: severity, and the claim that should hold. The documentation explains each. Parts add
more."""

_UNANSWERED = "not-looked-at"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """A problem, and its fix."""

    code: str
    """A code of the checklist, or that of the error that caused the finding."""
    severity: Severity
    reason: str
    """The problem, in a sentence."""
    fix: str
    """A command line, or SQL; empty if there is none."""
    sql: bool = False
    """Whether it is for the administrator of the database, in psql."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """A line of the checklist, and whether it holds."""

    code: str
    claim: str
    holds: bool | None
    """None if it could not be checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFacts:
    """The facts about a store on this machine, as far as they are known."""

    store: str | None = None
    """Its id; None if there is no pin."""
    fingerprint: str | None = None
    """The fingerprint of the pin, for people to compare."""
    keys: tuple[str, ...] = ()
    """The identities whose private keys are here."""
    anchor: str | None = None
    """The directory of this machine's anchor."""
    shared_anchor: str | None = None
    """The URL of the anchor that machines share; None without one."""
    threads: int | None = None
    """How many threads the anchor knows."""
    roster: int | None = None
    """The number of the roster in force."""
    policy: str | None = None
    """The name of the policy in force in the namespace."""
    asks: dict[str, tuple[str, ...]] | None = None
    """The measures that it requires before a run resumes, with the rules of each."""
    approvers: Approvers | None = None
    """The people who can give the approvals that it requires."""
    group: str | None = None
    """The group that this user shares the store with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of `doctor`."""

    url: str
    facts: StoreFacts | None = None
    """None if only a shared anchor was checked."""
    checks: tuple[DoctorCheck, ...] = ()
    """The lines of the checklist that apply to a store like this one."""
    findings: tuple[DoctorFinding, ...] = ()
    """The worst first."""

    @property
    def ok(self) -> bool:
        """Whether nothing is critical: warnings and notes are advice."""
        return all(finding.severity is not Severity.CRITICAL for finding in self.findings)


class Examination:
    """The findings and answers of one examination of a store."""

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
        """Record that a line does not hold."""
        made = DoctorFinding(
            code=code, severity=severity or self._checks[code][0], reason=reason, fix=fix, sql=sql
        )
        self._findings[made] = None
        self._answer(code, holds=False)

    def unanswered(self, codes: tuple[str, ...], reason: str, fix: str) -> None:
        """Record lines that this user cannot answer, and who can."""
        for code in codes:
            self._answer(code, holds=None)
        self.found(_UNANSWERED, reason, fix)

    def failed(self, error: SealpointError) -> None:
        """Record an error as a finding."""
        self._findings[error_finding(error)] = None

    @contextmanager
    def look(self, *codes: str) -> Iterator[None]:
        """Answer lines: they hold unless the block finds a problem, or cannot check."""
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
        """Answer a line, unless a worse answer exists."""
        before = self._answers.get(code, True)
        self._answers[code] = next(each for each in (False, None, True) if each in (before, holds))

    def diagnosis(self, facts: StoreFacts | None = None) -> Diagnosis:
        """Return the result of the examination."""
        self._answers.setdefault(_UNANSWERED, True)
        order = [*Severity]
        return Diagnosis(
            url=self._url,
            facts=facts,
            checks=tuple(
                DoctorCheck(code=code, claim=claim, holds=self._answers[code])
                for code, (_, claim) in self._checks.items()
                if code in self._answers
            ),
            findings=tuple(sorted(self._findings, key=lambda each: order.index(each.severity))),
        )


class Commands(Protocol):
    """Makes command lines for the examined store."""

    def sealpoint(self, *words: str, store: str | None = None) -> str:
        """Return a command line of Sealpoint, for the store or for another URL of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The store, the shared anchor, or both, for a part to examine."""

    store: StoreUrl | None
    anchor: AnchorUrl | None
    commands: Commands
    """Makes the command lines of fixes."""
    works_here: bool
    """Whether this machine has the key of a worker."""
    config_dir: Path | None = None
    """The directory of pins and keys; None if only a shared anchor is examined."""
    state_dir: Path | None = None
    """The directory of the local anchor, likewise."""
    store_password: Callable[[], str] | None = field(default=None, repr=False)
    anchor_password: Callable[[], str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChecks:
    """The checks that a part adds to the checklist."""

    lines: Mapping[str, tuple[Severity, str]]
    """As `CHECKS`."""
    look: Callable[[Examination, Examined], None]
    """Checks the lines of the part; does nothing if the part is not in use."""


def part_checks() -> tuple[PartChecks, ...]:
    """Return the checks that installed parts add to the checklist."""
    found = []
    for name in _parts.installed_names(_parts.CHECKS):
        with suppress(ExtraMissing):  # a part that cannot be loaded has no store here
            found.append(_parts.load(_parts.CHECKS, name))
    return tuple(found)


def error_finding(error: SealpointError) -> DoctorFinding:
    """Return the finding for an error."""
    return DoctorFinding(
        code=error.code,
        severity=Severity.CRITICAL,
        reason=error.message,
        fix=_command_in(error.hint or ""),
    )


_PROGRAMS = ("chgrp", "chmod", "chown", "mkdir", "sealpoint", "sudo")


def _command_in(hint: str) -> str:
    """Return the command line in a hint, or the hint unchanged."""
    for program in _PROGRAMS:
        before, found, rest = hint.partition(f": {program} ")
        if found and program not in before:
            return f"{program} {rest}".partition(". ")[0].removesuffix(".")
    return hint


def away(path: str) -> str:
    """Return the command that moves a file to a medium that only a person can name."""
    return f'mv -n -- {shlex.quote(path)} "${{OFFLINE:?the directory of another medium}}"/'
