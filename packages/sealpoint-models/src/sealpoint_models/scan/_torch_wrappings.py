# SPDX-License-Identifier: Apache-2.0
"""Torch's wrappings of pickles and storages: from each, one program and its storages.

Three wrappings, and the same rules for all of them: the zip of torch since 1.6, the stream of
before, and a bare pickle, whose storages are such streams. Every byte of a file belongs to its
structure, to the pickles or to exactly one storage; a storage that is said to be longer than the
file, bytes that nobody uses and keys that nobody names are refused. Nothing is written to a disk
or decompressed.

Other formats are refused by their name, with what to do about it.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from sealpoint.errors import (
    FormatRefused,
    ModelLimitExceeded,
    ModelMalformed,
    RecordMismatch,
)
from sealpoint.limits import MODEL_PICKLE_BYTES_MAX, MODEL_TENSORS_MAX
from sealpoint_models.scan import _torch_names as table
from sealpoint_models.scan._byte_source import Source
from sealpoint_models.scan._compressed_streams import is_tar, is_torch_tar
from sealpoint_models.scan._pickle_machine import Work
from sealpoint_models.scan._pickle_reader import run_pickle
from sealpoint_models.scan._pickle_symbols import (
    Call,
    Dict,
    Global,
    List,
    Made,
    Mentions,
    Persistent,
    Program,
    Reading,
    Tuple,
    Value,
)
from sealpoint_models.scan._torch_zip import (
    PICKLE,
    Archive,
    Read,
    read_archive,
    read_exactly,
    shown,
)

HEAD_BYTES = 512
"""The number of bytes that identify the wrapping of a file."""

_ZIP = b"PK\x03\x04"
_MAGIC = 0x1950A86A20F9469CFC6C
# The number that a stream begins with, in each protocol: from 4 on, in a frame.
_LEGACY = re.compile(
    rb"\x80(?:[\x02\x03]|[\x04\x05]\x95\x0d\x00{7})\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19\."
)
_VERSION = 1001
_STORAGE = "data/"
# The records of torch in addition to the pickle and the storages.
_NOTES = {
    "version": re.compile(rb"([1-9]|10)\n?"),
    ".data/serialization_id": re.compile(rb"[0-9]{1,64}"),
    "byteorder": re.compile(rb"little|big"),
    ".format_version": re.compile(rb"1"),
    ".storage_alignment": re.compile(rb"[1-9][0-9]{0,5}"),
}
_UNPACK = "unpack it first, and load what was in it"
_OTHER = "convert it to safetensors with the tools of its format"
_CONVERT = "make a safetensors file of it: sealpoint model convert IN OUT"
_JOBLIB = (
    "if joblib wrote it, sealpoint model convert IN OUT reads it as it is; else unpack it first"
)
_FETCH = "fetch the file itself, and not the page about it"
_SAVE_AGAIN = (
    "if you trust who wrote it, read it with torch.load(FILE, weights_only=False) on a machine "
    "that holds nothing else, and save the state again"
)
_BEGINNINGS = (
    (b"PYTORCH1", "a torch archive of a preview release", "save it again with a later torch"),
    (b"\x1f\x8b", "a gzip file", _JOBLIB),
    (b"BZh", "a bzip2 file", _JOBLIB),
    (b"\xfd7zXZ\x00", "an xz file", _JOBLIB),
    (b"\x5d\x00\x00", "an lzma file", _JOBLIB),
    (b"\x28\xb5\x2f\xfd", "a zstd file", _UNPACK),
    (b"\x04\x22\x4d\x18", "an lz4 file", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\x93NUMPY", "a numpy .npy file", _CONVERT),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _OTHER),
    (b"GGUF", "a GGUF file", _OTHER),
    (b"lmgg", "a GGML file", _OTHER),
    (b"tjgg", "a GGJT file", _OTHER),
    (b"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself: git lfs pull"),
    (b"<!DOCTYPE", "a web page", _FETCH),
    (b"<html", "a web page", _FETCH),
    (b"PK\x05\x06", "an empty zip", "find out what went wrong when it was written"),
)
_TAR = "a tar archive"
_TFLITE = slice(4, 8)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_OLD_PICKLE = re.compile(rb"[(\]})cl]|N\.|[FILSVX].{0,400}\n", re.DOTALL)
_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_ONNX = re.compile(rb"\x08[\x01-\x20][\x12\x1a\x22\x3a\x42]")
_ARRAY_OF_JOBLIB = b"NumpyArrayWrapper"
_SAFETENSORS = re.compile(rb".{5}\x00{3}\{", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlace:
    """The position of a storage's bytes."""

    offset: int
    size: int
    data: bytes | None = None
    """The bytes with the storage, if they are not the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapping:
    """A file as one program and its storages."""

    program: Program
    storages: Mapping[str, FilePlace]
    is_big_endian: bool = False
    views: bool = False
    """Whether storages may be parts of records."""
    beside: Mapping[Global, Reading] = field(default_factory=dict)
    """Names that only such a file has, and the reading of each."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """The bytes of each storage, by its key."""
        return sizes_of(self.storages)


def sizes_of(storages: Mapping[str, FilePlace]) -> dict[str, int]:
    """The bytes of each storage, by its key."""
    return {key: place.size for key, place in storages.items()}


class PickleRun(Protocol):
    """Runs a pickle, as `run_pickle` does, and may analyze it as well."""

    def __call__(
        self,
        data: bytes,
        what: str,
        *,
        start: int = 0,
        whole: bool = True,
        mentions: Mentions | None = None,
    ) -> Program:
        """Return the content of the pickle, as symbols."""


def may_be_pickle(head: bytes) -> bool:
    """Whether a file may be a pickle, by its beginning, and is not of another known format."""
    return _PICKLE.match(head) is not None or _kind(head)[0] is None


def read_wrapping(
    read: Read,
    size: int,
    what: str,
    mentions: Mentions | None = None,
    run: PickleRun | None = None,
    *,
    work: Work | None = None,
) -> Wrapping:
    """Read a file as one program and its storages.

    Args:
        read: Gives the bytes at an offset, of a length, fewer only at the end.
        size: Of the file.
        what: The file, for messages.
        mentions: The target for names and calls, for callers who want them of a refused file.
        run: Runs each pickle of it; a scan listens here. None: `run_pickle`.
        work: The budget, shared with others; None: this is the file.

    Raises:
        FormatRefused: It is of another format, or of none.
        RecordCompressed, RecordMismatch, ModelLimitExceeded, ModelMalformed: A part of it breaks a
            rule.
    """
    head = read(0, min(HEAD_BYTES, size))
    kind = wrapping_kind(head)
    # A scan reads the arrays of joblib too: what is malformed to it is that.
    reads_arrays = run is not None
    work = Work.of(size) if work is None else work
    run = functools.partial(run_pickle, work=work) if run is None else run
    if kind == "zip":
        return _from_zip(read, size, what, mentions, run)
    if kind == "stream":
        return _from_stream(read, size, what, mentions, run)
    if _PICKLE.match(head):
        return _from_pickle(read, size, what, mentions, run, work=work, reads_arrays=reads_arrays)
    found, advice = _kind(head) if size else ("an empty file", "save or fetch it again")
    if found == _TAR and is_torch_tar(Source(read, size), what):
        found, advice = "a tar that torch wrote before 0.1.10 (2017)", _SAVE_AGAIN
    if found is None:
        # It may be a pickle of protocol 0 or 1, which begins like any text.
        try:
            return _from_pickle(
                read, size, what, mentions, run, work=work, reads_arrays=reads_arrays
            )
        except ModelMalformed:
            found = "no format that is known"
    raise FormatRefused(
        f"{what}: expected a file of torch or a pickle, found {found}",
        hint=f"{advice[0].upper()}{advice[1:]}.",
    )


def wrapping_kind(head: bytes) -> Literal["zip", "stream", "pickle"]:
    """The wrapping of a file of torch or of a pickle, by its first bytes."""
    if head.startswith(_ZIP):
        return "zip"
    return "stream" if _LEGACY.match(head) else "pickle"


def _kind(head: bytes) -> tuple[str | None, str]:
    """The name of a format and its hint; no name: it may be a pickle."""
    if is_tar(head):
        return _TAR, _UNPACK
    for beginning, found, advice in _BEGINNINGS:
        if head.startswith(beginning):
            return found, advice
    if head[_TFLITE] == b"TFL3":
        return "a TFLite file", _OTHER
    if _SAFETENSORS.match(head):
        return "a safetensors file that was cut short", "fetch the whole file again"
    if _ZLIB.match(head):
        return "a zlib stream, as joblib writes", _CONVERT
    if _ONNX.match(head):
        return "an ONNX file", _OTHER
    advice = "find out who wrote it, and with what"
    return (None if _OLD_PICKLE.match(head) else "no format that is known"), advice


def _from_zip(
    read: Read, size: int, what: str, mentions: Mentions | None, run: PickleRun
) -> Wrapping:
    archive = read_archive(read, size, what)
    _check_notes(archive, what)
    return Wrapping(
        program=run(archive.contents[PICKLE], f"{what}: record {PICKLE!r}", mentions=mentions),
        storages={
            name.removeprefix(_STORAGE): FilePlace(offset=record.offset, size=record.size)
            for name, record in archive.records.items()
            if name.startswith(_STORAGE)
        },
        is_big_endian=archive.contents.get("byteorder") == b"big",
    )


def _check_notes(archive: Archive, what: str) -> None:
    """Check the small records, each of which has a few forms."""
    if "version" not in archive.contents:
        raise ModelMalformed(f"{what}: the record 'version' is missing")
    for name, content in archive.contents.items():
        pattern = _NOTES.get(name)
        if pattern is not None and not pattern.fullmatch(content):
            raise ModelMalformed(
                f"{what}: record {shown(name)}: its bytes are not what torch writes there"
            )


def _from_pickle(
    read: Read,
    size: int,
    what: str,
    mentions: Mentions | None,
    run: PickleRun,
    *,
    work: Work,
    reads_arrays: bool,
) -> Wrapping:
    data = read_exactly(read, 0, min(size, MODEL_PICKLE_BYTES_MAX + 1), what)
    try:
        program = run(data, what, mentions=mentions)
    except ModelMalformed as exc:
        if reads_arrays or _ARRAY_OF_JOBLIB not in data:
            raise
        raise FormatRefused(
            f"{what}: expected a file of torch or a pickle, found one of joblib, with arrays "
            "between its opcodes",
            hint=f"{_CONVERT[0].upper()}{_CONVERT[1:]}.",
        ) from exc
    return Wrapping(
        program=program,
        storages=given_storages(program, what, run, work),
        beside={LOADED: functools.partial(read_given, what=what)},
    )


# The storages of a pickle: each in its own bytes, since a pickle has no other records.

LOADED = Global("torch.storage", "_load_from_bytes")
"""The function that torch calls with such bytes: it loads anything in them, here one storage."""
LOADED_REASON = "a storage in bytes of its own, read as a file of torch"
_ENCODE = Global("_codecs", "encode")
_GIVEN_COST = 2048
"""They are five pickles, which take longer to read than their size suggests."""


def given_storages(program: Program, what: str, run: PickleRun, work: Work) -> dict[str, FilePlace]:
    """Read the bytes that a pickle gives to torch, and attach the result to each call.

    (1) Bytes that are given once; (2) a stream of torch, by all rules of such a file; (3) in it one
    storage and nothing else, no other name, call or reference, used or not.

    Args:
        program: The pickle; the calls in it are changed.
        what: The file, for messages.
        run: Runs each pickle of the streams.
        work: The budget, shared with all others of the file.

    Returns:
        The storages by new keys: each stream has its own.

    Raises:
        RecordMismatch, ModelLimitExceeded, ModelMalformed: A part of it is not as it has to be.
    """
    found: dict[str, FilePlace] = {}
    given: set[int] = set()
    for call in _loads(program):
        # (1) Else a short file could ask for any amount of memory.
        literal = _given_literal(call)
        if literal is None or id(literal) in given:
            raise ModelMalformed(f"{what}: expected each call of {LOADED} with bytes of its own")
        given.add(id(literal))
        if (left := work.left - _GIVEN_COST) < 0:
            raise ModelLimitExceeded(work.fault(what))
        work.left = left
        # (2) As torch reads it.
        data = literal if isinstance(literal, bytes) else literal.encode("latin-1", "replace")
        if not _LEGACY.match(data):
            raise ModelMalformed(f"{what}: expected a stream of torch in the bytes of a storage")
        stream = _from_stream(Source.of(data).read, len(data), what, None, run)
        # (3) Readers of the pickle look no further than the storage.
        only = _only_storage(stream)
        if only is None:
            raise ModelMalformed(f"{what}: expected one storage, and nothing else, in bytes")
        kind, location, count = only
        (place,) = stream.storages.values()
        key = str(len(found))
        found[key] = replace(place, data=data)
        call.gives = Persistent(Tuple(("storage", kind, key, location, count)))
    # The keys are ours: nothing in the pickle may refer by them.
    if found and any(type(act) is Persistent for act in program.acts):
        raise ModelMalformed(f"{what}: expected no references in a pickle with storages in bytes")
    return found


def _only_storage(stream: Wrapping) -> tuple[Global, Value, Value] | None:
    """Type, device and length of the storage in a stream; None if anything else is in it."""
    program = stream.program
    match program.value:
        case Persistent(
            Tuple(("storage", Global() as kind, str() as key, location, count, *view))
        ) if view in ([], [None]):
            is_all = len(program.acts) == 1 and [*program.names] == [kind]
            return (kind, location, count) if is_all and [*stream.storages] == [key] else None
        case _:
            return None


def given_literals(program: Program) -> set[int]:
    """The identities of the texts and byte strings that `given_storages` reads."""
    return {id(_given_literal(call)) for call in _loads(program)}


def _loads(program: Program) -> Iterator[Call]:
    for act in program.acts:
        if type(act) is Call and act.function == LOADED:
            yield act


def _given_literal(call: Call) -> bytes | str | None:
    """The argument of a call; before protocol 3 bytes are written as a text of Latin-1."""
    match call.arguments.values:
        case (bytes() as data,) if call.bare:
            return data
        case (Call(function=function, arguments=Tuple((str() as text, "latin1"))) as encoded,) if (
            function == _ENCODE and encoded.bare and call.bare
        ):
            return text
        case _:
            return None


def read_given(made: Made, value: Callable[[Value], Any], *, what: str) -> Any:
    """The meaning of a call that `given_storages` has read.

    Args:
        made: The call.
        value: Returns the meaning of a symbol.
        what: The file, for messages.

    Raises:
        ModelMalformed: It is not such a call.
    """
    if made.gives is None:
        raise ModelMalformed(f"{what}: expected a call of {LOADED} with bytes of its own")
    return value(made.gives)


def _from_stream(
    read: Read, size: int, what: str, mentions: Mentions | None, run: PickleRun
) -> Wrapping:
    """Five pickles, then the storages in the order of the last: length and elements of each.

    (1) A number that says what it is, (2) its version, (3) the machine, (4) the value, (5) the keys
    of the storages; then (6) every byte up to the end belongs to a storage.
    """
    window = read_exactly(read, 0, min(size, MODEL_PICKLE_BYTES_MAX), what)
    magic = run(window, what, whole=False)
    version = run(window, what, start=magic.end, whole=False)
    machine = run(window, what, start=version.end, whole=False)
    if (magic.value, version.value) != (_MAGIC, _VERSION):
        raise ModelMalformed(f"{what}: expected a stream of version {_VERSION}")
    program = run(window, what, start=machine.end, whole=False, mentions=mentions)
    keys = run(window, what, start=program.end, whole=False)
    if any(each.names or each.acts for each in (magic, version, machine, keys)):
        raise ModelMalformed(f"{what}: expected plain data around the value of a stream")
    _check_machine(machine.value, what)
    storages: dict[str, FilePlace] = {}
    at, items = keys.end, _item_bytes(program)
    for key in _keys(keys.value, what):
        if key not in items or key in storages:
            raise RecordMismatch(f"{what}: storage {shown(key)}: expected it to be used, and once")
        count = int.from_bytes(read_exactly(read, at, 8, what), "little", signed=True)
        length = count * items[key]
        if count < 0 or length > size - at - 8:
            raise RecordMismatch(
                f"{what}: storage {shown(key)}: expected at most the {size - at - 8} bytes that "
                f"are left, found {length}"
            )
        storages[key] = FilePlace(offset=at + 8, size=length)
        at += 8 + length
    if at != size:
        raise ModelMalformed(
            f"{what}: expected its storages to end it, found {size - at} bytes more"
        )
    return Wrapping(
        program=program,
        storages=storages,
        views=True,
    )


def _check_machine(value: Value, what: str) -> None:
    """Check what a file says about the machine that wrote it."""
    facts = _facts(value, what)
    sizes = _facts(facts.pop("type_sizes", Dict()), what)
    if not all(type(each) in (bool, int) for each in (*facts.values(), *sizes.values())):
        raise ModelMalformed(f"{what}: expected numbers about the machine that wrote it")
    if facts.get("protocol_version") != _VERSION or facts.get("little_endian") is not True:
        raise ModelMalformed(
            f"{what}: expected a file of version {_VERSION}, of a machine that is little-endian"
        )


def _facts(value: Value, what: str) -> dict[str, Value]:
    """The pairs of a dict whose keys are texts, each once."""
    pairs = value.pairs if isinstance(value, Dict) else []
    found = {key: each for key, each in pairs if type(key) is str}
    if not isinstance(value, Dict) or len(found) != len(pairs):
        raise ModelMalformed(f"{what}: expected facts about the machine that wrote it, by name")
    return found


def _keys(value: Value, what: str) -> list[str]:
    found = [key for key in value.values if type(key) is str] if isinstance(value, List) else []
    if not isinstance(value, List) or len(found) != len(value.values):
        raise ModelMalformed(f"{what}: expected the keys of its storages as texts")
    if len(found) > MODEL_TENSORS_MAX:
        raise ModelMalformed(f"{what}: expected at most {MODEL_TENSORS_MAX} storages")
    return found


def _item_bytes(program: Program) -> dict[str, int]:
    """The length of an element of each storage that a program refers to."""
    found: dict[str, int] = {}
    for each in program.acts:
        match each:
            case Persistent(Tuple(("storage", Global() as kind, str() as key, *_))):
                element = table.STORAGES.get(kind)
                found.setdefault(key, 1 if element is None else element.size)
            case _:
                pass  # what is no reference to a storage is refused where its meaning is read
    return found
