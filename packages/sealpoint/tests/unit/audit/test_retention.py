# SPDX-License-Identifier: Apache-2.0
"""Verification of pruned and erased threads: what was given up is no finding, all else is."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from sealpoint.audit import UNJUSTIFIED, Report
from sealpoint.errors import StorageUnavailable
from sealpoint.ledger import (
    Body,
    CheckpointBody,
    EraseBody,
    Kind,
    Marks,
    PruneBody,
    encode_body,
    link_hash,
    parse_body,
    parse_header,
    skip_seq,
)
from sealpoint.signing import Role
from sealpoint.storage import Record
from sealpoint.storage.memory import MemoryStorage
from sealpoint.store import Key
from tests.deployment import Deployment, Opened
from tests.ledgers import SALT, identity, key, sealed
from tests.unit.store.laned import put, results, saved
from tests.unit.store.retained import filled


@pytest.fixture
def world() -> Iterator[Deployment]:
    """The thread `t`: checkpoints at 2 to 7, of which a prune at 8 kept 4 and 7, then one at 9.

    Beside it `small`, whose states lie beside their entries: 2 to 5, a prune at 6 of 2 and 3, 7.
    """
    made = Deployment()
    made.enrol(identity("officer", Role.PRIVACY))
    store = made.open()
    filled(store, 6)
    store.thread("t").prune(keep_last=1, keep=["c2"])
    filled(store, 1, first=6)
    small = store.thread("small")
    for number in range(4):
        small.save({"small": number})
    small.prune(keep_last=2)
    small.save({"small": 4})
    yield made
    made.close()


@pytest.fixture
def unswept(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Deployment:
    """The same, with everything that was given up still there."""
    monkeypatch.setattr(MemoryStorage, "drop", lambda *_args, **_options: None)
    found: Deployment = request.getfixturevalue("world")
    return found


_OTHER_ENTRIES = 2 + 8


def _codes(world: Deployment) -> list[str]:
    return [finding.code for finding in world.open().verify().findings]


def _next(world: Deployment, kind: Kind, body: Body, *, by: str = "worker", **changes: Any) -> None:
    """Append an entry that is well made in every way but what its body says."""
    thread = world.thread_id("t")
    rows = world.memory._records[thread]
    seq, data = len(rows), encode_body(body)
    newest = parse_header(rows[seq - 1].header)
    made = msgspec.structs.replace(
        newest,
        seq=seq,
        prev=link_hash(rows[seq - 1].header).hex(),
        skip=link_hash(rows[skip_seq(seq)].header).hex(),
        kind=kind,
        **Marks.of(newest).after(kind, seq)._asdict(),
        by=key(by).public.id.raw.hex(),
        body=hashlib.sha256(data).hexdigest(),
    )
    header = msgspec.structs.replace(made, **changes)
    world.put(thread, seq, sealed(header, data, key(by)))


def _erase(world: Deployment) -> None:
    world.open("officer").thread("t").erase(reason="as was asked for")


def _set(world: Deployment, seq: int, **changes: Any) -> None:
    record = world.record("t", seq)
    world.put(world.thread_id("t"), seq, msgspec.structs.replace(record, **changes))


# ---------------------------------------------------------------------- what is no finding


def test_a_pruned_thread_verifies(world: Deployment) -> None:
    """Every entry is counted, and what the prune gave up is not missed."""
    report = world.open().verify()

    assert report == Report(ok=True, entries=_OTHER_ENTRIES + 10, findings=())


def test_an_erased_thread_verifies(world: Deployment) -> None:
    """With no body left but the one that records it; and again with a new generation."""
    _erase(world)
    assert world.open().verify() == Report(ok=True, entries=_OTHER_ENTRIES + 11, findings=())
    store = world.open()
    filled(store, 3)
    store.thread("t").prune(keep_last=2)
    report = world.open().verify()

    assert report == Report(ok=True, entries=_OTHER_ENTRIES + 17, findings=())
    _erase(world)
    assert world.open().verify().ok


def _gone() -> None:
    raise StorageUnavailable("storage: expected it, found it gone")


def _prune_and_stop(store: Opened) -> None:
    """Record a prune and crash before its sweep."""
    store.storage.dropping.before = _gone
    with pytest.raises(StorageUnavailable):
        store.thread("t").prune(keep_last=1)


@pytest.mark.parametrize("call", ["prune", "erase"])
def test_what_was_given_up_and_not_yet_swept_is_no_finding(world: Deployment, call: str) -> None:
    """A crash between the entry and the sweep leaves bytes that nobody asks for."""
    store = world.open("officer" if call == "erase" else "worker")
    store.storage.dropping.before = _gone
    calls: dict[str, Callable[[], object]] = {
        "prune": lambda: store.thread("t").prune(keep_last=1),
        "erase": lambda: store.thread("t").erase(reason="x"),
    }
    with pytest.raises(StorageUnavailable):
        calls[call]()

    assert world.open().verify().ok


@pytest.mark.parametrize("scan", [1, 2])
@pytest.mark.parametrize("call", ["prune", "prune and stop", "erase", "save"])
def test_what_is_given_up_during_the_verification_is_no_finding(
    world: Deployment, call: str, scan: int
) -> None:
    """A thread of which more went meanwhile is verified anew."""
    store, other = world.open(), world.open("officer" if call == "erase" else "worker")
    calls: dict[str, Callable[[], object]] = {
        "prune": lambda: other.thread("t").prune(keep_last=1),
        "prune and stop": lambda: _prune_and_stop(other),
        "erase": lambda: other.thread("t").erase(reason="x"),
        "save": lambda: filled(other, 1, first=7),
    }

    def wait() -> None:
        nonlocal scan
        scan -= 1
        if scan < 0:
            calls[call]()
        else:
            store.storage.scanning.before = wait

    store.storage.scanning.before = wait
    report = store.verify()

    assert store.storage.scanning.before is None, "it came in between"
    assert report.findings == ()
    assert world.open().verify().ok


def test_entries_of_an_erased_thread_must_stay(world: Deployment) -> None:
    """Headers prove that something was there; with all of them gone the thread was rolled back."""
    _erase(world)
    thread = world.thread_id("t")
    record = world.record("t", 3)
    world.put(thread, 3, None)
    assert _codes(world) == ["missing"]
    world.put(thread, 3, record)
    assert _codes(world) == []
    for seq in range(11):
        world.put(thread, seq, None)

    assert _codes(world) == ["rolled-back"]


# ---------------------------------------------------------------------- what is one


def test_every_blob_of_what_is_kept_is_looked_for(world: Deployment) -> None:
    """Those that only a pruned checkpoint listed, and those that were saved after the prune."""
    blobs = world.blobs("t")
    listed = [
        parse_body(Kind.CHECKPOINT, parse_header(row.header).body, row.body or b"").fresh
        for row in (world.record("t", seq) for seq in (4, 7, 9))
    ]
    assert len(blobs) > len({name for names in listed for name in names}), "some by pruned ones"

    for digest, blob in blobs.items():
        world.put_blob("t", digest, None)
        assert _codes(world) == ["missing"]
        world.memory.put_blobs(world.thread_id("t"), {digest: b"evil"})
        assert _codes(world) == ["edited"]
        world.memory.put_blobs(world.thread_id("t"), {digest: blob})
    assert _codes(world) == []


@pytest.mark.parametrize("seq", [4, 5, 7])
def test_the_root_of_what_is_kept_is_looked_for(world: Deployment, seq: int) -> None:
    """A payload beside a kept entry may not go; one beside a pruned entry has gone."""
    record = world.record("small", seq)
    assert record.payload is not None
    assert world.record("small", 3).payload is None
    world.put(world.thread_id("small"), seq, msgspec.structs.replace(record, payload=None))

    assert _codes(world) == ["missing"]


@pytest.mark.parametrize("seq", range(10))
def test_a_body_that_is_gone_without_an_erasure_is_a_finding(world: Deployment, seq: int) -> None:
    """Also that of a pruned checkpoint, whose metadata stays, and that of the prune itself."""
    _set(world, seq, body=None)

    assert _codes(world) == ["missing"]


@pytest.mark.parametrize("seq", range(10))
def test_an_edited_body_is_a_finding(world: Deployment, seq: int) -> None:
    """Whatever the entry is."""
    body = world.record("t", seq).body
    assert body is not None
    _set(world, seq, body=body[:9] + bytes([body[9] ^ 1]) + body[10:])

    assert _codes(world) == ["edited"]


def test_the_body_of_an_erasure_must_stay(world: Deployment) -> None:
    """It says why; without a later erasure it may not go, although the erasure counts."""
    _erase(world)
    _set(world, 10, body=None)

    assert _codes(world) == [UNJUSTIFIED]


def test_a_payload_that_went_without_a_prune_is_a_finding(world: Deployment) -> None:
    """The beginning of a history that was cut away by somebody else than its owner."""
    for number in range(3):
        world.open().thread("u").save(number)
    record = world.record("u", 2)
    world.put(world.thread_id("u"), 2, Record(record.header, record.seals, record.body))

    assert _codes(world) == ["missing"]


# ---------------------------------------------------------------------- what an owner may not say

_SAID: dict[str, tuple[Kind, Body, str]] = {
    "a prune that brings back what was pruned": (
        Kind.PRUNE,
        PruneBody(salt=SALT, before=7, kept=(3, 4)),
        "keeps what an earlier prune or delete gave up",
    ),
    "a prune with a lower bound": (
        Kind.PRUNE,
        PruneBody(salt=SALT, before=5, kept=(4,)),
        "keeps what an earlier prune or delete gave up",
    ),
    "a prune of the newest checkpoint": (
        Kind.PRUNE,
        PruneBody(salt=SALT, before=10, earlier=8),
        "gives up the newest checkpoint",
    ),
    "a prune that passes over the one before it": (
        Kind.PRUNE,
        PruneBody(salt=SALT, before=8, kept=(7,)),
        "does not name the prune or delete before it",
    ),
    "a checkpoint that names no prune": (
        Kind.CHECKPOINT,
        CheckpointBody(salt=SALT, id="x", root="ab" * 32),
        "expected it to name prune 8, found None",
    ),
    "a checkpoint that names another prune": (
        Kind.CHECKPOINT,
        CheckpointBody(salt=SALT, id="x", root="ab" * 32, prune=3),
        "expected it to name prune 8, found 3",
    ),
    "a checkpoint that names a prune to come": (
        Kind.CHECKPOINT,
        CheckpointBody(salt=SALT, id="x", root="ab" * 32, prune=99),
        "expected 'prune' to be a position before it, found 99",
    ),
}


@pytest.mark.parametrize(("kind", "body", "why"), _SAID.values(), ids=_SAID)
def test_what_no_owner_would_write_is_a_finding(
    unswept: Deployment, kind: Kind, body: Body, why: str
) -> None:
    """Signed by the owner's own key, under the session in force, and linked as it should be."""
    _next(unswept, kind, body)
    (finding,) = unswept.open().verify().findings

    assert finding.code == "misplaced"
    assert why in finding.message


