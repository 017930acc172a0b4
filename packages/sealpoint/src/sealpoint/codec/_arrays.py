# SPDX-License-Identifier: Apache-2.0
"""numpy arrays and scalars, torch tensors: raw bytes with a checked type, shape and length.

A payload is a length-framed header (element type, shape), then the raw bytes in C order as one
value. A closed grammar checks element types before numpy sees them; object arrays have none. Shape
and length are compared in integer arithmetic before anything is allocated. This module imports
neither library: decoding only uses a library that is already loaded.
"""

import math
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import ormsgpack

from sealpoint.codec._wire_format import Packer, Tag, Unpacker
from sealpoint.errors import (
    BytesMalformed,
    DecodeLimitExceeded,
    EncodeLimitExceeded,
    UnknownType,
    ValueNotAllowed,
)
from sealpoint.limits import Limits

_T = TypeVar("_T")
Raw = bytes | memoryview
Spec = str | list[Any]

_ELEMENT = re.compile(
    r"\|b1|[<>|][iu][1248]|[<>]f[248]|[<>]c(8|16)|\|S[1-9]\d{0,8}|[<>]U[1-9]\d{0,8}"
    r"|[<>][mM]8(\[([1-9]\d{0,8})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
)
_INLINE = (b"\xc4", b"\xc5", b"\xc6")
_SCALAR_BYTES, _SCALAR_TEXT = "bytes", "text"
_CODE_POINT_MAX = 0x10FFFF
_TENSOR_ELEMENTS = {
    name: size
    for size, names in {
        1: ("bool", "uint8", "int8"),
        2: ("float16", "bfloat16", "int16", "uint16"),
        4: ("float32", "int32", "uint32"),
        8: ("float64", "int64", "uint64", "complex64"),
        16: ("complex128",),
    }.items()
    for name in names
}


def find_encoder(kind: type) -> tuple[Tag, Callable[[Any, Packer], bytes]] | None:
    """Return the encoder for a numpy or torch type, or None if it has none."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if kind is numpy.ndarray:
            return Tag.ARRAY, _encode_array
        if issubclass(kind, numpy.generic):
            return Tag.ARRAY_SCALAR, _encode_array_scalar
    torch = sys.modules.get("torch")
    if torch is not None and kind is getattr(torch, "Tensor", None):
        return Tag.TENSOR, _encode_tensor
    return None


def is_key_scalar(value: Any) -> bool:
    """Whether a value is a numpy scalar that can be a key; records do not have numpy's own hash."""
    found = find_encoder(type(value))
    return found is not None and found[0] is Tag.ARRAY_SCALAR and value.dtype.kind != "V"


def _loaded(name: str) -> Any:
    module = sys.modules.get(name)
    if module is None:
        raise UnknownType(
            f"{name}: expected it to be imported, since the value holds its arrays",
            hint=f"Import {name} before loading; pip install 'sealpoint[{name}]' if it is missing.",
        )
    return module


def _framed(header: list[Any]) -> bytes:
    try:
        data = ormsgpack.packb(header)
    except ormsgpack.MsgpackEncodeError as exc:
        raise ValueNotAllowed(
            "numpy dtype: expected names and nesting that can be written"
        ) from exc
    if len(data) >= 1 << 16:
        raise ValueNotAllowed(f"numpy dtype: expected under 65536 bytes, found {len(data)}")
    return len(data).to_bytes(2, "big") + data


def _unframed(payload: Raw, length: int) -> tuple[list[Any], Raw]:
    """Return the header of `length` parts, and the bytes after it."""
    end = 2 + int.from_bytes(payload[:2], "big")
    data = bytes(payload[2:end])
    header = ormsgpack.unpackb(data)
    if type(header) is not list or len(header) != length or ormsgpack.packb(header) != data:
        raise BytesMalformed(f"array: expected a header of {length} parts")
    return header, payload[end:]


