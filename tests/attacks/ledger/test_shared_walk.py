# SPDX-License-Identifier: Apache-2.0
"""One walk serves restores, audits and verifications: what the store says leads none of them."""

from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.audit import audit_trail
from sealpoint.codec import Registry
from sealpoint.errors import RolledBack, UsageError
from sealpoint.storage import Record
from tests.deployment import Deployment, SimulatedAnchor
from tests.unit.store.backup import Backup, accepted, saved


def test_a_row_that_claims_an_erasure_costs_a_restore_nothing() -> None:
    """A forged erasure on top of a thread is taken away, and what verifies below it is kept."""
    deployment = Deployment()
    saved(deployment, "a", count=5)
    thread = deployment.thread_id("a")
    length = sum(1 for _ in deployment.memory.scan(thread, 0))
    last = deployment.record("a", length - 1)
    raw = last.header.replace(b'"checkpoint"', b'"erase"')
    raw = raw.replace(b'"seq":%d' % (length - 1), b'"seq":%d' % length)
    deployment.put(thread, length, Record(raw, last.seals, None))

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
