# SPDX-License-Identifier: Apache-2.0
"""The header of a safetensors file: read strictly, written in one way.

`read_header` returns a header that keeps every rule of the format's specification, or raises. It
refuses headers that the usual reader accepts: white space before the brace, a duplicate name,
unknown fields, empty names and names that are paths or hold control characters, shapes of more
elements than any tensor has. Counting the delimiters first bounds the cost of reading a header.
This module does not read the elements of tensors.

`write_header` gives the same bytes for the same tensors and metadata, in every process.

Element types: the safetensors names, their widths, and the torch types they carry.

The table is closed. A torch type that safetensors has no name for is carried by another one of
the same width; the structure of the file then says which it is.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import (
    MODEL_DIMENSIONS_MAX,
    MODEL_ELEMENTS_MAX,
    MODEL_HEADER_BYTES_MAX,
    MODEL_NAME_BYTES_MAX,
    MODEL_TENSORS_MAX,
)

ELEMENT_BITS = {
    name: bits
    for bits, names in {
        4: "F4",
        6: "F6_E2M3 F6_E3M2",
        8: "BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ",
        16: "I16 U16 F16 BF16",
        32: "I32 U32 F32",
        64: "C64 F64 I64 U64",
    }.items()
    for name in names.split()
}
"""Every element type of the format, with its width in bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """The form of elements of one torch type in a file."""

    element: str
    """The safetensors name."""
    pair: bool = False
    """Each element is two of them, in a last dimension of its own: complex numbers."""
    own: bool = True
    """A file without a structure gives this torch type back."""

    @property
    def item_bytes(self) -> int:
        """The size of one element of the torch type."""
        return ELEMENT_BITS[self.element] // 8 * (2 if self.pair else 1)


CARRIERS = {
    "bool": Carrier(element="BOOL"),
    "uint8": Carrier(element="U8"),
    "int8": Carrier(element="I8"),
    "float8_e5m2": Carrier(element="F8_E5M2"),
    "float8_e4m3fn": Carrier(element="F8_E4M3"),
    "float8_e8m0fnu": Carrier(element="F8_E8M0"),
    "float8_e4m3fnuz": Carrier(element="F8_E4M3FNUZ"),
    "float8_e5m2fnuz": Carrier(element="F8_E5M2FNUZ"),
    "float4_e2m1fn_x2": Carrier(element="U8", own=False),
    "int16": Carrier(element="I16"),
    "uint16": Carrier(element="U16"),
    "float16": Carrier(element="F16"),
    "bfloat16": Carrier(element="BF16"),
    "int32": Carrier(element="I32"),
    "uint32": Carrier(element="U32"),
    "float32": Carrier(element="F32"),
    "complex32": Carrier(element="F16", pair=True, own=False),
    "complex64": Carrier(element="C64"),
    "complex128": Carrier(element="F64", pair=True, own=False),
    "float64": Carrier(element="F64"),
    "int64": Carrier(element="I64"),
    "uint64": Carrier(element="U64"),
}
"""The torch types that can be saved, by the name that torch gives them."""

ARRAYS = {
    "|b1": "BOOL",
    "|i1": "I8",
    "|u1": "U8",
    "<c8": "C64",
    **{f"<{kind}{bits // 8}": f"{kind.upper()}{bits}" for kind in "iuf" for bits in (16, 32, 64)},
}
"""The safetensors names of numpy types that have one."""

_OWN = {carrier.element: name for name, carrier in CARRIERS.items() if carrier.own}


def carrier_of(element: str) -> str | None:
    """The torch type that a safetensors type is read as; None if torch has none."""
    return _OWN.get(element)


LENGTH_BYTES = 8
"""The length of the first field of a file: the length of the header."""

_ALIGNMENT = 8
_METADATA = "__metadata__"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_WHOLE = frozenset({int})
_INT_DIGITS_MAX = 19
_METADATA_KEYS_MAX = 4096
_SHOWN_CHARS = 80


