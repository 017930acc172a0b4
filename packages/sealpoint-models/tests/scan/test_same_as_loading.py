# SPDX-License-Identifier: Apache-2.0
"""Scan, inspect, load and convert agree about every file.

A file of a format that is loaded is `safe` if and only if all three read it by default. One that is
`not-plain` is read only as inert data, where the caller asks for that, and everything else is
refused by all. What a scan knows about other readers is the one exception: such a file may be data
to ours. A file of another format is not loaded, whatever its verdict is; of numpy, joblib and what
is packed, it is converted if and only if it is safe.
"""

import pickle as python_pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import pytest
import torch

from sealpoint.errors import EncodeError, ModelMalformed, SealpointError
from sealpoint_models import convert_checkpoint, load_checkpoint
from sealpoint_models._inspection import inspect_checkpoint
from sealpoint_models.scan import ScanVerdict, Unknown, scan_bytes
from tests.pt_files import EMPTY, call, dictionary, named, pickled, storage, tensor, text
from tests.scan import benign, irregular
from tests.scan.assembler import pickle
from tests.scan.malicious import GROUPS, Sample

_LOADED = frozenset({"torch-zip", "torch-legacy", "pickle", "safetensors"})
"""The formats that `load_checkpoint` reads."""
_CONVERTED = frozenset({"npy", "npz", "gzip", "bzip2", "xz", "lzma", "zlib"})
"""Those that `convert_checkpoint` reads as well."""
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


def _inspected(path: Path) -> str:
    """What `sealpoint model inspect` says of a load."""
    try:
        return inspect_checkpoint(path).loads
    except SealpointError:
        return "refused"


def _is_converted(path: Path, unknown: Literal["refuse", "inert"]) -> bool:
    try:
        convert_checkpoint(path, path.parent / "converted", unknown=unknown, force=True)
    except EncodeError:
        pass  # it was read, and holds what no file of ours does, such as itself
    except SealpointError:
        return False
    return True


def _readings(sample: Sample, folder: Path) -> dict[str, str]:
    """What each of the three makes of a file: `data`, `inert` data only, or `refused`."""
    path = folder / sample.file
    path.parent.mkdir(exist_ok=True)

    def answer(reads: Callable[[Literal["refuse", "inert"]], bool]) -> str:
        return "data" if reads("refuse") else "inert" if reads("inert") else "refused"

    loaded = answer(lambda unknown: _is_loaded(path, sample, unknown))
    path.write_bytes(sample.data)
    converted = answer(lambda unknown: _is_converted(path, unknown))
    return {"load": loaded, "inspect": _inspected(path), "convert": converted}


def _differences(samples: Iterable[Sample], folder: Path) -> tuple[list[str], int]:
    """Where a scan and what reads a file disagree, and how many files of ours were compared."""
    found, compared = [], 0
    for each in samples:
        report = scan_bytes(each.data, each.file)
        readings = _readings(each, folder)
        if each.group == "joblib":
            readings = {"convert": readings["convert"]}
        is_ours = report.format in _LOADED
        compared += is_ours
        said = set(readings.values())
        if report.findings and {each.rule for each in report.findings} <= _LATER_READERS:
            agrees = True
        elif not is_ours:
            is_converted = readings.pop("convert") == "data"
            is_known = report.format in _CONVERTED and report.verdict is ScanVerdict.SAFE
            agrees = set(readings.values()) <= {"refused"} and is_converted <= is_known
            agrees = agrees and (is_converted or each.group not in ("joblib", "numpy"))
        elif report.verdict is ScanVerdict.SAFE:
            agrees = said == {"data"}
        elif report.verdict is ScanVerdict.NOT_PLAIN:
            agrees = said == {"inert"}
        else:
            # With the names of a file as data, all that is known of it may be plain.
            agrees = "data" not in said
        if not agrees:
            messages = [finding.message for finding in report.findings]
            found.append(f"{each}: {report.verdict}, {readings}, {messages}")
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
        (benign.pickled_tensors, 90),
        (benign.other_formats, 4),
        (benign.objects, 50),
        (benign.containers, 0),
        (benign.numpy_files, 0),
        (benign.joblib_files, 0),
        (irregular.irregular_calls, 80),
        (irregular.hidden_calls, 280),
        (irregular.irregular_tensors, 20),
        (irregular.irregular_streams, 7),
        (irregular.irregular_storages, 27),
        (_attacks, 250),
    ],
    ids=[
        "torch",
        "pickles",
        "pickled tensors",
        "others",
        "objects",
        "containers",
        "numpy",
        "joblib",
        "calls",
        "hidden",
        "tensors",
        "streams",
        "storages",
        "malicious",
    ],
)
def test_a_scan_and_all_readers_agree(
    family: Callable[[], Iterable[Sample]], least: int, tmp_path: Path
) -> None:
    """Whatever is in a file, scan, inspect, load and convert agree about it."""
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


