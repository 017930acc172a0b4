# SPDX-License-Identifier: Apache-2.0
"""The frozen releases, ours, that of an audit and that of the second verifier: all agree."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from sealpoint.audit import verify_thread
from sealpoint.errors import Pruned
from sealpoint.ledger import Kind, parse_header
from sealpoint.storage import Record
from sealpoint.store import CheckpointRef, Release
from tests.vectors import verifier
from tests.vectors.frozen_store import frozen_core, frozen_record, frozen_thread, walk_thread
from tests.vectors.ledger import as_bytes
from tests.vectors.release_verifier import release_document, verify_releases
from tests.vectors.releases import release_vectors

_FILE = Path(__file__).parent / "releases.json"
_FROZEN = json.loads(_FILE.read_text(encoding="ascii"))
_THREADS: dict[str, dict[str, Any]] = _FROZEN["threads"]
_RELEASES: list[dict[str, Any]] = _FROZEN["releases"]

_every_release = pytest.mark.parametrize(
    "case",
    _RELEASES,
    ids=[f"{case['thread']}: {case['checkpoint']} after {case['after']}" for case in _RELEASES],
)


def _records(name: str, length: int | None = None) -> list[Record]:
    return [frozen_record(row) for row in _THREADS[name]["entries"][:length]]


def _of_case(case: dict[str, Any]) -> list[Record]:
    return _records(case["thread"], case["after"])


def _rows(records: list[Record]) -> list[verifier.Row]:
    return [(record.header, record.seals, record.body) for record in records]


def _ref(case: dict[str, Any]) -> CheckpointRef:
    """The checkpoint of a case, whether or not another one supersedes it."""
    entry = _THREADS[case["thread"]]["entries"][case["checkpoint"]]
    header = parse_header(as_bytes(entry["header"]))
    return CheckpointRef(
        id=json.loads(as_bytes(entry["body"]))["id"],
        seq=header.seq,
        time=header.at,
        writer="worker",
        metadata={},
        entry=entry["hash"],
    )


def _made_again(case: dict[str, Any]) -> Release | None:
    """The release as an audit makes it that has gone through the entries."""
    records = _of_case(case)
    log, tip = walk_thread(frozen_core(_FROZEN, records), records)
    entry = _THREADS[case["thread"]]["entries"][case["checkpoint"]]["hash"]
    return log.release(entry, tip.entry.header, tip)


def test_generator_yields_no_diff() -> None:
    """Generating them again gives the frozen file, byte by byte."""
    assert release_vectors() == _FILE.read_text(encoding="ascii")


@pytest.mark.parametrize("name", _THREADS)
def test_both_verifiers_believe_the_threads(name: str) -> None:
    """Every entry is genuine, and every resume records what lay there."""
    records = _records(name)
    trust = verifier.verify_store_chain(
        _FROZEN["pin"], _rows([frozen_record(row) for row in _FROZEN["store_chain"]])
    )
    place = _THREADS[name]["place"]
    hashes = verifier.verify_thread(_FROZEN["pin"], trust, place, _rows(records))
    verify_thread(frozen_core(_FROZEN, records), bytes.fromhex(place["thread"]))

    assert hashes == [entry["hash"] for entry in _THREADS[name]["entries"]]
    assert verify_releases(_rows(records)) == (2 if name == "deleted above" else 1)


@_every_release
def test_the_second_verifier_makes_the_document(case: dict[str, Any]) -> None:
    """From the entries alone, byte by byte; its digest is the release's."""
    document = release_document(_rows(_of_case(case)), case["checkpoint"])

    assert document.decode() == case["document"]
    assert hashlib.sha256(document).hexdigest() == case["digest"]


@_every_release
def test_a_reader_makes_the_same_release(case: dict[str, Any]) -> None:
    """From the head downwards; what it says beside the digest is what the document says."""
    thread = frozen_thread(_FROZEN, _of_case(case))
    found = thread.release(_ref(case))

    assert found.digest == case["digest"]
    assert _said(found) == json.loads(case["document"])
    if found.newest:
        assert thread.release() == found


@_every_release
def test_an_audit_makes_the_same_release(case: dict[str, Any]) -> None:
    """From the first entry upwards, with everything that came before."""
    found = _made_again(case)

    assert found is not None
    assert found == frozen_thread(_FROZEN, _of_case(case)).release(_ref(case))


def _said(release: Release) -> dict[str, Any]:
    """The fields of the document, as the release tells them."""
    told = release.as_dict()
    origin = told["origin"]
    return {
        "v": 1,
        "thread": release.thread,
        "gen": release.gen,
        "checkpoint": release.entry,
        **{name: told[name] for name in ("basis", "copied", "held", "newest", "world", "question")},
        "origin": origin and {**origin, "at": origin["at"].replace("+00:00", "Z")},
        "results": [each["entry"] for each in told["results"]],
        "lanes": [
            [each["lane"], each["entry"], [result["entry"] for result in each["results"]]]
            for each in told["lanes"]
        ],
        "deleted": [each["entry"] for each in told["deleted"]],
    }


@pytest.mark.parametrize("seq", [2, 4, 5, 6, 10])
def test_what_was_given_up_is_not_released(seq: int) -> None:
    """Pruned or deleted: no reader makes a release of it, and neither does an audit."""
    case = {"thread": "deleted above", "checkpoint": seq, "after": 14}
    with pytest.raises(Pruned):
        frozen_thread(_FROZEN, _of_case(case)).release(_ref(case))
    with pytest.raises(verifier.FAULTS):
        release_document(_rows(_of_case(case)), seq)

    assert _made_again(case) is None


def test_the_vectors_have_every_case() -> None:
    """Each field of a release has its default and something else, and each digest is one."""
    documents = [json.loads(case["document"]) for case in _RELEASES]
    kinds = {
        parse_header(as_bytes(entry["header"])).kind
        for thread in _THREADS.values()
        for entry in thread["entries"]
    }
    values: dict[str, set[str]] = {}
    for document in documents:
        for name, value in document.items():
            values.setdefault(name, set()).add(json.dumps(value))

    assert {name for name, found in values.items() if len(found) < 2} == {"v"}
    assert len({case["digest"] for case in _RELEASES}) >= len(_RELEASES) - 4
    assert kinds >= {Kind.HELD, Kind.RESULTS, Kind.DELETE, Kind.PRUNE, Kind.ERASE, Kind.HANDOFF}
