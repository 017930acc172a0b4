# SPDX-License-Identifier: Apache-2.0
"""One event to one hook: signed, bounded in time, and hostile names are text."""

import base64
import datetime as dt
import http
import json
import os
import signal
import ssl
import sys
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sealpoint.errors import ConfigError, KeyFileUnsafe, UsageError
from sealpoint_console._hook_delivery import Deliver, NotTaken, Pace, Sender, make_deliver
from sealpoint_console._notification_events import ConsoleEvent
from sealpoint_console.settings import CONSOLE_EVENTS, HookSettings
from tests.console.receiver import Receiver, SlowServer, new_secret, verify, wait_until
from tests.repo._markdown import blocks

_SENDER = Sender(origin="https://console.example.com", store_id="store:00", namespace="default")
_HOSTILE = "</a><!channel> <@U1|you> *b* _i_ `c` [x](https://e.vil) \u202e\x1b[2J\n{{DATE(1)}} ${x}"
_PACE = Pace(send_s=0.5, command_s=1.0)


def _event(kind: str = "request", name: str = "v") -> ConsoleEvent:
    return ConsoleEvent(
        id="e0",
        kind=kind,
        time=dt.datetime.now(dt.UTC),
        page=f"/requests/{'ab' * 32}",
        thread=name,
        thread_id="cd" * 16,
        request="ab" * 32,
        by=name,
        actor=name,
        identity=name,
        code="edited",
    )


@pytest.fixture
def to(tmp_path: Path) -> Callable[..., Deliver]:
    """What sends to an address."""
    file = tmp_path / "hook.secret"
    new_secret(file)

    def make(url: str, **settings: Any) -> Deliver:
        hook = HookSettings(name="desk", url=url, secret_file=str(file), **settings)
        return make_deliver(hook, _SENDER, _PACE)

    return make


# ---------------------------------------------------------------------- what is sent


@pytest.mark.parametrize("kind", CONSOLE_EVENTS)
@pytest.mark.parametrize("shape", ["slack", "teams"])
def test_hostile_names_are_text_in_every_shape(
    to: Callable[..., Deliver], shape: str, kind: str
) -> None:
    """No control character, no mention, no markup and no template reaches a chat."""
    with Receiver() as receiver:
        to(receiver.url, shape=shape)(_event(kind, _HOSTILE))
    document = receiver.got[0].document
    texts = [text for text in _texts(document) if "channel" in text]

    assert texts
    assert all(text.isprintable() for text in texts)
    if shape == "slack":
        parsed = document["text"]
        assert "<" not in parsed.replace("&lt;", "")
        assert document["blocks"][0]["text"]["type"] == "plain_text"
        (link,) = document["blocks"][1]["elements"]
        assert link["text"] == (
            f"<https://console.example.com/requests/{'ab' * 32}|Open in the console>"
        )
    else:
        card = document["attachments"][0]["content"]
        assert [each["type"] for each in card["body"]] == ["RichTextBlock"]
        assert not any("{{" in text or "${" in text for text in texts)
        assert card["actions"][0]["url"].startswith("https://console.example.com/requests/")


def _texts(found: Any) -> list[str]:
    if isinstance(found, str):
        return [found]
    values = found.values() if isinstance(found, dict) else found
    return (
        [text for each in values for text in _texts(each)] if isinstance(values, Iterable) else []
    )


def test_a_long_name_is_cut_where_people_read_and_whole_where_programs_do(
    to: Callable[..., Deliver],
) -> None:
    """Slack takes at most 3000 characters; a program needs the exact name."""
    name = "\u202e" * 1000
    with Receiver() as receiver:
        to(receiver.url)(_event(name=name))
        to(receiver.url, shape="slack")(_event(name=name))
    generic, slack = (got.document for got in receiver.got)

    assert generic["thread"] == name
    assert receiver.got[0].body.isascii()
    assert len(slack["blocks"][0]["text"]["text"]) < 3000


# ---------------------------------------------------------------------- signatures


def test_a_secret_is_changed_while_the_console_runs(tmp_path: Path) -> None:
    """With two lines in the file both sign, so a receiver can change at its own time."""
    file = tmp_path / "secret"
    old = new_secret(file)
    with Receiver() as receiver:
        send = make_deliver(
            HookSettings(name="desk", url=receiver.url, secret_file=str(file)), _SENDER, _PACE
        )
        send(_event())
        new = new_secret(file)
        both = f"whsec_{new}\n{old}\n"
        file.write_text(both)
        send(_event())
        file.write_text(f"{new}\n")
        send(_event())

    signed = [(verify(got, old), verify(got, new)) for got in receiver.got]
    assert signed == [(True, False), (True, True), (False, True)]


