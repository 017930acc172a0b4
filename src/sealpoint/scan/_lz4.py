# SPDX-License-Identifier: Apache-2.0
"""LZ4 frames, unpacked within bounds: the one compression of joblib that Python does not bring.

One frame, with or without checksums of blocks and of its content. Checksums are not computed: they
protect from chance, and what is unpacked is judged in any case. It refuses dictionaries, reserved
bits, blocks that are longer than the frame says, and references before the beginning.

A caller that asks for at most so many bytes gets at most one block more than that. Many short
blocks would cost far more than their bytes, so there may be only a few.
"""

_SHORT_BYTES = 1 << 12
_SHORT_BLOCKS_MAX = 1 << 10
_MAGIC = b"\x04\x22\x4d\x18"
_BLOCK_BYTES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_WINDOW_BYTES = 1 << 16
_STORED = 0x80000000


class Lz4Unpacker:
    """A decompressor with the methods of those in Python's library."""

    def __init__(self) -> None:
        self._data = b""
        self._started = False
        self._flags = 0
        self._block_most = 0
        self._window = b""
        self._size: int | None = None
        self._given = 0
        self._short = 0
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """What can be unpacked of what was given so far; `ValueError` if it is not LZ4."""
        self._data += data
        parts: list[bytes] = []
        length = 0
        while length < max_length and not self.eof and self._step(parts):
            length = sum(map(len, parts))
        return b"".join(parts)

    def _step(self, parts: list[bytes]) -> bool:
        """Read the header or one block; whether there was enough for it."""
        if not self._started:
            return self._header()
        if len(self._data) < 4:
            return False
        word = int.from_bytes(self._data[:4], "little")
        if word == 0:
            return self._end()
        length = word & ~_STORED
        checksum = 4 if self._flags & 0x10 else 0
        if length > self._block_most:
            raise ValueError("a block that is too long")
        if len(self._data) < 4 + length + checksum:
            return False
        packed = self._data[4 : 4 + length]
        self._data = self._data[4 + length + checksum :]
        independent = self._flags & 0x20
        window = b"" if independent else self._window
        stored = word & _STORED
        block = packed if stored else unpack_block(packed, window, self._block_most)
        self._short += len(block) < _SHORT_BYTES
        if self._short > _SHORT_BLOCKS_MAX:
            raise ValueError("too many short blocks")
        self._window = (window + block)[-_WINDOW_BYTES:]
        self._given += len(block)
        parts.append(block)
        return True

    def _header(self) -> bool:
        if len(self._data) < 7:
            return False
        flags, block = self._data[4], self._data[5]
        if self._data[:4] != _MAGIC or flags >> 6 != 1 or flags & 0x03 or block & 0x8F:
            raise ValueError("not the header of an LZ4 frame without a dictionary")
        length = 15 if flags & 0x08 else 7
        if len(self._data) < length:
            return False
        if flags & 0x08:
            self._size = int.from_bytes(self._data[6:14], "little")
        most = _BLOCK_BYTES.get(block >> 4)
        if most is None:
            raise ValueError("no size of blocks that the format has")
        self._flags, self._block_most, self._started = flags, most, True
        self._data = self._data[length:]
        return True

    def _end(self) -> bool:
        length = 8 if self._flags & 0x04 else 4
        if len(self._data) < length:
            return False
        if self._size is not None and self._size != self._given:
            raise ValueError("another size than the frame says")
        self.unused_data = self._data[length:]
        self._data = b""
        self.eof = True
        return True


def unpack_block(packed: bytes, window: bytes, most: int) -> bytes:
    """One block, which may refer to what was unpacked before it; `ValueError` if it is none."""
    out = bytearray(window)
    limit = len(window) + most
    at, end = 0, len(packed)
    while at < end:
        token = packed[at]
        literals, at = _length(packed, at + 1, token >> 4)
        if at + literals > end or len(out) + literals > limit:
            raise ValueError("literals beyond the block")
        out += packed[at : at + literals]
        at += literals
        if at == end:
            return bytes(out[len(window) :])
        if at + 2 > end:
            break
        distance = packed[at] | packed[at + 1] << 8
        copied, at = _length(packed, at + 2, token & 15)
        copied += 4
        if not 0 < distance <= len(out) or len(out) + copied > limit:
            raise ValueError("a reference beyond the block")
        _repeat(out, distance, copied)
    raise ValueError("a block that does not end with literals")


def _length(packed: bytes, at: int, length: int) -> tuple[int, int]:
    """A length that goes on as long as bytes are 255."""
    if length == 15:
        while True:
            if at >= len(packed):
                raise ValueError("a length that does not end")
            more = packed[at]
            at += 1
            length += more
            if more != 255:
                break
    return length, at


def _repeat(out: bytearray, distance: int, length: int) -> None:
    """Append bytes that lie `distance` before the end, which may overlap what is appended."""
    begin = len(out) - distance
    if distance >= length:
        out += out[begin : begin + length]
        return
    pattern = bytes(out[begin:])
    times, rest = divmod(length, distance)
    out += pattern * times + pattern[:rest]
