# SPDX-License-Identifier: Apache-2.0
"""Keys that ended, older rosters, stolen keys, and entries sealed anew.

The attacker writes the store and has a private key that was revoked, has expired, or is stolen.
"""

import hashlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.codec import Registry
from sealpoint.errors import (
    Edited,
    Forged,
    Forked,
    Misplaced,
    Missing,
    NotTrusted,
    RolledBack,
    SealpointError,
    Unanchored,
)
from sealpoint.ledger import (
    STORE_CHAIN,
    CheckpointBody,
    GenesisBody,
    Kind,
    ResumeBody,
    RosterBody,
    encode_body,
    encode_header,
    link_hash,
    parse_body,
    parse_header,
    skip_seq,
)
from sealpoint.signing import Root, RosterDocument, RosterKey, Seal, encode_seals, parse_seals
from sealpoint.storage import Record
from sealpoint.store import (
    adopt_store_chain,
    adopt_thread,
    append_root,
    unanchored_threads,
)
from tests.attacks.ledger.attacked_store import BACKENDS, AttackedStore
from tests.deployment import Deployment, SimulatedAnchor
from tests.ledgers import NOW, SALT, key, pin, seals
from tests.unit.store.ended import add_key, end, expire, rooted

_NEW = add_key("worker", "worker-2")


class _AttackedStore(AttackedStore):
    """An attack in which the store chain is reached for as well."""

    def everything(self) -> dict[str, Any]:
        chain = (self.editor.rows(STORE_CHAIN), self.editor.blobs(STORE_CHAIN))
        return {**super().everything(), "": chain}

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

    def add_to_chain(self, record: Record) -> None:
        """Put a record at the end of the store chain."""
        rows = self.editor.rows(STORE_CHAIN)
        self.editor.put_rows(STORE_CHAIN, {**rows, len(rows): record})

    def checkpoint(self, name: str, signer: str, **fields: Any) -> Record:
        """A next checkpoint with a state of the attacker's own."""
        blobs: dict[bytes, bytes] = {}

        def put(blob: bytes) -> bytes:
            digest = hashlib.sha256(blob).digest()
            blobs[digest] = blob
            return digest

        root = Registry().encode_tree({"note": "bought"}, put)
        assert isinstance(root, bytes)
        body = CheckpointBody(salt=SALT, id=f"bought-{fields.get('seq', 0)}", root=root.hex())
        made = self.forged(name, Kind.CHECKPOINT, body, signer, **fields)
        return Record(made.header, made.seals, made.body, blobs[root])


@pytest.fixture(params=BACKENDS)
def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[_AttackedStore]:
    """Threads `a` and `b` with checkpoints at the positions 2 to 4, on every backend."""
    planned = AttackedStore.planned(tmp_path, request.param)
    made = _AttackedStore(planned.world, planned.editor)
    for name in ("a", "b"):
        for number in range(3):
            made.save(name, number)
    yield made
    made.world.remove()


@pytest.fixture
def revoked(attacked: _AttackedStore) -> _AttackedStore:
    """The same, where the worker's key was revoked and the new one has begun thread `c`."""
    end(attacked.world, "worker", change=_NEW)
    attacked.worker = attacked.world.open("worker-2")
    attacked.save("c", 0)
    return attacked


def _document(attacked: _AttackedStore) -> RosterDocument:
    rows = attacked.editor.rows(STORE_CHAIN)
    row = rows[len(rows) - 1]
    assert row.body is not None
    body: RosterBody = parse_body(Kind.ROSTER, parse_header(row.header).body, row.body)
    return body.roster


