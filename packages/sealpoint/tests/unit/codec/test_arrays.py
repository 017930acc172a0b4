# SPDX-License-Identifier: Apache-2.0
"""numpy and torch: what comes back is equal, writable and of the same type."""

import subprocess
import sys
from typing import Any

import pytest

from sealpoint import Limits, Registry
from sealpoint.errors import EncodeError, EncodeLimitExceeded, TypeNotAllowed, ValueNotAllowed
from tests.blobs import Blobs
from tests.sameness import same

pytest.importorskip("numpy")
pytest.importorskip("torch")

import numpy as np
import torch

REGISTRY = Registry()


def _loaded(value: Any) -> Any:
    return REGISTRY.decode(REGISTRY.encode(value))


@pytest.mark.parametrize(
    "value",
    [
        *(np.str_("a\0"), np.str_("\0"), np.str_(""), np.str_("\0a"), np.bytes_(b"a\0")),
        *(np.bytes_(b"\0"), np.bytes_(b""), np.bytes_(b"\0a"), np.str_("\U0001f600")),
    ],
    ids=repr,
)
def test_text_scalars_keep_every_character(value: Any) -> None:
    """Empty texts and texts that end in NUL come back as they were, or are refused."""
    try:
        data = REGISTRY.encode(value)
    except ValueNotAllowed:
        return
    loaded = REGISTRY.decode(data)

    assert type(loaded) is type(value)
    assert len(loaded) == len(value)
    assert REGISTRY.encode(loaded) == data


@pytest.mark.parametrize(
    "value",
    [
        *(np.float64("nan"), np.float32(-0.0), np.int8(-1), np.uint64(1 << 63), np.bool_(False)),  # noqa: FBT003
        *(np.complex64(1 + 2j), np.float16(1.5), np.datetime64("NaT"), np.timedelta64(5, "D")),
        *(np.datetime64("2024-01-01", ("s", 25)), np.zeros(1, [("a", "i4"), ("b", "U3", (2,))])[0]),
    ],
    ids=repr,
)
def test_scalars_come_back_the_same(value: Any) -> None:
    """Scalars keep their type and bits, alone and beside Python's own."""
    assert same(value, _loaded(value))
    assert same([value, 1, 1.5, True], _loaded([value, 1, 1.5, True]))


