# SPDX-License-Identifier: Apache-2.0
"""Restores and roster exports of a store on disk, as its owner runs them."""

import errno
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sealpoint.api import (
    AcceptedRestore,
    ThreadOutcome,
    admin,
)
from sealpoint.errors import (
    Edited,
    Forked,
    HeadMoved,
    KeyLocked,
    KeyMissing,
    Missing,
    NotTrusted,
    ResumeRefused,
    RolledBack,
    SealpointError,
    Unanchored,
    UnknownThread,
    UsageError,
)
from tests.unit.api.place import Place

_PASSPHRASE = "correct horse battery staple"  # noqa: S105 # of a test


def _backup(place: Place) -> bytes:
    return place.path.read_bytes()


def _everything(place: Place) -> dict[str, bytes]:
    """Every file but those that SQLite makes beside an open one."""
    beside = ("-shm", "-wal")
    return {name: data for name, data in place.everything().items() if name[-4:] not in beside}


def _put_back(place: Place, backup: bytes) -> None:
    for path in place.disk.glob("agents.db*"):
        path.unlink()
    place.path.write_bytes(backup)
    place.path.chmod(0o600)


def _save(place: Place, name: str, *states: object) -> None:
    with place.open() as store:
        for state in states:
            store.thread(name).save(state)


def _go_on(place: Place, name: str, state: object) -> None:
    """Save to a thread that a restore has cut: that is meant, or the gate refuses it."""
    with place.open() as store:
        store.thread(name).resume(world=None, deliberate="the restore was looked at")
        store.thread(name).save(state)


def _lossy(place: Place) -> None:
    """A store that lost the newest checkpoint of `a` and all of `b`."""
    _save(place, "a", 1)
    backup = _backup(place)
    _save(place, "a", 2)
    _save(place, "b", 1)
    _put_back(place, backup)


def _accept(place: Place, *identities: str, passphrase: str | None = None) -> AcceptedRestore:
    restore = admin(place.url, passphrase=passphrase, **place.directories).restore
    return restore.accept(restore.plan(), reason="disk died", identities=identities)


def _operator(place: Place, name: str, person: str) -> None:
    place.admin.keys.create(name)
    place.admin.keys.add(name, person=person, roles=["operator"], namespaces=["*"])


@contextmanager
def _edited(place: Place) -> Iterator[sqlite3.Connection]:
    with place.rows() as rows:
        yield rows
        assert rows.total_changes, "the edit did not land"


# ------------------------------------------------------------------ restores


def test_a_restore_is_planned_and_accepted(made: Place) -> None:
    """The plan needs no key and writes nothing; after it, the store is used as before."""
    _lossy(made)
    before = _everything(made)
    keys = made.files.directory / "keys"
    hidden = keys.rename(made.folder / "hidden")
    plan = made.admin.restore.plan()
    hidden.rename(keys)

    assert _everything(made) == before
    assert {each.outcome for each in plan.losses} == {ThreadOutcome.BEHIND, ThreadOutcome.GONE}
    done = made.admin.restore.accept(plan, reason="disk died")
    assert (done.epoch, done.entry) == (1, 1)
    with made.open() as store:
        assert store.thread("a").load().state == 1
        with pytest.raises(UnknownThread):
            store.thread("b").load()
        with pytest.raises(ResumeRefused, match="a restore cut the thread"):
            store.thread("a").save(3)
        store.thread("a").resume(world=None, deliberate="the restore was looked at")
        store.thread("a").save(3)
        store.thread("b").save(3)
        assert store.verify().ok


def test_a_plan_holds_only_for_what_it_shows(made: Place) -> None:
    """A store that changed since is not accepted."""
    _lossy(made)
    plan = made.admin.restore.plan()
    _save(made, "c", 1)

    with pytest.raises(HeadMoved):
        made.admin.restore.accept(plan, reason="disk died")


