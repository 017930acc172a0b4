# SPDX-License-Identifier: Apache-2.0
"""Accepted restores: who signs one, where an epoch ends, and which entries of it still count."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from sealpoint.errors import Edited, Forged, Misplaced, Missing, NotTrusted
from sealpoint.ledger import (
    STORE_CHAIN,
    Kind,
    PositionList,
    RestoreBody,
    StoreChain,
    encode_body,
    link_hash,
    parse_body,
)
from sealpoint.signing import STOPPED, Identity, Role, RosterDocument
from sealpoint.storage import Record
from tests.ledgers import (
    NOW,
    SALT,
    StoreLedger,
    ThreadLedger,
    cut,
    identity,
    key,
    pin,
    roster,
    seals,
)


def _operator(name: str, person: str = "", **options: Any) -> Identity:
    made = identity(name, Role.OPERATOR, **options)
    return msgspec.structs.replace(made, person=person or name)


_LISTS = ("kept", "lost", "released")


def _store(quorum: int = 0, *identities: Identity) -> StoreLedger:
    """A store chain of one roster: a worker, and operators."""
    people = identities or (_operator("ann"), _operator("bob"), _operator("bob-2", "bob"))
    document = roster(identity("worker"), *people)
    ledger = StoreLedger()
    document = msgspec.structs.replace(document, restore_quorum=quorum)
    ledger.add(ledger.roster_record(document))
    return ledger


def _restore(
    store: StoreLedger,
    /,
    *signers: str,
    kept: PositionList | None = None,
    lost: PositionList | None = None,
    released: PositionList | None = None,
    **changes: Any,
) -> Record:
    """The next record with a restore that keeps some positions; by the root unless others are."""
    lists = [store.cut_list() if each is None else each for each in (kept, lost, released)]
    names = [each.digest.hex() for each in lists]
    body = RestoreBody(
        salt=SALT, reason="disk died", kept=names[0], lost=names[1], released=names[2]
    )
    epoch = changes.pop("epoch", store.chain.epoch + 1)
    return store.record(Kind.RESTORE, body, *(signers or ("root",)), epoch=epoch, **changes)


def _thread(store: StoreLedger) -> ThreadLedger:
    """Genesis, session and three checkpoints by the worker."""
    made = ThreadLedger(store.chain)
    for kind in (Kind.GENESIS, Kind.RESUME, *[Kind.CHECKPOINT] * 3):
        made.add(kind)
    return made


def _kept(store: StoreLedger, thread: ThreadLedger, seq: int) -> PositionList:
    place = bytes.fromhex(thread.place.thread)
    return store.cut_list((place, seq, link_hash(thread.records[seq].header)))


# ------------------------------------------------------------------ the entry


def test_a_restore_by_the_root_begins_an_epoch() -> None:
    """The chain goes on in the epoch that it names."""
    store = _store()
    assert store.chain.epoch == 0
    store.add(_restore(store))
    after = store.roster_record(store.chain.roster.document, epoch=1)
    store.add(after)
    store.add(_restore(store))

    assert store.chain.epoch == 2
    assert [each.seq for each in store.chain.restores.all] == [1, 3]
    assert store.chain.kept(b"t" * 16) is None


def test_nothing_was_kept_before_the_first_restore() -> None:
    """Without a restore there is no list to ask."""
    assert _store().chain.kept(b"t" * 16) is None


@pytest.mark.parametrize(("kind", "epoch"), [("restore", 0), ("restore", 2), ("roster", 1)])
def test_an_entry_of_another_epoch_does_not_follow(kind: str, epoch: int) -> None:
    """A restore is of the next epoch, and everything else of the present one."""
    store = _store()
    if kind == "restore":
        record = _restore(store, epoch=epoch)
    else:
        record = store.roster_record(store.chain.roster.document, epoch=epoch)

    with pytest.raises(Misplaced, match="expected another epoch"):
        store.add(record)


def test_an_entry_of_the_epoch_that_ended_does_not_follow() -> None:
    """Whoever has not heard of the restore writes nothing after it."""
    store = _store()
    store.add(_restore(store))

    with pytest.raises(Misplaced, match="expected another epoch than 0"):
        store.add(store.roster_record(store.chain.roster.document))


def test_a_restore_without_a_roster_is_refused() -> None:
    """The first entry is a roster."""
    store = StoreLedger()

    with pytest.raises(NotTrusted, match="it has no roster"):
        store.add(_restore(store))


def test_a_restore_on_a_thread_is_refused() -> None:
    """It belongs on the store chain, whoever signs it."""
    store = _store()
    thread = ThreadLedger(store.chain).begun()
    body = RestoreBody(salt=SALT, reason="mine", **dict.fromkeys(_LISTS, "0" * 64))

    with pytest.raises(NotTrusted, match="expected a kind that threads have"):
        thread.add(Kind.RESTORE, body)


@pytest.mark.parametrize("field", _LISTS)
@pytest.mark.parametrize("name", ["", "00", "g" * 64, "A" * 64, "0" * 63 + " "])
def test_a_body_names_three_digests(field: str, name: str) -> None:
    """Other names of lists are refused, even if the root signed them."""
    body = RestoreBody(salt=SALT, reason="disk died", **dict.fromkeys(_LISTS, "0" * 64))
    data = encode_body(msgspec.structs.replace(body, **{field: name}))
    store = _store()

    with pytest.raises(Edited):
        store.add(store.record(Kind.RESTORE, data, "root", epoch=1))


def test_a_restore_of_another_store_is_refused() -> None:
    """It is bound to its store like any entry."""
    store = _store()

    with pytest.raises(Misplaced, match="expected another store"):
        store.add(_restore(store, store="ab" * 16))


# ------------------------------------------------------------------ who signs


def test_without_a_quorum_only_the_root_signs() -> None:
    """Operators do not, however many they are."""
    store = _store(0)

    with pytest.raises(NotTrusted, match="root signatures"):
        store.add(_restore(store, "ann", "bob"))


@pytest.mark.parametrize("quorum", [1, 2])
def test_as_many_persons_as_the_roster_asks_for_sign(quorum: int) -> None:
    """No root key is needed then, and the root still may."""
    for signers in (("ann", "bob"), ("bob-2", "ann"), ("root",)):
        store = _store(quorum)
        store.add(_restore(store, *signers))

        assert store.chain.epoch == 1


@pytest.mark.parametrize(
    "signers",
    [
        ("ann",),
        ("bob", "bob-2"),
        ("ann", "worker"),
        ("ann", "stranger"),
        ("ann", "local"),
        ("worker", "stranger"),
    ],
    ids=["one", "one person twice", "a writer", "a stranger", "of one namespace", "nobody"],
)
def test_too_few_persons_are_refused(signers: tuple[str, ...]) -> None:
    """A person counts once whatever the number of keys, and others do not count."""
    people = (
        *(_operator("ann"), _operator("bob"), _operator("bob-2", "bob")),
        _operator("local", namespaces=("default",)),
    )
    store = _store(2, *people)

    with pytest.raises(NotTrusted, match="root signatures"):
        store.add(_restore(store, *signers))


def test_two_keys_of_one_identity_count_once() -> None:
    """Nor does an identity with two keys make two persons."""
    store = _store(2, _operator("ann", keys=("ann", "ann-2")))

    with pytest.raises(NotTrusted):
        store.add(_restore(store, "ann", "ann-2"))


def test_a_false_signature_among_enough_is_forged() -> None:
    """Whoever is named has signed, or nobody is believed."""
    store = _store(2)
    record = _restore(store, "ann", "bob")
    other = _restore(store, "ann", "bob", at=NOW + timedelta(hours=1))
    ours, theirs = seals(record.header, key("ann")), seals(other.header, key("bob"))
    joined = ours[:-1] + b"," + theirs[1:]

    with pytest.raises(Forged):
        store.add(Record(record.header, joined, record.body))


@pytest.mark.parametrize("expires", [STOPPED, NOW], ids=["stopped", "expired"])
def test_an_expired_operator_does_not_count(expires: Any) -> None:
    """A key that may write nothing any more accepts nothing either."""
    bob = _operator("bob")
    held = tuple(msgspec.structs.replace(each, expires=expires) for each in bob.keys)
    store = _store(2, _operator("ann"), msgspec.structs.replace(bob, keys=held))

    assert store.chain.restorer(key("bob").public.id, NOW - timedelta(days=30000)) is not None
    with pytest.raises(NotTrusted):
        store.add(_restore(store, "ann", "bob"))


def test_an_operator_counts_up_to_the_moment_of_expiry() -> None:
    """At that moment the key has expired, as it has for every other entry."""
    bob = _operator("bob")
    held = tuple(msgspec.structs.replace(each, expires=NOW) for each in bob.keys)
    chain = _store(1, msgspec.structs.replace(bob, keys=held)).chain

    assert chain.restorer(key("bob").public.id, NOW - timedelta(microseconds=1)) is not None
    assert chain.restorer(key("bob").public.id, NOW) is None


def test_a_quorum_is_that_of_the_roster_before_it() -> None:
    """A roster that asks for fewer holds from its own place on."""
    store = _store(2)
    fewer: RosterDocument = msgspec.structs.replace(store.chain.roster.document, restore_quorum=1)
    with pytest.raises(NotTrusted):
        store.add(_restore(store, "ann"))
    store.add(store.roster_record(fewer))
    store.add(_restore(store, "ann"))

    assert store.chain.epoch == 1


def test_the_root_signs_with_its_threshold() -> None:
    """One of two root keys is not the root."""
    trusted = pin("root", "root-2", threshold=2)
    store = StoreLedger(trusted)
    store.add(store.roster_record(roster(identity("worker")), "root", "root-2"))
    with pytest.raises(NotTrusted):
        store.add(_restore(store, "root"))
    store.add(_restore(store, "root", "root-2"))

    assert store.chain.epoch == 1


# ------------------------------------------------------------------ what still counts


def test_what_was_kept_counts_and_what_was_lost_does_not() -> None:
    """Up to the listed position, and no further."""
    store = _store()
    thread = _thread(store)
    thread.chain = store.add(_restore(store, kept=_kept(store, thread, 3)))
    for seq in range(4):
        thread.verify(thread.records[seq], seq)

    with pytest.raises(Misplaced, match="kept entries up to 3"):
        thread.verify(thread.records[4], 4)


def test_another_entry_at_the_listed_position_does_not_count() -> None:
    """The hash decides there."""
    store = _store()
    thread = _thread(store)
    listed = store.cut_list((bytes.fromhex(thread.place.thread), 3, b"x" * 32))
    thread.chain = store.add(_restore(store, kept=listed))

    with pytest.raises(Misplaced):
        thread.verify(thread.records[3], 3)
    thread.verify(thread.records[2], 2)


def test_a_thread_that_is_not_listed_is_lost() -> None:
    """Nothing of it counts."""
    store = _store()
    thread = _thread(store)
    thread.chain = store.add(_restore(store))

    with pytest.raises(Misplaced, match="kept nothing"):
        thread.verify(thread.records[0], 0)


def test_a_thread_goes_on_in_the_new_epoch() -> None:
    """After the kept entry, and there is no way back."""
    store = _store()
    thread = _thread(store)
    thread.chain = store.add(_restore(store, kept=_kept(store, thread, 4)))
    thread.add(Kind.RESUME, epoch=1)
    thread.add(Kind.CHECKPOINT, epoch=1)

    assert thread.tip is not None
    assert thread.tip.entry.header.epoch == 1
    with pytest.raises(Misplaced):
        thread.add(Kind.CHECKPOINT, epoch=0)


def test_epochs_never_go_back_along_a_thread() -> None:
    """Even where the list would let an older entry be: the next entry is not older."""
    store = _store()
    thread = _thread(store)
    chain = store.add(_restore(store, kept=_kept(store, thread, 4)))
    begun = ThreadLedger(store.chain)
    begun.chain = chain
    begun.add(Kind.GENESIS, epoch=1)

    with pytest.raises(Misplaced, match="expected epoch 1 or later, found 0"):
        begun.follow(begun.record(Kind.RESUME, epoch=0))


def test_an_epoch_that_has_not_begun_is_refused() -> None:
    """Nobody writes ahead of a restore."""
    store = _store()
    thread = _thread(store)

    with pytest.raises(Misplaced, match="expected epoch 0, found 1"):
        thread.add(Kind.CHECKPOINT, epoch=1)


def test_every_later_restore_must_have_kept_an_entry() -> None:
    """What one of them lost is lost, and what a later one began is judged by later ones alone."""
    store = _store()
    thread = _thread(store)
    thread.chain = store.add(_restore(store, kept=_kept(store, thread, 2)))
    again = ThreadLedger(store.chain)
    again.records, again.chain = thread.records[:3], thread.chain
    again.tip = None
    lost = thread.records[3]
    thread.chain = store.add(_restore(store, kept=_kept(store, thread, 4)))
    thread.verify(thread.records[2], 2)

    with pytest.raises(Misplaced, match="the restore in entry 1 of the store chain kept"):
        thread.verify(lost, 3)
    record = again.record(Kind.CHECKPOINT, epoch=1)
    entry = thread.verify(record, 3)
    assert entry.header.epoch == 1


@pytest.mark.parametrize("damage", ["missing", "edited"])
def test_a_list_is_believed_by_its_digest(damage: str) -> None:
    """Without it, entries of earlier epochs are refused, and those of the new one are not."""
    store = _store()
    thread = _thread(store)
    kept = _kept(store, thread, 4)
    thread.chain = store.add(_restore(store, kept=kept))
    if damage == "missing":
        del store.blobs[kept.digest]
    else:
        store.blobs[kept.digest] = kept.data[:-1] + b"\x00"
    fresh = ThreadLedger(store.chain, thread=b"f" * 16)

    with pytest.raises(Missing if damage == "missing" else Edited):
        thread.verify(thread.records[0], 0)
    fresh.add(Kind.GENESIS, epoch=1)


# ------------------------------------------------------------------ what belongs to the chain


def test_a_chain_names_all_its_lists() -> None:
    """Those of the newest cuts and of every restore, each once and in order."""
    store = _store()
    thread = _thread(store)
    kept, again = _kept(store, thread, 3), _kept(store, thread, 2)
    store.add(_restore(store, kept=kept))
    store.add(_restore(store, kept=again))
    listed = store.cut_list((b"z" * 16, 1, b"z" * 32))
    people = [each for each in store.chain.roster.identities if each.name != "ann"]
    document = roster(*people, cutoffs=[cut("ann", listed)])
    store.add(store.roster_record(document, epoch=2))
    nothing = PositionList(b"")

    assert store.chain.blobs == tuple(
        sorted(each.digest for each in (kept, again, listed, nothing))
    )
    assert StoreChain(pin()).blobs == ()
    assert _store().chain.blobs == ()


def test_a_restore_is_read_from_its_body() -> None:
    """What the entry says is what the chain has of it."""
    store = _store()
    record = _restore(store)
    chain = store.add(record)
    (restore,) = chain.restores.all
    body: RestoreBody = parse_body(
        Kind.RESTORE, msgspec.json.decode(record.header)["body"], record.body or b""
    )

    assert (restore.kept, restore.lost) == (body.kept, body.lost)
    assert body.reason == "disk died"
    assert STORE_CHAIN.hex() in record.header.decode()


# ---------------------------------------------------------------------- released threads

_THREAD = b"t" * 16
_KEPT = (_THREAD, 4, b"h" * 32)
_SEEN = (_THREAD, 7, b"s" * 32)


def _cut(store: StoreLedger, *released: tuple[bytes, int, bytes]) -> None:
    kept, lost = store.cut_list(_KEPT), store.cut_list(_SEEN)
    store.add(_restore(store, kept=kept, lost=lost, released=store.cut_list(*released)))


def _is_cut(store: StoreLedger, basis: int = 4, since: int = 0, until: int | None = None) -> bool:
    chain = store.chain
    return chain.restores.cuts_off(_THREAD, chain.lists, basis=basis, since=since, until=until)


def test_a_cut_thread_is_released_only_if_the_restore_says_so() -> None:
    """Another thread's release, or none, leaves it cut; a thread that lost nothing never is."""
    store = _store()
    assert not _is_cut(store)
    store.add(_restore(store, kept=store.cut_list(_KEPT)))
    assert not _is_cut(store)
    _cut(store, (b"u" * 16, 4, b"h" * 32))
    assert _is_cut(store)
    assert not _is_cut(store, since=2)
    assert not _is_cut(store, until=1)

    store = _store()
    _cut(store, _KEPT)
    assert not _is_cut(store)


