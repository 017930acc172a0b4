# SPDX-License-Identifier: Apache-2.0
"""Making an old state the newest by what a saver offers: deleting runs, deleting and copying.

A saver deletes and copies for the application, without a gate. To go on from what that leaves as
the newest is to go on from an older checkpoint, and is judged so.
"""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sealpoint.errors import NeedsApproval, ResumeRefused, SealpointError
from sealpoint.store import Key
from sealpoint_langgraph import SealedSaver, deliberately
from tests.attacks.langgraph.desks import EITHER_FACE, config_of, run
from tests.attacks.langgraph.edited_store import BACKENDS, ending
from tests.attacks.langgraph.office import Office
from tests.attacks.langgraph.wallet import KINDS, Wallet
from tests.deployment import Deployment
from tests.unit.gate.team import Team, policy

_NUMBERS = count()
_every_face = pytest.mark.parametrize("face", EITHER_FACE)


def _called(face: str, saver: SealedSaver, name: str, *arguments: Any) -> None:
    """Call a method of a saver, by either of its faces."""
    if face == "sync":
        getattr(saver, name)(*arguments)
    else:
        asyncio.run(getattr(saver, f"a{name}")(*arguments))


class Shop:
    """A wallet in an office, whose thread is `t`."""

    def __init__(self, office: Office, kind: str, face: str) -> None:
        self.office, self.kind, self.face = office, kind, face
        self.wallet = Wallet()
        self.graph = self.wallet.graph(office.saver, kind)

    def turn(self, thread: str, run_id: str, **values: int) -> None:
        """One turn on a thread."""
        run(self.face, self.graph, values, config_of(thread, run_id=run_id))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a method of the saver."""
        _called(self.face, self.office.saver, name, *arguments)

    def two_turns(self, thread: str = "t") -> None:
        """A balance of 100, of which 70 are spent then."""
        self.turn(thread, "one", balance=100, amount=0)
        self.turn(thread, "two", amount=70)

    def other(self) -> Any:
        """The graph of a new process."""
        self.wallet.spent.clear()
        return self.wallet.graph(SealedSaver(self.office.process()), self.kind)

    def go_on(self, graph: Any, *, why: str | None = None) -> Any:
        """Spend five."""
        # A run of its own: the framework takes an id that it knows for the same run once more.
        where = config_of("t", run_id=f"more-{next(_NUMBERS)}")
        return run(self.face, graph, {"amount": 5}, deliberately(where, why) if why else where)


def _hide(shop: Shop) -> None:
    shop.two_turns()
    thread = shop.office.worker.thread("t")
    newer = [ref for ref in thread.adapter.snapshots() if ref.metadata.get("run_id") == "two"]
    thread.adapter.delete([Key(ref.lane, ref.id) for ref in newer])


def _delete_for_runs(shop: Shop) -> None:
    shop.two_turns()
    shop.call("delete_for_runs", ["two"])


def _delete_and_copy_back(shop: Shop) -> None:
    shop.turn("t", "one", balance=100, amount=0)
    shop.call("copy_thread", "t", "backup")
    shop.turn("t", "two", amount=70)
    shop.call("delete_thread", "t")
    shop.call("copy_thread", "backup", "t")


def _copy(shop: Shop) -> None:
    shop.turn("source", "one", balance=100, amount=0)
    shop.call("copy_thread", "source", "t")
    shop.turn("source", "two", amount=70)


_TRICKS: dict[str, Callable[[Shop], None]] = {
    "hide": _hide,
    "delete_for_runs": _delete_for_runs,
    "delete_thread and copy_thread": _delete_and_copy_back,
    "copy_thread": _copy,
}
_every_trick = pytest.mark.parametrize("trick", _TRICKS.values(), ids=_TRICKS)


@pytest.fixture(scope="module", params=BACKENDS)
def _homes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Office]:
    """Makes an office on each backend."""

    def made(named: str) -> Office:
        home = tmp_path_factory.mktemp("office") / "home"
        return Office(home, policy=named, backend=request.param)

    return made


@pytest.fixture
def solo(_homes: Callable[[str], Office]) -> Iterator[Office]:
    """A store of one person."""
    office = _homes("solo")
    yield office
    office.close()


@pytest.fixture
def team(_homes: Callable[[str], Office]) -> Iterator[Office]:
    """A store of a team."""
    office = _homes("strict")
    yield office
    office.close()


@_every_face
@pytest.mark.parametrize("kind", KINDS)
@_every_trick
def test_what_was_made_the_newest_wants_a_reason(
    solo: Office, trick: Callable[[Shop], None], kind: str, face: str
) -> None:
    """Under `solo` nothing is saved; a guarded graph runs no node, a bare one may run the first."""
    shop = Shop(solo, kind, face)
    trick(shop)
    graphs = {"new": shop.other(), "same": shop.graph}
    before = shop.graph.get_state(config_of())

    found = {name: ending(lambda: shop.go_on(graph)) for name, graph in graphs.items()}  # noqa: B023
    assert found == {"new": ResumeRefused, "same": ResumeRefused}
    assert shop.graph.get_state(config_of()) == before
    assert shop.wallet.spent == [] or kind == "bare"


@_every_face
@_every_trick
def test_what_was_made_the_newest_wants_approvals(
    team: Office, trick: Callable[[Shop], None], face: str
) -> None:
    """Under `strict` others are asked, and once they have approved it passes."""
    shop = Shop(team, "guarded", face)
    trick(shop)
    graph = shop.other()
    with pytest.raises(NeedsApproval):
        shop.go_on(graph)
    assert shop.wallet.spent == []
    team.approve(team.asked(lambda: shop.go_on(graph)))
    shop.go_on(graph)

    assert shop.wallet.spent == [(100, 5)]
    assert team.worker.verify().ok


@_every_face
@pytest.mark.parametrize("kind", KINDS)
@_every_trick
def test_a_reason_is_for_once(
    solo: Office, trick: Callable[[Shop], None], kind: str, face: str
) -> None:
    """The control: with a reason it passes, and whoever goes on after that needs none."""
    shop = Shop(solo, kind, face)
    trick(shop)
    graph = shop.other()
    shop.go_on(graph, why="the payment bounced")
    shop.go_on(graph)
    again = shop.wallet.graph(SealedSaver(solo.process()), kind)
    shop.go_on(again)

    assert shop.wallet.spent == [(100, 5), (95, 5), (90, 5)]
    assert solo.worker.verify().ok


# ---------------------------------------------------------------------- the age of a copy

_AGES = policy(
    "ages",
    older_checkpoint="record",
    first_world="record",
    missing_world="record",
    answer="record",
    old_age="refuse",
)


@_every_face
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("days", [1, 8])
def test_a_copy_is_as_old_as_what_it_is_a_copy_of(
    tmp_path: Path, backend: str, days: int, face: str
) -> None:
    """A policy refuses what is older than a week; a copy of it made today is no younger."""
    world = Deployment(tmp_path, backend=backend)
    crew, wallet = Team(world, _AGES), Wallet()
    saver = SealedSaver(crew.store())
    run(face, wallet.graph(saver, "guarded"), {"balance": 100, "amount": 0}, config_of("source"))
    crew.later(days=days)
    _called(face, saver, "copy_thread", "source", "t")
    wallet.spent.clear()
    found = {
        name: _reasons(
            lambda: run(
                face,
                wallet.graph(SealedSaver(world.open("worker", gated=True)), "guarded"),
                {"amount": 5},
                config_of(name),  # noqa: B023
            )
        )
        for name in ("t", "source")
    }
    world.close()

    is_old = days > 7
    assert {name: "old, more than" in told for name, told in found.items()} == {
        "t": is_old,
        "source": is_old,
    }
    assert len(wallet.spent) == (0 if is_old else 2)


def _reasons(call: Callable[[], object]) -> str:
    try:
        call()
    except SealpointError as error:
        return error.message
    return ""


# ---------------------------------------------------------------------- the controls


def _prune(shop: Shop) -> None:
    shop.two_turns()
    shop.office.saver.prune(["t"])


def _delete_older_run(shop: Shop) -> None:
    shop.two_turns()
    shop.call("delete_for_runs", ["one"])


def _delete_and_begin_anew(shop: Shop) -> None:
    shop.two_turns()
    shop.call("delete_thread", "t")
    shop.turn("t", "new", balance=30, amount=0)


_HONEST: dict[str, Callable[[Shop], None]] = {
    "prune": _prune,
    "delete an older run": _delete_older_run,
    "delete all and begin anew": _delete_and_begin_anew,
}


@_every_face
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("honest", _HONEST.values(), ids=_HONEST)
def test_what_is_the_newest_is_gone_on_from_as_before(
    solo: Office, honest: Callable[[Shop], None], kind: str, face: str
) -> None:
    """The control: nothing newer was deleted, so nobody is asked why."""
    shop = Shop(solo, kind, face)
    honest(shop)
    shop.go_on(shop.other())

    assert shop.wallet.spent == [(30, 5)]
    assert solo.worker.verify().ok


@_every_face
@pytest.mark.parametrize("honest", _HONEST.values(), ids=_HONEST)
def test_what_is_the_newest_of_a_team_is_gone_on_from_as_before(
    team: Office, honest: Callable[[Shop], None], face: str
) -> None:
    """The control: under `strict`, nobody has to approve it."""
    shop = Shop(team, "guarded", face)
    honest(shop)
    shop.go_on(shop.other())

    assert shop.wallet.spent == [(30, 5)]
    assert team.worker.verify().ok
