# SPDX-License-Identifier: Apache-2.0
"""The exact bytes that are signed: DSSE's pre-authentication encoding.

Type and payload are framed by their byte lengths, so no two pairs give the same bytes, and a
signature over one type is never a signature over another. The payload is the stored bytes as they
are; nothing is serialized again to verify it.
"""

ENTRY_TYPE = b"application/vnd.sealpoint.entry.v1+json"
"""The type of a ledger entry's header. The header itself states the kind of the entry."""

STATEMENT_TYPE = b"application/vnd.sealpoint.statement.v1+json"
"""The type of the payload that an approver signs: a statement's digest, a verdict and a reason."""


def pae(payload_type: bytes, payload: bytes) -> bytes:
    """Frame a payload for signing."""
    return b"DSSEv1 %d %b %d %b" % (len(payload_type), payload_type, len(payload), payload)
