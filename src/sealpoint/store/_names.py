# SPDX-License-Identifier: Apache-2.0
"""Names that people give, and the keys under which anchor and storage know them.

The anchor's slot is an HMAC under a secret that lies with the keys, so that neither store nor
anchor can be searched for a name. The storage's label is a plain digest: it is only a hint, lies
beside the name itself, and goes when the name is erased.
"""

import hashlib
import hmac

from sealpoint.errors import NameInvalid
from sealpoint.limits import NAME_BYTES_MAX

__all__ = ["check_name", "label_of", "store_slot", "thread_slot"]


def check_name(text: object, what: str, bytes_max: int = NAME_BYTES_MAX) -> str:
    """Refuse what could not be shown, stored or told apart.

    Raises:
        NameInvalid: It is no text, empty, too long, or holds characters that do not print.
    """
    if not isinstance(text, str):
        raise NameInvalid(f"{what}: expected a str, found {type(text).__name__}")
    if not text or not text.isprintable() or len(text.encode()) > bytes_max:
        found = "another" if text else "none"
        raise NameInvalid(
            f"{what}: expected 1 to {bytes_max} bytes of printable text, found {found}"
        )
    return str(text)


def _framed(*parts: bytes) -> bytes:
    """The parts with their lengths in front, so that no two lists give the same bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def thread_slot(secret: bytes, namespace: str, name: str) -> bytes:
    """The anchor slot of a thread."""
    message = _framed(b"sealpoint thread slot", namespace.encode(), name.encode())
    return hmac.digest(secret, message, "sha256")


def store_slot(secret: bytes) -> bytes:
    """The anchor slot of the store chain."""
    return hmac.digest(secret, _framed(b"sealpoint store slot"), "sha256")


def label_of(store: bytes, namespace: str, name: str) -> bytes:
    """The storage's hint from a name to its thread."""
    message = _framed(b"sealpoint label", store, namespace.encode(), name.encode())
    return hashlib.sha256(message).digest()
