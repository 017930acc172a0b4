# SPDX-License-Identifier: Apache-2.0
"""What the judge says about each call that is not in the form torch writes."""

import pytest
import torch

from sealpoint.errors import GlobalNotAllowed, ModelError, ModelMalformed, RecordMismatch
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

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

_HELD = storage("FloatStorage", "0", 2)
_PLACE = (integer(0), tupled(integer(2)), tupled(integer(1)))
_TWO = tensor(_HELD, [2], [1])
_BYTES = call("_codecs", "encode", text("k"), text("latin1"))


def _v2(*arguments: bytes) -> bytes:
    return call("torch._utils", "_rebuild_tensor_v2", *arguments)


def _v3(held: bytes, dtype: bytes) -> bytes:
    return call("torch._utils", "_rebuild_tensor_v3", held, *_PLACE, b"\x89", EMPTY, dtype)


def _layout(name: str) -> bytes:
    return call("torch.serialization", "_get_layout", text(name))


def _sparse(*arguments: bytes) -> bytes:
    return call("torch._utils", "_rebuild_sparse_tensor", *arguments)


def _bits(value: bytes) -> bytes:
    return _v2(_HELD, *_PLACE, b"\x89", EMPTY, value)


_SIZE = call("torch", "Size", tupled(integer(2), integer(2)))
_COO = _layout("torch.sparse_coo")
_CSR = _layout("torch.sparse_csr")

