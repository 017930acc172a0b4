# SPDX-License-Identifier: Apache-2.0
"""How a store stands on this machine: keys, anchor, policy, who can approve, modes of files.

Faults are what has to be repaired before it can be used. Whether it is set up as production asks
for is another question: the checklist of it is here, as `CHECKS`, and `_doctor.py` answers it. A
line of it holds if it was looked at and nothing was found, and is unanswered if it could not be
looked at, which is a finding of its own. No finding is no line of it, but for errors, which keep
their own codes. A fix is something to execute as it stands: a command line, or SQL for whoever
administers the database. Where only a person can say what is meant, the command has a variable of
the shell that it refuses to run without.

It only looks. What cannot be found out is a fault among the others and no exception, so that
whoever has several things to repair is told all of them.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

from sealpoint.api._location import Directory, StoreLocation, now
from sealpoint.api._policy import Approvers, policy_in_force, who_can_approve
from sealpoint.config import (
    Group,
    Settings,
    StoreFiles,
    StoreUrl,
    group_faults,
    known_urls,
    load_settings,
    store_password,
)
from sealpoint.errors import DirectoryUnusable, SealpointError
from sealpoint.gate import Policy
from sealpoint.signing import TrustPin


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFault:
    """Something to repair."""

    code: str
    """As that of the error which it is or would be."""
    exit_status: int
    message: str
    repair: str
    """A command, or what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """How a store stands on this machine."""

    url: str
    store: str | None = None
    """Its id; None if there is no pin to say it."""
    fingerprint: str | None = None
    """Of the pin, for people to compare."""
    keys: tuple[str, ...] = ()
    """The identities whose private keys are here."""
    anchor: str | None = None
    """The directory of this machine's anchor."""
    shared_anchor: str | None = None
    """The URL of the anchor that other machines ask too, if there is one."""
    threads: int | None = None
    """How many threads the anchor knows."""
    roster: int | None = None
    """The number of the roster in force."""
    policy: str | None = None
    """The name of the policy in force in the namespace."""
    asks: dict[str, tuple[str, ...]] | None = None
    """What it asks for before a run goes on, and by which rules."""
    approvers: Approvers | None = None
    """Who can approve what it asks for."""
    group: str | None = None
    """The group that this user shares the store with."""
    faults: tuple[StatusFault, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is nothing to repair."""
        return not self.faults


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownStore:
    """A store that this machine has files for."""

    url: str
    store: str | None = None
    """Its id, as the pin says; None if there is no pin."""
    keys: tuple[str, ...] = ()
    """The identities whose private keys are here."""
    anchor: bool = False
    """Whether its anchor is here."""
    data: bool | None = None
    """Whether there is something where the URL leads; None if that cannot be told."""
    fault: str = ""
    """Why no more is known."""


def known_stores(
    *, config_dir: Directory = None, state_dir: Directory = None
) -> tuple[KnownStore, ...]:
    """The stores that this machine has files for. Writes nothing, and opens no store and no key.

    Args:
        config_dir: Where keys and pins lie, instead of the user's configuration directory.
        state_dir: Where anchors lie, instead of the user's state directory.
    """
    settings = load_settings(config_dir=config_dir, state_dir=state_dir)
    return tuple(_known_store(settings, url) for url in known_urls(settings))


def _known_store(settings: Settings, text: str) -> KnownStore:
    found = KnownStore(url=text)
    try:
        url = StoreUrl.parse(text)
        files = StoreFiles.find(settings, url)
        found = replace(found, keys=tuple(files.keys.names()))
        found = replace(found, data=not url.is_vacant(url.target(), store_password(None)))
        store = files.pin().store
        anchor = files.anchor_directory(store).is_dir()
        return replace(found, store=str(store), anchor=anchor)
    except SealpointError as error:
        return replace(found, fault=error.message)


def check_status(location: StoreLocation, identity: str | None, namespace: str) -> StoreStatus:
    """Look at everything that has to be in order, whatever the outcome of each look."""
    files = location.files
    faults: list[StatusFault] = []
    found = StoreStatus(url=str(location.url))
    pin: TrustPin | None = None
    group: Group | None = None
    with _noting(faults):
        group = files.group()
        found = replace(found, group=None if group is None else group.name)
        shared = files.shared_anchor.url()
        found = replace(found, shared_anchor=None if shared is None else str(shared))
        pin = files.pin()
        found = replace(found, store=str(pin.store), fingerprint=str(pin.fingerprint()))
        found = replace(found, keys=tuple(files.keys.names()))
    for name in sorted({*found.keys, *(() if identity is None else (identity,))}):
        with _noting(faults):
            files.keys.facts(name, mounted=True)
    if pin is not None:
        anchor = files.anchor_directory(pin.store)
        found = replace(found, anchor=str(anchor))
        if group is not None:
            with _noting(faults):
                faults += _mode_faults(location, group)
        with _noting(faults), location.open_core(read_only=True) as core:
            chain = core.renewed_trust()
            threads = sum(1 for _ in core.anchor.slots()) - 1
            found = replace(found, threads=threads, roster=chain.roster.seq)
            policy = policy_in_force(core, chain, namespace)
            found = replace(
                found,
                policy=None if policy is None else policy.name,
                asks=_asks(policy),
                approvers=who_can_approve(chain.roster, policy, namespace, now()),
            )
    return replace(found, faults=tuple(faults))


@contextmanager
def _noting(faults: list[StatusFault]) -> Iterator[None]:
    """Note what went wrong in the block, and go on after it."""
    try:
        yield
    except SealpointError as error:
        faults.append(_fault(error))


def _asks(policy: Policy | None) -> dict[str, tuple[str, ...]]:
    """What a policy asks for, with the rules that do, the strictest first."""
    found: dict[str, tuple[str, ...]] = {}
    rules = {} if policy is None else policy.rules
    for measure in sorted({each for each in rules.values() if not each.passes}, reverse=True):
        found[str(measure)] = tuple(str(rule) for rule, each in rules.items() if each == measure)
    return found


def _mode_faults(location: StoreLocation, group: Group) -> list[StatusFault]:
    """What about the modes keeps members of the group out, or lets others in."""
    return [
        StatusFault(
            code=DirectoryUnusable.code,
            exit_status=DirectoryUnusable.exit_status,
            message=message,
            repair=repair,
        )
        for message, repair in group_faults(group, *location.shared_paths())
    ]


def _fault(error: SealpointError) -> StatusFault:
    return StatusFault(
        code=error.code,
        exit_status=error.exit_status,
        message=error.message,
        repair=error.hint or "",
    )


# What doctor can find.


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
    "clock-database": (_WARNING, "the clocks of this machine and of the database agree"),
    # What runs read.
    "runs-unsealed": (_NOTE, "runs read nothing that is not sealed"),
    # People.
    "policy-missing": (_WARNING, "a policy is in force in the namespace"),
    "policy-solo": (_WARNING, "where several people are, others are asked"),
    "approvers-missing": (_CRITICAL, "enough people can approve what the policy asks for"),
    # A PostgreSQL database.
    "not-provisioned": (_CRITICAL, "the database has a role for each duty"),
    "database-roles": (_CRITICAL, "the roles of duties are members of nothing"),
    "database-logins": (_CRITICAL, "each login has one duty and is bounded"),
    "database-owner": (_CRITICAL, "schema and tables are the owner's, and all there"),
    "database-grants": (_CRITICAL, "nobody may do more or less than their duty"),
    "row-security": (_CRITICAL, "row security is on and forced, with the policies of each login"),
    "default-privileges": (_WARNING, "new tables are open to nobody else"),
    "database-triggers": (_CRITICAL, "nothing runs when rows of the store are written"),
    "database-objects": (_WARNING, "nothing else lies in the schema"),
    "login-powerful": (_CRITICAL, "no login of the store is a superuser, or spared row security"),
    "login-owner": (_WARNING, "workers do not log in as the owner"),
    "others-write": (_CRITICAL, "no other role can write to the tables"),
    "others-read": (_WARNING, "no other role can read the tables"),
    "superusers": (_NOTE, "the server has one superuser"),
    "tls-off": (_CRITICAL, "what goes to another machine is encrypted"),
    "tls-unverified": (_WARNING, "a server on another machine proves its name"),
    "server-listens": (_WARNING, "the server listens to other machines by TLS alone"),
    "hba-trust": (_CRITICAL, "everybody has to prove who they are, without sending a password"),
    "hba-everywhere": (_WARNING, "nobody logs in from anywhere without TLS"),
    "password-md5": (_WARNING, "the server keeps passwords by SCRAM"),
    "fsync-off": (_CRITICAL, "the server waits for the disk (fsync, full_page_writes)"),
    "commit-not-durable": (_WARNING, "a commit is on the disk when it is acknowledged"),
    "no-standby": (_NOTE, "a synchronous standby has what was acknowledged"),
    "server-old": (_WARNING, "the server is of a version that is looked after"),
    "anchor-same-server": (_WARNING, "the shared anchor is on another server than the store"),
    "anchor-same-login": (_CRITICAL, "store and shared anchor have different logins"),
    "anchor-open": (_CRITICAL, "the store's login has nothing of the shared anchor"),
    # What could not be answered.
    "not-looked-at": (_NOTE, "everything could be looked at"),
}
"""Code: how bad it is, and what should be so. Each is explained in the documentation."""


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

    def __init__(self, url: str) -> None:
        self._url = url
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
            code=code, severity=severity or CHECKS[code][0], reason=reason, fix=fix, sql=sql
        )
        self._findings[made] = None
        self._answer(code, holds=False)

    def unanswered(self, codes: tuple[str, ...], reason: str, fix: str) -> None:
        """Note lines that this user cannot answer, and who can."""
        for code in codes:
            self._answer(code, holds=None)
        self.found("not-looked-at", reason, fix)

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
                "not-looked-at",
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
        self._answers.setdefault("not-looked-at", True)
        order = [*Severity]
        return Diagnosis(
            url=self._url,
            checks=tuple(
                DoctorCheck(code=code, claim=claim, holds=self._answers[code])
                for code, (_, claim) in CHECKS.items()
                if code in self._answers
            ),
            findings=tuple(sorted(self._findings, key=lambda each: order.index(each.severity))),
        )


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
