# SPDX-License-Identifier: Apache-2.0
"""The frozen entries of the gate, our verifier and the second one: three that agree."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealpoint.errors import Missing, NotTrusted, SealpointError
from sealpoint.ledger import (
    Kind,
    Place,
    StoreChain,
    Tip,
    begin,
    encode_body,
    encode_header,
    extend,
    parse_body,
    parse_header,
    verify_entry,
)
from sealpoint.signing import TrustPin
from sealpoint.storage import Record
from tests.ledgers import StoreLedger
from tests.vectors import verifier
from tests.vectors.gate import gate_vectors
from tests.vectors.ledger import as_bytes
from tests.vectors.refusals import believed, ending_otherwise
from tests.vectors.release_verifier import verify_releases

_FILE = Path(__file__).parent / "gate.json"
_FROZEN = json.loads(_FILE.read_text(encoding="ascii"))
_PIN = TrustPin.parse(msgspec.json.format(msgspec.json.encode(_FROZEN["pin"]), indent=2) + b"\n")
_THREADS: dict[str, dict[str, Any]] = _FROZEN["threads"]
_REFUSED: list[dict[str, Any]] = _FROZEN["refused"]

Rows = list[verifier.Row]


def _rows(entries: list[dict[str, Any]]) -> Rows:
    return [
        (
            as_bytes(each["header"]),
            as_bytes(each["seals"]),
            None if each["body"] is None else as_bytes(each["body"]),
        )
        for each in entries
    ]


def _of(name: str, length: int | None = None) -> Rows:
    return _rows(_THREADS[name]["entries"][:length])


def _of_case(case: dict[str, Any]) -> Rows:
    return [*_of(case["thread"], case["after"]), *_rows([case])]


def _verify(name: str, rows: Rows) -> Tip:
    """As we do it: every entry on its own and as the next, and every body that must be there."""
    chain = StoreChain(_PIN)
    for raw, seals, body in _rows(_FROZEN["store_chain"]):
        chain = chain.extended(raw, seals, body)
    where = _THREADS[name]["place"]
    place = Place(_PIN.store.raw.hex(), where["namespace"], where["thread"])
    tip, first, headers = None, 0, []
    for seq, (raw, seals, body) in enumerate(rows):
        entry = verify_entry(raw, seals, place=place, seq=seq, chain=chain)
        tip = begin(entry, body, chain) if tip is None else extend(tip, entry, body, chain)
        headers.append(entry.header)
        first = seq if entry.header.kind is Kind.ERASE else first
    for header, (_, _, body) in list(zip(headers, rows, strict=True))[first:]:
        if body is None:
            raise Missing(f"entry {header.seq}: its body is missing")
        parse_body(header.kind, header.body, body)
    assert tip is not None
    tip.require_owner()
    return tip


def _policies_again() -> Iterator[tuple[str | None, dict[str, Any]]]:
    """What the second verifier says of every entry that lies about a change of policy."""
    frozen = _FROZEN["policy_changes"]
    trust = verifier.verify_store_chain(_FROZEN["pin"], _rows(frozen["store_chain"]))
    lists = {name: bytes.fromhex(data) for name, data in frozen["lists"].items()}
    for case in frozen["judged"]:
        yield verifier.policy_at(trust, lists, case), case


def _verify_again(name: str, rows: Rows) -> list[str]:
    """As the second verifier does it."""
    trust = verifier.verify_store_chain(_FROZEN["pin"], _rows(_FROZEN["store_chain"]))
    return verifier.verify_thread(_FROZEN["pin"], trust, _THREADS[name]["place"], rows)


def test_generator_yields_no_diff() -> None:
    """Generating them again gives the frozen file, byte by byte."""
    assert gate_vectors() == _FILE.read_text(encoding="ascii")


@pytest.mark.parametrize("name", _THREADS)
def test_both_verifiers_believe_a_genuine_thread(name: str) -> None:
    """Every beginning of each thread that has its bodies has the hashes that it says."""
    hashes = [entry["hash"] for entry in _THREADS[name]["entries"]]
    least = 8 if name == "erased" else 1
    for length in range(least, len(hashes) + 1):
        rows = _of(name, length)

        assert _verify(name, rows).entry.hash.hex() == hashes[length - 1]
        assert _verify_again(name, rows) == hashes[:length]


@pytest.mark.parametrize(
    ("name", "owner", "paused", "basis"),
    [
        ("paused", "worker", [3, 4, 5, 6], [0, 1, 2, 2, 2, 5, 5, 5, 8]),
        ("decided", "worker", [], [0, 1, *[2] * 7, 9, 10, 11]),
        ("handed off", "pods", [8, 9, 10], [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 10, 10, 12]),
    ],
)
def test_pause_basis_and_owner_are_as_they_were_made(
    name: str, owner: str, paused: list[int], basis: list[int]
) -> None:
    """After each entry, whether the thread is paused, and what a resume would go on from."""
    count = len(_THREADS[name]["entries"])
    tips = [_verify(name, _of(name, length)) for length in range(1, count + 1)]

    assert [tip.entry.seq for tip in tips if tip.paused is not None] == paused
    assert [tip.basis[0] for tip in tips] == basis
    assert tips[-1].fence.owner == owner


@pytest.mark.parametrize(
    ("name", "released"), [("paused", 0), ("decided", 1), ("handed off", 0), ("erased", 0)]
)
def test_a_resume_records_the_release_that_was_approved(name: str, released: int) -> None:
    """The second verifier makes it again from the entries; the statement binds the same."""
    bodies = [json.loads(body or b"{}") for _, _, body in _of(name)]
    recorded = [body["release"] for body in bodies if "release" in body]
    stated = [body["statement"]["release"] for body in bodies if "statement" in body]

    assert verify_releases(_of(name)) == len(recorded) == released
    assert set(stated) - {None} == set(recorded)


def test_both_verifiers_know_the_policy_that_judges_an_entry() -> None:
    """By its position, whatever roster it names; each policy judges some of the entries."""
    found = list(_policies_again())
    weak = [case for policy, case in found if policy == found[0][0]]

    assert all(policy == case["policy"] for policy, case in found)
    assert len({policy for policy, _ in found}) == 3
    assert 0 < len(weak) < len(found)


def test_a_change_of_policy_without_positions_is_refused_by_both() -> None:
    """Nothing would say which entries came before it."""
    frozen = _rows(_FROZEN["policy_changes"]["store_chain"])
    ledger = StoreLedger(_PIN)
    ledger.add(Record(*frozen[0]))
    raw, _, body = frozen[1]
    said = parse_body(Kind.ROSTER, parse_header(raw).body, body or b"")
    made = ledger.record(Kind.ROSTER, msgspec.structs.replace(said, positions=None), "root")
    with pytest.raises(NotTrusted, match="changes a policy without a list of positions"):
        ledger.add(made)
    with pytest.raises(verifier.FAULTS):
        verifier.verify_store_chain(
            _FROZEN["pin"], [frozen[0], (made.header, made.seals, made.body)]
        )


def test_an_erased_thread_without_its_erasure_is_refused() -> None:
    """Bodies that are gone are an alarm as soon as no entry accounts for them."""
    rows = _of("erased", 7)
    with pytest.raises(SealpointError) as caught:
        _verify("erased", rows)
    with pytest.raises(verifier.FAULTS):
        _verify_again("erased", rows)

    assert caught.value.code == "missing"


def test_our_verifier_refuses_with_the_code() -> None:
    """Each entry is refused with the error whose code its case names."""
    assert not ending_otherwise(_REFUSED, lambda case: _verify(case["thread"], _of_case(case)))


def test_second_verifier_refuses_as_well() -> None:
    """It believes none of them."""

    def verify_again(case: dict[str, Any]) -> None:
        _verify_again(case["thread"], _of_case(case))

    assert not believed(_REFUSED, verify_again, *verifier.FAULTS)


@pytest.mark.parametrize("name", _THREADS)
def test_genuine_entries_are_written_to_the_same_bytes(name: str) -> None:
    """Header and body each have one encoding."""
    for raw, _, body in _of(name):
        header = parse_header(raw)

        assert encode_header(header) == raw
        if body is not None:
            assert encode_body(parse_body(header.kind, header.body, body)) == body


def test_the_vectors_have_every_kind_and_error() -> None:
    """Those of the gate, and each name once."""
    threads = [entry for thread in _THREADS.values() for entry in thread["entries"]]
    kinds = {parse_header(as_bytes(entry["header"])).kind for entry in threads}
    names = [case["name"] for case in _REFUSED]

    assert kinds >= {
        *(Kind.HANDOFF, Kind.PAUSE, Kind.UNPAUSE, Kind.REQUEST, Kind.APPROVAL, Kind.DENIAL),
        *(Kind.EXPIRY, Kind.BREAK_GLASS),
    }
    assert len(set(names)) == len(names) >= 100
    assert {case["error"] for case in _REFUSED} == {"edited", "misplaced", "missing", "not-trusted"}
