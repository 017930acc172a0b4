# SPDX-License-Identifier: Apache-2.0
"""A pause stops every session and every save, whoever signed them, until it is taken back."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint.errors import Misplaced, Missing, NotTrusted
from sealpoint.ledger import (
    Header,
    Kind,
    ResultsBody,
    Tip,
    link_hash,
    next_pause,
    parse_header,
    read_basis_and_time,
)
from tests.effort import examples
from tests.ledgers import NOW, SALT, ThreadLedger
from tests.unit.ledger.gating import GATE_KINDS, add, begun, record, refusal, team

_HALTED = {Kind.CHECKPOINT, Kind.RESUME, Kind.GENESIS}
_MOVES = {Kind.RESUME, Kind.CHECKPOINT, Kind.PRUNE, Kind.HANDOFF, Kind.ERASE}
_AT_WORK = {Kind.HELD, Kind.RESULTS}


def _tip(ledger: ThreadLedger) -> Tip:
    assert ledger.tip is not None
    return ledger.tip


def _paused() -> ThreadLedger:
    """A thread that is paused at entry 3."""
    return add(begun(), Kind.PAUSE)


# ---------------------------------------------------------------------- what a pause stops


@pytest.mark.parametrize("kind", [Kind.CHECKPOINT, Kind.RESUME])
def test_nothing_is_saved_or_resumed_while_paused(kind: Kind) -> None:
    """The owner's own key, in its own session, makes no valid entry of it."""
    ledger = _paused()
    error = refusal(ledger, record(ledger, kind))

    assert type(error) is NotTrusted
    assert f"expected no {kind} while entry 3 pauses the thread" in str(error)


def test_no_genesis_follows_a_pause() -> None:
    """Not even one that is numbered as a next generation."""
    ledger = _paused()
    error = refusal(ledger, ledger.record(Kind.GENESIS, gen=1))

    assert type(error) is NotTrusted
    assert "expected no genesis while entry 3 pauses the thread" in str(error)


@pytest.mark.parametrize(
    "kind", sorted({*GATE_KINDS, Kind.PRUNE, Kind.ERASE, Kind.ADOPT} - {Kind.UNPAUSE})
)
def test_the_rest_goes_on_while_paused(kind: Kind) -> None:
    """Requests, verdicts, prunes, handoffs and erasures are still written."""
    ledger = add(_paused(), kind)
    expected = {Kind.PAUSE: 4, Kind.ERASE: None}.get(kind, 3)

    assert _tip(ledger).paused == expected


@pytest.mark.parametrize("kind", sorted(_AT_WORK))
def test_work_that_had_begun_is_kept_while_paused(kind: Kind) -> None:
    """The state that it came to and its results are entries of their session, and the basis."""
    ledger = _paused()
    made = ledger.add(kind, _results() if kind is Kind.RESULTS else None)
    tip = _tip(ledger)

    assert tip.paused == 3
    assert tip.basis == (4, link_hash(made.header))
    assert tip.fence.seq == 1


@pytest.mark.parametrize(
    "before",
    [(), (Kind.PAUSE, Kind.UNPAUSE), (Kind.PAUSE, Kind.HELD, Kind.UNPAUSE)],
    ids=["never paused", "paused before", "held back before"],
)
def test_nothing_is_held_back_by_no_pause(before: tuple[Kind, ...]) -> None:
    """The owner's own key, in its own session, makes no valid entry of it."""
    ledger = add(begun(), *before)
    error = refusal(ledger, record(ledger, Kind.HELD))

    assert type(error) is NotTrusted
    assert "a held entry is only for a paused thread" in str(error)
    assert _tip(add(ledger, Kind.CHECKPOINT)).paused is None


