# SPDX-License-Identifier: Apache-2.0
"""Entries of a revoked key: the newest roster says up to which position they count."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from sealpoint.errors import Edited, Forked, Misplaced, Missing, NotTrusted, RolledBack
from sealpoint.ledger import (
    STORE_CHAIN,
    CutoffCheck,
    Entry,
    Kind,
    RestoreBody,
    StoreChain,
    link_hash,
    parse_header,
)
from sealpoint.ledger._cutoffs import accepted_until, attestation_counts
from sealpoint.signing import Cutoff, Pool, Role
from sealpoint.storage import Record
from tests.ledgers import (
    NOW,
    SALT,
    THREAD,
    StoreLedger,
    ThreadLedger,
    cut,
    identity,
    key,
    roster,
)
from tests.unit.ledger.gating import add, approve, handoff, people, stated

_TEAM = roster(
    identity("worker", keys=("worker",)),
    identity("second"),
    identity("operator", Role.OPERATOR),
    pools=[Pool("pods", ("worker", "second"))],
)


def _store() -> StoreLedger:
    ledger = StoreLedger()
    ledger.add(ledger.roster_record(_TEAM))
    return ledger


def _thread(store: StoreLedger) -> ThreadLedger:
    """Genesis, session and three checkpoints by the worker, for the pool."""
    made = ThreadLedger(store.chain, owner="pods")
    for kind in (Kind.GENESIS, Kind.RESUME, *[Kind.CHECKPOINT] * 3):
        made.add(kind)
    return made


def _place(thread: ThreadLedger, seq: int) -> tuple[bytes, int, bytes]:
    return bytes.fromhex(thread.place.thread), seq, link_hash(thread.records[seq].header)


def _revoke(store: StoreLedger, *positions: tuple[bytes, int, bytes]) -> StoreChain:
    """The worker's key ends with these last positions; a new key takes its place."""
    renewed = [
        identity("worker", keys=("worker-2",)) if each.name == "worker" else each
        for each in _TEAM.identities
    ]
    made = cut("worker", store.cut_list(*positions))
    return store.add(store.roster_record(roster(*renewed, pools=_TEAM.pools, cutoffs=[made])))


def test_what_was_written_before_the_cut_stays_good() -> None:
    """Every entry up to the listed one verifies as before."""
    store = _store()
    thread = _thread(store)
    thread.chain = _revoke(store, _place(thread, 4))

    for seq, record in enumerate(thread.records):
        assert thread.verify(record, seq).writer == "worker"


def test_the_new_key_goes_on() -> None:
    """The thread is the identity's, and its new key opens the next session."""
    store = _store()
    thread = _thread(store)
    thread.chain = _revoke(store, _place(thread, 4))
    thread.add(Kind.RESUME, signer="worker-2")
    thread.add(Kind.CHECKPOINT, signer="worker-2")

    assert thread.tip is not None
    assert thread.tip.entry.writer == "worker"


_BEYOND: dict[str, dict[str, Any]] = {
    "as it is": {},
    "under the older roster": {"roster": 0},
    "with an older time": {"roster": 0, "at": NOW},
}


@pytest.mark.parametrize("changes", _BEYOND.values(), ids=_BEYOND)
def test_an_entry_beyond_the_cut_is_refused(changes: dict[str, Any]) -> None:
    """Whatever roster and whatever time it names: its position is too late."""
    store = _store()
    thread = _thread(store)
    late = thread.record(Kind.CHECKPOINT, **changes)
    thread.chain = _revoke(store, _place(thread, 4))

    with pytest.raises(
        NotTrusted, match="entry 5 of thread 101112131415: it is of the revoked key"
    ):
        thread.verify(late)


def test_a_revoked_key_does_not_write_under_the_newer_roster() -> None:
    """The newest roster does not hold it, whatever the position."""
    store = _store()
    thread = _thread(store)
    thread.chain = _revoke(store, _place(thread, 4))

    with pytest.raises(NotTrusted, match="expected a key of roster 1"):
        thread.verify(thread.record(Kind.CHECKPOINT))


