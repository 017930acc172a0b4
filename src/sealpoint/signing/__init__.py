# SPDX-License-Identifier: Apache-2.0
"""Who vouches: keys, the exact bytes that are signed, the root, the pin, the roster, approvals.

Everything here is pure: files are read and written by `sealpoint.config`.
"""

from sealpoint.signing._attestation import (
    Attestation,
    Tally,
    Verdict,
    attest,
    check_attestation,
    count,
    verify_attestation,
)
from sealpoint.signing._keyfile import (
    KeyFacts,
    Passphrase,
    Unlock,
    decode_key_file,
    describe_key_file,
    encode_key_file,
    encode_locked_key_file,
)
from sealpoint.signing._keys import (
    PrivateKey,
    PublicKey,
    RemoteKey,
    Signer,
    SigningKey,
    public_key_of,
)
from sealpoint.signing._roster import (
    ANY_NAMESPACE,
    STOPPED,
    Cutoff,
    Identity,
    Pool,
    Role,
    Roster,
    RosterDocument,
    RosterKey,
)
from sealpoint.signing._seals import (
    ENTRY_TYPE,
    STATEMENT_TYPE,
    Seal,
    encode_seals,
    pae,
    parse_seals,
)
from sealpoint.signing._statement import (
    DIGITS_LEAST,
    DIGITS_MAX,
    Action,
    Statement,
    begins_digest,
    check_reason,
    check_reason_size,
)
from sealpoint.signing._trust import Root, RootDocument, TrustPin

__all__ = [
    "ANY_NAMESPACE",
    "DIGITS_LEAST",
    "DIGITS_MAX",
    "ENTRY_TYPE",
    "STATEMENT_TYPE",
    "STOPPED",
    "Action",
    "Attestation",
    "Cutoff",
    "Identity",
    "KeyFacts",
    "Passphrase",
    "Pool",
    "PrivateKey",
    "PublicKey",
    "RemoteKey",
    "Role",
    "Root",
    "RootDocument",
    "Roster",
    "RosterDocument",
    "RosterKey",
    "Seal",
    "Signer",
    "SigningKey",
    "Statement",
    "Tally",
    "TrustPin",
    "Unlock",
    "Verdict",
    "attest",
    "begins_digest",
    "check_attestation",
    "check_reason",
    "check_reason_size",
    "count",
    "decode_key_file",
    "describe_key_file",
    "encode_key_file",
    "encode_locked_key_file",
    "encode_seals",
    "pae",
    "parse_seals",
    "public_key_of",
    "verify_attestation",
]
