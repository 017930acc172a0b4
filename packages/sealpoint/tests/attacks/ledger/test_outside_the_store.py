# SPDX-License-Identifier: Apache-2.0
"""What a reader trusts lies outside the store, and stays there.

Neither keys nor anchor can be reached, replaced or redirected from where the store lies; and a
state directory that somebody else poisoned is refused, never believed.
"""

import os
import pickle
import shutil
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint.api import admin
from sealpoint.config import StoreFiles
from sealpoint.errors import (
    AnchorUnavailable,
    Edited,
    NoPin,
    RolledBack,
    SealpointError,
    StorageUnavailable,
    StoreMisplaced,
    TrustFileInvalid,
    Unanchored,
)
from tests.attacks.ledger.tampered_store import WORLD, TamperedStore, refused

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


class _Planted:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def _anchor(scene: TamperedStore) -> Path:
    (anchor,) = scene.places["state_dir"].rglob("anchor.slots")
    return Path(anchor)


def _journal(scene: TamperedStore, victim: Path) -> bytes:
    """A rollback journal that undoes nothing and names a file as its super-journal."""
    pages = scene.path.stat().st_size // 4096
    header = _JOURNAL_MAGIC + struct.pack(">5I", 0, 1, pages, 512, 4096)
    name = os.fsencode(victim)
    tail = struct.pack(">I", 0x40000000 // 4096 + 1) + name
    return (
        header.ljust(512, b"\0") + tail + struct.pack(">2I", len(name), sum(name)) + _JOURNAL_MAGIC
    )


@pytest.mark.parametrize("read_only", [False, True])
def test_a_planted_journal_does_not_reach_the_anchor(
    scene: TamperedStore, *, read_only: bool
) -> None:
    """SQLite deletes the file that a played back journal names: so none is played back."""
    scene.require_sound()
    anchor = _anchor(scene)
    journal = scene.path.with_name("agents.db-journal")
    journal.write_bytes(_journal(scene, anchor))
    found = refused(scene.read(read_only=read_only))

    assert anchor.exists()
    assert set(found.values()) == {Edited}
    journal.unlink()
    assert not refused(scene.read())


def test_a_journal_planted_while_the_store_is_open_does_not_reach_the_anchor(
    scene: TamperedStore,
) -> None:
    """An open store has its own log; the journal is not looked at, and refused afterwards."""
    anchor = _anchor(scene)
    with scene.open() as store:
        scene.path.with_name("agents.db-journal").write_bytes(_journal(scene, anchor))
        scene.save(store, "alpha", {"note": "on"}, id="a-4")
        store.thread("alpha").load()
    assert anchor.exists()
    assert refused(scene.read())["open"] is Edited


def test_the_control_journal_would_have_deleted_a_file(
    scene: TamperedStore, tmp_path: Path
) -> None:
    """The planted journal is live: plain SQLite deletes the file that it names."""
    victim = tmp_path / "victim"
    victim.write_text("something of value")
    scene.path.with_name("agents.db-journal").write_bytes(_journal(scene, victim))
    with scene.raw() as database:
        database.execute("SELECT count(*) FROM entries").fetchall()

    assert not victim.exists()


@pytest.mark.parametrize("side", ["-wal", "-shm"])
def test_a_link_in_the_place_of_a_side_file_does_not_reach_the_anchor(
    scene: TamperedStore, side: str
) -> None:
    """A log or its index that leads to the anchor is not followed."""
    anchor = _anchor(scene)
    before = anchor.read_bytes()
    scene.path.with_name(f"agents.db{side}").symlink_to(anchor)
    found = refused(scene.read())

    assert anchor.read_bytes() == before
    assert set(found.values()) <= {StorageUnavailable, Edited}
    scene.path.with_name(f"agents.db{side}").unlink()
    assert not refused(scene.read())


def test_nothing_in_the_store_names_another_anchor(scene: TamperedStore) -> None:
    """A table of settings that points elsewhere is not read; the store is refused."""

    def edit(database: sqlite3.Connection) -> None:
        database.execute("CREATE TABLE settings (name TEXT, value TEXT)")
        database.execute("INSERT INTO settings VALUES ('anchor', 'file:///tmp/mine')")

    assert refused(scene.after(edit))["open"] is Edited


def test_files_beside_the_store_are_not_configuration(scene: TamperedStore, tmp_path: Path) -> None:
    """Pins, keys and anchors of the attacker's own store, laid beside the file, change nothing."""
    other = TamperedStore.make(tmp_path / "attacker")
    with other.open() as store:
        store.thread("alpha").save({"note": "mine"}, world=WORLD)
    for folder in ("config", "state"):
        shutil.copytree(other.folder / folder, scene.disk / folder)
        shutil.copytree(other.folder / folder, scene.disk / f".{folder}")
    for file in (*other.folder.rglob("pin.json"), *other.folder.rglob("anchor.slots")):
        shutil.copy(file, scene.disk)

    assert not refused(scene.read())


def test_keys_or_anchor_inside_the_store_s_folder_are_refused(tmp_path: Path) -> None:
    """What can be restored together with the store remembers nothing."""
    scene = TamperedStore(tmp_path)
    scene.disk.mkdir()
    for place in ("config_dir", "state_dir"):
        scene.places = {
            "config_dir": tmp_path / "config",
            "state_dir": tmp_path / "state",
            place: scene.disk,
        }
        with pytest.raises(StoreMisplaced):
            sealpoint.init(scene.url, **scene.places)


@pytest.mark.parametrize("kind", ["sqlite", "file"])
@pytest.mark.parametrize("beside", ["config_dir", "state_dir"])
@pytest.mark.parametrize("below", ["", "a/little/deeper"])
def test_one_directory_never_holds_a_store_and_the_memory_of_it(
    tmp_path: Path, kind: str, beside: str, below: str
) -> None:
    """Whoever puts the directory of a store back must not put back keys or anchor with it."""
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    url = f"sqlite:///{disk}/agents.db" if kind == "sqlite" else f"file://{disk}"
    apart: dict[str, Any] = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    with pytest.raises(StoreMisplaced, match="directory outside of") as caught:
        sealpoint.init(url, **{**apart, beside: disk / below / "mine"})
    assert list(disk.iterdir()) == []
    sealpoint.init(url, **apart)
    with sealpoint.open_store(url, **apart) as store:
        store.thread("t").save({"n": 1}, world=WORLD)
    shutil.copytree(disk, tmp_path / "copy")
    with sealpoint.open_store(url, **apart) as store:
        store.thread("t").save({"n": 2}, world=WORLD)
    shutil.rmtree(disk)
    shutil.copytree(tmp_path / "copy", disk)

    with sealpoint.open_store(url, **apart) as store, pytest.raises(RolledBack):
        store.thread("t").load()
    if kind == "sqlite":
        made, used = f"mkdir -p {disk / 'store'}", f"sqlite:///{disk}/store/agents.db"
        assert caught.value.hint.endswith(f"{made}, then use {used}")
        (disk / "store").mkdir()
        sealpoint.init(used, **{**apart, beside: disk / below / "mine"})


def test_a_misplaced_store_can_be_moved_away(tmp_path: Path, monkeypatch: Any) -> None:
    """What an earlier version let pass is refused from now on, and goes on elsewhere."""
    url = f"sqlite:///{tmp_path}/agents.db"
    places: dict[str, Any] = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    with monkeypatch.context() as earlier:
        earlier.setattr(StoreFiles, "check_placement", lambda _: None)
        sealpoint.init(url, **places)
    with pytest.raises(StoreMisplaced):
        sealpoint.open_store(url, **places)
    (tmp_path / "store").mkdir()
    (tmp_path / "agents.db").rename(tmp_path / "store" / "agents.db")
    moved = f"sqlite:///{tmp_path}/store/agents.db"
    admin(moved, **places).trust.move_from(url)

    with sealpoint.open_store(moved, **places) as store:
        store.thread("t").save({"n": 1}, world=WORLD)


def test_a_poisoned_anchor_is_refused_and_not_run(scene: TamperedStore, tmp_path: Path) -> None:
    """A pickle, an empty file, half a file, other bits, another store's anchor."""
    scene.require_sound()
    anchor, marker = _anchor(scene), tmp_path / "ran"
    genuine = anchor.read_bytes()
    other = TamperedStore.make(tmp_path / "other")
    flipped = bytearray(genuine)
    for place in range(len(flipped)):
        flipped[place] ^= 1
    for poison in (
        pickle.dumps(_Planted(marker)),
        b"",
        genuine[: len(genuine) // 2],
        genuine[:-1],
        bytes(len(genuine)),
        bytes(flipped),
        _anchor(other).read_bytes(),
    ):
        anchor.write_bytes(poison)
        found = refused(scene.read())
        assert set(found.values()) <= {AnchorUnavailable, Unanchored}
        assert "open" in found
    assert not marker.exists()
    anchor.write_bytes(genuine)
    assert not refused(scene.read())


def test_a_deleted_anchor_is_refused(scene: TamperedStore) -> None:
    """Losing one's memory is not the same as having nothing to remember."""
    scene.require_sound()
    anchor = _anchor(scene)
    genuine = anchor.read_bytes()
    anchor.unlink()
    for _ in range(2):
        found = refused(scene.read())
        assert set(found.values()) == {Unanchored}
    with pytest.raises(SealpointError):
        scene.open()
    anchor.write_bytes(genuine)
    anchor.chmod(0o600)
    assert not refused(scene.read())


def test_a_deleted_or_foreign_pin_is_refused(scene: TamperedStore, tmp_path: Path) -> None:
    """Without a pin nothing is believed, least of all what the store says of itself."""
    (pin,) = scene.places["config_dir"].rglob("pin.json")
    genuine = pin.read_bytes()
    pin.unlink()
    assert set(refused(scene.read()).values()) == {NoPin}
    other = TamperedStore.make(tmp_path / "other")
    (foreign,) = other.places["config_dir"].rglob("pin.json")
    shutil.copy(foreign, pin)
    assert refused(scene.read())["open"].code in {"unanchored", "misplaced", "anchor-unavailable"}
    pin.write_bytes(pickle.dumps({"v": 1}))
    assert set(refused(scene.read()).values()) == {TrustFileInvalid}
    pin.write_bytes(genuine)
    assert not refused(scene.read())


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_turned_back_to_a_rollback_journal_is_refused(
    scene: TamperedStore, *, read_only: bool
) -> None:
    """Only a write-ahead log keeps a planted journal from being played back while it opens."""
    scene.require_sound()
    with scene.path.open("r+b") as file:
        file.seek(18)
        file.write(b"\x01\x01")

    with pytest.raises(Edited, match="expected a write-ahead log"):
        sealpoint.open_store(scene.url, read_only=read_only, **scene.places)
