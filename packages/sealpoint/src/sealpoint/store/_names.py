# SPDX-License-Identifier: Apache-2.0
"""Names that people choose, and the keys under which anchor and storage know them.

Two names that a person cannot tell apart would be two threads, and a person could pause the wrong
one. So a name has no space at its ends, no invisible characters, and one encoding of each letter.
Names that a framework makes, such as a lane, are taken unchanged.

The anchor's slot is an HMAC under a secret that is stored with the keys, so neither store nor
anchor can be searched for a name. The storage's label is a plain digest: it is only a hint, is
stored along with the name itself, and is removed when the name is erased.
"""

import hashlib
import hmac
import re
import unicodedata

from sealpoint.errors import NameInvalid
from sealpoint.ledger import RESERVED
from sealpoint.limits import LANE_BYTES_MAX, NAME_BYTES_MAX
from sealpoint.world import visible

_PLAIN = re.compile(r"[0-9A-Za-z_.:/-]+")
"""Simple names without invisible characters, the usual case."""


def check_name(text: object, what: str) -> str:
    """Refuse a name that could not be shown, stored or told apart.

    Raises:
        NameInvalid: It is not a text, empty, too long, contains characters that do not print or are
            invisible, has a space at one end, or is not in Unicode's NFC form.
    """
    if type(text) is str and _PLAIN.fullmatch(text) and len(text) <= NAME_BYTES_MAX:
        return text
    name = _check_text(text, what, NAME_BYTES_MAX)
    if name != name.strip():
        raise NameInvalid(
            f"{what}: it begins or ends with a space",
            hint="Take it away: names that differ by such a space cannot be told apart.",
        )
    if not unicodedata.is_normalized("NFC", name):
        raise NameInvalid(
            f"{what}: its letters are not composed as Unicode's NFC has them",
            hint='Give unicodedata.normalize("NFC", name): two spellings of a letter look alike.',
        )
    if visible(name) != name:
        raise NameInvalid(
            f"{what}: it has characters that do not show",
            hint="Take them away: names that differ by what does not show cannot be told apart.",
        )
    return name


def is_reserved(name: str) -> bool:
    """Whether a thread of this name is Sealpoint's own, and not one of the application's."""
    return name.startswith(RESERVED)


def check_path(text: object, what: str) -> str:
    """Refuse a name that could not be stored; for names of lanes and tasks by frameworks.

    Raises:
        NameInvalid: It is not a text, empty, too long, or contains characters that do not print.
    """
    return _check_text(text, what, LANE_BYTES_MAX)


def _check_text(text: object, what: str, bytes_max: int) -> str:
    if not isinstance(text, str):
        raise NameInvalid(f"{what}: expected a str, found {type(text).__name__}")
    if not text or not text.isprintable() or len(text.encode()) > bytes_max:
        found = f"{len(text.encode())} bytes" if text.isprintable() else "some that does not print"
        raise NameInvalid(
            f"{what}: expected 1 to {bytes_max} bytes of printable text, found {found}"
        )
    return str(text)


def _framed(*parts: bytes) -> bytes:
    """Prefix each part with its length, so that no two lists give the same bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def thread_slot(secret: bytes, namespace: str, name: str) -> bytes:
    """Return the anchor slot of a thread."""
    message = _framed(b"sealpoint thread slot", namespace.encode(), name.encode())
    return hmac.digest(secret, message, "sha256")


def store_slot(secret: bytes) -> bytes:
    """Return the anchor slot of the store chain."""
    return hmac.digest(secret, _framed(b"sealpoint store slot"), "sha256")


def label_of(store: bytes, namespace: str, name: str) -> bytes:
    """Return the storage's hint from a name to its thread."""
    message = _framed(b"sealpoint label", store, namespace.encode(), name.encode())
    return hashlib.sha256(message).digest()
