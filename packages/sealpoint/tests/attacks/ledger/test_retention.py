# SPDX-License-Identifier: Apache-2.0
"""Prunes and erasures that nobody made, and guessing at what was erased."""

import hashlib
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sealpoint.codec import Registry
from sealpoint.errors import (
    Edited,
    Erased,
    Forged,
    Misplaced,
    Missing,
    NotTrusted,
    Pruned,
    RolledBack,
    SealpointError,
)
from sealpoint.ledger import EraseBody, Kind, PruneBody, encode_body, parse_header
from sealpoint.storage import Record
from sealpoint.store._names import label_of
from tests.attacks.ledger.attacked_store import ALL_BACKENDS, AttackedStore
from tests.ledgers import SALT


@pytest.fixture(params=ALL_BACKENDS)
def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AttackedStore]:
    """Threads `a` and `b` with checkpoints at the positions 2 to 5, on every backend."""
    made = AttackedStore.planned(tmp_path, request.param)
    for name in ("a", "b"):
        for number in range(4):
            made.save(name, number)
    yield made
    made.world.remove()


@pytest.fixture
def pruned(attacked: AttackedStore) -> AttackedStore:
    """The same, where `a` kept 4 and 5 by the prune at 6, went on at 7, and kept 5 and 7 at 8."""
    attacked.prune("a", keep_last=2)
    attacked.save("a", 4)
    attacked.prune("a", keep_last=2)
    return attacked


@pytest.fixture
def erased(attacked: AttackedStore) -> AttackedStore:
    """The same, where `a` was erased at 6."""
    attacked.erase("a")
    return attacked


def _errors(changed: dict[str, type[SealpointError]]) -> set[type[SealpointError]]:
    """Every way in which reads of `a` were refused; those of `b` must not have changed."""
    assert not [read for read in changed if " b" in read], changed
    return set(changed.values())


def _row(rows: dict[int, Record], seq: int, **parts: Any) -> Record:
    row = rows[seq]
    values = {"header": row.header, "seals": row.seals, "body": row.body, "payload": row.payload}
    return Record(**(values | parts))


# ---------------------------------------------------------------------- prune abuse


def test_payloads_that_went_without_a_prune_are_missing(attacked: AttackedStore) -> None:
    """The states of old checkpoints are deleted as a prune would, and no entry says so."""
    kept = attacked.editor.blobs(attacked.thread("a"))
    attacked.save("a", 4)
    newest = attacked.editor.blobs(attacked.thread("a")).keys() - kept.keys()
    thread = attacked.thread("a")

    def edit() -> None:
        blobs = attacked.editor.blobs(thread)
        attacked.editor.put_blobs(thread, {name: blobs[name] for name in newest})
        attacked.strip("a", 2, 3, 4, 5, body=False)

    changed = attacked.after(edit)

    assert _errors(changed) == {Missing}
    assert {f"load a-{number}" for number in range(4)} <= set(changed)
    assert attacked.findings() == ["missing"]


def test_entries_below_a_prune_may_not_go(pruned: AttackedStore) -> None:
    """A prune takes payloads: the chain is whole from its first entry on, whatever it says."""
    changed = pruned.after(lambda: pruned.put("a", dict.fromkeys(range(5))))

    assert changed["history a"] is Missing
    assert _errors(changed) == {Missing}
    assert pruned.findings() == ["missing"]


@pytest.mark.parametrize("signer", ["other", "operator", "officer", "stranger", "root"])
def test_a_prune_by_another_key_is_refused(attacked: AttackedStore, signer: str) -> None:
    """Another writer, other roles, and nobody at all give up the owner's states."""
    body = PruneBody(salt=SALT, before=5)
    record = attacked.forged("a", Kind.PRUNE, body, signer)

    def edit() -> None:
        attacked.put("a", {6: record})
        attacked.strip("a", 2, 3, 4, body=False)

    changed = attacked.after(edit)

    assert _errors(changed) == {NotTrusted}
    assert {"load a", "history a"} <= set(changed)
    assert attacked.findings() == ["not-trusted"]


