# SPDX-License-Identifier: Apache-2.0
"""Loading a `.pt` file so that it can give data and nothing else.

What `load_pt` returns was read twice, by two readers that share nothing: first here, as symbols,
held against a closed table and against the bytes that are there; then by torch, under a flag that
was just proven to work, from a view of the file in which what was judged cannot change. Only what
passes both is returned. Nothing is tried a second time in a less strict way.

It refuses files of other formats and of torch before 1.6, whatever is not tensors and plain data,
and what torch's own loader lets through: see the tests in `tests/attacks/models`. It leaves opening
the file, and whether it is the right one, to others.

A proof, not a promise, that `weights_only` is honoured by the `torch.load` of this process.

A signature proves nothing: a patched `torch.load` can show the parameter and drop its value. So
before each load a tiny checkpoint is loaded that asks for an instance of a class of ours. A
loader that honours the flag refuses it; the instance would do nothing. The class is made for
one proof, under a name nobody can foresee, so that no list of allowed classes can hold it. The
same checkpoint with a text in its place has to load: else the refusal was about something else.
The loader that passed is handed back, to be called itself: what was proven is what is used.

It does not look at torch's version, its settings or the environment: they all show in the
proof.

Files that are not what `torch.save` writes today, told apart by how they begin.

Each is refused with the name of its format and what to do about it. Nothing is opened, unpacked
or guessed at by its file name. Formats that cannot be told from their first bytes are refused
too, only with a less helpful message.

A last look at what torch built: exactly the types that were judged, and sparse indices in
range.

The pickle was judged before, so this finds nothing unless torch builds something else than it
says. It trusts no subclass: a tensor is exactly `torch.Tensor` or `torch.nn.Parameter`, without
attributes, and a container is exactly the built-in one.

A file as it was checked: structure from memory, only tensor elements from the disk.

Guarantees that whoever reads the view sees the structure that was checked, byte for byte, even
when somebody writes to the file in between: checking and loading cannot be given different
files. What can still change are the elements of tensors, which are numbers and decide nothing.
Elements are read straight into the buffer of the reader; nothing is mapped.
"""

import bisect
import functools
import io
import re
import secrets
import sys
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sealpoint.errors import (
    FlagNotHonoured,
    FormatRefused,
    ModelError,
    ModelMalformed,
    ModelUnreadable,
    SealpointError,
)
from sealpoint.models._extras import require_torch, without_torch_modes
from sealpoint.models._placing import Placing
from sealpoint.models._pt_tree import judge_tree
from sealpoint.models._sparse import check_sparse
from sealpoint.scan import (
    PICKLE,
    TORCH_PICKLE,
    Archive,
    ZipPiece,
    read_archive,
    run_pickle,
    shown,
)

_EXPECTED = "torch.load: expected it to honour weights_only"


class _Canary:
    """What no honest loader builds; it does nothing but say that it was built."""

    built: ClassVar[list[object]]

    def __init__(self) -> None:
        self.built.append(self)


def prove_weights_only(torch: Any) -> Callable[..., Any]:
    """The `torch.load` that was just proven to honour `weights_only`.

    Raises:
        FlagNotHonoured: It does not know the flag, or ignores it.
    """
    load: Callable[..., Any] = torch.load
    built: list[object] = []
    name = f"Canary{secrets.token_hex(16)}"
    here = sys.modules[__name__]
    setattr(here, name, type(name, (_Canary,), {"built": built}))
    canary = _checkpoint(b"c%b\n%b\n)R" % (__name__.encode(), name.encode()))
    try:
        load(canary, map_location="cpu", weights_only=True, mmap=False)
    except Exception as exc:
        found = _fault(exc, built)
        if found is not None:
            raise FlagNotHonoured(f"{_EXPECTED}, found {found}") from exc
    else:
        raise FlagNotHonoured(f"{_EXPECTED}, found that it loads what the flag forbids")
    finally:
        delattr(here, name)
    control = _checkpoint(b"X%b%b" % (len(name).to_bytes(4, "little"), name.encode()))
    try:
        loaded = load(control, map_location="cpu", weights_only=True, mmap=False)
    except Exception as exc:
        raise FlagNotHonoured(f"{_EXPECTED}, found that it refuses a text too") from exc
    if loaded != name:
        raise FlagNotHonoured(f"{_EXPECTED}, found that it returns something else than it loads")
    return load


