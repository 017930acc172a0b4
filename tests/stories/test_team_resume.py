# SPDX-License-Identifier: Apache-2.0
"""A team lets a paused run go on with one more tool: everybody in a process of their own."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint import api
from tests.stories.actor import Actor, Refused

_READ: dict[str, Any] = {"tools": [{"name": "read"}]}
_SHELL: dict[str, Any] = {"tools": [{"name": "read"}, {"name": "shell"}]}
_YES = {"pay": True, "amount": 42}


class Office:
    """A store with a team: two workers of one pool, an operator, and approvers."""

    def __init__(self, folder: Path, url: str) -> None:
        (folder / "disk").mkdir()
        self.url = url
        self.places: dict[str, Any] = {
            "config_dir": folder / "config",
            "state_dir": folder / "state",
        }
        sealpoint.init(self.url, policy="strict", **self.places)
        # The second worker belongs to dev, who is an approver as well.
        for name, person, role in (
            ("second", "dev", "writer"),
            ("dev", "dev", "approver"),
            ("ann", "ann", "approver"),
            ("bob", "bob", "approver"),
        ):
            api.admin(self.url, **self.places).keys.create(name)
            api.admin(self.url, **self.places).keys.add(
                name, person=person, roles=[role], namespaces=["*"]
            )
        api.admin(self.url, **self.places).roster.set_pool("pods", ["worker", "second"])

    def actor(self, identity: str) -> Actor:
        """A process of somebody."""
        return Actor(self.url, self.places, identity)


def _refused(code: str, act: Callable[[], Any]) -> Refused:
    with pytest.raises(Refused) as told:
        act()
    assert told.value.code == code, told.value
    return told.value


def test_a_team_lets_a_paused_run_go_on_with_one_more_tool(url: str, tmp_path: Path) -> None:
    """From the save of one worker to evidence that verifies on a machine without the store."""
    office = Office(tmp_path, url)
    evidence = tmp_path / "evidence.bundle"
    with ExitStack() as stack:
        names = ("worker", "second", "operator", "dev", "ann", "bob")
        worker, second, operator, dev, ann, bob = (
            stack.enter_context(office.actor(name)) for name in names
        )
        _wait(worker)
        request = _ask(worker, second, operator)
        _approve(second, dev, ann, bob, request)
        _go_on(worker, second, operator, request)
        trail = operator("audit")
        assert operator("verify") == []
        assert operator("export", path=str(evidence))
        for actor in (worker, second, operator, dev, ann, bob):
            actor.end()

    _check_trail(trail, request)
    _check_evidence(office, evidence, tmp_path)


def _wait(worker: Actor) -> None:
    """A worker saves and waits for an answer."""
    worker("save", state={"n": 1}, id="c1", world=_READ)
    worker("save", state={"n": 2}, id="c2", world=_READ, question={"pay": 42})


def _ask(worker: Actor, second: Actor, operator: Actor) -> str:
    """An operator pauses; a second worker with one more tool asks to resume."""
    operator("pause", reason="the amount looks odd")
    _refused("paused", lambda: worker("save", state={"n": 3}, world=_READ))
    asked = _refused("needs-approval", lambda: _resume(second))
    told = " ".join(asked.reasons)
    assert "shell" in told
    assert "an answer is given" in told
    assert asked.request is not None
    (shown,) = operator("requests")
    assert (shown["id"], shown["status"]) == (asked.request, "open")
    assert (shown["answer"], shown["world"]) == (_YES, _SHELL)
    return asked.request


def _resume(actor: Actor, **changes: Any) -> Any:
    wish = {"world": _SHELL, "answer": _YES, "deliberate": "the tool is needed to pay"}
    return actor("resume", **(wish | changes))


def _approve(second: Actor, dev: Actor, ann: Actor, bob: Actor, request: str) -> None:
    """One approval of two is not enough, the requester's own does not count."""
    _refused("no-right", lambda: dev("approve", request=request, reason="mine"))
    _refused("no-right", lambda: second("approve", request=request, reason="mine"))
    ann("approve", request=request, reason="the amount is right")
    ann("approve", request=request, reason="it really is")
    waiting = _refused("needs-approval", lambda: _resume(second))
    assert (waiting.request, waiting.approved) == (request, ["ann"])
    bob("approve", request=request, reason="I have called them")


