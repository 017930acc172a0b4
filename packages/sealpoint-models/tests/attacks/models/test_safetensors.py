# SPDX-License-Identifier: Apache-2.0
"""Safetensors files that break the format, or what a store may rely on.

What the usual reader lets through is shown on it first, and refused by ours; what it refuses, ours
refuses too; and honest files are read alike.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from sealpoint.errors import ModelError, ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_HEADER_BYTES_MAX, MODEL_TENSORS_MAX
from sealpoint_models import load_checkpoint, open_checkpoint, save_checkpoint
from tests.attacks.models.files import entry, with_header
from tests.cpu_time import CpuTime

_ONE = entry("U8", [1], 0, 1)
_GOOD = json.dumps(_ONE)[1:-1]
_OTHER = '"dtype":"I8","shape":[1,1],"data_offsets":[0,1]'

_LET_THROUGH: dict[str, tuple[Mapping[str, Any] | str | bytes, bytes]] = {
    "a space before the brace": (f' {{"a":{{{_GOOD}}}}}', b"\1"),
    "lines before the brace": (f'\n\t{{"a":{{{_GOOD}}}}}', b"\1"),
    "a line after the brace": (f'{{"a":{{{_GOOD}}}}}\n', b"\1"),
    "a name twice, alike": (f'{{"a":{{{_GOOD}}},"a":{{{_GOOD}}}}}', b"\1"),
    "a name twice, of two types": (f'{{"a":{{{_OTHER}}},"a":{{{_GOOD}}}}}', b"\1"),
    "a field that nobody knows": ({"a": {**_ONE, "payload": "x"}}, b"\1"),
    "a boolean of 2": ({"a": entry("BOOL", [2], 0, 2)}, b"\1\2"),
    "an empty name": ({"": _ONE}, b"\1"),
    "a name with NUL": ({"a\0b": _ONE}, b"\1"),
    "a name that leads out": ({"../../etc/passwd": _ONE}, b"\1"),
    "a name from the root": ({"/etc/passwd": _ONE}, b"\1"),
}

_REFUSED_BY_ALL: dict[str, tuple[Mapping[str, Any] | str | bytes, bytes]] = {
    "a hole in front": ({"a": entry("U8", [1], 1, 2)}, b"\1\1"),
    "a hole between": ({"a": _ONE, "b": entry("U8", [1], 2, 3)}, b"\1\1\1"),
    "an overlap": ({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, b"\1\1\1"),
    "the same bytes twice": ({"a": _ONE, "b": _ONE}, b"\1"),
    "bytes behind the last": ({"a": _ONE}, b"\1\1"),
    "an end behind the file": ({"a": entry("U8", [9], 0, 9)}, b"\1"),
    "more shape than bytes": ({"a": entry("U8", [2], 0, 1)}, b"\1"),
    "less shape than bytes": ({"a": entry("U8", [1], 0, 2)}, b"\1\1"),
    "offsets that go back": ({"a": entry("U8", [1], 1, 0)}, b"\1"),
    "a product of 65 bits": ({"a": entry("U8", [1 << 62, 8], 0, 0)}, b""),
    "a side of 65 bits": ({"a": entry("U8", [1 << 64], 0, 0)}, b""),
    "an unknown type": ({"a": entry("F128", [1], 0, 1)}, b"\1"),
    "a number in the metadata": ({"__metadata__": {"a": 1}, "b": _ONE}, b"\1"),
    "a list as metadata": ({"__metadata__": ["a"], "b": _ONE}, b"\1"),
    "NUL behind the header": (f'{{"a":{{{_GOOD}}}}}\0\0', b"\1"),
    "a byte order mark": (f'\ufeff{{"a":{{{_GOOD}}}}}', b"\1"),
    "bytes that are no UTF-8": (b'{"\xff":{%s}}' % _GOOD.encode(), b"\1"),
    "a negative side": ({"a": entry("U8", [-1], 0, 1)}, b"\1"),
    "a side with a point": ({"a": entry("U8", [1.0], 0, 1)}, b"\1"),
    "a side that is no number": ({"a": entry("U8", ["1"], 0, 1)}, b"\1"),
    "an offset too few": ({"a": {**_ONE, "data_offsets": [0]}}, b"\1"),
    "a field missing": ({"a": {"dtype": "U8", "shape": [1]}}, b"\1"),
    "a brace missing": (f'{{"a":{{{_GOOD}}}', b"\1"),
    "a list as header": ("[]", b""),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "a.safetensors"


def _refusal(path: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        load_checkpoint(path)
    return caught.value


@pytest.mark.parametrize("kind", _LET_THROUGH)
def test_what_the_usual_reader_lets_through_is_refused(kind: str, path: Path) -> None:
    """A file that breaks the specification loads with the usual reader, and not with ours."""
    with_header(path, *_LET_THROUGH[kind])

    stock = load_file(path)
    refusal = _refusal(path)

    assert len(stock) == 1
    assert type(refusal) is ModelMalformed
    assert refusal.code == "model-malformed"


@pytest.mark.parametrize("kind", _REFUSED_BY_ALL)
def test_what_the_usual_reader_refuses_is_refused(kind: str, path: Path) -> None:
    """A file that the usual reader refuses is refused by ours as well."""
    with_header(path, *_REFUSED_BY_ALL[kind])

    with pytest.raises(SafetensorError):
        load_file(path)
    assert type(_refusal(path)) in (ModelMalformed, ModelLimitExceeded)


def test_a_name_that_stands_there_twice_means_nothing(path: Path) -> None:
    """It is one tensor to a reader that keeps the last, another to one that keeps the first."""
    twice = f'{{"a":{{{_GOOD}}},"a":{{{_OTHER}}}}}'
    with_header(path, twice, b"\xff")

    assert load_file(path)["a"].dtype is torch.int8
    assert json.loads(twice)["a"]["dtype"] == "I8"
    assert type(_refusal(path)) is ModelMalformed


def test_a_shape_without_elements_makes_no_room_for_a_size_that_overflows(path: Path) -> None:
    """A side of 0 hides one of 2**62, whose stride no number of bytes can hold."""
    with_header(path, {"a": entry("F32", [0, 1 << 62], 0, 0)}, b"")

    assert load_file(path)["a"].shape == (0, 1 << 62)
    assert _refusal(path).code == "model-limit"


def test_a_metadata_text_of_megabytes_is_refused_unread(path: Path) -> None:
    """The length of the header is looked at before the header is."""
    with_header(path, {"__metadata__": {"a": "x" * MODEL_HEADER_BYTES_MAX}, "b": _ONE}, b"\1")

    with CpuTime() as cpu_time:
        refusal = _refusal(path)

    assert len(load_file(path)) == 1
    assert refusal.code == "model-limit"
    assert cpu_time.seconds < 0.2


def test_tensors_without_number_are_refused_before_they_are_read(path: Path) -> None:
    """Tensors of no bytes cost a reader far more than the file has."""
    count = MODEL_TENSORS_MAX + 8192
    empty = json.dumps(entry("U8", [0], 0, 0))
    members = ",".join(f'"{number}":{empty}' for number in range(count))
    with_header(path, f"{{{members}}}", b"")

    with CpuTime() as cpu_time:
        refusal = _refusal(path)
    with safe_open(path, framework="pt") as stock:
        names = stock.keys()

    assert len(names) == count
    assert refusal.code == "model-limit"
    assert cpu_time.seconds < 1


def test_delimiters_without_number_are_refused_before_they_are_read(path: Path) -> None:
    """What a header costs to parse is bounded by counting."""
    with_header(path, b"[" + b"[]," * (5 << 20) + b"[]]", b"")

    with CpuTime() as cpu_time:
        refusal = _refusal(path)

    assert refusal.code == "model-limit"
    assert cpu_time.seconds < 1


_HONEST: dict[str, dict[str, torch.Tensor]] = {
    "types": {
        str(dtype): torch.arange(6).reshape(2, 3).to(dtype)
        for dtype in (
            *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64),
            *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
            *(torch.uint16, torch.uint32, torch.uint64, torch.float8_e5m2, torch.float8_e4m3fn),
        )
    },
    "no elements": {"a": torch.zeros(0), "b": torch.zeros(3, 0, 2, dtype=torch.int8)},
    "no dimensions": {"a": torch.tensor(1.5), "b": torch.tensor(2)},
    "names": {"model.layers.0.weight": torch.ones(2), "é/ü": torch.ones(1), " ": torch.ones(3)},
    "names of fields": {name: torch.ones(2) for name in ("dtype", "shape", "data_offsets")},
    "nothing": {},
}


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {"format": "pt", "note": 'quoted "text", é'},
        {"dtype": "F32", "shape": "[1]", "data_offsets": "[0, 4]"},
    ],
)
@pytest.mark.parametrize("kind", _HONEST)
def test_honest_files_are_read_alike(
    kind: str, metadata: dict[str, str] | None, path: Path
) -> None:
    """What the usual writer writes loads with ours, equal in type, shape and bytes."""
    honest = _HONEST[kind]
    save_file(honest, path, metadata=metadata)

    found = load_checkpoint(path)
    with open_checkpoint(path) as model:
        texts = model.metadata

    assert found.keys() == honest.keys()
    assert texts == (metadata or {})
    for name, tensor in honest.items():
        assert found[name].dtype is tensor.dtype
        assert found[name].shape == tensor.shape
        assert _bytes(found[name]) == _bytes(tensor)


def test_a_file_changed_after_it_was_loaded_changes_no_tensor(path: Path) -> None:
    """The usual reader maps the file, so that its writer can change a model that runs."""
    save_file({"a": torch.zeros(1 << 16)}, path)
    mapped, ours = load_file(path)["a"], load_checkpoint(path)["a"]

    with path.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(torch.ones(1).numpy().tobytes())

    assert mapped[-1] == 1
    assert ours[-1] == 0


_TRUNCATED = """
import os, sys
from safetensors.torch import load_file

