# SPDX-License-Identifier: Apache-2.0
"""Which files does our scanner flag, beside other scanners on the same files?

Ours has levels: what it flags is dangerous or unreadable. Objects of known classes, and what is no
model, are accepted here; how many are data is in a line of its own.

The samples are those of the tests: files that nobody should load, by the nine ways in which they
hide what they do, and files that people have, by the tool that wrote them. Each scanner runs in a
process of its own; the others in an environment of their own, `.venv/scanners`, which `make bench`
makes of `requirements/scanners.txt`. A scanner that is not there has no row.

No malicious file is ever loaded. So `torch.load(weights_only=True)` is only asked for files that
torch wrote, in a process whose audit hook ends it before a program, a socket or a file to write is
opened; what it would make of the others is not tried.
"""

import functools
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks._measure import Result
from sealpoint_models.scan import ScanVerdict, scan_bytes, scan_path
from tests.repo._tree import ROOT
from tests.scan.benign import benign
from tests.scan.malicious import GROUPS, Sample, malicious

__all__ = ["experiments", "table"]

_SMALL_FILES = 2_000
_LARGE_BYTES = 1 << 30
_ROUNDS = 3
_OURS = "sealpoint scan"
_TORCH = "torch.load(weights_only=True)"
_TOOLS = {
    "torch": "files of torch",
    "pickle": "pickles of plain data and of tensors",
    "container": "archives and compressed pickles",
    "numpy": "files of numpy",
    "other": "safetensors, GGUF, ONNX, Keras and others",
    "joblib": "files of joblib",
    "object": "objects of torch, numpy and transformers",
}
_PEERS_PYTHON = Path(sys.prefix) / "scanners" / "bin" / "python"

