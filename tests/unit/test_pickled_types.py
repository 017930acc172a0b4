# SPDX-License-Identifier: Apache-2.0
"""The one table of Python's types: two readers of pickles share it, and its bounds."""

import collections
import datetime as dt
import ipaddress
import pathlib
import pickle
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from sealpoint.codec import Registry
from sealpoint.errors import SealpointError
from sealpoint.pickled_types import FACTORIES, PLAIN_CALLS, builtin_names
from sealpoint_agent_framework._pickled_values import KnownTypes, PickledValues
from sealpoint_models.scan import read_meaning, run_pickle

_KINDS = list(dict.fromkeys(FACTORIES.values()))
_VALUES: list[Any] = [
    dt.datetime(2024, 10, 27, 2, 30, tzinfo=dt.timezone(dt.timedelta(hours=1), "x")),
    dt.date(1, 1, 1),
    dt.time(23, 59),
    dt.timedelta(days=-1, seconds=5),
    Decimal("-1.50E+7"),
    Fraction(-3, 7),
    complex(1.5, -0.0),
    range(5, -5, -2),
    slice(1, None, 2),
    bytearray(b"ab"),
    pathlib.PurePosixPath("/a/b"),
    pathlib.PureWindowsPath("c:/a"),
    uuid.UUID(int=7, is_safe=uuid.SafeUUID.safe),
    collections.deque([1, 2], 5),
    collections.OrderedDict(b=1, a=2),
    *(collections.defaultdict(kind, a=1) for kind in _KINDS),
    *(ipaddress.ip_address(text) for text in ("10.0.0.1", "::1")),
    *(ipaddress.ip_network(text) for text in ("10.0.0.0/8", "::/96")),
    *(ipaddress.ip_interface(text) for text in ("10.1.2.3/8", "::1/64")),
]
_REFUSED: dict[str, tuple[Any, ...]] = {
    "a decimal without end": (Decimal, ("1" * 3000,)),
    "a fraction of a long number": (Fraction, (1 << 2000, 1)),
    "a range of a long number": (range, (0, 1 << 2000, 1)),
    "a byte array of a length": (bytearray, (1 << 40,)),
    "a path of very many parts": (pathlib.PurePosixPath, ("a",) * 257),
    "an address in other words": (ipaddress.IPv6Address, ("0::1",)),
    "a network of a number": (ipaddress.IPv4Network, (1,)),
    "a deque longer than it may be": (collections.deque, ((), 1), None, [1, 2]),
    "a default of a type that is none": (collections.defaultdict, (collections.Counter,)),
}


class _Reduced:
    """Is pickled as whatever it is given."""

    def __init__(self, reduced: tuple[Any, ...]) -> None:
        self._reduced = reduced

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reduced


def _as_model(data: bytes) -> Any:
    return read_meaning(run_pickle(data, "p"), storages={}, file_bytes=len(data), what="p")


def _as_workflow(data: bytes) -> Any:
    return PickledValues(KnownTypes(Registry())).unpickled(data, "p")


@pytest.mark.parametrize("value", _VALUES, ids=repr)
def test_both_readers_make_the_same_value(value: Any) -> None:
    """What Python wrote is the same value to the scanner and to the import of workflows."""
    data = pickle.dumps(value, 5)

    for made in (_as_model(data), _as_workflow(data)):
        assert type(made) is type(value)
        assert repr(made) == repr(value)


@pytest.mark.parametrize("label", _REFUSED)
def test_both_readers_have_the_same_bounds(label: str) -> None:
    """What no type writes is refused by both, and so is what takes too much."""
    *reduced, items = (*_REFUSED[label], None, None)[:4]
    data = pickle.dumps(_Reduced((*reduced, None if items is None else iter(items))), 5)

    for read in (_as_model, _as_workflow):
        with pytest.raises(SealpointError, match=" form "):
            read(data)


def test_both_readers_refuse_an_identifier_of_129_bits() -> None:
    """It is made of attributes, so that no constructor looks at the number."""
    value = uuid.UUID(int=7)
    object.__setattr__(value, "int", 1 << 128)
    data = pickle.dumps(value, 5)

    for read in (_as_model, _as_workflow):
        with pytest.raises(SealpointError, match=" form "):
            read(data)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.__name__)
def test_a_default_has_both_of_its_names(kind: type, protocol: int) -> None:
    """Protocols up to 2 write the names of Python 2, where some types have another name."""
    made = _as_model(pickle.dumps(collections.defaultdict(kind), protocol))

    assert made.default_factory is kind


def test_every_type_has_its_reason() -> None:
    """A row says why a pickle may name the type."""
    assert all(call.reason for call in PLAIN_CALLS.values())
    assert builtin_names("set") == (("__builtin__", "set"), ("builtins", "set"))
