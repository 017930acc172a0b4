# SPDX-License-Identifier: Apache-2.0
"""`sealpoint requests`, `approve`, `deny`, `break-glass`: all of it is shown before an answer."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sealpoint.api import ExaminedRequest
from sealpoint.cli._request_display import print_examined
from sealpoint.errors import NeedsApproval, NotTrusted
from sealpoint.store import ResultsDraft, SaveDraft
from sealpoint.views.words import shown_words
from sealpoint.world import World
from tests.cli.machine import Machine
from tests.cli.team import HOSTILE, READ, SHELL, ask, make_team

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066\u2800\u3164]")
_ANN = ("--identity", "ann", "--reason", "fine")
_BOB = ("--identity", "bob", "--reason", "fine")


@pytest.fixture
def team(tmp_path: Path) -> Machine:
    """A machine of a team, whose thread `t` has two checkpoints in the world `READ`."""
    made = make_team(tmp_path)
    with made.open() as store:
        for step in range(2):
            store.thread("t").save({"step": step}, id=f"step-{step}", world=READ)
    return made


@pytest.fixture
def asked(team: Machine) -> tuple[Machine, str]:
    """The machine, and the id of an open request for a world with a shell."""
    return team, ask(team)


def _request(machine: Machine, request: str) -> dict[str, Any]:
    found: dict[str, Any] = machine.json("requests", request)
    return found


# ---------------------------------------------------------------------- listing


def test_open_requests_are_listed(asked: tuple[Machine, str]) -> None:
    """Id, thread, action, requester, expiry and how many have approved."""
    team, request = asked
    lines = team.done("requests").splitlines()

    assert lines[0].split() == [
        *("request", "thread", "asks", "to", "by", "expires", "approvals", "question", "answer")
    ]
    row = lines[1].split()
    assert row[:4] == [request[:12], "t", "resume", "worker"]
    assert row[-4:] == ["open:", "0", "of", "2"]
    assert lines[3] == "1 open request in namespace 'default'."


def test_no_requests_is_no_table(team: Machine) -> None:
    """A sentence, and an empty list as JSON."""
    assert team.done("requests") == "0 open requests in namespace 'default'.\n"
    assert team.json("requests") == {"namespace": "default", "requests": [], "failures": []}


def test_closed_requests_are_listed_with_all(asked: tuple[Machine, str]) -> None:
    """What is denied is counted, and listed with its status if asked for."""
    team, request = asked
    team.done("deny", request, *_ANN)

    assert team.json("requests")["requests"] == []
    assert "; 1 approved or closed, which --all lists." in team.done("requests")
    assert "denied" in team.done("requests", "--all").splitlines()[1]
    assert [each["status"] for each in team.json("requests", "--all")["requests"]] == ["denied"]


def test_a_request_as_json(asked: tuple[Machine, str]) -> None:
    """The statement with every field, what is shown beside it, and how it stands."""
    team, request = asked
    (listed,) = team.json("requests")["requests"]
    whole = _request(team, request[:8])

    assert list(listed) == [
        *("id", "thread", "status", "asked_at", "needed", "approved_by", "denied_by", "ignored"),
        *(
            "broken_glass",
            "broken_glass_by",
            "statement",
            "answer",
            "world",
            "differences",
            "requester_says",
        ),
    ]
    assert listed["id"] == request
    assert set(listed["statement"]) == {
        *("v", "store", "ns", "thread", "epoch", "gen", "basis", "action", "checkpoint"),
        *(
            "release",
            "world_from",
            "world_to",
            "answer",
            "to",
            "requester",
            "actor",
            "differences",
            "policy",
            "needed",
            "nonce",
            "expires",
        ),
        "reason",
    }
    assert whole == {
        **listed,
        "release": whole["release"],
        "diff": ["+ tool shell"],
        "difference": whole["difference"],
        "decision": whole["decision"],
        "fault": None,
    }
    release = whole["release"]
    assert (release["seq"], release["id"], release["newest"]) == (3, "step-1", True)
    assert release["digest"] == listed["statement"]["release"]
    assert whole["decision"]["differences"] == ["New tool: shell"]
    assert [each["leaf"] for each in whole["difference"]["added"]] == ["tool.shell"]
    assert (whole["difference"]["removed"], whole["difference"]["changed"]) == ([], [])


def test_json_tells_what_a_terminal_shows(team: Machine) -> None:
    """The checkpoint that was found, whether it is the newest, its question, what differs."""
    with team.open() as store:
        store.thread("u").save(1, id="asks", world=READ, question={"pay": 5})
        store.thread("u").save(2, id="later", world=READ)
    document = _request(team, ask(team, "u", ref="asks"))
    wish = ("handoff", "u", "--to", "second", "--reason", "gone", "--identity", "operator")
    assert team.run(*wish).exit_code == 71
    handoffs = [each for each in team.json("requests")["requests"] if each["statement"]["to"]]
    handoff = _request(team, handoffs[0]["id"])

    release = document["release"]
    assert (release["seq"], release["id"], release["newest"]) == (2, "asks", False)
    assert release["question"] == {"pay": 5}
    assert handoff["release"] is None
    assert document["diff"] == ["+ tool shell"]
    assert handoff["diff"] is handoff["difference"] is None


def test_a_thread_that_cannot_be_read_is_named(asked: tuple[Machine, str]) -> None:
    """The others are listed, and the exit status is that of what is not as it was written."""
    team, request = asked
    with team.open() as store:
        store.thread("other").save(1, world=READ)
    ask(team, "other")
    statement = "UPDATE entries SET body = x'00' WHERE thread = ? AND seq = 3"
    hurt = [each for each in team.json("requests")["requests"] if each["thread"] == "other"]
    team.sql(statement, [bytes.fromhex(hurt[0]["statement"]["thread"])])
    result, as_json = team.run("requests"), team.run("requests", "--json")
    document = json.loads(as_json.stdout)

    assert result.exit_code == as_json.exit_code == 30
    assert "NOT READABLE" in result.stdout
    assert [each["id"] for each in document["requests"]] == [request]
    assert [each["thread"] for each in document["failures"]] == [hurt[0]["statement"]["thread"]]
    assert document["failures"][0]["message"]


@pytest.mark.parametrize("verb", ["requests", "approve", "deny", "break-glass"])
def test_a_request_that_is_not_there_is_refused(asked: tuple[Machine, str], verb: str) -> None:
    """Too few digits, other characters, an id of no request."""
    team, request = asked
    options = [] if verb == "requests" else ["--reason", "x"]

    assert team.refused(verb, request[:7], *options) == (2, "usage")
    assert team.refused(verb, "\x1b[31mxxxx", *options) == (2, "usage")
    assert team.refused(verb, "0" * 64, *options) == (44, "unknown-request")


# ---------------------------------------------------------------------- what is shown


def test_the_whole_statement_is_shown(asked: tuple[Machine, str]) -> None:
    """Every value of every field, the difference, the answer, and whose words the reasons are."""
    team, _ = asked
    request = ask(team, answer={"pay": [1, "EUR"]}, ref="step-0")
    document = _request(team, request)
    printed = team.done("requests", request)
    statement = document["statement"]

    for name, value in statement.items():
        if name not in ("expires", "differences", "v") and value is not None:
            assert str(value) in printed, name
    assert request in printed
    assert "NOT the newest" in printed
    assert '  + tool shell\n      {\n        "name": "shell"\n      }\n' in printed
    assert "The answer:\n  pay:\n    | [\n    |   1,\n" in printed
    assert "This is not the newest checkpoint of the thread." in printed
    assert "(as stated by the requester, not verified):\n  - " in printed
    assert "0 so far, 2 more needed" in printed


def test_a_changed_leaf_is_shown_line_by_line(team: Machine) -> None:
    """A tool and a prompt with what stays, what goes and what comes."""
    before = {
        "tools": [{"name": "read", "description": "Reads."}],
        "prompts": {"system": "one\ntwo"},
        "permissions": ["see"],
    }
    after = {
        "tools": [{"name": "read", "description": "Reads all."}],
        "prompts": {"system": "one\n2"},
    }
    with team.open() as store:
        store.thread("u").save(1, world=before)
    printed = team.done("requests", ask(team, "u", world=after))

    assert (
        "\n  - permission see\n  ~ prompt system\n      | one\n    - | two\n    + | 2\n" in printed
    )
    assert '    -   "description": "Reads.",\n    +   "description": "Reads all.",\n' in printed


def test_null_is_a_value_and_not_an_absence(team: Machine) -> None:
    """Null before, after, new and gone is printed, and a change has a line of each side."""
    before = {"model": {"old": None, "safety": "strict", "limit": None}, "network": False}
    after = {"model": {"new": None, "safety": None, "limit": 5}, "network": None}
    with team.open() as store:
        store.thread("u").save(1, world=before)
    printed = team.done("requests", ask(team, "u", world=after))

    assert (
        "  + model new\n      null\n"
        "  - model old\n      null\n"
        "  ~ extra network false -> null\n    - false\n    + null\n"
        "  ~ model limit null -> 5\n    - null\n    + 5\n"
        '  ~ model safety strict -> null\n    - "strict"\n    + null\n\n'
    ) in printed


def test_only_of_a_permission_the_value_is_left_out(team: Machine) -> None:
    """One, 1.0 and true are printed, also where a name looks like that of a permission."""
    world = {
        **READ,
        "permissions": ["pay"],
        "model": {"a": 1, "b": 1.0, "c": True, "permission.x": True},
        "agents": {"helper": {"permissions": ["see"], "model": {"d": True}}},
        "agent.x/permission.y": True,
    }
    printed = team.done("requests", ask(team, world=world))

    for words, value in {
        "model a": "1",
        "model b": "1.0",
        "model c": "true",
        "model permission.x": "true",
        "agent helper": "{}",
        "agent helper / model d": "true",
        "extra agent.x/permission.y": "true",
    }.items():
        assert f"\n  + {words}\n      {value}\n" in printed
    assert "\n  + agent helper / permission see\n  + extra" in printed
    assert re.search(r"^  \+ permission pay\n(?:  \+|$)", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (0.0, -0.0), (0, False), ("a\nb", ["a", "b"])]
)
def test_values_that_python_takes_for_equal_are_told_apart(
    team: Machine, one: Any, other: Any
) -> None:
    """Both sides of a change are printed, each behind its mark."""
    with team.open() as store:
        store.thread("u").save(1, world={"model": {"x": one}})
    printed = team.done("requests", ask(team, "u", world={"model": {"x": other}}))
    block = printed.partition("  ~ model x")[2].partition("\n\n")[0]

    assert re.search(r"^    - \S", block, re.MULTILINE)
    assert re.search(r"^    \+ \S", block, re.MULTILINE)


def test_what_a_task_asks_is_shown(team: Machine) -> None:
    """A question may be a task's; and what a subgraph saves does not make the run's state old."""
    world = World.of(READ)
    question = {"pay": "250.00 EUR", "to": "acme"}
    with team.open() as store:
        outcomes = store.thread("u").adapter.commit(
            [
                SaveDraft({"step": 1}, "root", None, None, world),
                SaveDraft({"step": 1}, "inner", None, None, world, lane="pay:1"),
                ResultsDraft([], checkpoint="root", task="pay", question=question, world=world),
            ]
        )
        assert not [each for each in outcomes if isinstance(each, Exception)]
    printed = team.done("requests", ask(team, "u", world=READ, answer="yes"))
    asks, _, answer = printed.partition("The answer:\n")

    assert "asks:\n  pay: 250.00 EUR\n  to: acme\n" in asks
    assert answer.startswith("  yes\n")
    assert printed.count("250.00 EUR") == 1
    assert "seq:2, the newest\n" in printed
    assert "with it: lane pay:1, checkpoint inner, seq:3" in printed


def test_a_checkpoint_of_another_lane_is_named_with_its_lane(team: Machine) -> None:
    """Two lanes may have one id: whose state and results would run is said, and the main lane."""
    world = World.of(READ)
    with team.open() as store:
        thread = store.thread("u")
        outcomes = thread.adapter.commit(
            [
                SaveDraft({"step": 1}, "x", None, None, world),
                SaveDraft({"evil": 1}, "x", None, None, world, lane="pay:1"),
                ResultsDraft("mine", checkpoint="x", task="pay", lane="pay:1", world=world),
                SaveDraft({"step": 2}, "y", None, None, world),
                ResultsDraft("main", checkpoint="y", task="look", world=world),
            ]
        )
        assert not [each for each in outcomes if isinstance(each, Exception)]
        (ref,) = thread.adapter.snapshots("pay:1")
    printed = team.done("requests", ask(team, "u", world=READ, ref=ref))
    main = team.run("resume", "u", "--json")
    pending = json.loads(main.stdout)["release"]["pending"]

    assert "checkpoint x of lane pay:1, seq:3, NOT the newest\n" in printed
    assert "with it: the main lane, checkpoint y, seq:5\n" in printed
    assert "pending: task pay of lane pay:1, seq:4, results" in printed
    assert "pending: task look of the main lane, seq:6, results" in printed
    assert [(each["lane"], each["task"]) for each in pending] == [("", "look")]


def test_what_the_requester_says_cannot_scroll_the_statement_away(
    asked: tuple[Machine, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it is printed, called unverified, and can imitate no other part."""
    team, request = asked
    words = "\n".join([*("x" for _ in range(500)), "What an approval signs:", "  id  0"])
    with team.open() as store:
        found = dataclasses.replace(store.request(request), reasons=(words,))
    print_examined(ExaminedRequest(request=found, shown=None, diff=None, fault=None))
    printed = capsys.readouterr().out
    before, signed, after = printed.partition("\nWhat an approval signs:\n")

    assert signed
    assert before.index("not verified):") < before.index("  - x\n")
    assert before.count("    x\n") == 499
    assert "    What an approval signs:\n" in before
    assert after.startswith(f"  id          {request}\n")
    assert "    x\n" not in after


