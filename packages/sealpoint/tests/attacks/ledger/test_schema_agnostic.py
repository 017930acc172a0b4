# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to the file: every read gives exactly what was saved, or refuses.

The attacker knows no schema. Nothing else than the truth or a `SealpointError` may come of any
edit: no foreign exception, no other value, no None. A save on such a store is refused, or what it
saved is what the next reader gets. The long versions of these tests make every edit there is.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pytest

from sealpoint.api import Store, admin
from sealpoint.errors import SealpointError
from tests.attacks.ledger.cell_edits import Damage, damages, page_damages, schema_damages
from tests.attacks.ledger.tampered_store import (
    WORLD,
    Outcome,
    Saved,
    TamperedStore,
    Truth,
    contents,
    read_everything,
)

# What a read may not notice, because no read uses it: the numbers of rows, hints from labels, the
# seals, bodies and payloads of entries that are proven by the links to them and carry no state,
# and blobs that no state reaches.
_UNREAD = {
    ("entries", "number"),
    ("entries", "seals"),
    ("entries", "body"),
    ("entries", "payload"),
    ("blobs", "number"),
    ("blobs", "digest"),
    ("blobs", "data"),
    ("blobs", "thread"),
    ("labels", "label"),
    ("labels", "thread"),
}


class DamagedStore(TamperedStore):
    """A store worth damaging, which can be put back into its first state at once."""

    def furnish(self) -> None:
        """Two threads in several sessions, a state of many blobs, two rosters."""
        self._session(0)
        admin(self.url, **self.places).keys.create("helper")
        rights: dict[str, Any] = {"roles": ["writer"], "namespaces": ["elsewhere"]}
        admin(self.url, **self.places).keys.add("helper", person="somebody", **rights)
        with self.raw() as database:
            self.older_rows = contents(database)
        self.older = self.path.read_bytes()
        self._session(1)
        self._session(2)
        self.require_sound()
        self.pristine = self.path.read_bytes()
        (self.anchor,) = self.places["state_dir"].rglob("anchor.slots")
        self.anchored = self.anchor.read_bytes()
        self.first_truth: Truth = {name: list(saved) for name, saved in self.truth.items()}

    def _session(self, number: int) -> None:
        with self.open() as store:
            for name, length in (("alpha", 120), ("beta", 2)):
                words = [
                    f"{name} {place} " + "word " * 20 for place in range(length * (number + 1))
                ]
                self.save(
                    store,
                    name,
                    {"words": words, "step": number},
                    id=f"{name[0]}-{number}",
                    metadata={"step": number, "source": "loop"},
                )

    def put_back_everything(self, data: bytes | None = None) -> None:
        """The store as it was, or with other bytes; and the anchor as it was."""
        self.put_back({self.path.name: self.pristine if data is None else data})
        self.anchor.write_bytes(self.anchored)
        self.truth = {name: list(saved) for name, saved in self.first_truth.items()}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> DamagedStore:
    """One store for all edits: each begins with what `furnish` made."""
    damaged = DamagedStore(TamperedStore.make(tmp_path_factory.mktemp("damaged")).folder)
    damaged.furnish()
    return damaged


def _landed(damaged: DamagedStore, damage: Damage) -> bool:
    """Make an edit; False if the file's own constraints refuse it or it changes nothing."""
    try:
        damaged.commit(damage.edit)
    except (sqlite3.Error, OverflowError):
        return False
    except AssertionError:
        return damage.table == ""  # a pragma changes no row
    return True


def _saves(damaged: DamagedStore, store: Store, before: Outcome, *, exact: bool) -> None:
    """Save to every thread, then read again.

    Args:
        damaged: The store.
        store: What to save through; it is closed.
        before: How reads ended before.
        exact: Whether a save that succeeds must be readable.
    """
    saved = []
    with store:
        for name in damaged.truth:
            state = {"after": name}
            try:
                ref = store.thread(name).save(
                    state, id=f"after-{name}", metadata={"late": True}, world=WORLD
                )
            except SealpointError:
                continue
            damaged.truth[name].append(Saved(ref, state, WORLD))
            saved.append(name)
    after = damaged.read()
    for name in saved:
        if exact:
            assert after[f"load {name}"] is None
        reads = [read for read in before if read.split()[1:2] == [name]]
        if exact and all(before[read] is None for read in reads):
            assert not [read for read in reads if after[read] is not None]


def _sampled(every: Iterable[Damage], step: int) -> Iterator[Damage]:
    """One of so many, of each kind of edit and column at least the first."""
    seen: Counter[str] = Counter()
    for damage in every:
        if seen[str(damage)] % step == 0:
            yield damage
        seen[str(damage)] += 1


