# SPDX-License-Identifier: Apache-2.0
"""Dangers in plain data: names of code for a later reader, and pickles inside texts.

Some frameworks look into loaded data and import what it names. The keys for this are in a closed
table. Others keep a pickle as bytes, or as text in base 64 or hexadecimal digits, and load it
themselves. `names_of_code` finds the former, `literals` passes the latter to the reader of pickles.
Both check all values of a pickle, used or not; a scan of its bytes first shows whether there is
anything to find.

Documents next to a model name code by the same keys, and by tags of Python: `document_names_code`
looks for them and reads nothing else.

The index of a model in several files is JSON that names the file of each tensor. Readers join its
names to the folder and open the result, by `..` and by an absolute path too: `names_outside` finds
names that lead out of the folder, or to hidden files in it.
"""

import binascii
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any
from urllib.parse import unquote

from sealpoint_models.scan._onnx import leaves_folder
from sealpoint_models.scan._pickle_symbols import Dict, Made, Program

_KEYS = {
    "_target_": "Hydra imports and calls it",
    "_instantiator": "Lightning imports and calls it",
    "class_path": "jsonargparse and Lightning's command line import and call it",
    "auto_map": "transformers loads code of a repository by it",
    "custom_pipelines": "transformers loads code of a repository by it",
    "py/object": "jsonpickle imports it",
    "py/reduce": "jsonpickle imports and calls it",
    "py/function": "jsonpickle imports it",
    "py/type": "jsonpickle imports it",
    "__lambda__": "Keras runs it",
}
"""Keys under which data names code, and the framework that uses each."""

_KEY_BYTES = [*(key.encode() for key in _KEYS), b"!!python/"]
_IN_TEXT = re.compile(
    r"""["']?(?P<key>""" + "|".join(map(re.escape, _KEYS)) + r""")["']?\s*:|!!python/[a-z/]+:"""
)

_ANY_KEY = b"(" + b"|".join(re.escape(key.encode()) for key in _KEYS) + b")"
_IN_JSON = re.compile(_ANY_KEY + rb"\\*\"\s*:\s*\\*[\"\[{]")
"""A key with a text, a list or an object; in a text of JSON there are backslashes around it."""
_IN_YAML = re.compile(rb"(?<![\w/.-])" + _ANY_KEY + rb"(?![\w-])")
_ESCAPE = re.compile(
    rb"\\(?:(?:\r\n?|\n|\xc2\x85|\xe2\x80[\xa8\xa9])[ \t]*"  # a line of YAML that goes on
    rb"|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(/))"
)
_YAML_TAG = re.compile(rb"!(?:<([^>\s]*)>|([^\s,\[\]{}]*))")
_PYTHON_TAG = re.compile(r"python/([a-z/]*)")
_PLAIN_TAGS = frozenset(
    [
        *("none", "bool", "int", "long", "float", "complex", "str", "unicode", "bytes", "list"),
        *("tuple", "dict"),
    ]
)
"""The tags after `python/` whose values are data."""

# A pickle of protocol 2 to 5; a name of protocols 0 and 1; compressed streams; and what may be any
# of these in base 64 or in hexadecimal digits.
# Each of these looks at a byte a few times at most, whatever the bytes are.
_PACKED_OR_PICKLE = re.compile(
    rb"\x80[\x02-\x05]|\x1f\x8b\x08|x[\x01\x5e\x9c\xda]|BZh[1-9]|\xfd7zXZ|gA[I-X]"
)
_TO_OLD_NAME = re.compile(
    rb"(?:[^ci]++|[ci](?![A-Za-z_])|[ci][A-Za-z_][\w.]*+(?!\n[A-Za-z_][\w.]*+\n))*+[ci]"
)
"""Everything up to the first lines that name something; no match if there are none."""
_BASE64 = re.compile(rb"[A-Za-z0-9+/_\s-]{12,}+={0,2}+\s*+")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){6,}+")
_DIGITS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_IS_DIGIT = bytes(byte in _DIGITS for byte in range(256))
_RUN = b"\1" * 24
"""The shortest run of base 64 or base 16 digits that can hold a pickle."""
_CHUNK_BYTES = 1 << 20
_LITERAL_BYTES_LEAST = 4
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCode:
    """A key under which data names code."""

    key: str
    reason: str
    name: str | None


def may_name_code(data: bytes, start: int, end: int) -> bool:
    """Whether the pickle at a position holds any of the keys, as bytes."""
    return any(data.find(key, start, end) >= 0 for key in _KEY_BYTES)


def may_hide(data: bytes, start: int, end: int) -> bool:
    """Whether the pickle at a position holds the beginning of another, after its own."""
    start += 2
    return (
        _PACKED_OR_PICKLE.search(data, start, end) is not None
        or _TO_OLD_NAME.match(data, start, end) is not None
        or _has_run(data, start, end)
    )


def _has_run(data: bytes, start: int, end: int) -> bool:
    """Whether there is such a run of digits; fast, and with little memory."""
    for at in range(start, end, _CHUNK_BYTES):
        chunk = data[at : min(end, at + _CHUNK_BYTES + len(_RUN) - 1)]
        if _RUN in chunk.translate(_IS_DIGIT):
            return True
    return False