def test_another_entry_at_the_cut_is_refused() -> None:
    """The position is right and the hash is not: the list names one entry."""
    store = _store()
    thread = _thread(store)
    genuine = thread.records.pop()
    twin = thread.record(Kind.CHECKPOINT, at=NOW)
    thread.records.append(genuine)
    thread.chain = _revoke(store, _place(thread, 4))

    assert thread.verify(genuine, 4).seq == 4
    with pytest.raises(NotTrusted, match="entries of this thread up to 4"):
        thread.verify(twin, 4)


@pytest.mark.parametrize("listed", [[], [(b"x" * 16, 9, b"h" * 32)]], ids=["empty", "another"])
def test_a_thread_that_is_not_listed_has_nothing_of_the_key(
    listed: list[tuple[bytes, int, bytes]],
) -> None:
    """Not even its genesis: a thread that was made with the key later looks just like it."""
    store = _store()
    thread = _thread(store)
    thread.chain = _revoke(store, *listed)

    for seq, record in enumerate(thread.records):
        with pytest.raises(NotTrusted, match=r"revoked key .* no entry of this thread"):
            thread.verify(record, seq)


def test_other_keys_are_not_concerned() -> None:
    """A cut ends one key; members of the pool go on in the same thread."""
    store = _store()
    thread = _thread(store)
    thread.add(Kind.RESUME, signer="second")
    thread.chain = _revoke(store, _place(thread, 4))
    thread.add(Kind.CHECKPOINT, signer="second", roster=1)

    assert thread.seq == 7


@pytest.mark.parametrize(("blob", "error"), [(None, Missing), (b"x" * 56, Edited)])
def test_without_its_list_nothing_of_the_key_counts(
    blob: bytes | None, error: type[Exception]
) -> None:
    """A list that is gone or edited refuses the entries of its key, and of no other."""
    store = _store()
    thread = _thread(store)
    thread.add(Kind.RESUME, signer="second")
    thread.chain = _revoke(store, _place(thread, 4))
    (digest,) = store.blobs
    if blob is None:
        del store.blobs[digest]
    else:
        store.blobs[digest] = blob

    with pytest.raises(error):
        thread.verify(thread.records[0], 0)
    assert thread.verify(thread.records[5], 5).writer == "second"


def test_cuts_hold_under_every_later_roster() -> None:
    """They are repeated for ever; a roster that drops or changes one is refused."""
    store = _store()
    thread = _thread(store)
    late = thread.record(Kind.CHECKPOINT)
    _revoke(store, _place(thread, 4))
    document = store.chain.roster.document
    thread.chain = store.add(store.roster_record(document))

    with pytest.raises(NotTrusted, match="revoked key"):
        thread.verify(late)
    other = Cutoff(document.cutoffs[0].key, "ab" * 32)
    for cuts in ((), (other,)):
        fewer = msgspec.structs.replace(document, cutoffs=cuts)
        with pytest.raises(NotTrusted, match="every earlier cutoff"):
            store.add(store.roster_record(fewer))


def test_a_revoked_key_never_comes_back() -> None:
    """Its identity cannot be given it again."""
    store = _store()
    _revoke(store)
    again = roster(
        *_TEAM.identities, pools=_TEAM.pools, cutoffs=store.chain.roster.document.cutoffs
    )

    with pytest.raises(NotTrusted, match="which has a cutoff, with nobody"):
        store.add(store.roster_record(again))


def test_only_the_newest_roster_keeps_its_cuts_in_memory() -> None:
    """Older ones judge rights alone."""
    store = _store()
    _revoke(store)
    chain = store.add(store.roster_record(store.chain.roster.document))

    assert [len(each.cutoffs) for each in chain.rosters] == [0, 0, 1]


