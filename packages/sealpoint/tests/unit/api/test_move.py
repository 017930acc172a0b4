# SPDX-License-Identifier: Apache-2.0
"""A store whose file was moved, is gone, or is given up: nothing is believed or lost by chance."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint import api
from sealpoint.config import StoreFiles, StoreUrl, load_settings
from sealpoint.errors import (
    DirectoryUnusable,
    KeyFileUnsafe,
    NoPin,
    NotTrusted,
    RolledBack,
    StorageUnavailable,
    StoreExists,
    UrlInvalid,
)
from tests.unit.api.place import Place


def _moved(place: Place) -> str:
    """Save something, then move the file; return its new URL."""
    with place.open() as store:
        store.thread("t").save({"n": 1})
    target = place.disk / "moved.db"
    place.path.rename(target)
    return f"sqlite:///{target}"


def test_a_moved_store_goes_on_under_its_new_url(made: Place) -> None:
    """Pin, keys, secret and anchor serve the new URL; the old one is not trusted any more."""
    url = _moved(made)
    before, pin = made.everything(), made.files.pin()
    with pytest.raises(NotTrusted):
        api.open_store(url, **made.directories)
    found = api.admin(url, **made.directories).trust.move_from(made.url)
    after = made.everything()

    assert found.encode() == pin.encode()
    assert {key for key in after if not key.startswith("config/")} == {
        key for key in before if not key.startswith("config/")
    }
    assert sorted(after.values()) != sorted(before.values())  # the note has the new URL
    with api.open_store(url, **made.directories) as store:
        assert store.thread("t").load().state == {"n": 1}
        assert store.thread("t").save({"n": 2}).writer == "worker"
        assert store.threads().complete
        assert store.verify().ok
    assert {info.name for info in api.admin(url, **made.directories).keys.list() if info.here} == {
        "operator",
        "root",
        "worker",
    }
    with pytest.raises(NotTrusted) as caught:
        made.open()
    assert url in caught.value.hint
    assert f"known here: {made.url}" not in caught.value.hint


def test_a_moved_store_keeps_its_memory(made: Place) -> None:
    """Moving is no way around the anchor: an older copy under the new URL is rolled back."""
    older = made.path.read_bytes()
    url = _moved(made)
    (made.disk / "moved.db").write_bytes(older)
    api.admin(url, **made.directories).trust.move_from(made.url)

    with api.open_store(url, **made.directories) as store, pytest.raises(RolledBack):
        store.thread("t").load()


def test_a_store_may_move_there_and_back(made: Place) -> None:
    """The second move leaves every file as it was before the first."""
    before = made.everything()
    moved = made.disk / "moved.db"
    url = f"sqlite:///{moved}"
    made.path.rename(moved)
    api.admin(url, **made.directories).trust.move_from(made.url)
    moved.rename(made.path)
    made.admin.trust.move_from(url)

    assert made.everything() == before


def test_a_move_takes_the_place_of_no_other_store(made: Place) -> None:
    """A new URL that has a pin is refused, and nothing changes."""
    other = f"sqlite:///{made.disk / 'other.db'}"
    sealpoint.init(other, **made.directories)
    before = made.everything()

    with pytest.raises(StoreExists, match="has a pin of it already"):
        api.admin(other, **made.directories).trust.move_from(made.url)
    assert made.everything() == before


def test_a_move_to_the_same_place_changes_nothing(made: Place) -> None:
    """Saying once more where a store lies is no error."""
    before = made.everything()
    made.admin.trust.move_from(made.url)

    assert made.everything() == before


def test_a_move_over_stray_files_is_refused(made: Place) -> None:
    """Keys without a pin at the new URL are not overwritten, and the old ones stay in use."""
    url = f"sqlite:///{made.disk / 'moved.db'}"
    directory = StoreFiles(load_settings(**made.directories), StoreUrl.parse(url)).directory
    directory.mkdir(mode=0o700)
    (directory / "slots.key").write_text("somebody's", encoding="ascii")
    shutil.copy(made.path, made.disk / "moved.db")

    with pytest.raises(DirectoryUnusable, match="it cannot be moved to"):
        api.admin(url, **made.directories).trust.move_from(made.url)
    assert (directory / "slots.key").read_text(encoding="ascii") == "somebody's"
    with made.open() as store:
        store.thread("t").save(1)


@pytest.mark.parametrize(
    ("old", "error"),
    [("nowhere.db", NotTrusted), ("", UrlInvalid), ("~/agents.db", UrlInvalid)],
    ids=["unknown", "no path", "a tilde"],
)
def test_an_unknown_store_cannot_be_moved(
    place: Place, old: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known about the old URL, so nothing is made for the new one."""
    monkeypatch.chdir(place.folder)
    with pytest.raises(error):
        place.admin.trust.move_from(f"sqlite:///{old}")
    assert place.is_untouched()


