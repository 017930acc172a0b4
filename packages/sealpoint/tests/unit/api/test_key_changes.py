# SPDX-License-Identifier: Apache-2.0
"""Keys of a store on disk are revoked and rotated, with their files, their pin and their record."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sealpoint import api
from sealpoint.api import KeyStatus
from sealpoint.errors import (
    KeyLocked,
    KeyMissing,
    NotOwner,
    NotTrusted,
    RolledBack,
    SealpointError,
    UsageError,
)
from sealpoint.signing import PrivateKey
from tests.unit.api.place import Place

_FAR = PrivateKey("far", b"f" * 32)
_PASSPHRASE = "correct horse battery"  # noqa: S105


def _add(place: Place, name: str, **options: Any) -> int:
    given: dict[str, Any] = {"person": name, "roles": ["writer"], "namespaces": ["*"]}
    return place.admin.keys.add(name, **(given | options))


def _keys(place: Place) -> dict[str, list[api.KeyInfo]]:
    found: dict[str, list[api.KeyInfo]] = {}
    for info in place.admin.keys.list():
        found.setdefault(info.name, []).append(info)
    return found


def _revoke(place: Place, name: str, **options: Any) -> api.Revocation:
    return place.admin.keys.revoke(name, **({"reason": "stolen"} | options))


def _rotate(place: Place, name: str, **options: Any) -> api.Rotation:
    return place.admin.keys.rotate(name, **options)


def _bodies(place: Place) -> list[dict[str, Any]]:
    with place.rows() as rows:
        query = "SELECT body FROM entries WHERE thread = zeroblob(16) ORDER BY seq"
        return [json.loads(body) for (body,) in rows.execute(query)]


# ---------------------------------------------------------------------- revoke


def test_a_revoked_identity_writes_nothing_more(made: Place) -> None:
    """Its threads stay readable, its line stays in the roster, and the reason is recorded."""
    with made.open() as store:
        store.thread("t").save(1)
        done = _revoke(made, "worker", reason="laptop stolen")
        with pytest.raises(NotTrusted, match="revoked"):
            store.thread("t").save(2)
    with made.open() as store:
        assert store.thread("t").load().state == 1
        with pytest.raises(NotTrusted, match="revoked"):
            store.thread("new").save(1)
        assert store.verify().ok

    assert (done.name, done.roster, done.threads, done.unverified) == ("worker", 2, 1, ())
    (ended,) = _keys(made)["worker"]
    assert (ended.key, ended.status, ended.in_roster) == (done.keys[0], KeyStatus.REVOKED, False)
    *_, last = _bodies(made)
    assert last["reason"] == "laptop stolen"
    assert [each["name"] for each in last["roster"]["identities"]] == ["worker", "operator"]


def test_a_dry_run_changes_nothing(made: Place) -> None:
    """It says what would end and where it wrote."""
    with made.open() as store:
        for name in ("a", "b"):
            store.thread(name).save(name)
    before = made.everything()
    planned = _revoke(made, "worker", dry_run=True)

    assert (planned.roster, planned.threads) == (None, 2)
    assert {name: data for name, data in made.everything().items() if ".db-" not in name} == {
        name: data for name, data in before.items() if ".db-" not in name
    }


def test_one_key_of_several_is_revoked(made: Place) -> None:
    """By its id or enough digits of it; the others go on."""
    _add(made, "worker", person="owner", public=str(_FAR.public))
    digits = _FAR.public.id.raw.hex()
    for wrong in ("", "key:", digits[:11], "ab" * 32, f"key:{digits[:12]}x", digits.upper()):
        with pytest.raises(UsageError, match="identity 'worker' has no such key"):
            _revoke(made, "worker", key=wrong)
    done = _revoke(made, "worker", key=digits[:12])

    assert done.keys == (str(_FAR.public.id),)
    with made.open() as store:
        assert store.thread("t").save(1).writer == "worker"
    with pytest.raises(NotTrusted, match="has a cutoff"):
        _add(made, "worker", person="owner", public=str(_FAR.public))


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("nobody", {}, UsageError),
        ("root", {}, UsageError),
        ("worker", {"reason": " "}, UsageError),
    ],
)
def test_what_cannot_be_revoked_is_refused(
    made: Place, name: str, options: dict[str, Any], error: type[SealpointError]
) -> None:
    """Nothing is stopped or cut."""
    for dry_run in (True, False):
        with pytest.raises(error):
            _revoke(made, name, dry_run=dry_run, **options)
    assert len(_bodies(made)) == 1


def test_a_key_ends_once(made: Place) -> None:
    """There is nothing left to revoke."""
    _revoke(made, "operator")

    with pytest.raises(UsageError, match="all its keys have been revoked"):
        _revoke(made, "operator")


def test_only_the_root_revokes(made: Place) -> None:
    """Without its key nothing is written, and a dry run still answers."""
    next((made.folder / "config").rglob("root.key")).unlink()

    with pytest.raises(KeyMissing, match="root: 1 of its keys are needed here"):
        _revoke(made, "worker")
    with pytest.raises(KeyMissing):
        _rotate(made, "worker")
    assert _revoke(made, "worker", dry_run=True).threads == 0
    assert len(_bodies(made)) == 1
    assert made.files.keys.next_facts("worker") is None


def test_the_pin_here_demands_the_revocation(made: Place) -> None:
    """Should the anchor be lost, a store without it is refused on this machine."""
    copy = made.path.read_bytes()
    _revoke(made, "worker")
    pin = made.files.pin()
    made.path.write_bytes(copy)
    for beside in made.disk.glob("agents.db-*"):
        beside.unlink()
    for slots in (made.folder / "state").rglob("*"):
        if slots.is_file():
            slots.unlink()

    assert pin.roster_seq_min == 2
    with pytest.raises(RolledBack, match="expected roster 2 or later"):
        made.admin.anchor.adopt(reason="lost")


# ---------------------------------------------------------------------- rotate


def test_a_rotated_key_takes_the_place_of_the_old_one(made: Place) -> None:
    """The file is the new key, the old one is gone, and the threads go on."""
    old = made.files.keys.signer("worker")
    with made.open() as running:
        running.thread("t").save(1)
        done = _rotate(made, "worker", reason="yearly")
        with pytest.raises(NotTrusted, match="revoked"):
            running.thread("t").save(2)
    new = made.files.keys.signer("worker")
    with made.open() as store:
        assert store.thread("t").load().state == 1
        assert store.thread("t").save(2).writer == "worker"
        assert store.verify().ok

    assert (done.key, done.public) == (str(new.public.id), str(new.public))
    assert (done.ended, done.here, done.threads) == ((str(old.public.id),), True, 1)
    assert new.public != old.public
    assert made.files.keys.next_facts("worker") is None
    secret = old.secret_bytes().hex().encode()
    assert not [name for name, data in made.everything().items() if secret in data]
    statuses = [info.status for info in _keys(made)["worker"]]
    assert statuses == [KeyStatus.IN_FORCE, KeyStatus.REVOKED]


def test_a_dry_rotation_makes_no_key(made: Place) -> None:
    """It says what would end."""
    before = made.files.keys.signer("worker").public
    planned = _rotate(made, "worker", dry_run=True)

    assert (planned.key, planned.public, planned.roster) == (None, None, None)
    assert planned.ended == (str(before.id),)
    assert made.files.keys.next_facts("worker") is None
    assert made.files.keys.signer("worker").public == before


def test_a_key_that_lies_elsewhere_is_rotated_in_three_steps(made: Place, tmp_path: Path) -> None:
    """Prepared where it lies, entered where the root is, taken where it lies."""
    other: dict[str, Any] = {"config_dir": tmp_path / "config2", "state_dir": tmp_path / "state2"}
    api.admin(made.url, **other).trust.import_pin(made.admin.trust.export_pin().encode())
    first = api.admin(made.url, **other).keys.create("far")
    _add(made, "far", public=str(first), roles=["operator"])
    api.admin(made.url, **other).anchor.adopt(reason="reads along", identity="far")
    with pytest.raises(KeyMissing, match="nor its new public half"):
        _rotate(made, "far")
    with pytest.raises(KeyMissing, match="nor its new public half"):
        _rotate(made, "far", dry_run=True)
    with pytest.raises(KeyMissing):
        api.admin(made.url, **other).keys.take_next("far")
    second = api.admin(made.url, **other).keys.prepare_next("far")

    assert api.admin(made.url, **other).keys.prepare_next("far") == second
    with pytest.raises(NotTrusted, match="is not in the roster yet"):
        api.admin(made.url, **other).keys.take_next("far")
    done = _rotate(made, "far", public=str(second))
    assert (done.here, done.key) == (False, str(second.id))
    assert api.admin(made.url, **other).keys.take_next("far") == second
    assert not (made.folder / "config" / "far.key").exists()


def test_an_interrupted_rotation_is_brought_to_its_end(
    made: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The roster has the new key and the file is not in place yet: repeating it puts it there."""
    with made.open() as store:
        store.thread("t").save(1)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sealpoint.config._key_files.move_file", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _rotate(made, "worker")
    waiting = made.files.keys.next_facts("worker")
    entries = len(_bodies(made))
    done = _rotate(made, "worker")

    assert waiting is not None
    assert made.files.keys.signer("worker").public == waiting.public
    assert (done.key, done.ended, done.roster) == (str(waiting.public.id), (), 2)
    assert len(_bodies(made)) == entries
    with made.open() as store:
        assert store.thread("t").save(2).seq == 4


