# SPDX-License-Identifier: Apache-2.0
"""The bodies of entries: what people and applications wrote, and what can be erased.

A body is bound by its SHA-256 in the header. It begins with 32 random bytes of its own, so that
the hash that stays after an erasure cannot be tested against a guess. Fields added later have a
default and are not written while they have it, so older bodies keep their bytes.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from sealpoint.errors import Edited, Misplaced, SealpointError
from sealpoint.ledger._entry import PRINT_BYTES, Entry, Header
from sealpoint.ledger._kinds import KINDS, Kind
from sealpoint.limits import BODY_BYTES_MAX, JSON_DEPTH_MAX
from sealpoint.signing import (
    Attestation,
    RootDocument,
    RosterDocument,
    Statement,
    Verdict,
    check_attestation,
)


class Body(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """What every body has."""

    salt: str
    """32 random bytes in hexadecimal."""


# What the owner of a thread gave up: the body of a prune and of a delete.
#
# Each says all that was given up so far, so the newest one tells everything.


class PruneBody(Body, frozen=True, kw_only=True):
    """What was given up, in this prune or delete and in those before it.

    Every checkpoint, and all results, at a position below `before` that is not in `kept`, and
    everything in `deleted`, has lost its payload. What was deleted is not shown in listings either.
    """

    before: int
    kept: tuple[int, ...] = ()
    """In rising order, all below `before`."""
    reason: str | None = None
    deleted: tuple[tuple[int, int], ...] = msgspec.field(name="hidden", default=())
    """First and last positions, in rising order and apart from each other."""
    earlier: int | None = None
    """The position of the prune or delete before this one, in the same generation."""

    def covers(self, seq: int) -> bool:
        """Whether what lies at this position has lost its payload."""
        if seq < self.before:
            place = bisect_left(self.kept, seq)
            if place == len(self.kept) or self.kept[place] != seq:
                return True
        return self.deletes(seq)

    def deletes(self, seq: int) -> bool:
        """Whether what lies at this position was deleted by the application."""
        return seq <= self.span_at(seq)[1]

    def includes(self, earlier: "PruneBody") -> bool:
        """Whether everything that was given up before is given up here."""
        spans = tuple(self.span_at(first) for first, _ in earlier.deleted)
        return (
            self.before >= earlier.before
            and not any(earlier.covers(seq) and not self.deletes(seq) for seq in self.kept)
            and all(last <= span[1] for (_, last), span in zip(earlier.deleted, spans, strict=True))
        )

    def newly_deleted(self, before: "PruneBody | None") -> int | None:
        """The first position that is deleted here and was not before; None if there is none."""
        for first, last in self.deleted:
            start = first
            if before is not None:
                start = max(first, before.span_at(first)[1] + 1)
            if start <= last:
                return start
        return None

    def span_at(self, seq: int) -> tuple[int, int]:
        """The last deleted span that begins at a position or before it; else an empty one."""
        place = bisect_right(self.deleted, seq, key=_first)
        return self.deleted[place - 1] if place else (seq, seq - 1)

    @property
    def end(self) -> int:
        """The position after the last that it could mean."""
        return max(self.before, self.deleted[-1][1] + 1 if self.deleted else 0)


def _first(span: tuple[int, int]) -> int:
    return span[0]


def require_sense(body: PruneBody) -> None:
    """Refuse positions that no writer would list, even if its owner signed them."""
    places = (-1, *body.kept, body.before)
    if any(earlier >= later for earlier, later in pairwise(places)):
        raise ValueError("expected rising positions below the bound")
    ends = (-1, *(end for first, last in body.deleted for end in (first, last + 1)))
    if any(earlier >= later for earlier, later in pairwise(ends)):
        raise ValueError("expected rising spans")
    if body.earlier is not None and body.earlier < 0:
        raise ValueError("expected a position")


_DIGEST_DIGITS = 64
_ID_DIGITS = 32


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
    """Why it was done deliberately, as the caller said."""
    checkpoint: str | None = None
    """The hash of the checkpoint that was released for execution."""
    release: str | None = None
    """The digest of all that was released with it, as `docs/formats/release.md` says."""
    released: int | None = None
    """The position of that checkpoint."""
    world: str | None = None
    """The digest of what the run is able to do from here on."""
    leaves: dict[str, Any] | None = None
    """That world, unless `decided` names the resume that has it."""
    decided: int | None = None
    """The position of the resume in which this world was decided; None: it is this one."""
    policy: str | None = None
    """The digest of the policy that was asked."""
    rules: tuple[str, ...] = ()
    """The rules of the policy that applied; none: an ordinary continuation."""
    request: str | None = None
    """The digest of the statement whose grant this spends."""
    rollout: Statement | None = None
    """What lets this change of worlds pass for many threads, if that was needed."""
    attestations: tuple[Attestation, ...] = ()
    """Who approved it: one word of each person that counted."""
    answer: str | None = None
    """The digest of the answer that the run goes on with."""
    actor: str | None = None
    """Who answered or asked, as the caller claims; it proves nothing."""
    held: bool = False
    """Whether a run held the thread in the anchor: its end ended the session."""
    idempotent: bool = False
    """Whether the application said that what would run may be done again."""
    edits: bool = False
    """Whether the session only edits the state: nothing runs in it."""

    @property
    def unsealed(self) -> list[str]:
        """The kinds of what the run may read and nobody seals, as the world in `leaves` says."""
        topology = {} if self.leaves is None else self.leaves.get("topology")
        found = topology.get("unsealed") if isinstance(topology, dict) else None
        return sorted(found) if isinstance(found, dict) else []


class HandoffBody(Body, frozen=True, kw_only=True):
    """The thread belongs to somebody else from here on, and no session goes on."""

    owner: str
    """The next owner: an identity, or a pool of the roster."""
    reason: str
    statement: Statement | None = None
    """What was approved, if it is an operator's handoff."""
    attestations: tuple[Attestation, ...] = ()
    actor: str | None = None
    """The person for whom its writer acts, as it claims; it proves nothing."""


