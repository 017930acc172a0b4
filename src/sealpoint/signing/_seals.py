# SPDX-License-Identifier: Apache-2.0
"""The signatures beside a header: a JSON list of pairs, key id and signature in hexadecimal.

A key id is only a hint at which key of the roster to try. The algorithm is the key's own, as the
roster says; a seal has no field for it, so data can never choose one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from sealpoint.errors import Edited, IdMalformed
from sealpoint.ids import KeyId
from sealpoint.limits import SEALS_BYTES_MAX, SEALS_MAX

_PAIRS = msgspec.json.Decoder(list[tuple[str, str]])
_encode = msgspec.json.Encoder().encode


class Seal(NamedTuple):
    """One signature and the id of the key that is said to have made it."""

    key: KeyId
    signature: bytes


def encode_seals(seals: Sequence[Seal]) -> bytes:
    """The stored form."""
    return _encode([(key.raw.hex(), signature.hex()) for key, signature in seals])


def parse_seals(data: bytes) -> tuple[Seal, ...]:
    """Read the stored form; only what `encode_seals` would write is accepted.

    Raises:
        Edited: The bytes are not the encoding of 1 to SEALS_MAX seals by different keys.
    """
    if len(data) > SEALS_BYTES_MAX:
        raise Edited(f"seals: expected at most {SEALS_BYTES_MAX} bytes, found {len(data)}")
    try:
        seals = tuple(
            Seal(KeyId(bytes.fromhex(key)), bytes.fromhex(signature))
            for key, signature in _PAIRS.decode(data)
        )
    except (ValueError, msgspec.MsgspecError, RecursionError, IdMalformed) as exc:
        raise Edited("seals: expected pairs of key id and signature, found other bytes") from exc
    if not 1 <= len(seals) <= SEALS_MAX or len({seal.key for seal in seals}) != len(seals):
        raise Edited(f"seals: expected 1 to {SEALS_MAX} by different keys, found {len(seals)}")
    if encode_seals(seals) != data:
        raise Edited("seals: expected the one spelling of them, found another")
    return seals


# ---------------------------------------------------------------------- pae
# The exact bytes that are signed: DSSE's pre-authentication encoding.
#
# Type and payload are framed by their byte lengths, so no two pairs give the same bytes, and a
# signature over one type is never one over another. The payload is the stored bytes as they lie;
# nothing is serialised again in order to verify it.


ENTRY_TYPE = b"application/vnd.sealpoint.entry.v1+json"
"""The type of a ledger entry's header. What kind of entry it is, the header itself says."""

STATEMENT_TYPE = b"application/vnd.sealpoint.statement.v1+json"
"""The type of what an approver signs: a statement's digest, a verdict and a reason."""


def pae(payload_type: bytes, payload: bytes) -> bytes:
    """Frame a payload for signing."""
    return b"DSSEv1 %d %b %d %b" % (len(payload_type), payload_type, len(payload), payload)
