# SPDX-License-Identifier: Apache-2.0
"""The facts about a store on this machine, and the checks of its setup.

The module examines the real state, writes nothing and opens no private key; `checks.py` has the
checklist, to which parts add lines. A check that cannot run becomes a finding and raises no
exception. A finding is about this machine and this user: an operator's machine may have a key that
a worker's machine must not have.

Every fix names the examined store and directories, so that it can be executed unchanged.
"""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from sealpoint.api._anchor import AnchorStanding, anchor_positions
from sealpoint.api._key_list import KeyInfo, KeyListing, KeyStatus
from sealpoint.api._policy import policy_in_force, who_can_approve
from sealpoint.api._store_location import StoreLocation, now
from sealpoint.api.checks import (
    Diagnosis,
    Examination,
    Examined,
    PartChecks,
    Severity,
    StoreFacts,
    away,
    part_checks,
)
from sealpoint.config import (
    PasswordSource,
    anchor_password,
    group_faults,
    kept_roster_entries,
    load_settings,
    parse_anchor_url,
    password_files,
)
from sealpoint.errors import SealpointError
from sealpoint.gate import Policy
from sealpoint.ledger import STORE_CHAIN, Kind, ResumeBody, StoreChain, parse_body, parse_header
from sealpoint.signing import KeyFacts, Role
from sealpoint.store import Core, all_threads

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_FILES_MAX = 10_000
_SPACE_BYTES_MIN = 256 << 20
_AHEAD_MAX = timedelta(minutes=5)
_EXPIRES = ("--expires", "365d")
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\.(key|next)")
_KEY_COPY = re.compile(r".*\.(key|next)([^a-z].*)?|.*(~|\.(bak|old|orig|copy|save|swp))", re.DOTALL)
_DRAFT = ".new-"
_NETWORK = re.compile(r"(fuse\.)?(nfs\d?|cifs|smb\w*|sshfs|ceph|glusterfs|lustre|afs|s3fs|9p)")
_MOUNTS = Path("/proc/self/mountinfo")
_OF_PEOPLE = ("policy-missing", "policy-solo", "approvers-missing")
# Only a store that can be opened answers these.
_OF_STORE = (
    *("root-here", "duties-together", "key-unlocked", "key-unlisted", "key-expired"),
    *("key-expires-soon", "key-without-expiry", "roster-copy", "pin-stale", *_OF_PEOPLE),
    *("threads-unanchored", "clock-entries", "runs-unsealed"),
)


def diagnose(
    location: StoreLocation, namespace: str, *, identity: str | None = None, quick: bool = False
) -> Diagnosis:
    """Check every line of the checklist that applies to a store, even if earlier checks fail.

    Args:
        location: The store.
        namespace: The namespace whose policy, approvers and threads to check.
        identity: The identity whose key must be here.
        quick: Check only whether the store can be used here, and skip the checklist.
    """
    parts = () if quick else part_checks()
    exam = Examination(str(location.url), parts)
    fixes = Fixes(location)
    facts = _facts_of_files(exam, location)
    key_files = _key_facts(exam, location, identity)
    works_here = False
    with (
        exam.look(*_OF_STORE),
        location.open_core(namespace=namespace, read_only=True) as core,
    ):
        chain = core.renewed_trust()
        threads = sum(1 for _ in core.anchor.slots()) - 1
        facts = replace(facts, threads=threads, roster=chain.roster.seq)
        with exam.look(*_OF_PEOPLE):
            policy = policy_in_force(core, chain, namespace)
            facts = replace(
                facts,
                policy=None if policy is None else policy.name,
                asks=_asks(policy),
                approvers=who_can_approve(chain.roster, policy, namespace, now()),
            )
        if not quick:
            keys = KeyListing(chain, key_files, now()).rows()
            _Keys(exam, location, fixes, keys).look()
            _look_at_roster(exam, location, fixes, chain)
            _look_at_people(exam, fixes, chain, namespace, facts)
            _look_at_anchor(exam, location, fixes, core)
            with exam.look("runs-unsealed"):
                _look_at_sessions(exam, fixes, core)
            works_here = any(key.here and Role.WRITER in key.roles for key in keys)
    # Opening a store may leave files next to it: they count too.
    _look_at_group(exam, location)
    if quick:
        return replace(exam.diagnosis(facts), checks=())
    _Files(exam, location, fixes, shared=facts.group is not None).look()
    with exam.look():
        _look_at_parts(exam, location, fixes, parts, works_here=works_here)
    return exam.diagnosis(facts)


