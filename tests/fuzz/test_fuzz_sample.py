# SPDX-License-Identifier: Apache-2.0
"""A little fuzzing finds nothing; and with a planted fault, fuzzing finds it."""

import gc
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
from fuzz._claim import Escape, Parts
from fuzz._coverage import FileCoverage
from fuzz._decode_parts import decode_parts
from fuzz._mutate import Mutator
from fuzz._report import report
from fuzz._seeds import known_labels, seeds
from fuzz._session import escape_path, read_staged
from fuzz._supervise import Run, supervise
from fuzz._tokens import parse
from fuzz._watch import Watch
from fuzz.decode_never_executes import Case, Target
from tests.fuzz import planted
from tests.fuzz.dying import FATAL
from tests.fuzz.running import SEED, cases_tried, covered_percent, require_no_escape

_FAULTS: list[tuple[Callable[[Any], Any], str]] = [
    (planted.raise_value_error, "decode raised ValueError"),
    (planted.raise_system_exit, "decode raised SystemExit"),
    (planted.open_file, "while decoding: audit event open"),
    (planted.compile_text, "while decoding: audit event compile"),
    (planted.import_module, "while decoding: audit event import"),
    (planted.call_constructor, "while decoding: application code Plan.__init__"),
    (planted.return_stranger, "decode returned a Stranger"),
    (planted.return_view, "decode returned a memoryview"),
    (planted.Drifting(), "encode of a decoded value is no fixed point"),
]


def test_a_little_fuzzing_finds_no_escape(tmp_path: Path) -> None:
    """All first cases, and changed ones for a second, end without an escape, and are reported."""
    told = tmp_path / "report.txt"

    printed = require_no_escape("decode", 1, tmp_path, "--no-coverage", "--report", str(told))

    assert cases_tried(printed) > len(list(seeds(Target().registry)))
    assert told.read_text(encoding="utf-8") == printed


@pytest.mark.soak
def test_half_a_minute_of_fuzzing_runs_nearly_all_of_the_codec(tmp_path: Path) -> None:
    """Thirty seconds end without an escape, with 95 % of all lines run."""
    assert covered_percent(require_no_escape("decode", 30, tmp_path)) >= 95


def _few(target: Target) -> Parts:
    """The program with an eighth of its first cases: a few of each family show each fault."""
    parts = decode_parts(target)
    return replace(parts, seeds=lambda: islice(parts.seeds(), 0, None, 8))


@pytest.mark.parametrize(("fault", "kind"), _FAULTS, ids=[kind for _, kind in _FAULTS])
def test_planted_fault_is_found_and_saved(
    fault: Callable[[Any], Any], kind: str, tmp_path: Path
) -> None:
    """Each way to break the claim is met, named, and saved as a case that breaks it again."""
    target = planted.target_with(fault)

    progress = _plain.fuzz(_few(target), tmp_path, tmp_path / "own", seed=SEED, seconds=0)

    found = [each for each in progress.escapes if each.startswith(kind)]
    assert found
    with pytest.raises(Escape, match=re.escape(kind)):
        target.run(escape_path(tmp_path, found[0]).read_bytes())


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (planted.raise_value_error, "decode raised ValueError"),
        (planted.call_constructor, "while decoding: application code Plan.__init__"),
        (planted.return_plan, "decode returned a Plan"),
    ],
)
def test_planted_fault_of_a_registry_that_shows_untyped_values_is_found(
    fault: Callable[[Any], Any], kind: str
) -> None:
    """Every case is decoded by somebody who has none of the types, under the same claim."""
    target = Target(
        lambda registry: planted.Faulty(registry, fault) if registry.shows_untyped else registry
    )

    with pytest.raises(Escape, match=re.escape(kind)):
        target.run(bytes(Case(selector=0, data=planted.WORD)))


def test_what_lay_about_before_a_case_is_not_collected_while_it_is_watched() -> None:
    """Finalizers of other objects run before the watch or after it, and are not taken for its."""
    ran = []

    class Leftover:
        def __init__(self) -> None:
            self.myself = self

        def __del__(self) -> None:
            planted.open_file(None)
            ran.append(self)

    Leftover()
    with Watch() as watch:
        made: list[list[int]] = [[] for _ in range(100_000)]
    del made
    gc.collect()

    assert watch.events == ()
    assert ran
    assert gc.isenabled()


