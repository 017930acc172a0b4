# SPDX-License-Identifier: Apache-2.0
"""The tensors in a pickle, checked against the storages of the file.

An accepted tensor is completely inside its storage, its storage is exactly one record, and the same
record is always described the same way. Sizes, strides and offsets are compared with whole-number
arithmetic before anything is built from them. Tensors that expand few elements to much more than
the file holds are refused.

The results are descriptions: they need neither torch nor memory.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sealpoint.errors import ModelLimitExceeded, ModelMalformed, RecordMismatch
from sealpoint.limits import (
    MODEL_DIMENSIONS_MAX,
    MODEL_ELEMENTS_MAX,
    MODEL_EXPANDED_BYTES_LEAST,
)
from sealpoint_models.scan import _torch_names as table
from sealpoint_models.scan._pickle_symbols import Call, Dict, Global, List, Persistent, Tuple, Value
from sealpoint_models.scan._tensor_sizes import (
    TensorBudget,
    compressed_fault,
    contiguous_stride,
    coo_fault,
    quantizer_fault,
)
from sealpoint_models.scan._torch_zip import shown

_INT64_MAX = (1 << 63) - 1
_LOCATION = re.compile(r"(?!meta\b)[a-z][a-z0-9]{0,31}(:[0-9]{1,4})?", re.ASCII)
_ATTRIBUTES = "attributes of a tensor by their names, and not changed later"
_CHANNEL_BYTES = 8
"""The size of a scale or a zero point in torch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStorage:
    """Bytes of a record in a tensor's view; no element type where the tensor names it."""

    key: str
    kind: Global
    element: table.Element | None
    location: str
    bytes: int
    begin: int = 0
    """Its position in its record: a view, which only streams from before torch 1.6 have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseTensor:
    """A dense tensor that fits its storage; without one, it has no elements: it is on `meta`."""

    storage: TensorStorage | None
    element: table.Element
    offset: int
    """In elements, as are the strides."""
    size: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool = False
    negative: bool = False
    conjugate: bool = False
    """Bits that say how its elements are to be read."""
    is_parameter: bool = False
    attributes: tuple[tuple[str, Value], ...] = ()
    """The attributes that a program set on it, as symbols."""

    @property
    def layout(self) -> str:
        """The layout of its elements."""
        return table.STRIDED

    @property
    def in_order(self) -> bool:
        """Whether its elements are contiguous."""
        return list(self.stride) == contiguous_stride(self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizedTensor:
    """A tensor of whole numbers that stand for others."""

    elements: DenseTensor
    scheme: Global
    scale: float | DenseTensor
    zero_point: int | DenseTensor
    axis: int | None = None
    is_parameter: bool = False
    requires_grad: bool = False
    attributes: tuple[tuple[str, Value], ...] = ()

    @property
    def element(self) -> table.Element:
        """The type of its elements."""
        return self.elements.element

    @property
    def size(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.elements.size

    @property
    def layout(self) -> str:
        """The layout of its elements."""
        return table.STRIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseTensor:
    """A sparse tensor with consistent parts; its indices were not checked."""

    layout: str
    parts: tuple[DenseTensor, ...]
    """Indices, one or two of them, then values."""
    size: tuple[int, ...]
    coalesced: bool | None = None
    is_parameter: bool = False
    requires_grad: bool = False
    attributes: tuple[tuple[str, Value], ...] = ()

    @property
    def element(self) -> table.Element:
        """The type of its elements."""
        return self.parts[-1].element


TensorMeaning: TypeAlias = DenseTensor | QuantizedTensor | SparseTensor


class Tensors:
    """Judges all tensors of one file."""

    def __init__(
        self, records: Mapping[str, int], file_bytes: int, what: str, *, views: bool = False
    ) -> None:
        """Begin with none.

        Args:
            records: The bytes of each storage record, by its key.
            file_bytes: The size of the whole file.
            what: The file, for messages.
            views: Whether storages may be parts of records: so they were before torch 1.6.
        """
        self._views = views
        self._records = records
        self._logical_max = max(file_bytes, MODEL_EXPANDED_BYTES_LEAST)
        self._budget = TensorBudget(file_bytes, what)
        self._what = what
        self._storages: dict[str, TensorStorage] = {}
        self._parts: dict[str, TensorStorage] = {}
        # By the symbols, all of which the program keeps.
        self._judged: dict[int, TensorMeaning] = {}
        self._referred: dict[int, TensorStorage] = {}
        self._at = 0
        self._rebuilds: dict[Global, Callable[[Global, tuple[Value, ...]], TensorMeaning]] = {
            table.TENSOR: self._plain,
            table.TENSOR_V2: self._plain,
            table.TENSOR_V3: self._plain,
            table.QUANTIZED: self._quantized,
            table.SPARSE: self._sparse,
            table.PARAMETER: self._parameter,
            table.PARAMETER_WITH_STATE: self._parameter,
            table.META: self._meta,
            table.FROM_TYPE: self._from_type,
        }

    def knows(self, function: Global) -> bool:
        """Whether a function makes a tensor."""
        return function in self._rebuilds

    def judge(self, call: Call) -> TensorMeaning:
        """Check the call of a function that makes a tensor.

        Raises:
            ModelMalformed: Its arguments are not those that torch writes.
            RecordMismatch: It does not fit its storage, or the storage its record.
            ModelLimitExceeded: It has too many dimensions, or repeats its elements too often.
        """
        found = self._judged.get(id(call))
        if found is None:
            if not call.bare:
                raise self._fault("a tensor without items and attributes")
            outer, self._at = self._at, call.at
            found = self._rebuilds[call.function](call.function, call.arguments.values)
            self._at = outer
            self._judged[id(call)] = found
        return found

    def check_all_used(self) -> None:
        """Check that no record is left that nothing refers to.

        Raises:
            ModelMalformed: A record is left.
        """
        for key in self._records:
            if key not in self._storages:
                raise self._fault(f"every storage to be used, found {shown(key)} unused")

    def _fault(self, expected: str) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}")

    def _tensor(self, value: Value) -> TensorMeaning:
        if not isinstance(value, Call) or not self.knows(value.function):
            raise self._fault("a tensor as part of a tensor")
        return self.judge(value)

    def _dense(self, value: Value) -> DenseTensor:
        found = self._tensor(value)
        if not isinstance(found, DenseTensor) or found.is_parameter or found.attributes:
            raise self._fault("plain dense tensors as parts of a tensor")
        return found

    # The functions of the table.

    def _plain(self, function: Global, values: tuple[Value, ...]) -> DenseTensor:
        """Storage, offset, size, stride; then gradient and hooks; then type; then bits."""
        fixed = {table.TENSOR: 4, table.TENSOR_V2: 6, table.TENSOR_V3: 7}[function]
        most = fixed if function == table.TENSOR else fixed + 1
        if not fixed <= len(values) <= most:
            raise self._fault(f"{fixed} arguments for a tensor, found {len(values)}")
        storage = self.storage(values[0])
        element = storage.element
        if function == table.TENSOR_V3:
            if storage.kind != table.UNTYPED:
                raise self._fault("a storage of bytes for a tensor that names its type")
            element = self._dtype(values[6])
        if element is None or element.quantized:
            raise self._fault("a storage of the type of its tensor")
        required = False
        if function != table.TENSOR:
            required = self._gradient(values[4], values[5], element)
        bits = self._bits(values[fixed], element) if len(values) > fixed else {}
        offset, size, stride = self._place(storage, element, values[1:4])
        return DenseTensor(
            storage=storage,
            element=element,
            offset=offset,
            size=size,
            stride=stride,
            requires_grad=required,
            negative=bits.get("neg", False),
            conjugate=bits.get("conj", False),
        )

    def _meta(self, _function: Global, values: tuple[Value, ...]) -> DenseTensor:
        """Type, size, stride, gradient."""
        if len(values) != 4:
            raise self._fault(f"4 arguments for a tensor without storage, found {len(values)}")
        element = self._dtype(values[0])
        size, stride = self._sides(values[1]), self._sides(values[2])
        if len(size) != len(stride) or element.quantized:
            raise self._fault("a size and as many strides")
        required = values[3]
        if type(required) is not bool or (required and not element.differentiable):
            raise self._fault("whether a tensor requires a gradient")
        if _reach(size, stride) > MODEL_ELEMENTS_MAX or _expanded(size) > MODEL_ELEMENTS_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: expected at most {MODEL_ELEMENTS_MAX} elements of a tensor"
            )
        return DenseTensor(
            storage=None,
            element=element,
            offset=0,
            size=size,
            stride=stride,
            requires_grad=required,
        )

    def _quantized(self, _function: Global, values: tuple[Value, ...]) -> QuantizedTensor:
        """Storage, offset, size, stride, the quantizer, gradient, hooks."""
        if len(values) != 7:
            raise self._fault(f"7 arguments for a quantized tensor, found {len(values)}")
        storage = self.storage(values[0])
        element = storage.element
        if element is None or not element.quantized:
            raise self._fault("a storage of quantized elements for a quantized tensor")
        offset, size, stride = self._place(storage, element, values[1:4])
        # It is built from these elements once more.
        self._budget.copy(math.prod(size) * element.size)
        self._gradient(values[5], values[6], element)
        elements = DenseTensor(
            storage=storage, element=element, offset=offset, size=size, stride=stride
        )
        return self._quantizer(values[4], elements)

    def _quantizer(self, value: Value, elements: DenseTensor) -> QuantizedTensor:
        element, size = elements.element, elements.size
        match value:
            case Tuple(values=(table.PER_TENSOR, float() as scale, int() as zero)):
                if (fault := quantizer_fault(element.name, scale, zero)) is not None:
                    raise ModelMalformed(f"{self._what}: {fault}")
                return QuantizedTensor(
                    elements=elements, scheme=table.PER_TENSOR, scale=scale, zero_point=zero
                )
            case Tuple(values=(Global() as scheme, scales, zeros, int() as axis)) if (
                scheme in table.PER_CHANNEL and type(axis) is not bool
            ):
                if not 0 <= axis < len(size):
                    raise RecordMismatch(
                        f"{self._what}: quantized tensor: expected an axis of its {len(size)} "
                        "dimensions, found another one"
                    )
                return QuantizedTensor(
                    elements=elements,
                    scheme=scheme,
                    scale=self._channels(scales, size[axis], ("float32", "float64")),
                    zero_point=self._channels(zeros, size[axis], table.PER_CHANNEL[scheme]),
                    axis=axis,
                )
            case _:
                raise self._fault("a known quantizer and its parameters")

    def _channels(self, value: Value, length: int, names: tuple[str, ...]) -> DenseTensor:
        """The scales or zero points, one for each channel: else they are read beyond."""
        found = self._dense(value)
        if found.size != (length,):
            raise RecordMismatch(
                f"{self._what}: quantized tensor: expected {length} scales and zero points, "
                f"found {found.size}"
            )
        if found.element.name not in names:
            raise self._fault(f"scales and zero points of {' or '.join(names)}")
        # Torch copies, for each tensor, data in another layout.
        if not found.in_order or found.element.size != _CHANNEL_BYTES:
            self._budget.copy(length * _CHANNEL_BYTES)
        return found

    def _sparse(self, _function: Global, values: tuple[Value, ...]) -> SparseTensor:
        """The layout, and a tuple of indices, values and size."""
        layout = _layout(values[0]) if len(values) == 2 else None
        if layout is None or layout == table.STRIDED or not isinstance(values[1], Tuple):
            raise self._fault("a sparse layout and the parts of a sparse tensor")
        made, fault = self._sparse_parts(layout, values[1].values)
        indices = made.parts[:-1]
        self._budget.check_indices(
            sum(math.prod(part.size) * part.element.size for part in indices)
        )
        kinds = {part.element.name for part in indices}
        if kinds not in ({"int64"}, {"int32"}):
            raise self._fault("indices of a sparse tensor as ints")
        if made.element.quantized:
            raise self._fault("values of a sparse tensor that are not quantized")
        if fault is not None:
            raise RecordMismatch(f"{self._what}: sparse tensor: {fault}")
        return made

    def _sparse_parts(
        self, layout: str, values: tuple[Value, ...]
    ) -> tuple[SparseTensor, str | None]:
        """A sparse tensor, and why its parts do not fit one another."""
        coalesced: bool | None = None
        match layout, values:
            case "torch.sparse_coo", (indices, held, size, *rest):
                if rest not in ([], [None]) and [type(part) for part in rest] != [bool]:
                    raise self._fault("whether a sparse tensor is coalesced")
                parts = [self._dense(indices), self._dense(held)]
                sides = self._sides(size)
                fault = coo_fault(parts[0].size, parts[1].size, sides)
                coalesced = bool(rest[0]) if rest and rest[0] is not None else None
            case _, (compressed, plain, held, size) if layout != "torch.sparse_coo":
                parts = [self._dense(part) for part in (compressed, plain, held)]
                sides = self._sides(size)
                rows, columns, elements = (part.size for part in parts)
                fault = compressed_fault(layout, rows, columns, elements, sides)
            case _:
                raise self._fault("the parts of a sparse tensor")
        made = SparseTensor(layout=layout, parts=tuple(parts), size=sides, coalesced=coalesced)
        return made, fault

    def _parameter(self, function: Global, values: tuple[Value, ...]) -> TensorMeaning:
        """The tensor, gradient, hooks, and attributes."""
        count = 4 if function == table.PARAMETER_WITH_STATE else 3
        if len(values) != count:
            raise self._fault(f"{count} arguments for a parameter, found {len(values)}")
        tensor = self._tensor(values[0])
        if tensor.is_parameter or tensor.attributes:
            raise self._fault("a parameter of a tensor, found one of a parameter")
        required = self._gradient(values[1], values[2], tensor.element)
        attributes = _attributes(values[3], self._at) if count == 4 else ()
        if attributes is None:
            raise self._fault(_ATTRIBUTES)
        return replace(tensor, is_parameter=True, requires_grad=required, attributes=attributes)

    def _from_type(self, _function: Global, values: tuple[Value, ...]) -> TensorMeaning:
        """A function that makes a tensor, the type of it, its arguments, and attributes."""
        match values:
            case (Global() as function, Global() as kind, Tuple(values=arguments), state) if (
                function in self._rebuilds and function != table.FROM_TYPE
            ):
                pass
            case _:
                raise self._fault("a tensor of a plain type with attributes")
        tensor = self._rebuilds[function](function, arguments)
        is_parameter = kind in table.PARAMETER_TYPES
        attributes = _attributes(state, self._at)
        if tensor.attributes or (kind != table.TENSOR_TYPE and not is_parameter):
            raise self._fault("a tensor of a plain type with attributes")
        if attributes is None:
            raise self._fault(_ATTRIBUTES)
        return replace(
            tensor,
            is_parameter=is_parameter or tensor.is_parameter,
            attributes=attributes,
        )

    # Their arguments.

    def storage(self, value: Value) -> TensorStorage:
        """Check a reference to a storage. Errors are those of `judge`."""
        value = _given(value)
        known = self._referred.get(id(value))
        if known is not None:
            return known
        if not isinstance(value, Persistent) or not isinstance(value.identity, Tuple):
            raise self._fault("a storage")
        found = _identity(value.identity.values, views=self._views)
        if isinstance(found, str):
            raise self._fault(found)
        kind, key, location, count, view = found
        if kind not in table.STORAGES and kind != table.UNTYPED:
            raise self._fault(f"a storage class, found {shown(str(kind))}")
        if not isinstance(location, str) or not _LOCATION.fullmatch(location):
            raise self._fault("the device of a storage, which is not meta")
        storage = self._record(key, kind, location, self._number(count))
        if self._storages.setdefault(key, storage) != storage:
            raise RecordMismatch(
                f"{self._what}: storage {shown(key)}: expected the same type, length and device "
                "each time"
            )
        referred = storage if view is None else self._view(storage, view)
        self._referred[id(value)] = referred
        return referred

    def _view(self, storage: TensorStorage, value: Value) -> TensorStorage:
        """A part of a storage: a key of its own, where it begins, and how long it is."""
        item_bytes = 1 if storage.element is None else storage.element.size
        match value:
            case Tuple(values=(str() as key, begin, count)):
                pass
            case _:
                raise self._fault("a key, an offset and a length of a view of a storage")
        begin_bytes, size = self._number(begin) * item_bytes, self._number(count) * item_bytes
        if begin_bytes + size > storage.bytes:
            raise RecordMismatch(
                f"{self._what}: storage {shown(storage.key)}: expected its views inside its "
                f"{storage.bytes} bytes"
            )
        part = replace(storage, begin=begin_bytes, bytes=size)
        # Torch looks for it among all that it read, and takes what it finds.
        if key in self._records or self._parts.setdefault(key, part) != part:
            raise RecordMismatch(
                f"{self._what}: storage {shown(storage.key)}: expected the same view of it by the "
                f"key {shown(key)} each time"
            )
        return part

    def _record(self, key: str, kind: Global, location: str, count: int) -> TensorStorage:
        """A storage that is exactly its record."""
        if key not in self._records:
            raise RecordMismatch(f"{self._what}: expected a record for storage {shown(key)}")
        element = table.STORAGES.get(kind)
        size = count * (element.size if element is not None else 1)
        if size != self._records[key]:
            raise RecordMismatch(
                f"{self._what}: storage {shown(key)}: expected a record of {size} bytes, "
                f"found {self._records[key]}"
            )
        return TensorStorage(key=key, kind=kind, element=element, location=location, bytes=size)

    def _place(
        self, storage: TensorStorage, element: table.Element, values: tuple[Value, ...]
    ) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Offset, size and stride of a tensor that lies inside its storage."""
        offset, size, stride = self._number(values[0]), self._sides(values[1]), None
        if isinstance(values[2], Tuple):
            stride = self._sides(values[2])
        if not isinstance(values[1], Tuple) or stride is None or len(stride) != len(size):
            raise self._fault("a size and as many strides")
        last = _reach(size, stride)
        if (offset + last) * element.size > storage.bytes:
            raise RecordMismatch(
                f"{self._what}: storage {shown(storage.key)}: expected its tensors inside its "
                f"{storage.bytes} bytes, found one that reaches to {(offset + last) * element.size}"
            )
        if math.prod(size) * element.size > self._logical_max:
            raise ModelLimitExceeded(
                f"{self._what}: storage {shown(storage.key)}: expected tensors of at most "
                f"{self._logical_max} bytes, found {math.prod(size) * element.size}"
            )
        # A dimension of 0 makes no room for others that do not fit: strides are made of them.
        if _expanded(size) > MODEL_ELEMENTS_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: storage {shown(storage.key)}: expected at most "
                f"{MODEL_ELEMENTS_MAX} elements"
            )
        return offset, size, stride

    def _number(self, value: Value) -> int:
        if type(value) is not int or not 0 <= value <= _INT64_MAX:
            raise self._fault("a whole number from 0 for an offset, size, stride or length")
        return value

    def _sides(self, value: Value) -> tuple[int, ...]:
        if isinstance(value, Call) and value.function == table.SIZE and value.bare:
            given = value.arguments.values
            value = given[0] if len(given) == 1 else None
        if not isinstance(value, Tuple):
            raise self._fault("a size")
        if len(value.values) > MODEL_DIMENSIONS_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: expected tensors of at most {MODEL_DIMENSIONS_MAX} dimensions, "
                f"found {len(value.values)}"
            )
        return tuple(map(self._number, value.values))

    def _gradient(self, required: Value, hooks: Value, element: table.Element) -> bool:
        if type(required) is not bool or (required and not element.differentiable):
            raise self._fault("whether a tensor requires a gradient")
        match hooks:
            case None:  # torch 0.4
                return required
            case Call(
                function=table.ORDERED_DICT,
                arguments=Tuple(values=() | (List(values=[]),)),  # Python 2 gave it a list
                bare=True,
            ):
                return required
            case _:
                raise self._fault("no hooks on a tensor")

    def _bits(self, value: Value, element: table.Element) -> dict[str, bool]:
        """The lazy conjugate and negative bits, which torch writes when they are set."""
        pairs = value.pairs if isinstance(value, Dict) else [(None, None)]
        known = {"neg", "conj"} if element.name.startswith("complex") else {"neg"}
        names = [name for name, _ in pairs]
        if not all(type(bit) is bool for _, bit in pairs) or not known.issuperset(names):
            raise self._fault("only the bits that torch sets on a tensor")
        if len(set(names)) != len(names) or not element.differentiable:
            raise self._fault("only the bits that torch sets on a tensor")
        return {str(name): bool(bit) for name, bit in pairs}

    def _dtype(self, value: Value) -> table.Element:
        if not isinstance(value, Global) or value not in table.DTYPES:
            raise self._fault("the type of the elements of a tensor")
        return table.DTYPES[value]