def _roster(attacked: _AttackedStore, document: RosterDocument, signer: str = "root") -> Record:
    """The next roster, well made and signed by whatever key."""
    rows = attacked.editor.rows(STORE_CHAIN)
    seq, data = len(rows), encode_body(RosterBody(salt=SALT, roster=document))
    header = msgspec.structs.replace(
        parse_header(rows[seq - 1].header),
        seq=seq,
        prev=link_hash(rows[seq - 1].header).hex(),
        skip=link_hash(rows[skip_seq(seq)].header).hex(),
        kind=Kind.ROSTER,
        roster=seq - 1,
        by=key(signer).key,
        body=hashlib.sha256(data).hexdigest(),
    )
    raw = encode_header(header)
    return Record(raw, seals(raw, key(signer)), data)


def _stranger() -> SimulatedAnchor:
    """The anchor of a machine that has never seen the store."""
    return SimulatedAnchor(MemoryAnchor(), closes=False)


# ---------------------------------------------------------------------- older rosters


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_store_chain_without_the_revocation_is_refused(
    revoked: _AttackedStore, left: int
) -> None:
    """The rosters that stopped and ended the key are deleted: the anchor has seen them."""
    rows = revoked.editor.rows(STORE_CHAIN)
    kept = {seq: row for seq, row in rows.items() if seq < left}
    changed = revoked.after(lambda: revoked.editor.put_rows(STORE_CHAIN, kept))

    assert changed == {"open": RolledBack}


def test_a_pin_that_knows_of_the_revocation_refuses_a_store_without_it(
    revoked: _AttackedStore,
) -> None:
    """On a machine whose anchor knows nothing, the pin names the least roster."""
    rows = revoked.editor.rows(STORE_CHAIN)
    revoked.editor.put_rows(STORE_CHAIN, {seq: row for seq, row in rows.items() if seq < 2})
    with (
        rooted(revoked.world, anchor=_stranger(), pin=pin(roster_seq_min=3)) as there,
        pytest.raises(RolledBack, match="expected roster 3 or later"),
    ):
        adopt_store_chain(there.core, "a new machine")


def _again(document: RosterDocument) -> RosterDocument:
    worker, *others = document.identities
    held = (*worker.keys, RosterKey("ed25519", str(key("worker").public)))
    return msgspec.structs.replace(
        document, identities=(msgspec.structs.replace(worker, keys=held), *others)
    )


def _uncut(document: RosterDocument) -> RosterDocument:
    return msgspec.structs.replace(document, cutoffs=())


def _moved(document: RosterDocument) -> RosterDocument:
    cuts = tuple(msgspec.structs.replace(each, positions="ab" * 32) for each in document.cutoffs)
    return msgspec.structs.replace(document, cutoffs=cuts)


@pytest.mark.parametrize(
    "change",
    [_again, _uncut, _moved, lambda document: _again(_uncut(document))],
    ids=["held again", "without its cut", "with another list", "as it was before"],
)
def test_not_even_the_root_brings_a_revoked_key_back(
    revoked: _AttackedStore, change: Callable[[RosterDocument], RosterDocument]
) -> None:
    """A roster that does is refused by everybody: a stolen root cannot undo what ended quietly."""
    record = _roster(revoked, change(_document(revoked)))
    changed = revoked.after(lambda: revoked.add_to_chain(record))

    assert changed == {"open": NotTrusted}


@pytest.mark.parametrize("signer", ["worker", "worker-2", "operator", "stranger"])
def test_nobody_else_brings_it_back(revoked: _AttackedStore, signer: str) -> None:
    """Nor does anybody who is not the root."""
    record = _roster(revoked, _document(revoked), signer)
    changed = revoked.after(lambda: revoked.add_to_chain(record))

    assert changed == {"open": NotTrusted}


def test_an_older_roster_as_the_newest_is_misplaced(revoked: _AttackedStore) -> None:
    """The bytes of the roster that still had the key, at the end of the chain."""
    older = revoked.editor.rows(STORE_CHAIN)[1]
    changed = revoked.after(lambda: revoked.add_to_chain(older))

    assert changed == {"open": Misplaced}


