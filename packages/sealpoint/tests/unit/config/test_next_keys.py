# SPDX-License-Identifier: Apache-2.0
"""The next key of an identity: durable beside the old one, and then in its place."""

import errno
from pathlib import Path

import pytest

from sealpoint.config import StoreFiles, StoreUrl, choosing, load_settings
from sealpoint.errors import DirectoryUnusable, KeyFileUnsafe, KeyMissing, NameInvalid
from sealpoint.signing import PrivateKey

_OLD, _NEW, _OTHER = (PrivateKey("worker", bytes([number]) * 32) for number in (1, 2, 3))


@pytest.fixture
def files(tmp_path: Path) -> StoreFiles:
    """The files of a store, with a worker's key."""
    settings = load_settings(config_dir=tmp_path / "config", state_dir=tmp_path / "state")
    made = StoreFiles(settings, StoreUrl.parse(f"sqlite:///{tmp_path / 'store.db'}"))
    made.keys.write(_OLD)
    return made


def test_a_next_key_waits_beside_the_old_one(files: StoreFiles) -> None:
    """The old one is the key until it is taken, and the next one is no key of its own."""
    assert files.keys.next_facts("worker") is None
    files.keys.write_next(_NEW)
    found = files.keys.next_facts("worker")

    assert found is not None
    assert (found.public, found.encrypted) == (_NEW.public, False)
    assert files.keys.signer("worker").public == _OLD.public
    assert files.keys.names() == ["worker"]


def test_a_next_key_takes_the_place_of_the_old_one(files: StoreFiles) -> None:
    """The old file is gone, and so is the name that the next one had."""
    files.keys.write_next(_NEW)
    files.keys.take_next("worker")
    keys = files.directory / "keys"

    assert files.keys.signer("worker").public == _NEW.public
    assert files.keys.next_facts("worker") is None
    assert [path.name for path in keys.iterdir()] == ["worker.key"]
    secret = _OLD.secret_bytes().hex().encode()
    assert not [path for path in keys.iterdir() if secret in path.read_bytes()]


def test_a_next_key_that_is_there_stays(files: StoreFiles) -> None:
    """An interrupted rotation goes on with the key that it had made."""
    files.keys.write_next(_NEW)
    files.keys.write_next(_OTHER)
    found = files.keys.next_facts("worker")

    assert found is not None
    assert found.public == _NEW.public


@pytest.mark.usefixtures("quick_passphrases")
def test_a_next_key_may_be_encrypted(files: StoreFiles) -> None:
    """Its public half is known without the passphrase, and it stays encrypted when it is taken."""
    files.keys.write_next(_NEW, choosing("correct horse"))
    found = files.keys.next_facts("worker")
    files.keys.take_next("worker")

    assert found is not None
    assert (found.public, found.encrypted) == (_NEW.public, True)
    assert files.keys.facts("worker").encrypted
    assert files.keys.signer("worker", choosing("correct horse")).public == _NEW.public


def test_without_a_next_key_the_old_one_stays(files: StoreFiles) -> None:
    """There is nothing to take."""
    with pytest.raises(KeyMissing, match=r"no next key was prepared here: no file .*worker\.next"):
        files.keys.take_next("worker")
    assert files.keys.signer("worker").public == _OLD.public


def test_an_unsafe_or_damaged_next_key_is_refused(files: StoreFiles) -> None:
    """It is as secret as any key file, and belongs to its identity."""
    path = files.directory / "keys" / "worker.next"
    files.keys.write_next(_NEW)
    path.chmod(0o644)
    with pytest.raises(KeyFileUnsafe):
        files.keys.take_next("worker")
    path.chmod(0o600)
    path.rename(path.with_name("other.next"))
    with pytest.raises(KeyFileUnsafe, match="its file holds the key of another name"):
        files.keys.next_facts("other")
    for name in ("../worker", "", "A"):
        with pytest.raises(NameInvalid):
            files.keys.next_facts(name)
    assert files.keys.signer("worker").public == _OLD.public


def test_a_file_that_cannot_be_moved_loses_no_key(
    files: StoreFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both stay as they are, and the error names the directory."""
    files.keys.write_next(_NEW)

    def full(_: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(DirectoryUnusable, match="No space left on device"):
            files.keys.take_next("worker")
    assert files.keys.signer("worker").public == _OLD.public
    assert files.keys.next_facts("worker") is not None
