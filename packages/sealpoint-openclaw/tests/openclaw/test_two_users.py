# SPDX-License-Identifier: Apache-2.0
"""A guard of root with a gateway of another user: what that user cannot reach through the guard."""

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from sealpoint.cli import main
from sealpoint.errors import ConfigError, GuardExposed, UsageError
from sealpoint_openclaw import GuardSettings
from sealpoint_openclaw._gate_server import GateServer
from sealpoint_openclaw._gateway_process import Child
from tests.openclaw.recorded_folder import Recorded

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux", reason="only root starts processes of others"
)

# One that every user may run; the environment of these tests may be root's alone.
_PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
_SECONDS_MAX = 60
# Puts a link to root's folder in the place of the gateway's, when the guard has read its files.
_SWAP = """
import ctypes, os, sys, time
folder = sys.argv[1]
libc = ctypes.CDLL(None)
watch = libc.inotify_init()
libc.inotify_add_watch(watch, (folder + "/openclaw.json").encode(), 0x10)  # IN_CLOSE_NOWRITE
print("ready", flush=True)
seen = 0
while seen < 2:
    seen += len(os.read(watch, 4096)) // 16
os.rename(folder, folder + "2")
os.symlink(sys.argv[2], folder)
time.sleep(1)
os.unlink(folder)
os.rename(folder + "2", folder)
"""


@dataclass(frozen=True, slots=True)
class _Server:
    """A folder in the home of `nobody`, and its guard of root."""

    recorded: Recorded
    user: pwd.struct_passwd
    out: Path
    """A directory that everybody may write."""

    @property
    def settings(self) -> GuardSettings:
        """The settings of the guard, which accepts no gateway of its own user."""
        return replace(self.recorded.settings(), same_user=False)

    def child(self, script: str) -> Child:
        """A command of the gateway's user."""
        return Child(["/bin/sh", "-c", script], self.recorded.folder, self.user.pw_uid)


@pytest.fixture
def server() -> Iterator[_Server]:
    """In a directory that all users may enter."""
    with tempfile.TemporaryDirectory(prefix="sealpoint-", dir="/tmp") as name:
        base = Path(name)
        base.chmod(0o755)
        user = pwd.getpwnam("nobody")
        home = base / "home"
        home.mkdir()
        os.chown(home, user.pw_uid, user.pw_gid)
        recorded = Recorded(base, folder=home / ".openclaw").make()
        recorded.give_to(user.pw_uid)
        (base / "gate").mkdir(exist_ok=True)
        out = base / "out"
        out.mkdir()
        out.chmod(0o777)
        yield _Server(recorded, user, out)


def test_a_folder_that_is_swapped_for_one_of_root_gives_nobody_root(server: _Server) -> None:
    """The gateway's user swaps it after the guard has verified it, and before the start."""
    settings, uid = server.settings, server.out / "uid"
    with subprocess.Popen(
        [_PYTHON, "-c", _SWAP, str(settings.folder.root), str(Path.home())],
        user=server.user.pw_uid,
        group=server.user.pw_gid,
        extra_groups=[],
        stdout=subprocess.PIPE,
    ) as swap:
        assert swap.stdout is not None
        swap.stdout.readline()
        words = ("--config-dir", settings.config_dir, "--state-dir", settings.state_dir)
        subprocess.run(
            [
                *(sys.executable, "-m", "sealpoint", "openclaw", "run", *map(str, words)),
                *("--gateway", "--", "/bin/sh", "-c", f"id -u > {uid}; sleep 2"),
            ],
            check=False,
            timeout=_SECONDS_MAX,
        )
        swap.kill()

    assert not uid.exists() or uid.read_text() == f"{server.user.pw_uid}\n"


def test_a_folder_that_became_a_link_is_refused(server: _Server) -> None:
    """The guard reads as root wherever it leads to."""
    settings = server.settings
    settings.check_reach()
    moved = settings.folder.root.rename(server.recorded.home / "moved")
    settings.folder.root.symlink_to(moved)
    os.chown(settings.folder.root, server.user.pw_uid, -1, follow_symlinks=False)

    with pytest.raises(GuardExposed, match="found a link"):
        settings.check_reach()


def test_a_folder_of_another_user_than_at_init_is_refused(server: _Server) -> None:
    """The number of the user is a setting, not what the folder says."""
    settings = server.settings
    os.chown(settings.folder.root, server.user.pw_uid + 1, -1)

    with pytest.raises(GuardExposed, match=f"expected a directory of uid {server.user.pw_uid}"):
        settings.check_reach()


def test_a_gateway_of_root_is_refused_unless_it_is_accepted(server: _Server) -> None:
    """Its commands would run as root."""
    settings = replace(server.settings, user=0)
    os.chown(settings.folder.root, 0, 0)

    with pytest.raises(GuardExposed, match="belong to the user of this guard"):
        settings.check_reach()