def _go_on(worker: Actor, second: Actor, operator: Actor, request: str) -> None:
    """It waits until the operator unpauses, and is resumed once and as it was approved."""
    paused = _refused("resume-refused", lambda: _resume(second))
    assert "paused" in paused.reasons[0]
    operator("unpause", reason="I have seen the invoice")
    changed = _refused("needs-approval", lambda: _resume(second, answer={**_YES, "amount": 99999}))
    older = _refused("needs-approval", lambda: _resume(second, ref="c1"))
    assert len({changed.request, older.request, request}) == 3
    assert changed.approved == older.approved == []
    assert _resume(second) == {"n": 2}
    replayed = _refused("needs-approval", lambda: _resume(second))
    assert replayed.request not in (changed.request, older.request, request)
    _refused("superseded", lambda: worker("save", state="late", world=_READ))
    second("save", state={"n": 3}, id="c3")


def _check_trail(trail: list[dict[str, Any]], request: str) -> None:
    """The audit tells it in order, with who did what."""
    told = [(record["kind"], record["by"]) for record in trail]

    assert told == [
        ("genesis", "worker"),
        ("resume", "worker"),
        ("checkpoint", "worker"),
        ("checkpoint", "worker"),
        ("pause", "operator"),
        ("request", "second"),
        ("approval", "ann"),
        ("approval", "bob"),
        ("unpause", "operator"),
        ("request", "second"),
        ("request", "second"),
        ("resume", "second"),
        ("request", "second"),
        ("checkpoint", "second"),
    ]
    assert all(record["finding"] is None for record in trail)
    assert [record["seq"] for record in trail] == list(range(len(trail)))
    times = [record["time"] for record in trail]
    assert times == sorted(times)
    assert "the amount looks odd" in trail[4]["summary"]
    assert request[:12] in trail[11]["summary"]


def _check_evidence(office: Office, evidence: Path, folder: Path) -> None:
    """The bundle verifies elsewhere, with the pin alone, after the store is gone."""
    pin = folder / "elsewhere" / "pin.json"
    pin.parent.mkdir()
    pin.write_bytes(api.admin(office.url, **office.places).trust.export_pin().encode())
    data = evidence.read_bytes()
    for place in (folder / "disk", *office.places.values()):
        shutil.rmtree(place)
    report = api.verify_bundle(data, pin)

    assert report.ok, report.findings
    assert [thread.name for thread in report.threads] == ["invoice-7"]
    with pytest.raises(sealpoint.errors.SealpointError):
        api.verify_bundle(data.replace(b"99999", b"00042"), pin)


def test_of_processes_that_race_for_one_grant_one_is_released(url: str, tmp_path: Path) -> None:
    """Several real processes of the requester resume at the same time, round after round."""
    office = Office(tmp_path, url)
    with ExitStack() as stack:
        racers = [stack.enter_context(office.actor("second")) for _ in range(3)]
        ann, bob = (stack.enter_context(office.actor(name)) for name in ("ann", "bob"))
        racers[0]("save", state={"n": 0}, world=_READ)
        for _ in range(3):
            asked = _refused("needs-approval", lambda: racers[0]("resume", world=_SHELL))
            for approver in (ann, bob):
                approver("approve", request=asked.request, reason="fine")
            told = _all_at_once(racers)
            released = [each for each in told if "result" in each]

            assert len(released) == 1, told
            assert all(
                each["refused"]["code"] == "needs-approval" for each in told if "refused" in each
            )
        assert ann("verify") == []


def _all_at_once(actors: list[Actor]) -> list[dict[str, Any]]:
    for actor in actors:
        actor.tell("resume", world=_SHELL)
    return [actor.hear() for actor in actors]