def _fault(exc: Exception, built: list[object]) -> str | None:
    """Why an error is not the refusal that was expected, or None when it is."""
    if built:
        return "that it builds what the flag forbids"
    if isinstance(exc, TypeError):
        return "that it does not know it"
    # The class of the first kind belongs to a module that nothing here imports.
    names = {(kind.__module__, kind.__name__) for kind in type(exc).__mro__}
    if ("_pickle", "UnpicklingError") in names or isinstance(exc, RuntimeError):
        return None
    return f"{type(exc).__name__} instead of a refusal"


def _checkpoint(value: bytes) -> io.BytesIO:
    """A file as torch writes it, of one value in the opcodes of pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("canary/data.pkl", b"\x80\x02" + value + b".")
        archive.writestr("canary/byteorder", sys.byteorder)
        archive.writestr("canary/version", "3\n")
    file.seek(0)
    return file


HEAD_BYTES = 512
"""What has to be read of a file."""

_ZIP = b"PK\x03\x04"
_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_ANEW = "load it where it may run anything that it holds, and save it again"
_UNPACK = "unpack it first, if you trust where it comes from"
_OTHER = "convert it to safetensors with the tools of its format"

_BEGINNINGS = (
    (_LEGACY, "a torch stream of before torch 1.6", _ANEW),
    (b"PYTORCH1", "a torch archive of a preview release", _ANEW),
    (b"\x1f\x8b", "a gzip file", _UNPACK),
    (b"BZh", "a bzip2 file", _UNPACK),
    (b"\xfd7zXZ\x00", "an xz file", _UNPACK),
    (b"\x5d\x00\x00", "an lzma file", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a zstd file", _UNPACK),
    (b"\x04\x22\x4d\x18", "an lz4 file", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\x93NUMPY", "a numpy .npy file", _OTHER),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _OTHER),
    (b"GGUF", "a GGUF file", _OTHER),
    (b"lmgg", "a GGML file", _OTHER),
    (b"tjgg", "a GGJT file", _OTHER),
    (b"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself: git lfs pull"),
    (b"<!DOCTYPE", "a web page", "fetch the file itself, and not the page about it"),
    (b"<html", "a web page", "fetch the file itself, and not the page about it"),
    (b"PK\x05\x06", "an empty zip", "find out what went wrong when it was written"),
)
_TAR = slice(257, 262)
_TFLITE = slice(4, 8)
_PICKLE = re.compile(rb"\x80[\x00-\x08]")
_OLD_PICKLE = re.compile(rb"[(\]})cl]|[FILSVXN].{0,400}\n", re.DOTALL)
_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_ONNX = re.compile(rb"\x08[\x01-\x20][\x12\x1a\x22\x3a\x42]")
_SAFETENSORS = re.compile(rb".{5}\x00{3}\{", re.DOTALL)


def refuse_foreign(head: bytes, size: int, what: str) -> None:
    """Refuse a file that does not begin as the zip of `torch.save` does.

    Args:
        head: Its first bytes, `HEAD_BYTES` unless it is shorter.
        size: Of the file.
        what: The file, for messages.

    Raises:
        FormatRefused: It is of another format, or of none.
    """
    if head.startswith(_ZIP):
        return
    found, advice = _kind(head) if size else ("an empty file", "save or fetch it again")
    raise FormatRefused(
        f"{what}: expected the zip that torch.save writes, found {found}", hint=_sentence(advice)
    )


def _sentence(advice: str) -> str:
    return f"{advice[0].upper()}{advice[1:]}."


def _kind(head: bytes) -> tuple[str, str]:
    for beginning, found, advice in _BEGINNINGS:
        if head.startswith(beginning):
            return found, advice
    if head[_TAR] == b"ustar":
        return "a tar archive, as torch wrote before 0.1.10", _ANEW
    if _PICKLE.match(head):
        return "a bare pickle, which is a program", _ANEW
    if head[_TFLITE] == b"TFL3":
        return "a TFLite file", _OTHER
    if _SAFETENSORS.match(head):
        return "a safetensors file that was cut short", "fetch the whole file again"
    if _ZLIB.match(head):
        return "a zlib stream, as joblib writes", _UNPACK
    if _ONNX.match(head):
        return "an ONNX file", _OTHER
    if _OLD_PICKLE.match(head):
        return "what may be a pickle of an old protocol, which is a program", _ANEW
    return "no format that is known", "find out who wrote it, and with what"


_PLAIN = {type(None), bool, int, float, complex, str, bytes, bytearray}
_MAPPINGS = {dict, OrderedDict, Counter}
_SEQUENCES = {list, tuple, set}


def check_loaded(torch: Any, value: Any, what: str) -> None:
    """Check a value that torch loaded, all of it.

    Raises:
        ModelMalformed: It holds something of another type than was judged.
        SparseInvalid: Indices of a sparse tensor are wrong.
    """
    leaves = _PLAIN | {torch.Size, torch.device, torch.dtype, torch.layout, torch.qscheme}
    tensors = {torch.Tensor, torch.nn.Parameter}
    todo: list[Any] = [value]
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind in leaves or id(value) in seen:
            continue
        seen.add(id(value))
        if kind in tensors:
            _check_tensor(torch, value, what)
        elif kind in _SEQUENCES:
            todo += value
        elif kind in _MAPPINGS:
            todo += value.keys()
            todo += value.values()
            if kind is not dict:
                _check_attributes(value, {"_metadata"} if kind is OrderedDict else set(), what)
                todo += vars(value).values()
        else:
            raise ModelMalformed(
                f"{what}: expected torch to build tensors and plain data, found {kind.__name__}"
            )


def _check_tensor(torch: Any, tensor: Any, what: str) -> None:
    _check_attributes(tensor, set(), what)
    if tensor.is_nested or tensor.grad_fn is not None:
        raise ModelMalformed(f"{what}: expected plain tensors, found a nested or computed one")
    if tensor.layout is not torch.strided and not tensor.is_meta:
        check_sparse(torch, tensor, what)


def _check_attributes(value: Any, known: set[str], what: str) -> None:
    if not known.issuperset(vars(value)):
        raise ModelMalformed(
            f"{what}: expected no attributes on what torch builds, "
            f"found some on {type(value).__name__}"
        )


def read_at(file: io.FileIO, offset: int, length: int, what: str) -> bytes:
    """The bytes of a file at an offset; fewer only where the file ends.

    Raises:
        ModelUnreadable: The file cannot be read.
    """
    data = bytearray()
    try:
        file.seek(offset)
        while len(data) < length and (part := file.read(length - len(data))):
            data += part
    except OSError as exc:
        raise ModelUnreadable(f"{what}: expected to read it, found {exc.strerror}") from exc
    return bytes(data)


class PinnedView(io.RawIOBase):
    """A file to read and seek in, whose structure cannot change any more."""

    def __init__(self, file: io.FileIO, size: int, pieces: Sequence[ZipPiece], what: str) -> None:
        """Make a view.

        Args:
            file: The open file, unbuffered; nobody else moves in it while the view is read.
            size: Of the file.
            pieces: All bytes but the elements of tensors, in order.
            what: The file, for messages.
        """
        super().__init__()
        self._file = file
        self._size = size
        self._pieces = pieces
        self._starts = [piece.offset for piece in pieces]
        self._what = what
        self._at = 0
        self.fault: ModelUnreadable | None = None
        """Why a read failed: torch's reader does not keep the error that it was given."""

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Say where the next read begins."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, wholly unless the file ends before.

        Raises:
            ModelUnreadable: Elements of a tensor cannot be read any more.
        """
        target = memoryview(buffer).cast("B")
        total = max(min(len(target), self._size - self._at), 0)
        done = 0
        while done < total:
            done += self._some(target[done:total], self._at + done)
        self._at += total
        return total

    def _some(self, target: memoryview, at: int) -> int:
        """Fill the beginning of a buffer, from the one place where these bytes are."""
        index = bisect.bisect_right(self._starts, at) - 1
        piece = self._pieces[index]
        inside = at - piece.offset
        if inside < len(piece.data):
            part = memoryview(piece.data)[inside : inside + len(target)]
            target[: len(part)] = part
            return len(part)
        # Elements reach up to the next piece; the last piece reaches to the end of the file.
        length = min(len(target), self._starts[index + 1] - at)
        try:
            self._file.seek(at)
            count = self._file.readinto(target[:length])
            found = "its end"
        except OSError as exc:
            count, found = 0, str(exc.strerror)
        if not count:
            self.fault = ModelUnreadable(
                f"{self._what}: expected {length} bytes at {at}, found {found}"
            )
            raise self.fault
        return count


_STORAGE = "data/"
# What torch writes beside the pickle and the storages. It reads the last three, and trusts them.
_NOTES = {
    "version": re.compile(rb"([1-9]|10)\n?"),
    ".data/serialization_id": re.compile(rb"[0-9]{1,64}"),
    "byteorder": re.compile(rb"little|big"),
    ".format_version": re.compile(rb"1"),
    ".storage_alignment": re.compile(rb"[1-9][0-9]{0,5}"),
}


def load_pt(file: io.FileIO, size: int, what: str, map_location: Any) -> Any:
    """Load a file that `torch.save` wrote.

    Verification, in order: (1) the archive, (2) its pickle as symbols, (3) what these may mean,
    (4) that torch honours `weights_only`; then (5) torch loads it from a view in which structure
    comes from what was checked, and (6) what it built is looked at.

    Args:
        file: A regular file, opened unbuffered; nobody else moves in it meanwhile.
        size: Its size when it was opened.
        what: How to call it in messages.
        map_location: As of `torch.load`.

    Raises:
        FormatRefused: It is in another format, or an older one.
        RecordCompressed: A part of it is compressed.
        RecordMismatch: A part of it has another size than is declared for it.
        GlobalNotAllowed: It names something that is not tensors and plain data.
        SparseInvalid: Indices of a sparse tensor are wrong.
        ModelLimitExceeded: It asks for more than a model file may.
        ModelMalformed: It is damaged, or was made by something else than torch.
        ModelUnreadable: The file cannot be read.
        FlagNotHonoured: The `torch.load` of this process ignores the flag.
        ModelError: Torch cannot put it where `map_location` says.
        UsageError: `map_location` is not a place.
        ExtraMissing: Torch is not installed.
    """
    # (1) The archive: what is not one is named, so that its owner knows what to do.
    refuse_foreign(read_at(file, 0, HEAD_BYTES, what), size, what)
    archive = read_archive(functools.partial(_read, file, what), size, what)
    _check_notes(archive, what)
    # (2) The pickle, without calling or importing anything.
    tree = run_pickle(archive.contents[PICKLE], f"{what}: record {PICKLE!r}", TORCH_PICKLE)
    # (3) Against the closed table, and the storages that are there.
    storages = {
        name.removeprefix(_STORAGE): record.size
        for name, record in archive.records.items()
        if name.startswith(_STORAGE)
    }
    locations = judge_tree(tree, storages, size, what)
    # (4) The loader that is proven here is the one that is called below.
    torch = require_torch()
    Placing(torch, map_location, what)  # a place, or a mistake of the caller
    load = prove_weights_only(torch)
    mode = getattr(torch.serialization, "_serialization_tls", None)
    if getattr(mode, "skip_data", False):
        raise ModelError(
            f"{what}: expected to load the elements of its tensors, found skip_data in force",
            hint="Load it outside of torch.serialization.skip_data.",
        )
    # (5) Never mapped: what is mapped can change after it was loaded.
    view = PinnedView(file, size, archive.pieces, what)
    try:
        with without_torch_modes(torch):
            value = load(view, map_location=map_location, weights_only=True, mmap=False)
    except (SealpointError, Warning, MemoryError):
        raise
    except Exception as exc:
        raise _failure(exc, view, locations, what) from exc
    # (6) What it built.
    with without_torch_modes(torch):
        check_loaded(torch, value, what)
    return value


def load_trusted(path: Any, map_location: Any) -> Any:
    """Load a file that may run code: only for files that you wrote yourself, and kept.

    Nothing of what `load_pt` checks is checked. Whoever could write to the file, or to a copy on
    its way here, decides what this process does next.
    """
    require_torch()
    import torch  # noqa: PLC0415 - an optional dependency; imported here by name for scanners to see

    # The one call that is meant to be unsafe; its caller said so by name.
    return torch.load(path, map_location=map_location, weights_only=False)  # nosec B614


def _failure(exc: Exception, view: PinnedView, locations: set[str], what: str) -> ModelError:
    """What torch's error means; its text may hold parts of the file and is not repeated."""
    if view.fault is not None:
        return view.fault
    if isinstance(exc, RuntimeError):
        return ModelError(
            f"{what}: expected torch to load it on the device that map_location names, found a "
            f"failure; its tensors were on {', '.join(sorted(locations)) or 'none'}",
            hint="Say where its tensors shall go, for example with map_location='cpu'.",
        )
    return ModelMalformed(
        f"{what}: expected torch to load what was checked, found {type(exc).__name__}"
    )


def _read(file: io.FileIO, what: str, offset: int, length: int) -> bytes:
    return read_at(file, offset, length, what)


def _check_notes(archive: Archive, what: str) -> None:
    """Check the small records, which torch parses without care."""
    if "version" not in archive.contents:
        raise ModelMalformed(f"{what}: the record 'version' is missing")
    for name, content in archive.contents.items():
        pattern = _NOTES.get(name)
        if pattern is not None and not pattern.fullmatch(content):
            raise ModelMalformed(
                f"{what}: record {shown(name)}: its bytes are not what torch writes there"
            )
