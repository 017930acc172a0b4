# SPDX-License-Identifier: Apache-2.0
"""A thread's entries: every rule is broken once, always with a valid signature."""

from typing import Any

import pytest

from sealpoint.errors import Edited, Forged, Misplaced, Missing, NotTrusted, SealpointError
from sealpoint.ledger import (
    KINDS,
    Body,
    Kind,
    Place,
    StoreChain,
    begin,
    encode_body,
    extend,
    link_hash,
    read_fence,
    skip_seq,
    verify_entry,
)
from sealpoint.signing import Pool, Role
from sealpoint.storage import Record
from tests.ledgers import (
    SALT,
    STORE,
    THREAD,
    StoreLedger,
    ThreadLedger,
    genesis_body,
    identity,
    key,
    resume_body,
    roster,
    seals,
    solo,
)

_TEAM = solo(
    identity("worker", keys=("worker", "spare")),
    identity("other"),
    identity("billing", namespaces=("billing",)),
    identity("operator", Role.OPERATOR),
    identity("auditor", Role.AUDITOR),
    identity("officer", Role.PRIVACY),
    identity("nobody", namespaces=()),
    identity("pod-1"),
    identity("pod-2"),
    pools=[Pool("pods", ("pod-1", "pod-2"))],
)


_ON_THREADS = {kind for kind, rule in KINDS.items() if rule.on_threads}


def _team() -> ThreadLedger:
    return ThreadLedger(_TEAM).begun()


def _refused(ledger: ThreadLedger, record: Record, error: type[SealpointError], why: str) -> None:
    with pytest.raises(error, match=why) as caught:
        ledger.follow(record)

    assert caught.type is error


def _missing(ledger: ThreadLedger, record: Record) -> None:
    """Without its body an entry is let pass, for an erasure may follow; as the newest it is not."""
    tip = ledger.follow(Record(record.header, record.seals, None))

    assert tip.fence.owner is None
    with pytest.raises(Missing, match=f"entry {ledger.seq} of .*: its body is missing"):
        tip.require_owner()


# ---------------------------------------------------------------------- what is believed


def test_a_genuine_chain_verifies() -> None:
    """Forty entries of several sessions follow one another, with fence and owner as they say."""
    ledger = ThreadLedger()
    for seq in range(40):
        kind = Kind.GENESIS if not seq else Kind.RESUME if seq % 7 == 1 else Kind.CHECKPOINT
        ledger.add(kind)
    tip = ledger.tip

    assert tip is not None
    assert tip.entry.seq == 39
    assert tip.entry.writer == "worker"
    assert tip.entry.hash == link_hash(ledger.records[39].header)
    assert (tip.fence.seq, tip.fence.owner, tip.fence.is_session) == (36, "worker", True)
    assert tip.skip_hashes.next_below.seq == skip_seq(40)
    assert tip.skip_hashes.grown(b"").seq == 40


def test_any_member_of_a_pool_opens_a_session() -> None:
    """A pool owns the thread, and each of its members may take it over."""
    ledger = ThreadLedger(_TEAM, writer="pod-1", owner="pods").begun()
    ledger.add(Kind.RESUME, signer="pod-2")
    ledger.add(Kind.CHECKPOINT, signer="pod-2")

    assert ledger.tip is not None
    assert ledger.tip.entry.writer == "pod-2"
    _refused(ledger, ledger.record(Kind.CHECKPOINT), NotTrusted, "the key that opened session 3")


def test_an_operator_adopts_without_touching_the_session() -> None:
    """An adoption names the fence in force; the session goes on behind it."""
    ledger = _team()
    ledger.add(Kind.ADOPT, signer="operator")
    ledger.add(Kind.CHECKPOINT)

    assert ledger.tip is not None
    assert ledger.tip.fence.seq == 1


def test_a_newer_roster_may_be_named_at_once() -> None:
    """An entry is judged by the roster that it names, so rights begin with it."""
    store = StoreLedger()
    first = identity("worker")
    store.add(store.roster_record(roster(first)))
    ledger = ThreadLedger(store.chain).begun()
    ledger.chain = store.add(
        store.roster_record(roster(first, identity("operator", Role.OPERATOR)))
    )
    ledger.add(Kind.ADOPT, signer="operator")

    _refused(
        ledger,
        ledger.record(Kind.ADOPT, signer="operator", roster=0),
        NotTrusted,
        "expected a key of roster 0",
    )


