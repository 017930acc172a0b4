# SPDX-License-Identifier: Apache-2.0
"""Worst-case hostile inputs of up to 1 MB each, by the name of what they do.

Run as a program it decodes those named on its command line (inputs or groups of them) and prints,
for each, the seconds of processor time and the mebibytes of memory it took, and how it ended.
"""

import gc
import json
import os
import re
import struct
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path
from typing import Any
from uuid import UUID

from sealpoint.errors import SealpointError
from tests.application import (
    Access,
    Box,
    Coin,
    Message,
    Mode,
    Money,
    Open,
    Pair,
    Point,
    Record,
    Step,
    Text,
    make_registry,
)
from tests.arrays import ARRAYS, np, torch
from tests.cpu_time import CpuTime
from tests.wire import array, binary, extension, flood, nested, text, typed

SIZE_BYTES_MAX = 1_000_000

_REGISTRY = make_registry()
_PRIME = sys.hash_info.modulus
_DEEP = SIZE_BYTES_MAX - 600

Inputs = dict[str, Callable[[], bytes]]


def _of(value: Any) -> Callable[[], bytes]:
    """A flood of one value."""
    return lambda: flood(_REGISTRY.encode(value))


def _raw(unit: bytes) -> Callable[[], bytes]:
    return lambda: flood(unit)


def _wrapped(unit: bytes, tag: int, levels: int, wrap: bytes = b"\x91") -> Callable[[], bytes]:
    return lambda: nested(tag, flood(unit, _DEEP), levels, wrap)


