# SPDX-License-Identifier: Apache-2.0
"""The bodies of entries: content that people and applications wrote, and that can be erased.

The header binds a body by its SHA-256. A body begins with its own 32 random bytes, so that no one
can test guesses against the hash that stays after an erasure. Fields that were added later have a
default and are not written while they have it, so older bodies keep their bytes.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from sealpoint.errors import Edited, Misplaced, Missing, SealpointError
from sealpoint.ledger._entry import PRINT_BYTES, Entry, Header
from sealpoint.ledger._entry_kinds import KINDS, Kind
from sealpoint.limits import BODY_BYTES_MAX, JSON_DEPTH_MAX, ROLLOUTS_PER_RESUME_MAX
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
    """The fields of every body."""

    salt: str
    """32 random bytes in hexadecimal."""


# The data that the owner of a thread gave up: the body of a prune and of a delete.
#
# Each such body lists everything given up so far, so the newest one is complete.


class PruneBody(Body, frozen=True, kw_only=True):
    """The data given up in this prune or delete and in earlier ones.

    The payload is gone for every checkpoint, and all results, at a position below `before` that is
    not in `kept`, and for everything in `deleted`. Deleted checkpoints are also hidden from
    listings.
    """

    before: int
    kept: tuple[int, ...] = ()
    """In rising order, all below `before`."""
    reason: str | None = None
    deleted: tuple[tuple[int, int], ...] = msgspec.field(name="hidden", default=())
    """First and last positions of each span, in rising order, with gaps between spans."""
    earlier: int | None = None
    """The position of the prune or delete before this one, in the same generation."""

    def covers(self, seq: int) -> bool:
        """Whether the entry at this position has lost its payload."""
        if seq < self.before:
            place = bisect_left(self.kept, seq)
            if place == len(self.kept) or self.kept[place] != seq:
                return True
        return self.deletes(seq)

    def deletes(self, seq: int) -> bool:
        """Whether the application deleted the entry at this position."""
        return seq <= self.span_at(seq)[1]

    def includes(self, earlier: "PruneBody") -> bool:
        """Whether this gives up everything that an earlier one gave up."""
        spans = tuple(self.span_at(first) for first, _ in earlier.deleted)
        return (
            self.before >= earlier.before
            and not any(earlier.covers(seq) and not self.deletes(seq) for seq in self.kept)
            and all(last <= span[1] for (_, last), span in zip(earlier.deleted, spans, strict=True))
        )

    def newly_deleted(self, before: "PruneBody | None") -> int | None:
        """Return the first position that is deleted here and was not before, or None."""
        for first, last in self.deleted:
            start = first
            if before is not None:
                start = max(first, before.span_at(first)[1] + 1)
            if start <= last:
                return start
        return None

    def span_at(self, seq: int) -> tuple[int, int]:
        """Return the last deleted span that begins at or before a position; else an empty one."""
        place = bisect_right(self.deleted, seq, key=_first)
        return self.deleted[place - 1] if place else (seq, seq - 1)

    @property
    def end(self) -> int:
        """The position after the last one that it could mean."""
        return max(self.before, self.deleted[-1][1] + 1 if self.deleted else 0)


def _first(span: tuple[int, int]) -> int:
    return span[0]


def require_sense(body: PruneBody) -> None:
    """Refuse positions that no correct writer would list, even if the owner signed them."""
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
    """The newest entry that this session continues from."""
    reason: str | None = None
    """The caller's reason for doing it deliberately."""
    checkpoint: str | None = None
    """The hash of the checkpoint that was released for execution."""
    release: str | None = None
    """The digest of everything released with it, as `docs/formats/release.md` defines it."""
    released: int | None = None
    """The position of that checkpoint."""
    world: str | None = None
    """The digest of the capabilities of the run from here on."""
    leaves: dict[str, Any] | None = None
    """That world, unless `decided` names the resume that contains it."""
    decided: int | None = None
    """The position of the resume that decided about this world; None: this one. A session keeps
    the world of the checkpoint that it resumes, so without a checkpoint it is None."""
    policy: str | None = None
    """The digest of the policy that judged it."""
    rules: tuple[str, ...] = ()
    """The rules of the policy that applied; empty: an ordinary continuation."""
    request: str | None = None
    """The digest of the statement whose approval this uses."""
    rollouts: tuple[Statement, ...] = ()
    """The rollouts that accept the changed world for many threads, if any were needed; each once,
    sorted by their digests."""
    attestations: tuple[Attestation, ...] = ()
    """The approvals: one attestation of each person that counted."""
    answer: str | None = None
    """The digest of the answer that the run resumes with."""
    answered: str | None = None
    """The digest of the statement of the signed answer that the run resumes with."""
    actor: str | None = None
    """The person who answered or asked: proven if `answered` names a signed answer, and otherwise
    what the caller claims."""
    held: bool = False
    """Whether a run held the thread in the anchor: the session ended with the run."""
    idempotent: bool = False
    """Whether the application declared that the next steps may be repeated."""
    edits: bool = False
    """Whether the session only edits the state: nothing runs in it."""

    @property
    def unsealed(self) -> list[str]:
        """The kinds of unsealed data that the run may read, according to the world in `leaves`."""
        topology = {} if self.leaves is None else self.leaves.get("topology")
        found = topology.get("unsealed") if isinstance(topology, dict) else None
        return sorted(found) if isinstance(found, dict) else []