def test_a_replaced_root_signs_no_roster(attacked: _AttackedStore) -> None:
    """The old root was stolen after it was replaced: what it signs is refused."""
    root = Root(version=2, threshold=1, keys=[key("new-root").public])
    with rooted(attacked.world) as process:
        chain = process.core.renewed_trust()
        signers = [key("root"), key("new-root")]
        process.core.written(append_root(process.core, chain, root, signers))
    document = msgspec.structs.replace(
        attacked.world.open(None, read_only=True).core.trust().roster.document, restore_quorum=1
    )
    rows = attacked.editor.rows(STORE_CHAIN)
    record = _roster(attacked, document)
    header = msgspec.structs.replace(parse_header(record.header), roster=1)
    raw = encode_header(header)
    changed = attacked.after(
        lambda: attacked.add_to_chain(Record(raw, seals(raw, key("root")), record.body))
    )

    assert len(rows) == 3
    assert changed == {"open": NotTrusted}


# ---------------------------------------------------------------------- back-dated


_CLAIMS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "under the first roster": {"roster": 0},
    "long before": {"at": NOW - timedelta(days=900)},
    "under the newest roster": {"roster": 3},
}


@pytest.mark.parametrize("claims", _CLAIMS.values(), ids=_CLAIMS)
def test_a_revoked_key_adds_nothing(revoked: _AttackedStore, claims: dict[str, Any]) -> None:
    """Whatever roster and time it claims: its position is after the end."""
    record = revoked.checkpoint("a", "worker", **claims)
    changed = revoked.after(lambda: revoked.put("a", {5: record}))

    assert {read for read in changed if read.startswith("load a") or read == "history a"} == set(
        changed
    )
    assert set(changed.values()) == {NotTrusted}
    assert revoked.findings() == ["not-trusted"]
    revoked.put("a", {5: None})
    assert revoked.read()["load a"] is None


def test_a_revoked_key_begins_no_session(revoked: _AttackedStore) -> None:
    """A resume and a checkpoint of its own, as the worker that it was."""
    resume = revoked.forged(
        "a", Kind.RESUME, ResumeBody(salt=SALT, owner="worker", basis=4), "worker", fence=5
    )
    changed = revoked.after(lambda: revoked.put("a", {5: resume}))

    assert set(changed.values()) == {NotTrusted}


def test_a_revoked_key_adds_nothing_to_threads_of_the_new_one(revoked: _AttackedStore) -> None:
    """A thread that is in no list has nothing of it."""
    record = revoked.checkpoint("c", "worker", roster=3)
    changed = revoked.after(lambda: revoked.put("c", {3: record}))

    assert set(changed.values()) == {NotTrusted}
    assert "load c" in changed


def _planted(attacked: _AttackedStore, name: str) -> bytes:
    """A thread that the revoked key makes later, under the roster that still had it."""
    thread = bytes(range(100, 116))
    header = parse_header(attacked.rows("a")[0].header)
    data = encode_body(GenesisBody(salt=SALT, name=name, owner="worker"))
    raw = encode_header(
        msgspec.structs.replace(
            header, thread=thread.hex(), body=hashlib.sha256(data).hexdigest(), at=NOW
        )
    )
    storage = attacked.world.open("worker-2").storage.inner
    storage.append(thread, 0, [Record(raw, seals(raw, key("worker")), data)], blobs={})
    return thread


def test_a_revoked_key_begins_no_thread(revoked: _AttackedStore) -> None:
    """Nobody reads it, no operator is offered it, and none can adopt it."""
    thread = _planted(revoked, "planted")
    with rooted(revoked.world) as process:
        assert "planted" not in dict(unanchored_threads(process.core))
        with pytest.raises(NotTrusted, match="revoked key"):
            adopt_thread(process.core, "planted", thread, "mine now")
    with pytest.raises((Unanchored, NotTrusted, SealpointError)):
        revoked.world.open(None, read_only=True).thread("planted").load()
    assert "not-trusted" in revoked.findings()


