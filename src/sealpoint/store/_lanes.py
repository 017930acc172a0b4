# SPDX-License-Identifier: Apache-2.0
"""Where the checkpoints of each lane lie, and the results that were added to them.

A thread may hold several lines of work, its *lanes*: a framework keeps those of its subgraphs
apart. The index covers the chain from its head down to its bottom and grows downwards as far as
somebody asks. It is made of the verified chain alone: no index that lies in the store is asked,
since one that hides an entry would make an id look free.
"""

from bisect import insort
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sealpoint.codec import TreeMemo
from sealpoint.errors import Edited, Missing
from sealpoint.ledger import CheckpointBody, Header, Kind, WritesBody, link_hash, parse_body
from sealpoint.storage import Record
from sealpoint.store._chain import Chain

__all__ = ["Key", "LaneIndex", "Place", "Trail", "Trails", "entry_body"]

_TRAILS_MAX = 8


class Key(NamedTuple):
    """What names a checkpoint within its thread."""

    lane: str
    id: str


class Place(NamedTuple):
    """Where an entry lies, proven by the links from the head."""

    seq: int
    entry: bytes
    """Its hash."""
    id: str
    """Of the checkpoint."""
    first: int
    """Where the first checkpoint of the same name lies, which gives it its rank in the lane."""
    held: bool = False
    """It is a checkpoint that a pause held back."""
    asks: bool = False
    """Results that wait for an answer."""


