# SPDX-License-Identifier: Apache-2.0
"""A new root of a store on disk: its keys, its pin, and pins that were carried away before."""

from pathlib import Path
from typing import Any

import pytest

from sealpoint import TrustPin, api
from sealpoint.api import KeyStatus
from sealpoint.errors import KeyLocked, KeyMissing, NotTrusted, RolledBack, UsageError
from sealpoint.signing import PrivateKey
from tests.unit.api.place import Place

_FAR = str(PrivateKey("far", b"f" * 32).public)
_PASSPHRASE = "correct horse battery"  # noqa: S105


def _rotate(place: Place, *, passphrase: str | None = None, **options: Any) -> api.RootRotation:
    admin = api.admin(place.url, passphrase=passphrase, **place.directories)
    return admin.roster.rotate_root(**options)


def _add(place: Place, name: str = "second") -> int:
    return place.admin.keys.add(name, public=_FAR, person=name, roles=["writer"], namespaces=["*"])


def test_a_new_root_is_made_and_signs(made: Place) -> None:
    """Its key is `root-2`; the old root is of no use any more, and neither is missed."""
    before = made.files.pin()
    done = _rotate(made, reason="yearly")
    made.files.keys.signer("root-2")

    assert (done.version, done.threshold, done.made, done.entry) == (2, 1, "root-2", 1)
    assert done.keys == (str(made.files.keys.signer("root-2").public),)
    statuses = {info.name: info.status for info in made.admin.keys.list()}
    assert statuses["root"] is KeyStatus.FORMER_ROOT
    assert statuses["root-2"] is KeyStatus.ROOT
    next((made.folder / "config").rglob("root.key")).unlink()
    assert _add(made) == 2
    pin = made.files.pin()
    assert pin.newest is not None
    assert pin.newest.version == 2
    assert pin.fingerprint() == before.fingerprint()
    with made.open() as store:
        store.thread("t").save(1)
        assert store.verify().ok
    with made.open(trust=before) as store:
        assert store.thread("t").load().state == 1


def test_the_old_root_alone_changes_nothing_any_more(made: Place) -> None:
    """Whoever has it finds that the new one is asked for."""
    _rotate(made)
    next((made.folder / "config").rglob("root-2.key")).unlink()

    with pytest.raises(KeyMissing, match="root: 1 of its keys are needed here, found 0"):
        _add(made)
    with pytest.raises(KeyMissing):
        _rotate(made)


def test_an_exported_pin_knows_the_newest_root(made: Place, tmp_path: Path) -> None:
    """A machine that gets it refuses a store from before the new root."""
    copy = made.path.read_bytes()
    _rotate(made)
    pin = made.admin.trust.export_pin()
    assert TrustPin.parse(pin.encode()).newest is not None
    assert pin.newest is not None
    old = Place(tmp_path / "old")
    old.path.write_bytes(copy)
    old.admin.trust.import_pin(pin.encode())
    old.admin.keys.create("operator")

    with pytest.raises(RolledBack, match="expected root 2, which the pin names"):
        old.admin.anchor.adopt(reason="new")


def test_a_root_of_several_keys(made: Place) -> None:
    """Two of three, one of which lies elsewhere; then one key fewer."""
    for name in ("alice", "bob"):
        made.admin.keys.create(name)
    done = _rotate(made, keys=["alice", "bob"], publics=[_FAR], threshold=2)

    assert (done.threshold, len(done.keys), done.made) == (2, 3, None)
    public = str(PrivateKey("x", b"x" * 32).public)
    options: dict[str, Any] = {"person": "x", "roles": ["writer"], "namespaces": ["*"]}
    assert made.admin.keys.add("x", public=public, **options) == 2
    assert _rotate(made, keys=["alice"], threshold=1).version == 3
    next((made.folder / "config").rglob("bob.key")).unlink()
    assert made.admin.roster.set_pool("pods", ["x"]) == ("x",)


def test_without_a_threshold_it_stays_as_it_was(made: Place) -> None:
    """As many as before, if there are as many keys."""
    for name in ("alice", "bob"):
        made.admin.keys.create(name)
    _rotate(made, keys=["alice", "bob"], threshold=2)

    with pytest.raises(UsageError, match="expected a threshold of 1 to 1, found 2"):
        _rotate(made, keys=["alice"])
    assert _rotate(made, keys=["bob", "alice"]).threshold == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"keys": ["worker"]}, UsageError),
        ({"keys": ["nobody"]}, KeyMissing),
        ({"publics": [_FAR]}, KeyMissing),
        ({"publics": ["zz"]}, NotTrusted),
        ({"keys": ["spare", "spare"]}, UsageError),
        ({"keys": ["spare"], "threshold": 0}, UsageError),
        ({"keys": ["spare"], "publics": [_FAR], "threshold": 2}, KeyMissing),
    ],
    ids=["an identity", "no key", "elsewhere", "no public key", "twice", "nobody signs", "too few"],
)
def test_what_cannot_be_the_next_root_is_refused(
    made: Place, options: dict[str, Any], error: type[Exception]
) -> None:
    """The root stays as it was."""
    made.admin.keys.create("spare")

    with pytest.raises(error):
        _rotate(made, **options)
    pin = made.files.pin()
    assert pin.newest is None
    assert made.admin.trust.export_pin().newest is None


def test_a_revoked_key_is_no_root_key(made: Place) -> None:
    """A key that ended does not come back as another."""
    public = str(made.files.keys.signer("worker").public)
    made.admin.keys.revoke("worker", reason="stolen")
    made.admin.keys.create("spare")

    with pytest.raises(UsageError, match="belongs to an identity"):
        _rotate(made, keys=["spare"], publics=[public], threshold=1)


def test_an_interrupted_rotation_takes_the_key_that_was_made(
    made: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is there and the entry is not: it is used, and not made anew."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sealpoint.api._roster.append_root", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _rotate(made)
    waiting = made.files.keys.signer("root-2").public

    assert _rotate(made).keys == (str(waiting),)


@pytest.mark.usefixtures("quick_passphrases")
def test_a_new_root_key_keeps_a_passphrase(made: Place) -> None:
    """An encrypted root is not followed by one that is not."""
    made.admin.keys.change_passphrase("root", new=_PASSPHRASE)

    with pytest.raises(KeyLocked, match="the present root key has a passphrase"):
        _rotate(made, passphrase=_PASSPHRASE)
    _rotate(made, passphrase=_PASSPHRASE, new_passphrase=_PASSPHRASE)
    assert made.files.keys.facts("root-2").encrypted
