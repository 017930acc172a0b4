# SPDX-License-Identifier: Apache-2.0
"""The bytes of a key file: JSON with the name, the public half and the secret half.

The secret half is stored in plain form, or encrypted under a passphrase and bound to all the rest
of the file. `sealpoint.config` checks the owner and the mode of the file when it opens the file.
Decoding derives the public half again and compares it, so that a damaged file is refused before it
signs anything.

Encryption of the secret: scrypt derives the key from the passphrase, and ChaCha20-Poly1305
encrypts.

The name of the encryption implies the cost of scrypt: a file never chooses it, so that no file can
ask for no work or for all memory. Another cost will get another name. A wrong passphrase and a
changed file cannot be distinguished. No message, `repr` or chained error contains a passphrase.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from sealpoint.errors import ConfigError, KeyFileUnsafe, KeyLocked, NotTrusted, UsageError
from sealpoint.signing._keys import PrivateKey, PublicKey

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
    """One line of text that opens a key, in its only form: NFC, in UTF-8.

    A keyboard may enter the same text as different characters; normalized it is the same
    everywhere. Control characters are refused, since no one types them on purpose.

    Args:
        text: The text, or its UTF-8.
        source: Where it came from, for messages.

    Raises:
        UsageError: It is empty, too long, or not one line of text.
    """

    __slots__ = ("_raw",)

    def __init__(self, text: str | bytes, *, source: str = "passphrase") -> None:
        given: object = text
        decoded = _decoded(given)
        if decoded is None:
            found = "others" if isinstance(given, str | bytes) else type(given).__name__
            raise UsageError(f"{source}: expected text in UTF-8, found {found}")
        if not decoded:
            raise UsageError(f"{source}: it is empty")
        if len(decoded.encode()) > _PASSPHRASE_BYTES_MAX:
            raise UsageError(f"{source}: it has more than {_PASSPHRASE_BYTES_MAX} bytes in UTF-8")
        if any(unicodedata.category(char) == "Cc" for char in decoded):
            raise UsageError(f"{source}: expected one line of text, found control characters")
        self._raw = unicodedata.normalize("NFC", decoded).encode()

    def normal_bytes(self) -> bytes:
        """Return the input of scrypt."""
        return self._raw

    def __repr__(self) -> str:
        return "Passphrase(...)"


Unlock = Callable[[str], Passphrase]
"""Returns the passphrase for the key of a name; called only for an encrypted key."""


def seal_secret(
    secret: bytes,
    passphrase: Passphrase,
    *,
    salt: bytes,
    nonce: bytes,
    associated: bytes,
    scrypt_n: int = SCRYPT_N,
) -> bytes:
    """Encrypt a secret, and bind it to its associated data.

    Args:
        secret: The secret.
        passphrase: The passphrase that decrypts it.
        salt: Random bytes, new for every call.
        nonce: As the salt.
        associated: Data that is not secret but must not change either.
        scrypt_n: The cost, for tests alone.
    """
    sealed: bytes = _cipher(passphrase, salt, scrypt_n).encrypt(nonce, secret, associated)
    return sealed


def unseal_secret(
    sealed: bytes,
    passphrase: Passphrase,
    *,
    salt: bytes,
    nonce: bytes,
    associated: bytes,
    scrypt_n: int = SCRYPT_N,
) -> bytes | None:
    """Decrypt the secret; None if the passphrase is wrong or anything was changed."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see _cipher

    cipher = _cipher(passphrase, salt, scrypt_n)
    try:
        secret: bytes = cipher.decrypt(nonce, sealed, associated)
    except InvalidTag:
        return None
    return secret


def _cipher(passphrase: Passphrase, salt: bytes, scrypt_n: int) -> Any:
    # Imported here: loading the library takes longer than a command that needs no encrypted key.
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt  # noqa: PLC0415

    try:
        scrypt = Scrypt(salt=salt, length=_KEY_BYTES, n=scrypt_n, r=_SCRYPT_R, p=_SCRYPT_P)
        return ChaCha20Poly1305(scrypt.derive(passphrase.normal_bytes()))
    except UnsupportedAlgorithm as exc:
        raise ConfigError(
            f"encrypted key: expected {ENCRYPTION} in this machine's OpenSSL, found it without",
            hint="Some builds and modes of OpenSSL leave it out; use another, or a plain key.",
        ) from exc


