# SPDX-License-Identifier: Apache-2.0
"""Results that are taken away, moved, edited, replayed or forged, and deletions undone."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

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
    Tampered,
)
from sealpoint.ledger import (
    Kind,
    PruneBody,
    ResultsBody,
    encode_body,
    encode_header,
    parse_body,
    parse_header,
)
from sealpoint.signing import Pool
from sealpoint.storage import Record
from sealpoint.store import Key
from tests.attacks.ledger.attacked_lanes import AttackedLanes
from tests.attacks.ledger.attacked_store import BACKENDS
from tests.ledgers import SALT
from tests.unit.store.laned import put, results

_PAYLOAD = Registry().encode(["bought", "yes, pay"])
_ROOT = hashlib.sha256(_PAYLOAD).hexdigest()


def _planned(folder: Path, backend: str) -> Iterator[AttackedLanes]:
    made = AttackedLanes.planned(folder, backend)
    assert isinstance(made, AttackedLanes)
    for name in ("a", "b"):
        made.fill(name)
    yield made
    made.world.remove()


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[AttackedLanes]:
    """Threads `a` and `b`, whose entries the class names, in memory."""
    yield from _planned(tmp_path, "memory")


@pytest.fixture(params=BACKENDS)
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AttackedLanes]:
    """The same on every backend."""
    yield from _planned(tmp_path, request.param)


def _errors(changed: dict[str, type[SealpointError]]) -> set[type[SealpointError]]:
    """Every way in which reads of `a` were refused; those of `b` must not have changed."""
    assert changed, "nobody noticed"
    assert not [read for read in changed if read.startswith("b ")], changed
    return set(changed.values())


def _body(row: Record) -> ResultsBody:
    header = parse_header(row.header)
    body: ResultsBody = parse_body(header.kind, header.body, row.body or b"")
    return body


def _with(row: Record, **parts: Any) -> Record:
    values = {"header": row.header, "seals": row.seals, "body": row.body, "payload": row.payload}
    return Record(**(values | parts))


def _bought(**fields: Any) -> ResultsBody:
    """Results of the attacker's own, for the newest checkpoint."""
    return msgspec.structs.replace(
        ResultsBody(salt=SALT, checkpoint="3", task="a", root=_ROOT, answers=True), **fields
    )


# ---------------------------------------------------------------------- taken away


@pytest.mark.parametrize("seq", [3, 4, 6, 8])
def test_results_that_are_deleted_are_missing(anywhere: AttackedLanes, seq: int) -> None:
    """The checkpoint is not shown without them: a task would run, and pay, a second time."""
    reads = {3: "a /1", 4: "a /1", 6: "a sub/1", 8: "a /2"}
    changed = anywhere.after(lambda: anywhere.put("a", {seq: None}))

    assert _errors(changed) == {Missing}
    assert reads[seq] in changed
    assert anywhere.findings() == ["missing"]


def test_the_newest_results_cannot_be_cut_off(anywhere: AttackedLanes) -> None:
    """The anchor has seen them."""
    changed = anywhere.after(lambda: anywhere.put("a", {10: None}))

    assert _errors(changed) == {RolledBack}
    assert "a  newest" in changed


def test_closing_the_gap_does_not_hide_it(attacked: AttackedLanes) -> None:
    """What comes after is moved up by one, so that nothing seems to be missing."""
    rows = attacked.rows("a")

    def edit() -> None:
        moved: dict[int, Record | None] = {seq: rows[seq + 1] for seq in range(3, 10)}
        attacked.put("a", {**moved, 10: None})

    assert _errors(attacked.after(edit)) <= {Misplaced, RolledBack, Forked}


@pytest.mark.parametrize("seq", [4, 10])
def test_a_payload_that_went_without_a_deletion_is_missing(
    attacked: AttackedLanes, seq: int
) -> None:
    """No entry gave it up."""
    changed = attacked.after(lambda: attacked.strip("a", seq, body=False))

    assert _errors(changed) == {Missing}
    assert attacked.findings() == ["missing"]


