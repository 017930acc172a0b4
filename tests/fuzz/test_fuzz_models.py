# SPDX-License-Identifier: Apache-2.0
"""A little fuzzing of model files finds nothing; planted faults are found."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from fuzz import __main__ as program
from fuzz import _plain
from fuzz._claim import Escape
from fuzz._model_changes import FileChanger
from fuzz._model_seeds import seeds
from fuzz._model_sketch import sketch_of
from fuzz._models_parts import models_parts
from fuzz._session import escape_path
from tests.fuzz import planted_models as planted
from tests.fuzz.running import SEED, cases_tried, covered_percent, require_no_escape

_FAULTS: list[tuple[Callable[[Any], Any], str]] = [
    (planted.raise_runtime_error, "load raised RuntimeError"),
    (planted.open_file, "while in load: audit event open"),
    (planted.compile_text, "while in load: audit event compile"),
    (planted.return_node, "load returned a SizeNode"),
    (planted.return_overlong_view, "load returned a tensor that ends after its memory"),
    (planted.return_wide_sparse, "load returned a sparse tensor that torch refuses"),
    (planted.return_attribute, "load returned a tensor with more than elements"),
    (planted.return_much, "load made more memory than the file has"),
    (planted.return_objects, "load returned an array that the file does not hold"),
    (planted.ask_for_memory, "load asked for more memory than follows from its size"),
    (planted.return_unsavable, "saving a loaded state raised ValueNotAllowed"),
    (planted.Drifting(), "a state that is saved and loaded again is not equal"),
]


def test_a_little_fuzzing_of_model_files_finds_no_escape(tmp_path: Path) -> None:
    """All first cases, and changed ones for a second, end without an escape."""
    printed = require_no_escape("models", 1, tmp_path, "--no-coverage")

    assert cases_tried(printed) > len(list(seeds()))


@pytest.mark.soak
def test_some_more_fuzzing_runs_nearly_all_of_the_reader(tmp_path: Path) -> None:
    """Fifteen seconds end without an escape, with 94 % of all lines run."""
    assert covered_percent(require_no_escape("models", 15, tmp_path)) >= 94


@pytest.mark.parametrize(("fault", "kind"), _FAULTS, ids=[kind for _, kind in _FAULTS])
def test_planted_fault_of_the_reader_is_found_and_saved(
    fault: Callable[[Any], Any], kind: str, tmp_path: Path
) -> None:
    """Each way to break the claim is met, named, and saved as a case that breaks it again."""
    target = planted.target_with(fault)

    # Every seed costs time, and a few of each family show each fault.
    parts = replace(models_parts(target), seeds=lambda: islice(seeds(), 0, None, 4))
    progress = _plain.fuzz(parts, tmp_path, tmp_path / "own", seed=SEED, seconds=0)

    found = [each for each in progress.escapes if each.startswith(kind)]
    assert found
    with pytest.raises(Escape, match=re.escape(kind)):
        target.run(escape_path(tmp_path, found[0]).read_bytes())


def test_slow_file_is_an_escape() -> None:
    """A file that keeps the processor busy for more than a second breaks the claim."""
    target = planted.target_with(planted.keep_busy)
    case = next(data for data in seeds() if planted.NAME.encode() in data)

    with pytest.raises(Escape, match="load was slow"):
        target.run(case)


def test_replay_of_a_model_file_says_what_became_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A case is the bytes of a file, so that any file can be replayed."""
    path = tmp_path / "case"
    path.write_bytes(next(iter(seeds())))

    assert program.main(["--target", "models", "--replay", str(path)]) == 0
    assert "accepted" in capsys.readouterr().out


def test_most_changed_files_are_canonical() -> None:
    """Changes reach what lies behind the first checks of a reader."""
    rng = random.Random(SEED)  # noqa: S311 - repeatable, not secret
    changer = FileChanger(rng)
    parsed = [changer.parse(data) for data in seeds()]
    changed = [changer.changed(rng.choice(parsed)) for _ in range(500)]

    sketches = [(data, sketch) for data in changed if (sketch := sketch_of(data)) is not None]
    assert sum(bytes(sketch) == data for data, sketch in sketches) > 300


def test_same_seed_makes_the_same_files() -> None:
    """A run can be repeated: its cases follow from its seed alone."""
    first = list(seeds())

    def made(seed: int) -> list[bytes]:
        rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        changer = FileChanger(rng)
        parsed = [changer.parse(data) for data in first]
        return [changer.changed(rng.choice(parsed)) for _ in range(200)]

    assert list(seeds()) == first
    assert made(1) == made(1)
    assert made(1) != made(2)
