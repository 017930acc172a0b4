# SPDX-License-Identifier: Apache-2.0
"""A file is called safe if and only if `load_checkpoint` reads it."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sealpoint.errors import SealpointError
from sealpoint.models import load_checkpoint
from sealpoint.scan import ScanVerdict, Unknown, scan_bytes
from tests.pt_files import EMPTY, call, dictionary, named, storage, tensor, text
from tests.scan import benign, irregular
from tests.scan.assembler import PAYLOAD, pickle
from tests.scan.malicious import GROUPS, Sample

pytest.importorskip("torch")

_LOADED = frozenset({"torch-zip", "torch-legacy", "pickle", "safetensors"})
"""The formats that `load_checkpoint` reads."""
_LATER_READERS = frozenset({"names-code", "nested-pickle", "wrong-name", "two-formats"})
"""What is about other readers than ours: these files are data to us, and are not safe."""


def _is_loaded(path: Path, sample: Sample, unknown: Unknown = "refuse") -> bool:
    path.write_bytes(sample.data)
    try:
        load_checkpoint(path, map_location="cpu", unknown=unknown)
    except SealpointError:
        return False
    finally:
        path.unlink()
    return True


def _differences(samples: Iterable[Sample], folder: Path) -> tuple[list[str], int]:
    """Where a scan and a load disagree, and how many files were compared."""
    found, compared = [], 0
    for each in samples:
        report = scan_bytes(each.data, each.file)
        if report.format not in _LOADED or each.group == "joblib":
            continue
        compared += 1
        is_safe = report.verdict is ScanVerdict.SAFE
        if is_safe != _is_loaded(folder / each.file, each) and not (
            {finding.rule for finding in report.findings} & _LATER_READERS
        ):
            found.append(f"{each}: {report.verdict}, {[each.message for each in report.findings]}")
    return found, compared


def _attacks() -> Iterable[Sample]:
    """All samples but those that only cost time: each reader has its own bounds, and tests."""
    for group, samples in GROUPS.items():
        if group != "denial of service":
            yield from samples()


@pytest.mark.parametrize(
    ("family", "least"),
    [
        (benign.torch_files, 90),
        (benign.pickles, 150),
        (benign.other_formats, 4),
        (irregular.irregular_calls, 80),
        (irregular.hidden_calls, 280),
        (irregular.irregular_tensors, 20),
        (irregular.irregular_streams, 7),
        (_attacks, 200),
    ],
    ids=["torch", "pickles", "others", "calls", "hidden", "tensors", "streams", "malicious"],
)
def test_safe_is_what_loads(
    family: Callable[[], Iterable[Sample]], least: int, tmp_path: Path
) -> None:
    """Whatever is in a file of a format that is loaded, scan and load agree about it."""
    differences, compared = _differences(family(), tmp_path)

    assert differences == []
    assert compared >= least


@pytest.mark.parametrize(
    "family",
    [
        irregular.irregular_calls,
        irregular.hidden_calls,
        irregular.irregular_tensors,
        irregular.irregular_streams,
    ],
    ids=["calls", "hidden", "tensors", "streams"],
)
def test_known_names_with_odd_arguments_are_not_safe(
    family: Callable[[], Iterable[Sample]],
) -> None:
    """What no type writes is not safe, though every name of it is known."""
    reports = {str(each): scan_bytes(each.data, each.file) for each in family()}
    rules = {finding.rule for report in reports.values() for finding in report.findings}

    assert [label for label, report in reports.items() if report.verdict is ScanVerdict.SAFE] == []
    assert "name-unknown" not in rules
    assert rules & {"call-irregular", "malformed"}


def test_hidden_calls_are_refused_for_inert_data_too(tmp_path: Path) -> None:
    """A call that is refused as a value is refused wherever else it stands."""
    kept = [each for each in irregular.irregular_calls() if each.file == "m.pkl"]
    refused = {each.label for each in kept if not _is_loaded(tmp_path / "a", each, "inert")}
    hidden = [
        each for each in irregular.hidden_calls() if each.label.rpartition(", ")[0] in refused
    ]

    assert [str(each) for each in hidden if _is_loaded(tmp_path / "a", each, "inert")] == []
    assert len(hidden) > 200


@pytest.mark.parametrize(
    "dropped",
    [
        EMPTY,
        named("torch", "float32"),
        dictionary((text("a"), b"N")),
        call("builtins", "set", b"]"),
    ],
    ids=["an ordered dict", "a name", "a dict", "a set"],
)
def test_what_is_allowed_may_be_dropped(dropped: bytes, tmp_path: Path) -> None:
    """The control: what could have been kept does no harm where it is not."""
    sample = Sample("dropped", "", "m.pkl", pickle(dropped + b"0N"))

    assert scan_bytes(sample.data, sample.file).findings == ()
    assert _is_loaded(tmp_path / "m.pkl", sample)


def test_an_honest_stream_of_the_samples_is_safe() -> None:
    """The control: the stream that the others are changes of."""
    good = irregular.stream(tensor(storage("FloatStorage", "0", 4), [4], [1]))

    assert scan_bytes(good, "m.pth").findings == ()
    assert scan_bytes(good, "m.pth").format == "torch-legacy"


@pytest.mark.parametrize(
    "program", [tensor(storage("FloatStorage", "0", 4), [4], [1]), PAYLOAD[2:-1]]
)
def test_the_tar_of_the_first_torch_is_not_safe(program: bytes, tmp_path: Path) -> None:
    """No loader of ours reads it, so that it is not safe; what a payload in it calls is told."""
    sample = Sample("tar", "", "m.pt", irregular.old_tar(program))
    report = scan_bytes(sample.data, sample.file)

    assert report.verdict is not ScanVerdict.SAFE
    assert not _is_loaded(tmp_path / "m.pt", sample)
    assert ("os.system" in {finding.name for finding in report.findings}) == (b"system" in program)
