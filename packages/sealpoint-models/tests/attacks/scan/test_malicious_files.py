# SPDX-License-Identifier: Apache-2.0
"""No trick of the samples gets a file past a scan, and a scan runs nothing of any."""

import json
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest

from sealpoint_models.scan import ScanReport, ScanVerdict, scan_bytes
from tests.repo._tree import ROOT
from tests.scan.malicious import GROUPS, Sample

_SAMPLES_LEAST = 250

_WATCHED = """
import codecs, json, sys
from tests.scan.malicious import malicious
from sealpoint_models.scan import scan_bytes

samples = list(malicious())
scan_bytes(samples[0].data, samples[0].file)
scan_bytes(b"{{ x }}", "chat_template.jinja")  # imports Jinja
for codec in ("unicode-escape", "raw-unicode-escape"):  # Python loads its own when first used
    codecs.lookup(codec)
before = set(sys.modules)
seen = set()
harmless = ("object.__getattr__", "builtins.id", "sys._getframe")
sys.addaudithook(lambda event, _: None if event in harmless else seen.add(event))
verdicts = [str(scan_bytes(each.data, each.file).verdict) for each in samples]
print(json.dumps([sorted(seen), sorted(set(sys.modules) - before), len(verdicts)]))
"""


_WATCHED_LOADS = """
import codecs, io, json, os, sys
import numpy, torch
from sealpoint.errors import SealpointError
from sealpoint_models._torch_files import load_pt
from tests.scan import benign, irregular
from tests.scan.malicious import GROUPS

def load(data):
    file.truncate(0)
    file.seek(0)
    file.write(data)
    for unknown in ("refuse", "inert"):
        try:
            load_pt(file, len(data), "m", "cpu", unknown)
            loaded[unknown] += 1
        except SealpointError:
            pass

file = io.FileIO(os.memfd_create("sample"), "r+b")
loaded = {"refuse": 0, "inert": 0}
samples = [
    each.data
    for group, made in (*GROUPS.items(), ("hidden", irregular.hidden_calls))
    if group != "denial of service"
    for each in made()
]
for each in benign.torch_files():  # what torch and numpy load when first used
    load(each.data)
for codec in ("unicode-escape", "raw-unicode-escape"):
    codecs.lookup(codec)
loaded = {"refuse": 0, "inert": 0}
before = set(sys.modules)
seen = set()
harmless = ("object.__getattr__", "builtins.id", "sys._getframe")
sys.addaudithook(lambda event, _: None if event in harmless else seen.add(event))
for data in samples:
    load(data)
print(json.dumps([sorted(seen), sorted(set(sys.modules) - before), loaded]))
"""


@cache
def _scanned(group: str) -> list[tuple[Sample, ScanReport]]:
    """The samples of a group, each with what a scan says of it."""
    return [(each, scan_bytes(each.data, each.file)) for each in GROUPS[group]()]


@pytest.mark.parametrize("group", GROUPS)
def test_every_sample_of_a_trick_is_dangerous_or_unreadable(group: str) -> None:
    """No way of hiding code makes it data, objects of known classes, or something not read."""
    passed = [
        str(sample)
        for sample, report in _scanned(group)
        if not report.is_refused(ScanVerdict.UNREADABLE)
    ]

    assert not passed


def test_the_samples_are_many_and_most_are_told_for_what_they_are() -> None:
    """There are hundreds of samples, no reader fails on one, and most of them are dangerous."""
    reports = [report for group in GROUPS for _, report in _scanned(group)]
    verdicts = Counter(report.verdict for report in reports)
    rules = {finding.rule for report in reports for finding in report.findings}

    assert len(reports) >= _SAMPLES_LEAST
    assert "reader-failed" not in rules
    assert verdicts[ScanVerdict.DANGEROUS] > verdicts[ScanVerdict.UNREADABLE]


def test_a_scan_imports_and_runs_nothing() -> None:
    """While all samples are scanned, Python reports no import, file, process or evaluation."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED], capture_output=True, text=True, check=True, cwd=ROOT
    )
    events, modules, count = json.loads(done.stdout)

    assert count >= _SAMPLES_LEAST
    assert events == []
    assert modules == []
    assert not (ROOT / "marker").exists()


def test_a_scan_needs_neither_torch_nor_numpy() -> None:
    """The scanner is imported and used without either of them."""
    program = (
        "import sys; from sealpoint_models.scan import scan_bytes; scan_bytes(b'N.', 'm.pkl');"
        "print([name for name in ('torch', 'numpy', 'safetensors') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_a_load_that_gives_names_as_data_imports_and_runs_nothing() -> None:
    """While all samples are loaded, also as inert data, Python reports nothing of the kind."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED_LOADS], capture_output=True, text=True, check=True, cwd=ROOT
    )
    events, modules, loaded = json.loads(done.stdout)

    assert events == []
    assert modules == []
    assert loaded["inert"] > loaded["refuse"] + 50
    assert not (ROOT / "marker").exists()