def test_a_first_world_is_shown_whole(team: Machine) -> None:
    """There is nothing to compare it with, so all of it has to be read."""
    with team.open() as store:
        store.thread("u").save(1)
    printed = team.done("requests", ask(team, "u"))

    assert "those of the checkpoint were not declared:\n  {\n" in printed
    assert '"name": "shell"' in printed


def test_worlds_that_are_missing_or_the_same_are_told(team: Machine) -> None:
    """No world now, none at all, the same as before, and a handoff, which has none."""
    same = team.done("requests", ask(team, world=READ, ref="step-0"))
    with team.open() as store:
        store.thread("u").save(1)
        for thread in ("t", "u"):
            with pytest.raises(NeedsApproval):
                store.thread(thread).resume(world=None, answer=1)
    wish = ("handoff", "u", "--to", "second", "--reason", "gone", "--identity", "operator")
    assert team.run(*wish).exit_code == 71
    found = {
        (each["thread"], each["statement"]["action"]): team.done("requests", each["id"])
        for each in team.json("requests")["requests"]
    }

    assert "The run's capabilities are the same as at the checkpoint." in same
    assert "are not declared, and those of the checkpoint were." in found["t", "resume"]
    assert "The run's capabilities are not declared.\n" in found["u", "resume"]
    assert found["u", "handoff"].startswith("Request to hand off thread 'u'\n")
    assert "new owner   second" in found["u", "handoff"]


