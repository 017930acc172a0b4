# SPDX-License-Identifier: Apache-2.0
"""From a file to a state: containers with tensors where the nodes of its structure stand.

Each tensor of the file stands somewhere in the structure, so that nothing is hidden in a file.

Tensors over the memory that was read from a file, as the nodes of its structure describe them.

Every field of a node is checked against the header before a tensor is made of it: types against the
closed table, views against the bytes of their entry, and their expanded, copied or checked sizes
against bounds.
"""

import argparse
import math
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

from sealpoint.errors import ModelError, ModelLimitExceeded, ModelMalformed
from sealpoint.limits import ENCODE_DEPTH_MAX, MODEL_DIMENSIONS_MAX, MODEL_EXPANDED_BYTES_LEAST
from sealpoint_models._device_placement import Placing, extent, is_permuted, view_of
from sealpoint_models._optional_packages import require_numpy
from sealpoint_models._sparse_tensors import check_sparse
from sealpoint_models._structure_nodes import (
    ArrayNode,
    CounterNode,
    DeviceNode,
    DtypeNode,
    InertNode,
    NamespaceNode,
    QuantizedNode,
    SizeNode,
    SparseNode,
    StateDictNode,
    TensorNode,
)
from sealpoint_models.scan import QUANTIZED, Inert, TensorBudget, contiguous_stride, quantizer_fault
from sealpoint_models.scan._safetensors import ARRAYS, CARRIERS, ModelHeader, Tensor, carrier_of

_LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_NAMESPACES = {"argparse": argparse.Namespace, "types": types.SimpleNamespace}
_MADE = ("name", "call", "object")
_INT_MAX = (1 << 63) - 1


def dtype_of(torch: Any, name: object, what: str) -> Any:
    """A type of torch by a name of the closed table."""
    found = getattr(torch, name, None) if type(name) is str and name in CARRIERS else None
    if found is None:
        raise ModelMalformed(f"{what}: expected a type of elements that this torch has")
    return found


def plain_tensor(torch: Any, tensor: Tensor, memory: Any, placing: Placing, what: str) -> Any:
    """One tensor of a file, as the header describes it."""
    name = carrier_of(tensor.element)
    if name is None:
        raise ModelMalformed(
            f"{what}: tensor {tensor.name!r}: expected a type of elements that torch has, found "
            f"{tensor.element}"
        )
    where = f"{what}: tensor {tensor.name!r}"
    dtype = dtype_of(torch, name, where)
    if dtype is torch.bool:
        _check_booleans(memory, where)  # before it goes where nobody can look at it
    geometry = tensor.shape, contiguous_stride(tensor.shape)
    return view_of(torch, placing(memory, "cpu"), dtype, 0, geometry)


def _check_booleans(memory: Any, where: str) -> None:
    if memory.numel() and memory.max() > 1:
        raise ModelMalformed(f"{where}: expected booleans of 0 or 1, found a byte of another value")


