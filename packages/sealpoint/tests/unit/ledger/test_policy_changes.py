# SPDX-License-Identifier: Apache-2.0
"""Which policy judges an entry: that of the roster it names, unless its position says otherwise."""

import pytest
from msgspec.structs import replace

from sealpoint.errors import Edited, Missing, NotTrusted
from sealpoint.ledger import Header, Kind, PositionList, RestoreBody, RosterBody, parse_header
from tests.ledgers import SALT, StoreLedger, identity, roster

_A, _B, _C = "aa" * 32, "bb" * 32, "cc" * 32
_THREAD, _OTHER = "11" * 16, "22" * 16
_PEOPLE = roster(identity("worker"))


def _listed(ledger: StoreLedger, last: int) -> PositionList:
    return ledger.cut_list((bytes.fromhex(_THREAD), last, bytes(32)))


def _changed(*policies: tuple[str | None, int | None]) -> StoreLedger:
    """Rosters with these policies, each with the position that it lists of the thread."""
    ledger = StoreLedger()
    for digest, last in policies:
        document = replace(_PEOPLE, policies={} if digest is None else {"*": digest})
        positions = None if last is None else _listed(ledger, last)
        ledger.add(ledger.roster_record(document, positions=positions))
    return ledger


def _entry(ledger: StoreLedger, seq: int, named: int, **fields: object) -> Header:
    header = parse_header(ledger.records[0].header)
    given = {"ns": "default", "thread": _THREAD, "seq": seq, "roster": named}
    return replace(header, **(given | fields))


@pytest.mark.parametrize(
    ("seq", "named", "expected"),
    [(3, 0, _A), (4, 0, _B), (6, 0, _B), (7, 0, _C), (5, 1, _B), (7, 1, _C), (1, 2, _C)],
)
def test_the_newest_change_that_an_entry_lies_beyond_decides(
    seq: int, named: int, expected: str
) -> None:
    """Two changes, after positions 3 and 6; an entry that names a later roster is bound by it."""
    ledger = _changed((_A, None), (_B, 3), (_C, 6))

    assert ledger.chain.policy_at(_entry(ledger, seq, named)) == expected


def test_a_thread_that_a_change_does_not_list_began_after_it() -> None:
    """Whatever roster its entries name."""
    ledger = _changed((_A, None), (_B, 3))

    assert ledger.chain.policy_at(_entry(ledger, 0, 0, thread=_OTHER)) == _B


def test_a_policy_that_is_taken_away_or_given_is_changed() -> None:
    """No policy at all is judged by position as well."""
    ledger = _changed((_A, None), (None, 3), (_B, 6))
    found = [ledger.chain.policy_at(_entry(ledger, seq, 0)) for seq in (3, 4, 7)]

    assert found == [_A, None, _B]


def test_a_policy_of_the_namespace_comes_before_that_of_all() -> None:
    """A change elsewhere leaves the policy of a namespace as it was."""
    ledger = StoreLedger()
    for policies in ({"*": _A, "default": _B}, {"*": _C, "default": _B}):
        ledger.add(ledger.roster_record(replace(_PEOPLE, policies=policies)))
    found = [ledger.chain.policy_at(_entry(ledger, 9, 0, ns=ns)) for ns in ("default", "billing")]

    assert found == [_B, _C]


def test_a_later_list_for_the_same_policies_replaces_the_first() -> None:
    """It is what `policy apply` writes if threads moved; only that list stays reachable."""
    ledger = _changed((_A, None), (_B, 3), (_B, 5), (_B, None))
    found = [ledger.chain.policy_at(_entry(ledger, seq, 0)) for seq in (4, 5, 6)]

    assert found == [_A, _A, _B]
    assert _listed(ledger, 5).digest in ledger.chain.blobs
    assert _listed(ledger, 3).digest not in ledger.chain.blobs


def test_positions_that_a_restore_gave_again_lie_beyond() -> None:
    """The list is of the epoch in which it was taken."""
    ledger = _changed((_A, None), (_B, 9))
    kept = _listed(ledger, 4).digest.hex()
    body = RestoreBody(salt=SALT, reason="disk", kept=kept, lost=kept, released=kept)
    ledger.add(ledger.record(Kind.RESTORE, body, "root", epoch=1))
    found = [ledger.chain.policy_at(_entry(ledger, 5, 0, epoch=epoch)) for epoch in (0, 1)]

    assert found == [_A, _B]


def test_an_entry_that_names_the_newest_change_needs_no_list() -> None:
    """That is nearly every entry: nothing is fetched."""
    ledger = _changed((_A, None), (_B, 3), (_B, None))
    ledger.blobs.clear()

    assert ledger.chain.policy_at(_entry(ledger, 9, 1)) == _B
    assert ledger.chain.policy_at(_entry(ledger, 9, 2)) == _B
    with pytest.raises(Missing, match="list of positions"):
        ledger.chain.policy_at(_entry(ledger, 9, 0))


def test_an_edited_list_refuses() -> None:
    """It is believed by its digest alone."""
    ledger = _changed((_A, None), (_B, 3))
    ledger.blobs[next(iter(ledger.blobs))] = b""

    with pytest.raises(Edited, match="bytes of another hash"):
        ledger.chain.policy_at(_entry(ledger, 9, 0))


def test_a_change_without_a_list_is_refused() -> None:
    """The first roster changes nothing, and has no list."""
    ledger = _changed((_A, None))
    changed = RosterBody(salt=SALT, roster=replace(_PEOPLE, policies={"*": _B}))
    with pytest.raises(NotTrusted, match="it changes a policy without a list of positions"):
        ledger.add(ledger.record(Kind.ROSTER, changed, "root"))
    with pytest.raises(NotTrusted, match="the first roster cannot list positions"):
        _changed((_A, 3))
    digest = RosterBody(salt=SALT, roster=changed.roster, positions="AB" * 32)
    with pytest.raises(Edited):
        ledger.add(ledger.record(Kind.ROSTER, digest, "root"))
