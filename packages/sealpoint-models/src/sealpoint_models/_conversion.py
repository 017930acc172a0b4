# SPDX-License-Identifier: Apache-2.0
"""`convert_checkpoint`: converts a file of torch, numpy or joblib or a pickle to safetensors.

The source is read as by `load_checkpoint`: no name in it is imported or called. This module reads
files of numpy and joblib itself: headers without evaluating them, pickles as symbols, the elements
that joblib writes between opcodes from their positions, archives and compressed streams in memory
and within a budget; it uses neither `numpy.load` nor `joblib.load`. Values that the new file cannot
hold are refused with all paths, or dropped at the caller's request and reported path by path;
nothing is left out silently. Tensors stay equal bit by bit, and share memory as before. The new
file appears at its path whole, or not at all.
"""

import argparse
import math
import os
import re
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from sealpoint.errors import (
    EncodeError,
    ModelLimitExceeded,
    ModelMalformed,
    UsageError,
    ValueNotAllowed,
)
from sealpoint.limits import MODEL_NODES_MAX, MODEL_PICKLE_BYTES_MAX
from sealpoint_models._checkpoint import begins_as_pickle, is_safetensors, save_checkpoint, save_new
from sealpoint_models._device_placement import Placing
from sealpoint_models._file_reader import ReadFile
from sealpoint_models._model_file import ModelFile
from sealpoint_models._optional_packages import require_numpy, require_torch, without_torch_modes
from sealpoint_models._state_flattening import flatten_state, path_text
from sealpoint_models._structure_nodes import write_structure
from sealpoint_models._tensor_maker import StorageMaker
from sealpoint_models._torch_files import load_pt, storage_memory
from sealpoint_models.scan import (
    FilePlace,
    Global,
    Inert,
    Made,
    Program,
    Unknown,
    Value,
    read_meaning,
    run_pickle,
    shown,
    wrapping_kind,
)
from sealpoint_models.scan._byte_source import Budget, Source
from sealpoint_models.scan._compressed_streams import STREAMS, unpack_stream
from sealpoint_models.scan._format_detection import detect, zip_kind
from sealpoint_models.scan._joblib import WRAPPER, ArraySkipper
from sealpoint_models.scan._npy import read_npy
from sealpoint_models.scan._pickle_symbols import Reading
from sealpoint_models.scan._torch_wrappings import (
    HEAD_BYTES,
    LOADED,
    given_storages,
    read_given,
    sizes_of,
)
from sealpoint_models.scan._zip_members import zip_entries, zip_members

Path = tuple[Any, ...]