def _groups(make: Callable[[int], bytes], tag: int = 7) -> bytes:
    """A set whose members come in groups of one hash, each as large as the bound allows."""
    members: list[bytes] = []
    size = 0
    place = 0
    while size < SIZE_BYTES_MAX - 100:
        # Sixteen multiples of the prime beyond each number share that number's hash.
        members.append(make(place // 16 + 1 + (place % 16) * _PRIME))
        size += len(members[-1])
        place += 1
    return extension(tag, array(*members[:-1]))


def _int(value: int) -> bytes:
    return _REGISTRY.encode(value)


def _fraction_gcd() -> bytes:
    parts = (1, 1)
    while parts[1].bit_length() < 2040 * 8:
        parts = (parts[1], parts[0] + parts[1])
    return flood(_REGISTRY.encode(Fraction(*parts)))


def _one_zone() -> bytes:
    return extension(24, b"z" + b"A/" * 499_990)


def _zones() -> bytes:
    return flood(extension(24, b"o" + struct.pack(">q", 1) + b"n" + b"x" * 30))


def _many_dimensions() -> bytes:
    header = b"\x92\xa3|u1\xdc\x00\x20" + b"\x01" * 32
    return flood(extension(32, len(header).to_bytes(2, "big") + header + b"\xc4\x01\x00"))


def _wide_record() -> bytes:
    fields = b"".join(b"\x93" + text(f"f{n}") + b"\xa3|b1\x90" for n in range(4000))
    header = b"\x92" + b"\xdc\x0f\xa0" + fields + b"\x91\x00"
    header = header[:60_000]
    return flood(extension(32, len(header).to_bytes(2, "big") + header + b"\xc4\x00"))


def _records() -> bytes:
    return flood(_REGISTRY.encode(np.zeros((), [("a", "?"), ("b", "?")])))


def _long_map() -> bytes:
    entries = b"".join(b"\xa3" + f"{n:03x}".encode()[-3:] + b"\xc0" for n in range(190_000))
    return b"\xdf" + (190_000).to_bytes(4, "big") + entries


def _tuples_of_one_set() -> bytes:
    return nested(8, extension(6, flood(b"\x00", _DEEP)), 29)


def _two_by_two() -> bytes:
    data = b"\x00"
    while len(data) * 2 + 40 < SIZE_BYTES_MAX:
        data = extension(8, array(data, extension(6, array(data))))
    return data


_PLAIN: Inputs = {
    "empty maps": _raw(b"\x80"),
    "empty arrays": _raw(b"\x90"),
    "maps of one": _raw(b"\x81\xa0\xc0"),
    "maps in maps": _raw(b"\x81\xa0\x80"),
    "arrays of one": _raw(b"\x91\xc0"),
    "long map": _long_map,
    "deep arrays": lambda: b"\x91" * SIZE_BYTES_MAX,
    "deep maps": lambda: b"\x81\xa0" * (SIZE_BYTES_MAX // 2),
    "floats": _raw(b"\xca\0\0\0\0"),
    "ints": _raw(b"\xcd\xff\xff"),
    "texts": _raw(b"\xa2\xc3\xa9"),
    "wide texts": _raw(b"\xa4\xf0\x9f\x98\x80"),
    "byte strings": _raw(b"\xc4\x01\x00"),
    "huge length": lambda: b"\xdd\xff\xff\xff\xff" + b"\x80" * 900_000,
    "huge map": lambda: b"\xdf\xff\xff\xff\xff" + b"\xa0\xc0" * 450_000,
}
_CONTAINERS: Inputs = {
    "empty tuples": _raw(extension(6, b"\x90")),
    "empty sets": _raw(extension(7, b"\x90")),
    "sets of one": _raw(extension(7, b"\x91\x00")),
    "frozensets": _raw(extension(8, b"\x91\x00")),
    "dicts": _raw(extension(5, b"\x92\x00\xc0")),
    "OrderedDicts": _raw(extension(20, b"\x90")),
    "OrderedDicts of one": _raw(extension(20, b"\x92\x00\xc0")),
    "defaultdicts": _raw(extension(21, b"\x00\x90")),
    "deques": _raw(extension(19, b"\x92\xc0\x90")),
    "ranges": _raw(extension(22, b"\x93\x00\x00\x01")),
    "slices": _raw(extension(23, b"\x93\xc0\xc0\xc0")),
}
_NUMBERS: Inputs = {
    "surrogates": _raw(extension(4, b"\xc4\x03\xed\xa0\x80")),
    "one surrogate text": lambda: extension(4, binary(b"\xed\xa0\x80" * 333_000)),
    "big ints": _of(1 << 64),
    "biggest ints": lambda: flood(extension(3, b"\x7f" + bytes(65_000))),
    "decimals": _raw(extension(14, b"0")),
    "big decimals": _of(Decimal("1" * 4096)),
    "decimal exponents": _of(Decimal("1E+2000000")),
    "fractions": _of(Fraction(1, 2)),
    "fractions that are slow to prove": _fraction_gcd,
    "complex numbers": _of(1j),
    "ids": _of(UUID(int=1)),
}
_NAMES: Inputs = {
    "posix paths": _raw(extension(17, b"\x00a")),
    "windows paths": _raw(extension(17, b"\x01a")),
    "concrete paths": _raw(extension(17, b"\x02a")),
    "long path": lambda: flood(extension(17, b"\x00" + b"a/" * 30_000 + b"a")),
    "addresses": _of(ip_address("::")),
    "scoped addresses": _of(ip_address("fe80::1%a")),
    "networks": _of(ip_network("::/0")),
    "interfaces": _of(ip_interface("10.0.0.1/8")),
    "timestamps": _raw(b"\xd6\xff\0\0\0\0"),
    "datetimes": _of(datetime(2024, 1, 1)),  # noqa: DTZ001 # naive on purpose
    "dates": _of(date(2024, 1, 1)),
    "durations": _of(timedelta(1)),
    "zones": _zones,
    "one long zone name": _one_zone,
}
_HEADERS: Inputs = {
    "many dimensions": _many_dimensions,
    "wide record": _wide_record,
}


def _arrays() -> Inputs:
    return {
        "arrays of numpy": _of(np.zeros((), "?")),
        "empty arrays of numpy": _of(np.zeros(0, "?")),
        "scalars of numpy": _of(np.bool_(True)),  # noqa: FBT003 # a scalar
        "records of numpy": _records,
        "one array": lambda: _REGISTRY.encode(np.zeros(990_000, "u1")),
        "tensors": _of(torch.zeros((), dtype=torch.int8)),
        "empty tensors": _of(torch.zeros(0, dtype=torch.int8)),
    }


_APPLICATION: Inputs = {
    "dataclasses": _of(Box(None)),
    "frozen dataclasses": _of(Point(1)),
    "steps": _of(Step("")),
    "models": _of(Message()),
    "open models": _of(Open.model_validate({"x": 1})),
    "frozen models": _of(Coin(cents=1)),
    "named tuples": _of(Pair(1)),
    "enums": _of(Mode.FAST),
    "flags": _of(Access.READ | Access.RUN),
    "structs": _of(Record("")),
    "pairs of functions": _of(Money(1)),
    "texts by rule": _of(Text("")),
    "unknown fields": lambda: typed(
        _REGISTRY, "app.point", b"\x91\xdf\0\4\0\0" + (b"\xa1a\x00" * 262_144)
    ),
}
_DEEP_ONES: Inputs = {
    "deep extensions around empty maps": _wrapped(b"\x80", 6, 31),
    "deep extensions around empty arrays": _wrapped(b"\x90", 6, 31),
    "deep extensions around deques": _wrapped(extension(19, b"\x92\xc0\x90"), 6, 30),
    "deep extensions around sets": _wrapped(extension(7, b"\x90"), 6, 30),
    "deep extensions around bytes": lambda: nested(6, binary(bytes(_DEEP)), 31),
    "deep defaultdicts around maps": _wrapped(b"\x80", 21, 31, b"\x00\x92\x00"),
    "too deep extensions around bytes": lambda: nested(6, binary(bytes(980_000)), 900),
    "sets in sets around a tuple": _tuples_of_one_set,
    "tuples in sets in sets": lambda: nested(
        8, extension(6, flood(extension(6, b"\x90"), _DEEP)), 29
    ),
    "sets and tuples doubled": _two_by_two,
}
_COLLIDING: Inputs = {
    "colliding ints under the bound": lambda: _groups(_int),
    "colliding fractions under the bound": lambda: _groups(
        lambda n: extension(15, array(_int(n), b"\x01"))
    ),
    "colliding ids under the bound": lambda: _groups(
        lambda n: extension(16, n.to_bytes(16, "big"))
    ),
    "colliding decimals under the bound": lambda: _groups(lambda n: extension(14, str(n).encode())),
    "colliding points under the bound": lambda: _groups(
        lambda n: typed(_REGISTRY, "app.point", b"\x91\x82\xa1x" + _int(n) + b"\xa1y\x00")
    ),
}

HOSTILE: dict[str, Inputs] = {
    "plain data": _PLAIN,
    "containers": _CONTAINERS,
    "numbers and texts": _NUMBERS,
    "names and times": _NAMES,
    "headers of arrays": _HEADERS,
    "arrays": _arrays() if ARRAYS else {},
    "application types": _APPLICATION,
    "nesting": _DEEP_ONES,
    "colliding keys": _COLLIDING,
}
"""The inputs in groups, each of which is decoded in a process of its own."""


def _peak_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


def _measure(data: bytes) -> dict[str, Any]:
    """Decode one input and say what it took."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    before = _peak_bytes()
    decoded: Any = None
    with CpuTime() as cpu_time:
        try:
            decoded = _REGISTRY.decode(data)
            ended = type(decoded).__name__
        except SealpointError as exc:
            ended = exc.code
        mebibytes = (_peak_bytes() - before) / 2**20
    return {"seconds": round(cpu_time.seconds, 3), "mebibytes": round(mebibytes, 1), "ended": ended}


def _measure_apart(name: str, data: bytes) -> None:
    """Measure in a child, so that each input meets the same fresh memory."""
    child = os.fork()
    if child == 0:
        found = {"name": name, "bytes": len(data), **_measure(data)}
        print(json.dumps(found), flush=True)  # noqa: T201 # a program's result
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        print(json.dumps({"name": name, "bytes": len(data), "crashed": status}), flush=True)  # noqa: T201


def _main(names: list[str]) -> None:
    arrays = [np.zeros(1), torch.zeros(1)] if ARRAYS else []
    _REGISTRY.decode(_REGISTRY.encode([Step("warm"), *arrays, (1,), {1}]))
    # What was imported is not what is measured: a collection in a child would go through all of it.
    gc.collect()
    gc.freeze()
    for group, inputs in HOSTILE.items():
        for name, make in inputs.items():
            if not names or group in names or name in names:
                _measure_apart(name, make())


if __name__ == "__main__":
    _main(sys.argv[1:])
