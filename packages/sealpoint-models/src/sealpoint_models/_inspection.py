# SPDX-License-Identifier: Apache-2.0
"""The content of a model file: tensors, plain values, and every name with its position.

Nothing is loaded, imported or called, and neither torch nor numpy is needed. A file that a load
refuses is shown as far as it was read: the names that a pickle mentions come before the error that
could hide them. Texts of a file are escaped and cut; the number of omitted values is shown.

This module does not say whether a file is safe: `sealpoint_models.scan` does. A thread says who
wrote it.
"""

import argparse
import io
import math
import os
import struct
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from sealpoint.errors import GlobalNotAllowed, ModelError, ModelUnreadable
from sealpoint_models._checkpoint import begins_as_pickle, is_safetensors
from sealpoint_models._file_reader import FileDigests, Progress, ReadFile
from sealpoint_models._model_file import ModelFile
from sealpoint_models._state_flattening import name_of, path_text
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
    read_structure,
)
from sealpoint_models._torch_files import read_at
from sealpoint_models.scan import (
    KNOWN_NAMES,
    UNNAMED,
    ArrayMeaning,
    ArrayScalar,
    ArrayType,
    DenseTensor,
    DeviceName,
    Inert,
    Mentions,
    QuantizedTensor,
    SizeMeaning,
    SparseTensor,
    TensorStorage,
    TorchName,
    Wrapping,
    read_meaning,
    read_wrapping,
    shown,
    wrapping_kind,
)
from sealpoint_models.scan._torch_wrappings import LOADED, LOADED_REASON

_VALUES_MAX = 10_000
_NUMBERS_MAX = 32
"""How many numbers in a row are listed one by one: the state of `random` has 625."""
_INT_BITS_MAX = 256
_TEXT_CHARS_MAX = 80
_FORMATS = {"zip": "torch-zip", "stream": "torch-legacy", "pickle": "pickle"}
_NUMBERS = {
    **{f"<{code}": f"<{form}" for code, form in zip(("f2", "f4", "f8"), "efd", strict=True)},
    **{f"<i{1 << n}": f"<{form}" for n, form in enumerate("bhiq")},
    **{f"<u{1 << n}": f"<{form}" for n, form in enumerate("BHIQ")},
    "|i1": "<b",
    "|u1": "<B",
    "|b1": "<?",
}
_MADE = {"name": "the name", "call": "a call of", "object": "an object of"}
_IN_HEADER = (TensorNode, SparseNode, QuantizedNode, ArrayNode)


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionedName:
    """A name in a pickle, which was not looked up."""

    name: str
    at: int
    """The byte of the pickle at which it is mentioned first."""
    is_called: bool
    reason: str | None
    """Why it may be there; None: it is in no table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSummary:
    """A tensor or an array, without its elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int
    """The bytes of its elements."""


@dataclass(slots=True, kw_only=True)
class Inspection:
    """The content of one file."""

    format: str
    size: int
    loads: Literal["data", "inert", "refused"] = "data"
    """Whether a load reads it: normally, with `unknown="inert"`, or not at all."""
    error: ModelError | None = None
    """The reason why it was not read to its end."""
    is_state: bool = True
    metadata: dict[str, str] = field(default_factory=dict)
    digests: FileDigests | None = None
    tensors: list[TensorSummary] = field(default_factory=list)
    values: list[tuple[str, str]] = field(default_factory=list)
    """Paths, with the values there."""
    values_left_out: int = 0
    names: list[MentionedName] = field(default_factory=list)
    """Names that are in no table first, then in the order of the file."""


def inspect_checkpoint(
    path: str | os.PathLike[str], progress: Progress | None = None
) -> Inspection:
    """Describe the content of a safetensors file, a file of torch or a pickle.

    Args:
        path: The file.
        progress: Called occasionally with the number of hashed bytes; a pickle is not hashed.

    Raises:
        ModelError: The file is of another format, or was refused before a name was seen in it.
        ExtraMissing: blake3 is not installed, which hashes a safetensors file.
    """
    with ReadFile(path) as file:
        if not begins_as_pickle(file) and is_safetensors(file):
            return _of_safetensors(file, progress)
        with open(file.fd, "rb", buffering=0, closefd=False) as raw:
            return _of_pickle(raw, file.size, file.what)


