# SPDX-License-Identifier: Apache-2.0
"""Commands of OpenClaw as children of the guard: as whom they run, and how they end.

A command runs as the user that `init` recorded, not as the present owner of OpenClaw's folder, with
that folder, and without the settings and secrets of the guard. For another user, a guard of root
hands on a few variables of the environment and no terminal, and keeps two rights once the
gateway runs: to read all files, and to signal the gateway. It cannot write the files of others.
"""

import ctypes
import os
import pwd
import signal
import subprocess  # nosec B404 # the command that the user named, and no shell
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any

from sealpoint.errors import UsageError

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)
# Another user gets only these variables: the rest of the environment may hold secrets of root.
_PUBLIC = frozenset({"PATH", "LANG", "TZ", "TERM"})
_PUBLIC_PREFIXES = ("LC_", "OPENCLAW_")
_BY_SIGNAL = 128
_COPY_SECONDS = 2.0
_READ_BYTES = 1 << 16
_CLEAN = frozenset({0, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT})

# From linux/capability.h and linux/prctl.h.
_CAP_DAC_READ_SEARCH, _CAP_KILL, _CAPS = 2, 5, 41
_CAPABILITY_VERSION_3 = 0x20080522
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38


class Child:
    """A command that runs as a child of the guard.

    Args:
        command: The command.
        folder: OpenClaw's folder.
        user: The uid of the gateway.

    Raises:
        UsageError: It cannot be started.
    """

    def __init__(self, command: Sequence[str], folder: Path, user: int) -> None:
        self._is_foreign = user != os.geteuid()
        kept = {key: text for key, text in os.environ.items() if self._may_have(key)}
        # The gateway stays the process that the guard started.
        kept |= {"OPENCLAW_STATE_DIR": str(folder), "OPENCLAW_NO_RESPAWN": "1"}
        options = dict[str, Any]()
        if self._is_foreign:
            if os.geteuid() != 0:
                raise UsageError(
                    f"{command[0]}: it runs as uid {user}, and only root starts commands of others"
                )
            try:
                found = pwd.getpwuid(user)
            except KeyError as exc:
                raise UsageError(
                    f"{folder}: expected a user of this machine as owner, found uid {user}"
                ) from exc
            kept |= {"HOME": found.pw_dir, "USER": found.pw_name, "LOGNAME": found.pw_name}
            groups = os.getgrouplist(found.pw_name, found.pw_gid)
            options = {"user": user, "group": found.pw_gid, "extra_groups": groups}
            # In the session of root it could write to the terminal what root seems to type, and
            # with its descriptors it could read what root types.
            options["start_new_session"] = True
            options |= {
                name: subprocess.DEVNULL if name == "stdin" else subprocess.PIPE
                for place, name in enumerate(("stdin", "stdout", "stderr"))
                if os.isatty(place)
            }
        try:
            self._process = subprocess.Popen(  # noqa: S603 # nosec B603 # the same
                list(command), env=kept, **options
            )
        except (OSError, subprocess.SubprocessError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else str(exc)
            raise UsageError(f"{command[0]}: it cannot be started: {why}") from exc
        self.pid = self._process.pid
        pipes = {1: self._process.stdout, 2: self._process.stderr}
        self._copies = [
            threading.Thread(target=_copy, args=(pipe, place), daemon=True)
            for place, pipe in pipes.items()
            if pipe is not None
        ]
        for each in self._copies:
            each.start()

    def _may_have(self, key: str) -> bool:
        if self._is_foreign:
            return key in _PUBLIC or key.startswith(_PUBLIC_PREFIXES)
        return not key.startswith("SEALPOINT_")

    def drop_rights(self) -> None:
        """Keep only the rights of a guard, if it runs as root for a gateway of another user."""
        if self._is_foreign and sys.platform == "linux":
            _keep_rights((1 << _CAP_DAC_READ_SEARCH) | (1 << _CAP_KILL))

    def runs(self, seconds: float) -> bool:
        """Wait for it to end; whether it still runs after some seconds."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def wait(self) -> int:
        """Wait for it to end, and return the status that a shell would show."""
        status = self._process.wait()
        for each in self._copies:
            each.join(_COPY_SECONDS)  # what it left running may keep the pipe
        return status if status >= 0 else _BY_SIGNAL - status

    @property
    def ended_cleanly(self) -> bool:
        """Whether it has ended as a gateway that was stopped."""
        return self._process.returncode in _CLEAN

    @contextmanager
    def forwarding(self) -> Iterator[None]:
        """Hand signals on to it, and wait for it to end by them; a guard that fails stops it."""

        def forward(number: int, frame: FrameType | None) -> None:
            del frame
            self._process.send_signal(number)

        before = {number: signal.signal(number, forward) for number in _FORWARDED}
        try:
            yield
        except BaseException:
            self._process.terminate()
            self._process.wait()
            raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _copy(pipe: IO[bytes], place: int) -> None:
    """Copy what a command prints to a descriptor of this process, until it ends."""
    with suppress(OSError):
        while data := os.read(pipe.fileno(), _READ_BYTES):
            while data:
                data = data[os.write(place, data) :]


def _keep_rights(kept: int) -> None:
    """Give up all capabilities of this thread and of those it starts but some, for good."""
    libc = ctypes.CDLL(None, use_errno=True)
    for right in range(_CAPS):
        if not kept >> right & 1:
            libc.prctl(_PR_CAPBSET_DROP, right, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted, inheritable; the second three are those of numbers from 32 on.
    data = (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)
    if libc.capset(header, data) != 0:
        number = ctypes.get_errno()
        raise UsageError(f"the guard cannot give up its rights: {os.strerror(number)}")
