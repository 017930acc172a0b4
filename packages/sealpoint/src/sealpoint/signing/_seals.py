# SPDX-License-Identifier: Apache-2.0
"""Seals: the signatures that are stored with an entry, each with the id of its key.

The key id is only a hint about which key of the roster to try. The roster states the algorithm of
each key; a seal has no field for it, so data can never choose one.
"""

import re
from binascii import unhexlify
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from sealpoint.errors import Edited, IdMalformed
from sealpoint.ids import KeyId
from sealpoint.limits import SEALS_BYTES_MAX, SEALS_MAX
from sealpoint.signing._remote_keys import SigningKey

_PAIRS = msgspec.json.Decoder(list[tuple[str, str]])
_encode = msgspec.json.Encoder().encode


class Seal(NamedTuple):
    """One signature and the id of the key that supposedly made it."""

    key: KeyId
    signature: bytes


_ONE_SEAL = re.compile(rb'\[\["([0-9a-f]{64})","([0-9a-f]{128})"\]\]')
"""The stored form of a single seal, which nearly all entries have: it has no other spelling."""


def encode_seals(seals: Sequence[Seal]) -> bytes:
    """Encode seals in their stored form."""
    return _encode([(key.raw.hex(), signature.hex()) for key, signature in seals])


def encode_seal(signer: SigningKey, message: bytes) -> bytes:
    """Sign a message that `pae` framed; return the stored form of that one seal.

    Raises:
        SignerFailed: A key outside this process did not sign it.
    """
    return _encode(((signer.key, signer.sign(message).hex()),))


@lru_cache(maxsize=512)  # the seals of an entry are read ahead, and again when it is verified
def parse_seals(data: bytes) -> tuple[Seal, ...]:
    """Read the stored form; only what `encode_seals` would write is accepted.

    Raises:
        Edited: The bytes are not the encoding of 1 to SEALS_MAX seals by different keys.
    """
    if (one := _ONE_SEAL.fullmatch(data)) is not None:
        key, signature = one.groups()
        return (Seal(KeyId(unhexlify(key)), unhexlify(signature)),)
    if len(data) > SEALS_BYTES_MAX:
        raise Edited(f"seals: expected at most {SEALS_BYTES_MAX} bytes, found {len(data)}")
    try:
        seals = tuple(
            Seal(KeyId(bytes.fromhex(key)), bytes.fromhex(signature))
            for key, signature in _PAIRS.decode(data)
        )
    except (ValueError, msgspec.MsgspecError, RecursionError, IdMalformed) as exc:
        raise Edited(
            "seals: expected pairs of key id and signature, found bytes of another form"
        ) from exc
    if not 1 <= len(seals) <= SEALS_MAX or len({seal.key for seal in seals}) != len(seals):
        raise Edited(f"seals: expected 1 to {SEALS_MAX} by different keys, found {len(seals)}")
    if encode_seals(seals) != data:
        raise Edited("seals: they are not in canonical form")
    return seals
