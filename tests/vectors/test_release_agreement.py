# SPDX-License-Identifier: Apache-2.0
"""Releases of threads that nobody wrote down: reader, audit and second verifier agree on each.

The vectors say what a release has; here only that everybody who makes one makes the same, whichever
way it comes to the entries: from the head downwards, as far as it must, or from the first one up.
"""

import hashlib
import json
import random
from typing import Any

import pytest

from sealpoint.errors import Pruned
from sealpoint.ledger import (
    CheckpointBody,
    Kind,
    PauseBody,
    PruneBody,
    ResultsBody,
    UnpauseBody,
    link_hash,
    parse_header,
)
from sealpoint.store import CheckpointRef
from tests.ledgers import SALT, ThreadLedger
from tests.vectors.frozen_store import frozen_core, frozen_thread, walk_thread
from tests.vectors.ledger import vector_entry
from tests.vectors.release_verifier import release_document
from tests.vectors.retention_chains import store_chain, trusted

_FROZEN: dict[str, Any] = {
    "pin": json.loads(trusted().encode()),
    "store_chain": [vector_entry(record) for record in store_chain(1).records],
    "blobs": {},
}
_QUESTIONS = (None, None, "sure?", {"to": "Zoë", "pay": 1.5})
_STEPS = (
    *("_save",) * 6,
    *("_add",) * 6,
    *("_hide", "_hide", "_prune", "_resume", "_pause", "_unpause"),
)

Name = tuple[str, str]


class _Writer:
    """An honest writer that does something at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 # the same in every run
        self.ledger = ThreadLedger(store_chain(1).chain)
        self.ledger.add(Kind.GENESIS)
        self.ledger.add(Kind.RESUME)
        self.saved: list[tuple[int, Name]] = []
        self.given_up = PruneBody(salt=SALT, before=0)
        self._newest: dict[Name, tuple[int, int, int | None]] = {}
        """Position, rank and beginning of the newest of each name."""
        self._holding: list[tuple[int, Name, Kind]] = []
        self._session = 1
        for _ in range(self.random.randint(4, 28)):
            getattr(self, self.random.choice(_STEPS))()

    def _name(self) -> Name:
        return self.random.choice(("", "", "a", "b")), self.random.choice("1234")

    @property
    def _root(self) -> str:
        return hashlib.sha256(b"state %d" % self.ledger.seq).hexdigest()

    @property
    def _paused(self) -> bool:
        return self.ledger.tip is not None and self.ledger.tip.paused is not None

    def _save(self) -> None:
        seq, name = self.ledger.seq, self._name()
        before = self._newest.get(name)
        again, since = None, None
        if before is not None and not self.given_up.deletes(before[0]):
            _, again, since = before
        else:
            since = next(
                (
                    at
                    for at, whose, kind in self._holding
                    if kind is Kind.RESULTS and whose == name and at >= self._session
                    if not self.given_up.covers(at)
                ),
                None,
            )
        body = CheckpointBody(
            salt=SALT,
            id=name[1],
            root=self._root,
            prune=self.ledger.retention_seq,
            question=self.random.choice(_QUESTIONS),
            lane=name[0],
            again=again,
            since=since,
        )
        kind = Kind.HELD if self._paused else Kind.CHECKPOINT
        self.ledger.add(kind, body)
        self._newest[name] = (seq, seq if again is None else again, since)
        self.saved.append((seq, name))
        self._holding.append((seq, name, kind))

    def _add(self) -> None:
        lane, name = self._name()
        body = ResultsBody(
            salt=SALT,
            checkpoint=name,
            task=self.random.choice("xyz"),
            root=self._root,
            lane=lane,
            question=self.random.choice(_QUESTIONS),
            answers=self.random.random() < 0.3,
        )
        self._holding.append((self.ledger.seq, (lane, name), Kind.RESULTS))
        self.ledger.add(Kind.RESULTS, body)

    def _hide(self) -> None:
        names = {name for _, name, _ in self._holding if self.random.random() < 0.4}
        spans: list[tuple[int, int]] = []
        grows = False
        for seq, name, _ in self._holding:
            goes = name in names or self.given_up.deletes(seq)
            if goes:
                spans.append((spans.pop()[0], seq) if grows else (seq, seq))
            grows = goes
        if tuple(spans) != self.given_up.deleted:
            self._give_up(Kind.DELETE, self.given_up.before, self.given_up.kept, tuple(spans))

    def _prune(self) -> None:
        if not self.saved:
            return
        before = self.random.randint(self.given_up.before, self.ledger.seq)
        # The newest of each lane is kept.
        newest = {lane: seq for seq, (lane, _) in self._ranked() if not self.given_up.deletes(seq)}
        kept = tuple(
            seq
            for seq, _, _ in self._holding
            if seq < before and not self.given_up.covers(seq)
            if seq in newest.values() or self.random.random() < 0.5
        )
        self._give_up(Kind.PRUNE, before, kept, self.given_up.deleted)

    def _ranked(self) -> list[tuple[int, Name]]:
        """The newest checkpoint of each name, those of the highest rank last."""
        ranked = sorted(self._newest.items(), key=lambda each: each[1][1])
        return [(seq, name) for name, (seq, _, _) in ranked]

    def _give_up(
        self, kind: Kind, before: int, kept: tuple[int, ...], deleted: tuple[tuple[int, int], ...]
    ) -> None:
        earlier = self.ledger.retention_seq
        self.given_up = PruneBody(
            salt=SALT, before=before, kept=kept, deleted=deleted, earlier=earlier
        )
        self.ledger.add(kind, self.given_up)

    def _resume(self) -> None:
        if not self._paused:
            self._session = self.ledger.seq
            self.ledger.add(Kind.RESUME)

    def _pause(self) -> None:
        self.ledger.add(Kind.PAUSE, PauseBody(salt=SALT, reason="a look"), signer="ann")

    def _unpause(self) -> None:
        self.ledger.add(Kind.UNPAUSE, UnpauseBody(salt=SALT, reason="fine"), signer="ann")


@pytest.mark.parametrize("seed", range(60))
def test_all_who_make_a_release_make_the_same(seed: int) -> None:
    """Of every checkpoint that is left, by a handle that is new and by one that has read much."""
    writer = _Writer(seed)
    records = writer.ledger.records
    rows = [(record.header, record.seals, record.body) for record in records]
    log, tip = walk_thread(frozen_core(_FROZEN, records), records)
    old = frozen_thread(_FROZEN, records)
    for seq, (_, name) in writer.saved:
        ref = CheckpointRef(
            id=name,
            seq=seq,
            time=parse_header(records[seq].header).at,
            writer="worker",
            metadata={},
            entry=link_hash(records[seq].header).hex(),
        )
        if writer.given_up.covers(seq):
            with pytest.raises(Pruned):
                old.release(ref)
            continue
        made = log.release(ref.entry, tip.entry.header, tip)
        document = release_document(rows, seq)

        assert made == old.release(ref) == frozen_thread(_FROZEN, records).release(ref)
        assert made is not None
        assert made.digest == hashlib.sha256(document).hexdigest()
