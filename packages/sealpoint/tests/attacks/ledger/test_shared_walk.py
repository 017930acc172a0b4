# SPDX-License-Identifier: Apache-2.0
"""One walk serves restores, audits and verifications: what the store says leads none of them."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.audit import audit_trail
from sealpoint.codec import Registry
from sealpoint.errors import RolledBack, UsageError
from sealpoint.ledger import STORE_CHAIN
from sealpoint.storage import Record
from sealpoint.store import Core, ThreadWalk
from tests.deployment import Deployment, SimulatedAnchor
from tests.unit.store.backup import Backup, accepted, saved
from tests.unit.store.retained import enrolled


def _plant_erasure(deployment: Deployment, name: str, seq: int) -> None:
    """Put a row on top of a thread that says it was erased."""
    last = deployment.record(name, seq - 1)
    raw = last.header.replace(b'"checkpoint"', b'"erase"')
    raw = raw.replace(b'"seq":%d' % (seq - 1), b'"seq":%d' % seq)
    deployment.put(deployment.thread_id(name), seq, Record(raw, last.seals, None))


def test_a_row_that_claims_an_erasure_costs_a_restore_nothing() -> None:
    """A forged erasure on top of a thread is taken away, and what verifies below it is kept."""
    deployment = Deployment()
    saved(deployment, "a", count=5)
    thread = deployment.thread_id("a")
    _plant_erasure(deployment, "a", sum(1 for _ in deployment.memory.scan(thread, 0)))

    result = accepted(deployment)

    assert [loss.lost for loss in result.plan.losses] == [0]
    assert result.removed == 1
    assert deployment.open().thread("a").load().state == ["a", 4]


def test_an_anchor_below_what_a_restore_kept_believes_no_shorter_thread() -> None:
    """Who has seen less than the newest restore kept is told that the rest is missing."""
    deployment = Deployment()
    saved(deployment, "a")
    other = MemoryAnchor()
    other._positions = dict(deployment.anchored._positions)
    saved(deployment, "a", first=1)
    early = Backup(deployment)
    saved(deployment, "a", first=2, count=3)
    kept = Backup(deployment)
    saved(deployment, "a", first=6, count=3)
    kept.put_back()
    accepted(deployment)
    early.put_back()
    reader = deployment.open(anchor=SimulatedAnchor(other, closes=False), read_only=True)

    with pytest.raises(RolledBack):
        reader.thread("a").load()
    findings = [each.finding.code for each in audit_trail(reader._core) if each.finding]
    assert findings == ["rolled-back"]
    assert [each.code for each in reader.verify().findings] == ["rolled-back"]


def test_a_thread_that_a_restore_kept_does_not_vanish_unnoticed() -> None:
    """Also where the anchor has never seen it: the restore lists it, and the store lost it."""
    deployment = Deployment()
    saved(deployment, "a")
    early = Backup(deployment)
    other = MemoryAnchor()
    other._positions = dict(deployment.anchored._positions)
    saved(deployment, "b")
    kept = Backup(deployment)
    saved(deployment, "b", first=1)
    kept.put_back()
    accepted(deployment)
    gone = deployment.thread_id("b")
    early.put_back()
    reader = deployment.open(anchor=SimulatedAnchor(other, closes=False), read_only=True)

    (found,) = reader.verify().findings

    assert (found.code, found.thread, found.refuses) == ("rolled-back", gone.hex(), True)


def test_a_thread_begun_since_a_restore_needs_no_list_of_it() -> None:
    """A list that is lost refuses what it has to judge: threads of before, and no others."""
    deployment = Deployment()
    saved(deployment, "a")
    backup = Backup(deployment)
    saved(deployment, "a", first=1)
    backup.put_back()
    accepted(deployment)
    saved(deployment, "b")
    kept = deployment.using(lambda core: core.renewed_trust().restores.all[-1].kept)
    deployment.memory._blobs.pop((STORE_CHAIN, bytes.fromhex(kept)))

    with deployment.open(None, read_only=True) as reader:
        refused = {each.name for each in reader.verify().findings if each.refuses}

    assert "a" in refused
    assert "b" not in refused


def test_what_an_erasure_took_is_not_shown_again_where_it_is_put_back() -> None:
    """Bodies below a genuine erasure stay unseen, however whole the store has them."""
    deployment = Deployment()
    enrolled(deployment)
    saved(deployment, "a", count=3)
    thread = deployment.thread_id("a")
    before = dict(deployment.memory.scan(thread, 0))
    deployment.open("officer").thread("a").erase(reason="as was asked for")
    for seq, record in before.items():
        deployment.put(thread, seq, record)

    def bodies(core: Core, *, for_restore: bool) -> list[bool]:
        walk = ThreadWalk(core, thread, core.anchor.get(deployment.slot("a")))
        return [step.body is not None for _, step in walk.entries(for_restore=for_restore)]

    shown = deployment.using(partial(bodies, for_restore=False))
    stored = deployment.using(partial(bodies, for_restore=True))

    assert stored[: len(before)] == [True] * len(before)
    assert shown[: len(before)] == [False] * len(before)
    assert shown[-1]


def test_a_planted_erasure_ends_an_audit_with_a_finding() -> None:
    """What the store claims decides nothing: the walk comes to the row, and it is forged."""
    deployment = Deployment()
    saved(deployment, "a", count=3)
    thread = deployment.thread_id("a")
    length = sum(1 for _ in deployment.memory.scan(thread, 0))
    _plant_erasure(deployment, "a", length)

    with deployment.open(None, read_only=True) as reader:
        told = [each for each in audit_trail(reader._core) if each.thread == "a"]

    assert [each.seq for each in told] == list(range(length + 1))
    assert [each.finding.code for each in told if each.finding] == ["forged"]
    assert told[-1].finding is not None


def test_a_registry_that_shows_unknown_types_opens_no_store_for_writing(tmp_path: Path) -> None:
    """What it loads is not what was saved, so nobody may save it or go on from it."""
    registry = Registry().showing_untyped("")
    url = f"sqlite:///{tmp_path / 'data' / 'agents.db'}"
    (tmp_path / "data").mkdir()
    places: dict[str, Any] = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    sealpoint.init(url, **places)

    with pytest.raises(UsageError, match="for reading alone"):
        sealpoint.open_store(url, registry=registry, **places)
    with sealpoint.open_store(url, registry=registry, read_only=True, **places) as store:
        assert store.verify().ok
