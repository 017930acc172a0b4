# SPDX-License-Identifier: Apache-2.0
"""Where a passphrase comes from: an argument, a variable, the file of a variable, in this order."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpoint.config import (
    PassphraseSource,
    choosing,
    environment_passphrase,
    read_passphrase_file,
    unlocking,
)
from sealpoint.errors import (
    ConfigError,
    DirectoryUnusable,
    KeyFileUnsafe,
    KeyLocked,
    SealpointError,
    UsageError,
)

_VARIABLE, _FILE_VARIABLE = "SEALPOINT_PASSPHRASE", "SEALPOINT_PASSPHRASE_FILE"


def _file(path: Path, data: bytes = b"from a file\n", mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def _unlocked(source: PassphraseSource | None, environ: dict[str, str]) -> bytes:
    return unlocking(source, environ=environ)("worker").normal_bytes()


@pytest.mark.parametrize(
    "source",
    [
        "from the caller",
        b"from the caller",
        lambda _: "from the caller",
        lambda _: b"from the caller",
    ],
)
def test_the_argument_comes_first(tmp_path: Path, source: PassphraseSource) -> None:
    """Text, its UTF-8, or a function; neither the environment nor a file is looked at."""
    environ = {_VARIABLE: "\n", _FILE_VARIABLE: str(tmp_path / "missing")}

    assert _unlocked(source, environ) == b"from the caller"


def test_the_variable_comes_before_the_file(tmp_path: Path) -> None:
    """The file is used where the variable is unset or empty."""
    path = str(_file(tmp_path / "f"))

    assert _unlocked(None, {_VARIABLE: "typed", _FILE_VARIABLE: path}) == b"typed"
    assert _unlocked(None, {_FILE_VARIABLE: path}) == b"from a file"
    assert _unlocked(None, {_VARIABLE: "", _FILE_VARIABLE: path}) == b"from a file"


@pytest.mark.parametrize("environ", [{}, {_VARIABLE: "", _FILE_VARIABLE: ""}])
def test_without_any_source_the_key_stays_locked(environ: dict[str, str]) -> None:
    """The message names the key, the hint every way."""
    with pytest.raises(KeyLocked, match="key 'worker': it is locked by a passphrase") as caught:
        _unlocked(None, environ)

    for way in ("passphrase=", _VARIABLE, _FILE_VARIABLE, "terminal"):
        assert way in caught.value.hint


def test_the_environment_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read when a key is opened, and not before."""
    monkeypatch.delenv(_FILE_VARIABLE, raising=False)
    monkeypatch.delenv(_VARIABLE, raising=False)
    unlock = unlocking(None)
    monkeypatch.setenv(_VARIABLE, "just now")

    assert unlock("worker").normal_bytes() == b"just now"
    assert environment_passphrase() == "just now"


def test_a_function_is_called_with_the_name_of_the_key() -> None:
    """Each time that a key is opened, so that every key may have its own."""
    unlock = unlocking({"worker": "w", "root": "r"}.__getitem__, environ={})

    assert unlock("root").normal_bytes() == b"r"
    assert unlock("worker").normal_bytes() == b"w"


def test_an_exception_of_the_function_is_the_callers_own() -> None:
    """It passes through as it is."""

    def fail(_: str) -> str:
        raise LookupError

    with pytest.raises(LookupError):
        unlocking(fail, environ={})("worker")


@pytest.mark.parametrize("given", ["", b"", "a\nb", b"\xff", 7, lambda _: "", lambda _: None])
def test_an_argument_that_is_no_passphrase_is_refused(given: PassphraseSource) -> None:
    """An empty one does not mean that the environment decides; the message names the key."""
    for way in (unlocking(given, environ={_VARIABLE: "x"}), choosing(given)):
        with pytest.raises(UsageError, match="passphrase of key 'worker': "):
            way("worker")


def test_a_key_is_made_with_the_callers_passphrase_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment names opens keys and chooses none."""
    monkeypatch.setenv(_VARIABLE, "of the environment")

    assert choosing("mine")("worker").normal_bytes() == b"mine"


@pytest.mark.parametrize("text", ["a\nb", "\x1b[D", "x" * 1025, "\udcff"])
def test_a_variable_that_is_no_passphrase_is_refused_unshown(text: str) -> None:
    """The message names the variable."""
    with pytest.raises(UsageError, match=f"^{_VARIABLE}: ") as caught:
        environment_passphrase(environ={_VARIABLE: text})

    assert text not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"words", "words"),
        (b"words\n", "words"),
        (b"words\r\n", "words"),
        (b" words \n", " words "),
        ("wörter\n".encode(), "wörter"),
    ],
)
def test_a_file_holds_one_line(tmp_path: Path, data: bytes, expected: str) -> None:
    """The end of the line is no part of the passphrase; spaces are."""
    assert read_passphrase_file(str(_file(tmp_path / "f", data)), "setting") == expected


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\r\n", b"hunter2\n\n", b"hunter2\nmore\n", b"hunter2\xff", b"hunter2\0"]
)
def test_a_file_that_holds_no_line_is_refused_unshown(tmp_path: Path, data: bytes) -> None:
    """The message names the file and what named it, and nothing of what is in it."""
    path = _file(tmp_path / "f", data)

    with pytest.raises(UsageError, match=f"^{_FILE_VARIABLE} {path}: ") as caught:
        environment_passphrase(environ={_FILE_VARIABLE: str(path)})
    assert "hunter2" not in f"{caught.value!r} {caught.value.__context__!r}"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o660, 0o666])
def test_a_file_that_others_can_touch_is_refused(tmp_path: Path, mode: int) -> None:
    """It is as secret as a key file."""
    path = _file(tmp_path / "f", mode=mode)

    with pytest.raises(KeyFileUnsafe) as caught:
        environment_passphrase(environ={_FILE_VARIABLE: str(path)})
    assert caught.value.message == f"{path}: expected mode 0600, found {mode:04o}"


def test_a_file_that_only_the_user_reads_may_be_a_link(tmp_path: Path) -> None:
    """Secrets are mounted as links; the file that one leads to is what is checked."""
    target = _file(tmp_path / "f", mode=0o400)
    (tmp_path / "link").symlink_to("f")

    assert read_passphrase_file(str(tmp_path / "link"), "setting") == "from a file"
    target.chmod(0o440)
    with pytest.raises(KeyFileUnsafe, match="expected mode 0600, found 0440"):
        read_passphrase_file(str(tmp_path / "link"), "setting")


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever owns it knows what is in it."""
    path = _file(tmp_path / "f")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    with pytest.raises(KeyFileUnsafe, match="as its owner"):
        read_passphrase_file(str(path), "setting")


def _missing(tmp_path: Path) -> str:
    return str(tmp_path / "none")


def _below_a_file(tmp_path: Path) -> str:
    return str(_file(tmp_path / "f") / "below")


def _large(tmp_path: Path) -> str:
    return str(_file(tmp_path / "f", b"x" * 4097))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (_missing, ConfigError),
        (_below_a_file, DirectoryUnusable),
        (_large, KeyFileUnsafe),
        (str, KeyFileUnsafe),
        (lambda _: "a\0b", ConfigError),
    ],
)
def test_a_file_that_cannot_be_read_is_a_clear_error(
    tmp_path: Path, make: Callable[[Path], str], error: type[SealpointError]
) -> None:
    """None, no directory, too large, a directory, no path: never another passphrase instead."""
    with pytest.raises(error, match=r"larger than|there is no file|cannot be read|expected"):
        environment_passphrase(environ={_FILE_VARIABLE: make(tmp_path)})
