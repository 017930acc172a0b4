# SPDX-License-Identifier: Apache-2.0
"""An application is deployed anew while its threads wait: everything in real processes.

The application is a file that is edited; LangGraph is upgraded from the oldest version that is
supported, which `make setup` puts into `.venv/older`, to the one that is installed.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint import api
from sealpoint.errors import SealpointError
from sealpoint.gate import shipped_policy
from tests.effort import SOAKING
from tests.warm import run_command

_CLERK = Path(__file__).with_name("clerk.py")
_OLDER = Path(sys.prefix) / "older"
_OLDER_VERSION = "1.2.0"
_UPGRADE = f"~ runtime langgraph {_OLDER_VERSION} -> {version('langgraph')}"
_UPGRADES = [_UPGRADE, f"~ runtime langgraph-sdk 0.3.15 -> {version('langgraph-sdk')}"]
_TEAM = shipped_policy("strict")
# A rollout never covers answers, so each thread's would be asked about.
_TEAM_BUT_ANSWERS = _TEAM.replace(b'answer = "approve 2"', b'answer = "record"')
_THREADS = 200 if SOAKING else 10
_HALF = _THREADS // 2
_SECONDS_MAX = 280
_HOLDS_S = (3, 15, 60)

pytestmark = [
    pytest.mark.skipif(
        not (_OLDER / f"langgraph-{_OLDER_VERSION}.dist-info").is_dir(),
        reason=f"langgraph {_OLDER_VERSION} is not in {_OLDER}: make setup",
    ),
]
_soaked = pytest.mark.parametrize(
    "scheme", ["sqlite", pytest.param("file", marks=pytest.mark.soak)]
)
"""Most of the time goes to starting processes, whatever the store is."""


class Site:
    """An application with its store, and the people who look after it."""

    def __init__(self, folder: Path, scheme: str, policy: bytes) -> None:
        self.disk = folder / "disk"
        self._app = folder / "app"
        self._url = f"{scheme}:///{self.disk}/agents"
        self._places: dict[str, Any] = {
            "config_dir": folder / "config",
            "state_dir": folder / "state",
        }
        for each in (self.disk, self._app):
            each.mkdir()
        shutil.copy(_CLERK, self._app)
        sealpoint.init(self._url, **self._places)
        api.admin(self._url, **self._places).policy.apply(policy)
        for name in ("ann", "bob"):
            api.admin(self._url, **self._places).keys.create(name)
            api.admin(self._url, **self._places).keys.add(
                name, person=name, roles=["approver"], namespaces=["*"]
            )
        self._older = True
        """Which LangGraph is installed."""

    def upgrade(self) -> None:
        """Install the newer LangGraph."""
        self._older = False

    def edit(self, before: str, after: str) -> None:
        """Change the application."""
        file = self._app / _CLERK.name
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1
        file.write_text(text.replace(before, after), encoding="utf-8")

    def work(self, act: str, first: int, end: int) -> dict[str, int]:
        """Take threads one question further, in a process; how many ended how."""
        places = (self._url, *map(str, self._places.values()))
        done = self._run(["python", _CLERK.name, act, *places, str(first), str(end)])
        assert done.returncode == 0, done.stderr
        found: dict[str, int] = json.loads(done.stdout)
        return found

    def answer(self, first: int, end: int) -> dict[str, int]:
        """Answer threads."""
        return self.work("answer", first, end)

    def command(self, *words: str, status: int = 0) -> Any:
        """Run a verb, which ends with this status, and give its document."""
        done = self._run(["sealpoint", *words, "--json"])
        assert done.returncode == status, done.stdout + done.stderr
        return json.loads(done.stderr if status else done.stdout)

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "SEALPOINT_STORE": self._url,
            "SEALPOINT_CONFIG_DIR": str(self._places["config_dir"]),
            "SEALPOINT_STATE_DIR": str(self._places["state_dir"]),
        }
        if not self._older:
            return run_command(words, self._app, environment, _SECONDS_MAX, apart=True)
        # Another LangGraph than the one that a warm process has imported.
        paths = [str(_OLDER), str(Path(sealpoint.__file__).parents[1])]
        started = ["-m", *words] if words[0] == "sealpoint" else words[1:]
        return subprocess.run(
            [sys.executable, *started],
            cwd=self._app,
            env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )

    def open(self, identity: str, namespace: str = "default") -> sealpoint.Store:
        """The store, for somebody."""
        return sealpoint.open_store(
            self._url, identity=identity, namespace=namespace, **self._places
        )

    def propose(self) -> str:
        """Propose what is to run from now on, and give the rollout's id."""
        words = ("--graph", "clerk:graph", "--reason", "release 42", "--identity", "operator")
        made: dict[str, Any] = self.command("rollout", "propose", *words)
        assert (made["status"], made["needed"]) == ("open", 2)
        return str(made["id"])

    def world(self) -> sealpoint.World:
        """The world of what is to run from now on."""
        done = self._run(["sealpoint", "rollout", "world", "--graph", "clerk:graph"])
        return sealpoint.World.from_dict(json.loads(done.stdout))

    def approve(self, request: str, who: str, status: int = 0) -> Any:
        """Approve on the command line, with one's own key."""
        words = ("--yes-to", request, "--reason", "looked at", "--identity", who)
        return self.command("approve", request, *words, status=status)

    def resumes(self) -> list[str]:
        """What the record tells of every resume of a saved run."""
        with self.open("operator") as store:
            told = [each.summary for each in store.audit(kind="resume")]
        return [each for each in told if "from checkpoint" in each]

    def differences(self, thread: str) -> str:
        """What the record tells of the worlds of a thread's newest resume."""
        with self.open("operator") as store:
            *_, newest = store.audit(thread=thread, kind="resume")
            return dict(store.why(newest.entry).facts)["what differs"]