_MALFORMED = {
    # Plain data.
    "items in a tensor": _TWO + integer(1) + integer(2) + b"s",
    "items in a size": _SIZE + integer(1) + integer(2) + b"s",
    "a state of a set": call("__builtin__", "set", listed()) + b"}b",
    "an OrderedDict of something": call("collections", "OrderedDict", dictionary()),
    "two attributes of an OrderedDict": EMPTY
    + dictionary((text("_metadata"), EMPTY), (text("b"), EMPTY))
    + b"b",
    "metadata that is no dict": EMPTY + dictionary((text("_metadata"), integer(1))) + b"b",
    "a state that is no dict": EMPTY + b"Nb",
    "a Counter of a list": call("collections", "Counter", listed()),
    "a Counter of nothing": call("collections", "Counter"),
    "a set of a text": call("__builtin__", "set", text("abc")),
    "a set of a dict": call("__builtin__", "set", dictionary((integer(1), integer(2)))),
    "a complex of ints": call("__builtin__", "complex", integer(1), integer(2)),
    "a complex of a text": call("__builtin__", "complex", text("1+2j")),
    "bytes in another encoding": call("_codecs", "encode", text("a"), text("utf-8")),
    "bytes by a codec that runs code": call("_codecs", "encode", text("a"), text("unicode_escape")),
    "bytes without encoding": call("_codecs", "encode", text("a")),
    "bytes that are none": call("_codecs", "encode", text("€"), text("latin1")),
    "a bytearray of a list": call("__builtin__", "bytearray", listed(integer(1))),
    "a bytearray in another encoding": call("__builtin__", "bytearray", text("a"), text("utf-16")),
    "a bytearray that is none": call("__builtin__", "bytearray", text("€"), text("latin-1")),
    "a size of a list": call("torch", "Size", listed(integer(1))),
    "a size of bools": call("torch", "Size", tupled(b"\x88")),
    "a size beyond 64 bits": call("torch", "Size", tupled(integer(1 << 63))),
    "a device by its number": call("torch", "device", integer(1)),
    "a device with a wrong index": call("torch", "device", text("cuda"), integer(1 << 40)),
    "a device with a bool": call("torch", "device", text("cuda"), b"\x88"),
    "a device with a wrong name": call("torch", "device", text("../cpu")),
    "a device that torch takes for another one": call("torch", "device", text("cuda:256")),
    "a device with two indices": call("torch", "device", text("cuda:0"), integer(0)),
    "one device twice": dictionary(
        (call("torch", "device", text("cuda:0")), b"N"),
        (call("torch", "device", text("cuda"), integer(0)), b"N"),
    ),
    "a layout that is none": _layout("torch.load"),
    "a layout by its number": call("torch.serialization", "_get_layout", integer(1)),
    "a key twice": dictionary((text("a"), b"N"), (text("a"), b"N")),
    "equal keys of two types": dictionary((integer(1), b"N"), (b"\x88", b"N")),
    "a key twice, as bytes": dictionary((_BYTES, b"N"), (_BYTES, b"N")),
    "a member twice": call("__builtin__", "set", listed(integer(1), integer(1))),
    "a list as a key": dictionary((listed(), b"N")),
    "a tensor as a key": dictionary((_TWO, b"N")),
    "a class as a key": dictionary((named("collections", "OrderedDict"), b"N")),
    "a complex of texts as a key": dictionary(
        (call("__builtin__", "complex", text("1"), text("2")), b"N")
    ),
    "a tuple in tuples as a key": dictionary((b"N" + b"\x85" * 10, b"N")),
    # Tensors.
    "too few arguments": _v2(_HELD, *_PLACE),
    "too many arguments": _v2(_HELD, *_PLACE, b"\x89", EMPTY, b"}", b"N"),
    "no storage": _v2(text("x"), *_PLACE, b"\x89", EMPTY),
    "a storage by its number": _v2(integer(1) + b"Q", *_PLACE, b"\x89", EMPTY),
    "a storage of four parts": _v2(tupled(*[text("storage")] * 4) + b"Q", *_PLACE, b"\x89", EMPTY),
    "another kind of reference": _v2(
        _HELD.replace(text("storage"), text("modules")), *_PLACE, b"\x89", EMPTY
    ),
    "a storage without class": _v2(
        tupled(text("storage"), text("x"), text("0"), text("cpu"), integer(2)) + b"Q",
        *(*_PLACE, b"\x89", EMPTY),
    ),
    "a wrong location": tensor(storage("FloatStorage", "0", 2, "cpu/../x"), [2], [1]),
    "a location on meta": tensor(storage("FloatStorage", "0", 2, "meta:0"), [2], [1]),
    "a negative offset": _v2(_HELD, integer(-1), *_PLACE[1:], b"\x89", EMPTY),
    "a bool as offset": _v2(_HELD, b"\x88", *_PLACE[1:], b"\x89", EMPTY),
    "a negative side": tensor(_HELD, [-1], [1]),
    "a negative stride": tensor(_HELD, [2], [-1], 1),
    "fewer strides than sides": tensor(_HELD, [2, 1], [1]),
    "a size that is none": _v2(_HELD, integer(0), listed(), tupled(), b"\x89", EMPTY),
    "a torch.Size as size": _v2(_HELD, integer(0), _SIZE, tupled(), b"\x89", EMPTY),
    "a stride that is none": _v2(_HELD, integer(0), tupled(), listed(), b"\x89", EMPTY),
    "a gradient that is no bool": _v2(_HELD, *_PLACE, integer(1), EMPTY),
    "hooks that are a number": _v2(_HELD, *_PLACE, b"\x89", integer(0)),
    "hooks in a dict": _v2(_HELD, *_PLACE, b"\x89", b"}"),
    "a gradient of ints": tensor(storage("LongStorage", "0", 1), [1], [1]).replace(
        b"\x89" + EMPTY, b"\x88" + EMPTY
    ),
    "a conjugate of floats": _bits(dictionary((text("conj"), b"\x88"))),
    "an unknown bit": _bits(dictionary((text("fast"), b"\x88"))),
    "a bit that is no bool": _bits(dictionary((text("neg"), integer(1)))),
    "a bit twice": _bits(dictionary((text("neg"), b"\x88"), (text("neg"), b"\x88"))),
    "bits in a list": _bits(listed()),
    "a quantized storage": tensor(storage("QInt8Storage", "0", 8), [2], [1]),
    "a storage of bytes without a type": tensor(storage("UntypedStorage", "0", 8), [2], [1]),
    "a type that is none": _v3(storage("UntypedStorage", "0", 8), text("float32")),
    "a type on a storage of a type": _v3(_HELD, named("torch", "float32")),
    "a quantized type": _v3(storage("UntypedStorage", "0", 8), named("torch", "qint8")),
    "a quantizer of floats": call(
        "torch._utils", "_rebuild_qtensor", _HELD, *_PLACE, tupled(), b"\x89", EMPTY
    ),
    "a quantized tensor of too few": call("torch._utils", "_rebuild_qtensor", _HELD),
    "no quantizer": call(
        "torch._utils",
        "_rebuild_qtensor",
        storage("QInt8Storage", "0", 8),
        *_PLACE,
        tupled(),
        b"\x89",
        EMPTY,
    ),
    "scales that are ints": call(
        "torch._utils",
        "_rebuild_qtensor",
        storage("QInt8Storage", "0", 8),
        integer(0),
        tupled(integer(1)),
        tupled(integer(1)),
        tupled(
            named("torch", "per_channel_affine"),
            *[tensor(storage("LongStorage", "1", 1), [1], [1])] * 2,
            integer(0),
        ),
        b"\x89",
        EMPTY,
    ),
    "a sparse tensor of quantized values": _sparse(
        _COO,
        tupled(
            tensor(storage("LongStorage", "1", 1), [1, 1], [1, 1]),
            call(
                "torch._utils",
                "_rebuild_qtensor",
                storage("QInt8Storage", "0", 8),
                integer(0),
                tupled(integer(1)),
                tupled(integer(1)),
                tupled(named("torch", "per_tensor_affine"), b"G" + bytes(8), integer(0)),
                b"\x89",
                EMPTY,
            ),
            tupled(integer(2)),
        ),
    ),
    "a parameter of nothing": call("torch._utils", "_rebuild_parameter", b"N", b"\x89", EMPTY),
    "a parameter of too few": call("torch._utils", "_rebuild_parameter", _TWO),
    "a parameter of a parameter": call(
        "torch._utils",
        "_rebuild_parameter",
        call("torch._utils", "_rebuild_parameter", _TWO, b"\x89", EMPTY),
        b"\x89",
        EMPTY,
    ),
    "a sparse tensor without parts": _sparse(_COO),
    "a sparse tensor of a list": _sparse(_COO, listed()),
    "a sparse tensor without layout": _sparse(text("torch.sparse_coo"), tupled(_TWO, _TWO, _SIZE)),
    "a sparse tensor that is dense": _sparse(_layout("torch.strided"), tupled(_TWO, _TWO, _SIZE)),
    "a sparse tensor of two parts": _sparse(_COO, tupled(_TWO, _TWO)),
    "a compressed tensor of three parts": _sparse(_CSR, tupled(_TWO, _TWO, _SIZE)),
    "a sparse tensor with a wrong flag": _sparse(_COO, tupled(_TWO, _TWO, _SIZE, integer(1))),
    "a sparse tensor with float indices": _sparse(_COO, tupled(_TWO, _TWO, _SIZE)),
    "a sparse tensor without size": _sparse(_COO, tupled(_TWO, _TWO, b"N")),
}


