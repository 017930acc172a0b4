# SPDX-License-Identifier: Apache-2.0
"""The types beside tensors and arrays, and how each is written into a pickle.

A row is a name, a function of ours, and the reason why it is there. `PLAIN_CALLS` make a value of
plain arguments; `COMPOSED_CALLS` say what a call means whose parts are any values, and fill
containers later than they make them, since they may hold what holds them.

What a file gives has to be of the exact types and in the form that the type itself writes, for one
of the releases of Python from 2.7 on; a function gives None, or raises, where it is not.
"""

import argparse
import datetime as dt
import os
import pathlib
import re
import struct
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias

from sealpoint.errors import ModelMalformed
from sealpoint.scan import _torch_names as torch_names
from sealpoint.scan._symbols import Call, Dict, Global, List, Made, New, Tuple, Value
from sealpoint.scan._zip import shown

_INT_BITS_MAX = 1 << 10
_NUMBER_CHARS_MAX = 640
"""A few bytes of a pickle make a number again and again out of the same parts."""
_TEXT_CHARS_MAX = 8192
_PATH_PARTS_MAX = 256
_DATETIME, _DATE, _TIME = struct.Struct(">H5B3s"), struct.Struct(">H2B"), struct.Struct(">3B3s")

FAULTS = (ValueError, TypeError, OverflowError, DecimalException, NotImplementedError, struct.error)
"""What a function may raise at arguments that make no value."""


def builtin(name: str) -> tuple[Global, Global]:
    """Both names of a built-in: of Python 2, which protocols up to 2 use, and of Python 3."""
    return Global("__builtin__", name), Global("builtins", name)


def _bytes_of(value: object) -> bytes:
    """Bytes, or a string of Python 2 that was read as text."""
    if type(value) is str and value.isascii():
        return value.encode("ascii")
    if type(value) is not bytes:
        raise TypeError
    return value


def _zone(value: object) -> dt.timezone | None:
    if value is not None and type(value) is not dt.timezone:
        raise TypeError
    return value


def _datetime(data: object, zone: object = None) -> dt.datetime:
    year, month, day, hour, minute, second, micro = _DATETIME.unpack(_bytes_of(data))
    whole = int.from_bytes(micro, "big")
    return dt.datetime(
        year, month & 127, day, hour, minute, second, whole, _zone(zone), fold=month >> 7
    )


def _date(data: object) -> dt.date:
    return dt.date(*_DATE.unpack(_bytes_of(data)))


def _time(data: object, zone: object = None) -> dt.time:
    hour, minute, second, micro = _TIME.unpack(_bytes_of(data))
    whole = int.from_bytes(micro, "big")
    return dt.time(hour & 127, minute, second, whole, _zone(zone), fold=hour >> 7)


def _timedelta(*parts: object) -> dt.timedelta | None:
    if [type(part) for part in parts] != [int, int, int]:
        return None
    made = dt.timedelta(*parts)  # type: ignore[arg-type]
    return made if (made.days, made.seconds, made.microseconds) == parts else None


def _timezone(offset: object, name: object = None) -> dt.timezone | None:
    if type(offset) is not dt.timedelta or (name is not None and type(name) is not str):
        return None
    return dt.timezone(offset) if name is None else dt.timezone(offset, name)


def _decimal(text: object) -> Decimal | None:
    if type(text) is not str or len(text) > _NUMBER_CHARS_MAX:
        return None
    made = Decimal(text)
    return made if str(made) == text else None


def _fraction(*parts: Any) -> Fraction | None:
    if len(parts) == 1 and type(parts[0]) is str and len(parts[0]) <= _NUMBER_CHARS_MAX:
        made = Fraction(parts[0])  # before Python 3.12
        return made if str(made) == parts[0] else None
    if [type(part) for part in parts] != [int, int]:
        return None
    numerator, denominator = parts
    if not _is_bounded(numerator) or not _is_bounded(denominator) or denominator < 1:
        return None
    made = Fraction(numerator, denominator)
    return made if made.denominator == denominator else None


def _is_bounded(number: object) -> bool:
    return isinstance(number, int) and number.bit_length() <= _INT_BITS_MAX


def _complex(*parts: Any) -> complex | None:
    return complex(*parts) if [type(part) for part in parts] == [float, float] else None


def _range(*parts: Any) -> range | None:
    good = [type(part) for part in parts] == [int, int, int] and all(map(_is_bounded, parts))
    return range(*parts) if good else None


def _slice(start: object, stop: object, step: object) -> slice:
    return slice(start, stop, step)


def _encoded(text: object, encoding: object = None) -> bytes | None:
    if type(text) is not str or encoding != "latin1":
        return None
    return text.encode("latin-1")


def _bytes(*parts: object) -> bytes | None:
    """Protocols before 3 write empty bytes as a call without arguments."""
    return None if parts else b""