@pytest.mark.parametrize(("kind", "body"), [each[:2] for each in _SAID.values()], ids=_SAID)
def test_an_entry_that_no_owner_would_write_brings_nothing_back(
    world: Deployment, kind: Kind, body: Body
) -> None:
    """Where the bytes are gone, whatever it brings back is found missing, or it is misplaced."""
    _next(world, kind, body)

    assert _codes(world) in (["missing"], ["misplaced"])


_PLANTED: dict[str, tuple[Kind, Body, dict[str, Any], str]] = {
    "a prune by another key": (
        Kind.PRUNE,
        PruneBody(salt=SALT, before=8, kept=(7,)),
        {"by": "operator"},
        "not-trusted",
    ),
    "an erasure by the owner": (
        Kind.ERASE,
        EraseBody(salt=SALT, reason="x"),
        {"by": "worker", "fence": 10},
        "not-trusted",
    ),
    "an erasure by a stranger": (
        Kind.ERASE,
        EraseBody(salt=SALT, reason="x"),
        {"by": "stranger", "fence": 10},
        "not-trusted",
    ),
    "an erasure under the old fence": (
        Kind.ERASE,
        EraseBody(salt=SALT, reason="x"),
        {"by": "officer", "fence": 1},
        "not-trusted",
    ),
    "an erasure of the next generation": (
        Kind.ERASE,
        EraseBody(salt=SALT, reason="x"),
        {"by": "officer", "fence": 10, "gen": 1},
        "misplaced",
    ),
}