@pytest.mark.parametrize("positions", [3, 4, 5])
def test_a_revoked_key_writes_no_other_past(revoked: _AttackedStore, positions: int) -> None:
    """For a machine whose anchor knows nothing: another history, all of it below the cut."""
    genuine = revoked.rows("a")
    revoked.put("a", {seq: None for seq in genuine if seq >= 3})
    for seq in range(3, positions):
        revoked.put("a", {seq: revoked.checkpoint("a", "worker", seq=seq, roster=1)})
    thread = revoked.thread("a")
    with rooted(revoked.world, anchor=_stranger()) as there:
        adopt_store_chain(there.core, "a new machine")
        with pytest.raises((RolledBack, Forked, NotTrusted)) as caught:
            adopt_thread(there.core, "a", thread, "a new machine")

    assert "revoked key" in str(caught.value)
    revoked.put("a", dict(genuine))
    with rooted(revoked.world, anchor=_stranger()) as there:
        adopt_store_chain(there.core, "a new machine")
        assert adopt_thread(there.core, "a", thread, "a new machine") == 5


def test_an_anchor_that_is_behind_takes_no_other_past_either(revoked: _AttackedStore) -> None:
    """After a power cut the anchor may know less than the cut: the cut is then what is known."""
    world = revoked.world
    position = world.position("a")
    assert position is not None
    behind = msgspec.structs.replace(position, seq=2, entry=link_hash(revoked.rows("a")[2].header))
    world.turn_anchor(world.slot("a"), behind)
    other = revoked.checkpoint("a", "worker", seq=3, roster=1)
    genuine = revoked.rows("a")
    revoked.put("a", {3: other, 4: None})
    for opened in (world.open(None, read_only=True), world.open("worker-2")):
        for _ in range(2):
            with pytest.raises(RolledBack, match="which the cutoff of a revoked key lists"):
                opened.thread("a").load()
    assert "rolled-back" in revoked.findings()
    assert world.position("a") == behind
    revoked.put("a", dict(genuine))

    assert world.open("worker-2").thread("a").load().ref == revoked.saved["a"][-1][0]


def test_an_expired_key_adds_nothing(attacked: _AttackedStore) -> None:
    """It claims an instant before it expired; the anchor has not seen it, so nobody can tell."""
    expire(attacked.world, "worker", attacked.world.clock + timedelta(hours=1))
    before = attacked.checkpoint("a", "worker", roster=1, at=NOW)
    attacked.world.clock += timedelta(hours=2)
    changed = attacked.after(lambda: attacked.put("a", {5: before}))

    assert set(changed.values()) == {NotTrusted}
    assert {"load a", "history a"} <= set(changed)
    assert "not-trusted" in attacked.findings()


def test_a_clock_that_is_set_back_revives_no_expired_key(attacked: _AttackedStore) -> None:
    """Another pod has written since: the thread's own time is later than the clock."""
    attacked.save("a", 3)
    expire(attacked.world, "worker", attacked.world.clock)
    late = attacked.checkpoint("a", "worker", roster=1)
    attacked.world.clock -= timedelta(days=30)
    changed = attacked.after(lambda: attacked.put("a", {6: late}))

    assert changed["load a"] is NotTrusted


# ---------------------------------------------------------------------- a stolen key