class TensorBuilder:
    """Makes the tensors of one file.

    Args:
        torch: The module.
        header: The header of the file.
        memory: The bytes of each tensor, as a tensor of bytes that fills its storage.
        placing: Where tensors go.
        what: The name of the file, for messages.
    """

    def __init__(
        self,
        torch: Any,
        header: ModelHeader,
        memory: Mapping[str, Any],
        placing: Placing,
        what: str,
    ) -> None:
        self._torch = torch
        self._header = header
        self._raw = memory
        self._memory: dict[str, Any] = {}
        self._devices: dict[str, str] = {}
        self._placing = placing
        self._what = what
        self.unused = set(header.tensors)
        """The names of tensors that no node has used yet."""
        size = max((tensor.end for tensor in header.tensors.values()), default=0)
        self._expanded_bytes_max = max(size, MODEL_EXPANDED_BYTES_LEAST)
        self._budget = TensorBudget(size, what)
        self._booleans: set[str] = set()

    def _refuse(self, entry: object, expected: str) -> ModelMalformed:
        name = entry[:80] if type(entry) is str else type(entry).__name__
        return ModelMalformed(f"{self._what}: tensor {name!r}: expected {expected}")

    def array(self, node: ArrayNode) -> Any:
        """A numpy array."""
        tensor, dtype = self._tensor(node.entry), node.dtype
        if type(dtype) is not str or ARRAYS.get(dtype) != tensor.element:
            raise self._refuse(tensor.name, "an array of its own type")
        if tensor.element == "BOOL":
            self._check_booleans(tensor)
        if tensor.size == 0:
            return require_numpy().zeros(tensor.shape, dtype)
        return self._raw[tensor.name].cpu().numpy().view(dtype).reshape(tensor.shape)

    def _tensor(self, entry: object) -> Tensor:
        tensor = self._header.tensors.get(entry) if type(entry) is str else None
        if tensor is None:
            raise self._refuse(entry, "a tensor of the file")
        self.unused.discard(tensor.name)
        return tensor

    def _check_booleans(self, tensor: Tensor) -> None:
        """Once for each entry: any number of nodes may stand for it."""
        if tensor.name not in self._booleans:
            _check_booleans(self._raw[tensor.name], f"{self._what}: tensor {tensor.name!r}")
            self._booleans.add(tensor.name)

    def whole_numbers(self, numbers: object, entry: object) -> list[int]:
        if (
            type(numbers) is list
            and len(numbers) <= MODEL_DIMENSIONS_MAX
            and all(type(number) is int and 0 <= number <= _INT_MAX for number in numbers)
        ):
            return numbers
        raise self._refuse(entry, "shapes and strides of whole numbers")

    def _placed(self, tensor: Tensor, device: str) -> Any:
        """The memory of an entry, where it belongs. All tensors over it are in one place."""
        checked = self._placing.checked(device, self._what)
        if checked.partition(":")[0] == "meta":
            raise self._refuse(tensor.name, "a device with memory")
        if tensor.name not in self._memory:
            self._memory[tensor.name] = self._placing(self._raw[tensor.name], checked)
            self._devices[tensor.name] = checked
        if self._devices[tensor.name] != checked:
            raise self._refuse(tensor.name, "one device for all that shares its memory")
        return self._memory[tensor.name]

    def _part(self, node: Any) -> Any:
        """A dense tensor that another one is made of, which alone has gradients."""
        if type(node) is not TensorNode or not (node.requires_grad is node.parameter is False):
            raise ModelMalformed(
                f"{self._what}: expected dense parts without gradients in a sparse or quantized one"
            )
        return self.dense(node)

    def dense(self, node: TensorNode) -> Any:
        """A dense tensor, from a node whose fields are anything."""
        tensor = self._tensor(node.entry)
        dtype = dtype_of(self._torch, node.dtype, f"{self._what}: tensor {tensor.name!r}")
        flags = type(node.requires_grad), type(node.parameter)
        if flags != (bool, bool) or (node.requires_grad and not _has_gradients(dtype)):
            raise self._refuse(tensor.name, "flags, and gradients for floating point only")
        if node.offset is None and node.shape is None:
            built = self._whole(node, tensor, dtype)
        else:
            built = self._view(node, tensor, dtype)
        if node.parameter:
            return self._torch.nn.Parameter(built, requires_grad=node.requires_grad)
        return built.requires_grad_(node.requires_grad)

    def _whole(self, node: TensorNode, tensor: Tensor, dtype: Any) -> Any:
        carrier = CARRIERS[node.dtype]
        shape = tensor.shape[:-1] if carrier.pair else tensor.shape
        if carrier.element != tensor.element or (carrier.pair and tensor.shape[-1:] != (2,)):
            raise self._refuse(tensor.name, f"elements of {carrier.element}")
        if dtype is self._torch.bool:
            self._check_booleans(tensor)
        memory = self._placed(tensor, node.device)
        built = view_of(self._torch, memory, dtype, 0, (shape, contiguous_stride(shape)))
        if node.stride is None:
            return built
        stride = self.whole_numbers(node.stride, tensor.name)
        if len(stride) != len(shape) or not is_permuted(shape, stride):
            raise self._refuse(tensor.name, "a stride without gaps and overlaps")
        return self._permuted(tensor, built, stride)

    def _permuted(self, tensor: Tensor, built: Any, stride: list[int]) -> Any:
        """The same elements in another order in memory; once for all that share it."""
        key = f"{tensor.name}\x00{stride}"
        if key not in self._memory:
            self._budget.copy(_bytes_of(built))
            moved = self._torch.empty_strided(
                built.shape, stride, dtype=built.dtype, device=built.device
            )
            self._memory[key] = moved.copy_(built)
        memory = self._memory[key]
        return view_of(self._torch, memory, built.dtype, 0, (built.shape, stride))

    def _view(self, node: TensorNode, tensor: Tensor, dtype: Any) -> Any:
        shape = self.whole_numbers(node.shape, tensor.name)
        stride = self.whole_numbers(node.stride, tensor.name)
        item_bytes = CARRIERS[node.dtype].item_bytes
        good = len(shape) == len(stride) and type(node.offset) is int and node.offset >= 0
        if not good or node.offset % item_bytes:  # type: ignore[operator]
            raise self._refuse(tensor.name, "a view with an offset, a shape and a stride")
        begin: int = node.offset  # type: ignore[assignment]
        if begin + extent(shape, stride) * item_bytes > tensor.size:
            raise self._refuse(tensor.name, f"a view inside of its {tensor.size} bytes")
        expanded = math.prod(max(side, 1) for side in shape) * item_bytes
        if expanded > self._expanded_bytes_max:
            raise ModelLimitExceeded(
                f"{self._what}: tensor {tensor.name!r}: expected a view of at most "
                f"{self._expanded_bytes_max} bytes, found {expanded}"
            )
        if dtype is self._torch.bool:
            self._check_booleans(tensor)
        memory = self._placed(tensor, node.device)
        return view_of(self._torch, memory, dtype, begin // item_bytes, (shape, stride))

    def sparse(self, node: SparseNode) -> Any:
        """A sparse tensor."""
        torch, shape = self._torch, self.whole_numbers(node.shape, node.layout)
        types = tuple(map(type, (node.layout, node.indices, node.coalesced, node.requires_grad)))
        if types != (str, list, bool, bool) or node.layout not in _LAYOUTS:
            raise ModelMalformed(f"{self._what}: expected a sparse tensor of a known layout")
        indices = [self._part(part) for part in node.indices]
        values = self._part(node.values)
        self._budget.check_indices(sum(map(_bytes_of, indices)))
        try:
            if node.layout == "sparse_coo":
                (coordinates,) = indices
                built = torch.sparse_coo_tensor(
                    coordinates, values, shape, is_coalesced=node.coalesced, check_invariants=False
                )
            else:
                compressed, plain = indices
                built = torch.sparse_compressed_tensor(
                    compressed,
                    plain,
                    values,
                    shape,
                    layout=getattr(torch, node.layout),
                    check_invariants=False,
                )
            check_sparse(torch, built, self._what)
        except ModelError:
            raise
        except (RuntimeError, ValueError, TypeError, IndexError) as exc:
            raise ModelMalformed(f"{self._what}: expected the parts of a sparse tensor") from exc
        if node.requires_grad and not _has_gradients(built.dtype):
            raise ModelMalformed(f"{self._what}: expected gradients for floating point only")
        return built.requires_grad_(node.requires_grad)

    def quantized(self, node: QuantizedNode) -> Any:
        """A quantized tensor."""
        elements = self._part(node.elements)
        known = type(node.dtype) is str and node.dtype in QUANTIZED
        if not known or node.elements.dtype != QUANTIZED[node.dtype][0]:
            raise ModelMalformed(f"{self._what}: expected a quantized tensor of a known type")
        self._budget.copy(_bytes_of(elements))
        if type(node.axis) is int:
            return self._per_channel(node, elements)
        if node.axis is not None or node.floating is not False:
            raise ModelMalformed(f"{self._what}: expected an axis only with a scale for each place")
        if (fault := quantizer_fault(node.dtype, node.scale, node.zero_point)) is not None:
            raise ModelMalformed(f"{self._what}: {fault}")
        make = self._torch._make_per_tensor_quantized_tensor  # noqa: SLF001 (no public name)
        return self._made(make, elements, node.scale, node.zero_point)

    def _per_channel(self, node: QuantizedNode, elements: Any) -> Any:
        scales, zeros = self._part(node.scale), self._part(node.zero_point)
        axis: Any = node.axis
        good = 0 <= axis < elements.dim() and scales.dim() == zeros.dim() == 1
        if not good or not scales.numel() == zeros.numel() == elements.shape[axis]:
            raise ModelMalformed(f"{self._what}: expected a scale for each place on the axis")
        if type(node.floating) is not bool:
            raise ModelMalformed(f"{self._what}: expected zero points of a known kind")
        kinds = ("float32", "float32") if node.floating else ("float64", "int64")
        if (node.scale.dtype, node.zero_point.dtype) != kinds:  # type: ignore[union-attr]
            raise ModelMalformed(f"{self._what}: expected scales and zero points of {kinds}")
        # Torch would copy them for each tensor, however few elements it has.
        if not (scales.is_contiguous() and zeros.is_contiguous()):
            raise ModelMalformed(f"{self._what}: expected scales and zero points in order")
        make = self._torch._make_per_channel_quantized_tensor  # noqa: SLF001 (no public name)
        return self._made(make, elements, scales, zeros, axis)

    def _made(self, make: Callable[..., Any], elements: Any, *arguments: Any) -> Any:
        try:
            return make(elements, *arguments)
        except RuntimeError as exc:
            raise ModelError(
                f"{self._what}: device {str(elements.device)!r} cannot hold a quantized tensor",
                hint="Load it on another device, such as cpu.",
            ) from exc


def _bytes_of(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _has_gradients(dtype: Any) -> bool:
    return bool(dtype.is_floating_point or dtype.is_complex)


def build_plain(
    torch: Any, header: ModelHeader, memory: Mapping[str, Any], placing: Placing, what: str
) -> dict[str, Any]:
    """The tensors of a file without a structure, by name.

    Args:
        torch: The module.
        header: The header of the file.
        memory: The bytes of each tensor, as a tensor of bytes that fills its storage.
        placing: Where tensors go.
        what: The name of the file, for messages.
    """
    return {
        name: plain_tensor(torch, tensor, memory[name], placing, what)
        for name, tensor in header.tensors.items()
    }


class _Building:
    """One file on its way to a state."""

    def __init__(self, torch: Any, tensors: TensorBuilder, placing: Placing, what: str) -> None:
        self._torch = torch
        self._tensors = tensors
        self._placing = placing
        self._what = what
        self._depth = 0
        self._own: dict[type, Callable[[Any], Any]] = {
            dict: self._build_dict,
            OrderedDict: lambda value: OrderedDict(self._build_dict(value)),
            defaultdict: self._build_defaultdict,
            list: lambda value: [*map(self.build, value)],
            tuple: lambda value: tuple(map(self.build, value)),
            deque: lambda value: deque(map(self.build, value), value.maxlen),
            slice: lambda value: slice(*map(self.build, (value.start, value.stop, value.step))),
            TensorNode: tensors.dense,
            SparseNode: tensors.sparse,
            QuantizedNode: tensors.quantized,
            ArrayNode: tensors.array,
            SizeNode: self._build_size,
            DtypeNode: self._build_dtype,
            DeviceNode: self._build_device,
            CounterNode: self._build_counter,
            StateDictNode: self._build_state_dict,
            NamespaceNode: self._build_namespace,
            InertNode: self._build_inert,
            torch.Tensor: self._refuse_inline,
        }

    def run(self, structure: Any) -> Any:
        """The state."""
        try:
            state = self.build(structure)
        except RecursionError as exc:  # the caller is nested deeply itself
            raise self._too_deep() from exc
        if self._tensors.unused:
            raise ModelMalformed(
                f"{self._what}: {len(self._tensors.unused)} tensors are not part of the "
                f"structure, such as {min(self._tensors.unused)!r}"
            )
        return state

    def build(self, value: Any) -> Any:
        """A value with tensors in the place of nodes."""
        building = self._own.get(type(value))
        if building is None:
            return value
        self._depth += 1
        # The codec reads deeper than anybody writes; a tensor may be inside of the deepest list.
        if self._depth > ENCODE_DEPTH_MAX + 1:
            raise self._too_deep()
        built = building(value)
        self._depth -= 1
        return built

    def _too_deep(self) -> ModelLimitExceeded:
        return ModelLimitExceeded(
            f"{self._what}: expected at most {ENCODE_DEPTH_MAX} values nested in one another, "
            "and room for them on the stack"
        )

    def _refuse_inline(self, _tensor: Any) -> Any:
        """The codec knows tensors too; here every one of them is in the header for all to see."""
        raise ModelMalformed(f"{self._what}: a tensor of the structure is not in the header")

    def _build_dict(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        return {key: self.build(member) for key, member in value.items()}

    def _build_defaultdict(self, value: Any) -> Any:
        built: defaultdict[Any, Any] = defaultdict(value.default_factory)
        built.update(self._build_dict(value))
        return built

    def _build_state_dict(self, node: StateDictNode) -> Any:
        if type(node.items) is not OrderedDict:
            raise ModelMalformed(f"{self._what}: expected a state dict of items in order")
        built: Any = OrderedDict(self._build_dict(node.items))
        built._metadata = self.build(node.metadata)  # noqa: SLF001 (where torch looks)
        return built

    def _build_counter(self, node: CounterNode) -> Any:
        if type(node.counts) is not dict:
            raise ModelMalformed(f"{self._what}: expected a counter of counts")
        return Counter(self._build_dict(node.counts))

    def _build_namespace(self, node: NamespaceNode) -> Any:
        kind = _NAMESPACES.get(node.kind) if type(node.kind) is str else None
        good = type(node.attributes) is dict and all(type(name) is str for name in node.attributes)
        if kind is None or not good:
            raise ModelMalformed(f"{self._what}: expected a namespace of attributes by name")
        built = kind()
        vars(built).update(self._build_dict(node.attributes))
        return built

    def _build_inert(self, node: InertNode) -> Inert:
        """The built object is an `Inert`, whatever the name in it says."""
        kinds = tuple(map(type, (node.type, node.made, node.arguments, node.items, node.pairs)))
        if kinds != (str, str, tuple, list, list) or node.made not in _MADE:
            raise ModelMalformed(f"{self._what}: expected an inert value of a name and its parts")
        if any(type(pair) is not tuple or len(pair) != 2 for pair in node.pairs):
            raise ModelMalformed(f"{self._what}: expected the pairs of an inert value by twos")
        return Inert(
            node.type,
            made=node.made,  # type: ignore[arg-type]
            arguments=self.build(node.arguments),
            keywords=self.build(node.keywords),
            state=self.build(node.state),
            items=self.build(node.items),
            pairs=self.build(node.pairs),
        )

    def _build_size(self, node: SizeNode) -> Any:
        return self._torch.Size(self._tensors.whole_numbers(node.sides, "a size"))

    def _build_dtype(self, node: DtypeNode) -> Any:
        return dtype_of(self._torch, node.name, self._what)

    def _build_device(self, node: DeviceNode) -> Any:
        try:
            return self._torch.device(self._placing.checked(node.name, self._what))
        except RuntimeError as exc:
            raise ModelMalformed(f"{self._what}: expected the name of a device") from exc


def build_state(
    torch: Any,
    structure: Any,
    *,
    header: ModelHeader,
    memory: Mapping[str, Any],
    placing: Placing,
    what: str,
) -> Any:
    """The state of a file with a structure. Args are those of `build_plain`.

    Raises:
        ModelMalformed: The structure does not fit the file.
        SparseInvalid: A sparse tensor points outside of itself.
        ModelLimitExceeded: It asks for more memory or nesting than it may.
    """
    tensors = TensorBuilder(torch, header, memory, placing, what)
    return _Building(torch, tensors, placing, what).run(structure)
