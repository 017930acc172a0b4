# SPDX-License-Identifier: Apache-2.0
"""A secret under a passphrase: scrypt makes the key, ChaCha20-Poly1305 seals.

What scrypt costs is fixed here, under the name of the encryption: a file never chooses it, so
that none can ask for no work or for all memory. Another cost will be another name. A wrong
passphrase and a changed file cannot be told apart. No passphrase is in a message, a `repr` or a
chained error.
"""

import unicodedata
from collections.abc import Callable

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from sealpoint.errors import ConfigError, UsageError

__all__ = [
    "ENCRYPTION",
    "NONCE_BYTES",
    "SALT_BYTES",
    "SCRYPT_N",
    "TAG_BYTES",
    "Passphrase",
    "Unlock",
    "seal_secret",
    "unseal_secret",
]

ENCRYPTION = "scrypt-chacha20poly1305"
SCRYPT_N = 2**17  # with r = 8: 128 MiB, and about a third of a second
SALT_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
_SCRYPT_R = 8
_SCRYPT_P = 1
_KEY_BYTES = 32
_PASSPHRASE_BYTES_MAX = 1024


class Passphrase:
    """One line of text that opens a key, in the one form in which it counts: NFC, in UTF-8.

    One text can be typed as different characters, depending on the keyboard; normalised it is
    the same everywhere. Control characters are refused, since nobody types them on purpose.

    Args:
        text: The text, or its UTF-8.
        source: Where it came from, for messages.

    Raises:
        UsageError: It is empty, too long, or no line of text.
    """

    __slots__ = ("_raw",)

    def __init__(self, text: str | bytes, *, source: str = "passphrase") -> None:
        given: object = text
        decoded = _decoded(given)
        if decoded is None:
            found = "others" if isinstance(given, str | bytes) else type(given).__name__
            raise UsageError(f"{source}: expected text in UTF-8, found {found}")
        if not decoded:
            raise UsageError(f"{source}: expected at least one character, found none")
        if len(decoded.encode()) > _PASSPHRASE_BYTES_MAX:
            raise UsageError(
                f"{source}: expected at most {_PASSPHRASE_BYTES_MAX} bytes in UTF-8, found more"
            )
        if any(unicodedata.category(char) == "Cc" for char in decoded):
            raise UsageError(f"{source}: expected one line of text, found control characters")
        self._raw = unicodedata.normalize("NFC", decoded).encode()

    def normal_bytes(self) -> bytes:
        """The bytes that scrypt is given."""
        return self._raw

    def __repr__(self) -> str:
        return "Passphrase(...)"


Unlock = Callable[[str], Passphrase]
"""Gives the passphrase of the key of a name; called only for a key that is encrypted."""


def seal_secret(
    secret: bytes,
    passphrase: Passphrase,
    *,
    salt: bytes,
    nonce: bytes,
    associated: bytes,
    scrypt_n: int = SCRYPT_N,
) -> bytes:
    """Encrypt a secret, and bind it to what stands beside it.

    Args:
        secret: What nobody else may have.
        passphrase: What opens it again.
        salt: Random bytes, drawn anew for every call.
        nonce: As the salt.
        associated: What is not secret and must not change either.
        scrypt_n: The cost, for tests alone.
    """
    cipher = _cipher(passphrase, salt, scrypt_n)
    return cipher.encrypt(nonce, secret, associated)


def unseal_secret(
    sealed: bytes,
    passphrase: Passphrase,
    *,
    salt: bytes,
    nonce: bytes,
    associated: bytes,
    scrypt_n: int = SCRYPT_N,
) -> bytes | None:
    """What `seal_secret` was given; None if the passphrase is another or anything was changed."""
    cipher = _cipher(passphrase, salt, scrypt_n)
    try:
        return cipher.decrypt(nonce, sealed, associated)
    except InvalidTag:
        return None


def _cipher(passphrase: Passphrase, salt: bytes, scrypt_n: int) -> ChaCha20Poly1305:
    try:
        scrypt = Scrypt(salt=salt, length=_KEY_BYTES, n=scrypt_n, r=_SCRYPT_R, p=_SCRYPT_P)
        return ChaCha20Poly1305(scrypt.derive(passphrase.normal_bytes()))
    except UnsupportedAlgorithm as exc:
        raise ConfigError(
            f"encrypted key: expected {ENCRYPTION} in this machine's OpenSSL, found it without",
            hint="Some builds and modes of OpenSSL leave it out; use another, or a plain key.",
        ) from exc


def _decoded(given: object) -> str | None:
    """The text, or None.

    A failure would quote the passphrase, and `raise ... from None` would hide it without letting
    it go: so no error is raised while it is being handled.
    """
    try:
        if isinstance(given, bytes):
            return given.decode()
        if isinstance(given, str):
            given.encode()
            return given
    except UnicodeError:
        pass
    return None
