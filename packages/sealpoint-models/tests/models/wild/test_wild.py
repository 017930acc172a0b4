# SPDX-License-Identifier: Apache-2.0
"""Files that real trainers wrote are read as what they are, and nothing in them runs."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.models.wild.expected import NOT_CONVERTED, REFUSED, is_in, reading

_ROOT = Path(__file__).parents[5]
_KINDS = {
    "lightning": "Lightning",
    "hugging_face": "transformers and accelerate",
    "torch/timm_style": "as timm",
    "torch/torchvision_style": "as torchvision's references",
    "torch/state_dicts": "state dicts in every form",
    "torch/optimizers": "optimizers",
    "torch/schedulers": "schedules",
    "torch/random_states": "random number generators",
    "torch/tensors": "tensors of all kinds",
    "torch/modules": "whole modules",
    "torch/plain": "results and configurations",
    "torch/arrays": "numpy and joblib",
    "torch/distributed": "distributed checkpoints",
}
_TRAINERS = ("lightning/", "hugging_face/", "torch/timm_style/", "torch/torchvision_style/")


def _run(module: str, folder: Path, given: str = "") -> Any:
    paths = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-m", module, str(folder)],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the files are."""
    return tmp_path_factory.mktemp("wild")


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, Any]:
    """Every file, written, read and compared, by its path."""
    found: dict[str, Any] = _run("tests.models.wild", folder)
    return found


def _table(files: dict[str, Any]) -> str:
    rows = ["| written by | files | default | inert | converted | refused | weights_only |"]
    rows.append("|---|---|---|---|---|---|---|")
    total: Counter[str] = Counter()
    for beginning, kind in _KINDS.items():
        held = [each for path, each in files.items() if path.startswith(f"{beginning}/")]
        counts = Counter({"files": len(held), **Counter(each["reading"] for each in held)})
        counts["weights_only"] = sum(each["weights_only"] for each in held)
        total += counts
        rows.append(_row(kind, counts))
    return "\n".join([*rows, _row("all", total)])


def _row(kind: str, counts: Counter[str]) -> str:
    names = ("files", "default", "inert", "convert", "refused", "weights_only")
    return f"| {kind} | {' | '.join(str(counts[name]) for name in names)} |"


def test_nearly_all_files_of_trainers_are_read(files: dict[str, Any]) -> None:
    """Each file is read as its row says, and at least 95 of 100 are read at all."""
    table = _table(files)
    print(table)  # noqa: T201 (with -s: what the page on moving old runs has)
    read = [path for path, each in files.items() if each["reading"] != "refused"]

    assert {path: each["reading"] for path, each in files.items()} == {
        path: reading(path) for path in files
    }
    assert len(files) >= 160
    assert len(read) == len(files) - len(REFUSED)
    assert len(read) >= 0.95 * len(files)
    # Of those that trainers and programs like timm's and torchvision's write, all.
    trainers = [path for path in files if path.startswith(_TRAINERS)]
    assert len(trainers) >= 60
    assert set(trainers) <= set(read)
    assert f"| all | {len(files)} |" in table


def test_what_is_read_is_what_a_trusted_load_gives(files: dict[str, Any]) -> None:
    """Value by value and tensor by tensor, objects by the names and parts that pickle writes."""
    read = {path: each for path, each in files.items() if each["reading"] != "refused"}

    assert {path: each["difference"] for path, each in read.items() if each["difference"]} == {}
    assert sum(each["tensors"] for each in read.values()) > 1000


def test_what_is_converted_is_what_a_trusted_load_gives(files: dict[str, Any]) -> None:
    """A converted file gives the same, and what a file of ours does not hold is refused."""
    converted = {
        path: each["converted"] for path, each in files.items() if each["reading"] != "refused"
    }
    refused = [path for path, found in converted.items() if found.startswith("refused: ")]

    assert set(converted.values()) - {"same"} == {converted[path] for path in refused}
    assert refused == [path for path in converted if is_in(path, NOT_CONVERTED)]


def test_nothing_runs_while_files_are_read(files: dict[str, Any], folder: Path) -> None:
    """No import, no exec, no process, no socket and no write, seen by an audit hook."""
    readings = {path: each["reading"] for path, each in files.items()}
    found = _run("tests.models.wild.audit", folder, json.dumps(readings))
    seen = {path: each["events"] for path, each in found["files"].items() if each["events"]}
    failed = {path for path, each in found["files"].items() if each["error"]}

    assert seen == {}
    assert found["imported"] == []
    assert failed == {path for path, how in readings.items() if how == "refused"}
    # The hook sees what a load that believes the file does.
    assert any(event.startswith(("import", "exec")) for event in found["control"]["events"])
