# SPDX-License-Identifier: Apache-2.0
"""The built-in types: what may be saved without a rule, each with the reason why it is safe.

This is the whole list. An extension tag that is neither here nor one of arrays, tensors, typed
values and references is refused.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sealpoint.codec import _containers, _scalars, _time
from sealpoint.codec._arrays import (
    decode_array,
    decode_array_scalar,
    decode_tensor,
)
from sealpoint.codec._wire import Packer, Tag, Unpacker

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
    """One entry of the list: a tag, the exact types it stands for, and why it is safe."""

    tag: Tag
    types: tuple[type, ...]
    reason: str
    encode: Callable[[Any, Packer], bytes]
    decode: Callable[[bytes, Unpacker], Any]


def _builtin(
    tag: Tag,
    types: type | tuple[type, ...],
    reason: str,
    encode: Callable[[Any, Packer], bytes],
    decode: Callable[[bytes, Unpacker], Any],
) -> BuiltinType:
    types = types if isinstance(types, tuple) else (types,)
    return BuiltinType(tag=tag, types=types, reason=reason, encode=encode, decode=decode)


_ADDRESSES = tuple(_scalars.ADDRESS_TYPES.values())

BUILTINS: tuple[BuiltinType, ...] = (
    _builtin(
        Tag.BIG_INT,
        int,
        "immutable; linear to read; its length is bounded",
        _scalars.encode_big_int,
        _scalars.decode_big_int,
    ),
    _builtin(
        Tag.SURROGATE_TEXT,
        str,
        "immutable; only strings that UTF-8 cannot hold, kept as they are",
        _scalars.encode_surrogate_text,
        _scalars.decode_surrogate_text,
    ),
    _builtin(
        Tag.PAIRS,
        dict,
        "keys are checked for collisions and for application code before they are hashed",
        _containers.encode_pairs,
        _containers.decode_pairs,
    ),
    _builtin(
        Tag.TUPLE,
        tuple,
        "immutable; holds only allowed values",
        _containers.encode_tuple,
        _containers.decode_tuple,
    ),
    _builtin(
        Tag.SET,
        set,
        "members are checked like keys",
        _containers.encode_set,
        _containers.decode_set,
    ),
    _builtin(
        Tag.FROZENSET,
        frozenset,
        "immutable; members are checked like keys",
        _containers.encode_frozenset,
        _containers.decode_frozenset,
    ),
    _builtin(
        Tag.COMPLEX,
        complex,
        "immutable; sixteen bytes",
        _scalars.encode_complex,
        _scalars.decode_complex,
    ),
    _builtin(
        Tag.DATETIME,
        datetime,
        "immutable; every field's range is checked; zone names come from a closed table",
        _time.encode_datetime,
        _time.decode_datetime,
    ),
    _builtin(
        Tag.DATE,
        date,
        "immutable; every field's range is checked",
        _time.encode_date,
        _time.decode_date,
    ),
    _builtin(
        Tag.TIME,
        time,
        "immutable; every field's range is checked",
        _time.encode_time,
        _time.decode_time,
    ),
    _builtin(
        Tag.TIMEDELTA,
        timedelta,
        "immutable; normalised and bounded by Python",
        _time.encode_timedelta,
        _time.decode_timedelta,
    ),
    _builtin(
        Tag.DECIMAL,
        Decimal,
        "immutable; exact text form; digits and exponent are bounded",
        _scalars.encode_decimal,
        _scalars.decode_decimal,
    ),
    _builtin(
        Tag.FRACTION,
        Fraction,
        "immutable; parts are bounded before the lowest terms are proven",
        _scalars.encode_fraction,
        _scalars.decode_fraction,
    ),
    _builtin(
        Tag.UUID, UUID, "immutable; sixteen bytes", _scalars.encode_uuid, _scalars.decode_uuid
    ),
    _builtin(
        Tag.PATH,
        (PurePosixPath, PureWindowsPath, PosixPath, WindowsPath),
        "immutable; a name for a place; building one touches no disk",
        _scalars.encode_path,
        _scalars.decode_path,
    ),
    _builtin(
        Tag.ADDRESS,
        _ADDRESSES,
        "immutable; exact text form; building one touches no network",
        _scalars.encode_address,
        _scalars.decode_address,
    ),
    _builtin(
        Tag.DEQUE,
        deque,
        "holds only allowed values, never more than its longest length",
        _containers.encode_deque,
        _containers.decode_deque,
    ),
    _builtin(
        Tag.ORDERED_DICT,
        OrderedDict,
        "keys are checked like those of any dict",
        _containers.encode_ordered_dict,
        _containers.decode_ordered_dict,
    ),
    _builtin(
        Tag.DEFAULT_DICT,
        defaultdict,
        "its factory is one of a closed list of built-in types, by number",
        _containers.encode_default_dict,
        _containers.decode_default_dict,
    ),
    _builtin(
        Tag.RANGE,
        range,
        "immutable; three bounded whole numbers, never expanded",
        _containers.encode_range,
        _containers.decode_range,
    ),
    _builtin(
        Tag.SLICE,
        slice,
        "immutable; three allowed values",
        _containers.encode_slice,
        _containers.decode_slice,
    ),
    _builtin(
        Tag.ZONE,
        (timezone, ZoneInfo),
        "immutable; names come from a table that is built before decoding",
        _time.encode_zone,
        _time.decode_zone,
    ),
)

ENCODERS: dict[type, tuple[Tag, Callable[[Any, Packer], bytes]]] = {
    kind: (builtin.tag, builtin.encode) for builtin in BUILTINS for kind in builtin.types
}
# Plain strings and dicts go through the native engine; only its refusals come to these two.

DECODERS: dict[int, Callable[[Any, Unpacker], Any]] = {
    **{int(builtin.tag): builtin.decode for builtin in BUILTINS},
    int(Tag.ARRAY): decode_array,
    int(Tag.ARRAY_SCALAR): decode_array_scalar,
    int(Tag.TENSOR): decode_tensor,
}
