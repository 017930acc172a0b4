# SPDX-License-Identifier: Apache-2.0
"""Pins travel between machines, keys and identities are added, and lost anchors are adopted."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from sealpoint import TrustPin, api
from sealpoint.errors import (
    KeyFileUnsafe,
    KeyMissing,
    NameInvalid,
    NotOwner,
    NotTrusted,
    RolledBack,
    SealpointError,
    StoreExists,
    Unanchored,
    UnknownThread,
    UsageError,
)
from sealpoint.signing import PrivateKey
from tests.unit.api.place import Place

_FAR = str(PrivateKey("far", b"f" * 32).public)


def _add(place: Place, name: str, **options: Any) -> int:
    given: dict[str, Any] = {"person": name, "roles": ["writer"], "namespaces": ["*"]}
    return place.admin.keys.add(name, **(given | options))


def _elsewhere(tmp_path: Path) -> dict[str, Any]:
    return {"config_dir": tmp_path / "config2", "state_dir": tmp_path / "state2"}


def test_an_exported_pin_believes_no_older_roster(made: Place) -> None:
    """The pin that travels names the roster in force; the one at home stays as it was."""
    first = made.admin.trust.export_pin()
    _add(made, "second", public=str(PrivateKey("second", b"2" * 32).public))
    second = made.admin.trust.export_pin()

    assert (first.roster_seq_min, second.roster_seq_min) == (0, 1)
    assert first.fingerprint() == second.fingerprint()
    assert TrustPin.parse(second.encode()).encode() == second.encode()


def test_a_second_machine_reads_after_adoption(made: Place, tmp_path: Path) -> None:
    """With the pin and an adoption by an operator, another machine reads the same threads."""
    with made.open() as store:
        store.thread("t").save({"n": 1})
    other = _elsewhere(tmp_path)
    pin = made.admin.trust.export_pin()
    api.admin(made.url, **other).trust.import_pin(pin.encode())
    with pytest.raises(Unanchored):
        api.open_store(made.url, read_only=True, **other)
    keys = next((tmp_path / "config2").rglob("pin.json")).parent / "keys"
    keys.mkdir(mode=0o700, exist_ok=True)
    source = next((tmp_path / "config").rglob("operator.key"))
    shutil.copy(source, keys / "operator.key")
    found = api.admin(made.url, **other).anchor.adopt(reason="second machine")

    assert found == api.Adopted(store_chain=True, threads=("t",))
    with api.open_store(made.url, read_only=True, **other) as store:
        assert store.thread("t").load().state == {"n": 1}
    with made.open() as store:
        assert store.thread("t").load().state == {"n": 1}


def test_another_pin_is_not_replaced_by_chance(made: Place, tmp_path: Path) -> None:
    """The same pin may come again; another one only on purpose."""
    other = Place(tmp_path / "other")
    foreign = other.init()
    own = made.files.pin()

    assert made.admin.trust.import_pin(own.encode()).encode() == own.encode()
    with pytest.raises(StoreExists):
        made.admin.trust.import_pin(foreign.encode())
    assert made.files.pin().encode() == own.encode()
    made.admin.trust.import_pin(foreign.encode(), replace=True)
    with pytest.raises(SealpointError):
        made.open()


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"not a pin"])
def test_other_bytes_are_no_pin(place: Place, data: bytes) -> None:
    """Nothing is written for them."""
    with pytest.raises(NotTrusted):
        place.admin.trust.import_pin(data)
    assert place.is_untouched()


def test_an_older_store_is_refused_by_a_newer_pin(made: Place) -> None:
    """A pin given on opening demands its roster."""
    pin = made.files.pin()
    with made.open(trust=pin) as store:
        assert store.id == pin.store

    with pytest.raises(RolledBack, match="expected roster 1 or later"):
        made.open(trust=pin.with_roster(1))


def test_a_pin_may_come_as_a_file(made: Place) -> None:
    """A path names a pin; a file that is none, or cannot be read, is refused."""
    path = made.folder / "pin.json"
    path.write_bytes(made.files.pin().encode())
    with made.open(trust=path) as store:
        store.thread("t").save(1)
    with made.open(trust=str(path), read_only=True) as store:
        assert store.thread("t").load().state == 1
    path.write_text("{}", encoding="ascii")

    with pytest.raises(NotTrusted, match="expected a pin as JSON"):
        made.open(trust=path)
    with pytest.raises(NotTrusted, match="there is no such file"):
        made.open(trust=made.folder / "nowhere")
    with pytest.raises(KeyFileUnsafe, match="found a directory"):
        made.open(trust=made.folder)
    path.chmod(0o666)
    with pytest.raises(KeyFileUnsafe, match="0666"):
        made.open(trust=path)


def test_a_new_key_may_do_nothing_until_it_is_added(made: Place) -> None:
    """A key is made here, entered by the root, and then writes threads of its own."""
    public = made.admin.keys.create("second")
    with made.open(identity="second") as store, pytest.raises(NotTrusted):
        store.thread("t").save(1)
    with made.open() as store:
        store.thread("t").save(1)

    assert _add(made, "second", reason="a second worker") == 1
    with made.open(identity="second") as store:
        with pytest.raises(NotOwner):
            store.thread("t").save(2)
        assert store.thread("u").save(2).writer == "second"
    listed = {info.name: info for info in made.admin.keys.list()}
    assert listed["second"].public == str(public)
    assert (listed["second"].here, listed["second"].in_roster) == (True, True)


def test_a_key_is_never_overwritten(made: Place) -> None:
    """A second key of the same name is refused, and so are names that are no file's."""
    before = made.everything()
    for name in ("worker", "root"):
        with pytest.raises(StoreExists):
            made.admin.keys.create(name)
    for name in ("../x", "A", "", ".x"):
        with pytest.raises(NameInvalid):
            made.admin.keys.create(name)

    assert made.everything() == before


