# SPDX-License-Identifier: Apache-2.0
"""The folder of the plugin, which the gateway reads and only the guard writes.

It lies outside of OpenClaw's folder. It holds the plugin of this distribution, the socket of the
guard, a wrapper and a unit file for service managers, and the change of OpenClaw's configuration
that loads the plugin.
"""

import json
import shlex
import stat
import sys
from pathlib import Path

from sealpoint.config import replace_file
from sealpoint.errors import (
    ConfigError,
    GuardExposed,
    NeedsApproval,
    NotTrusted,
    StateChanged,
    StateUnsealed,
)

SOCKET = "guard.sock"
PATCH = "openclaw-patch.json"
WRAPPER = "openclaw-guarded"
UNIT = "openclaw.service"

_PLUGIN = "plugin"
_SOURCE = Path(__file__).with_name(_PLUGIN)
_ID = "sealpoint-guard"
_FILES = ("index.js", "openclaw.plugin.json", "package.json")
_READABLE = 0o644
_RUNNABLE = 0o755
# The state changed, or people must decide: another start would say the same.
_REFUSALS = " ".join(
    str(error.exit_status)
    for error in (StateChanged, NotTrusted, ConfigError, StateUnsealed, NeedsApproval)
)
_UNIT = """\
# One process guards: it verifies OpenClaw's state, starts the gateway as the user who owned the
# folder at init, and keeps only the right to read that folder and to signal the gateway.
[Unit]
Description=OpenClaw gateway, verified and guarded
After=network-online.target

[Service]
ExecStart={run} -- openclaw gateway
Restart=on-failure
RestartPreventExitStatus={refusals}
KillMode=mixed
# OpenClaw lets work under way finish, for 330 seconds at most.
TimeoutStopSec=360
CapabilityBoundingSet=CAP_CHOWN CAP_DAC_READ_SEARCH CAP_KILL CAP_SETUID CAP_SETGID CAP_SETPCAP
ProtectSystem=full

[Install]
WantedBy=multi-user.target
"""


def write_plugin_folder(folder: Path, run: tuple[str, ...]) -> None:
    """Write the plugin, the configuration that loads it, a wrapper and a unit file.

    Args:
        folder: The folder; it is made if it is not there.
        run: The verb that runs a gateway under the guard, without the gateway's command.
    """
    plugin = folder / _PLUGIN
    for directory in (folder, plugin):
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(_RUNNABLE)
    for name in _FILES:
        _write(plugin / name, _SOURCE.joinpath(name).read_bytes())
    settings = {"socket": str(folder / SOCKET)}
    _write(plugin / "guard.json", f"{json.dumps(settings)}\n".encode())
    patch = {
        "plugins": {
            "load": {"paths": [str(plugin)]},
            "entries": {_ID: {"enabled": True, "hooks": {"allowConversationAccess": True}}},
        }
    }
    _write(folder / PATCH, f"{json.dumps(patch, indent=2)}\n".encode())
    words = shlex.join([sys.executable, "-m", "sealpoint", *run])
    _write(folder / WRAPPER, f'#!/bin/sh\nexec {words} -- openclaw "$@"\n'.encode(), _RUNNABLE)
    _write(folder / UNIT, _UNIT.format(run=words, refusals=_REFUSALS).encode())


def require_readable(folder: Path, gateway: int) -> None:
    """Refuse a folder of the plugin that the gateway's user could not read.

    Raises:
        GuardExposed: A directory on the way is closed to others.
    """
    for directory in (folder, *folder.resolve().parents):
        found = directory.stat()
        if found.st_uid != gateway and not found.st_mode & stat.S_IXOTH:
            raise GuardExposed(
                f"{directory}: the gateway's user cannot enter this directory, so it could not "
                "read the guard's plugin",
                hint="Name another folder: sealpoint openclaw init --gate DIR",
            )


def _write(path: Path, data: bytes, mode: int = _READABLE) -> None:
    """Write a file for others to read, unless it has these bytes."""
    if not path.is_file() or path.read_bytes() != data:
        replace_file(path, data)
    path.chmod(mode)