def diagnose_anchor(url: str, *, password: PasswordSource | None = None) -> Diagnosis:
    """Check the setup of the database of a shared anchor.

    For its administrator, who knows neither the store nor its keys. Writes nothing.

    Args:
        url: The anchor, with the login for the check.
        password: The password of that login, as the `anchor_password` of `open_store`.

    Raises:
        UrlInvalid: The URL does not name an anchor.
        ExtraMissing: The part for such anchors is not installed.
    """
    examined = Examined(
        store=None,
        anchor=parse_anchor_url(url),
        commands=_AnchorCommands(),
        works_here=False,
        anchor_password=anchor_password(password),
    )
    parts = part_checks()
    exam = Examination(str(examined.anchor), parts)
    for part in parts:
        part.look(exam, examined)
    return exam.diagnosis()


class _AnchorCommands:
    """Makes command lines for the check of an anchor alone, where no store is known."""

    def sealpoint(self, *words: str, store: str | None = None) -> str:
        """Return a command line of Sealpoint."""
        return shlex.join(["sealpoint", *words, *(() if store is None else ("--store", store))])


class Fixes:
    """Makes command lines for the examined store, with the options that name it."""

    def __init__(self, location: StoreLocation) -> None:
        given, usual = location.settings, load_settings()
        self._usual, self._store = usual.store, str(location.url)
        self._directories = [
            *_unless(usual.config_dir, given.config_dir, "--config-dir"),
            *_unless(usual.state_dir, given.state_dir, "--state-dir"),
        ]

    def sealpoint(self, *words: str, store: str | None = None) -> str:
        """Return a command line of Sealpoint, for the store or for another URL of it."""
        named = _unless(self._usual, store or self._store, "--store")
        return shlex.join(["sealpoint", *words, *named, *self._directories])


def _unless(usual: Path | str | None, given: Path | str, option: str) -> tuple[str, ...]:
    return () if usual == given else (option, str(given))


def _look_at_group(exam: Examination, location: StoreLocation) -> None:
    """Find modes that keep members of the group out, or let others in."""
    with exam.look("group-modes"):
        group = location.files.group()
        if group is not None:
            for message, repair in group_faults(group, *location.shared_paths()):
                exam.found("group-modes", message, repair)


