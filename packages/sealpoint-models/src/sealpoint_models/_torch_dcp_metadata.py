# SPDX-License-Identifier: Apache-2.0
"""The `.metadata` of torch's own distributed checkpoints, a pickle, read as data.

It is read as symbols, and checked against a closed table of the names that torch writes there; each
is allowed only where torch puts it, with torch's arguments. The result is built here from checked
numbers and texts: chunks are inside their tensors and have their bytes in a file, and nothing needs
more memory than the length of the files. Nothing that the pickle names is called.

It refuses everything else, even if torch would load it. It does not say who wrote a checkpoint.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

from sealpoint.errors import GlobalNotAllowed, ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DIMENSIONS_MAX, MODEL_NODES_MAX
from sealpoint_models._folder_reader import is_folder_name
from sealpoint_models._state_building import dtype_of
from sealpoint_models.scan import Call, Dict, Global, List, New, Tuple, Value, run_pickle, shown
from sealpoint_models.scan._safetensors import CARRIERS

_MODULE = "torch.distributed.checkpoint.metadata"
_METADATA = Global(_MODULE, "Metadata")
_INDEX = Global(_MODULE, "MetadataIndex")
_TENSOR = Global(_MODULE, "TensorStorageMetadata")
_CHUNK = Global(_MODULE, "ChunkStorageMetadata")
_PROPERTIES = Global(_MODULE, "TensorProperties")
_BYTES = Global(_MODULE, "BytesStorageMetadata")
_STORAGE_META = Global(_MODULE, "StorageMeta")
_MEMORY_FORMAT = Global(_MODULE, "_MEM_FORMAT_ENCODING")
_INFO = Global("torch.distributed.checkpoint.filesystem", "_StorageInfo")
_SIZE = Global("torch", "Size")
_LAYOUT = Global("torch.serialization", "_get_layout")
_DTYPES = {Global("torch", name): name for name in CARRIERS}

_NAMES: Mapping[Global, str] = {
    _METADATA: "the whole of it",
    _INDEX: "which part of a tensor, or which value, is in a place",
    _TENSOR: "a tensor: its type, its size and its chunks",
    _CHUNK: "where a chunk begins in its tensor, and its size",
    _PROPERTIES: "the type of a tensor's elements, and four settings that torch no longer uses",
    _BYTES: "a value other than a tensor; it has no fields",
    _STORAGE_META: "the folder's name and an id of the save, which are not used",
    _MEMORY_FORMAT: "one of the settings that are no longer used",
    _INFO: "a file, and the bytes in it",
    _SIZE: "whole numbers",
    _LAYOUT: "dense, for every tensor that can be saved so",
    Global("pathlib", "PosixPath"): "the folder's name, which is not used",
    Global("pathlib", "WindowsPath"): "as above",
    Global("pathlib._local", "PosixPath"): "as above, by Python 3.13",
    Global("pathlib._local", "WindowsPath"): "as above",
    **dict.fromkeys(_DTYPES, "a type of elements"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchPlace:
    """The position of a part of a checkpoint."""

    file: str
    offset: int
    length: int


def parse_torch_metadata(data: bytes, what: str) -> Metadata:
    """The content of a `.metadata` file; its places are `TorchPlace`.

    Args:
        data: Its bytes.
        what: The file, for messages.

    Raises:
        GlobalNotAllowed: It names something that torch does not write there.
        ModelMalformed: It is not what torch writes.
        ModelLimitExceeded: It needs more than the limits of a checkpoint.
    """
    program = run_pickle(data, what)
    foreign = [shown(str(name)) for name in program.names if name not in _NAMES]
    if foreign:
        raise GlobalNotAllowed(
            f"{what}: expected only names of a distributed checkpoint, found {', '.join(foreign)}",
            hint="Do not load this checkpoint with another program: it can run code there.",
        )
    return _TorchMetadataReader(what).metadata(program.value)


class _TorchMetadataReader:
    """Reads symbols, each with the type that its position requires."""

    def __init__(self, what: str) -> None:
        self._what = what

    def metadata(self, node: Value) -> Metadata:
        fields = self._fields(node, _METADATA)
        entries: dict[str, Any] = {}
        for name, entry in self._items(fields.get("state_dict_metadata")):
            if isinstance(entry, New) and entry.function == _BYTES:
                self._fields(entry, _BYTES)
                entries[self._text(name)] = BytesStorageMetadata()
            else:
                entries[self._text(name)] = self._tensor(entry)
        places: dict[MetadataIndex, TorchPlace] = {}
        for index, info in self._items(fields.get("storage_data")):
            places[self._index(index)] = self._place(info)
        self._check(entries, places)
        return Metadata(
            entries,
            planner_data=self._paths(fields.get("planner_data")),
            storage_data=places,
        )

    def _fault(self, expected: str) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}, as torch writes it")

    def _fields(self, node: Value, name: Global) -> dict[str, Value]:
        """The fields of an object that was made without arguments, by name."""
        plain = isinstance(node, New) and node.function == name
        if not plain or not isinstance(node, New) or node.arguments.values:
            raise self._fault(f"an object of {name}")
        if node.pairs or node.values or node.keywords is not None:
            raise self._fault(f"an object of {name}")
        if not node.built:
            return {}
        return {self._text(key): value for key, value in self._items(node.state)}

    def _items(self, node: Value) -> Iterator[tuple[Value, Value]]:
        if not isinstance(node, Dict):
            raise self._fault("a dict")
        texts = [key for key, _ in node.pairs if isinstance(key, str)]
        if len(set(texts)) != len(texts):
            raise self._fault("each key once")
        yield from node.pairs

    def _text(self, node: Value) -> str:
        if type(node) is not str:
            raise self._fault("a text")
        return node

    def _number(self, node: Value) -> int:
        if type(node) is not int or not 0 <= node < 1 << 63:
            raise self._fault("a whole number")
        return node

    def _size(self, node: Value) -> torch.Size:
        match node:
            case Call(function=function, arguments=Tuple((Tuple(numbers),))) if function == _SIZE:
                if len(numbers) <= MODEL_DIMENSIONS_MAX:
                    return torch.Size([self._number(number) for number in numbers])
        raise self._fault("a size")

    def _tensor(self, node: Value) -> TensorStorageMetadata:
        fields = self._fields(node, _TENSOR)
        chunks = fields.get("chunks")
        if not isinstance(chunks, List):
            raise self._fault("a list of chunks")
        return TensorStorageMetadata(
            properties=self._properties(fields.get("properties")),
            size=self._size(fields.get("size")),
            chunks=[self._chunk(chunk) for chunk in chunks.values],
        )

    def _chunk(self, node: Value) -> ChunkStorageMetadata:
        fields = self._fields(node, _CHUNK)
        return ChunkStorageMetadata(
            offsets=self._size(fields.get("offsets")), sizes=self._size(fields.get("sizes"))
        )

    def _properties(self, node: Value) -> TensorProperties:
        match node:
            case New(function=name, arguments=Tuple(()), state=Tuple(state)) if (
                name == _PROPERTIES and len(state) == 5
            ):
                dtype, layout, requires_grad, _, _ = state
                dense = (
                    isinstance(layout, Call)
                    and layout.function == _LAYOUT
                    and layout.arguments.values == ("torch.strided",)
                )
                if isinstance(dtype, Global) and dtype in _DTYPES and dense:
                    return TensorProperties(
                        dtype=dtype_of(torch, _DTYPES[dtype], self._what),
                        requires_grad=requires_grad is True,
                    )
        raise self._fault("the properties of a dense tensor")

    def _index(self, node: Value) -> MetadataIndex:
        fields = self._fields(node, _INDEX)
        offset = fields.get("offset")
        return MetadataIndex(
            self._text(fields.get("fqn")), None if offset is None else self._size(offset)
        )

    def _place(self, node: Value) -> TorchPlace:
        fields = self._fields(node, _INFO)
        file = self._text(fields.get("relative_path"))
        if not is_folder_name(file):
            raise self._fault("files in the folder")
        if fields.get("transform_descriptors") is not None:
            raise self._fault("parts that are not compressed")
        return TorchPlace(
            file=file,
            offset=self._number(fields.get("offset")),
            length=self._number(fields.get("length")),
        )

    def _paths(self, node: Value) -> dict[str, tuple[str | int, ...]] | None:
        """The position of each entry in the nested state; torch allocates lists of this length."""
        if node is None:
            return None
        paths: dict[str, tuple[str | int, ...]] = {}
        lengths: dict[tuple[str | int, ...], int] = {}
        for key, path in self._items(node):
            if not isinstance(path, Tuple) or not path.values or type(path.values[0]) is not str:
                raise self._fault("paths into the state")
            steps = tuple(
                step if isinstance(step, str) else self._number(step) for step in path.values
            )
            paths[self._text(key)] = steps
            for at, step in enumerate(steps):
                if isinstance(step, int):
                    lengths[steps[:at]] = max(lengths.get(steps[:at], 0), step + 1)
        if sum(lengths.values()) > MODEL_NODES_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: expected lists of at most {MODEL_NODES_MAX} values in all"
            )
        return paths

    def _check(
        self, entries: Mapping[str, Any], places: Mapping[MetadataIndex, TorchPlace]
    ) -> None:
        """Check that every entry has its bytes, and no tensor more elements than there are."""
        for name, entry in entries.items():
            if isinstance(entry, BytesStorageMetadata):
                if MetadataIndex(name) not in places:
                    raise self._fault("a place for each value")
                continue
            held = 0
            for chunk in entry.chunks:
                place = places.get(MetadataIndex(name, chunk.offsets))
                count = _product(chunk.sizes)
                size = count * entry.properties.dtype.itemsize
                if place is None or size > place.length or not _lies_in(chunk, entry.size):
                    raise self._fault("chunks that are inside their tensors and have their bytes")
                held += count
            if _product(entry.size) > held:
                raise self._fault("chunks that make up the whole tensor")


def _lies_in(chunk: ChunkStorageMetadata, size: torch.Size) -> bool:
    return len(chunk.offsets) == len(chunk.sizes) == len(size) and all(
        offset + length <= whole
        for offset, length, whole in zip(chunk.offsets, chunk.sizes, size, strict=True)
    )


def _product(size: torch.Size) -> int:
    """How many elements; torch's own product wraps around."""
    count = 1
    for side in size:
        count *= side
    return count