# ---------------------------------------------------------------------- moved


@pytest.mark.parametrize(("one", "two"), [(3, 4), (4, 8), (3, 6), (6, 7), (2, 3)])
def test_exchanged_entries_are_refused(anywhere: AttackedLanes, one: int, two: int) -> None:
    """Of one checkpoint, of two, of two lanes, and results with a checkpoint."""
    rows = anywhere.rows("a")
    changed = anywhere.after(lambda: anywhere.put("a", {one: rows[two], two: rows[one]}))

    assert _errors(changed) == {Misplaced}


@pytest.mark.parametrize(
    "change",
    [{"checkpoint": "3"}, {"lane": "sub"}, {"task": "b"}, {"answers": False}, {"path": "x"}],
    ids=lambda change: next(iter(change)),
)
def test_results_of_something_else_are_refused(
    attacked: AttackedLanes, change: dict[str, Any]
) -> None:
    """The body says whose they are, and its digest is signed: neither can be changed alone."""
    row = attacked.rows("a")[8]
    body = encode_body(msgspec.structs.replace(_body(row), **change))
    digest = hashlib.sha256(body).hexdigest()
    header = encode_header(msgspec.structs.replace(parse_header(row.header), body=digest))
    changed = attacked.after(lambda: attacked.put("a", {8: _with(row, body=body)}))
    assert _errors(changed) == {Edited}
    attacked.put("a", {8: row})
    changed = attacked.after(lambda: attacked.put("a", {8: _with(row, header=header, body=body)}))

    assert all(issubclass(error, Tampered) for error in _errors(changed))


@pytest.mark.parametrize("seq", [3, 8, 10])
def test_results_of_another_thread_are_refused(attacked: AttackedLanes, seq: int) -> None:
    """The same task of the same checkpoint, genuine in every way: the thread is signed."""
    row = attacked.rows("b")[seq]
    changed = attacked.after(lambda: attacked.put("a", {seq: row}))

    assert _errors(changed) <= {Misplaced, Forked}


@pytest.mark.parametrize("source", ["a", "b"])
def test_an_old_answer_is_not_given_again(anywhere: AttackedLanes, source: str) -> None:
    """Appended as if somebody had said yes once more, here or to another thread."""
    row = anywhere.rows(source)[8]
    changed = anywhere.after(lambda: anywhere.put("a", {11: row}))

    assert _errors(changed) == {Misplaced}
    assert "a  newest" in changed


# ---------------------------------------------------------------------- edited


@pytest.mark.parametrize("seq", [3, 8, 10])
@pytest.mark.parametrize("part", ["body", "payload"])
@pytest.mark.parametrize(
    "change", [lambda data: data[:-1], lambda data: data[:-2] + b"!!"], ids=["short", "other"]
)
def test_edited_results_are_refused(
    attacked: AttackedLanes, seq: int, part: str, change: Callable[[bytes], bytes]
) -> None:
    """What was written, or what is said about it."""
    row = attacked.rows("a")[seq]
    edited = _with(row, **{part: change(getattr(row, part))})
    changed = attacked.after(lambda: attacked.put("a", {seq: edited}))

    assert _errors(changed) == {Edited}


def test_a_payload_of_other_results_is_refused(attacked: AttackedLanes) -> None:
    """An answer's bytes are those that its signed body names."""
    rows = attacked.rows("a")
    changed = attacked.after(
        lambda: attacked.put("a", {10: _with(rows[10], payload=rows[8].payload)})
    )

    assert _errors(changed) == {Edited}


# ---------------------------------------------------------------------- forged


@pytest.mark.parametrize("seals", [b"", b"[]", b"null", b'[["",""]]'])
def test_results_without_a_signature_are_refused(attacked: AttackedLanes, seals: bytes) -> None:
    """Well made in every other way, and nobody signed them."""
    record = attacked.forged("a", Kind.RESULTS, _bought(), "worker")
    forged = _with(record, seals=seals, payload=_PAYLOAD)

    assert _errors(attacked.after(lambda: attacked.put("a", {11: forged}))) == {Edited}


