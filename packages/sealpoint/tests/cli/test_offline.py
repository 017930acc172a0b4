# SPDX-License-Identifier: Apache-2.0
"""Approvals on the approver's own machine: export, answer, relay."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sealpoint import Registry, World, api
from sealpoint.signing import Verdict
from sealpoint.store import ResultsDraft, SaveDraft
from tests.cli.machine import Machine
from tests.cli.team import READ, ask, make_team


@dataclass
class Receipt:
    """A type of the application's own."""

    lines: list[str]


@pytest.fixture
def team(tmp_path: Path) -> Machine:
    """Where the store is."""
    made = make_team(tmp_path)
    with made.open() as store:
        store.thread("t").save({"n": 1}, world=READ, question={"pay": 17})
    return made


@pytest.fixture
def desk(team: Machine, tmp_path: Path) -> Machine:
    """Where carol works: a pin and a key of her own, and no store at all."""
    far = Machine(tmp_path / "far" / "store.db", tmp_path / "carol")
    team.done("trust", "export", "--output", str(tmp_path / "pin.json"))
    far.done("trust", "import", str(tmp_path / "pin.json"))
    public = far.json("keys", "new", "carol")["public"]
    (tmp_path / "carol.pub").write_text(f"{public}\n")
    rights = ("--person", "carol", "--role", "approver", "--namespace", "*")
    team.done("keys", "add", "carol", "--public-key", str(tmp_path / "carol.pub"), *rights)
    return far


def _exported(team: Machine, request: str) -> str:
    path = team.home / "request.json"
    found = team.json("request", "export", request[:8], "--output", str(path))
    assert found["request"] == request
    assert found["bytes"] == path.stat().st_size
    return str(path)


def _answer(desk: Machine, verb: str, file: str, *options: str) -> tuple[str, str]:
    answer = str(desk.home / "answer.json")
    files = ("--offline", file, "--output", answer)
    return desk.done(verb, *files, "--identity", "carol", "--reason", "read it", *options), answer


def test_a_request_is_approved_where_the_store_is_not(team: Machine, desk: Machine) -> None:
    """What is shown there is what is shown here; it counts when anybody has relayed it."""
    request = ask(team, answer={"pay": True})
    file = _exported(team, request)
    here = team.done("requests", request)
    shown, answer = _answer(desk, "approve", file, "--yes-to", request)
    untouched = team.json("requests", request)
    relayed = team.json("relay", answer, "--identity", "second")
    again = team.json("relay", answer)

    assert not desk.path.exists()
    assert here.strip() in shown
    assert "verified by the pin of this machine" in shown
    assert untouched["approved_by"] == []
    assert (relayed["approved_by"], relayed["verdict"]) == (["carol"], "approve")
    assert again["entry"] == relayed["entry"]


def test_an_approved_request_goes_on_with_an_answer_from_each_side(
    team: Machine, desk: Machine
) -> None:
    """One approver is here and one elsewhere; both count."""
    request = ask(team, answer={"pay": True})
    _, answer = _answer(desk, "approve", _exported(team, request), "--yes-to", request)
    team.done("approve", request, "--identity", "ann", "--reason", "fine", "--yes-to", request)
    relayed = team.json("relay", answer)
    with team.open() as store:
        resumed = store.thread("t").resume(
            world={"tools": [{"name": "read"}, {"name": "shell"}]},
            answer={"pay": True},
            deliberate="a new tool",
        )

    assert relayed["status"] == "approved"
    assert resumed.state == {"n": 1}


def test_a_request_is_denied_where_the_store_is_not(team: Machine, desk: Machine) -> None:
    """A denial ends it for good, as one that is given here."""
    request = ask(team)
    shown, answer = _answer(desk, "deny", _exported(team, request))
    relayed = team.json("relay", answer)

    assert "Signed a denial" in shown
    assert (relayed["status"], relayed["denied_by"]) == ("denied", ["carol"])


def test_a_handoff_is_answered_in_the_same_way(team: Machine, desk: Machine) -> None:
    """Whatever the action is: the thread that asks for it is exported, and read as any other."""
    team.run("handoff", "t", "--to", "second", "--reason", "moved", "--identity", "chief")
    (request,) = (each["id"] for each in team.json("requests")["requests"])
    shown, answer = _answer(desk, "approve", _exported(team, request), "--yes-to", request)
    team.done("relay", answer)

    assert "action      handoff" in shown


def test_what_an_approver_is_shown_offline_as_json_is_what_is_shown_here(
    team: Machine, desk: Machine
) -> None:
    """The whole document, but for the answer that was just given."""
    request = ask(team)
    file = _exported(team, request)
    here = team.json("requests", request)
    there = desk.json(
        *("approve", "--offline", file, "--output", str(desk.home / "a.json")),
        *("--identity", "carol", "--reason", "fine", "--yes-to", request),
    )

    assert {key: there[key] for key in here} == here
    assert there["output"] == str(desk.home / "a.json")


