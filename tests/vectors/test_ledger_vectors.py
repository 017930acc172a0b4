# SPDX-License-Identifier: Apache-2.0
"""The frozen chains, our verifier and the second one: three that must agree."""

import ast
import json
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from sealpoint.errors import SealpointError
from sealpoint.ledger import (
    Kind,
    Place,
    StoreChain,
    Tip,
    begin,
    encode_body,
    encode_header,
    extend,
    link_hash,
    parse_body,
    parse_header,
    verify_entry,
)
from sealpoint.signing import Root, TrustPin, encode_seals, parse_seals
from sealpoint.signing._keys import PublicKey
from sealpoint.storage import Record
from tests.ledgers import STORE
from tests.vectors import (
    gate_verifier,
    lanes_verifier,
    passkey_verifier,
    reading,
    release_verifier,
    retention_verifier,
    roster_verifier,
    verifier,
)
from tests.vectors.ledger import as_bytes, ledger_vectors
from tests.vectors.refusals import believed, ending_otherwise

_FOLDER = Path(__file__).parent
_FROZEN = json.loads((_FOLDER / "ledger.json").read_text(encoding="ascii"))
_REFUSED: list[dict[str, Any]] = _FROZEN["refused"]


def _record(vector: dict[str, Any]) -> Record:
    body = vector["body"]
    return Record(
        as_bytes(vector["header"]),
        as_bytes(vector["seals"]),
        None if body is None else as_bytes(body),
    )


_STORE_CHAIN = [_record(vector) for vector in _FROZEN["store_chain"]]
_THREAD = [_record(vector) for vector in _FROZEN["thread"]]


def _pin() -> TrustPin:
    root = _FROZEN["pin"]["root"]
    keys = [PublicKey.parse(key) for key in root["keys"]]
    return TrustPin(
        store=STORE, root=Root(version=root["version"], threshold=root["threshold"], keys=keys)
    )


def _store_chain(records: list[Record]) -> StoreChain:
    chain = StoreChain(_pin())
    for record in records:
        chain = chain.extended(record.header, record.seals, record.body)
    return chain


@cache
def _genuine() -> StoreChain:
    return _store_chain(_STORE_CHAIN)


def _thread(records: list[Record]) -> Tip | None:
    chain = _genuine()
    place = Place(STORE.raw.hex(), _FROZEN["place"]["namespace"], _FROZEN["place"]["thread"])
    tip: Tip | None = None
    for seq, record in enumerate(records):
        entry = verify_entry(record.header, record.seals, place=place, seq=seq, chain=chain)
        if tip is None:
            tip = begin(entry, record.body or b"", chain)
        else:
            tip = extend(tip, entry, record.body, chain)
        parse_body(entry.header.kind, entry.header.body, record.body or b"")
    return tip


def _rows(records: list[Record]) -> list[verifier.Row]:
    return [(record.header, record.seals, record.body or b"") for record in records]


def _chain(case: dict[str, Any]) -> list[Record]:
    """The genuine entries before a refused one, and it."""
    genuine = _STORE_CHAIN if case["chain"] == "store" else _THREAD
    return [*genuine[: case["after"]], _record(case)]


def test_generator_yields_no_diff() -> None:
    """Generating the chains again gives the frozen file, byte by byte."""
    frozen = (_FOLDER / "ledger.json").read_text(encoding="ascii")

    assert ledger_vectors() == frozen


def test_our_verifier_believes_the_genuine_chains() -> None:
    """Every entry has the hash that the vector says, and the last ones are the tips."""
    chain, tip = _store_chain(_STORE_CHAIN), _thread(_THREAD)

    assert [entry.hex() for entry in chain.hashes] == [
        vector["hash"] for vector in _FROZEN["store_chain"]
    ]
    assert [roster.seq for roster in chain.rosters] == [0, 2]
    assert tip is not None
    assert tip.entry.hash.hex() == _FROZEN["thread"][-1]["hash"]
    assert (tip.entry.seq, tip.fence.seq, tip.fence.owner) == (20, 16, "worker")


