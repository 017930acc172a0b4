# SPDX-License-Identifier: Apache-2.0
"""From a state to a file: the structure without its tensors, and the tensors to write.

This module walks containers; the codec gets everything else, except tensors and other objects of
torch or numpy with a node, and saves it or raises the reason. Properties of a tensor that raw bytes
cannot express (a place in a graph, a gradient, attributes) are refused, with the path to it.

The module also decides which tensors share memory, and which part of it is written.

Tensors whose bytes overlap are one *region*, and one tensor of the file. Where one of them
covers the region, the file holds that one, and the others are views of it; otherwise the file
holds the bytes as they lie, and all of them are views. A tensor that shares with nobody is
written in the order of its indices, whatever its order in memory. Nothing else of a storage is
written: where the bytes of a region belong to none of its tensors, the file has zeros.
"""

import argparse
import json
import math
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sealpoint.errors import EncodeLimitExceeded, SparseInvalid, TypeNotAllowed, ValueNotAllowed
from sealpoint.limits import (
    ENCODE_DEPTH_MAX,
    MODEL_DIMENSIONS_MAX,
    MODEL_EXPANDED_BYTES_LEAST,
    MODEL_NAME_BYTES_MAX,
)
from sealpoint_models._device_placement import extent, is_permuted, raw_bytes, view_of
from sealpoint_models._draft_file import Source
from sealpoint_models._sparse_tensors import check_sparse
from sealpoint_models._structure_nodes import (
    ArrayNode,
    CounterNode,
    DeviceNode,
    DtypeNode,
    InertNode,
    NamespaceNode,
    Node,
    QuantizedNode,
    SizeNode,
    SparseNode,
    StateDictNode,
    TensorNode,
)
from sealpoint_models.scan import Inert
from sealpoint_models.scan._safetensors import ARRAYS, CARRIERS, ELEMENT_BITS, name_fault

