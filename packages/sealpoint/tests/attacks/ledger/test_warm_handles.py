# SPDX-License-Identifier: Apache-2.0
"""A store that is edited under a handle which has loaded before, and relies on what it verified.

As long as SQLite says that nothing was committed, such a handle does not fetch the newest entry
again. Whoever edits through SQLite commits; whoever writes bytes beneath it is not noticed by a
handle that has the page in memory anyway, and gets nothing read that was not saved.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sealpoint.api import Store
from sealpoint.errors import Edited, Forged, Misplaced, Missing, RolledBack, SealpointError
from sealpoint.store import ResultsDraft, ResultsRef
from sealpoint.world import World
from tests.attacks.ledger.tampered_store import WORLD, TamperedStore

_NEWEST = "number = (SELECT max(number) FROM entries WHERE thread = x'{thread}')"
_SAVED, _PLANTED = b"alpha says 3", b"alpha lies 3"
_READ = "SELECT number, body FROM entries WHERE {newest}"
_PUT_BACK = "UPDATE entries SET body = ? WHERE number = ?"

_EDITS: dict[str, tuple[str, type[SealpointError]]] = {
    "header": (
        "UPDATE entries SET header = CAST(replace(header, 'none', 'gone') AS BLOB) WHERE {newest}",
        Edited,
    ),
    "seals": (
        (
            "UPDATE entries SET seals = (SELECT seals FROM entries WHERE thread = x'{thread}' "
            "AND seq = 2) WHERE {newest}"
        ),
        Forged,
    ),
    "body": ("UPDATE entries SET body = x'7b7d' WHERE {newest}", Edited),
    "no body": ("UPDATE entries SET body = NULL WHERE {newest}", Missing),
    "state": (
        (
            "UPDATE entries SET payload = CAST(replace(payload, 'says 3', 'lies 3') AS BLOB) WHERE "
            "{newest}"
        ),
        Edited,
    ),
    "no state": ("UPDATE entries SET payload = NULL WHERE {newest}", Missing),
    "rolled back": ("DELETE FROM entries WHERE {newest}", RolledBack),
    "planted": (
        (
            "INSERT INTO entries (thread, seq, header, seals, body, payload) SELECT thread, "
            "seq + 1, header, seals, body, payload FROM entries WHERE {newest}"
        ),
        Misplaced,
    ),
}


def _statement(scene: TamperedStore, template: str, name: str = "alpha") -> str:
    """A statement about the newest entry of a thread."""
    thread = scene.thread_id(name).hex()
    return template.format(newest=_NEWEST, thread=thread).format(thread=thread)


@pytest.fixture
def warm(scene: TamperedStore) -> Iterator[Store]:
    """A store whose handle of the thread relies on what it verified."""
    scene.require_sound()
    with scene.open() as store:
        for _ in range(4):
            assert store.thread("alpha").load().state == scene.truth["alpha"][-1].state
        yield store


@pytest.mark.parametrize("what", _EDITS)
def test_an_edit_is_refused_by_the_very_next_load(
    scene: TamperedStore, warm: Store, what: str
) -> None:
    """Whatever of the newest entry is edited through SQLite, and at every load after that."""
    template, expected = _EDITS[what]
    sql = _statement(scene, template)
    scene.commit(lambda database: database.execute(sql))

    for _ in range(4):
        with pytest.raises(expected):
            warm.thread("alpha").load()


def test_what_is_put_back_is_read_again(scene: TamperedStore, warm: Store) -> None:
    """A load that failed leaves nothing to rely on, in either direction."""
    edit = _statement(scene, _EDITS["body"][0])
    with scene.raw() as database:
        ((number, body),) = database.execute(_statement(scene, _READ)).fetchall()
    for _ in range(3):
        scene.commit(lambda database: database.execute(edit))
        with pytest.raises(Edited):
            warm.thread("alpha").load()
        scene.commit(lambda database: database.execute(_PUT_BACK, (body, number)))
        assert warm.thread("alpha").load().state == scene.truth["alpha"][-1].state


def test_an_edit_elsewhere_disturbs_nobody(scene: TamperedStore, warm: Store) -> None:
    """A commit to another thread is a commit: the entry is fetched, and is what it was."""
    edit = _statement(scene, _EDITS["body"][0], "beta")
    scene.commit(lambda database: database.execute(edit))

    assert warm.thread("alpha").load().state == scene.truth["alpha"][-1].state
    with pytest.raises(Edited):
        warm.thread("beta").load()


def _overwrite(path: Path, old: bytes, new: bytes) -> int:
    """Write bytes of a file in place, past SQLite and its locks."""
    data, found, place = path.read_bytes(), 0, -1
    with path.open("r+b") as file:
        while (place := data.find(old, place + 1)) >= 0:
            file.seek(place)
            file.write(new)
            found += 1
    return found


def test_bytes_beneath_a_warm_handle_never_become_its_state(
    scene: TamperedStore, warm: Store
) -> None:
    """The handle gives what was saved or refuses; a cold reader and verify refuse."""
    files = [scene.path, scene.path.with_name(f"{scene.path.name}-wal")]
    assert sum(_overwrite(each, _SAVED, _PLANTED) for each in files if each.exists())

    for _ in range(3):
        with suppress(Edited):
            assert warm.thread("alpha").load().state == scene.truth["alpha"][-1].state
    with scene.open() as cold:
        with pytest.raises(Edited):
            cold.thread("alpha").load()
        assert not cold.verify().ok


@pytest.mark.parametrize("column", ["header", "seals", "body", "payload"])
def test_results_that_were_read_before_are_refused_once_they_are_edited(
    scene: TamperedStore, column: str
) -> None:
    """An entry below the head that the handle wrote and verified is no exception."""
    with scene.open() as store:
        thread = store.thread("alpha").adapter
        world = World.of(WORLD)
        added, _ = [
            thread.commit([ResultsDraft(value, checkpoint="a-3", task=str(value), world=world)])[0]
            for value in ([1, 2], [3, 4])
        ]
        assert isinstance(added, ResultsRef)
        for _ in range(3):
            found = thread.snapshot()
            assert found is not None
            assert [each.value for each in found.results] == [[1, 2], [3, 4]]
        where = f"thread = x'{scene.thread_id('alpha').hex()}' AND seq = {added.seq}"
        sql = f"UPDATE entries SET {column} = x'00' WHERE {where}"  # noqa: S608 # a test
        scene.commit(lambda database: database.execute(sql))

        for _ in range(2):
            with pytest.raises(Edited):
                thread.snapshot()