_PLAIN = frozenset({str, int, float, bool, type(None)})
_DROPPED: Any = object()
_PATHS_SHOWN = 20
_NPY = ".npy"
_FIRST_NPY = re.compile(rb"PK\x03\x04.{26}[^\x00]{0,400}?\.npy", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedValue:
    """A value of the source that the new file does not have."""

    path: str
    reason: str


def convert_checkpoint(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    unknown: Literal["refuse", "inert", "drop"] = "refuse",
    force: bool = False,
) -> tuple[DroppedValue, ...]:
    """Turn a model file into a safetensors file, as `save_checkpoint` writes it.

    Args:
        source: A file of `torch.save`, a pickle, a `.npy`, a `.npz`, a file of joblib or a
            safetensors file, by what its bytes are.
        target: The new file.
        unknown: The treatment of names other than those of tensors and plain data: `"refuse"` the
            file; keep each as an `"inert"` value; or `"drop"` them, and everything else that the
            new file cannot hold. A dropped member of a list or tuple becomes None.
        force: Whether a file that is at the target is replaced.

    Returns:
        The dropped values. With `"inert"`, these are only links from values to their containers.

    Raises:
        UsageError: Something is at the target already.
        ModelError: The source is refused.
        ValueNotAllowed: The new file cannot hold all of it; the message has the paths.
        ExtraMissing: torch is not installed.
    """
    if unknown not in ("refuse", "inert", "drop"):
        raise UsageError("unknown: expected 'refuse', 'inert' or 'drop'")
    if not force and os.path.lexists(target):
        raise _taken(target)
    torch = require_torch()
    state = _loaded(torch, source, "refuse" if unknown == "refuse" else "inert")
    conversion = _Conversion(torch, unknown, os.fspath(source))
    with without_torch_modes(torch):
        kept = conversion.run(state)
    if force:
        save_checkpoint(kept, target)
    else:
        try:
            save_new(kept, target)
        except FileExistsError as exc:  # since it was looked for
            raise _taken(target) from exc
    return tuple(conversion.dropped)


def _taken(target: str | os.PathLike[str]) -> UsageError:
    if os.path.isdir(target):  # noqa: PTH112 (a text)
        return UsageError(
            f"{os.fspath(target)}: expected no file there, found a folder",
            hint="Name the new file, and not the folder for it.",
        )
    return UsageError(
        f"{os.fspath(target)}: expected no file there, found one",
        hint="Name another path, or replace it: force=True, on the command line --force.",
    )


def _loaded(torch: Any, source: str | os.PathLike[str], unknown: Literal["refuse", "inert"]) -> Any:
    with ReadFile(source) as file:
        if not begins_as_pickle(file) and is_safetensors(file):
            return ModelFile(file).load("cpu")
        with without_torch_modes(torch):
            found = _load_array_file(torch, _source(file), file.what, unknown)
        if found is not None:
            return found.value
        with open(file.fd, "rb", buffering=0, closefd=False) as raw:
            return load_pt(raw, file.size, file.what, "cpu", unknown)


def _source(file: ReadFile) -> Source:
    def read(offset: int, length: int) -> bytes:
        return file.read(offset, max(min(length, file.size - offset), 0))

    return Source(read, file.size)


class _Conversion:
    """The conversion of one state to the values that a model file can hold."""

    def __init__(self, torch: Any, unknown: str, what: str) -> None:
        self._torch = torch
        self._unknown = unknown
        self._what = what
        self.dropped: list[DroppedValue] = []
        self._refused: list[DroppedValue] = []
        self._open: dict[int, Path] = {}
        self._count = 0
        self._own: dict[type, Callable[[Any, Path], Any]] = {
            dict: self._dict,
            OrderedDict: self._ordered,
            defaultdict: self._default_dict,
            Counter: lambda value, path: Counter(self._dict(value, path)),
            list: self._members,
            tuple: lambda value, path: tuple(self._members(value, path)),
            deque: lambda value, path: deque(self._members(value, path), value.maxlen),
            argparse.Namespace: self._namespace,
            types.SimpleNamespace: self._namespace,
            Inert: self._inert,
        }

    def run(self, state: Any) -> Any:
        """The part of a state that can be saved."""
        try:
            kept = self._keep(state, ())
        except RecursionError as exc:
            raise ModelLimitExceeded(
                "state: expected room on the stack for values nested in one another"
            ) from exc
        if self._refused or kept is _DROPPED:
            listed = self._refused or self.dropped
            shown_first = "; ".join(f"{each.path}: {each.reason}" for each in listed[:_PATHS_SHOWN])
            more = f"; and {len(listed) - _PATHS_SHOWN} more" if len(listed) > _PATHS_SHOWN else ""
            raise ValueNotAllowed(
                f"{self._what}: expected only what a model file holds, found {shown_first}{more}",
                hint=self._way_out(state, nothing_left=kept is _DROPPED),
            )
        return kept

    def _way_out(self, state: Any, *, nothing_left: bool) -> str:
        """The hint for converting a state that was refused."""
        if isinstance(state, Inert):
            if self._unknown == "drop":
                return (
                    'All of it is that name: unknown="inert", on the command line --unknown inert, '
                    "keeps it with all that it holds."
                )
            return (
                'load_checkpoint(path, unknown="inert") reads all of it; save the parts that you '
                "need of it with save_checkpoint."
            )
        if nothing_left:
            return "Nothing else is in it: save it again where it was made, as tensors."
        return (
            'sealpoint model inspect FILE shows all of it; unknown="drop", on the command line '
            "--unknown drop, converts the rest."
        )

    def _keep(self, value: Any, path: Path) -> Any:
        if type(value) in _PLAIN:
            return value
        self._count += 1
        if self._count > MODEL_NODES_MAX:  # what holds one another has many paths
            raise ModelLimitExceeded(
                f"state: expected at most {MODEL_NODES_MAX} values, each counted where it is held"
            )
        keeping = self._own.get(type(value))
        if keeping is None:
            return self._leaf(value, path)
        if id(value) in self._open:
            where = path_text(self._open[id(value)])
            return self._leave_out(path, f"a link to {where}, which holds it", self._unknown)
        self._open[id(value)] = path
        kept = keeping(value, path)
        del self._open[id(value)]
        return kept

    def _leave_out(self, path: Path, reason: str, unknown: str) -> Any:
        into = self._refused if unknown == "refuse" else self.dropped
        into.append(DroppedValue(path=path_text(path), reason=reason))
        return _DROPPED

    def _leaf(self, value: Any, path: Path) -> Any:
        if isinstance(value, self._torch.Tensor) and self._unknown == "drop":
            value = self._bare(value, path)
        fault = self._fault(value)
        if fault is None:
            return value
        return self._leave_out(path, fault, self._strictly())

    def _fault(self, value: Any) -> str | None:
        """The reason why a file cannot hold a value, from the writers of files."""
        try:
            structure, _ = flatten_state(self._torch, sys.modules.get("numpy"), value)
            write_structure(structure)
        except EncodeError as exc:
            return exc.message.partition(": ")[2]
        return None

    def _bare(self, tensor: Any, path: Path) -> Any:
        """A tensor without the attributes that a program set on it."""
        if not vars(tensor):
            return tensor
        for name in vars(tensor):
            self._leave_out((*path, name), "an attribute of a tensor", "drop")
        bare = tensor.detach()
        if type(tensor) is self._torch.nn.Parameter:
            return self._torch.nn.Parameter(bare, requires_grad=tensor.requires_grad)
        return bare.requires_grad_(tensor.requires_grad)

    # Containers.

    def _members(self, values: Iterable[Any], path: Path) -> list[Any]:
        kept = [self._keep(value, (*path, place)) for place, value in enumerate(values)]
        return [None if value is _DROPPED else value for value in kept]

    def _dict(self, value: Any, path: Path) -> dict[Any, Any]:
        kept: dict[Any, Any] = {}
        for key, held in value.items():
            fault = None if type(key) in _PLAIN else self._fault({key: None})
            if fault is not None:
                self._leave_out((*path, key), f"a key: {fault}", self._strictly())
                continue
            new = self._keep(held, (*path, key))
            if new is not _DROPPED:
                kept[key] = new
        return kept

    def _strictly(self) -> str:
        return "drop" if self._unknown == "drop" else "refuse"

    def _ordered(self, value: Any, path: Path) -> Any:
        kept: Any = OrderedDict(self._dict(value, path))
        metadata = vars(value).get("_metadata")
        if metadata is not None:
            new = self._keep(metadata, (*path, "_metadata"))
            if new is not _DROPPED:
                kept._metadata = new  # noqa: SLF001 (where torch looks)
        return kept

    def _default_dict(self, value: Any, path: Path) -> Any:
        kept: defaultdict[Any, Any] = defaultdict(value.default_factory)
        kept.update(self._dict(value, path))
        return kept

    def _namespace(self, value: Any, path: Path) -> Any:
        kept = type(value)()
        vars(kept).update(self._dict(vars(value), path))
        return kept

    def _inert(self, value: Inert, path: Path) -> Any:
        if self._unknown == "drop":
            return self._leave_out(path, f"the name {shown(value.type)}", "drop")
        parts = ("arguments", "keywords", "state", "items", "pairs")
        given = (value.arguments, value.keywords, value.state, value.items, value.pairs)
        kept = [self._keep(held, (*path, part)) for part, held in zip(parts, given, strict=True)]
        arguments, keywords, state, items, pairs = (
            None if part is _DROPPED else part for part in kept
        )
        return Inert(
            value.type,
            made=value.made,
            arguments=arguments or (),
            keywords=keywords,
            state=state,
            items=items,
            pairs=pairs,
        )


@dataclass(frozen=True, slots=True)
class FoundValue:
    """The content of a file; it may be None."""

    value: Any


def _load_array_file(torch: Any, source: Source, what: str, unknown: Unknown) -> FoundValue | None:
    """Load a file of numpy or joblib, packed or not.

    Args:
        torch: The module, for the other values of a pickle.
        source: The bytes of the file.
        what: The name of the file, for messages.
        unknown: The treatment of names that are in no table.

    Returns:
        An array, the arrays of a `.npz` by name, or the object that joblib saved; None for any
            other
        file.

    Raises:
        ModelMalformed: It is damaged.
        ModelLimitExceeded: It asks for more than a model file may.
        GlobalNotAllowed: A pickle in it names something that is not tensors and plain data.
    """
    return _ArrayFiles(torch, Budget(source.size), what, unknown).load(source)


class _ArrayFiles:
    """One file, and what is in it."""

    def __init__(self, torch: Any, budget: Budget, what: str, unknown: Unknown) -> None:
        self.budget = budget
        self.work = budget.work
        """The budget of all pickles of the file."""
        self._what = what
        self._unknown = unknown
        self._torch = torch

    def load(self, source: Source, *, packed: bool = False) -> FoundValue | None:
        kind = detect(source, "")
        if kind == "npy":
            return FoundValue(self._npy(source))
        if kind == "zip":
            return self._npz(source)
        if kind in STREAMS and not packed:
            data = unpack_stream(source, kind, self.budget, self._what)
            return self.load(Source.of(data), packed=True)
        if wrapping_kind(source.read(0, HEAD_BYTES)) == "stream" or kind != "pickle":
            return None
        return self._pickle(source, packed=packed)

    def _fault(self, expected: str) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}")

    def read_meaning(
        self,
        program: Program,
        size: int,
        storages: Mapping[str, FilePlace] = types.MappingProxyType({}),
        beside: Mapping[Global, Reading] = types.MappingProxyType({}),
    ) -> Any:
        """The meaning of a pickle; a pickle of an array of objects has no storages."""
        torch, what = self._torch, self._what
        maker = StorageMaker(
            torch,
            lambda key: storage_memory(torch, storages[key], what),
            Placing(torch, "cpu", what),
            swapped=sys.byteorder == "big",
            what=what,
        )
        return read_meaning(
            program,
            storages=sizes_of(storages),
            file_bytes=size,
            what=what,
            unknown=self._unknown,
            maker=maker,
            beside=beside,
            work=self.work,
        )

    def array(self, dtype: Any, shape: tuple[int, ...], data: bytes, *, is_fortran: bool) -> Any:
        """An array of its bytes, in memory of its own."""
        np = require_numpy()
        if dtype.hasobject:  # bytes of a file are no addresses
            raise self._fault("elements that are bytes")
        if dtype == np.bool_ and data.translate(None, b"\0\1"):
            raise self._fault("booleans of 0 or 1, found a byte of another value")
        if not data:
            return np.zeros(shape, dtype)
        order = "F" if is_fortran else "C"
        return np.ndarray(shape, dtype, buffer=bytearray(data), order=order)

    def _npy(self, source: Source) -> Any:
        header = read_npy(source, self.budget, self._what)
        if header.objects:
            rest = source.window(header.begin, source.size - header.begin)
            data = rest.whole(MODEL_PICKLE_BYTES_MAX, self._what)
            program = run_pickle(data, self._what, work=self.work)
            return self.read_meaning(program, len(data))
        try:
            dtype = require_numpy().dtype(header.descr)
        except (TypeError, ValueError) as exc:
            raise self._fault("a type of arrays that numpy knows") from exc
        if dtype.itemsize != header.item_bytes:
            raise self._fault(f"elements of {header.item_bytes} bytes")
        data = source.read(header.begin, source.size - header.begin)
        return self.array(dtype, header.shape, data, is_fortran=header.is_fortran)

    def _npz(self, source: Source) -> FoundValue | None:
        # Archives of torch have rules of their own, and another first member.
        if not _FIRST_NPY.match(source.read(0, HEAD_BYTES)):
            return None
        directory = zip_entries(source, self._what)
        names = [entry.name for entry in directory.entries]
        if zip_kind(names) != "npz":
            raise self._fault("arrays, and nothing else, in an archive of numpy")
        members = zip_members(source, directory, self.budget, self._what)
        return FoundValue(
            {member.name.removesuffix(_NPY): self._npy(member.source) for member in members}
        )

    def _pickle(self, source: Source, *, packed: bool) -> FoundValue | None:
        data = source.whole(MODEL_PICKLE_BYTES_MAX, self._what)
        if not packed and WRAPPER.name.encode() not in data:
            return None
        joblib = _JoblibArrays(self, data, self._what)
        program = run_pickle(data, self._what, skip=joblib.skip, work=self.work)
        run = partial(run_pickle, work=self.work)
        storages = given_storages(program, self._what, run, self.work)
        beside: dict[Global, Reading] = {WRAPPER: joblib.read}
        beside[LOADED] = partial(read_given, what=self._what)
        return FoundValue(self.read_meaning(program, len(data), storages, beside))


