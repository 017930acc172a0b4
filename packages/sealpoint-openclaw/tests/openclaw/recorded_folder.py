# SPDX-License-Identifier: Apache-2.0
"""A recorded OpenClaw folder, with a guard around it.

The databases are those of a gateway of version 2026.9.6 after a few turns, as SQL; long texts are
shortened, and keys are replaced. `Recorded` makes the folder anew for each test, edits it as an
attacker or as the gateway would, and opens guards of it.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import sealpoint
from sealpoint.gate import Thread
from sealpoint_openclaw import Folder, Guard, GuardSettings

STATE = "state/openclaw.sqlite"
AGENT = "agents/main/agent/openclaw-agent.sqlite"

_DIED = 9
_DYING = f"""
import os, sys
from pathlib import Path
from tests.openclaw.recorded_folder import Recorded
recorded = Recorded(Path(sys.argv[1]), folder=Path(sys.argv[2]))
with recorded.guard() as guard, guard.running():
    recorded.turn()
    os._exit({_DIED})
"""

_RECORDED = Path(__file__).parent / "recorded"
_FILES = {
    "openclaw.json": '{"gateway": {"bind": "loopback"}, "tools": {"exec": {"ask": "on-miss"}}}',
    "config-journal-fingerprint.key": "0" * 32,
    "workspace/AGENTS.md": "Be helpful.\n",
    "workspace/SOUL.md": "You are calm.\n",
    "workspace/MEMORY.md": "Ann likes tea.\n",
    "workspace/memory/2026-11-18.md": "Talked about tea.\n",
    "workspace/skills/report/SKILL.md": "How to write a report.\n",
    "logs/gateway.log": "started\n",
    "tmp/lock": "",
}


@contextmanager
def _opened(path: Path | str) -> Iterator[sqlite3.Connection]:
    """Open a database with the functions of a newer SQLite that its checks use."""
    with closing(sqlite3.connect(path)) as connection:
        connection.create_function("octet_length", 1, _octets, deterministic=True)
        yield connection
        connection.commit()


def _octets(value: str | bytes | None) -> int | None:
    return None if value is None else len(value.encode() if isinstance(value, str) else value)


@cache
def _database(kind: str) -> bytes:
    """The bytes of a recorded database; SQLite makes them once for each process."""
    with _opened(":memory:") as connection:
        connection.executescript((_RECORDED / f"{kind}.sql").read_text("utf-8"))
        return connection.serialize()


@dataclass(frozen=True, slots=True)
class Recorded:
    """A folder, and the directories of its guard."""

    home: Path
    policy: str = "solo"
    folder: Path = Path()
    """OpenClaw's state folder."""

    @classmethod
    def of(cls, home: Path, policy: str = "solo") -> "Recorded":
        """Make a sealed folder and its guard."""
        return cls(home, policy, home / "openclaw").make()

    def copied(self, target: Path) -> "Recorded":
        """A copy of the folder, in the place of the one that this guard has sealed."""
        shutil.copytree(self.folder, target, symlinks=True)
        return replace(self, folder=target)

    def make(self) -> "Recorded":
        """Write the folder, and make the guard with its first seal."""
        for kind, path in (("state", STATE), ("agent", AGENT)):
            target = self.folder / path
            target.parent.mkdir(parents=True)
            target.write_bytes(_database(kind))
        for path, text in _FILES.items():
            self.write(path, text)
        settings = self.settings()
        for directory in (settings.config_dir, settings.state_dir, self.home / "store"):
            directory.mkdir(mode=0o700)
        sealpoint.init(
            settings.store,
            config_dir=settings.config_dir,
            state_dir=settings.state_dir,
            policy=self.policy,
        )
        settings.make_secret()
        settings.write()
        with self.guard() as guard:
            guard.seal_first()
        return self

    def settings(self) -> GuardSettings:
        """The settings of the guard."""
        return GuardSettings(
            folder=Folder(root=self.folder),
            user=self.folder.stat().st_uid,
            store=f"sqlite:///{self.home / 'store' / 'seals.db'}",
            same_user=True,
            gate=self.home / "gate",
            config_dir=self.home / "config",
            state_dir=self.home / "state",
        )

    def give_to(self, user: int) -> None:
        """Make another user of this machine the one who runs the gateway."""
        config = self.settings().config_dir / "config.toml"
        before = f"user = {self.settings().user}\n"
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)
        config.write_text(config.read_text("utf-8").replace(before, f"user = {user}\n"), "utf-8")
        with self.guard() as guard:
            guard.accept("the folder belongs to another user")

    def give_to_team(self) -> None:
        """Put the policy `strict` in force, with two people who approve."""
        settings = self.settings()
        admin = sealpoint.admin(
            settings.store, config_dir=settings.config_dir, state_dir=settings.state_dir
        )
        for person in ("ann", "bob"):
            admin.keys.create(person)
            admin.keys.add(person, person=person, roles=["approver"], namespaces=["*"])
        admin.policy.apply("strict")

    @contextmanager
    def guard(self) -> Iterator[Guard]:
        """A guard in a process that has seen nothing."""
        settings = self.settings()
        with settings.open_store() as store:
            yield settings.guard(store)

    @contextmanager
    def operator(self) -> Iterator[Thread]:
        """The thread of the seals, as a person who may pause it has it."""
        settings = self.settings()
        with settings.open_store(identity="operator") as store:
            yield store.thread(settings.thread)

    def die_running(self) -> None:
        """Start under a guard whose process dies without a word, after a turn."""
        died = subprocess.run(
            [sys.executable, "-c", _DYING, str(self.home), str(self.folder)], check=False
        )
        assert died.returncode == _DIED

    def write(self, path: str, text: str) -> None:
        """Write a file of the folder."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def sql(self, database: str, statement: str, *arguments: Any) -> None:
        """Change a database, as its gateway or an attacker does."""
        with _opened(self.folder / database) as connection:
            connection.execute(statement, arguments)

    def value(self, database: str, statement: str, *arguments: Any) -> Any:
        """Read one value of a database."""
        with _opened(self.folder / database) as connection:
            (value,) = connection.execute(statement, arguments).fetchone()
            return value

    def turn(self, number: int = 1) -> None:
        """Write what a turn writes: a message, its identity, an audit event, a task."""
        session, last = self._newest()
        seq = last + number
        self.sql(
            AGENT,
            "INSERT INTO transcript_events (session_id, seq, event_json, created_at)"
            " VALUES (?, ?, ?, ?)",
            *(session, seq, f'{{"type":"message","text":"turn {seq}"}}', seq),
        )
        self.sql(
            AGENT,
            "INSERT INTO transcript_event_identities (session_id, event_id, seq, event_type,"
            " created_at) VALUES (?, ?, ?, 'message', ?)",
            *(session, f"event-{seq}", seq, seq),
        )
        self.sql(AGENT, "UPDATE session_nodes SET updated_at = updated_at + 1")
        self.sql(STATE, "UPDATE schema_meta SET updated_at = updated_at + 1")

    def _newest(self) -> tuple[str, int]:
        with _opened(self.folder / AGENT) as connection:
            session, last = connection.execute(
                "SELECT session_id, max(seq) FROM transcript_events GROUP BY session_id"
            ).fetchone()
            return session, last
