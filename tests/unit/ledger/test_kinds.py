# SPDX-License-Identifier: Apache-2.0
"""The closed table is the specification's: written out here, cell by cell."""

import dataclasses

import pytest

from sealpoint.ledger import KINDS, Kind
from sealpoint.signing import Role

# kind: (role, threads, store chain, owner, in session, sets fence, moves basis)
_JUDGED = {
    "genesis": (Role.WRITER, True, False, True, False, True, False),
    "resume": (Role.WRITER, True, False, True, False, True, True),
    "checkpoint": (Role.WRITER, True, False, True, True, False, True),
    "prune": (Role.WRITER, True, False, True, False, False, True),
    "erase": (Role.PRIVACY, True, False, False, False, True, True),
    "adopt": (Role.OPERATOR, True, True, False, False, False, False),
    "roster": (None, False, True, False, False, False, False),
    "root": (None, False, True, False, False, False, False),
    "restore": (None, False, True, False, False, False, False),
}
_RESERVED = {
    *("writes", "handoff", "pause", "unpause", "request", "approval", "denial", "expiry"),
    *("hide", "break-glass"),
}


def test_the_table_is_closed() -> None:
    """Every kind of the format has its line, and there is no line besides."""
    assert {kind.value for kind in Kind} == _JUDGED.keys() | _RESERVED
    assert set(KINDS) == set(Kind)
    with pytest.raises(TypeError):
        KINDS[Kind.PAUSE] = KINDS[Kind.GENESIS]  # type: ignore[index]


@pytest.mark.parametrize("name", _JUDGED)
def test_a_judged_kind_has_the_cells_of_the_specification(name: str) -> None:
    """Role, chain, owner, session, fence and basis are what the specification says."""
    rule = KINDS[Kind(name)]
    found = (
        rule.role,
        rule.on_threads,
        rule.on_store_chain,
        rule.by_owner,
        rule.in_session,
        rule.sets_fence,
        rule.moves_basis,
    )

    assert rule.judged
    assert found == _JUDGED[name]


@pytest.mark.parametrize("name", sorted(_RESERVED))
def test_a_reserved_kind_is_allowed_to_nobody_anywhere(name: str) -> None:
    """Empty means no: no role, no chain, not judged."""
    rule = dataclasses.asdict(KINDS[Kind(name)])

    assert rule.pop("role") is None
    assert not any(rule.values())