def _refused(found: dict[str, int], code: str, threads: int) -> str:
    """Check that so many threads were refused with a code, and none went on; what was said."""
    ((said, count),) = found.items()
    assert said.startswith(code)
    assert count == threads
    return said


@_soaked
def test_alone_an_upgrade_goes_on_and_is_recorded(scheme: str, tmp_path: Path) -> None:
    """Under `solo` every thread goes on with another LangGraph, and its entry says so."""
    site = Site(tmp_path, scheme, shipped_policy("solo"))
    assert site.work("ask", 0, _THREADS) == {"ok": _THREADS}
    site.upgrade()
    assert site.answer(0, _THREADS) == {"ok": _THREADS}

    told = site.resumes()
    assert len(told) == _THREADS
    assert all("rules runtime, answer" in each for each in told)
    assert site.differences("invoice-7") == "; ".join(_UPGRADES)


@_soaked
def test_a_team_deploys_while_threads_wait(scheme: str, tmp_path: Path) -> None:
    """A comment stops nobody; an upgrade and a tool need one rollout each, while it holds."""
    site = Site(tmp_path, scheme, _TEAM_BUT_ANSWERS)
    assert site.work("ask", 0, _THREADS) == {"ok": _THREADS}
    _edit_a_comment(site)
    _upgrade(site)
    rollout = _add_a_tool(site)
    _revoke(site, rollout)
    _attack(site, scheme)
    # The honest twin.
    accepted = site.propose()
    site.approve(accepted, "ann")
    site.approve(accepted, "bob")
    assert site.answer(_HALF, _HALF + 3) == {"ok": 3}
    with site.open("operator") as store:
        report = store.verify()
    assert report.ok, report.findings


def _edit_a_comment(site: Site) -> None:
    """All go on, and nothing is told of other code."""
    site.edit("# Ask first.", "# Somebody\n    # is asked first.")
    assert site.answer(0, _THREADS) == {"ok": _THREADS}
    told = site.resumes()
    assert len(told) == _THREADS
    assert all("rules answer;" in each for each in told)


def _upgrade(site: Site) -> None:
    """One rollout of two people for all of them."""
    site.upgrade()
    assert _UPGRADE in _refused(site.answer(0, 3), "needs-approval", 3)
    plan = site.command("rollout", "plan", "--graph", "clerk:graph")
    (world,) = plan["worlds"]
    assert (plan["threads"], world["threads"]) == (_THREADS, _THREADS)
    assert (world["asks_for"], world["diff"]) == ("approve 2", {"runtime": _UPGRADES})
    rollout = site.propose()
    # Neither the proposer nor a worker is one of the two.
    for who in ("operator", "worker"):
        assert site.approve(rollout, who, status=39)["error"]["code"] == "no-right"
    assert site.approve(rollout, "ann")["status"] == "open"
    _refused(site.answer(3, 4), "needs-approval", 1)
    assert site.approve(rollout, "bob")["status"] == "approved"
    assert site.answer(0, _THREADS) == {"ok": _THREADS}

    named = [each for each in site.resumes() if f"by rollout {rollout[:12]}" in each]
    assert len(named) == _THREADS
    assert site.differences("invoice-7") == "; ".join(_UPGRADES)


