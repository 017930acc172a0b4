# SPDX-License-Identifier: Apache-2.0
"""The header of a GGUF file: metadata, and the positions of the tensors.

Every key and tensor is checked against the bounds of the file: counts, lengths, nesting, sides, and
that each tensor is inside the file. Nothing in the format is code. A chat template is text that a
runtime gives to a template engine, so it is reported; a runtime has to run it in a sandbox. A
template that accesses more than its data is a finding: outside of a sandbox it can call anything.

It refuses versions other than 2 and 3, numbers of the other byte order, and types of tensors that
the format does not have.
"""

import math
import struct
from collections.abc import Iterator
from typing import Any

from sealpoint.errors import ModelLimitExceeded
from sealpoint.limits import MODEL_ELEMENTS_MAX, MODEL_NAME_BYTES_MAX, MODEL_TENSORS_MAX
from sealpoint_models.scan._byte_source import Budget, Cursor, Source
from sealpoint_models.scan._report import ScanFinding
from sealpoint_models.scan._torch_zip import shown

GGUF_MAGIC = b"GGUF"
_HEAD = struct.Struct("<4sI2Q")
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_KEYS_MAX = 1 << 16
_TEXT_BYTES_MAX = 1 << 24
_DIMENSIONS_MAX = 8
_DEPTH_MAX = 8
_PART_STEPS = 4
"""The cost of a tensor, or of an array in an array."""
_TEXT, _ARRAY, _UINT32 = 8, 9, 4
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, _UINT32: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of each plain type of values."""

_BLOCKS = dict(
    [
        *((0, (1, 4)), (1, (1, 2)), (2, (32, 18)), (3, (32, 20)), (6, (32, 22)), (7, (32, 24))),
        *((8, (32, 34)), (9, (32, 36)), (10, (256, 84)), (11, (256, 110)), (12, (256, 144))),
        *((13, (256, 176)), (14, (256, 210)), (15, (256, 292)), (16, (256, 66)), (17, (256, 74))),
        *((18, (256, 98)), (19, (256, 50)), (20, (32, 18)), (21, (256, 110)), (22, (256, 82))),
        *((23, (256, 136)), (24, (1, 1)), (25, (1, 2)), (26, (1, 4)), (27, (1, 8)), (28, (1, 8))),
        *((29, (256, 56)), (30, (1, 2)), (34, (256, 54)), (35, (256, 66)), (39, (32, 17))),
        *((40, (64, 36)), (41, (128, 18))),
    ]
)
"""Elements and bytes of a block, for each type of tensors."""


def scan_gguf(source: Source, budget: Budget, what: str) -> Iterator[ScanFinding]:
    """Walk a GGUF file; yields a note for each template.

    Raises:
        ModelMalformed: It breaks a rule of the format.
        ModelLimitExceeded: It has more parts than it may, or the budget is used up.
    """
    cursor = Cursor(source, what)
    tensors, keys = _read_head(cursor)
    values = _Values(cursor, budget)
    alignment = 32
    seen: set[str] = set()
    for _ in range(keys):
        at = cursor.at
        key = values.name("a key")
        if key in seen:
            raise cursor.fault(f"each key once, found {shown(key)} twice")
        seen.add(key)
        value = values.read()
        if key == "general.alignment":
            alignment = value if type(value) is int else 0
        if "chat_template" in key and type(value) is str:
            from sealpoint_models.scan._chat_templates import judge_template  # noqa: PLC0415 - few files have one

            yield from judge_template(shown(key), value, budget, at)
    if alignment not in {1 << bits for bits in range(3, 20)}:
        raise cursor.fault("an alignment that is a power of two from 8 on")
    budget.step(_PART_STEPS * tensors, what)
    _check_tensors(cursor, values, tensors, alignment)


def _read_head(cursor: Cursor) -> tuple[int, int]:
    """How many tensors and keys there are."""
    _, version, tensors, keys = cursor.unpack(_HEAD)
    if version in {2 << 24, 3 << 24}:
        raise cursor.fault("numbers whose lowest byte is the first, found the other order")
    if version not in {2, 3}:
        raise cursor.fault(f"version 2 or 3 of the format, found {version}")
    if tensors > MODEL_TENSORS_MAX or keys > _KEYS_MAX:
        raise ModelLimitExceeded(
            f"{cursor.what}: expected at most {MODEL_TENSORS_MAX} tensors and {_KEYS_MAX} keys, "
            f"found {tensors} and {keys}"
        )
    return tensors, keys


def _check_tensors(cursor: Cursor, values: "_Values", count: int, alignment: int) -> None:
    spans: list[tuple[int, int]] = []
    names: set[str] = set()
    for _ in range(count):
        name = values.name("the name of a tensor")
        (dimensions,) = cursor.unpack(_U32)
        if dimensions > _DIMENSIONS_MAX or name in names:
            raise cursor.fault(f"a tensor of a new name, of at most {_DIMENSIONS_MAX} dimensions")
        names.add(name)
        sides = [cursor.unpack(_U64)[0] for _ in range(dimensions)]
        kind, offset = *cursor.unpack(_U32), *cursor.unpack(_U64)
        elements = math.prod(sides)
        block = _BLOCKS.get(kind)
        if block is None or elements > MODEL_ELEMENTS_MAX or offset % alignment:
            raise cursor.fault(f"{shown(name)} to be of a known type, and aligned")
        spans.append((offset, -(-elements // block[0]) * block[1]))
    begin = cursor.at + -cursor.at % alignment
    end = 0
    for offset, size in sorted(spans):
        if offset < end or begin + offset + size > cursor.source.size:
            raise cursor.fault("tensors inside the file, one after the other")
        end = offset + size


class _Values:
    """Reads metadata, and counts what it reads."""

    def __init__(self, cursor: Cursor, budget: Budget) -> None:
        self._cursor = cursor
        self._budget = budget

    def name(self, what: str) -> str:
        (length,) = self._cursor.unpack(_U64)
        if not 0 < length <= MODEL_NAME_BYTES_MAX:
            raise self._cursor.fault(f"{what} of at most {MODEL_NAME_BYTES_MAX} bytes")
        try:
            return self._cursor.take(length).decode("utf-8")
        except UnicodeDecodeError as exc:
            raise self._cursor.fault(f"{what} in UTF-8") from exc

    def read(self) -> Any:
        """Read one value; numbers of 32 bits and single texts are returned, others skipped."""
        (kind,) = self._cursor.unpack(_U32)
        if kind == _UINT32:
            return self._cursor.unpack(_U32)[0]
        begin = self._cursor.at + _U64.size
        self._skip(kind)
        if kind == _TEXT:
            data = self._cursor.source.read(begin, self._cursor.at - begin)
            return data.decode("utf-8", "replace")
        return None

    def _skip(self, kind: int) -> None:
        """Skip one value, with everything in it."""
        left = [(kind, 1)]
        while left:
            kind, count = left.pop()
            if kind in _WIDTHS:
                self._cursor.skip(_WIDTHS[kind] * count)
            elif kind == _TEXT:
                self._skip_texts(count)
            elif kind != _ARRAY:
                raise self._cursor.fault(f"a type of values that the format has, found {kind}")
            elif count:
                self._budget.step(_PART_STEPS, self._cursor.what)
                left.append((_ARRAY, count - 1))
                left.append((*self._cursor.unpack(_U32), *self._cursor.unpack(_U64)))
                if len(left) > _DEPTH_MAX:
                    raise self._cursor.fault(f"arrays at most {_DEPTH_MAX} deep")

    def _skip_texts(self, count: int) -> None:
        self._budget.step(count, self._cursor.what)
        for _ in range(count):
            (length,) = self._cursor.unpack(_U64)
            if length > _TEXT_BYTES_MAX:
                raise self._cursor.fault(f"a text of at most {_TEXT_BYTES_MAX} bytes")
            self._cursor.skip(length)