def test_the_python_api_does_the_same(team: Machine, desk: Machine) -> None:
    """Open the export, examine it, answer it, relay the answer."""
    request = ask(team)
    places: dict[str, Any] = {"config_dir": desk.home / "config", "state_dir": desk.home / "state"}
    with team.open() as store:
        data = api.export_request(store, request)
    with api.open_request(data, desk.url, identity="carol", **places) as exported:
        examined = exported.examine()
        answer = exported.answer(Verdict.APPROVE, reason="fine")
    with team.open() as store:
        attestation, _ = api.relay_answer(store, answer)
        found = store.request(request)

    assert examined.fault is None
    assert examined.diff is not None
    assert attestation.statement == request
    assert found.approved_by == ("carol",)


@pytest.mark.parametrize(
    "options",
    [(), ("--offline", "x"), ("--output", "x"), ("0" * 64, "--offline", "x", "--output", "y")],
    ids=str,
)
def test_a_request_is_named_in_one_way(team: Machine, options: tuple[str, ...]) -> None:
    """By its id, or by both files."""
    for verb in ("approve", "deny"):
        assert team.refused(verb, *options, "--reason", "x") == (2, "usage")


def test_an_export_of_no_request_writes_nothing(team: Machine, tmp_path: Path) -> None:
    """The file is written last."""
    path = tmp_path / "none.json"
    assert team.refused("request", "export", "0" * 64, "--output", str(path))[1] == (
        "unknown-request"
    )
    assert not path.exists()


def test_an_export_holds_no_state(team: Machine) -> None:
    """An approver is shown what would run, and not what was saved."""
    with team.open() as store:
        store.thread("u").save({"secret": "hunter2 " * 10}, world=READ)
    document = json.loads(Path(_exported(team, ask(team, "u"))).read_bytes())

    assert "hunter2" not in json.dumps(document)
    assert all(row[3] is None for row in document["entries"])


def test_pending_results_are_carried_and_shown_whether_their_types_are_known_or_not(
    team: Machine, desk: Machine
) -> None:
    """Large values lie in blobs of their own; those that are shown are all in the export."""
    registry = Registry()
    registry.allow(Receipt, name="shop.receipt")
    large = [f"line {number} of many" for number in range(20_000)]
    world = World.of(READ)
    with team.open(registry) as store:
        store.thread("r").adapter.commit(
            [
                SaveDraft({"n": 1}, "a", None, None, world),
                ResultsDraft(large, checkpoint="a", task="read", world=world),
                ResultsDraft(Receipt(large), checkpoint="a", task="pay", world=world),
            ]
        )
    request = ask(team, "r")
    here = team.json("requests", request)["release"]["pending"]
    file = _exported(team, request)
    there = desk.json(
        *("approve", "--offline", file, "--output", str(desk.home / "a.json")),
        *("--identity", "carol", "--reason", "fine", "--yes-to", request),
    )["release"]["pending"]
    places: dict[str, Any] = {"config_dir": desk.home / "config", "state_dir": desk.home / "state"}
    with api.open_request(
        Path(file).read_bytes(), desk.url, identity="carol", registry=registry, **places
    ) as exported:
        shown = exported.examine().shown

    assert there == here
    assert here[0]["value"] == large
    assert "shop.receipt" in here[1]["fault"]
    assert shown is not None
    assert [each.value for each in shown.results] == [large, Receipt(large)]


# ---------------------------------------------------------------------- who signs, and twice


def test_the_environment_says_who_signs(team: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An approver sets it once; an option comes before it."""
    request = ask(team)
    monkeypatch.setenv("SEALPOINT_IDENTITY", "ann")
    team.done("approve", request, "--reason", "fine", "--yes-to", request)
    team.done("approve", request, "--reason", "ok", "--yes-to", request, "--identity", "bob")

    assert team.json("requests", request)["approved_by"] == ["ann", "bob"]


def test_approving_twice_says_so_and_writes_nothing(team: Machine) -> None:
    """The first word stands, with its reason."""
    request = ask(team)
    approve = ("approve", request, "--yes-to", request, "--identity", "ann")
    first = team.json(*approve, "--reason", "fine")
    entries = team.sql("SELECT count(*) FROM entries")
    second = team.json(*approve, "--reason", "still fine")
    words = team.done(*approve, "--reason", "again")

    assert (first["already"], second["already"], second["reason"]) == (False, True, "fine")
    assert "Approved already, and nothing more was written" in words
    assert team.sql("SELECT count(*) FROM entries") == entries


def test_pausing_a_paused_thread_asks_for_the_right_first(team: Machine) -> None:
    """Who may not pause is told so; who may is told that it is paused already."""
    team.done("pause", "t", "--reason", "look", "--identity", "chief")
    refused = team.refused("pause", "t", "--reason", "x", "--identity", "ann")
    again = team.json("pause", "t", "--reason", "x", "--identity", "chief")
    words = team.done("pause", "t", "--reason", "x", "--identity", "chief")

    assert refused == (39, "no-right")
    assert again["already"]
    assert "Paused already" in words


def test_a_missing_role_is_answered_with_the_line_that_gives_it(team: Machine) -> None:
    """The line works when it is run as it stands."""
    request = ask(team)
    approve = ("approve", request, "--yes-to", request, "--identity", "chief", "--reason", "x")
    hint = json.loads(team.run(*approve, "--json").stderr)["error"]["hint"]
    line = hint.partition("sealpoint ")[2].split(" ")
    team.done(*(each.strip("'") for each in line))
    team.done(*approve)

    assert line[:3] == ["keys", "add", "chief"]
