# SPDX-License-Identifier: Apache-2.0
"""The bytes of a key file: JSON with the name, the public and the secret half.

Whether the file itself may be believed (its owner, its mode) is checked where it is opened, in
`sealpoint.config`. The public half is derived again and compared, so that a damaged file is
refused before it signs anything.
"""

import msgspec

from sealpoint.errors import KeyFileUnsafe
from sealpoint.signing._keys import Signer

__all__ = ["decode_key_file", "encode_key_file"]

_VERSION = 1
_SCHEME = "ed25519"
_PLAIN = "none"
_BYTES_MAX = 16 * 1024


class _KeyDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: int
    name: str
    scheme: str
    public: str
    enc: str
    secret: str


_DECODER = msgspec.json.Decoder(_KeyDocument)


def encode_key_file(signer: Signer) -> bytes:
    """The content of the key file of `signer`."""
    document = _KeyDocument(
        _VERSION, signer.name, _SCHEME, str(signer.public), _PLAIN, signer.secret_bytes().hex()
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def decode_key_file(data: bytes, *, name: str) -> Signer:
    """Read a key file.

    Raises:
        KeyFileUnsafe: It is no key file, belongs to another name, or its halves do not match.
    """
    parsed = _parse(data)
    if parsed is None:
        raise KeyFileUnsafe(f"key {name!r}: expected a key file, found other bytes")
    document, secret = parsed
    # No text of the file is quoted: in a damaged one, any of it may be the secret.
    if (document.v, document.scheme, document.enc) != (_VERSION, _SCHEME, _PLAIN):
        raise KeyFileUnsafe(
            f"key {name!r}: expected version {_VERSION}, scheme {_SCHEME}, encryption {_PLAIN}, "
            f"found others (version {document.v})"
        )
    if document.name != name:
        raise KeyFileUnsafe(f"key {name!r}: expected the key of that name, found another's")
    signer = Signer(name, secret)
    if encode_key_file(signer) != data:
        raise KeyFileUnsafe(f"key {name!r}: expected its public half, found another key's")
    return signer


def _parse(data: bytes) -> tuple[_KeyDocument, bytes] | None:
    """The document and its secret, or None.

    The cause of a failure may quote the file, and `raise ... from None` would hide it without
    letting it go: so no error is raised while it is being handled.
    """
    if len(data) > _BYTES_MAX:
        return None
    try:
        document = _DECODER.decode(data)
        return document, bytes.fromhex(document.secret)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