class PauseBody(Body, frozen=True, kw_only=True):
    """Nothing is saved or resumed from here on."""

    reason: str
    actor: str | None = None
    """The person for whom its writer acts, as it claims; it proves nothing."""


class UnpauseBody(Body, frozen=True, kw_only=True):
    """The thread may go on."""

    reason: str
    actor: str | None = None
    """The person for whom its writer acts, as it claims; it proves nothing."""


class RequestBody(Body, frozen=True, kw_only=True):
    """What other people are asked to approve, with all that they have to be shown."""

    statement: Statement
    reasons: tuple[str, ...] = ()
    """Why it needs approval, a sentence each."""
    answer: Any = None
    """The answer whose digest the statement binds."""
    world: dict[str, Any] | None = None
    """The world whose digest the statement binds as `world_to`."""
    worlds: tuple[dict[str, Any], ...] = ()
    """The worlds whose digests a rollout's statement binds, each once, sorted by digest."""


class VerdictBody(Body, frozen=True, kw_only=True):
    """A person's own word on a request, relayed by whoever wrote the entry."""

    attestation: Attestation
    actor: str | None = None
    """The person for whom the entry was written, as its writer claims; it proves nothing."""


class ExpiryBody(Body, frozen=True, kw_only=True):
    """A request has expired; or a rollout has ended, because it expired or was denied."""

    request: str
    """The digest of its statement."""
    positions: str | None = None
    """Of a rollout, the digest of a blob of the thread: where each thread stood after its end."""