def test_a_revoked_operator_adopts_no_store_chain() -> None:
    """What it adopted before stays: the roster that ended it is linked to that."""
    store = _store()
    store.add(store.adopt_record("operator"))
    made = cut("operator", store.cut_list())
    fewer = roster(*_TEAM.identities[:2], pools=_TEAM.pools, cutoffs=[made])
    store.add(store.roster_record(fewer))

    assert store.chain.seq == 2
    with pytest.raises(NotTrusted, match="by role operator of all namespaces"):
        store.add(store.adopt_record("operator"))
    with pytest.raises(NotTrusted, match="lost a right without a cutoff"):
        _store().add(_store().roster_record(roster(*_TEAM.identities[:2], pools=_TEAM.pools)))


def test_a_list_may_name_the_store_chain() -> None:
    """It changes nothing there, where the order of entries decides."""
    store = _store()
    thread = _thread(store)
    thread.chain = _revoke(store, (STORE_CHAIN, 0, b"h" * 32), _place(thread, 4))

    assert thread.verify(thread.records[4], 4).seq == 4


# ---------------------------------------------------------------------- a restore after the end


def _restore(store: StoreLedger, *kept: tuple[bytes, int, bytes]) -> StoreChain:
    """The store came back from a copy in which threads end here."""
    body = RestoreBody(
        salt=SALT,
        kept=store.cut_list(*kept).digest.hex(),
        lost=store.cut_list().digest.hex(),
        released=store.cut_list().digest.hex(),
        reason="disk",
    )
    return store.add(store.record(Kind.RESTORE, body, "root", epoch=store.chain.epoch + 1))


def test_a_restore_leaves_less_of_a_revoked_key() -> None:
    """What the restore lost is no longer due, and its place is not free for the revoked key."""
    store = _store()
    thread = _thread(store)
    forged: list[Record] = []
    _history(thread, lambda other: forged.append(other.record(Kind.CHECKPOINT, epoch=1)))
    _revoke(store, _place(thread, 4))
    thread.chain = _restore(store, _place(thread, 2))

    _followed(thread, thread.records[:3]).require_settled("thread 't'")
    with pytest.raises(Misplaced, match="kept entries up to 2"):
        thread.verify(thread.records[3], 3)
    with pytest.raises(NotTrusted, match="entries of this thread up to 2"):
        thread.verify(forged[0], 3)


def test_a_roster_after_a_restore_gives_nothing_back_to_a_revoked_key() -> None:
    """Only a roster that still holds the key would say that it went on."""
    store = _store()
    thread = _thread(store)
    forged: list[Record] = []
    _history(thread, lambda other: forged.append(other.record(Kind.CHECKPOINT, epoch=1)))
    _revoke(store, _place(thread, 4))
    _restore(store, _place(thread, 2))
    thread.chain = store.add(store.roster_record(store.chain.roster.document, epoch=1))

    with pytest.raises(NotTrusted, match="entries of this thread up to 2"):
        thread.verify(forged[0], 3)


def test_a_restore_lists_nothing_for_a_revoked_key() -> None:
    """What its cut does not list does not count because a restore kept the thread."""
    store = _store()
    thread = _thread(store)
    _revoke(store)
    thread.chain = _restore(store, _place(thread, 4))

    with pytest.raises(NotTrusted, match=r"revoked key .* no entry of this thread"):
        thread.verify(thread.records[4], 4)


def test_what_a_restore_left_of_a_revoked_key_is_due() -> None:
    """A chain that ends before the last entry that stayed is rolled back."""
    store = _store()
    thread = _thread(store)
    _revoke(store, _place(thread, 4))
    thread.chain = _restore(store, _place(thread, 2))
    watch = _followed(thread, thread.records[:2])

    with pytest.raises(RolledBack, match="expected entry 2"):
        watch.require_settled("thread 't'")


def test_a_restore_that_lost_a_thread_leaves_nothing_of_a_revoked_key() -> None:
    """Its entries in another epoch count no more than those in the lost one."""
    store = _store()
    thread = _thread(store)
    again = ThreadLedger(thread.chain, owner="pods").record(Kind.GENESIS, epoch=1)
    _revoke(store, _place(thread, 4))
    thread.chain = _restore(store)

    with pytest.raises(NotTrusted, match="no entry of this thread"):
        thread.verify(again, 0)


