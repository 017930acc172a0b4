# SPDX-License-Identifier: Apache-2.0
"""Keys under a passphrase: who is asked, how often, and what goes on without being asked."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint import aio, api
from sealpoint.api._store_location import StoreLocation
from sealpoint.config import KeyFiles
from sealpoint.errors import KeyLocked, StoreExists, UsageError
from sealpoint.signing import PrivateKey
from tests.unit.api.place import Place

_WORDS = "correct horse battery staple"
_OTHER = "another"


pytestmark = pytest.mark.usefixtures("quick_passphrases")


@pytest.fixture(autouse=True)
def _no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEALPOINT_PASSPHRASE", "SEALPOINT_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)


class _Asked:
    """Knows the passphrase of every key, and remembers whose was asked for."""

    def __init__(self, words: str = _WORDS) -> None:
        self.names: list[str] = []
        self._words = words

    def __call__(self, name: str) -> str:
        self.names.append(name)
        return self._words


def _never(name: str) -> str:
    raise AssertionError(name)


def _lock(place: Place, *names: str) -> None:
    for name in names:
        place.admin.keys.change_passphrase(name, new=_WORDS)


def test_a_key_is_opened_once_for_a_store_and_not_per_save(made: Place) -> None:
    """One question, with the name of the key, however much is saved."""
    _lock(made, "worker")
    asked = _Asked()
    with made.open(passphrase=asked) as store:
        for number in range(5):
            store.thread("t").save({"step": number})
        assert store.verify().ok

    assert asked.names == ["worker"]


def test_a_passphrase_is_text_bytes_or_from_the_environment(
    made: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every way opens the same key, and the argument comes first."""
    _lock(made, "worker")
    path = tmp_path / "words"
    path.write_text(f"{_WORDS}\n")
    path.chmod(0o600)

    made.open(passphrase=_WORDS.encode()).close()
    monkeypatch.setenv("SEALPOINT_PASSPHRASE_FILE", str(path))
    made.open().close()
    monkeypatch.setenv("SEALPOINT_PASSPHRASE", "wrong")
    made.open(passphrase=_WORDS).close()
    with pytest.raises(KeyLocked, match="the passphrase does not open it, or its file was changed"):
        made.open()


def test_without_its_passphrase_a_key_stays_locked(made: Place) -> None:
    """None, a wrong one, an empty one; and nothing is left open or written."""
    _lock(made, "worker")
    before = made.everything()

    with pytest.raises(
        KeyLocked, match="key 'worker': it is locked by a passphrase, and none was given"
    ):
        made.open()
    with pytest.raises(KeyLocked):
        made.open(passphrase=_OTHER)
    with pytest.raises(UsageError, match="it is empty"):
        made.open(passphrase="")
    assert made.everything() == before


def test_what_needs_no_key_never_asks(made: Place) -> None:
    """Reading, listing, exporting, and what a plain key signs."""
    with made.open(passphrase=_never) as store:
        store.thread("t").save(1)
    _lock(made, "worker")
    with made.open(read_only=True, passphrase=_never) as store:
        state = store.thread("t").load().state
    listed = {info.name: info for info in made.admin.keys.list()}
    pin = made.admin.trust.export_pin()
    planned = api.admin(made.url, passphrase=_never, **made.directories).anchor.adopt(
        reason="x", dry_run=True
    )

    assert state == 1
    assert {name: info.encrypted for name, info in listed.items()} == {
        "worker": True,
        "operator": False,
        "root": False,
    }
    assert pin.encode() == made.files.pin().encode()
    assert planned.threads == ()
    sealpoint.open_store("memory:", passphrase=_never).close()


def test_adding_an_identity_asks_for_the_root_alone(made: Place) -> None:
    """The new key's public half is no secret, so its passphrase is not needed."""
    _lock(made, "root")
    asked, chosen = _Asked(), _Asked(_OTHER)
    public = made.admin.keys.create("second", new_passphrase=chosen)

    def add(**options: Any) -> int:
        admin = api.admin(made.url, **made.directories, **options)
        return admin.keys.add("second", person="p", roles=["writer"], namespaces=["*"])

    with pytest.raises(KeyLocked, match="'root'"):
        add()
    seq = add(passphrase=asked)
    listed = {info.name: info for info in made.admin.keys.list()}

    assert (asked.names, chosen.names, seq) == (["root"], ["second"], 1)
    assert listed["second"].public == str(public)
    assert listed["second"].encrypted is True
    with made.open(identity="second", passphrase=_OTHER) as store:
        assert store.thread("mine").save(1).writer == "second"