def test_the_root_is_needed(made: Place) -> None:
    """Without its key nothing is accepted, and an operator is not the root."""
    _lossy(made)
    root = made.files.directory / "keys" / "root.key"
    root.rename(made.folder / "root.key")

    with pytest.raises(KeyMissing, match="1 root keys are needed"):
        _accept(made)
    with pytest.raises(KeyMissing, match="1 root keys are needed here, found 0"):
        _accept(made, "operator")


def test_a_quorum_accepts_without_the_root(made: Place) -> None:
    """Two persons, once the roster asks for two; the root's key may be elsewhere."""
    _operator(made, "ann", "ann")
    _operator(made, "ann-2", "ann")
    made.admin.roster.set_restore_quorum(2, reason="at night")
    _lossy(made)
    (made.files.directory / "keys" / "root.key").unlink()

    for few in (["ann"], ["ann", "ann-2"], ["ann", "worker"]):
        with pytest.raises(KeyMissing, match="operators who are 2 persons"):
            _accept(made, *few)
    assert _accept(made, "ann", "operator").epoch == 1
    with made.open() as store:
        assert store.thread("a").load().state == 1


@pytest.mark.parametrize("persons", [-1, 3])
def test_a_quorum_can_be_reached(made: Place, persons: int) -> None:
    """There are as many operators as it asks for."""
    _operator(made, "ann", "ann")
    _operator(made, "ann-2", "ann")

    with pytest.raises(UsageError, match="expected 0 to 2"):
        made.admin.roster.set_restore_quorum(persons)
    assert made.admin.roster.set_restore_quorum(2) == 3
    assert made.admin.roster.set_restore_quorum(0) == 4


@pytest.mark.usefixtures("quick_passphrases")
def test_an_encrypted_root_is_opened_only_to_sign(made: Place) -> None:
    """Neither a plan nor a quorum asks for its passphrase."""
    made.admin.roster.set_restore_quorum(1)
    made.admin.keys.change_passphrase("root", new=_PASSPHRASE)
    _lossy(made)
    plan = made.admin.restore.plan()

    assert plan.losses
    with pytest.raises(KeyLocked):
        made.admin.restore.accept(plan, reason="disk died")
    assert _accept(made, "operator").epoch == 1
    _go_on(made, "a", 5)


@pytest.mark.usefixtures("quick_passphrases")
def test_an_encrypted_root_signs(made: Place) -> None:
    """With its passphrase, as everywhere."""
    made.admin.keys.change_passphrase("root", new=_PASSPHRASE)
    _lossy(made)

    assert _accept(made, passphrase=_PASSPHRASE).epoch == 1


# ------------------------------------------------------------------ roster export and import


def _older_with_export(place: Place) -> bytes:
    """A backup from before a key was revoked is in place; the roster was exported after it."""
    _save(place, "a", 1)
    backup = _backup(place)
    _operator(place, "ann", "ann")
    place.admin.keys.revoke("ann", reason="left")
    exported = place.admin.roster.export_copy()
    _put_back(place, backup)
    return exported


def test_the_roster_kept_beside_the_keys_makes_an_older_store_whole(made: Place) -> None:
    """Nobody has exported anything; it is verified like an export, and the revocation holds."""
    exported = _older_with_export(made)
    with pytest.raises(RolledBack, match="expected 4 entries or more") as caught:
        made.admin.restore.plan()
    assert "sealpoint roster import" in (caught.value.hint or "")

    assert made.admin.roster.import_copy() == 3
    assert made.admin.roster.export_copy() == exported
    made.admin.restore.plan()


def test_a_kept_roster_that_was_changed_is_refused(made: Place) -> None:
    """It is believed by the pin and by nothing else, wherever it lies."""
    _older_with_export(made)
    kept = next(made.folder.rglob("roster-*.json"))
    kept.write_bytes(kept.read_bytes().replace(b"operator", b"operatar"))
    with pytest.raises((Edited, NotTrusted)):
        made.admin.roster.import_copy()
    kept.unlink()
    with pytest.raises(UsageError, match="no copy of a roster is kept in"):
        made.admin.roster.import_copy()


