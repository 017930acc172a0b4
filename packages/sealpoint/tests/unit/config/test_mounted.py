# SPDX-License-Identifier: Apache-2.0
"""Mounted secrets and descriptors: what is read, from where, and what is not."""

import os
from pathlib import Path
from typing import Any

import pytest

from sealpoint.config import StoreFiles, StoreUrl, load_settings
from sealpoint.config._protected_files import read_descriptor, read_mounted
from sealpoint.errors import ConfigError, DirectoryUnusable, KeyFileUnsafe, KeyMissing

_MAX = 1024


def _read(directory: Path, name: str = "worker.key", *, secret: bool = True) -> bytes | None:
    return read_mounted(directory, name, bytes_max=_MAX, secret=secret)


def mounted(directory: Path, mode: int = 0o440, **files: bytes) -> Path:
    """A directory as Kubernetes mounts a secret: files behind two links, and a sticky top."""
    data = directory / "..2026_01_31_10_00_00.1234"
    data.mkdir(parents=True)
    for name, content in files.items():
        path = data / name.replace("_", ".")
        path.write_bytes(content)
        path.chmod(mode)
        (directory / path.name).symlink_to(f"..data/{path.name}")
    (directory / "..data").symlink_to(data.name)
    data.chmod(0o755)
    directory.chmod(0o1777)
    return directory


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600, 0o640])
def test_a_key_behind_the_links_of_kubernetes_is_read(tmp_path: Path, mode: int) -> None:
    """A group may read it: that is how a pod gets it."""
    directory = mounted(tmp_path / "secret", mode, worker_key=b"key")

    assert _read(directory) == b"key"
    assert _read(directory, "operator.key") is None


def test_a_secret_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    """Kubernetes turns `..data` to another directory, and takes the old one away."""
    directory = mounted(tmp_path / "secret", worker_key=b"old")
    assert _read(directory) == b"old"
    fresh = directory / "..2026_02_01"
    fresh.mkdir()
    (fresh / "worker.key").write_bytes(b"new")
    (fresh / "worker.key").chmod(0o440)
    (directory / "..data_tmp").symlink_to(fresh.name)
    (directory / "..data_tmp").rename(directory / "..data")

    assert _read(directory) == b"new"


def test_a_plain_directory_is_as_good(tmp_path: Path) -> None:
    """Docker and systemd mount files without links."""
    (tmp_path / "worker.key").write_bytes(b"key")
    (tmp_path / "worker.key").chmod(0o400)

    assert _read(tmp_path) == b"key"


def test_a_pin_may_be_read_by_everybody(tmp_path: Path) -> None:
    """It holds no secret; what counts is who can change it."""
    directory = mounted(tmp_path / "secret", 0o644, pin_json=b"pin")

    assert _read(directory, "pin.json", secret=False) == b"pin"


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A mount that failed is no reason to look elsewhere in silence."""
    with pytest.raises(DirectoryUnusable, match="mounted secret"):
        _read(tmp_path / "none")


def test_the_files_of_a_store_are_looked_for_in_the_mounted_secret_first(tmp_path: Path) -> None:
    """And what is not there, in the configuration directory."""
    url = StoreUrl.parse(f"sqlite:///{tmp_path}/a.db")
    places: dict[str, Any] = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    plain = StoreFiles(load_settings(**places, environ={}), url)
    secret = plain.ensure_secret(os.urandom)
    directory = mounted(tmp_path / "secret", slots_key=b"ab" * 32 + b"\n")
    files = StoreFiles(
        load_settings(**places, environ={"SEALPOINT_SECRETS_DIR": str(directory)}), url
    )

    assert files.secret() == b"\xab" * 32
    assert plain.secret() == secret
    with pytest.raises(KeyMissing, match=r"worker\.key or .*secret/worker\.key"):
        files.keys.signer("worker")


# ---------------------------------------------------------------------- descriptors


def _read_open(descriptor: int) -> bytes:
    return read_descriptor(descriptor, "a key", bytes_max=_MAX, secret=True)


def test_a_descriptor_of_a_file_is_read_from_its_beginning_each_time(tmp_path: Path) -> None:
    """And is not handed on to processes that this one starts."""
    path = tmp_path / "worker.key"
    path.write_bytes(b"key")
    path.chmod(0o400)
    with path.open("rb") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003 (it has no name)
        found = [_read_open(file.fileno()), _read_open(file.fileno())]

        assert found == [b"key", b"key"]
        assert not os.get_inheritable(file.fileno())


def test_a_pipe_is_read_once_and_says_so() -> None:
    """Its bytes are gone then: the second time is an error, never an empty key."""
    ours, theirs = os.pipe()
    os.write(theirs, b"key")
    os.close(theirs)
    try:
        assert _read_open(ours) == b"key"
        with pytest.raises(KeyMissing, match="an empty descriptor"):
            _read_open(ours)
    finally:
        os.close(ours)


def test_a_file_without_a_name_is_read_whatever_its_mode() -> None:
    """Nobody can reach it but by the descriptor."""
    descriptor = os.memfd_create("key")
    try:
        os.write(descriptor, b"key")
        assert _read_open(descriptor) == b"key"
    finally:
        os.close(descriptor)


def test_a_descriptor_that_is_none_is_refused(tmp_path: Path) -> None:
    """Closed, a directory, too much."""
    ours, theirs = os.pipe()
    os.close(theirs)
    os.close(ours)
    with pytest.raises(KeyMissing, match="Bad file descriptor"):
        _read_open(ours)
    directory = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(KeyFileUnsafe, match="a directory"):
        _read_open(directory)
    os.close(directory)
    large = os.memfd_create("key")
    os.write(large, b"x" * (_MAX + 1))
    with pytest.raises(KeyFileUnsafe, match="larger than"):
        _read_open(large)
    os.close(large)


@pytest.mark.parametrize("number", ["x", "-1", "03", "1.0", " 3"])
def test_a_descriptor_is_a_plain_number(tmp_path: Path, number: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ConfigError, match="key_fd"):
        load_settings(config_dir=tmp_path, state_dir=tmp_path, environ={"SEALPOINT_KEY_FD": number})
