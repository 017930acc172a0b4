# SPDX-License-Identifier: Apache-2.0
"""Keys that others could have read, changed or put there, in a mounted secret and elsewhere.

As root, a pod is played for real: secrets of root behind links, a process of another user, without
a home and without a name in the password file.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from sealpoint.config import StoreFiles, StoreUrl, load_settings
from sealpoint.errors import DirectoryUnusable, KeyFileUnsafe, SealpointError
from tests.unit.api.place import Place
from tests.unit.config.test_mounted import mounted

_USER = 12345
_GROUP = 23456
_SECONDS_MAX = 60
_READS = 500
_as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)

# It imports everything while it may still read the interpreter's files, and then becomes the pod.
_POD = """
import json, os, sys
import sealpoint, sealpoint.cli, sealpoint.aio, sqlite3, encodings.idna
sealpoint.open_store("memory:").thread("t").save({"warm": 1})
os.setgroups([GROUP]); os.setgid(1); os.setuid(USER)
try:
    with sealpoint.open_store(sys.argv[1]) as store:
        store.thread("t").save({"by": os.getuid()})
        print(json.dumps({"state": store.thread("t").load().state, "ok": store.verify().ok}))
except sealpoint.SealpointError as error:
    print(json.dumps(error.as_dict()))
""".replace("GROUP", str(_GROUP)).replace("USER", str(_USER))


class Pod:
    """A volume for the store, one for the state, and a secret that is mounted."""

    def __init__(self, base: Path) -> None:
        self.base = base
        made = Place(base / "made")
        made.init()
        base.chmod(0o755)
        shutil.move(made.disk, base / "disk")
        shutil.move(made.folder / "state", base / "state")
        files = made.files.directory
        self.secrets = mounted(
            base / "secrets",
            worker_key=(files / "keys" / "worker.key").read_bytes(),
            pin_json=(files / "pin.json").read_bytes(),
            slots_key=(files / "slots.key").read_bytes(),
        )
        made.folder.chmod(0o700)
        for volume in ("disk", "state"):
            for path in (base / volume, *(base / volume).rglob("*")):
                os.chown(path, _USER, _USER)
        for path in self.data.iterdir():
            os.chown(path, 0, _GROUP)

    @property
    def data(self) -> Path:
        """Where the files of the secret really lie."""
        return (self.secrets / "..data").resolve()

    def run(self, **environment: str) -> Any:
        """Save and load in a process of the pod; its result, or its error."""
        places = {
            "SEALPOINT_CONFIG_DIR": str(self.base / "none"),
            "SEALPOINT_STATE_DIR": str(self.base / "state"),
            "SEALPOINT_SECRETS_DIR": str(self.secrets),
        }
        result = subprocess.run(
            [sys.executable, "-c", _POD, f"sqlite:///{self.base}/disk/agents.db"],
            env={
                key: value
                for key, value in {
                    **places,
                    "PYTHONPATH": os.pathsep.join(sys.path),
                    **environment,
                }.items()
                if value
            },
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)


@pytest.fixture
def pod() -> Iterator[Pod]:
    """A directory that another user can reach, which one of pytest's is not."""
    base = Path(tempfile.mkdtemp(prefix="sealpoint-pod-"))
    try:
        yield Pod(base)
    finally:
        shutil.rmtree(base)


@_as_root
def test_a_pod_without_a_home_works_on_secrets_of_root(pod: Pod) -> None:
    """Links, a group that may read, a read-only secret, a user whom nobody knows."""
    assert pod.run() == {"state": {"by": _USER}, "ok": True}
    assert sorted(path.name for path in pod.base.iterdir()) == ["disk", "made", "secrets", "state"]


@_as_root
def test_without_directories_and_home_the_error_says_what_to_set(pod: Pod) -> None:
    """An error of ours, and no traceback of a library."""
    found = pod.run(SEALPOINT_CONFIG_DIR="")

    assert found["code"] == "directory-unusable"
    assert "SEALPOINT_CONFIG_DIR" in found["hint"]
    assert "SEALPOINT_STATE_DIR" in found["hint"]


