# SPDX-License-Identifier: Apache-2.0
"""The frozen passkeys, our verifier and the second one: three that agree."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealpoint.errors import Forged, NotTrusted
from sealpoint.ledger import Kind, Place, StoreChain, Tip, begin, extend, parse_header, verify_entry
from sealpoint.signing import Passkey, TrustPin
from tests.vectors import verifier
from tests.vectors.ledger import as_bytes
from tests.vectors.passkeys import passkey_vectors
from tests.vectors.refusals import believed

_FILE = Path(__file__).parent / "passkeys.json"
_FROZEN = json.loads(_FILE.read_text(encoding="ascii"))
_PIN = TrustPin.parse(msgspec.json.format(msgspec.json.encode(_FROZEN["pin"]), indent=2) + b"\n")
_PLACE = Place(**_FROZEN["place"])
_REFUSED: list[dict[str, Any]] = _FROZEN["refused"]
_SECOND_PLACE = {"namespace": _PLACE.ns, "thread": _PLACE.thread}

Rows = list[verifier.Row]


def _rows(entries: list[dict[str, Any]]) -> Rows:
    return [
        (as_bytes(each["header"]), as_bytes(each["seals"]), as_bytes(each["body"]))
        for each in entries
    ]


def _chains(case: dict[str, Any] | None = None) -> tuple[Rows, Rows]:
    """The store chain and the thread, or one of them with a case in the place of its next entry."""
    store, thread = _rows(_FROZEN["store_chain"]), _rows(_FROZEN["thread"])
    if case is None:
        return store, thread
    after, made = case["after"], _rows([case])
    if case["chain"] == "store":
        return [*store[:after], *made], []
    return store, [*thread[:after], *made]


def _verify(store: Rows, thread: Rows) -> list[str]:
    """As we do it: the hashes of the thread."""
    chain, tip, hashes = StoreChain(_PIN), None, []
    for raw, seals, body in store:
        chain = chain.extended(raw, seals, body)
    for seq, (raw, seals, body) in enumerate(thread):
        entry = verify_entry(raw, seals, place=_PLACE, seq=seq, chain=chain)
        found: Tip = begin(entry, body, chain) if tip is None else extend(tip, entry, body, chain)
        tip = found
        hashes.append(entry.hash.hex())
    return hashes


def _verify_again(store: Rows, thread: Rows) -> list[str]:
    """As the second verifier does it."""
    trust = verifier.verify_store_chain(_FROZEN["pin"], store)
    return verifier.verify_thread(_FROZEN["pin"], trust, _SECOND_PLACE, thread) if thread else []


def test_generator_yields_no_diff() -> None:
    """Generating them again gives the frozen file, byte by byte."""
    assert passkey_vectors() == _FILE.read_text(encoding="ascii")


def test_both_verifiers_believe_what_was_said_with_passkeys() -> None:
    """A handoff by each algorithm, and the hashes that the file has."""
    hashes = [entry["hash"] for entry in _FROZEN["thread"]]

    assert _verify(*_chains()) == _verify_again(*_chains()) == hashes


def test_our_verifier_refuses_them() -> None:
    """Nobody of the roster had a right to write these, or they were not signed."""
    assert not believed(_REFUSED, lambda case: _verify(*_chains(case)), NotTrusted, Forged)


def test_the_second_verifier_refuses_them() -> None:
    """It believes none of them."""
    assert not believed(_REFUSED, lambda case: _verify_again(*_chains(case)), *verifier.FAULTS)


@pytest.mark.parametrize("name", ["es256", "eddsa", "rs256"])
def test_an_enrolment_is_read_as_it_was_frozen(name: str) -> None:
    """The document gives the passkey with the id that the file has, and is written again."""
    data = _FROZEN["enrolments"][name].encode()
    passkey = Passkey.parse(data)

    assert passkey.encode() == data
    assert (passkey.algorithm, passkey.id.raw.hex()) == (name, _FROZEN["ids"][name])


def test_the_vectors_try_every_kind() -> None:
    """There is no kind of entry that a passkey was not seen to be refused for."""
    by = _FROZEN["ids"]["eddsa"]
    headers = [parse_header(as_bytes(case["header"])) for case in _REFUSED]
    signed = {header.kind for header in headers if header.by == by}
    names = [case["name"] for case in _REFUSED]

    assert signed == {*Kind}
    assert len(set(names)) == len(names) >= 60