def _bytearray(*parts: object) -> bytearray | None:
    if not parts:
        return bytearray()
    if len(parts) == 1:
        return bytearray(_bytes_of(parts[0]))
    text, encoding = parts
    if type(text) is not str or encoding != "latin-1":
        return None
    return bytearray(text, "latin-1")  # before Python 3.8


def _path(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(*parts: object) -> Any:
        texts = [part for part in parts if type(part) is str]
        good = len(texts) == len(parts) <= _PATH_PARTS_MAX
        return make(*texts) if good and sum(map(len, texts)) <= _TEXT_CHARS_MAX else None

    return made


def _text(text: object) -> str | None:
    return text if type(text) is str else None


# A path of another system cannot be made here; what it says is the same.
_IS_WINDOWS = os.name == "nt"
_PATHS: dict[str, Callable[..., Any]] = {
    "PosixPath": pathlib.PurePosixPath if _IS_WINDOWS else pathlib.PosixPath,
    "WindowsPath": pathlib.WindowsPath if _IS_WINDOWS else pathlib.PureWindowsPath,
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
}

PLAIN_CALLS: dict[Global, tuple[Callable[..., Any], str]] = {
    Global("datetime", "datetime"): (_datetime, "a moment, of its packed bytes"),
    Global("datetime", "date"): (_date, "a day, of its packed bytes"),
    Global("datetime", "time"): (_time, "a time of day, of its packed bytes"),
    Global("datetime", "timedelta"): (_timedelta, "a duration, of three whole numbers"),
    Global("datetime", "timezone"): (_timezone, "a fixed offset"),
    Global("decimal", "Decimal"): (_decimal, "a number, of its one text"),
    Global("fractions", "Fraction"): (_fraction, "a number, of two whole numbers or its text"),
    Global("_codecs", "encode"): (_encoded, "how protocols before 3 write bytes"),
    Global("torch.torch_version", "TorchVersion"): (_text, "the text of a version"),
    **{
        name: (function, reason)
        for spelled, function, reason in (
            ("complex", _complex, "a number, of two floats"),
            ("range", _range, "three whole numbers"),
            ("xrange", _range, "a range of Python 2"),
            ("slice", _slice, "three plain values"),
            ("bytes", _bytes, "empty bytes"),
            ("bytearray", _bytearray, "bytes; a number would ask for that much memory"),
        )
        for name in builtin(spelled)
    },
    **{
        Global(module, name): (_path(make), "a path, of its parts")
        for module in ("pathlib", "pathlib._local")
        for name, make in _PATHS.items()
    },
}
"""How each is made of plain arguments, and why it may be."""


# Types that are made of other values.

_COUNTER = Global("collections", "Counter")
_DEQUE = Global("collections", "deque")
_DEFAULT_DICT = Global("collections", "defaultdict")
_NAMESPACE = Global("argparse", "Namespace")
_SIMPLE = Global("types", "SimpleNamespace")
UUID, _SAFE_UUID = Global("uuid", "UUID"), Global("uuid", "SafeUUID")
_SETS, FROZENSETS = builtin("set"), builtin("frozenset")
FACTORIES: dict[Global, Any] = {
    name: kind
    for kind in (int, float, list, dict, set, str, bool)
    for name in builtin(kind.__name__)
} | {Global("__builtin__", "long"): int}  # what protocols before 3 call it
"""What a defaultdict may make of what is missing."""

# torch keeps 8 bits of the number: to it, cuda:256 is cuda:0.
_DEVICE = re.compile(r"([a-z][a-z0-9]{0,31})(?::(0|[1-9][0-9]?|1[01][0-9]|12[0-7]))?", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class TorchName:
    """A type of elements, a layout or a way to quantize, by its name without `torch.`."""

    kind: Literal["dtype", "layout", "qscheme"]
    name: str


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A device."""

    kind: str
    index: int | None


class SizeMeaning(tuple[int, ...]):
    """A `torch.Size`, which is a tuple of whole numbers."""

    __slots__ = ()


class Maker(Protocol):
    """Makes tensors and arrays of their descriptions."""

    def make(self, meaning: Any) -> Any:
        """What is to stand in the place of a description.

        It is a `DenseTensor`, `QuantizedTensor`, `SparseTensor`, `TensorStorage`, `ArrayMeaning`,
        `ArrayScalar`, `ArrayType`, `TorchName`, `DeviceName` or `SizeMeaning`.
        """

    def fill(self, made: Any, values: list[Any]) -> None:
        """Put the values into an array of objects that was made."""

    def attach(self, made: Any, attributes: dict[str, Any]) -> None:
        """Set attributes on a tensor that was made."""


Filling: TypeAlias = tuple[Callable[[Any, Any], None], Any, Any]
"""A function that puts symbols into something, that, and these."""


class PartReader(Protocol):
    """Reads the values that others are made of."""

    maker: Maker
    later: list[Filling]
    """What is left to do after all that holds a container was made."""

    def value(self, node: Value) -> Any:
        """What a symbol means."""

    def values(self, nodes: list[Value]) -> list[Any]:
        """What each of them means."""

    def keys(self, symbols: list[Value], *, in_set: bool) -> list[Any]:
        """What each means, if all of them can be the keys of one table."""

    def extend(self, listed: Any, nodes: list[Value]) -> None:
        """Put values into a new list."""

    def put(self, mapping: Any, pairs: list[tuple[Value, Value]]) -> None:
        """Put pairs into a new dict."""

    def fault(self, expected: str) -> ModelMalformed:
        """The error that says what was expected."""

    def form_of(self, name: Global) -> ModelMalformed:
        """The error about something that is not in the form in which its type writes it."""


def _require(reader: PartReader, node: Made, *, pairs: bool = False, values: bool = False) -> None:
    """Refuse what is put into a result, or set on it, unless its type takes that."""
    good = node.keywords is None and (pairs or not node.pairs) and (values or not node.values)
    if not good or not isinstance(node, Call):
        raise reader.form_of(node.function)


def _fresh(reader: PartReader, held: List | Dict, at: int) -> None:
    """Refuse what was changed after it was copied: the copy does not know of it."""
    if held.grown_at > at:
        raise reader.fault("no change of a container that was used already")


def _ordered_dict(reader: PartReader, node: Made) -> Any:
    made: Any = OrderedDict()
    if type(node) is Call and node.bare and not node.arguments.values:
        return made  # the hooks of each tensor
    _require(reader, node, pairs=True)
    pairs = _ordered_pairs(reader, node)
    if pairs:
        reader.later.append((reader.put, made, pairs))
    if node.built:
        # The attribute that `state_dict()` sets, with the versions of its modules.
        match node.state:
            case Dict(pairs=[("_metadata", (Dict() | Call()) as metadata)]) as state:
                _fresh(reader, state, node.built_at)
                made._metadata = reader.value(metadata)  # noqa: SLF001 (where torch looks)
            case Dict(pairs=[]):
                pass
            case _:
                raise reader.fault("no attribute of an OrderedDict but its _metadata")
    return made


def _ordered_pairs(reader: PartReader, node: Made) -> list[tuple[Value, Value]]:
    """What was put into it; before that, what Python 2 gave to it as a list of pairs."""
    match node.arguments.values:
        case ():
            return node.pairs
        case (List(values=listed) as given,):
            _fresh(reader, given, node.at)
        case _:
            raise reader.form_of(node.function)
    pairs: list[tuple[Value, Value]] = []
    for each in listed:
        if isinstance(each, List):
            _fresh(reader, each, node.at)
        if not isinstance(each, List | Tuple) or len(each.values) != 2:
            raise reader.form_of(node.function)
        pairs.append((each.values[0], each.values[1]))
    return pairs + list(node.pairs)


def _namespace(reader: PartReader, node: Made) -> Any:
    """Its attributes are put into its `__dict__`: no code of anybody sets them."""
    if node.arguments.values or node.pairs or node.values or node.keywords is not None:
        raise reader.form_of(node.function)
    made = argparse.Namespace() if node.function == _NAMESPACE else types.SimpleNamespace()
    if node.built:
        if not isinstance(node.state, Dict) or not all(
            type(name) is str for name, _ in node.state.pairs
        ):
            raise reader.form_of(node.function)
        _fresh(reader, node.state, node.built_at)
        if node.state.pairs:
            reader.later.append((reader.put, vars(made), node.state.pairs))
    return made


def _size(reader: PartReader, node: Made) -> Any:
    match node.arguments.values:
        case (Tuple(values=sides),) if node.bare and all(
            type(side) is int and side in _INT64 for side in sides
        ):
            whole = [side for side in sides if isinstance(side, int)]
            return reader.maker.make(SizeMeaning(whole))
        case _:
            raise reader.fault("a torch.Size of a tuple of ints")


def _device(reader: PartReader, node: Made) -> Any:
    match node.arguments.values:
        case (str() as name,):
            index: int | None = None
        case (str() as name, int() as index) if type(index) is int and 0 <= index < 1 << 7:
            pass
        case _:
            raise reader.fault("a torch.device of a name and an index")
    found = _DEVICE.fullmatch(name)
    if found is None or (found[2] is not None and index is not None) or not node.bare:
        raise reader.fault(f"the name of a device, found {shown(name)}")
    number = index if found[2] is None else int(found[2])
    return reader.maker.make(DeviceName(found[1], number))


def _layout(reader: PartReader, node: Made) -> Any:
    match node.arguments.values:
        case (str() as name,) if node.bare and (
            name in torch_names.LAYOUTS or name == torch_names.STRIDED
        ):
            return reader.maker.make(TorchName("layout", name.removeprefix("torch.")))
        case _:
            raise reader.fault("the name of a layout")


def _uuid(reader: PartReader, node: Made) -> Any:
    held: dict[Value, Value] = {}
    if isinstance(node.state, Dict):
        _fresh(reader, node.state, node.built_at)
        held = {key: value for key, value in node.state.pairs if type(key) is str}
        if len(held) != len(node.state.pairs):
            raise reader.form_of(node.function)
    number = held.get("int")
    given = (node.arguments.values, node.pairs, node.values)
    bare = isinstance(node, New) and not any(given)
    if type(number) is not int or not 0 <= number < 1 << 128 or not bare:
        raise reader.form_of(node.function)
    drawn = reader.value(held.get("is_safe"))
    if not held.keys() <= {"int", "is_safe"} or drawn not in (None, 0, -1, *uuid.SafeUUID):
        raise reader.form_of(node.function)
    return uuid.UUID(int=number)


def _safe_uuid(reader: PartReader, node: Made) -> Any:
    match node.arguments.values:
        case ((0 | -1 | None) as drawn,) if isinstance(node, Call) and node.bare:
            return uuid.SafeUUID(drawn)
        case _:
            raise reader.form_of(node.function)


def _counter(reader: PartReader, node: Made) -> Any:
    _require(reader, node)
    match node.arguments.values:
        case (Dict(pairs=pairs) as given,) if not node.built:
            _fresh(reader, given, node.at)
            made: Any = Counter()
            reader.later.append((reader.put, made, pairs))
            return made
        case _:
            raise reader.form_of(node.function)


def _set_call(reader: PartReader, node: Made) -> Any:
    if not node.bare or not isinstance(node, Call):  # without its `__init__` it would stay empty
        raise reader.form_of(node.function)
    match node.arguments.values:
        case (List(values=values) as given,):
            _fresh(reader, given, node.at)
            members = reader.keys(values, in_set=True)
        case ():
            members = []
        case _:
            raise reader.form_of(node.function)
    return frozenset(members) if node.function in FROZENSETS else set(members)


def _deque(reader: PartReader, node: Made) -> Any:
    _require(reader, node, values=True)
    items: list[Value] = list(node.values)
    match node.arguments.values:
        case ():
            longest: Value = None
        case (Tuple(values=()), longest):
            pass
        case (List(values=first) as given,):
            _fresh(reader, given, node.at)
            longest, items = None, [*first, *items]
        case (List(values=first) as given, longest):
            _fresh(reader, given, node.at)
            items = [*first, *items]
        case _:
            raise reader.form_of(node.function)
    if node.built or (longest is not None and type(longest) is not int):
        raise reader.form_of(node.function)
    if isinstance(longest, int) and not len(items) <= longest < 1 << 63:
        raise reader.form_of(node.function)
    made: deque[Any] = deque(maxlen=longest)
    reader.later.append((reader.extend, made, items))
    return made


def _default_dict(reader: PartReader, node: Made) -> Any:
    _require(reader, node, pairs=True)
    factory: Any = None
    match node.arguments.values:
        case () | (None,):
            pass
        case (Global() as named,) if named in FACTORIES:
            factory = FACTORIES[named]
        case _:
            raise reader.form_of(node.function)
    if node.built:
        raise reader.form_of(node.function)
    made: defaultdict[Any, Any] = defaultdict(factory)
    reader.later.append((reader.put, made, node.pairs))
    return made


COMPOSED_CALLS: Mapping[Global, tuple[Callable[[PartReader, Made], Any], str]] = {
    torch_names.ORDERED_DICT: (_ordered_dict, "a dict; every state dict is one"),
    _COUNTER: (_counter, "a dict of counts; some schedulers hold one"),
    _DEQUE: (_deque, "a list with a greatest length"),
    _DEFAULT_DICT: (_default_dict, "a dict, with one of seven plain types for what is missing"),
    _NAMESPACE: (
        _namespace,
        "attributes by name: the arguments that a trainer was started with",
    ),
    _SIMPLE: (_namespace, "attributes by name"),
    UUID: (_uuid, "a whole number of 128 bits"),
    _SAFE_UUID: (_safe_uuid, "how a UUID was drawn"),
    **dict.fromkeys((*_SETS, *FROZENSETS), (_set_call, "plain members")),
    torch_names.SIZE: (_size, "whole numbers"),
    torch_names.DEVICE: (_device, "a name and a number, looked at before torch sees them"),
    torch_names.LAYOUT: (_layout, "one of six names"),
}
"""What says what a call of each name means, and why it may be there."""
