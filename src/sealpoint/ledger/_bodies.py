# SPDX-License-Identifier: Apache-2.0
"""The bodies of entries: what people and applications wrote, and what can be erased.

A body is bound by its SHA-256 in the header. It begins with 32 random bytes of its own, so that
the hash that stays after an erasure cannot be tested against a guess. Fields added later have a
default and are not written while they have it, so older bodies keep their bytes.
"""

import hashlib
from typing import Any

import msgspec

from sealpoint.errors import Edited
from sealpoint.ledger._kinds import Kind
from sealpoint.limits import BODY_BYTES_MAX
from sealpoint.signing import RosterDocument

__all__ = [
    "AdoptBody",
    "Body",
    "CheckpointBody",
    "GenesisBody",
    "ResumeBody",
    "RosterBody",
    "encode_body",
    "parse_body",
]


_DIGEST_DIGITS = 64


class Body(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """What every body has."""

    salt: str
    """32 random bytes in hexadecimal."""


class GenesisBody(Body, frozen=True, kw_only=True):
    """The first entry of a thread."""

    name: str
    owner: str
    """An identity, or a pool of the roster."""


class ResumeBody(Body, frozen=True, kw_only=True):
    """The beginning of a session."""

    owner: str
    basis: int
    """The newest entry that this session goes on from."""
    reason: str | None = None


class CheckpointBody(Body, frozen=True, kw_only=True):
    """A saved state."""

    id: str
    root: str
    """The digest of the state's root blob."""
    fresh: tuple[str, ...] = ()
    """The digests of the blobs that were stored with this entry."""
    fresh_list: str | None = None
    """Instead of `fresh` when there are many: a blob with those digests, 32 bytes each."""
    parent: str | None = None
    """The id of the checkpoint it came from, as the application says: lineage, not order."""
    metadata: dict[str, Any] | None = None
    world: str | None = None
    """The digest of a blob: what the run was able to do, as JSON."""


class AdoptBody(Body, frozen=True, kw_only=True):
    """An operator took a thread, or the store chain, into an anchor that did not know it."""

    reason: str


class RosterBody(Body, frozen=True, kw_only=True):
    """A roster, on the store chain."""

    roster: RosterDocument
    reason: str | None = None


encode_body = msgspec.json.Encoder().encode

_DECODERS: dict[Kind, msgspec.json.Decoder[Any]] = {
    Kind.GENESIS: msgspec.json.Decoder(GenesisBody),
    Kind.RESUME: msgspec.json.Decoder(ResumeBody),
    Kind.CHECKPOINT: msgspec.json.Decoder(CheckpointBody),
    Kind.ADOPT: msgspec.json.Decoder(AdoptBody),
    Kind.ROSTER: msgspec.json.Decoder(RosterBody),
}


def _require_digests(body: CheckpointBody) -> None:
    """Refuse names of blobs that are no digests: even its owner may have signed nonsense."""
    named = [body.root, *body.fresh]
    named += [name for name in (body.fresh_list, body.world) if name is not None]
    text = "".join(named)
    if any(len(name) != _DIGEST_DIGITS for name in named) or bytes.fromhex(text).hex() != text:
        raise ValueError("expected digests")


def parse_body(kind: Kind, digest: str, data: bytes) -> Any:
    """Check a body against the digest in its header, then read it.

    Raises:
        Edited: It is not the body that was sealed, or not one of this kind.
    """
    if len(data) > BODY_BYTES_MAX:
        raise Edited(f"entry body: expected at most {BODY_BYTES_MAX} bytes, found {len(data)}")
    if hashlib.sha256(data).hexdigest() != digest:
        raise Edited(f"entry body: expected the one with digest {digest[:12]}, found another")
    try:
        body = _DECODERS[kind].decode(data)
        if encode_body(body) == data:
            if kind is Kind.CHECKPOINT:
                _require_digests(body)
            return body
    except (KeyError, msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise Edited(f"entry body: expected the fields of a {kind}, found others") from exc
    raise Edited("entry body: expected the one spelling of its fields, found another")