class HandoffBody(Body, frozen=True, kw_only=True):
    """A handoff: the thread gets a new owner, and no session continues."""

    owner: str
    """The next owner: an identity, or a pool of the roster."""
    reason: str
    statement: Statement | None = None
    """The approved statement, if this is an operator's handoff."""
    attestations: tuple[Attestation, ...] = ()
    actor: str | None = None
    """The person for whom its writer claims to act; it proves nothing."""


class PauseBody(Body, frozen=True, kw_only=True):
    """A pause: the thread cannot resume, and only work in progress is still saved."""

    reason: str
    actor: str | None = None
    """The person for whom its writer claims to act; it proves nothing."""


class UnpauseBody(Body, frozen=True, kw_only=True):
    """The end of a pause: the thread may resume."""

    reason: str
    actor: str | None = None
    """The person for whom its writer claims to act; it proves nothing."""


class RequestBody(Body, frozen=True, kw_only=True):
    """A request for approval by other people, with everything that they must see."""

    statement: Statement
    reasons: tuple[str, ...] = ()
    """Why it needs approval, one sentence each."""
    answer: Any = None
    """The answer whose digest the statement binds."""
    world: dict[str, Any] | None = None
    """The world whose digest the statement binds as `world_to`."""
    differences: tuple[tuple[str, tuple[Any, ...], tuple[Any, ...]], ...] = ()
    """The differences whose digests a rollout's statement binds, in its order: the leaf, the value
    before and the value after, each as a list of one; an empty list where the leaf is absent."""


class VerdictBody(Body, frozen=True, kw_only=True):
    """A person's own attestation on a request, relayed by the writer of the entry."""

    attestation: Attestation
    actor: str | None = None
    """The person for whom the entry was written, as its writer claims; it proves nothing."""


class ExpiryBody(Body, frozen=True, kw_only=True):
    """The expiry of a request, or the end of a rollout, which expired or was denied."""

    request: str
    """The digest of its statement."""
    positions: str | None = None
    """For a rollout, the digest of a blob of the thread: each thread's position after its end."""