# ---------------------------------------------------------------------- one entry on its own

_ALONE: dict[str, tuple[dict[str, Any], type[SealpointError], str]] = {
    "another store": ({"store": "ff" * 16}, Misplaced, "expected store"),
    "another namespace": ({"ns": "billing"}, Misplaced, "expected namespace 'default'"),
    "another thread": ({"thread": "ab" * 16}, Misplaced, "expected thread"),
    "a later position": ({"seq": 4}, Misplaced, "expected position 3"),
    "an earlier position": ({"seq": 2}, Misplaced, "expected position 3"),
    "another epoch": ({"epoch": 1}, Misplaced, "expected epoch 0"),
    "another generation": ({"gen": 1}, Misplaced, "expected generation 0, found 1"),
    "an unknown roster": ({"roster": 1}, NotTrusted, "expected a roster of the store chain"),
    "another key's id": ({"by": "ab" * 32}, Forged, "expected one signature, by key"),
    "a key's id in capitals": (
        {"by": key("worker").public.id.raw.hex().upper()},
        Forged,
        "expected one signature, by key",
    ),
}


@pytest.mark.parametrize(("changes", "error", "why"), _ALONE.values(), ids=_ALONE)
def test_an_entry_of_another_place_is_refused(
    changes: dict[str, Any], error: type[SealpointError], why: str
) -> None:
    """Each part of the place is compared, though the worker signed the entry."""
    ledger = _team()

    _refused(ledger, ledger.record(Kind.CHECKPOINT, **changes), error, why)


@pytest.mark.parametrize(
    "place",
    [
        Place("ff" * 16, "default", THREAD.hex()),
        Place(STORE.raw.hex(), "billing", THREAD.hex()),
        Place(STORE.raw.hex(), "default", "ff" * 16),
    ],
    ids=["store", "namespace", "thread"],
)
def test_a_genuine_entry_is_refused_wherever_else_it_lies(place: Place) -> None:
    """Copying rows between stores, namespaces or threads gives nothing."""
    for seq, record in enumerate(_team().records):
        with pytest.raises(Misplaced):
            verify_entry(record.header, record.seals, place=place, seq=seq, chain=_TEAM)


def test_a_genuine_entry_is_refused_at_another_position() -> None:
    """Also where it is verified on its own, without the one before it."""
    ledger = _team()
    for seq, record in enumerate(ledger.records):
        for other in (seq - 1, seq + 1):
            with pytest.raises(Misplaced, match=f"expected position {other}, found"):
                verify_entry(
                    record.header, record.seals, place=ledger.place, seq=other, chain=_TEAM
                )


@pytest.mark.parametrize(
    ("kind", "signer", "why"),
    [
        (Kind.CHECKPOINT, "operator", "expected writer of namespace 'default' for a checkpoint"),
        (Kind.CHECKPOINT, "auditor", "expected writer"),
        (Kind.RESUME, "operator", "expected writer"),
        (Kind.GENESIS, "auditor", "expected writer or operator"),
        (Kind.ADOPT, "worker", "expected operator of namespace 'default' for a adopt"),
        (Kind.PRUNE, "operator", "expected writer of namespace 'default' for a prune"),
        (Kind.PRUNE, "officer", "expected writer"),
        (Kind.ERASE, "worker", "expected privacy of namespace 'default' for a erase"),
        (Kind.ERASE, "operator", "expected privacy"),
        (Kind.CHECKPOINT, "billing", "found 'billing'"),
        (Kind.CHECKPOINT, "nobody", "found 'nobody'"),
        (Kind.CHECKPOINT, "stranger", "expected a key of roster 0"),
        (Kind.CHECKPOINT, "root", "expected a key of roster 0"),
    ],
)
def test_a_key_without_the_right_is_refused(kind: Kind, signer: str, why: str) -> None:
    """Another role, another namespace, or no line of the roster: a signature is not enough."""
    ledger = _team()

    _refused(ledger, ledger.record(kind, signer=signer), NotTrusted, why)


@pytest.mark.parametrize(
    "kind",
    sorted(set(Kind) - _ON_THREADS),
    ids=lambda kind: kind.value,
)
def test_kinds_of_the_store_chain_are_refused(kind: Kind) -> None:
    """Reading past an entry that means nothing on a thread could turn a pause into nothing."""
    ledger = _team()

    for signer in ("worker", "operator"):
        record = ledger.record(kind, Body(salt=SALT), signer=signer)
        _refused(ledger, record, NotTrusted, f"expected a kind that threads have, found {kind}")