def test_a_changed_body_time_or_id_does_not_verify(
    to: Callable[..., Deliver], tmp_path: Path
) -> None:
    """The signature is over all three, under the secret and no other."""
    secret = (tmp_path / "hook.secret").read_text().strip()
    with Receiver() as receiver:
        to(receiver.url)(_event())
    (got,) = receiver.got
    changed = [
        type(got)(got.path, got.headers, got.body + b" ", got.at),
        type(got)(got.path, {**got.headers, "webhook-timestamp": "0"}, got.body, got.at),
        type(got)(got.path, {**got.headers, "webhook-id": "e1"}, got.body, got.at),
    ]

    assert verify(got, secret)
    assert not any(verify(each, secret) for each in changed)
    assert not verify(got, base64.b64encode(bytes(32)).decode())


def test_the_documented_way_to_verify_does(to: Callable[..., Deliver], tmp_path: Path) -> None:
    """The program of the page takes what the console sends, and nothing else."""
    page = (Path(__file__).parents[4] / "docs" / "console" / "notifications.md").read_text()
    (block,) = (each for each in blocks(page) if each.text.startswith("# desk.py"))
    names: dict[str, Any] = {}
    exec(block.text, names)  # noqa: S102 - the program of our own page
    documented = names["verify"]
    secret = (tmp_path / "hook.secret").read_text()
    with Receiver() as receiver:
        to(receiver.url)(_event())
    (got,) = receiver.got
    documented(got.headers, got.body, secret)
    with pytest.raises(ValueError, match="not signed"):
        documented(got.headers, got.body + b" ", secret)
    with pytest.raises(ValueError, match="not signed"):
        documented({**got.headers, "webhook-timestamp": "0"}, got.body, secret)

    assert verify(got, secret.strip())


@pytest.mark.parametrize("text", ["", "short", "not base64 at all!", "QUJD", "a\nb\nc"])
def test_what_is_no_secret_is_refused_at_once(tmp_path: Path, text: str) -> None:
    """Before anything is served, and without the text in the message."""
    file = tmp_path / "secret"
    file.write_text(f"{text}\n")
    file.chmod(0o600)
    hook = HookSettings(name="desk", url="https://localhost/", secret_file=str(file))
    with pytest.raises(UsageError) as refused:
        make_deliver(hook, _SENDER, _PACE)

    assert len(text) < 5 or text not in str(refused.value)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """At the start, and later too: then nothing is sent, and the status says why."""
    file = tmp_path / "secret"
    new_secret(file)
    hook = HookSettings(name="desk", url="https://localhost/", secret_file=str(file))
    send = make_deliver(hook, _SENDER, _PACE)
    file.chmod(0o644)
    with pytest.raises(NotTaken, match="key-file-unsafe"):
        send(_event())
    with pytest.raises(KeyFileUnsafe):
        make_deliver(hook, _SENDER, _PACE)
    file.unlink()
    with pytest.raises(NotTaken, match="config"):
        send(_event())


def test_an_address_that_is_a_secret_may_lie_in_a_file(tmp_path: Path) -> None:
    """It is read anew each time, and held to the same rules; no failure repeats it."""
    file = tmp_path / "address"
    with Receiver() as receiver:
        file.write_text(f"{receiver.url}\n")
        file.chmod(0o600)
        hook = HookSettings(name="desk", url_file=str(file), shape="slack")
        send = make_deliver(hook, _SENDER, _PACE)
        send(_event())
    file.write_text("http://example.com/T00/B00/XYZ\n")
    with pytest.raises(NotTaken) as refused:
        send(_event())
    with pytest.raises(ConfigError):
        make_deliver(hook, _SENDER, _PACE)

    assert len(receiver.got) == 1
    assert "webhook-signature" not in receiver.got[0].headers
    assert "XYZ" not in str(refused.value)


# ---------------------------------------------------------------------- receivers that are not nice


def _answering(status: int, body: bytes = b"", **headers: str) -> Callable[..., None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(to: Callable[..., Deliver], status: int) -> None:
    """Neither the event nor its signature goes where another side says."""
    with (
        Receiver() as other,
        Receiver(_answering(status, location=other.url)) as receiver,
        pytest.raises(NotTaken, match=f"status {status}; redirects are not followed"),
    ):
        to(receiver.url)(_event())

    assert len(receiver.got) == 1
    assert not other.got


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429, 500, 503])
def test_only_an_answer_of_two_hundred_counts(to: Callable[..., Deliver], status: int) -> None:
    """Every other status is a failure that is tried again."""
    with (
        Receiver(_answering(status, b"hostile words")) as receiver,
        pytest.raises(NotTaken) as refused,
    ):
        to(receiver.url)(_event())

    assert str(refused.value) == f"status {status}"


def test_a_huge_answer_is_not_read(to: Callable[..., Deliver]) -> None:
    """It counts by its status, and its megabytes stay where they are."""
    sent = [0]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(1024):
            handler.wfile.write(bytes(1 << 20))
            sent[0] += 1

    with Receiver(answer) as receiver:
        to(receiver.url)(_event())

    assert sent[0] < 64


