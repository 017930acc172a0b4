# SPDX-License-Identifier: Apache-2.0
"""Dates, times and zones as fixed-width fields; times in UTC as MessagePack's own timestamps.

A zone is stored by kind: UTC, a fixed offset with an optional name, an IANA name, or the fixed
offset class that pydantic puts on what it parses. IANA names are looked up in a table that is
built once, before anything is decoded: a name from data never reaches the file system.
"""

import struct
import sys
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache
from typing import Any, cast

from sealpoint.codec._wire import Packer, Unpacker
from sealpoint.errors import BytesMalformed, UnknownType, ValueNotAllowed

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
    """Every IANA zone this machine knows, loaded once; decoding only ever looks names up here."""
    return {name: zoneinfo.ZoneInfo(name) for name in sorted(zoneinfo.available_timezones())}


def _pydantic_zone_class() -> Any:
    """Pydantic's fixed-offset class, if the application has loaded pydantic."""
    return getattr(sys.modules.get("pydantic_core"), "TzInfo", None)


def _is_known(zone: zoneinfo.ZoneInfo) -> bool:
    """Whether a zone is the one its name says, and not another one under that name."""
    known = known_zones().get(zone.key)
    if known is None or known is zone:
        return known is zone
    return all(zone.utcoffset(moment) == known.utcoffset(moment) for moment in _SAMPLED_TIMES)


def zone_bytes(zone: tzinfo | None) -> bytes:
    """A zone's bytes; none at all for a naive time."""
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
    """The zone that `zone_bytes` wrote."""
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
    """A zone that stands for itself."""
    return zone_bytes(value)


def decode_zone(data: bytes, _: Unpacker) -> tzinfo:
    """The zone that `encode_zone` wrote."""
    zone = zone_from(data)
    if zone is None or data[:1] == _ZONE_PYDANTIC:
        raise BytesMalformed("zone: expected one of the forms u, o, z")
    return zone


def encode_timestamp(value: datetime) -> bytes:
    """A time in UTC as MessagePack's own timestamp, whole, in the shortest of its three forms."""
    since = value - _EPOCH
    seconds = since.days * _DAY_SECONDS + since.seconds
    nanoseconds = since.microseconds * 1000
    if 0 <= seconds < 1 << 34:
        if nanoseconds == 0 and seconds < 1 << 32:
            return b"\xd6\xff" + seconds.to_bytes(4, "big")
        return b"\xd7\xff" + (nanoseconds << 34 | seconds).to_bytes(8, "big")
    return b"\xc7\x0c\xff" + _TIMESTAMP_96.pack(nanoseconds, seconds)


def is_timestamp(value: datetime) -> bool:
    """Whether a datetime is one of those that the engine itself reads: in UTC, not folded."""
    return value.tzinfo is UTC and not value.fold


def encode_datetime(value: datetime, _: Packer) -> bytes:
    """Calendar fields, fold and zone, for every time but those in UTC."""
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
    """The datetime that `encode_datetime` wrote; the constructor checks every field's range."""
    fields = _DATETIME.unpack_from(data)
    zone = zone_from(data[_DATETIME.size :])
    if fields[6] & _FOLD:
        return datetime(*fields[:6], fields[6] ^ _FOLD, tzinfo=zone, fold=1)  # type: ignore[misc]
    if zone is UTC:
        raise BytesMalformed("datetime: expected a time in UTC as a timestamp")
    return datetime(*fields, tzinfo=zone)  # type: ignore[misc]


def encode_date(value: date, _: Packer) -> bytes:
    """Year, month and day."""
    return _DATE.pack(value.year, value.month, value.day)


def decode_date(data: bytes, _: Unpacker) -> date:
    """The date that `encode_date` wrote."""
    return date(*_DATE.unpack(data))


def encode_time(value: time, _: Packer) -> bytes:
    """Clock fields, fold and zone."""
    micro = value.microsecond | _FOLD if value.fold else value.microsecond
    return _TIME.pack(value.hour, value.minute, value.second, micro) + zone_bytes(value.tzinfo)


def decode_time(data: bytes, _: Unpacker) -> time:
    """The time that `encode_time` wrote."""
    hour, minute, second, micro = _TIME.unpack(data[:7])
    zone = zone_from(data[7:])
    return time(hour, minute, second, micro & ~_FOLD, zone, fold=micro >> 31)


def encode_timedelta(value: timedelta, _: Packer) -> bytes:
    """Days, seconds and microseconds, as Python normalises them."""
    return _TIMEDELTA.pack(value.days, value.seconds, value.microseconds)


def decode_timedelta(data: bytes, _: Unpacker) -> timedelta:
    """The timedelta that `encode_timedelta` wrote."""
    days, seconds, microseconds = _TIMEDELTA.unpack(data)
    if seconds >= _DAY_SECONDS or microseconds >= _SECOND_MICROSECONDS:
        raise BytesMalformed("timedelta: expected normalised seconds and microseconds")
    return timedelta(days, seconds, microseconds)
