# SPDX-License-Identifier: Apache-2.0
"""Rolled back and written on, and what a restore has cut off brought back.

The attacker writes the store, and has a copy of everything that was ever in it.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import (
    Edited,
    Forged,
    Forked,
    HeadMoved,
    Misplaced,
    Missing,
    NotTrusted,
    RolledBack,
    SealpointError,
    Superseded,
)
from sealpoint.ledger import (
    STORE_CHAIN,
    Kind,
    PositionList,
    RestoreBody,
    encode_body,
    encode_header,
    link_hash,
    parse_body,
    parse_header,
    skip_seq,
)
from sealpoint.signing import Role
from sealpoint.storage import Record
from sealpoint.store import CheckpointRef
from tests.attacks.ledger.attacked_store import ALL_BACKENDS, AttackedStore
from tests.deployment import SimulatedAnchor
from tests.ledgers import SALT, identity, key, seals
from tests.unit.store.backup import Backup, accepted, planned
from tests.unit.store.ended import add_key, end, enter

_KEPT = 3
_LOST = 2


class _AttackedStore(AttackedStore):
    """An attack after a restore, in which the store chain is reached for as well."""

    lost: dict[int, Record]
    """What the thread `a` had before the restore."""
    gone: dict[int, Record]
    """What the thread `d` had, which was lost altogether."""

    def save(self, name: str, number: int) -> CheckpointRef:
        """Save a small state, and remember what is true from now on."""
        state = {"number": number, "of": name}
        ref = self.worker.thread(name).save(state, id=f"{name}-{number}")
        self.saved.setdefault(name, []).append((ref, state))
        return ref

    def everything(self) -> dict[str, Any]:
        chain = (self.editor.rows(STORE_CHAIN), self.editor.blobs(STORE_CHAIN))
        return {**super().everything(), "": chain}

    def rows(self, name: str) -> dict[int, Record]:
        """The records of a thread, which may be gone."""
        self._make_room(name)
        return super().rows(name)

    def put_all(self, name: str, rows: dict[int, Record]) -> None:
        """Put records in the place of others, and beside the rest."""
        self._make_room(name)
        self.put(name, dict(rows))

    def _make_room(self, name: str) -> None:
        """A directory for the files of a thread, where that is what a store has."""
        folder = self.world.folder
        if folder is not None and (folder / "store.db").is_dir():
            place = self.thread(name).hex()
            (folder / "store.db" / "threads" / place[:2]).mkdir(mode=0o700, exist_ok=True)
            (folder / "store.db" / "threads" / place[:2] / place).mkdir(mode=0o700, exist_ok=True)

    def read(self) -> dict[str, type[SealpointError] | None]:
        try:
            self.world.open(None, read_only=True).close()
        except SealpointError as error:
            return {"open": type(error)}
        return {"open": None, **super().read()}

    def after(self, edit: Callable[[], object]) -> dict[str, type[SealpointError]]:
        """The reads that end otherwise after an edit; `open` alone if the store is refused."""
        before = self.read()
        assert self.read() == before, "a reopen without an edit differs"
        assert self.world.open(None, read_only=True).verify().ok, "not sound before the edit"
        held = self.everything()
        edit()
        assert self.everything() != held, "the edit did not land"
        found = self.read()
        changed = {read: error for read, error in found.items() if error is not before[read]}
        assert None not in changed.values(), f"an edit made something readable: {changed}"
        return {read: error for read, error in changed.items() if error is not None}

    def head(self, name: str) -> int:
        """The newest position of a thread."""
        return max(self.rows(name))

    def resealed(self, record: Record, signer: str, **fields: Any) -> Record:
        """An entry with some fields of its header changed, signed anew."""
        raw = encode_header(replace(parse_header(record.header), **fields))
        return Record(raw, seals(raw, key(signer)), record.body, record.payload)

    def restore(self, *signers: str, kept: PositionList | None = None, **fields: Any) -> None:
        """Put a restore at the end of the store chain that nobody accepted."""
        rows = self.editor.rows(STORE_CHAIN)
        lists = [PositionList(b"") if kept is None else kept, PositionList(b""), PositionList(b"")]
        blobs = self.editor.blobs(STORE_CHAIN)
        self.editor.put_blobs(STORE_CHAIN, blobs | {each.digest: each.data for each in lists})
        names = dict(
            zip(("kept", "lost", "released"), (each.digest.hex() for each in lists), strict=True)
        )
        body = encode_body(RestoreBody(salt=SALT, reason="mine", **names))
        newest, seq = parse_header(rows[len(rows) - 1].header), len(rows)
        header = replace(
            newest,
            epoch=newest.epoch + 1,
            seq=seq,
            prev=link_hash(rows[seq - 1].header).hex(),
            skip=link_hash(rows[skip_seq(seq)].header).hex(),
            kind=Kind.RESTORE,
            roster=max(
                seq for seq, row in rows.items() if parse_header(row.header).kind is Kind.ROSTER
            ),
            by=key(signers[0]).key,
            body=hashlib.sha256(body).hexdigest(),
        )
        raw = encode_header(replace(header, **fields))
        record = Record(raw, seals(raw, *(key(each) for each in signers)), body)
        self.editor.put_rows(STORE_CHAIN, {**rows, seq: record})


@pytest.fixture(params=ALL_BACKENDS)
def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[_AttackedStore]:
    """Threads `a` and `b` with checkpoints at the positions 2 to 4, on every backend."""
    planned = AttackedStore.planned(tmp_path, request.param)
    made = _AttackedStore(planned.world, planned.editor)
    for name in ("a", "b"):
        for number in range(_KEPT):
            made.save(name, number)
    yield made
    made.world.remove()


@pytest.fixture
def restored(attacked: _AttackedStore) -> _AttackedStore:
    """The same after a restore: `a` lost the entries 5 and 6, the thread `d` all of its own."""
    backup = Backup(attacked.world)
    for number in range(_KEPT, _KEPT + _LOST):
        attacked.save("a", number)
    attacked.save("d", 0)
    attacked.lost, attacked.gone = attacked.rows("a"), attacked.rows("d")
    attacked.leave()
    backup.put_back()
    accepted(attacked.world)
    del attacked.saved["a"][_KEPT:], attacked.saved["d"]
    attacked.worker = attacked.world.open()
    return attacked


def _of(changed: dict[str, type[SealpointError]], name: str) -> set[type[SealpointError]]:
    """How reads of a thread were refused; no others may have been."""
    others = [read for read in changed if f" {name}" not in read]
    assert not others, changed
    return set(changed.values())


# ---------------------------------------------------------------------- and written on


def test_a_rollback_that_nobody_accepted_is_not_written_on(attacked: _AttackedStore) -> None:
    """Neither a process that is new nor one that was open goes on from the older copy."""
    backup = Backup(attacked.world)
    attacked.save("a", 7)
    attacked.save("d", 0)

    def edit() -> None:
        attacked.leave()
        backup.put_back()

    changed = attacked.after(edit)
    rows = attacked.rows("a")
    assert {RolledBack} == {error for read, error in changed.items() if read != "history d"}
    for name in ("a", "d"):
        with pytest.raises(RolledBack):
            attacked.world.open().thread(name).save("and on")
    assert attacked.rows("a") == rows


def test_lost_entries_do_not_come_back(restored: _AttackedStore) -> None:
    """They are genuine, chained and signed by their owner: the restore has cut them off."""
    changed = restored.after(lambda: restored.put_all("a", restored.lost))

    assert _of(changed, "a") == {Misplaced}
    assert restored.findings() == ["misplaced"]


def test_nothing_is_saved_on_top_of_lost_entries(restored: _AttackedStore) -> None:
    """A save is refused before it writes, by a new process and by one that was open."""
    restored.worker.thread("a").load()
    restored.put_all("a", restored.lost)
    rows = restored.rows("a")

    for store in (restored.worker, restored.world.open()):
        with pytest.raises((Misplaced, HeadMoved)):
            store.thread("a").save("on top")
    assert restored.rows("a") == rows


def test_one_lost_entry_alone_does_not_come_back(restored: _AttackedStore) -> None:
    """Nor does a later one without those before it."""
    for seq in (5, 6):
        changed = restored.after(partial(restored.put, "a", {seq: restored.lost[seq]}))
        restored.put("a", {seq: None})

        assert _of(changed, "a") == {Misplaced if seq == 5 else Missing}


def test_lost_entries_do_not_take_the_place_of_new_ones(restored: _AttackedStore) -> None:
    """The thread went on in the new epoch: its older future is another history."""
    restored.save("a", 8)
    restored.save("a", 9)
    rows = restored.rows("a")
    changed = restored.after(lambda: restored.put_all("a", restored.lost))
    assert _of(changed, "a") == {Misplaced}
    restored.editor.put_rows(restored.thread("a"), rows)
    changed = restored.after(lambda: restored.editor.put_rows(restored.thread("a"), restored.lost))

    assert _of(changed, "a") <= {Misplaced, RolledBack}
    assert "load a" in changed


def test_a_lost_thread_does_not_come_back(restored: _AttackedStore) -> None:
    """Its name is free, and what it was is refused."""
    held = restored.read()
    restored.put_all("d", restored.gone)

    assert restored.rows("d") == restored.gone, "the edit did not land"
    assert restored.read() == held, "no other thread is touched"
    for store in (restored.world.open(), restored.worker):
        with pytest.raises(Misplaced):
            store.thread("d").load()
        with pytest.raises(Misplaced):
            store.thread("d").save("anew")
        assert store.threads().names == ("a", "b")
    assert restored.findings() == ["misplaced"]


def test_a_worker_of_the_epoch_that_ended_is_refused_loudly(attacked: _AttackedStore) -> None:
    """It has its session and its head from before the restore, and writes nothing at all."""
    backup = Backup(attacked.world)
    attacked.save("a", 7)
    attacked.save("d", 0)
    worker = attacked.worker
    backup.put_back()
    accepted(attacked.world)
    rows, gone = attacked.rows("a"), attacked.rows("d")

    for _ in range(2):
        for name in ("a", "d"):
            with pytest.raises((Superseded, HeadMoved)):
                worker.thread(name).save("with the old epoch")
    assert (attacked.rows("a"), attacked.rows("d")) == (rows, gone)
    assert worker.thread("a").load().ref == attacked.saved["a"][_KEPT - 1][0]
    assert attacked.world.open().verify().ok


def test_a_worker_that_cannot_hear_of_the_restore_is_not_believed(attacked: _AttackedStore) -> None:
    """Its own anchor stands still in the old epoch: what it writes is refused by everybody."""
    backup = Backup(attacked.world)
    other = MemoryAnchor()
    for slot, position in attacked.world.using(lambda core: list(core.anchor.slots())):
        other.create(slot, position)
    elsewhere = attacked.world.open(anchor=SimulatedAnchor(other, closes=True))
    elsewhere.thread("a").load()
    elsewhere.thread("a").save({"number": 7})
    assert attacked.world.open().thread("a").load().state == {"number": 7}
    backup.put_back()
    accepted(attacked.world)
    elsewhere.thread("a").save({"number": 8})
    reads = attacked.read()

    assert reads["load b"] is None
    assert issubclass(reads["load a"] or SealpointError, Missing | Misplaced)
    assert [each.name for each in planned(attacked.world).leftovers] == ["a"]
    accepted(attacked.world)
    assert attacked.read() == dict.fromkeys(reads)
    assert elsewhere.thread("a").load().ref == attacked.saved["a"][-1][0]


def test_a_store_from_before_the_restore_is_rolled_back(restored: _AttackedStore) -> None:
    """The entry that cut the lost ones off is gone, and so are they not: the anchor knows it."""
    newest = max(restored.editor.rows(STORE_CHAIN))

    def edit() -> None:
        rows = restored.editor.rows(STORE_CHAIN)
        restored.editor.put_rows(
            STORE_CHAIN, {seq: row for seq, row in rows.items() if seq < newest}
        )
        restored.put_all("a", restored.lost)

    assert restored.after(edit) == {"open": RolledBack}


def test_a_second_restore_does_not_bring_back_what_the_first_lost(restored: _AttackedStore) -> None:
    """The lost entries are in the store when it is accepted once more: they are not kept."""
    restored.save("b", 8)
    restored.put_all("a", restored.lost)
    rows = restored.rows("b")
    restored.put("b", {restored.head("b"): None, restored.head("b") - 1: None})
    (loss,) = planned(restored.world).losses
    assert loss.name == "b"
    accepted(restored.world)
    del restored.saved["b"][-1]

    assert max(rows) > restored.head("b")
    assert restored.head("a") == 4
    assert not {read: error for read, error in restored.read().items() if error is not None}


# ---------------------------------------------------------------------- sealed anew


@pytest.mark.parametrize(
    ("signer", "fields", "error"),
    [
        ("", {"epoch": 1}, Forged),
        ("stranger", {"epoch": 1, "by": key("stranger").key}, NotTrusted),
        ("operator", {"epoch": 1, "by": key("operator").key}, NotTrusted),
        ("other", {"epoch": 1, "by": key("other").key}, NotTrusted),
        ("worker", {"epoch": 2}, Misplaced),
        ("worker", {"epoch": 0}, Misplaced),
    ],
    ids=["no key", "stranger", "operator", "no owner", "epoch to come", "epoch that ended"],
)
def test_lost_entries_are_not_sealed_for_the_new_epoch(
    restored: _AttackedStore, signer: str, fields: dict[str, Any], error: type[SealpointError]
) -> None:
    """A key that may not write here does not bring them back, whatever epoch they claim."""
    record = restored.lost[5]
    if signer:
        made = restored.resealed(record, signer, **fields)
    else:
        raw = encode_header(replace(parse_header(record.header), **fields))
        made = Record(raw, record.seals, record.body, record.payload)
    changed = restored.after(lambda: restored.put("a", {5: made}))

    assert _of(changed, "a") == {error}


def test_a_revoked_key_seals_nothing_for_the_new_epoch(restored: _AttackedStore) -> None:
    """It wrote the lost entries itself, below what would have been its end."""
    end(restored.world, "worker", change=add_key("worker", "worker-2"))
    for epoch in (0, 1):
        made = restored.resealed(restored.lost[5], "worker", epoch=epoch)
        changed = restored.after(partial(restored.put, "a", {5: made}))
        restored.put("a", {5: None})

        assert _of(changed, "a") == {NotTrusted if epoch else Misplaced}


@pytest.mark.parametrize("seq", [2, 4])
def test_kept_entries_are_not_sealed_for_the_new_epoch(restored: _AttackedStore, seq: int) -> None:
    """Even by their owner: the restore lists one by its hash, and the links lead to the rest."""
    rows = restored.rows("a")
    made = restored.resealed(rows[seq], "worker", epoch=1)
    changed = restored.after(lambda: restored.put("a", {seq: made}))

    assert _of(changed, "a") <= {Forked, RolledBack, Misplaced}
    assert "history a" in changed


def test_the_epoch_does_not_go_back_along_a_thread(restored: _AttackedStore) -> None:
    """An owner that is cut loose does not hide an entry between two epochs."""
    restored.save("a", 8)
    made = restored.forged("a", Kind.CHECKPOINT, _body(restored, 4), "worker", epoch=0)
    changed = restored.after(lambda: restored.put("a", {restored.head("a") + 1: made}))

    assert _of(changed, "a") == {Misplaced}


def _body(attacked: _AttackedStore, seq: int) -> Any:
    record = attacked.rows("a")[seq]
    return parse_body(Kind.CHECKPOINT, parse_header(record.header).body, record.body or b"")


# ---------------------------------------------------------------------- the lists, and who signs


@pytest.mark.parametrize("damage", ["missing", "edited", "emptied", "longer"])
def test_without_the_list_nothing_of_the_old_epoch_counts(
    restored: _AttackedStore, damage: str
) -> None:
    """What was kept is known by the list alone; what was saved since needs none."""
    restored.save("new", 0)
    kept = bytes.fromhex(_restore_body(restored).kept)

    def edit() -> None:
        blobs = restored.editor.blobs(STORE_CHAIN)
        data = blobs.pop(kept)
        changed = {
            "edited": data[:-1] + bytes([data[-1] ^ 1]),
            "emptied": b"",
            "longer": data + data[-56:],
        }
        if damage != "missing":
            blobs[kept] = changed[damage]
        restored.editor.put_blobs(STORE_CHAIN, blobs)

    changed = restored.after(edit)

    assert set(changed.values()) == {Missing if damage == "missing" else Edited}
    assert "load a" in changed
    assert not [read for read in changed if " new" in read]


@pytest.mark.parametrize("damage", ["missing", "edited"])
def test_a_damaged_list_of_losses_is_found(restored: _AttackedStore, damage: str) -> None:
    """No read needs it; a full verification does."""
    lost = bytes.fromhex(_restore_body(restored).lost)
    blobs = restored.editor.blobs(STORE_CHAIN)
    data = blobs.pop(lost)
    assert restored.findings() == []
    if damage == "edited":
        blobs[lost] = data[:-1] + bytes([data[-1] ^ 1])
    restored.editor.put_blobs(STORE_CHAIN, blobs)

    assert restored.findings() == [damage]


def _restore_body(attacked: _AttackedStore) -> RestoreBody:
    rows = attacked.editor.rows(STORE_CHAIN)
    record = rows[max(rows)]
    body: RestoreBody = parse_body(
        Kind.RESTORE, parse_header(record.header).body, record.body or b""
    )
    return body


@pytest.mark.parametrize(
    ("signers", "fields", "error"),
    [
        (("operator",), {}, NotTrusted),
        (("worker",), {}, NotTrusted),
        (("officer",), {}, NotTrusted),
        (("stranger",), {}, NotTrusted),
        (("operator", "worker", "officer", "other"), {}, NotTrusted),
        (("root",), {"store": "ab" * 16}, Misplaced),
        (("root",), {"epoch": 0}, Misplaced),
        (("root",), {"epoch": 2}, Misplaced),
        (("worker",), {"by": key("root").key}, Forged),
    ],
    ids=[
        *("operator", "writer", "privacy", "stranger", "everybody but the root"),
        *("another store", "the epoch before", "an epoch ahead", "in the root's name"),
    ],
)
def test_a_forged_restore_is_refused(
    attacked: _AttackedStore,
    signers: tuple[str, ...],
    fields: dict[str, Any],
    error: type[SealpointError],
) -> None:
    """Whoever is not the root throws nothing away."""
    attacked.save("d", 0)

    assert attacked.after(lambda: attacked.restore(*signers, **fields)) == {"open": error}


def test_a_quorum_is_not_met_by_one_person(attacked: _AttackedStore) -> None:
    """Two keys of one person, writers and strangers beside one operator are one operator."""
    enter(
        attacked.world,
        lambda found: replace(
            found,
            restore_quorum=2,
            identities=(
                *found.identities,
                replace(identity("operator-2", Role.OPERATOR), person="operator"),
            ),
        ),
    )
    attacked.save("d", 0)
    chain, blobs = attacked.editor.rows(STORE_CHAIN), attacked.editor.blobs(STORE_CHAIN)
    for signers in (("operator",), ("operator", "operator-2"), ("operator", "worker", "stranger")):
        changed = attacked.after(partial(attacked.restore, *signers))
        attacked.editor.put_rows(STORE_CHAIN, chain)
        attacked.editor.put_blobs(STORE_CHAIN, blobs)

        assert changed == {"open": NotTrusted}


def test_a_genuine_restore_of_another_store_is_misplaced(attacked: _AttackedStore) -> None:
    """The same root signed it for another store, where it threw everything away."""
    attacked.save("d", 0)

    def edit() -> None:
        attacked.restore("root", store="cd" * 16)

    assert attacked.after(edit) == {"open": Misplaced}
    assert (
        msgspec.json.decode(max(attacked.editor.rows(STORE_CHAIN).items())[1].header)["epoch"] == 1
    )