class _Files:
    """Checks modes, owners, links and disks."""

    def __init__(
        self, exam: Examination, location: StoreLocation, fixes: Fixes, *, shared: bool
    ) -> None:
        self._exam = exam
        self._location = location
        self._fixes = fixes
        self._user = os.geteuid() if hasattr(os, "geteuid") else None
        self._shared = shared

    def look(self) -> None:
        """Check all of them; where files have no owners, only copies, links and disks."""
        if self._location.url.path is not None:
            self._look_at_store()
        with self._exam.look("config-writable", "key-readable", "key-linked", "key-copies"):
            self._look_at_configuration()
        with self._exam.look("anchor-writable"):
            for path in _below(self._anchor_places()):
                self._require_closed(path, "anchor-writable", writing_only=True)
        with self._exam.look("parent-writable"):
            for path in self._ways():
                self._require_safe_way(path)
        with self._exam.look("password-readable"):
            for path in password_files():
                self._require_closed(path, "password-readable")

    def _look_at_store(self) -> None:
        exam, backend = self._exam, self._location.url.backend
        with exam.look("store-writable", "store-readable", "store-owner", "store-linked"):
            target = Path(self._location.target())
            names = [target, *(Path(f"{target}{end}") for end in backend.beside)]
            for path in _below(names):
                self._require_closed(path, "store-writable", writing_only=True)
                self._require_owner(path, "store-owner")
                self._require_one_name(path, "store-linked")
            for path in names:
                self._require_closed(path, "store-readable")
        with exam.look("disk-space"):
            for path in (self._location.directory(), *self._anchor_places()[:1]):
                self._require_space(path)
        if self._location.url.scheme == "sqlite":
            with exam.look("network-disk"):
                kind = mounted_as(target, _MOUNTS.read_text() if _MOUNTS.exists() else "")
                if _NETWORK.fullmatch(kind):
                    exam.found(
                        "network-disk",
                        f"{target}: it is on {kind}, whose locks SQLite cannot rely on",
                        shlex.join(["sealpoint", "move", str(self._location.url)])
                        + ' "sqlite:///${LOCAL:?a path on a disk of this machine}"',
                    )

    def _look_at_configuration(self) -> None:
        """Check the directories and files of this store below the configuration directory."""
        files, settings = self._location.files, self._location.settings
        top = [settings.config_dir, settings.config_dir / "stores", files.directory]
        for path in [*top, *_below([files.directory])]:
            self._require_closed(path, "config-writable", writing_only=True)
            self._require_owner(path, "config-writable", root_too=True)
            if path.is_dir():
                continue
            is_key = _KEY.fullmatch(path.name) is not None
            if is_key:
                self._require_closed(path, "key-readable")
                self._require_one_name(path, "key-linked")
            elif _KEY_COPY.fullmatch(path.name) and not path.name.startswith(_DRAFT):
                self._exam.found(
                    "key-copies", f"{path}: it may be a copy of a key", away(str(path))
                )

    def _anchor_places(self) -> list[Path]:
        files = self._location.files
        places = [files.state_dir, files.state_dir / "anchors"]
        with suppress(SealpointError):
            places.append(files.anchor_directory(files.pin().store))
        return [path for path in places if path.is_dir()]

    def _ways(self) -> Iterator[Path]:
        """Check the directories above store, configuration and anchor."""
        settings, found = self._location.settings, dict[Path, None]()
        places = [settings.config_dir, self._location.files.state_dir]
        if self._location.url.path is not None:
            places.append(Path(self._location.target()))
        for place in places:
            found.update(dict.fromkeys(place.resolve().parents))
        yield from found

    def _require_safe_way(self, path: Path) -> None:
        mode = path.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            self._exam.found(
                "parent-writable",
                f"{path}: every user can rename the files in it, mode {stat.S_IMODE(mode):04o}",
                f"chmod o-w -- {_quoted(path)}",
            )

    def _require_closed(self, path: Path, code: str, *, writing_only: bool = False) -> None:
        """Require that others have no access, or cannot write; a store's directory may do it."""
        found = _stat(path)
        if found is None or self._user is None or stat.S_ISLNK(found.st_mode):
            return
        shared = self._shared and code in {"store-writable", "store-readable", "anchor-writable"}
        refused = stat.S_IRWXO if shared else _OTHERS
        if writing_only:
            refused &= _OTHERS_WRITE
        is_kept = code.startswith("store-") and not path.parent.stat().st_mode & _OTHERS
        if found.st_mode & refused and not is_kept:
            self._exam.found(
                code,
                f"{path}: others have access, mode {stat.S_IMODE(found.st_mode):04o}",
                f"chmod {_taken(refused)} -- {_quoted(path)}",
            )
        if code == "password-readable":
            self._require_owner(path, code, root_too=True)

    def _require_owner(self, path: Path, code: str, *, root_too: bool = False) -> None:
        found = _stat(path)
        if found is None or self._user is None or self._shared:
            return
        if found.st_uid != self._user and not (root_too and found.st_uid == 0):
            sudo = "" if self._user == 0 else "sudo "
            self._exam.found(
                code,
                f"{path}: it is of user {found.st_uid}, and user {self._user} uses it",
                f"{sudo}chown -h {self._user} -- {_quoted(path)}",
            )

    def _require_one_name(self, path: Path, code: str) -> None:
        found = _stat(path)
        if found is not None and stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            place, copy = _quoted(path), _quoted(path.with_name(f"{_DRAFT}{path.name}"))
            self._exam.found(
                code,
                f"{path}: it has {found.st_nlink} names, and who has another changes it unseen",
                f"cp -p -- {place} {copy} && mv -- {copy} {place}",
            )

    def _require_space(self, path: Path) -> None:
        free = shutil.disk_usage(path).free
        if free < _SPACE_BYTES_MIN:
            self._exam.found(
                "disk-space",
                f"{path}: {free >> 20} MiB are left on its disk",
                self._fixes.sealpoint("gc"),
            )