@pytest.mark.parametrize("count", [1, 10, 100])
def test_a_stolen_key_has_its_window_and_no_more(tmp_path: Path, count: int) -> None:
    """What it adds is believed and bears its name; the past is out of its reach, and it ends."""
    planned = AttackedStore.planned(tmp_path, "memory")
    attacked = _AttackedStore(planned.world, planned.editor)
    for number in range(3):
        attacked.save("a", number)
    for seq in range(5, 5 + count):
        attacked.put("a", {seq: attacked.checkpoint("a", "worker", seq=seq)})
    store = attacked.world.open("other")

    # Inside the window: attributable to the key, on top of a past that stands.
    assert store.thread("a").load().state == {"note": "bought"}
    history = list(store.thread("a").history())
    assert [ref.writer for ref in history] == ["worker"] * (count + 3)
    assert [ref.id for ref in history[count:]] == ["a-2", "a-1", "a-0"]
    past = attacked.rows("a")
    forged = attacked.checkpoint("a", "worker", seq=4)
    attacked.put("a", {4: forged})
    with pytest.raises(SealpointError):
        list(attacked.world.open("other").thread("a").history())
    attacked.put("a", {4: past[4]})
    # Ended: nothing more, whatever it claims.
    end(attacked.world, "worker", change=_NEW)
    last = 5 + count
    attacked.put("a", {last: attacked.checkpoint("a", "worker", seq=last)})
    with pytest.raises(NotTrusted, match="revoked key"):
        attacked.world.open("worker-2").thread("a").load()
    attacked.put("a", {last: None})
    renewed = attacked.world.open("worker-2").thread("a")
    assert renewed.load().state == {"note": "bought"}
    assert renewed.save({"note": "put right"}).seq == last + 1
    attacked.world.close()


def test_a_stolen_key_writes_no_other_thread(attacked: _AttackedStore) -> None:
    """Its scope is what the roster gives it: another writer's threads are not in it."""
    record = attacked.checkpoint("a", "other")
    changed = attacked.after(lambda: attacked.put("a", {5: record}))

    assert set(changed.values()) == {NotTrusted}


# ---------------------------------------------------------------------- sealed anew


def _resealed(row: Record, signer: str) -> Record:
    """The same header, with a seal by another key."""
    return Record(row.header, seals(row.header, key(signer)), row.body, row.payload)


def _renamed(row: Record, signer: str) -> Record:
    """The same header, with a seal by another key in the name of the one that it had."""
    (mine,) = parse_seals(seals(row.header, key(signer)))
    (old,) = parse_seals(row.seals)
    made = encode_seals([Seal(old.key, mine.signature)])
    return Record(row.header, made, row.body, row.payload)


def _resigned(row: Record, signer: str, **fields: Any) -> Record:
    """The same entry as another key would have written it."""
    header = msgspec.structs.replace(parse_header(row.header), by=key(signer).key, **fields)
    raw = encode_header(header)
    return Record(raw, seals(raw, key(signer)), row.body, row.payload)


@pytest.mark.parametrize("make", [_resealed, _renamed])
@pytest.mark.parametrize("seq", [2, 4])
def test_an_entry_sealed_by_the_newer_key_is_forged(
    revoked: _AttackedStore, make: Callable[[Record, str], Record], seq: int
) -> None:
    """The header says whose it is, and the newer key did not write it."""
    changed = revoked.after(
        lambda: revoked.put("a", {seq: make(revoked.rows("a")[seq], "worker-2")})
    )

    assert set(changed.values()) <= {Forged, Edited}
    assert f"load a-{seq - 2}" in changed


@pytest.mark.parametrize("seq", [0, 2, 4])
def test_an_entry_written_anew_by_the_newer_key_is_another(
    revoked: _AttackedStore, seq: int
) -> None:
    """Signed by a key in force, under its roster, at the old place: the links lead elsewhere."""
    again = _resigned(revoked.rows("a")[seq], "worker-2", roster=3)
    changed = revoked.after(lambda: revoked.put("a", {seq: again}))

    assert changed
    assert set(changed.values()) <= {Forked, Misplaced, NotTrusted, Edited}
    assert revoked.findings() != []


