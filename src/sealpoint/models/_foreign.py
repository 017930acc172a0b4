# SPDX-License-Identifier: Apache-2.0
"""Files that are not what `torch.save` writes today, told apart by how they begin.

Each is refused with the name of its format and what to do about it. Nothing is opened, unpacked or
guessed at by its file name. Formats that cannot be told from their first bytes are refused too,
only with a less helpful message.
"""

import re

from sealpoint.errors import FormatRefused

__all__ = ["HEAD_BYTES", "refuse_foreign"]

HEAD_BYTES = 512
"""What has to be read of a file."""

_ZIP = b"PK\x03\x04"
_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_ANEW = "load it where it may run whatever it holds, and save it anew"
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