def test_adopting_asks_for_the_operator(made: Place, tmp_path: Path) -> None:
    """Whose key signs the adoption."""
    _lock(made, "operator")
    asked = _Asked()
    directories = {**made.directories, "state_dir": tmp_path / "new-state"}
    adopted = api.admin(made.url, passphrase=asked, **directories).anchor.adopt(reason="new disk")

    assert adopted.store_chain
    assert asked.names == ["operator"]


def test_init_locks_all_three_keys(place: Place) -> None:
    """Each is asked for by its name, and none lies there in the clear."""
    asked = _Asked()
    sealpoint.init(place.url, passphrase=asked, **place.directories)

    assert asked.names == ["root", "worker", "operator"]
    for name in asked.names:
        assert place.files.keys.facts(name).encrypted
    with pytest.raises(KeyLocked):
        place.open()
    with place.open(passphrase=_WORDS) as store:
        store.thread("t").save(1)
    with pytest.raises(StoreExists):
        sealpoint.init(place.url, passphrase=_never, **place.directories)


def test_the_environment_does_not_decide_whether_a_key_is_locked(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program means what it says: without the argument, new keys are plain."""
    monkeypatch.setenv("SEALPOINT_PASSPHRASE", _WORDS)
    place.init()
    place.admin.keys.create("second")

    assert [place.files.keys.facts(name).encrypted for name in place.files.keys.names()] == [
        False
    ] * 4


def test_an_interrupted_init_is_repeated_with_its_passphrase(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys that are there are opened; one that was made plain is locked now."""
    publics = []
    for options in ({}, {"passphrase": _WORDS}):
        with monkeypatch.context() as patch:
            patch.setattr(KeyFiles, "write", _only_root(KeyFiles.write))
            with pytest.raises(KeyboardInterrupt):
                sealpoint.init(place.url, **options, **place.directories)
        publics.append(place.files.keys.facts("root").public)
    locked = place.files.keys.facts("root").encrypted
    with pytest.raises(KeyLocked):
        place.init()
    pin = sealpoint.init(place.url, passphrase=_WORDS, **place.directories)

    assert locked
    assert publics == [*pin.root.keys] * 2
    assert all(place.files.keys.facts(name).encrypted for name in place.files.keys.names())


def _only_root(write: Callable[..., None]) -> Callable[..., None]:
    def wrapped(files: KeyFiles, signer: PrivateKey, *rest: Any) -> None:
        if signer.name != "root":
            raise KeyboardInterrupt
        write(files, signer, *rest)

    return wrapped


def test_a_changed_passphrase_leaves_the_key_as_it_was(made: Place) -> None:
    """What it signed before and signs afterwards is one identity's."""
    with made.open() as store:
        store.thread("t").save(1)
    public = made.admin.keys.change_passphrase("worker", new=_WORDS)
    asked = _Asked()
    again = api.admin(made.url, passphrase=asked, **made.directories).keys.change_passphrase(
        "worker", new=_OTHER
    )
    with made.open(passphrase=_OTHER) as store:
        store.thread("t").save(2)
        assert store.verify().ok
    removed = api.admin(made.url, passphrase=_OTHER, **made.directories).keys.change_passphrase(
        "worker", new=None
    )
    with made.open() as store:
        assert store.thread("t").save(3).writer == "worker"

    assert public == again == removed
    assert asked.names == ["worker"]
    for new in ("", b"\xff", "a\nb"):
        with pytest.raises(UsageError):
            made.admin.keys.change_passphrase("worker", new=new)


def test_the_async_twin_takes_a_passphrase(made: Place) -> None:
    """As `open_store` does."""
    _lock(made, "worker")

    async def run() -> int:
        async with aio.open_store(made.url, passphrase=_WORDS, **made.directories) as store:
            return (await store.thread("t").save(1)).seq

    assert asyncio.run(run()) == 2


def test_a_place_does_not_show_a_passphrase(made: Place) -> None:
    """Neither what finds a store nor what opens it prints what it was given."""
    place = StoreLocation.find(made.url, passphrase=_WORDS, **made.directories)

    assert _WORDS not in f"{place!r} {place} {place.unlock!r}"