def test_hostile_text_never_reaches_a_terminal(team: Machine) -> None:
    """Reasons, tool names, prompts, answers, thread names, in every verb that shows them."""
    thread = "\u0456nvoice  7"
    world = {
        "tools": [{"name": HOSTILE, "description": HOSTILE}],
        "prompts": {HOSTILE: HOSTILE},
        "permissions": [HOSTILE],
    }
    with team.open() as store:
        store.thread(thread).save(1, world=READ)
    request = ask(team, thread, world=world, answer={HOSTILE: [HOSTILE]}, reason=HOSTILE)
    printed = [
        team.done("requests"),
        team.done("requests", request),
        team.done("approve", request, "--yes-to", request, *_ANN),
        team.done("pause", thread, "--reason", HOSTILE),
        team.run("resume", thread).stdout,
        team.done("unpause", thread, "--reason", HOSTILE),
        team.done("deny", request, "--identity", "bob", "--reason", HOSTILE),
        team.done("requests", request),
    ]

    for text in printed:
        assert not _HIDDEN.search(text), text
    assert "\\u{202e}" in printed[1]
    for text in printed[:2]:
        assert "\\u{456}nvoice  7" in text
    assert not re.search(r"^\s*status  approved", printed[1], re.MULTILINE)


@pytest.mark.parametrize("columns", [80, 120])
def test_nothing_is_cut_at_a_terminal(team: Machine, columns: int) -> None:
    """Long words are folded inside of their column; every one of them is there."""
    pytest.importorskip("pty")
    long = "x" * 300
    world = {"tools": [{"name": "read"}, {"name": "shell", "description": f"runs {long}"}]}
    request = ask(team, world=world, reason=f"because {long}", answer=long)
    status, printed = team.at_a_terminal("requests", request, columns=columns)
    plain = _COLOUR.sub("", printed)

    assert status == 0
    assert max(map(len, plain.splitlines())) <= columns
    assert plain.count("x") >= 900
    assert not [line for line in plain.splitlines() if line.startswith("x")]


