# SPDX-License-Identifier: Apache-2.0
"""The demos tell their story: what is attacked in them is refused, and what they claim happened."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS_MAX = 240
_COLUMNS_MAX = 80
_LINES_MAX = 128
_GRAPH = ("A forged approval", "An edited amount", "A rollback", "A new tool at resume")
_GATEWAY = (
    "The approval policy is opened",
    "A cron job is planted",
    "A message of the transcript is rewritten",
    "A device is paired",
    "Instructions are planted",
    "A memory is planted",
    "A plugin is loaded",
)
_WORKFLOW = ("An edited amount", "Planted code", "A rollback", "A replay")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> "Told":
    """What `make demo` says."""
    return _run("demo", tmp_path_factory.mktemp("graph"), _GRAPH)


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> "Told":
    """What `make demo-agent-framework` says."""
    return _run("demo/workflows.py", tmp_path_factory.mktemp("workflow"), _WORKFLOW)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> "Told":
    """What `make demo-openclaw` says."""
    return _run("demo/openclaw.py", tmp_path_factory.mktemp("gateway"), _GATEWAY)


@pytest.fixture(params=["graph", "workflow"])
def told(request: pytest.FixtureRequest) -> "Told":
    """What each of them says."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Told)
    return found


def _run(program: str, folder: Path, attacks: tuple[str, ...]) -> "Told":
    """Run a demo, once, with its folder in a place that is cleaned up."""
    environment = {name: text for name, text in os.environ.items() if "SEALPOINT" not in name}
    result = subprocess.run(
        [sys.executable, "-W", "error", str(_ROOT / "examples" / program)],
        cwd=folder,
        env=environment | {"TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return Told(result, folder, attacks)


class Told:
    """What a demo said."""

    def __init__(
        self, result: "subprocess.CompletedProcess[str]", folder: Path, attacks: tuple[str, ...]
    ) -> None:
        self.text, self.stderr, self.folder = result.stdout, result.stderr, folder
        self._attacks = attacks

    @cache  # noqa: B019 (two objects, for one module)
    def scene(self, number: int) -> str:
        """What was said in a scene, in one line."""
        parts = re.split(r"^\d\. .* -+$", self.text, flags=re.MULTILINE)
        return " ".join(parts[number].split())

    def attacks(self, number: int) -> list[str]:
        """What was said about each attack in a scene."""
        starts = [self.scene(number).index(title) for title in self._attacks]
        ends = [*starts[1:], None]
        return [self.scene(number)[start:end] for start, end in zip(starts, ends, strict=True)]


def test_demo_is_plain_and_short(told: Told) -> None:
    """Without a terminal there is no colour, no long line, no warning, and at most 128 lines."""
    lines = told.text.replace(str(told.folder), "/tmp").splitlines()  # noqa: S108 (as users have it)

    assert "\x1b" not in told.text
    assert not [line for line in lines if len(line) > _COLUMNS_MAX]
    assert len(lines) <= _LINES_MAX
    assert all(line.startswith("refused code=") for line in told.stderr.splitlines())


def test_demo_shows_the_approvers_what_they_approve(graph: Told) -> None:
    """The question with its amount, the answer, and what the run could do are on the screen."""
    seen = graph.scene(2)

    assert "The run's capabilities are the same as at the checkpoint." in seen
    assert "asks: | pay: 250.00 EUR | to: acme" in seen
    assert "The answer: | approved: true" in seen
    assert "2 of 2" in seen
    assert seen.endswith("bank 250.00 EUR to acme")


def test_demo_is_refused_each_attack_on_the_sealed_store(graph: Told) -> None:
    """Each attack ends with its own error and a hint, and no money moves until all is as it was."""
    codes = [re.findall(r"refused ([a-z-]+):.* hint ", attack) for attack in graph.attacks(3)]

    assert codes == [["forged"], ["edited"], ["rolled-back"], ["needs-approval"]]
    assert "+ tool sweep_account" in graph.attacks(3)[-1]
    assert re.findall(r"bank (.*?)(?: And|$)", graph.scene(3)) == [
        "nothing moved",
        "180.00 EUR to globex",
    ]


def test_demo_shows_that_the_stock_saver_accepts_the_same(graph: Told) -> None:
    """The comparison is a fair one: the stock saver really pays, in the same release."""
    forged, edited, rolled_back, new_tool = graph.attacks(4)

    assert "ACCEPTED nobody was asked bank 180.00 EUR to globex" in forged
    assert "ACCEPTED the clerk was asked for 180.00 EUR bank 980.00 EUR to globex" in edited
    assert (
        "ACCEPTED the clerk was asked for 250.00 EUR bank 250.00 EUR to acme, AGAIN" in rolled_back
    )
    assert "bank ALL THE REST to globex" in new_tool


def test_demo_pays_once_what_a_person_answered_and_another_approved(graph: Told) -> None:
    """Without a terminal, keys in files sign; the pages are tested in test_demo_pages.py."""
    seen = graph.scene(7)

    assert "operator signs the answer" in seen
    assert "ann approves it" in seen
    assert seen.count("42.00 EUR to initech") == 1
    assert seen.endswith("bank 42.00 EUR to initech")


def test_workflow_demo_shows_the_approvers_what_they_approve(workflow: Told) -> None:
    """The question with its amount, and the response."""
    seen = workflow.scene(2)

    assert "The run's capabilities are the same as at the checkpoint." in seen
    assert "Executor cashier asks: | Pay 42.00 EUR to acme?" in seen
    assert "The answer: | true" in seen
    assert "2 of 2" in seen
    assert seen.endswith("bank 42.00 EUR to acme")


def test_workflow_demo_is_refused_each_attack_on_the_sealed_store(workflow: Told) -> None:
    """Each attack ends with its own error and a hint, and 42 is paid when all is as it was."""
    codes = [re.findall(r"refused ([a-z-]+):.* hint ", each) for each in workflow.attacks(3)]

    assert codes == [["edited"], ["edited"], ["rolled-back"], ["needs-approval"]]
    assert "the checkpoint is not the newest" in workflow.attacks(3)[-1]
    assert re.findall(r"bank (.*?)(?: And|$)", workflow.scene(3)) == [
        "nothing moved",
        "42.00 EUR to globex",
    ]
    assert "0 findings" in workflow.scene(5)


def test_workflow_demo_shows_that_the_stock_storage_accepts_the_same(workflow: Told) -> None:
    """It pays 99999 for 42, runs code from a file, and pays twice."""
    edited, planted, rolled_back, replayed = workflow.attacks(4)
    again = "ACCEPTED the clerk was asked: Pay 42.00 EUR to acme? bank 42.00 EUR to acme, AGAIN"

    assert "ACCEPTED the clerk was asked: Pay 42.00 EUR to globex? bank 99999 EUR" in edited
    assert "disk made-by-a-checkpoint: a folder that the pickle had made" in planted
    assert again in rolled_back
    assert again in replayed


def test_demo_leaves_a_store_that_can_be_opened(told: Told) -> None:
    """The settings that the last scene names open the store, which verifies."""
    (settings,) = told.folder.glob("sealpoint-demo-*/env")
    exported = dict(re.findall(r"export (\w+)='(.*)'", settings.read_text(encoding="utf-8")))
    result = subprocess.run(
        [sys.executable, "-m", "sealpoint", "verify"],
        env=os.environ | exported,
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )

    assert f". {settings}" in told.text
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("All good")


def test_openclaw_demo_refuses_each_edit_by_its_place(gateway: Told) -> None:
    """Each names the table or the file, and nothing starts."""
    places = [
        re.findall(r"refused (?:state|history)-changed: .*: ((?:table|file) \S+)", attack)
        for attack in gateway.attacks(2)
    ]

    assert places == [
        ["table exec_approvals_config"],
        ["table cron_jobs"],
        ["table transcript_events"],
        ["table device_pairing_paired"],
        ["file workspace/AGENTS.md:"],
        ["file workspace/MEMORY.md:"],
        ["file openclaw.json:"],
    ]
    assert "ACCEPTED" not in gateway.text
    assert not [line for line in gateway.text.splitlines() if len(line) > _COLUMNS_MAX]


def test_openclaw_demo_lets_people_decide(gateway: Told) -> None:
    """A change, an older copy and a crash: each is refused until two people approve it."""
    accepted = "approval by ann approval by bob $ sealpoint openclaw accept"

    assert "[needs-approval]" in gateway.scene(3)
    assert accepted in gateway.scene(3)
    assert "refused rolled-back" in gateway.scene(4)
    assert "refused state-unsealed" in gateway.scene(5)
    assert accepted in gateway.scene(5)
    assert "0 findings" in gateway.scene(6)


def test_live_demo_without_openclaw_says_how_to_install_it() -> None:
    """It needs a folder with two packages of npm, which the variable names."""
    environment = {name: text for name, text in os.environ.items() if "SEALPOINT" not in name}
    result = subprocess.run(
        [sys.executable, str(_ROOT / "examples/demo/openclaw_live.py")],
        check=False,
        capture_output=True,
        env=environment,
        text=True,
        timeout=_SECONDS_MAX,
    )

    assert result.returncode == 2
    assert result.stdout == ""
    for package in ("node@24", "openclaw@2026.9.6"):
        assert f" {package}\n" in result.stderr
    assert "SEALPOINT_OPENCLAW=DIR make demo-openclaw-live" in result.stderr
