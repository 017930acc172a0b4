# SPDX-License-Identifier: Apache-2.0
"""A second decoder of docs/formats/values.md: the standard library only; rules, limits and blobs come in as data."""
# ruff: noqa: E501, E701 - laid out by hand, a check to a line, so that the whole format is seen at once
# fmt: off

import hashlib
import ipaddress
import math
import re
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from io import BytesIO
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

DEPTH, PRIME, FOLD, EPOCH, ZONES = 1021, (1 << 32) - 5, 1 << 31, datetime(1970, 1, 1, tzinfo=UTC), available_timezones()
SURROGATE, ANY_TEXT, PARSED, PATHS = re.compile("[\ud800-\udfff]"), ("utf-8", "surrogatepass"), "\0pydantic", (PurePosixPath, PureWindowsPath, PosixPath)
ADDRESSES = [getattr(ipaddress, f"IPv{six}{what}") for what in ("Address", "Network", "Interface") for six in (4, 6)]
FACTORIES: Any = (None, list, dict, set, int, float, str, bool, tuple, frozenset, bytes, deque, OrderedDict)
PLAIN = {0xC0: None, 0xC2: False, 0xC3: True} | {number % 256: number for number in range(-32, 128)}
NUMBERS = {0xCA + place: struct.Struct(">" + code) for place, code in enumerate("fdBHIQbhiq")}
SIZES = {first: struct.Struct(code) for code, those in ((">B", b"\xc4\xc7\xd9"), (">H", b"\xc5\xc8\xda\xdc\xde"), (">I", b"\xc6\xc9\xdb\xdd\xdf")) for first in those}
SHORTEST = {0xCC: 1 << 7, 0xCD: 1 << 8, 0xCE: 1 << 16, 0xCF: 1 << 32, 0xD9: 32, 0xDA: 1 << 8, 0xDB: 1 << 16, 0xDC: 16, 0xDD: 1 << 16}
ELEMENT = re.compile(r"\|[biu]1|[<>][iuf][248]|[<>]c(8|16)|\|S[1-9][0-9]{0,8}|[<>]U[1-9][0-9]{0,8}|[<>][mM]8(\[([2-9]|[1-9][0-9]{1,8})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")
CODES = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f2": "e", "f4": "f", "f8": "d", "c8": "ff", "c1": "dd"}
TENSOR, TAG_AT = re.compile("bool|u?int(8|16|32|64)|b?float16|float(32|64)|complex(64|128)"), {0xC7: 2, 0xC8: 3, 0xC9: 5}
FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, struct.error)
def _need(condition: object) -> Any:
    if not condition: raise ValueError
def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % PRIME
def _shape(kind: str, fields: list[tuple[str, str]]) -> bytes:
    marks = [(_number(text), _number(f"{place} {name}")) for place, (name, text) in enumerate([("", kind), *fields])]
    return struct.pack(">II", sum(mark for mark, _ in marks) % PRIME, sum(mark * weight for mark, weight in marks) % PRIME)
def _zone(data: bytes) -> Any:
    kind, rest = data[:1], data[1:]
    if data in (b"", b"u"): return UTC if data else None
    if kind == b"z": return _need(rest.decode() in ZONES) or ZoneInfo(rest.decode())
    offset = timedelta(microseconds=struct.unpack(">q", rest[:8])[0])
    if kind == b"p": return _need(not rest[8:] and not offset.microseconds) or timezone(offset, PARSED)
    if not rest[8:]: return _need(kind == b"o" and offset) or timezone(offset)
    return _need(kind + rest[8:9] == b"on") or timezone(offset, rest[9:].decode(*ANY_TEXT))
def _item_bytes(spec: Any, raw: bytes = b"") -> int:
    size, whole = 0, _item_bytes(spec) if raw else 1
    if type(spec) is str:
        _need(ELEMENT.fullmatch(spec) and (spec != "|b1" or max(raw, default=0) <= 1))
        _need(all(code < 0x110000 for (code,) in (struct.iter_unpack(spec[0] + "I", raw) if spec[1] == "U" else ())))
        size = int(re.findall("[0-9]+", spec)[0]) * (4 if spec[1] == "U" else 1)
    for name, part, sides in spec if type(spec) is list else ():
        _need(type(name) is str and name and [each[0] for each in spec].count(name) == 1)
        _need(type(sides) is list and len(sides) <= 64 and all(type(side) is int and side > 0 for side in sides))
        start, size = size, size + _item_bytes(part) * math.prod(sides)
        _need(not sides or size - start < 1 << 31)
        if raw: _item_bytes(part, b"".join(raw[at + start : at + size] for at in range(0, len(raw), whole)))
    return _need(size > 0 and (type(spec) is list or size < 1 << 31)) or size