def test_a_prune_of_what_is_yet_to_come_is_refused(attacked: AttackedStore) -> None:
    """Even the owner's key, in a thief's hand, gives up no state before it is there."""
    body = PruneBody(salt=SALT, before=1000, kept=(2, 3, 4, 5))
    record = attacked.forged("a", Kind.PRUNE, body, "worker")
    changed = attacked.after(lambda: attacked.put("a", {6: record}))

    assert _errors(changed) == {Misplaced}
    assert attacked.findings() == ["misplaced"]


def test_a_prune_without_a_signature_of_its_own_is_refused(attacked: AttackedStore) -> None:
    """The owner's seals of another entry do not fit it."""
    forged = attacked.forged("a", Kind.PRUNE, PruneBody(salt=SALT, before=5), "worker")
    record = Record(forged.header, attacked.rows("a")[5].seals, forged.body)

    assert _errors(attacked.after(lambda: attacked.put("a", {6: record}))) == {Forged}


@pytest.mark.parametrize("seq", [9, 8, 7])
def test_an_older_prune_cannot_be_replayed(pruned: AttackedStore, seq: int) -> None:
    """The owner's own earlier prune, after the newest entry, and in the place of newer ones."""
    rows = pruned.rows("a")
    changed = pruned.after(lambda: pruned.put("a", {seq: rows[6]}))

    assert _errors(changed) <= {Misplaced, Edited, Missing}
    assert changed["load a" if seq >= 8 else "history a"] is Misplaced
    assert pruned.findings() == ["misplaced"]


@pytest.mark.parametrize("seq", [6, 5])
def test_a_prune_of_another_thread_is_refused(attacked: AttackedStore, seq: int) -> None:
    """The same owner pruned another thread at the same position."""
    attacked.prune("b", keep_last=1)
    record = attacked.rows("b")[6]
    changed = attacked.after(lambda: attacked.put("a", {seq: record}))

    assert _errors(changed) == {Misplaced}
    assert "load a" in changed


def test_a_prune_cannot_be_made_to_say_something_else(pruned: AttackedStore) -> None:
    """Its body is bound by its header: a higher bound, a longer list, and none at all."""
    rows = pruned.rows("a")
    body = json.loads(rows[8].body or b"")
    for changes, error in (({"before": 8}, Edited), ({"kept": [2, 5]}, Edited), (None, Missing)):
        data = None if changes is None else json.dumps(body | changes).encode()
        row = _row(rows, 8, body=data)
        changed = pruned.after(lambda row=row: pruned.put("a", {8: row}))  # type: ignore[misc]
        assert changed["load a-3"] is error
        assert changed["history a"] is error
        assert pruned.findings() == [error.code]
        pruned.put("a", {8: rows[8]})


def test_what_was_pruned_does_not_come_back(attacked: AttackedStore) -> None:
    """The bytes are put back from an old copy: they are given up all the same."""
    thread = attacked.thread("a")
    rows, blobs = attacked.rows("a"), attacked.editor.blobs(thread)
    attacked.prune("a", keep_last=1)

    def edit() -> None:
        attacked.put("a", dict(rows))
        attacked.editor.put_blobs(thread, blobs)

    assert attacked.after(edit) == {}
    assert attacked.read()["load a-0"] is Pruned


def test_a_prune_cannot_be_undone_by_an_older_copy(pruned: AttackedStore) -> None:
    """The entry that records it is gone with what came after: the anchor knows of it."""
    changed = pruned.after(lambda: pruned.put("a", {8: None}))

    assert _errors(changed) == {RolledBack}
    assert pruned.findings() in (["rolled-back"], ["missing"])


# ---------------------------------------------------------------------- fake erasures


@pytest.mark.parametrize("signer", ["worker", "other", "operator", "elsewhere", "stranger", "root"])
def test_an_erasure_by_another_key_is_refused(attacked: AttackedStore, signer: str) -> None:
    """The owner, an operator, the officer of another namespace: no reader is told of an erasure."""
    record = attacked.forged("a", Kind.ERASE, EraseBody(salt=SALT, reason="x"), signer)

    def edit() -> None:
        attacked.put("a", {6: record})
        if signer != "worker":  # whose readers find everything still there
            attacked.strip("a", *range(6))
            attacked.editor.put_blobs(attacked.thread("a"), {})

    changed = attacked.after(edit)

    assert _errors(changed) == {NotTrusted}
    assert len(changed) == 6
    assert attacked.findings() == ["not-trusted"]
    with pytest.raises(NotTrusted):
        attacked.world.open().thread("a").save("anew")


