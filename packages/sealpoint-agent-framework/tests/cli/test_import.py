# SPDX-License-Identifier: Apache-2.0
"""`sealpoint import`: every file's fate, and what to do about those that were refused."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sealpoint.codec import Registry
from sealpoint_agent_framework import SealedCheckpointStorage
from tests.adapters.agent_framework import stock_files as files
from tests.adapters.agent_framework.payments import Payments
from tests.cli.machine import Machine

registry = Registry()
files.allow_all(registry)
_REGISTRY = ("--registry", "tests.cli.test_import:registry")


def workflow() -> Any:
    """What the application runs."""
    return Payments().build()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A directory with a run that waits, and a file that somebody forged."""
    made = tmp_path / "old"
    files.paused_run(made)
    files.forge(made, b"\x80\x05\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.", name="evil")
    (made / "readme.txt").write_text("x")
    return made


def test_the_fate_of_each_file_is_printed_and_a_refused_one_ends_with_its_status(
    machine: Machine, old: Path
) -> None:
    """With why, and a hint; the rest is there."""
    result = machine.run("import", "agent-framework", str(old), *_REGISTRY)

    assert result.exit_code == 80
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["file", "fate", "thread"]
    fates = {
        line.split()[0]: line.split("  ")[-2 if "payments" in line else -1] for line in lines[1:5]
    }
    assert len(fates) == 4
    assert "4 files: 2 imported, 1 refused, 1 left out." in lines
    assert "evil.json: it calls os.system, which is none of the types that may be imported" in lines
    assert "find out who wrote the file" in result.stdout
    (name,) = machine.json("threads")["threads"]
    assert name.startswith("payments/")


def test_json_has_every_file_and_running_it_again_imports_nothing(
    machine: Machine, old: Path
) -> None:
    """A dry run says the same, and needs no key."""
    (old / "evil.json").unlink()
    dry = machine.json("import", "agent-framework", str(old), "--dry-run", *_REGISTRY)
    assert machine.json("threads")["threads"] == []
    first = machine.json("import", "agent-framework", str(old), *_REGISTRY)
    again = machine.json("import", "agent-framework", str(old), *_REGISTRY)

    assert dry["files"] == first["files"]
    assert dry["dry_run"]
    assert first["counts"] == {
        "imported": 2,
        "already there": 0,
        "refused": 0,
        "left out": 1,
    }
    assert again["counts"]["already there"] == 2
    assert set(first["files"][0]) == {
        *("file", "fate", "thread", "checkpoint", "sha256", "why", "code", "hint"),
    }


def test_a_workflow_says_which_types_may_be_in_the_files(machine: Machine, old: Path) -> None:
    """Under the names that its storage gives them; without them the hint says so."""
    (old / "evil.json").unlink()
    refused = machine.run("import", "agent-framework", str(old), "--json")
    reference = "tests.cli.test_import:workflow"
    found = machine.json("import", "agent-framework", str(old), "--workflow", reference)

    assert refused.exit_code == 80
    hints = [each["hint"] for each in json.loads(refused.stdout)["files"] if each["hint"]]
    assert all(
        "--workflow MODULE:OBJECT" in hint and "registry.allow(Payment" in hint for hint in hints
    )
    assert found["counts"]["imported"] + found["counts"]["already there"] == 2
    with machine.open() as store:
        storage = SealedCheckpointStorage.for_workflow(workflow(), store)
        latest = asyncio.run(storage.get_latest(workflow_name="payments"))
        assert latest is not None
        assert latest.pending_request_info_events


def test_what_was_imported_is_told_by_every_verb_that_looks(machine: Machine, old: Path) -> None:
    """The log, the checkpoint, the trail, and the gate before it goes on."""
    found = machine.run("import", "agent-framework", str(old), "--json", *_REGISTRY)
    (entry,) = [
        each
        for each in json.loads(found.stdout)["files"]
        if each["thread"] and not each["thread"].endswith(each["checkpoint"])
    ]
    thread, digest = entry["thread"], entry["sha256"]

    assert machine.json("log", thread)["checkpoints"][0]["metadata"]["imported"] == digest
    shown = machine.done("show", thread, *_REGISTRY)
    assert f"IMPORTED from a file with the SHA-256 {digest[:12]}" in shown
    assert "imported from a file with the SHA-256" in machine.done("audit", "--thread", thread)
    judged = machine.run("resume", thread)
    assert "imported from a file, where nobody had signed it" in judged.output


@pytest.mark.parametrize("wrong", ["nowhere", "file"])
def test_what_is_no_directory_is_refused(wrong: str, machine: Machine, tmp_path: Path) -> None:
    """And a workflow that is none."""
    (tmp_path / "file").write_text("x")

    assert machine.refused("import", "agent-framework", str(tmp_path / wrong)) == (2, "usage")


def test_a_thread_is_shown_by_the_types_of_its_workflow(machine: Machine, old: Path) -> None:
    """`--registry` takes the workflow, a function that makes it, or a registry; nothing else."""
    made = "tests.cli.test_import:workflow"
    machine.run("import", "agent-framework", str(old), "--workflow", made)
    (name,) = machine.json("threads")["threads"]
    shown = machine.done("show", name, "--registry", made)
    refused = machine.run("show", name, "--registry", "tests.cli.test_import:__name__")

    assert "data=Payment(amount=42, to='bob')" in shown
    assert refused.exit_code == 2
    assert "expected a sealpoint.Registry, found str" in refused.stderr
    assert "a graph or workflow whose types are allowed" in refused.stderr
