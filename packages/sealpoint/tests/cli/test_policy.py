# SPDX-License-Identifier: Apache-2.0
"""`sealpoint policy`, `init --policy` and `keys add --break-glass`: what the gate asks for."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sealpoint.cli import main
from sealpoint.gate import SHIPPED_POLICIES, Policy, Rule, shipped_policy
from sealpoint.limits import POLICY_BYTES_MAX
from tests.cli.machine import Machine
from tests.cli.team import ask, make_team


@pytest.mark.parametrize("name", SHIPPED_POLICIES)
def test_a_shipped_policy_is_shown_byte_by_byte(tmp_path: Path, name: str) -> None:
    """As the file that it is, also where there is no store yet."""
    nowhere = Machine(tmp_path / "disk" / "none.db", tmp_path / "one")
    result = nowhere.run("policy", "show", "--name", name)
    document = nowhere.json("policy", "show", "--name", name)

    assert result.stdout_bytes == shipped_policy(name)
    assert document["source"].encode() == shipped_policy(name)
    assert document["digest"] == sha256(shipped_policy(name)).hexdigest()
    assert document["name"] == name
    assert set(document["rules"]) == set(Rule)


def test_the_policy_in_force_is_shown(machine: Machine) -> None:
    """That of the namespace, or else that of all."""
    machine.done("policy", "apply", "strict", "--namespace", "billing")

    assert machine.run("policy", "show").stdout_bytes == shipped_policy("solo")
    billing = machine.run("policy", "show", "--namespace", "billing")
    assert billing.stdout_bytes == shipped_policy("strict")


def test_a_policy_without_a_store_is_refused(tmp_path: Path) -> None:
    """What is in force can only be told by a store."""
    nowhere = Machine(tmp_path / "disk" / "none.db", tmp_path / "one")

    assert nowhere.run("policy", "show").exit_code != 0


def test_a_policy_in_force_hides_nothing_on_a_terminal(machine: Machine, tmp_path: Path) -> None:
    """Into a pipe it is the exact file; on a terminal direction controls are made visible."""
    pytest.importorskip("pty")
    hostile = tmp_path / "hostile.toml"
    hostile.write_bytes(shipped_policy("solo") + "# \u202eevil \x9b31m\n".encode())
    machine.done("policy", "apply", str(hostile))
    status, printed = machine.at_a_terminal("policy", "show")

    assert status == 0
    assert machine.run("policy", "show").stdout_bytes == hostile.read_bytes()
    assert printed.endswith("# \\u{202e}evil \\u{9b}31m\n")


def _check(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["policy", "check", *arguments], input=stdin)


def test_a_policy_is_checked(tmp_path: Path) -> None:
    """A good one is told in words and as JSON, from a file or from standard input."""
    good = tmp_path / "good.toml"
    good.write_bytes(shipped_policy("strict"))
    printed, document = _check(str(good)), json.loads(_check(str(good), "--json").stdout)

    assert printed.exit_code == 0
    assert printed.stdout.startswith("A good policy.\nname      strict\n")
    assert "requests  open for 1d\n" in printed.stdout
    assert all(f"\n{rule} " in printed.stdout for rule in Rule)
    assert list(document) == [*("name", "digest", "rules", "expires", "age_max", "takeover_after")]
    assert document["rules"]["tools"] == "approve 2"
    assert (document["expires"], document["age_max"]) == ("1d", "7d")
    assert document["takeover_after"] == "0s"
    assert _check("-", stdin=shipped_policy("solo")).exit_code == 0


def test_what_is_no_policy_is_told(tmp_path: Path) -> None:
    """The key, what was expected and what was found; the exit status is that of the error."""
    bad = tmp_path / "bad.toml"
    bad.write_bytes(shipped_policy("strict") + b"surprise = 1\n")
    words, document = _check(str(bad)), _check(str(bad), "--json")

    assert words.exit_code == document.exit_code == 60
    assert "surprise" in words.stderr
    assert json.loads(document.stderr)["error"]["code"] == "policy-invalid"
    assert _check(str(tmp_path / "none.toml")).exit_code == 2
    assert _check("-", stdin=b"x" * (POLICY_BYTES_MAX + 1)).exit_code == 2


def test_a_policy_is_applied_and_voids_requests(tmp_path: Path) -> None:
    """Before and after are named; a request of before cannot be approved; twice changes nothing."""
    team = make_team(tmp_path)
    with team.open() as store:
        store.thread("t").save(1, world={"tools": [{"name": "read"}]})
    ask(team)
    printed = team.done("policy", "apply", "solo", "--reason", "calm again")
    (request,) = team.json("requests", "--all")["requests"]
    again = team.json("policy", "apply", "solo")

    assert printed.splitlines()[0] == "In force from now on."
    assert "strict -> solo" in printed
    assert Policy.parse(shipped_policy("solo")).digest in printed
    assert "Open requests are void" in printed
    assert request["status"] == "void"
    assert again["roster"] is None
    assert again["before"] == again["after"]
    assert (again["name"], again["namespace"]) == ("solo", "*")
    assert team.done("policy", "apply", "solo").startswith("In force already.\n")


def test_what_is_no_policy_is_not_applied(machine: Machine, tmp_path: Path) -> None:
    """No file, one that is none, a namespace that is none, no root key."""
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"version = 2\n")

    assert machine.refused("policy", "apply", str(tmp_path / "none.toml")) == (2, "usage")
    assert machine.refused("policy", "apply", str(bad)) == (60, "policy-invalid")
    assert machine.refused("policy", "apply", "strict", "--namespace", "")[0] == 2
    (root,) = machine.home.rglob("root.key")
    root.unlink()
    assert machine.refused("policy", "apply", "strict")[1] in {"key-missing", "not-trusted"}


def test_a_store_is_made_with_a_policy(tmp_path: Path) -> None:
    """One that is shipped or a file; without the option solo; what is none makes no store."""
    file = tmp_path / "own.toml"
    file.write_bytes(shipped_policy("strict").replace(b'name = "strict"', b'name = "own"'))
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"")
    names: dict[str, str] = {}
    for choice in ("dev", "solo", "strict", str(file)):
        machine = Machine(tmp_path / "disk" / f"{len(names)}.db", tmp_path / str(len(names)))
        names[choice] = machine.json("init", "--policy", choice)["policy"]["name"]
        assert machine.json("policy", "show")["name"] == names[choice]
    other = Machine(tmp_path / "disk" / "other.db", tmp_path / "other")

    assert list(names.values()) == ["dev", "solo", "strict", "own"]
    assert other.refused("init", "--policy", str(bad)) == (60, "policy-invalid")
    assert not other.path.exists()
    assert "policy       solo" in other.done("init")


def test_a_mark_for_break_glass_is_a_right_that_stays(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is added, listed, and kept when the identity is given more."""
    add = ("keys", "add", "operator", "--person", "owner", "--role", "operator")
    before = {each["name"]: each["break_glass"] for each in machine.json("keys", "list")}
    marked = machine.json(*add, "--namespace", "*", "--break-glass")
    machine.done(*add, "--namespace", "billing")
    after = {each["name"]: each["break_glass"] for each in machine.json("keys", "list")}

    assert not any(before.values())
    assert marked["break_glass"] is True
    assert after == {**before, "operator": True}
    monkeypatch.setenv("COLUMNS", "140")
    assert "privacy + break-glass" in machine.done("keys", "list")
    printed = machine.done(*add, "--namespace", "*", "--break-glass")
    assert "may let a request pass without approvals" in printed