def names_of_code(program: Program) -> Iterator[NamedCode]:
    """Every key of a dict, or of a document in a text, that names code for some framework."""
    for text in program.texts:
        if type(text) is str:
            yield from text_names_code(text)
    for each in program.made:
        if isinstance(each, Dict | Made):
            for key, named in each.pairs:
                if type(key) is str and key in _KEYS and named is not None:
                    name = named if type(named) is str else None
                    yield NamedCode(key=key, reason=_KEYS[key], name=name)


def text_names_code(text: str) -> Iterator[NamedCode]:
    """Every key in a text that is a document itself, such as JSON or YAML."""
    for found in _IN_TEXT.finditer(text):
        key = found["key"] or found[0].rstrip(":")
        reason = _KEYS.get(key, "a reader of YAML imports it")
        yield NamedCode(key=key, reason=reason, name=None)


def document_names_code(data: bytes, *, is_yaml: bool) -> Iterator[NamedCode]:
    """Every key in a document of JSON or YAML that names code, however it is spelled.

    YAML has many ways to write a key, so the word alone counts, even if it is not a key; and tags
    of Python name code as well.
    """
    keys = _IN_YAML if is_yaml else _IN_JSON
    found = {key for text in (data, _ESCAPE.sub(_unescaped, data)) for key in keys.findall(text)}
    for key in sorted(map(bytes.decode, found)):
        yield NamedCode(key=key, reason=_KEYS[key], name=None)
    if not is_yaml:
        return
    tags = {unquote(b"".join(parts)) for parts in _YAML_TAG.findall(data)}
    named = {tag[1] for tag in map(_PYTHON_TAG.search, tags) if tag is not None}
    for tag in sorted(named - _PLAIN_TAGS):
        yield NamedCode(key=f"!!python/{tag}", reason="a reader of YAML imports it", name=None)
    if b"%TAG" in data:  # at the beginning of a line, of which YAML has several kinds
        yield NamedCode(key="%TAG", reason="it can give tags of Python another name", name=None)


def _unescaped(found: re.Match[bytes]) -> bytes:
    """The character of an escape, if a key can have it; none for a continued line."""
    digits = found[1] or found[2] or found[3]
    if digits is None:
        return found[4] or b""
    code = int(digits, 16)
    return bytes([code]) if code < 128 else b"?"


def literals(texts: Iterable[str | bytes | bytearray]) -> Iterator[bytes]:
    """Every text and byte string that may be a pickle or compressed, also in base 64 and hex."""
    return chain.from_iterable(map(_readings, texts))


def _readings(literal: str | bytes | bytearray) -> Iterator[bytes]:
    if isinstance(literal, str):
        # Protocols 0 to 2 keep bytes as a text of the same numbers.
        data = literal.encode("latin-1" if _is_narrow(literal) else "utf-8", "replace")
    else:
        data = bytes(literal)
    if len(data) < _LITERAL_BYTES_LEAST:
        return
    if _is_pickle_like(data):
        yield data
    for decoded in (_from_base64(data), _from_hex(data)):
        if len(decoded) >= _LITERAL_BYTES_LEAST and _is_pickle_like(decoded):
            yield decoded


def _is_narrow(text: str) -> bool:
    return text.isascii() or max(text) < "\u0100"


def _is_pickle_like(data: bytes) -> bool:
    if data.startswith(_PACKED) or (data[0] == 0x80 and 2 <= data[1] <= 5):
        return True
    if data[0] == 0x78 and (data[0] << 8 | data[1]) % 31 == 0:
        return True
    return b"\n" in data and _TO_OLD_NAME.match(data) is not None


def _from_base64(data: bytes) -> bytes:
    if not _BASE64.fullmatch(data):
        return b""
    plain = data.translate(bytes.maketrans(b"-_", b"+/"), b" \t\r\n").rstrip(b"=")
    try:
        return binascii.a2b_base64(plain + b"=" * (-len(plain) % 4))
    except binascii.Error:
        return b""


def _from_hex(data: bytes) -> bytes:
    return binascii.unhexlify(data) if _HEX.fullmatch(data) else b""


def is_index(name: str) -> bool:
    """Whether a file is the index of a model, or of a variant of it, as in `.index.fp16.json`."""
    return _INDEX.search(name) is not None


_INDEX = re.compile(r"\.index\.([^/\\]*\.)?json\Z", re.IGNORECASE)


def names_outside(data: bytes) -> Iterator[str]:
    """Each name in an index that is not of a plain file in its folder, once.

    A document that is not an index has none.
    """
    try:
        # Of two equal keys, readers take the first or the last.
        document = json.loads(data, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return
    # accelerate takes the whole document where there is no such key.
    maps = [value for key, value in _pairs(document) if key == "weight_map"] or [document]
    values = [value for each in maps for _, value in _pairs(each) if isinstance(value, str)]
    yield from filter(_is_outside, dict.fromkeys(values))


def _is_outside(name: str) -> bool:
    return leaves_folder(name) or _HIDDEN_PART.search(name) is not None


_HIDDEN_PART = re.compile(r"(^|[/\\])\.")


class _Pairs(tuple[tuple[str, Any], ...]):
    """The keys and values of a JSON object, in their order."""

    __slots__ = ()


def _pairs(value: Any) -> _Pairs:
    return value if isinstance(value, _Pairs) else _Pairs()