@pytest.mark.parametrize(("kind", "body", "changes", "code"), _PLANTED.values(), ids=_PLANTED)
def test_nothing_goes_on_the_word_of_a_planted_entry(
    world: Deployment, kind: Kind, body: Body, changes: dict[str, Any], code: str
) -> None:
    """Payloads and bodies taken away under the cover of it are not what is reported: it is."""
    _next(world, kind, body, **changes)
    for seq in range(10):
        _set(world, seq, payload=None, **({"body": None} if kind is Kind.ERASE else {}))

    assert _codes(world) == [code]


def test_an_erasure_does_not_cover_what_came_after_it(world: Deployment) -> None:
    """A body of the new generation may not go, nor may its blobs."""
    _erase(world)
    filled(world.open(), 2)
    for seq in (11, 12, 13, 14):
        record = world.record("t", seq)
        _set(world, seq, body=None)
        assert _codes(world) == ["missing"]
        world.put(world.thread_id("t"), seq, record)
    for digest, blob in world.blobs("t").items():
        world.put_blob("t", digest, None)
        assert _codes(world) == ["missing"]
        world.memory.put_blobs(world.thread_id("t"), {digest: blob})
    assert _codes(world) == []


def test_a_prune_before_an_erasure_does_not_count_after_it(world: Deployment) -> None:
    """A checkpoint of a new generation names no prune of the one before."""
    _erase(world)
    store: Opened = world.open()
    filled(store, 2)
    record = world.record("t", 14)
    body: CheckpointBody = parse_body(
        Kind.CHECKPOINT, parse_header(record.header).body, record.body or b""
    )

    assert body.prune is None
    _next(
        world,
        Kind.CHECKPOINT,
        CheckpointBody(salt=SALT, id="x", root="ab" * 32, prune=8),
        fence=12,
    )
    assert _codes(world) == ["misplaced"]


