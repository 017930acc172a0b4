# SPDX-License-Identifier: Apache-2.0
"""One event to one hook: a signed POST, or a command.

A webhook is signed according to Standard Webhooks 1.0: `webhook-signature` holds an HMAC-SHA256
over `id.timestamp.body` under each secret of the hook's file. The file is read each time, so a
secret changes without a restart. TLS is verified, no redirect is followed, no proxy is used, the
body of the response is not read, and one time limit covers the whole request, however slowly the
receiver answers.

A command comes from the operator's `config.toml`: it uses no shell, its arguments contain no text
of other people, it has an environment of its own, and it reads the event as JSON from its standard
input. Its output is discarded.

The error texts hold no secret: neither the address nor the receiver's response.
"""

import asyncio
import base64
import contextlib
import hmac
import json
import os
import re
import signal
import socket
import ssl
import subprocess  # nosec B404 # what the operator names in config.toml, and no shell
import time
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from sealpoint.config import read_passphrase_file, read_password_file
from sealpoint.errors import SealpointError, UsageError
from sealpoint_console._notification_events import ConsoleEvent, sentence
from sealpoint_console.settings import HookSettings, check_hook_url

_SECRET_BYTES = range(24, 65)
_PREFIX = "whsec_"
_RETRY_AFTER_MAX_S = 3600
_SECONDS = re.compile("[0-9]{1,8}")
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
_LINK_WORDS = "Open in the console"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Time limits and waits, in seconds."""

    first_wait_s: float = 1.0
    """After a failure; doubled after each further one."""
    wait_max_s: float = 3600.0
    give_up_s: float = 86400.0
    """An event that the receiver has not accepted for this long is given up."""
    send_s: float = 10.0
    command_s: float = 30.0


class NotTaken(Exception):  # never leaves the package: it becomes a status
    """A hook did not accept an event.

    Args:
        why: A text that may be shown.
        wait_s: The wait that the receiver asks for.
    """

    def __init__(self, why: str, wait_s: float = 0.0) -> None:
        super().__init__(why)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The source of events, for every message."""

    origin: str
    """Where people reach the console."""
    store_id: str
    namespace: str


Deliver = Callable[[ConsoleEvent], None]


def make_deliver(hook: HookSettings, sender: Sender, pace: Pace) -> Deliver:
    """The function that sends an event to a hook, or raises NotTaken.

    Raises:
        ConfigError, UsageError, KeyFileUnsafe: A file that the hook names cannot be used.
    """
    if hook.command:
        return lambda event: _run(hook.command, _generic(event, sender), pace.command_s)
    _secrets(hook)
    _url(hook)
    shape = _SHAPES[hook.shape]
    tls = ssl.create_default_context()  # the machine's own certificate authorities

    def send(event: ConsoleEvent) -> None:
        body = json.dumps(shape(event, sender)).encode()
        try:
            url, headers = _url(hook), _signed(hook, event.id, body)
        except SealpointError as error:
            raise NotTaken(f"{error.code}: {error.message}") from error
        _post(url, headers, body, tls, pace.send_s)

    return send


# ---------------------------------------------------------------------- shapes


def _generic(event: ConsoleEvent, sender: Sender) -> dict[str, Any]:
    """All fields, for programs; `text` is for people."""
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
    # Slack parses the text of a notification: these three characters begin markup and mentions.
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
    """The signing secrets: one, or two during a rotation; none for a receiver that checks none."""
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


def _post(
    url: str, headers: dict[str, str], body: bytes, tls: ssl.SSLContext, limit_s: float
) -> None:
    fixed = {"content-type": "application/json", "user-agent": "sealpoint", "connection": "close"}
    try:
        status, wait = asyncio.run(_answer(url, {**headers, **fixed}, body, tls, limit_s))
    except (OSError, httpx.HTTPError, httpx.InvalidURL) as exc:
        raise NotTaken(_words(exc)) from exc
    if httpx.codes.is_success(status):
        return
    words = "; redirects are not followed" if httpx.codes.is_redirect(status) else ""
    wait_s = int(wait) if _SECONDS.fullmatch(wait) else 0
    raise NotTaken(f"status {status}{words}", min(wait_s, _RETRY_AFTER_MAX_S))


async def _answer(
    url: str, headers: dict[str, str], body: bytes, tls: ssl.SSLContext, limit_s: float
) -> tuple[int, str]:
    """The status of a response, and the time of a requested retry.

    `limit_s` covers the whole request: a timeout of httpx restarts with every byte that arrives.
    """
    async with (
        asyncio.timeout(limit_s),
        httpx.AsyncClient(verify=tls, timeout=limit_s, trust_env=False) as client,
        client.stream("POST", url, headers=headers, content=body, follow_redirects=False) as answer,
    ):
        return answer.status_code, answer.headers.get("retry-after", "")


def _words(exc: BaseException) -> str:
    """The description of an error, without text from the receiver."""
    causes = [exc]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"TLS: the certificate does not verify: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return "TLS: there is no safe connection"
        if isinstance(cause, socket.gaierror):
            return "the name of the host is not known"
        if isinstance(cause, TimeoutError | httpx.TimeoutException):
            return "no answer in time"
    return "no connection" if isinstance(exc, httpx.NetworkError) else "the answer is not HTTP"


# ---------------------------------------------------------------------- commands


def _run(command: tuple[str, ...], document: dict[str, Any], limit_s: float) -> None:
    try:
        process = subprocess.Popen(  # noqa: S603 # nosec B603 # the operator's own, and no shell
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    except OSError as exc:
        raise NotTaken(f"the command cannot be started: {exc.strerror}") from exc
    with process:
        try:
            process.communicate(json.dumps(document).encode(), timeout=limit_s)
        except subprocess.TimeoutExpired as exc:
            raise NotTaken(
                f"the command did not end in {limit_s:g} seconds, and was killed"
            ) from exc
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise NotTaken(f"the command ended with status {process.returncode}")