def _taken(refused: int) -> str:
    """Return the mode change for `chmod` that removes the refused bits."""
    who = ("g" if refused & stat.S_IRWXG else "") + "o"
    return f"{who}-w" if not refused & (stat.S_IRGRP | stat.S_IROTH) else f"{who}="


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _below(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield paths and everything below them, up to a maximum number of files."""
    count = 0
    for top in paths:
        yield top
        for directory, names, files in os.walk(top):
            for name in (*names, *files):
                yield Path(directory, name)
                count += 1
            if count > _FILES_MAX:
                return


def mounted_as(path: Path, mounts: str) -> str:
    """Return the type of a path's file system, from a text such as /proc/self/mountinfo."""
    found, longest = "", -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape")
        if path.is_relative_to(point) and len(point) >= longest:
            found, longest = after.split()[0], len(point)
    return found


def _facts_of_files(exam: Examination, location: StoreLocation) -> StoreFacts:
    """Return the facts about a store from the files of this machine."""
    files, facts = location.files, StoreFacts()
    with exam.look():
        facts = replace(facts, keys=tuple(files.keys.names()))
        group = files.group()
        facts = replace(facts, group=None if group is None else group.name)
        shared = files.shared_anchor.url()
        facts = replace(facts, shared_anchor=None if shared is None else str(shared))
        pin = files.pin()
        facts = replace(facts, store=str(pin.store), fingerprint=str(pin.fingerprint()))
        facts = replace(facts, anchor=str(files.anchor_directory(pin.store)))
    return facts  # noqa: RET504 (a check that fails ends early, with the known facts)


def _asks(policy: Policy | None) -> dict[str, tuple[str, ...]]:
    """Return the measures of a policy with the rules of each, the strictest first."""
    found: dict[str, tuple[str, ...]] = {}
    rules = {} if policy is None else policy.rules
    for measure in sorted({each for each in rules.values() if not each.passes}, reverse=True):
        found[str(measure)] = tuple(str(rule) for rule, each in rules.items() if each == measure)
    return found


def _key_facts(
    exam: Examination, location: StoreLocation, identity: str | None
) -> dict[str, KeyFacts]:
    """Return the facts of the key files here without opening them; require that of an identity."""
    facts = {}
    with exam.look():
        for name in sorted({*location.files.keys.names(), *filter(None, [identity])}):
            with exam.look():
                facts[name] = location.files.keys.facts(name, mounted=True)
    return facts


class _Keys:
    """Checks the private keys that are here, and the keys of the roster."""

    def __init__(
        self, exam: Examination, location: StoreLocation, fixes: Fixes, keys: Sequence[KeyInfo]
    ) -> None:
        self._exam = exam
        self._directory = location.files.directory / "keys"
        self._fixes = fixes
        self._keys = keys
        self._here = [key for key in keys if key.here]
        self._workers = [key.name for key in self._here if Role.WRITER in key.roles]

    def look(self) -> None:
        """Check the private keys here, then the expiry of the roster's keys."""
        for key in self._here:
            self._look_at(key)
        for key in self._keys:
            if key.in_roster:
                self._look_at_expiry(key)

    def _look_at(self, key: KeyInfo) -> None:
        path = str(self._directory / f"{key.name}.key")
        beside = f"next to that of {', '.join(self._workers)}"
        people = {Role.APPROVER, Role.OPERATOR, Role.PRIVACY} & {*key.roles}
        if key.status is KeyStatus.ROOT and len(self._here) > 1:
            self._exam.found(
                "root-here", f"{path}: the root's private key is stored next to others", away(path)
            )
        elif people and self._workers:
            self._exam.found(
                "duties-together",
                f"{path}: a key of the role {', '.join(sorted(people))} is stored {beside}",
                away(path),
            )
        if key.status in {KeyStatus.UNLISTED, KeyStatus.FORMER_ROOT, KeyStatus.REVOKED}:
            self._exam.found("key-unlisted", f"{path}: the key is {key.status}", away(path))
        elif not key.encrypted and Path(path).exists():
            self._exam.found(
                "key-unlocked",
                f"{path}: anyone who reads the file has the key",
                self._fixes.sealpoint("keys", "passphrase", key.name),
                # A worker starts without a person who could type one.
                severity=Severity.NOTE if {*key.roles} == {Role.WRITER} else None,
            )

    def _look_at_expiry(self, key: KeyInfo) -> None:
        rights = [f"--role={each}" for each in key.roles]
        rights += [f"--namespace={each}" for each in key.namespaces]
        rights += [f"--person={key.person}", f"--public-key={key.public}"]
        prolong = self._fixes.sealpoint("keys", "add", key.name, *rights, *_EXPIRES)
        renew = self._fixes.sealpoint("keys", "rotate", key.name, *_EXPIRES, "--yes")
        named = f"key {key.name}"
        if key.passkey is not None:  # which cannot be made here
            named, renew = f"passkey of {key.name}", prolong
        if key.status is KeyStatus.STOPPED and key.passkey is not None:
            why = ("--key", key.key, "--reason", "it was being ended", "--yes")
            renew = self._fixes.sealpoint("keys", "revoke", key.name, *why)
        if key.status in {KeyStatus.EXPIRED, KeyStatus.STOPPED}:
            self._exam.found("key-expired", f"{named}: it may not write any more", renew)
        elif key.status is KeyStatus.EXPIRES_SOON:
            self._exam.found("key-expires-soon", f"{named}: it expires at {key.expires}", renew)
        elif key.expires is None:
            self._exam.found("key-without-expiry", f"{named}: it has no expiry date", prolong)


def _look_at_roster(
    exam: Examination, location: StoreLocation, fixes: Fixes, chain: StoreChain
) -> None:
    kept = kept_roster_entries(location.files.directory)
    if kept <= chain.seq:
        found = f"the one of entry {kept - 1} is kept" if kept else "none is kept"
        exam.found(
            "roster-copy",
            f"{location.files.directory}: {found}, and the roster of entry {chain.seq} is in force",
            fixes.sealpoint("gc"),
        )
    pin = location.files.pin()
    if pin.roster_seq_min < chain.roster.seq:
        exam.found(
            "pin-stale",
            f"the pin still believes roster {pin.roster_seq_min}, and {chain.roster.seq} is in "
            "force: should the anchor be lost, the older one would do",
            f"{fixes.sealpoint('trust', 'export')} | "
            + fixes.sealpoint("trust", "import", "-", "--replace"),
        )


def _look_at_people(
    exam: Examination, fixes: Fixes, chain: StoreChain, namespace: str, facts: StoreFacts
) -> None:
    people = facts.approvers
    if people is None:  # the policy in force cannot be read, which is a finding already
        return
    persons = {each.person for each in chain.roster.identities}
    team = fixes.sealpoint("policy", "apply", "team")
    if facts.policy is None:
        reason = f"namespace {namespace!r}: only ordinary continuation is allowed"
        exam.found("policy-missing", reason, team)
    elif not people.needed and len(persons) > 1:
        reason = f"policy {facts.policy!r} asks nobody, and the roster names {len(persons)} people"
        exam.found("policy-solo", reason, team)
    if people.missing:
        name, right = '"${APPROVER:?a name}"', "--role=approver"
        exam.found(
            "approvers-missing",
            f"policy asks for {people.needed}, and {len(people.people)} can approve: add "
            f"{people.missing}",
            f"{fixes.sealpoint('keys', 'new')} {name} && {fixes.sealpoint('keys', 'add')} "
            f"{name} --person={name} {right} --namespace='*'",
        )


def _look_at_anchor(exam: Examination, location: StoreLocation, fixes: Fixes, core: Core) -> None:
    shared = location.files.shared_anchor.url()
    with exam.look("threads-unanchored", *(() if shared is None else ("anchors-apart",))):
        reason = '--reason="${REASON:?why this is the newest copy}"'
        for row in anchor_positions(core):
            named = row.name or row.thread[:12]
            if row.standing is AnchorStanding.UNANCHORED:
                exam.found(
                    "threads-unanchored",
                    f"thread {named!r}: the store has it, and the anchor does not know it",
                    f"{fixes.sealpoint('anchor', 'adopt', '--yes')} {reason}",
                )
            elif shared is not None and row.local is not None and _seen(row.shared) < row.local:
                exam.found(
                    "anchors-apart",
                    f"thread {named!r}: this machine has seen entry {row.local}, and the shared "
                    f"anchor {'nothing' if row.shared is None else row.shared}",
                    f"{fixes.sealpoint('anchor', 'join', str(shared))} {reason}",
                )
    with exam.look("clock-entries"):
        _look_at_times(exam, core)
    if location.url.path is not None:
        with exam.look("anchor-same-disk"):
            _look_at_disks(exam, location, fixes)


def _seen(position: int | None) -> int:
    return -1 if position is None else position


def _look_at_disks(exam: Examination, location: StoreLocation, fixes: Fixes) -> None:
    files = location.files
    anchor = files.anchor_directory(files.pin().store)
    one_disk = location.directory().stat().st_dev == anchor.stat().st_dev
    if one_disk and files.shared_anchor.url() is None:
        exam.found(
            "anchor-same-disk",
            f"{anchor}: it is on the disk of the store, and one copy puts both back",
            f"{fixes.sealpoint('anchor', 'join')} "
            '"${ANCHOR:?the URL of a shared one}" --reason="${REASON:?why}"',
        )


def _look_at_times(exam: Examination, core: Core) -> None:
    """Check that the newest entry of each thread is not from the future."""
    latest = now() + _AHEAD_MAX
    for thread in (STORE_CHAIN, *(each.thread for each in all_threads(core) if each.stored)):
        for _, record in core.storage.scan(thread, 0, descending=True):
            at = parse_header(record.header).at
            if at > latest:
                exam.found(
                    "clock-entries",
                    f"thread {thread.hex()[:12]}: its newest entry says {at:%Y-%m-%d %H:%M:%SZ}, "
                    "and that is still to come by the clock of this machine",
                    "sudo timedatectl set-ntp true",
                )
            break


def _look_at_sessions(exam: Examination, fixes: Fixes, core: Core) -> None:
    """Check that no thread's newest session has a world with unsealed inputs."""
    found: dict[str, list[str]] = {}
    for each in all_threads(core):
        session = _newest_session(core, each.thread) if each.stored else None
        for kind in () if session is None else session.unsealed:
            found.setdefault(kind, []).append(each.thread.hex()[:12])
    for kind, threads in sorted(found.items()):
        others = f" and {len(threads) - 1} others" if len(threads) > 1 else ""
        exam.found(
            "runs-unsealed",
            f"thread {threads[0]!r}{others}: runs read a {kind[:40]!r} that is not sealed, as "
            "accept_unsealed= of guard allows",
            fixes.sealpoint("audit", "--kind", "resume"),
        )


def _newest_session(core: Core, thread: bytes) -> ResumeBody | None:
    """Return the resume that decided the world of a thread's newest session, or None."""
    for _, record in core.storage.scan(thread, 0, descending=True):
        session = _session_at(core, thread, parse_header(record.header).fence)
        if session is None or session.decided is None:
            return session
        return _session_at(core, thread, session.decided)
    return None


def _session_at(core: Core, thread: bytes, seq: int) -> ResumeBody | None:
    record = core.storage.read(thread, seq)
    header = None if record is None else parse_header(record.header)
    if record is None or header is None or header.kind is not Kind.RESUME or record.body is None:
        return None
    body: ResumeBody = parse_body(header.kind, header.body, record.body)
    return body


def _look_at_parts(
    exam: Examination,
    location: StoreLocation,
    fixes: Fixes,
    parts: Sequence[PartChecks],
    *,
    works_here: bool,
) -> None:
    examined = Examined(
        store=location.url,
        anchor=location.files.shared_anchor.url(),
        commands=fixes,
        works_here=works_here,
        config_dir=location.settings.config_dir,
        state_dir=location.settings.state_dir,
        store_password=location.password,
        anchor_password=location.anchor_password,
    )
    for part in parts:
        part.look(exam, examined)
