# SPDX-License-Identifier: Apache-2.0
"""Numbers beyond the plain ones, dates and times, unique ids, paths and network addresses.

Every decoder here is a round trip: it refuses a value that does not print back to the same bytes,
so a value has one encoding. Bounds are checked before the arithmetic that they protect.

Dates, times and zones are fixed-width fields; times in UTC are MessagePack's own timestamps. A zone
is stored by kind: UTC, a fixed offset with an optional name, an IANA name, or the fixed offset
class of times that pydantic parsed. IANA names are looked up in a table that is built once, before
anything is decoded: a name from data never reaches the file system.
"""

import decimal
import ipaddress
import math
import os
import struct
import sys
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any, cast
from uuid import UUID

from sealpoint.codec._wire_format import Packer, Unpacker
from sealpoint.errors import (
    BytesMalformed,
    DecodeLimitExceeded,
    EncodeLimitExceeded,
    UnknownType,
    ValueNotAllowed,
)
from sealpoint.limits import Limits

_DECIMALS = decimal.Context(capitals=1)  # the OS thread's own context may print differently
_COMPLEX = struct.Struct(">dd")
_INT_MIN = -(1 << 63)
_INT_MAX = (1 << 64) - 1

PATH_TYPES: dict[int, type[PurePath]] = dict(
    enumerate((PurePosixPath, PureWindowsPath, PosixPath, WindowsPath))
)
_PATH_CODES = {kind: code for code, kind in PATH_TYPES.items()}
# A concrete path can only be built on its own system; the other one is refused, not converted.
_FOREIGN_PATH = PosixPath if os.name == "nt" else WindowsPath

ADDRESS_TYPES: dict[int, type[Any]] = {
    0: ipaddress.IPv4Address,
    1: ipaddress.IPv6Address,
    2: ipaddress.IPv4Network,
    3: ipaddress.IPv6Network,
    4: ipaddress.IPv4Interface,
    5: ipaddress.IPv6Interface,
}
_PLAIN_ADDRESSES = (ipaddress.IPv4Address, ipaddress.IPv6Address)
_VERSION_4_CODES = (0, 2, 4)
_ADDRESS_CODES = {kind: code for code, kind in ADDRESS_TYPES.items()}


