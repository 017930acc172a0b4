# SPDX-License-Identifier: Apache-2.0
"""Passphrases on the command line: asked for on a terminal, unseen, and never as an argument."""

import os
import select
import sys
import time
from pathlib import Path

import click
import pytest

from sealpoint.cli import stores as asking
from sealpoint.cli.terminal import ask_hidden, working
from tests.cli.machine import Machine, verbs
from tests.warm import start_command

_WORDS = "correct horse battery staple"
_OTHER = "hunter2 and more"
_SECONDS_MAX = 60


pytestmark = pytest.mark.usefixtures("quick_passphrases")


@pytest.fixture(autouse=True)
def _no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEALPOINT_PASSPHRASE", "SEALPOINT_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def _somebody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given as standard input is what somebody types."""
    monkeypatch.setattr(asking, "can_ask", lambda: True)


def _typed(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def _encrypted(machine: Machine) -> dict[str, bool | None]:
    return {each["name"]: each["encrypted"] for each in machine.json("keys", "list")}


@pytest.mark.usefixtures("_somebody_there")
def test_init_asks_twice_and_locks_all_keys(tmp_path: Path) -> None:
    """One passphrase for the three, typed again until both are the same, and never shown."""
    machine = Machine(tmp_path / "disk" / "store.db", tmp_path / "one")
    made = machine.run("init", "--passphrase", stdin=_typed("mistyped", _WORDS, _WORDS, _WORDS))

    assert made.exit_code == 0, made.output
    assert "All three keys are encrypted." in made.stdout
    assert made.stderr.count("New passphrase of the keys") == 2
    assert made.stderr.count("The same again") == 2
    assert _WORDS not in made.output
    assert _encrypted(machine) == {"worker": True, "operator": True, "root": True}
    assert machine.done("keys", "list").count("here, encrypted") == 3


@pytest.mark.usefixtures("_somebody_there")
def test_a_store_that_is_there_is_refused_before_anybody_is_asked(machine: Machine) -> None:
    """Whoever would be asked in vain is not."""
    for verb in (("init", "--passphrase"), ("keys", "new", "worker", "--passphrase")):
        result = machine.run(*verb, stdin="")
        assert result.exit_code == 60
        assert "[store-exists]" in result.stderr
        assert "assphrase of" not in result.output


def test_the_environment_answers_instead(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A variable or the file that one names makes and opens a key without a terminal."""
    path = tmp_path / "words"
    path.write_text(_WORDS)
    path.chmod(0o600)
    monkeypatch.setenv("SEALPOINT_PASSPHRASE_FILE", str(path))
    made = machine.json("keys", "new", "alice", "--passphrase")
    add = ("--person", "Alice", "--role", "writer", "--namespace", "default")
    machine.done("keys", "add", "alice", *add)
    monkeypatch.setenv("SEALPOINT_PASSPHRASE", _WORDS)
    saved = machine.json("save", "t", "--identity", "alice", stdin="1")
    monkeypatch.setenv("SEALPOINT_PASSPHRASE", _OTHER)

    assert made["encrypted"] is True
    assert saved["writer"] == "alice"
    assert _encrypted(machine)["alice"] is True
    assert machine.refused("save", "t", "--identity", "alice", stdin="1") == (60, "key-locked")
    monkeypatch.delenv("SEALPOINT_PASSPHRASE")
    path.chmod(0o644)
    assert machine.refused("save", "t", "--identity", "alice", stdin="1") == (
        60,
        "key-file-unsafe",
    )


def test_without_a_terminal_one_sentence_says_what_is_missing(machine: Machine) -> None:
    """Nothing waits for an answer that cannot come, and nothing is made or changed."""
    verbs = {
        ("keys", "new", "alice", "--passphrase"): "SEALPOINT_PASSPHRASE_FILE",
        ("keys", "passphrase", "worker"): "--new-passphrase-file",
    }
    for verb, way in verbs.items():
        words = machine.run(*verb, stdin=_typed(_WORDS, _WORDS))
        assert words.exit_code == 60
        assert words.stdout == ""
        first, hint = words.stderr.splitlines()
        assert first.endswith("and there is no terminal to ask on [key-locked]")
        assert hint.startswith("hint: Run it on a terminal, or ")
        assert way in hint
    assert machine.refused("keys", "passphrase", "worker") == (60, "key-locked")
    assert _encrypted(machine) == {"worker": False, "operator": False, "root": False}