def test_slow_case_is_an_escape() -> None:
    """A case that keeps the processor busy for more than a second breaks the claim."""
    target = planted.target_with(planted.sleep)
    case = bytes(Case(selector=0, data=planted.WORD))

    with pytest.raises(Escape, match="decode was slow"):
        target.run(case)


def test_crashed_process_is_an_escape_and_another_takes_its_place(tmp_path: Path) -> None:
    """A process that dies leaves the case it died of, and the run goes on."""
    run = supervise(
        engine="plain",
        output=tmp_path,
        seed=SEED,
        seconds=3,
        workers=1,
        worker="tests.fuzz.dying",
    )

    kind = "the process was ended by SIGKILL"
    assert set(run.escapes) == {kind}
    assert escape_path(tmp_path, kind).read_bytes() == b"then " + FATAL
    assert run.escapes[kind] > 1


def test_process_that_cannot_start_is_no_pass(tmp_path: Path) -> None:
    """A run whose processes try nothing fails loudly."""
    with pytest.raises(RuntimeError, match="after 0 cases"):
        supervise(
            engine="plain",
            output=tmp_path,
            seed=SEED,
            seconds=5,
            workers=1,
            worker="tests.fuzz.no_such_module",
        )


def test_escape_or_low_coverage_fails_the_report(tmp_path: Path) -> None:
    """The report passes only without escapes and with enough lines run."""
    enough = FileCoverage(name="_a.py", lines=100, missed=(3, 4, 5, 9))
    low = FileCoverage(name="_b.py", lines=100, missed=tuple(range(1, 20)))
    escaped = Run(executions=2, seconds=1.0, escapes={"planted": 1})

    def told(run: Run, *files: FileCoverage) -> tuple[str, bool]:
        return report(run, files, engine="plain", seed=1, output=tmp_path)

    assert told(Run(), enough)[1]
    assert "not run: 3-5, 9" in told(Run(), enough)[0]
    assert not told(Run(), low)[1]
    assert not told(escaped, enough)[1]
    assert f"--replay {tmp_path}" in told(escaped)[0]


def test_replay_tells_an_escape_from_a_refusal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replaying a case says what became of it, with status 1 for an escape."""
    path = tmp_path / "case"
    path.write_bytes(bytes(Case(selector=0, data=planted.WORD)))

    assert program.main(["--replay", str(path)]) == 0
    assert "accepted" in capsys.readouterr().out
    faulty = decode_parts(planted.target_with(planted.raise_value_error))
    monkeypatch.setattr(program, "parts_of", lambda _: faulty)
    assert program.main(["--replay", str(path)]) == 1
    assert "escape: decode raised ValueError" in capsys.readouterr().out


def test_tokens_write_back_what_was_read() -> None:
    """Reading any bytes into tokens and writing those loses nothing."""
    rng = random.Random(SEED)  # noqa: S311 - repeatable, not secret
    for data in (*seeds(Target().registry), *(rng.randbytes(40) for _ in range(2000))):
        assert parse(data).raw == data
        assert bytes(Case.parse(bytes(Case.parse(data)))) == bytes(Case.parse(data))


def test_same_seed_makes_the_same_cases() -> None:
    """A run can be repeated: its cases follow from its seed alone."""
    registry = Target().registry
    data = registry.encode({"a": [1, (2, {3}), "x"]})

    def made(seed: int) -> list[bytes]:
        rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        mutator = Mutator(rng, known_labels(registry))
        return [bytes(mutator.changed(0, [(b"", parse(data))])) for _ in range(200)]

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_staged_case_survives_its_process(tmp_path: Path) -> None:
    """What a process tried last can be read after it."""
    parts = _few(Target())
    _plain.fuzz(parts, tmp_path, tmp_path / "own", seed=1, seconds=0)

    tried = list(parts.seeds())
    count, data = read_staged(tmp_path / "own")
    assert count == len(tried) > 300
    assert data == tried[-1]
