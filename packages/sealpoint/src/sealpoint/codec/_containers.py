# SPDX-License-Identifier: Apache-2.0
"""Tuples, sets, dicts with other keys, queues, ranges and slices.

Set members are written in the order of their encodings, so a set has one encoding; dicts keep their
order, which is part of their value. Keys and members are checked for hash flooding and for
application code in `__hash__` before they are put into a table.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, TypeVar

from sealpoint.codec._dict_keys import is_plain_key
from sealpoint.codec._wire_format import Packer, Unpacker
from sealpoint.errors import (
    BytesMalformed,
    DecodeLimitExceeded,
    EncodeLimitExceeded,
    UnknownType,
    ValueNotAllowed,
)
from sealpoint.limits import Limits

FACTORIES: dict[int, Callable[[], Any] | None] = dict(
    enumerate(
        (
            *(None, list, dict, set, int, float, str, bool, tuple, frozenset, bytes),
            *(deque, OrderedDict),
        )
    )
)
"""The default factories that a defaultdict may have, by code: built-in and without arguments."""

_NO_MEMBERS = b"\x90"
_Members = TypeVar("_Members", set[Any], frozenset[Any])
_FACTORY_CODES = {factory: code for code, factory in FACTORIES.items()}


def _unpack_list(data: bytes, session: Unpacker, what: str) -> list[Any]:
    items = session.unpack(data)
    if type(items) is not list:
        raise BytesMalformed(f"{what}: expected a list of members, found {type(items).__name__}")
    return items


def encode_tuple(value: tuple[Any, ...], session: Packer) -> bytes:
    """Encode the members as a list."""
    return session.pack(list(value))


def decode_tuple(data: bytes, session: Unpacker) -> tuple[Any, ...]:
    """Decode the output of `encode_tuple`."""
    return tuple(_unpack_list(data, session, "tuple"))


def encode_set(value: Iterable[Any], session: Packer) -> bytes:
    """Encode the members in the order of their encodings."""
    members = list(value)
    session.bounds.check_keys(members, in_set=True)
    return session.pack_items(sorted(map(session.pack, members)))


encode_frozenset = encode_set


def _distinct(items: list[Any], session: Unpacker, build: type[_Members]) -> _Members:
    what = build.__name__
    if items:
        session.bounds.check_keys(items, in_set=True)
    members = build(items)
    if len(members) != len(items):
        raise BytesMalformed(f"{what}: expected distinct members, found one twice")
    return members


def decode_set(data: bytes, session: Unpacker) -> set[Any]:
    """Decode the output of `encode_set`."""
    if data == _NO_MEMBERS:
        session.check_level()
        return set()
    return _distinct(_unpack_list(data, session, "set"), session, set)


def decode_frozenset(data: bytes, session: Unpacker) -> frozenset[Any]:
    """Decode the output of `encode_frozenset`."""
    if data == _NO_MEMBERS:
        session.check_level()
        return frozenset()
    return _distinct(_unpack_list(data, session, "frozenset"), session, frozenset)


def encode_pairs(value: Mapping[Any, Any], session: Packer) -> bytes:
    """Encode key, value, key, value: the form of any dict that is not a plain map."""
    session.bounds.check_keys(list(value))
    return session.pack(list(chain.from_iterable(value.items())))


def _keys_and_values(items: list[Any], session: Unpacker, what: str) -> dict[Any, Any]:
    keys = items[::2]
    if len(items) % 2:
        raise BytesMalformed(f"{what}: expected a value for every key, found {len(items)} items")
    if keys:
        session.bounds.check_keys(keys)
    mapping = dict(zip(keys, items[1::2], strict=True))
    if len(mapping) != len(keys):
        raise BytesMalformed(f"{what}: expected distinct keys, found one twice")
    return mapping


def decode_pairs(data: bytes, session: Unpacker) -> dict[Any, Any]:
    """Decode the output of `encode_pairs`; refuse a dict that a plain map could hold."""
    mapping = _keys_and_values(_unpack_list(data, session, "dict"), session, "dict")
    if all(map(is_plain_key, mapping)):
        raise BytesMalformed("dict: expected at least one key that a plain map cannot hold")
    return mapping


def encode_ordered_dict(value: OrderedDict[Any, Any], session: Packer) -> bytes:
    """Encode the pairs, as for any other dict."""
    session.bounds.costly()
    return encode_pairs(value, session)


def decode_ordered_dict(data: bytes, session: Unpacker) -> OrderedDict[Any, Any]:
    """Decode the output of `encode_ordered_dict`."""
    session.bounds.costly()
    items = _unpack_list(data, session, "OrderedDict")
    return OrderedDict(_keys_and_values(items, session, "OrderedDict"))


def encode_default_dict(value: defaultdict[Any, Any], session: Packer) -> bytes:
    """Encode the factory's code, then the pairs."""
    factory = value.default_factory
    try:
        code = _FACTORY_CODES.get(factory)
    except TypeError:  # an unhashable callable
        code = None
    if code is None:
        known = ", ".join(getattr(known, "__name__", "None") for known in _FACTORY_CODES)
        raise ValueNotAllowed(
            f"defaultdict: its default factory is not one of {known}",
            hint="Data cannot name code: use one of these factories, or a plain dict.",
        )
    session.bounds.costly()
    return bytes((code,)) + encode_pairs(value, session)