_NO_THREAD = "0" * 32


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a copy of a checkpoint, or of results, was taken from."""

    thread: str
    """The id of the thread; of a file of another storage, zeros, which no thread has."""
    entry: str
    """The hash of the entry, or the SHA-256 of the file."""
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    """When the original was written: a copy is no younger."""

    @classmethod
    def of_file(cls, sha256: str, at: datetime) -> "Origin":
        """That of a checkpoint which is imported from a file, where nobody had signed it."""
        return cls(thread=_NO_THREAD, entry=sha256, at=at)

    @property
    def is_file(self) -> bool:
        """Whether it was imported from a file."""
        return self.thread == _NO_THREAD


# Now and then a checkpoint tells of the ids of a long stretch before it. Whoever looks for one
# finds from that where it may lie, and that it lies nowhere else. Different ids may have the same
# print, and then the entry decides, but one id always has its own: nothing is left out by chance.

TABLE_EVERY = 128
"""So many positions lie between the checkpoints that a writer gives a table to."""

TABLE_POSITIONS_MAX = 64 * TABLE_EVERY
"""So many positions, or a few more, a writer tells of in one table."""


class IdTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The ids of the checkpoints of a stretch that ends before the entry which carries this."""

    first: int
    """The first position of the stretch."""
    prints: str
    """For each position what `id_print` gives, in hexadecimal; zeros where no checkpoint lies."""

    def require_digits(self) -> None:
        """Refuse what is no table, whoever signed it.

        Raises:
            ValueError: The prints are not so many digits.
        """
        data = bytes.fromhex(self.prints)
        if not data or len(data) % PRINT_BYTES or data.hex() != self.prints:
            raise ValueError("expected eight hexadecimal digits for each position")

    def ends_at(self) -> int:
        """The position after the last of the stretch."""
        return self.first + len(self.prints) // (2 * PRINT_BYTES)


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
    question: Any = None
    """What the run waits for somebody to answer."""
    lane: str = ""
    """Which of several lines of work inside the thread it belongs to, such as a subgraph's."""
    again: int | None = None
    """The position of the first checkpoint of the same lane and id, which this one supersedes."""
    since: int | None = None
    """The position of the first results that were added to it before it was there."""
    origin: Origin | None = None
    """What it is a copy of."""
    ids: IdTable | None = None
    """The ids of a stretch of checkpoints before it, so that nobody has to walk through them."""

    @property
    def is_new_in_main_lane(self) -> bool:
        """Whether it moves the run itself on: not a subgraph, and not an earlier name again."""
        return not self.lane and self.again is None


class ResultsBody(Body, frozen=True, kw_only=True):
    """Results of a task that were added to a checkpoint, to be taken in by the next one."""

    checkpoint: str
    """The id of the checkpoint, which may follow later."""
    task: str
    root: str
    """The digest of the root blob of what was written."""
    lane: str = ""
    path: str = ""
    """Where the task stands in the program, as the framework says."""
    fresh: tuple[str, ...] = ()
    fresh_list: str | None = None
    question: Any = None
    """What the task waits for somebody to answer."""
    answers: bool = False
    """They are an answer that somebody gave, and not yet what the task made of it."""
    origin: Origin | None = None


class AdoptBody(Body, frozen=True, kw_only=True):
    """An operator took a thread, or the store chain, into an anchor that did not know it."""

    reason: str


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
    released: str
    """The digest of a third: the lines of `kept` of those cut threads that may go on from there."""
    paused: str | None = None
    """The digest of a fourth: the lines of `kept` of those threads whose pause was lost."""


class RosterBody(Body, frozen=True, kw_only=True):
    """A roster, on the store chain."""

    roster: RosterDocument
    reason: str | None = None
    positions: str | None = None
    """The digest of a blob of the store chain, if a policy changes: where each thread stands."""


class RootBody(Body, frozen=True, kw_only=True):
    """The next root, on the store chain."""

    root: RootDocument
    reason: str | None = None


encode_body = msgspec.json.Encoder().encode

_DECODERS: dict[Kind, msgspec.json.Decoder[Any]] = {
    Kind.GENESIS: msgspec.json.Decoder(GenesisBody),
    Kind.RESUME: msgspec.json.Decoder(ResumeBody),
    Kind.CHECKPOINT: msgspec.json.Decoder(CheckpointBody),
    Kind.HELD: msgspec.json.Decoder(CheckpointBody),
    Kind.ADOPT: msgspec.json.Decoder(AdoptBody),
    Kind.RESULTS: msgspec.json.Decoder(ResultsBody),
    Kind.PRUNE: msgspec.json.Decoder(PruneBody),
    Kind.DELETE: msgspec.json.Decoder(PruneBody),
    Kind.ERASE: msgspec.json.Decoder(EraseBody),
    Kind.HANDOFF: msgspec.json.Decoder(HandoffBody),
    Kind.PAUSE: msgspec.json.Decoder(PauseBody),
    Kind.UNPAUSE: msgspec.json.Decoder(UnpauseBody),
    Kind.REQUEST: msgspec.json.Decoder(RequestBody),
    Kind.APPROVAL: msgspec.json.Decoder(VerdictBody),
    Kind.DENIAL: msgspec.json.Decoder(VerdictBody),
    Kind.EXPIRY: msgspec.json.Decoder(ExpiryBody),
    Kind.BREAK_GLASS: msgspec.json.Decoder(VerdictBody),
    Kind.RESTORE: msgspec.json.Decoder(RestoreBody),
    Kind.ROSTER: msgspec.json.Decoder(RosterBody),
    Kind.ROOT: msgspec.json.Decoder(RootBody),
}


