# SPDX-License-Identifier: Apache-2.0
"""Keys, the exact bytes that are signed, the root, the pin, the roster, and approvals.

Everything here is pure: `sealpoint.config` reads and writes files.
"""

from sealpoint.signing._attestation import (
    Attestation,
    Tally,
    Verdict,
    attest,
    challenge,
    check_attestation,
    count,
    passkey_attestation,
    persons_asking,
    verify_attestation,
)
from sealpoint.signing._key_file_format import (
    KeyFacts,
    Passphrase,
    Unlock,
    decode_key_file,
    describe_key_file,
    encode_key_file,
    encode_locked_key_file,
)
from sealpoint.signing._keys import PrivateKey, PublicKey
from sealpoint.signing._pae import ENTRY_TYPE, STATEMENT_TYPE, pae
from sealpoint.signing._passkey import (
    PASSKEY_ALGORITHMS,
    Passkey,
    PasskeyAlgorithm,
    PasskeyAssertion,
    PasskeyBinding,
)
from sealpoint.signing._remote_keys import RemoteKey, Signer, SigningKey, public_key_of
from sealpoint.signing._root_and_roster import (
    ANY_NAMESPACE,
    STOPPED,
    Cutoff,
    Identity,
    Pool,
    Role,
    Root,
    RootDocument,
    Roster,
    RosterDocument,
    RosterKey,
    TrustPin,
)
from sealpoint.signing._seals import Seal, encode_seal, encode_seals, parse_seals
from sealpoint.signing._signature_workers import Check, SignaturePool, Signed
from sealpoint.signing._statement import (
    DIGITS_LEAST,
    DIGITS_MAX,
    Action,
    Statement,
    begins_digest,
    check_reason,
    check_reason_size,
)

__all__ = [
    "ANY_NAMESPACE",
    "DIGITS_LEAST",
    "DIGITS_MAX",
    "ENTRY_TYPE",
    "PASSKEY_ALGORITHMS",
    "STATEMENT_TYPE",
    "STOPPED",
    "Action",
    "Attestation",
    "Check",
    "Cutoff",
    "Identity",
    "KeyFacts",
    "Passkey",
    "PasskeyAlgorithm",
    "PasskeyAssertion",
    "PasskeyBinding",
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
    "SignaturePool",
    "Signed",
    "Signer",
    "SigningKey",
    "Statement",
    "Tally",
    "TrustPin",
    "Unlock",
    "Verdict",
    "attest",
    "begins_digest",
    "challenge",
    "check_attestation",
    "check_reason",
    "check_reason_size",
    "count",
    "decode_key_file",
    "describe_key_file",
    "encode_key_file",
    "encode_locked_key_file",
    "encode_seal",
    "encode_seals",
    "pae",
    "parse_seals",
    "passkey_attestation",
    "persons_asking",
    "public_key_of",
    "verify_attestation",
]
