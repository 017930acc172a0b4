# SPDX-License-Identifier: Apache-2.0
"""The closed table of entry kinds: on which chain, by whom, under which fence, and what each does.

Whatever depends on the kind of an entry is asked here; no other module keeps a set of kinds. One
that is not in the table is refused, never skipped: reading past an entry whose meaning is unknown
could turn a pause or an erasure into nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType

from sealpoint.signing import Role


@unique
class Kind(StrEnum):
    """What an entry records."""

    GENESIS = "genesis"
    RESUME = "resume"
    CHECKPOINT = "checkpoint"
    HELD = "held"
    """A checkpoint that a pause held back: the state of work that was under way when it came."""
    RESULTS = "writes"
    """What tasks wrote, added to a checkpoint."""
    HANDOFF = "handoff"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    REQUEST = "request"
    APPROVAL = "approval"
    DENIAL = "denial"
    EXPIRY = "expiry"
    PRUNE = "prune"
    DELETE = "hide"
    """What the application deleted."""
    ERASE = "erase"
    BREAK_GLASS = "break-glass"
    ADOPT = "adopt"
    ROSTER = "roster"
    ROOT = "root"
    RESTORE = "restore"

    @property
    def word(self) -> str:
        """What people call it: the bytes of two kinds are older than their words."""
        return {Kind.RESULTS: "results", Kind.DELETE: "delete"}.get(self, self.value)


_ANYBODY = tuple(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRule:
    """Who may write a kind, and where."""

    roles: tuple[Role, ...] = ()
    """One of these its writer needs in the namespace; none: the root signs it."""

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

    blocked_by_pause: bool = False
    """It is refused while the thread is paused."""

    only_paused: bool = False
    """It is refused unless the thread is paused."""

    is_checkpoint: bool = False
    """It carries a state, which can be loaded and resumed."""

    holds_payload: bool = False
    """Its body names blobs: those of a state, or of results that are added to one."""

    gives_up: bool = False
    """It takes away what entries before it held."""

    is_retention: bool = False
    """Its body says all that the owner has given up so far."""

    about_requests: bool = False
    """It asks for something, or answers; nothing of the thread depends on it, so one that nobody
    can read is left out."""

    only_says_why: bool = False
    """Its kind says everything, and its body no more than why: it counts although nobody can read
    that."""

    carries_attestations: bool = False
    """Its body may hold attestations of people who need not have written it."""

    settles_pause: bool = False
    """It says whether the thread is paused from here on."""

    settles_owner: bool = False
    """It says who owns the thread from here on."""

    on_reserved: bool = False
    """A thread of Sealpoint's own may hold it: requests, the answers to them, and no state."""

    tells_time: bool = True
    """Its time counts for the thread; that of what anybody may write does not."""

    @property
    def said_roles(self) -> str:
        """The roles, for a message."""
        return "any role" if self.roles == _ANYBODY else " or ".join(self.roles)


_PAUSE = KindRule(roles=(Role.OPERATOR,), on_threads=True, settles_pause=True, only_says_why=True)

# Relayed by anybody of the namespace; what counts is the attestation inside.
_VERDICT = KindRule(
    roles=_ANYBODY,
    on_threads=True,
    tells_time=False,
    about_requests=True,
    carries_attestations=True,
    on_reserved=True,
)

_RETENTION = KindRule(
    roles=(Role.WRITER,),
    on_threads=True,
    by_owner=True,
    moves_basis=True,
    gives_up=True,
    is_retention=True,
)

KINDS: Mapping[Kind, KindRule] = MappingProxyType(
    {
        # An operator begins the book of rollouts; nothing is saved without a writer.
        Kind.GENESIS: KindRule(
            roles=(Role.WRITER, Role.OPERATOR),
            on_threads=True,
            by_owner=True,
            sets_fence=True,
            blocked_by_pause=True,
            settles_pause=True,
            settles_owner=True,
            on_reserved=True,
        ),
        Kind.RESUME: KindRule(
            roles=(Role.WRITER,),
            on_threads=True,
            by_owner=True,
            sets_fence=True,
            moves_basis=True,
            blocked_by_pause=True,
            carries_attestations=True,
        ),
        Kind.CHECKPOINT: KindRule(
            roles=(Role.WRITER,),
            on_threads=True,
            by_owner=True,
            in_session=True,
            moves_basis=True,
            blocked_by_pause=True,
            is_checkpoint=True,
            holds_payload=True,
        ),
        # Work that had begun is kept even while the thread is paused: its state, which nobody
        # resumes before the pause has ended, and its results.
        Kind.HELD: KindRule(
            roles=(Role.WRITER,),
            on_threads=True,
            by_owner=True,
            in_session=True,
            moves_basis=True,
            only_paused=True,
            is_checkpoint=True,
            holds_payload=True,
        ),
        Kind.RESULTS: KindRule(
            roles=(Role.WRITER,),
            on_threads=True,
            by_owner=True,
            in_session=True,
            moves_basis=True,
            holds_payload=True,
        ),
        # By the owner, or by an operator who carries the approval of another person.
        Kind.HANDOFF: KindRule(
            roles=(Role.WRITER, Role.OPERATOR),
            on_threads=True,
            sets_fence=True,
            moves_basis=True,
            carries_attestations=True,
            settles_owner=True,
        ),
        Kind.PAUSE: _PAUSE,
        Kind.UNPAUSE: _PAUSE,
        Kind.REQUEST: KindRule(
            roles=(Role.WRITER, Role.OPERATOR),
            on_threads=True,
            tells_time=False,
            about_requests=True,
            on_reserved=True,
        ),
        Kind.APPROVAL: _VERDICT,
        Kind.DENIAL: _VERDICT,
        Kind.EXPIRY: KindRule(
            roles=_ANYBODY,
            on_threads=True,
            tells_time=False,
            about_requests=True,
            on_reserved=True,
        ),
        Kind.BREAK_GLASS: _VERDICT,
        Kind.PRUNE: _RETENTION,
        Kind.DELETE: _RETENTION,
        Kind.ERASE: KindRule(
            roles=(Role.PRIVACY,),
            on_threads=True,
            sets_fence=True,
            moves_basis=True,
            gives_up=True,
            settles_pause=True,
            settles_owner=True,
            only_says_why=True,
        ),
        Kind.ADOPT: KindRule(
            roles=(Role.OPERATOR,),
            on_threads=True,
            on_store_chain=True,
            on_reserved=True,
            only_says_why=True,
        ),
        Kind.ROSTER: KindRule(on_store_chain=True),
        Kind.RESTORE: KindRule(on_store_chain=True),
        Kind.ROOT: KindRule(on_store_chain=True),
    }
)
"""Every kind has its line: `tests/unit/ledger` holds the table to the specification."""