def _require_checkpoint(body: CheckpointBody) -> None:
    """Refuse names of blobs that are no digests: even its owner may have signed nonsense."""
    _require_names(body, body.world)
    _require_shallow(body.metadata, body.question)
    if body.ids is not None:
        body.ids.require_digits()


def _require_results(body: ResultsBody) -> None:
    _require_names(body, None)
    _require_shallow(body.question)


def _require_shallow(*values: Any) -> None:
    """Refuse JSON that is nested deeper than a writer may write: whoever prints it would fail."""
    level = [value for value in values if isinstance(value, dict | list)]
    for _ in range(JSON_DEPTH_MAX):
        if not level:
            return
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
    if level:
        raise ValueError(f"expected at most {JSON_DEPTH_MAX} levels")


def _require_names(body: CheckpointBody | ResultsBody, world: str | None) -> None:
    named = [body.root, *body.fresh]
    named += [name for name in (body.fresh_list, world) if name is not None]
    _require_hexadecimal(named)
    if body.origin is not None:
        _require_origin(body.origin)


def _require_origin(origin: Origin) -> None:
    _require_hexadecimal([origin.thread], _ID_DIGITS)
    _require_hexadecimal([origin.entry])
    # One instant has one spelling: an offset other than Z would be read back as it is.
    if origin.at.tzinfo is not UTC:
        raise ValueError("expected the one spelling of a time")


def _require_hexadecimal(named: list[str], digits: int = _DIGEST_DIGITS) -> None:
    text = "".join(named)
    if set(map(len, named)) - {digits} or bytes.fromhex(text).hex() != text:
        raise ValueError("expected hexadecimal digits")


def _require_gate_digests(body: ResumeBody) -> None:
    if (body.checkpoint is None) != (body.release is None):
        raise ValueError("expected a checkpoint with the release that it is part of")
    if body.rollout is not None:
        Statement.parse(body.rollout.encode())
    for word in body.attestations:
        check_attestation(word)
    named = (body.checkpoint, body.release, body.world, body.policy, body.request, body.answer)
    _require_hexadecimal([name for name in named if name is not None])


def _require_positions(body: RosterBody | ExpiryBody) -> None:
    _require_hexadecimal([] if body.positions is None else [body.positions])


def _require_expiry(body: ExpiryBody) -> None:
    _require_hexadecimal([body.request])
    _require_positions(body)


def _require_verdict(expected: Verdict) -> Callable[[VerdictBody], None]:
    def check(body: VerdictBody) -> None:
        if body.attestation.verdict is not expected:
            raise ValueError("expected the verdict that the kind says")
        check_attestation(body.attestation)

    return check


def _require_statement(body: RequestBody | HandoffBody) -> None:
    if body.statement is not None:
        Statement.parse(body.statement.encode())
    if isinstance(body, RequestBody):
        _require_shallow(body.answer)


_CHECKS: dict[Kind, Callable[[Any], None]] = {
    Kind.CHECKPOINT: _require_checkpoint,
    Kind.HELD: _require_checkpoint,
    Kind.RESUME: _require_gate_digests,
    Kind.REQUEST: _require_statement,
    Kind.HANDOFF: _require_statement,
    Kind.APPROVAL: _require_verdict(Verdict.APPROVE),
    Kind.DENIAL: _require_verdict(Verdict.DENY),
    Kind.EXPIRY: _require_expiry,
    Kind.BREAK_GLASS: _require_verdict(Verdict.BREAK_GLASS),
    Kind.RESULTS: _require_results,
    Kind.PRUNE: require_sense,
    Kind.DELETE: require_sense,
    Kind.RESTORE: lambda body: _require_hexadecimal(
        [body.kept, body.lost, body.released, *([] if body.paused is None else [body.paused])]
    ),
    Kind.ROSTER: _require_positions,
}