def test_a_whole_thread_written_anew_is_a_fork(revoked: _AttackedStore) -> None:
    """Every entry by the newer key, every link right: the anchor has seen the other one."""
    rows = revoked.rows("a")
    made: dict[int, Record] = {}
    for seq, row in rows.items():
        links = (
            {
                "prev": link_hash(made[seq - 1].header).hex(),
                "skip": link_hash(made[skip_seq(seq)].header).hex(),
            }
            if seq
            else {}
        )
        made[seq] = _resigned(row, "worker-2", roster=3, **links)
    changed = revoked.after(lambda: revoked.put("a", dict(made)))

    assert changed["load a"] is Forked
    assert set(changed.values()) == {Forked}


@pytest.mark.parametrize("fields", [{"epoch": 1}, {"gen": 1}], ids=["epoch", "generation"])
def test_an_old_entry_in_another_epoch_is_refused(
    revoked: _AttackedStore, fields: dict[str, Any]
) -> None:
    """By the newer key, as the next entry, in an epoch or generation that never began."""
    made = revoked.checkpoint("c", "worker-2", roster=3, **fields)
    changed = revoked.after(lambda: revoked.put("c", {3: made}))

    assert changed["load c"] in {Misplaced, NotTrusted}


# ---------------------------------------------------------------------- the lists


@pytest.fixture
def twice(revoked: _AttackedStore) -> _AttackedStore:
    """The same, where another key was revoked as well: there are two lists."""
    other = revoked.world.open("other")
    other.thread("o").save({"n": 1})
    end(revoked.world, "other")
    return revoked


def _lists(attacked: _AttackedStore) -> tuple[bytes, bytes]:
    one, two = (bytes.fromhex(each.positions) for each in _document(attacked).cutoffs)
    return one, two


def test_a_missing_list_refuses_what_its_key_signed(twice: _AttackedStore) -> None:
    """And nothing else: threads of the key in force are read as before."""
    one, _ = _lists(twice)
    blobs = twice.editor.blobs(STORE_CHAIN)
    del blobs[one]
    changed = twice.after(lambda: twice.editor.put_blobs(STORE_CHAIN, blobs))

    assert set(changed.values()) == {Missing}
    assert {"load a", "load b"} <= set(changed)
    assert "load c" not in changed
    assert "missing" in twice.findings()


def test_an_edited_list_is_refused(twice: _AttackedStore) -> None:
    """A later position for the key, in place of the listed one."""
    one, _ = _lists(twice)
    blobs = twice.editor.blobs(STORE_CHAIN)
    data = bytearray(blobs[one])
    data[23] += 1
    record = twice.checkpoint("a", "worker")

    def edit() -> None:
        twice.editor.put_blobs(STORE_CHAIN, {**blobs, one: bytes(data)})
        twice.put("a", {5: record})

    changed = twice.after(edit)

    assert set(changed.values()) == {Edited}
    assert {"load a", "load b"} <= set(changed)
    assert "edited" in twice.findings()


def test_swapped_lists_are_refused(twice: _AttackedStore) -> None:
    """Each list is genuine, and lies under the other's name."""
    one, two = _lists(twice)
    blobs = twice.editor.blobs(STORE_CHAIN)
    swapped = {**blobs, one: blobs[two], two: blobs[one]}
    changed = twice.after(lambda: twice.editor.put_blobs(STORE_CHAIN, swapped))

    assert set(changed.values()) == {Edited}
    assert "load c" not in changed


def test_the_lists_of_another_store_are_nothing_here(twice: _AttackedStore) -> None:
    """A list is named by its digest in a roster that the root signed for this store."""
    other = Deployment()
    other.open().thread("a").save(1)
    end(other, "worker", change=_NEW)
    foreign = [blob for (owner, _), blob in other.memory._blobs.items() if owner == STORE_CHAIN]
    one, _ = _lists(twice)
    blobs = twice.editor.blobs(STORE_CHAIN)
    changed = twice.after(lambda: twice.editor.put_blobs(STORE_CHAIN, {**blobs, one: foreign[0]}))
    other.close()

    assert set(changed.values()) == {Edited}
