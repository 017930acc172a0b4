# SPDX-License-Identifier: Apache-2.0
"""Changing a pickle opcode by opcode, bare or in one of the three wrappings that torch has had.

Most changes keep the stack in balance: a part that pushes one value takes the place of another such
part, or is pushed and dropped again. Frames are mostly made right again. Some changes break what a
pickler never breaks, and some change plain bytes.
"""

import io
import pickle
import pickletools
import random
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

__all__ = ["ParsedFile", "PickleChanger", "correct_frames", "opcodes_of", "zipped"]

_FRAME = pickle.FRAME[0]
_PUSH = frozenset(b"NKMJIGF\x88\x89)]}\x8fUXSVC\x8chj")
_GETS = frozenset(b"ghj")
_LEFT_OUT = frozenset(b"pqr\x94\x95\x80")
"""What a part does without, so that it can stand anywhere: numbers of the memo, and frames."""
_PART_MAX = 60
_POOL_MAX = 4000
_STREAM = b"\x80\x02\x8a\nl\xfc"
_STREAM_BEGINS = 16
_MARK = pickletools.markobject
_DATA = "data.pkl"


def opcodes_of(data: bytes) -> tuple[list[bytes], bytes]:
    """All opcodes of all pickles that the bytes begin with, each with its argument; the rest."""
    found: list[bytes] = []
    at = 0
    while at < len(data):
        places: list[int] = []
        whole = True
        try:
            places.extend(at + (place or 0) for _, _, place in pickletools.genops(data[at:]))
        except Exception:  # noqa: BLE001 - pickletools raises whatever it meets
            whole = False
        if not places:
            break
        end = places[-1] + 1 if whole else places[-1]
        ends = [*places[1:], end]
        found += [data[a:b] for a, b in zip(places, ends, strict=True) if b > a]
        at = end
        if not whole:
            break
    return found, data[at:]


def zipped(pickled: bytes, storages: dict[str, bytes]) -> bytes:
    """A file as torch writes it, around any pickle."""
    buffer = io.BytesIO()
    writer = torch._C.PyTorchFileWriter(buffer)  # noqa: SLF001 - has no public name
    writer.write_record(_DATA, pickled, len(pickled))
    for key, data in storages.items():
        writer.write_record(f"data/{key}", data, len(data))
    writer.write_end_of_file()
    return buffer.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """A file as opcodes, and what lies around them."""

    opcodes: Sequence[bytes]
    rest: bytes = b""
    storages: dict[str, bytes] | None = None
    """Of a zip."""

    def whole(self) -> bytes:
        """The file."""
        data = b"".join(self.opcodes) + self.rest
        return data if self.storages is None else zipped(data, self.storages)