def _resealed(record: Record, changed: bytes) -> Record:
    return Record(record.header, changed, record.body)


def test_a_signature_of_another_type_is_refused() -> None:
    """What the worker signed as a statement, a manifest or plain bytes is no entry."""
    ledger = _team()
    record = ledger.record(Kind.CHECKPOINT)

    for kind in (b"statement", b"root", b"bundle", b"entry.v2+json"):
        confused = seals(
            record.header,
            key("worker"),
            payload_type=b"application/vnd.sealpoint." + kind + b".v1+json",
        )
        _refused(ledger, _resealed(record, confused), Forged, "expected a valid one")
    _refused(
        ledger,
        _resealed(record, seals(record.header, key("worker"), payload_type=b"")),
        Forged,
        "entry 3 of thread",
    )


def test_a_signature_over_other_bytes_is_refused() -> None:
    """A genuine seal of the same key on another entry does not fit."""
    ledger = _team()
    record = ledger.record(Kind.CHECKPOINT)

    for other in ledger.records:
        _refused(ledger, _resealed(record, other.seals), Forged, "expected a valid one")


def test_a_signature_by_another_key_of_the_roster_is_refused() -> None:
    """The seal must be by the key that the header names, not only by somebody."""
    ledger = _team()
    record = ledger.record(Kind.CHECKPOINT)
    other = seals(record.header, key("other"))

    _refused(ledger, _resealed(record, other), Forged, "expected one signature, by key")


def test_a_second_seal_is_refused() -> None:
    """A thread's entry has one signature; a second one, valid or not, is another entry."""
    ledger = _team()
    record = ledger.record(Kind.CHECKPOINT)

    for names in (("worker", "other"), ("other", "worker"), ("worker", "stranger")):
        both = seals(record.header, *map(key, names))
        _refused(ledger, _resealed(record, both), Forged, "expected one signature")


@pytest.mark.parametrize("changed", [b"", b"[]", b"null", b"{}", b"\xff", b"[" * 9000])
def test_no_seal_is_refused(changed: bytes) -> None:
    """Without a signature there is no entry."""
    ledger = _team()

    _refused(ledger, _resealed(ledger.record(Kind.CHECKPOINT), changed), Edited, "^seals")


def test_a_short_signature_is_refused() -> None:
    """A signature of another length is none."""
    ledger = _team()
    record = ledger.record(Kind.CHECKPOINT)
    short = record.seals[: record.seals.rindex(b'"') - 2] + b'"]]'

    _refused(ledger, _resealed(record, short), Forged, "expected a valid one")


def test_an_edited_header_is_refused() -> None:
    """Every byte of a header is signed: no single change of one survives."""
    ledger = _team()
    record = ledger.record(Kind.CHECKPOINT)

    for place in range(len(record.header)):
        raw = record.header
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        with pytest.raises((Edited, Forged, NotTrusted)):
            ledger.verify(Record(changed, record.seals, record.body))


# ---------------------------------------------------------------------- the first entry

_FIRST: dict[str, dict[str, Any]] = {
    "a previous hash": {"prev": "ab" * 32},
    "a skip hash": {"skip": "ab" * 32},
    "a fence": {"fence": 1},
    "a pause": {"pause": 1},
    "an owner": {"owner": 1},
}


@pytest.mark.parametrize("changes", _FIRST.values(), ids=_FIRST)
def test_a_genesis_has_no_links(changes: dict[str, Any]) -> None:
    """Nothing comes before the first entry, and it settles session, pause and owner itself."""
    ledger = ThreadLedger(_TEAM)

    _refused(ledger, ledger.record(Kind.GENESIS, **changes), Misplaced, "expected a genesis")


def test_a_genesis_is_the_first_entry() -> None:
    """A genesis of a later position begins nothing, nor does another kind at position 0."""
    ledger = ThreadLedger(_TEAM)
    later = ledger.record(Kind.GENESIS, seq=3)
    entry = ledger.verify(later, seq=3)

    with pytest.raises(Misplaced, match="expected a genesis"):
        begin(entry, later.body or b"", _TEAM)
    for kind in (Kind.RESUME, Kind.CHECKPOINT):
        _refused(ledger, ledger.record(kind), Misplaced, f"expected a genesis, found a {kind}")