def _checked_shape(shape: object, element_bytes: int, session: Unpacker) -> int:
    """Return the length in bytes that a shape requires, if the shape is within bounds."""
    if type(shape) is not list or any(type(side) is not int or side < 0 for side in shape):
        raise BytesMalformed("array: expected a shape of whole numbers")
    if (fault := _shape_fault(shape, session.limits)) is not None:
        raise DecodeLimitExceeded(fault)
    return math.prod(shape) * element_bytes


def _inline_raw(rest: Raw, expected_bytes: int, session: Unpacker) -> Raw | None:
    """Return the raw bytes after a header, without a copy if they are long; None: a reference."""
    if rest[:1] not in _INLINE:
        return None
    if rest[:1] == b"\xc6" and int.from_bytes(rest[1:5], "big") == len(rest) - 5:
        raw: Any = memoryview(rest)[5:]
    else:
        raw = session.unpack(rest)
    check_raw(raw, expected_bytes)
    return raw  # type: ignore[no-any-return]


def check_raw(raw: object, expected_bytes: int) -> None:
    """Refuse anything other than this many raw bytes."""
    # Not isinstance, which reads `__class__` from an object of another type.
    if type(raw) is not bytes and type(raw) is not memoryview:
        found = type(raw).__name__
    elif len(raw) != expected_bytes:
        found = f"{len(raw)} bytes"
    else:
        return
    raise BytesMalformed(f"array: expected {expected_bytes} bytes, found {found}")


def _filled(
    rest: Raw,
    size_bytes: int,
    session: Unpacker,
    make: Callable[[], _T],
    view: Callable[[_T], memoryview],
) -> _T:
    """Check the length of a reference, then allocate the array and fill it with its bytes."""
    made: list[_T] = []

    def allocate() -> memoryview:
        made.append(make())
        return view(made[0])

    session.unpack_into(rest, size_bytes, allocate)
    return made[0]


def _array_bytes(array: Any) -> memoryview:
    return array.reshape(-1).view("u1").data  # type: ignore[no-any-return]


def _spec_of(dtype: Any, numpy: Any) -> Spec:
    if dtype.names is None:
        spec: Spec = dtype.str
    else:
        spec = []
        for name in dtype.names:
            field = dtype[name]
            base, dims = field.subdtype or (field, ())
            spec.append([name, _spec_of(base, numpy), list(dims)])
    try:
        again = _dtype_of(spec, numpy)
        same = again == dtype and dtype.metadata is None
        same = same and (dtype.names is None or again.type is dtype.type)
    except (BytesMalformed, ValueError, RecursionError):
        same = False
    if not same:
        raise ValueNotAllowed(
            f"numpy dtype: expected booleans, numbers, times, fixed texts or packed records of "
            f"them, found {str(dtype)[:80]}",
            hint="Save a list, or convert with .astype() to a packed dtype without objects.",
        )
    return spec


def _dtype_of(spec: object, numpy: Any) -> Any:
    """Return the dtype of a spec; only texts of the closed grammar ever reach numpy."""
    if type(spec) is str and _ELEMENT.fullmatch(spec):
        dtype = numpy.dtype(spec)
        if dtype.str == spec:
            return dtype
    if type(spec) is list and spec:
        return numpy.dtype([_dtype_field(part, numpy) for part in spec])
    raise BytesMalformed("array: expected a known element type")


def _dtype_field(part: Any, numpy: Any) -> tuple[str, Any, tuple[int, ...]]:
    """Return one field of a record: its name, dtype and shape."""
    if type(part) is list and len(part) == 3:
        name, spec, sides = part
        good = type(name) is str and name and type(sides) is list
        good = good and all(type(side) is int and side > 0 for side in sides)
        if good and math.prod(sides) < 1 << 31:
            return name, _dtype_of(spec, numpy), tuple(sides)
    raise BytesMalformed("array: expected a known element type")