def test_a_key_that_goes_on_after_a_restore_is_cut_where_it_ended() -> None:
    """A restore before the end of a key takes nothing from what it wrote afterwards."""
    store = _store()
    thread = _thread(store)
    del thread.records[3:]
    thread.tip = None
    replay = ThreadLedger(_restore(store, _place(thread, 2)), owner="pods")
    for record in thread.records:
        replay.tip = replay.follow(record)
        replay.records.append(record)
    replay.add(Kind.CHECKPOINT, epoch=1)
    store.add(store.roster_record(_TEAM, epoch=1))
    renewed = roster(
        *(identity("worker", keys=("worker-2",)), *_TEAM.identities[1:]),
        pools=_TEAM.pools,
        cutoffs=[cut("worker", store.cut_list(_place(replay, 3)))],
    )
    replay.chain = store.add(store.roster_record(renewed, epoch=1))

    _followed(replay, replay.records).require_settled("thread 't'")
    hidden = _followed(replay, replay.records[:3])
    with pytest.raises(RolledBack, match="expected entry 3"):
        hidden.require_settled("thread 't'")


def test_of_two_restores_the_one_after_the_end_of_a_key_counts() -> None:
    """The key went on after the first; of what it wrote then, the second has lost a part."""
    store = _store()
    thread = _thread(store)
    del thread.records[3:]
    replay = ThreadLedger(_restore(store, _place(thread, 2)), owner="pods")
    for record in thread.records:
        replay.tip = replay.follow(record)
        replay.records.append(record)
    for _ in range(3):
        replay.add(Kind.CHECKPOINT, epoch=1)
    store.add(store.roster_record(_TEAM, epoch=1))
    renewed = roster(
        *(identity("worker", keys=("worker-2",)), *_TEAM.identities[1:]),
        pools=_TEAM.pools,
        cutoffs=[cut("worker", store.cut_list(_place(replay, 5)))],
    )
    store.add(store.roster_record(renewed, epoch=1))
    forged = replay.record(Kind.CHECKPOINT, epoch=2, seq=4)
    replay.chain = _restore(store, _place(replay, 3))

    with pytest.raises(NotTrusted, match="entries of this thread up to 3"):
        replay.verify(forged, 4)


# ---------------------------------------------------------------------- the way to the cut


def _followed(thread: ThreadLedger, records: list[Record], first: int = 0) -> CutoffCheck:
    watch = CutoffCheck()
    for seq, record in enumerate(records, start=first):
        watch.follow(thread.verify(record, seq), record.body, thread.chain)
    return watch


def test_a_chain_comes_to_what_the_cut_lists() -> None:
    """Followed from anywhere below the cut, and beyond it."""
    store = _store()
    thread = _thread(store)
    thread.add(Kind.RESUME, signer="second")
    thread.chain = _revoke(store, _place(thread, 4))

    for first in range(6):
        _followed(thread, thread.records[first:], first).require_settled("thread 't'")


def test_a_chain_that_ends_before_the_cut_is_rolled_back() -> None:
    """What is there is genuine, and more was there when the key ended."""
    store = _store()
    thread = _thread(store)
    thread.chain = _revoke(store, _place(thread, 4))

    for length in (1, 3, 4):
        watch = _followed(thread, thread.records[:length])
        with pytest.raises(RolledBack, match="thread 't': expected entry 4, which the cut"):
            watch.require_settled("thread 't'")
    _followed(thread, thread.records[4:], 4).require_settled("thread 't'")


def _history(thread: ThreadLedger, write: Callable[[ThreadLedger], object]) -> list[Record]:
    """Another history from entry 3 on, by whoever still has the key."""
    replay = ThreadLedger(thread.chain, owner="pods")
    for record in thread.records[:3]:
        replay.tip = replay.follow(record)
        replay.records.append(record)
    write(replay)
    return replay.records