def _add_a_tool(site: Site) -> str:
    """Another rollout; the one of the upgrade does not cover it."""
    site.edit("= [balance]", "= [balance, transfer]")
    assert "+ tool transfer" in _refused(site.answer(0, 3), "needs-approval", 3)
    rollout = site.propose()
    site.approve(rollout, "ann")
    site.approve(rollout, "bob")
    assert site.answer(0, _HALF) == {"ok": _HALF}
    return rollout


def _revoke(site: Site, rollout: str) -> None:
    """Refused again, also if the store is put back to what it was before."""
    before = site.disk.with_name("before")
    shutil.copytree(site.disk, before)
    words = (rollout[:8], "--reason", "it moves too much", "--identity", "ann")
    assert site.command("rollout", "revoke", *words)["status"] == "denied"
    _refused(site.answer(_HALF, _HALF + 3), "needs-approval", 3)
    after = _put(site, before)
    _refused(site.answer(_HALF, _HALF + 3), "rolled-back", 3)
    _put(site, after)


def _put(site: Site, disk: Path) -> Path:
    """Put another disk in; where the one before now is."""
    away = disk.with_name(f"{disk.name}-away")
    site.disk.rename(away)
    shutil.copytree(disk, site.disk)
    return away


def _attack(site: Site, scheme: str) -> None:
    """No rollout lets pass that has expired, is another namespace's, or was edited."""
    world = site.world()
    with site.open("operator") as store:
        plan = store.rollouts.plan(world)
        pairs = [(each.world, plan.world) for each in plan.worlds if not each.left.passes]
    end = _accept_for_a_moment(site, pairs)
    _accept(site, pairs, namespace="billing")
    genuine = site.disk.with_name("genuine")
    shutil.copytree(site.disk, genuine)
    {"sqlite": _edit_rows, "file": _edit_files}[scheme](site.disk)
    # A book that cannot be read lets nothing pass: people are asked.
    _refused(site.answer(_HALF, _HALF + 1), "needs-approval", 1)
    _put(site, genuine)
    time.sleep(max(0, end - time.monotonic()))
    _refused(site.answer(_HALF, _HALF + 3), "needs-approval", 3)


def _accept_for_a_moment(site: Site, pairs: Any) -> float:
    """Have a rollout accepted that ends soon: when. On a busy machine people get more time."""
    for seconds in _HOLDS_S:
        try:
            _accept(site, pairs, until=timedelta(seconds=seconds))
        except SealpointError:  # it had ended before both had approved
            continue
        return time.monotonic() + seconds
    return pytest.fail("no rollout was accepted in time")


def _accept(site: Site, pairs: Any, namespace: str = "default", **named: Any) -> None:
    with site.open("operator", namespace) as store:
        rollout = store.rollouts.propose(pairs, reason="release 43", **named)
    for who in ("ann", "bob"):
        with site.open(who, namespace) as store:
            store.approve(rollout.id, reason="looked at")


def _edit_rows(disk: Path) -> None:
    """Have the newest rollout be the one of another release, in the database."""
    with closing(sqlite3.connect(disk / "agents")) as database, database:
        changed = database.execute(
            "UPDATE entries SET body = CAST(replace(body, 'release 43', 'release 42') AS BLOB) "
            "WHERE instr(body, 'release 43')"
        )
    assert changed.rowcount


def _edit_files(disk: Path) -> None:
    """The same in the files of a store."""
    changed = 0
    for path in filter(Path.is_file, disk.rglob("*")):
        data = path.read_bytes()
        if b"release 43" in data:
            path.chmod(0o600)
            path.write_bytes(data.replace(b"release 43", b"release 42"))
            changed += 1
    assert changed


@_soaked
def test_a_rollout_never_covers_an_answer(scheme: str, tmp_path: Path) -> None:
    """Under the shipped `strict` each answer is approved by itself, after the rollout as before."""
    site = Site(tmp_path, scheme, _TEAM)
    assert site.work("ask", 0, 2) == {"ok": 2}
    site.upgrade()
    said = _refused(site.answer(0, 2), "needs-approval", 2)
    assert _UPGRADE in said
    assert "an answer is given" in said
    rollout = site.propose()
    site.approve(rollout, "ann")
    site.approve(rollout, "bob")
    said = _refused(site.answer(0, 2), "needs-approval", 2)
    assert "an answer is given to a pending question (approvals needed: 2, found: 0)" in said
    _each_answer(site, lambda store, request: store.approve(request, reason="looked at"))
    assert site.answer(0, 2) == {"ok": 2}


def _each_answer(site: Site, do: Callable[[sealpoint.Store, str], object]) -> None:
    for who in ("ann", "bob"):
        with site.open(who) as store:
            for each in store.requests().requests:
                if each.status == "open":
                    do(store, each.id)