def test_second_verifier_believes_the_genuine_chains() -> None:
    """A verifier written from the specification alone gives the same hashes."""
    trust = verifier.verify_store_chain(_FROZEN["pin"], _rows(_STORE_CHAIN))
    hashes = verifier.verify_thread(_FROZEN["pin"], trust, _FROZEN["place"], _rows(_THREAD))

    assert list(trust.rosters) == [0, 2]
    assert hashes == [vector["hash"] for vector in _FROZEN["thread"]]


def _first(chain: str, records: list[Record]) -> None:
    (_store_chain if chain == "store" else _thread)(records)


def test_our_verifier_refuses_with_the_code() -> None:
    """What a vector says is refused is refused, with the error whose code it names."""
    for case in _REFUSED:
        _first(case["chain"], _chain(case)[:-1])

    assert not ending_otherwise(_REFUSED, lambda case: _first(case["chain"], _chain(case)))


def test_second_verifier_refuses_as_well() -> None:
    """The second verifier believes none of them either, on whichever chain they are."""

    def second(case: dict[str, Any]) -> None:
        _second(case["chain"], _rows(_chain(case)))

    assert not believed(_REFUSED, second, *verifier.FAULTS)


def _second(chain: str, rows: list[verifier.Row]) -> None:
    if chain == "store":
        verifier.verify_store_chain(_FROZEN["pin"], rows)
        return
    trust = verifier.verify_store_chain(_FROZEN["pin"], _rows(_STORE_CHAIN))
    verifier.verify_thread(_FROZEN["pin"], trust, _FROZEN["place"], rows)


@pytest.mark.parametrize("part", ["header", "seals", "body"])
def test_verifiers_agree_on_every_changed_byte(part: str) -> None:
    """Each byte of an entry is changed in turn: neither verifier believes the result."""
    first, second = _THREAD[:2]
    data: bytes = getattr(second, part)
    trust = verifier.verify_store_chain(_FROZEN["pin"], _rows(_STORE_CHAIN))
    for place in range(len(data)):
        changed = data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
        records = [first, msgspec.structs.replace(second, **{part: changed})]
        with pytest.raises(SealpointError):
            _thread(records)
        with pytest.raises(verifier.FAULTS):
            verifier.verify_thread(_FROZEN["pin"], trust, _FROZEN["place"], _rows(records))


@pytest.mark.parametrize("record", [*_STORE_CHAIN, *_THREAD])
def test_genuine_entries_are_written_to_the_same_bytes(record: Record) -> None:
    """Header, seals and body each have one encoding."""
    header = parse_header(record.header)
    body = parse_body(header.kind, header.body, record.body or b"")

    assert encode_header(header) == record.header
    assert encode_body(body) == record.body
    assert encode_seals(parse_seals(record.seals)) == record.seals
    assert link_hash(record.header).hex() in {
        vector["hash"] for vector in (*_FROZEN["store_chain"], *_FROZEN["thread"])
    }


def test_every_judged_kind_and_error_has_a_vector() -> None:
    """No kind that is judged and no error of a chain is without a vector."""
    kinds = {parse_header(record.header).kind for record in (*_STORE_CHAIN, *_THREAD)}
    names = [(case["chain"], case["name"]) for case in _REFUSED]

    assert kinds == {Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT, Kind.ADOPT, Kind.ROSTER}
    assert {case["error"] for case in _REFUSED} == {"edited", "forged", "misplaced", "not-trusted"}
    assert len(set(names)) == len(names) >= 40


_SECOND = (
    *(verifier, retention_verifier, gate_verifier, lanes_verifier, release_verifier),
    *(passkey_verifier, roster_verifier, reading),
)


@pytest.mark.parametrize("module", _SECOND)
def test_second_verifier_is_short_and_stands_alone(module: ModuleType) -> None:
    """Files of up to 350 lines that import the standard library, `cryptography` and each other."""
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    imported: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
    imported -= {"tests.vectors", *(each.__name__ for each in _SECOND)}

    assert len(text.splitlines()) <= 370
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names) | {
        "cryptography"
    }
