# SPDX-License-Identifier: Apache-2.0
"""Runs commands under the guard: a gateway until it ends, any other command until it is sealed."""

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from time import monotonic

from sealpoint.cli.terminal import print_note
from sealpoint.errors import ResumeRefused, SealpointError
from sealpoint.views.words import Styled, count_text
from sealpoint_openclaw._display import print_check
from sealpoint_openclaw._gate_server import GateServer
from sealpoint_openclaw._gateway_client import GatewayClient, read_access
from sealpoint_openclaw._gateway_process import Child
from sealpoint_openclaw._guard import Guard, Watch
from sealpoint_openclaw._operator_link import OperatorLink
from sealpoint_openclaw._plugin_folder import PATCH, SOCKET
from sealpoint_openclaw._settings import GuardSettings

_REPORTS_SECONDS = 5.0
# A gateway loads its plugins before it takes calls; an upgrade may take minutes until then.
_LOADED_SECONDS = 10.0
_STARTED_SECONDS = 600.0
_SILENT = (
    "The gateway has not loaded the guard's plugin, so its agents run without asking. Load it by "
    f"the settings in {PATCH}."
)
_CHANGED = (
    "The command has run, and its change is not sealed. If it is meant: sealpoint openclaw accept "
    "--reason WHY. Otherwise undo it."
)


def run_gateway(
    settings: GuardSettings,
    guard: Guard,
    running: AbstractContextManager[Watch],
    command: Sequence[str],
    every: float,
) -> int:
    """Run a gateway as a child, answer its plugin, and seal until it has ended."""
    settings.write_plugin()
    with running as watch:
        socket = settings.gate / SOCKET
        server = GateServer(socket, watch.acts.record, guard.refusal, settings.user)
        link = OperatorLink(guard, watch.acts, partial(_connect, settings), _warn)
        server.listen()
        try:
            print_note(f"OpenClaw's state is verified; starting {shlex.join(command)}")
            child = Child(command, settings.folder.root, settings.user)
            with child.forwarding():
                child.drop_rights()
                server.serve(child.pid)
                link.start()
                warned = False
                silent_after = monotonic() + _STARTED_SECONDS
                while child.runs(every):
                    _seal(watch)
                    silent_after = min(silent_after, link.reached_at + _LOADED_SECONDS)
                    if monotonic() > silent_after and not server.greeted and not warned:
                        warned = True
                        _warn(_SILENT)
        finally:
            link.close()
            server.close(_REPORTS_SECONDS)
        watch.end(crashed=not child.ended_cleanly)
        status = child.wait()
        print_note(
            "OpenClaw has stopped; its state is sealed"
            if child.ended_cleanly
            else f"OpenClaw has ended with status {status}; its state is sealed"
        )
        if server.lost:
            _warn("Some reports of the plugin could not be recorded.")
        _print_waiting(watch)
    return status


def _connect(settings: GuardSettings) -> GatewayClient:
    """Connect to the gateway.

    Raises:
        GatewayLost, GatewayRefused: It cannot be reached, or does not accept the guard.
    """
    return GatewayClient(*read_access(settings.folder.root))


def _warn(text: str) -> None:
    print_note(Styled(text, "warning"))


def _seal(watch: Watch) -> None:
    """Seal a running gateway; a fault is said, and tried again later."""
    waited = watch.waits
    try:
        watch.seal()
    except SealpointError as error:
        print_note(Styled(f"not sealed: {error.message}", "warning"))
        return
    if watch.waits and watch.waits != waited:
        _print_waiting(watch)


def _print_waiting(watch: Watch) -> None:
    if not watch.waits:
        return
    print_note(
        Styled(
            f"The next start needs approval for {count_text(len(watch.waits), 'change')}: "
            f"{'; '.join(watch.waits[:5])}",
            "warning",
        )
    )


def run_command(
    settings: GuardSettings,
    guard: Guard,
    command: Sequence[str],
    reason: str | None,
    actor: str | None,
) -> int:
    """Run a command of OpenClaw, and seal what it changed."""
    before = guard.verify()
    child = Child(command, settings.folder.root, settings.user)
    with child.forwarding():
        status = child.wait()
    try:
        check, ref = guard.seal_command(before, reason, actor)
    except SealpointError as error:
        print_check(guard.check())
        if isinstance(error, ResumeRefused):
            error.hint = _CHANGED
        raise
    if ref is None:
        print_note("OpenClaw's state did not change")
    else:
        print_check(check)
        print_note("The change is sealed")
    return status