def test_another_history_below_the_cut_is_refused() -> None:
    """With the stolen key, entries below the cut can be signed anew: they lead elsewhere."""
    store = _store()
    thread = _thread(store)

    def short(other: ThreadLedger) -> None:
        other.add(Kind.CHECKPOINT, at=NOW)

    def long(other: ThreadLedger) -> None:
        other.add(Kind.CHECKPOINT, at=NOW)
        other.add(Kind.RESUME, signer="second")

    histories = [_history(thread, write) for write in (short, long)]
    thread.chain = _revoke(store, _place(thread, 4))

    with pytest.raises(RolledBack):
        _followed(thread, histories[0]).require_settled("thread 't'")
    with pytest.raises(Forked, match=r"entry 4 of thread .* the cutoff of a revoked key lists"):
        _followed(thread, histories[1])


def test_a_watch_that_refused_goes_on_refusing() -> None:
    """The next look at the same entry meets the same refusal."""
    store = _store()
    thread = _thread(store)
    forged = _history(thread, lambda other: other.add(Kind.CHECKPOINT, at=NOW))
    forged += [thread.records[4]]
    thread.chain = _revoke(store, _place(thread, 4))
    watch = _followed(thread, forged[:4])
    other = msgspec.structs.replace(thread.verify(thread.records[4], 4), hash=b"x" * 32)

    for _ in range(2):
        with pytest.raises(Forked):
            watch.follow(other, None, thread.chain)
    watch.follow(thread.verify(thread.records[4], 4), None, thread.chain)
    watch.require_settled("thread 't'")


def test_threads_without_such_keys_owe_nothing() -> None:
    """No cut, no list, nothing to come to."""
    store = _store()
    thread = _thread(store)

    _followed(thread, thread.records[:2]).require_settled("thread 't'")
    assert accepted_until(store.chain, thread.verify(thread.records[0], 0).header, b"") is None
    assert (
        accepted_until(StoreChain(store.chain.pin), thread.verify(thread.records[0], 0).header, b"")
        is None
    )
    assert bytes.fromhex(thread.place.thread) == THREAD


# ---------------------------------------------------------------------- words of a revoked key


def _relayed() -> tuple[StoreLedger, ThreadLedger]:
    """A thread in which an auditor relays a word of Ann at entry 3, with a checkpoint behind it."""
    store = StoreLedger()
    store.add(store.roster_record(roster(*people())))
    thread = ThreadLedger(store.chain).begun()
    add(thread, Kind.APPROVAL, Kind.CHECKPOINT)
    return store, thread


def _without_ann(store: StoreLedger, *positions: tuple[bytes, int, bytes]) -> StoreChain:
    others = [each for each in people() if each.name != "ann"]
    made = cut("ann", store.cut_list(*positions))
    return store.add(store.roster_record(roster(*others, cutoffs=[made])))


def test_an_entry_with_a_word_of_a_revoked_key_makes_the_listed_one_due() -> None:
    """As one that the key signed would: else another history could end before it."""
    store, thread = _relayed()
    words = thread.record(Kind.HANDOFF, handoff(attestations=approve(stated(thread), "ann")))
    thread.chain = _without_ann(store, (THREAD, 9, b"h" * 32))
    entry = Entry.verified(words.header, parse_header(words.header), "worker")
    watch = CutoffCheck()
    watch.follow(entry, words.body, thread.chain)

    with pytest.raises(RolledBack, match="expected entry 9"):
        watch.require_settled("thread 't'")


def test_a_word_is_judged_by_the_cut_of_its_own_key() -> None:
    """Not by that of the key that signed the entry around it."""
    store, thread = _relayed()
    chain = _without_ann(store, (THREAD, 3, link_hash(thread.records[3].header)))
    entry = Entry.verified(
        thread.records[4].header, parse_header(thread.records[4].header), "worker"
    )

    assert accepted_until(chain, entry.header, entry.hash) is None
    with pytest.raises(NotTrusted, match="of this thread up to 3"):
        accepted_until(chain, entry.header, entry.hash, key("ann").key)
    assert not attestation_counts(chain, entry, key("ann").key)
    assert attestation_counts(chain, entry, key("bob").key)
