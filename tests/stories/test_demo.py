# SPDX-License-Identifier: Apache-2.0
"""`make demo` tells its story: what is attacked in it is refused, and what it claims happened."""

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
_LINES_MAX = 120
_ATTACKS = ("A forged approval", "An edited amount", "A rollback", "A new tool at resume")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> "Told":
    """The demo, run once, with its folder in a place that is cleaned up."""
    folder = tmp_path_factory.mktemp("demo")
    environment = {name: text for name, text in os.environ.items() if "SEALPOINT" not in name}
    result = subprocess.run(
        [sys.executable, "-W", "error", str(_ROOT / "examples" / "demo")],
        cwd=folder,
        env=environment | {"TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return Told(result, folder)


class Told:
    """What the demo said."""

    def __init__(self, result: "subprocess.CompletedProcess[str]", folder: Path) -> None:
        self.text, self.stderr, self.folder = result.stdout, result.stderr, folder

    @cache  # noqa: B019 (one object, for one module)
    def scene(self, number: int) -> str:
        """What was said in a scene, in one line."""
        parts = re.split(r"^\d\. .* -+$", self.text, flags=re.MULTILINE)
        return " ".join(parts[number].split())

    def attacks(self, number: int) -> list[str]:
        """What was said about each attack in a scene."""
        starts = [self.scene(number).index(title) for title in _ATTACKS]
        ends = [*starts[1:], None]
        return [self.scene(number)[start:end] for start, end in zip(starts, ends, strict=True)]


def test_demo_is_plain_and_short(told: Told) -> None:
    """Without a terminal there is no colour, no long line, no warning, and at most 120 lines."""
    lines = told.text.splitlines()

    assert "\x1b" not in told.text
    assert not [line for line in lines if len(line) > _COLUMNS_MAX]
    assert len(lines) <= _LINES_MAX
    assert all(line.startswith("refused code=") for line in told.stderr.splitlines())


def test_demo_shows_the_approvers_what_they_approve(told: Told) -> None:
    """The question with its amount, the answer, and what the run could do are on the screen."""
    seen = told.scene(2)

    assert "What the run could do is the same as at the checkpoint." in seen
    assert '"pay": "250.00 EUR"' in seen
    assert '"approved": true' in seen
    assert "2 of 2" in seen
    assert seen.endswith("bank 250.00 EUR to acme")


def test_demo_is_refused_each_attack_on_the_sealed_store(told: Told) -> None:
    """Each attack ends with its own error and a hint, and no money moves until all is as it was."""
    codes = [re.findall(r"refused ([a-z-]+):.* hint ", attack) for attack in told.attacks(3)]

    assert codes == [["forged"], ["edited"], ["rolled-back"], ["needs-approval"]]
    assert "+ tool sweep_account" in told.attacks(3)[-1]
    assert re.findall(r"bank (.*?)(?: And|$)", told.scene(3)) == [
        "nothing moved",
        "180.00 EUR to globex",
    ]


def test_demo_shows_that_the_stock_saver_accepts_the_same(told: Told) -> None:
    """The comparison is a fair one: the stock saver really pays, in the same release."""
    forged, edited, rolled_back, new_tool = told.attacks(4)

    assert "ACCEPTED nobody was asked bank 180.00 EUR to globex" in forged
    assert "ACCEPTED the clerk was asked for 180.00 EUR bank 980.00 EUR to globex" in edited
    assert (
        "ACCEPTED the clerk was asked for 250.00 EUR bank 250.00 EUR to acme, AGAIN" in rolled_back
    )
    assert "bank ALL THE REST to globex" in new_tool


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