def _compared(key: Any) -> Any:
    if type(key) is not tuple or key[:1] != ("scalar",): return key
    spec, raw = key[1:]
    if spec in ("bytes", "text"): return raw
    numbers = struct.unpack(spec[0].replace("|", "<") + CODES[spec[1:3]], raw) if spec[1:3] in CODES else (key, None)
    return numbers[0] if spec[1] != "c" else complex(*numbers)
def decode(data: bytes, rules: Any, limits: Any, store: Any = None) -> Any:
    """The value that bytes encode, or with a store of blobs the value below a root; else one of FAULTS."""
    spent = Counter[str]()
    def spend(limit: str, amount: int = 1, more: int = 0) -> Any:
        spent[limit] += amount
        return _need(spent[limit] <= limits[limit] + more)
    def value(source: BytesIO, depth: int, level: int, mode: str = "") -> Any:
        first = _need(depth <= DEPTH) or spend("value_nodes_max", mode != "header") or source.read(1)[0]
        text = 0xA0 <= first < 0xC0 or 0xD9 <= first < 0xDC
        if first in PLAIN: return _need(mode != "key") or PLAIN[first]
        if first in NUMBERS:
            (number,) = NUMBERS[first].unpack(source.read(NUMBERS[first].size))
            return _need(mode == "" or (mode == "header" and number >= SHORTEST.get(first, math.inf))) or number
        size = first & (31 if text else 15) if first < 0xC0 else 1 << max(first - 0xD4, 0)
        if first in SIZES: (size,) = SIZES[first].unpack(source.read(SIZES[first].size))
        _need((text or mode != "key") and (mode != "header" or size >= SHORTEST.get(first, 0)))
        if first < 0x90 or first >= 0xDE: return {value(source, depth + 1, level, "key"): value(source, depth + 1, level) for _ in range(size)}
        if first < 0xA0 or first >= 0xDC: return [value(source, depth + 1, level, mode) for _ in range(size)]
        tag, data = None if text or 0xC4 <= first < 0xC7 else source.read(1)[0], source.read(size)
        _need(len(data) == size and first != 0xC1 and (tag is None or mode != "header"))
        return extension(tag, data, level + 1) if tag is not None else data.decode() if text else data
    def parts(data: bytes, level: int, count: int = 1) -> list[Any]:
        source = _need(level - spent["reference_depth_max"] <= limits["extension_depth_max"]) or BytesIO(data)
        found = [value(source, 0, level) for _ in range(count)]
        return _need(not source.read(1)) or found
    def members(data: bytes, level: int, count: int | None = None, kind: Any = object) -> Any:
        (items,) = parts(data, level)
        return _need(type(items) is list and count in (None, len(items)) and all(kind in (object, type(item)) for item in items)) or items
    def keyed(keys: list[Any]) -> list[Any]:
        compared = [key[2] if type(key) is tuple and key[:1] == ("typed",) and rules[key[1]]["kind"] == "namedtuple" else _compared(key) for key in keys]
        if {*map(type, keys)} - {str, bytes, bool, type(None)}: _need(max(Counter(map(hash, compared)).values()) <= limits["colliding_keys_max"])
        return _need(len(set(compared)) == len(keys)) or keys
    def extension(tag: int, data: bytes, level: int) -> Any:
        number: Any = int.from_bytes(data, "big", signed=True)
        if tag == 0xFF:
            short = {4: (0, number % (1 << 32)), 8: (number >> 34 & (1 << 30) - 1, number % (1 << 34))}
            nanoseconds, seconds = short.get(len(data)) or struct.unpack(">Iq", data)
            return _need(nanoseconds < 10**9) or EPOCH + timedelta(0, seconds, nanoseconds // 1000)
        if tag in (1, 2): return typed(data, level) if tag == 1 else _need(data[0]) or reference(data, level)
        if tag == 3:
            shortest = max(number, ~number).bit_length() // 8 + 1 == len(data) <= limits["int_bytes_max"]
            return _need(shortest and not -(1 << 63) <= number < 1 << 64) or number
        if tag == 4: return _need(SURROGATE.search(text := parts(data, level)[0].decode(*ANY_TEXT))) or text
        if tag in (5, 20, 21):
            items = spend("costly_values_max", tag > 5) or members(data[tag == 21 :], level)
            pairs = dict(zip(keyed(items[::2]), items[1::2], strict=True))
            if tag > 5: return OrderedDict(pairs) if tag == 20 else defaultdict(FACTORIES[data[0]], pairs)
            return _need(any(type(key) is not str or SURROGATE.search(key) for key in pairs)) or pairs
        if tag in (6, 7, 8): return (tuple, set, frozenset)[tag - 6](members(data, level) if tag == 6 else keyed(members(data, level)))
        if tag in (9, 11): return complex(*struct.unpack(">dd", data)) if tag == 9 else date(*struct.unpack(">HBB", data))
        if tag in (10, 12):
            kind, layout, end = (datetime, ">HBBBBBI", 11) if tag == 10 else (time, ">BBBI", 7)
            *fields, micro, zone = *struct.unpack(layout, data[:end]), _zone(data[end:])
            return _need(tag == 12 or zone is not UTC or micro >= FOLD) or kind(*fields, micro % FOLD, zone, fold=micro // FOLD)  # type: ignore[call-arg, misc]
        if tag == 13: return _need(data[4:8] < struct.pack(">I", 86_400) and data[8:] < struct.pack(">I", 10**6)) or timedelta(*struct.unpack(">iII", data))
        if tag == 14:
            number = _need(len(data) <= limits["decimal_digits_max"] + 32) or Decimal(data.decode("ascii"))
            _need(len(number.as_tuple().digits) <= limits["decimal_digits_max"] and str(number).encode() == data)
            return _need(not number.is_finite() or abs(number.as_tuple().exponent) <= limits["decimal_exponent_max"]) or number
        if tag == 15:
            above, below = members(data, level, 2, int)
            _need(max(above.bit_length(), below.bit_length()) // 8 < limits["fraction_part_bytes_max"])
            return _need(below > 0 and math.gcd(above, below) == 1) or Fraction(above, below)
        if tag == 16: return UUID(bytes=data)
        if tag == 17:
            path = spend("costly_values_max") or PATHS[data[0]](data[1:].decode(*ANY_TEXT))
            return _need(len(data) <= limits["text_bytes_max"] + 1 and str(path).encode(*ANY_TEXT) == data[1:]) or path
        if tag == 18:
            kind, end = ADDRESSES[data[0]], 17 if data[0] % 2 else 5
            number, rest = _need(len(data) >= end) or int.from_bytes(data[1:end], "big"), data[end:]
            if data[0] > 1: return spend("costly_values_max") or _need(len(rest) == 1) or kind((number, rest[0]))
            if not rest: return kind(number)
            scoped = spend("costly_values_max") or kind(f"{kind(number)}%{rest.decode(*ANY_TEXT)}")
            return _need(len(rest) <= limits["text_bytes_max"] and scoped.scope_id.encode(*ANY_TEXT) == rest) or scoped
        if tag == 19:
            longest, items = spend("costly_values_max") or members(data, level, 2)
            return _need(type(items) is list and (longest is None or (type(longest) is int and len(items) <= longest < 1 << 63))) or deque(items, longest)
        if tag in (22, 23): return range(*members(data, level, 3, int)) if tag == 22 else slice(*members(data, level, 3))
        if tag == 24: return _need(data and data[:1] != b"p") or _zone(data)
        return array(data, level, {33: 1, 32: 2, 34: 3}[tag])
    def array(data: bytes, level: int, count: int) -> tuple[Any, ...]:
        end = 2 + int.from_bytes(data[:2], "big")
        source, raw = BytesIO(data[2:end]), data[end:]
        header = value(source, 0, level, "header")
        spec, shape, gradient = _need(type(header) is list and len(header) == count and not source.read(1)) or (*header, [], False)[:3]
        _need(count < 3 or (TENSOR.fullmatch(spec) and type(gradient) is bool and (not gradient or "float" in spec or "complex" in spec)))
        if count == 3: size = int(re.findall("[0-9]+", spec.replace("bool", "8"))[0]) // 8
        elif count == 1 and spec in ("bytes", "text"): return "scalar", spec, parts(raw, level)[0].decode(*ANY_TEXT) if spec == "text" else b"".join(parts(raw, level))
        else: size = _need(count == 2 or type(spec) is list or spec[1] not in "SU") or _item_bytes(spec)
        _need(type(shape) is list and len(shape) <= limits["array_dimensions_max"] and all(type(side) is int and side >= 0 for side in shape))
        _need((elements := math.prod(max(side, 1) for side in shape)) <= limits["array_elements_max"] and elements * size < 1 << 63)
        raw = raw[5:] if raw[:5] == b"\xc6" + struct.pack(">i", len(raw) - 5) else parts(raw, level)[0]
        _need(type(raw) is bytes and len(raw) == math.prod(shape) * size)
        if raw: _item_bytes(spec if count < 3 else "|b1" if spec == "bool" else "|u1", raw)
        return ("scalar", "array", "tensor")[count - 1], *header, raw
    def typed(data: bytes, level: int) -> tuple[Any, ...]:
        size = 11 + data[0]
        name, version = data[1 : size - 10].decode(), int.from_bytes(data[size - 10 : size - 8], "big")
        rule, kind, names = rules[name], rules[name]["kind"], rules[name]["fields"]
        if version == rule["version"]:
            count, own = 4 if kind == "pydantic" else 1, data[size - 8 : size].hex() == rule["shape"]
            fields, *beside = _need(data[size] == 0x90 | count) or parts(data[size + 1 :], level, count) if own else members(data[size:], level, count)
            stored = names if own else list(_need(kind not in ("enum", "pair") and type(fields) is dict) or fields)
            many = b"\xde" + struct.pack(">H", len(stored)) if stored[15:] else bytes((0x80 | len(stored),))
            _need(kind == "pair" or data.startswith(many, size + 1) or (store is not None and data[size + 1 + TAG_AT[data[size + 1]]] == 2))
            if not own:
                texts = dict(rule["annotations"])
                _need(data[size] == 0x90 | count and _shape(kind, [(each, texts[each]) for each in stored]) == data[size - 8 : size])
                fields = {each: fields[each] if each in fields else rule["defaults"][each] for each in names}
                for mask in beside[:1]: beside[0] = _need(type(mask) is int and mask >= 0) or sum(1 << names.index(each) for place, each in enumerate(stored) if mask >> place & 1) | mask >> len(stored) << len(names)
        else:
            fields, *beside = _need(version < rule["version"]) or members(data[size:], level)
            for step in range(version, rule["version"]): fields = _need(type(fields) is dict) or {**fields, **rule["upgrade"][str(step)]}
            fields = {each: fields[each] for each in sorted(fields, key=names.index)}
        if kind == "pair": return "typed", name, [fields]
        if kind == "enum":
            ((by, what),) = _need(type(fields) is dict) or fields.items()
            return "typed", name, rule["members"][what] if by == "name" else _need(by == "value" and type(what) is int and what in rule["combined"]) or what
        _need(type(fields) is dict and list(fields) == names)
        if kind != "pydantic": return "typed", name, tuple(fields.values()) if rule["key"] else fields
        mask, extra, private = beside
        _need(type(mask) is int and 0 <= mask < 1 << len((*names, *(extra or ()))) and type(extra) in (dict, type(None)))
        _need(extra is None or (rule["extra"] and not fields.keys() & extra and all(type(each) is str for each in extra)))
        return _need(private is None or (type(private) is dict and private.keys() <= {*rule["private"]})) or ("typed", name, fields, *beside)
    def blob(name: bytes) -> Any:
        return _need(len(store[name]) <= limits["blob_bytes_max"] and hashlib.sha256(store[name]).digest() == name) or store[name]
    def reference(data: bytes, level: int) -> Any:
        stream, levels, count, total = _need(store is not None) or struct.unpack(">BBIQ", data[:14])
        spend("value_bytes_max", total) or spend("reference_depth_max", stream > 0, 1)
        _need(stream <= 4 and (stream < 3 or not count) and levels <= limits["tree_levels_max"])
        blobs = [data[14:]]
        for below in range(levels + 1):
            ids = [each[at : at + 32] for each in blobs for at in range(0, len(each), 32)]
            _need(all(each and len(each) % 32 == 0 for each in blobs) and (not below or len(ids) <= 1 + total // 64))
            blobs = [blob(each) for each in ids]
        joined: Any = _need(all(blobs) and sum(map(len, blobs)) == total) or b"".join(blobs)
        if stream in (1, 2): _need(len(joined := parts(struct.pack(">B", 0xDB + 2 * stream) + struct.pack(">I", count) + joined, level)[0]) == count)
        spent["reference_depth_max"] -= stream > 0
        return joined.decode() if stream == 3 else joined
    data = data if store is None else blob(data)
    start = TAG_AT.get(data[0], len(data)) + 1
    if data[start - 1 : start + 1] == b"\2\0": data = _need(int.from_bytes(data[1 : start - 1], "big") == len(data) - start) or reference(data[start:], 0)
    return _need(len(data) <= limits["value_bytes_max"]) or parts(data, 0)[0]
