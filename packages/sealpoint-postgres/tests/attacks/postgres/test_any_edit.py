# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to the tables: every read gives exactly what was saved, or refuses.

The attacker is the owner of the tables or the superuser of the server, and knows no schema. Nothing
else than the truth or a `SealpointError` may come of any edit: no foreign exception, no other
value, no None, and no read without an end. The long versions of these tests make every edit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sealpoint.errors import SealpointError
from tests.attacks.ledger.tampered_store import WORLD, Saved, read_everything
from tests.attacks.postgres.edited_server import EditedServer
from tests.attacks.postgres.table_edits import TableEdit, definition_edits, row_edits

# What a read may not notice, because no read uses it: hints from labels, bodies and payloads of
# entries that are proven by the links to them and carry no state, and blobs that no state reaches.
_UNREAD = {
    ("entries", "head"),
    ("entries", "body"),
    ("entries", "payload"),
    ("blobs", "digest"),
    ("blobs", "data"),
    ("blobs", "thread"),
    ("labels", "label"),
    ("labels", "thread"),
}


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EditedServer]:
    """One store for all edits: each begins with what was saved at first."""
    made = EditedServer.furnished(Path(tmp_path_factory.mktemp("edited")) / "store")
    yield made
    made.remove()


def _rows(edited: EditedServer, *, dense: bool = False) -> list[TableEdit]:
    edited.put_back_everything()
    with edited.editing() as server:
        return [*row_edits(server, edited.older, dense=dense)]


def _definitions(edited: EditedServer) -> list[TableEdit]:
    edited.put_back_everything()
    with edited.editing() as server:
        return [*definition_edits(server, edited.login)]


def _sampled(every: Iterable[TableEdit], step: int) -> Iterator[TableEdit]:
    """One of so many, and of each kind of edit the first that comes so far apart."""
    seen: Counter[str] = Counter()
    for number, edit in enumerate(every):
        if not seen[edit.what] or number % step == 0:
            yield edit
        seen[edit.what] += 1


def _cold(edited: EditedServer, every: Iterable[TableEdit], *, as_owner: bool) -> Counter[str]:
    """Edit, then open, read, and save: each as a new process would."""
    verdicts: Counter[str] = Counter()
    for edit in every:
        edited.put_back_everything()
        if not edited.landed(edit, as_owner=as_owner):
            verdicts["refused by the server"] += 1
            continue
        found = edited.read()
        accepted = not any(found.values())
        verdicts["accepted" if accepted else "refused"] += 1
        if accepted and edit.column and _changes_a_value(edit):
            assert (edit.table, edit.column) in _UNREAD, str(edit)
        if found["open"] is None:
            _saves(edited, edit)
    return verdicts


def _changes_a_value(edit: TableEdit) -> bool:
    """Whether it does, and not what a table is."""
    words = ("set", "shift", "empty", "blow", "lengthen", "shorten", "flip", "copy", "swap")
    return edit.what.startswith(words)


def _saves(edited: EditedServer, edit: TableEdit) -> None:
    """Save to every thread: what is acknowledged is read again, or nothing is."""
    with edited.open() as store:
        for name in edited.truth:
            state = {"after": name}
            try:
                ref = store.thread(name).save(state, id=f"after-{name}", world=WORLD)
            except SealpointError:
                continue
            edited.truth[name].append(Saved(ref, state, WORLD))
    after = edited.read()
    if edit.column and _changes_a_value(edit):
        for name, checkpoints in edited.truth.items():
            if checkpoints[-1].state == {"after": name}:
                assert after[f"load {name}"] is None, str(edit)


def _warm(edited: EditedServer, every: Iterable[TableEdit], *, as_owner: bool) -> Counter[str]:
    """Edit under a store that is open, has read everything, and has sessions of its own."""
    verdicts: Counter[str] = Counter()
    for edit in every:
        edited.put_back_everything()
        with edited.open() as store:
            for name in edited.truth:
                edited.save(store, name, {"warm": name}, id=f"warm-{name}")
            assert not any(read_everything(store, edited.truth).values())
            if not edited.landed(edit, as_owner=as_owner):
                verdicts["refused by the server"] += 1
                continue
            found = read_everything(store, edited.truth)
            verdicts["refused" if any(found.values()) else "accepted"] += 1
            for name in edited.truth:
                try:
                    store.thread(name).save({"after": name}, id=f"after-{name}", world=WORLD)
                except SealpointError:
                    verdicts["saves refused"] += 1
    return verdicts


def test_the_truth_is_told_or_the_read_refused_after_any_edit_of_rows(
    edited: EditedServer,
) -> None:
    """Values cleared, cut, flipped, copied and swapped; rows removed, doubled, moved, restored."""
    verdicts = _cold(edited, _sampled(_rows(edited), 400), as_owner=True)

    assert verdicts["refused"] > 5
    assert verdicts["accepted"] > 1


def test_the_truth_is_told_or_the_read_refused_whatever_the_tables_become(
    edited: EditedServer,
) -> None:
    """Other types, keys, views, rules, triggers and rights in the place of what was made."""
    verdicts = _cold(edited, _sampled(_definitions(edited), 12), as_owner=False)

    assert verdicts["refused"] > 15
    assert verdicts["refused by the server"] < 10


def test_an_open_store_tells_the_truth_or_refuses(edited: EditedServer) -> None:
    """The same edits under connections that have prepared their statements already."""
    every = [*_sampled(_definitions(edited), 30), *_sampled(_rows(edited), 400)][::3]
    verdicts = _warm(edited, every, as_owner=True)

    assert verdicts["refused"] > 5


@pytest.mark.soak
@pytest.mark.parametrize("who", ["owner", "superuser"])
def test_every_edit_of_rows_is_harmless(edited: EditedServer, who: str) -> None:
    """Every edit of every value and row, with a bit of every byte flipped by the superuser."""
    found = _cold(edited, _rows(edited, dense=who == "superuser"), as_owner=who == "owner")

    assert found["refused"] > 500


@pytest.mark.soak
@pytest.mark.parametrize("who", ["owner", "superuser"])
def test_every_edit_of_definitions_is_harmless(edited: EditedServer, who: str) -> None:
    """Every table and column turned into everything else, under readers that come and that are."""
    assert _cold(edited, _definitions(edited), as_owner=who == "owner")["refused"] > 60
    assert _warm(edited, _definitions(edited), as_owner=who == "owner")["refused"] > 60


@pytest.mark.soak
def test_every_edit_of_rows_under_an_open_store_is_harmless(edited: EditedServer) -> None:
    """Every edit of rows under connections that are there already."""
    assert _warm(edited, _rows(edited), as_owner=True)["refused"] > 300
