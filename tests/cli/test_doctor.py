# SPDX-License-Identifier: Apache-2.0
"""`sealpoint doctor` on files and SQLite: what is planted is found, and mended by what it prints.

Every fix is executed as it was printed: by a shell, or by the command itself where it is nothing
but that.
"""

import grp
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sealpoint import errors
from sealpoint.api import checks
from sealpoint.api._doctor import mounted_as
from sealpoint.cli import main
from sealpoint.cli._doctor import FINDINGS_STATUS
from sealpoint_models.cli._scan import REFUSED_STATUS
from tests.cli.machine import Machine
from tests.repo._tree import ROOT
from tests.unit.signing.authenticator import Authenticator

CHECKS = checks.CHECKS | {
    code: line for part in checks.part_checks() for code, line in part.lines.items()
}

_IS_ROOT = os.geteuid() == 0
_STRANGER = 12345
_SHELL = {"OFFLINE": "offline", "REASON": "it is the newest copy"}


@dataclass(frozen=True)
class _FileMachine(Machine):
    """A machine whose store is a directory."""

    @property
    def url(self) -> str:
        return f"file://{self.path}"


def _diagnosis(machine: Machine) -> Any:
    return json.loads(machine.run("doctor", "--json").stdout)


def _findings(machine: Machine, code: str) -> list[Any]:
    return [each for each in _diagnosis(machine)["findings"] if each["code"] == code]


def _execute(fix: str, machine: Machine) -> None:
    """Do what a finding says, as it stands."""
    words = shlex.split(fix)
    if words[0] == "sealpoint" and not {"|", "&&"} & {*words} and "${" not in fix:
        result = CliRunner().invoke(main, words[1:])
        assert result.exit_code == 0, result.output
        return
    (machine.home / "offline").mkdir(exist_ok=True)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **_SHELL, "PATH": programs}
    subprocess.run(["/bin/sh", "-ec", fix], cwd=machine.home, env=environment, check=True)


def _keys(machine: Machine) -> Path:
    return next((machine.home / "config").rglob("worker.key")).parent


def _anchor(machine: Machine) -> Path:
    return next((machine.home / "state").rglob("anchor.slots")).parent


def _open_to(machine: Machine, mode: int) -> None:
    machine.path.parent.chmod(0o755)
    machine.path.chmod(mode)


def _team(machine: Machine) -> None:
    machine.done("keys", "new", "bob")
    rights = ("--role", "approver", "--namespace", "*")
    machine.done("keys", "add", "bob", "--person", "bob", *rights)


def _expires(machine: Machine, when: str) -> None:
    rights = ("--person", "owner", "--role", "writer", "--namespace", "*")
    machine.done("keys", "add", "worker", *rights, "--expires", when)


def _expired(machine: Machine) -> None:
    _expires(machine, "1s")
    time.sleep(1.05)


def _passkey(machine: Machine, when: str) -> None:
    rights = ("--person", "pat", "--role", "approver", "--namespace", "*", "--expires", when)
    enrolment = Authenticator().passkey.encode()
    machine.done("keys", "add", "pat", *rights, "--passkey", "-", "--yes", stdin=enrolment)


def _expired_passkey(machine: Machine) -> None:
    _passkey(machine, "1s")
    time.sleep(1.05)


def _unanchor(machine: Machine) -> None:
    slots = _anchor(machine) / "anchor.slots"
    before = slots.read_bytes()
    machine.open().thread("late").save({"n": 1})
    slots.write_bytes(before)


def _copied(machine: Machine, name: str) -> None:
    shutil.copy(_keys(machine) / "operator.key", _keys(machine) / name)


def _linked(path: Path) -> None:
    path.parent.joinpath("..", "another-name").resolve().hardlink_to(path)


def _opened_anchor(machine: Machine) -> None:
    _anchor(machine).chmod(0o777)


def _as_it_is(_: Machine) -> None:
    """A new store has it."""