def test_what_torch_is_given_is_a_storage_or_the_call_is_told() -> None:
    """Whatever is wrong with the bytes, or only with the tensor over them, is not safe."""
    reports = [scan_bytes(each.data, each.file) for each in irregular.irregular_storages()]
    named = {finding.name for report in reports for finding in report.findings}

    assert {report.verdict for report in reports} == {ScanVerdict.DANGEROUS}
    assert named == {None, "torch.storage._load_from_bytes"}


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


@pytest.mark.parametrize("latin", [False, True])
def test_an_honest_storage_in_bytes_is_safe(*, latin: bool) -> None:
    """The control: the pickle that the others are changes of; it is none that torch wrote."""
    program = tensor(
        irregular.given(irregular.stream(storage("FloatStorage", "0", 4)), latin=latin), [4], [1]
    )

    assert scan_bytes(pickle(program, 5), "m.pkl").findings == ()
    for wrapped in (pickled(program), irregular.stream(program)):
        assert "name-unknown" in {each.rule for each in scan_bytes(wrapped, "m.pt").findings}


def test_a_malformed_tensor_over_a_storage_in_bytes_is_not_inert(tmp_path: Path) -> None:
    """What loads a storage is no unknown name, so that nothing around it may be odd."""
    held = irregular.given(irregular.stream(storage("FloatStorage", "0", 4)))
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle(tensor(held, [4], [1]).replace(b"\x89c", b"Nc"), 5))

    with pytest.raises(ModelMalformed, match="requires a gradient"):
        load_checkpoint(path, unknown="inert")


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("protocol", range(python_pickle.HIGHEST_PROTOCOL + 1))
def test_tensors_that_pickle_wrote_are_what_pickle_reads(protocol: int, tmp_path: Path) -> None:
    """Types, shapes, strides and elements are those of a trusted load of the same bytes."""
    base = torch.arange(6.0)
    data = python_pickle.dumps(
        {
            "tensors": [base, base[1:3], base.view(2, 3).t(), torch.zeros(0), torch.tensor(1)],
            "types": [torch.ones(2, dtype=kind) for kind in (torch.bool, torch.bfloat16)],
            "parameter": torch.nn.Parameter(torch.ones(2)),
            "rate": 0.5,
        },
        protocol,
    )
    path = tmp_path / "m.pkl"
    path.write_bytes(data)

    found, trusted = load_checkpoint(path), python_pickle.loads(data)  # noqa: S301 - made above

    assert found.keys() == trusted.keys()
    assert found["rate"] == trusted["rate"]
    assert type(found["parameter"]) is torch.nn.Parameter
    pairs = zip(
        [*found["tensors"], *found["types"], found["parameter"]],
        [*trusted["tensors"], *trusted["types"], trusted["parameter"]],
        strict=True,
    )
    for ours, theirs in pairs:
        assert (ours.dtype, ours.stride()) == (theirs.dtype, theirs.stride())
        assert torch.equal(ours, theirs)
