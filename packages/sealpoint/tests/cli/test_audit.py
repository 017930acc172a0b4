# SPDX-License-Identifier: Apache-2.0
"""`sealpoint audit`, `why`, `export` and `verify-bundle`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sealpoint.cli import main
from tests.cli.machine import Machine
from tests.cli.team import HOSTILE, READ, SHELL, ask, make_team


@pytest.fixture
def told(tmp_path: Path) -> tuple[Machine, str]:
    """A thread whose resume two people approved, and the id of the request."""
    machine = make_team(tmp_path)
    with machine.open() as store:
        store.thread("t").save({"n": 1}, world=READ)
    request = ask(machine, reason=HOSTILE)
    for who in ("ann", "bob"):
        machine.done("approve", request, "--reason", "fine", "--yes-to", request, "--identity", who)
    with machine.open() as store:
        store.thread("t").resume(world=SHELL, deliberate=HOSTILE)
        store.thread("t").save({"n": 2})
    return machine, request


def test_the_audit_tells_everything_in_order(told: tuple[Machine, str]) -> None:
    """Two lines for people, and a JSON document for each entry for programs."""
    machine, request = told
    printed = machine.done("audit", "--thread", "t")
    lines = [json.loads(line) for line in machine.done("audit", "--json").splitlines()]
    kinds = [line["kind"] for line in lines if line["thread"] == "t"]

    assert printed.split("\n")[0].split()[2:6] == ["t", "0", "genesis", "by"]
    assert request[:12] in printed.replace("\n", "")
    assert kinds == [
        *("genesis", "resume", "checkpoint", "request"),
        *("approval", "approval", "resume", "checkpoint"),
    ]
    assert "\x1b" not in printed
    assert "\u202e" not in printed


def test_the_audit_can_be_narrowed(told: tuple[Machine, str]) -> None:
    """By actor, kind and time; a time that is none is refused."""
    machine, _ = told
    mine = machine.done("audit", "--actor", "ann", "--json").splitlines()

    assert [json.loads(line)["kind"] for line in mine] == ["approval"]
    assert machine.done("audit", "--until", "2020-01-01") == "Nothing was found.\n"
    assert "approval" in machine.done("audit", "--since", "2020-01-01", "--kind", "approval")
    assert machine.refused("audit", "--since", "yesterday") == (2, "usage")
    assert machine.refused("audit", "--thread", "nobody") == (44, "unknown-thread")


def test_a_thread_that_does_not_verify_ends_the_audit_with_30(told: tuple[Machine, str]) -> None:
    """What is known is told, and the finding too, whatever was asked for."""
    machine, _ = told
    machine.sql("UPDATE entries SET body = x'7b7d' WHERE seq = 7")
    result = machine.run("audit", "--kind", "genesis")

    assert result.exit_code == 30
    assert "FINDING" in result.stdout
    assert "genesis" in result.stdout


def test_why_explains_a_request_and_the_entry_that_spent_it(told: tuple[Machine, str]) -> None:
    """The rule, who approved, what differed, and the policy of that time."""
    machine, request = told
    printed = machine.done("why", request[:8])
    document = machine.json("why", request)
    spent = document["entries"][-1]["entry"]

    assert "tools" in printed
    assert "+ tool shell" in printed
    assert "entry 6 let the run continue, with approval" in printed
    assert "policy strict, " in printed
    assert 'name = "strict"' not in printed
    assert 'name = "strict"' in machine.done("why", request[:8], "--full")
    assert "\x1b" not in printed
    assert [each["identity"] for each in document["approvals"]] == ["ann", "bob"]
    assert all(each["counts"] for each in document["approvals"])
    assert machine.json("why", spent)["rules"] == document["rules"]
    assert document["unjustified"] == []


def test_why_explains_what_waits_and_what_only_happened(told: tuple[Machine, str]) -> None:
    """An open request waits; a checkpoint and a roster decide nothing."""
    machine, _ = told
    request = ask(machine, world={"tools": [{"name": "other"}]})
    lines = [json.loads(line) for line in machine.done("audit", "--json").splitlines()]

    assert machine.json("why", request)["decision"] == "it waits; approved by nobody yet"
    checkpoint = next(line for line in lines if line["kind"] == "checkpoint")
    assert "nothing was decided" in machine.json("why", checkpoint["entry"])["decision"]
    assert "first roster" in machine.json("why", lines[0]["entry"])["decision"]
    assert machine.refused("why", "00000000") == (44, "unknown-entry")
    assert machine.refused("why", "short") == (44, "unknown-thread")
    assert machine.json("why", "t")["subject"]["request"] == request


def test_a_bundle_verifies_elsewhere_with_the_pin_alone(
    told: tuple[Machine, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another directory, without the store, its keys or its anchor."""
    machine, _ = told
    far = tmp_path / "far"
    far.mkdir()
    machine.done("export", "--output", str(far / "evidence"), "--thread", "t")
    machine.done("trust", "export", "--output", str(far / "pin"))
    machine.path.rename(tmp_path / "gone.db")
    monkeypatch.chdir(far)
    arguments = ["verify-bundle", "evidence", "--trust", "pin"]
    printed = CliRunner().invoke(main, arguments)
    document = CliRunner().invoke(main, [*arguments, "--json"])

    assert printed.exit_code == 0, printed.output
    assert "All good: every entry verified." in printed.stdout
    assert "later entries may exist" in printed.stdout
    report = json.loads(document.stdout)
    assert report["ok"]
    assert report["exported_by"] == "operator"
    assert [thread["seq"] for thread in report["threads"]] == [7]
    assert sorted(path.name for path in far.iterdir()) == ["evidence", "pin"]


