# SPDX-License-Identifier: Apache-2.0
"""A store in a directory, from its URL to its last save: made, opened, moved, gone, given up."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint import api
from sealpoint.errors import (
    DirectoryUnusable,
    NotTrusted,
    RolledBack,
    SchemaUnknown,
    StorageUnavailable,
    StoreExists,
    StoreMisplaced,
)


@pytest.fixture
def where(tmp_path: Path) -> dict[str, Any]:
    """Where keys and anchor lie, as arguments."""
    return {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store will lie."""
    return tmp_path / "agents"


@pytest.fixture
def url(path: Path) -> str:
    """The URL of the store."""
    return f"file://{path}"


def test_directory_is_made_and_used(path: Path, url: str, where: dict[str, Any]) -> None:
    """Init, save, load, list, verify: as with any other store."""
    sealpoint.init(url, **where)
    with sealpoint.open_store(url, **where) as store:
        store.thread("t").save({"step": 1})
        store.thread("t").save({"step": 2, "large": bytes(100_000)})
    with sealpoint.open_store(url, read_only=True, **where) as store:
        assert store.thread("t").load().state == {"step": 2, "large": bytes(100_000)}
        assert store.threads().names == ("t",)
        assert store.threads().complete
        assert store.verify().ok

    assert (path / "sealpoint-store").is_file()
    with pytest.raises(StoreExists):
        sealpoint.init(url, **where)


def test_empty_directory_is_taken(path: Path, url: str, where: dict[str, Any]) -> None:
    """Somebody may have made it, or mounted something there."""
    path.mkdir()
    sealpoint.init(f"{url}/", **where)

    with sealpoint.open_store(url, **where) as store:
        assert store.verify().ok


def test_directory_with_something_in_it_is_left_alone(
    path: Path, url: str, where: dict[str, Any]
) -> None:
    """Init refuses before anything is written, keys included."""
    path.mkdir()
    (path / "notes.txt").write_text("mine")
    with pytest.raises(StoreExists):
        sealpoint.init(url, **where)

    assert [found.name for found in path.iterdir()] == ["notes.txt"]
    assert not where["config_dir"].exists()


def test_directory_that_holds_keys_or_anchor_is_misplaced(
    tmp_path: Path, where: dict[str, Any]
) -> None:
    """Neither around them nor in them."""
    for misplaced in (tmp_path, where["config_dir"], where["state_dir"] / "agents"):
        with pytest.raises(StoreMisplaced):
            sealpoint.init(f"file://{misplaced}", **where)

    assert not list(tmp_path.iterdir())


def test_store_that_is_gone_or_emptied_is_rolled_back(
    path: Path, url: str, where: dict[str, Any]
) -> None:
    """The anchor knows that there was one; it is neither made anew nor opened as a new one."""
    sealpoint.init(url, **where)
    shutil.rmtree(path)
    for _ in range(2):
        with pytest.raises(RolledBack, match="its file is gone"):
            sealpoint.open_store(url, **where)
        with pytest.raises(RolledBack):
            sealpoint.init(url, **where)
        path.mkdir(exist_ok=True)

    assert not list(path.iterdir())
    (path / "notes.txt").touch()
    with pytest.raises(SchemaUnknown, match="found no sealpoint-store"):
        sealpoint.open_store(url, **where)


def test_moved_store_goes_on_under_its_new_url(
    tmp_path: Path, path: Path, url: str, where: dict[str, Any]
) -> None:
    """The directory is moved by hand; keys, pin and anchor follow when they are told."""
    sealpoint.init(url, **where)
    with sealpoint.open_store(url, **where) as store:
        store.thread("t").save(1)
    moved = f"file://{tmp_path}/moved"
    with pytest.raises(StorageUnavailable, match="there is no store at this place"):
        api.admin(moved, **where).trust.move_from(url)
    (tmp_path / "moved").mkdir()
    with pytest.raises(StorageUnavailable):
        api.admin(moved, **where).trust.move_from(url)
    (tmp_path / "moved").rmdir()
    path.rename(tmp_path / "moved")
    api.admin(moved, **where).trust.move_from(url)

    with sealpoint.open_store(moved, **where) as store:
        assert store.thread("t").load().state == 1
        assert store.thread("t").save(2).writer == "worker"
    with pytest.raises(NotTrusted):
        sealpoint.open_store(url, **where)


def test_directory_that_others_can_write_is_refused(
    path: Path, url: str, where: dict[str, Any]
) -> None:
    """Permissions that were loosened afterwards are noticed when the store is opened."""
    sealpoint.init(url, **where)
    path.chmod(0o770)

    with pytest.raises(DirectoryUnusable, match="only its owner writes, found 0770"):
        sealpoint.open_store(url, **where)