_PROGRAMS = {
    _OURS: """
from sealpoint_models.scan import ScanVerdict, scan_path
def flags(path):
    return scan_path(path).is_refused(ScanVerdict.UNREADABLE)
""",
    "picklescan": """
from picklescan.scanner import scan_file_path
def flags(path):
    found = scan_file_path(path)
    return found.issues_count > 0 or found.scan_err
""",
    "modelscan": """
from modelscan.modelscan import ModelScan
def flags(path):
    found = ModelScan().scan(path)
    return bool(found["issues"] or found["errors"])
""",
    # It reads pickles, so that it is given the one of a file of torch.
    "fickling": """
import io, zipfile
from fickling.fickle import StackedPickle
from fickling.analysis import check_safety, Severity
def pickled(path):
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith("/data.pkl"):
                    return io.BytesIO(archive.read(name))
    return open(path, "rb")
def flags(path):
    with pickled(path) as file:
        return any(check_safety(each).severity != Severity.LIKELY_SAFE
                   for each in StackedPickle.load(file))
""",
    _TORCH: """
import os, sys, tarfile, torch
def refuse(event, arguments):
    opened = event == "open" and arguments[1] is not None and set(arguments[1]) & set("wax+")
    if opened or event.partition(".")[0] in {"subprocess", "socket", "exec", "ctypes"} or (
        event in {"os.system", "os.exec", "os.posix_spawn", "os.remove", "os.rename"}
    ):
        os._exit(9)
torch.load(sys.argv[1], map_location="cpu", weights_only=True)  # imports what it needs
sys.addaudithook(refuse)
def flags(path):
    if tarfile.is_tarfile(path):
        return True  # it refuses them, and makes a directory for that
    torch.load(path, map_location="cpu", weights_only=True)
    return False
""",
}
_LOOP = """
import contextlib, io, sys, time
from importlib.metadata import version
paths, spent = sys.stdin.read().splitlines(), 0.0
for path in paths:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        start = time.perf_counter()
        try:
            answer = "1" if flags(path) else "0"
        except Exception:
            answer = "1"  # an error counts as a warning
        spent += time.perf_counter() - start
    print(answer, flush=True)
print(spent, version(sys.argv[2]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """What one scanner said."""

    scanner: str
    version: str
    flagged: Counter[str]
    """How many files of each group it warned of."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """What all of them said."""

    malicious: Counter[str]
    """How many files each group has."""
    benign: Counter[str]
    rows: tuple[_Row, ...]

    @property
    def ours(self) -> _Row:
        return self.rows[0]


def _asked(scanner: str, files: list[tuple[str, Path]], ready: Path) -> _Row | None:
    """What a scanner says of files, or None if it is not there or did not come to its end."""
    python = sys.executable if scanner in {_OURS, _TORCH} else str(_PEERS_PYTHON)
    if not Path(python).exists():
        return None
    package = {_OURS: "sealpoint", _TORCH: "torch"}.get(scanner, scanner)
    done = subprocess.run(  # noqa: S603 - programs that stand above
        [python, "-W", "ignore", "-c", _PROGRAMS[scanner] + _LOOP, str(ready), package],
        input="".join(f"{path}\n" for _, path in files),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, ROOT.glob("packages/*/src")))}
        if scanner == _OURS
        else None,
    )
    *answers, spent, version = done.stdout.split() or ["", ""]
    if len(answers) != len(files):
        sys.stderr.write(f"{scanner} ended with {done.returncode}: {done.stderr[-500:]}\n")
        return None
    flagged = Counter(
        group for (group, _), answer in zip(files, answers, strict=True) if answer == "1"
    )
    return _Row(scanner=scanner, version=version, flagged=flagged, seconds=float(spent))


def _written(samples: list[Sample], folder: Path) -> list[tuple[str, Path]]:
    paths = []
    for number, sample in enumerate(samples):
        place = folder / str(number)
        place.mkdir(parents=True)
        (place / sample.file).write_bytes(sample.data)
        paths.append((sample.group, place / sample.file))
    return paths


@functools.cache
def _compared() -> _Comparison:
    attacks, honest = list(malicious()), list(benign())
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        ready = folder / "ready.pt"
        torch.save({"a": torch.ones(2)}, ready)
        files = _written(attacks, folder / "malicious") + _written(honest, folder / "benign")
        by_torch = [(group, path) for group, path in files if group == "torch"]
        rows = [
            _asked(scanner, by_torch if scanner == _TORCH else files, ready)
            for scanner in _PROGRAMS
        ]
    return _Comparison(
        malicious=Counter(sample.group for sample in attacks),
        benign=Counter(sample.group for sample in honest),
        rows=tuple(row for row in rows if row is not None),
    )


def table() -> list[str]:
    """One table of all scanners: flagged of each kind of malicious, accepted of each benign."""
    compared = _compared()
    rows = compared.rows
    lines = [
        "Of malicious files, by the way in which they hide what they do, how many were flagged; of",
        "benign ones, by what wrote them, how many were accepted. An error counts as a warning.",
        "",
        f"| files | of | {' | '.join(f'{row.scanner} {row.version}' for row in rows)} |",
        "|---|" + "---|" * (len(rows) + 1),
    ]

    def line(label: str, groups: Counter[str], *, flagged: bool) -> None:
        cells = [_cell(row, groups, flagged=flagged) for row in rows]
        lines.append(f"| {label} | {groups.total()} | {' | '.join(cells)} |")

    line("malicious, flagged", compared.malicious, flagged=True)
    for way, label in zip(sorted(compared.malicious), GROUPS, strict=True):
        line(f"{way}: {label}", Counter({way: compared.malicious[way]}), flagged=True)
    line("benign, accepted", compared.benign, flagged=False)
    for tool, count in compared.benign.items():
        line(_TOOLS[tool], Counter({tool: count}), flagged=False)
    lines.append(f"| seconds | | {' | '.join(f'{row.seconds:.1f}' for row in rows)} |")
    return [
        *lines,
        "",
        _levels(),
        "",
        f"`{_TORCH}` is only asked for what torch wrote, because no malicious file is ever loaded.",
        "Fickling reads pickles, and is given the one of a file of torch; most other containers",
        "are errors to it. The samples are those that `sealpoint scan` is tested with.",
    ]


def _levels() -> str:
    """How many benign files have each verdict."""
    verdicts = Counter(scan_bytes(each.data, each.file).verdict for each in benign())
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ScanVerdict)
    return f"Of the benign files, `{_OURS}` calls {counts}."


def _cell(row: _Row, groups: Counter[str], *, flagged: bool) -> str:
    if row.scanner == _TORCH and groups.keys() != {"torch"}:
        return "never loaded" if flagged else ""
    found = sum(row.flagged[group] for group in groups)
    return str(found if flagged else groups.total() - found)


def experiments() -> Iterator[Result]:
    """What is flagged and accepted, and how long it takes."""
    yield _share("malicious files that a scan flags", _flagged_share, bar=99)
    yield _share("benign files that a scan accepts", _accepted_share, bar=97)
    yield from _speed()


def _flagged_share(row: _Row, compared: _Comparison) -> float:
    found = sum(row.flagged[way] for way in compared.malicious)
    return 100 * found / compared.malicious.total()


def _accepted_share(row: _Row, compared: _Comparison) -> float:
    found = sum(row.flagged[tool] for tool in compared.benign)
    return 100 - 100 * found / compared.benign.total()


def _share(question: str, share: Callable[[_Row, _Comparison], float], *, bar: float) -> Result:
    compared = _compared()
    others = [row for row in compared.rows[1:] if row.scanner != _TORCH]
    peers = ", ".join(f"{row.scanner} {share(row, compared):.0f} %" for row in others)
    figure = share(compared.ours, compared)
    return Result(
        question=question,
        ours=f"{figure:.1f} %",
        peer=peers or "no other scanner is there: make bench installs them",
        figure=figure,
        unit="%",
        bar=bar,
        at_least=True,
    )


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _read(path: Path) -> None:
    with path.open("rb") as file:
        while file.read(1 << 20):
            pass


def _speed() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as directory:
        large = Path(directory) / "large.pt"
        torch.save({"w": torch.zeros(_LARGE_BYTES // 4)}, large)
        _read(large)
        read = min(_timed(lambda: _read(large)) for _ in range(_ROUNDS))
        scanned = min(_timed(lambda: scan_path(large)) for _ in range(_ROUNDS))
        yield Result(
            question="scan a .pt of 1 GiB",
            ours=f"{scanned * 1e3:.2f} ms",
            peer=f"reading it {read * 1e3:.0f} ms",
            figure=scanned / read,
            unit="x the time of reading it",
            bar=0.3,
            at_least=False,
        )
        large.unlink()
        state = torch.nn.Linear(4, 4).state_dict()
        small = [Path(directory) / f"{number}.pt" for number in range(_SMALL_FILES)]
        for path in small:
            torch.save(state, path)
        spent = _timed(lambda: [scan_path(path) for path in small])
        yield Result(
            question="scan small .pt files, in one process",
            ours=f"{_SMALL_FILES:,} in {spent:.1f} s",
            peer="the bar",
            figure=60 * _SMALL_FILES / spent,
            unit="files a minute",
            bar=10_000,
            at_least=True,
        )