@_as_root
@pytest.mark.parametrize("name", ["worker.key", "slots.key"])
def test_a_key_that_others_can_read_is_refused(pod: Pod, name: str) -> None:
    """0644 is what Kubernetes mounts unless it is told otherwise."""
    (pod.data / name).chmod(0o644)
    found = pod.run()
    (pod.data / name).chmod(0o440)

    assert found["code"] == "key-file-unsafe"
    assert "defaultMode: 0440" in found["hint"]
    assert pod.run()["ok"]


@_as_root
def test_a_key_of_another_user_is_refused_and_chown_is_said(pod: Pod) -> None:
    """A mode is not what is wrong with it."""
    os.chown(pod.data / "worker.key", _USER + 1, _GROUP)
    found = pod.run()

    assert found["code"] == "key-file-unsafe"
    assert f"chown {_USER} " in found["hint"]
    assert "chmod" not in found["hint"]


@_as_root
def test_a_link_that_another_user_put_there_is_refused(pod: Pod) -> None:
    """The top of a secret has the sticky bit: others can add names, and they are theirs."""
    (pod.secrets / "worker.key").unlink()
    (pod.secrets / "worker.key").symlink_to("..data/worker.key")
    os.chown(pod.secrets / "worker.key", _USER + 1, _GROUP, follow_symlinks=False)

    assert pod.run()["code"] == "key-file-unsafe"


# ---------------------------------------------------------------------- whoever runs the tests


def _opened(place: Place, secrets: Path) -> None:
    place.open(secrets_dir=secrets).close()


def _secret_of(place: Place, **changed: bytes) -> Path:
    files = place.files.directory
    held: dict[str, Any] = {"worker_key": (files / "keys" / "worker.key").read_bytes()}
    return mounted(place.folder / "secrets", **(held | changed))


def _world_writable(secrets: Path) -> None:
    secrets.chmod(0o777)


def _group_writable_key(secrets: Path) -> None:
    (secrets / "worker.key").chmod(0o460)


def _writable_data(secrets: Path) -> None:
    (secrets / "..data").resolve().chmod(0o775)


def _relink(secrets: Path, target: str) -> None:
    (secrets / "worker.key").unlink()
    (secrets / "worker.key").symlink_to(target)


def _out_by_dots(secrets: Path) -> None:
    shutil.copy(secrets / "worker.key", secrets.parent / "planted.key")
    _relink(secrets, "../planted.key")


def _out_by_an_absolute_path(secrets: Path) -> None:
    shutil.copy(secrets / "worker.key", secrets.parent / "planted.key")
    _relink(secrets, str(secrets.parent / "planted.key"))


def _round(secrets: Path) -> None:
    _relink(secrets, "worker.key")


def _to_another_identity(secrets: Path) -> None:
    _relink(secrets, "..data/other.key")


def _to_nothing(secrets: Path) -> None:
    _relink(secrets, "..data/gone.key")


def _to_a_pipe(secrets: Path) -> None:
    os.mkfifo((secrets / "..data").resolve() / "pipe", 0o400)
    _relink(secrets, "..data/pipe")


def _to_a_directory(secrets: Path) -> None:
    _relink(secrets, "..data")


@pytest.mark.parametrize(
    "change",
    [
        _world_writable,
        _group_writable_key,
        _writable_data,
        _out_by_dots,
        _out_by_an_absolute_path,
        _round,
        _to_another_identity,
        _to_nothing,
        _to_a_pipe,
        _to_a_directory,
    ],
)
def test_a_secret_that_others_can_change_or_that_leads_out_is_refused(
    tmp_path: Path, change: Any
) -> None:
    """Each change alone; without it the same secret opens the store."""
    place = Place(tmp_path)
    place.init()
    other = (place.files.directory / "keys" / "operator.key").read_bytes()
    secrets = _secret_of(place, other_key=other)
    _opened(place, secrets)
    change(secrets)

    with pytest.raises((KeyFileUnsafe, DirectoryUnusable)):
        _opened(place, secrets)


