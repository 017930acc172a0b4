# SPDX-License-Identifier: Apache-2.0
"""The last scene: the same store in the operator console, with a payment that waits for people."""

import socket
import sys
import threading
import time
from collections.abc import Callable

from screen import console, scene, tell
from team import PLACE, URL

import sealpoint
from sealpoint.cli import main as command_line
from sealpoint_console import Console, ConsoleSettings


def scene_console(ask: Callable[[], object], go_on: Callable[[], bool]) -> None:
    """Serve the console; without somebody at a terminal, only until it has answered once.

    Args:
        ask: Has an agent ask for something that people have to approve.
        go_on: Has its worker try again; says whether it went on.
    """
    scene("7. The console: approve a payment yourself")
    ask()
    if sys.stdin.isatty():
        tell(
            "Invoice 21 waits for two people, ann and bob. The link below signs you in as owner, "
            "for whom the agent works: who may look, and cannot approve. So in the console:"
        )
        for step in (
            "open Requests, and read what would be paid;",
            "on its page, make a passkey as ann, and type its first digits into this terminal;",
            "sign in with it, as ann, and approve;",
            "make another as bob, and do the same; the worker goes on by itself.",
        ):
            console.print(f"  - {step}")
        tell("Or in another terminal: sealpoint approve, as above, --identity ann, then bob.")
    ended = threading.Event()
    threading.Thread(target=_work, args=(go_on, ended), daemon=True).start()
    folders = ("--config-dir", str(PLACE["config_dir"]), "--state-dir", str(PLACE["state_dir"]))
    if not sys.stdin.isatty():
        _serve_shortly()
        return
    try:
        listen = ("--print-link", "--listen", f"127.0.0.1:{_free_port()}")
        command_line(["serve", "--store", URL, *listen, *folders], standalone_mode=False)
    except (KeyboardInterrupt, sealpoint.SealpointError) as ending:
        tell(f"The console ended. {ending}")
    finally:
        ended.set()


def _work(go_on: Callable[[], bool], ended: threading.Event) -> None:
    while not ended.wait(1.0):
        if go_on():
            console.print("\n[bold]The worker went on: invoice 21 is paid.[/bold]")
            return


def _free_port(wanted: int = 8734) -> int:
    """The usual port of the console, or another one if something else is there."""
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            free.bind(("127.0.0.1", wanted))
        except OSError:
            return _free_port(0)
        found: int = free.getsockname()[1]
    return found


def _serve_shortly() -> None:
    """Without a terminal there is nobody to stop it: it ends as soon as it answers."""
    port = _free_port(0)
    settings = ConsoleSettings(port=port, origin=f"http://localhost:{port}")
    admin = sealpoint.admin(URL, **PLACE)
    with (
        sealpoint.open_store(URL, read_only=True, **PLACE) as reading,
        sealpoint.open_store(URL, identity="operator", **PLACE) as acting,
    ):
        pages = Console(reading, acting, settings, admin=admin)
        serving = threading.Thread(target=pages.run)
        serving.start()
        while not pages.is_up and serving.is_alive():
            time.sleep(0.05)
        tell(f"It answers at {settings.origin}, and stops: there is no terminal.")
        pages.stop()
        serving.join()
