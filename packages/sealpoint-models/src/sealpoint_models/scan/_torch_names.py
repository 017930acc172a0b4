# SPDX-License-Identifier: Apache-2.0
"""The names of torch in the closed table, with the reason for each.

A name outside of the table is always unknown, also when the application allowed it for torch with
`add_safe_globals`: all code of a process shares that list.
"""

from dataclasses import dataclass

from sealpoint_models.scan._pickle_symbols import Global


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """The element type of a tensor."""

    name: str
    size: int
    quantized: bool = False

    @property
    def differentiable(self) -> bool:
        """Whether there are gradients of it."""
        return self.name.startswith(("float", "bfloat", "complex"))


ORDERED_DICT = Global("collections", "OrderedDict")  # every state dict is one, and all hooks

# Plain data.
SIZE = Global("torch", "Size")
DEVICE = Global("torch", "device")
LAYOUT = Global("torch.serialization", "_get_layout")

# Tensors. The arguments are compared with the storage before anything is made of them.
TENSOR = Global("torch._utils", "_rebuild_tensor")
TENSOR_V2 = Global("torch._utils", "_rebuild_tensor_v2")
TENSOR_V3 = Global("torch._utils", "_rebuild_tensor_v3")
QUANTIZED = Global("torch._utils", "_rebuild_qtensor")
SPARSE = Global("torch._utils", "_rebuild_sparse_tensor")
PARAMETER = Global("torch._utils", "_rebuild_parameter")
PARAMETER_WITH_STATE = Global("torch._utils", "_rebuild_parameter_with_state")
META = Global("torch._utils", "_rebuild_meta_tensor_no_storage")
FROM_TYPE = Global("torch._tensor", "_rebuild_from_type_v2")  # tensors with attributes
TENSOR_TYPE = Global("torch", "Tensor")
PARAMETER_TYPES = (
    Global("torch.nn.parameter", "Parameter"),
    Global("torch.nn.modules.parameter", "Parameter"),
)

# Element types that have a storage class of their own.
_OWN = {
    "DoubleStorage": Element(name="float64", size=8),
    "FloatStorage": Element(name="float32", size=4),
    "HalfStorage": Element(name="float16", size=2),
    "BFloat16Storage": Element(name="bfloat16", size=2),
    "LongStorage": Element(name="int64", size=8),
    "IntStorage": Element(name="int32", size=4),
    "ShortStorage": Element(name="int16", size=2),
    "CharStorage": Element(name="int8", size=1),
    "ByteStorage": Element(name="uint8", size=1),
    "BoolStorage": Element(name="bool", size=1),
    "ComplexDoubleStorage": Element(name="complex128", size=16),
    "ComplexFloatStorage": Element(name="complex64", size=8),
    "QInt8Storage": Element(name="qint8", size=1, quantized=True),
    "QUInt8Storage": Element(name="quint8", size=1, quantized=True),
    "QInt32Storage": Element(name="qint32", size=4, quantized=True),
}
# Element types that came later: their storages are bytes, and the tensor names the type. Those of
# which several share a byte are left out: torch counts them differently in different places.
_LATER = (
    Element(name="uint16", size=2),
    Element(name="uint32", size=4),
    Element(name="uint64", size=8),
    Element(name="complex32", size=4),
    Element(name="float8_e4m3fn", size=1),
    Element(name="float8_e4m3fnuz", size=1),
    Element(name="float8_e5m2", size=1),
    Element(name="float8_e5m2fnuz", size=1),
    Element(name="float8_e8m0fnu", size=1),
)

STORAGES = {Global("torch", name): element for name, element in _OWN.items()}
UNTYPED = Global("torch.storage", "UntypedStorage")
DTYPES = {Global("torch", element.name): element for element in (*_OWN.values(), *_LATER)}

PER_TENSOR = Global("torch", "per_tensor_affine")
PER_CHANNEL = {
    Global("torch", "per_channel_affine"): ("int64", "int32", "float32", "float64"),
    Global("torch", "per_channel_affine_float_qparams"): ("float32", "float64"),
}
"""With the element types that their zero points may have: torch writes the first name for both."""

QSCHEMES = {
    PER_TENSOR,
    *PER_CHANNEL,
    Global("torch", "per_tensor_symmetric"),
    Global("torch", "per_channel_symmetric"),
}

STRIDED = "torch.strided"
LAYOUTS = (
    "torch.sparse_coo",
    "torch.sparse_csr",
    "torch.sparse_csc",
    "torch.sparse_bsr",
    "torch.sparse_bsc",
)

TORCH_REASONS: dict[Global, str] = {
    UNTYPED: "a storage: a record of the file",
    TENSOR_TYPE: "says that a tensor with attributes is a plain one",
    **dict.fromkeys(PARAMETER_TYPES, "says that a tensor with attributes is a parameter"),
    **dict.fromkeys(
        (TENSOR, TENSOR_V2, TENSOR_V3, QUANTIZED, SPARSE, PARAMETER, PARAMETER_WITH_STATE, META),
        "a tensor, held against its storage",
    ),
    FROM_TYPE: "a tensor with attributes, of a plain type",
    **dict.fromkeys(STORAGES, "a storage: a record of the file"),
    **dict.fromkeys(DTYPES, "a type of elements"),
    **dict.fromkeys(QSCHEMES, "a way to quantize"),
}
"""The reason for each allowed name of torch for building tensors."""