@pytest.mark.parametrize("owner", ["other", "pods", "nowhere", "", "operator"])
def test_a_genesis_gives_the_thread_to_its_writer_alone(owner: str) -> None:
    """Nobody makes a thread that somebody else owns, or a pool without them."""
    ledger = ThreadLedger(_TEAM)

    _refused(ledger, ledger.record(Kind.GENESIS, genesis_body(owner)), NotTrusted, "expected owner")


def test_a_genesis_needs_its_body() -> None:
    """Its body says who owns the thread: another one, or none, is refused."""
    ledger = ThreadLedger(_TEAM)
    record = ledger.record(Kind.GENESIS)

    for body in (b"", encode_body(genesis_body("other"))):
        _refused(ledger, Record(record.header, record.seals, body), Edited, "expected the one")
    _missing(ledger, record)


# ---------------------------------------------------------------------- the next entry

_NEXT: dict[str, tuple[Kind, dict[str, Any], type[SealpointError], str]] = {
    "another previous hash": (
        Kind.CHECKPOINT,
        {"prev": "ab" * 32},
        Misplaced,
        "expected the links",
    ),
    "no previous hash": (Kind.CHECKPOINT, {"prev": None}, Misplaced, "expected the links"),
    "another skip hash": (Kind.CHECKPOINT, {"skip": "ab" * 32}, Misplaced, "expected the links"),
    "no skip hash": (Kind.CHECKPOINT, {"skip": None}, Misplaced, "expected the links"),
    "an older fence": (
        Kind.CHECKPOINT,
        {"fence": 0},
        NotTrusted,
        "names entry 0 for the session in force, and that is entry 1",
    ),
    "a later fence": (
        Kind.CHECKPOINT,
        {"fence": 3},
        NotTrusted,
        "names entry 3 for the session in force, and that is entry 1",
    ),
    "a resume under the old fence": (
        Kind.RESUME,
        {"fence": 1},
        NotTrusted,
        "names entry 1 for the session in force, and that is entry 3",
    ),
    "a later pause": (
        Kind.CHECKPOINT,
        {"pause": 3},
        NotTrusted,
        "names entry 3 for the pause in force, and that is entry 0",
    ),
    "a later owner": (
        Kind.RESUME,
        {"owner": 3},
        NotTrusted,
        "names entry 3 for the owner in force, and that is entry 0",
    ),
    "a second genesis": (Kind.GENESIS, {}, Misplaced, "a genesis after an erasure"),
    "a genesis of another generation": (
        Kind.GENESIS,
        {"gen": 1},
        Misplaced,
        "a genesis after an erasure",
    ),
    "a prune under its own fence": (Kind.PRUNE, {"fence": 3}, NotTrusted, "names entry 3"),
    "a prune of the next generation": (Kind.PRUNE, {"gen": 1}, Misplaced, "expected generation 0"),
}


@pytest.mark.parametrize(("kind", "changes", "error", "why"), _NEXT.values(), ids=_NEXT)
def test_an_entry_that_does_not_follow_is_refused(
    kind: Kind, changes: dict[str, Any], error: type[SealpointError], why: str
) -> None:
    """Links, fence and kind must be those of the next entry."""
    ledger = _team()

    _refused(ledger, ledger.record(kind, **changes), error, why)


def test_entries_cannot_change_places() -> None:
    """Leaving one out, taking one twice or exchanging two breaks the chain."""
    ledger = _team()
    ledger.add(Kind.CHECKPOINT)
    ledger.add(Kind.CHECKPOINT)
    tip = ThreadLedger(_TEAM)
    tip.add(Kind.GENESIS)
    entries = [ledger.verify(record, seq) for seq, record in enumerate(ledger.records)]

    assert tip.tip is not None
    for entry in (entries[0], *entries[2:]):
        with pytest.raises(Misplaced, match="expected position 1"):
            extend(tip.tip, entry, None, _TEAM)


def test_the_roster_never_goes_back() -> None:
    """After an entry under a newer roster, none may name an older one."""
    store = StoreLedger()
    store.add(store.roster_record(roster(identity("worker"))))
    old = store.chain.roster.seq
    store.add(store.roster_record(roster(identity("worker"))))
    ledger = ThreadLedger(store.chain)
    ledger.add(Kind.GENESIS, roster=old)
    ledger.add(Kind.RESUME)

    _refused(
        ledger,
        ledger.record(Kind.CHECKPOINT, roster=old),
        NotTrusted,
        "expected roster 1 or later",
    )