_PLANTED: dict[str, tuple[str, Callable[[Machine], object]]] = {
    "a store that all may write": ("store-writable", lambda m: _open_to(m, 0o666)),
    "a store that all may read": ("store-readable", lambda m: _open_to(m, 0o644)),
    "a second name of the store": ("store-linked", lambda m: _linked(m.path)),
    "a way that all may write": ("parent-writable", lambda m: m.path.parent.chmod(0o777)),
    "a pin that all may write": (
        "config-writable",
        lambda m: _keys(m).parent.joinpath("pin.json").chmod(0o666),
    ),
    "a directory of stores that all may write": (
        "directory-unusable",
        lambda m: (m.home / "config" / "stores").chmod(0o777),
    ),
    "a key that all may read": ("key-readable", lambda m: (_keys(m) / "worker.key").chmod(0o644)),
    "a secret that a group may read": (
        "key-readable",
        lambda m: _keys(m).parent.joinpath("slots.key").chmod(0o640),
    ),
    "a second name of a key": ("key-linked", lambda m: _linked(_keys(m) / "worker.key")),
    "an editor's copy of a key": ("key-copies", lambda m: _copied(m, "operator.key~")),
    "a backup of a key": ("key-copies", lambda m: _copied(m, "operator.key.bak")),
    "an anchor that all may write": ("anchor-writable", _opened_anchor),
    "the root beside a worker": ("root-here", _as_it_is),
    "an operator beside a worker": ("duties-together", _as_it_is),
    "a key that nobody added": ("key-unlisted", lambda m: m.done("keys", "new", "stray")),
    "a key that has expired": ("key-expired", _expired),
    "a key that expires in days": ("key-expires-soon", lambda m: _expires(m, "5d")),
    "a key without an end": ("key-without-expiry", _as_it_is),
    "a passkey that has expired": ("key-expired", _expired_passkey),
    "a passkey that expires in days": ("key-expires-soon", lambda m: _passkey(m, "5d")),
    "a passkey without an end": ("key-without-expiry", lambda m: _passkey(m, "never")),
    "no copy of the roster": (
        "roster-copy",
        lambda m: next(_keys(m).parent.glob("roster-*.json")).unlink(),
    ),
    "a pin that is behind": ("pin-stale", _team),
    "a thread that the anchor forgot": ("threads-unanchored", _unanchor),
    "a policy for one with two people": ("policy-solo", _team),
    "nobody who can approve": (
        "approvers-missing",
        lambda m: m.done("policy", "apply", "strict"),
    ),
}


@pytest.mark.parametrize("what", _PLANTED)
def test_what_is_planted_is_found_and_gone_when_mended(machine: Machine, what: str) -> None:
    """A finding has the code, the severity of the list, and a fix that works as it stands."""
    code, plant = _PLANTED[what]
    if code in CHECKS and what not in {"the root beside a worker", "an operator beside a worker"}:
        assert _findings(machine, code) == [] or code == "key-without-expiry"
    plant(machine)
    found = _findings(machine, code)

    assert found
    assert {each["severity"] for each in found} == {CHECKS.get(code, ("critical",))[0]}
    for name in ("ann", "carl"):  # a policy may ask for two people
        for finding in _findings(machine, code):
            _execute(finding["fix"].replace("${APPROVER:?a name}", name), machine)
    assert _findings(machine, code) == []


def test_runs_that_read_what_is_not_sealed_are_listed(machine: Machine) -> None:
    """By the worlds of the newest sessions, one line for each kind; others are not told."""
    sealed: dict[str, Any] = {"topology": {"start": "a"}}
    unsealed: dict[str, Any] = {"topology": {"unsealed": {"memory": {"clerk": "FileHistory"}}}}
    with machine.open() as store:
        store.thread("sealed").save({"n": 1}, world=sealed)
        assert _findings(machine, "runs-unsealed") == []
        for name in ("one", "two"):
            store.thread(name).save({"n": 1}, world=unsealed)
            store.thread(name).resume(world=unsealed)
    (finding,) = _findings(machine, "runs-unsealed")

    assert finding["severity"] == "note"
    assert "and 1 others: runs read a 'memory' that is not sealed" in finding["reason"]
    assert "runs read what" not in machine.done(*shlex.split(finding["fix"])[1:])
    assert "the run reads what is not sealed: memory" in machine.done("audit", "--kind", "resume")


