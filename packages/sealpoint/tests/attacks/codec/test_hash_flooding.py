# SPDX-License-Identifier: Apache-2.0
"""Keys that were chosen to collide are refused before they cost anything.

Python's hashes of numbers and of what is made of them are not keyed, so whoever writes the keys
chooses their hashes. Two ways are known: many keys of one hash, and keys of different hashes whose
probe sequences run together.
"""

import struct
import sys
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from sealpoint import Registry
from sealpoint.errors import DecodeError, DecodeLimitExceeded, EncodeLimitExceeded
from tests.application import make_registry
from tests.arrays import ARRAYS, np
from tests.blobs import Blobs
from tests.cpu_time import CpuTime
from tests.wire import array, extension, typed

REGISTRY = make_registry()
BARE = Registry()
_PRIME = sys.hash_info.modulus
_COUNT = 4000


def _int(value: int) -> bytes:
    return BARE.encode(value)


def _uuid(n: int) -> bytes:
    return extension(16, uuid.UUID(int=n * _PRIME).bytes)


def _decimal(n: int) -> bytes:
    return extension(14, str(Decimal(n * _PRIME + 1)).encode())


def _fraction(n: int) -> bytes:
    return extension(15, array(_int((n + 1) * _PRIME), b"\x01"))


def _time_delta(n: int) -> bytes:
    return extension(13, struct.pack(">iII", n, 0, 0))