def test_a_pin_is_not_imported_where_the_store_is_known_under_another_url(made: Place) -> None:
    """A second secret would not open the anchor that is here; the hint says how to go on."""
    pin = made.admin.trust.export_pin()
    url = _moved(made)
    before = made.everything()

    with pytest.raises(
        StoreExists, match="an anchor of this store is on this machine already"
    ) as caught:
        api.admin(url, **made.directories).trust.import_pin(pin.encode())
    assert "trust move" in caught.value.hint
    assert made.url in caught.value.hint
    assert made.everything() == before
    api.admin(url, **made.directories).trust.move_from(made.url)
    again = api.admin(url, **made.directories).trust.import_pin(pin.encode())
    assert again.encode() == pin.encode()


def test_the_hint_lists_the_ways_on_and_the_stores_known_here(made: Place) -> None:
    """Whoever mistyped a URL sees those that there are, and no more than four of them."""
    unknown = f"sqlite:///{made.disk / 'unknown.db'}"
    for number in range(4):
        sealpoint.init(f"sqlite:///{made.disk / f'{number}.db'}", **made.directories)
    with pytest.raises(NotTrusted) as caught:
        api.open_store(unknown, **made.directories)
    with pytest.raises(NotTrusted) as nothing:
        api.open_store(unknown, config_dir=made.folder / "c", state_dir=made.folder / "s")

    for way in ("sealpoint init", "sealpoint trust import", "sealpoint trust move"):
        assert way in caught.value.hint
    assert caught.value.hint.count("sqlite:///") == 5
    assert caught.value.hint.endswith(" and more.")
    assert nothing.value.hint.endswith("Stores known here: none.")


_OLD_NOTE = b'{"url": "sqlite:////srv/agents.db"}'


@pytest.mark.parametrize("note", [None, b"", b"[]", b"{}", b"\xff", b'{"url": 1', _OLD_NOTE])
def test_a_store_without_a_note_of_where_it_lies_is_refused(
    made: Place, note: bytes | None
) -> None:
    """Nothing is guessed; saying where it lies is enough, and other stores are not affected."""
    path = made.files.directory / "store.json"
    good = path.read_bytes()
    path.unlink()
    if note is not None:
        path.touch(mode=0o600)
        path.write_bytes(note)
    with pytest.raises(NotTrusted, match="which says where the store lies, is missing") as caught:
        made.open()
    with pytest.raises(NotTrusted, match="which says where the store lies, is missing"):
        made.init()
    with pytest.raises(NoPin, match="this machine has no pin"):
        api.open_store(f"sqlite:///{made.disk / 'unknown.db'}", **made.directories)

    assert f"sealpoint trust move {made.url} --store {made.url}" in caught.value.hint
    made.admin.trust.move_from(made.url)
    assert path.read_bytes() == good
    with made.open() as store:
        store.thread("t").save(1)


def test_a_note_that_others_can_change_is_refused(made: Place) -> None:
    """What says where the store lies is as safe as the pin."""
    (made.files.directory / "store.json").chmod(0o622)

    with pytest.raises(KeyFileUnsafe, match=r"store\.json"):
        made.open()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_that_is_gone_is_given_up_on_purpose_alone(
    made: Place,
    read_only: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Opening and init refuse; once the directory that the hint names is away, init works."""
    old = made.files.pin()
    made.path.unlink()
    with pytest.raises(RolledBack, match="its file is gone"):
        made.open(read_only=read_only)
    with pytest.raises(RolledBack, match="its file is gone") as caught:
        made.init()
    directory = made.files.directory
    assert str(directory) in caught.value.hint
    assert not made.path.exists()
    directory.rename(made.folder / "given-up")

    assert made.init().store != old.store
    with made.open() as store:
        assert store.thread("t").save(1).seq == 2
        assert store.verify().ok


def test_init_in_a_missing_directory_writes_nothing(place: Place) -> None:
    """No key, no pin and no anchor is made for a store that could not be made."""
    url = f"sqlite:///{place.folder / 'no' / 'such' / 'agents.db'}"

    with pytest.raises(StorageUnavailable, match="there is no directory") as caught:
        api.init(url, **place.directories)
    assert str(place.folder / "no" / "such") in caught.value.hint
    assert place.is_untouched()


@pytest.mark.parametrize("url", [None, 7, b"sqlite:///agents.db", Path("agents.db")])
def test_a_url_is_text(place: Place, url: Any) -> None:
    """Anything else is refused by name and not by a traceback."""
    for call in (api.init, api.open_store):
        with pytest.raises(UrlInvalid, match=f"expected text, found {type(url).__name__}"):
            call(url, **place.directories)
    assert place.is_untouched()


def test_a_store_and_a_thread_say_what_they_are(made: Place) -> None:
    """The id, the namespace and the name are shown, and neither state nor keys."""
    with made.open(namespace="billing") as store:
        store.thread("march").save({"secret": "hush"})

        assert repr(store) == f"<Store {store.id} namespace 'billing'>"
        assert repr(store.thread("march")) == "<Thread 'march'>"


def test_a_move_to_where_no_file_lies_is_refused(made: Place) -> None:
    """A mistyped URL takes nothing along: the store stays where it is known."""
    before = made.everything()

    with pytest.raises(StorageUnavailable, match="there is no store at this place"):
        api.admin(f"sqlite:///{made.disk / 'typo.db'}", **made.directories).trust.move_from(
            made.url
        )
    assert made.everything() == before