_GRAIN = 16
"""The alignment of views of several types: the widest element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """A tensor of the file that is about to be written."""

    name: str
    element: str
    shape: tuple[int, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class Held:
    """A dense tensor of the state, with its node."""

    name: str
    tensor: Any
    node: TensorNode

    @property
    def size(self) -> int:
        """The size of its elements."""
        return int(self.tensor.numel() * self.tensor.element_size())

    @property
    def begin(self) -> int:
        """The position of its first byte in its storage."""
        return int(self.tensor.storage_offset() * self.tensor.element_size())

    @property
    def end(self) -> int:
        """The position after its last byte."""
        reach = extent(self.tensor.shape, self.tensor.stride())
        return self.begin + reach * int(self.tensor.element_size())

    @property
    def geometry(self) -> tuple[Any, ...]:
        """Tensors of one storage with the same geometry are the same tensor.

        The stride of a side of 1 has no effect, and torch may choose any.
        """
        pairs = zip(self.tensor.shape, self.tensor.stride(), strict=True)
        steps = tuple(step for side, step in pairs if side != 1)
        return self.node.dtype, self.begin, self.tensor.shape, steps


def place_tensors(
    held: Iterable[Held], torch: Any, named: Callable[[str], str]
) -> list[TensorEntry]:
    """Give every node its place in the file.

    Args:
        held: The dense tensors of a state, in order.
        torch: The module.
        named: Gives each entry a name of its own, from the one it would like.
    """
    regions: list[list[Held]] = []
    by_storage: dict[tuple[str, int, int], list[Held]] = {}
    for one in held:
        if one.size == 0:
            regions.append([one])
        else:
            storage = one.tensor.untyped_storage()
            key = str(one.tensor.device), storage.data_ptr(), storage.nbytes()
            by_storage.setdefault(key, []).append(one)
    for sharing in by_storage.values():
        regions += _overlapping(sharing)
    return [_entry(region, torch, named(region[0].name)) for region in regions]


def _overlapping(sharing: list[Held]) -> list[list[Held]]:
    regions: list[list[Held]] = []
    end = -1
    for one in sorted(sharing, key=lambda one: one.begin):
        if one.begin >= end:
            regions.append([])
        regions[-1].append(one)
        end = max(end, one.end)
    return regions


def _entry(region: list[Held], torch: Any, name: str) -> TensorEntry:
    begin, end = region[0].begin, max(one.end for one in region)
    for one in region:
        one.node.entry = name
        one.node.offset = one.begin - begin
        one.node.shape = list(one.tensor.shape)
        one.node.stride = list(one.tensor.stride())
    alone = len({one.geometry for one in region}) == 1
    # Views begin at a multiple of their elements, which a wider one may not do in a narrower one.
    fit = all((one.begin - begin) % one.tensor.element_size() == 0 for one in region)
    for one in region:
        covers = fit and one.size == end - begin and one.tensor.is_contiguous()
        # A tensor alone may have gaps, which are not written; one that repeats elements may not.
        if covers or (alone and one.size <= end - begin):
            return _whole(one, region, torch, name)
    return _flat(region, (begin, end), torch, name)


def _whole(chosen: Held, region: list[Held], torch: Any, name: str) -> TensorEntry:
    """An entry that is one of the tensors."""
    tensor, carrier = chosen.tensor, CARRIERS[chosen.node.dtype]
    shape = tuple(tensor.shape)
    in_order = tensor.is_contiguous() or not is_permuted(shape, tensor.stride())
    for one in region:
        if one.geometry == chosen.geometry:
            one.node.offset = one.node.shape = None
            one.node.stride = None if in_order else list(tensor.stride())
    return TensorEntry(
        name=name,
        element=carrier.element,
        shape=(*shape, 2) if carrier.pair else shape,
        source=lambda: _checked(raw_bytes(torch, tensor), region, torch, name),
    )


def _flat(region: list[Held], span: tuple[int, int], torch: Any, name: str) -> TensorEntry:
    """An entry that is the memory of the tensors as it lies."""
    begin, end = span
    dtype = region[0].node.dtype
    if any(one.node.dtype != dtype for one in region):
        dtype = "uint8"
        before = begin % _GRAIN
        begin -= before
        for one in region:
            one.node.offset = before + (one.node.offset or 0)
    carrier = CARRIERS[dtype]
    count = (end - begin) // carrier.item_bytes

    def source() -> memoryview:
        memory = torch.zeros(end - begin, dtype=torch.uint8, device="cpu")
        for one in region:
            _copy(torch, one.tensor, memory, one.begin - begin)
        return _checked(memoryview(memory.numpy()), region, torch, name)

    shape = (count, 2) if carrier.pair else (count,)
    return TensorEntry(name=name, element=carrier.element, shape=shape, source=source)


def _copy(torch: Any, tensor: Any, memory: Any, at: int) -> None:
    """Copy the elements of a tensor to where they lie, and nothing of what is between them."""
    for dimension, (side, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if side > 1 and step == 0:
            tensor = tensor.narrow(dimension, 0, 1)  # the same element again
    geometry = tensor.shape, tensor.stride()
    target = view_of(torch, memory, tensor.dtype, at // tensor.element_size(), geometry)
    target.copy_(tensor)


def _checked(memory: memoryview, region: list[Held], torch: Any, name: str) -> memoryview:
    """The bytes of an entry; a reader looks at all of them if one of its views is of booleans."""
    if not memory or all(one.node.dtype != "bool" for one in region):
        return memory
    if torch.frombuffer(memory, dtype=torch.uint8).max() > 1:
        raise ValueNotAllowed(
            f"tensor {name}: expected booleans of 0 or 1 in memory that booleans share"
        )
    return memory


_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SHOWN_CHARS = 80
_NAME_CHARS_MAX = MODEL_NAME_BYTES_MAX // 8


class _Names:
    """Names of tensors, each given once."""

    def __init__(self) -> None:
        self._taken = {"__metadata__"}
        self._counts: dict[str, int] = {}

    def __call__(self, wanted: str) -> str:
        name = _UNSAFE.sub("_", wanted)[:_NAME_CHARS_MAX] or "state"
        if name_fault(name) is not None:
            name = name.replace("/", "_").replace("\\", "_")
        unique, count = name, self._counts.get(name, 1)
        while unique in self._taken:
            count += 1
            unique = f"{name}#{count}"
        self._counts[name] = count
        self._taken.add(unique)
        return unique


class _Flattening:
    """One state on its way to a file."""

    def __init__(self, torch: Any, numpy: Any) -> None:
        self._torch = torch
        self._numpy = numpy
        self._names = _Names()
        self._open: dict[int, tuple[Any, ...]] = {}
        self._held: list[Held] = []
        self._arrays: list[TensorEntry] = []
        self._own: dict[type, Callable[[Any, tuple[Any, ...]], Any]] = {
            dict: self._take_dict,
            OrderedDict: self._take_ordered,
            defaultdict: self._take_defaultdict,
            Counter: self._take_counter,
            list: lambda value, path: [*self._members(value, path)],
            tuple: lambda value, path: tuple(self._members(value, path)),
            deque: lambda value, path: deque(self._members(value, path), value.maxlen),
            slice: self._take_slice,
            argparse.Namespace: partial(self._take_namespace, "argparse"),
            types.SimpleNamespace: partial(self._take_namespace, "types"),
            Inert: self._take_inert,
            torch.Tensor: self._take_tensor,
            torch.nn.Parameter: self._take_tensor,
            torch.Size: lambda value, _path: SizeNode(sides=list(value)),
            torch.dtype: self._take_dtype,
            torch.device: lambda value, _path: DeviceNode(name=str(value)),
        }
        if numpy is not None:
            self._own[numpy.ndarray] = self._take_array

    def run(self, state: Any) -> tuple[Any, list[TensorEntry]]:
        """The result: the structure, and the tensors of the file."""
        try:
            structure = self.take(state, ())
        except RecursionError as exc:
            raise EncodeLimitExceeded(
                "state: expected room on the stack for values nested in one another"
            ) from exc
        entries = place_tensors(self._held, self._torch, self._names) + self._arrays
        self._check_views(entries)
        return structure, entries

    def _check_views(self, entries: list[TensorEntry]) -> None:
        """Check that a reader takes the views: it bounds what they make of few elements."""
        bits = sum(math.prod(entry.shape) * ELEMENT_BITS[entry.element] for entry in entries)
        most = max(bits // 8, MODEL_EXPANDED_BYTES_LEAST)
        for held in self._held:
            sides = held.node.shape
            if sides is None:
                continue
            expanded = math.prod(max(side, 1) for side in sides) * held.tensor.element_size()
            if expanded > most or len(sides) > MODEL_DIMENSIONS_MAX:
                raise EncodeLimitExceeded(
                    f"tensor {held.name}: expected a view of at most {MODEL_DIMENSIONS_MAX} "
                    f"dimensions and {most} bytes, found {len(sides)} and {expanded}",
                    hint="Save tensor.clone(), or what it repeats.",
                )

    def take(self, value: Any, path: tuple[Any, ...]) -> Any:
        """A value with nodes in the place of tensors."""
        if len(path) > ENCODE_DEPTH_MAX:
            raise EncodeLimitExceeded(
                f"state: expected at most {ENCODE_DEPTH_MAX} values nested in one another"
            )
        taking = self._own.get(type(value))
        if taking is not None:
            if id(value) in self._open:
                raise EncodeLimitExceeded(
                    f"{path_text(path)}: expected no value that is inside itself, found "
                    f"{path_text(self._open[id(value)])} again",
                    hint="Save it without its links to what holds it, such as a parent.",
                )
            self._open[id(value)] = path
            taken = taking(value, path)
            del self._open[id(value)]
            return taken
        if isinstance(value, self._torch.Tensor):
            raise TypeNotAllowed(
                f"{path_text(path)}: expected torch.Tensor or torch.nn.Parameter, found "
                f"{type(value).__qualname__}",
                hint="Save the plain tensors that it is made of.",
            )
        if callable(getattr(type(value), "state_dict", None)):
            raise TypeNotAllowed(
                f"{path_text(path)}: expected plain data, found {type(value).__qualname__}",
                hint="Save what its state_dict() gives.",
            )
        return value

    def _members(self, values: Sequence[Any], path: tuple[Any, ...]) -> list[Any]:
        return [self.take(value, (*path, place)) for place, value in enumerate(values)]

    def _take_slice(self, value: Any, path: tuple[Any, ...]) -> slice:
        return slice(*self._members((value.start, value.stop, value.step), path))

    def _take_dict(self, value: Mapping[Any, Any], path: tuple[Any, ...]) -> dict[Any, Any]:
        return {key: self.take(member, (*path, key)) for key, member in value.items()}

    def _take_defaultdict(self, value: Any, path: tuple[Any, ...]) -> Any:
        taken: defaultdict[Any, Any] = defaultdict(value.default_factory)
        taken.update(self._take_dict(value, path))
        return taken

    def _take_namespace(self, kind: str, value: Any, path: tuple[Any, ...]) -> NamespaceNode:
        if any(type(name) is not str for name in vars(value)):
            raise ValueNotAllowed(f"{path_text(path)}: expected attributes whose names are texts")
        return NamespaceNode(kind=kind, attributes=self._take_dict(vars(value), path))

    def _take_inert(self, value: Inert, path: tuple[Any, ...]) -> InertNode:
        return InertNode(
            type=value.type,
            made=value.made,
            arguments=self.take(value.arguments, (*path, "arguments")),
            keywords=self.take(value.keywords, (*path, "keywords")),
            state=self.take(value.state, (*path, "state")),
            items=self.take(value.items, (*path, "items")),
            pairs=self.take(value.pairs, (*path, "pairs")),
        )

    def _take_dtype(self, value: Any, path: tuple[Any, ...]) -> DtypeNode:
        name = _short(value)
        if name not in CARRIERS:
            raise ValueNotAllowed(
                f"{path_text(path)}: expected a type of elements that a file can hold, found {name}"
            )
        return DtypeNode(name=name)

    def _take_counter(self, value: Any, path: tuple[Any, ...]) -> Any:
        _check_attributes(value, vars(value), path)
        return CounterNode(counts=self._take_dict(value, path))

    def _take_ordered(self, value: Any, path: tuple[Any, ...]) -> Any:
        attributes = dict(vars(value))
        metadata = attributes.pop("_metadata", None)
        _check_attributes(value, attributes, path)
        taken = OrderedDict(self._take_dict(value, path))
        if metadata is None:
            return taken
        return StateDictNode(items=taken, metadata=self.take(metadata, (*path, "_metadata")))

    def _take_array(self, value: Any, path: tuple[Any, ...]) -> Any:
        element = ARRAYS.get(value.dtype.str) if value.dtype.names is None else None
        if element is None:
            return value  # the codec knows more types, and refuses objects
        array = self._numpy.ascontiguousarray(value).reshape(value.shape)
        if element == "BOOL" and array.size and array.view("u1").max() > 1:
            raise ValueNotAllowed(f"{path_text(path)}: expected booleans of 0 or 1")
        name = self._names(name_of(path))

        def source() -> memoryview:
            return memoryview(array.reshape(-1).view("u1").data)

        self._arrays.append(
            TensorEntry(name=name, element=element, shape=value.shape, source=source)
        )
        return ArrayNode(entry=name, dtype=value.dtype.str)

    # ------------------------------------------------------------------ tensors

    def _take_tensor(self, tensor: Any, path: tuple[Any, ...]) -> Node:
        self._check(tensor, path)
        plain = tensor.detach()
        is_parameter = type(tensor) is self._torch.nn.Parameter
        if is_parameter and (plain.is_quantized or plain.layout is not self._torch.strided):
            raise ValueNotAllowed(
                f"{path_text(path)}: expected a parameter that is dense, found a sparse or "
                "quantized one",
                hint="Save tensor.detach(), and make a parameter of it after loading.",
            )
        if plain.is_quantized:
            return self._take_quantized(plain, path)
        if plain.layout is not self._torch.strided:
            return self._take_sparse(tensor, plain, path)
        node = self._hold(plain, name_of(path), path)
        node.requires_grad = bool(tensor.requires_grad)
        node.parameter = is_parameter
        return node

    def _check(self, tensor: Any, path: tuple[Any, ...]) -> None:
        for wrong, expected, hint in (
            (tensor.is_nested, "a tensor that is not nested", "Save a list of tensors."),
            (tensor._is_zerotensor(), "a tensor with memory", None),  # noqa: SLF001 (as below)
            (tensor.device.type == "meta", "a tensor with elements, found one on meta", None),
            (tensor.requires_grad and not tensor.is_leaf, "a leaf", "Save tensor.detach()."),
            (
                tensor.is_leaf and tensor.grad is not None,
                "no gradient, found one in .grad",
                "Save tensor.detach(), and the gradient as a value of its own if it is needed.",
            ),
            (
                bool(tensor._backward_hooks),  # noqa: SLF001 (no public name)
                "a tensor without hooks",
                "Save tensor.detach(), and register hooks after loading.",
            ),
            (
                bool(vars(tensor)),
                "a tensor without attributes",
                (
                    "Save tensor.detach(), and the attributes as values of their own if they are "
                    "needed."
                ),
            ),
        ):
            if wrong:
                raise ValueNotAllowed(f"{path_text(path)}: expected {expected}", hint=hint)

    def _hold(self, plain: Any, name: str, path: tuple[Any, ...]) -> TensorNode:
        """A node for a dense tensor; it is filled in when all of them are known."""
        dtype = _short(plain.dtype)
        if dtype not in CARRIERS:
            raise ValueNotAllowed(
                f"{path_text(path)}: expected a type of elements that a file can hold, found "
                f"{dtype}"
            )
        node = TensorNode(
            dtype=dtype, device=str(plain.device), requires_grad=False, parameter=False
        )
        held = Held(name, plain.resolve_conj().resolve_neg(), node)
        if held.size and held.end > held.tensor.untyped_storage().nbytes():
            raise ValueNotAllowed(
                f"{path_text(path)}: expected a tensor with memory, found that it was given back",
                hint="Gather it first: some trainers keep only a shard of it.",
            )
        self._held.append(held)
        return node

    def _take_sparse(self, tensor: Any, plain: Any, path: tuple[Any, ...]) -> SparseNode:
        torch, name = self._torch, name_of(path)
        compressed = (torch.sparse_csr, torch.sparse_bsr)
        if plain.layout is torch.sparse_coo:
            indices = {"indices": plain._indices()}  # noqa: SLF001 (coalesced or not)
            values = plain._values()  # noqa: SLF001 (as above)
        elif plain.layout in compressed:
            indices = {"crow_indices": plain.crow_indices(), "col_indices": plain.col_indices()}
            values = plain.values()
        elif plain.layout in (torch.sparse_csc, torch.sparse_bsc):
            indices = {"ccol_indices": plain.ccol_indices(), "row_indices": plain.row_indices()}
            values = plain.values()
        else:
            raise ValueNotAllowed(
                f"{path_text(path)}: expected a dense or sparse tensor, found {plain.layout}"
            )
        try:
            check_sparse(torch, plain, path_text(path))
        except SparseInvalid as exc:
            raise ValueNotAllowed(exc.message) from exc
        return SparseNode(
            layout=_short(plain.layout),
            shape=list(plain.shape),
            indices=[self._hold(part, f"{name}.{kind}", path) for kind, part in indices.items()],
            values=self._hold(values, f"{name}.values", path),
            coalesced=plain.layout is torch.sparse_coo and bool(plain.is_coalesced()),
            requires_grad=bool(tensor.requires_grad),
        )

    def _take_quantized(self, plain: Any, path: tuple[Any, ...]) -> QuantizedNode:
        torch, name = self._torch, name_of(path)
        dtype = _short(plain.dtype)
        if dtype not in ("qint8", "quint8", "qint32"):
            raise ValueNotAllowed(
                f"{path_text(path)}: expected qint8, quint8 or qint32, found {dtype}"
            )
        elements = self._hold(plain.int_repr(), name, path)
        scheme = plain.qscheme()
        if scheme is torch.per_tensor_affine:
            scale = float(plain.q_scale())
            if not (math.isfinite(scale) and scale > 0):
                raise ValueNotAllowed(f"{path_text(path)}: expected a scale above 0")
            return QuantizedNode(
                dtype=dtype,
                elements=elements,
                scale=scale,
                zero_point=int(plain.q_zero_point()),
                axis=None,
                floating=False,
            )
        return QuantizedNode(
            dtype=dtype,
            elements=elements,
            scale=self._hold(plain.q_per_channel_scales(), f"{name}.scales", path),
            zero_point=self._hold(plain.q_per_channel_zero_points(), f"{name}.zero_points", path),
            axis=int(plain.q_per_channel_axis()),
            floating=scheme is torch.per_channel_affine_float_qparams,
        )


def _check_attributes(value: object, attributes: Mapping[str, Any], path: tuple[Any, ...]) -> None:
    if attributes:
        raise ValueNotAllowed(
            f"{path_text(path)}: expected {type(value).__name__} without attributes, found "
            f"{min(attributes)!r}"
        )


def _short(value: Any) -> str:
    return str(value).removeprefix("torch.")


def _step_text(step: Any) -> str:
    try:
        return json.dumps(step) if type(step) is str else ascii(step)
    except ValueError:  # an int of more digits than Python writes
        return type(step).__name__


def name_of(path: tuple[Any, ...]) -> str:
    """The name of the tensor at a path in a file, until names are made unique."""
    parts = (step if type(step) is str else _step_text(step) for step in path)
    return ".".join(parts) or "state"


def path_text(path: tuple[Any, ...]) -> str:
    """A path for messages, with each step truncated."""
    return "state" + "".join(f"[{_step_text(step)[:_SHOWN_CHARS]}]" for step in path)


def flatten_state(torch: Any, numpy: Any, state: Any) -> tuple[Any, list[TensorEntry]]:
    """Split a state into its structure and its tensors.

    Args:
        torch: The module.
        numpy: The module, if the process has it.
        state: Nested containers of tensors and plain data.

    Returns:
        The structure, with nodes in the place of tensors, and the tensors of the file.

    Raises:
        TypeNotAllowed, ValueNotAllowed: Something in it cannot be saved; the message has the path.
        EncodeLimitExceeded: It is nested too deeply, or in itself.
    """
    return _Flattening(torch, numpy).run(state)