_KEYS: dict[str, Callable[[int], bytes]] = {
    "uuid": _uuid,
    "int": lambda n: _int((n + 1) * _PRIME),
    "negative int": lambda n: _int(-(n + 2) * _PRIME),
    "decimal": _decimal,
    "fraction": _fraction,
    "complex": lambda n: extension(
        9, struct.pack(">dd", 2.0 ** (61 * (n % 16)) * (1 + n // 16), 0.0)
    ),
    "tuple": lambda n: extension(6, array(_int((n + 1) * _PRIME))),
    "nested tuple": lambda n: extension(
        6, array(extension(6, array(_int((n + 1) * _PRIME), b"\x01")))
    ),
    "frozenset": lambda n: extension(8, array(_int((n + 1) * _PRIME))),
    "frozen dataclass": lambda n: typed(
        REGISTRY, "app.point", b"\x91\x82\xa1x" + _int((n + 1) * _PRIME) + b"\xa1y\x00"
    ),
    "frozen attrs class": lambda n: typed(
        REGISTRY, "app.label", b"\x91\x82\xa4text\xa0\xa6weight" + _int((n + 1) * _PRIME)
    ),
    "frozen struct": lambda n: typed(
        REGISTRY, "app.frozen-record", b"\x91\x81\xa3key" + _int((n + 1) * _PRIME)
    ),
    "frozen model": lambda n: typed(
        REGISTRY,
        "app.coin",
        b"\x94\x82\xa5cents" + _int((n + 1) * _PRIME) + b"\xa4mint\xa0\x01\xc0\xc0",
    ),
    "named tuple": lambda n: typed(
        REGISTRY, "app.pair", b"\x91\x82\xa5first" + _int((n + 1) * _PRIME) + b"\xa6second\xc0"
    ),
    "range": lambda n: extension(
        22, array(_int((n + 1) * _PRIME), _int((n + 1) * _PRIME + 1), b"\x01")
    ),
    "array scalar": lambda n: BARE.encode(np.float64(2.0 ** (61 * (n % 16)) * (1 + n // 16))),
    "mixed": lambda n: (
        _int((n + 1) * _PRIME) if n % 2 else extension(15, array(_int((n + 1) * _PRIME), b"\x01"))
    ),
}

_TABLES: dict[str, Callable[[list[bytes]], bytes]] = {
    "set": lambda keys: extension(7, array(*keys)),
    "frozenset": lambda keys: extension(8, array(*keys)),
    "dict": lambda keys: extension(5, array(*(part for key in keys for part in (key, b"\x00")))),
    "OrderedDict": lambda keys: extension(
        20, array(*(part for key in keys for part in (key, b"\x00")))
    ),
    "defaultdict": lambda keys: extension(
        21, b"\x00" + array(*(part for key in keys for part in (key, b"\x00")))
    ),
}

_FLOODS = [name for name in _KEYS if name not in {"complex", "array scalar"}]


@pytest.mark.parametrize("table", _TABLES)
@pytest.mark.parametrize("kind", _FLOODS)
def test_thousands_of_keys_of_one_hash_are_refused_within_a_second(kind: str, table: str) -> None:
    """4,000 keys of equal hash, which would take seconds to minutes to put into a table."""
    data = _TABLES[table]([_KEYS[kind](n) for n in range(_COUNT)])

    with CpuTime() as cpu_time, pytest.raises(DecodeError) as refusal:
        REGISTRY.decode(data)

    assert cpu_time.seconds < 1
    assert isinstance(refusal.value, DecodeLimitExceeded)
    expected = "fraction_keys_max" if kind in ("fraction", "mixed") else "colliding_keys_max"
    assert expected in str(refusal.value)


@pytest.mark.parametrize("kind", ["complex", *(["array scalar"] if ARRAYS else ())])
def test_floating_keys_that_repeat_their_hash_end_within_a_second(kind: str) -> None:
    """Floats repeat a hash every 61 doublings: groups just under the bound are cheap."""
    data = _TABLES["set"]([_KEYS[kind](n) for n in range(_COUNT)])

    with CpuTime() as cpu_time:
        try:
            decoded = REGISTRY.decode(data)
        except DecodeLimitExceeded:
            decoded = set()

    assert cpu_time.seconds < 1
    assert isinstance(decoded, set)


def test_floats_of_one_hash_are_refused() -> None:
    """33 floats of one hash are more than the bound."""
    keys = [struct.pack(">Bd", 0xCB, 2.0 ** (61 * n)) for n in range(-16, 17)]

    assert len({hash(2.0 ** (61 * n)) for n in range(-16, 17)}) == 1
    with pytest.raises(DecodeLimitExceeded, match="colliding_keys_max"):
        REGISTRY.decode(_TABLES["set"](keys))


def test_seventeen_keys_of_one_hash_are_refused_and_sixteen_are_not() -> None:
    """The bound is what limits.py says, both ways."""
    keys = [n * _PRIME for n in range(1, 18)]

    assert REGISTRY.decode(_TABLES["set"](list(map(_int, keys[:16])))) == set(keys[:16])
    assert REGISTRY.decode(REGISTRY.encode(dict.fromkeys(keys[:16]))) == dict.fromkeys(keys[:16])
    with pytest.raises(DecodeLimitExceeded, match="colliding_keys_max"):
        REGISTRY.decode(_TABLES["set"](list(map(_int, keys))))
    with pytest.raises(EncodeLimitExceeded, match="colliding_keys_max"):
        REGISTRY.encode(set(keys))


def test_thousands_of_durations_are_no_flood() -> None:
    """Consecutive durations, for which no cheap equal hashes are known, pass in thousands."""
    keys = [_time_delta(n) for n in range(_COUNT)]

    with CpuTime() as cpu_time:
        assert len(REGISTRY.decode(_TABLES["set"](keys))) == _COUNT

    assert cpu_time.seconds < 1


def test_few_fractions_of_one_hash_in_many_sets_end_within_a_second() -> None:
    """Python caches hashes of fractions in one table, which many small sets could fill."""
    units = []
    for start in range(0, 20_000, 15):
        keys = [
            extension(15, array(_int((n + 1) * _PRIME), b"\x01")) for n in range(start, start + 15)
        ]
        units.append(_TABLES["set"](keys))
    data = array(*units)

    with CpuTime() as cpu_time, pytest.raises(DecodeLimitExceeded, match="fraction_keys_max"):
        REGISTRY.decode(data)

    assert cpu_time.seconds < 1


def test_ordinary_keys_are_not_taken_for_an_attack() -> None:
    """Consecutive numbers, multiples, dates and ids as keys pass in thousands."""
    for keys in (
        range(20_000),
        range(0, 20_000 << 20, 1 << 20),
        range(-10_000, 10_000),
        [n / 8 for n in range(20_000)],
        [(n, n + 1) for n in range(20_000)],
        [Fraction(n, 7) for n in range(1000)],
        [uuid.uuid5(uuid.NAMESPACE_DNS, str(n)) for n in range(5000)],
        [1 << n for n in range(200)],
    ):
        value = dict.fromkeys(keys, 0)

        assert REGISTRY.decode(REGISTRY.encode(value)) == value
        assert REGISTRY.decode(REGISTRY.encode(set(keys))) == set(keys)


def test_keys_of_one_hash_in_a_tree_are_refused() -> None:
    """A long set of colliding members in chunks is checked like a flat one."""
    keys = [_int((n + 1) * _PRIME) for n in range(_COUNT)]
    chunk = b"".join(keys)
    blobs = Blobs()
    name = blobs.put(chunk)
    payload = b"\x01\x00" + _COUNT.to_bytes(4, "big") + len(chunk).to_bytes(8, "big") + name
    root = blobs.put(extension(7, extension(2, payload)))

    with CpuTime() as cpu_time, pytest.raises(DecodeLimitExceeded, match="colliding_keys_max"):
        REGISTRY.decode_tree(root, blobs.get)

    assert cpu_time.seconds < 1


@pytest.mark.parametrize("table", _TABLES)
def test_a_key_or_member_that_comes_twice_is_refused(table: str) -> None:
    """Equal keys, of one type or of two, are an error and not the last one's win."""
    twice: list[list[Any]] = [[1, 1], ["a", "a"], [1, True], [1, 1.0], [b"a", b"a"], [(1,), (1.0,)]]

    for keys in twice:
        with pytest.raises(DecodeError):
            REGISTRY.decode(_TABLES[table](list(map(REGISTRY.encode, keys))))


def test_duplicate_fields_of_a_typed_value_are_refused() -> None:
    """A field that comes twice, is missing, unknown or out of order is an error."""
    bodies = [
        b"\x91\x82\xa1x\x01\xa1x\x02",
        b"\x91\x83\xa1x\x01\xa1y\x02\xa1x\x03",
        b"\x91\x81\xa1x\x01",
        b"\x91\x83\xa1x\x01\xa1y\x02\xa1z\x03",
        b"\x91\x82\xa1y\x01\xa1x\x02",
        b"\x91\x80",
        b"\x91\xde\0\2\xa1x\x01\xa1x\x02",
        b"\x91\x90",
        b"\x90",
        b"\x92\x82\xa1x\x01\xa1y\x02\xc0",
    ]

    for body in bodies:
        with pytest.raises(DecodeError):
            REGISTRY.decode(typed(REGISTRY, "app.point", body))


def test_duplicate_keys_of_a_plain_map_do_what_the_format_says() -> None:
    """In a plain map the last of equal keys counts; a split map of a tree refuses them."""
    entries = b"\xa1a\x01\xa1a\x02"
    blobs = Blobs()
    payload = b"\x02\x00" + (2).to_bytes(4, "big") + len(entries).to_bytes(8, "big")
    root = blobs.put(extension(2, payload + blobs.put(entries)))

    assert REGISTRY.decode(b"\x82" + entries) == {"a": 2}
    with pytest.raises(DecodeError, match="distinct keys"):
        REGISTRY.decode_tree(root, blobs.get)


@pytest.mark.parametrize(
    "key", [b"\x01", b"\xc0", b"\xc4\x01a", b"\x90", b"\xd4\x06\x90", b"\xca\0\0\0\0"]
)
def test_a_plain_map_has_keys_of_text_only(key: bytes) -> None:
    """Other keys have a form of their own, and are refused in a plain map."""
    with pytest.raises(DecodeError):
        REGISTRY.decode(b"\x81" + key + b"\x01")


def test_unhashable_keys_are_refused() -> None:
    """Lists, dicts, sets, arrays and signalling NaNs cannot be keys."""
    unhashable = [b"\x90", b"\x80", extension(7, b"\x90"), extension(14, b"sNaN")]
    if ARRAYS:
        unhashable.append(BARE.encode(np.zeros(2)))
    unhashable.append(extension(6, array(b"\x90")))

    for key in unhashable:
        for table in _TABLES.values():
            with pytest.raises(DecodeError):
                REGISTRY.decode(table([key]))
