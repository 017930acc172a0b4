# SPDX-License-Identifier: Apache-2.0
"""The placeholders for tensors and other objects of torch in the structure of a model file.

The structure is a value of the codec in which each tensor is a node that names the position of its
elements in the file. The registry here lists everything that a structure may hold: plain data, the
built-in types, and these nodes. Fields are checked where they are used.
"""

import base64
import binascii
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from sealpoint.codec import Registry
from sealpoint.errors import (
    DecodeError,
    DecodeLimitExceeded,
    EncodeError,
    EncodeLimitExceeded,
    ModelLimitExceeded,
    ModelMalformed,
    TypeNotAllowed,
)
from sealpoint.limits import MODEL_HEADER_BYTES_MAX, MODEL_NODES_MAX, Limits

STRUCTURE = "sealpoint.structure"
"""The metadata key of the structure."""

METADATA = {"format": "pt", "sealpoint.version": "1"}
"""The other metadata: readers of torch files look for `format`."""


@dataclass(slots=True, kw_only=True)
class TensorNode:
    """A dense tensor. Its fields are set once it is known which tensors share memory."""

    entry: str = ""
    """The tensor of the file that holds the elements."""
    dtype: str
    device: str
    requires_grad: bool
    parameter: bool
    stride: list[int] | None = None
    """The memory layout of the elements; None: in the order of the indices."""
    offset: int | None = None
    """Where a view of the entry's memory begins, in bytes; None: it is the entry itself."""
    shape: list[int] | None = None
    """The shape of a view."""


@dataclass(slots=True, kw_only=True)
class SparseNode:
    """A sparse tensor."""

    layout: str
    shape: list[int]
    indices: list[TensorNode]
    """One tensor for coordinates; compressed and plain indices for the other layouts."""
    values: TensorNode
    coalesced: bool
    requires_grad: bool


@dataclass(slots=True, kw_only=True)
class QuantizedNode:
    """A quantized tensor: whole numbers, and their meaning."""

    dtype: str
    elements: TensorNode
    scale: float | TensorNode
    """One for all, or one for each place on the axis."""
    zero_point: int | TensorNode
    axis: int | None
    floating: bool
    """The zero points are floating point numbers."""


@dataclass(slots=True, kw_only=True)
class ArrayNode:
    """A numpy array."""

    entry: str
    dtype: str


@dataclass(slots=True, kw_only=True)
class SizeNode:
    """A `torch.Size`."""

    sides: list[int]


@dataclass(slots=True, kw_only=True)
class DtypeNode:
    """A `torch.dtype`."""

    name: str


@dataclass(slots=True, kw_only=True)
class DeviceNode:
    """A `torch.device`."""

    name: str


@dataclass(slots=True, kw_only=True)
class CounterNode:
    """A `collections.Counter`, as some schedulers hold."""

    counts: dict[Any, Any]


@dataclass(slots=True, kw_only=True)
class StateDictNode:
    """A module's state dict, with the versions that `load_state_dict` looks at."""

    items: OrderedDict[Any, Any]
    metadata: Any


@dataclass(slots=True, kw_only=True)
class NamespaceNode:
    """Attributes by name: an `argparse.Namespace` or a `types.SimpleNamespace`."""

    kind: str
    """`argparse` or `types`."""
    attributes: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class InertNode:
    """An `Inert`: a name as text, and its arguments. It never becomes another object."""

    type: str
    made: str
    arguments: tuple[Any, ...]
    keywords: Any
    state: Any
    items: list[Any]
    pairs: list[tuple[Any, Any]]


Node = (
    TensorNode
    | SparseNode
    | QuantizedNode
    | ArrayNode
    | SizeNode
    | DtypeNode
    | DeviceNode
    | CounterNode
    | StateDictNode
    | NamespaceNode
    | InertNode
)

_PLAIN = "A model file holds tensors and plain data: save what the object is made of."

_NAMES: dict[str, type] = {
    "tensor": TensorNode,
    "sparse": SparseNode,
    "quantized": QuantizedNode,
    "array": ArrayNode,
    "size": SizeNode,
    "dtype": DtypeNode,
    "device": DeviceNode,
    "counter": CounterNode,
    "state-dict": StateDictNode,
    "namespace": NamespaceNode,
    "inert": InertNode,
}


def _make_registry() -> Registry:
    registry = Registry(limits=Limits(value_nodes_max=MODEL_NODES_MAX))
    for name, cls in _NAMES.items():
        registry.allow(cls, name=f"sealpoint.model.{name}")
    return registry


_REGISTRY = _make_registry()


def write_structure(structure: Any) -> str:
    """The text of a structure.

    Raises:
        EncodeError: It holds a type that is not allowed; the message has the path.
        ModelLimitExceeded: It does not fit a header.
    """
    try:
        data = _REGISTRY.encode(structure)
    except TypeNotAllowed as exc:
        raise TypeNotAllowed(exc.message, hint=_PLAIN) from exc.__cause__
    if len(data) > MODEL_HEADER_BYTES_MAX // 2:
        raise ModelLimitExceeded(
            f"state: expected at most {MODEL_HEADER_BYTES_MAX // 2} bytes without its tensors, "
            f"found {len(data)}",
            hint="Turn long lists of numbers into tensors or numpy arrays.",
        )
    return base64.b64encode(data).decode()


def read_structure(text: str, what: str) -> Any:
    """The structure of a text.

    Raises:
        ModelMalformed: The text is not a structure.
        ModelLimitExceeded: It has too many values, or they are nested too deeply.
    """
    try:
        data = base64.b64decode(text, validate=True)
        structure = _REGISTRY.decode(data)
        if write_structure(structure) != text:
            raise ModelMalformed(f"{what}: expected the one form that its structure has")
        return structure
    except EncodeLimitExceeded as exc:
        raise ModelLimitExceeded(
            f"{what}: expected a structure with fewer values nested in one another"
        ) from exc
    except DecodeLimitExceeded as exc:
        raise ModelLimitExceeded(f"{what}: expected a structure of fewer values") from exc
    except (binascii.Error, ValueError, DecodeError, EncodeError) as exc:
        raise ModelMalformed(f"{what}: expected a structure of plain data and tensors") from exc