@pytest.mark.parametrize("positions", [(5,), (2,), (0, 1), tuple(range(6))], ids=str)
def test_a_body_that_is_gone_is_no_erasure(
    attacked: AttackedStore, positions: tuple[int, ...]
) -> None:
    """Without the entry that records it, whatever needs the body finds it missing."""
    changed = attacked.after(lambda: attacked.strip("a", *positions))

    assert _errors(changed) <= {Missing}
    assert ("load a" in changed) == bool({0, 1, 5} & set(positions))
    assert ("history a" in changed) == bool({0, 1, 2, 5} & set(positions))
    assert attacked.findings() == ["missing"]
    with pytest.raises(SealpointError) as caught:
        attacked.world.open().thread("a").save("anew", id="a-0")
    assert caught.type is not Erased


def test_an_erasure_of_another_thread_is_refused(attacked: AttackedStore) -> None:
    """A genuine entry of the officer, written at the same position of another thread."""
    attacked.erase("b")
    record = attacked.rows("b")[6]

    def edit() -> None:
        attacked.strip("a", *range(6))
        attacked.put("a", {6: record})

    changed = attacked.after(edit)

    assert set(changed.values()) == {Misplaced}
    assert attacked.findings() == ["misplaced"]


@pytest.mark.parametrize("seq", [10, 9])
def test_an_older_erasure_cannot_be_replayed(erased: AttackedStore, seq: int) -> None:
    """The thread began anew; its first erasure is put after it, and over its newest entry."""
    record = erased.rows("a")[6]
    erased.save("a", 4)
    changed = erased.after(lambda: erased.put("a", {seq: record}))

    assert set(changed.values()) == {Misplaced}
    assert {"load a", "load a-4"} <= set(changed)


def test_what_was_erased_does_not_come_back(attacked: AttackedStore) -> None:
    """Bodies, payloads and blobs are put back from an old copy: it is erased all the same."""
    thread = attacked.thread("a")
    rows, blobs = attacked.rows("a"), attacked.editor.blobs(thread)
    attacked.erase("a")

    def edit() -> None:
        attacked.put("a", dict(rows))
        attacked.editor.put_blobs(thread, {**attacked.editor.blobs(thread), **blobs})

    for number in (4, 5):
        assert attacked.after(edit) == {}
        found = attacked.read()
        assert {found[f"load a-{each}"] for each in range(4)} == {Erased}
        assert attacked.findings() == []
        attacked.world.open().gc()
        assert all(attacked.rows("a")[seq].body is None for seq in range(6))
        attacked.save("a", number)


def test_an_erasure_cannot_be_undone_by_an_older_copy(attacked: AttackedStore) -> None:
    """The whole store as it was before: the anchor knows that there was more."""
    attacked.leave()
    put_back = attacked.editor.copied()
    attacked.erase("a")

    def edit() -> None:
        attacked.leave()
        put_back()

    changed = attacked.after(edit)

    assert _errors(changed) == {RolledBack}
    assert len(changed) == 6
    assert attacked.findings() == ["rolled-back"]


def test_an_erasure_cannot_be_taken_out(erased: AttackedStore) -> None:
    """As the newest entry it is known to the anchor, later the links lead through it."""
    record = erased.rows("a")[6]
    changed = erased.after(lambda: erased.put("a", {6: None}))
    assert _errors(changed) == {RolledBack}
    erased.put("a", {6: record})
    erased.save("a", 4)
    changed = erased.after(lambda: erased.put("a", {6: None}))

    assert changed["history a"] is changed["load a"] is Missing
    assert erased.findings() == ["missing"]


# ---------------------------------------------------------------------- guessing

_ANSWERS = ("yes", "no")
_MARKS = ("patient-4711", "diagnosis-open", "ward-seven", "was-asked")


def _blobs(state: Any) -> list[bytes]:
    """The blobs of a small state, the root last."""
    found: list[bytes] = []

    def put(blob: bytes) -> bytes:
        found.append(blob)
        return hashlib.sha256(blob).digest()

    Registry().encode_tree(state, put)
    return found


