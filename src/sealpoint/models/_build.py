# SPDX-License-Identifier: Apache-2.0
"""From a file to a state: containers with tensors where the nodes of its structure stand.

Each tensor of the file stands somewhere in the structure, so that nothing is hidden in a file.
"""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import ENCODE_DEPTH_MAX
from sealpoint.models._build_tensors import TensorBuilder, dtype_of, plain_tensor
from sealpoint.models._nodes import (
    ArrayNode,
    CounterNode,
    DeviceNode,
    DtypeNode,
    QuantizedNode,
    SizeNode,
    SparseNode,
    StateDictNode,
    TensorNode,
)
from sealpoint.models._placing import Placing
from sealpoint.models._safetensors import Header

__all__ = ["build_plain", "build_state"]


def build_plain(
    torch: Any, header: Header, memory: Mapping[str, Any], placing: Placing, what: str
) -> dict[str, Any]:
    """The tensors of a file without a structure, by name.

    Args:
        torch: The module.
        header: The header of the file.
        memory: The bytes of each tensor, as a tensor of bytes that fills its storage.
        placing: Where tensors go.
        what: What the file is called.
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
                f"{self._what}: expected every tensor in the structure, found "
                f"{len(self._tensors.unused)} beside it, such as {min(self._tensors.unused)!r}"
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
        raise ModelMalformed(f"{self._what}: expected tensors in the header, found one beside it")

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
    header: Header,
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