def test_results_under_an_older_signature_are_refused(attacked: AttackedLanes) -> None:
    """The right key signed it, over another header."""
    record = attacked.forged("a", Kind.RESULTS, _bought(), "worker")
    forged = _with(record, seals=attacked.rows("a")[10].seals, payload=_PAYLOAD)

    assert _errors(attacked.after(lambda: attacked.put("a", {11: forged}))) == {Forged}


@pytest.mark.parametrize("signer", ["other", "operator", "officer", "stranger", "root"])
@pytest.mark.parametrize("answers", [False, True])
def test_results_by_another_key_are_refused(
    attacked: AttackedLanes, signer: str, *, answers: bool
) -> None:
    """Another writer, other roles, and nobody at all cannot say what a task did, or answer it."""
    record = attacked.forged("a", Kind.RESULTS, _bought(answers=answers), signer)
    changed = attacked.after(lambda: attacked.put("a", {11: _with(record, payload=_PAYLOAD)}))

    assert _errors(changed) == {NotTrusted}
    assert attacked.findings() == ["not-trusted"]


@pytest.mark.parametrize("fence", [0, 9, 11])
def test_results_outside_the_session_are_refused(attacked: AttackedLanes, fence: int) -> None:
    """Even with the owner's key: they name the session that is in force, and no other."""
    record = attacked.forged("a", Kind.RESULTS, _bought(), "worker", fence=fence)
    changed = attacked.after(lambda: attacked.put("a", {11: _with(record, payload=_PAYLOAD)}))

    assert _errors(changed) == {NotTrusted}


def test_another_owner_adds_nothing_to_a_session(attacked: AttackedLanes) -> None:
    """Of a pool that owns the thread, the member whose session it is writes, and nobody else."""
    pools = (Pool("crew", ("other", "worker")),)
    attacked.world.change(lambda document: msgspec.structs.replace(document, pools=pools))
    attacked.worker.core.renewed_trust()
    attacked.fill("c")
    roster = parse_header(attacked.rows("c")[10].header).roster
    record = attacked.forged("c", Kind.RESULTS, _bought(), "other", roster=roster)
    changed = attacked.after(lambda: attacked.put("c", {11: _with(record, payload=_PAYLOAD)}))

    assert set(changed.values()) == {NotTrusted}
    assert not [read for read in changed if not read.startswith("c ")]


def test_what_the_owner_s_session_adds_is_shown(anywhere: AttackedLanes) -> None:
    """The control of the forgeries: the same entry by the right key in the session is genuine."""
    record = anywhere.forged("a", Kind.RESULTS, _bought(), "worker", roster=1)
    anywhere.put("a", {11: _with(record, payload=_PAYLOAD)})
    found = anywhere.world.open(None, read_only=True).thread("a").adapter.snapshot()

    assert found is not None
    assert [each.value for each in found.results] == [["a", "last"], ["bought", "yes, pay"]]


# ---------------------------------------------------------------------- deletions undone


def test_a_deletion_that_is_cut_off_is_noticed(attacked: AttackedLanes) -> None:
    """The row of the newest entry is deleted, and what was deleted would be shown again."""
    rows = attacked.rows("a")
    attacked.delete("a", Key("", "1"))

    def edit() -> None:
        attacked.put("a", {11: None, **{seq: rows[seq] for seq in (2, 3, 4)}})

    assert _errors(attacked.after(edit)) == {RolledBack}


def test_a_deletion_that_is_taken_out_is_missing(anywhere: AttackedLanes) -> None:
    """Something was saved after it, and names it."""
    anywhere.delete("a", Key("", "1"))
    anywhere.write("a", put({"n": 4}, "4"))
    changed = anywhere.after(lambda: anywhere.put("a", {11: None}))

    assert _errors(changed) == {Missing}


