# SPDX-License-Identifier: Apache-2.0
"""Who vouches: keys, the exact bytes that are signed, the root, the pin and the roster.

Everything here is pure: files are read and written by `sealpoint.config`.
"""

from sealpoint.signing._keyfile import decode_key_file, encode_key_file
from sealpoint.signing._keys import PublicKey, Signer
from sealpoint.signing._pae import ENTRY_TYPE, pae
from sealpoint.signing._roster import (
    ANY_NAMESPACE,
    Identity,
    Pool,
    Role,
    Roster,
    RosterDocument,
    RosterKey,
)
from sealpoint.signing._seals import Seal, encode_seals, parse_seals
from sealpoint.signing._trust import Root, TrustPin

__all__ = [
    "ANY_NAMESPACE",
    "ENTRY_TYPE",
    "Identity",
    "Pool",
    "PublicKey",
    "Role",
    "Root",
    "Roster",
    "RosterDocument",
    "RosterKey",
    "Seal",
    "Signer",
    "TrustPin",
    "decode_key_file",
    "encode_key_file",
    "encode_seals",
    "pae",
    "parse_seals",
]