@pytest.mark.parametrize("kind", [Kind.RESUME, Kind.CHECKPOINT, Kind.PRUNE])
def test_another_writer_of_the_namespace_is_no_owner(kind: Kind) -> None:
    """Only the owner extends a thread, whoever else may write in the namespace."""
    ledger = _team()

    _refused(
        ledger, ledger.record(kind, signer="other"), NotTrusted, "expected owner 'worker', found"
    )


def test_another_key_of_the_owner_needs_its_own_session() -> None:
    """A session belongs to the key that opened it; the owner's second key is another process."""
    ledger = _team()
    record = ledger.record(Kind.CHECKPOINT, signer="spare")

    _refused(ledger, record, NotTrusted, "expected the key that opened session 1")

    ledger.add(Kind.RESUME, signer="spare")
    ledger.add(Kind.CHECKPOINT, signer="spare")
    _refused(ledger, ledger.record(Kind.CHECKPOINT), NotTrusted, "opened session 3")


def test_a_checkpoint_needs_a_session() -> None:
    """Genesis alone is no session: whoever saves has resumed first, and it is recorded."""
    ledger = ThreadLedger(_TEAM)
    ledger.add(Kind.GENESIS)

    _refused(ledger, ledger.record(Kind.CHECKPOINT), NotTrusted, "opened session 0")


@pytest.mark.parametrize("owner", ["other", "pods", ""])
def test_a_resume_cannot_give_the_thread_away(owner: str) -> None:
    """The owner in a resume is the one in force."""
    ledger = _team()

    _refused(
        ledger,
        ledger.record(Kind.RESUME, resume_body(owner)),
        NotTrusted,
        "expected owner 'worker', found",
    )


def test_a_resume_needs_its_body() -> None:
    """Its body names the owner: none, or another, is refused."""
    ledger = _team()
    record = ledger.record(Kind.RESUME)

    _missing(ledger, record)
    other = encode_body(resume_body("other"))
    _refused(ledger, Record(record.header, record.seals, other), Edited, "expected the one with")


def test_a_checkpoint_is_judged_without_its_body() -> None:
    """What a checkpoint says is checked by whoever reads it; its place stands without."""
    ledger = _team()
    record = ledger.record(Kind.CHECKPOINT)
    tip = ledger.follow(Record(record.header, record.seals, None))

    assert tip.entry.seq == 3


def test_an_owner_that_no_roster_knows_is_nobody() -> None:
    """A verified entry whose roster the chain does not have is refused once more."""
    ledger = ThreadLedger(_TEAM)
    record = ledger.record(Kind.GENESIS)
    entry = ledger.verify(record)

    with pytest.raises(NotTrusted, match="expected owner"):
        begin(entry, record.body or b"", StoreChain(_TEAM.pin))


# ---------------------------------------------------------------------- the fence


def test_a_fence_is_read_from_the_entry_that_set_it() -> None:
    """Genesis and resume say who owns the thread and whose session it is."""
    ledger = _team()
    first, second = (
        read_fence(ledger.verify(ledger.records[seq], seq), ledger.records[seq].body)
        for seq in (0, 1)
    )

    assert (first.seq, first.owner, first.is_session) == (0, "worker", False)
    assert (second.seq, second.owner, second.is_session) == (1, "worker", True)
    assert ledger.tip is not None
    assert second == ledger.tip.fence


def test_other_entries_are_no_fence() -> None:
    """A checkpoint, or a resume that names another fence, set none, with a body or without."""
    ledger = _team()
    checkpoint = ledger.verify(ledger.records[2], 2)
    odd = ledger.record(Kind.RESUME, fence=1)

    with pytest.raises(Misplaced, match="expected a fence, found a checkpoint"):
        read_fence(checkpoint, ledger.records[2].body)
    own = ledger.record(Kind.CHECKPOINT, fence=3)
    with pytest.raises(Misplaced, match="expected a fence, found a checkpoint"):
        read_fence(ledger.verify(own), own.body)
    with pytest.raises(Misplaced, match="expected a fence"):
        read_fence(ledger.verify(odd), odd.body)
    with pytest.raises(Misplaced, match="expected a fence, found a checkpoint"):
        read_fence(checkpoint, None)
