# SPDX-License-Identifier: Apache-2.0
"""Nothing is decoded before it is verified, and nothing that is stored ever runs.

Bombs lie in every column of every row: pickles that would create a file, constructor calls as
LangGraph's serializer writes them, and states that the application's own rules would decode.
"""

import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from sealpoint import Registry
from sealpoint.errors import SealpointError
from tests.attacks.ledger.tampered_store import TamperedStore, contents

_RAN: list[str] = []


class Noisy:
    """A type of the application whose decoding leaves a trace."""

    def __init__(self, text: str) -> None:
        self.text = text


def _decode(text: Any) -> Noisy:
    _RAN.append(text)
    return Noisy(text)


def _registry() -> Registry:
    registry = Registry()
    registry.allow(Noisy, name="noisy", encode=lambda each: each.text, decode=_decode)
    return registry


class _Planted:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def _bombs(marker: Path) -> Iterator[bytes]:
    """What would run code in the hands of a careless reader."""
    for protocol in (0, 2, 5):
        yield pickle.dumps(_Planted(marker), protocol)
    call = ormsgpack.packb(["pathlib", "Path", [str(marker)], {}, "touch"])
    for code in (0, 1, 5, 17):
        yield ormsgpack.packb(ormsgpack.Ext(code, call))
        yield ormsgpack.packb({"note": ormsgpack.Ext(code, call)})
    yield ormsgpack.packb({"lc": 2, "type": "constructor", "id": ["os", "system"], "kwargs": {}})


@pytest.fixture
def noisy(scene: TamperedStore) -> TamperedStore:
    """A third thread whose state the application's own rule decodes."""
    with scene.open(registry=_registry()) as store:
        store.thread("gamma").save({"object": Noisy("of gamma")}, id="g-0")
    _RAN.clear()
    return scene


def _read(scene: TamperedStore) -> set[str]:
    """Read all there is to read of alpha and beta; the codes of what was refused."""
    codes = set()
    try:
        with scene.open(registry=_registry()) as store:
            for name, checkpoints in scene.truth.items():
                thread = store.thread(name)
                for ref in (None, *(saved.ref for saved in checkpoints)):
                    try:
                        thread.load(ref)
                    except SealpointError as error:
                        codes.add(error.code)
                try:
                    list(thread.history())
                except SealpointError as error:
                    codes.add(error.code)
            store.threads()
    except SealpointError as error:
        codes.add(error.code)
    return codes


def _columns(database: sqlite3.Connection) -> list[tuple[str, str]]:
    tables = ("entries", "blobs", "labels")
    return [
        (table, row[1])
        for table in tables
        for row in database.execute(f"PRAGMA table_info({table})")
        if row[1] != "number"
    ]


def test_no_bomb_in_any_column_goes_off(noisy: TamperedStore, tmp_path: Path) -> None:
    """Each bomb in each column of every row at once: refused, and nothing ran."""
    marker = tmp_path / "ran"
    with noisy.raw() as database:
        columns = _columns(database)
    landed = 0
    for table, column in columns:
        for bomb in _bombs(marker):
            with noisy.undone():
                with noisy.raw() as database:
                    before = contents(database)
                    # Where a column is part of a key, one row has to be enough.
                    sql = (
                        f"UPDATE OR IGNORE {table} SET {column} = ? "  # noqa: S608
                        "WHERE thread <> zeroblob(16)"
                    )
                    database.execute(sql, (bomb,))
                    landed += contents(database) != before
                _read(noisy)

    assert landed == len(columns) * len(list(_bombs(marker)))
    assert not marker.exists()
    assert not _RAN


def test_another_thread_s_state_is_not_decoded_on_the_way_to_its_refusal(
    noisy: TamperedStore,
) -> None:
    """The bytes are genuine and would decode: the digest is checked first, and nothing runs."""
    alpha, gamma = noisy.thread_id("alpha"), noisy.thread_id("gamma")

    def edit(database: sqlite3.Connection) -> None:
        database.execute(
            "UPDATE entries SET payload = (SELECT payload FROM entries WHERE thread = ? "
            "AND payload IS NOT NULL) WHERE thread = ?",
            (gamma, alpha),
        )

    noisy.commit(edit)
    assert _read(noisy) == {"edited"}
    assert not _RAN


def test_the_control_state_would_have_been_decoded(noisy: TamperedStore) -> None:
    """In its own place the state is decoded, by the rule, once."""
    with noisy.open(registry=_registry()) as store:
        loaded = store.thread("gamma").load()

    assert loaded.state["object"].text == "of gamma"
    assert _RAN == ["of gamma"]


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE entries SET seals = CAST('[]' AS BLOB)",
        "UPDATE entries SET body = NULL",
        "DELETE FROM entries WHERE seq = 0",
        "DELETE FROM entries WHERE seq = 2",
        "UPDATE entries SET header = replace(header, '\"seq\":2', '\"seq\":3')",
    ],
)
def test_nothing_is_decoded_of_a_thread_that_does_not_verify(
    noisy: TamperedStore, edit: str
) -> None:
    """The state itself is untouched; what vouches for it is not."""
    noisy.commit(lambda database: database.execute(edit))
    try:
        with noisy.open(registry=_registry()) as store:
            thread = store.thread("gamma")
            refs = list(thread.history())
            for ref in refs:
                thread.load(ref)
    except SealpointError:
        pass
    else:
        pytest.fail("the edit was not noticed")

    assert not _RAN


def test_the_control_pickle_would_have_worked(tmp_path: Path) -> None:
    """The bombs are live: loading one creates the file."""
    marker = tmp_path / "ran"

    pickle.loads(next(_bombs(marker)))

    assert marker.exists()
