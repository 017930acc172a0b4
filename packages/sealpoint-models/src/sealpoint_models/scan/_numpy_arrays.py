# SPDX-License-Identifier: Apache-2.0
"""The numpy arrays, types and scalars in a pickle, without numpy.

An accepted array has exactly the bytes that its type and shape require; an array of objects has as
many values, each of which was read like any other. Types are numbers, booleans, texts, byte
strings, times and durations, and records of these. Everything else that numpy can put into a type
(a title, metadata, a type of a program) is refused.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DIMENSIONS_MAX, MODEL_ELEMENTS_MAX
from sealpoint_models.scan._pickle_symbols import Call, Dict, Global, List, Tuple, Value

_CORES = ("numpy.core", "numpy._core")
_RECONSTRUCT = {Global(f"{core}.multiarray", "_reconstruct") for core in _CORES}
_SCALAR = {Global(f"{core}.multiarray", "scalar") for core in _CORES}
_BUFFER = {Global(f"{core}.numeric", "_frombuffer") for core in _CORES}
_NDARRAY, _DTYPE = Global("numpy", "ndarray"), Global("numpy", "dtype")

ARRAY_REASONS: dict[Global, str] = {
    _NDARRAY: "says what an array is",
    _DTYPE: "a type of elements, of a closed set",
    **dict.fromkeys(_RECONSTRUCT | _BUFFER, "an array, of its bytes"),
    **dict.fromkeys(_SCALAR, "a number, of its bytes"),
}
"""The reason for each allowed name of numpy."""

_NUMBER = re.compile(r"b1|[iu][1248]|f(2|4|8)|c(8|16)|[mM]8|O8?")
_SIZED = re.compile(r"[USV]([0-9]{1,7})")
_UNIT = re.compile(r"Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as|generic")
_FIELDS_MAX = 1024
_FLAGS, _OBJECT_FLAGS = 0x98, 0x3F
"""The flags that a type of bytes may have: it is made of zeros, needs Python, or is aligned."""
_ALIGNMENTS = (1, 2, 4, 8, 16)
_NESTED_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayType:
    """The type of the elements of an array."""

    text: str
    """As numpy writes it, such as `<f4`; of a record, `|V` and its bytes."""
    item_bytes: int
    fields: tuple[tuple[str, "ArrayType", int], ...] = ()
    """Of a record: name, type, and where it begins."""
    shape: tuple[int, ...] = ()
    """Of a field that is an array itself; `text` is of its elements."""

    @property
    def is_object(self) -> bool:
        """Whether its elements are values and not bytes."""
        return self.text == "|O"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMeaning:
    """An array: its bytes, or the values of an array of objects."""

    type: ArrayType
    shape: tuple[int, ...]
    is_fortran: bool
    data: bytes
    symbols: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayScalar:
    """A number of a type of numpy."""

    type: ArrayType
    data: bytes


class Arrays:
    """Reads the descriptions of numpy objects in one file.

    Args:
        value: Returns the meaning of a symbol.
        what: The file, for messages.
    """

    def __init__(self, value: Callable[[Value], Any], what: str) -> None:
        self._value = value
        self._what = what
        self._types: dict[int, ArrayType] = {}
        self._at = 0

    def read(self, call: Call) -> ArrayMeaning | ArrayScalar | ArrayType:
        """The meaning of a call of a name in the table.

        Raises:
            ModelMalformed: Its arguments are not those that numpy writes.
            ModelLimitExceeded: It has too many dimensions or fields.
        """
        # The arguments of a call keep their value at the time of the call, whatever the pickle does
        # to them later.
        self._at = max(call.at, call.built_at)
        if call.function == _DTYPE:
            return self._type(call)
        if call.function in _RECONSTRUCT:
            return self._array(call)
        if not call.bare:
            raise self._fault("nothing set on a number or an array of numpy")
        if call.function in _SCALAR:
            return self._scalar(call.arguments.values)
        if call.function in _BUFFER:
            return self._from_buffer(call.arguments.values)
        raise self._fault("a name of numpy that makes something")

    def _fault(self, expected: str) -> ModelMalformed:
        return ModelMalformed(f"{self._what}: expected {expected}")

    def _array(self, call: Call) -> ArrayMeaning:
        match call.arguments.values:
            case (Global() as kind, Tuple(values=(0,)), letter) if kind == _NDARRAY and self._value(
                letter
            ) in (b"b", "b"):
                pass
            case _:
                raise self._fault("an array that is made empty")
        if call.pairs or call.values or call.keywords is not None or not call.built:
            raise self._fault("an array with a state, and nothing else")
        match call.state:
            case Tuple(values=(1, shape, held, fortran, data)) if fortran in (True, False):
                pass
            case _:
                raise self._fault("the state of an array")
        return self._made(self._type(held), self._shape(shape), data, is_fortran=bool(fortran))

    def _from_buffer(self, values: tuple[Value, ...]) -> ArrayMeaning:
        match values:
            case (data, kind, shape, ("C" | "F") as order):
                return self._made(
                    self._type(kind), self._shape(shape), data, is_fortran=order == "F"
                )
            case _:
                raise self._fault("bytes, type, shape and order of an array")

    def _made(
        self,
        kind: ArrayType,
        shape: tuple[int, ...],
        data: Value,
        *,
        is_fortran: bool,
    ) -> ArrayMeaning:
        count = math.prod(shape)
        if kind.is_object:
            if not isinstance(data, List) or len(data.values) != count or data.grown_at > self._at:
                raise self._fault("as many values as an array of objects has elements")
            return ArrayMeaning(
                type=kind,
                shape=shape,
                is_fortran=is_fortran,
                data=b"",
                symbols=tuple(data.values),
            )
        held = self._bytes(data)
        if len(held) != count * kind.item_bytes:
            raise self._fault(f"an array of {count * kind.item_bytes} bytes, found {len(held)}")
        if kind.text == "|b1":
            self._check_booleans(held)
        return ArrayMeaning(type=kind, shape=shape, is_fortran=is_fortran, data=held)

    def _scalar(self, values: tuple[Value, ...]) -> ArrayScalar:
        if len(values) != 2:
            raise self._fault("the type and the bytes of a number")
        kind, held = self._type(values[0]), self._bytes(values[1])
        if kind.is_object or len(held) != kind.item_bytes:
            raise self._fault(f"a number of {kind.item_bytes} bytes")
        if kind.text == "|b1":
            self._check_booleans(held)
        return ArrayScalar(type=kind, data=held)

    def _check_booleans(self, data: bytes) -> None:
        if data.translate(None, b"\0\1"):
            raise self._fault("booleans of 0 or 1, found a byte of another value")

    def _bytes(self, value: Value) -> bytes:
        """Bytes; or what was a string of Python 2, and is text if it is ASCII."""
        held = self._value(value)
        if type(held) is str and held.isascii():
            return held.encode("ascii")
        if type(held) not in (bytes, bytearray):
            raise self._fault("the bytes of an array")
        return bytes(held)

    def _shape(self, value: Value) -> tuple[int, ...]:
        sides = value.values if isinstance(value, Tuple) else (value,)
        if len(sides) > MODEL_DIMENSIONS_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: expected arrays of at most {MODEL_DIMENSIONS_MAX} dimensions"
            )
        found = tuple(side for side in sides if type(side) is int and side >= 0)
        if len(found) != len(sides) or math.prod(max(side, 1) for side in found) > (
            MODEL_ELEMENTS_MAX
        ):
            raise self._fault("the shape of an array")
        return found

    # Types.

    def _type(self, value: Value, level: int = 0) -> ArrayType:
        if (
            not isinstance(value, Call)
            or value.function != _DTYPE
            or level > _NESTED_MAX
            or (value.built_at > self._at)
        ):
            raise self._fault("the type of an array")
        found = self._types.get(id(value))
        if found is None:
            found = self._types[id(value)] = self._new_type(value, level)
        return found

    def _new_type(self, call: Call, level: int) -> ArrayType:
        match call.arguments.values:
            case (str() as name, (True | False), (True | False)) if not (call.pairs or call.values):
                pass
            case _:
                raise self._fault("the name of a type of arrays")
        held = call.state.values if isinstance(call.state, Tuple) else ()
        match held[:8]:
            case (
                int() as version,
                str() as order,
                part,
                names,
                fields,
                size,
                int() as alignment,
                int() as flags,
            ) if version in (3, 4) and len(held) == 5 + version:
                unit = held[8] if version == 4 else None
            case _:
                raise self._fault("the state of a type of arrays")
        self._check_written(name, alignment, flags, unit)
        if part is not None:
            return self._part(part, level, written=(name, size, names, fields))
        if (names, fields) != (None, None):
            return self._record(name, names, fields, size, level)
        return self._plain(name, order, size, unit)

    def _plain(self, name: str, order: str, size: Value, unit: Value) -> ArrayType:
        sized = _SIZED.fullmatch(name)
        if sized is not None:
            return self._sized(name, order, int(sized[1]), size)
        return self._number(name, order, size, unit)

    def _check_written(self, name: str, alignment: int, flags: int, unit: Value) -> None:
        """Numpy trusts all of these: it makes pointers of numbers that are flagged as objects."""
        if flags & ~_FLAGS and (name[:1] != "O" or flags != _OBJECT_FLAGS):
            raise self._fault("the flags of a type of arrays as numpy writes them")
        if name[:1] in ("U", "S", "V") and alignment not in _ALIGNMENTS:
            raise self._fault("the alignment of a type of arrays as numpy writes it")
        if unit is not None and name[:1] not in ("m", "M"):
            raise self._fault("a type of arrays without metadata")

    def _sized(self, name: str, order: str, count: int, size: Value) -> ArrayType:
        """Texts, byte strings, and bytes without a meaning."""
        width = count * (4 if name[0] == "U" else 1)
        if size != width or order not in ("<>" if name[0] == "U" else "|"):
            raise self._fault("the size of a type of arrays")
        return ArrayType(text=f"{order}{name}", item_bytes=width)

    def _number(self, name: str, order: str, size: Value, unit: Value) -> ArrayType:
        if not _NUMBER.fullmatch(name):
            raise self._fault("a type of arrays that is a number, a text or a record")
        if name[0] == "O":
            if order != "|" or size not in (-1, 8):
                raise self._fault("the byte order and size of a type of arrays")
            return ArrayType(text="|O", item_bytes=0)
        width = int(name[1:])
        if order not in ("|" if width == 1 else "<>") or size not in (-1, width):
            raise self._fault("the byte order and size of a type of arrays")
        text = f"{order}{name}"
        if name[0] in "mM":
            text += self._unit(unit)
        return ArrayType(text=text, item_bytes=width)

    def _unit(self, value: Value) -> str:
        match value:
            case Tuple(values=(Dict(pairs=[]) | None, Tuple(values=(name, int() as step, 1, 1)))):
                unit = self._value(name)
            case _:
                raise self._fault("the unit of a moment or a duration")
        unit = unit.decode("ascii", "replace") if type(unit) is bytes else unit
        if type(unit) is not str or not _UNIT.fullmatch(unit) or not 0 < step < 1 << 31:
            raise self._fault("the unit of a moment or a duration")
        if unit == "generic":
            return ""
        return f"[{unit}]" if step == 1 else f"[{step}{unit}]"

    def _part(self, value: Value, level: int, *, written: tuple[Value, ...]) -> ArrayType:
        """An array as one element; its other descriptions have to say the same."""
        match value:
            case Tuple(values=(kind, shape)):
                element, sides = self._type(kind, level + 1), self._shape(shape)
            case _:
                raise self._fault("the type and shape of a field")
        if element.shape or element.is_object:
            raise self._fault("a field of plain elements")
        width = element.item_bytes * math.prod(sides)
        if written != (f"V{width}", width, None, None):
            raise self._fault("the size of a field that is an array")
        return ArrayType(text=element.text, item_bytes=width, fields=element.fields, shape=sides)

    def _record(self, name: str, names: Value, fields: Value, size: Value, level: int) -> ArrayType:
        if not isinstance(names, Tuple) or not isinstance(fields, Dict):
            raise self._fault("the fields of a record")
        if type(size) is not int or not 0 <= size < 1 << 31 or name != f"V{size}":
            raise self._fault("the size of a record")
        found = self._fields(names, fields)
        made = tuple([(key, *self._field(held, size, level)) for key, held in found])
        return ArrayType(text=f"|V{size}", item_bytes=size, fields=made)

    def _fields(self, names: Tuple, fields: Dict) -> list[tuple[str, Value]]:
        """Each field with its name, in the order of the names."""
        found = {key: held for key, held in fields.pairs if type(key) is str}
        order = [key for key in names.values if type(key) is str]
        same = len(order) == len(names.values) == len(found) == len(fields.pairs)
        if not same or found.keys() != {*order} or len(order) > _FIELDS_MAX:
            raise self._fault("each field of a record once")
        return [(key, found[key]) for key in order]

    def _field(self, value: Value, width: int, level: int) -> tuple[ArrayType, int]:
        match value:
            case Tuple(values=(kind, int() as begin)) if begin >= 0:
                inner = self._type(kind, level + 1)
            case _:
                raise self._fault("a type and a place for each field")
        if inner.is_object or begin + inner.item_bytes > width:
            raise self._fault("fields inside of their record, found one that is not")
        return inner, begin
