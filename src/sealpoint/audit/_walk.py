# SPDX-License-Identifier: Apache-2.0
"""Going through a thread from its first entry to its last, each verified before it is shown.

`Follower` is pure and believes nothing that it was not given a proof for: signature, place, links,
fence, owner, pause and body of every entry, as a reader of the store would. `ThreadWalk` feeds it
from a store and compares with the anchor. Blobs are not looked at; `verify_store` does that.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from sealpoint.anchor import Position
from sealpoint.audit._payloads import Retention, readable_body
from sealpoint.errors import (
    Forked,
    Misplaced,
    Missing,
    NotTrusted,
    RolledBack,
    SealpointError,
    Tampered,
    Unanchored,
)
from sealpoint.ledger import (
    STORE_CHAIN,
    CutoffCheck,
    Entry,
    Kind,
    Place,
    StoreChain,
    Tip,
    begin,
    extend,
    link_hash,
    parse_header,
    verify_entry,
)
from sealpoint.storage import Record
from sealpoint.store import Core, check_expiry, claimed_name


class ChainStep(NamedTuple):
    """One entry of a thread, verified as the next one."""

    entry: Entry
    record: Record
    body: Any
    """What was parsed; None if an erasure has taken it, or it is nonsense."""
    before: Tip | None
    """The end of the thread before it; None for the first entry."""
    tip: Tip
    chain: StoreChain
    """The store chain that it was judged by."""

    @property
    def nonsense(self) -> bool:
        """Whether its writer sealed a body that nobody can read."""
        return self.body is None and self.record.body is not None


class Follower:
    """A thread as far as it has been followed.

    Args:
        place: Where its entries belong.
        chain: The rosters; a newer one may be put in its place on the way.
    """

    def __init__(self, place: Place, chain: StoreChain) -> None:
        self.place = place
        self.chain = chain
        self.tip: Tip | None = None
        self._cuts = CutoffCheck()
        self._bare = -1
        self._erased = -1

    def take(self, record: Record) -> ChainStep:
        """Verify the next entry.

        Raises:
            Tampered, NotTrusted, Forked: It is not what was written as the next one.
        """
        before = self.tip
        seq = 0 if before is None else before.entry.seq + 1
        # (1) bytes, signature, place, and that neither a restore nor a cut has ended it
        entry = verify_entry(
            record.header, record.seals, place=self.place, seq=seq, chain=self.chain
        )
        self._cuts.follow(entry, record.body, self.chain)
        # (2) the body that the header binds
        header = entry.header
        body = None if record.body is None else readable_body(header, record.body)
        # (3) links, fence, owner, pause
        if before is None:
            tip = begin(entry, record.body, self.chain)
        else:
            tip = extend(before, entry, record.body, self.chain)
        if record.body is None:
            self._bare = seq
        if header.kind is Kind.ERASE:
            self._erased = seq
        self.tip = tip
        return ChainStep(entry, record, body, before, tip, self.chain)

    def finish(self) -> Tip:
        """The end of the thread, once there are no more entries.

        Raises:
            Missing: There is none, or a body is gone that no erasure has taken.
            RolledBack: An entry that the cut of a revoked key lists, or that the newest restore
                kept, has not been reached.
        """
        where = f"thread {self.place.thread[:12]}"
        if self.tip is None:
            raise Missing(f"{where}: expected a genesis, found none")
        if self._bare > self._erased:
            raise Missing(f"entry {self._bare} of {where}: expected its body, found none")
        self.tip.require_owner()
        self._cuts.require_settled(where)
        kept = self.chain.kept(bytes.fromhex(self.place.thread))
        if kept is not None and kept[0] > self.tip.entry.seq:
            raise RolledBack(
                f"{where}: expected entry {kept[0]}, which the newest restore kept, found entry "
                f"{self.tip.entry.seq} to be the last"
            )
        return self.tip


class ThreadWalk:
    """A thread of an open store, from its first entry to its last.

    Args:
        core: The store.
        thread: The thread's id.
        anchored: What the anchor knows of it.
        name: What it is called, where that is known otherwise than from the thread itself.
    """

    def __init__(
        self, core: Core, thread: bytes, anchored: Position | None, name: str = ""
    ) -> None:
        self._core = core
        self._anchored = anchored
        self.thread = thread
        self.name = name

    @classmethod
    def each(cls, core: Core) -> Iterator[Self]:
        """A walk for every thread of the store's namespace, as `sources` finds them."""
        for source in sources(core):
            yield cls(core, source.thread, source.anchored)

    def steps(self) -> Iterator[ChainStep]:
        """Every entry; at the end, and only there, it is certain that none is missing.

        Raises:
            Tampered, NotTrusted, Forked, RolledBack, Unanchored: The thread does not verify.
        """
        core, anchored = self._core, self._anchored
        if core.storage.read(self.thread, 0) is None and anchored is not None:
            if anchored.reserved:
                return  # somebody is about to begin it
            raise self._ends_before(anchored, -1)
        namespace, claimed = claimed_name(core, self.thread)
        self.name = self.name or claimed
        follower = Follower(Place(core.store_hex, namespace, self.thread.hex()), core.trust())
        erased = self._erased()
        for expected, (seq, record) in enumerate(core.storage.scan(self.thread, 0)):
            if seq != expected:
                raise Missing(
                    f"entry {expected} of thread {self.thread.hex()[:12]}: expected it in the "
                    "store, found none"
                )
            # What an erasure has taken is not shown again because it was interrupted.
            gone = erased is not None and seq < erased
            step = self._taken(
                follower, Record(record.header, record.seals, None) if gone else record
            )
            self._compare(step)
            yield step
        tip = follower.finish()
        if anchored is None:
            raise Unanchored(f"thread {self.name!r}: expected the anchor to know it")
        if anchored.seq > tip.entry.seq:
            raise self._ends_before(anchored, tip.entry.seq)

    def _erased(self) -> int | None:
        """Where the newest erasure lies, as the store says; the walk itself must come to it."""
        try:
            return Retention(self._core, self.thread).claims.erased
        except Tampered:
            return None  # the walk finds what is wrong, and tells what lies before it

    def _taken(self, follower: Follower, record: Record) -> ChainStep:
        try:
            return follower.take(record)
        except (NotTrusted, Misplaced):
            # It may have been written under a roster that came while this runs.
            renewed = self._core.renewed_trust()
            if renewed.seq == follower.chain.seq:
                raise
            follower.chain = renewed
            return follower.take(record)

    def _compare(self, step: ChainStep) -> None:
        anchored = self._anchored
        if anchored is None:
            return
        if step.entry.seq > anchored.seq:
            before = None if step.before is None else step.before.entry.header
            check_expiry(self._core, step.chain, step.entry, step.record.body, before)
        elif step.entry.seq == anchored.seq and step.entry.hash != anchored.entry:
            raise Forked(
                f"thread {self.name!r}: expected entry {anchored.seq} as the anchor has it, found "
                "another genuine one"
            )

    def _ends_before(self, anchored: Position, last: int) -> RolledBack:
        return RolledBack(
            f"thread {self.name or self.thread.hex()[:12]!r}: expected entry {anchored.seq}, which "
            f"the anchor has seen, found entry {last} to be the last"
        )


