# SPDX-License-Identifier: Apache-2.0
"""A store of threads with lanes and results, who edits it, and every way to read them.

The controls are those of `attacked_store.py`: sound before the edit, the same after a reopen, and
the edit really landed.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sealpoint.errors import SealpointError
from sealpoint.gate import Thread
from sealpoint.store import Key, ResultsDraft, SaveDraft
from tests.attacks.ledger.attacked_store import AttackedStore, Outcome
from tests.unit.store.laned import put, results, saved

__all__ = ["AttackedLanes"]

Truth = dict[Key, tuple[Any, list[Any]]]
"""State and results of every checkpoint that is shown, oldest first."""


@dataclass
class AttackedLanes(AttackedStore):
    """Two threads of the same shape.

    Of each: 2 is checkpoint `1`, 3 and 4 are results for it, 5 is checkpoint `1` of a lane, 6 its
    results, 7 is checkpoint `2`, 8 an answer for it, 9 is checkpoint `3`, and 10 its results.
    """

    truth: dict[str, Truth] = field(default_factory=dict)

    def fill(self, name: str) -> None:
        """Write a thread."""
        self.saved[name], self.truth[name] = [], {}
        self.write(
            name,
            put({"of": name, "n": 1}, "1"),
            results([name, "first"], "1", "a"),
            results([name, "second"], "1", "b"),
            put({"of": name, "lane": 1}, "1", "sub"),
            results([name, "inner"], "1", "a", "sub"),
            put({"of": name, "n": 2}, "2"),
            results([name, "yes, pay"], "2", "a", answers=True),
            put({"of": name, "n": 3}, "3"),
            results([name, "last"], "3", "a"),
        )

    def write(self, name: str, *drafts: SaveDraft | ResultsDraft) -> None:
        """Write as the owner, and remember what is true from now on."""
        truth = self.truth[name]
        saved(self.worker.thread(name), *drafts)
        for draft in drafts:
            assert draft.key is not None
            if isinstance(draft, SaveDraft):
                truth[draft.key] = (draft.value, [])
            else:
                truth[draft.key][1].append(draft.value)

    def delete(self, name: str, *keys: Key) -> None:
        """Delete as the owner."""
        self.worker.thread(name).adapter.delete(keys)
        for each in keys:
            del self.truth[name][each]

    def read(self) -> Outcome:
        """How every read of a fresh process ends; anything but the truth or an error fails."""
        found: Outcome = {}
        for name, truth in self.truth.items():
            for key, (state, values) in truth.items():
                read = partial(self._check, name, key.lane, key.id, state, values)
                found[f"{name} {key.lane}/{key.id}"] = _ending(read)
            for lane in ("", "sub"):
                shown = [key for key in truth if key.lane == lane]
                found[f"{name} {lane} listed"] = _ending(partial(self._check_list, name, lane))
                if shown:
                    newest = partial(self._check, name, lane, None, *truth[shown[-1]])
                    found[f"{name} {lane} newest"] = _ending(newest)
        return found

    def _thread(self, name: str) -> Thread:
        return self.world.open(None, read_only=True).thread(name)

    def _check(
        self, name: str, lane: str, checkpoint: str | None, state: Any, values: list[Any]
    ) -> None:
        found = self._thread(name).adapter.snapshot(lane, checkpoint)
        assert found is not None, "what was saved is not shown"
        assert found.state == state, "not what was saved"
        assert [each.value for each in found.results] == values, "not what was added"

    def _check_list(self, name: str, lane: str) -> None:
        shown = [key.id for key in self.truth[name] if key.lane == lane]
        found = [ref.id for ref in self._thread(name).adapter.snapshots(lane)]
        assert found == shown[::-1], "not what was saved"


def _ending(read: "partial[None]") -> type[SealpointError] | None:
    try:
        read()
    except SealpointError as error:
        return type(error)
    return None