@pytest.mark.parametrize(
    ("signer", "message"),
    [
        ("second", "expected owner 'worker', found 'second'"),
        ("operator", "expected writer of namespace 'default' for a held"),
        ("ann", "expected writer"),
    ],
)
def test_only_the_session_holds_back(signer: str, message: str) -> None:
    """Neither another writer nor the operator who paused it."""
    ledger = _paused()
    error = refusal(ledger, record(ledger, Kind.HELD, signer=signer))

    assert type(error) is NotTrusted
    assert message in str(error)


def test_nothing_is_held_back_after_the_session_has_ended() -> None:
    """A handoff ends it, and the late worker adds nothing to what belongs to another."""
    ledger = add(_paused(), Kind.HANDOFF)

    assert type(refusal(ledger, record(ledger, Kind.HELD))) is NotTrusted


def test_what_is_held_back_is_gone_on_from_after_the_pause() -> None:
    """The same session saves on top of it, and so does the next one."""
    ledger = add(_paused(), Kind.HELD, Kind.HELD, Kind.UNPAUSE, Kind.CHECKPOINT, Kind.RESUME)

    assert _tip(ledger).paused is None
    assert type(refusal(ledger, record(ledger, Kind.HELD))) is NotTrusted


@pytest.mark.parametrize("kind", [Kind.CHECKPOINT, Kind.RESUME])
@pytest.mark.parametrize("between", [(), (Kind.PAUSE,), (Kind.REQUEST, Kind.PRUNE, Kind.HELD)])
def test_an_unpause_lets_the_thread_go_on(kind: Kind, between: tuple[Kind, ...]) -> None:
    """The same session saves again; however often it was paused, one unpause is enough."""
    ledger = add(_paused(), *between, Kind.UNPAUSE)

    assert _tip(ledger).paused is None
    assert _tip(add(ledger, kind)).paused is None


def test_a_thread_that_is_not_paused_may_be_unpaused() -> None:
    """It changes nothing: the reader has nothing to refuse."""
    assert _tip(add(begun(), Kind.UNPAUSE, Kind.CHECKPOINT)).paused is None


def test_pause_and_unpause_touch_no_session_and_no_basis() -> None:
    """Both name the fence in force, and what was approved before stays approved."""
    ledger = begun()
    before = _tip(ledger)
    after = _tip(add(ledger, Kind.PAUSE, Kind.UNPAUSE))

    assert after.fence == before.fence
    assert after.basis == before.basis == (2, before.entry.hash)
    for kind in (Kind.PAUSE, Kind.UNPAUSE):
        error = refusal(ledger, record(ledger, kind, fence=ledger.seq))
        assert type(error) is NotTrusted


def test_a_handoff_does_not_take_the_pause_away() -> None:
    """The next owner waits as well."""
    ledger = add(_paused(), Kind.HANDOFF)
    ledger.writer = ledger.owner = "second"

    assert type(refusal(ledger, record(ledger, Kind.RESUME))) is NotTrusted
    assert _tip(add(ledger, Kind.UNPAUSE, Kind.RESUME)).fence.owner == "second"


def test_an_erasure_ends_a_pause() -> None:
    """Nothing is left that could go on, and the next generation begins unpaused."""
    ledger = add(_paused(), Kind.ERASE)

    assert _tip(ledger).paused is None
    assert _tip(add(ledger, Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT)).paused is None


@pytest.mark.parametrize("kind", GATE_KINDS)
def test_an_erased_thread_takes_no_entry_of_the_gate(kind: Kind) -> None:
    """After an erasure there is a genesis and nothing else."""
    ledger = add(begun(), Kind.ERASE)

    assert type(refusal(ledger, record(ledger, kind))) is Misplaced


# ---------------------------------------------------------------------- what moves the basis


@pytest.mark.parametrize("kind", sorted({*GATE_KINDS, Kind.ADOPT, *_MOVES}))
def test_what_changes_a_resume_moves_the_basis(kind: Kind) -> None:
    """A save, a session, a prune, a handoff and an erasure do; what people say does not."""
    ledger = begun()
    before = _tip(ledger).basis
    after = _tip(add(ledger, kind))

    assert after.basis == ((3, after.entry.hash) if kind in _MOVES else before)


