# SPDX-License-Identifier: Apache-2.0
"""What works against durable execution engines today, rebuilt against us.

Flip a row's serializer tag to pickle; fork somebody's run with only the address of the database
and run as them; reset to before an approval and have the old approval applied again; write
another task's checkpoint by name; approve under a name of one's own choosing.
"""

import os
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sealpoint
from sealpoint import api
from sealpoint.errors import (
    Edited,
    Forged,
    KeyMissing,
    Misplaced,
    NeedsApproval,
    NoPin,
    NotOwner,
    NotTrusted,
    RolledBack,
    SealpointError,
    Tampered,
    Unanchored,
    UnknownThread,
)
from sealpoint.ledger import CheckpointBody, Kind, ResumeBody, VerdictBody
from sealpoint.signing import Verdict, attest
from sealpoint.storage import Record
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import key
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.backup import Backup, accepted


class _Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


# ---------------------------------------------------------------------- the serializer tag


@pytest.mark.parametrize("where", ["header", "seals", "body", "payload", "blobs"])
def test_a_row_turned_into_a_pickle_runs_nothing(
    attacked: AttackedTeam, where: str, tmp_path: Path
) -> None:
    """Data never names code: there is no tag to flip, and bytes that differ are not decoded."""
    attacked.thread().save({"n": 1, "text": ["x" * 400] * 80}, world=READ)
    bomb = pickle.dumps(_Bomb(tmp_path / "bang"))
    seq = attacked.find(Kind.CHECKPOINT)
    row = attacked.rows()[seq]
    with attacked.landing():
        if where == "blobs":
            thread = attacked.world.thread_id("t")
            attacked.editor.put_blobs(thread, dict.fromkeys(attacked.editor.blobs(thread), bomb))
        else:
            parts = {name: getattr(row, name) for name in ("header", "seals", "body", "payload")}
            attacked.put({seq: Record(**(parts | {where: bomb}))})

    assert issubclass(attacked.resumed(world=READ), Tampered)
    assert issubclass(attacked.ending(lambda: attacked.fresh().load()), Tampered)
    assert not (tmp_path / "bang").exists()


def test_a_tag_in_a_header_chooses_nothing(attacked: AttackedTeam) -> None:
    """The field that says how a body is kept is checked against the reader's own settings."""
    attacked.thread().save(1, world=READ)
    seq = attacked.find(Kind.CHECKPOINT)
    row = attacked.rows()[seq]
    with attacked.landing():
        header = row.header.replace(b'"enc":"none"', b'"enc":"pickle"')
        attacked.put({seq: Record(header, row.seals, row.body, row.payload)})

    assert attacked.resumed(world=READ) is Edited


def test_a_tag_that_the_owner_signed_chooses_nothing(attacked: AttackedTeam) -> None:
    """With a stolen key it is refused all the same."""
    attacked.thread().save(1, world=READ)
    body = attacked.body(attacked.find(Kind.CHECKPOINT))
    with attacked.landing():
        record = attacked.forged(Kind.CHECKPOINT, body, "worker")
        attacked.append(
            Record(
                record.header.replace(b'"enc":"none"', b'"enc":"pickle"'),
                record.seals,
                record.body,
            )
        )

    assert attacked.resumed(world=READ) is Edited


# ---------------------------------------------------------------------- with only the address


@pytest.mark.parametrize("scheme", ["sqlite", "file"])
def test_the_address_of_a_store_is_no_right_to_run_it(scheme: str, tmp_path: Path) -> None:
    """Somebody with the URL and the files, and with a configuration of their own, is nobody."""
    (tmp_path / "disk").mkdir()
    url = f"{scheme}:///{tmp_path}/disk/store"
    mine: dict[str, Any] = {"config_dir": tmp_path / "mine", "state_dir": tmp_path / "mine-state"}
    theirs: dict[str, Any] = {
        "config_dir": tmp_path / "theirs",
        "state_dir": tmp_path / "theirs-state",
    }
    sealpoint.init(url, policy="strict", **mine)
    with sealpoint.open_store(url, **mine) as store:
        store.thread("t").save({"n": 1}, world=READ)

    def ending(**options: Any) -> type[SealpointError]:
        try:
            with sealpoint.open_store(url, **theirs, **options) as store:
                store.thread("t").resume(world=READ)
        except SealpointError as error:
            return type(error)
        raise AssertionError("released to somebody without a key")

    assert ending() in (NoPin, KeyMissing)
    # Even with the pin, which is no secret, and a key of their own that they call the worker's.
    api.admin(url, **theirs).trust.import_pin(api.admin(url, **mine).trust.export_pin().encode())
    assert ending() in (NoPin, KeyMissing)
    api.admin(url, **theirs).keys.create("worker")
    assert issubclass(ending(), (NotTrusted, Unanchored, UnknownThread, Tampered))
    with sealpoint.open_store(url, **mine) as store:
        assert store.thread("t").resume(world=READ).state == {"n": 1}
        assert store.verify().ok