@pytest.mark.parametrize(("basis", "cut"), [(0, False), (4, False), (5, True), (9, True)])
def test_a_release_is_for_the_thread_as_it_was_kept(basis: int, cut: bool) -> None:  # noqa: FBT001
    """What came after it, and changes what a resume would mean, was not released."""
    store = _store()
    _cut(store, _KEPT)

    assert _is_cut(store, basis) is cut


@pytest.mark.parametrize("line", [(_THREAD, 5, b"h" * 32), (_THREAD, 4, b"x" * 32), _SEEN])
def test_a_release_of_another_entry_than_was_kept_counts_for_nothing(
    line: tuple[bytes, int, bytes],
) -> None:
    """Even one that the root signed: it is for nothing that can be read."""
    store = _store()
    _cut(store, line)

    assert _is_cut(store)


def test_the_newest_restore_that_cut_a_thread_decides() -> None:
    """An earlier release does not cover a later cut; a restore that cut others changes nothing."""
    store = _store()
    _cut(store, _KEPT)
    store.add(_restore(store, kept=store.cut_list(_KEPT)))
    assert not _is_cut(store)
    _cut(store)
    assert _is_cut(store)
    _cut(store, _KEPT)
    assert not _is_cut(store)


# ---------------------------------------------------------------------- lost pauses


