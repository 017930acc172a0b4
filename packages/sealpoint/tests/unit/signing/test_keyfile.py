# SPDX-License-Identifier: Apache-2.0
"""Key files: damage is refused, and no error shows any of the secret."""

import hashlib
import json
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_aead_chacha20poly1305_ietf_decrypt

from sealpoint.errors import KeyFileUnsafe, KeyLocked
from sealpoint.signing import (
    Passphrase,
    PrivateKey,
    _key_file_format,
    decode_key_file,
    describe_key_file,
    encode_key_file,
    encode_locked_key_file,
)

_SECRET = bytes(range(0xA0, 0xC0))
_HEX = _SECRET.hex()
_KEY = PrivateKey("worker", _SECRET)
_GOOD = encode_key_file(_KEY)
_WORDS = "correct horse battery staple"
# Frozen: what a key file under that passphrase is, at the cost that it always has.
_LOCKED = b"""{
  "v": 1,
  "name": "worker",
  "scheme": "ed25519",
  "public": "4fd099ccd47d7893dfe9ec24414ecb0d9b5420232aad30d91c465be33cbe65c4",
  "enc": "scrypt-chacha20poly1305",
  "salt": "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
  "nonce": "000102030405060708090a0b",
  "secret": "cc1a1897010c0762e1cff70d98414e61a2b1db2a3771445f2d5c10ead56b4682\
fe5e92087564e3089df2b4b4e9ce5072"
}
"""
_FAST = 16  # what scrypt costs where the cost is not what is tested


def _counted(count: int) -> bytes:
    """The randomness of the frozen file."""
    return bytes(range(count))


def _fast(signer: PrivateKey = _KEY, words: str = _WORDS) -> bytes:
    return encode_locked_key_file(signer, Passphrase(words), _counted, scrypt_n=_FAST)


def _opened(data: bytes, words: str = _WORDS, *, name: str = "worker") -> PrivateKey:
    return decode_key_file(data, name=name, unlock=lambda _: Passphrase(words), scrypt_n=_FAST)


_FAST_LOCKED = _fast()


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
    with pytest.raises(KeyFileUnsafe, match=complaint):
        describe_key_file(data, name="worker")
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
    _refused(data, "expected a key file, found a file of another form")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b'"v": 1', b'"v": 2', r"expected version 1.*found version 2"),
        (b'"ed25519"', b'"rsa"', "scheme ed25519"),
        (b'"ed25519"', f'"{_HEX}"'.encode(), "scheme ed25519"),
        (b'"none"', b'"scrypt"', "encryption none"),
        (b'"none"', f'"{_HEX}"'.encode(), "encryption none"),
        (b'"worker"', b'"alice"', "its file holds the key of another name"),
        (b'"worker"', f'"{_HEX}"'.encode(), "its file holds the key of another name"),
        (str(_KEY.public).encode(), b"00" * 32, "public half belongs to another"),
        (
            str(_KEY.public).encode(),
            str(_KEY.public).upper().encode(),
            "public half belongs to another",
        ),
        (str(_KEY.public).encode(), _HEX.encode(), "public half belongs to another"),
        (_HEX.encode(), _HEX[:-2].encode(), "expected 32 secret bytes"),
        (_HEX.encode(), _HEX.encode() + b"00", "expected 32 secret bytes"),
        (_HEX.encode(), b"", "expected 32 secret bytes"),
        (_HEX.encode(), b"a1" + _HEX[2:].encode(), "public half belongs to another"),
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


def test_a_plain_file_has_the_bytes_that_it_always_had() -> None:
    """Encryption brought fields along that a plain file is without."""
    public = str(_KEY.public)

    assert _GOOD.decode() == (
        f'{{\n  "v": 1,\n  "name": "worker",\n  "scheme": "ed25519",\n  "public": "{public}",\n'
        f'  "enc": "none",\n  "secret": "{_HEX}"\n}}\n'
    )


def test_a_locked_file_has_the_frozen_bytes() -> None:
    """The format and its cost never change under this name, in either direction."""
    made = encode_locked_key_file(_KEY, Passphrase(_WORDS), _counted)
    found = decode_key_file(_LOCKED, name="worker", unlock=lambda _: Passphrase(_WORDS))

    assert made == _LOCKED
    assert found.secret_bytes() == _SECRET
    assert found.public == _KEY.public