def test_a_run_is_not_forked_into_another_thread(attacked: AttackedTeam) -> None:
    """All rows of a run under another id, or under the id of a run that the thief owns."""
    attacked.thread().save({"n": 1}, world=READ)
    attacked.thread("spare", "mine").save({"n": 0}, world=READ)
    mine = attacked.world.thread_id("mine")
    with attacked.landing():
        attacked.editor.put_rows(mine, attacked.rows())
        attacked.editor.put_blobs(mine, attacked.editor.blobs(attacked.world.thread_id("t")))

    found = attacked.ending(lambda: attacked.fresh("spare", "mine").resume(world=READ))
    assert found in (Misplaced, RolledBack)


def test_a_run_is_not_taken_over_with_ones_own_key(attacked: AttackedTeam) -> None:
    """Another writer's resume entry on somebody's thread is refused by every reader."""
    attacked.thread().save({"n": 1}, world=READ)
    assert attacked.resumed("spare", world=READ) is NotOwner
    with attacked.landing():
        attacked.slip(Kind.RESUME, ResumeBody(salt=attacked.salt, owner="spare", basis=2), "spare")

    assert attacked.resumed("spare", world=READ) is NotTrusted
    assert attacked.resumed(world=READ) is NotTrusted


# ---------------------------------------------------------------------- reset and approve again


def test_a_reset_does_not_bring_an_approval_back(attacked: AttackedTeam) -> None:
    """The store is put back to before the grant was spent: refused, and void once accepted."""
    attacked.waiting("ann", "bob")
    backup = Backup(attacked.world)
    assert attacked.fresh().resume(world=SHELL).state == {"n": 2}
    with attacked.landing():
        backup.put_back()
    assert attacked.resumed() is RolledBack
    accepted(attacked.world)

    assert attacked.resumed() is NeedsApproval
    assert not any(body.request for kind, body in attacked.entries() if kind == "resume")


def test_a_reset_brings_no_denied_request_back(attacked: AttackedTeam) -> None:
    """To before the denial, with the approvals in it."""
    request = attacked.waiting("ann", "bob")
    backup = Backup(attacked.world)
    attacked.store("carl").deny(request.id, reason="no")
    with attacked.landing():
        backup.put_back()
    assert attacked.resumed() is RolledBack
    accepted(attacked.world)

    assert attacked.resumed() is NeedsApproval


# ---------------------------------------------------------------------- another task's checkpoint


def test_another_tasks_checkpoint_is_not_written_by_name(attacked: AttackedTeam) -> None:
    """Not by the library, and not by an entry that another writer signed."""
    attacked.thread().save({"n": 1}, world=READ)
    assert attacked.ending(lambda: attacked.fresh("spare").save({"n": 666}, world=READ)) is NotOwner
    body = attacked.body(attacked.find(Kind.CHECKPOINT))
    with attacked.landing():
        attacked.slip(
            Kind.CHECKPOINT, CheckpointBody(salt=attacked.salt, id="x", root=body.root), "spare"
        )

    assert attacked.resumed(world=READ) is NotTrusted


def test_another_tasks_checkpoint_is_not_moved_here(attacked: AttackedTeam) -> None:
    """A genuine row of the same worker, from another thread."""
    attacked.thread().save({"n": 1}, world=READ)
    attacked.thread(name="u").save({"n": 666}, world=READ)
    attacked.thread(name="u").save({"n": 667}, world=READ)
    with attacked.landing():
        attacked.append(attacked.rows("u")[3])

    assert attacked.resumed(world=READ) is Misplaced


# ---------------------------------------------------------------------- a name of one's choosing


def test_a_name_that_is_claimed_approves_nothing(attacked: AttackedTeam) -> None:
    """The actor of a call satisfies no rule, and an attestation is as good as its proof."""
    request = attacked.waiting("ann")
    attacked.sound()
    for actor in ("bob", "ann", "operator"):
        assert attacked.resumed(actor=actor, deliberate=f"{actor} said yes") is NeedsApproval
    stolen = msgspec.structs.replace(
        attest(key("spare"), request.id, Verdict.APPROVE, "I am bob"), credential=key("bob").key
    )
    assert attacked.ending(lambda: attacked.store("spare").relay(stolen)) is Forged
    with attacked.landing():
        attacked.slip(Kind.APPROVAL, VerdictBody(salt=attacked.salt, attestation=stolen), "spare")

    assert attacked.resumed() is NeedsApproval
    assert attacked.thread("operator").requests()[0].approved_by == ("ann",)
