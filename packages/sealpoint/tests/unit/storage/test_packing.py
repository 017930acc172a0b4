# SPDX-License-Identifier: Apache-2.0
"""Parts of records as a database stores them."""

import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import Edited
from sealpoint.storage import _record_packing
from sealpoint.storage._record_packing import PACKED_BYTES_MORE, pack, unpack

_FORMAT = Path(__file__).parents[5] / "docs/formats/storage.md"


@given(st.binary(max_size=400), st.integers(0, 3))
def test_what_was_packed_comes_back(part: bytes, repeated: int) -> None:
    """Any part comes back byte for byte, in at most one byte more."""
    whole = part * repeated

    packed = pack(whole)

    assert unpack(packed, len(whole)) == whole
    assert len(packed) <= len(whole) + PACKED_BYTES_MORE


def test_an_entry_takes_less_than_half() -> None:
    """Names of fields take nearly nothing, and hexadecimal digits half."""
    header = (
        f'{{"v":3,"store":"{os.urandom(16).hex()}","epoch":0,"ns":"default","thread":"'.encode()
    )
    header += f'{os.urandom(16).hex()}","gen":0,"seq":7,"prev":"{os.urandom(32).hex()}"}}'.encode()

    assert len(pack(header)) < 0.6 * len(header)


def test_what_was_not_packed_is_refused() -> None:
    """Nothing else is unpacked, and nothing beyond its bound is made."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -12)
    bomb = b"\1" + packer.compress(bytes(1 << 24)) + packer.flush()
    good = pack(b"a" * 500)

    for bad in (b"", b"\2abc", b"\1", b"\1abc", b"\0" + b"a" * 1001, bomb, good[:-1], good + b"x"):
        with pytest.raises(Edited):
            unpack(bad, 1000)


def test_the_dictionary_is_the_one_of_the_format() -> None:
    """The page that specifies the format has the dictionary to the letter."""
    assert _record_packing._DICTIONARY.decode() in _FORMAT.read_text(encoding="utf-8")