def _decoded(given: object) -> str | None:
    """Return the text, or None.

    An error would quote the passphrase, and `raise ... from None` would hide it but keep a
    reference to it. So this function raises no error while it handles one.
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


_VERSION = 1
_SCHEME = "ed25519"
_PLAIN = "none"
_ENCRYPTIONS = (_PLAIN, ENCRYPTION)
_SECRET_BYTES = 32
# The sizes of salt, nonce and secret.
_SIZES = {
    _PLAIN: (0, 0, _SECRET_BYTES),
    ENCRYPTION: (SALT_BYTES, NONCE_BYTES, _SECRET_BYTES + TAG_BYTES),
}
_ABSENT = ""
_BYTES_MAX = 16 * 1024


class _KeyDocument(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    v: int
    name: str
    scheme: str
    public: str
    enc: str
    # The fields of an encrypted key; a plain file has neither.
    salt: str = _ABSENT
    nonce: str = _ABSENT
    secret: str

    def __repr__(self) -> str:
        return "_KeyDocument(...)"


@dataclass(frozen=True, slots=True, repr=False)
class _Parsed:
    document: _KeyDocument
    secret: bytes
    salt: bytes
    nonce: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFacts:
    """The facts that a key file states without being opened."""

    public: PublicKey
    """For an encrypted key, only opening proves this."""
    encrypted: bool


_DECODER = msgspec.json.Decoder(_KeyDocument)


def encode_key_file(signer: PrivateKey) -> bytes:
    """Encode the plain key file of `signer`: anyone who can read it has the key."""
    return _format(_document(signer, enc=_PLAIN, secret=signer.secret_bytes().hex()))


def encode_locked_key_file(
    signer: PrivateKey,
    passphrase: Passphrase,
    random_bytes: Callable[[int], bytes],
    *,
    scrypt_n: int = SCRYPT_N,
) -> bytes:
    """Encode the encrypted key file of `signer`.

    Args:
        signer: The key.
        passphrase: The passphrase that decrypts it.
        random_bytes: A source of randomness such as `os.urandom`.
        scrypt_n: The cost, for tests alone.

    Raises:
        KeyFileUnsafe: The source returned too few bytes.
    """
    salt, nonce = random_bytes(SALT_BYTES), random_bytes(NONCE_BYTES)
    if (len(salt), len(nonce)) != (SALT_BYTES, NONCE_BYTES):
        raise KeyFileUnsafe(
            f"key {signer.name!r}: expected {SALT_BYTES} and {NONCE_BYTES} random bytes, "
            f"found {len(salt)} and {len(nonce)}"
        )
    document = _document(signer, enc=ENCRYPTION, salt=salt.hex(), nonce=nonce.hex(), secret=_ABSENT)
    sealed = seal_secret(
        signer.secret_bytes(),
        passphrase,
        salt=salt,
        nonce=nonce,
        associated=_beside(document),
        scrypt_n=scrypt_n,
    )
    return _format(msgspec.structs.replace(document, secret=sealed.hex()))


def decode_key_file(
    data: bytes, *, name: str, unlock: Unlock | None = None, scrypt_n: int = SCRYPT_N
) -> PrivateKey:
    """Read a key file.

    Args:
        data: Its bytes.
        name: The name that the key must have.
        unlock: Returns the passphrase; called only if the key is encrypted.
        scrypt_n: The cost, for tests alone.

    Raises:
        KeyFileUnsafe: It is not a key file, belongs to another name, or its halves do not match.
        KeyLocked: It is encrypted, and the passphrase is missing or wrong, or the file was changed.
    """
    # (1) Check the whole structure before asking for a passphrase or doing any work.
    parsed = _checked(data, name)
    # (2) Get the secret. The passphrase authenticates everything else in the file as well.
    secret = parsed.secret
    if parsed.document.enc == ENCRYPTION:
        secret = _unsealed(parsed, name, unlock, scrypt_n)
    # (3) Check that the public half belongs to this secret.
    signer = PrivateKey(name, secret)
    if str(signer.public) != parsed.document.public:
        raise KeyFileUnsafe(f"key {name!r}: its public half belongs to another key")
    return signer


def describe_key_file(data: bytes, *, name: str) -> KeyFacts:
    """Read the facts in a key file without its passphrase.

    Raises:
        KeyFileUnsafe: It is not a key file, belongs to another name, or its halves do not match.
    """
    document = _checked(data, name).document
    if document.enc == _PLAIN:
        return KeyFacts(public=decode_key_file(data, name=name).public, encrypted=False)
    return KeyFacts(public=_public(document.public, name), encrypted=True)


def _document(
    signer: PrivateKey, *, enc: str, secret: str, salt: str = _ABSENT, nonce: str = _ABSENT
) -> _KeyDocument:
    return _KeyDocument(
        v=_VERSION,
        name=signer.name,
        scheme=_SCHEME,
        public=str(signer.public),
        enc=enc,
        salt=salt,
        nonce=nonce,
        secret=secret,
    )


def _format(document: _KeyDocument) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _beside(document: _KeyDocument) -> bytes:
    """Return the data that the encryption binds to the secret: the rest of the file."""
    return _format(msgspec.structs.replace(document, secret=_ABSENT))


def _checked(data: bytes, name: str) -> _Parsed:
    """Parse the file; require a key file of this name in the form that this version writes."""
    parsed = _parse(data)
    if parsed is None:
        raise KeyFileUnsafe(f"key {name!r}: expected a key file, found a file of another form")
    document = parsed.document
    # The messages quote no text of the file: in a damaged file, any of it may be the secret.
    if (document.v, document.scheme) != (_VERSION, _SCHEME) or document.enc not in _ENCRYPTIONS:
        raise KeyFileUnsafe(
            f"key {name!r}: expected version {_VERSION}, scheme {_SCHEME}, encryption "
            f"{' or '.join(_ENCRYPTIONS)}, found version {document.v}, or another scheme or "
            "encryption"
        )
    if document.name != name:
        raise KeyFileUnsafe(f"key {name!r}: its file holds the key of another name")
    sizes = (len(parsed.salt), len(parsed.nonce), len(parsed.secret))
    if sizes != _SIZES[document.enc]:
        raise KeyFileUnsafe(
            f"key {name!r}: expected {_SECRET_BYTES} secret bytes, and salt and nonce if they "
            "are encrypted, found other lengths"
        )
    return parsed


def _parse(data: bytes) -> _Parsed | None:
    """Return the document and its bytes, or None if the file is not in the form that we write.

    The cause of an error may quote the file, and `raise ... from None` would hide it but keep a
    reference to it. So this function raises no error while it handles one.
    """
    if len(data) > _BYTES_MAX:
        return None
    try:
        document = _DECODER.decode(data)
        texts = (document.secret, document.salt, document.nonce)
        parsed = _Parsed(document, *map(bytes.fromhex, texts))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if (parsed.secret.hex(), parsed.salt.hex(), parsed.nonce.hex()) != texts:
        return None
    return parsed if _format(document) == data else None


def _unsealed(parsed: _Parsed, name: str, unlock: Unlock | None, scrypt_n: int) -> bytes:
    if unlock is None:
        raise KeyLocked(f"key {name!r}: it is locked by a passphrase, and none was given")
    secret = unseal_secret(
        parsed.secret,
        unlock(name),
        salt=parsed.salt,
        nonce=parsed.nonce,
        associated=_beside(parsed.document),
        scrypt_n=scrypt_n,
    )
    if secret is None:
        raise KeyLocked(f"key {name!r}: the passphrase does not open it, or its file was changed")
    return secret


def _public(text: str, name: str) -> PublicKey:
    try:
        return PublicKey.parse(text)
    except NotTrusted as exc:  # its message quotes nothing
        raise KeyFileUnsafe(f"key {name!r}: its public half is missing or malformed") from exc