def _check_elements(array: Any, numpy: Any) -> None:
    """Refuse invalid bit patterns: booleans other than 0 and 1, and characters out of range."""
    dtype = array.dtype
    if dtype.names is not None:
        for name in dtype.names:
            _check_elements(array[name], numpy)
    elif array.size and dtype.kind == "b" and array.view("u1").max() > 1:
        raise BytesMalformed("array: expected booleans of 0 or 1")
    elif array.size and dtype.kind == "U" and dtype.itemsize:
        codes = numpy.ascontiguousarray(array).reshape(-1).view(dtype.byteorder + "u4")
        if codes.max() > _CODE_POINT_MAX:
            raise BytesMalformed("array: expected Unicode code points")


def array_parts(array: Any) -> tuple[bytes, memoryview]:
    """Return an array's framed header, and its raw bytes, copied only if not in C order."""
    numpy = _loaded("numpy")
    header = _framed([_spec_of(array.dtype, numpy), list(array.shape)])
    if array.nbytes == 0:
        return header, memoryview(b"")
    try:
        _check_elements(array, numpy)
    except BytesMalformed as exc:
        raise ValueNotAllowed(exc.message) from None
    return header, _array_bytes(numpy.ascontiguousarray(array))


def _shape_fault(shape: Sequence[int], limits: Limits) -> str | None:
    if len(shape) > limits.array_dimensions_max:
        return (
            f"array: expected at most {limits.array_dimensions_max} dimensions "
            f"(array_dimensions_max), found {len(shape)}"
        )
    elements = math.prod(max(side, 1) for side in shape)
    if elements > limits.array_elements_max:
        return (
            f"array: expected at most {limits.array_elements_max} elements "
            f"(array_elements_max), found {elements}"
        )
    return None


def check_shape(shape: Sequence[int], session: Packer) -> None:
    """Refuse an array that could not be read back."""
    if (fault := _shape_fault(shape, session.limits)) is not None:
        raise EncodeLimitExceeded(fault)


def _encode_array(value: Any, session: Packer) -> bytes:
    check_shape(value.shape, session)
    header, raw = array_parts(value)
    return header + session.pack_raw(raw)


def decode_array(payload: Raw, session: Unpacker) -> Any:
    """Return a writable array with its own memory."""
    numpy = _loaded("numpy")
    (spec, shape), rest = _unframed(payload, 2)
    dtype = _dtype_of(spec, numpy)
    size_bytes = _checked_shape(shape, dtype.itemsize, session)
    raw = _inline_raw(rest, size_bytes, session)
    if raw is None:
        make = partial(numpy.empty, shape, dtype)
        array = _filled(rest, size_bytes, session, make, _array_bytes)
    elif size_bytes == 0:
        return numpy.zeros(shape, dtype)
    else:
        array = numpy.frombuffer(raw, dtype).reshape(shape).copy()
    _check_elements(array, numpy)
    return array


def _encode_array_scalar(value: Any, session: Packer) -> bytes:
    numpy = _loaded("numpy")
    if type(value) is numpy.bytes_:  # as Python's own type: numpy's elements lose trailing NULs
        return _framed([_SCALAR_BYTES]) + session.pack(bytes(value))
    if type(value) is numpy.str_:
        return _framed([_SCALAR_TEXT]) + session.pack(str.encode(value, "utf-8", "surrogatepass"))
    spec = _spec_of(value.dtype, numpy)
    if _dtype_of(spec, numpy).type is not type(value):
        raise ValueNotAllowed(
            f"numpy scalar: expected a fixed-width type, found {type(value).__name__}",
            hint="Use the type of the same width, such as numpy.int64.",
        )
    return _framed([spec]) + session.pack(value.tobytes())


