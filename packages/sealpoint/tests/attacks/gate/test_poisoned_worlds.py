# SPDX-License-Identifier: Apache-2.0
"""A resume that holds other leaves than the world that it names: nobody compares with them."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sealpoint.api import verify_bundle
from sealpoint.errors import NeedsApproval
from sealpoint.gate import _decision_facts
from sealpoint.ledger import Kind, ResumeBody
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.unit.gate.team import READ, SHELL

_poisoned = pytest.mark.parametrize("poison", [False, True])


@pytest.fixture(autouse=True)
def _new_process() -> Iterator[None]:
    """The cache of comparisons is one for the process."""
    _decision_facts._compared.cache_clear()
    yield
    _decision_facts._compared.cache_clear()


def _resume(attacked: AttackedTeam, world: Mapping[str, Any], **fields: Any) -> None:
    """Append a resume that a member's other code has made."""
    handle = attacked.fresh()
    release = handle.release()
    assert release is not None
    body = ResumeBody(
        salt=attacked.salt,
        owner="pods",
        basis=handle._state.chain.tip().basis[0],
        checkpoint=release.entry,
        release=release.digest,
        released=release.seq,
        policy=attacked.store().core.renewed_trust().roster.document.policies["*"],
        world=World.from_dict(dict(world)).digest,
        **fields,
    )
    attacked.append(attacked.forged(Kind.RESUME, body, "worker"))


def _leaves(world: Mapping[str, Any]) -> dict[str, Any]:
    return World.from_dict(dict(world)).to_dict()


def _share(attacked: AttackedTeam) -> int | None:
    """Give the thread to a pool, whose honest member saves; return what its resume rests on."""
    attacked.pool("pods", "worker", "spare")
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    attacked.thread().handoff(to="pods", reason="shared")
    fresh = attacked.fresh("spare")
    fresh.resume(world=READ)
    fresh.save({"n": 2}, id="c2", world=READ)
    body: ResumeBody = attacked.body(attacked.find(Kind.RESUME))
    return body.decided


def _widen(attacked: AttackedTeam, *, poison: bool) -> None:
    """A pool member resumes as it may, with false leaves or none, and then into the wider world."""
    decided = _share(attacked)
    _resume(attacked, READ, decided=decided, leaves=_leaves(SHELL) if poison else None)
    _resume(attacked, SHELL, leaves=_leaves(SHELL))


@_poisoned
def test_a_wider_world_is_a_finding(attacked: AttackedTeam, *, poison: bool) -> None:
    """In a verification of the store, and in one of a bundle."""
    _widen(attacked, poison=poison)
    store = attacked.world.open("operator", gated=True)

    assert not store.verify().ok
    assert verify_bundle(b"".join(store.export()), attacked.world.pin).findings


@_poisoned
def test_a_process_that_verified_asks_as_before(attacked: AttackedTeam, *, poison: bool) -> None:
    """The comparison is cached for the process, and for what the digests name."""
    attacked.thread("spare", "other").save({"n": 7}, id="c1", world=READ)
    _widen(attacked, poison=poison)
    honest = attacked.world.open("spare", gated=True)
    honest.verify()

    with pytest.raises(NeedsApproval):
        honest.thread("other").resume(world=SHELL)


@_poisoned
def test_an_approved_resume_is_not_accused(attacked: AttackedTeam, *, poison: bool) -> None:
    """False leaves make no honest change look like another one."""
    decided = _share(attacked)
    other = {"permissions": ["x"], **READ}
    _resume(attacked, READ, decided=decided, leaves=_leaves(other) if poison else None)
    attacked.approve(attacked.ask("spare"))
    attacked.fresh("spare").resume(world=SHELL)

    assert attacked.world.open("operator", gated=True).verify().ok
