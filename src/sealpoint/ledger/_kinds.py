# SPDX-License-Identifier: Apache-2.0
"""The closed table of entry kinds: on which chain, by whom, and under which fence.

A kind that is not in the table is refused, never skipped. A kind that the format reserves and
this version does not yet judge is refused as well: reading past an entry whose meaning is unknown
could turn a pause or an erasure into nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType

from sealpoint.signing import Role

__all__ = ["KINDS", "Kind", "KindRule"]


@unique
class Kind(StrEnum):
    """What an entry records."""

    GENESIS = "genesis"
    RESUME = "resume"
    CHECKPOINT = "checkpoint"
    WRITES = "writes"
    HANDOFF = "handoff"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    REQUEST = "request"
    APPROVAL = "approval"
    DENIAL = "denial"
    EXPIRY = "expiry"
    PRUNE = "prune"
    HIDE = "hide"
    ERASE = "erase"
    BREAK_GLASS = "break-glass"
    ADOPT = "adopt"
    ROSTER = "roster"
    ROOT = "root"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRule:
    """Who may write a kind, and where."""

    role: Role | None = None
    """The role that its writer needs in the namespace; None: the root signs it."""

    on_threads: bool = False
    on_store_chain: bool = False

    by_owner: bool = False
    """Only the owner of the thread, or a member of the pool that owns it."""

    in_session: bool = False
    """Only by the key that opened the session in force, and naming its fence."""

    sets_fence: bool = False
    """It begins a session or a generation, or ends one: its own sequence number is the fence from
    here on."""

    moves_basis: bool = False
    """It changes what a resume would mean."""

    judged: bool = True
    """This version knows what it means; otherwise it is refused on every chain."""


_RESERVED = KindRule(judged=False)

KINDS: Mapping[Kind, KindRule] = MappingProxyType(
    {
        Kind.GENESIS: KindRule(role=Role.WRITER, on_threads=True, by_owner=True, sets_fence=True),
        Kind.RESUME: KindRule(
            role=Role.WRITER, on_threads=True, by_owner=True, sets_fence=True, moves_basis=True
        ),
        Kind.CHECKPOINT: KindRule(
            role=Role.WRITER, on_threads=True, by_owner=True, in_session=True, moves_basis=True
        ),
        Kind.PRUNE: KindRule(role=Role.WRITER, on_threads=True, by_owner=True, moves_basis=True),
        Kind.ERASE: KindRule(role=Role.PRIVACY, on_threads=True, sets_fence=True, moves_basis=True),
        Kind.ADOPT: KindRule(role=Role.OPERATOR, on_threads=True, on_store_chain=True),
        Kind.ROSTER: KindRule(on_store_chain=True),
        Kind.RESTORE: KindRule(on_store_chain=True),
        Kind.ROOT: KindRule(on_store_chain=True),
        **dict.fromkeys(
            (
                Kind.WRITES,
                Kind.HANDOFF,
                Kind.PAUSE,
                Kind.UNPAUSE,
                Kind.REQUEST,
                Kind.APPROVAL,
                Kind.DENIAL,
                Kind.EXPIRY,
                Kind.HIDE,
                Kind.BREAK_GLASS,
            ),
            _RESERVED,
        ),
    }
)
"""Every kind has its line: `tests/unit/ledger` holds the table to the specification."""
