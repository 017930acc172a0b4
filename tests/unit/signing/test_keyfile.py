# SPDX-License-Identifier: Apache-2.0
"""Key files: damage is refused, and no error shows any of the secret."""

import json
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import KeyFileUnsafe
from sealpoint.signing import Signer, decode_key_file, encode_key_file

_SECRET = bytes(range(0xA0, 0xC0))
_HEX = _SECRET.hex()
_KEY = Signer("worker", _SECRET)
_GOOD = encode_key_file(_KEY)


def _everything_said(error: BaseException | None) -> str:
    """All text of an error and of whatever is chained to it, shown or suppressed."""
    said = []
    while error is not None:
        said += [repr(error), str(error), *traceback.format_exception(error)]
        error = error.__cause__ or error.__context__
    return "\n".join(said)


def _refused(data: bytes, complaint: str) -> None:
    """See a key file refused, and its secret nowhere in the error."""
    with pytest.raises(KeyFileUnsafe, match=complaint) as caught:
        decode_key_file(data, name="worker")
    said = _everything_said(caught.value)

    assert "'worker'" in said
    for start in range(0, len(_HEX) - 8, 2):
        assert _HEX[start : start + 8] not in said.lower()


def test_a_key_file_is_read_as_it_was_written() -> None:
    """Name, public and secret half come back."""
    found = decode_key_file(_GOOD, name="worker")

    assert found.name == "worker"
    assert found.public == _KEY.public
    assert found.secret_bytes() == _SECRET
    assert found.sign(b"m") == _KEY.sign(b"m")


def test_a_key_file_says_what_it_is() -> None:
    """The file names its version, scheme and encryption, so that later versions can tell."""
    assert json.loads(_GOOD) == {
        "v": 1,
        "name": "worker",
        "scheme": "ed25519",
        "public": str(_KEY.public),
        "enc": "none",
        "secret": _HEX,
    }
    assert _GOOD.endswith(b"}\n")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        _HEX.encode(),
        f'"{_HEX}"'.encode(),
        f'{{"{_HEX}": 1}}'.encode(),
        _GOOD[:-3],
        _GOOD[: _GOOD.index(_HEX.encode()) + 40],
        _GOOD + _HEX.encode(),
        _GOOD.replace(b'"secret": "', b'"secret": "z'),
        _GOOD.replace(b'"secret": "', b'"secret": "0'),
        _GOOD.replace(b'"secret"', b'"sekret"'),
        _GOOD.replace(b'"secret"', f'"{_HEX}"'.encode()),
        _GOOD.replace(b'"v": 1', f'"v": "{_HEX}"'.encode()),
        _GOOD.replace(b'"v": 1', f'"v": 1, "{_HEX}": 1'.encode()),
        _GOOD.replace(f'"{_HEX}"'.encode(), f'["{_HEX}"]'.encode()),
        _GOOD.replace(f'"{_HEX}"'.encode(), f'"{_HEX}\xff"'.encode("latin-1")),
        b"[" * 16_000,
        _GOOD + b" " * 16 * 1024,
    ],
    ids=range(17),
)
def test_other_bytes_are_refused_unshown(data: bytes) -> None:
    """A file that is cut, misspelt or no key file at all."""
    _refused(data, "expected a key file, found other bytes")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b'"v": 1', b'"v": 2', r"expected version 1.*found others \(version 2\)"),
        (b'"ed25519"', b'"rsa"', "scheme ed25519"),
        (b'"ed25519"', f'"{_HEX}"'.encode(), "scheme ed25519"),
        (b'"none"', b'"scrypt"', "encryption none"),
        (b'"none"', f'"{_HEX}"'.encode(), "encryption none"),
        (b'"worker"', b'"alice"', "expected the key of that name"),
        (b'"worker"', f'"{_HEX}"'.encode(), "expected the key of that name"),
        (str(_KEY.public).encode(), b"00" * 32, "expected its public half"),
        (str(_KEY.public).encode(), str(_KEY.public).upper().encode(), "expected its public half"),
        (str(_KEY.public).encode(), _HEX.encode(), "expected its public half"),
        (_HEX.encode(), _HEX[:-2].encode(), "expected 32 secret bytes"),
        (_HEX.encode(), _HEX.encode() + b"00", "expected 32 secret bytes"),
        (_HEX.encode(), b"", "expected 32 secret bytes"),
        (_HEX.encode(), b"a1" + _HEX[2:].encode(), "expected its public half"),
    ],
)
def test_a_changed_field_is_refused_unshown(old: bytes, new: bytes, complaint: str) -> None:
    """A file of another version, scheme, name or key."""
    assert _GOOD.count(old) == 1
    _refused(_GOOD.replace(old, new), complaint)


@given(st.integers(0, len(_GOOD) - 1), st.integers(0, 255))
def test_a_changed_byte_never_gives_another_key(position: int, byte: int) -> None:
    """Whatever one byte is changed to, the key is the same or the file is refused."""
    changed = bytearray(_GOOD)
    changed[position] = byte
    try:
        found = decode_key_file(bytes(changed), name="worker")
    except KeyFileUnsafe:
        return

    assert found.secret_bytes() == _SECRET