def _of_safetensors(file: ReadFile, progress: Progress | None) -> Inspection:
    opened = ModelFile(file)
    found = Inspection(
        format="safetensors",
        size=opened.size,
        is_state=opened.has_structure,
        metadata=opened.metadata,
        digests=opened.digests(progress),
        tensors=[
            TensorSummary(name=each.name, dtype=each.element, shape=each.shape, size=each.size)
            for each in opened.tensors
        ],
    )
    if opened.structure is not None:
        _Walk(found, {}).run(read_structure(opened.structure, file.what))
    return found


def _of_pickle(file: io.FileIO, size: int, what: str) -> Inspection:
    head = read_at(file, 0, min(512, size), what)
    found = Inspection(format=_FORMATS[wrapping_kind(head)], size=size)
    mentions = Mentions()
    try:
        wrapping = read_wrapping(
            lambda at, length: read_at(file, at, length, what), size, what, mentions
        )
        _read_values(found, wrapping, what)
    except ModelUnreadable:
        raise
    except ModelError as error:
        if not mentions.names and not mentions.called:
            raise
        found.loads, found.error = "refused", error
    found.names = _names(mentions, found.format)
    return found


def _read_values(found: Inspection, wrapping: Wrapping, what: str) -> None:
    def read(unknown: Literal["refuse", "inert"]) -> None:
        look = _Descriptions()
        meaning = read_meaning(
            wrapping.program,
            storages=wrapping.sizes,
            file_bytes=found.size,
            what=what,
            unknown=unknown,
            maker=look,
            views=wrapping.views,
            beside=wrapping.beside,
        )
        _Walk(found, look.attributes).run(meaning)

    try:
        read("refuse")
    except GlobalNotAllowed:
        found.loads = "inert"
        read("inert")


def _names(mentions: Mentions, kind: str) -> list[MentionedName]:
    called = frozenset(mentions.called)
    places = dict(mentions.names)
    if UNNAMED in called:
        places.setdefault(UNNAMED, mentions.called_at[mentions.called.index(UNNAMED)])
    reasons = {**KNOWN_NAMES, LOADED: LOADED_REASON} if kind == "pickle" else KNOWN_NAMES
    listed = [
        MentionedName(name=str(name), at=at, is_called=name in called, reason=reasons.get(name))
        for name, at in places.items()
    ]
    return sorted(listed, key=lambda each: (each.reason is not None, each.at))


class _Objects(list[Any]):
    """The values of an array of objects."""


class _Descriptions:
    """Replaces tensors and arrays by descriptions, and keeps the values put into them."""

    def __init__(self) -> None:
        self.attributes: dict[int, dict[str, Any]] = {}
        self._kept: list[Any] = []

    def make(self, meaning: Any) -> Any:
        if isinstance(meaning, ArrayMeaning) and meaning.type.is_object:
            return _Objects()
        return meaning

    def fill(self, made: Any, values: list[Any]) -> None:
        made.extend(values)

    def attach(self, made: Any, attributes: dict[str, Any]) -> None:
        self._kept.append(made)  # so that no other gets its id
        self.attributes[id(made)] = attributes


Step = tuple[Any, Any]


class _Walk:
    """Visits each container once, in order: a file may hold one in itself, or very often."""

    def __init__(self, found: Inspection, attributes: dict[int, dict[str, Any]]) -> None:
        self._found = found
        self._attributes = attributes
        self._seen: dict[int, tuple[Any, ...]] = {}

    def run(self, value: Any) -> None:
        todo: list[tuple[tuple[Any, ...], Any]] = [((), value)]
        while todo:
            path, each = todo.pop()
            inside = self._visit(path, each)
            todo += [((*path, step), held) for step, held in reversed(inside)]

    def _visit(self, path: tuple[Any, ...], value: Any) -> list[Step]:
        """Record a value, and return its members."""
        if isinstance(value, _IN_HEADER):
            return []
        if (summary := _summary(path, value)) is not None:
            self._found.tensors.append(summary)
            return list(self._attributes.get(id(value), {}).items())
        opening = _CONTAINERS.get(type(value))
        if opening is None:
            self._note(path, _text(value))
            return []
        if id(value) in self._seen:
            self._note(path, f"the same as {path_text(self._seen[id(value)])}")
            return []
        self._seen[id(value)] = path
        inside = list(opening(value))
        if len(inside) > _NUMBERS_MAX and _only_numbers(value):
            self._note(path, f"{type(value).__name__} of {len(inside):,} numbers")
            return []
        if isinstance(value, Inert | InertNode):
            # A node of an unbuilt file may have anything in its fields.
            made = _MADE.get(str(value.made), "of")
            self._note(path, f"Inert, {made} {shown(str(value.type))}")
        elif not inside:
            self._note(path, f"{type(value).__name__}, empty")
        return inside

    def _note(self, path: tuple[Any, ...], text: str) -> None:
        if len(self._found.values) < _VALUES_MAX:
            self._found.values.append((path_text(path), text))
        else:
            self._found.values_left_out += 1