@pytest.mark.parametrize(
    "array",
    [
        *(np.arange(6).reshape(2, 3).T, np.arange(10)[::3], np.arange(10)[::-1], np.array(5)),
        *(np.broadcast_to(np.arange(3), (2, 3)), np.zeros((0, 3)), np.zeros((2, 0, 5), ">i2")),
        *(np.array([], "U0"), np.zeros(3, "S0"), np.array(["a\0b", "c"]), np.array([b"a\0b"])),
        *(np.arange(3, dtype=">f8"), np.array(["NaT", "2024-01-01"], "M8[D]"), np.array([True])),
        np.zeros(2, [("a", [("b", "<i2"), ("c", "S2")]), ("d", "?", (2, 2))]),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_arrays_come_back_the_same_and_writable(array: Any) -> None:
    """Any memory layout comes back as an array of its own memory."""
    blobs = Blobs()
    loaded = _loaded(array)
    from_tree = REGISTRY.decode_tree(REGISTRY.encode_tree({"a": array}, blobs.put), blobs.get)["a"]

    assert same(np.ascontiguousarray(array).reshape(array.shape), loaded)
    assert same(loaded, from_tree)
    assert loaded.flags.writeable
    assert loaded.flags.owndata or loaded.base.flags.owndata


@pytest.mark.parametrize(
    "array",
    [
        *(np.array([object()]), np.array([None, 1], dtype=object), np.zeros(2, "V3")),
        *(np.zeros(2, [("a", object)]), np.zeros(2, np.longdouble), np.zeros(2, [])),
        *(
            np.zeros(2, np.dtype([("a", "i1"), ("b", "i4")], align=True)),
            np.zeros(2, [("a", "S0")]),
        ),
        *(np.array(["a"], dtype=np.dtypes.StringDType()), np.longdouble(1), np.longlong(1)),
        *(np.zeros(2, [("a", "S0")])[0], np.zeros(2, np.dtype([(("title", "a"), "i1")]))),
    ],
    ids=lambda array: str(array.dtype)[:30],
)
def test_an_array_that_raw_bytes_cannot_say_is_kept_or_refused_with_an_error_of_the_tree(
    array: Any,
) -> None:
    """Objects, padding, titles and platform types are refused; nothing else ever comes out."""
    try:
        data = REGISTRY.encode([array])
    except EncodeError:
        return

    assert same([array], REGISTRY.decode(data))


def test_too_many_dimensions_are_refused_when_saving() -> None:
    """What could not be loaded is not saved, alone and inside of others."""
    registry = Registry(limits=Limits(array_dimensions_max=2, array_elements_max=1000))

    for value in (np.zeros((1, 1, 1)), torch.zeros(1, 1, 1), np.zeros(1001), np.zeros(100_000)):
        for placed in (value, [value]):
            with pytest.raises(EncodeLimitExceeded):
                registry.encode(placed)
            with pytest.raises(EncodeLimitExceeded):
                registry.encode_tree(placed, Blobs().put)


@pytest.mark.parametrize(
    "tensor",
    [
        *(torch.zeros(()), torch.zeros(0, 3), torch.arange(6).reshape(2, 3).T),
        *(torch.ones(3, requires_grad=True), torch.tensor([1 + 2j]).conj(), torch.tensor([True])),
        *(torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.uint16)),
        *(torch.full((2,), float("nan")), torch.ones(4)[1:3], torch.zeros(20_000)),
    ],
    ids=lambda tensor: f"{tensor.dtype}{tuple(tensor.shape)}",
)
def test_tensors_come_back_the_same(tensor: torch.Tensor) -> None:
    """Any dense tensor on the CPU comes back, with its flag for gradients."""
    blobs = Blobs()
    plain = tensor if tensor.requires_grad else tensor.resolve_conj()

    assert same(plain, _loaded(tensor))
    from_tree = REGISTRY.decode_tree(REGISTRY.encode_tree([tensor], blobs.put), blobs.get)[0]
    assert same(plain, from_tree)
    assert _loaded(tensor).detach().zero_().numel() == tensor.numel()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.eye(2).to_sparse(),
        torch.ones(2, requires_grad=True) * 2,
        torch.zeros(2).to(torch.float8_e4m3fn),
        torch.zeros(2, device="meta"),
    ],
    ids=["sparse", "in a graph", "float8", "meta"],
)
def test_a_tensor_that_raw_bytes_cannot_say_is_refused(tensor: torch.Tensor) -> None:
    """Sparse, remote and computed tensors are refused with a reason."""
    with pytest.raises(ValueNotAllowed, match="torch tensor"):
        REGISTRY.encode([tensor])


def test_a_parameter_is_not_flattened_to_a_tensor() -> None:
    """Subclasses of Tensor and ndarray need a rule."""
    with pytest.raises(TypeNotAllowed, match="Parameter"):
        REGISTRY.encode(torch.nn.Parameter(torch.zeros(1)))


def test_a_gradient_is_not_lost_silently() -> None:
    """A tensor that carries a gradient beside its data is kept whole or refused."""
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.ones(2)

    try:
        data = REGISTRY.encode(tensor)
    except ValueNotAllowed:
        return
    assert REGISTRY.decode(data).grad is not None


def test_arrays_do_not_load_their_library() -> None:
    """Without numpy or torch loaded, their bytes are refused with what to do."""
    program = (
        "import sys\n"
        "from sealpoint import Registry\n"
        "from sealpoint.errors import UnknownType\n"
        "for data in sys.argv[1:]:\n"
        "    try:\n"
        "        Registry().decode(bytes.fromhex(data))\n"
        "    except UnknownType as error:\n"
        "        print('pip install' in error.hint)\n"
        "print('numpy' in sys.modules or 'torch' in sys.modules)\n"
    )
    values = [np.zeros(2), np.float32(1), torch.zeros(2)]
    arguments = [REGISTRY.encode(value).hex() for value in values]

    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True
    )

    assert done.stdout.split() == ["True", "True", "True", "False"]
