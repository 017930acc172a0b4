# SPDX-License-Identifier: Apache-2.0
"""What the pickle of a `.pt` file says about tensors, held against the storages that are there.

A tensor that is accepted lies wholly inside its storage, its storage is exactly one record, and
the same record is always described the same way. Sizes, strides and offsets are compared with
whole-number arithmetic before torch sees them. It refuses tensors without a storage or with
attributes, and tensors that repeat few elements into much more than the file holds.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sealpoint.errors import GlobalNotAllowed, ModelLimitExceeded, ModelMalformed, RecordMismatch
from sealpoint.limits import (
    MODEL_DIMENSIONS_MAX,
    MODEL_ELEMENTS_MAX,
    MODEL_EXPANDED_BYTES_LEAST,
)
from sealpoint.models import _pt_table as table
from sealpoint.models._placing import contiguous_stride
from sealpoint.models._sparse import TensorBudget, compressed_fault, coo_fault, quantizer_fault
from sealpoint.scan import Call, Dict, Global, Persistent, Tuple, Value, shown

_INT64_MAX = (1 << 63) - 1
_LOCATION = re.compile(r"(?!meta\b)[a-z][a-z0-9]{0,31}(:[0-9]{1,4})?", re.ASCII)
_CHANNEL_BYTES = 8
"""What torch makes of a scale or a zero point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Storage:
    """A record as a tensor sees it; no element where the tensor names the type itself."""

    key: str
    kind: Global
    element: table.Element | None
    location: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    """A tensor that fits its storage; the layout is that of a sparse one."""

    element: table.Element
    size: tuple[int, ...]
    in_order: bool = False
    """Its elements lie one behind the other."""
    layout: str = table.STRIDED
    is_parameter: bool = False