class PickleChanger:
    """Makes new files from old ones.

    Args:
        rng: Where all choices come from.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._pool: list[tuple[bytes, ...]] = [
            tuple(opcodes_of(b"\x80\x02" + part + b".")[0][1:-1]) for part in _PARTS
        ]

    def parse(self, data: bytes) -> ParsedFile:
        """A file, taken apart; its parts are kept to be put into others."""
        parsed = _parsed(data)
        for part in _parts_of(parsed.opcodes):
            if len(self._pool) < _POOL_MAX:
                self._pool.append(part)
            elif self._rng.random() < 0.2:
                self._pool[self._rng.randrange(len(_PARTS), len(self._pool))] = part
        return parsed

    def changed(self, parsed: ParsedFile) -> bytes:
        """A new file."""
        rng = self._rng
        opcodes = list(parsed.opcodes)
        storages = parsed.storages
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
            self._change(opcodes)
        if rng.random() < 0.8:
            correct_frames(opcodes)
        if rng.random() < 0.05:
            self._stretch_frame(opcodes)
        rest = parsed.rest
        if storages is None and rng.random() < 0.05:
            rest += rng.choice((b"\0", b"N.", b"\x80\x02N."))
        elif rng.random() < 0.02:
            storages = {"0": bytes(16)} if storages is None else None
        data = replace(parsed, opcodes=opcodes, rest=rest, storages=storages).whole()
        return self._bytes(data) if rng.random() < 0.06 else data

    def _change(self, opcodes: list[bytes]) -> None:
        rng = self._rng
        if not opcodes:
            opcodes += [b"N", b"."]
        given = [place for place, code in enumerate(opcodes) if _STREAM in code[:_STREAM_BEGINS]]
        if given and rng.random() < 0.5:
            place = rng.choice(given)
            opcodes[place] = self._changed_inside(opcodes[place])
            return
        at = rng.randrange(len(opcodes))
        if rng.random() < 0.95:  # mostly between the beginning and the end
            at = max(1, min(at, len(opcodes) - 2))
            at = min(at, len(opcodes) - 1)
        match rng.randrange(18):
            case 0 | 1 | 2 | 3 | 16:
                self._replace_push(opcodes, at)
            case 4 | 5 | 6 | 17:
                opcodes[at:at] = self._neutral()
            case 7:
                del opcodes[at : at + rng.choice((1, 1, 2, 4))]
            case 8:
                opcodes[at:at] = opcodes[at : at + rng.choice((1, 1, 2, 5))]
            case 9:
                other = rng.randrange(len(opcodes))
                opcodes[at], opcodes[other] = opcodes[other], opcodes[at]
            case 10 | 11:
                opcodes[at] = self._other_argument(opcodes[at])
            case 12:
                opcodes[at:at] = [rng.choice(_SINGLE)]
            case 13:
                opcodes[at] = rng.choice(_SINGLE)
            case 14:
                self._wrap(opcodes, at)
            case _:
                opcodes[at:at] = rng.choice(self._pool)

    def _changed_inside(self, opcode: bytes) -> bytes:
        """A stream of torch that is given as bytes, changed as if it were a file."""
        data = self.changed(_parsed(opcode[opcode.index(_STREAM) :]))
        return pickle.BINBYTES + struct.pack("<I", len(data)) + data

    def _stretch_frame(self, opcodes: list[bytes]) -> None:
        """A frame that ends a little elsewhere, such as in the pickle after its own."""
        frames = [place for place, code in enumerate(opcodes) if code[0] == _FRAME]
        if frames:
            place = self._rng.choice(frames)
            length = int.from_bytes(opcodes[place][1:], "little")
            length += self._rng.choice((-9, -2, -1, 1, 2, 3, 5, 9, 12, 40))
            opcodes[place] = pickle.FRAME + struct.pack("<Q", length % (1 << 64))

    def _replace_push(self, opcodes: list[bytes], at: int) -> None:
        """A value in the place of another one."""
        places = [place for place, code in enumerate(opcodes) if code[0] in _PUSH]
        if places:
            place = min(places, key=lambda each: abs(each - at))
            opcodes[place : place + 1] = self._rng.choice(self._pool)

    def _neutral(self) -> list[bytes]:
        """A value that is pushed and goes again, or is remembered first."""
        part = list(self._rng.choice(self._pool))
        match self._rng.randrange(5):
            case 0:
                return [b"(", *part, b"1"]
            case 1:
                return [*part, b"\x94", b"0"]
            case 2:
                return [*part, b"2", b"0", b"0"]
            case 3:
                return [*part, b"q" + bytes([self._rng.randrange(256)]), b"0"]
            case _:
                return [*part, b"0"]

    def _wrap(self, opcodes: list[bytes], at: int) -> None:
        """Something around a value: a container, a call, a state."""
        places = [place for place, code in enumerate(opcodes) if code[0] in _PUSH]
        if not places:
            return
        place = min(places, key=lambda each: abs(each - at))
        before, after = self._rng.choice(_AROUND)
        opcodes[place : place + 1] = [*before, opcodes[place], *after]

    def _other_argument(self, opcode: bytes) -> bytes:
        rng = self._rng
        code, rest = opcode[:1], opcode[1:]
        if not rest:
            return rng.choice(_SINGLE)
        if code in b"cipgPILFSV":
            return code + rng.choice(_LINES) + (rng.choice(_LINES) if code in b"ci" else b"")
        match rng.randrange(4):
            case 0:
                return code + rng.randbytes(len(rest))
            case 1:
                changed = bytearray(rest)
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
                return code + bytes(changed)
            case 2:
                return rng.choice(_NUMBERS)
            case _:
                return code + bytes(len(rest))

    def _bytes(self, data: bytes) -> bytes:
        rng = self._rng
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2))):
            place = rng.randrange(len(changed) + 1)
            match rng.randrange(4):
                case 0 if changed:
                    changed[place % len(changed)] = rng.randrange(256)
                case 1:
                    del changed[place : place + rng.choice((1, 2, 8))]
                case 2:
                    changed[place:place] = rng.randbytes(rng.choice((1, 2, 4)))
                case _:
                    del changed[place:]
        return bytes(changed)


def _parsed(data: bytes) -> ParsedFile:
    if data[:2] == b"PK":
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = {
                    name.partition("/")[2]: archive.read(name) for name in archive.namelist()
                }
            opcodes, rest = opcodes_of(members[_DATA])
        except (
            zipfile.BadZipFile,
            KeyError,
            OSError,
            NotImplementedError,
            ValueError,
            EOFError,
            RuntimeError,
        ):
            return ParsedFile(opcodes=[], rest=data)
        storages = {
            name.removeprefix("data/"): held
            for name, held in members.items()
            if name.startswith("data/") and "/" not in name.removeprefix("data/")
        }
        return ParsedFile(opcodes=opcodes, rest=rest, storages=storages)
    opcodes, rest = opcodes_of(data)
    return ParsedFile(opcodes=opcodes, rest=rest)


def _parts_of(opcodes: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """Stretches that push one value each, found by counting what is on the stack."""
    found: list[tuple[bytes, ...]] = []
    begins: list[int] = []
    marks: list[int] = []
    for place, raw in enumerate(opcodes):
        info = _INFO.get(raw[0])
        if info is None:
            return found
        begin = place
        if _MARK in info.stack_before or raw[:1] in b"1":
            if not marks:
                return found
            height = marks.pop()
            begin = begins[height] if height < len(begins) else place
            del begins[height:]
            taken = info.stack_before.index(_MARK) if _MARK in info.stack_before else 0
        else:
            taken = len(info.stack_before)
        for _ in range(taken):
            if not begins:
                return found
            begin = begins.pop()
        if info.stack_after == [_MARK]:
            marks.append(len(begins))
            begins.append(place)
            continue
        if info.stack_after:
            begins += [begin] * len(info.stack_after)
            part = opcodes[begin : place + 1]
            if 1 < len(part) < _PART_MAX and not any(each[0] in _GETS for each in part):
                found.append(tuple(each for each in part if each[0] not in _LEFT_OUT))
    return found


def correct_frames(opcodes: list[bytes]) -> None:
    """Make each frame end before the next one, or where its pickle ends."""
    length = 0
    for place in range(len(opcodes) - 1, -1, -1):
        if opcodes[place][:1] == b".":
            length = 0
        if opcodes[place][0] == _FRAME:
            opcodes[place] = pickle.FRAME + struct.pack("<Q", length)
            length = 0
        else:
            length += len(opcodes[place])


_INFO: dict[int, Any] = {ord(each.code): each for each in pickletools.opcodes}
_SINGLE = (
    *(bytes([code]) for code in b"(012N)]}tdlaesuRbo.Q"),
    *(bytes([code]) for code in b"\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98"),
    *(b"h\x00", b"h\x01", b"q\x00", b"q\x01", b"j\0\0\0\0", b"r\0\0\0\0", b"p0\n", b"g0\n"),
    *(b"\x82\x01", b"\x84\xff\xff\xff\x7f", b"\x83\x01\x00", b"\x95" + bytes(8), b"\x80\x04"),
)
_LINES = (
    *(b"0\n", b"1\n", b"-1\n", b"00\n", b"01\n", b"1L\n", b"9" * 30 + b"L\n", b" 1\n", b"1_0\n"),
    *(b"1.5\n", b"nan\n", b"-inf\n", b"1e999\n", b"'a'\n", b'"a"\n', b"'\\x00'\n", b"\\u0041\n"),
    *(b"collections\n", b"OrderedDict\n", b"os\n", b"system\n", b"builtins\n", b"set\n", b"\n"),
    *(b"torch\n", b"Size\n", b"\xff\n", b"no end"),
)
_NUMBERS = (
    *(b"K\x00", b"K\xff", b"M\x00\x01", b"J\xff\xff\xff\xff", b"\x8a\x00", b"\x8a\x01\x01"),
    *(b"\x8a\x08" + b"\xff" * 7 + b"\x7f", b"\x8a\x01\x00", b"I7\n", b"L7L\n", b"G" + bytes(8)),
    *(b"G\x7f\xf8" + bytes(6), b"\x8b\x02\0\0\0\x00\x01", b"F0.1\n"),
)
_AROUND: tuple[tuple[tuple[bytes, ...], tuple[bytes, ...]], ...] = (
    ((), (b"\x85",)),
    ((b"(",), (b"t",)),
    ((b"]",), (b"a",)),
    ((b"]", b"("), (b"e",)),
    ((b"}", b"K\x01"), (b"s",)),
    ((b"}",), (b"N", b"s")),
    ((b"\x8f", b"("), (b"\x90",)),
    ((b"(",), (b"\x91",)),
    ((), (b"Q",)),
    ((b"cbuiltins\nset\n",), (b"\x85", b"R")),
    ((b"cbuiltins\nbytearray\n",), (b"\x85", b"R")),
    ((b"ccollections\nCounter\n",), (b"\x85", b"R")),
    ((b"ccollections\nOrderedDict\n", b")", b"R"), (b"b",)),
    ((b"cargparse\nNamespace\n", b")", b"\x81"), (b"b",)),
    ((b"ctorch\nSize\n",), (b"\x85", b"R")),
    ((b"cos\nsystem\n",), (b"\x85", b"R")),
    ((), (b")", b"R")),
    ((b"(", b"ccollections\ndeque\n"), (b"o",)),
    ((b"(",), (b"icollections\ndeque\n",)),
)
_PARTS = (
    *(b"N", b"K\x01", b"]", b"}", b")", b"\x8f", b"(\x91", b"K\x01K\x02\x86", b"]K\x01a"),
    *(b"}K\x01Ns", b"X\x01\0\0\0a", b"cos\nsystem\n", b"ctorch\nfloat32\n", b"NQ", b"Pa\n"),
    *(b"ccollections\nOrderedDict\n)R", b"cbuiltins\nbytearray\n\x8a\x08" + bytes(7) + b"@\x85R"),
    *(
        b"cos\nsystem\nX\x01\0\0\0a\x85R",
        b"\x8c\x02os\x8c\x06system\x93",
        b"\x82\x05",
        b"(ios\nx\n",
    ),
    *(b"cuuid\nUUID\n)\x81}X\x03\0\0\0intK\x05sb", b"cdecimal\nDecimal\nX\x01\0\0\x001\x85R"),
    *(b"cargparse\nNamespace\n)\x81}X\x01\0\0\0aK\x01sb", b"ctorch\nSize\nK\x01K\x02\x86\x85R"),
    *(
        b"cdatetime\ndate\nC\x04\x07\xe8\x01\x01\x85R",
        b"c_codecs\nencode\nX\x01\0\0\0aX\x06\0\0\0latin1\x86R",
    ),
    *(b"ccollections\ndefaultdict\ncbuiltins\nint\n\x85R", b"ccollections\ndeque\n]K\x05\x86R"),
    *(
        b"ctorch\ndevice\nX\x03\0\0\0cpu\x85R",
        b"ctorch.serialization\n_get_layout\nX\x10\0\0\0torch.sparse_coo\x85R",
    ),
    *(
        b"ccollections\nOrderedDict\n)}\x92",
        b"(ccollections\nOrderedDict\no",
        b"\x96\x01" + bytes(7) + b"a",
    ),
    *(b"cpathlib\nPosixPath\nX\x01\0\0\0a\x85R", b"cfractions\nFraction\nK\x01K\x02\x86R"),
    *(b"X\x08\0\0\0_target_", b"B\x0d\0\0\0\x80\x02cos\nsystem\n.", b"cbuiltins\nslice\nNNN\x87R"),
)
"""Parts that push one value each, in the words of protocol 2."""
