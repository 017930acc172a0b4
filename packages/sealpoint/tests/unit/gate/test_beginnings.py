# SPDX-License-Identifier: Apache-2.0
"""A thread that has begun and holds no checkpoint: there is nothing to resume, and nothing breaks.

No call of this version leaves one; another writer may, by a genesis alone.
"""

from collections.abc import Callable
from functools import partial

import pytest

from sealpoint.errors import NeedsApproval, UnknownCheckpoint
from sealpoint.ledger import GenesisBody, Kind, ResumeBody
from sealpoint.store import EntryDraft
from sealpoint.store._append_entries import append_all, reserve
from tests.ledgers import SALT
from tests.unit.gate.team import READ, SHELL, Team


@pytest.fixture(params=["genesis", "session"])
def begun(team: Team, request: pytest.FixtureRequest) -> Team:
    """A team with a thread that has only its genesis, or a session in which nothing was saved."""
    chain = team.thread()._state.chain
    chain.bind(b"\x07" * 16)
    assert reserve(chain, chain.thread)
    drafts = [EntryDraft(Kind.GENESIS, GenesisBody(salt=SALT, name="t", owner="worker"))]
    if request.param == "session":
        resume = ResumeBody(salt=SALT, owner="worker", basis=0, policy=team.digest)
        drafts.append(EntryDraft(Kind.RESUME, resume))
    append_all(chain, drafts, blobs={})
    return team


def test_there_is_nothing_to_resume(begun: Team) -> None:
    """Loading, resuming and asking what the gate would say are told that, and write nothing."""
    before = begun.everything()
    calls: list[Callable[[], object]] = [
        begun.fresh().load,
        partial(begun.fresh().resume, world=READ),
        partial(begun.fresh().judge, world=SHELL),
        partial(begun.fresh().resume, world=SHELL, deliberate="please"),
    ]
    for call in calls:
        with pytest.raises(UnknownCheckpoint, match="it has no checkpoint"):
            call()

    assert begun.everything() == before


def test_nothing_is_open(begun: Team) -> None:
    """Neither on the thread nor at the desk; the store lists the thread and verifies."""
    store = begun.world.open("ann", gated=True)

    assert store.thread("t").requests() == ()
    assert list(store.thread("t").history()) == []
    assert (store.requests().requests, store.requests().failures) == ((), ())
    assert store.threads().names == ("t",)
    begun.check_sound()


def test_it_is_audited_and_explained(begun: Team) -> None:
    """Every entry has its record, why says that nothing was decided, and a bundle can be made."""
    operator = begun.store("operator")
    records = list(operator.audit(thread="t"))
    found = operator.why(records[0].entry)

    assert [each.kind for each in records] == begun.kinds()
    assert found.decision == "nothing was decided: the entry only records what happened"
    assert found.unjustified == ()
    assert b"".join(operator.export())


def test_it_is_operated_like_any_other(begun: Team) -> None:
    """It is paused, given away with approval, and erased."""
    operator = begun.thread("operator")
    operator.pause("wait")
    operator.unpause("go")
    with pytest.raises(NeedsApproval) as needs:
        operator.handoff(to="spare", reason="gone")
    begun.approve(needs.value.request)  # type: ignore[arg-type]
    operator.handoff(to="spare", reason="gone")
    begun.fresh("spare").save(1, world=READ)
    begun.thread("officer").erase(reason="asked for")

    assert begun.kinds()[-1] == "erase"
    begun.check_sound()


def test_its_owner_saves(begun: Team) -> None:
    """There is nothing that it could go on from, so nobody is asked, and that is justified."""
    begun.fresh().save({"n": 1}, world=SHELL)

    assert begun.fresh().load().state == {"n": 1}
    assert begun.kinds()[-2:] == ["resume", "checkpoint"]
    begun.check_sound()
