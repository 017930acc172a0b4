# SPDX-License-Identifier: Apache-2.0
"""The closed table is the specification's: written out here, cell by cell."""

import pytest

from sealpoint.errors import NotTrusted
from sealpoint.ledger import KINDS, Kind
from sealpoint.signing import Role
from tests.ledgers import ThreadLedger
from tests.unit.ledger.gating import GATE_KINDS, begun, people, record, refusal, team

_WRITER = (Role.WRITER,)
_OPERATOR = (Role.OPERATOR,)
_EITHER = (Role.WRITER, Role.OPERATOR)
_ANYBODY = (Role.APPROVER, Role.AUDITOR, Role.OPERATOR, Role.PRIVACY, Role.WRITER)

# Roles; then what of this holds: t(hread), s(tore chain), o(wner only), (i)n a session, sets the
# f(ence), moves the b(asis), h(alted by a pause), (w)ritten only while paused, carries a state (k),
# holds a (p)ayload, gives (u)p what others held, marked for break-g(lass), its (c)lock counts, says
# all that was given up (r), is about requests (q), may carry (a)ttestations, settles a pause (z),
# settles whose the thread is (y), may lie on a reserved thread (v), says no
# more than why (n).
_TABLE: dict[str, tuple[tuple[Role, ...], str]] = {
    "genesis": (_EITHER, "tofhczyv"),
    "resume": (_WRITER, "tofbhca"),
    "checkpoint": (_WRITER, "toibhkpc"),
    "held": (_WRITER, "toibwkpc"),
    "writes": (_WRITER, "toibpc"),
    "handoff": (_EITHER, "tfbcay"),
    "pause": (_OPERATOR, "tczn"),
    "unpause": (_OPERATOR, "tczn"),
    "request": (_EITHER, "tqv"),
    "approval": (_ANYBODY, "tqav"),
    "denial": (_ANYBODY, "tqav"),
    "expiry": (_ANYBODY, "tqv"),
    "break-glass": (_ANYBODY, "tqav"),
    "prune": (_WRITER, "tobucr"),
    "hide": (_WRITER, "tobucr"),
    "erase": ((Role.PRIVACY,), "tfbuczyn"),
    "adopt": (_OPERATOR, "tscvn"),
    "roster": ((), "sc"),
    "root": ((), "sc"),
    "restore": ((), "sc"),
}


def test_the_table_is_closed() -> None:
    """Every kind of the format has its line, and there is no line besides."""
    assert {kind.value for kind in Kind} == _TABLE.keys()
    assert set(KINDS) == set(Kind)
    with pytest.raises(TypeError):
        KINDS[Kind.PAUSE] = KINDS[Kind.GENESIS]  # type: ignore[index]


@pytest.mark.parametrize("name", _TABLE)
def test_a_kind_has_the_cells_of_the_specification(name: str) -> None:
    """Roles, chain, owner, session, fence, basis, pause, payload and clock are as it says."""
    rule = KINDS[Kind(name)]
    cells = {
        "t": rule.on_threads,
        "s": rule.on_store_chain,
        "o": rule.by_owner,
        "i": rule.in_session,
        "f": rule.sets_fence,
        "b": rule.moves_basis,
        "h": rule.blocked_by_pause,
        "w": rule.only_paused,
        "k": rule.is_checkpoint,
        "p": rule.holds_payload,
        "u": rule.gives_up,
        "c": rule.tells_time,
        "r": rule.is_retention,
        "q": rule.about_requests,
        "a": rule.carries_attestations,
        "z": rule.settles_pause,
        "y": rule.settles_owner,
        "v": rule.on_reserved,
        "n": rule.only_says_why,
    }
    roles, letters = _TABLE[name]

    assert rule.roles == roles
    assert "".join(letter for letter, holds in cells.items() if holds) == letters


def test_the_cells_of_the_table_go_together() -> None:
    """No kind is both halted by a pause and for one alone, and every checkpoint has a payload."""
    for rule in KINDS.values():
        assert not (rule.blocked_by_pause and rule.only_paused)
        assert rule.holds_payload or not rule.is_checkpoint
        assert not (rule.holds_payload and rule.gives_up)
        assert rule.moves_basis or not (rule.holds_payload or rule.gives_up)
        assert rule.sets_fence or not rule.settles_owner
        assert rule.on_threads or not (rule.settles_pause or rule.on_reserved)
        assert not (rule.on_reserved and rule.moves_basis)


def test_what_anybody_may_write_tells_no_time() -> None:
    """Those about requests alone do not move a thread's time."""
    silent = {kind for kind, rule in KINDS.items() if not rule.tells_time}

    verdicts = {Kind.APPROVAL, Kind.DENIAL, Kind.BREAK_GLASS}
    assert silent == {Kind.REQUEST, Kind.EXPIRY, *verdicts}


def test_roles_are_said_in_words() -> None:
    """A message names one role, all that would do, or that any would."""
    said = {kind: KINDS[kind].roles_text for kind in (Kind.PAUSE, Kind.REQUEST, Kind.APPROVAL)}

    assert said == {
        Kind.PAUSE: "operator",
        Kind.REQUEST: "writer or operator",
        Kind.APPROVAL: "any role",
    }


@pytest.mark.parametrize("who", people(), ids=lambda who: str(who.name))
@pytest.mark.parametrize("kind", GATE_KINDS)
def test_a_kind_of_the_gate_is_for_the_roles_of_the_table(kind: Kind, who: object) -> None:
    """Whoever has none of its roles in the namespace may not write it, with a valid key."""
    identity = next(each for each in people() if each == who)
    roles, _ = _TABLE[kind]
    may = bool({*roles} & {*identity.roles}) and "*" in identity.namespaces
    ledger = begun()
    made = record(ledger, kind, signer=identity.name)
    if may:
        assert ledger.verify(made).writer == identity.name
        return
    with pytest.raises(NotTrusted, match=identity.name):
        ledger.verify(made)


@pytest.mark.parametrize("who", ["marked", "worker", "auditor", "operator"])
def test_break_glass_is_relayed_by_anybody(who: str) -> None:
    """Like every word on a request, it counts by what the attestation inside says."""
    ledger = begun()

    assert ledger.follow(record(ledger, Kind.BREAK_GLASS, signer=who)).entry.writer == who


@pytest.mark.parametrize("kind", GATE_KINDS)
def test_a_kind_of_the_gate_begins_no_thread(kind: Kind) -> None:
    """The first entry of a thread is a genesis and nothing else."""
    ledger = ThreadLedger(team())
    made = ledger.record(kind, b"{}", signer=GATE_KINDS[kind])

    assert "expected a genesis" in str(refusal(ledger, made))
