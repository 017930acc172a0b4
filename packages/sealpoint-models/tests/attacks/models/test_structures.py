# SPDX-License-Identifier: Apache-2.0
"""A structure whose nodes lie is refused, and costs no more than its file.

Each of these was met by fuzzing: see `fuzz/model_file_is_read_or_refused.py`.
"""

import base64
import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fuzz._watch import Watch
from sealpoint.errors import (
    EncodeLimitExceeded,
    ModelError,
    ModelLimitExceeded,
    ModelMalformed,
)
from sealpoint.limits import MODEL_NODES_MAX
from sealpoint_models import load_checkpoint, save_checkpoint
from sealpoint_models._structure_nodes import (
    METADATA,
    STRUCTURE,
    DeviceNode,
    QuantizedNode,
    SparseNode,
)
from sealpoint_models.scan._safetensors import write_header
from tests.attacks.models.files import node, with_structure
from tests.cpu_time import CpuTime

_AMBIGUOUS: list[Any] = [np.zeros(2), torch.ones(2)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "a.safetensors"


def _sparse(indices: Any, values: Any, **fields: Any) -> SparseNode:
    given: dict[str, Any] = {
        "layout": "sparse_coo",
        "shape": [2],
        "coalesced": False,
        "requires_grad": False,
        **fields,
    }
    return SparseNode(indices=indices, values=values, **given)


def _quantized(elements: Any) -> QuantizedNode:
    return QuantizedNode(
        dtype="quint8", elements=elements, scale=0.5, zero_point=0, axis=None, floating=False
    )


def test_a_node_inside_of_a_slice_is_a_tensor(path: Path) -> None:
    """No place of a structure gives a node to the caller."""
    save_checkpoint({"a": slice(torch.ones(2), [torch.ones(1)])}, path)

    found = load_checkpoint(path)["a"]

    assert type(found.start) is torch.Tensor
    assert type(found.stop[0]) is torch.Tensor


@pytest.mark.parametrize("field", ["requires_grad", "parameter"])
def test_parts_of_tensors_have_no_gradients(field: str, path: Path) -> None:
    """A sparse tensor of parts with gradients would not be a leaf."""
    flag: dict[str, Any] = {field: True}
    values = node("v", "float32", **flag)
    parts = {"i": ("I64", [1, 1], bytes(8)), "v": ("F32", [1], bytes(4))}
    with_structure(path, _sparse([node("i", "int64")], values), parts)

    with pytest.raises(ModelMalformed, match="without gradients"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("layout", "shape", "count"),
    [
        *(("sparse_coo", [2, 2], 1), ("sparse_coo", [2], 2), ("sparse_coo", [], 0)),
        *(("sparse_csr", [2, 2], 1), ("sparse_csc", [1, 1], 3)),
    ],
)
def test_sparse_parts_that_do_not_fit_are_refused(
    layout: str, shape: list[int], count: int, path: Path
) -> None:
    """What torch says of parts that do not fit is our error."""
    indices = [node("i", "int64")] * count
    structure = [indices, _sparse(indices, node("v", "float32"), layout=layout, shape=shape)]
    parts = {"i": ("I64", [1, 1], bytes(8)), "v": ("F32", [3], bytes(12))}
    with_structure(path, [node("i", "int64"), structure], parts)

    with pytest.raises(ModelMalformed, match="sparse tensor"):
        load_checkpoint(path)


@pytest.mark.parametrize("wrong", _AMBIGUOUS, ids=["array", "tensor"])
def test_an_array_in_the_place_of_a_text_is_refused(wrong: Any, path: Path) -> None:
    """Comparing an array with a text gives no truth value."""
    parts = {"a": ("U8", [1], b"\1"), "i": ("I64", [1, 1], bytes(8))}
    inside = [node("i", "int64")]
    for structure in (
        [node("a"), node("a", device=wrong), node("i", "int64")],
        [node("a"), _sparse(inside, node("a"), layout=wrong)],
        [node("i", "int64"), _quantized(node("a", requires_grad=wrong))],
    ):
        with_structure(path, structure, parts)
        with pytest.raises(ModelMalformed):
            load_checkpoint(path)


@pytest.mark.parametrize("name", ["cuda:200", "cuda:256", "cuda:01", "cuda:\u0663", "cpu:-1", ""])
def test_a_device_is_named_in_one_way(name: str, path: Path) -> None:
    """The number of a device is not cut to what fits its bits."""
    with_structure(path, DeviceNode(name=name), {})

    with pytest.raises(ModelMalformed, match="device"):
        load_checkpoint(path)


@pytest.mark.parametrize("where", [None, {"cuda": "cpu"}, lambda _storage, _name: None])
def test_the_name_of_a_device_imports_nothing(where: Any, path: Path) -> None:
    """For a kind of device that it does not know, torch imports what has its name."""
    for kind in ("privateuseone", "hpu", "vulkan", "mkldnn", "os"):
        with_structure(path, node("a", device=kind), {"a": ("U8", [1], b"\1")})
        with Watch() as watch, pytest.raises(ModelError, match=r"expected (a )?device"):
            load_checkpoint(path, map_location=where)

        assert not [event for event in watch.events if " import " in event]
        assert load_checkpoint(path).tolist() == [1]


def test_copies_of_a_tensor_are_bounded_by_the_file(path: Path) -> None:
    """Many nodes over one tensor, each in an order of its own, ask for copies without end."""
    parts = {"a": ("U8", [1, 1024, 1024], bytes(1 << 20))}
    orders = [node("a", stride=[step, 1, 1024]) for step in range(100)]
    with_structure(path, orders, parts)

    with pytest.raises(ModelLimitExceeded, match="copies"):
        load_checkpoint(path)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(
    ("elements", "count"),
    [(node("a"), 100), (node("a", offset=0, shape=[1 << 25], stride=[0]), 1)],
    ids=["many", "expanded"],
)
def test_quantized_tensors_are_bounded_by_the_file(elements: Any, count: int, path: Path) -> None:
    """Making a quantized tensor copies its elements, also those that are repeated."""
    parts = {"a": ("U8", [1 << 20], bytes(1 << 20))}
    with_structure(path, [_quantized(elements)] * count, parts)

    with pytest.raises(ModelLimitExceeded, match="copies"):
        load_checkpoint(path)


def test_scales_of_quantized_tensors_are_bounded_by_the_file(path: Path) -> None:
    """Scales that are one number, repeated for a tensor without elements, are copied too."""
    count = 1 << 20
    repeated: Any = {"offset": 0, "shape": [count], "stride": [0]}
    made = QuantizedNode(
        dtype="quint8",
        elements=node("e"),
        scale=node("s", "float64", **repeated),
        zero_point=node("z", "int64", **repeated),
        axis=1,
        floating=False,
    )
    one = ("F64", [1], bytes(8)), ("I64", [1], bytes(8))
    with_structure(path, made, {"e": ("U8", [0, count], b""), "s": one[0], "z": one[1]})

    with pytest.raises(ModelMalformed, match="scales and zero points in order"):
        load_checkpoint(path)


def test_a_structure_of_millions_of_lists_is_refused_before_they_are_made(path: Path) -> None:
    """A byte in the structure can stand for a list of its own, of a hundred bytes in memory."""
    count = MODEL_NODES_MAX + 1
    lists = b"\xdd" + count.to_bytes(4, "big") + b"\x90" * count
    structure = base64.b64encode(lists).decode()
    path.write_bytes(write_header([], {**METADATA, STRUCTURE: structure}).raw)

    with CpuTime() as cpu_time, pytest.raises(ModelLimitExceeded, match="fewer values"):
        load_checkpoint(path)

    assert cpu_time.seconds < 1


@pytest.mark.parametrize("depth", [1000, 1022, 5000])
def test_a_structure_nested_deeper_than_the_interpreter_goes_is_refused(
    depth: int, path: Path
) -> None:
    """Lists nest deeper than functions that walk them may call one another."""
    structure = base64.b64encode(b"\x91" * depth + b"\xc0").decode()
    header = write_header([], {**METADATA, STRUCTURE: structure})
    path.write_bytes(header.raw)

    with pytest.raises(ModelError):
        load_checkpoint(path)


def test_a_state_nested_deeper_than_the_interpreter_goes_is_refused(path: Path) -> None:
    """A state that a writer takes from a shallow stack is refused from a deep one."""
    state: Any = 1
    for _ in range(150):
        state = [state]

    def save(frames: int) -> None:
        save_checkpoint(state, path) if frames == 0 else save(frames - 1)

    save(0)
    with pytest.raises(EncodeLimitExceeded, match="nested"):
        save(500)


def test_sparse_indices_are_not_checked_without_end(path: Path) -> None:
    """Many sparse tensors of the same indices would have them checked as many times."""
    count = 1 << 16
    parts = {"i": ("I64", [1, count], bytes(8 * count)), "v": ("U8", [count], bytes(count))}
    repeated = [_sparse([node("i", "int64")], node("v"))] * 200
    with_structure(path, repeated, parts)

    with pytest.raises(ModelLimitExceeded, match="sparse indices"):
        load_checkpoint(path)


def test_booleans_are_looked_at_once(path: Path) -> None:
    """Many views of one tensor of booleans take no longer than few."""
    size = 1 << 24
    view = node("a", "bool", offset=0, shape=[1], stride=[1])
    with_structure(path, [view] * 3000, {"a": ("BOOL", [size], bytes(size))})

    with CpuTime() as cpu_time:
        load_checkpoint(path)

    assert cpu_time.seconds < 2


def test_names_that_are_alike_up_to_their_end_are_told_apart_in_time(path: Path) -> None:
    """Many long keys with one beginning take no longer to save than others."""
    state = {"x" * 300 + str(number): torch.empty(0) for number in range(6000)}

    with CpuTime() as cpu_time:
        save_checkpoint(state, path)

    assert load_checkpoint(path).keys() == state.keys()
    assert cpu_time.seconds < 3


def test_steps_that_lead_nowhere_change_no_bytes(path: Path) -> None:
    """Tensors that differ in the step along a side of 1 are the same, saved once or twice."""
    base = torch.arange(3.0)
    save_checkpoint([base.as_strided((3, 1), (1, 7)), base.as_strided((3, 1), (1, 1))], path)
    first = path.read_bytes()

    save_checkpoint(load_checkpoint(path), path)

    assert path.read_bytes() == first


def test_repeated_scales_are_refused(path: Path) -> None:
    """Torch copies 128 MiB of scales and zero points for each quantized tensor without elements."""
    side = 8 << 20
    repeated: dict[str, Any] = {"offset": 0, "shape": [side], "stride": [0]}
    quantized = QuantizedNode(
        dtype="qint8",
        elements=node("e", "int8", offset=0, shape=[side, 0], stride=[0, 1]),
        scale=node("s", "float64", **repeated),
        zero_point=node("z", "int64", **repeated),
        axis=0,
        floating=False,
    )
    parts = {"e": ("I8", [0], b""), "s": ("F64", [1], bytes(8)), "z": ("I64", [1], bytes(8))}
    with_structure(path, [quantized] * 100, parts)

    with pytest.raises(ModelMalformed, match="scales and zero points in order"):
        load_checkpoint(path)


@pytest.mark.parametrize("device", ["hpu", "privateuseone", "meta", "meta:0", "cuda:127", "foo"])
def test_devices_that_are_not_there_are_refused(path: Path, device: str) -> None:
    """Where a tensor says it was, torch looks for modules and kernels; neither error gets out."""
    for state in (node("a", device=device), _quantized(node("a", device=device))):
        with_structure(path, [state], {"a": ("U8", [2], bytes(2))})

        with pytest.raises(ModelError):
            load_checkpoint(path, map_location=None)


def test_quantized_tensors_without_memory_are_refused(path: Path) -> None:
    """Torch has none on meta; its error does not get out."""
    with_structure(path, [_quantized(node("a"))], {"a": ("U8", [2], bytes(2))})

    with pytest.raises(ModelError, match="cannot hold a quantized tensor"):
        load_checkpoint(path, map_location="meta")


@pytest.mark.parametrize("fields", [{"axis": True}, {"axis": "0"}, {"floating": 1}])
def test_odd_fields_of_a_quantized_tensor_are_refused(path: Path, fields: dict[str, Any]) -> None:
    """A field of another type is not taken for one that is empty."""
    quantized = _quantized(node("a"))
    for name, value in fields.items():
        setattr(quantized, name, value)
    with_structure(path, [quantized], {"a": ("U8", [2], bytes(2))})

    with pytest.raises(ModelMalformed, match="expected an axis only"):
        load_checkpoint(path)


def _nested(path: Path, opening: bytes, depth: int) -> Path:
    """A structure as deep as the codec reads, which its writer does not write."""
    text = base64.b64encode(opening * depth + b"\x01").decode()
    path.write_bytes(write_header([], {**METADATA, STRUCTURE: text}).raw)
    return path


@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a"])
def test_deep_structures_are_refused(path: Path, opening: bytes) -> None:
    """The codec reads deeper than Python builds; that is no RecursionError."""
    for depth in (257, 400, 1000):
        with pytest.raises(ModelLimitExceeded, match="nested in one another"):
            load_checkpoint(_nested(path, opening, depth))


def test_a_deep_caller_gets_an_error_of_ours(path: Path) -> None:
    """What is left of the stack is not for a file to find out."""

    def at_depth(left: int) -> Any:
        return at_depth(left - 1) if left else load_checkpoint(path)

    _nested(path, b"\x81\xa1a", 250)
    depth = sys.getrecursionlimit() - len(inspect.stack(0)) - 200

    with pytest.raises(ModelLimitExceeded, match="room for them on the stack"):
        at_depth(depth)
