# SPDX-License-Identifier: Apache-2.0
"""Element types: the safetensors names, their widths, and the torch types they carry.

The table is closed. A torch type that safetensors has no name for is carried by another one of
the same width; the structure of the file then says which it is.
"""

from dataclasses import dataclass

__all__ = ["ARRAYS", "CARRIERS", "ELEMENT_BITS", "Carrier", "carrier_of"]

ELEMENT_BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}
"""Every element type of the format, with its width in bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """How elements of one torch type lie in a file."""

    element: str
    """The safetensors name."""
    pair: bool = False
    """Each element is two of them, in a last dimension of its own: complex numbers."""
    own: bool = True
    """A file without a structure gives this torch type back."""

    @property
    def item_bytes(self) -> int:
        """What one element of the torch type takes."""
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
    "<i2": "I16",
    "<u2": "U16",
    "<f2": "F16",
    "<i4": "I32",
    "<u4": "U32",
    "<f4": "F32",
    "<i8": "I64",
    "<u8": "U64",
    "<f8": "F64",
    "<c8": "C64",
}
"""The safetensors names of numpy types that have one."""

_OWN = {carrier.element: name for name, carrier in CARRIERS.items() if carrier.own}


def carrier_of(element: str) -> str | None:
    """The torch type that a safetensors type is read as; None if torch has none."""
    return _OWN.get(element)
