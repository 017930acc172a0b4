# SPDX-License-Identifier: Apache-2.0
"""Files of a few hundred bytes that ask for much memory or much time."""

import struct
import time

import pytest
import torch

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DIMENSIONS_MAX, MODEL_EXPANDED_BYTES_LEAST
from tests.pt_files import (
    EMPTY,
    call,
    dictionary,
    integer,
    listed,
    named,
    ours,
    pickled,
    saved,
    stock,
    storage,
    tensor,
    text,
    tupled,
)
from tests.scan.irregular import stream, stream_part

_MODULUS = (1 << 61) - 1
_MEBIBYTE = 1 << 20


def test_bytearray_of_a_number_is_refused() -> None:
    """Torch makes as many bytes as the number says; here a bytearray is made of bytes."""
    data = pickled(call("__builtin__", "bytearray", integer(16 * _MEBIBYTE)))

    assert len(stock(data)) == 16 * _MEBIBYTE
    with pytest.raises(ModelMalformed, match="bytearray in the form that it is written in"):
        ours(data)


def test_repeated_elements_are_bounded() -> None:
    """Torch returns a tensor of 4 TB over 4 bytes, and the first copy of it fails; here nothing."""
    data = pickled(tensor(storage("FloatStorage", "0", 1), [1 << 40], [0]), {"0": b"\0" * 4})

    assert stock(data).numel() == 1 << 40
    with pytest.raises(ModelLimitExceeded, match=f"at most {MODEL_EXPANDED_BYTES_LEAST} bytes"):
        ours(data)


def test_dimensions_are_bounded() -> None:
    """More dimensions than operations are made for are refused."""
    sides = [1] * (MODEL_DIMENSIONS_MAX + 1)
    data = pickled(tensor(storage("FloatStorage", "0", 1), sides, sides), {"0": b"\0" * 4})

    with pytest.raises(ModelLimitExceeded, match=f"at most {MODEL_DIMENSIONS_MAX} dimensions"):
        ours(data)


@pytest.mark.parametrize("kind", ["dict", "set", "OrderedDict", "Counter"])
def test_keys_that_share_a_hash_are_refused(kind: str) -> None:
    """Torch takes the square of their number to build the table; here they are counted first."""
    keys = [integer(index * _MODULUS) for index in range(3000)]
    items = dictionary(*((key, b"N") for key in keys))
    program = {
        "dict": items,
        "set": call("__builtin__", "set", listed(*keys)),
        "OrderedDict": b"ccollections\nOrderedDict\n)R" + items[1:],
        "Counter": call("collections", "Counter", items),
    }[kind]
    data = pickled(program)

    assert len(stock(data)) == 3000
    begin = time.process_time()
    with pytest.raises(ModelLimitExceeded, match="keys of one hash"):
        ours(data)
    assert time.process_time() - begin < 1


def test_honest_twins_load() -> None:
    """The control: bytes, repeated elements and int keys within bounds load with both."""
    value = [
        bytearray(b"abc"),
        torch.ones(1).expand(1000),
        dict.fromkeys(range(3000)),
        set(range(3000)),
    ]
    data = saved(value)
    loaded, expected = ours(data), stock(data)

    assert loaded[0] == expected[0]
    assert torch.equal(loaded[1], expected[1])
    assert loaded[1].stride() == (0,)
    assert loaded[2:] == expected[2:]


def test_text_as_long_as_it_says_loads() -> None:
    """The control: a length that is there is no bomb, one that is not is refused."""
    assert ours(pickled(text("a" * _MEBIBYTE))) == "a" * _MEBIBYTE
    with pytest.raises(ModelMalformed, match="each argument to end inside"):
        ours(pickled(b"X" + struct.pack("<L", (1 << 32) - 1) + b"a"))


def _remembered(value: bytes, number: int) -> tuple[bytes, bytes]:
    """A value that is made, and the same one again."""
    index = struct.pack("<L", number)
    return value + b"r" + index, b"j" + index


