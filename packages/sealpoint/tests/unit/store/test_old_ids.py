# SPDX-License-Identifier: Apache-2.0
"""An old id is found, and one that is not there is known to be free, without walking the thread."""

import hashlib
from collections.abc import Callable

import msgspec
import pytest

from sealpoint.errors import (
    Edited,
    Forged,
    IdReused,
    Missing,
    SealpointError,
    UnknownCheckpoint,
)
from sealpoint.ledger import (
    TABLE_EVERY,
    CheckpointBody,
    IdTable,
    Kind,
    encode_body,
    encode_header,
    id_print,
    parse_body,
    parse_header,
)
from sealpoint.signing import Role
from sealpoint.storage import Record
from sealpoint.store import CheckpointIndex, Key, SaveDraft
from tests.deployment import Deployment, Opened
from tests.ledgers import identity
from tests.unit.store.laned import check_verified, cold, put, results, saved

_LENGTH = 3 * TABLE_EVERY + 40
_PLACE = 2 * TABLE_EVERY
"""Where the table lies that tells of the first ids."""
_GROUP = 25


def _filled(world: Deployment, length: int = _LENGTH) -> Opened:
    """A thread of so many entries; the checkpoint at position n is called n."""
    store = world.open("worker")
    thread = store.thread("t")
    saved(thread, put(2, "2"))
    for first in range(3, length, _GROUP):
        saved(thread, *(put(seq, str(seq)) for seq in range(first, min(first + _GROUP, length))))
    return store


def _one_by_one(world: Deployment, length: int) -> Opened:
    store = world.open("worker")
    for seq in range(2, length):
        store.thread("t").save(seq, id=str(seq))
    return store


def _body(world: Deployment, seq: int) -> CheckpointBody:
    record = world.record("t", seq)
    header = parse_header(record.header)
    body: CheckpointBody = parse_body(header.kind, header.body, record.body or b"")
    return body


def _tables(world: Deployment, length: int) -> dict[int, tuple[int, int]]:
    """Where tables lie, and the stretch that each tells of."""
    tables = {seq: _body(world, seq).ids for seq in range(2, length)}
    return {
        seq: (table.first, table.ends_at()) for seq, table in tables.items() if table is not None
    }


@pytest.mark.parametrize("fill", [_filled, _one_by_one])
def test_every_stretch_of_positions_has_a_table(
    memory: Deployment, fill: Callable[[Deployment, int], Opened]
) -> None:
    """Its first checkpoint carries it; the second tells of the stretch of the first as well."""
    fill(memory, _LENGTH)

    assert _tables(memory, _LENGTH) == {
        TABLE_EVERY: (0, TABLE_EVERY),
        2 * TABLE_EVERY: (0, 2 * TABLE_EVERY),
        3 * TABLE_EVERY: (2 * TABLE_EVERY, 3 * TABLE_EVERY),
    }
    check_verified(memory)


def test_every_handle_gives_a_table_the_same_bytes(memory: Deployment) -> None:
    """Whoever writes it, having written all before or nothing, it says the same."""
    _filled(memory, 2 * TABLE_EVERY)
    memory.open("worker").thread("t").load()
    other = memory.open("worker").thread("t")
    other.load()
    other.save(0, id="other")
    place = 2 * TABLE_EVERY + 1  # after the resume of the other handle

    assert _body(memory, place).id == "other"
    table = _body(memory, place).ids
    assert table is not None
    names = [id_print("", str(seq)) for seq in range(2, 2 * TABLE_EVERY)]
    assert bytes.fromhex(table.prints) == b"".join([bytes(8), *names, bytes(4)])
    check_verified(memory)


@pytest.mark.parametrize("seq", [2, 3, 100, TABLE_EVERY, 2 * TABLE_EVERY - 1, 300, _LENGTH - 1])
def test_an_old_id_is_found_by_few_looks(memory: Deployment, seq: int) -> None:
    """A process that has seen nothing reads the newest stretch, some tables, and what it needs."""
    _filled(memory)
    store = memory.open(None, read_only=True)
    store.storage.notes_reads = True

    assert store.thread("t").load(str(seq)).state == seq
    assert len(store.storage.read_positions) < 2 * TABLE_EVERY


def test_an_unknown_id_is_known_to_be_free_by_few_looks(memory: Deployment) -> None:
    """The tables tell that it is nowhere, so a save under it need not look at every entry."""
    _filled(memory)
    store = memory.open("worker")
    store.storage.notes_reads = True
    with pytest.raises(UnknownCheckpoint):
        store.thread("t").load("nowhere")
    store.thread("t").save("new", id="nowhere")

    assert len(store.storage.read_positions) < 2 * TABLE_EVERY
    assert cold(memory).load("nowhere").state == "new"


