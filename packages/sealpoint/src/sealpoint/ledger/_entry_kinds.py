# SPDX-License-Identifier: Apache-2.0
"""The closed table of entry kinds: the chain, the writers, the fence, and the effect of each.

All code that depends on the kind of an entry asks this table; no other module keeps a set of kinds.
A kind that is not in the table is refused, never skipped: skipping an entry with an unknown meaning
could undo a pause or an erasure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType

from sealpoint.signing import Role


@unique
class Kind(StrEnum):
    """The kind of an entry."""

    GENESIS = "genesis"
    RESUME = "resume"
    CHECKPOINT = "checkpoint"
    HELD = "held"
    """A checkpoint that a pause held back: the state of work that was in progress at the pause."""
    RESULTS = "writes"
    """Results of tasks, added to a checkpoint."""
    HANDOFF = "handoff"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    REQUEST = "request"
    APPROVAL = "approval"
    DENIAL = "denial"
    EXPIRY = "expiry"
    PRUNE = "prune"
    DELETE = "hide"
    """A deletion by the application."""
    ERASE = "erase"
    BREAK_GLASS = "break-glass"
    ADOPT = "adopt"
    ROSTER = "roster"
    ROOT = "root"
    RESTORE = "restore"

    @property
    def word(self) -> str:
        """The name for people; two kinds have older names in the stored bytes."""
        return {Kind.RESULTS: "results", Kind.DELETE: "delete"}.get(self, self.value)


_ANYBODY = tuple(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRule:
    """The writers and the place of a kind."""

    roles: tuple[Role, ...] = ()
    """Its writer needs one of these in the namespace; empty: the root signs it."""

    on_threads: bool = False
    on_store_chain: bool = False

    by_owner: bool = False
    """Only the owner of the thread, or a member of the pool that owns it, may write it."""

    in_session: bool = False
    """Only the key that opened the session in force may write it, with the session's fence."""

    sets_fence: bool = False
    """It begins or ends a session or a generation: its own sequence number becomes the fence."""

    moves_basis: bool = False
    """It changes what a resume would do."""

    blocked_by_pause: bool = False
    """It is refused while the thread is paused."""

    only_paused: bool = False
    """It is refused unless the thread is paused."""

    is_checkpoint: bool = False
    """It carries a state, which can be loaded and resumed."""

    holds_payload: bool = False
    """Its body names blobs: those of a state, or of results that are added to one."""

    gives_up: bool = False
    """It removes the content of earlier entries."""

    is_retention: bool = False
    """Its body lists everything that the owner has given up so far."""

    about_requests: bool = False
    """It is a request or an answer to one; nothing of the thread depends on it, so one without a
    body that can be read is ignored."""

    only_says_why: bool = False
    """Its kind says everything, and its body only gives a reason: it counts even if the body is
    missing or malformed."""

    carries_attestations: bool = False
    """Its body may hold attestations of people other than its writer."""

    settles_pause: bool = False
    """It determines whether the thread is paused."""

    settles_owner: bool = False
    """It determines the owner of the thread."""

    on_reserved: bool = False
    """A thread of Sealpoint's own may hold it: requests and answers to them, but no state."""

    tells_time: bool = True
    """Its time counts for the thread; the time of entries that any member may write does not."""

    @property
    def needs_body(self) -> bool:
        """Whether the thread depends on what the body of such an entry says."""
        return not (self.about_requests or self.only_says_why)

    @property
    def roles_text(self) -> str:
        """The roles, for a message."""
        return "any role" if self.roles == _ANYBODY else " or ".join(self.roles)


_PAUSE = KindRule(roles=(Role.OPERATOR,), on_threads=True, settles_pause=True, only_says_why=True)

# Any member of the namespace may relay it; the attestation inside counts.
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
        # Work in progress is saved even while the thread is paused: its state, which cannot be
        # resumed before the pause ends, and its results.
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
        # By the owner, or by an operator with the approval of another person.
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
"""Every kind has its line: `tests/unit/ledger` compares the table with the specification."""
