# SPDX-License-Identifier: Apache-2.0
"""One event to one hook: a signed POST, or a command.

A webhook is signed as Standard Webhooks 1.0 has it: `webhook-signature` holds an HMAC-SHA256 over
`id.timestamp.body` under each secret of the hook's file, which is read anew each time, so that a
secret is changed without a restart. TLS is verified, no redirect is followed, no proxy is asked,
the answer's body is not read, and all of it ends in time, however slowly the other side answers.

A command is what the operator wrote into `config.toml`: no shell, no text of anybody else among its
arguments, an environment of its own, the event as JSON on its standard input. What it prints is
counted and thrown away.

A failure is told in words that hold no secret: neither the address nor what the other side said.
"""

import base64
import contextlib
import hmac
import http.client
import json
import logging
import os
import re
import selectors
import signal
import socket
import ssl
import subprocess  # nosec B404 # what the operator names in config.toml, and no shell
import threading
import time
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sealpoint.config import (
    HookSettings,
    check_hook_url,
    read_passphrase_file,
    read_password_file,
)
from sealpoint.console._events import ConsoleEvent, sentence
from sealpoint.errors import SealpointError, UsageError

_LOG = logging.getLogger("sealpoint.console")
_SECRET_BYTES = range(24, 65)
_PREFIX = "whsec_"
_RETRY_AFTER_MAX_S = 3600
_SECONDS = re.compile("[0-9]{1,8}")
_READ_BYTES = 64 * 1024
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
_LINK_WORDS = "Open in the console"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long things may take, in seconds."""

    first_wait_s: float = 1.0
    """After a failure; doubled after each that follows."""
    wait_max_s: float = 3600.0
    give_up_s: float = 86400.0
    """An event that was not taken for so long is given up."""
    send_s: float = 10.0
    command_s: float = 30.0


class NotTaken(Exception):  # never leaves the package: it becomes a status
    """A hook did not take an event.

    Args:
        why: In words that may be shown.
        wait_s: How long the other side asks to wait.
    """

    def __init__(self, why: str, wait_s: float = 0.0) -> None:
        super().__init__(why)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Where events come from, as every message says."""

    origin: str
    """Where people reach the console."""
    store_id: str
    namespace: str


Deliver = Callable[[ConsoleEvent], None]


def make_deliver(hook: HookSettings, sender: Sender, pace: Pace) -> Deliver:
    """What sends an event to a hook, or raises NotTaken.

    Raises:
        ConfigError, UsageError, KeyFileUnsafe: A file that the hook names cannot be used.
    """
    if hook.command:
        return lambda event: _run(hook.command, _generic(event, sender), pace.command_s)
    _secrets(hook)
    _url(hook)
    shape = _SHAPES[hook.shape]

    def send(event: ConsoleEvent) -> None:
        body = json.dumps(shape(event, sender)).encode()
        try:
            url, headers = _url(hook), _signed(hook, event.id, body)
        except SealpointError as error:
            raise NotTaken(f"{error.code}: {error.message}") from error
        _post(url, headers, body, pace.send_s)

    return send


# ---------------------------------------------------------------------- shapes


def _generic(event: ConsoleEvent, sender: Sender) -> dict[str, Any]:
    """Everything there is, for programs; `text` is for people."""
    return {
        **event.as_dict(),
        "store": sender.store_id,
        "namespace": sender.namespace,
        "page": f"{sender.origin}{event.page}",
        "text": sentence(event),
    }


