# SPDX-License-Identifier: Apache-2.0
"""Two machines and one store: what one of them has seen holds for the other at its next call.

Everybody is in a process of their own that has the store open, with directories of their own.
Somebody else holds the store, be it as the superuser of its database, and not the anchor.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet import Fleet, FleetMachine
from tests.postgres_server import PostgresServer
from tests.stories.actor import Actor, Refused

_READ: dict[str, Any] = {"tools": [{"name": "read"}]}
_SHELL: dict[str, Any] = {"tools": [{"name": "read"}, {"name": "shell"}]}


class _Office:
    """A worker on one machine, an operator who may approve on the other."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.one, self.two = fleet.machine("one"), fleet.machine("two")
        self.one.init(policy="strict")
        self.two.join(self.one, olga=("operator", "approver"), ann=("approver",))
        self._actors: list[Actor] = []
        self.worker = self.actor(self.one, "worker")
        self.olga = self.actor(self.two, "olga")
        self.ann = self.actor(self.two, "ann")

    def actor(self, machine: FleetMachine, identity: str) -> Actor:
        """Somebody in a process of their own on a machine."""
        actor = Actor(self.fleet.url, machine.directories, identity)
        self._actors.append(actor)
        return actor

    def end(self) -> None:
        """Let everybody go."""
        for actor in self._actors:
            actor.kill()


@pytest.fixture(params=["sqlite", "postgresql"])
def office(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[_Office]:
    """Two machines that share an anchor, and a store in a file or in another schema."""
    fleet = Fleet(tmp_path, postgres, request.param)
    for variable in ("SEALPOINT_STORE_PASSWORD_FILE", "SEALPOINT_ANCHOR_PASSWORD_FILE"):
        monkeypatch.setenv(variable, str(fleet.password_file()))
    made = _Office(fleet)
    yield made
    made.end()
    fleet.close()


def _refused(code: str, act: Callable[[], Any]) -> Refused:
    with pytest.raises(Refused) as told:
        act()
    assert told.value.code == code, told.value
    return told.value


def test_what_one_machine_saw_holds_for_the_other(office: _Office) -> None:
    """A pause, a denial, a revocation and a newer state hold, and cannot be taken back either."""
    worker, olga, fleet = office.worker, office.olga, office.fleet
    worker("save", state={"n": 1}, world=_READ)
    assert olga("load") == office.ann("load") == {"n": 1}

    _pause(office)
    _denial(office)
    _newer_state(office)
    _revocation(office)
    assert worker("verify") == []
    fleet.close()
    _refused("anchor-unavailable", lambda: worker("load"))


def _taken_back(office: _Office, act: Callable[[], Any]) -> None:
    """Put the store back to before something that only the other machine did, and try.

    Afterwards the store is as it was.
    """
    fleet = office.fleet
    fleet.put_back()
    for each in (act, lambda: office.worker("load"), lambda: office.olga("load")):
        _refused("rolled-back", each)
    fleet.put_back("newest")


def _pause(office: _Office) -> None:
    """A pause stops the next save elsewhere; without its entry the store is refused."""
    worker, olga = office.worker, office.olga
    office.fleet.back_up()
    olga("pause", reason="it looks odd")
    office.fleet.back_up("newest")
    _taken_back(office, lambda: worker("resume", world=_READ))
    _refused("paused", lambda: worker("save", state={"n": 2}, world=_READ))
    olga("unpause", reason="it was not")
    worker("save", state={"n": 2}, world=_READ)


def _denial(office: _Office) -> None:
    """What was denied stays denied; without the denial the store is refused."""
    worker, olga = office.worker, office.olga

    def resume() -> Any:
        return worker("resume", world=_SHELL, deliberate="needed")

    asked = _refused("needs-approval", resume)
    assert asked.request is not None
    office.fleet.back_up()
    olga("deny", request=asked.request, reason="no shell")
    office.fleet.back_up("newest")
    _taken_back(office, resume)
    _refused("resume-refused", resume)
    worker("resume", world=_READ, deliberate="without it")


def _newer_state(office: _Office) -> None:
    """A state that only the worker's machine saw is missed by the other."""
    office.fleet.back_up()
    office.worker("save", state={"n": 9}, world=_READ)
    office.fleet.back_up("newest")
    _taken_back(office, lambda: office.olga("pause", reason="why"))
    assert office.olga("load") == {"n": 9}


def _revocation(office: _Office) -> None:
    """A key that was revoked where the root is signs nothing elsewhere; nor without that roster."""
    asked = _refused(
        "needs-approval",
        lambda: office.worker("resume", world=_SHELL, deliberate="again"),
    )
    office.fleet.back_up()
    office.one.admin.keys.revoke("ann", reason="she left")
    office.fleet.back_up("newest")

    def approve() -> Any:
        return office.ann("approve", request=asked.request, reason="fine")

    _taken_back(office, approve)
    told = _refused("not-trusted", approve)
    assert "revoked" in str(told)