@pytest.mark.usefixtures("_somebody_there")
def test_a_passphrase_is_set_changed_and_removed(machine: Machine) -> None:
    """The old one is asked for once, the new one twice; reading goes on without any."""
    machine.done("save", "t", stdin="1")
    verb = ("keys", "passphrase", "worker")
    (path,) = machine.home.rglob("worker.key")
    plain = path.read_bytes()
    was_set = machine.done(*verb, stdin=_typed(_WORDS, _WORDS))
    read = machine.json("load", "t")
    changed = machine.run(*verb, "--json", stdin=_typed(_WORDS, _OTHER, _OTHER))
    wrong = machine.run(*verb, "--remove", stdin=_typed(_WORDS))
    locked = path.read_bytes()
    removed = machine.done(*verb, "--remove", stdin=_typed(_OTHER))

    assert "The key has a new passphrase." in was_set
    assert read == 1
    assert '"encrypted": true' in changed.stdout
    assert changed.stderr.count("assphrase of key 'worker'") == 2
    assert wrong.exit_code == 60
    assert "the passphrase does not open it, or its file was changed" in wrong.stderr
    assert b"scrypt-chacha20poly1305" in locked
    assert "The key has no passphrase." in removed
    assert path.read_bytes() == plain
    for result in (was_set, changed.output, wrong.output, removed):
        assert _WORDS not in result
        assert _OTHER not in result


def test_a_new_passphrase_is_read_from_a_file(machine: Machine, tmp_path: Path) -> None:
    """For scripts; the file is as secret as a key, and removing takes none."""
    path = tmp_path / "new"
    path.write_text(f"{_WORDS}\n")
    path.chmod(0o640)
    verb = ("keys", "passphrase", "operator", "--new-passphrase-file", str(path))

    assert machine.refused(*verb) == (60, "key-file-unsafe")
    assert machine.refused(*verb, "--remove") == (2, "usage")
    path.chmod(0o600)
    assert machine.json(*verb)["encrypted"] is True
    assert machine.refused("keys", "passphrase", "operator", "--remove") == (60, "key-locked")
    assert machine.refused("keys", "passphrase", "nobody", "--remove") == (60, "key-missing")


def test_no_option_takes_a_passphrase() -> None:
    """What stands on a command line is in the history and in the list of processes."""
    named = {
        (words, option.opts[0]): option
        for words, command in verbs()
        for option in command.params
        if isinstance(option, click.Option) and "passphrase" in option.opts[0]
    }

    assert {option.is_flag or option.opts[0].endswith("-file") for option in named.values()} == {
        True
    }
    assert {words for words, _ in named} == {
        ("init",),
        ("keys", "new"),
        ("keys", "passphrase"),
        ("keys", "rotate"),
        ("keys", "rotate-root"),
    }


def test_a_question_takes_the_progress_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No bar is drawn over a question; it comes back when the question is answered."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    printed = []

    def answered(*_: object, **__: object) -> str:
        capsys.readouterr()
        time.sleep(0.6)  # longer than a bar waits
        printed.append(capsys.readouterr().err)
        return _WORDS

    monkeypatch.setattr(click, "prompt", answered)
    with working("doing something"):
        answer = ask_hidden("Passphrase")
        time.sleep(0.2)
        after = capsys.readouterr().err

    assert answer == _WORDS
    assert printed == [""]
    assert "doing something" in after


def test_what_is_typed_at_a_terminal_is_not_shown(machine: Machine) -> None:
    """A real terminal, in a process of its own: the questions are there, the answers are not."""
    pytest.importorskip("pty")
    status, printed = _at_a_terminal(
        [*("keys", "new", "alice", "--passphrase"), *machine.options],
        [("New passphrase of key 'alice':", _WORDS), ("The same again:", _WORDS)],
    )

    assert status == 0, printed
    assert "A new key." in printed
    assert _WORDS not in printed
    assert _encrypted(machine)["alice"] is True


def _at_a_terminal(arguments: list[str], answers: list[tuple[str, str]]) -> tuple[int, str]:
    """Run the command on a terminal of its own, and type each answer when it is asked for."""
    # Windows has no such modules, and this test is skipped there.
    import pty  # noqa: PLC0415
    import termios  # noqa: PLC0415

    ours, theirs = pty.openpty()
    # Whoever asks for a passphrase asks the terminal that the session has; a warm one has none.
    process = start_command(
        ["sealpoint", *arguments],
        Path.cwd(),
        {**os.environ, "TERM": "xterm"},
        (theirs, theirs, theirs),
    )
    os.close(theirs)
    printed = ""
    waiting = list(answers)
    end = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < end:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        printed += data.decode()
        if waiting and waiting[0][0] in printed:
            while termios.tcgetattr(ours)[3] & termios.ECHO and time.monotonic() < end:
                time.sleep(0.01)  # what is typed before it is hidden is thrown away
            os.write(ours, f"{waiting.pop(0)[1]}\n".encode())
    os.close(ours)
    process.join(_SECONDS_MAX)
    assert process.exitcode is not None
    return process.exitcode, printed