def test_a_directory_of_keys_that_cannot_be_written_stops_nothing(
    made: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is mounted read-only there is no copy, and everything works."""
    kept = next(made.folder.rglob("roster-*.json"))
    kept.unlink()

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("sealpoint.config._store_files.replace_file", refuse)
    _save(made, "a", 1)

    assert not list(made.folder.rglob("roster-*.json"))
    monkeypatch.undo()
    _save(made, "a", 2)
    assert [path.name for path in made.folder.rglob("roster-*.json")] == [kept.name]


def test_an_exported_roster_makes_an_older_store_whole(made: Place) -> None:
    """What the store lacks is put back once, with the lists of the cuts."""
    exported = _older_with_export(made)
    for call in (made.open, made.admin.restore.plan):
        with pytest.raises(RolledBack):
            call()

    assert made.admin.roster.import_copy(exported) == 3
    assert made.admin.roster.import_copy(exported) == 0
    assert made.admin.roster.export_copy() == exported
    assert not made.admin.restore.plan().losses
    with made.open() as store:
        assert store.thread("a").load().state == 1
        assert store.verify().ok


def test_an_export_needs_no_key_and_writes_nothing(made: Place) -> None:
    """It can run wherever the pin and the anchor are."""
    shutil.rmtree(made.files.directory / "keys")
    before = _everything(made)
    document = json.loads(made.admin.roster.export_copy())

    assert _everything(made) == before
    assert document["v"] == 1
    assert len(document["entries"]) == 1


def test_an_import_writes_neither_anchor_nor_pin(made: Place) -> None:
    """It only adds to the store."""
    exported = _older_with_export(made)
    before = {name: data for name, data in made.everything().items() if "agents.db" not in name}
    made.admin.roster.import_copy(exported)
    after = {name: data for name, data in made.everything().items() if "agents.db" not in name}

    assert before == after


def test_an_export_of_another_store_is_refused(made: Place, tmp_path: Path) -> None:
    """Its entries would be misplaced here."""
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    other.init()

    with pytest.raises(NotTrusted, match="expected one of store"):
        made.admin.roster.import_copy(other.admin.roster.export_copy())


def test_an_export_that_forks_from_the_anchor_is_refused(made: Place) -> None:
    """The root itself signed two rosters for one position: the anchor has seen one of them."""
    backup = _backup(made)
    anchor = _anchor(made)
    seen = anchor.read_bytes()
    _operator(made, "bob", "bob")
    other = made.admin.roster.export_copy()
    _put_back(made, backup)
    anchor.write_bytes(seen)
    _operator(made, "ann", "ann")
    mine = _backup(made)
    _put_back(made, backup)
    before = made.everything()
    with pytest.raises(Forked, match="the anchor has another entry"):
        made.admin.roster.import_copy(other)

    assert made.everything() == before
    _put_back(made, mine)
    with pytest.raises(Forked):
        made.admin.roster.import_copy(other)


def test_an_export_that_forks_from_the_store_is_refused(made: Place) -> None:
    """The anchor has seen neither."""
    backup, anchor = _backup(made), _anchor(made)
    seen = anchor.read_bytes()
    _operator(made, "bob", "bob")
    other = made.admin.roster.export_copy()
    _put_back(made, backup)
    anchor.write_bytes(seen)
    _operator(made, "ann", "ann")
    anchor.write_bytes(seen)

    with pytest.raises(Forked, match="the store has another entry"):
        made.admin.roster.import_copy(other)


def test_an_older_export_adds_nothing(made: Place) -> None:
    """The store has all of it already."""
    older = made.admin.roster.export_copy()
    _operator(made, "ann", "ann")

    assert made.admin.roster.import_copy(older) == 0


@pytest.mark.parametrize("column", ["seals", "body"])
def test_an_edited_entry_in_the_store_is_not_mended(made: Place, column: str) -> None:
    """Nothing that is there is changed, so the damage is said."""
    exported = made.admin.roster.export_copy()
    with _edited(made) as rows:
        rows.execute(f"UPDATE entries SET {column} = x'7b7d' WHERE seq = 0")  # noqa: S608

    with pytest.raises(Edited):
        made.admin.roster.import_copy(exported)


def test_a_hole_in_the_store_chain_is_filled(made: Place) -> None:
    """Entries are put back where they belong, also below others."""
    _operator(made, "ann", "ann")
    _operator(made, "bob", "bob")
    exported = made.admin.roster.export_copy()
    with _edited(made) as rows:
        rows.execute("DELETE FROM entries WHERE thread = zeroblob(16) AND seq = 1")
    with pytest.raises(Missing):
        made.open()

    assert made.admin.roster.import_copy(exported) == 1
    made.open().close()


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM blobs WHERE thread = zeroblob(16)",
        "UPDATE blobs SET data = x'00' WHERE thread = zeroblob(16)",
        "UPDATE blobs SET data = zeroblob(70000000) WHERE thread = zeroblob(16)",
    ],
    ids=["missing", "edited", "oversize"],
)
def test_lists_are_put_back_too(made: Place, edit: str) -> None:
    """A store that lost only the lists of its restores is whole again."""
    _lossy(made)
    _accept(made)
    exported = made.admin.roster.export_copy()
    with _edited(made) as rows:
        rows.execute(edit)
    with made.open() as store, pytest.raises((Missing, Edited)):
        store.thread("a").load()
    with pytest.raises((Missing, Edited)):
        made.admin.roster.export_copy()

    assert made.admin.roster.import_copy(exported) == 0
    with made.open() as store:
        assert store.thread("a").load().state == 1
        assert store.verify().ok


def test_an_export_is_of_what_was_verified(made: Place) -> None:
    """A store chain that does not verify is not exported."""
    with _edited(made) as rows:
        rows.execute("UPDATE entries SET body = x'ff' WHERE seq = 0")

    with pytest.raises(SealpointError):
        made.admin.roster.export_copy()


def test_a_machine_that_is_new_to_the_store_exports_nothing(made: Place, tmp_path: Path) -> None:
    """Its anchor could not say whether it is the newest."""
    (anchors,) = (tmp_path / "state").glob("*")
    shutil.rmtree(anchors)

    with pytest.raises(Unanchored):
        made.admin.roster.export_copy()


def test_a_second_restore_needs_the_roster_with_the_first(made: Place) -> None:
    """Rolling the store back to before a restore is a rollback like any other."""
    _save(made, "a", 1)
    backup = _backup(made)
    _save(made, "a", 2)
    _put_back(made, backup)
    _accept(made)
    exported = made.admin.roster.export_copy()
    _go_on(made, "a", 3)
    _put_back(made, backup)
    with pytest.raises(RolledBack):
        made.open()

    assert made.admin.roster.import_copy(exported) == 1
    assert _accept(made).epoch == 2
    with made.open() as store:
        assert store.thread("a").load().state == 1


def _anchor(place: Place) -> Path:
    (found,) = (place.folder / "state").rglob("anchor.slots")
    return found


def test_a_policy_is_tried_on_the_run_after_a_restore(made: Place) -> None:
    """Somebody would be asked about it by `strict`, and it is no matter of a deploy."""
    _lossy(made)
    _accept(made)
    _go_on(made, "a", 3)
    with made.open() as store:
        since = datetime.now(UTC) - timedelta(days=30)
        found = store.try_policy("strict", since=since)

    assert [(each.thread, each.rules) for each in found.asking] == [("a", ("after-restore",))]
    assert not found.asking[0].is_of_a_deploy