@pytest.mark.parametrize("what", ["a store that all may write", "a store that all may read"])
def test_a_directory_of_files_is_looked_at_like_a_file(tmp_path: Path, what: str) -> None:
    """The same findings and fixes, for a store that is a directory."""
    machine = _FileMachine(tmp_path / "disk" / "store", tmp_path / "one")
    machine.done("init")
    code = _PLANTED[what][0]
    _open_to(machine, 0o777 if code == "store-writable" else 0o755)
    found = _findings(machine, code)

    assert found
    for finding in found:
        _execute(finding["fix"], machine)
    assert _findings(machine, code) == []


@pytest.mark.skipif(not _IS_ROOT, reason="only root gives files away")
@pytest.mark.parametrize("kind", [Machine, _FileMachine])
def test_a_store_of_another_user_is_found(tmp_path: Path, kind: type[Machine]) -> None:
    """Every file that is somebody else's is named, with the command that takes it back."""
    machine = kind(tmp_path / "disk" / "store", tmp_path / "one")
    machine.done("init")
    os.chown(machine.path, _STRANGER, -1)
    found = _findings(machine, "store-owner")

    assert found
    for finding in found:
        _execute(finding["fix"], machine)
    assert _findings(machine, "store-owner") == []


@pytest.mark.parametrize(
    "variable", ["SEALPOINT_STORE_PASSWORD_FILE", "SEALPOINT_PASSPHRASE_FILE", "PGPASSFILE"]
)
def test_a_file_of_a_password_that_others_may_read_is_found(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Whichever variable names it."""
    path = machine.home / "secret file"
    path.write_text("secret\n")
    path.chmod(0o644)
    monkeypatch.setenv(variable, str(path))
    (finding,) = _findings(machine, "password-readable")
    _execute(finding["fix"], machine)

    assert "secret\n" not in finding["reason"]
    assert _findings(machine, "password-readable") == []


@pytest.mark.usefixtures("quick_passphrases")
def test_a_key_without_a_passphrase_gets_one(machine: Machine) -> None:
    """The command asks for one; a worker's key is only a note, since nobody is there to type."""
    found = {each["reason"].split(".key")[0]: each for each in _findings(machine, "key-unlocked")}
    severities = {Path(name).name: each["severity"] for name, each in found.items()}

    assert severities == {"worker": "note", "operator": "warning", "root": "warning"}
    fix = next(each["fix"] for name, each in found.items() if name.endswith("operator"))
    secret = machine.home / "passphrase"
    secret.write_text("long enough\n")
    secret.chmod(0o600)
    _execute(f"{fix} --new-passphrase-file {secret}", machine)  # what a terminal would be asked for
    assert not any("operator.key" in each["reason"] for each in _findings(machine, "key-unlocked"))


def test_no_error_has_the_exit_status_of_findings() -> None:
    """The exit status of `doctor` tells findings from an error, and from a refusal of `scan`."""
    statuses = {getattr(errors, name).exit_status for name in errors.__all__}

    assert FINDINGS_STATUS not in {*statuses, REFUSED_STATUS}


def test_a_worker_with_nothing_but_its_own_has_notes_alone(machine: Machine) -> None:
    """With the keys of people elsewhere, the exit status is 0, and words and JSON agree."""
    machine.open().thread("a").save({"n": 1})
    assert machine.run("doctor", "--strict").exit_code == 96
    for name in ("root", "operator"):
        (_keys(machine) / f"{name}.key").unlink()
    before = {path: path.stat().st_mtime_ns for path in machine.home.rglob("*")}
    printed = machine.done("doctor", "--strict")
    found = _diagnosis(machine)

    assert before == {path: path.stat().st_mtime_ns for path in machine.home.rglob("*")}
    assert found["ok"] is True
    assert {each["severity"] for each in found["findings"]} == {"note"}
    assert "Nothing critical was found." in printed
    for check in found["checks"]:
        answer = {True: "yes", False: "no", None: "-"}[check["holds"]]
        assert f"  {answer:<5}{check['claim']} [{check['code']}]" in printed


def test_what_cannot_be_opened_is_a_finding_and_no_error(machine: Machine) -> None:
    """A store without a pin, and one whose file is gone; what needs the store is not answered."""
    machine.path.unlink()
    gone = _diagnosis(machine)
    pin = next((machine.home / "config").rglob("pin.json"))
    pin.unlink()
    unknown = _diagnosis(machine)

    assert [each["code"] for each in gone["findings"] if each["severity"] == "critical"] == [
        "rolled-back"
    ]
    assert {each["holds"] for each in gone["checks"] if each["code"] == "key-expired"} == {None}
    assert "no-pin" in {each["code"] for each in unknown["findings"]}
    assert unknown["ok"] is False


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that others can get to, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="sealpoint-doctor-") as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