def _slack(event: ConsoleEvent, sender: Sender) -> dict[str, Any]:
    """A sentence as plain text, in which Slack looks for no markup, and a link of our own."""
    said, link = sentence(event), f"<{sender.origin}{event.page}|{_LINK_WORDS}>"
    # What a notification shows is parsed: these three are what markup and mentions begin with.
    parsed = said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {
        "text": parsed,
        "blocks": [
            {"type": "section", "text": {"type": "plain_text", "text": said, "emoji": False}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": link, "verbatim": True}]},
        ],
        "unfurl_links": False,
    }


def _teams(event: ConsoleEvent, sender: Sender) -> dict[str, Any]:
    """An Adaptive Card; the text is a run, which unlike a block has no Markdown."""
    said = sentence(event)
    for opening in ("{{", "${"):  # functions and templates, which a workflow would fill in
        said = said.replace(opening, f"{opening[0]}\\u{{7b}}")
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": said}]}],
        "actions": [
            {"type": "Action.OpenUrl", "title": _LINK_WORDS, "url": f"{sender.origin}{event.page}"}
        ],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


_SHAPES: dict[str, Callable[[ConsoleEvent, Sender], dict[str, Any]]] = {
    "generic": _generic,
    "slack": _slack,
    "teams": _teams,
}


# ---------------------------------------------------------------------- webhooks


def _url(hook: HookSettings) -> str:
    if not hook.url_file:
        return hook.url
    url = read_passphrase_file(hook.url_file, f"hook {hook.name!r}: url_file")
    check_hook_url(hook.name, url)
    return url


def _secrets(hook: HookSettings) -> list[bytes]:
    """The secrets that sign: one, or two while it is changed; none for what checks none."""
    if not hook.secret_file:
        return []
    setting = f"hook {hook.name!r}: secret_file"
    return [
        _secret(line, setting) for line in read_password_file(hook.secret_file, setting).split()
    ]


def _secret(line: str, setting: str) -> bytes:
    try:
        secret = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
    except (Base64Error, ValueError):
        secret = b""
    if len(secret) not in _SECRET_BYTES:
        raise UsageError(
            f"{setting}: expected 24 to 64 random bytes in base64, found another text",
            hint="Make one: (umask 077; openssl rand -base64 32 > FILE)",
        )
    return secret


def _signed(hook: HookSettings, event_id: str, body: bytes) -> dict[str, str]:
    at = str(int(time.time()))
    signed = b".".join((event_id.encode(), at.encode(), body))
    macs = [hmac.digest(secret, signed, "sha256") for secret in _secrets(hook)]
    headers = {"webhook-id": event_id, "webhook-timestamp": at}
    if macs:
        headers["webhook-signature"] = " ".join(
            f"v1,{base64.b64encode(mac).decode()}" for mac in macs
        )
    return headers


def _post(url: str, headers: dict[str, str], body: bytes, limit_s: float) -> None:
    parts = urlsplit(url)
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    host, port = parts.hostname or "", parts.port
    connection = (
        http.client.HTTPConnection(host, port, timeout=limit_s)
        if parts.scheme == "http"
        else http.client.HTTPSConnection(
            host, port, timeout=limit_s, context=ssl.create_default_context()
        )
    )
    fixed = {"content-type": "application/json", "user-agent": "sealpoint", "connection": "close"}
    with contextlib.closing(connection), _ending(connection, limit_s) as ended:
        try:
            connection.request("POST", path, body, {**headers, **fixed})
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise NotTaken("no answer in time" if ended.is_set() else _words(exc)) from exc
        with contextlib.closing(answer):  # its body is left unread, however long it is
            wait = answer.getheader("retry-after") or ""
        if ended.is_set():
            raise NotTaken("no answer in time")  # what was read until then may be cut off
    _require_taken(answer.status, wait)


def _require_taken(status: int, wait: str) -> None:
    if http.client.OK <= status < http.client.MULTIPLE_CHOICES:
        return
    is_redirect = http.client.MULTIPLE_CHOICES <= status < http.client.BAD_REQUEST
    words = "; redirects are not followed" if is_redirect else ""
    wait_s = int(wait) if _SECONDS.fullmatch(wait) else 0
    raise NotTaken(f"status {status}{words}", min(wait_s, _RETRY_AFTER_MAX_S))


@contextmanager
def _ending(connection: http.client.HTTPConnection, limit_s: float) -> Iterator[threading.Event]:
    """End a connection in time: a byte now and then would keep it for ever."""
    ended = threading.Event()

    def end() -> None:
        ended.set()
        with contextlib.suppress(OSError, AttributeError):
            connection.sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield ended
    finally:
        timer.cancel()


def _words(exc: Exception) -> str:
    """What went wrong, without what the other side said."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"TLS: the certificate does not verify: {exc.verify_message}"
    if isinstance(exc, ssl.SSLError):
        return "TLS: there is no safe connection"
    if isinstance(exc, socket.gaierror):
        return "the name of the host is not known"
    if isinstance(exc, TimeoutError):
        return "no answer in time"
    if isinstance(exc, OSError):
        return f"no connection: {exc.strerror or type(exc).__name__}"
    return "the answer is not HTTP"


# ---------------------------------------------------------------------- commands


def _run(command: tuple[str, ...], document: dict[str, Any], limit_s: float) -> None:
    try:
        process = subprocess.Popen(  # noqa: S603 # nosec B603 # the operator's own, and no shell
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    except OSError as exc:
        raise NotTaken(f"the command cannot be started: {exc.strerror}") from exc
    with process:
        try:
            printed = _converse(process, json.dumps(document).encode(), limit_s)
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    _LOG.debug("a command printed bytes=%d status=%d", printed, process.returncode)
    if process.returncode:
        raise NotTaken(f"the command ended with status {process.returncode}")


def _converse(process: "subprocess.Popen[bytes]", data: bytes, limit_s: float) -> int:
    """Give a command its input, and count what it prints until it ends.

    Raises:
        NotTaken: It did not end in time.
    """
    if process.stdin is None or process.stdout is None:
        raise NotTaken("the command has no input")
    until, printed = time.monotonic() + limit_s, 0
    with selectors.DefaultSelector() as waiting:
        for stream, event in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
        ):
            os.set_blocking(stream.fileno(), False)
            waiting.register(stream, event)
        while process.poll() is None:
            left = until - time.monotonic()
            if left <= 0:
                raise NotTaken(f"the command did not end in {limit_s:g} seconds, and was killed")
            # A command that has closed its output, or given it to others, is asked now and then.
            for key, _ in waiting.select(min(left, 0.05)):
                if key.fileobj is process.stdout:
                    chunk = os.read(key.fd, _READ_BYTES)
                    printed += len(chunk)
                    if not chunk:
                        waiting.unregister(key.fileobj)
                    continue
                try:
                    data = data[os.write(key.fd, data) :]
                except BrokenPipeError:
                    data = b""  # it does not want to read it
                if not data:
                    waiting.unregister(key.fileobj)
                    process.stdin.close()
            if not waiting.get_map():
                time.sleep(min(left, 0.02))
    return printed
