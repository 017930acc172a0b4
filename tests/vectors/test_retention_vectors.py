# SPDX-License-Identifier: Apache-2.0
"""The frozen prunes, erasures and restores, our verifier and the second one: three that agree."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.audit import verify_thread
from sealpoint.codec import Registry
from sealpoint.errors import Missing, SealpointError
from sealpoint.ledger import (
    STORE_CHAIN,
    Kind,
    encode_body,
    encode_header,
    link_hash,
    parse_body,
    parse_header,
)
from sealpoint.limits import Limits
from sealpoint.signing import TrustPin
from sealpoint.storage import Record
from sealpoint.storage.memory import MemoryStorage
from sealpoint.store import Core, StoreParts
from tests.ledgers import NOW
from tests.vectors import decoder, verifier
from tests.vectors.ledger import as_bytes
from tests.vectors.refusals import believed, ending_otherwise
from tests.vectors.retention import retention_vectors
from tests.vectors.retention_verifier import verify_retained

_FILE = Path(__file__).parent / "retention.json"
_FROZEN = json.loads(_FILE.read_text(encoding="ascii"))
_PIN = TrustPin.parse(msgspec.json.format(msgspec.json.encode(_FROZEN["pin"]), indent=2) + b"\n")
_THREADS: dict[str, dict[str, Any]] = _FROZEN["threads"]
_REFUSED: list[dict[str, Any]] = _FROZEN["refused"]
_LIMITS = {name: getattr(Limits(), name) for name in Limits.__dataclass_fields__}

_every_thread = pytest.mark.parametrize(
    ("name", "trust"),
    [(name, trust) for name, thread in _THREADS.items() for trust in thread["trust"]],
)

Rows = list[dict[str, Any]]


class _Store:
    """Everything that a store holds: the store chain with its lists, and one thread."""

    def __init__(
        self, store_chain: Rows, thread: str | None = None, entries: Rows | tuple[()] = ()
    ) -> None:
        self.store_chain = [_record(row) for row in store_chain]
        self.lists = _blobs(_FROZEN["lists"])
        self.records = [_record(row) for row in entries]
        self.place: dict[str, str] = {} if thread is None else _THREADS[thread]["place"]
        self.blobs = {} if thread is None else _blobs(_THREADS[thread]["blobs"])

    @classmethod
    def of(cls, name: str, trust: int, length: int | None = None) -> "_Store":
        """A genuine thread, or the beginning of one, after so much of the store chain."""
        return cls(_FROZEN["store_chain"][:trust], name, _THREADS[name]["entries"][:length])

    @classmethod
    def of_case(cls, case: dict[str, Any]) -> "_Store":
        """The genuine beginning of a case, and what is refused after it."""
        name = case.get("thread")
        before = [] if name is None else _THREADS[name]["entries"][: case["after"]]
        made = cls(
            [*_FROZEN["store_chain"][: case["trust"]], *case.get("store_chain", [])],
            name,
            [*before, *case.get("entries", [])],
        )
        for there, changed in ((made.lists, "lists"), (made.blobs, "blobs")):
            for digest, data in case.get(changed, {}).items():
                there.pop(digest, None)
                if data is not None:
                    there[digest] = bytes.fromhex(data)
        for seq, payload in case.get("payloads", {}).items():
            record = made.records[int(seq)]
            made.records[int(seq)] = msgspec.structs.replace(record, payload=bytes.fromhex(payload))
        return made

    def verify(self) -> Core:
        """As we do it: a full verification of what lies in a storage."""
        storage, anchor = MemoryStorage(), MemoryAnchor()
        storage.append(STORE_CHAIN, 0, self.store_chain, blobs=_by_digest(self.lists))
        core = Core(
            StoreParts(
                storage=storage,
                anchor=anchor,
                pin=_PIN,
                secret=bytes(32),
                signer=None,
                registry=Registry(),
                namespace="default",
                read_only=True,
                now=lambda: NOW,
                random_bytes=bytes,
                on_event=None,
            )
        )
        core.anchor_store_chain()
        if self.records:
            thread = bytes.fromhex(self.place["thread"])
            storage.append(thread, 0, self.records, blobs=_by_digest(self.blobs))
            verify_thread(core, thread)
        for record in self.records[-1:]:
            # The thread counts without the reason of an erasure; a full verification reports it.
            header = parse_header(record.header)
            if record.body is None:
                raise Missing(f"entry {header.seq}: its body is missing")
            parse_body(header.kind, header.body, record.body)
        return core

    def verify_again(self) -> tuple[list[str], list[int]]:
        """As the second verifier does it: every hash, and the checkpoints that have their state."""
        rows = _rows(self.records)
        trust = verifier.verify_store_chain(_FROZEN["pin"], _rows(self.store_chain))
        if not rows:
            return [], []
        hashes = verifier.verify_thread(_FROZEN["pin"], trust, self.place, rows, self.lists)
        payloads = {
            seq: record.payload
            for seq, record in enumerate(self.records)
            if record.payload is not None
        }
        return hashes, verify_retained(rows, payloads, self.blobs, _walk)


def _record(row: dict[str, Any]) -> Record:
    body, payload = row["body"], row.get("payload")
    return Record(
        as_bytes(row["header"]),
        as_bytes(row["seals"]),
        None if body is None else as_bytes(body),
        None if payload is None else bytes.fromhex(payload),
    )


def _rows(records: list[Record]) -> list[verifier.Row]:
    return [(record.header, record.seals, record.body) for record in records]


def _blobs(texts: dict[str, str]) -> dict[str, bytes]:
    return {digest: bytes.fromhex(text) for digest, text in texts.items()}


def _by_digest(blobs: dict[str, bytes]) -> dict[bytes, bytes]:
    return {bytes.fromhex(digest): data for digest, data in blobs.items()}


def _walk(root: bytes, blobs: dict[bytes, bytes]) -> object:
    return decoder.decode(root, {}, _LIMITS, blobs)


def test_generator_yields_no_diff() -> None:
    """Generating them again gives the frozen file, byte by byte."""
    assert retention_vectors() == _FILE.read_text(encoding="ascii")


@_every_thread
def test_both_verifiers_believe_a_genuine_thread(name: str, trust: int) -> None:
    """Each thread, with as much of the store chain as its vector says, has the hashes it says."""
    store = _Store.of(name, trust)
    core = store.verify()
    hashes, _ = store.verify_again()

    assert hashes == [entry["hash"] for entry in _THREADS[name]["entries"]]
    assert hashes[-1] == link_hash(store.records[-1].header).hex()
    assert [entry.hex() for entry in core.trust().hashes] == [
        entry["hash"] for entry in _FROZEN["store_chain"][:trust]
    ]
    assert core.trust().epoch == len(
        verifier.verify_store_chain(_FROZEN["pin"], _rows(store.store_chain)).restores
    )


@pytest.mark.parametrize(
    ("name", "living"),
    [("pruned", [4, 7, 9]), ("erased", [8]), ("restored", [2, 3, 4, 6, 8]), ("begun again", [2])],
)
def test_what_lives_is_there_and_the_rest_is_gone(name: str, living: list[int]) -> None:
    """The second verifier finds these states whole; of the others the vectors have no bytes."""
    store = _Store.of(name, len(_FROZEN["store_chain"]))
    _, found = store.verify_again()
    beside = {seq for seq, record in enumerate(store.records) if record.payload is not None}

    assert found == living
    assert beside <= set(living)


def test_bytes_that_were_given_up_may_still_be_there() -> None:
    """A crash before the sweep leaves them, and also bodies that nobody checks any more."""
    erased = _Store.of("erased", 1)
    erased.records[2] = msgspec.structs.replace(erased.records[2], body=b"no body at all")
    erased.records[4] = msgspec.structs.replace(erased.records[4], payload=b"no state at all")
    pruned = _Store.of("pruned", 1)
    pruned.records[2] = msgspec.structs.replace(pruned.records[2], payload=b"no state at all")
    for store in (erased, pruned):
        store.verify()
        store.verify_again()


def _beginnings() -> Iterator[_Store]:
    """What comes before the refused cases, each once."""
    for thread, trust, after in {
        (case.get("thread"), case["trust"], case.get("after", 0)) for case in _REFUSED
    }:
        if thread is None:
            yield _Store(_FROZEN["store_chain"][:trust])
        elif after:
            yield _Store.of(thread, trust, after)


def test_our_verifier_refuses_with_the_code() -> None:
    """What comes before is believed; each is refused with the error whose code its case names."""
    for store in _beginnings():
        store.verify()

    assert not ending_otherwise(_REFUSED, lambda case: _Store.of_case(case).verify())


def test_second_verifier_refuses_as_well() -> None:
    """It believes what comes before, and none of them."""
    for store in _beginnings():
        store.verify_again()
    faults = (*verifier.FAULTS, *decoder.FAULTS)

    assert not believed(_REFUSED, lambda case: _Store.of_case(case).verify_again(), *faults)


def test_an_erased_thread_without_its_erasure_is_refused() -> None:
    """Bodies that are gone are an alarm as soon as no entry accounts for them."""
    store = _Store.of("erased", 1, 5)
    with pytest.raises(SealpointError) as caught:
        store.verify()
    with pytest.raises(verifier.FAULTS):
        store.verify_again()

    assert caught.value.code == "missing"


def test_a_pruned_thread_without_its_prune_is_refused() -> None:
    """So are payloads: of what the second prune gave up, the first one had kept some."""
    store = _Store.of("pruned", 1, 8)
    with pytest.raises(SealpointError) as caught:
        store.verify()
    with pytest.raises(verifier.FAULTS):
        store.verify_again()

    assert caught.value.code == "missing"


@pytest.mark.parametrize("name", _THREADS)
def test_entries_of_the_epoch_in_force_need_no_list(name: str) -> None:
    """A list that is gone refuses the entries that it would have to judge, and no others."""
    store = _Store.of(name, 5)
    store.lists.clear()
    if name == "begun again":
        store.verify()
        store.verify_again()
        return
    with pytest.raises(SealpointError) as caught:
        store.verify()
    with pytest.raises(verifier.FAULTS):
        store.verify_again()

    assert caught.value.code == "missing"


def test_the_lists_have_their_bytes() -> None:
    """Lines of a thread, a position of eight bytes and a hash, in the order of the threads."""
    bodies = [json.loads(_FROZEN["store_chain"][seq]["body"]) for seq in (1, 3)]
    first, second = (bytes.fromhex(_FROZEN["lists"][body["kept"]]) for body in bodies)

    assert first == b"".join(
        _line(*each) for each in (("restored", 4), ("pruned", 9), ("erased", 8))
    )
    assert second == b"".join(
        _line(*each) for each in (("restored", 6), ("pruned", 9), ("erased", 8))
    )
    assert {len(data) // 2 for data in _FROZEN["lists"].values()} == {0, 56, 2 * 56, 3 * 56}
    for digest, data in _FROZEN["lists"].items():
        assert hashlib.sha256(bytes.fromhex(data)).hexdigest() == digest


@pytest.mark.parametrize(
    ("length", "basis", "since", "cut"),
    [
        (1, 4, 0, False),
        (2, 4, 0, True),
        (2, 4, 1, False),
        (4, 6, 1, False),
        (4, 6, 0, False),
        (4, 7, 1, True),
        (4, 7, 2, False),
    ],
    ids=[
        *("no restore", "the first releases nothing", "executed since", "the second releases it"),
        *("the newest decides", "it has moved since", "executed since the second"),
    ],
)
def test_both_verifiers_agree_on_who_was_released(
    length: int, basis: int, since: int, *, cut: bool
) -> None:
    """The first restore cuts a thread, and the second cuts and releases it at entry 6."""
    store = _Store(_FROZEN["store_chain"][:length])
    thread = _THREADS["restored"]["place"]["thread"]
    chain = store.verify().trust()
    trust = verifier.verify_store_chain(_FROZEN["pin"], _rows(store.store_chain))
    ours = chain.restores.cuts_off(bytes.fromhex(thread), chain.lists, basis=basis, since=since)

    assert ours is cut
    assert verifier.is_cut(trust, store.lists, thread, basis, since) is cut


def _line(name: str, seq: int) -> bytes:
    thread = _THREADS[name]
    return (
        bytes.fromhex(thread["place"]["thread"])
        + bytes([0] * 7 + [seq])
        + bytes.fromhex(thread["entries"][seq]["hash"])
    )


@pytest.mark.parametrize("name", ["store chain", *_THREADS])
def test_genuine_entries_are_written_to_the_same_bytes(name: str) -> None:
    """Header and body each have one encoding."""
    rows = _FROZEN["store_chain"] if name == "store chain" else _THREADS[name]["entries"]
    for record in map(_record, rows):
        header = parse_header(record.header)

        assert encode_header(header) == record.header
        if record.body is not None:
            assert encode_body(parse_body(header.kind, header.body, record.body)) == record.body


def test_the_vectors_have_every_kind_and_error() -> None:
    """Those of retention and restore, and each name once."""
    threads = [entry for thread in _THREADS.values() for entry in thread["entries"]]
    kinds = {parse_header(as_bytes(entry["header"])).kind for entry in threads}
    names = [case["name"] for case in _REFUSED]

    assert kinds == {Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT, Kind.PRUNE, Kind.ERASE}
    assert len(set(names)) == len(names) >= 100
    assert {case["error"] for case in _REFUSED} == {
        *("edited", "forged", "misplaced", "missing", "not-trusted", "tampered")
    }
