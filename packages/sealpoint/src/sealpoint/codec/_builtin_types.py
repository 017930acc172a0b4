# SPDX-License-Identifier: Apache-2.0
"""The built-in types: the types that may be saved without a rule, each with its reason.

This is the complete list. An extension tag is refused if it is neither here nor one of arrays,
tensors, typed values and references.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sealpoint.codec import _containers, _scalars
from sealpoint.codec._arrays import (
    decode_array,
    decode_array_scalar,
    decode_tensor,
)
from sealpoint.codec._wire_format import Packer, Tag, Unpacker

PLAIN_REASONS: dict[type, str] = {
    type(None): "no content",
    bool: "no content but itself",
    int: "immutable; bounded by its own length",
    float: "immutable; eight bytes",
    str: "immutable; checked UTF-8",
    bytes: "immutable; never interpreted",
    bytearray: "raw bytes; comes back as bytes",
    memoryview: "raw bytes; comes back as bytes",
    list: "holds only allowed values",
    dict: "string keys, whose hash is keyed per process; other keys are checked",
}
"""Types that need no extension, each with its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinType:
    """One entry of the list: a tag, its exact types, and why it is safe."""

    tag: Tag
    types: tuple[type, ...]
    reason: str
    encode: Callable[[Any, Packer], bytes]
    decode: Callable[[bytes, Unpacker], Any]


_REASONS = {
    Tag.BIG_INT: "immutable; linear to read; its length is bounded",
    Tag.SURROGATE_TEXT: "immutable; only strings that UTF-8 cannot hold, kept as they are",
    Tag.PAIRS: "keys are checked for collisions and for application code before they are hashed",
    Tag.TUPLE: "immutable; holds only allowed values",
    Tag.SET: "members are checked like keys",
    Tag.FROZENSET: "immutable; members are checked like keys",
    Tag.COMPLEX: "immutable; sixteen bytes",
    Tag.DATETIME: "immutable; every field's range is checked; zone names come from a closed table",
    Tag.DATE: "immutable; every field's range is checked",
    Tag.TIME: "immutable; every field's range is checked",
    Tag.TIMEDELTA: "immutable; normalised and bounded by Python",
    Tag.DECIMAL: "immutable; exact text form; digits and exponent are bounded",
    Tag.FRACTION: "immutable; parts are bounded before the lowest terms are proven",
    Tag.UUID: "immutable; sixteen bytes",
    Tag.PATH: "immutable; a name for a place; building one touches no disk",
    Tag.ADDRESS: "immutable; exact text form; building one touches no network",
    Tag.DEQUE: "holds only allowed values, never more than its longest length",
    Tag.ORDERED_DICT: "keys are checked like those of any dict",
    Tag.DEFAULT_DICT: "its factory is one of a closed list of built-in types, by number",
    Tag.RANGE: "immutable; three bounded whole numbers, never expanded",
    Tag.SLICE: "immutable; three allowed values",
    Tag.ZONE: "immutable; names come from a table that is built before decoding",
}

_PATHS = tuple(_scalars.PATH_TYPES.values())
_ADDRESSES = tuple(_scalars.ADDRESS_TYPES.values())
_ROWS: dict[Tag, tuple[type | tuple[type, ...], Callable[..., bytes], Callable[..., Any]]] = {
    Tag.BIG_INT: (int, _scalars.encode_big_int, _scalars.decode_big_int),
    Tag.SURROGATE_TEXT: (str, _scalars.encode_surrogate_text, _scalars.decode_surrogate_text),
    Tag.PAIRS: (dict, _containers.encode_pairs, _containers.decode_pairs),
    Tag.TUPLE: (tuple, _containers.encode_tuple, _containers.decode_tuple),
    Tag.SET: (set, _containers.encode_set, _containers.decode_set),
    Tag.FROZENSET: (frozenset, _containers.encode_frozenset, _containers.decode_frozenset),
    Tag.COMPLEX: (complex, _scalars.encode_complex, _scalars.decode_complex),
    Tag.DATETIME: (datetime, _scalars.encode_datetime, _scalars.decode_datetime),
    Tag.DATE: (date, _scalars.encode_date, _scalars.decode_date),
    Tag.TIME: (time, _scalars.encode_time, _scalars.decode_time),
    Tag.TIMEDELTA: (timedelta, _scalars.encode_timedelta, _scalars.decode_timedelta),
    Tag.DECIMAL: (Decimal, _scalars.encode_decimal, _scalars.decode_decimal),
    Tag.FRACTION: (Fraction, _scalars.encode_fraction, _scalars.decode_fraction),
    Tag.UUID: (UUID, _scalars.encode_uuid, _scalars.decode_uuid),
    Tag.PATH: (_PATHS, _scalars.encode_path, _scalars.decode_path),
    Tag.ADDRESS: (_ADDRESSES, _scalars.encode_address, _scalars.decode_address),
    Tag.DEQUE: (deque, _containers.encode_deque, _containers.decode_deque),
    Tag.ORDERED_DICT: (
        OrderedDict,
        _containers.encode_ordered_dict,
        _containers.decode_ordered_dict,
    ),
    Tag.DEFAULT_DICT: (
        defaultdict,
        _containers.encode_default_dict,
        _containers.decode_default_dict,
    ),
    Tag.RANGE: (range, _containers.encode_range, _containers.decode_range),
    Tag.SLICE: (slice, _containers.encode_slice, _containers.decode_slice),
    Tag.ZONE: ((timezone, ZoneInfo), _scalars.encode_zone, _scalars.decode_zone),
}

BUILTINS: tuple[BuiltinType, ...] = tuple(
    BuiltinType(
        tag=tag,
        types=types if isinstance(types, tuple) else (types,),
        reason=_REASONS[tag],
        encode=encode,
        decode=decode,
    )
    for tag, (types, encode, decode) in _ROWS.items()
)

ENCODERS: dict[type, tuple[Tag, Callable[[Any, Packer], bytes]]] = {
    kind: (builtin.tag, builtin.encode) for builtin in BUILTINS for kind in builtin.types
}
# The native engine encodes plain strings and dicts; only its refusals reach these two.

DECODERS: dict[int, Callable[[Any, Unpacker], Any]] = {
    **{int(builtin.tag): builtin.decode for builtin in BUILTINS},
    int(Tag.ARRAY): decode_array,
    int(Tag.ARRAY_SCALAR): decode_array_scalar,
    int(Tag.TENSOR): decode_tensor,
}