def test_the_first_basis_is_the_genesis() -> None:
    """A request could be bound to it; a later genesis is preceded by an erasure."""
    ledger = add(ThreadLedger(team()), Kind.GENESIS)
    first = _tip(ledger).basis
    again = add(begun(), Kind.ERASE)
    erased = _tip(again).basis
    add(again, Kind.GENESIS)

    assert first == (0, link_hash(ledger.records[0].header))
    assert erased[0] == 3
    assert _tip(again).basis == erased


# ---------------------------------------------------------------------- reading it from the head


def _downwards(ledger: ThreadLedger) -> Iterator[tuple[Header, bytes]]:
    for made in reversed(ledger.records):
        yield parse_header(made.header), made.header


_EVERY_KIND = sorted({*GATE_KINDS, *_HALTED, Kind.HELD, Kind.PRUNE, Kind.ERASE, Kind.ADOPT})


def _results() -> ResultsBody:
    return ResultsBody(salt=SALT, checkpoint="c2", task="t", root="ab" * 32)


class _Model:
    """Which kinds may follow, told without the code under test."""

    def __init__(self) -> None:
        self.paused = self.erased = self.session = False

    def allows(self, kind: Kind) -> bool:
        if self.erased or kind is Kind.GENESIS:
            return self.erased and kind is Kind.GENESIS
        if self.paused and kind in _HALTED:
            return False
        if kind is Kind.HELD and not self.paused:
            return False
        return kind not in {Kind.CHECKPOINT, Kind.HELD} or self.session

    def follow(self, kind: Kind) -> None:
        self.paused = kind is Kind.PAUSE or (self.paused and kind not in {Kind.UNPAUSE, Kind.ERASE})
        self.erased = kind is Kind.ERASE
        if kind in {Kind.GENESIS, Kind.HANDOFF, Kind.ERASE, Kind.RESUME}:
            self.session = kind is Kind.RESUME


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(_EVERY_KIND), max_size=24))
def test_what_is_read_from_the_head_is_what_was_followed(kinds: list[Kind]) -> None:
    """On every legal chain, basis and pause read backwards are those of the walk forwards."""
    ledger, model = add(ThreadLedger(team()), Kind.GENESIS), _Model()
    for kind in kinds:
        if not model.allows(kind):
            assert isinstance(refusal(ledger, record(ledger, kind)), (NotTrusted, Misplaced))
            continue
        if kind is Kind.HANDOFF:
            made = ledger.record(Kind.HANDOFF, _handoff_to_the_owner())
            ledger.tip = ledger.follow(made)
            ledger.records.append(made)
        else:
            add(ledger, kind)
        model.follow(kind)

        assert (_tip(ledger).paused is not None) == model.paused
        tip = _tip(ledger)
        assert read_basis_and_time(_downwards(ledger)) == (tip.basis, tip.time)


_HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("kinds", "hours", "expected"),
    [
        ((Kind.EXPIRY,), (9,), 0),
        ((Kind.APPROVAL, Kind.DENIAL, Kind.REQUEST), (9, 9, 9), 0),
        ((Kind.PAUSE,), (2,), 2),
        ((Kind.PAUSE, Kind.EXPIRY), (2, 1), 2),
        ((Kind.PAUSE, Kind.EXPIRY), (2, 9), 2),
        ((Kind.PAUSE, Kind.UNPAUSE), (2, 1), 2),
        ((Kind.PAUSE, Kind.HELD), (2, 1), 2),
        ((Kind.PAUSE, Kind.HELD), (2, 3), 3),
        ((Kind.EXPIRY, Kind.BREAK_GLASS), (9, 3), 0),
        ((Kind.PAUSE, Kind.UNPAUSE, Kind.CHECKPOINT), (2, 1, 1), 1),
    ],
)
def test_the_time_of_a_thread_is_told_by_few(
    kinds: tuple[Kind, ...], hours: tuple[int, ...], expected: int
) -> None:
    """The latest since what a pause stops; what anybody may write moves it neither way."""
    ledger = begun()
    start = _tip(ledger).time
    for kind, hour in zip(kinds, hours, strict=True):
        made = record(ledger, kind, at=start + hour * _HOUR)
        ledger.tip = ledger.follow(made)
        ledger.records.append(made)

    assert _tip(ledger).time == start + expected * _HOUR
    assert read_basis_and_time(_downwards(ledger))[1] == start + expected * _HOUR