def test_a_revoked_identity_is_given_a_new_key(made: Place) -> None:
    """Its name, its person and its threads were kept for it."""
    with made.open() as store:
        store.thread("t").save(1)
    _revoke(made, "worker")
    done = _rotate(made, "worker")

    assert (done.ended, done.roster) == ((), 3)
    with made.open() as store:
        assert store.thread("t").save(2).writer == "worker"
        assert store.verify().ok


def test_a_rotation_may_give_fewer_rights(made: Place) -> None:
    """That is how a role or a namespace is taken away: the old key ends, the new one has less."""
    made.admin.keys.create("second")
    _add(made, "second", roles=["writer", "auditor"], namespaces=["a", "b"])
    with made.open(identity="second", namespace="b") as store:
        store.thread("t").save(1)
    _rotate(made, "second", roles=["writer"], namespaces=["a"])
    (now, _) = _keys(made)["second"]

    assert (now.roles, now.namespaces) == (("writer",), ("a",))
    with made.open(identity="second", namespace="b") as store:
        assert store.thread("t").load().state == 1
        with pytest.raises(NotTrusted, match="this needs role writer in namespace 'b'"):
            store.thread("t").save(2)
        assert store.verify().ok


@pytest.mark.usefixtures("quick_passphrases")
def test_a_rotation_keeps_a_passphrase(made: Place) -> None:
    """An encrypted key is not followed by one that is not."""
    made.admin.keys.change_passphrase("worker", new=_PASSPHRASE)

    with pytest.raises(KeyLocked, match="the present key has a passphrase"):
        _rotate(made, "worker")
    with pytest.raises(KeyLocked):
        made.admin.keys.prepare_next("worker")
    assert len(_bodies(made)) == 1
    _rotate(made, "worker", new_passphrase=_PASSPHRASE)
    assert made.files.keys.facts("worker").encrypted
    with made.open(passphrase=_PASSPHRASE) as store:
        store.thread("t").save(1)


