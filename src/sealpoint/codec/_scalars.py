# SPDX-License-Identifier: Apache-2.0
"""Numbers beyond the plain ones, unique ids, paths and network addresses.

Every decoder here is a round trip: what does not print back to the same bytes is refused, so a
value has one encoding. Bounds are checked before the arithmetic they guard.
"""

import decimal
import ipaddress
import math
import os
import struct
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any
from uuid import UUID

from sealpoint.codec._wire import Packer, Unpacker
from sealpoint.errors import (
    BytesMalformed,
    DecodeLimitExceeded,
    EncodeLimitExceeded,
    UnknownType,
    ValueNotAllowed,
)
from sealpoint.limits import Limits

_DECIMALS = decimal.Context(capitals=1)  # the thread's own may print another way
_COMPLEX = struct.Struct(">dd")
_INT_MIN = -(1 << 63)
_INT_MAX = (1 << 64) - 1

PATH_TYPES: dict[int, type[PurePath]] = dict(
    enumerate((PurePosixPath, PureWindowsPath, PosixPath, WindowsPath))
)
_PATH_CODES = {kind: code for code, kind in PATH_TYPES.items()}
# A concrete path can only be built on its own system; the other one is refused, not renamed.
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
    """The shortest two's complement form."""
    return value.to_bytes(
        (value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True
    )


def encode_big_int(value: int, session: Packer) -> bytes:
    """Two's complement, big endian, as short as can be."""
    data = _int_bytes(value)
    if len(data) > session.limits.int_bytes_max:
        raise EncodeLimitExceeded(
            f"int: expected at most {session.limits.int_bytes_max} bytes (int_bytes_max), "
            f"found {len(data)}"
        )
    return data


def decode_big_int(data: bytes, session: Unpacker) -> int:
    """An integer that MessagePack's own 64 bits cannot hold."""
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
    """A string that UTF-8 cannot hold, with its lone surrogates kept."""
    return session.pack(value.encode("utf-8", "surrogatepass"))


def decode_surrogate_text(data: bytes, session: Unpacker) -> str:
    """The string that `encode_surrogate_text` wrote; one without surrogates is refused."""
    inner = session.unpack(data)
    if type(inner) is bytes:
        text = inner.decode("utf-8", "surrogatepass")
        if any("\ud800" <= char <= "\udfff" for char in text):
            return text
    raise BytesMalformed("text: expected bytes of a string with a lone surrogate")


def encode_complex(value: complex, _: Packer) -> bytes:
    """Two IEEE 754 doubles."""
    return _COMPLEX.pack(value.real, value.imag)


def decode_complex(data: bytes, _: Unpacker) -> complex:
    """The complex number that `encode_complex` wrote."""
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
    """The exact text form."""
    if (fault := _decimal_fault(value, session.limits)) is not None:
        raise EncodeLimitExceeded(fault)
    return _DECIMALS.to_sci_string(value).encode("ascii")


def decode_decimal(data: bytes, session: Unpacker) -> Decimal:
    """The Decimal whose text this is, printed exactly so."""
    # Sign, point, exponent mark and the exponent's own digits come on top of the digits.
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
    """Numerator and denominator."""
    parts = (value.numerator, value.denominator)
    for part in parts:
        if part.bit_length() // 8 >= session.limits.fraction_part_bytes_max:
            raise EncodeLimitExceeded(
                f"Fraction: expected parts under {session.limits.fraction_part_bytes_max} bytes "
                f"(fraction_part_bytes_max), found {part.bit_length() // 8 + 1}"
            )
    return session.pack(list(parts))


def decode_fraction(data: bytes, session: Unpacker) -> Fraction:
    """A fraction in lowest terms; proving that costs the square of its size, so it is bounded."""
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
    """Sixteen bytes."""
    return value.bytes


def decode_uuid(data: bytes, _: Unpacker) -> UUID:
    """The UUID that `encode_uuid` wrote."""
    return UUID(bytes=data)


def _text_within(size_bytes: int, limits: Limits, what: str) -> str | None:
    if size_bytes <= limits.text_bytes_max:
        return None
    return (
        f"{what}: expected at most {limits.text_bytes_max} bytes (text_bytes_max), "
        f"found {size_bytes}"
    )


def encode_path(value: PurePath, session: Packer) -> bytes:
    """A code for the class, then the path's text. No file is looked at."""
    session.bounds.costly()
    text = str(value)
    if type(value)(text) != value:  # Windows paths such as ./c:name, before Python 3.12
        raise ValueNotAllowed("path: its text does not name the same path again")
    data = text.encode("utf-8", "surrogatepass")
    if (fault := _text_within(len(data), session.limits, "path")) is not None:
        raise EncodeLimitExceeded(fault)
    return bytes((_PATH_CODES[type(value)],)) + data


def decode_path(data: bytes, session: Unpacker) -> PurePath:
    """The path that `encode_path` wrote; a name for a place, never opened here."""
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
    """A code for the class, the address's bytes, then a prefix length or an IPv6 scope."""
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
    """The address, network or interface that `encode_address` wrote."""
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
    """An IPv6 address with a scope, which only its text form can build."""
    session.bounds.costly()
    if (fault := _text_within(len(scope), session.limits, "IPv6 scope")) is not None:
        raise DecodeLimitExceeded(fault)
    text = scope.decode("utf-8", "surrogatepass")
    value = kind(f"{address}%{text}")
    if kind is not ipaddress.IPv6Address or value.scope_id != text:
        raise BytesMalformed("address: expected an IPv6 scope")
    return value
