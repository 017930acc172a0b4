# SPDX-License-Identifier: Apache-2.0
"""The frozen lanes, results and deletions, our reader and the second one: three that agree."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealpoint.audit import verify_thread
from sealpoint.ledger import (
    Kind,
    encode_body,
    encode_header,
    parse_body,
    parse_header,
)
from sealpoint.storage import Record
from tests.vectors import decoder, verifier
from tests.vectors.frozen_store import frozen_core, frozen_record, frozen_thread
from tests.vectors.lanes import lane_vectors
from tests.vectors.lanes_verifier import gives_up, shown
from tests.vectors.ledger import as_bytes
from tests.vectors.refusals import believed, ending_otherwise
from tests.vectors.retention_verifier import verify_retained

_FILE = Path(__file__).parent / "lanes.json"
_FROZEN = json.loads(_FILE.read_text(encoding="ascii"))
_PLACE: dict[str, str] = _FROZEN["place"]
_ENTRIES: list[dict[str, Any]] = _FROZEN["entries"]
_SHOWN: list[dict[str, Any]] = _FROZEN["shown"]
_REFUSED: list[dict[str, Any]] = _FROZEN["refused"]
_THREAD = bytes.fromhex(_PLACE["thread"])

_every_shown = pytest.mark.parametrize("case", _SHOWN, ids=[str(case["after"]) for case in _SHOWN])


def _records(length: int | None = None) -> list[Record]:
    return [frozen_record(row) for row in _ENTRIES[:length]]


def _rows(records: list[Record]) -> list[verifier.Row]:
    return [(record.header, record.seals, record.body) for record in records]


def _swept(records: list[Record]) -> list[Record]:
    """The same without the payloads that the newest prune or deletion gave up."""
    living = verifier.living(_rows(records))
    newest = next((body for _, kind, body in reversed(living) if kind in {"prune", "hide"}), None)
    return [
        msgspec.structs.replace(record, payload=None) if gives_up(newest, seq) else record
        for seq, record in enumerate(records)
    ]


def _read(records: list[Record]) -> dict[str, list[list[Any]]]:
    """As we show it: every lane, the newest first, with the results of each."""
    thread, found = frozen_thread(_FROZEN, records), dict[str, list[list[Any]]]()
    for ref in thread.adapter.snapshots():
        snapshot = thread.adapter.snapshot(ref.lane, ref.id)
        assert snapshot is not None
        assert snapshot.state == {"step": ref.seq}
        assert all(each.value == {"step": each.ref.seq} for each in snapshot.results)
        results = [each.ref.seq for each in snapshot.results]
        found.setdefault(ref.lane, []).append([ref.id, ref.seq, results])
    return found


def _verify_again(records: list[Record]) -> list[str]:
    """As the second verifier does it, payloads included."""
    rows = _rows(records)
    trust = verifier.verify_store_chain(
        _FROZEN["pin"], _rows([frozen_record(row) for row in _FROZEN["store_chain"]])
    )
    hashes = verifier.verify_thread(_FROZEN["pin"], trust, _PLACE, rows)
    payloads = {
        seq: record.payload for seq, record in enumerate(records) if record.payload is not None
    }
    verify_retained(rows, payloads, {}, lambda _root, _blobs: None)
    return hashes


def test_generator_yields_no_diff() -> None:
    """Generating them again gives the frozen file, byte by byte."""
    assert lane_vectors() == _FILE.read_text(encoding="ascii")


@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("length", range(3, len(_ENTRIES) + 1))
def test_both_verifiers_believe_every_beginning(length: int, *, swept: bool) -> None:
    """With what was given up still there, and without it."""
    records = _swept(_records(length)) if swept else _records(length)
    verify_thread(frozen_core(_FROZEN, records), _THREAD)

    assert _verify_again(records) == [entry["hash"] for entry in _ENTRIES[:length]]


@pytest.mark.parametrize("swept", [False, True])
@_every_shown
def test_both_readers_show_the_same(case: dict[str, Any], *, swept: bool) -> None:
    """What the vector says, after so many entries: lanes, order and results."""
    records = _swept(_records(case["after"])) if swept else _records(case["after"])

    assert shown(verifier.living(_rows(records))) == case["lanes"]
    assert _read(records) == case["lanes"]


def test_a_checkpoint_that_was_held_back_is_shown_as_the_newest() -> None:
    """While the pause lasts, as what it is; saved once more it is so no longer."""
    held, again = (
        frozen_thread(_FROZEN, _records(length)).adapter.snapshot() for length in (12, 14)
    )

    assert held is not None
    assert again is not None
    assert (held.ref.id, held.ref.parent, held.state) == ("3", "2", {"step": 11})
    assert held.ref.held
    assert (again.ref.id, again.state, again.ref.held) == ("3", {"step": 13}, False)


def _with_case(case: dict[str, Any]) -> list[Record]:
    """A genuine beginning, and the entry that follows it."""
    return [*_records(case["after"]), frozen_record(case)]


def test_our_verifier_refuses_with_the_code() -> None:
    """Each entry is refused, after a genuine beginning, with the error whose code it names."""
    assert not ending_otherwise(
        _REFUSED, lambda case: verify_thread(frozen_core(_FROZEN, _with_case(case)), _THREAD)
    )


def test_second_verifier_refuses_as_well() -> None:
    """It believes what comes before, and none of them."""
    for length in {case["after"] for case in _REFUSED}:
        _verify_again(_records(length))
    faults = (*verifier.FAULTS, *decoder.FAULTS)

    assert not believed(_REFUSED, lambda case: _verify_again(_with_case(case)), *faults)


def test_genuine_entries_are_written_to_the_same_bytes() -> None:
    """Header and body each have one encoding."""
    for record in _records():
        header = parse_header(record.header)

        assert encode_header(header) == record.header
        assert encode_body(parse_body(header.kind, header.body, record.body or b"")) == record.body


def test_the_vectors_have_every_field_and_error() -> None:
    """Those of frameworks, and each name once."""
    kinds = {parse_header(as_bytes(entry["header"])).kind for entry in _ENTRIES}
    bodies = [json.loads(as_bytes(entry["body"])) for entry in _ENTRIES]
    names = [case["name"] for case in _REFUSED]

    assert kinds >= {Kind.RESULTS, Kind.DELETE, Kind.PRUNE, Kind.PAUSE, Kind.HELD}
    assert {
        *("lane", "again", "since", "origin", "path", "question", "answers", "hidden", "earlier"),
        "ids",
    } <= {name for body in bodies for name in body}
    assert len(set(names)) == len(names) >= 80
    assert {case["error"] for case in _REFUSED} == {"edited", "misplaced", "missing", "not-trusted"}
