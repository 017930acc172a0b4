# SPDX-License-Identifier: Apache-2.0
"""Tensors and arrays, created from descriptions of a file and from bytes that were read here.

Each storage is read once, into our own memory, and tensors of one storage share it. `read_meaning`
has described every object and checked the description against the file; sparse indices, which only
a tensor can provide, are checked here. Types, devices and layouts are looked up by names of closed
tables. `torch.load` is not used, so that no patch, setting or list of a process has any effect.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sealpoint.errors import ModelError, ModelMalformed
from sealpoint_models._device_placement import Placing, view_of
from sealpoint_models._optional_packages import require_numpy
from sealpoint_models._sparse_tensors import check_sparse
from sealpoint_models.scan import (
    QUANTIZED,
    ArrayMeaning,
    ArrayScalar,
    ArrayType,
    DenseTensor,
    DeviceName,
    QuantizedTensor,
    SizeMeaning,
    SparseTensor,
    TensorStorage,
    TorchName,
    shown,
)

_HALVES = ("complex32", "complex64", "complex128")


class StorageMaker:
    """Creates the objects that `read_meaning` describes.

    Args:
        torch: The module.
        read: Gives the bytes of a storage, by its key, as a tensor of bytes that fills its storage.
        placing: Where tensors go.
        swapped: Whether the bytes of elements are in the other order than this machine's.
        what: The file, for messages.
    """

    def __init__(
        self,
        torch: Any,
        read: Callable[[str], Any],
        placing: Placing,
        *,
        swapped: bool,
        what: str,
    ) -> None:
        self._torch = torch
        self._read = read
        self._placing = placing
        self._swapped = swapped
        self._what = what
        self._memory: dict[str, Any] = {}
        self._makers: Mapping[type, Callable[[Any], Any]] = {
            DenseTensor: self._tensor,
            QuantizedTensor: self._quantized,
            SparseTensor: self._sparse,
            TensorStorage: self._storage,
            ArrayMeaning: _array,
            ArrayScalar: _scalar,
            ArrayType: _array_type,
            TorchName: self._named,
            DeviceName: self._device,
            SizeMeaning: torch.Size,
        }
        self._taken = frozenset(dir(torch.nn.Parameter))

    def make(self, meaning: Any) -> Any:
        """The object for a description.

        Raises:
            ModelMalformed: This torch has no such type, layout or device.
            SparseInvalid: Indices of a sparse tensor are wrong.
            ModelError: A device cannot take it.
            ModelUnreadable: The file cannot be read any more.
        """
        return self._makers[type(meaning)](meaning)

    def fill(self, made: Any, values: list[Any]) -> None:
        """Put values into an array of objects."""
        flat = made.reshape(-1)
        for place, value in enumerate(values):
            flat[place] = value

    def attach(self, made: Any, attributes: dict[str, Any]) -> None:
        """Set attributes on a tensor.

        Raises:
            ModelMalformed: A tensor has something else by that name.
        """
        for name in attributes:
            if name in self._taken or name.startswith("__"):
                raise self._fault(f"attributes that tensors do not have, found {shown(name)}")
        vars(made).update(attributes)

    def _fault(self, expected: str) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}")

    # Memory.

    def _placed(self, storage: TensorStorage) -> Any:
        """The memory of a storage, where it belongs."""
        found = self._memory.get(storage.key)
        if found is None:
            memory = self._read(storage.key)
            if self._swapped and storage.element is not None:
                name, size = storage.element.name, storage.element.size
                _swap(self._torch, memory, size // 2 if name in _HALVES else size)
            if storage.element is not None and storage.element.name == "bool":
                self._check_booleans(memory, storage.key)
            found = self._memory[storage.key] = self._placing(memory, storage.location)
        return found

    def _check_booleans(self, memory: Any, key: str) -> None:
        if memory.numel() and memory.max() > 1:
            raise self._fault(f"booleans of 0 or 1 in storage {shown(key)}")

    def _storage(self, storage: TensorStorage) -> Any:
        """A storage that stands for itself, as torch gives it back."""
        torch = self._torch
        memory = self._placed(storage)
        raw = memory.untyped_storage()
        if storage.begin or storage.bytes != raw.nbytes():
            # Of the same memory: a file may have any number of parts. On `meta` there is none.
            raw = (
                torch.UntypedStorage(storage.bytes, device="meta")
                if memory.is_meta
                else raw[storage.begin : storage.begin + storage.bytes]
            )
        if storage.element is None:
            return raw
        dtype = self._dtype(storage.element.name)
        return torch.storage.TypedStorage(wrap_storage=raw, dtype=dtype, _internal=True)

    # Tensors.

    def _dtype(self, name: str) -> Any:
        found = self._torch.__dict__.get(name)
        if type(found) is not self._torch.dtype:
            raise self._fault(f"a type of elements that this torch has, found {name}")
        return found

    def _channels(self, tensor: float | DenseTensor) -> Any:
        if not isinstance(tensor, DenseTensor):
            raise self._fault("a scale and a zero point for each channel")
        return self._dense(tensor)

    def _dense(self, tensor: DenseTensor, name: str | None = None) -> Any:
        """The elements alone; under another type of the same size if it is named."""
        torch = self._torch
        dtype = self._dtype(tensor.element.name if name is None else name)
        if tensor.storage is None:
            return torch.empty_strided(tensor.size, tensor.stride, dtype=dtype, device="meta")
        memory = self._placed(tensor.storage)
        offset = tensor.offset + tensor.storage.begin // tensor.element.size
        made = view_of(torch, memory, dtype, offset, (tensor.size, tensor.stride))
        if tensor.conjugate:
            made = torch.conj(made).detach()
        if tensor.negative:
            made = torch._neg_view(made).detach()  # noqa: SLF001 (no public name)
        return made

    def _tensor(self, tensor: DenseTensor) -> Any:
        return self._finished(tensor, self._dense(tensor))

    def _finished(self, tensor: DenseTensor | QuantizedTensor | SparseTensor, made: Any) -> Any:
        if tensor.is_parameter:
            return self._torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
        return made.requires_grad_(tensor.requires_grad)

    def _quantized(self, tensor: QuantizedTensor) -> Any:
        torch, elements = self._torch, tensor.elements
        carrier = self._dense(elements, QUANTIZED[elements.element.name][0])
        dtype = self._dtype(elements.element.name)
        try:
            if tensor.axis is None:
                made = torch._empty_affine_quantized(  # noqa: SLF001 (no public name)
                    elements.size,
                    scale=tensor.scale,
                    zero_point=tensor.zero_point,
                    dtype=dtype,
                    device=carrier.device,
                )
            else:
                made = torch._empty_per_channel_affine_quantized(  # noqa: SLF001 (as above)
                    elements.size,
                    scales=self._channels(tensor.scale),
                    zero_points=self._channels(tensor.zero_point),
                    axis=tensor.axis,
                    dtype=dtype,
                    device=carrier.device,
                )
            made.set_(
                carrier.untyped_storage(),
                carrier.storage_offset(),
                carrier.size(),
                carrier.stride(),
            )
        except RuntimeError as exc:
            raise ModelError(
                f"{self._what}: device {str(carrier.device)!r} cannot hold a quantized tensor",
                hint="Load it on another device, such as cpu.",
            ) from exc
        return self._finished(tensor, made)

    def _sparse(self, tensor: SparseTensor) -> Any:
        torch = self._torch
        parts = [self._dense(part) for part in tensor.parts]
        try:
            if tensor.layout == "torch.sparse_coo":
                made = torch.sparse_coo_tensor(
                    *parts,
                    tensor.size,
                    is_coalesced=tensor.coalesced,
                    check_invariants=False,
                )
            else:
                made = torch.sparse_compressed_tensor(
                    *parts,
                    tensor.size,
                    layout=self._layout(tensor.layout),
                    check_invariants=False,
                )
            if not made.is_meta:
                check_sparse(torch, made, self._what)
        except ModelError:
            raise
        except (RuntimeError, ValueError, TypeError, IndexError) as exc:
            raise self._fault("the parts of a sparse tensor") from exc
        return self._finished(tensor, made)

    # Names.

    def _layout(self, name: str) -> Any:
        found = self._torch.__dict__.get(name.removeprefix("torch."))
        if type(found) is not self._torch.layout:
            raise self._fault(f"a layout that this torch has, found {name}")
        return found

    def _named(self, meaning: TorchName) -> Any:
        if meaning.kind == "dtype":
            return self._dtype(meaning.name)
        if meaning.kind == "layout":
            return self._layout(meaning.name)
        found = self._torch.__dict__.get(meaning.name)
        if type(found) is not self._torch.qscheme:
            raise self._fault(f"a way to quantize that this torch has, found {meaning.name}")
        return found

    def _device(self, meaning: DeviceName) -> Any:
        try:
            if meaning.index is None:
                return self._torch.device(meaning.kind)
            return self._torch.device(meaning.kind, meaning.index)
        except RuntimeError as exc:
            raise self._fault(f"a device that this torch knows, found {meaning.kind}") from exc


def _swap(torch: Any, memory: Any, item_bytes: int) -> None:
    """Turn the bytes of each element around, in place."""
    if item_bytes > 1 and memory.numel():
        rows = memory.view(-1, item_bytes)
        rows.copy_(torch.flip(rows, (1,)))


def _array_type(kind: ArrayType) -> Any:
    np = require_numpy()
    if kind.fields:
        made = np.dtype(
            {
                "names": [name for name, _, _ in kind.fields],
                "formats": [_array_type(inner) for _, inner, _ in kind.fields],
                "offsets": [begin for _, _, begin in kind.fields],
                "itemsize": int(kind.text.removeprefix("|V")),
            }
        )
    else:
        made = np.dtype(kind.text)
    return np.dtype((made, kind.shape)) if kind.shape else made


def _array(meaning: ArrayMeaning) -> Any:
    np = require_numpy()
    dtype = _array_type(meaning.type)
    if meaning.type.is_object or not meaning.data:
        return (
            np.zeros(meaning.shape, dtype)
            if not meaning.type.is_object
            else np.empty(meaning.shape, dtype)
        )
    order = "F" if meaning.is_fortran else "C"
    return np.ndarray(meaning.shape, dtype, buffer=bytearray(meaning.data), order=order)


def _scalar(meaning: ArrayScalar) -> Any:
    return require_numpy().frombuffer(meaning.data, _array_type(meaning.type))[0]
