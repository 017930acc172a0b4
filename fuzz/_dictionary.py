# SPDX-License-Identifier: Apache-2.0
"""Words of the format: numbers at bounds, names, payloads and tags that a mutation puts in."""

import struct

__all__ = ["ATOMS", "INTEGERS", "NESTING_TAGS", "PAYLOADS", "TAGS", "TEXTS", "integer", "text"]

INTEGERS = (
    *(0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 127, 128, 255, 256, 65535, 65536, (1 << 31) - 1),
    *(1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
    *(-1, -2, -32, -33, -128, -129, -32769, -(1 << 31), -(1 << 63)),
)
ATOMS = (
    *(b"\xc0", b"\xc1", b"\xc2", b"\xc3", b"\x90", b"\x80", b"\xa0", b"\xc4\0", b"\xa1a", b"\xa1b"),
    *(b"\xca\x7f\x80\0\0", b"\xca\x7f\xc0\0\0", b"\xcb\x7f\xf0" + bytes(6), b"\xcb\x80" + bytes(7)),
    *(b"\xcb\x7f\xf8" + bytes(6), b"\xcb\0\0\0\0\0\0\0\x01", b"\xa4name", b"\xa5value", b"\xa3RED"),
    *(b"\xc4\x02\xed\xa0", b"\xc4\x03\xed\xa0\x80", b"\xa2\xc3\x28", b"\xd6\xff\0\0\0\0"),
    *(b"\xd6\xff\xc6\xff\xff\xff", b"\xc7\x0c\xff" + bytes(12), b"\xd7\xff" + b"\xff" * 8),
)
TEXTS = (
    *(b"a", b"b", b"c", b"x", b"_b", b"_a", b"_seen", b"name", b"value", b"READ", b"LOW", b"\xff"),
    *(
        b"<i4",
        b">f8",
        b"|b1",
        b"|S0",
        b"|S4",
        b"<U1",
        b"<U0",
        b"<M8[ns]",
        b"<M8[1s]",
        b"|O",
        b"<i3",
    ),
    *(b"<m8[999999999Y]", b"|V8", b"=i4", b"<f16", b"bool", b"float32", b"uint8", b"complex64"),
    *(b"__class__", b"__init__", b"os.system", b"c\n", b"\0", b"\xed\xa0\x80", b"\xf4\x8f\xbf\xbf"),
)
PAYLOADS = {
    3: (b"\x01" + bytes(8), b"\xff" + bytes(8), b"\x00" + b"\xff" * 8, b"\xfe" + bytes(20)),
    14: (b"0", b"-0", b"1E+9", b"1E+1000000", b"sNaN", b"NaN1", b"Inf", b"1_0", b" 1", b"0E-7"),
    16: (bytes(16), b"\xff" * 16, bytes(15)),
    17: (
        b"\0/",
        b"\0",
        b"\0a/b",
        b"\1c:\\a",
        b"\2.",
        b"\0a/",
        b"\3x",
        b"\1\\\\h\\s\\",
        b"\0\xed\xa0\x80",
    ),
    18: (
        b"\x001.2.3.4",
        b"\x01::1",
        b"\x02::/0",
        b"\x020.0.0.0/0",
        b"\x03::/0",
        b"\x04::/1",
        b"\x01::1%a",
    ),
    24: (
        b"u",
        b"zUTC",
        b"zEurope/Berlin",
        b"z../x",
        b"o" + bytes(8),
        b"o" + bytes(8) + b"nx",
        b"p" + bytes(8),
    ),
}
TAGS = (*range(1, 25), 32, 33, 34, 255, 0, 25, 35, 128)
NESTING_TAGS = (4, 5, 6, 7, 8, 15, 19, 20, 21, 22, 23)


def integer(value: int) -> bytes:
    """An integer in MessagePack's shortest form."""
    if -32 <= value < 128:
        return struct.pack("b", value) if value < 0 else bytes((value,))
    for first, form in ((0xCC, ">B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q")):
        if 0 <= value < 1 << 8 * struct.calcsize(form):
            return bytes((first,)) + struct.pack(form, value)
    for first, form in ((0xD0, ">b"), (0xD1, ">h"), (0xD2, ">i"), (0xD3, ">q")):
        if -(1 << 8 * struct.calcsize(form) - 1) <= value < 0:
            return bytes((first,)) + struct.pack(form, value)
    return b"\xc0"


def text(data: bytes) -> bytes:
    """A text in MessagePack's form."""
    size = len(data)
    return (bytes((0xA0 | size,)) if size < 32 else b"\xda" + size.to_bytes(2, "big")) + data