def decode_default_dict(data: bytes, session: Unpacker) -> defaultdict[Any, Any]:
    """Decode the output of `encode_default_dict`."""
    if data[0] not in FACTORIES:
        raise UnknownType(f"defaultdict: expected a known factory code, found {data[0]}")
    session.bounds.costly()
    items = _unpack_list(data[1:], session, "defaultdict")
    return defaultdict(FACTORIES[data[0]], _keys_and_values(items, session, "defaultdict"))


def encode_deque(value: deque[Any], session: Packer) -> bytes:
    """Encode the maximum length (or None), then the members."""
    session.bounds.costly()
    return session.pack([value.maxlen, list(value)])


def decode_deque(data: bytes, session: Unpacker) -> deque[Any]:
    """Decode the output of `encode_deque`; refuse more members than it may hold."""
    session.bounds.costly()
    parts = _unpack_list(data, session, "deque")
    if len(parts) == 2 and type(parts[1]) is list:
        longest, items = parts
        if longest is None:
            return deque(items)
        if type(longest) is int and len(items) <= longest < 1 << 63:
            return deque(items, longest)
    raise BytesMalformed("deque: expected a longest length and no more members than that")


def encode_range(value: range, session: Packer) -> bytes:
    """Encode start, stop and step."""
    parts = [value.start, value.stop, value.step]
    if (fault := _range_fault(parts, session.limits)) is not None:
        raise EncodeLimitExceeded(fault)
    return session.pack(parts)


def _range_fault(parts: list[int], limits: Limits) -> str | None:
    """Check the size of the parts: computing a range's length costs the square of that size."""
    if all(part.bit_length() <= 8 * limits.range_part_bytes_max for part in parts):
        return None
    return (
        f"range: expected parts of at most {limits.range_part_bytes_max} bytes "
        "(range_part_bytes_max), found a larger one"
    )


def decode_range(data: bytes, session: Unpacker) -> range:
    """Decode the output of `encode_range`."""
    parts = _unpack_list(data, session, "range")
    if len(parts) != 3 or any(type(part) is not int for part in parts) or not parts[2]:
        raise BytesMalformed("range: expected start, stop and a step that is not 0")
    if (fault := _range_fault(parts, session.limits)) is not None:
        raise DecodeLimitExceeded(fault)
    return range(*parts)


def encode_slice(value: slice, session: Packer) -> bytes:
    """Encode start, stop and step, which may be any values."""
    return session.pack([value.start, value.stop, value.step])


def decode_slice(data: bytes, session: Unpacker) -> slice:
    """Decode the output of `encode_slice`."""
    parts = _unpack_list(data, session, "slice")
    if len(parts) != 3:
        raise BytesMalformed(f"slice: expected start, stop and step, found {len(parts)} parts")
    return slice(*parts)
