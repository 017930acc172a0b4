# SPDX-License-Identifier: Apache-2.0
"""`sealpoint serve` as it is run, and what it refuses to serve."""

import os
import pty
import re
import shlex
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from sealpoint.cli import main
from sealpoint.errors import ConfigError, UsageError
from sealpoint_console import _server as console_serve
from sealpoint_console.settings import load_console_settings
from tests.console.scene import Scene, Served, until


def _options(scene: Scene) -> list[str]:
    place = scene.place
    return [
        *("--store", scene.url, "--config-dir", str(place["config_dir"])),
        *("--state-dir", str(place["state_dir"])),
    ]


def test_the_command_serves_until_it_is_interrupted(scene: Scene) -> None:
    """It prints its address and a link that signs in once, and ends quietly by a signal."""
    port = _free_port()
    command = [sys.executable, "-m", "sealpoint", "serve", "--listen", f"127.0.0.1:{port}"]
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*command, *_options(scene)], stdin=slave, stdout=slave, stderr=slave, close_fds=True
    ) as served:
        os.close(slave)
        stop = threading.Timer(60, served.kill)
        stop.start()
        said = ""
        while "Ctrl-C" not in said:
            said += os.read(master, 4096).decode()
        (link,) = re.findall(r"#link=([\w-]+)", said)
        origin = f"http://localhost:{port}"
        until(lambda: _answers(origin))
        answer = httpx.post(
            f"{origin}/sign-in/link", json={"link": link}, headers={"origin": origin}
        )
        assert answer.status_code == 200
        again = httpx.post(
            f"{origin}/sign-in/link", json={"link": link}, headers={"origin": origin}
        )
        assert again.status_code == 403
        os.write(master, b"\n")
        more = ""
        while "#link=" not in more:
            more += os.read(master, 4096).decode()
        served.send_signal(2)
        assert served.wait() in (0, 1, 130)
        stop.cancel()
    os.close(master)


def test_no_part_of_an_answer_waits_for_the_one_before_it(served: Served) -> None:
    """What a connection is given to send leaves without an acknowledgement of what has left."""
    with served.client() as client:
        assert client.get("/sign-in").status_code == 200
        (connection,) = served.console._server.server_state.connections
        sent_by = connection.transport.get_extra_info("socket")

        assert sent_by.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found: int = free.getsockname()[1]
    return found


def _answers(origin: str) -> bool:
    try:
        return httpx.get(f"{origin}/sign-in").status_code == 200
    except httpx.TransportError:
        return False


_PUBLIC = 'listen = "0.0.0.0:8734"\norigin = "https://a.example"\ntls_at_proxy = true\n'


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('listen = "0.0.0.0:8734"', "there is no TLS"),
        ('listen = "0.0.0.0:8734"\ntls_at_proxy = true', "https"),
        ('origin = "http://console.example.com"', "expected https, or localhost"),
        ('origin = "https://console.example.com/path"', "without a path"),
        ('listen = "8734"', "an address and a port"),
        ('tls_key = "x"', "belong together"),
        ("listen = 1", "Expected `str`"),
        (f"{_PUBLIC}passkey_sign_in = false", "nobody could sign in otherwise"),
        ('[[console.hooks]]\nname = "x"', "one of url"),
    ],
)
def test_what_would_put_people_at_risk_is_refused(tmp_path: Path, table: str, words: str) -> None:
    """Before anything listens, and the message names the setting."""
    tmp_path.chmod(0o700)
    (tmp_path / "config.toml").write_text(f"[console]\n{table}\n")

    with pytest.raises(ConfigError, match=words):
        load_console_settings(tmp_path)


def test_a_console_of_one_machine_may_have_a_name_of_its_own(tmp_path: Path) -> None:
    """Cookies of `localhost` go to every port there; those of this name go nowhere else."""
    tmp_path.chmod(0o700)
    (tmp_path / "config.toml").write_text(
        '[console]\norigin = "http://blue-heron.localhost:8734"\n'
    )
    settings = load_console_settings(tmp_path)

    assert (settings.site, settings.is_local) == ("blue-heron.localhost", True)


