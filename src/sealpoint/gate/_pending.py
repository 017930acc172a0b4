# SPDX-License-Identifier: Apache-2.0
"""What is pending on a thread: a pause, and requests with all that was said to them.

It lies between the head and the newest entry that a pause would have stopped, so that part is
walked and no more. Every entry there is verified on its own. A request counts only while its basis
is that of the thread; one that says anything else than its place, that somebody else signed than
it names, or that shows another answer or world than its statement binds, is left out as if it were
not there, and so is a word on a request that is not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sealpoint.errors import Missing, UsageError, WorldInvalid
from sealpoint.gate._wish import answer_digest
from sealpoint.ledger import (
    KINDS,
    BreakGlassBody,
    Entry,
    ExpiryBody,
    Header,
    Kind,
    PauseBody,
    RequestBody,
    VerdictBody,
    link_hash,
    parse_body,
)
from sealpoint.signing import Attestation
from sealpoint.storage import Record
from sealpoint.store import Chain
from sealpoint.world import World

__all__ = ["Asked", "Pending", "read_pending"]

_BodyT = TypeVar("_BodyT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that is bound to the thread as it is, and what was said to it."""

    entry: Entry
    body: RequestBody
    attestations: tuple[Attestation, ...] = ()
    expired: bool = False
    """Somebody has recorded that it expired, at a time when it had."""
    broken_glass: tuple[str, str] | None = None
    """Who broke the glass for it, and why."""

    @property
    def id(self) -> str:
        """The digest of its statement."""
        return self.body.statement.digest


@dataclass(slots=True)
class Pending:
    """What is pending on a thread."""

    paused: tuple[Entry, str] | None = None
    """The pause in force, and its reason."""
    asked: dict[str, Asked] = field(default_factory=dict)
    """Every request, by the digest of its statement, oldest first."""


def read_pending(chain: Chain) -> Pending:
    """Read what is pending below a verified head.

    Raises:
        Tampered, NotTrusted: An entry is not what was written.
        Missing: A body is gone that nothing has erased.
    """
    found: list[tuple[Header, Record]] = []
    basis: tuple[int, bytes] | None = None
    for header, record in chain.walk():
        rule = KINDS[header.kind]
        if basis is None and rule.moves_basis:
            basis = header.seq, link_hash(record.header)
        if rule.halts:
            break
        found.append((header, record))
    if basis is None:
        return Pending()  # a genesis alone: nobody has saved anything yet
    return _folded(chain, basis, reversed(found))


def _folded(
    chain: Chain, basis: tuple[int, bytes], found: Iterable[tuple[Header, Record]]
) -> Pending:
    pending = Pending()
    for header, record in found:
        if header.kind in (Kind.UNPAUSE, Kind.ERASE):
            pending.paused = None
        elif header.kind is Kind.PAUSE:
            entry, pause = _read(chain, header, record, PauseBody)
            pending.paused = entry, pause.reason
        elif header.seq > basis[0]:
            _take(pending, chain, header, record, basis[1].hex())
    return pending


def _take(pending: Pending, chain: Chain, header: Header, record: Record, basis: str) -> None:
    """Take in an entry that concerns requests; what concerns none that is there is left out."""
    match header.kind:
        case Kind.REQUEST:
            entry, body = _read(chain, header, record, RequestBody)
            if _is_bound(entry, body, basis, chain.core.trust().epoch):
                made = Asked(entry=entry, body=body)
                pending.asked.setdefault(made.id, made)
        case Kind.APPROVAL | Kind.DENIAL:
            _, word = _read(chain, header, record, VerdictBody)
            if (asked := pending.asked.get(word.attestation.statement)) is not None:
                words = (*asked.attestations, word.attestation)
                pending.asked[asked.id] = replace(asked, attestations=words)
        case Kind.EXPIRY:
            entry, expiry = _read(chain, header, record, ExpiryBody)
            asked = pending.asked.get(expiry.request)
            if asked is not None and entry.header.at >= asked.body.statement.expires:
                pending.asked[asked.id] = replace(asked, expired=True)
        case Kind.BREAK_GLASS:
            entry, glass = _read(chain, header, record, BreakGlassBody)
            asked = pending.asked.get(glass.request)
            if asked is not None and entry.header.at < asked.body.statement.expires:
                broken = entry.writer, glass.reason
                pending.asked[asked.id] = replace(asked, broken_glass=broken)
        case _:
            pass


def _read(
    chain: Chain, header: Header, record: Record, expected: type[_BodyT]
) -> tuple[Entry, _BodyT]:
    """Verify an entry on its own, and read its body."""
    head = chain.verified_head()
    entry = head if header.seq == head.seq else chain.verify(record, header.seq)
    if record.body is None:
        raise Missing(f"entry {header.seq} of thread {chain.name!r}: expected its body, found none")
    body = parse_body(header.kind, header.body, record.body)
    if not isinstance(body, expected):
        raise UsageError(f"entry {header.seq}: expected {expected.__name__}")
    return entry, body


def _is_bound(entry: Entry, body: RequestBody, basis: str, epoch: int) -> bool:
    """Whether a request is about the thread as it is, by the one who signed it.

    A restore voids every earlier request: its grant may have been spent in what was lost.
    """
    statement, header = body.statement, entry.header
    return (
        statement.store,
        statement.ns,
        statement.thread,
        statement.epoch,
        header.epoch,
        statement.gen,
        statement.basis,
        statement.requester,
    ) == (
        header.store,
        header.ns,
        header.thread,
        epoch,
        epoch,
        header.gen,
        basis,
        entry.writer,
    ) and _is_shown(body)


def _is_shown(body: RequestBody) -> bool:
    """Whether what people are shown is what the statement binds."""
    try:
        world = None if body.world is None else World.from_dict(body.world).digest
    except WorldInvalid:
        return False
    return (answer_digest(body.answer), world) == (body.statement.answer, body.statement.world_to)