def test_what_keeps_a_group_from_sharing_is_found_and_mended(reachable: Path) -> None:
    """A mode that somebody changed is put back by the command that is printed."""
    shared = reachable / "srv"
    shared.mkdir()
    os.chown(shared, -1, os.getgid())
    shared.chmod(0o2770)
    url, state = f"sqlite:///{shared / 'store' / 'agents.db'}", str(shared / "state")
    where = ["--store", url, "--config-dir", str(reachable / "config"), "--state-dir", state]
    group = grp.getgrgid(os.getgid()).gr_name
    made = CliRunner().invoke(main, ["init", "--group", group, *where])
    assert made.exit_code == 0, made.output

    def found() -> list[Any]:
        printed = CliRunner().invoke(main, ["doctor", "--json", *where]).stdout
        return [each for each in json.loads(printed)["findings"] if each["code"] == "group-modes"]

    before = found()
    (shared / "store" / "agents.db").chmod(0o600)
    planted = found()
    for each in planted:
        subprocess.run(["/bin/sh", "-ec", each["fix"]], check=True)

    assert before == []
    assert {each["severity"] for each in planted} == {"critical"}
    assert found() == []


def test_a_disk_that_is_nearly_full_is_found(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is printed frees what nothing needs; where that is not enough, the finding stays."""
    free = shutil.disk_usage(machine.home).free
    monkeypatch.setattr("sealpoint.api._doctor._SPACE_BYTES_MIN", 2 * free)
    found = _findings(machine, "disk-space")
    for each in found:
        _execute(each["fix"], machine)
    monkeypatch.setattr("sealpoint.api._doctor._SPACE_BYTES_MIN", free // 2)

    assert {each["severity"] for each in found} == {"warning"}
    assert _findings(machine, "disk-space") == []


def test_the_kind_of_a_disk_is_that_of_the_nearest_mount() -> None:
    """The longest mount point above a path counts, spaces and all."""
    mounts = (
        "29 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "30 29 0:40 / /srv/my\\040share rw - nfs4 host:/export rw\n"
        "31 29 0:41 / /srv/my rw - tmpfs none rw\n"
    )

    assert mounted_as(Path("/srv/my share/agents.db"), mounts) == "nfs4"
    assert mounted_as(Path("/srv/my/agents.db"), mounts) == "tmpfs"
    assert mounted_as(Path("/srv/agents.db"), mounts) == "ext4"
    assert mounted_as(Path("/srv/agents.db"), "") == ""


def test_every_code_is_in_the_checklist_of_the_documentation() -> None:
    """The page has a row for each, with its severity, and no row for anything else."""
    page = (ROOT / "docs" / "security" / "checkpoint-storage.md").read_text()
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    listed = {code.strip(" `"): severity.strip() for code, severity in rows}

    assert listed == {code: str(severity) for code, (severity, _) in CHECKS.items()}
