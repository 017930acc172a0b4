# SPDX-License-Identifier: Apache-2.0
"""`sealpoint serve` as it is run, and what it refuses to serve."""

import os
import pty
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from sealpoint.cli import main
from sealpoint.config import load_console_settings
from sealpoint.errors import ConfigError
from tests.console.scene import Scene, until


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
        ('[[console.hooks]]\nname = "x"', "one of url"),
    ],
)
def test_what_would_put_people_at_risk_is_refused(tmp_path: Path, table: str, words: str) -> None:
    """Before anything listens, and the message names the setting."""
    tmp_path.chmod(0o700)
    (tmp_path / "config.toml").write_text(f"[console]\n{table}\n")

    with pytest.raises(ConfigError, match=words):
        load_console_settings(tmp_path)


def test_serve_explains_a_public_address_without_tls(scene: Scene) -> None:
    """The command ends with the error and its hint."""
    result = CliRunner().invoke(main, ["serve", "--listen", "0.0.0.0:8734", *_options(scene)])

    assert result.exit_code == ConfigError.exit_status
    assert "tls_certificate" in result.stderr