def _handoff_to_the_owner() -> bytes:
    """The worker keeps the thread, so that the chain can go on with one writer."""
    return b'{"salt":"%b","owner":"worker","reason":"stay"}' % (b"5a" * 32)


@pytest.mark.parametrize(
    ("kinds", "taken"),
    [
        ((), 1),
        ((Kind.PAUSE,), 2),
        ((Kind.REQUEST, Kind.APPROVAL, Kind.PAUSE), 4),
        ((Kind.PAUSE, Kind.PRUNE), 3),
        ((Kind.PAUSE, Kind.HELD, Kind.HELD), 4),
        ((Kind.PAUSE, Kind.UNPAUSE, Kind.CHECKPOINT), 1),
        ((Kind.PRUNE,), 2),
        ((Kind.ERASE,), 2),
        ((Kind.ERASE, Kind.GENESIS), 2),
    ],
)
def test_no_more_is_read_than_tells(kinds: tuple[Kind, ...], taken: int) -> None:
    """The walk ends where all is known: mostly at the head."""
    ledger, met = add(begun(), *kinds), []

    def counted() -> Iterator[tuple[Header, bytes]]:
        for each in _downwards(ledger):
            met.append(each)
            yield each

    read_basis_and_time(counted())

    assert len(met) == taken


@pytest.mark.parametrize("length", [0, 1, 2])
def test_a_walk_that_ends_early_tells_nothing(length: int) -> None:
    """A storage that gives fewer entries does not make a thread run."""
    ledger = add(begun(), Kind.PAUSE, Kind.REQUEST)
    with pytest.raises(Missing, match="its first entry is missing"):
        read_basis_and_time(list(_downwards(ledger))[:length])


def test_only_a_pause_begins_one() -> None:
    """And an unpause or an erasure ends it, whatever was in force."""
    ledger = add(begun(), Kind.PAUSE, Kind.REQUEST, Kind.UNPAUSE, Kind.ERASE)
    headers = [parse_header(made.header) for made in ledger.records]

    assert [next_pause(header, 9) for header in headers] == [None, 9, 9, 3, 9, None, None]
    assert [next_pause(header, None) for header in headers[2:5]] == [None, 3, None]


def test_the_time_of_a_thread_is_the_latest_since_what_a_pause_stops() -> None:
    """Clocks of operators that differ turn it never back; with the next save it begins anew."""
    ledger = begun()
    for kind, hour, expected in (
        (Kind.PAUSE, 5, 5),
        (Kind.UNPAUSE, 3, 5),
        (Kind.APPROVAL, 9, 5),
        (Kind.CHECKPOINT, 1, 1),
        (Kind.PAUSE, 0, 1),
        (Kind.REQUEST, 7, 1),
        (Kind.ERASE, 6, 6),
        (Kind.GENESIS, 2, 2),
    ):
        made = record(ledger, kind, at=NOW + timedelta(hours=hour))
        ledger.tip = ledger.follow(made)
        ledger.records.append(made)
        tip = _tip(ledger)

        assert tip.time == NOW + timedelta(hours=expected), kind
        assert read_basis_and_time(_downwards(ledger)) == (tip.basis, tip.time)