def _int_bytes(value: int) -> bytes:
    """Return the shortest two's complement form."""
    return value.to_bytes(
        (value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True
    )


def encode_big_int(value: int, session: Packer) -> bytes:
    """Encode in two's complement, big endian, in the shortest form."""
    data = _int_bytes(value)
    if len(data) > session.limits.int_bytes_max:
        raise EncodeLimitExceeded(
            f"int: expected at most {session.limits.int_bytes_max} bytes (int_bytes_max), "
            f"found {len(data)}"
        )
    return data


def decode_big_int(data: bytes, session: Unpacker) -> int:
    """Decode an integer that MessagePack's own 64 bits cannot hold."""
    if len(data) > session.limits.int_bytes_max:
        raise DecodeLimitExceeded(
            f"int: expected at most {session.limits.int_bytes_max} bytes (int_bytes_max), "
            f"found {len(data)}"
        )
    value = int.from_bytes(data, "big", signed=True)
    if _INT_MIN <= value <= _INT_MAX or _int_bytes(value) != data:
        raise BytesMalformed("int: expected the shortest form of more than 64 bits")
    return value


def encode_surrogate_text(value: str, session: Packer) -> bytes:
    """Encode a string that UTF-8 cannot hold, with its lone surrogates."""
    return session.pack(value.encode("utf-8", "surrogatepass"))


def decode_surrogate_text(data: bytes, session: Unpacker) -> str:
    """Decode the output of `encode_surrogate_text`; refuse a string without surrogates."""
    inner = session.unpack(data)
    if type(inner) is bytes:
        text = inner.decode("utf-8", "surrogatepass")
        if any("\ud800" <= char <= "\udfff" for char in text):
            return text
    raise BytesMalformed("text: expected bytes of a string with a lone surrogate")


def encode_complex(value: complex, _: Packer) -> bytes:
    """Encode as two IEEE 754 doubles."""
    return _COMPLEX.pack(value.real, value.imag)


def decode_complex(data: bytes, _: Unpacker) -> complex:
    """Decode the output of `encode_complex`."""
    return complex(*_COMPLEX.unpack(data))


def _decimal_fault(value: Decimal, limits: Limits) -> str | None:
    _, digits, exponent = value.as_tuple()
    if len(digits) > limits.decimal_digits_max:
        return (
            f"Decimal: expected at most {limits.decimal_digits_max} digits (decimal_digits_max), "
            f"found {len(digits)}"
        )
    if isinstance(exponent, int) and abs(exponent) > limits.decimal_exponent_max:
        return (
            f"Decimal: expected an exponent within {limits.decimal_exponent_max} "
            f"(decimal_exponent_max), found {exponent}"
        )
    return None


def encode_decimal(value: Decimal, session: Packer) -> bytes:
    """Encode the exact text form."""
    if (fault := _decimal_fault(value, session.limits)) is not None:
        raise EncodeLimitExceeded(fault)
    return _DECIMALS.to_sci_string(value).encode("ascii")


def decode_decimal(data: bytes, session: Unpacker) -> Decimal:
    """Decode the text of a Decimal, which must print back exactly."""
    # Sign, point, exponent mark and the exponent's own digits are added to the digits.
    if len(data) > session.limits.decimal_digits_max + 32:
        raise DecodeLimitExceeded(
            f"Decimal: expected at most {session.limits.decimal_digits_max} digits "
            f"(decimal_digits_max), found {len(data)} characters"
        )
    text = data.decode("ascii")
    try:
        value = Decimal(text)
    except decimal.InvalidOperation as exc:
        raise BytesMalformed("Decimal: expected the text of a number") from exc
    if (fault := _decimal_fault(value, session.limits)) is not None:
        raise DecodeLimitExceeded(fault)
    if _DECIMALS.to_sci_string(value) != text:
        raise BytesMalformed("Decimal: expected the text that Decimal prints")
    return value


def encode_fraction(value: Fraction, session: Packer) -> bytes:
    """Encode numerator and denominator."""
    parts = (value.numerator, value.denominator)
    for part in parts:
        if part.bit_length() // 8 >= session.limits.fraction_part_bytes_max:
            raise EncodeLimitExceeded(
                f"Fraction: expected parts under {session.limits.fraction_part_bytes_max} bytes "
                f"(fraction_part_bytes_max), found {part.bit_length() // 8 + 1}"
            )
    return session.pack(list(parts))


def decode_fraction(data: bytes, session: Unpacker) -> Fraction:
    """Decode a fraction in lowest terms, with a bound, as the check costs its size squared."""
    parts = session.unpack(data)
    if type(parts) is list and len(parts) == 2 and all(type(part) is int for part in parts):
        numerator, denominator = parts
        for part in parts:
            if part.bit_length() // 8 >= session.limits.fraction_part_bytes_max:
                raise DecodeLimitExceeded(
                    f"Fraction: expected parts under {session.limits.fraction_part_bytes_max} "
                    f"bytes (fraction_part_bytes_max), found {part.bit_length() // 8 + 1}"
                )
        if denominator > 0 and math.gcd(numerator, denominator) == 1:
            return Fraction(numerator, denominator)
    raise BytesMalformed("Fraction: expected two whole numbers in lowest terms")


def encode_uuid(value: UUID, _: Packer) -> bytes:
    """Encode as sixteen bytes."""
    return value.bytes


def decode_uuid(data: bytes, _: Unpacker) -> UUID:
    """Decode the output of `encode_uuid`."""
    return UUID(bytes=data)


def _text_within(size_bytes: int, limits: Limits, what: str) -> str | None:
    if size_bytes <= limits.text_bytes_max:
        return None
    return (
        f"{what}: expected at most {limits.text_bytes_max} bytes (text_bytes_max), "
        f"found {size_bytes}"
    )


def encode_path(value: PurePath, session: Packer) -> bytes:
    """Encode a code for the class, then the path's text, without accessing the file system."""
    session.bounds.costly()
    text = str(value)
    if type(value)(text) != value:  # Windows paths such as ./c:name, before Python 3.12
        raise ValueNotAllowed("path: its text does not name the same path again")
    data = text.encode("utf-8", "surrogatepass")
    if (fault := _text_within(len(data), session.limits, "path")) is not None:
        raise EncodeLimitExceeded(fault)
    return bytes((_PATH_CODES[type(value)],)) + data


def decode_path(data: bytes, session: Unpacker) -> PurePath:
    """Decode the output of `encode_path`, without accessing the file system."""
    session.bounds.costly()
    if (fault := _text_within(len(data) - 1, session.limits, "path")) is not None:
        raise DecodeLimitExceeded(fault)
    kind = PATH_TYPES.get(data[0])
    if kind is None or kind is _FOREIGN_PATH:
        raise UnknownType(f"path: expected a class of this system, found code {data[0]}")
    text = data[1:].decode("utf-8", "surrogatepass")
    value = kind(text)
    if str(value) != text:
        raise BytesMalformed("path: expected the text that the path prints")
    return value


def encode_address(value: Any, session: Packer) -> bytes:
    """Encode a code for the class, the address's bytes, then a prefix length or an IPv6 scope."""
    kind = type(value)
    code = bytes((_ADDRESS_CODES[kind],))
    scope = getattr(getattr(value, "network_address", value), "scope_id", None)
    if kind in _PLAIN_ADDRESSES:
        data: bytes = value.packed
        if scope is not None:
            session.bounds.costly()
            text = scope.encode("utf-8", "surrogatepass")
            if (fault := _text_within(len(text), session.limits, "IPv6 scope")) is not None:
                raise EncodeLimitExceeded(fault)
            data += text
        return code + data
    if scope is not None:
        raise ValueNotAllowed(f"{kind.__name__}: expected no IPv6 scope, found one")
    session.bounds.costly()
    network = getattr(value, "network", value)
    address = value.packed if network is not value else value.network_address.packed
    return b"".join((code, address, bytes((network.prefixlen,))))


def decode_address(data: bytes, session: Unpacker) -> Any:
    """Decode the output of `encode_address`."""
    kind = ADDRESS_TYPES.get(data[0])
    if kind is None:
        raise UnknownType(f"address: expected a code from 0 to 5, found {data[0]}")
    end = 1 + (4 if data[0] in _VERSION_4_CODES else 16)
    number, rest = int.from_bytes(data[1:end], "big"), data[end:]
    if len(data) < end:
        raise BytesMalformed(f"address: expected {end - 1} bytes, found {len(data) - 1}")
    if kind not in _PLAIN_ADDRESSES:
        session.bounds.costly()
        if len(rest) != 1:
            raise BytesMalformed("network: expected one byte of prefix length")
        return kind((number, rest[0]))
    if not rest:
        return kind(number)
    return _scoped(kind, kind(number), rest, session)


def _scoped(kind: type[Any], address: Any, scope: bytes, session: Unpacker) -> Any:
    """Make an IPv6 address with a scope, which only its text form can build."""
    session.bounds.costly()
    if (fault := _text_within(len(scope), session.limits, "IPv6 scope")) is not None:
        raise DecodeLimitExceeded(fault)
    text = scope.decode("utf-8", "surrogatepass")
    value = kind(f"{address}%{text}")
    if kind is not ipaddress.IPv6Address or value.scope_id != text:
        raise BytesMalformed("address: expected an IPv6 scope")
    return value


_DATETIME = struct.Struct(">HBBBBBI")
_DATE = struct.Struct(">HBB")
_TIME = struct.Struct(">BBBI")
_TIMESTAMP_96 = struct.Struct(">Iq")
_TIMEDELTA = struct.Struct(">iII")
_OFFSET = struct.Struct(">q")
_FOLD = 1 << 31
_DAY_SECONDS = 86_400
_SECOND_MICROSECONDS = 1_000_000
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAMPLED_TIMES = [datetime(year, month, 1) for year in range(1900, 2038, 3) for month in (1, 7)]  # noqa: DTZ001

_ZONE_UTC = b"u"
_ZONE_OFFSET = b"o"
_ZONE_NAMED = b"z"
_ZONE_PYDANTIC = b"p"


@cache
def known_zones() -> Mapping[str, tzinfo]:
    """Return every IANA zone of this machine, loaded once; decoding only looks names up here."""
    return {name: zoneinfo.ZoneInfo(name) for name in sorted(zoneinfo.available_timezones())}


def _pydantic_zone_class() -> Any:
    """Return pydantic's fixed-offset class, if the application has loaded pydantic."""
    return getattr(sys.modules.get("pydantic_core"), "TzInfo", None)


def _is_known(zone: zoneinfo.ZoneInfo) -> bool:
    """Whether a zone is the real one of its name, and not another under that name."""
    known = known_zones().get(zone.key)
    if known is None or known is zone:
        return known is zone
    return all(zone.utcoffset(moment) == known.utcoffset(moment) for moment in _SAMPLED_TIMES)


def zone_bytes(zone: tzinfo | None) -> bytes:
    """Return a zone's bytes; empty for a naive time."""
    if zone is None:
        return b""
    if zone is UTC:
        return _ZONE_UTC
    kind = type(zone)
    if isinstance(zone, zoneinfo.ZoneInfo) and kind is zoneinfo.ZoneInfo:
        if not _is_known(zone):
            raise ValueNotAllowed("ZoneInfo: expected a zone of the IANA database under its name")
        return _ZONE_NAMED + zone.key.encode()
    if isinstance(zone, timezone):
        offset = zone.utcoffset(None) // _MICROSECOND
        arguments = zone.__getinitargs__()  # type: ignore[attr-defined]
        name = arguments[1].encode("utf-8", "surrogatepass") if len(arguments) > 1 else None
        return _ZONE_OFFSET + _OFFSET.pack(offset) + (b"" if name is None else b"n" + name)
    if kind is _pydantic_zone_class():
        return _ZONE_PYDANTIC + _OFFSET.pack(zone.utcoffset(None) // _MICROSECOND)  # type: ignore[operator]
    message = (
        f"tzinfo: expected None, datetime.timezone or zoneinfo.ZoneInfo, "
        f"found {kind.__module__}.{kind.__qualname__}"
    )
    raise ValueNotAllowed(message)


def zone_from(data: bytes) -> tzinfo | None:
    """Decode the output of `zone_bytes`."""
    if not data:
        return None
    if data == _ZONE_UTC:
        return UTC
    kind, rest = data[:1], data[1:]
    if kind == _ZONE_NAMED:
        zone = known_zones().get(rest.decode())
        if zone is None:
            message = "zone name: expected one of the IANA database of this machine"
            raise UnknownType(message, hint="Update the machine's time zones: pip install tzdata")
        return zone
    if kind == _ZONE_OFFSET:
        found = _offset_zone(rest)
    elif kind == _ZONE_PYDANTIC:
        found = _pydantic_zone(rest)
    else:
        found = None
    if found is None:
        raise BytesMalformed(f"zone: expected one of the forms u, o, z, p, found kind {data[0]}")
    return found


def _offset_zone(rest: bytes) -> tzinfo | None:
    offset = timedelta(microseconds=_OFFSET.unpack(rest[:8])[0])
    if len(rest) == _OFFSET.size:
        zone = timezone(offset)
        if zone is UTC:
            raise BytesMalformed("zone: expected UTC in its own form, found offset 0")
        return zone
    named = rest[8:9] == b"n"
    return timezone(offset, rest[9:].decode("utf-8", "surrogatepass")) if named else None


def _pydantic_zone(rest: bytes) -> tzinfo | None:
    zone_class = _pydantic_zone_class()
    if zone_class is None:
        raise UnknownType(
            "zone: expected pydantic to be loaded, since pydantic parsed this time",
            hint="Import pydantic before loading: pip install 'sealpoint[pydantic]'",
        )
    seconds, rest_microseconds = divmod(_OFFSET.unpack(rest)[0], _SECOND_MICROSECONDS)
    is_whole = rest_microseconds == 0 and abs(seconds) < _DAY_SECONDS
    return cast("tzinfo", zone_class(seconds)) if is_whole else None


def encode_zone(value: tzinfo, _: Packer) -> bytes:
    """Encode a zone on its own."""
    return zone_bytes(value)


def decode_zone(data: bytes, _: Unpacker) -> tzinfo:
    """Decode the output of `encode_zone`."""
    zone = zone_from(data)
    if zone is None or data[:1] == _ZONE_PYDANTIC:
        raise BytesMalformed("zone: expected one of the forms u, o, z")
    return zone


def encode_timestamp(value: datetime) -> bytes:
    """Encode a time in UTC as MessagePack's own timestamp, in the shortest of its three forms."""
    since = value - _EPOCH
    seconds = since.days * _DAY_SECONDS + since.seconds
    nanoseconds = since.microseconds * 1000
    if 0 <= seconds < 1 << 34:
        if nanoseconds == 0 and seconds < 1 << 32:
            return b"\xd6\xff" + seconds.to_bytes(4, "big")
        return b"\xd7\xff" + (nanoseconds << 34 | seconds).to_bytes(8, "big")
    return b"\xc7\x0c\xff" + _TIMESTAMP_96.pack(nanoseconds, seconds)


def is_timestamp(value: datetime) -> bool:
    """Whether the engine itself reads a datetime: in UTC, not folded."""
    return value.tzinfo is UTC and not value.fold


def encode_datetime(value: datetime, _: Packer) -> bytes:
    """Encode calendar fields, fold and zone, for every time except those in UTC."""
    fields = _DATETIME.pack(
        value.year,
        value.month,
        value.day,
        value.hour,
        value.minute,
        value.second,
        value.microsecond | _FOLD if value.fold else value.microsecond,
    )
    return fields + zone_bytes(value.tzinfo)


def decode_datetime(data: bytes, _: Unpacker) -> datetime:
    """Decode the output of `encode_datetime`; the constructor checks every field's range."""
    fields = _DATETIME.unpack_from(data)
    zone = zone_from(data[_DATETIME.size :])
    if fields[6] & _FOLD:
        return datetime(*fields[:6], fields[6] ^ _FOLD, tzinfo=zone, fold=1)  # type: ignore[misc]
    if zone is UTC:
        raise BytesMalformed("datetime: expected a time in UTC as a timestamp")
    return datetime(*fields, tzinfo=zone)  # type: ignore[misc]


def encode_date(value: date, _: Packer) -> bytes:
    """Encode year, month and day."""
    return _DATE.pack(value.year, value.month, value.day)


def decode_date(data: bytes, _: Unpacker) -> date:
    """Decode the output of `encode_date`."""
    return date(*_DATE.unpack(data))


def encode_time(value: time, _: Packer) -> bytes:
    """Encode clock fields, fold and zone."""
    micro = value.microsecond | _FOLD if value.fold else value.microsecond
    return _TIME.pack(value.hour, value.minute, value.second, micro) + zone_bytes(value.tzinfo)


def decode_time(data: bytes, _: Unpacker) -> time:
    """Decode the output of `encode_time`."""
    hour, minute, second, micro = _TIME.unpack(data[:7])
    zone = zone_from(data[7:])
    return time(hour, minute, second, micro & ~_FOLD, zone, fold=micro >> 31)


def encode_timedelta(value: timedelta, _: Packer) -> bytes:
    """Encode days, seconds and microseconds, as Python normalizes them."""
    return _TIMEDELTA.pack(value.days, value.seconds, value.microseconds)


def decode_timedelta(data: bytes, _: Unpacker) -> timedelta:
    """Decode the output of `encode_timedelta`."""
    days, seconds, microseconds = _TIMEDELTA.unpack(data)
    if seconds >= _DAY_SECONDS or microseconds >= _SECOND_MICROSECONDS:
        raise BytesMalformed("timedelta: expected normalised seconds and microseconds")
    return timedelta(days, seconds, microseconds)