@pytest.mark.parametrize("program", _MALFORMED.values(), ids=_MALFORMED)
def test_call_that_torch_does_not_write_is_refused(program: bytes) -> None:
    """The message names the file and what was expected."""
    with pytest.raises(ModelMalformed, match=r"^m\.pt: expected") as caught:
        ours(pickled(program, {"0": b"\0" * 8, "1": b"\0" * 8}))
    assert "unused" not in str(caught.value)


_OTHERS: dict[str, tuple[bytes, type[ModelError]]] = {
    "a storage of an unknown class": (
        tensor(storage("QUInt4x2Storage", "0", 8), [2], [1]),
        GlobalNotAllowed,
    ),
    "a type of which several share a byte": (
        listed(_TWO, named("torch", "bits4x2")),
        GlobalNotAllowed,
    ),
    "a sparse tensor whose parts do not fit": (
        _sparse(
            _COO,
            tupled(
                tensor(storage("LongStorage", "0", 1), [1, 1], [1, 1]),
                tensor(storage("FloatStorage", "1", 2), [2], [1]),
                _SIZE,
            ),
        ),
        RecordMismatch,
    ),
    "a compressed tensor whose parts do not fit": (
        _sparse(
            _CSR,
            tupled(
                *[tensor(storage("LongStorage", "0", 1), [1], [1])] * 2,
                tensor(storage("FloatStorage", "1", 2), [2], [1]),
                _SIZE,
            ),
        ),
        RecordMismatch,
    ),
}


@pytest.mark.parametrize(("program", "error"), _OTHERS.values(), ids=_OTHERS)
def test_each_refusal_has_its_class(program: bytes, error: type[ModelError]) -> None:
    """Names, and sizes that do not fit, are told apart from what is malformed."""
    with pytest.raises(error, match=r"^m\.pt: "):
        ours(pickled(program, {"0": b"\0" * 8, "1": b"\0" * 8}))


_ACCEPTED = {
    "a size as a tuple in a sparse tensor": _sparse(
        _COO,
        tupled(
            tensor(storage("LongStorage", "0", 1), [1, 1], [1, 1]),
            tensor(storage("FloatStorage", "1", 2), [1], [1]),
            tupled(integer(2)),
        ),
    ),
    "a negative bit": listed(
        _bits(dictionary((text("neg"), b"\x88"))), tensor(storage("FloatStorage", "1", 2), [2], [1])
    ),
    "a tensor that is part of two values": b"("
    + (_TWO + b"q\x00")
    + call("torch._utils", "_rebuild_parameter", b"h\x00", b"\x89", EMPTY)
    + tensor(storage("FloatStorage", "1", 2), [2], [1])
    + b"t",
    "a text of the old form": listed(
        b"U\x02ab", _TWO, tensor(storage("FloatStorage", "1", 2), [2], [1])
    ),
}


@pytest.mark.parametrize("program", _ACCEPTED.values(), ids=_ACCEPTED)
def test_rarer_forms_are_accepted(program: bytes) -> None:
    """What torch accepts and has written is accepted."""
    data = pickled(program, {"0": b"\0" * 8, "1": b"\0" * 8})

    assert repr(ours(data)) == repr(stock(data))


def test_values_that_are_shared_are_judged_once() -> None:
    """A tensor, list and dict that are used twice are the same object afterwards."""
    held, numbers, items = torch.ones(2), [1], {"a": 1.5}
    loaded = ours(saved([held, held, numbers, numbers, items, items]))

    assert all(loaded[index] is loaded[index + 1] for index in (0, 2, 4))
    assert isinstance(loaded[0], torch.Tensor)
