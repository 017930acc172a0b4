# SPDX-License-Identifier: Apache-2.0
"""The types other than tensors and arrays, and the form of each in a pickle.

A row is a name, a function of ours, and its reason. `PLAIN_CALLS` create a value from plain
arguments: those of `sealpoint.pickled_types`, and one of torch. `COMPOSED_CALLS` return the meaning
of a call with arguments of any type, and fill containers after creating them, since containers may
hold their own container.

The data of a file has to be of the exact types and in the form that the type itself writes, for one
of the releases of Python from 2.7 on; otherwise a function returns None, or raises.
"""

import argparse
import re
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from sealpoint import pickled_types
from sealpoint.errors import ModelMalformed
from sealpoint.pickled_types import PlainCall, builtin_names, is_deque_length, uuid_of
from sealpoint_models.scan import _torch_names as torch_names
from sealpoint_models.scan._pickle_symbols import Call, Dict, Global, List, Made, New, Tuple, Value
from sealpoint_models.scan._torch_zip import shown

TORCH_VERSION = Global("torch.torch_version", "TorchVersion")


def builtin(name: str) -> tuple[Global, Global]:
    """Both names of a built-in: of Python 2, which protocols up to 2 use, and of Python 3."""
    first, second = builtin_names(name)
    return Global(*first), Global(*second)


def _text(text: object) -> str | None:
    return text if type(text) is str else None


PLAIN_CALLS: Mapping[Global, PlainCall] = {
    **{Global(*name): call for name, call in pickled_types.PLAIN_CALLS.items()},
    TORCH_VERSION: PlainCall(_text, "the text of a version"),
}
"""The function for each plain call, and the reason for allowing it."""
FACTORIES = {Global(*name): kind for name, kind in pickled_types.FACTORIES.items()}
"""The allowed default factories of a defaultdict."""

_COUNTER = Global("collections", "Counter")
_DEQUE = Global("collections", "deque")
_DEFAULT_DICT = Global("collections", "defaultdict")
_NAMESPACE = Global("argparse", "Namespace")
_SIMPLE = Global("types", "SimpleNamespace")
UUID, _SAFE_UUID = Global("uuid", "UUID"), Global("uuid", "SafeUUID")
_SETS, FROZENSETS = builtin("set"), builtin("frozenset")

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
    """Creates tensors and arrays from their descriptions."""

    def make(self, meaning: Any) -> Any:
        """The object for a description.

        It is a `DenseTensor`, `QuantizedTensor`, `SparseTensor`, `TensorStorage`, `ArrayMeaning`,
        `ArrayScalar`, `ArrayType`, `TorchName`, `DeviceName` or `SizeMeaning`.
        """

    def fill(self, made: Any, values: list[Any]) -> None:
        """Put the values into a new array of objects."""

    def attach(self, made: Any, attributes: dict[str, Any]) -> None:
        """Set attributes on a new tensor."""


Filling: TypeAlias = tuple[Callable[[Any, Any], None], Any, Any]
"""A function that puts symbols into a container, the container, and the symbols."""


class PartReader(Protocol):
    """Reads the parts of composed values."""

    maker: Maker
    later: list[Filling]
    """The fillings that remain after all containers were created."""

    def value(self, node: Value) -> Any:
        """The meaning of a symbol."""

    def values(self, nodes: list[Value]) -> list[Any]:
        """The meanings of several symbols."""

    def keys(self, symbols: list[Value], *, in_set: bool) -> list[Any]:
        """The meanings of several symbols, if all of them can be the keys of one table."""

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
    """The items that were put into it; before that, the list of pairs of Python 2."""
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
    """Its attributes are put into its `__dict__`: no code of a class sets them."""
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
    held: dict[str, Value] = {}
    if isinstance(node.state, Dict):
        _fresh(reader, node.state, node.built_at)
        held = {key: value for key, value in node.state.pairs if type(key) is str}
        if len(held) != len(node.state.pairs):
            raise reader.form_of(node.function)
    if not isinstance(node, New) or node.arguments.values or node.pairs or node.values:
        raise reader.form_of(node.function)
    made = uuid_of({name: reader.value(value) for name, value in held.items()})
    if made is None:
        raise reader.form_of(node.function)
    return made


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
    if node.built or not is_deque_length(longest, len(items)):
        raise reader.form_of(node.function)
    made: deque[Any] = deque(maxlen=longest)  # type: ignore[arg-type]  # it was looked at
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
    _DEFAULT_DICT: (_default_dict, "a dict, with a plain type for what is missing"),
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
"""The function that returns the meaning of each call, and the reason for allowing it."""