_ANSWERS = {"tools": "one-other", "answers": "nobody", "code": "nobody", "oldest": "7d"}


def _words(**changes: str) -> list[str]:
    answers = {**_ANSWERS, "break-glass": "yes", **changes}
    return [word for name, answer in answers.items() for word in (f"--{name}", answer)]


def _new(file: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["policy", "new", str(file), *words])


def test_a_policy_is_written_from_answers_and_tried(machine: Machine, tmp_path: Path) -> None:
    """It says what comes next, replaces no file, and trying it writes nothing."""
    file = tmp_path / "ours.toml"
    made = json.loads(_new(file, *_words(), "--json").stdout)
    again = _new(file, *_words())
    found = machine.json("policy", "try", str(file), "--days", "7")

    assert Policy.parse(file.read_bytes()).digest == made["digest"]
    assert made["rules"]["tools"] == "approve 1"
    assert made["answers"] == {**_ANSWERS, "break-glass": "yes"}
    assert [each.split()[1:3] for each in made["next"]] == [
        ["policy", "try"],
        ["policy", "apply"],
        ["keys", "add"],
    ]
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
    assert (found["resumes"], found["failures"]) == (0, [])
    assert "would have asked about 0" in machine.done("policy", "try", "strict")


def test_an_answer_that_is_missing_where_nobody_can_be_asked_is_named(tmp_path: Path) -> None:
    """A script gives all five."""
    done = _new(tmp_path / "ours.toml", *_words()[2:])

    assert done.exit_code == 2
    assert "--tools is needed" in done.stderr
    assert not (tmp_path / "ours.toml").exists()
