# SPDX-License-Identifier: Apache-2.0
"""A mutant of a tiny module is made; of the real package one is killed and one survives."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mutants._planting import Key, Module, Mutant
from mutants._reasons import read_reasons
from mutants._report import Run, report
from mutants._session import Ended
from mutants._targets import REASONS, SOURCE, TARGETS

_ROOT = Path(__file__).resolve().parents[2]
_SOURCE = '''
"""A text of its own."""

KINDS = {"pause", "erase"}


def decide(age: int, name: str | None = None, *, strict: bool = True) -> bool:
    """Whether somebody may enter."""
    where = f"entry {age + 1}"
    if age < 18 and strict:
        raise ValueError(f"{where}: expected 18, found {age - 1}")
    return name in KINDS
'''


def _module(folder: Path) -> Module:
    path = folder / "tiny.py"
    path.write_text(_SOURCE, encoding="utf-8")
    return Module(path, "tiny.py")


def test_faults_are_planted_where_something_is_decided(tmp_path: Path) -> None:
    """Conditions, comparisons, tables, defaults and results get faults; texts get none."""
    made = {(mutant.function, mutant.before, mutant.after) for mutant in _module(tmp_path).mutants}
    condition = "if age < 18 and strict:"
    default = "def decide(age: int, name: str | None = None, *, strict: bool = True) -> bool:"

    assert made == {
        ("<module>", 'KINDS = {"pause", "erase"}', 'KINDS = {…, "erase"}'),
        ("<module>", 'KINDS = {"pause", "erase"}', 'KINDS = {"pause", …}'),
        ("<module>", 'KINDS = {"pause", "erase"}', "KINDS = {'pausex', \"erase\"}"),
        ("<module>", 'KINDS = {"pause", "erase"}', "KINDS = {\"pause\", 'erasex'}"),
        ("<module>", default, default.replace("True", "False")),
        ("decide", condition, "if True:"),
        ("decide", condition, "if False:"),
        ("decide", condition, "if age < 18 or strict:"),
        ("decide", condition, "if … and strict:"),
        ("decide", condition, "if age < 18 and …:"),
        ("decide", condition, "if age <= 18 and strict:"),
        ("decide", condition, "if age >= 18 and strict:"),
        ("decide", condition, "if age < 19 and strict:"),
        ("decide", condition, "if age < 17 and strict:"),
        ("decide", "return name in KINDS", "return None"),
        ("decide", "return name in KINDS", "return name not in KINDS"),
    }


def test_a_mutant_is_the_module_with_one_fault(tmp_path: Path) -> None:
    """The changed tree does the wrong thing, and the next one is made from the right one."""
    module = _module(tmp_path)
    expected = {
        "return name not in KINDS": (False, False),
        'KINDS = {…, "erase"}': (False, True),
        "if age < 17 and strict:": (True, True),
    }
    found: dict[str, tuple[object, object]] = {}
    for mutant in module.mutants:
        if mutant.after in expected:
            names: dict[str, Any] = {}
            exec(compile(module.changed(mutant), "tiny.py", "exec"), names)  # noqa: S102
            found[mutant.after] = names["decide"](20, "pause"), names["decide"](20, "erase")

    assert found == expected


def test_a_noticed_fault_is_killed_and_another_survives(tmp_path: Path) -> None:
    """In a warm session and in one that imports the fault, the tests decide what is killed."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.mutants.tiny", str(tmp_path)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    states = {after: state for after, state, _ in json.loads(ended.stdout.splitlines()[-1])}
    assert states == {
        "return seq + rest": "killed",
        "return skipped if skipped > target else seq - 1": "survived",
        "_PAUSE = KindRule(roles=(Role.OPERATOR,), on_threads=False, settles_pause=True, "
        "only_says_why=True)": "killed",
    }


def _told(module: Module, survivor: Mutant, reasons: dict[Key, str]) -> tuple[str, bool]:
    ended: dict[Key, Ended] = {
        mutant.key: ("survived" if mutant is survivor else "killed", "")
        for mutant in module.mutants
    }
    run = Run(made=module.mutants, ended=ended, flaky=(), seconds=1.0, machine_seconds=1.0)
    return report(run, reasons)


def test_a_survivor_needs_a_reason_and_a_reason_a_survivor(tmp_path: Path) -> None:
    """A run fails for a survivor that nobody explained, and for an explanation of nothing."""
    module = _module(tmp_path)
    survivor, other = module.mutants[:2]
    reason = "nobody asks for it"

    told, passed = _told(module, survivor, {})
    assert not passed
    assert f"  + {survivor.after}\n" in told
    assert _told(module, survivor, {survivor.key: reason})[1]
    told, passed = _told(module, survivor, {survivor.key: reason, other.key: reason})
    assert not passed
    assert "1 stale reasons" in told


def test_a_reason_says_something(tmp_path: Path) -> None:
    """An entry without words is refused, and one that is there twice."""
    entry = '[[mutant]]\nfile = "a"\nfunction = "b"\nbefore = "c"\nafter = "d"\nreason = "{}"\n'
    path = tmp_path / "reasons.toml"
    for text in (entry.format("equivalent"), entry.format("it is the same") * 2):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="expected one reason"):
            read_reasons(path)


def test_every_reason_is_for_a_mutant_that_there_is() -> None:
    """The reasons of the repository can be read, and none is for a fault that cannot be planted."""
    made = {
        mutant.key
        for name in TARGETS
        for mutant in Module(SOURCE / "sealpoint" / name, name).mutants
    }

    assert not [key for key in read_reasons(REASONS) if key not in made]
