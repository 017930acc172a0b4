# SPDX-License-Identifier: Apache-2.0
"""The frozen key changes: generated again without a diff, believed and refused as they say."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealpoint.errors import RolledBack, SealpointError
from sealpoint.ledger import (
    CutoffCheck,
    Place,
    PositionLists,
    StoreChain,
    Tip,
    begin,
    extend,
    verify_entry,
)
from sealpoint.signing import TrustPin
from sealpoint.storage import Record
from tests.vectors.key_changes import key_change_vectors
from tests.vectors.ledger import as_bytes

_FILE = Path(__file__).parent / "key_changes.json"
_FROZEN = json.loads(_FILE.read_text(encoding="ascii"))
_LIST = bytes.fromhex(_FROZEN["list"])
_PLACE = Place(**_FROZEN["place"])
_PIN = TrustPin.parse(msgspec.json.format(msgspec.json.encode(_FROZEN["pin"]), indent=2) + b"\n")


def _record(vector: dict[str, Any]) -> Record:
    return Record(*(as_bytes(vector[part]) for part in ("header", "seals", "body")))


_STORE_CHAIN = [_record(vector) for vector in _FROZEN["store_chain"]]
_THREAD = [_record(vector) for vector in _FROZEN["thread"]]


def _store_chain(records: list[Record]) -> StoreChain:
    lists = {hashlib.sha256(_LIST).digest(): _LIST}
    chain = StoreChain(_PIN, lists=PositionLists(lists.get))
    for record in records:
        chain = chain.extended(record.header, record.seals, record.body)
    return chain


def _thread(records: list[Record]) -> tuple[Tip, CutoffCheck]:
    chain, watch = _store_chain(_STORE_CHAIN), CutoffCheck()
    tip: Tip | None = None
    for seq, record in enumerate(records):
        entry = verify_entry(record.header, record.seals, place=_PLACE, seq=seq, chain=chain)
        watch.follow(entry, record.body, chain)
        if tip is None:
            tip = begin(entry, record.body, chain)
        else:
            tip = extend(tip, entry, record.body, chain)
    assert tip is not None
    return tip, watch


def test_generator_yields_no_diff() -> None:
    """Generating them again gives the frozen file, byte by byte."""
    assert key_change_vectors() == _FILE.read_text(encoding="ascii")


def test_the_genuine_chains_are_believed() -> None:
    """The new root, the cut, what the ended key wrote and what its successor did."""
    chain = _store_chain(_STORE_CHAIN)
    tip, watch = _thread(_THREAD)
    watch.require_settled("thread")

    assert (chain.root.version, chain.roster.seq, len(chain.roster.cutoffs)) == (2, 2, 1)
    assert [entry.hex() for entry in chain.hashes] == [
        vector["hash"] for vector in _FROZEN["store_chain"]
    ]
    assert tip.entry.hash.hex() == _FROZEN["thread"][-1]["hash"]
    assert str(_PIN.fingerprint()) == _FROZEN["fingerprint"]


def test_the_list_has_its_bytes() -> None:
    """One line: the thread, the position as eight bytes, the hash of the entry there."""
    assert (
        bytes.fromhex(_FROZEN["place"]["thread"])
        + bytes([0, 0, 0, 0, 0, 0, 0, 4])
        + bytes.fromhex(_FROZEN["thread"][4]["hash"])
    ) == _LIST


def test_a_thread_that_ends_before_the_list_is_rolled_back() -> None:
    """Each entry is genuine, and more was there."""
    _, watch = _thread(_THREAD[:4])

    with pytest.raises(RolledBack):
        watch.require_settled("thread")


@pytest.mark.parametrize(
    "case", _FROZEN["refused"], ids=[case["name"] for case in _FROZEN["refused"]]
)
def test_a_refused_vector_is_refused_with_its_code(case: dict[str, Any]) -> None:
    """The entries before it are genuine; it is not believed after them."""
    if case["chain"] == "store":
        _store_chain(_STORE_CHAIN[: case["after"]])
        with pytest.raises(SealpointError) as caught:
            _store_chain([*_STORE_CHAIN[: case["after"]], _record(case)])
    else:
        _thread(_THREAD[: case["after"]])
        with pytest.raises(SealpointError) as caught:
            _thread([*_THREAD[: case["after"]], _record(case)])

    assert caught.value.code == case["error"], caught.value
