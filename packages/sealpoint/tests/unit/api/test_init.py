# SPDX-License-Identifier: Apache-2.0
"""Making a store: once, in an order that survives interruption, never over what is there."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sealpoint import api
from sealpoint.api import _open as init_module
from sealpoint.config import KeyFiles, StoreFiles
from sealpoint.errors import (
    NoPin,
    RolledBack,
    SealpointError,
    StoreExists,
    StoreMisplaced,
    UrlInvalid,
)
from sealpoint.store import Core
from tests.unit.api.place import Place


def test_init_makes_a_store_that_saves_and_loads(place: Place) -> None:
    """Two identities are in the roster, three keys are here, and the store works at once."""
    pin = place.init()
    with place.open() as store:
        store.thread("t").save({"step": 1})
        assert store.id == pin.store
    with place.open() as store:
        assert store.thread("t").load().state == {"step": 1}
        assert store.verify().ok
    keys = {info.name: info for info in place.admin.keys.list()}

    assert set(keys) == {"root", "worker", "operator"}
    assert keys["worker"].roles == ("writer",)
    assert keys["operator"].roles == ("approver", "auditor", "operator", "privacy")
    assert keys["root"].roles == ("root",)
    assert not keys["root"].in_roster


def test_secrets_are_for_their_owner_alone(made: Place) -> None:
    """No file or directory that was made can be read by others."""
    for path in made.folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_no_secret_lies_in_the_store_or_the_anchor(made: Place) -> None:
    """Whoever has the database has no key."""
    with made.open() as store:
        store.thread("t").save(1)
    files = made.everything()
    secrets = [
        signer.secret_bytes() for signer in map(made.files.keys.signer, made.files.keys.names())
    ]
    secrets.append(made.files.secret())

    for name, data in files.items():
        if not name.startswith("config"):
            assert not [secret for secret in secrets if secret in data]
            assert not [secret for secret in secrets if secret.hex().encode() in data]


def test_a_second_init_changes_nothing(made: Place) -> None:
    """The store is said to exist, and every file keeps its bytes."""
    before = made.everything()

    with pytest.raises(StoreExists):
        made.init()
    assert made.everything() == before


_STEPS: list[tuple[Any, str, int]] = [
    (KeyFiles, "write", 0),
    (KeyFiles, "write", 1),
    (KeyFiles, "write", 2),
    (StoreFiles, "ensure_secret", 0),
    (StoreFiles, "write_pin", 0),
    (init_module, "append_roster", 0),
    (Core, "anchor_store_chain", 0),
]


def _interrupting(function: Callable[..., Any], nth: int, *, after: bool) -> Callable[..., Any]:
    calls = iter(range(1000))

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if next(calls) != nth:
            return function(*args, **kwargs)
        if after:
            function(*args, **kwargs)
        raise KeyboardInterrupt

    return wrapped


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", _STEPS, ids=[f"{step[1]} {step[2]}" for step in _STEPS])
def test_an_interrupted_init_is_repeated(
    place: Place, monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str, int], when: str
) -> None:
    """Wherever it stopped, doing it again makes the store, with the keys that were there."""
    (owner, name, nth), after = step, when == "after"
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, _interrupting(getattr(owner, name), nth, after=after))
        with pytest.raises(KeyboardInterrupt):
            place.init()
    keys = {key: place.files.keys.signer(key).public for key in place.files.keys.names()}
    if (name, after) == ("anchor_store_chain", True):
        with pytest.raises(StoreExists):
            place.init()
    else:
        place.init()

    for key, public in keys.items():
        assert place.files.keys.signer(key).public == public
    with place.open() as store:
        assert store.thread("t").save(1).seq == 2
        assert store.verify().ok


def test_a_deleted_store_is_not_made_anew(made: Place) -> None:
    """The anchor knows that there was one: an empty store in its place is a rollback."""
    with made.open() as store:
        store.thread("t").save(1)
    for path in made.disk.glob("agents.db*"):
        path.unlink()

    with pytest.raises(RolledBack):
        made.init()
    with pytest.raises(SealpointError):
        made.open()


def test_a_file_without_a_pin_is_somebody_elses(place: Place) -> None:
    """A store that this machine knows nothing about is not taken over, and no key is made."""
    place.path.write_bytes(b"something")

    with pytest.raises(StoreExists, match="a store or a file at this place already") as caught:
        place.init()
    assert "trust import" in caught.value.hint
    assert place.path.read_bytes() == b"something"
    assert list(place.folder.rglob("*")) == [place.disk, place.path]


def test_init_is_no_way_around_adoption(made: Place) -> None:
    """A store with a lost anchor is not entered into a new one by making it again."""
    with made.open() as store:
        store.thread("t").save(1)
    shutil.rmtree(made.folder / "state")

    with pytest.raises(StoreExists):
        made.init()
    with pytest.raises(SealpointError) as caught:
        made.open()
    assert caught.value.code == "unanchored"


def test_init_with_a_foreign_pin_makes_no_keys(made: Place, tmp_path: Path) -> None:
    """Where a pin was imported, the store exists: no second root is made beside it."""
    other: dict[str, Any] = {"config_dir": tmp_path / "config2", "state_dir": tmp_path / "state2"}
    pin = made.admin.trust.export_pin()
    api.admin(made.url, **other).trust.import_pin(pin.encode())

    with pytest.raises(SealpointError):
        api.init(made.url, **other)
    assert not list((tmp_path / "config2").rglob("*root*"))


def test_a_store_among_its_keys_is_refused(tmp_path: Path) -> None:
    """Whoever has the store must not have its keys or its anchor with it."""
    for inside in ("config", "state"):
        place: dict[str, Any] = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
        with pytest.raises(StoreMisplaced):
            api.init(f"sqlite:///{tmp_path / inside / 'agents.db'}", **place)


@pytest.mark.parametrize("url", ["memory:", "postgres://host/db", "agents.db", ""])
def test_only_a_store_on_disk_is_made(place: Place, url: str) -> None:
    """Other URLs are refused, and nothing is made."""
    with pytest.raises(UrlInvalid):
        api.init(url, **place.directories)
    assert place.is_untouched()


def test_an_imported_pin_is_needed_elsewhere(made: Place, tmp_path: Path) -> None:
    """Trust is carried by people: a machine without a pin believes nothing."""
    other: dict[str, Any] = {"config_dir": tmp_path / "config2", "state_dir": tmp_path / "state2"}

    with pytest.raises(NoPin, match="this machine has no pin"):
        api.open_store(made.url, **other)


def test_a_store_that_was_cut_back_is_not_initialised_again(made: Place) -> None:
    """Without the anchor and with only the first roster left, it looks new and is not."""
    with made.open() as store:
        store.thread("t").save(1)
    shutil.rmtree(made.folder / "state")
    with made.rows() as rows:
        rows.execute("DELETE FROM entries WHERE seq > 0 OR thread != zeroblob(16)")

    with pytest.raises(StoreExists, match="initialised already"):
        made.init()