def test_a_port_that_is_taken_is_told_before_an_address_is_given(scene: Scene) -> None:
    """Nobody is sent to whatever else listens there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listen = ["serve", "--listen", f"127.0.0.1:{port}"]
        result = CliRunner().invoke(main, [*listen, *_options(scene)])

    assert result.exit_code == ConfigError.exit_status
    assert "#link=" not in result.output
    assert f"expected 127.0.0.1:{port} to be free" in result.stderr


def test_a_console_for_others_holds_no_key_that_approves(scene: Scene) -> None:
    """Whoever takes the server over could approve with it, so it does not even listen."""
    (scene.place["config_dir"] / "config.toml").write_text(f"[console]\n{_PUBLIC}")

    result = CliRunner().invoke(main, ["serve", "--identity", "operator", *_options(scene)])

    assert result.exit_code == ConfigError.exit_status
    assert "found that identity 'operator' may approve" in result.stderr
    assert "sealpoint serve --identity console" in result.stderr


_PROXIED = 'origin = "https://a.example"\n'


@pytest.mark.parametrize("table", [_PUBLIC, _PROXIED], ids=["public", "behind a proxy"])
def test_a_console_for_others_lies_beside_no_key_that_approves(scene: Scene, table: str) -> None:
    """Whoever takes it over would read the root's, or Ann's; it names them, and does not listen."""
    scene.admin.keys.create("console")
    scene.admin.keys.add("console", person="console", roles=["operator"], namespaces=["*"])
    (scene.place["config_dir"] / "config.toml").write_text(f"[console]\n{table}")

    result = CliRunner().invoke(main, ["serve", "--identity", "console", *_options(scene)])

    assert result.exit_code == ConfigError.exit_status
    named = result.stderr.partition("makes approvers, found ")[2].partition("[")[0]
    assert sorted(named.split()) == ["'ann',", "'bob',", "'olga',", "'operator',", "'root'"]


def test_behind_a_proxy_it_is_a_console_for_others(scene: Scene) -> None:
    """Though it listens on loopback: others reach it by another name."""
    (scene.place["config_dir"] / "config.toml").write_text(f"[console]\n{_PROXIED}")

    result = CliRunner().invoke(main, ["serve", "--identity", "operator", *_options(scene)])

    assert result.exit_code == ConfigError.exit_status
    assert "#link=" not in result.output
    assert not load_console_settings(scene.place["config_dir"]).is_local


@pytest.mark.parametrize(("option", "links"), [([], 0), (["--print-link"], 1)], ids=["", "asked"])
def test_no_link_goes_into_a_journal_unless_somebody_asks(
    scene: Scene, option: list[str], links: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads a journal could sign in with it."""
    monkeypatch.setattr(console_serve.Console, "run", lambda console: console._socket.close())
    listen = ["serve", *option, "--listen", f"127.0.0.1:{_free_port()}"]
    result = CliRunner().invoke(main, [*listen, *_options(scene)])

    assert result.exit_code == 0, result.output
    assert result.stdout.count("#link=") == links
    assert ("no link is printed" in result.stderr) == (not links)


def test_an_identity_that_is_not_in_the_roster_yet_is_told_how_it_gets_there(scene: Scene) -> None:
    """With the line that whoever has the root key types, as it is."""
    scene.admin.keys.create("console")
    options = _options(scene)
    result = CliRunner().invoke(main, ["serve", "--identity", "console", *options])
    hint = " ".join(result.stderr.partition("hint: ")[2].split())
    line = hint.partition("sealpoint ")[2]
    added = CliRunner().invoke(main, [*shlex.split(line), *options])

    assert result.exit_code == UsageError.exit_status
    assert added.exit_code == 0, added.output


def test_an_identity_whose_key_is_mounted_is_told_how_it_gets_into_the_roster(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a key is on no list of this machine."""
    public = scene.admin.keys.create("console")
    (key,) = Path(str(scene.place["config_dir"])).rglob("console.key")
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o700)
    key.rename(secrets / key.name)
    monkeypatch.setenv("SEALPOINT_SECRETS_DIR", str(secrets))
    result = CliRunner().invoke(main, ["serve", "--identity", "console", *_options(scene)])

    assert result.exit_code == UsageError.exit_status, result.output
    assert f"--public-key {public}" in " ".join(result.stderr.split())


def test_a_console_whose_own_key_has_expired_says_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows pages, and whoever pauses something would be the first to hear of it."""
    ends = datetime.now(UTC) + timedelta(seconds=0.3)
    scene.admin.keys.add("olga", expires=ends)
    until(lambda: datetime.now(UTC) > ends)
    monkeypatch.setattr(console_serve.Console, "run", lambda console: console._socket.close())
    listen = ["serve", "--identity", "olga", "--listen", f"127.0.0.1:{_free_port()}"]
    result = CliRunner().invoke(main, [*listen, *_options(scene)])

    assert result.exit_code == 0, result.output
    assert "The key of 'olga' has expired" in result.stderr


def test_passkeys_may_approve_without_signing_in(scene: Scene) -> None:
    """Where people do not trust the server with a touch of theirs, only approvals ask for one."""
    scene.settings["passkey_sign_in"] = False
    with scene.serving() as served, served.client() as client:
        page = client.get("/sign-in").text
        begun = client.post("/sign-in/passkey/begin", json={})

        assert "Use a passkey" not in page
        assert "With a link" in page
        assert begun.status_code == 404
        assert client.post("/enrol/begin", json={"name": "ann"}).status_code == 200


def test_serve_explains_a_public_address_without_tls(scene: Scene) -> None:
    """The command ends with the error and its hint."""
    result = CliRunner().invoke(main, ["serve", "--listen", "0.0.0.0:8734", *_options(scene)])

    assert result.exit_code == ConfigError.exit_status
    assert "tls_certificate" in result.stderr
