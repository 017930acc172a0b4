# SPDX-License-Identifier: Apache-2.0
"""The format of bytes, by their content: never by the name of the file.

A name only sets an expectation. Where a name promises a format that holds no code, such as
`.safetensors`, other content is a separate finding. The end of a file is checked as well: a zip is
read from its end, so that a file can also be a zip in addition to any other format; only where a
tar ends with a zip, and every reader finds that one, it does not count as another format. HDF5 may
begin after a user block with any content. And a pickle is read from its beginning until it ends
itself, whatever follows: the first bytes of a picture or the first name in a tar can be its
opcodes, and so can a text. `calls_as_pickle` says whether they are, by the lengths of opcodes and
their effect on the stack, and by no rule of spelling.
"""

import re
import struct
from collections.abc import Iterable
from pathlib import PurePosixPath

from sealpoint.errors import SealpointError
from sealpoint.limits import MODEL_PICKLE_BYTES_MAX
from sealpoint_models.scan._byte_source import Budget, Member, Source
from sealpoint_models.scan._compressed_streams import is_tar
from sealpoint_models.scan._gguf import GGUF_MAGIC
from sealpoint_models.scan._npy import NPY_MAGIC
from sealpoint_models.scan._onnx import is_saved_model
from sealpoint_models.scan._torch_zip import read_directory

HEAD_BYTES = 1024
_TAIL_BYTES = 1 << 17
"""The maximum distance of a zip's end record from its end, as in torch: beyond any comment."""
_SAFETENSORS_HEADER_MAX = 100_000_000
_ZIP_ENDS_MAX = 64
_END = struct.Struct("<4s4H2LH")
_LOCATOR_BYTES = 20
_WIDE_BYTES = 56 + _LOCATOR_BYTES
"""The end record of 64 bits, and its locator."""
_NARROW_MAX = 0xFFFFFFFF

EXPECTED = {
    ".safetensors": {"safetensors"},
    ".gguf": {"gguf"},
    ".onnx": {"onnx"},
    ".npy": {"npy"},
    ".npz": {"npz"},
    ".keras": {"keras"},
    ".h5": {"hdf5"},
    ".hdf5": {"hdf5"},
}
"""Names that promise a format, and their allowed content."""