tensor = load_file(sys.argv[1])["a"]
os.truncate(sys.argv[1], 200)
tensor.sum()
"""


def test_a_file_cut_short_while_it_is_read_ends_no_process(path: Path) -> None:
    """A process that maps the file dies of a signal; ours has an error to handle."""
    state = {"a": torch.zeros(1 << 20)}
    save_file(state, path)
    stock = subprocess.run(
        [sys.executable, "-c", _TRUNCATED, str(path)], check=False, capture_output=True
    )
    save_file(state, path)

    with open_checkpoint(path) as model:
        os.truncate(path, 200)
        with pytest.raises(ModelMalformed, match="found the end"):
            model.load()

    assert stock.returncode == -signal.SIGBUS


def test_the_same_state_is_one_file(tmp_path: Path) -> None:
    """The usual writer puts metadata in an order of chance; a digest needs one order."""
    tensors = {"a": torch.ones(2), "b": torch.zeros(3)}
    texts = {f"key {number}": "text" for number in range(8)}
    path = tmp_path / "a.safetensors"
    usual, ours = set(), set()

    for _ in range(20):
        save_file(tensors, path, metadata=texts)
        usual.add(path.read_bytes())
        save_checkpoint({**tensors, "metadata": texts}, path)
        ours.add(path.read_bytes())

    assert len(usual) > 1
    assert len(ours) == 1
