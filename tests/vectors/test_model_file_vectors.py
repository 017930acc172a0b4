# SPDX-License-Identifier: Apache-2.0
"""The frozen model files, our reader and the second one: three that agree."""

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from sealpoint.errors import SealpointError
from sealpoint_models import load_checkpoint, open_checkpoint, save_checkpoint
from sealpoint_models._file_reader import ReadFile
from sealpoint_models.scan._safetensors import read_header
from tests.training import same_state
from tests.vectors import decoder
from tests.vectors.model_files import _states
from tests.vectors.model_files_reader import read

_FROZEN = json.loads((Path(__file__).parent / "model_files.json").read_text(encoding="ascii"))
_ACCEPTED: list[dict[str, Any]] = _FROZEN["accepted"]
_REFUSED: list[dict[str, Any]] = _FROZEN["refused"]

_every_accepted = pytest.mark.parametrize("case", _ACCEPTED, ids=[c["name"] for c in _ACCEPTED])
_every_refused = pytest.mark.parametrize("case", _REFUSED, ids=[c["name"] for c in _REFUSED])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a file is put."""
    return tmp_path / "a.safetensors"


@_every_accepted
def test_both_readers_give_what_was_said(case: dict[str, Any], path: Path) -> None:
    """Tensors, digests and the root are the frozen ones, to both."""
    path.write_bytes(bytes.fromhex(case["file"]))
    second = read(path.read_bytes())
    with open_checkpoint(path) as file:
        ours = file.digests()
        names = [tensor.name for tensor in file.tensors]

    assert {
        name: [element, shape, raw.hex()]
        for name, (element, shape, raw) in second["tensors"].items()
    } == case["tensors"]
    assert names == list(case["tensors"])
    assert second["root"].hex() == ours.root.hex() == case["root"]
    assert second["header"].hex() == ours.header.hex() == case["header"]
    assert [digest.hex() for digest in second["digests"]] == case["digests"]
    assert [digest.hex() for digest in ours.tensors.values()] == case["digests"]


@_every_accepted
def test_a_frozen_file_is_the_state_and_the_state_the_file(
    case: dict[str, Any], path: Path
) -> None:
    """It loads as the state that was said, and saving that gives its bytes."""
    state = next(state for name, state, _ in _states() if name == case["name"])
    path.write_bytes(bytes.fromhex(case["file"]))

    assert same_state(load_checkpoint(path), state)
    save_checkpoint(state, path)
    assert path.read_bytes().hex() == case["file"]


@_every_refused
def test_both_readers_refuse(case: dict[str, Any], path: Path) -> None:
    """Ours with the frozen code."""
    path.write_bytes(bytes.fromhex(case["file"]))
    with pytest.raises(SealpointError) as caught:
        load_checkpoint(path)

    assert caught.value.code == case["code"]
    if "structure" not in case["name"]:
        with pytest.raises((ValueError, TypeError, LookupError, AttributeError)):
            read(path.read_bytes())


def test_both_readers_agree_about_changed_files(path: Path) -> None:
    """After a change of a byte or two, both read the same tensors or both refuse."""
    draw = random.Random(5)  # noqa: S311 (cases, not secrets)
    accepted = 0
    for case in _ACCEPTED:
        for _ in range(60):
            data = bytearray.fromhex(case["file"])
            for _ in range(draw.randint(1, 2)):
                data[draw.randrange(len(data))] = draw.choice(b'0129{}[]," aU\x00\xff')
            path.write_bytes(data)
            try:
                with ReadFile(path) as file:
                    header = read_header(file.read_header(), file.size, "a")
                    if "sealpoint.structure" in header.metadata:
                        open_checkpoint(path).close()
            except SealpointError:
                header = None
            try:
                second = read(bytes(data))
            except (ValueError, TypeError, LookupError, AttributeError):
                second = None
            booleans = header and any(t.element == "BOOL" for t in header.tensors.values())

            assert (header is None) == (second is None) or (booleans and second is None), data
            if header is not None and second is not None:
                accepted += 1
                assert list(header.tensors) == list(second["tensors"])

    assert accepted > 20


def test_structures_are_values_of_the_format(path: Path) -> None:
    """The second decoder of values reads the structure, down to the nodes."""
    case = next(case for case in _ACCEPTED if case["name"] == "plain data")
    text = read(bytes.fromhex(case["file"]))["metadata"]["sealpoint.structure"]
    limits = json.loads((Path(__file__).parent / "rules.json").read_text())["limits"]
    found = decoder.decode(base64.b64decode(text), {}, limits)

    assert found == {"epoch": 3, "loss": 0.5, "note": None, 7: (1, 2)}
    assert not path.exists()