_NO_THREAD = "0" * 32


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The origin of a copied checkpoint, or of copied results."""

    thread: str
    """The id of the thread; zeros, which no thread has, for a file of another storage."""
    entry: str
    """The hash of the entry, or the SHA-256 of the file."""
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    """The time of the original: a copy is not younger."""

    @classmethod
    def of_file(cls, sha256: str, at: datetime) -> "Origin":
        """Make the origin of a checkpoint that is imported from a file, which no one had signed."""
        return cls(thread=_NO_THREAD, entry=sha256, at=at)

    @property
    def is_file(self) -> bool:
        """Whether it was imported from a file."""
        return self.thread == _NO_THREAD


# Some checkpoints carry a table of the ids in a long stretch before them. A search for an id finds
# its possible positions in the table, and knows that it is nowhere else in the stretch. Different
# ids may have the same print, and then the entry decides; but an id always has the same print, so
# the search never misses one.

TABLE_EVERY = 128
"""The number of positions between checkpoints that get a table."""

TABLE_POSITIONS_MAX = 64 * TABLE_EVERY
"""The approximate maximum of positions that a writer covers in one table."""


class IdTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The ids of the checkpoints in a stretch that ends just before the entry with this table."""

    first: int
    """The first position of the stretch."""
    prints: str
    """For each position the result of `id_print`, in hexadecimal; zeros if there is no
    checkpoint."""

    def require_digits(self) -> None:
        """Refuse a malformed table, even with a valid signature.

        Raises:
            ValueError: The prints do not have the right number of digits.
        """
        data = bytes.fromhex(self.prints)
        if not data or len(data) % PRINT_BYTES or data.hex() != self.prints:
            raise ValueError("expected eight hexadecimal digits for each position")

    def ends_at(self) -> int:
        """Return the position after the last one of the stretch."""
        return self.first + len(self.prints) // (2 * PRINT_BYTES)


class CheckpointBody(Body, frozen=True, kw_only=True):
    """A saved state."""

    id: str
    root: str
    """The digest of the state's root blob."""
    fresh: tuple[str, ...] = ()
    """The digests of the blobs that were stored with this entry."""
    fresh_list: str | None = None
    """Instead of `fresh` if there are many: a blob with those digests, 32 bytes each."""
    parent: str | None = None
    """The id of the checkpoint it came from, as the application claims: lineage, not order."""
    metadata: dict[str, Any] | None = None
    world: str | None = None
    """The digest of a blob: the capabilities of the run, as JSON."""
    prune: int | None = None
    """The position of the newest prune entry before this one."""
    question: Any = None
    """The question that the run is waiting for someone to answer."""
    lane: str = ""
    """The line of work inside the thread that it belongs to, such as a subgraph's."""
    again: int | None = None
    """The position of the first checkpoint of the same lane and id, which this one supersedes."""
    since: int | None = None
    """The position of the first results that were added to it before it existed."""
    origin: Origin | None = None
    """The origin, if this is a copy."""
    ids: IdTable | None = None
    """The ids of a stretch of checkpoints before it, so that a search need not walk through
    them."""

    @property
    def is_new_in_main_lane(self) -> bool:
        """Whether it moves the run itself on: not a subgraph, and not an earlier name again."""
        return not self.lane and self.again is None


class ResultsBody(Body, frozen=True, kw_only=True):
    """Results of a task that were added to a checkpoint, and that the next one will include."""

    checkpoint: str
    """The id of the checkpoint, which may follow later."""
    task: str
    root: str
    """The digest of the root blob of the results."""
    lane: str = ""
    path: str = ""
    """The place of the task in the program, as the framework names it."""
    fresh: tuple[str, ...] = ()
    fresh_list: str | None = None
    question: Any = None
    """The question that the task is waiting for someone to answer."""
    answers: bool = False
    """Whether they are the answer that a person gave, and not yet the task's result from it."""
    origin: Origin | None = None


class AdoptBody(Body, frozen=True, kw_only=True):
    """An adoption: an operator added a thread, or the store chain, to an anchor that lacked it."""

    reason: str


class EraseBody(Body, frozen=True, kw_only=True):
    """An erasure: everything that the thread held up to here was removed."""

    reason: str


class RestoreBody(Body, frozen=True, kw_only=True):
    """An entry of the store chain that accepts a restored store as it is."""

    reason: str
    kept: str
    """The digest of a blob of the store chain: the newest entry kept, for each thread."""
    lost: str
    """The digest of another blob: the newest entry that the anchor had seen, if it is gone."""
    released: str
    """The digest of a third blob: the lines of `kept` for cut threads that may continue from
    there."""
    paused: str | None = None
    """The digest of a fourth blob: the lines of `kept` for threads whose pause was lost."""