class _JoblibArrays:
    """The arrays of one file of joblib, by their placeholders in its pickle."""

    def __init__(self, files: _ArrayFiles, data: bytes, what: str) -> None:
        self._files = files
        self._data = data
        self._what = what
        self._skipper = ArraySkipper(data, what, files.budget, self._run)
        self._inner: Program | None = None
        # With the placeholder, so that no other object gets its identity.
        self._found: dict[int, tuple[Made, int, int, Program | None]] = {}

    def skip(self, made: Made, at: int) -> int:
        """The position where the pickle continues after an object got its state; notes arrays."""
        if made.function != WRAPPER:
            return at
        self._inner = None
        end = self._skipper(made, at)
        self._found[id(made)] = made, at, end, self._inner
        return end

    def _run(self, at: int) -> int:
        self._inner = run_pickle(
            self._data, self._what, start=at, whole=False, work=self._files.work
        )
        return self._inner.end

    def read(self, made: Made, value: Callable[[Value], Any]) -> Any:
        """The array of a placeholder."""
        self._skipper.read(made, value)
        state = dict(made.state.pairs)  # type: ignore[union-attr]  # it was looked at
        found = self._found.get(id(made))
        if found is None:  # it was made in another way, and nothing lies behind it
            raise ModelMalformed(f"{self._what}: expected an array as joblib writes it")
        _, begin, end, inner = found
        if inner is not None:
            return self._files.read_meaning(inner, end - begin)
        dtype, shape = value(state["dtype"]), value(state["shape"])
        length = dtype.itemsize * math.prod(shape)
        padding = end - length - begin
        if padding not in (0, 1 + self._data[begin]):
            raise ModelMalformed(f"{self._what}: expected {length} bytes of elements")
        held = self._data[end - length : end]
        return self._files.array(dtype, shape, held, is_fortran=state["order"] == "F")