def test_an_old_id_stays_taken(memory: Deployment) -> None:
    """The same state gives the same reference, and another one is refused."""
    _filled(memory)
    thread = memory.open("worker").thread("t")

    assert thread.save(5, id="5").seq == 5
    with pytest.raises(IdReused):
        thread.save(6, id="5")


def test_the_newest_of_a_name_counts(memory: Deployment) -> None:
    """A checkpoint that was put once more is found by its newest entry, in its own lane alone."""
    store = _filled(memory, 2 * TABLE_EVERY - 8)
    thread = store.thread("t")
    saved(thread, put("again", "7"), put("aside", "7", "lane"), results("r", "7"))
    saved(thread, *(put(seq, f"more {seq}") for seq in range(TABLE_EVERY)))
    found = cold(memory)

    assert found.load("7").state == "again"
    assert found.load("7").ref.seq == 2 * TABLE_EVERY - 8
    assert (aside := found.adapter.snapshot("lane", "7")) is not None
    assert aside.state == "aside"


def test_a_group_that_passes_a_boundary_has_its_table(memory: Deployment) -> None:
    """The first checkpoint of the stretch carries it wherever it lies in its group."""
    store = _filled(memory, TABLE_EVERY - 1)
    saved(store.thread("t"), put("a", "a"), results("r", "a"), put("b", "b"), put("c", "c"))

    assert _tables(memory, TABLE_EVERY) == {}
    assert _body(memory, TABLE_EVERY + 1).ids == IdTable(
        first=0,
        prints="0" * 16
        + "".join(id_print("", str(seq)).hex() for seq in range(2, TABLE_EVERY - 1))
        + id_print("", "a").hex()
        + "0" * 8,
    )
    assert _body(memory, TABLE_EVERY + 2).ids is None
    check_verified(memory)