def test_a_root_key_is_no_identity_s_key(made: Place) -> None:
    """It signs rosters and nothing else."""
    root = str(made.files.keys.signer("root").public)

    with pytest.raises(UsageError, match="this is a key of the root"):
        _rotate(made, "worker", public=root)
    with pytest.raises(UsageError, match="this is a key of the root"):
        _add(made, "second", public=root)
    assert len(_bodies(made)) == 1


# ---------------------------------------------------------------------- expiry


def test_a_key_is_added_and_rotated_with_an_expiry(made: Place) -> None:
    """It is listed with its day, in UTC, and with what it means now."""
    made.admin.keys.create("second")
    zone = timezone(timedelta(hours=2))
    _add(made, "second", expires=datetime(2999, 1, 1, 2, tzinfo=zone))

    (listed,) = _keys(made)["second"]
    assert (listed.expires, listed.status) == ("2999-01-01T00:00:00Z", KeyStatus.IN_FORCE)
    _add(made, "second", roles=["auditor"])
    assert _keys(made)["second"][0].expires == "2999-01-01T00:00:00Z"
    soon = datetime.now(UTC) + timedelta(days=3)
    _add(made, "second", expires=soon)
    assert _keys(made)["second"][0].status is KeyStatus.EXPIRES_SOON
    _add(made, "second", expires=datetime(2001, 1, 1, tzinfo=UTC))
    assert _keys(made)["second"][0].status is KeyStatus.EXPIRED
    with made.open(identity="second") as store, pytest.raises(NotTrusted, match="expired at 2001"):
        store.thread("t").save(1)
    _add(made, "second", expires="never")
    assert _keys(made)["second"][0].expires is None
    _rotate(made, "second", expires=datetime(2998, 1, 1, tzinfo=UTC))
    assert _keys(made)["second"][0].expires == "2998-01-01T00:00:00Z"


