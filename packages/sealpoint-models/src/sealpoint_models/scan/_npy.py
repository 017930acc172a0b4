# SPDX-License-Identifier: Apache-2.0
"""The header of a numpy `.npy` file, read without evaluating it.

The header is a dict in Python's notation, and numpy reads it as such. Here a small reader accepts
the few forms that numpy writes: a dict of three keys, texts, whole numbers, True and False, tuples
and lists. Everything else is malformed. It does not read the elements; those of an array of objects
are a pickle, and `read_npy` returns its position.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

from sealpoint.errors import ModelMalformed
from sealpoint.limits import MODEL_DIMENSIONS_MAX, MODEL_ELEMENTS_MAX
from sealpoint_models.scan._byte_source import Budget, Cursor, Source

NPY_MAGIC = b"\x93NUMPY"
_HEADER_BYTES_MAX = 1 << 16
_PLAIN_HEADER_BYTES = 128
_DEPTH_MAX = 8
_TOKEN = re.compile(
    # Python 2 wrote an L after a number.
    r"\s*(?:(?P<text>'[^'\\\n]*'|\"[^\"\\\n]*\")|(?P<number>0|[1-9][0-9]{0,18})L?"
    r"|(?P<word>True|False)|(?P<mark>[][(){},:]))",
    re.ASCII,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DTYPE = re.compile(r"[<>|=]?([?bBhHiIlLqQefdgFDGO]|[biufcmMOSUV](\d{1,9})(\[[^\]]{1,12}\])?)")
_CHARACTER_BYTES = {
    **dict.fromkeys("?bB", 1),
    **dict.fromkeys("hHe", 2),
    **dict.fromkeys("fiI", 4),
    **dict.fromkeys("lLqQdFO", 8),
    **dict.fromkeys("gD", 16),
    "G": 32,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NpyHeader:
    """The description of an array."""

    item_bytes: int
    objects: bool
    """Whether its elements are a pickle."""
    elements: int
    begin: int
    """The position of its elements."""
    descr: Any
    """The type of its elements, in the notation of numpy."""
    shape: tuple[int, ...]
    is_fortran: bool


def read_npy(source: Source, budget: Budget, what: str) -> NpyHeader:
    """Read the header, and check that the file ends where the elements do.

    Raises:
        ModelMalformed: It is not a header that numpy writes, or the file has another size.
        ModelLimitExceeded: The budget is used up.
    """
    cursor = Cursor(source, what)
    if cursor.take(6) != NPY_MAGIC:
        raise cursor.fault("the first bytes of a .npy file")
    version, minor = cursor.take(2)
    if version not in {1, 2, 3} or minor:
        raise cursor.fault(f"version 1, 2 or 3 of the format, found {version}.{minor}")
    length = int.from_bytes(cursor.take(2 if version == 1 else 4), "little")
    if length > _HEADER_BYTES_MAX:
        raise cursor.fault(f"a header of at most {_HEADER_BYTES_MAX} bytes, found {length}")
    # The header of a plain array costs no more than one member.
    budget.step(max(length - _PLAIN_HEADER_BYTES, 0) // 2, what)
    try:
        text = cursor.take(length).decode("utf-8" if version == 3 else "latin-1")
    except UnicodeDecodeError as exc:
        raise cursor.fault("a header in UTF-8") from exc
    descr, shape, is_fortran = _parts(_Literal(text, what).read(), cursor)
    item, objects = item_bytes(descr, what)
    elements = element_count(shape, what)
    if not objects and cursor.rest != item * elements:
        raise cursor.fault(f"{item * elements} bytes of elements, found {cursor.rest}")
    return NpyHeader(
        item_bytes=item,
        objects=objects,
        elements=elements,
        begin=cursor.at,
        descr=descr,
        shape=shape,
        is_fortran=is_fortran,
    )


def _parts(header: Any, cursor: Cursor) -> tuple[Any, tuple[Any, ...], bool]:
    """The type, the shape and the order that a header names."""
    if type(header) is not dict or header.keys() != {"descr", "fortran_order", "shape"}:
        raise cursor.fault("a header of descr, fortran_order and shape")
    if type(header["shape"]) is not tuple:
        raise cursor.fault("a shape of whole numbers")
    if type(header["fortran_order"]) is not bool:
        raise cursor.fault("whether an array lies by columns")
    return header["descr"], header["shape"], header["fortran_order"]


def element_count(shape: tuple[Any, ...], what: str) -> int:
    """The number of elements of an array of a shape.

    Raises:
        ModelMalformed: It is not the shape of an array.
    """
    whole = all(type(side) is int and side >= 0 for side in shape)
    if not whole or len(shape) > MODEL_DIMENSIONS_MAX:
        raise ModelMalformed(f"{what}: expected the shape of an array")
    if math.prod(max(side, 1) for side in shape) > MODEL_ELEMENTS_MAX:
        raise ModelMalformed(f"{what}: expected at most {MODEL_ELEMENTS_MAX} elements")
    return math.prod(shape)


def item_bytes(descr: Any, what: str, depth: int = 0) -> tuple[int, bool]:
    """The length of one element, and whether it is an object.

    Raises:
        ModelMalformed: It is not the type of a numpy array.
    """
    if type(descr) is str:
        return _plain_bytes(descr, what)
    if type(descr) is tuple and len(descr) == 2 and type(descr[1]) is tuple:
        item, objects = item_bytes(descr[0], what, depth)
        return item * element_count(descr[1], what), objects
    if type(descr) is not list or depth > _DEPTH_MAX:
        raise ModelMalformed(f"{what}: expected the type of an array")
    total, any_objects = 0, False
    for field in descr:
        if type(field) is not tuple or len(field) not in {2, 3}:
            raise ModelMalformed(f"{what}: expected fields of a name, a type and a shape")
        item, objects = item_bytes(field[1], what, depth + 1)
        shape = field[2] if len(field) == 3 else ()
        if type(shape) is not tuple:
            raise ModelMalformed(f"{what}: expected the shape of a field")
        total += item * element_count(shape, what)
        any_objects |= objects
    return total, any_objects


def _plain_bytes(descr: str, what: str) -> tuple[int, bool]:
    found = _DTYPE.fullmatch(descr)
    if found is None:
        raise ModelMalformed(f"{what}: expected the type of an array, as numpy spells it")
    kind, digits = found[1][0], found[2]
    if digits is None:
        return _CHARACTER_BYTES[found[1]], kind == "O"
    width = int(digits)
    return width * 4 if kind == "U" else width, kind == "O"


class _Literal:
    """Reads one value in Python's notation."""

    def __init__(self, text: str, what: str) -> None:
        self._text = text
        self._what = what
        self._at = 0

    def read(self) -> Any:
        kind, word = self._next()
        value = self._value(kind, word, 0)
        if self._text[self._at :].strip():
            raise self._fault()
        return value

    def _fault(self) -> ModelMalformed:
        return ModelMalformed(
            f"{self._what}: expected a header in the notation of numpy, at character {self._at}"
        )

    def _next(self) -> tuple[str, str]:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup is None:
            raise self._fault()
        self._at = found.end()
        return found.lastgroup, found[found.lastgroup]

    def _value(self, kind: str, word: str, depth: int) -> Any:
        if kind == "text":
            return word[1:-1]
        if kind == "number":
            return int(word)
        if kind == "word":
            return word == "True"
        if word not in _CLOSING or depth > _DEPTH_MAX:
            raise self._fault()
        if word == "{":
            return self._dict(depth + 1)
        values, commas = self._values(_CLOSING[word], depth + 1)
        if word == "[":
            return values
        # One value in parentheses is not a tuple.
        return tuple(values) if commas or not values else values[0]

    def _values(self, closing: str, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        commas = 0
        while True:
            kind, word = self._next()
            if word == closing and kind == "mark":
                return values, commas
            if len(values) != commas:
                raise self._fault()
            values.append(self._value(kind, word, depth))
            kind, word = self._next()
            if word == closing and kind == "mark":
                return values, commas
            if word != "," or kind != "mark":
                raise self._fault()
            commas += 1

    def _dict(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            kind, word = self._next()
            if (kind, word) == ("mark", "}"):
                return found
            if kind != "text" or self._next() != ("mark", ":") or word[1:-1] in found:
                raise self._fault()
            found[word[1:-1]] = self._value(*self._next(), depth)
            mark = self._next()
            if mark == ("mark", "}"):
                return found
            if mark != ("mark", ","):
                raise self._fault()