def _lose_pause(store: StoreLedger, kept: tuple[bytes, int, bytes] = _KEPT) -> None:
    """A restore that keeps a thread up to an entry, and lost its pause."""
    listed = store.cut_list(kept)
    body = RestoreBody(
        salt=SALT,
        reason="disk died",
        kept=listed.digest.hex(),
        lost=store.cut_list(_SEEN).digest.hex(),
        released=store.cut_list().digest.hex(),
        paused=listed.digest.hex(),
    )
    store.add(store.record(Kind.RESTORE, body, "root", epoch=store.chain.epoch + 1))


@pytest.mark.parametrize(("pause", "in_force"), [(0, True), (4, True), (5, False)])
def test_a_lost_pause_is_in_force_until_an_entry_settles_it(
    pause: int,
    in_force: bool,  # noqa: FBT001
) -> None:
    """The mark of a header says where the pause was settled last."""
    store = _store()
    assert store.chain.lost_pause(_THREAD, pause) is None
    _lose_pause(store)

    assert (store.chain.lost_pause(_THREAD, pause) is not None) is in_force
    assert store.chain.lost_pause(_THREAD, pause, 0) is None
    assert store.chain.lost_pause(b"u" * 16, pause) is None


def test_a_later_restore_moves_where_a_lost_pause_is_settled() -> None:
    """Positions above what it keeps are given a second time; a lost thread begins anew."""
    store = _store()
    _lose_pause(store)
    store.add(_restore(store, kept=store.cut_list((_THREAD, 2, b"h" * 32))))
    assert store.chain.lost_pause(_THREAD, 2) is not None
    assert store.chain.lost_pause(_THREAD, 3) is None
    assert store.chain.lost_pause(_THREAD, 3, 1) is not None
    store.add(_restore(store, kept=store.cut_list()))

    assert store.chain.lost_pause(_THREAD, 0) is None


def test_the_name_of_a_list_of_lost_pauses_is_a_digest() -> None:
    """Whoever signed it."""
    body = RestoreBody(salt=SALT, reason="r", kept=SALT, lost=SALT, released=SALT, paused="x")
    store = _store()

    with pytest.raises(Edited):
        store.add(store.record(Kind.RESTORE, body, "root", epoch=1))
