# SPDX-License-Identifier: Apache-2.0
"""What was written still opens: a store on disk outlives the code that wrote it.

`tests/fixtures/sqlite-schema-1-format-3.tar.gz` holds a store with its configuration and anchor,
written by version 0.6.0 (the first with entries of format 3) at `/srv/store`: `invoice-7` with two
sessions, `payload`, `small`, which was pruned twice, and `paused`, which goes on from a checkpoint
that a pause held back. No released version wrote entries of format 1 or 2, and they are refused.
"""

import json
import sqlite3
import tarfile
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import sealpoint
from sealpoint.api import admin
from sealpoint.errors import SchemaUnknown

_FIXTURE = Path(__file__).parents[2] / "fixtures" / "sqlite-schema-1-format-3.tar.gz"
_WRITTEN_AT = "sqlite:////srv/store/data/agents.db"
_WORLD = {"tools": [{"name": "search"}]}


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """The fixture, where nobody but this test can reach it."""
    with tarfile.open(_FIXTURE) as archive:
        # Python 3.11.3 and before know no filter; the archive is our own.
        known: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(tmp_path, **known)  # noqa: S202
    for path in tmp_path.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return tmp_path


def _moved(unpacked: Path) -> str:
    url = f"sqlite:///{unpacked / 'data' / 'agents.db'}"
    admin(url, config_dir=unpacked / "config", state_dir=unpacked / "state").trust.move_from(
        _WRITTEN_AT
    )
    return url


def _open(unpacked: Path, url: str) -> sealpoint.Store:
    return sealpoint.open_store(url, config_dir=unpacked / "config", state_dir=unpacked / "state")


def test_a_stored_store_opens_and_verifies(unpacked: Path) -> None:
    """Every state comes back as it was saved, and every entry verifies."""
    with _open(unpacked, _moved(unpacked)) as store:
        thread = store.thread("invoice-7")
        third = thread.load("step-2")
        payload = store.thread("payload").load().state
        report = store.verify()
        names = store.threads()

    assert report.ok
    assert not report.findings
    assert report.entries == 29
    assert names.names == ("invoice-7", "paused", "payload", "small")
    assert names.complete
    assert third.state["due"] == datetime(2026, 11, 15, tzinfo=UTC)
    assert [len(text) > 200 for text in third.state["messages"]] == [True] * 120
    assert third.metadata == {"step": 2}
    assert third.world == _WORLD
    assert payload == {
        "blob": bytes(range(256)) * 400,
        "amount": Decimal("12.50"),
        "id": UUID(int=7),
        "pair": (1, {2, 3}),
    }


def test_a_stored_store_has_its_releases(unpacked: Path) -> None:
    """What the stored resumes recorded is made again from the stored entries."""
    url = _moved(unpacked)
    with _open(unpacked, url) as store:
        release = store.thread("paused").release()
        held = store.thread("paused").load("b")
        pruned = [ref.pruned for ref in store.thread("small").history()]
    with closing(sqlite3.connect(unpacked / "data" / "agents.db")) as database:
        bodies = [json.loads(body) for (body,) in database.execute("SELECT body FROM entries")]

    assert held.ref.held
    assert held.state == {"step": 1}
    assert (release.id, release.held, [each.task for each in release.results]) == (
        "b",
        True,
        ["t1"],
    )
    assert pruned == [False, True, True, True, True]
    assert sum("release" in body for body in bodies) == 2


def test_a_stored_store_is_gone_on_with(unpacked: Path) -> None:
    """It can be resumed, saved to, pruned and verified by this version."""
    with _open(unpacked, _moved(unpacked)) as store:
        thread = store.thread("invoice-7")
        assert thread.resume(world=_WORLD).state == {"step": 5}
        thread.save({"step": 6})
        pruned = thread.prune(keep_last=2)
        history = [(ref.id, ref.pruned) for ref in thread.history()]
        report = store.verify()

    assert report.ok
    assert not report.findings
    assert len(pruned.pruned) == 4
    assert [gone for _, gone in history] == [False, False, True, True, True, True]


def test_a_newer_schema_is_refused_in_one_sentence(unpacked: Path) -> None:
    """A store that a later version wrote is refused before anything in it is believed."""
    url = _moved(unpacked)
    with closing(sqlite3.connect(unpacked / "data" / "agents.db")) as connection:
        connection.execute("PRAGMA user_version = 2")

    with pytest.raises(SchemaUnknown, match=r"expected schema version 1, .*found 2"):
        _open(unpacked, url)
