# SPDX-License-Identifier: Apache-2.0
"""The folder of a real gateway, as it was recorded, and a stand-in that writes what one writes.

The demo calls this program `openclaw`, so that the guard sees the command of a gateway. The real
one has 760 MB.
"""

import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]
_RECORDED = _CHECKOUT / "packages/sealpoint-openclaw/tests/openclaw/recorded"
STATE = "state/openclaw.sqlite"
AGENT = "agents/main/agent/openclaw-agent.sqlite"
_DATABASES = {"state": STATE, "agent": AGENT}
_FILES = {
    "openclaw.json": '{"tools": {"exec": {"ask": "on-miss"}}}\n',
    "workspace/AGENTS.md": "Be helpful.\n",
    "workspace/SOUL.md": "You are calm.\n",
    "workspace/MEMORY.md": "Ann likes tea.\n",
}


def make_folder(folder: Path) -> None:
    """Make the state folder of a gateway that has had a few turns."""
    for kind, place in _DATABASES.items():
        (folder / place).parent.mkdir(parents=True)
        edit(folder, place, (_RECORDED / f"{kind}.sql").read_text(encoding="utf-8"))
    for place, text in _FILES.items():
        write(folder, place, text)


def edit(folder: Path, place: str, script: str) -> None:
    """Change a database, as a gateway or an attacker does."""
    with closing(sqlite3.connect(folder / place)) as connection:
        connection.create_function("octet_length", 1, _octets, deterministic=True)
        connection.executescript(script)
        connection.commit()


def write(folder: Path, place: str, text: str) -> None:
    """Write a file."""
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_text(text, encoding="utf-8")


def _octets(value: str | bytes | None) -> int | None:
    return None if value is None else len(value.encode() if isinstance(value, str) else value)


def _turn(folder: Path) -> None:
    edit(
        folder,
        AGENT,
        "INSERT INTO transcript_events (session_id, seq, event_json, created_at) SELECT session_id,"
        """ max(seq) + 1, '{"type": "message", "text": "Good morning"}', 1"""
        " FROM transcript_events GROUP BY session_id",
    )


def main() -> None:
    """Be the gateway, until a signal comes, or a command that changes the configuration."""
    folder = Path(os.environ["OPENCLAW_STATE_DIR"])
    match sys.argv[1:]:
        case ["config", "set", text]:
            write(folder, "openclaw.json", text + "\n")
        case ["gateway"]:
            _turn(folder)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            print("ready", flush=True)
            time.sleep(60)


if __name__ == "__main__":
    main()