def decode_array_scalar(payload: Raw, session: Unpacker) -> Any:
    """Return a numpy scalar."""
    numpy = _loaded("numpy")
    (spec,), rest = _unframed(payload, 1)
    if spec in (_SCALAR_BYTES, _SCALAR_TEXT):
        data = session.unpack(rest)
        if type(data) is not bytes:
            raise BytesMalformed("numpy scalar: expected bytes")
        if spec == _SCALAR_BYTES:
            return numpy.bytes_(data)
        return numpy.str_(data.decode("utf-8", "surrogatepass"))
    dtype = _dtype_of(spec, numpy)
    if dtype.kind in "SU":
        raise BytesMalformed("numpy scalar: expected a string as bytes")
    raw = _inline_raw(rest, dtype.itemsize, session)
    if raw is None:
        make = partial(numpy.empty, 1, dtype)
        array = _filled(rest, dtype.itemsize, session, make, _array_bytes)
    else:
        array = numpy.frombuffer(raw, dtype).copy()
    _check_elements(array, numpy)
    return array[0]


def tensor_parts(tensor: Any) -> tuple[bytes, memoryview]:
    """Return a tensor's framed header and raw bytes; refuse what raw bytes cannot express."""
    torch = _loaded("torch")
    element = str(tensor.dtype).removeprefix("torch.")
    plain = tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested
    if not plain or element not in _TENSOR_ELEMENTS:
        raise ValueNotAllowed(
            f"torch tensor: expected a dense tensor of numbers, found {element} as {tensor.layout}"
        )
    if tensor.device.type != "cpu":
        raise ValueNotAllowed(
            f"torch tensor: expected it on the CPU, found it on {tensor.device}",
            hint="Save tensor.cpu() and move it back after loading.",
        )
    if tensor.requires_grad and not tensor.is_leaf:
        raise ValueNotAllowed(
            "torch tensor: expected a leaf, found a result that is part of a graph",
            hint="Save tensor.detach().",
        )
    if tensor.grad is not None:
        raise ValueNotAllowed(
            "torch tensor: expected no gradient, found one in .grad",
            hint="Save the gradient as a value of its own, and set .grad to None.",
        )
    header = _framed([element, list(tensor.shape), bool(tensor.requires_grad)])
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if dense.numel() == 0:
        return header, memoryview(b"")
    raw = dense.reshape(-1).view(torch.uint8)
    if element == "bool" and raw.max() > 1:
        raise ValueNotAllowed("torch tensor: expected booleans of 0 or 1")
    return header, raw.numpy().data


def _encode_tensor(value: Any, session: Packer) -> bytes:
    check_shape(value.shape, session)
    header, raw = tensor_parts(value)
    return header + session.pack_raw(raw)


def decode_tensor(payload: Raw, session: Unpacker) -> Any:
    """Return a contiguous tensor on the CPU, with its own memory."""
    torch = _loaded("torch")
    (element, shape, requires_grad), rest = _unframed(payload, 3)
    if element not in _TENSOR_ELEMENTS or type(requires_grad) is not bool:
        raise BytesMalformed("torch tensor: expected a known element type and a flag")
    if requires_grad and not element.startswith(("float", "bfloat", "complex")):
        raise BytesMalformed("torch tensor: expected gradients for floating point only")
    dtype = getattr(torch, element)  # a name of the closed table above
    size_bytes = _checked_shape(shape, _TENSOR_ELEMENTS[element], session)
    raw = _inline_raw(rest, size_bytes, session)
    if raw is None:
        numpy = sys.modules.get("numpy")
        # numpy's memory is only committed when written, so a false length costs nothing.
        make = partial(numpy.empty, size_bytes, "u1") if numpy else partial(bytearray, size_bytes)
        memory = _filled(rest, size_bytes, session, make, memoryview)
    elif size_bytes == 0:
        return torch.empty(shape, dtype=dtype).requires_grad_(requires_grad)
    else:
        memory = bytearray(raw)
    if element == "bool" and torch.frombuffer(memory, dtype=torch.uint8).max() > 1:
        raise BytesMalformed("torch tensor: expected booleans of 0 or 1")
    tensor = torch.frombuffer(memory, dtype=dtype).reshape(shape)
    return tensor.requires_grad_(requires_grad)