class LaneIndex:
    """The checkpoints and results of a chain from its head downwards.

    Args:
        chain: A chain with a verified head.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._bottom: Header | None = None
        self._complete = False
        self._places: dict[Key, Place] = {}
        self._results: dict[Key, list[Place]] = {}
        self._waiting: list[tuple[Key, Place]] = []
        """The results that wait for an answer or are checkpoints that were held back."""
        self._order: dict[str, list[tuple[int, str]]] = {}
        """By lane, in the order of their ranks."""
        self.any_held = False
        """Whether a checkpoint that was held back has been met."""

    def find(self, key: Key) -> Place | None:
        """The newest checkpoint of a name."""
        self._grow(lambda _seq: key in self._places)
        return self._places.get(key)

    def known(self, key: Key) -> Place | None:
        """The same, as far as the index reaches already."""
        return self._places.get(key)

    def newest(self, lane: str, hidden: Callable[[int], bool]) -> Place | None:
        """The newest checkpoint of a lane that is not hidden."""

        def ranks_first(seq: int) -> bool:
            found = next(self._shown(lane, hidden), None)
            return found is not None and seq <= found.first

        self._grow(ranks_first)
        return next(self._shown(lane, hidden), None)

    def each(self, lane: str, hidden: Callable[[int], bool]) -> Iterator[Place]:
        """All checkpoints of a lane that are not hidden, newest first."""
        self._grow(lambda _seq: False)
        yield from list(self._shown(lane, hidden))

    def lanes(self) -> list[str]:
        """Every lane that has a checkpoint."""
        self._grow(lambda _seq: False)
        return sorted(self._order)

    def results(self, key: Key, since: int) -> list[Place]:
        """The results that were added to a checkpoint at `since` or later, oldest first.

        Those before are left out even if they are known: who knows them must not read another
        state than who does not.
        """
        self._grow(lambda seq: seq <= since)
        return [place for place in self._results.get(key, ()) if place.seq >= since]

    def held(self, lane: str, since: int) -> list[Place]:
        """Checkpoints of a lane held back after a position and not yet saved, oldest first."""
        return [place for place in self._unclaimed(lane, since) if place.held]

    def held_lanes(self) -> list[str]:
        """The lanes in which a checkpoint was held back."""
        return sorted({key.lane for key, place in self._waiting if place.held})

    def asking(self, lane: str, since: int) -> list[Place]:
        """Results for checkpoints that are not there, if they wait for an answer."""
        return [place for place in self._unclaimed(lane, since) if place.asks]

    def _unclaimed(self, lane: str, since: int) -> list[Place]:
        self._grow(lambda seq: seq <= since)
        return sorted(
            place
            for key, place in self._waiting
            if key.lane == lane and key not in self._places and place.seq > since
        )

    def earliest(self, key: Key, since: int, gone: Callable[[int], bool]) -> int | None:
        """Where the first results of a checkpoint lie that is about to be written itself.

        Whoever adds them before does so in the same session, which begins at `since`.
        """
        self._grow(lambda seq: seq <= since)
        found = (place.seq for place in self._results.get(key, ()) if not gone(place.seq))
        return next(found, None)

    def follow(self, header: Header, entry: bytes, data: bytes) -> None:
        """Take in an entry, with its body, that has just become the newest."""
        if header.kind in (Kind.CHECKPOINT, Kind.WRITES):
            self.follow_body(header, entry, entry_body(self._chain.name, header, data))

    def follow_body(self, header: Header, entry: bytes, body: CheckpointBody | WritesBody) -> None:
        """The same for a body that is known: this handle has written it."""
        if self._bottom is None and not self._complete:
            return  # nothing has been asked for yet: the way down begins above this one
        if isinstance(body, CheckpointBody):
            self._put(header, entry, body, older=False)
        else:
            key, place = self._result(header, entry, body)
            self._results.setdefault(key, []).append(place)

    def _shown(self, lane: str, hidden: Callable[[int], bool]) -> Iterator[Place]:
        for _, name in reversed(self._order.get(lane, ())):
            place = self._places[Key(lane, name)]
            if not hidden(place.seq):
                yield place

    def _grow(self, enough: Callable[[int], bool]) -> None:
        """Go down until what is asked for is told by the position of the bottom, or all is in."""
        if self._complete:
            return
        if self._bottom is not None and enough(self._bottom.seq):
            return
        for header, record in self._chain.walk(self._bottom):
            if header.kind is Kind.ERASE:
                break
            self._take(header, record)
            self._bottom = header
            if enough(header.seq):
                return
        self._complete = True

    def _take(self, header: Header, record: Record) -> None:
        if header.kind not in (Kind.CHECKPOINT, Kind.WRITES):
            return
        body = entry_body(self._chain.name, header, record.body)
        if header.kind is Kind.CHECKPOINT:
            self._put(header, link_hash(record.header), body, older=True)
        else:
            key, place = self._result(header, link_hash(record.header), body)
            self._results.setdefault(key, []).insert(0, place)

    def _put(self, header: Header, entry: bytes, body: CheckpointBody, *, older: bool) -> None:
        key = Key(body.lane, body.id)
        known = self._places.get(key)
        if known is not None and older:
            return
        first = header.seq if body.again is None else body.again
        self._places[key] = Place(header.seq, entry, body.id, first)
        order = self._order.setdefault(body.lane, [])
        if known is not None and known.first != first:
            order.remove((known.first, body.id))  # the one before was deleted
        if known is None or known.first != first:
            insort(order, (first, body.id))

    def _result(self, header: Header, entry: bytes, body: WritesBody) -> tuple[Key, Place]:
        key = Key(body.lane, body.checkpoint)
        asks = body.question is not None
        place = Place(header.seq, entry, body.checkpoint, header.seq, body.held, asks)
        if body.held or asks:
            self._waiting.append((key, place))
        self.any_held = self.any_held or body.held
        return key, place


def entry_body(name: str, header: Header, data: bytes | None) -> Any:
    """The body of an entry of a thread, of which a message says where it lies.

    Raises:
        Missing: It is gone, and no erasure says so.
        Edited: It is not the one that was sealed, or not one of its kind.
    """
    where = f"entry {header.seq} of thread {name!r}"
    if data is None:
        raise Missing(f"{where}: expected its body, found none")
    try:
        return parse_body(header.kind, header.body, data)
    except Edited as exc:
        raise Edited(f"{where}: {exc.message}") from exc


class Trail:
    """What a handle remembers of the state that it last saved or loaded in a lane."""

    __slots__ = ("known", "memo", "seen")

    def __init__(self) -> None:
        self.known: set[bytes] = set()
        """Blobs of the newest checkpoint: those that a save may leave out."""
        self.seen: list[tuple[bytes, bytes]] = []
        """Blobs of the state, up to a megabyte, with their digests: what they hold is proven, so
        a save or load need not hash or fetch it again."""
        self.memo = TreeMemo(lambda _names: False)


class Trails:
    """The trails of the lanes that were used last."""

    def __init__(self) -> None:
        self._all: dict[str, Trail] = {}

    def of(self, lane: str) -> Trail:
        """The trail of a lane, which is the youngest from here on."""
        trail = self._all.pop(lane, None)
        if trail is None:
            trail = Trail()
            while len(self._all) >= _TRAILS_MAX:
                del self._all[next(iter(self._all))]
        self._all[lane] = trail
        return trail

    def known_but(self, lane: str) -> tuple[set[bytes], ...]:
        """What the newest checkpoints of the other lanes hold."""
        return tuple(trail.known for name, trail in self._all.items() if name != lane)

    def lose_known(self) -> None:
        """Somebody else has saved: nothing may be left out any more."""
        for trail in self._all.values():
            trail.known = set()

    def forget(self) -> None:
        """Let go of everything."""
        self._all = {}