def test_sessions_of_one_save_have_their_tables(memory: Deployment) -> None:
    """A boundary that a resume takes is told of by the checkpoint after it."""
    _filled(memory, TABLE_EVERY - 1)
    for number in range(TABLE_EVERY // 2 + 2):
        thread = memory.open("worker").thread("t")
        thread.load()
        thread.save(number, id=f"session {number}")
    rows = range(TABLE_EVERY, 2 * TABLE_EVERY + 3)
    kinds = {seq: parse_header(memory.record("t", seq).header).kind for seq in rows}
    saves = [seq for seq, kind in kinds.items() if kind is Kind.CHECKPOINT]

    assert kinds[2 * TABLE_EVERY] is not kinds[2 * TABLE_EVERY + 1]
    assert {seq for seq in saves if _body(memory, seq).ids is not None} == {
        min(seq for seq in saves if seq // TABLE_EVERY == number) for number in (1, 2)
    }
    check_verified(memory)


def test_a_table_outlives_the_state_beside_it(memory: Deployment) -> None:
    """What a prune gives up are states: the ids before it are found as before."""
    store = _filled(memory)
    store.thread("t").prune(keep_last=1)
    found = cold(memory)

    assert found.load(str(_LENGTH - 1)).state == _LENGTH - 1
    with pytest.raises(SealpointError, match="gave its state up"):
        found.load("5")
    with pytest.raises(UnknownCheckpoint):
        found.load("nowhere")


def test_a_group_that_begins_a_thread_may_be_longer_than_a_stretch(memory: Deployment) -> None:
    """Nothing was there to tell of when it was written; the next table tells of all of it."""
    thread = memory.open("worker").thread("t")
    saved(thread, *(put(seq, str(seq)) for seq in range(2, TABLE_EVERY + 20)))
    saved(thread, *(put(seq, str(seq)) for seq in range(TABLE_EVERY + 20, 2 * TABLE_EVERY + 1)))

    assert _tables(memory, 2 * TABLE_EVERY + 1) == {2 * TABLE_EVERY: (0, 2 * TABLE_EVERY)}
    assert cold(memory).load("5").state == 5
    check_verified(memory)


@pytest.mark.parametrize("length", [TABLE_EVERY - 1, TABLE_EVERY + 8])
def test_ids_of_an_erased_generation_are_free(memory: Deployment, length: int) -> None:
    """A table tells of its own generation alone, also where one begins with a stretch."""
    memory.enrol(identity("officer", Role.PRIVACY))
    _filled(memory, length)
    memory.open("officer").thread("t").erase(reason="as was asked for")
    thread = memory.open("worker").thread("t")
    with pytest.raises(SealpointError):
        thread.load()
    saved(thread, put(0, "first"), *(put(seq, f"new {seq}") for seq in range(2 * TABLE_EVERY)))
    found = cold(memory)

    assert found.load("new 3").state == 3
    assert found.load("first").state == 0
    with pytest.raises(UnknownCheckpoint):
        found.load("5")
    check_verified(memory)


def test_a_damaged_thread_goes_on_without_a_table(memory: Deployment) -> None:
    """A save needs nothing of what lies far below, and whoever looks there is told."""
    store = _filled(memory, TABLE_EVERY - 4)
    store.close()
    memory.put(memory.thread_id("t"), 9, None)
    thread = memory.open("worker").thread("t")
    thread.load()
    saved(thread, *(put(seq, f"more {seq}") for seq in range(16)))

    assert not any(_body(memory, seq).ids for seq in range(TABLE_EVERY, TABLE_EVERY + 8))
    with pytest.raises(Missing):
        cold(memory).load("5")


def test_a_body_without_room_for_a_table_has_none(memory: Deployment) -> None:
    """What the application says comes first, and the next checkpoint of the next stretch tells."""
    store = _filled(memory, TABLE_EVERY)
    large = {"text": "x" * ((1 << 20) - 600)}
    saved(store.thread("t"), SaveDraft(1, "large", None, large, None))
    saved(store.thread("t"), *(put(seq, f"more {seq}") for seq in range(TABLE_EVERY)))

    assert _body(memory, TABLE_EVERY).ids is None
    assert cold(memory).load("5").state == 5
    check_verified(memory)


# ------------------------------------------------------------------ a hostile store


def _prints(text: str, seq: int) -> str:
    """The digits of a table that begins at 0, without what it says of one position."""
    return text[: 8 * seq] + "0" * 8 + text[8 * seq + 8 :]


def _with_table(body: CheckpointBody, hidden: int) -> CheckpointBody:
    assert body.ids is not None
    table = IdTable(first=body.ids.first, prints=_prints(body.ids.prints, hidden))
    return msgspec.structs.replace(body, ids=table)


@pytest.mark.parametrize("also_header", [False, True])
def test_a_table_that_hides_an_id_is_refused(memory: Deployment, *, also_header: bool) -> None:
    """Neither the body alone nor a header that fits it can be changed behind the signature."""
    _filled(memory).close()
    record = memory.record("t", _PLACE)
    data, header = encode_body(_with_table(_body(memory, _PLACE), 5)), record.header
    if also_header:
        digest = hashlib.sha256(data).hexdigest()
        header = encode_header(msgspec.structs.replace(parse_header(header), body=digest))
    memory.put(memory.thread_id("t"), _PLACE, Record(header, record.seals, data, record.payload))
    for name in ("5", "nowhere"):
        with pytest.raises((Edited, Forged)):
            cold(memory).load(name)
    with pytest.raises((Edited, Forged)):
        memory.open("worker").thread("t").save("other", id="5")


def test_an_entry_that_a_table_names_is_missed(memory: Deployment) -> None:
    """Whoever deletes the checkpoint of an id does not make the id free."""
    _filled(memory).close()
    memory.put(memory.thread_id("t"), 5, None)
    with pytest.raises(Missing):
        cold(memory).load("5")
    with pytest.raises(Missing):
        memory.open("worker").thread("t").save("other", id="5")


def test_a_table_that_is_gone_is_missed(memory: Deployment) -> None:
    """Whoever deletes the checkpoint with the table hides nothing by that."""
    _filled(memory).close()
    memory.put(memory.thread_id("t"), _PLACE, None)
    for name in ("5", "nowhere"):
        with pytest.raises(Missing):
            cold(memory).load(name)


def test_a_table_signed_by_a_key_that_does_not_count_is_not_believed(memory: Deployment) -> None:
    """A seal of somebody else over the genuine bytes is found, although the links hold."""
    _filled(memory).close()
    record = memory.record("t", _PLACE)
    other = memory.record("t", _PLACE - 1)
    memory.put(memory.thread_id("t"), _PLACE, msgspec.structs.replace(record, seals=other.seals))
    with pytest.raises(Forged):
        cold(memory).load("5")


def test_ids_with_the_same_print_are_told_apart(
    memory: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four bytes may be those of several ids, or lie across two others: the entry decides."""
    prints = {"5": b"\x80\x81\x81\x81", "6": b"\x81\x81\x81\x80", "4": b"\x80\x80\x81\x81"}

    def print_of(_lane: str, name: str) -> bytes:
        return prints.get(name, b"\x81\x80\x80\x81" if int(name) % 2 else b"\x80\x81\x81\x81")

    for module in ("_checkpoint_index", "_thread_writer"):
        monkeypatch.setattr(f"sealpoint.store.{module}.id_print", print_of)
    store = _filled(memory, TABLE_EVERY + 4)
    index = CheckpointIndex(store.thread("t")._state.chain)

    for seq in range(2, TABLE_EVERY):
        found = index.find(Key("", str(seq)))
        assert found is not None
        assert found.seq == seq
    assert index.find(Key("", "9999")) is None