def test_words_that_are_visible_already_stay_as_they_are() -> None:
    """What the world has escaped is not escaped again, and everything else is."""
    assert shown_words("tool a\\u{202e}b \u202e\x1b") == "tool a\\u{202e}b \\u{202e}\\u{1b}"


def test_many_lines_are_not_aligned(
    asked: tuple[Machine, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A difference that would take long to align is shown as two blocks, with nothing left out."""
    team, request = asked
    before, after = ("\n".join(f"{word} {n}" for n in range(1100)) for word in ("old", "new"))
    diff = World(prompts={"a": before}).diff(World(prompts={"a": after}))
    with team.open() as store:
        found = store.request(request)
    print_examined(ExaminedRequest(request=found, shown=None, diff=diff, fault=None))
    printed = capsys.readouterr().out

    assert printed.count("    - | old ") == printed.count("    + | new ") == 1100
    assert printed.index("old 1099") < printed.index("new 0\n")
    assert "NOT FOUND on the thread" in printed


# ---------------------------------------------------------------------- approving


def test_two_people_approve(asked: tuple[Machine, str]) -> None:
    """The first is told that one is missing, the second that it may go on; a resume is allowed."""
    team, request = asked
    first = team.done("approve", request[:8], "--yes-to", request, *_ANN)
    second = team.done("approve", request, "--yes-to", request, *_BOB)
    world = team.home / "world.json"
    world.write_text(json.dumps(SHELL))

    assert first.endswith(f"\nApproved request {request[:12]}: 1 of 2 approvals.\n")
    assert ": 2 of 2 approvals. It resumes, once, when its worker takes" in " ".join(second.split())
    assert "approved by ann" in second
    assert team.json("resume", "t", "--world", str(world))["outcome"] == "allow"


def test_approving_as_json(asked: tuple[Machine, str]) -> None:
    """Nothing but the document, with how it stands afterwards."""
    team, request = asked
    document = team.json("approve", request, "--yes-to", request, *_ANN)

    assert document == {
        "request": request,
        "verdict": "approve",
        "reason": "fine",
        "already": False,
        **_request(team, request),
    }
    assert (document["status"], document["approved_by"]) == ("open", ["ann"])
    assert document["diff"] == ["+ tool shell"]
    assert document["release"]["id"] == "step-1"


@pytest.mark.parametrize("verb", ["approve", "break-glass"])
def test_without_a_terminal_the_digits_are_needed(asked: tuple[Machine, str], verb: str) -> None:
    """It is shown, and then refused; there is no option that says yes to anything."""
    team, request = asked
    identity = "ann" if verb == "approve" else "chief"
    options = ("--reason", "x", "--identity", identity)
    result = team.run(verb, request, *options)

    assert "What an approval signs:" in result.stdout
    assert "there is no terminal for that" in result.stderr
    assert f"sealpoint requests {request}, then give --yes-to" in " ".join(result.stderr.split())
    assert team.run(verb, request, *options, stdin=f"{request[:8]}\n").exit_code == 2
    assert team.run(verb, request, *options, "--json").exit_code == 2
    assert team.run(verb, request, *options, "--yes").exit_code == 2
    wrong = ("0" * 64, request[1:], request[:32].upper() + "X", f"{request}0")
    for digits in ("", request[:8], request[:31], *wrong):
        assert team.run(verb, request, *options, "--yes-to", digits).exit_code == 2
    assert _request(team, request)["approved_by"] == []
    assert _request(team, request)["broken_glass"] is None


def test_question_and_answer_are_listed_and_said_again_before_the_digits(team: Machine) -> None:
    """What others wrote may push the question out of view; threads have it, too."""
    with team.open() as store:
        store.thread("u").save({}, question="Pay 250 EUR?", world=READ)
    request = ask(team, "u", world=READ, answer="not before May")
    status, printed = team.at_a_terminal("approve", request, *_ANN, answer="no\n")
    end = _COLOUR.sub("", printed).partition("What an approval signs")[2]

    assert status == 2
    assert "Question: Pay 250 EUR?" in end
    assert "Answer: not before May" in end
    (row,) = [line for line in team.done("requests").splitlines() if line.startswith(request[:12])]
    assert row.endswith("Pay 250 EUR?  not before May")
    assert "Pay 250 EUR?" in team.done("threads")
    for name in (_ANN, _BOB):
        team.done("approve", request, "--yes-to", request, *name)
    assert "waits for its worker" in team.done("threads")


def test_the_only_key_here_signs(asked: tuple[Machine, str]) -> None:
    """Advice without an identity works as printed on the machine of one approver."""
    team, request = asked
    (keys,) = team.home.rglob("keys")
    for each in keys.glob("*.key"):
        if each.name != "ann.key":
            each.unlink()
    printed = team.done("approve", request, "--reason", "fine", "--yes-to", request)

    assert printed.endswith(": 1 of 2 approvals.\n")


def test_few_digits_do_not_name_a_request(asked: tuple[Machine, str]) -> None:
    """Another request with 8 given digits can be made: 31 are refused with the id, 32 are not."""
    team, request = asked
    refused = team.run("approve", request, "--yes-to", request[:31], *_ANN)
    done = team.run("approve", request[:8], "--yes-to", request[:32], *_ANN)

    assert refused.exit_code == 2
    assert (
        "at least the first 32 digits of the request's id are needed, and 31 were given"
        in refused.stderr
    )
    assert request in refused.stderr
    assert done.exit_code == 0


@pytest.mark.parametrize("right", [True, False])
def test_digits_are_typed_at_a_terminal(asked: tuple[Machine, str], right: bool) -> None:  # noqa: FBT001
    """The right ones approve; anything else changes nothing and ends as wrong usage."""
    pytest.importorskip("pty")
    team, request = asked
    answer = request[:8] if right else "yes"
    status, printed = team.at_a_terminal("approve", request, *_ANN, answer=f"{answer}\n")
    plain = _COLOUR.sub("", printed)

    assert status == (0 if right else 2)
    assert plain.index("What an approval signs") < plain.index("Type the first 8 digits of the id")
    assert ("Nothing was changed." in plain) == (not right)
    assert _request(team, request)["approved_by"] == (["ann"] if right else [])


def test_who_may_not_approve_is_refused(asked: tuple[Machine, str]) -> None:
    """A writer, an operator, and without a reason nobody."""
    team, request = asked
    yes = ("approve", request, "--yes-to", request)

    assert team.refused(*yes, "--identity", "second", "--reason", "x") == (39, "no-right")
    assert team.refused(*yes, "--identity", "chief", "--reason", "x") == (39, "no-right")
    assert team.refused(*yes, "--identity", "ann", "--reason", " ") == (2, "usage")
    assert team.run(*yes, "--identity", "ann").exit_code == 2
    # `operator` is of the same person as `worker`, who asks.
    assert team.refused(*yes, "--reason", "mine") == (39, "no-right")


def test_a_closed_request_is_not_approved(asked: tuple[Machine, str]) -> None:
    """Denied, or void because another policy is in force."""
    team, request = asked
    other = ask(team, answer=1)
    team.done("deny", request, *_ANN)
    yes = ("approve", request, "--yes-to", request, *_BOB)

    assert team.refused(*yes) == (70, "request-closed")
    team.done("policy", "apply", "solo")
    assert team.refused("approve", other, "--yes-to", other, *_BOB) == (70, "request-closed")
    assert team.refused("deny", other, *_BOB) == (70, "request-closed")


def test_a_request_that_lies_can_be_denied_alone(
    asked: tuple[Machine, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the comparison is refused, approving is refused as well, and denying says why."""
    team, request = asked

    def lies(*_: object) -> None:
        raise NotTrusted("request: expected the world of its checkpoint, found another")

    monkeypatch.setattr("sealpoint.gate._operator_actions.OperatorActions.compare", lies)
    yes = ("--yes-to", request)

    assert team.refused("approve", request, *yes, *_ANN) == (39, "not-trusted")
    assert _request(team, request)["fault"]["code"] == "not-trusted"
    printed = team.done("deny", request, *_ANN)
    assert "NOT TO BE BELIEVED: request: expected the world of its checkpoint" in printed


# ---------------------------------------------------------------------- denying, breaking glass


def test_a_denial_shows_all_and_ends_it(asked: tuple[Machine, str]) -> None:
    """No digits are asked for; JSON says how it stands."""
    team, request = asked
    other = ask(team, answer=1)
    printed = team.done("deny", request, *_ANN)
    document = team.json("deny", other, *_BOB)

    assert "What an approval signs:" in printed
    assert f"\nDenied request {request[:12]}, for good.\n" in printed
    assert printed.endswith("can revert it unnoticed.\n")
    assert "Only the anchor of this account has seen it" in " ".join(printed.split())
    assert document["anchor"] == "local"
    assert (document["verdict"], document["status"]) == ("deny", "denied")
    assert document["denied_by"] == ["bob"]
    assert (document["diff"], document["release"]["newest"]) == (["+ tool shell"], True)
    assert team.refused("deny", request, *_BOB) == (70, "request-closed")


def test_the_requester_withdraws_by_denying(asked: tuple[Machine, str]) -> None:
    """With its own key, although it is no approver."""
    team, request = asked
    document = team.json("deny", request, "--identity", "worker", "--reason", "not needed")

    assert document["status"] == "denied"


def test_breaking_the_glass_lets_a_request_pass(asked: tuple[Machine, str]) -> None:
    """Only by whom the roster marks, loudly, and recorded with the reason."""
    team, request = asked
    yes = ("break-glass", request, "--yes-to", request, "--reason")
    refused = team.refused(*yes, "fire")
    document = team.json(*yes, "fire", "--identity", "chief")
    printed = team.done(*yes, "fire again", "--identity", "chief")  # which records nothing more

    assert refused == (39, "no-right")
    assert (document["verdict"], document["status"]) == ("break-glass", "approved")
    assert document["entry"] == 5
    assert "GLASS BROKEN" in printed
    assert "Entry 5 records it" in printed
    found = _request(team, request)
    assert (found["broken_glass"], found["broken_glass_by"]) == ("chief: fire", ["chief"])
    assert "break-glass chief: fire" in team.done("requests", request)


def test_glass_is_not_broken_for_a_closed_request(asked: tuple[Machine, str]) -> None:
    """A denial stays one, and so does a pause."""
    team, request = asked
    team.done("deny", request, *_ANN)
    wish = ("break-glass", request, "--yes-to", request, "--reason", "x")

    assert team.refused(*wish, "--identity", "chief") == (70, "request-closed")


def test_what_requests_wait_for_is_rolled_out(asked: tuple[Machine, str]) -> None:
    """The change of worlds is that of the request, and other ways to name one are left out."""
    team, request = asked
    words = ("rollout", "propose", "--from-requests", request[:8], "--reason", "release 42")
    mixed = team.refused(*words, "--all")
    unknown = team.refused("rollout", "propose", "--from-requests", "0" * 8, "--reason", "x")
    made = team.json(*words)

    assert (mixed, unknown) == ((2, "usage"), (44, "unknown-request"))
    assert made["statement"]["action"] == "rollout"
    assert [leaf for leaf, _, _ in made["statement"]["differences"]] == ["tool.shell"]
    assert team.done("rollout", "show", made["id"])