def is_bound(statement: Statement, entry: Entry, basis: str, epoch: int) -> bool:
    """Whether a request is about the thread as it is, by the one who signed it.

    A restore voids every earlier request: its grant may have been spent in what was lost.

    Args:
        statement: What the request asks for.
        entry: The entry that makes it.
        basis: The hash of the basis that the entry was written on, in hexadecimal.
        epoch: The epoch that it has to be of.
    """
    header = entry.header
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
    )


def require_past(header: Header, body: Any) -> None:
    """Refuse a checkpoint or a resume that names a position which was not there yet.

    By such a checkpoint, somebody with its owner's key would have a state pass for the newest for
    ever.

    Raises:
        Misplaced: It names one below the first, or its own or a later one.
    """
    if isinstance(body, ResumeBody):
        for field, seq in (("released", body.released), ("decided", body.decided)):
            if seq is not None and not 0 <= seq < header.seq:
                raise Misplaced(
                    f"entry {header.seq}: expected {field!r} to be a position before it, found "
                    f"{seq}"
                )
        return
    if not isinstance(body, CheckpointBody):
        return
    if (body.again, body.since, body.prune, body.ids) == (None, None, None, None):
        return
    named = {"again": body.again, "since": body.since, "prune": body.prune}
    for field, seq in named.items():
        if seq is not None and not 0 <= seq < header.seq:
            raise Misplaced(
                f"entry {header.seq}: expected {field!r} to be a position before it, found {seq}"
            )
    _require_own_results(header, body)
    if body.ids is not None and (body.ids.first < 0 or body.ids.ends_at() != header.seq):
        raise Misplaced(
            f"entry {header.seq}: expected its table of ids to end before it, found that of "
            f"entries {body.ids.first} to {body.ids.ends_at() - 1}"
        )


def _require_own_results(header: Header, body: CheckpointBody) -> None:
    """Refuse a checkpoint that leaves out results of its own, or takes in those of long ago.

    Results that it names came before it, in the session that saved it first.
    """
    if body.since is None:
        return
    rank = header.seq if body.again is None else body.again
    if body.since > rank or (body.again is None and body.since <= header.fence):
        raise Misplaced(
            f"entry {header.seq}: expected 'since' to be a position of its session and not after "
            f"its rank {rank}, found {body.since}"
        )


class Unreadable(Edited):
    """A body that is as it was sealed, and says nothing: its writer's doing, not the store's."""


def parse_body(kind: Kind, digest: str, data: bytes) -> Any:
    """Check a body against the digest in its header, then read it.

    Raises:
        Edited: It is not the body that was sealed, or not one of this kind.
    """
    try:
        return read_body(kind, digest, data)
    except Unreadable as exc:
        raise Edited(exc.message) from exc.__cause__


def read_body(kind: Kind, digest: str, data: bytes) -> Any:
    """The same, for those who do not take the nonsense of a writer for damage.

    Raises:
        Edited: It is not the body that was sealed.
        Unreadable: It is, and is not one of this kind.
    """
    if len(data) > BODY_BYTES_MAX:
        raise Edited(f"entry body: expected at most {BODY_BYTES_MAX} bytes, found {len(data)}")
    if hashlib.sha256(data).hexdigest() != digest:
        raise Edited(
            f"entry body: expected the one with digest {digest[:12]}, found bytes of another digest"
        )
    try:
        body = _DECODERS[kind].decode(data)
        if encode_body(body) == data:
            if (check := _CHECKS.get(kind)) is not None:
                check(body)
            return body
    except (msgspec.MsgspecError, ValueError, RecursionError, SealpointError) as exc:
        raise Unreadable(
            f"entry body: expected the fields of a {kind.word} entry, found other fields"
        ) from exc
    raise Unreadable("entry body: its fields are not in canonical form")


def readable_body(header: Header, data: bytes) -> Any:
    """The body of an entry; None if nobody can read what was sealed, and nothing depends on it.

    That is the body of an entry about a request, which is left out, and one that only says why: a
    member who seals nonsense must not end every audit, and every restore, at that entry.

    Raises:
        Edited: It is not the body that was sealed, or the thread cannot do without it.
        Misplaced: It names a position that was not there when it was written.
    """
    try:
        body = read_body(header.kind, header.body, data)
    except Unreadable as exc:
        rule = KINDS[header.kind]
        if not (rule.about_requests or rule.only_says_why):
            raise Edited(exc.message) from exc
        return None
    require_past(header, body)
    return body