# ---------------------------------------------------------------------- results and deletions


def _laned(world: Deployment) -> Opened:
    """The thread `laned`: 2 is a checkpoint, 3 and 4 are its results; 5 and 6 lie in a lane."""
    store = world.open()
    saved(
        store.thread("laned"),
        put({"n": 1}, "1"),
        results("a", "1", "a"),
        results(["b" * 5000], "1", "b"),
        put({"n": 1}, "1", "sub"),
        results("c", "1", lane="sub"),
    )
    return store


def test_results_and_deletions_are_no_finding(world: Deployment) -> None:
    """Nor is a deletion of everything, of nothing but results, or one after another."""
    store = _laned(world)
    store.thread("laned").adapter.delete([Key("sub", "1")])
    saved(store.thread("laned"), put({"n": 2}, "2"), results("d", "3"))
    store.thread("laned").adapter.delete([Key("", "1")])
    store.thread("laned").adapter.delete()
    saved(store.thread("laned"), put({"n": 1}, "1"))
    saved(store.thread("results alone"), results("early", "1"))
    store.thread("results alone").adapter.delete()

    assert world.open(None, read_only=True).verify().findings == ()


@pytest.mark.parametrize("seq", [3, 4, 6])
def test_lost_results_are_found(world: Deployment, seq: int) -> None:
    """Of any lane, whether their payload lies beside them or among the blobs."""
    _laned(world)
    thread, record = world.thread_id("laned"), world.record("laned", seq)
    if record.payload is None:
        body = parse_body(Kind.RESULTS, parse_header(record.header).body, record.body or b"")
        world.put_blob("laned", bytes.fromhex(body.fresh[0]), None)
    else:
        world.put(thread, seq, msgspec.structs.replace(record, payload=None))

    found = world.open(None, read_only=True).verify().findings
    assert [finding.code for finding in found] == ["missing"]


def test_a_deletion_may_hide_what_an_earlier_prune_kept(world: Deployment) -> None:
    """It is still listed as kept, and a later deletion may list it so again."""
    thread = world.open().thread("t")
    thread.adapter.delete([Key("", "c2")])
    thread.adapter.delete([Key("", "c5")])

    assert world.open(None, read_only=True).verify().findings == ()