def _guesses() -> Iterator[bytes]:
    """What somebody would hash who knows everything but the answer."""
    for answer in _ANSWERS:
        blobs = _blobs(answer)
        yield from (answer.encode(), json.dumps(answer).encode(), Registry().encode(answer))
        yield from blobs
        digest = hashlib.sha256(blobs[-1]).hexdigest()
        for salt in ("", "00" * 32, SALT):
            fields = {"salt": salt, "id": _MARKS[0], "root": digest}
            yield json.dumps(fields, separators=(",", ":")).encode()
            fields["metadata"] = {"answer": answer}  # type: ignore[assignment]
            yield json.dumps(fields, separators=(",", ":")).encode()


def _hidden(attacked: AttackedStore, name: str) -> set[bytes]:
    """Everything that would let a guess be tested, as bytes and as digits."""
    rows, found = attacked.rows(name), set[bytes]()
    for row in rows.values():
        assert row.body is not None
        body = json.loads(row.body)
        assert hashlib.sha256(row.body).hexdigest() == parse_header(row.header).body
        found |= {body["salt"].encode(), bytes.fromhex(body["salt"]), row.body}
        if "root" in body:
            found |= {body["root"].encode(), bytes.fromhex(body["root"])}
    for digest, blob in attacked.editor.blobs(attacked.thread(name)).items():
        found |= {digest, digest.hex().encode(), blob}
    label = label_of(attacked.world.pin.store.raw, "default", name)
    return found | {mark.encode() for mark in _MARKS} | {label, label.hex().encode()}


@pytest.mark.parametrize("answer", _ANSWERS)
def test_an_erased_answer_cannot_be_guessed(attacked: AttackedStore, answer: str) -> None:
    """Yes or no, in a thread whose name, metadata and world are known to the guesser."""
    name = _MARKS[1]
    thread = attacked.worker.thread(name)
    for number in range(3):
        thread.save(
            answer,
            id=f"{_MARKS[0]}-{number}",
            metadata={"answer": answer, "of": _MARKS[2]},
            world={"why": _MARKS[3]},
        )
    attacked.saved[name] = []
    hidden = _hidden(attacked, name)
    before = attacked.editor.raw()
    salts = [part for part in hidden if len(part) == 64]
    visible = {part for part in hidden if part in before}
    attacked.world.open("officer").thread(name).erase(reason="as was asked for")
    while_open = attacked.editor.raw()
    attacked.leave()
    after = attacked.editor.raw()

    assert salts
    assert len(visible) > len(hidden) // 2, "they could be found before"
    for part in hidden:
        assert part not in while_open, "still in the store"
        assert part not in after, "still in the store"
    remaining = {
        bytes.fromhex(value)
        for row in attacked.rows(name).values()
        for value in json.loads(row.header).values()
        if isinstance(value, str) and len(value) == 64
    }
    assert len(remaining) > 6
    for guess in _guesses():
        digest = hashlib.sha256(guess).digest()
        assert digest not in remaining
        assert digest not in after
        assert digest.hex().encode() not in after


def test_a_guess_could_be_tested_while_the_salt_is_there(attacked: AttackedStore) -> None:
    """The control: with the salt, which only an erasure takes away, a guess is confirmed."""
    attacked.worker.thread("c").save("yes", id="answer")
    row = attacked.rows("c")[2]
    body = json.loads(row.body or b"")
    found = []
    for answer in _ANSWERS:
        guess = body | {"root": hashlib.sha256(_blobs(answer)[-1]).hexdigest()}
        data = json.dumps(guess, separators=(",", ":")).encode()
        if hashlib.sha256(data).hexdigest() == parse_header(row.header).body:
            found.append(answer)

    assert found == ["yes"]


def test_two_erasures_of_the_same_text_leave_nothing_alike(attacked: AttackedStore) -> None:
    """Salts make equal bodies different: what remains does not tell which threads agreed."""
    digests: list[str] = []
    for name, call in product(("c", "d"), range(2)):
        attacked.worker.thread(name).save("yes", id=f"answer-{call}")
    for name in ("c", "d"):
        attacked.world.open("officer").thread(name).erase(reason="x")
        digests += [parse_header(row.header).body for row in attacked.rows(name).values()]

    assert len(set(digests)) == len(digests) == 10
    body = encode_body(EraseBody(salt=SALT, reason="x"))
    assert hashlib.sha256(body).hexdigest() not in digests