def test_repeated_scales_are_bounded() -> None:
    """Torch copies 128 MiB of scales and zero points for each quantized tensor without elements."""
    side = 8 * _MEBIBYTE
    scales = _remembered(tensor(storage("DoubleStorage", "0", 1), [side], [0]), 1)
    zeros = _remembered(tensor(storage("LongStorage", "1", 1), [side], [0]), 2)

    def quantized(turn: int) -> bytes:
        quantizer = tupled(
            named("torch", "per_channel_affine"), scales[turn], zeros[turn], integer(0)
        )
        sides = tupled(integer(side), integer(0)), tupled(integer(0), integer(1))
        held = storage("QInt8Storage", "2", 1)
        return call(
            *("torch._utils", "_rebuild_qtensor", held, integer(0), *sides),
            *(quantizer, b"\x89", EMPTY),
        )

    records = {"0": struct.pack("<d", 1.0), "1": bytes(8), "2": bytes(1)}

    with pytest.raises(ModelLimitExceeded, match="in copies"):
        ours(pickled(listed(quantized(0), *[quantized(1)] * 100), records))


def test_repeated_indices_are_bounded() -> None:
    """Each of many sparse tensors would have the same 64 MiB of indices looked at."""
    count = 8 * _MEBIBYTE
    indices = _remembered(tensor(storage("LongStorage", "0", 1), [1, count], [0, 0]), 1)
    values = _remembered(tensor(storage("CharStorage", "1", 1), [count], [0]), 2)

    def sparse(turn: int) -> bytes:
        layout = call("torch.serialization", "_get_layout", text("torch.sparse_coo"))
        parts = tupled(indices[turn], values[turn], tupled(integer(1)), b"\x89")
        return call("torch._utils", "_rebuild_sparse_tensor", layout, parts)

    data = pickled(listed(sparse(0), *[sparse(1)] * 1000), {"0": bytes(8), "1": bytes(1)})

    with pytest.raises(ModelLimitExceeded, match="in sparse indices"):
        ours(data)


def test_sides_beside_a_side_of_0_are_bounded() -> None:
    """What torch makes of an empty tensor, such as a sum over the empty side, is not empty."""
    data = pickled(
        tensor(storage("FloatStorage", "0", 1), [0, 1 << 62, 1 << 62], [1, 1, 1]), {"0": bytes(4)}
    )

    assert stock(data).numel() == 0
    with pytest.raises(ModelLimitExceeded, match="expected at most 1099511627776 elements"):
        ours(data)


@pytest.mark.parametrize("kind", ["bytes", "bytearray", "array"])
def test_one_text_is_not_copied_without_end(kind: str) -> None:
    """One text of a mebibyte that hundreds of values are made of does not fill the memory."""
    held = _remembered(text("a" * _MEBIBYTE), 1)
    encoded = call("_codecs", "encode", held[1], text("latin1"))
    shared = _remembered(encoded, 2)
    number = call("numpy", "dtype", text("u1"), b"\x89", b"\x88") + tupled(
        *(integer(3), text("|"), b"NNN", integer(-1), integer(-1), integer(0))
    )
    array = call(
        "numpy._core.numeric",
        "_frombuffer",
        *(shared[1], number + b"b", tupled(integer(_MEBIBYTE)), text("C")),
    )
    again = {
        "bytes": encoded,
        "bytearray": call("__builtin__", "bytearray", shared[1]),
        "array": array,
    }[kind]

    assert len(ours(pickled(listed(held[0], shared[0], again)))) == 3
    with pytest.raises(ModelLimitExceeded, match="not much larger than the file"):
        ours(pickled(listed(held[0], shared[0], *[again] * 300)))


def test_a_path_is_as_long_as_paths_are() -> None:
    """A path of a mebibyte would be taken apart each time, for half a second."""
    with pytest.raises(ModelMalformed, match="PosixPath in the form that it is written in"):
        ours(pickled(call("pathlib", "PosixPath", text("a/" * _MEBIBYTE))))


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_parts_of_a_storage_are_not_copied() -> None:
    """Any number of parts of one storage take the memory of one, as with torch."""
    parts = [stream_part(f"part {begin}", begin, 4 - begin) for begin in range(1, 4)]
    whole, *found = ours(stream(listed(storage("FloatStorage", "0", 4), *parts)))
    whole[3] = 7.0

    assert [part.tolist() for part in found] == [[0.0, 0.0, 7.0], [0.0, 7.0], [7.0]]
    assert [part.data_ptr() - whole.data_ptr() for part in found] == [4, 8, 12]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_part_of_a_storage_without_memory_has_none() -> None:
    """Where tensors are only described, parts are as well."""
    found = ours(stream(stream_part("part", 1, 2)), "meta")

    assert found.device.type == "meta"
    assert found.nbytes() == 8