def test_what_was_deleted_is_not_shown_though_its_bytes_are_back(anywhere: AttackedLanes) -> None:
    """From a backup: the signed entry decides, not whether there is something to show."""
    rows = anywhere.rows("a")
    anywhere.delete("a", Key("", "1"), Key("", "3"))
    anywhere.put("a", {seq: rows[seq] for seq in (2, 3, 4, 9, 10)})
    thread = anywhere.world.open(None, read_only=True).thread("a")

    assert thread.adapter.snapshot("", "1") is None
    assert thread.adapter.snapshot("", "3") is None
    assert [ref.id for ref in thread.adapter.snapshots("")] == ["2"]
    assert anywhere.read() == dict.fromkeys(anywhere.read())


def test_a_store_from_before_a_deletion_is_refused(anywhere: AttackedLanes) -> None:
    """All its files are put back as they were."""
    anywhere.leave()
    put_back = anywhere.editor.copied()
    anywhere.worker = anywhere.world.open()
    anywhere.delete("a", Key("", "1"))
    assert set(anywhere.read().values()) == {None}
    anywhere.leave()
    put_back()

    found = anywhere.read()
    assert {error for read, error in found.items() if read.startswith("a ")} == {RolledBack}
    assert {error for read, error in found.items() if read.startswith("b ")} == {None}


@pytest.mark.parametrize("signer", ["other", "operator", "officer", "stranger", "root"])
def test_a_deletion_by_another_key_is_refused(attacked: AttackedLanes, signer: str) -> None:
    """Who is not the owner deletes nothing, whichever role it has."""
    body = PruneBody(salt=SALT, before=0, deleted=((2, 4),))
    record = attacked.forged("a", Kind.DELETE, body, signer)

    def edit() -> None:
        attacked.put("a", {11: record})
        attacked.strip("a", 2, 3, 4, body=False)

    assert _errors(attacked.after(edit)) == {NotTrusted}


def test_a_deletion_of_what_is_yet_to_come_is_refused(attacked: AttackedLanes) -> None:
    """Even its owner cannot delete what will be saved."""
    body = PruneBody(salt=SALT, before=0, deleted=((2, 12),))
    record = attacked.forged("a", Kind.DELETE, body, "worker", roster=1)
    attacked.put("a", {11: record})

    assert set(attacked.findings()) == {"misplaced"}
    with pytest.raises(Misplaced):
        attacked.world.open().thread("a").adapter.snapshot()


def test_a_deletion_does_not_bring_back(attacked: AttackedLanes) -> None:
    """A later one that hides less is found: what is gone stays so."""
    rows = attacked.rows("a")
    attacked.delete("a", Key("", "1"))
    body = PruneBody(salt=SALT, before=0, deleted=((9, 10),))
    record = attacked.forged("a", Kind.DELETE, body, "worker", roster=1)
    attacked.put("a", {12: record, **{seq: rows[seq] for seq in (2, 3, 4)}})

    assert set(attacked.findings()) == {"misplaced"}


def test_a_prune_deletes_nothing(attacked: AttackedLanes) -> None:
    """What was deleted is said by a deletion alone, so that nobody hides one in the other."""
    body = PruneBody(salt=SALT, before=3, deleted=((3, 4),))
    record = attacked.forged("a", Kind.PRUNE, body, "worker", roster=1)
    attacked.put("a", {11: record})

    assert set(attacked.findings()) == {"misplaced"}


def test_results_that_came_early_cannot_be_taken_away(attacked: AttackedLanes) -> None:
    """Their checkpoint says where they begin, so their loss is noticed as any other."""
    attacked.truth["a"][Key("", "4")] = (None, [])
    attacked.write("a", results("early", "4"))
    attacked.truth["a"].pop(Key("", "4"))
    attacked.write("a", put({"n": 4}, "4"))
    attacked.truth["a"][Key("", "4")] = ({"n": 4}, ["early"])
    changed = attacked.after(lambda: attacked.put("a", {11: None}))

    assert _errors(changed) == {Missing}
    assert "a  newest" in changed