class Tensor(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The position of one tensor in the file, and its description."""

    name: str
    element: str
    shape: tuple[int, ...]
    begin: int
    """The position of its first byte, from the beginning of the file."""
    end: int

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return self.end - self.begin


class _TensorFields(msgspec.Struct, gc=False):
    """The fields of a tensor: a dict of the same would take most of the memory."""

    dtype: Any
    shape: Any
    data_offsets: Any


_FIELDS = {*_TensorFields.__struct_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHeader:
    """A header that was read."""

    tensors: Mapping[str, Tensor]
    """By name, in the order of their positions in the file."""
    metadata: Mapping[str, str]
    raw: bytes
    """The bytes it was read from, with the length in front."""


def header_end(prefix: bytes, size: int, what: str) -> int:
    """The end of a file's header, from the first bytes of the file.

    Args:
        prefix: The first eight bytes.
        size: The length of the file.
        what: The name of the file, for messages.

    Raises:
        ModelMalformed: The file is too short for a header.
        ModelLimitExceeded: The header is too long.
    """
    if len(prefix) != LENGTH_BYTES or size < LENGTH_BYTES:
        raise ModelMalformed(f"{what}: expected a length of 8 bytes, found a file of {size}")
    length = int.from_bytes(prefix, "little")
    if length > MODEL_HEADER_BYTES_MAX:
        raise ModelLimitExceeded(
            f"{what}: expected a header of at most {MODEL_HEADER_BYTES_MAX} bytes, found {length}"
        )
    if length < 2 or LENGTH_BYTES + length > size:
        raise ModelMalformed(
            f"{what}: expected a header of 2 to {size - LENGTH_BYTES} bytes, found {length}"
        )
    return LENGTH_BYTES + length


def read_header(raw: bytes, size: int, what: str) -> ModelHeader:
    """Read a header.

    Args:
        raw: The first bytes of the file, up to `header_end`.
        size: The length of the file.
        what: The name of the file, for messages.

    Raises:
        ModelMalformed: The header breaks a rule of the format, or of ours.
        ModelLimitExceeded: It exceeds the limits of a header.
    """
    # (1) Bounds, before anything is built.
    if header_end(raw[:LENGTH_BYTES], size, what) != len(raw):
        raise ModelMalformed(f"{what}: expected the whole header, found {len(raw)} bytes")
    _check_counts(raw, what)
    # (2) One JSON object from the first byte on, followed by spaces at most.
    members = _parse(_text(raw, what), what)
    # (3) The metadata: texts only.
    metadata = _metadata(members.pop(_METADATA, {}), what)
    if len(members) > MODEL_TENSORS_MAX:
        raise ModelLimitExceeded(
            f"{what}: expected at most {MODEL_TENSORS_MAX} tensors, found {len(members)}"
        )
    # (4) Each tensor by itself.
    tensors = [_tensor(name, entry, len(raw), what) for name, entry in members.items()]
    # (5) All of them together: they fill the file, one after the other.
    tensors.sort(key=lambda tensor: (tensor.begin, tensor.end))
    at = len(raw)
    for tensor in tensors:
        if tensor.begin != at:
            raise ModelMalformed(
                f"{what}: tensor {_shown(tensor.name)}: expected it to begin at byte {at}, where "
                f"the one before it ends, found {tensor.begin}"
            )
        at = tensor.end
    if at != size:
        raise ModelMalformed(f"{what}: expected a file of {at} bytes, found {size}")
    return ModelHeader(
        tensors={tensor.name: tensor for tensor in tensors}, metadata=metadata, raw=raw
    )


def _check_counts(raw: bytes, what: str) -> None:
    """Refuse a header with more parts than its tensors can have: their cost exceeds their bytes."""
    for delimiter, most in (
        (b"{", MODEL_TENSORS_MAX + 2 + _METADATA_KEYS_MAX),
        (b"[", 2 * MODEL_TENSORS_MAX + _METADATA_KEYS_MAX),
        (b",", 8 * MODEL_TENSORS_MAX + _METADATA_KEYS_MAX),
        (b'"', 16 * MODEL_TENSORS_MAX + _METADATA_KEYS_MAX),
    ):
        if (found := raw.count(delimiter, LENGTH_BYTES)) > most:
            raise ModelLimitExceeded(
                f"{what}: expected at most {most} {delimiter.decode()} in the header, found {found}"
            )


def _text(raw: bytes, what: str) -> str:
    body = raw[LENGTH_BYTES:].rstrip(b" ")
    if not (body.startswith(b"{") and body.endswith(b"}")):
        raise ModelMalformed(f"{what}: expected a header of one object, then spaces at most")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ModelMalformed(f"{what}: its header is not UTF-8") from exc


def _parse(text: str, what: str) -> dict[str, Any]:
    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any] | _TensorFields:
        found = dict(members)
        if len(found) != len(members):
            raise ModelMalformed(f"{what}: expected each name once, found one of them twice")
        return _TensorFields(**found) if found.keys() == _FIELDS else found

    def whole(text: str) -> int:
        if len(text) > _INT_DIGITS_MAX or text.startswith("-"):
            raise ModelMalformed(f"{what}: expected whole numbers of 63 bits, found {text[:24]!r}")
        return int(text)

    def refuse(text: str) -> NoReturn:
        raise ModelMalformed(f"{what}: expected whole numbers, found {text[:24]!r}")

    try:
        found = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=whole,
            parse_float=refuse,
            parse_constant=refuse,
        )
    except (ValueError, RecursionError) as exc:
        raise ModelMalformed(f"{what}: its header is not JSON") from exc
    if (members := _members(found)) is None:
        raise ModelMalformed(f"{what}: expected a JSON object as header")
    return members


def _members(found: Any) -> dict[str, Any] | None:
    """A JSON object as a dict; tensors and metadata may have the names of a tensor's fields."""
    if type(found) is _TensorFields:
        return msgspec.structs.asdict(found)
    return found if type(found) is dict else None


def _metadata(found: Any, what: str) -> dict[str, str]:
    texts = _members(found)
    if texts is None or any(type(text) is not str for text in texts.values()):
        raise ModelMalformed(f"{what}: its metadata are not texts")
    if len(texts) > _METADATA_KEYS_MAX:
        raise ModelLimitExceeded(
            f"{what}: expected at most {_METADATA_KEYS_MAX} metadata keys, found {len(texts)}"
        )
    if any(_is_broken(text) for pair in texts.items() for text in pair):
        raise ModelMalformed(f"{what}: expected metadata of Unicode, found lone surrogates")
    return texts


def _tensor(name: str, entry: Any, data: int, what: str) -> Tensor:
    def where() -> str:  # most tensors have no fault, and are many
        return f"{what}: tensor {_shown(name)}"

    if (fault := name_fault(name)) is not None:
        raise ModelMalformed(f"{where()}: {fault}")
    if type(entry) is not _TensorFields:
        raise ModelMalformed(f"{where()}: expected exactly dtype, shape and data_offsets")
    element, shape, offsets = entry.dtype, entry.shape, entry.data_offsets
    if type(element) is not str or element not in ELEMENT_BITS:
        raise ModelMalformed(f"{where()}: expected a dtype of the format, found {_shown(element)}")
    if not (
        type(shape) is list is type(offsets)
        and _WHOLE.issuperset(map(type, shape + offsets))
        and len(offsets) == 2
    ):
        raise ModelMalformed(f"{where()}: expected a shape and two offsets of whole numbers")
    _check_sides(shape, where)
    begin, end = offsets
    needed, rest = divmod(math.prod(shape) * ELEMENT_BITS[element], 8)
    if rest or begin > end or end - begin != needed:
        raise ModelMalformed(
            f"{where()}: expected {needed} bytes for its shape, found offsets {begin} to {end}"
        )
    return Tensor(
        name=name, element=element, shape=tuple(shape), begin=data + begin, end=data + end
    )


def _check_sides(shape: list[int], where: Callable[[], str]) -> None:
    if len(shape) > MODEL_DIMENSIONS_MAX:
        raise ModelLimitExceeded(
            f"{where()}: expected at most {MODEL_DIMENSIONS_MAX} dimensions, found {len(shape)}"
        )
    # A dimension of 0 makes no room for others that do not fit: strides are made of them.
    if math.prod([side or 1 for side in shape]) > MODEL_ELEMENTS_MAX:
        raise ModelLimitExceeded(f"{where()}: expected at most {MODEL_ELEMENTS_MAX} elements")


def name_fault(name: str) -> str | None:
    """Why a text cannot be the name of a tensor, or None."""
    if not name or _is_broken(name) or _CONTROLS.search(name):
        return "expected a name without control characters"
    if len(name.encode()) > MODEL_NAME_BYTES_MAX:
        return f"expected a name of at most {MODEL_NAME_BYTES_MAX} bytes"
    if "/" not in name and "\\" not in name:
        return None
    parts = name.replace("\\", "/").split("/")
    if parts[0] == "" or ".." in parts:
        return "expected a name that is not a path out of somewhere"
    return None


def _is_broken(text: str) -> bool:
    """Whether a text holds an unpaired surrogate, which UTF-8 cannot encode."""
    return not text.isascii() and _SURROGATES.search(text) is not None


def _shown(text: Any) -> str:
    if type(text) is not str:
        return type(text).__name__
    return ascii(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "...")


def write_header(
    tensors: Sequence[tuple[str, str, Sequence[int]]], metadata: Mapping[str, str]
) -> ModelHeader:
    """The header of a file with these tensors.

    Wide elements come first, so that every tensor is aligned; then names decide.

    Args:
        tensors: Name, element type and shape of each.
        metadata: Texts by key.
    """
    order = sorted(tensors, key=lambda part: (-ELEMENT_BITS[part[1]], part[0]))
    members: dict[str, Any] = {_METADATA: dict(sorted(metadata.items()))} if metadata else {}
    at = 0
    spans: list[tuple[str, str, tuple[int, ...], int, int]] = []
    for name, element, shape in order:
        end = at + math.prod(shape) * ELEMENT_BITS[element] // 8
        members[name] = {"dtype": element, "shape": list(shape), "data_offsets": [at, end]}
        spans.append((name, element, tuple(shape), at, end))
        at = end
    body = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
    body += b" " * (-len(body) % _ALIGNMENT)
    raw = len(body).to_bytes(LENGTH_BYTES, "little") + body
    return ModelHeader(
        tensors={
            name: Tensor(
                name=name,
                element=element,
                shape=shape,
                begin=len(raw) + begin,
                end=len(raw) + end,
            )
            for name, element, shape, begin, end in spans
        },
        metadata=dict(metadata),
        raw=raw,
    )