def _all(damaged: DamagedStore, *, dense: bool = False) -> list[Damage]:
    damaged.put_back_everything()
    with damaged.raw() as database:
        return [
            *damages(database, damaged.older_rows, dense=dense),
            *schema_damages(database),
        ]


def _cold(damaged: DamagedStore, every: Iterable[Damage]) -> Counter[str]:
    """Edit, then open, read, and save: each as a new process would."""
    verdicts: Counter[str] = Counter()
    for damage in every:
        damaged.put_back_everything()
        if not _landed(damaged, damage):
            verdicts["refused by SQLite"] += 1
            continue
        found = damaged.read()
        accepted = not any(found.values())
        verdicts["accepted" if accepted else "refused"] += 1
        if accepted and damage.column:
            assert (damage.table, damage.column) in _UNREAD, str(damage)
        if accepted or found["open"] is None:
            _saves(damaged, damaged.open(), found, exact=True)
    return verdicts


def _warm(damaged: DamagedStore, every: Iterable[Damage]) -> Counter[str]:
    """Edit under a store that is open, has read everything, and has sessions of its own."""
    verdicts: Counter[str] = Counter()
    for number, damage in enumerate(every):
        damaged.put_back_everything()
        with damaged.open() as store:
            if number % 2:
                for name in damaged.truth:
                    damaged.save(store, name, {"warm": name}, id=f"warm-{name}")
            assert not any(read_everything(store, damaged.truth).values())
            if not _landed(damaged, damage):
                verdicts["refused by SQLite"] += 1
                continue
            found = read_everything(store, damaged.truth)
            verdicts["refused" if any(found.values()) else "accepted"] += 1
            _saves(damaged, store, found, exact=False)
    return verdicts


def test_the_truth_is_told_or_the_read_refused_after_any_edit_of_rows(
    damaged: DamagedStore,
) -> None:
    """Values flipped, cleared, retyped, copied, swapped, restored; rows and tables removed."""
    verdicts = _cold(damaged, _sampled(_all(damaged), 120))

    # How many blobs there are, and so how many edits, is drawn with each store.
    assert verdicts["refused"] > verdicts["accepted"] > 10


def test_an_open_store_tells_the_truth_or_refuses_after_any_edit_of_rows(
    damaged: DamagedStore,
) -> None:
    """The same edits under a store that is open already."""
    verdicts = _warm(damaged, _sampled(_all(damaged), 400))

    assert verdicts["refused"] > 15


def test_the_truth_is_told_or_the_read_refused_after_any_edit_of_bytes(
    damaged: DamagedStore,
) -> None:
    """Bytes, pages and cells of the file changed, moved, cut off or restored."""
    counted = _bytes(damaged, islice(page_damages(damaged.pristine, damaged.older), 0, None, 61))

    assert counted["refused"] > 12


def _bytes(damaged: DamagedStore, every: Iterable[tuple[str, bytes]]) -> Counter[str]:
    verdicts: Counter[str] = Counter()
    for _, data in every:
        damaged.put_back_everything(data)
        found = damaged.read()
        verdicts["refused" if any(found.values()) else "accepted"] += 1
        if found["open"] is None:
            _saves(damaged, damaged.open(), found, exact=False)
    damaged.put_back_everything()
    damaged.require_sound()
    return verdicts


@pytest.mark.soak
def test_every_edit_of_rows_is_harmless(damaged: DamagedStore) -> None:
    """Every edit, with a bit of every byte flipped."""
    assert _cold(damaged, _all(damaged, dense=True))["refused"] > 10_000


@pytest.mark.soak
def test_every_edit_of_rows_under_an_open_store_is_harmless(damaged: DamagedStore) -> None:
    """Every edit under an open store."""
    assert _warm(damaged, _all(damaged))["refused"] > 1000


@pytest.mark.soak
def test_every_edit_of_bytes_is_harmless(damaged: DamagedStore) -> None:
    """Every page, cell and cut, and a flip of every byte of the file."""
    flips = (
        (f"flip byte {place}", _flipped(damaged.pristine, place))
        for place in range(len(damaged.pristine))
    )
    assert _bytes(damaged, page_damages(damaged.pristine, damaged.older))["refused"] > 1000
    assert _bytes(damaged, flips)["refused"] > 10_000


def _flipped(data: bytes, place: int) -> bytes:
    flipped = bytearray(data)
    flipped[place] ^= 1 << (place % 8)
    return bytes(flipped)