@pytest.mark.parametrize("expires", [datetime(2999, 1, 1), "tomorrow", ""])  # noqa: DTZ001
def test_an_expiry_has_a_zone(made: Place, expires: Any) -> None:
    """What cannot be an instant is refused before anything is written."""
    for change in (_add, _rotate):
        options = {"public": str(_FAR.public)} if change is _add else {}
        with pytest.raises(UsageError, match=r"^expires: expected"):
            change(made, "worker", expires=expires, **options)
    assert len(_bodies(made)) == 1


def test_a_stopped_key_is_listed_so(made: Place) -> None:
    """An interrupted revocation is seen, and repeating it ends the key."""
    with made.open() as store:
        store.thread("t").save(1)
    looked: list[int] = []

    def interrupt(done: int, _: int) -> None:
        looked.append(done)
        if len(looked) == 2:  # the first look after the stop
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _revoke(made, "worker", progress=interrupt)

    (listed,) = _keys(made)["worker"]
    assert (listed.status, listed.expires) == (KeyStatus.STOPPED, None)
    assert _revoke(made, "worker").roster == 2


# ---------------------------------------------------------------------- pools


def test_pods_share_the_threads_of_their_pool(made: Place) -> None:
    """Members join one by one; the list says who is in it."""
    for name in ("pod-1", "pod-2"):
        made.admin.keys.create(name)
        _add(made, name)
    assert made.admin.roster.set_pool("pods", ["pod-1"]) == ("pod-1",)
    everybody = made.admin.roster.set_pool("pods", ["pod-2", "pod-2"], reason="more")

    assert everybody == ("pod-1", "pod-2")
    assert _keys(made)["pod-2"][0].pools == ("pods",)
    assert _keys(made)["worker"][0].pools == ()
    with made.open(identity="pod-1") as one, made.open(identity="pod-2") as two:
        one.thread("t").save(1)
        assert two.thread("t").load().state == 1
        assert two.thread("t").save(2).writer == "pod-2"
    with made.open() as store, pytest.raises(NotOwner):
        store.thread("t").save(3)


@pytest.mark.parametrize(
    ("name", "members", "why"),
    [
        ("pods", [], "needs at least one member"),
        ("pods", ["nobody"], "the roster has no such identity"),
        ("worker", ["operator"], "an identity has this name already"),
        ("more", ["worker"], "it is in the pool 'first' already"),
        ("A pool", ["operator"], "identity name"),
    ],
)
def test_what_cannot_be_a_pool_is_refused(
    made: Place, name: str, members: list[str], why: str
) -> None:
    """Nobody is put into a second pool, and every member is an identity."""
    made.admin.roster.set_pool("first", ["worker"])

    with pytest.raises(UsageError, match=why):
        made.admin.roster.set_pool(name, members)
    assert len(_bodies(made)) == 2
