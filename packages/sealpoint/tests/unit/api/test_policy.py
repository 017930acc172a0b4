# SPDX-License-Identifier: Apache-2.0
"""Putting a policy in force, and putting back one whose file the store has lost."""

import pytest

from sealpoint.errors import PolicyInvalid
from tests.unit.api.place import Place

_WORLD = {"permissions": ["read"]}


def _resumed(place: Place) -> object:
    with place.open() as store:
        return store.thread("t").resume(world=_WORLD).state


@pytest.mark.parametrize("damage", ["lost", "edited"])
def test_applying_a_policy_again_puts_its_file_back(made: Place, damage: str) -> None:
    """Whoever follows the hint of the error is helped; no roster is written for that."""
    applied = made.admin.policy.apply("strict")
    digest = bytes.fromhex(applied.policy.digest)
    with made.open() as store:
        store.thread("t").save(1, world=_WORLD)
    with made.rows() as rows:
        change = "DELETE FROM blobs" if damage == "lost" else "UPDATE blobs SET data = x'00'"
        assert rows.execute(f"{change} WHERE digest = ?", (digest,)).rowcount == 1
    with pytest.raises(PolicyInvalid) as refused:
        _resumed(made)
    assert "sealpoint policy apply" in refused.value.hint
    with pytest.raises(PolicyInvalid):
        _resumed(made)
    again = made.admin.policy.apply("strict")

    assert again.roster is None
    assert again.before == applied.policy.digest
    assert _resumed(made) == 1