def _replace_for_ever(secrets: Path) -> NoReturn:
    """Do what Kubernetes does when a secret changes, again and again, until somebody ends it."""
    for number in itertools.count():
        old = (secrets / "..data").resolve()
        shutil.copytree(old, secrets / f"..{number}")
        (secrets / "..data_tmp").symlink_to(f"..{number}")
        (secrets / "..data_tmp").rename(secrets / "..data")
        shutil.rmtree(old)
    raise AssertionError


def test_a_secret_that_is_replaced_while_it_is_read_is_never_missing(tmp_path: Path) -> None:
    """Or an older one in the configuration directory would take its place; a missing name may."""
    place = Place(tmp_path)
    place.init()
    old, new = place.files.secret(), b"\xab" * 32
    secrets = _secret_of(place, slots_key=new.hex().encode() + b"\n")
    settings = load_settings(**place.directories, secrets_dir=secrets)
    files = StoreFiles(settings, StoreUrl.parse(place.url))
    child = os.fork()
    if child == 0:
        try:
            _replace_for_ever(secrets)
        finally:
            os._exit(1)
    try:
        found = {files.ensure_secret(os.urandom) for _ in range(_READS)}
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    assert found == {new}
    (secrets / "slots.key").unlink()
    assert files.secret() == old


def test_a_key_file_swapped_for_a_link_is_refused(tmp_path: Path) -> None:
    """In the configuration directory no link is followed, wherever it leads."""
    place = Place(tmp_path)
    place.init()
    key = place.files.directory / "keys" / "worker.key"
    shutil.copy(key, tmp_path / "theirs.key")
    data = key.read_bytes()
    key.unlink()
    key.symlink_to(tmp_path / "theirs.key")
    with pytest.raises(KeyFileUnsafe, match="symbolic link"):
        place.open()
    key.unlink()
    key.write_bytes(data)
    key.chmod(0o600)
    place.open().close()


def test_a_group_may_read_a_key_only_in_a_mounted_secret(tmp_path: Path) -> None:
    """Elsewhere nobody has declared that a group is meant."""
    place = Place(tmp_path)
    place.init()
    _opened(place, _secret_of(place))
    (place.files.directory / "keys" / "worker.key").chmod(0o640)
    with pytest.raises(KeyFileUnsafe, match="0640"):
        place.open()


def test_a_descriptor_of_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """Whoever opened it did not make it a secret by that."""
    place = Place(tmp_path)
    place.init()
    key = place.files.directory / "keys" / "worker.key"
    with key.open("rb") as file:
        place.open(key_fd=file.fileno()).close()
        key.chmod(0o604)
        with pytest.raises(KeyFileUnsafe, match="descriptor"):
            place.open(key_fd=file.fileno())
        key.chmod(0o600)
        with pytest.raises(KeyFileUnsafe, match="another name"):
            place.open(key_fd=file.fileno(), identity="operator")


def test_a_pin_from_a_descriptor_is_the_pin(tmp_path: Path) -> None:
    """Another store's pin by the same way is refused, as it is from a file."""
    place, foreign = Place(tmp_path / "a"), Place(tmp_path / "b")
    pins = [each.init().encode() for each in (place, foreign)]
    for pin, error in zip(pins, (None, SealpointError), strict=True):
        descriptor = os.memfd_create("pin")
        os.write(descriptor, pin)
        try:
            if error is None:
                place.open(trust=descriptor, read_only=True).close()
            else:
                with pytest.raises(error):
                    place.open(trust=descriptor, read_only=True).close()
        finally:
            os.close(descriptor)