class Tensors:
    """Judges all tensors of one file."""

    def __init__(self, records: Mapping[str, int], file_bytes: int, what: str) -> None:
        """Begin with none.

        Args:
            records: The bytes of each storage record, by its key.
            file_bytes: The size of the whole file.
            what: The file, for messages.
        """
        self._records = records
        self._logical_max = max(file_bytes, MODEL_EXPANDED_BYTES_LEAST)
        self._budget = TensorBudget(file_bytes, what)
        self._what = what
        self._storages: dict[str, _Storage] = {}
        self._judged: dict[int, _Tensor] = {}
        self.locations: set[str] = set()
        self._rebuilds = {
            table.TENSOR: self._plain,
            table.TENSOR_V2: self._plain,
            table.TENSOR_V3: self._plain,
            table.QUANTIZED: self._quantized,
            table.SPARSE: self._sparse,
            table.PARAMETER: self._parameter,
        }

    def knows(self, function: Global) -> bool:
        """Whether a function makes a tensor."""
        return function in self._rebuilds

    def judge(self, call: Call) -> _Tensor:
        """Check the call of a function that makes a tensor.

        Raises:
            GlobalNotAllowed: It names something that is not in the table.
            ModelMalformed: Its arguments are not those that torch writes.
            RecordMismatch: It does not fit its storage, or the storage its record.
            ModelLimitExceeded: It has too many dimensions, or repeats its elements too often.
        """
        found = self._judged.get(id(call))
        if found is None:
            if call.pairs or call.built:
                raise self._fault("a tensor without items and attributes")
            found = self._rebuilds[call.function](call.function, call.arguments.values)
            self._judged[id(call)] = found
        return found

    def check_all_used(self) -> None:
        """Check that no record is left that nothing refers to.

        Raises:
            ModelMalformed: There is one.
        """
        for key in self._records:
            if key not in self._storages:
                raise self._fault(f"every storage to be used, found {shown(key)} unused")

    def _fault(self, expected: str) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}")

    def _tensor(self, value: Value) -> _Tensor:
        if not isinstance(value, Call) or not self.knows(value.function):
            raise self._fault("a tensor as part of a tensor")
        return self.judge(value)

    # The functions of the table.

    def _plain(self, function: Global, values: tuple[Value, ...]) -> _Tensor:
        """Storage, offset, size, stride; then gradient and hooks; then type; then bits."""
        fixed = {table.TENSOR: 4, table.TENSOR_V2: 6, table.TENSOR_V3: 7}[function]
        most = fixed if function == table.TENSOR else fixed + 1
        if not fixed <= len(values) <= most:
            raise self._fault(f"{fixed} arguments for a tensor, found {len(values)}")
        storage = self._storage(values[0])
        element = storage.element
        if function == table.TENSOR_V3:
            if storage.kind != table.UNTYPED:
                raise self._fault("a storage of bytes for a tensor that names its type")
            element = self._dtype(values[6])
        if element is None or element.quantized:
            raise self._fault("a storage of the type of its tensor")
        if function != table.TENSOR:
            self._gradient(values[4], values[5], element)
        if len(values) > fixed:
            self._bits(values[fixed], element)
        size, in_order = self._place(storage, element, values[1:4])
        return _Tensor(element=element, size=size, in_order=in_order)

    def _quantized(self, _function: Global, values: tuple[Value, ...]) -> _Tensor:
        """Storage, offset, size, stride, the quantizer, gradient, hooks."""
        if len(values) != 7:
            raise self._fault(f"7 arguments for a quantized tensor, found {len(values)}")
        storage = self._storage(values[0])
        if storage.element is None or not storage.element.quantized:
            raise self._fault("a storage of quantized elements for a quantized tensor")
        size, _ = self._place(storage, storage.element, values[1:4])
        self._quantizer(values[4], storage.element, size)
        self._gradient(values[5], values[6], storage.element)
        return _Tensor(element=storage.element, size=size)

    def _quantizer(self, value: Value, element: table.Element, size: tuple[int, ...]) -> None:
        match value:
            case Tuple(values=(table.PER_TENSOR, float() as scale, int() as zero)):
                if (fault := quantizer_fault(element.name, scale, zero)) is not None:
                    raise ModelMalformed(f"{self._what}: {fault}")
            case Tuple(values=(Global() as scheme, scales, zeros, int() as axis)) if (
                scheme in table.PER_CHANNEL and type(axis) is not bool
            ):
                if not 0 <= axis < len(size):
                    raise RecordMismatch(
                        f"{self._what}: quantized tensor: expected an axis of its {len(size)} "
                        f"dimensions, found {axis}"
                    )
                names = table.PER_CHANNEL[scheme]
                self._channels(scales, size[axis], ("float32", "float64"))
                self._channels(zeros, size[axis], names)
            case _:
                raise self._fault("a known quantizer and its parameters")

    def _channels(self, value: Value, length: int, names: tuple[str, ...]) -> None:
        """Check the scales or zero points, one for each channel: else they are read beyond."""
        found = self._tensor(value)
        if found.size != (length,):
            raise RecordMismatch(
                f"{self._what}: quantized tensor: expected {length} scales and zero points, "
                f"found {found.size}"
            )
        if found.element.name not in names or found.layout != table.STRIDED:
            raise self._fault(f"scales and zero points of {' or '.join(names)}")
        # Torch makes copies, for each tensor, of what is not as it wants it.
        if not found.in_order or found.element.size != _CHANNEL_BYTES:
            self._budget.copy(length * _CHANNEL_BYTES)

    def _sparse(self, _function: Global, values: tuple[Value, ...]) -> _Tensor:
        """The layout, and a tuple of indices, values and size."""
        layout = self._layout(values[0]) if len(values) == 2 else None
        if layout is None or layout == table.STRIDED or not isinstance(values[1], Tuple):
            raise self._fault("a sparse layout and the parts of a sparse tensor")
        parts, sides, fault = self._sparse_parts(layout, values[1].values)
        indices = parts[:-1]
        self._budget.check_indices(
            sum(math.prod(part.size) * part.element.size for part in indices)
        )
        kinds = {part.element.name for part in indices}
        layouts = {part.layout for part in parts}
        if kinds not in ({"int64"}, {"int32"}) or layouts != {table.STRIDED}:
            raise self._fault("indices of a sparse tensor as ints")
        if parts[-1].element.quantized:
            raise self._fault("values of a sparse tensor that are not quantized")
        if fault is not None:
            raise RecordMismatch(f"{self._what}: sparse tensor: {fault}")
        return _Tensor(element=parts[-1].element, size=sides, layout=layout)

    def _sparse_parts(
        self, layout: str, values: tuple[Value, ...]
    ) -> tuple[list[_Tensor], tuple[int, ...], str | None]:
        """The indices and values of a sparse tensor, its size, and why they do not fit it."""
        match layout, values:
            case "torch.sparse_coo", (indices, held, size, *rest):
                if rest not in ([], [None]) and [type(part) for part in rest] != [bool]:
                    raise self._fault("whether a sparse tensor is coalesced")
                parts = [self._tensor(indices), self._tensor(held)]
                sides = self._sides(size)
                return parts, sides, coo_fault(parts[0].size, parts[1].size, sides)
            case _, (compressed, plain, held, size) if layout != "torch.sparse_coo":
                parts = [self._tensor(part) for part in (compressed, plain, held)]
                sides = self._sides(size)
                rows, columns, elements = (part.size for part in parts)
                return parts, sides, compressed_fault(layout, rows, columns, elements, sides)
            case _:
                raise self._fault("the parts of a sparse tensor")

    def _parameter(self, _function: Global, values: tuple[Value, ...]) -> _Tensor:
        """The tensor, gradient, hooks."""
        if len(values) != 3:
            raise self._fault(f"3 arguments for a parameter, found {len(values)}")
        tensor = self._tensor(values[0])
        if tensor.is_parameter:
            raise self._fault("a parameter of a tensor, found one of a parameter")
        self._gradient(values[1], values[2], tensor.element)
        return _Tensor(
            element=tensor.element, size=tensor.size, layout=tensor.layout, is_parameter=True
        )

    # Their arguments.

    def _storage(self, value: Value) -> _Storage:
        if not isinstance(value, Persistent) or not isinstance(value.identity, Tuple):
            raise self._fault("a storage")
        match value.identity.values:
            case ("storage", Global() as kind, str() as key, location, count):
                pass
            case ("storage", _, _, _, _):
                raise self._fault("a class and a key of a storage")
            case _:
                raise self._fault("a reference to a storage")
        if kind not in table.STORAGES and kind != table.UNTYPED:
            raise GlobalNotAllowed(
                f"{self._what}: expected a storage class, found {shown(str(kind))}"
            )
        if not isinstance(location, str) or not _LOCATION.fullmatch(location):
            raise self._fault("the device of a storage, which is not meta")
        storage = self._record(key, kind, location, self._number(count))
        if self._storages.setdefault(key, storage) != storage:
            raise RecordMismatch(
                f"{self._what}: storage {shown(key)}: expected the same type, length and device "
                "each time"
            )
        self.locations.add(location)
        return storage

    def _record(self, key: str, kind: Global, location: str, count: int) -> _Storage:
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
        return _Storage(key=key, kind=kind, element=element, location=location, bytes=size)

    def _place(
        self, storage: _Storage, element: table.Element, values: tuple[Value, ...]
    ) -> tuple[tuple[int, ...], bool]:
        """The size of a tensor that lies inside its storage, and whether it lies in order."""
        offset, size, stride = self._number(values[0]), self._sides(values[1]), None
        if isinstance(values[2], Tuple):
            stride = self._sides(values[2])
        if not isinstance(values[1], Tuple) or stride is None or len(stride) != len(size):
            raise self._fault("a size and as many strides")
        last = 0
        if 0 not in size:
            last = 1 + sum((side - 1) * step for side, step in zip(size, stride, strict=True))
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
        if math.prod(max(side, 1) for side in size) > MODEL_ELEMENTS_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: storage {shown(storage.key)}: expected at most "
                f"{MODEL_ELEMENTS_MAX} elements"
            )
        return size, list(stride) == contiguous_stride(size)

    def _number(self, value: Value) -> int:
        if type(value) is not int or not 0 <= value <= _INT64_MAX:
            raise self._fault("a whole number from 0 for an offset, size, stride or length")
        return value

    def _sides(self, value: Value) -> tuple[int, ...]:
        match value:
            case Call(function=table.SIZE, arguments=Tuple(values=(sides,)), built=False) if (
                not value.pairs
            ):
                value = sides
            case _:
                pass
        if not isinstance(value, Tuple):
            raise self._fault("a size")
        if len(value.values) > MODEL_DIMENSIONS_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: expected tensors of at most {MODEL_DIMENSIONS_MAX} dimensions, "
                f"found {len(value.values)}"
            )
        return tuple(self._number(side) for side in value.values)

    def _gradient(self, required: Value, hooks: Value, element: table.Element) -> None:
        if type(required) is not bool or (required and not element.differentiable):
            raise self._fault("whether a tensor requires a gradient")
        match hooks:
            case Call(function=table.ORDERED_DICT, arguments=Tuple(values=()), built=False) if (
                not hooks.pairs
            ):
                return
        raise self._fault("no hooks on a tensor")

    def _bits(self, value: Value, element: table.Element) -> None:
        """Check the lazy conjugate and negative bits, which torch writes when they are set."""
        pairs = value.pairs if isinstance(value, Dict) else [(None, None)]
        known = {"neg", "conj"} if element.name.startswith("complex") else {"neg"}
        names = [name for name, _ in pairs]
        if not all(type(bit) is bool for _, bit in pairs) or not known.issuperset(names):
            raise self._fault("only the bits that torch sets on a tensor")
        if len(set(names)) != len(names) or not element.differentiable:
            raise self._fault("only the bits that torch sets on a tensor")

    def _dtype(self, value: Value) -> table.Element:
        if not isinstance(value, Global) or value not in table.DTYPES:
            raise self._fault("the type of the elements of a tensor")
        return table.DTYPES[value]

    def _layout(self, value: Value) -> str | None:
        match value:
            case Call(function=table.LAYOUT, arguments=Tuple(values=(str() as name,))) if (
                name in table.LAYOUTS and not value.pairs and not value.built
            ):
                return name
        return None
