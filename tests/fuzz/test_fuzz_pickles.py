# SPDX-License-Identifier: Apache-2.0
"""A little fuzzing of pickles finds nothing; planted faults are found."""

import pickle
import random
import re
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from fuzz import __main__ as program
from fuzz import _plain
from fuzz._claim import Escape
from fuzz._pickle_changes import PickleChanger, opcodes_of
from fuzz._pickle_reading import Standin, read_as_python_does
from fuzz._pickle_seeds import seeds
from fuzz._pickles_parts import pickles_parts
from fuzz._session import escape_path
from fuzz.pickle_is_data_or_refused import Readers, Target
from tests.fuzz import planted_pickles as planted
from tests.fuzz.running import SEED, cases_tried, covered_percent, require_no_escape

_FAULTS: list[tuple[type[Readers], str]] = [
    (planted.RaisingScan, "scan raised UnicodeError"),
    (planted.BlindScan, "safe, and refused by a load"),
    (planted.LooseLoad, "loaded, and not safe"),
    (planted.OpeningLoad, "while in load: audit event open"),
    (planted.CompilingLoad, "while in load: audit event compile"),
    (planted.InertLoad, "load returned a Inert"),
    (planted.CodeLoad, "load returned a builtin_function_or_method"),
    (planted.OtherValueLoad, "Python reads another value"),
    (planted.UnknownNames, "safe, with a name outside of the table"),
    (planted.LostName, "safe, and Python resolves other names"),
    (planted.InventedName, "safe, and Python resolves other names"),
    (planted.ShortRead, "safe, and Python ends elsewhere"),
    (planted.BrokenIsSafe, "safe, and Python raised"),
]


def test_a_little_fuzzing_of_pickles_finds_no_escape(tmp_path: Path) -> None:
    """All first cases, and changed ones for a second, end without an escape."""
    printed = require_no_escape("pickles", 1, tmp_path, "--no-coverage")

    assert cases_tried(printed) > len(list(seeds()))


@pytest.mark.soak
def test_some_more_fuzzing_runs_nearly_all_of_the_reader(tmp_path: Path) -> None:
    """Ten seconds end without an escape, with 88 % of all lines run."""
    assert covered_percent(require_no_escape("pickles", 10, tmp_path)) >= 88


@pytest.mark.parametrize(
    ("readers", "kind"), _FAULTS, ids=[readers.__name__ for readers, _ in _FAULTS]
)
def test_planted_fault_of_a_pickle_reader_is_found_and_saved(
    readers: type[Readers], kind: str, tmp_path: Path
) -> None:
    """Each way to break the claim is met, named, and saved as a case that breaks it again."""
    target = Target(readers())
    # Every seed costs time, and a few of each family show each fault.
    parts = replace(pickles_parts(target), seeds=lambda: islice(seeds(), 3, None, 16))

    progress = _plain.fuzz(parts, tmp_path, tmp_path / "own", seed=SEED, seconds=0)

    found = [each for each in progress.escapes if each.startswith(kind)]
    assert found
    with pytest.raises(Escape, match=re.escape(kind)):
        target.run(escape_path(tmp_path, found[0]).read_bytes())


def test_slow_pickle_is_an_escape() -> None:
    """A pickle that keeps the processor busy for more than a second breaks the claim."""
    with pytest.raises(Escape, match="load was slow"):
        Target(planted.SlowLoad()).run(b"N.")


def test_replay_of_a_pickle_says_what_became_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A case is the bytes of a file, so that any file can be replayed."""
    path = tmp_path / "case"
    path.write_bytes(pickle.dumps([1, 2]))

    assert program.main(["--target", "pickles", "--replay", str(path)]) == 0
    assert "accepted" in capsys.readouterr().out


def test_many_changed_pickles_are_still_data() -> None:
    """Changes reach what lies behind the first checks of a reader."""
    rng = random.Random(SEED)  # noqa: S311 - repeatable, not secret
    changer = PickleChanger(rng)
    target = Target()
    good = [data for data in islice(seeds(), 0, None, 8) if target.run(data).accepted]
    parsed = [changer.parse(data) for data in good]

    accepted = [target.run(changer.changed(rng.choice(parsed))).accepted for _ in range(300)]

    assert 40 < sum(accepted) < 260


def test_same_seed_makes_the_same_pickles() -> None:
    """A run can be repeated: its cases follow from its seed alone."""
    first = list(seeds())

    def made(seed: int) -> list[bytes]:
        rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        changer = PickleChanger(rng)
        parsed = [changer.parse(data) for data in first]
        return [changer.changed(rng.choice(parsed)) for _ in range(200)]

    assert list(seeds()) == first
    assert made(1) == made(1)
    assert made(1) != made(2)


def test_opcodes_are_the_bytes_of_a_pickle() -> None:
    """Taking a pickle apart loses nothing, whatever comes behind it."""
    data = pickle.dumps({"a": [1.5, (2, 3)]}) + pickle.dumps(None) + b"\xff rest"
    opcodes, rest = opcodes_of(data)

    assert b"".join(opcodes) + rest == data
    assert rest == b"\xff rest"


def test_the_other_reading_names_what_it_would_have_resolved_and_runs_nothing() -> None:
    """Names come back in order, calls as stand-ins, and the end where Python ends."""
    reading = read_as_python_does(b"cos\nsystem\nX\x01\0\0\0a\x85R0cbuiltins\neval\n.rest")

    assert reading.names == [("os", "system"), ("builtins", "eval")]
    assert type(reading.value) is Standin
    assert (reading.acts, reading.error) == (1, None)
    assert reading.end == len(b"cos\nsystem\nX\x01\0\0\0a\x85R0cbuiltins\neval\n.")