def test_a_changed_bundle_is_refused(told: tuple[Machine, str], tmp_path: Path) -> None:
    """It ends with the status of its error; so does a file that is none, or not there."""
    machine, _ = told
    file = tmp_path / "evidence"
    machine.done("export", "--output", str(file))

    assert machine.run("verify-bundle", str(file)).exit_code == 0
    file.write_bytes(file.read_bytes().replace(b'"v":1', b'"v":2', 1))
    assert machine.refused("verify-bundle", str(file)) == (30, "bundle-invalid")
    assert machine.refused("verify-bundle", str(tmp_path / "none")) == (2, "usage")


def test_an_export_that_fails_leaves_no_file(told: tuple[Machine, str], tmp_path: Path) -> None:
    """Half a bundle is none."""
    machine, _ = told
    file = tmp_path / "evidence"
    machine.sql("UPDATE entries SET body = x'7b7d' WHERE seq = 7")

    assert machine.refused("export", "--output", str(file)) == (30, "edited")
    assert machine.refused("export", "--output", str(tmp_path / "no" / "file"))[1] == "usage"
    assert not list(tmp_path.glob("evidence*"))


def test_unjustified_decisions_end_with_30(told: tuple[Machine, str], tmp_path: Path) -> None:
    """`verify` and `verify-bundle` say which, although every entry is genuine."""
    machine, _ = told
    machine.done("policy", "apply", "solo", "--reason", "less")
    with machine.open() as store, pytest.MonkeyPatch.context() as patched:
        patched.setattr(store._policies, "in_force", lambda _roster: None)
        store.thread("t").resume(world=SHELL)
    file = tmp_path / "evidence"
    machine.done("export", "--output", str(file))
    verified = machine.run("verify")
    bundle = machine.run("verify-bundle", str(file))

    assert verified.exit_code == bundle.exit_code == 30
    assert "NOT justified: 1 finding" in verified.stdout
    assert "unjustified" in verified.stdout
    assert "NOT justified: t: entry 8" in bundle.stdout


def test_a_bundle_can_be_read_and_not_only_verified(machine: Machine, tmp_path: Path) -> None:
    """Where the store is not, `audit` and `why` tell what the bundle proves, by the pin alone."""
    machine.done("save", "t", stdin="1")
    machine.done("pause", "t", "--reason", "lunch")
    bundle, pin = str(tmp_path / "b.jsonl"), str(tmp_path / "pin.json")
    machine.done("export", "--output", bundle)
    machine.done("trust", "export", "--output", pin)
    whole = machine.done("audit")

    def read(*arguments: str) -> Result:
        return CliRunner().invoke(main, [*arguments, "--bundle", bundle, "--trust", pin])

    listed = read("audit", "--thread", "t", "--json")
    entry = json.loads(listed.stdout.splitlines()[-1])["entry"]

    assert read("audit").stdout == whole
    assert [json.loads(line)["kind"] for line in listed.stdout.splitlines()][-1] == "pause"
    assert "lunch" in read("why", entry[:12]).stdout
    assert machine.done("audit", "--bundle", bundle) == whole
    assert CliRunner().invoke(main, ["audit", "--trust", pin]).exit_code == 2