class Source(NamedTuple):
    """A thread of the store's namespace, or one of which nobody can tell."""

    thread: bytes
    anchored: Position | None


def sources(core: Core) -> Iterator[Source]:
    """Every thread of the namespace, by the anchor and by the store; nothing is left out.

    The namespace of a thread is taken from an entry that the anchor vouches for. Where that is
    not there, or is another, the thread counts as one of this namespace, so that it is found out.

    Raises:
        SealpointError: The store chain cannot be believed, or nobody can look.
    """
    core.renewed_trust()
    # Threads before slots, as in `verify_store`: a name is reserved before it has an entry.
    threads = set(core.storage.threads())
    slots = {position.thread: _restored(core, position) for _, position in core.anchor.slots()}
    threads.discard(STORE_CHAIN)
    slots.pop(STORE_CHAIN, None)
    for thread in sorted(threads | slots.keys()):
        anchored = slots.get(thread)
        if (anchored is None or not anchored.reserved or thread in threads) and (
            _namespace(core, thread, anchored) in (None, core.namespace)
        ):
            yield Source(thread, anchored)


def _restored(core: Core, position: Position) -> Position:
    """What the anchor says after the restores; what the store lacks of it, the walk will tell."""
    try:
        return core.restored(position)
    except SealpointError:
        return position


def _namespace(core: Core, thread: bytes, anchored: Position | None) -> str | None:
    """The namespace of a thread; None if nobody can tell."""
    vouched = anchored is not None and not anchored.reserved
    seq = anchored.seq if anchored is not None and vouched else 0
    try:
        record = core.storage.read(thread, seq)
        if record is None or (
            vouched and anchored is not None and link_hash(record.header) != anchored.entry
        ):
            return None
        return parse_header(record.header).ns
    except SealpointError:
        return None