@pytest.mark.parametrize("text", ["", "user = true\n", 'user = "nobody"\n'])
def test_settings_without_the_user_of_the_gateway_are_refused(server: _Server, text: str) -> None:
    """As an older `init` wrote them."""
    settings = server.settings
    config = settings.config_dir / "config.toml"
    config.write_text(config.read_text().replace(f"user = {settings.user}\n", text))

    with pytest.raises(ConfigError, match="user"):
        GuardSettings.load(config_dir=str(settings.config_dir), state_dir=str(settings.state_dir))


def test_the_environment_of_the_guard_is_not_handed_on(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold passwords of root; what OpenClaw itself reads stays."""
    for name in ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "VAULT_TOKEN", "NODE_OPTIONS"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("OPENCLAW_PROFILE", "work")
    server.child(f"env > {server.out}/env").wait()
    text = (server.out / "env").read_text()

    assert "secret" not in text
    assert "OPENCLAW_PROFILE=work\n" in text
    assert f"HOME={server.user.pw_dir}\n" in text


def test_a_command_has_a_terminal_session_of_its_own(server: _Server) -> None:
    """In the session of root it could type commands for root; signals still reach it."""
    child = server.child("exec sleep 60")
    session = os.getsid(child.pid)
    with child.forwarding():
        os.kill(os.getpid(), signal.SIGTERM)
        status = child.wait()

    assert session == child.pid
    assert status == 128 + signal.SIGTERM


_AT_TERMINAL = """
import sys
from pathlib import Path
from sealpoint_openclaw._gateway_process import Child
child = Child(["/bin/sh", "-c", sys.argv[3]], Path(sys.argv[1]), int(sys.argv[2]))
sys.exit(child.wait())
"""


def test_a_command_gets_no_terminal(server: _Server) -> None:
    """With a descriptor of it, the command could read what root types; its output arrives."""
    ours, theirs = os.openpty()
    script = "test -t 0 -o -t 1 -o -t 2; echo status $?; read line; echo then $? >&2; exit 3"
    words = [str(server.recorded.folder), str(server.user.pw_uid), script]
    with subprocess.Popen(
        [sys.executable, "-c", _AT_TERMINAL, *words], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.write(ours, b"a secret\n")
        status = process.wait(_SECONDS_MAX)
    printed = os.read(ours, 1 << 16).decode()

    assert status == 3
    assert "status 1" in printed
    assert "then 1" in printed


def test_a_guard_that_cannot_give_up_its_rights_stops_the_gateway(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would seal what it writes."""
    pids: list[int] = []

    def fail(child: Child) -> None:
        pids.append(child.pid)
        raise UsageError("the guard cannot give up its rights")

    monkeypatch.setattr(Child, "drop_rights", fail)
    settings = server.settings
    words = ("--config-dir", settings.config_dir, "--state-dir", settings.state_dir)
    done = CliRunner().invoke(
        main, ["openclaw", "run", *map(str, words), "--gateway", "--", "sleep", "60"]
    )

    assert "cannot give up its rights" in done.stderr
    assert not Path(f"/proc/{pids[0]}").exists()


_OWN = (
    "config",
    "config/openclaw.key",
    "config/config.toml",
    "config/keys",
    "state",
    "store",
    "store/seals.db",
    "store/seals.db-wal",
    "gate/plugin/index.js",
)


@pytest.mark.parametrize("right", ["owner", "group", "others"])
def test_what_the_gateway_could_change_is_refused(server: _Server, right: str) -> None:
    """The directories of the guard and each file in them, also by the gateway's groups."""
    settings, user, refused = server.settings, server.user, []
    for place in _OWN:
        path = server.recorded.home / place
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.touch()
        settings.check_reach()
        mode = stat.S_IMODE(path.stat().st_mode)
        if right == "others":
            path.chmod(mode | stat.S_IWOTH)
        else:
            own = right == "owner"
            os.chown(path, user.pw_uid if own else -1, -1 if own else user.pw_gid)
            path.chmod(mode | stat.S_IWGRP)
        try:
            settings.check_reach()
        except GuardExposed:
            refused.append(place)
        os.chown(path, 0, 0)
        path.chmod(mode)

    assert refused == list(_OWN)


def test_a_key_behind_a_link_counts_where_it_is(server: _Server) -> None:
    """As for a mounted secret."""
    secret = server.settings.config_dir / "openclaw.key"
    moved = secret.rename(server.out / "openclaw.key")
    secret.symlink_to(moved)

    with pytest.raises(GuardExposed, match=str(server.out)):
        server.settings.check_reach()


def test_the_socket_of_a_running_guard_is_for_the_gateway(server: _Server) -> None:
    """Another verb works meanwhile."""
    gate = GateServer(server.settings.gate / "guard.sock", print, str, server.user.pw_uid)
    gate.listen()
    try:
        server.settings.check_reach()
    finally:
        gate.close()
