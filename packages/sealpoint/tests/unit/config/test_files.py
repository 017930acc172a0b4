# SPDX-License-Identifier: Apache-2.0
"""The files of a store: where they lie, what is refused, and that nothing is overwritten."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sealpoint.config import StoreFiles, StoreUrl
from sealpoint.errors import (
    ConfigError,
    DirectoryUnusable,
    KeyFileUnsafe,
    KeyMissing,
    NameInvalid,
    NotTrusted,
    StoreExists,
)
from sealpoint.ids import StoreId
from sealpoint.signing import PrivateKey
from tests.unit.config.samples import settings
from tests.unit.signing.samples import pin, signer


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> StoreFiles:
    url = StoreUrl.parse(f"sqlite:///{tmp_path}/data/store.db")
    return StoreFiles(settings(tmp_path), url)


def _fill(files: StoreFiles) -> None:
    files.write_pin(pin())
    files.ensure_secret(lambda count: b"\x11" * count)
    files.keys.write(signer(9))


def test_files_lie_where_the_layout_says(files: StoreFiles, tmp_path: Path) -> None:
    """The directory is named by a digest of the URL, and everything has its name in it."""
    _fill(files)
    digest = hashlib.sha256(str(files.url).encode()).hexdigest()[:32]
    directory = tmp_path / "config" / "stores" / digest
    found = {str(path.relative_to(directory)) for path in directory.rglob("*")}

    assert files.directory == directory
    assert found == {"keys", "keys/worker.key", "pin.json", "slots.key", "store.json"}
    assert json.loads((directory / "store.json").read_text()) == {
        "url": str(files.url),
        "target": str(files.url.path),
    }
    assert (directory / "slots.key").read_text() == "11" * 32 + "\n"
    assert files.anchor_directory(StoreId(bytes(range(16)))) == (
        tmp_path / "state" / "anchors" / bytes(range(16)).hex()
    )
    assert not (tmp_path / "state").exists()


def test_everything_written_is_the_users_alone(files: StoreFiles, tmp_path: Path) -> None:
    """Directories are 0700 and files 0600 under the widest umask."""
    before = os.umask(0)
    try:
        _fill(files)
    finally:
        os.umask(before)

    for path in (tmp_path / "config", *(tmp_path / "config").rglob("*")):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_what_was_written_is_read(files: StoreFiles) -> None:
    """Pin, secret and key come back, for a second object too."""
    _fill(files)
    again = StoreFiles(files._directory.settings, StoreUrl.parse(str(files.url)))

    assert again.has_pin()
    assert again.pin().encode() == pin().encode()
    assert again.secret() == b"\x11" * 32
    assert again.keys.signer("worker").public == signer(9).public
    assert again.keys.names() == ["worker"]


def test_nothing_is_read_or_made_before_it_is_asked_for(files: StoreFiles, tmp_path: Path) -> None:
    """Asking what is there makes nothing."""
    assert not files.has_pin()
    assert files.keys.names() == []
    for read in (files.pin, files.secret, lambda: files.keys.signer("worker")):
        with pytest.raises((NotTrusted, KeyMissing)):
            read()
    assert list(tmp_path.iterdir()) == []


def test_two_stores_share_nothing(files: StoreFiles, tmp_path: Path) -> None:
    """A pin or a key of one store is none of another."""
    _fill(files)
    other = StoreFiles(
        files._directory.settings, StoreUrl.parse(f"sqlite:///{tmp_path}/data/other.db")
    )

    assert not other.has_pin()
    assert other.keys.names() == []
    other.ensure_secret(os.urandom)
    assert not other.has_pin()
    assert other.secret() != files.secret()
    assert other.directory != files.directory


def test_an_absent_pin_says_what_to_do(files: StoreFiles) -> None:
    """The message names the store and the hint names both ways to trust it."""
    with pytest.raises(NotTrusted) as caught:
        files.pin()

    assert str(files.url) in str(caught.value)
    assert "sealpoint init" in caught.value.hint
    assert "sealpoint trust import" in caught.value.hint


def test_an_absent_key_names_identity_store_and_file(files: StoreFiles) -> None:
    """The message says whose key was looked for, and where."""
    with pytest.raises(KeyMissing) as caught:
        files.keys.signer("alice")
    with pytest.raises(KeyMissing, match=r"slots\.key"):
        files.secret()

    assert "'alice'" in str(caught.value)
    assert str(files.url) in str(caught.value)
    assert str(files.directory / "keys" / "alice.key") in str(caught.value)


def test_a_pin_is_not_overwritten_unless_asked(files: StoreFiles) -> None:
    """The same pin again is fine, another is refused, and replacing is said aloud."""
    files.write_pin(pin(3))
    files.write_pin(pin(3))
    with pytest.raises(StoreExists, match=r"pin\.json"):
        files.write_pin(pin(4))
    kept = files.pin().roster_seq_min
    files.write_pin(pin(4), replace=True)

    assert kept == 3
    assert files.pin().roster_seq_min == 4


def test_a_pin_may_be_replaced_where_there_is_none(files: StoreFiles) -> None:
    """Replacing needs nothing to replace."""
    files.write_pin(pin(), replace=True)

    assert files.pin().encode() == pin().encode()


def test_a_key_is_never_overwritten(files: StoreFiles) -> None:
    """Not even by itself: who makes a key expects that there was none."""
    files.keys.write(signer(1))
    for again in (signer(2), signer(1)):
        with pytest.raises(StoreExists, match="'worker'"):
            files.keys.write(again)

    assert files.keys.signer("worker").public == signer(1).public


def test_a_secret_is_drawn_once(files: StoreFiles) -> None:
    """The second time the source of randomness is not asked."""
    first = files.ensure_secret(lambda count: b"\x01" * count)
    second = files.ensure_secret(lambda count: b"\x02" * count)

    assert first == second == b"\x01" * 32


def test_racing_processes_agree_on_one_secret(files: StoreFiles) -> None:
    """Whoever loses the race goes on with the secret of the winner."""
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: files.ensure_secret(os.urandom), range(16)))

    assert len(set(drawn)) == 1
    assert sorted(path.name for path in files.directory.iterdir()) == ["slots.key", "store.json"]


def test_a_source_that_gives_too_little_is_refused(files: StoreFiles) -> None:
    """A short secret is never written."""
    with pytest.raises(KeyFileUnsafe, match="32 random bytes"):
        files.ensure_secret(lambda count: b"\x01" * (count - 1))
    with pytest.raises(KeyMissing):
        files.secret()


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "ab" * 32, "ab" * 31 + "\n", "ab" * 33 + "\n", "AB" * 32 + "\n"),
        *("ab" * 32 + "\n\n", " " + "ab" * 32 + "\n", "ab " * 32 + "\n", "zz" * 32 + "\n"),
        *("ab" * 31 + "a\n", "ab" * 31 + "é\n", "ab" * 200),
    ],
)
def test_a_damaged_secret_is_refused_unshown(files: StoreFiles, text: str) -> None:
    """Only the one spelling is read; a damaged file is neither used nor drawn again."""
    files.ensure_secret(os.urandom)
    path = files.directory / "slots.key"
    path.write_text(text)

    for read in (files.secret, lambda: files.ensure_secret(os.urandom)):
        with pytest.raises(KeyFileUnsafe, match=r"slots\.key") as caught:
            read()
        assert "abab" not in f"{caught.value!r} {caught.value.__context__!r}"
    assert path.read_text() == text


_READERS: list[tuple[str, Callable[[StoreFiles], object]]] = [
    ("slots.key", StoreFiles.secret),
    ("slots.key", lambda files: files.ensure_secret(os.urandom)),
    ("keys/worker.key", lambda files: files.keys.signer("worker")),
]


@pytest.mark.parametrize(("name", "read"), _READERS)
def test_a_secret_that_others_can_read_is_refused(
    files: StoreFiles, name: str, read: Callable[[StoreFiles], object]
) -> None:
    """The message names the file, the mode found and the mode expected."""
    _fill(files)
    path = files.directory / name
    path.chmod(0o644)

    with pytest.raises(KeyFileUnsafe) as caught:
        read(files)
    assert caught.value.message == f"{path}: expected mode 0600, found 0644"


@pytest.mark.parametrize(("name", "read"), [*_READERS, ("pin.json", StoreFiles.pin)])
def test_a_link_in_the_place_of_a_file_is_refused(
    files: StoreFiles, name: str, read: Callable[[StoreFiles], object]
) -> None:
    """Even one that leads to the genuine file."""
    _fill(files)
    path = files.directory / name
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")

    with pytest.raises(KeyFileUnsafe, match="a symbolic link"):
        read(files)


def test_a_pin_may_be_read_by_others_but_not_changed(files: StoreFiles) -> None:
    """A pin is no secret, but who can change it chooses whom to trust."""
    files.write_pin(pin())
    path = files.directory / "pin.json"
    path.chmod(0o644)

    assert files.pin().store == pin().store
    path.chmod(0o664)
    assert files.has_pin()
    with pytest.raises(KeyFileUnsafe, match="found 0664"):
        files.pin()


def test_a_malformed_pin_is_not_trusted_and_not_overwritten(files: StoreFiles) -> None:
    """Damage is for a person to look at."""
    files.write_pin(pin())
    path = files.directory / "pin.json"
    path.write_bytes(b"{}")

    for act in (files.pin, lambda: files.write_pin(pin())):
        with pytest.raises(NotTrusted):
            act()
    assert path.read_bytes() == b"{}"
    path.write_bytes(b" " * (64 * 1024 + 1))
    with pytest.raises(ConfigError, match="larger than 65536 bytes"):
        files.pin()


def test_a_key_file_of_another_name_is_refused(files: StoreFiles) -> None:
    """Renaming a key does not give its holder another name."""
    files.keys.write(signer(1, "alice"))
    (files.directory / "keys" / "alice.key").rename(files.directory / "keys" / "bob.key")

    assert files.keys.names() == ["bob"]
    with pytest.raises(KeyFileUnsafe, match="'bob'"):
        files.keys.signer("bob")


@pytest.mark.parametrize("name", ["", "..", "../pin", "a/b", "Worker", ".new-a", "a\0"])
def test_a_name_never_leaves_its_directory(files: StoreFiles, name: str, tmp_path: Path) -> None:
    """Neither reading nor writing a key takes a name that is no plain file name."""
    with pytest.raises(NameInvalid):
        files.keys.signer(name)
    with pytest.raises(NameInvalid):
        files.keys.write(PrivateKey(name, b"\x01" * 32))

    assert list(tmp_path.iterdir()) == []


def test_only_keys_are_listed(files: StoreFiles) -> None:
    """What an interrupted write left, and other files, are no keys."""
    for number, name in enumerate(("worker", "alice", "b.key"), start=1):
        files.keys.write(signer(number, name))
    for name in (".new-x", ".new-x.key", "notes.txt", "Bob.key", ".key", "key"):
        (files.directory / "keys" / name).touch()

    assert files.keys.names() == ["alice", "b.key", "worker"]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_directory_on_the_way_is_checked(files: StoreFiles, level: int) -> None:
    """Who can write any of them can put other keys in the place of these."""
    _fill(files)
    keys = files.directory / "keys"
    directory = [keys.parents[2], keys.parents[1], keys.parents[0], keys][level]
    directory.chmod(0o770)
    actions: list[Callable[[], object]] = [
        lambda: files.keys.signer("worker"),
        files.keys.names,
        lambda: files.keys.write(signer(1, "alice")),
    ]
    if directory != keys:
        actions += [files.pin, files.has_pin, files.secret, lambda: files.write_pin(pin())]

    for act in actions:
        with pytest.raises(DirectoryUnusable) as caught:
            act()
        assert (
            caught.value.message
            == f"{directory}: expected a mode in which only its owner writes, found 0770"
        )


def test_a_directory_of_a_store_is_never_a_link(files: StoreFiles, tmp_path: Path) -> None:
    """The configuration directory itself may be one; what we made below it may not."""
    _fill(files)
    (tmp_path / "config").rename(tmp_path / "elsewhere")
    (tmp_path / "config").symlink_to("elsewhere")
    read = files.secret()
    files.directory.rename(tmp_path / "moved")
    files.directory.symlink_to(tmp_path / "moved")

    assert read == b"\x11" * 32
    for act in (files.secret, files.has_pin, files.keys.names, files.pin):
        with pytest.raises(DirectoryUnusable, match="a symbolic link"):
            act()


def test_a_file_in_the_place_of_a_directory_is_named(files: StoreFiles, tmp_path: Path) -> None:
    """One clear sentence, whatever is asked."""
    (tmp_path / "config").touch()
    actions: list[Callable[[], object]] = [
        *(files.pin, files.has_pin, files.secret, files.keys.names),
        lambda: files.keys.signer("worker"),
        lambda: files.write_pin(pin()),
        lambda: files.ensure_secret(os.urandom),
        lambda: files.keys.write(signer(1)),
    ]

    for act in actions:
        with pytest.raises(DirectoryUnusable) as caught:
            act()
        assert caught.value.message == f"{tmp_path}/config: expected a directory, found a file"


def test_a_directory_that_cannot_be_listed_is_named(
    files: StoreFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everywhere, so the refusal of the system is simulated."""
    _fill(files)
    true_lstat = Path.lstat

    def denied(self: Path) -> os.stat_result:
        if self.name == "pin.json":
            raise PermissionError(13, "Permission denied")
        return true_lstat(self)

    def unlisted(self: Path) -> list[Path]:
        raise PermissionError(13, f"Permission denied: {self.name}")

    monkeypatch.setattr(Path, "lstat", denied)
    monkeypatch.setattr(Path, "iterdir", unlisted)

    with pytest.raises(DirectoryUnusable, match="Permission denied"):
        files.has_pin()
    with pytest.raises(DirectoryUnusable, match="Permission denied: keys"):
        files.keys.names()