def _expanded(size: tuple[int, ...]) -> int:
    return math.prod(size) if 0 not in size else math.prod(max(side, 1) for side in size)


def _reach(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    if not size:
        return 1
    if 0 in size:
        return 0
    return 1 + sum((side - 1) * step for side, step in zip(size, stride, strict=True))


def _attributes(value: Value, at: int) -> tuple[tuple[str, Value], ...] | None:
    """The attributes that a state sets on a tensor by name; None: it is not such a state."""
    if isinstance(value, Tuple) and len(value.values) == 2 and value.values[1] is None:
        value = value.values[0]  # without slots
    if value is None:
        return ()
    if not isinstance(value, Dict) or value.grown_at > at:
        return None
    found = {
        name: held
        for name, held in value.pairs
        if type(name) is str and not name.startswith("__")  # those are Python's own
    }
    return tuple(found.items()) if len(found) == len(value.pairs) else None


def _layout(value: Value) -> str | None:
    match value:
        case Call(function=table.LAYOUT, arguments=Tuple(values=(str() as name,))) if (
            name in table.LAYOUTS and value.bare
        ):
            return name
    return None


def _given(value: Value) -> Value:
    """The result of a call, if it is known; else the call itself."""
    return value.gives if isinstance(value, Call) and value.gives is not None else value


def _identity(
    values: tuple[Value, ...], *, views: bool
) -> tuple[Global, str, Value, Value, Value] | str:
    """Class, key, device, length and view of a storage, or what was expected instead."""
    match values:
        case ("storage", Global() as kind, str() as key, location, count):
            return kind, key, location, count, None
        case ("storage", Global() as kind, str() as key, location, count, view) if views:
            return kind, key, location, count, view
        case ("storage", _, _, _, _):
            return "a class and a key of a storage"
        case _:
            return "a reference to a storage"
