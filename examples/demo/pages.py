# SPDX-License-Identifier: Apache-2.0
"""The last scene: a payment from the question to the money, in a browser."""

import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from payments import Passkeys, Payments, application, serve
from screen import console, say, scene, tell
from team import PLACE, URL

import sealpoint
from sealpoint import Registry
from sealpoint.gate import shipped_policy
from sealpoint.views.answer_forms import answer_to, questions_of
from sealpoint_console import Console, ConsoleSettings


def scene_pages() -> None:
    """Serve the page and the console; without a terminal, people answer and approve by key."""
    scene("7. Ask, answer, approve: in your browser")
    policy = shipped_policy("team").replace(b'\nanswer = "record"', b'\nanswer = "approve 1"')
    sealpoint.admin(URL, **PLACE).policy.apply(policy, reason="one answers, another approves")
    with Payments() as payments:
        if sys.stdin.isatty():
            _serve(payments)
        else:
            _play(payments)


def _play(payments: Payments) -> None:
    """What people do on the pages, with keys in files."""
    tell("There is no terminal: the operator answers and ann approves, with keys in files.")
    name = payments.ask("42.00", "initech")
    with sealpoint.open_store(URL, identity="operator", **PLACE) as operator:
        thread = operator.thread(name)
        asked = questions_of(thread.question)
        say("agent", f"asks: {asked[0].value}")
        given = thread.answer(answer_to(asked, [{"approved": True}]), reason="as agreed")
    say("operator", f"signs the answer {given.id[:12]}: {given.answer['resume'][asked[0].id]}")
    payments.resume()
    with sealpoint.open_store(URL, identity="ann", **PLACE) as ann:
        (request,) = (each for each in ann.requests().requests if each.thread == name)
        ann.approve(request.id, reason="as agreed")
    say("ann", f"approves it: request {request.short}")
    payments.resume()
    say("worker", "resumes what people let pass, once:")
    payments.bank.tell([])


def _serve(payments: Payments) -> None:
    passkeys, key, port = Passkeys(), secrets.token_urlsafe(16), _free_port()
    payments.start_worker()
    with _console(passkeys) as origin:
        app = application(payments, passkeys, key=key, console=origin)
        tell("Open this page, and do as it says. Ctrl-C ends it.")
        console.print(f"  http://localhost:{port}/{key}/")
        with suppress(KeyboardInterrupt):
            serve(app, port)


@contextmanager
def _console(passkeys: Passkeys) -> Iterator[str]:
    """The console of the store, while the block runs."""
    port = _free_port(8734)
    settings = ConsoleSettings(port=port, origin=f"http://localhost:{port}")
    shown = Registry().showing_untyped("")
    with (
        sealpoint.open_store(URL, read_only=True, registry=shown, **PLACE) as reading,
        sealpoint.open_store(URL, identity="operator", **PLACE) as acting,
    ):
        pages = Console(reading, acting, settings, admin=sealpoint.admin(URL, **PLACE))
        pages.desk.on_enrolled = passkeys.note
        pages.listen()
        serving = threading.Thread(target=pages.run)
        serving.start()
        try:
            yield settings.origin
        finally:
            pages.stop()
            serving.join()


def _free_port(wanted: int = 0) -> int:
    """The port that is wanted, or another one if something else is there."""
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            free.bind(("127.0.0.1", wanted))
        except OSError:
            return _free_port()
        found: int = free.getsockname()[1]
    return found