def test_the_frozen_file_opens_without_our_code() -> None:
    """Other libraries, and the specification, give the same secret."""
    fields = json.loads(_LOCKED)
    key = hashlib.scrypt(
        _WORDS.encode(),
        salt=bytes.fromhex(fields["salt"]),
        n=131_072,
        r=8,
        p=1,
        dklen=32,
        maxmem=2**28,
    )
    beside = json.dumps({**fields, "secret": ""}, indent=2).encode() + b"\n"
    secret = crypto_aead_chacha20poly1305_ietf_decrypt(
        bytes.fromhex(fields["secret"]), beside, bytes.fromhex(fields["nonce"]), key
    )

    assert secret == _SECRET


def test_a_locked_file_tells_its_public_half_and_nothing_more() -> None:
    """Whoever lists keys needs no passphrase; the secret is nowhere in the file."""
    for data in (_LOCKED, _FAST_LOCKED):
        facts = describe_key_file(data, name="worker")
        assert facts.encrypted
        assert facts.public == _KEY.public
        assert _HEX.encode() not in data
    assert not describe_key_file(_GOOD, name="worker").encrypted


def test_the_passphrase_is_asked_for_only_where_there_is_one() -> None:
    """A plain key is opened without asking; an encrypted one asks once, by name."""
    asked = []

    def unlock(name: str) -> Passphrase:
        asked.append(name)
        return Passphrase(_WORDS)

    assert decode_key_file(_GOOD, name="worker", unlock=unlock).public == _KEY.public
    assert asked == []
    decode_key_file(_FAST_LOCKED, name="worker", unlock=unlock, scrypt_n=_FAST)
    assert asked == ["worker"]


def test_what_was_parsed_does_not_show_itself() -> None:
    """Not even a tool that prints local variables shows the secret through these objects."""
    parsed = _key_file_format._parse(_GOOD)

    assert parsed is not None
    assert _HEX[:8] not in f"{parsed!r} {parsed.document!r}"


def test_nothing_is_asked_about_a_file_that_is_refused_anyway() -> None:
    """Neither a passphrase nor the work of trying one is wasted on other bytes."""

    def unlock(_: str) -> Passphrase:
        raise AssertionError

    for data in (_FAST_LOCKED[:-2], _FAST_LOCKED.replace(b'"v": 1', b'"v": 2')):
        with pytest.raises(KeyFileUnsafe):
            decode_key_file(data, name="worker", unlock=unlock)
    with pytest.raises(KeyFileUnsafe):
        decode_key_file(_FAST_LOCKED, name="alice", unlock=unlock)


@pytest.mark.parametrize("words", ["hunter2", _WORDS.upper(), _WORDS + " ", "é"])
def test_a_wrong_passphrase_is_refused_unshown(words: str) -> None:
    """It is told what it may be, and neither file nor passphrase is quoted."""
    with pytest.raises(
        KeyLocked, match="the passphrase does not open it, or its file was changed"
    ) as caught:
        _opened(_FAST_LOCKED, words)
    said = _everything_said(caught.value)

    assert "'worker'" in said
    fields = json.loads(_FAST_LOCKED)
    for text in (words, _WORDS, *(fields[name][:8] for name in ("secret", "salt", "public"))):
        assert text not in said
    assert "SEALPOINT_PASSPHRASE" in caught.value.hint


def test_a_missing_passphrase_is_said_in_one_sentence() -> None:
    """Without anybody to ask, the key stays locked."""
    with pytest.raises(KeyLocked) as caught:
        decode_key_file(_LOCKED, name="worker")

    assert caught.value.message == "key 'worker': it is locked by a passphrase, and none was given"


def test_one_text_typed_in_two_ways_opens_one_file() -> None:
    """What a keyboard composes and what another leaves apart are one passphrase."""
    data = _fast(words="\u00e9t\u00e9")

    assert _opened(data, "e\u0301te\u0301").public == _KEY.public
    with pytest.raises(KeyLocked):
        _opened(data, "ete")


def test_every_changed_bit_of_a_locked_file_is_refused() -> None:
    """Each bit of each byte: the name, the public half, the salt, the secret, a brace."""
    outcomes = set()
    for position in range(len(_FAST_LOCKED) * 8):
        changed = bytearray(_FAST_LOCKED)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises((KeyFileUnsafe, KeyLocked)) as caught:
            _opened(bytes(changed))
        outcomes.add(type(caught.value))

    assert outcomes == {KeyFileUnsafe, KeyLocked}


@pytest.mark.parametrize("keep", range(0, len(_FAST_LOCKED), 7))
def test_a_cut_locked_file_is_refused(keep: int) -> None:
    """Whatever is missing at its end, or comes twice."""
    with pytest.raises(KeyFileUnsafe):
        _opened(_FAST_LOCKED[:keep])
    with pytest.raises(KeyFileUnsafe):
        _opened(_FAST_LOCKED + _FAST_LOCKED[keep:])