@pytest.mark.parametrize(
    "words", [b"", b"HTTP/1.1 200 OK\r\nx: " + b"y" * 5000, b"HTTP/1.1 100 Continue\r\n\r\n" * 500]
)
def test_a_receiver_that_hangs_or_dawdles_is_left_in_time(
    to: Callable[..., Deliver], words: bytes
) -> None:
    """A byte now and then does not keep a connection."""
    begun = time.monotonic()
    with SlowServer(words) as server, pytest.raises(NotTaken, match="in time"):
        to(server.url)(_event())

    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("words", [b"SSH-2.0-x\r\n", b"HTTP/1.1 200 " + b"x" * 70_000, b"\0" * 99])
def test_what_is_not_http_is_a_failure(to: Callable[..., Deliver], words: bytes) -> None:
    """Whatever comes back, it is told in our words."""
    with SlowServer(words, pause_s=0) as server, pytest.raises(NotTaken) as refused:
        to(server.url)(_event())

    assert str(refused.value) in {"the answer is not HTTP", "no answer in time"} or str(
        refused.value
    ).startswith("no connection")


def _certificate(folder: Path, name: str) -> ssl.SSLContext:
    """TLS of a server whose certificate nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_certificate_that_nobody_vouches_for_is_refused(
    to: Callable[..., Deliver], tmp_path: Path
) -> None:
    """Nothing is sent to whoever only claims to be the receiver."""
    with (
        Receiver(context=_certificate(tmp_path, "localhost")) as receiver,
        pytest.raises(NotTaken, match="TLS: the certificate does not verify"),
    ):
        to(receiver.url)(_event())

    assert not receiver.got


def test_a_certificate_that_is_trusted_is_taken(
    to: Callable[..., Deliver], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The roots are those of the system, or of SSL_CERT_FILE."""
    context = _certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    with Receiver(context=context) as receiver:
        to(receiver.url)(_event())

    assert len(receiver.got) == 1


# ---------------------------------------------------------------------- commands


def _command(*argv: str) -> Deliver:
    return make_deliver(HookSettings(name="desk", command=argv), _SENDER, _PACE)


def _python(code: str, *arguments: str) -> Deliver:
    return _command(sys.executable, "-I", "-c", code, *arguments)


def test_a_command_gets_the_event_on_its_input(tmp_path: Path) -> None:
    """As JSON, with nothing of it among its arguments, and with an environment of its own."""
    out = tmp_path / "out"
    _python(
        "import json,os,sys;"
        "json.dump([json.load(sys.stdin),sys.argv[2:],dict(os.environ)],open(sys.argv[1],'w'))",
        str(out),
        "$(id)",
        "; x",
    )(_event(name=_HOSTILE))
    document, arguments, environment = json.loads(out.read_text())

    assert document["thread"] == _HOSTILE
    assert document["page"].startswith("https://console.example.com/requests/")
    assert arguments == ["$(id)", "; x"]
    assert environment.keys() - {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"} == {"PATH", "LANG"}


def test_a_command_that_fails_is_tried_again() -> None:
    """Its status counts, and so does a program that is not there."""
    with pytest.raises(NotTaken, match="status 3"):
        _python("raise SystemExit(3)")(_event())
    with pytest.raises(NotTaken, match="cannot be started"):
        _command("/nonexistent/program")(_event())


def test_a_command_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    """Its children too, and in time."""
    note = tmp_path / "pid"
    code = (
        "import os,sys,time\n"
        "if os.fork() == 0:\n"
        "    open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "    time.sleep(600)\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(NotTaken, match="did not end in 1 seconds"):
        _python(code, str(note))(_event())
    child = int(note.read_text())

    wait_until(lambda: not _is_alive(child))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_what_a_command_prints_is_discarded(capfd: pytest.CaptureFixture[str]) -> None:
    """However much it is: nothing of it reaches the console's own output."""
    _python("import sys; sys.stdout.write('secret ' * 1000000); sys.stderr.write('s')")(_event())

    assert capfd.readouterr() == ("", "")


def test_a_command_need_not_read_its_input() -> None:
    """One that ends at once, or closes its input, has taken the event."""
    _command("/bin/true")(_event(name="v" * 1_000_000))
    _python("import os,time; os.close(0); time.sleep(0.1)")(_event(name="v" * 1_000_000))


def test_a_command_may_leave_something_running(tmp_path: Path) -> None:
    """A worker that it starts and that keeps its output holds nothing up."""
    note = tmp_path / "pid"
    code = (
        "import os,sys,time\n"
        "if os.fork() == 0:\n"
        "    open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "    time.sleep(600)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
    )
    _python(code, str(note))(_event())
    wait_until(note.read_text)

    os.kill(int(note.read_text()), signal.SIGKILL)


def test_statuses_of_success_are_those_of_http(to: Callable[..., Deliver]) -> None:
    """Whatever a receiver means by it, it has taken the event."""
    for status in (http.HTTPStatus.OK, http.HTTPStatus.ACCEPTED, http.HTTPStatus.NO_CONTENT):
        with Receiver(_answering(status)) as receiver:
            to(receiver.url)(_event())

        assert len(receiver.got) == 1