def _only_numbers(value: Any) -> bool:
    """Whether a list or tuple has nothing in it but numbers."""
    return type(value) in (list, tuple) and all(type(each) in (int, float) for each in value)


def _inert_parts(value: Inert | InertNode) -> Iterator[Step]:
    for name, part in (
        ("arguments", value.arguments),
        ("keywords", value.keywords),
        ("state", value.state),
        ("items", value.items),
        ("pairs", value.pairs),
    ):
        if part is not None and part not in ((), []):
            yield name, part


def _items(value: Any) -> Iterator[Step]:
    yield from value.items()
    metadata = getattr(value, "_metadata", None)
    if metadata is not None:
        yield "_metadata", metadata


def _node_items(held: Any) -> list[Step]:
    """The items of a node's dict; a file may have any other value in its place."""
    return list(held.items()) if isinstance(held, dict) else [("", held)]


_CONTAINERS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((dict, OrderedDict, defaultdict, Counter), _items),
    **dict.fromkeys((list, tuple, deque, set, frozenset, _Objects), enumerate),
    **dict.fromkeys((argparse.Namespace, types.SimpleNamespace), lambda value: vars(value).items()),
    Inert: _inert_parts,
    InertNode: _inert_parts,
    NamespaceNode: lambda node: _node_items(node.attributes),
    CounterNode: lambda node: _node_items(node.counts),
    StateDictNode: lambda node: [*_node_items(node.items), ("_metadata", node.metadata)],
}


def _summary(path: tuple[Any, ...], value: Any) -> TensorSummary | None:
    match value:
        case DenseTensor() | QuantizedTensor():
            size = math.prod(value.size) * value.element.size
            dtype, shape = value.element.name, value.size
        case SparseTensor():
            size = sum(math.prod(part.size) * part.element.size for part in value.parts)
            dtype, shape = value.element.name, value.size
        case ArrayMeaning():
            size, dtype, shape = len(value.data), value.type.text, value.shape
        case _:
            return None
    return TensorSummary(name=name_of(path), dtype=dtype, shape=tuple(shape), size=size)


def _text(value: Any) -> str:
    """A plain value in a line, escaped and cut."""
    writing = _TEXTS.get(type(value))
    return _plain_text(value) if writing is None else writing(value)


def _int_text(value: int) -> str:
    bits = value.bit_length()
    return str(value) if bits <= _INT_BITS_MAX else f"an int of {bits} bits"


def _scalar_text(value: ArrayScalar) -> str:
    form = _NUMBERS.get(value.type.text)
    if form is None:
        return value.type.text
    return f"{struct.unpack(form, value.data)[0]!r} ({value.type.text})"


def _device_text(value: DeviceName) -> str:
    return f"torch.device {value.kind}" + ("" if value.index is None else f":{value.index}")


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: shown,
    int: _int_text,
    **dict.fromkeys((bytes, bytearray), lambda value: f"{len(value)} bytes"),
    TensorStorage: lambda value: f"a storage of {value.bytes} bytes",
    ArrayScalar: _scalar_text,
    ArrayType: lambda value: f"numpy.dtype {shown(value.text)}",
    **dict.fromkeys((TorchName, DtypeNode), lambda value: f"torch.{shown(str(value.name))[1:-1]}"),
    DeviceName: _device_text,
    DeviceNode: lambda value: f"torch.device {shown(str(value.name))[1:-1]}",
    SizeMeaning: lambda value: f"torch.Size {shown(str(list(value)))[1:-1]}",
    SizeNode: lambda value: f"torch.Size {shown(str(value.sides))[1:-1]}",
}


def _plain_text(value: Any) -> str:
    try:
        text = ascii(value)
    except ValueError:  # digits of an int inside of it that Python does not write
        text = type(value).__name__
    return text if len(text) <= _TEXT_CHARS_MAX else text[: _TEXT_CHARS_MAX - 3] + "..."
