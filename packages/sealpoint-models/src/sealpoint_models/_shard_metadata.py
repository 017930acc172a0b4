# SPDX-License-Identifier: Apache-2.0
"""The parts of a distributed checkpoint, as plain data: `metadata.safetensors` in its folder.

torch keeps the same in a pickle, which runs whatever it names. Here each tensor is its type, its
size and its chunks, each chunk with the file that holds it; each other value is the file that holds
it; and additional data of a planner is kept if it is plain data.

A reader first verifies that the file is the sealed one. The content is checked nevertheless: sizes
and types have to be values that torch itself creates.
"""

from collections.abc import Mapping
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

from sealpoint.errors import ModelMalformed, ValueNotAllowed
from sealpoint_models._folder_reader import is_folder_name
from sealpoint_models.scan._safetensors import CARRIERS

METADATA_FILE = "metadata.safetensors"
_FORMAT = "sealpoint.distributed.v1"
_KEYS = {"format", "tensors", "values", "planner"}

Places = Mapping[MetadataIndex, str]
"""The file of each chunk and each value."""


def entry_name(index: MetadataIndex) -> str:
    """The name of a tensor's chunk in its file.

    Only numbers and commas follow the last `@`, so that no two chunks share a name.
    """
    return f"{index.fqn}@{','.join(map(str, index.offset or ()))}"


def is_saved_type(dtype: torch.dtype) -> bool:
    """Whether elements of a type can be in a file."""
    return str(dtype).removeprefix("torch.") in CARRIERS


def write_metadata(metadata: Metadata, places: Places) -> dict[str, Any]:
    """A checkpoint's metadata as plain data.

    Args:
        metadata: The metadata of a planner.
        places: The file of each chunk and each value.

    Raises:
        ValueNotAllowed: A tensor is sparse, or of a type that no file holds.
        ModelMalformed: No process wrote a chunk or a value.
    """
    tensors: dict[str, Any] = {}
    values: dict[str, str] = {}
    for name, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, BytesStorageMetadata):
            values[name] = _place(places, MetadataIndex(name))
            continue
        dtype, layout = entry.properties.dtype, entry.properties.layout
        if layout is not torch.strided or not is_saved_type(dtype):
            raise ValueNotAllowed(f"{name}: expected a dense tensor of a type that a file can hold")
        tensors[name] = {
            "dtype": dtype,
            "requires_grad": entry.properties.requires_grad,
            "size": list(entry.size),
            "chunks": [
                [
                    list(chunk.offsets),
                    list(chunk.sizes),
                    _place(places, MetadataIndex(name, chunk.offsets)),
                ]
                for chunk in entry.chunks
            ],
        }
    return {
        "format": _FORMAT,
        "tensors": tensors,
        "values": values,
        "planner": metadata.planner_data,
    }


def _place(places: Places, index: MetadataIndex) -> str:
    file = places.get(index)
    if file is None:
        raise ModelMalformed(
            f"{index.fqn}: expected that a process wrote each part of it, found one that is missing"
        )
    return file


def read_metadata(state: Any, what: str) -> Metadata:
    """The metadata in the plain data of `write_metadata`.

    Args:
        state: The content of the file.
        what: The folder, for messages.

    Raises:
        ModelMalformed: It has another content.
    """
    entries: dict[str, Any] = {}
    places: dict[MetadataIndex, str] = {}
    try:
        if state.keys() != _KEYS or state["format"] != _FORMAT:
            raise ValueError(_FORMAT)
        for name, file in state["values"].items():
            entries[name] = BytesStorageMetadata()
            places[MetadataIndex(name)] = _checked_file(file)
        for name, tensor in state["tensors"].items():
            entries[name] = TensorStorageMetadata(
                properties=TensorProperties(
                    dtype=_checked_type(tensor["dtype"]),
                    requires_grad=tensor["requires_grad"] is True,
                ),
                size=_size(tensor["size"]),
                chunks=[
                    ChunkStorageMetadata(offsets=_size(offsets), sizes=_size(sizes))
                    for offsets, sizes, _ in tensor["chunks"]
                ],
            )
            for offsets, _, file in tensor["chunks"]:
                places[MetadataIndex(name, offsets)] = _checked_file(file)
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise ModelMalformed(
            f"{what}: expected a checkpoint of SealedStorageWriter, found another folder"
        ) from exc
    return Metadata(entries, planner_data=state["planner"], storage_data=places)


def _checked_file(file: Any) -> str:
    if type(file) is not str or not is_folder_name(file):
        raise ValueError(file)
    return file


def _checked_type(dtype: Any) -> torch.dtype:
    if not isinstance(dtype, torch.dtype):
        raise TypeError(dtype)
    return dtype


def _size(numbers: Any) -> torch.Size:
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(numbers)
    return torch.Size(numbers)
