# SPDX-License-Identifier: Apache-2.0
"""Encrypted key files on the disk: made once, and changed without ever being lost."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpoint.config import StoreFiles, StoreUrl, choosing, unlocking
from sealpoint.errors import (
    ConfigError,
    DirectoryUnusable,
    KeyFileUnsafe,
    KeyLocked,
    KeyMissing,
    StoreExists,
)
from sealpoint.signing import Passphrase
from tests.unit.config.samples import settings
from tests.unit.signing.samples import signer

_FIRST, _SECOND = choosing("first"), choosing("second")


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> StoreFiles:
    url = StoreUrl.parse(f"sqlite:///{tmp_path}/data/store.db")
    return StoreFiles(settings(tmp_path), url)


def _path(files: StoreFiles, name: str = "worker") -> Path:
    return files.directory / "keys" / f"{name}.key"


def _unasked(_: str) -> Passphrase:
    raise AssertionError


@pytest.mark.usefixtures("quick_passphrases")
def test_a_key_goes_from_plain_to_locked_and_back(files: StoreFiles) -> None:
    """Set, change and remove: the key is the same, and only the newest passphrase opens it."""
    files.keys.write(signer(1))
    plain = _path(files).read_bytes()
    files.keys.relock("worker", _unasked, _FIRST)
    locked = files.keys.facts("worker").encrypted
    first = _path(files).read_bytes()
    with pytest.raises(KeyLocked):
        files.keys.signer("worker", unlocking(None, environ={}))
    files.keys.relock("worker", _FIRST, _SECOND)
    with pytest.raises(KeyLocked):
        files.keys.signer("worker", _FIRST)
    opened = files.keys.signer("worker", _SECOND)
    mode = stat.S_IMODE(_path(files).stat().st_mode)
    files.keys.relock("worker", _SECOND, None)

    assert locked
    assert opened.public == signer(1).public
    assert signer(1).secret_bytes().hex().encode() not in first
    assert mode == 0o600
    assert _path(files).read_bytes() == plain
    assert sorted(path.name for path in _path(files).parent.iterdir()) == ["worker.key"]


@pytest.mark.usefixtures("quick_passphrases")
def test_a_key_is_made_locked(files: StoreFiles) -> None:
    """Its bytes were never on the disk without the passphrase."""
    files.keys.write(signer(1), _FIRST)

    assert files.keys.facts("worker").public == signer(1).public
    assert files.keys.signer("worker", _FIRST).public == signer(1).public
    with pytest.raises(KeyLocked, match="none was given"):
        files.keys.signer("worker")


@pytest.mark.usefixtures("quick_passphrases")
def test_nobody_chooses_a_passphrase_for_a_key_that_is_there(files: StoreFiles) -> None:
    """A key is never overwritten, and whoever would be asked is not."""
    files.keys.write(signer(1))
    before = _path(files).read_bytes()

    with pytest.raises(StoreExists):
        files.keys.write(signer(2), _unasked)
    assert _path(files).read_bytes() == before


@pytest.mark.usefixtures("quick_passphrases")
def test_a_wrong_passphrase_changes_nothing(files: StoreFiles) -> None:
    """And the new one is not even asked for."""
    files.keys.write(signer(1), _FIRST)
    before = _path(files).read_bytes()

    with pytest.raises(KeyLocked):
        files.keys.relock("worker", _SECOND, _unasked)
    assert _path(files).read_bytes() == before


def test_a_key_that_is_not_there_or_not_safe_has_no_passphrase(files: StoreFiles) -> None:
    """What cannot be opened cannot be changed."""
    with pytest.raises(KeyMissing):
        files.keys.relock("worker", _unasked, _unasked)
    files.keys.write(signer(1))
    _path(files).chmod(0o644)
    for act in (
        lambda: files.keys.relock("worker", _unasked, _unasked),
        lambda: files.keys.facts("worker"),
    ):
        with pytest.raises(KeyFileUnsafe, match="found 0644"):
            act()


@pytest.mark.usefixtures("quick_passphrases")
def test_a_key_that_came_in_meanwhile_is_not_lost(files: StoreFiles) -> None:
    """Whoever types for minutes does not bring an older key back."""
    files.keys.write(signer(1))

    def choose(_: str) -> Passphrase:
        _path(files).unlink()
        files.keys.write(signer(2))
        return Passphrase("slowly typed")

    with pytest.raises(ConfigError, match="its file changed after it was opened") as caught:
        files.keys.relock("worker", _unasked, choose)
    assert "try again" in caught.value.hint
    assert files.keys.signer("worker").public == signer(2).public


def test_a_choice_that_fails_leaves_the_key_alone(files: StoreFiles) -> None:
    """Whoever gives up at the question has the key as it was."""
    files.keys.write(signer(1))

    def choose(_: str) -> Passphrase:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.keys.relock("worker", _unasked, choose)
    assert files.keys.signer("worker").public == signer(1).public


class _Crash(BaseException):
    """The process ends here."""


def _failing(error: BaseException) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


@pytest.mark.usefixtures("quick_passphrases")
@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("fsync", OSError(errno.ENOSPC, "No space left on device")),
        ("replace", _Crash()),
    ],
)
def test_a_failure_at_any_step_keeps_the_old_key(
    files: StoreFiles, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    """Until the new file is durable and has its name, the old one is there, whole."""
    files.keys.write(signer(1))
    before = _path(files).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, step, _failing(error))
        with pytest.raises((_Crash, DirectoryUnusable)):
            files.keys.relock("worker", _unasked, _FIRST)

    assert _path(files).read_bytes() == before
    assert files.keys.names() == ["worker"]