class RosterBody(Body, frozen=True, kw_only=True):
    """A roster, on the store chain."""

    roster: RosterDocument
    reason: str | None = None
    positions: str | None = None
    """If a policy changes, the digest of a blob of the store chain: the position of each thread."""


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
    """Refuse names of blobs that are not digests: even the owner may have signed invalid ones."""
    _require_names(body, body.world)
    _require_shallow(body.metadata, body.question)
    if body.ids is not None:
        body.ids.require_digits()


def _require_results(body: ResultsBody) -> None:
    _require_names(body, None)
    _require_shallow(body.question)


def _require_shallow(*values: Any) -> None:
    """Refuse JSON that is nested deeper than a writer may write, because printing it would fail."""
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
    # Each time has one spelling: without this check, an offset other than Z would be accepted.
    if origin.at.tzinfo is not UTC:
        raise ValueError("expected the one spelling of a time")


def _require_hexadecimal(named: list[str], digits: int = _DIGEST_DIGITS) -> None:
    text = "".join(named)
    if set(map(len, named)) - {digits} or bytes.fromhex(text).hex() != text:
        raise ValueError("expected hexadecimal digits")


def _require_gate_digests(body: ResumeBody) -> None:
    if (body.checkpoint is None) != (body.release is None):
        raise ValueError("expected a checkpoint with the release that it is part of")
    if body.checkpoint is None and (body.released, body.decided) != (None, None):
        raise ValueError("expected no position of a checkpoint, or of its world, without one")
    if len(body.rollouts) > ROLLOUTS_PER_RESUME_MAX:
        raise ValueError(f"expected at most {ROLLOUTS_PER_RESUME_MAX} rollouts")
    digests = [each.digest for each in body.rollouts]
    if digests != sorted(set(digests)):
        raise ValueError("expected each rollout once, sorted")
    for rollout in body.rollouts:
        Statement.parse(rollout.encode())
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
        for _, before, after in body.differences:
            if len(before) > 1 or len(after) > 1:
                raise ValueError("expected one value or none on each side of a difference")
            _require_shallow([*before, *after])


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
    """Whether a request is about the current thread and its signer is the requester.

    A restore invalidates every earlier request: the lost entries may have used its approval.

    Args:
        statement: The statement of the request.
        entry: The entry that makes it.
        basis: The hash of the basis that the entry was written on, in hexadecimal.
        epoch: The epoch that it must belong to.
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
    """Refuse a checkpoint or a resume that names a position that did not exist yet.

    With such a checkpoint, an attacker with its owner's key could make one state appear as the
    newest forever.

    Raises:
        Misplaced: It names a negative position, or its own or a later one.
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
    """Refuse a checkpoint that omits its own results, or includes results of an earlier session.

    The results that it names precede it, in the session that saved it first.
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
    """A body that is as it was sealed but malformed: its writer did that, not the store."""


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
    """Do the same, but distinguish a writer's malformed body from damage.

    Raises:
        Edited: It is not the body that was sealed.
        Unreadable: It is the sealed body, but not one of this kind.
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


def readable_body(header: Header, data: bytes | None) -> Any:
    """Return the body of an entry; None if it cannot be read and nothing depends on it.

    None is possible for the body of an entry about a request, which is ignored, and for a body that
    only gives a reason. Its writer may have sealed a malformed body, or appended the entry without
    its body or with another one. If that were an error, any member could make every audit, every
    restore and every answer to a request fail at that entry.

    Raises:
        Missing: It is missing, and the thread depends on it.
        Edited: It is not the body that was sealed, or malformed, and the thread depends on it.
        Misplaced: It names a position that did not exist when it was written.
    """
    needed = KINDS[header.kind].needs_body
    if data is None:
        if needed:
            raise Missing(f"entry {header.seq}: its body is missing")
        return None
    try:
        body = read_body(header.kind, header.body, data)
    except Edited as exc:
        if needed:
            raise Edited(exc.message) from exc
        return None
    require_past(header, body)
    return body


def is_lost(header: Header, data: bytes | None) -> bool:
    """Whether a body is missing, or is not the one that was sealed: nobody knows what that said."""
    if data is None or len(data) > BODY_BYTES_MAX:
        return True
    return hashlib.sha256(data).hexdigest() != header.body
