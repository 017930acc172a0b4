# SPDX-License-Identifier: Apache-2.0
"""Bodies and blobs of a thread: what must be there, and what may be gone because it was given up.

The walk goes from the first entry to the last, and what a prune or an erasure gave up is said only
after it. So the newest of each is looked up from the end, believed for the time being, and must
turn out at the end to be the one that the verified chain has.
"""

from typing import NamedTuple

from sealpoint.codec import Reached, tree_blobs
from sealpoint.errors import Misplaced, Missing
from sealpoint.ledger import (
    KINDS,
    ChainStep,
    CheckpointBody,
    Entry,
    Kind,
    PruneBody,
    ResultsBody,
    parse_body,
    parse_header,
)
from sealpoint.storage import Record
from sealpoint.store import BlobReader, Core, fresh_digests

_NOTHING = PruneBody(salt="", before=0)


class Claims(NamedTuple):
    """Where the newest erasure and the newest prune of its generation lie, as the store says."""

    erased: int | None = None
    prune: int | None = None
    rule: PruneBody | None = None


class RetentionCheck:
    """What has been given up in one thread, while it is verified entry by entry."""

    def __init__(self, core: Core, thread: bytes) -> None:
        self._core = core
        self._thread = thread
        self._reached = Reached()
        self._erased: int | None = None
        self._prune: tuple[int, PruneBody] | None = None
        self._checkpoint = -1
        self.claims = _claimed(core, thread)

    def check(self, record: Record, step: ChainStep) -> None:
        """Check the next verified entry: that its body is there, and the blobs that it must have.

        Raises:
            Missing: Something is gone that nobody gave up.
            Edited: Something is not what was written.
            Misplaced: A prune brings back what was given up, or takes what it must not.
        """
        entry, body, seq = step.entry, step.body, step.entry.seq
        rule = KINDS[entry.header.kind]
        if self.claims.erased is not None and seq < self.claims.erased:
            return
        if record.body is None:
            raise Missing(f"entry {seq}: its body is missing")
        if entry.header.kind is Kind.ERASE:
            self._erased, self._prune = seq, None
        elif rule.is_retention:
            self._check_given_up(entry, body)
        elif rule.is_checkpoint:
            self._checkpoint = seq
            self._check_named(seq, body)
        if rule.holds_payload:
            world = body.world if isinstance(body, CheckpointBody) else None
            self._check_payload(seq, body, world, record.payload)

    def finish(self) -> None:
        """Make sure that what was believed on the way is what the chain says."""
        prune = None if self._prune is None else self._prune[0]
        if (self._erased, prune) != self.claims[:2]:
            raise Missing(
                f"thread {self._thread.hex()[:12]}: something is gone, and no erasure or prune "
                "accounts for it"
            )

    def _check_given_up(self, entry: Entry, body: PruneBody) -> None:
        seq, is_prune = entry.seq, entry.header.kind is Kind.PRUNE
        prune, earlier = self._prune or (None, _NOTHING)
        if not body.includes(earlier):
            raise Misplaced(f"entry {seq}: it keeps what an earlier prune or delete gave up")
        if body.earlier != prune:
            raise Misplaced(f"entry {seq}: it does not name the prune or delete before it")
        if body.end > seq:
            raise Misplaced(f"entry {seq}: it gives up entries that were not there yet")
        needed = self._checkpoint >= 0 or is_prune
        if needed and body.covers(self._checkpoint) and not body.deletes(self._checkpoint):
            raise Misplaced(f"entry {seq}: it gives up the newest checkpoint")
        if is_prune and body.deleted != earlier.deleted:
            raise Misplaced(f"entry {seq}: a prune deletes nothing, and this one claims to")
        self._prune = seq, body

    def _check_named(self, seq: int, body: CheckpointBody) -> None:
        prune = None if self._prune is None else self._prune[0]
        if body.prune != prune:
            raise Misplaced(f"entry {seq}: expected it to name prune {prune}, found {body.prune}")

    def _check_payload(
        self, seq: int, body: CheckpointBody | ResultsBody, world: str | None, payload: bytes | None
    ) -> None:
        _, newest, rule = self.claims
        if rule is not None and rule.covers(seq):
            return
        root = bytes.fromhex(body.root)
        reader = BlobReader(
            self._core.storage,
            self._thread,
            self._core.registry.limits.blob_bytes_max,
            f"entry {seq} of thread {self._thread.hex()[:12]}",
            (root, payload),
        )
        reader.get(root)
        if newest is not None and seq < newest:
            # Blobs that it needs may be listed by a checkpoint that was given up.
            for _ in tree_blobs(
                root,
                reader.get,
                limits=self._core.registry.limits,
                reached=self._reached,
                fetch_all=True,
            ):
                pass
        for digest in fresh_digests(body.fresh, body.fresh_list, reader):
            reader.get(digest)
        if world is not None:
            reader.get(bytes.fromhex(world))


def _claimed(core: Core, thread: bytes) -> Claims:
    """Look from the end for the newest erasure and prune; nothing of this is believed yet.

    What a checkpoint says of it is not asked: by a lie, honest entries would seem to lack
    something.
    """
    prune: int | None = None
    for seq, record in core.storage.scan(thread, 0, descending=True):
        header = parse_header(record.header)
        if header.kind is Kind.ERASE:
            return _with_rule(core, thread, Claims(seq, prune))
        if prune is None and KINDS[header.kind].is_retention:
            prune = seq
        if prune is not None and not header.gen:
            break
    return _with_rule(core, thread, Claims(None, prune))


def _with_rule(core: Core, thread: bytes, claims: Claims) -> Claims:
    record = None if claims.prune is None else core.storage.read(thread, claims.prune)
    if record is None or record.body is None:
        return claims
    header = parse_header(record.header)
    if not KINDS[header.kind].is_retention:
        return claims
    rule: PruneBody = parse_body(header.kind, header.body, record.body)
    return claims._replace(rule=rule)
