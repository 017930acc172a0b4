# SPDX-License-Identifier: Apache-2.0
"""Somebody who makes passkeys by the hundred, so that nobody adds that of a person."""

import io
from types import SimpleNamespace
from typing import Any

import pytest

from sealpoint_console import _verb as _serve
from tests.console.scene import Served
from tests.unit.signing.authenticator import Authenticator


def _terminal(served: Served) -> _serve._Terminal:
    where: Any = SimpleNamespace(
        admin=served.scene.admin, settings=SimpleNamespace(namespace="default")
    )
    return _serve._Terminal(served.console, where, "owner")


def test_junk_keeps_nobody_from_having_their_passkey_added(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The terminal tells of a few, says that there are more, and takes the digits of any."""
    terminal = _terminal(served)
    for number in range(2, 60):
        terminal._tell("junk", Authenticator(number, origin=served.origin).passkey)
    passkey = Authenticator(1, origin=served.origin).passkey
    terminal._tell("ann", passkey)
    told = capsys.readouterr().out
    digits = passkey.id.raw.hex()
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{digits[:7]}\n{digits[:8]}\n{digits[:8]}\n"))
    terminal._listen()
    added = served.console.desk.watch.roster.passkeys

    assert told.count("Someone made a passkey") == 5
    assert told.count("no more are shown for a minute") == 1
    assert [identity.name for identity, _ in added.values()] == ["ann"]
    assert capsys.readouterr().out.count("There is no such passkey.") == 2


def test_the_terminal_says_who_would_get_the_right_to_approve(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that the roster does not have is a new person, and would count as one."""
    terminal = _terminal(served)
    for number, name in enumerate(("vera", "zoe"), start=1):
        terminal._tell(name, Authenticator(number, origin=served.origin).passkey)
    known, new = capsys.readouterr().out.replace("\n", " ").split("Someone made a passkey")[1:]

    assert "whom the roster has" in known
    assert "a new person, who may approve then" in new