def test_a_key_from_elsewhere_is_added_by_its_public_half(made: Place) -> None:
    """Its private half need not be here; it is listed so."""
    public = _FAR
    _add(made, "far", public=public, roles=["auditor", "writer", "writer"], namespaces=["b", "a"])
    found = {info.name: info for info in made.admin.keys.list()}["far"]

    assert (found.here, found.in_roster, found.person) == (False, True, "far")
    assert (found.roles, found.namespaces) == (("auditor", "writer"), ("a", "b"))
    with pytest.raises(KeyMissing):
        made.open(identity="far")


def test_an_identity_is_given_more_rights(made: Place) -> None:
    """Adding one that is there merges roles, namespaces and keys; nothing is taken away."""
    _add(made, "far", public=_FAR, namespaces=["a"])
    seq = _add(
        made,
        "far",
        public=str(PrivateKey("far", b"g" * 32).public),
        namespaces=["b"],
        roles=["auditor"],
    )
    lines = [info for info in made.admin.keys.list() if info.name == "far"]

    assert seq == 2
    assert len(lines) == 2
    assert {(info.roles, info.namespaces) for info in lines} == {
        (("auditor", "writer"), ("a", "b"))
    }


def test_the_person_of_an_identity_does_not_change(made: Place) -> None:
    """Keys do not change hands under one name: a person counts once, so nobody becomes another."""
    _add(made, "far", public=_FAR, person="alice")

    with pytest.raises(
        UsageError, match="it belongs to the person 'alice' and cannot be given to 'bob'"
    ):
        _add(made, "far", public=_FAR, person="bob", roles=["operator"])
    assert made.admin.trust.export_pin().roster_seq_min == 1
    assert _add(made, "far", public=_FAR, person="alice", roles=["auditor"]) == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"roles": ["boss"], "public": _FAR}, UsageError),
        ({"public": "zz"}, NotTrusted),
        ({"public": "00" * 32}, NotTrusted),
        ({}, KeyMissing),
    ],
    ids=["a role", "a key", "a weak key", "no key"],
)
def test_a_faulty_identity_is_not_added(
    made: Place, options: dict[str, Any], error: type[SealpointError]
) -> None:
    """The roster stays as it was."""
    with pytest.raises(error):
        _add(made, "second", **options)
    assert made.admin.trust.export_pin().roster_seq_min == 0


def test_a_key_belongs_to_one_identity(made: Place) -> None:
    """Nobody counts twice under two names."""
    with pytest.raises(NotTrusted, match="with one identity"):
        _add(made, "second", public=str(made.files.keys.signer("worker").public))


def test_the_root_is_no_identity(made: Place) -> None:
    """The name of the root is kept for it."""
    with pytest.raises(UsageError, match="the name root is taken"):
        _add(made, "root")


def test_only_the_root_adds(made: Place) -> None:
    """Without the root's private key nothing is entered."""
    next((made.folder / "config").rglob("root.key")).unlink()

    with pytest.raises(KeyMissing, match="root: 1 of its keys are needed here, found 0"):
        _add(made, "second", public=_FAR)


def test_a_lost_anchor_is_adopted(made: Place) -> None:
    """Everything is refused, a dry run says what would be taken in, adoption restores it."""
    with made.open() as store:
        for name in ("a", "b"):
            store.thread(name).save(name)
    shutil.rmtree(made.folder / "state")
    with pytest.raises(Unanchored):
        made.open()
    before = made.path.read_bytes()
    planned = made.admin.anchor.adopt(reason="lost", dry_run=True)

    assert planned == api.Adopted(store_chain=True, threads=("a", "b"))
    assert made.path.read_bytes() == before
    with pytest.raises(UnknownThread):
        made.admin.anchor.adopt(reason="lost", threads=["c"])
    done = made.admin.anchor.adopt(reason="lost", threads=["a"])
    assert done.threads == ("a",)
    with made.open() as store:
        assert store.threads(partial=True).names == ("a",)
        assert not store.threads().complete
        with pytest.raises(Unanchored):
            store.thread("b").load()
    assert made.admin.anchor.adopt(reason="lost").threads == ("b",)
    with made.open() as store:
        assert store.threads().names == ("a", "b")
        assert store.verify().ok
    assert made.admin.anchor.adopt(reason="none").threads == ()


def test_a_worker_adopts_nothing(made: Place) -> None:
    """Adoption is an operator's act."""
    shutil.rmtree(made.folder / "state")

    with pytest.raises(NotTrusted):
        made.admin.anchor.adopt(reason="lost", identity="worker")
    with pytest.raises(UsageError, match="reason"):
        made.admin.anchor.adopt(reason=" ")
    with pytest.raises(Unanchored):
        made.open()