@pytest.mark.parametrize("field", ["name", "public", "salt", "nonce", "secret"])
def test_no_part_of_another_key_file_fits(field: str) -> None:
    """Two keys under one passphrase: nothing of one can be put into the other."""
    draws = iter([b"\x01" * 32, b"\x02" * 12])
    other = encode_locked_key_file(
        PrivateKey("alice", b"\x07" * 32), Passphrase(_WORDS), lambda _: next(draws), scrypt_n=_FAST
    )
    mixed = {**json.loads(_FAST_LOCKED), field: json.loads(other)[field]}
    data = json.dumps(mixed, indent=2).encode() + b"\n"

    assert data != _FAST_LOCKED
    with pytest.raises(KeyLocked):
        _opened(data, name=mixed["name"])


def test_a_renamed_locked_file_is_refused() -> None:
    """Renaming a key gives its holder no other name, neither outside nor inside the file."""
    with pytest.raises(KeyFileUnsafe, match="its file holds the key of another name"):
        _opened(_FAST_LOCKED, name="alice")
    with pytest.raises(KeyLocked):
        _opened(_FAST_LOCKED.replace(b'"worker"', b'"alice"'), name="alice")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"scrypt-chacha20poly1305"', '"none"'),
        ('"scrypt-chacha20poly1305"', '"scrypt"'),
        ('"ed25519"', '"rsa"'),
        ('"v": 1', '"v": 1, "n": 2'),
        ('"v": 1', '"v": 1.0'),
        ('"salt": "00', '"salt": "'),
        ('"salt": "00', '"salt": "0000'),
        ('"nonce": "00', '"nonce": "'),
        ('"nonce": "000102030405060708090a0b",\n  ', ""),
        ('"secret": "80', '"secret": "'),
        ('"secret": "80', '"secret": "8080'),
        ("0a0b0c", "0A0b0c"),
        ('"salt": "', '"salt": " '),
        ('"enc"', '"enc" '),
        ("}\n", "}"),
    ],
)
def test_another_shape_of_a_locked_file_is_refused(old: str, new: str) -> None:
    """There is one spelling, the sizes are fixed, and no field says what opening costs."""
    changed = _FAST_LOCKED.decode().replace(old, new, 1).encode()

    assert changed != _FAST_LOCKED
    for read in (_opened, lambda data: describe_key_file(data, name="worker")):
        with pytest.raises(KeyFileUnsafe):
            read(changed)


def test_a_plain_file_with_fields_of_a_locked_one_is_refused() -> None:
    """Salt and nonce have no place in it, empty or not."""
    for extra in ('"salt": "",', '"nonce": "",', '"salt": "00",'):
        changed = _GOOD.replace(b'"secret"', f'{extra}\n  "secret"'.encode())
        with pytest.raises(KeyFileUnsafe):
            _opened(changed)


def test_a_locked_file_whose_public_half_is_no_key_is_refused() -> None:
    """Listing keys meets it without opening it."""
    for public in ("00" * 32, str(_KEY.public).upper(), "x"):
        changed = _FAST_LOCKED.replace(str(_KEY.public).encode(), public.encode())
        with pytest.raises(KeyFileUnsafe, match="its public half is missing or malformed"):
            describe_key_file(changed, name="worker")


def test_a_file_sealed_with_another_public_half_is_refused() -> None:
    """Even whoever has the passphrase cannot make a file whose halves do not match."""
    liar = PrivateKey("worker", b"\x07" * 32)
    liar.public = _KEY.public
    data = _fast(liar)

    with pytest.raises(KeyFileUnsafe, match="public half belongs to another"):
        _opened(data)


def test_salt_and_nonce_are_drawn_anew() -> None:
    """The same key under the same passphrase is never the same file; too little is refused."""
    draws = iter([b"\x01" * 32, b"\x02" * 12])
    other = encode_locked_key_file(_KEY, Passphrase(_WORDS), lambda _: next(draws), scrypt_n=_FAST)

    assert json.loads(other)["secret"] != json.loads(_FAST_LOCKED)["secret"]
    for short in (lambda count: b"x" * (count - 1), lambda _: b"x" * 32):
        with pytest.raises(KeyFileUnsafe, match="random bytes"):
            encode_locked_key_file(_KEY, Passphrase(_WORDS), short, scrypt_n=_FAST)
