# SPDX-License-Identifier: Apache-2.0
"""The bodies of entries: what people and applications wrote, and what can be erased.

A body is bound by its SHA-256 in the header. It begins with 32 random bytes of its own, so that
the hash that stays after an erasure cannot be tested against a guess. Fields added later have a
default and are not written while they have it, so older bodies keep their bytes.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec

from sealpoint.errors import Edited
from sealpoint.ledger._kinds import Kind
from sealpoint.limits import BODY_BYTES_MAX
from sealpoint.signing import RootDocument, RosterDocument

__all__ = [
    "AdoptBody",
    "Body",
    "CheckpointBody",
    "EraseBody",
    "GenesisBody",
    "PruneBody",
    "RestoreBody",
    "ResumeBody",
    "RootBody",
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
    prune: int | None = None
    """The position of the newest prune entry before this one."""


class AdoptBody(Body, frozen=True, kw_only=True):
    """An operator took a thread, or the store chain, into an anchor that did not know it."""

    reason: str


class PruneBody(Body, frozen=True, kw_only=True):
    """Payloads that were given up, in this prune and in those before it.

    Every checkpoint at a position below `before` that is not in `kept` has lost its payload.
    """

    before: int
    kept: tuple[int, ...] = ()
    """In rising order, all below `before`."""
    reason: str | None = None

    def covers(self, seq: int) -> bool:
        """Whether a checkpoint at this position has lost its payload."""
        if seq >= self.before:
            return False
        place = bisect_left(self.kept, seq)
        return place == len(self.kept) or self.kept[place] != seq


class EraseBody(Body, frozen=True, kw_only=True):
    """Everything that the thread held up to here was removed."""

    reason: str


class RestoreBody(Body, frozen=True, kw_only=True):
    """A restored store was accepted as it is, on the store chain."""

    reason: str
    kept: str
    """The digest of a blob of the store chain: the newest entry that stays, for each thread."""
    lost: str
    """The digest of another: the newest entry that the anchor had seen, where that is gone."""


class RosterBody(Body, frozen=True, kw_only=True):
    """A roster, on the store chain."""

    roster: RosterDocument
    reason: str | None = None


class RootBody(Body, frozen=True, kw_only=True):
    """The next root, on the store chain."""

    root: RootDocument
    reason: str | None = None


encode_body = msgspec.json.Encoder().encode

_DECODERS: dict[Kind, msgspec.json.Decoder[Any]] = {
    Kind.GENESIS: msgspec.json.Decoder(GenesisBody),
    Kind.RESUME: msgspec.json.Decoder(ResumeBody),
    Kind.CHECKPOINT: msgspec.json.Decoder(CheckpointBody),
    Kind.ADOPT: msgspec.json.Decoder(AdoptBody),
    Kind.PRUNE: msgspec.json.Decoder(PruneBody),
    Kind.ERASE: msgspec.json.Decoder(EraseBody),
    Kind.RESTORE: msgspec.json.Decoder(RestoreBody),
    Kind.ROSTER: msgspec.json.Decoder(RosterBody),
    Kind.ROOT: msgspec.json.Decoder(RootBody),
}


def _require_sense(body: PruneBody) -> None:
    """Refuse positions that no writer would list, even if its owner signed them."""
    places = (-1, *body.kept, body.before)
    if any(earlier >= later for earlier, later in pairwise(places)):
        raise ValueError("expected rising positions below the bound")


def _require_digests(body: CheckpointBody) -> None:
    """Refuse names of blobs that are no digests: even its owner may have signed nonsense."""
    named = [body.root, *body.fresh]
    named += [name for name in (body.fresh_list, body.world) if name is not None]
    _require_hexadecimal(named)


def _require_hexadecimal(named: list[str]) -> None:
    text = "".join(named)
    if any(len(name) != _DIGEST_DIGITS for name in named) or bytes.fromhex(text).hex() != text:
        raise ValueError("expected digests")


_CHECKS: dict[Kind, Callable[[Any], None]] = {
    Kind.CHECKPOINT: _require_digests,
    Kind.PRUNE: _require_sense,
    Kind.RESTORE: lambda body: _require_hexadecimal([body.kept, body.lost]),
}


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
            if (check := _CHECKS.get(kind)) is not None:
                check(body)
            return body
    except (KeyError, msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise Edited(f"entry body: expected the fields of a {kind}, found others") from exc
    raise Edited("entry body: expected the one spelling of its fields, found another")