MODEL_SUFFIXES = frozenset(
    [
        *EXPECTED,
        *(".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".p", ".joblib", ".jl", ".dat"),
        *(".data", ".model", ".mdl", ".pb", ".tflite", ".pt2", ".mar", ".ptl", ".pte"),
        *(".dill", ".engine", ".mlmodel", ".msgpack", ".nemo", ".pdmodel", ".pdparams", ".trt"),
        *(".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".lzma", ".lz4", ".z", ".zst", ".7z"),
        ".rar",
    ]
)
"""Names of files that a program may load: unknown content is a finding."""

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_HDF5_BLOCK_BYTES = 512
"""The possible positions of HDF5 apart from byte 0: this one, and each double of it."""
_MAGICS = (
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (NPY_MAGIC, "npy"),
    (GGUF_MAGIC, "gguf"),
    (_HDF5_MAGIC, "hdf5"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"]\x00\x00", "lzma"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    (b"\x7fELF", "executable"),
    (b"MZ", "executable"),
    (b"\xcf\xfa\xed\xfe", "executable"),
    (b"\xca\xfe\xba\xbe", "executable"),
    (b"#!", "script"),
    (b"version https://git-lfs.github.com/spec/", "git-lfs-pointer"),
)
_NOT_MODELS = (
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF87a", "image"),
    (b"GIF89a", "image"),
    (b"PAR1", "parquet"),
    (b"ARROW1\x00\x00", "arrow"),
)
"""Formats of files that are not models, and are not read."""

_INNER_MAGICS = {b"TFL3": "tflite", b"PTMF": "torch-mobile", b"ET12": "executorch"}

HOLDS_CODE = {
    "hdf5": "HDF5, in which Keras keeps Lambda layers as bytes of Python",
    "executable": "a program of an operating system",
    "script": "a script",
    "saved-model": "a TensorFlow SavedModel, whose graph can read and write files",
    "tflite": "a TensorFlow Lite model, which can name operators of its own",
    "torch-mobile": "a TorchScript program for mobile devices",
    "executorch": "an ExecuTorch program",
    "torchscript": "a TorchScript archive, which is a program",
    "torch-package": "a torch.package archive, which holds source code",
    "torch-export": "a torch.export archive, which is a program",
    "torch-serve": "a TorchServe archive, which holds source code",
}
"""Formats that can hold code and are not analyzed."""

NOT_OPENED = {
    "zstd": "Zstandard",
    "lz4": "LZ4",
    "7z": "7-Zip",
    "rar": "RAR",
    "joblib-old": "Joblib 0.9",
}
"""Containers that are not opened."""

# A length in 19 characters, and the first byte of zlib; all of it can be text.
_OLD_JOBLIB = re.compile(rb"ZF[\s\w+-]{19} ?[\x08\x18(8HXhx]")
_TEXT_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\x0c\x1b")


CODE_SUFFIXES = frozenset({".py", ".pyw", ".pyc", ".pyo"})
"""Names by which Python imports a file."""
YAML_SUFFIXES = frozenset({".yaml", ".yml"})
DOCUMENT_SUFFIXES = YAML_SUFFIXES | {".json"}
"""Names of documents that can name code."""
TEMPLATE_SUFFIXES = frozenset({".jinja", ".jinja2", ".j2"})
_WITH_TEMPLATES = frozenset({"tokenizer_config.json", "chat_template.json"})


def has_templates(name: str) -> bool:
    """Whether a text is a template, or a document that may have some, by its name."""
    path = PurePosixPath(name.replace("\\", "/").lower())
    return path.suffix in TEMPLATE_SUFFIXES or path.name in _WITH_TEMPLATES


def suffix_of(name: str) -> str:
    """The last part of a name, in small letters."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def detect(source: Source, name: str) -> str:
    """The format of the bytes; `unknown` if none matches."""
    head = source.read(0, HEAD_BYTES)
    if not head:
        return "empty"
    if suffix_of(name) == ".safetensors" and _is_safetensors(head, source.size):
        return "safetensors"  # whatever the length of its header looks like
    for magic, kind in (*_MAGICS, *_NOT_MODELS):
        if head.startswith(magic):
            return kind
    if _OLD_JOBLIB.match(head):
        return "joblib-old"
    return _by_structure(head, source.size) or _by_name(head, suffix_of(name)) or _plain(source)


def is_hdf5(source: Source) -> bool:
    """Whether bytes are HDF5 from their beginning on."""
    return source.read(0, len(_HDF5_MAGIC)) == _HDF5_MAGIC


def _by_structure(head: bytes, size: int) -> str | None:
    if head[0] == 0x80 and len(head) > 1 and head[1] <= 5:
        return "pickle"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image"
    if head[4:8] in _INNER_MAGICS:
        return _INNER_MAGICS[head[4:8]]
    if _is_safetensors(head, size):
        return "safetensors"
    if is_tar(head[:512]):
        return "tar"
    if head[0] == 0x78 and len(head) > 1 and (head[0] << 8 | head[1]) % 31 == 0:
        return "zlib"
    return None


def _is_safetensors(head: bytes, size: int) -> bool:
    length = int.from_bytes(head[:8], "little")
    return head[8:9] in {b"{", b" "} and 2 <= length < min(_SAFETENSORS_HEADER_MAX, size)


def _by_name(head: bytes, suffix: str) -> str | None:
    """The format of files without a signature, according to their name."""
    if suffix == ".pb" or (is_saved_model(head) and suffix != ".onnx"):
        return "saved-model"
    if suffix == ".onnx" or (head[0] == 0x08 and 0 < int.from_bytes(head[1:2], "big") < 32):
        return "onnx"
    return None


def _plain(source: Source) -> str:
    """Text, as far as its beginning says."""
    head = source.read(0, 1 << 16)
    if _TEXT_CONTROLS.intersection(head):
        return "unknown"
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as exc:
        # A character that is cut at the end of the piece is not an error.
        if len(head) - exc.start >= 4:
            return "unknown"
    return "text"


def second_format(source: Source, kind: str, members: Iterable[Member] = ()) -> str | None:
    """Another format that the same bytes are as well, or None.

    Args:
        source: The bytes.
        kind: Their format.
        members: Their members if they are a tar; each is judged separately.
    """
    head = source.read(0, 512)
    if kind != "tar" and is_tar(head):
        return "tar"
    if kind != "hdf5" and _begins_later_as_hdf5(source):
        return "hdf5"
    if kind == "zip":
        return None
    begin = max(source.size - _TAIL_BYTES, 0)
    tail = source.read(begin, source.size - begin)
    ends = {begin + found.start() for found in re.finditer(rb"PK\x05\x06", tail)}
    for member in members:
        at = member.offset + member.source.size - _END.size
        if at in ends and _is_read_as_member(source, member):
            ends.remove(at)
    # No file has so many of them by chance.
    is_zip = len(ends) > _ZIP_ENDS_MAX or any(_is_zip_end(source, at) for at in ends)
    return "zip" if is_zip else None


def _begins_later_as_hdf5(source: Source) -> bool:
    """Whether bytes are HDF5 after a user block, where its readers look for it."""
    at = _HDF5_BLOCK_BYTES
    while at < source.size:
        if source.read(at, len(_HDF5_MAGIC)) == _HDF5_MAGIC:
            return True
        at *= 2
    return False


def _is_read_as_member(tar: Source, member: Member) -> bool:
    """Whether zip readers that get a tar find the judged zip in it, or nothing.

    Readers that add the length of a zip's prefix to its offsets find its own directory. Other
    readers, such as torch, must find neither a directory nor an end record of 64 bits, which new
    versions of Python look for there, too. A member that only ends as a zip is two formats by
    itself.
    """
    try:
        offset = read_directory(member.source.read, member.source.size, member.name).offset
    except SealpointError:
        return False
    places = {offset, min(offset, _NARROW_MAX)}
    if any(tar.read(place, 4) == b"PK\x01\x02" for place in places):
        return False
    wide = member.source.size - _END.size - _WIDE_BYTES
    return tar.read(wide, 4) != b"PK\x06\x06"


def _is_zip_end(source: Source, at: int) -> bool:
    """Whether an end record has a directory where some reader looks for it."""
    record = source.read(at, _END.size)
    if len(record) < _END.size:
        return False
    # Readers trust the 64-bit records before it, regardless of its own content.
    if at >= _LOCATOR_BYTES and source.read(at - _LOCATOR_BYTES, 4) == b"PK\x06\x07":
        return True
    _, _, _, _, count, length, offset, _ = _END.unpack(record)
    if not count and not length:
        return False
    places = (offset, at - length, at - length - _WIDE_BYTES)
    return any(place >= 0 and source.read(place, 4) == b"PK\x01\x02" for place in places)


_FIXED = {
    **dict.fromkeys(b"(.012NR]dba}elstuo)", 0),
    **dict.fromkeys(b"\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98", 0),
    **dict.fromkeys(b"Khq\x80\x82", 1),
    **dict.fromkeys(b"M\x83", 2),
    **dict.fromkeys(b"Jjr\x84", 4),
    **dict.fromkeys(b"G\x95", 8),
}
"""The number of bytes after an opcode of pickle."""
_COUNTED = {
    **dict.fromkeys(b"UC\x8a\x8c", 1),
    **dict.fromkeys(b"TXB\x8b", 4),
    **dict.fromkeys(b"\x8d\x8e\x96", 8),
}
"""The number of bytes of a length field."""
_LINES = {**dict.fromkeys(b"FILSVgp", 1), **dict.fromkeys(b"ci", 2)}
"""The number of lines that follow."""
_NAME_LINES = re.compile(rb"[^\s()]+\n[^\s()]+")
_MODULE_LINE = re.compile(rb"[A-Za-z_][\w.]*\n")
"""A module is imported even if it lacks the name in the next line."""
END_LINES = b"\n\n"
"""In the unpickler that is written in Python, the end of a file ends its last lines."""
_FRAME = 0x95
_STEPS_MAX = 200_000
_ARGUMENT_BYTES_A_STEP = 1 << 13
_TUPLE, _NAME, _OTHER, _ANY = "tuple", "name", "other", "any"
_PUSHED = {
    **dict.fromkeys(b"NFIGJKLMSTUVXBC]}\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x96\x97", _OTHER),
    **dict.fromkeys(b"ghj", _ANY),
    **dict.fromkeys(b"\x82\x83\x84", _NAME),
    ord(")"): _TUPLE,
}
"""The value that an opcode pushes, if it does nothing else."""
_ONTO = {**dict.fromkeys(b"pqr\x80\x94\x95\x98", 0), **dict.fromkeys(b"ab", 1), ord("s"): 2}
"""The number of values that an opcode removes and does not return."""
_CALLABLE = frozenset({_NAME, _ANY})
_TO_MARK = {**dict.fromkeys(b"1eu\x90", None), **dict.fromkeys(b"dl\x91", _OTHER), ord("t"): _TUPLE}
"""Opcodes that remove everything down to a mark, and the value that they push."""


def calls_as_pickle(source: Source, budget: Budget, what: str, *, imports: bool = False) -> bool:
    """Whether the bytes, read as a pickle from their beginning, call or change what they name.

    Args:
        source: The bytes.
        budget: The budget of the whole file.
        what: The name of the bytes, for messages.
        imports: Whether a name alone is enough: it imports a module. Texts have such lines.

    Raises:
        ModelLimitExceeded: The budget is used up.
    """
    for length in (1 << 16, MODEL_PICKLE_BYTES_MAX):
        data = source.read(0, min(length, source.size))
        whole = len(data) == source.size
        walk = _OpcodeWalk(data + END_LINES if whole else data, imports=imports)
        answer = walk.run()
        budget.step(walk.steps, what)
        if answer is not None:
            return answer
        if whole:
            return False
    return True


def names_as_opcodes(
    data: bytes, at: int, budget: Budget, what: str, *, or_calls: bool = False
) -> bool:
    """Whether an unpickler that continues at a position of a pickle would import something.

    Its stack at that position is unknown: opcodes are followed by their lengths alone.

    Args:
        data: The file.
        at: The position.
        budget: The budget of the whole file.
        what: The file, for messages.
        or_calls: Whether a call is enough: earlier imports are remembered.

    Raises:
        ModelLimitExceeded: The budget is used up.
    """
    walk = _OpcodeWalk(data, imports=True)
    answer = walk.names_from(at, or_calls=or_calls)
    budget.step(walk.steps, what)
    return answer


class _OpcodeWalk:
    """Follows opcodes by their lengths, and what kinds of values are on the stack.

    It continues after the end of a pickle: torch read five of them from one file.
    """

    def __init__(self, data: bytes, *, imports: bool) -> None:
        self._data = data
        self._imports = imports
        self._at = 0
        self.steps = 0
        """The number of opcodes that were followed."""
        self._stack: list[str] = []
        self._marks: list[int] = []
        """The height of the stack at each mark."""

    def run(self) -> bool | None:
        """Whether anything is called; None if the bytes end before that is known."""
        try:
            while self.steps < _STEPS_MAX:
                if self._at >= len(self._data):
                    return None
                opcode = self._data[self._at]
                argument = self._argument(opcode)
                if argument is None:
                    return None
                if opcode == ord("."):
                    self._drop(1)
                    self._stack, self._marks = [], []
                elif self._step(opcode, argument):
                    return True
                self.steps += 1
        except (IndexError, ValueError):  # no such opcode, or too little on the stack
            return False
        return True  # no other format is so many opcodes

    def names_from(self, at: int, *, or_calls: bool) -> bool:
        """Whether opcodes from a position on name something before they end, or are invalid."""
        self._at = at
        while self.steps < _STEPS_MAX:
            opcode = self._data[self._at] if self._at < len(self._data) else ord(".")
            try:
                argument = self._argument(opcode)
            except ValueError:
                return False
            if argument is None or opcode == ord("."):
                return False
            if opcode in b"ci" and _MODULE_LINE.match(argument):
                return True
            # At first, an array is on the stack, and not a name.
            if self.steps and opcode in b"\x82\x83\x84\x93":
                return True
            if or_calls and opcode in b"Ro\x81\x92":
                return True
            # The same long line may follow any number of places.
            self.steps += 1 + len(argument) // _ARGUMENT_BYTES_A_STEP
        return True

    def _argument(self, opcode: int) -> bytes | None:
        """Move behind an opcode; returns its argument, or None if the bytes end."""
        begin = self._at + 1
        if opcode in _FIXED:
            end = begin + _FIXED[opcode]
        elif opcode in _COUNTED:
            count = self._data[begin : begin + _COUNTED[opcode]]
            end = begin + _COUNTED[opcode] + int.from_bytes(count, "little")
        elif opcode in _LINES:
            end = begin
            for _ in range(_LINES[opcode]):
                end = self._data.find(b"\n", end) + 1
                if not end:
                    return None
        else:
            raise ValueError
        self._at = end
        return None if end > len(self._data) else self._data[begin:end]

    def _step(self, opcode: int, argument: bytes) -> bool:
        """Apply an opcode to the stack; returns whether it calls."""
        stack = self._stack
        if opcode in _PUSHED:
            stack.append(_PUSHED[opcode])
        elif opcode in _ONTO:
            return self._put(opcode, argument)
        elif opcode in _TO_MARK:
            return self._gather(opcode)
        elif opcode in b"\x85\x86\x87":
            self._drop(opcode - 0x84)
            stack.append(_TUPLE)
        elif opcode in b"c\x93":
            return self._name(opcode, argument)
        elif opcode in b"(02":
            self._move(opcode)
        else:
            return self._calls(opcode, argument)
        return False

    def _put(self, opcode: int, argument: bytes) -> bool:
        """Put values into the object below them; returns whether a name stands for that object."""
        self._drop(_ONTO[opcode])
        if opcode == _FRAME:  # readers differ in what they do at its end
            return int.from_bytes(argument, "little") <= len(self._data) - self._at
        return bool(_ONTO[opcode]) and self._stack[-1] in _CALLABLE

    def _name(self, opcode: int, argument: bytes) -> bool:
        on_stack = opcode == 0x93
        self._drop(2 if on_stack else 0)
        self._stack.append(_NAME if on_stack or _NAME_LINES.match(argument) else _OTHER)
        return self._imports and (on_stack or _MODULE_LINE.match(argument) is not None)

    def _gather(self, opcode: int) -> bool:
        """Take the values above a mark; returns whether they are put into a named object."""
        del self._stack[self._marks.pop() :]
        if (put := _TO_MARK[opcode]) is not None:
            self._stack.append(put)
        return opcode in b"eu\x90" and self._stack[-1] in _CALLABLE

    def _move(self, opcode: int) -> None:
        if opcode == ord("("):
            self._marks.append(len(self._stack))
        elif opcode == ord("2"):
            self._stack.append(self._stack[-1])
        elif self._marks and self._marks[-1] == len(self._stack):
            self._marks.pop()
        else:
            self._drop(1)

    def _calls(self, opcode: int, argument: bytes) -> bool:
        """Whether a call is possible: all others end a pickle."""
        stack = self._stack
        if opcode == ord("i"):
            if self._imports and self._marks and _MODULE_LINE.match(argument):
                return True
            function = _NAME if self._marks and _NAME_LINES.match(argument) else _OTHER
        elif opcode == ord("o"):
            function = stack[self._marks[-1]]
        else:
            function, arguments = stack[-3 if opcode == 0x92 else -2], stack[-1]
            if opcode in b"R\x81" and arguments not in {_TUPLE, _ANY}:
                raise ValueError
        if function not in _CALLABLE:
            raise ValueError
        return True

    def _drop(self, count: int) -> None:
        left = len(self._stack) - count
        if left < (self._marks[-1] if self._marks else 0):
            raise IndexError
        del self._stack[left:]


_KERAS_NAMES = {"metadata.json", "model.weights.h5", "model.weights.npz", "model.weights.json"}
_INNER_NAMES = {"constants.pkl": "torchscript", "archive_format": "torch-export"}
_WHOLE_NAMES = {
    "serialized_exported_program.json": "torch-export",  # its older form
    "mar-inf/manifest.json": "torch-serve",
}
_INNER_BEGINNINGS = {"code/": "torchscript", ".data/extern_modules": "torch-package"}


def zip_kind(names: list[str]) -> str:
    """The format of a zip, by its names; torch ignores their case."""
    whole = set(names)
    lower = {name.lower() for name in names}
    inner = {name.partition("/")[2] for name in lower}
    program = _program_kind(inner)
    if program is not None:
        return program
    for name in _WHOLE_NAMES.keys() & lower:
        return _WHOLE_NAMES[name]
    if "data.pkl" in inner | whole:
        return "torch-zip"
    if "config.json" in whole and whole & _KERAS_NAMES:
        return "keras"
    return "npz" if names and all(name.endswith(".npy") for name in names) else "zip"


def _program_kind(inner: set[str]) -> str | None:
    """The kind of program in an archive, by the names in its folder."""
    for name in sorted(inner):
        for beginning, kind in _INNER_BEGINNINGS.items():
            if name.startswith(beginning):
                return kind
        if name in _INNER_NAMES:
            return _INNER_NAMES[name]
    return None
