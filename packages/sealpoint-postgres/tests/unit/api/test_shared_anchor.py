# SPDX-License-Identifier: Apache-2.0
"""Sharing an anchor: set-up, joining, leaving, and the secret of the slots."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import sealpoint
from sealpoint.errors import (
    AnchorUnavailable,
    ConfigError,
    Forked,
    KeyFileUnsafe,
    RolledBack,
    StoreExists,
    Unanchored,
    UrlInvalid,
    UsageError,
)
from tests.fleet import Fleet, FleetMachine, declared
from tests.postgres_server import PostgresServer


@pytest.fixture
def fleet(tmp_path: Path, postgres: PostgresServer) -> Iterator[Fleet]:
    """A place for a store and a shared anchor."""
    made = Fleet(tmp_path, postgres)
    yield made
    made.close()


@pytest.fixture
def one(fleet: Fleet) -> FleetMachine:
    """The machine that made the store."""
    made = fleet.machine("one")
    made.init()
    return made


def test_every_machine_asks_without_being_told_each_time(fleet: Fleet, one: FleetMachine) -> None:
    """The choice lies beside the pin, with the login and without a password."""
    one.save(1)

    assert declared(one)["url"] == f"{fleet.anchor}"
    assert fleet.server.password not in json.dumps(declared(one))
    assert one.shown() == {None: (0, 0), "t": (2, 2)}
    assert one.facts.shared_anchor == fleet.anchor
    assert one.admin.doctor(quick=True).ok


def test_new_machine_needs_pin_and_login_alone(fleet: Fleet, one: FleetMachine) -> None:
    """It joins, reads, and is entered by a key of its own; nothing is adopted."""
    one.save(1)
    two = fleet.machine("two")
    two.join(one, second=("writer",))

    assert two.load() == 1
    two.save(2, thread="u", identity="second")
    assert one.load("u") == 2
    assert two.shown()["u"] == (2, 2)


def test_mounted_declaration_is_enough(fleet: Fleet, one: FleetMachine) -> None:
    """A pod with pin, key and declaration in its secret has the anchor from its first call."""
    one.save(1)
    secrets = fleet.folder / "mounted"
    secrets.mkdir(mode=0o700)
    (secrets / "pin.json").write_bytes(one.admin.trust.export_pin().encode())
    (secrets / "anchor.json").write_text(json.dumps({"url": fleet.anchor}))
    (key,) = one.directories["config_dir"].rglob("worker.key")
    shutil.copy(key, secrets / "worker.key")
    for path in secrets.iterdir():
        path.chmod(0o400)
    pod = fleet.machine("pod")
    with pod.open(secrets_dir=secrets) as store:
        assert store.thread("t").load().state == 1
        store.thread("t").save(2)

    assert one.load() == 2
    with pytest.raises(ConfigError, match="mounted"):
        sealpoint.admin(fleet.url, secrets_dir=secrets, **pod.options).anchor.leave()


def test_store_in_use_takes_along_what_was_seen(fleet: Fleet) -> None:
    """The shared anchor learns every position, which is recorded with its reason."""
    one = fleet.machine("one")
    one.init(shared=False)
    one.save(1, 2)
    one.save(3, thread="u")
    with pytest.raises(UsageError, match="reason"):
        one.admin.anchor.join(fleet.anchor)
    assert one.facts.shared_anchor is None
    joined = one.admin.anchor.join(fleet.anchor, reason="a fleet from now on")

    assert (joined.taken, joined.threads) == (3, 2)
    assert all(local == shared for local, shared in one.shown().values())
    with one.open(read_only=True) as store:
        assert any("a fleet from now on" in each.summary for each in store.audit())
    two = fleet.machine("two")
    two.join(one)
    assert (two.load(), two.load("u")) == (2, 3)
    assert one.admin.anchor.join(fleet.anchor).taken == 0


def test_anchor_that_neither_knows_is_not_begun(fleet: Fleet) -> None:
    """A machine that has seen nothing cannot vouch for a store to an empty anchor."""
    one, two = fleet.machine("one"), fleet.machine("two")
    one.init(shared=False)
    two.trust(one)

    with pytest.raises(Unanchored):
        two.admin.anchor.join(fleet.anchor)
    assert two.facts.shared_anchor is None
    assert fleet.on_anchor("SELECT * FROM slot_secrets") == []


def test_machine_with_a_memory_of_its_own_joins_if_the_others_saw_as_much(fleet: Fleet) -> None:
    """Its slots had other names: the file is put aside once nothing would be forgotten by that."""
    one, two = fleet.machine("one"), fleet.machine("two")
    one.init(shared=False)
    one.save(1)
    two.trust(one)
    (keys,) = one.directories["config_dir"].rglob("keys")
    (files,) = two.directories["config_dir"].glob("stores/*")
    shutil.copytree(keys, files / "keys")
    two.admin.anchor.adopt(reason="a second machine")
    one.load()
    one.admin.anchor.join(fleet.anchor, reason="share")
    two.save(2)
    with pytest.raises(Unanchored, match="under a secret of its own"):
        two.admin.anchor.join(fleet.anchor)
    assert two.load() == 2
    one.save(3)
    two.admin.anchor.join(fleet.anchor)

    assert two.load() == 3
    assert len(list(two.directories["state_dir"].glob("anchors/*.before-*"))) == 1
    assert one.load() == 3


def test_store_that_was_put_back_does_not_join(fleet: Fleet) -> None:
    """Neither what this machine saw nor what the others saw is forgotten by joining."""
    one = fleet.machine("one")
    one.init(shared=False)
    one.save(1)
    fleet.back_up()
    one.save(2)
    fleet.put_back()
    with pytest.raises(RolledBack):
        one.admin.anchor.join(fleet.anchor, reason="share")

    assert one.facts.shared_anchor is None
    assert fleet.on_anchor("SELECT * FROM slots") == []


def test_machine_that_left_and_went_another_way_does_not_join(
    fleet: Fleet, one: FleetMachine
) -> None:
    """Two histories of one thread are refused, whoever has seen more of theirs."""
    two = fleet.machine("two")
    two.join(one)
    one.save(1)
    fleet.back_up()
    one.save(2)
    two.load()
    two.admin.anchor.leave()
    fleet.on_anchor("UPDATE slots SET entry = decode(repeat('ab', 32), 'hex') WHERE seq > 0")

    with pytest.raises(Forked):
        two.admin.anchor.join(fleet.anchor)


def test_leaving_takes_everything_along(fleet: Fleet, one: FleetMachine) -> None:
    """A machine that leaves has seen all that the shared anchor had; one that cannot stays."""
    two = fleet.machine("two")
    two.join(one)
    one.save(1)
    fleet.back_up()
    one.save(2)
    fleet.put_back()
    with pytest.raises(RolledBack):
        two.admin.anchor.leave()
    assert two.facts.shared_anchor == fleet.anchor


def test_thread_that_went_after_a_restore_is_left_out_and_not_all_of_them(
    fleet: Fleet, one: FleetMachine
) -> None:
    """A machine that saw nothing of it yet lists the rest, and says what the list lacks."""
    for name in ("t", "u", "v"):
        one.save(1, thread=name)
    fleet.back_up()
    one.save(2, thread="v")
    fleet.put_back()
    one.admin.restore.accept(one.admin.restore.plan(), reason="the disk died")
    two = fleet.machine("two")
    two.join(one)
    gone = next(each.thread for each in two.admin.anchor.positions() if each.name == "t")
    for table in ("entries", "blobs", "labels"):
        fleet.on_store(f"DELETE FROM {table} WHERE hex(thread) = upper('{gone}')")  # noqa: S608
    with two.open(read_only=True) as store:
        listed = store.threads(partial=True)

    assert list(listed) == ["u", "v"]
    assert [each.thread for each in listed.left_out] == [gone]


def test_left_machine_judges_by_its_own_memory(fleet: Fleet, one: FleetMachine) -> None:
    """After leaving, what it followed to counts, and the database is not asked any more."""
    one.save(1)
    two = fleet.machine("two")
    two.join(one)
    two.admin.anchor.leave()
    fleet.on_anchor("DROP TABLE slots")

    assert two.load() == 1
    with pytest.raises(AnchorUnavailable):
        one.load()


def test_another_anchor_is_not_taken_by_the_way(fleet: Fleet, one: FleetMachine) -> None:
    """To change over, a machine leaves first; another login to the same anchor is no change."""
    other = fleet.server.new_schema()
    with pytest.raises(StoreExists, match="anchor leave"):
        one.admin.anchor.join(fleet.server.url(schema=other), reason="elsewhere")
    made = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    assert fleet.on_anchor(made, other) == []
    with_way = f"{fleet.anchor}&sslmode=prefer"
    one.admin.anchor.join(with_way)

    assert declared(one)["url"] == with_way


def test_swapped_secret_is_refused(fleet: Fleet, one: FleetMachine) -> None:
    """Under another secret every thread would look new, so a machine keeps the one it saw."""
    one.save(1)
    pin = one.admin.trust.export_pin().encode()
    fleet.on_anchor("UPDATE slot_secrets SET secret = decode(repeat('ab', 32), 'hex')")

    for call in (one.load, lambda: one.save(2), lambda: one.admin.anchor.join(fleet.anchor)):
        with pytest.raises(AnchorUnavailable, match="another secret"):
            call()
    two = fleet.machine("two")
    two.admin.trust.import_pin(pin)
    with pytest.raises(Unanchored):
        two.admin.anchor.join(fleet.anchor)
    fleet.on_anchor("DELETE FROM slot_secrets")
    with pytest.raises(AnchorUnavailable, match="knows nothing"):
        one.load()


def test_emptied_anchor_is_taught_again_by_who_saw(fleet: Fleet, one: FleetMachine) -> None:
    """Joining again, with a reason, brings back what this machine has seen."""
    one.save(1)
    fleet.on_anchor("TRUNCATE slots, slot_secrets")
    with pytest.raises(AnchorUnavailable):
        one.load()
    one.admin.anchor.join(fleet.anchor, reason="the database was lost")

    assert one.load() == 1
    assert all(local == shared for local, shared in one.shown().values())


def test_machine_that_remembers_another_history_gives_it_up_as_the_hint_says(
    fleet: Fleet, one: FleetMachine
) -> None:
    """Store and anchor were put back, and others went on: the hint leads on with theirs."""
    two = fleet.machine("two")
    two.join(one)
    (keys,) = one.directories["config_dir"].rglob("keys")
    (files,) = two.directories["config_dir"].glob("stores/*")
    shutil.copytree(keys, files / "keys")
    one.save(1)
    fleet.back_up()
    anchored = fleet.on_anchor("SELECT seq, entry, fence, slot FROM slots")
    one.save(2)
    fleet.put_back()
    for row in anchored:
        fleet.on_anchor("UPDATE slots SET seq = %s, entry = %s, fence = %s WHERE slot = %s", *row)
    two.save(3, 4, 5)
    with pytest.raises(Forked) as caught:
        one.load()
    assert "move the directory away that sealpoint doctor names as anchor" in str(caught.value)
    directory = one.facts.anchor
    assert directory is not None
    Path(directory).rename(fleet.folder / "given-up")

    assert one.load() == 5
    one.save(6)
    assert two.load() == 6


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://a:hunter2@db/anchors",
        "postgresql://a@db/anchors?schema=Bad",
        "sqlite:///a.db",
        "postgresql://a@db/anchors?sslmode=sometimes",
    ],
)
def test_url_of_an_anchor_is_strict(fleet: Fleet, url: str) -> None:
    """What is no URL of an anchor is refused before anything is made, without its password."""
    one = fleet.machine("one")
    with pytest.raises(UrlInvalid) as caught:
        sealpoint.init(fleet.url, anchor=url, **one.options)

    assert "hunter2" not in str(caught.value)
    assert not list((fleet.folder / "one").iterdir())


@pytest.mark.parametrize("text", ["{}", "[]", '{"url": "sqlite:///x"}', '{"url": 1}', "nonsense"])
def test_declaration_that_cannot_be_read_is_no_missing_one(
    fleet: Fleet, one: FleetMachine, text: str
) -> None:
    """A machine never forgets to ask because a file is damaged, or others could have changed it."""
    one.save(1)
    (path,) = one.directories["config_dir"].rglob("anchor.json")
    path.write_text(text)
    with pytest.raises(ConfigError):
        one.load()
    path.write_text(json.dumps({"url": fleet.anchor}))
    path.chmod(0o666)

    with pytest.raises(KeyFileUnsafe):
        one.load()


def test_interrupted_init_goes_on(fleet: Fleet) -> None:
    """Whether it stopped before or after the anchor was declared, the same call ends it."""
    one = fleet.machine("one")
    wrong = {**one.options, "anchor_password": "wrong"}
    with pytest.raises(AnchorUnavailable):
        sealpoint.init(fleet.url, anchor=fleet.anchor, **wrong)
    one.init()
    with pytest.raises(StoreExists):
        one.init()

    one.save(1)
    assert one.shown()["t"] == (2, 2)
