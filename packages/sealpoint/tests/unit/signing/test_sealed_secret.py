# SPDX-License-Identifier: Apache-2.0
"""Passphrases have one form and never show themselves; what they seal opens with them alone."""

import traceback
import unicodedata

import pytest
from cryptography.exceptions import UnsupportedAlgorithm

from sealpoint.errors import ConfigError, SealpointError, UsageError
from sealpoint.signing import Passphrase
from sealpoint.signing._key_file_format import SCRYPT_N, seal_secret, unseal_secret

_FAST = 16  # what scrypt costs here; the frozen key file has the real cost
_SECRET = bytes(range(32))
_RIGHT = Passphrase("right")
_BESIDE = {"salt": b"s" * 32, "nonce": b"n" * 12, "associated": b"beside"}
_SEALED = seal_secret(_SECRET, _RIGHT, **_BESIDE, scrypt_n=_FAST)


def _everything_said(error: BaseException | None) -> str:
    """All text of an error and of whatever is chained to it, shown or suppressed."""
    said = []
    while error is not None:
        said += [repr(error), str(error), *traceback.format_exception(error)]
        error = error.__cause__ or error.__context__
    return "\n".join(said)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("secret", b"secret"),
        (b"secret", b"secret"),
        (" with spaces ", b" with spaces "),
        ("é", b"\xc3\xa9"),
        ("e\u0301", b"\xc3\xa9"),
        (b"e\xcc\x81", b"\xc3\xa9"),
        ("\u212b", "Å".encode()),
        ("漢字", "漢字".encode()),
        ("x" * 1024, b"x" * 1024),
    ],
)
def test_a_passphrase_has_one_form(text: str | bytes, expected: bytes) -> None:
    """However it is typed, it is NFC in UTF-8; nothing else of it is changed."""
    assert Passphrase(text).normal_bytes() == expected


def test_compatible_characters_stay_apart() -> None:
    """NFC and not NFKC: a ligature or a full-width letter is another passphrase."""
    for text in ("\ufb01", "\uff41"):
        assert unicodedata.normalize("NFKC", text) != text
        assert Passphrase(text).normal_bytes() == text.encode()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "it is empty"),
        (b"", "it is empty"),
        ("hunter2" * 147, "more than 1024 bytes in UTF-8"),
        ("hunter2é" * 114, "more than 1024 bytes in UTF-8"),
        ("hunter2\n", "one line of text, found control characters"),
        ("hunter2\0", "one line of text, found control characters"),
        ("hunter2\x1b[D", "one line of text, found control characters"),
        ("hunter2\x85", "one line of text, found control characters"),
        ("hunter2\ud800", "text in UTF-8, found others"),
        (b"hunter2\xff", "text in UTF-8, found others"),
        (bytearray(b"hunter2"), "text in UTF-8, found bytearray"),
        (None, "text in UTF-8, found NoneType"),
    ],
)
def test_what_is_no_passphrase_is_refused_unshown(text: str, complaint: str) -> None:
    """Empty, too long, or no line of text; the error names its source and none of it."""
    with pytest.raises(UsageError, match=complaint) as caught:
        Passphrase(text, source="the source")
    said = _everything_said(caught.value)

    assert caught.value.message.startswith("the source: ")
    # The traceback quotes lines of this very file, which hold none of it but the parameter.
    assert "hunter2" not in said


def test_a_passphrase_does_not_show_itself() -> None:
    """Nothing that prints an object or what holds it gets at the text."""
    assert repr(_RIGHT) == str(_RIGHT) == f"{_RIGHT}" == "Passphrase(...)"
    assert repr([_RIGHT]) == "[Passphrase(...)]"


def test_what_was_sealed_opens_with_its_passphrase_alone() -> None:
    """The right one gives the secret, every other one nothing."""
    assert unseal_secret(_SEALED, _RIGHT, **_BESIDE, scrypt_n=_FAST) == _SECRET
    for text in ("Right", "right ", "wrong", "r"):
        assert unseal_secret(_SEALED, Passphrase(text), **_BESIDE, scrypt_n=_FAST) is None


@pytest.mark.parametrize("name", ["salt", "nonce", "associated"])
def test_what_stands_beside_is_bound(name: str) -> None:
    """A changed salt, nonce or associated data opens nothing."""
    changed = {**_BESIDE, name: _BESIDE[name][:-1] + b"x"}

    assert unseal_secret(_SEALED, _RIGHT, **changed, scrypt_n=_FAST) is None


def test_every_changed_bit_of_what_was_sealed_is_noticed() -> None:
    """Secret and tag, bit by bit, and everything that is shorter or longer."""
    for position in range(len(_SEALED) * 8):
        changed = bytearray(_SEALED)
        changed[position // 8] ^= 1 << position % 8
        assert unseal_secret(bytes(changed), _RIGHT, **_BESIDE, scrypt_n=_FAST) is None
    for other in (_SEALED[:-1], _SEALED + b"\0", b"", _SEALED[:8]):
        assert unseal_secret(other, _RIGHT, **_BESIDE, scrypt_n=_FAST) is None


def test_the_cost_is_part_of_the_key() -> None:
    """What was sealed at one cost does not open at another: no file can be made cheap."""
    assert SCRYPT_N == 131_072
    assert unseal_secret(_SEALED, _RIGHT, **_BESIDE, scrypt_n=2 * _FAST) is None


def test_an_openssl_without_the_algorithm_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some builds leave scrypt out: one sentence of ours, and not theirs."""

    def missing(**_: object) -> None:
        raise UnsupportedAlgorithm("no scrypt here")

    monkeypatch.setattr("cryptography.hazmat.primitives.kdf.scrypt.Scrypt", missing)

    with pytest.raises(ConfigError, match="expected scrypt-chacha20poly1305") as caught:
        seal_secret(_SECRET, _RIGHT, **_BESIDE, scrypt_n=_FAST)
    assert isinstance(caught.value, SealpointError)
    assert "plain key" in caught.value.hint
