# SPDX-License-Identifier: Apache-2.0
"""Blobs on their way into and out of the storage.

A blob is called by the SHA-256 of its stored bytes. A save may leave out only blobs that the
newest checkpoint at the head it appends to reaches, if its own key wrote that one; that the storage
happens to have one is no reason. What is read is hashed before anybody else sees it, and only then
decoded. What a handle remembers of the states that it last saved or loaded was proven, and nothing
of it says what is newest: a handle that remembers reads what one that does not reads.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Self

from sealpoint.codec import TreeMemo
from sealpoint.errors import Edited, Missing, UsageError
from sealpoint.ledger import CheckpointBody, Header, ResultsBody, link_hash
from sealpoint.limits import STATE_MEMORY_BYTES_MAX
from sealpoint.storage import Record, Storage
from sealpoint.store._chain import Chain
from sealpoint.store._core import Core
from sealpoint.store._state_memory import StateMemory

_FRESH_INLINE_MAX = 64
_PENDING_BYTES_MAX = 32 * 1024 * 1024
_TOGETHER_BYTES_MAX = 64 * 1024
_ROOT_BYTES_MAX = 2048
_SEEN_BYTES_MAX = STATE_MEMORY_BYTES_MAX // 4  # of one state
_LOOK_AHEAD = 2
_DIGEST_BYTES = 32
_LANES_MAX = 8
_CACHE_BYTES = 512  # what a cache takes that holds nothing
_LISTED_BYTES_MAX = 64 * 1024 * 1024


def blob_digest(blob: bytes) -> bytes:
    """What a blob is called."""
    return hashlib.sha256(blob).digest()


class BlobWriter:
    """Collects the blobs of one checkpoint; use it in a `with` block while they are put.

    What would take too much memory is stored ahead of the entry, in an OS thread of its own while
    the next blobs are made: one part at a time, and none any more when the block ends. Outside of
    such a block it is waited for at once.

    Args:
        storage: Where they will lie.
        thread: Whose they are.
        known: Those that may be left out.
        before: Blobs of the save before by their digests, in order. A state that grew puts mostly
            the same blobs again, and comparing bytes is ten times faster than hashing them.
        others: More that may be left out: what other lanes' newest checkpoints hold.
        collected: How often others have collected what was stored ahead of this entry. Each time
            twice as much waits for the entry, so however busy they are, it comes to an end.
    """

    __slots__ = (
        "_at",
        "_before",
        "_is_entered",
        "_known",
        "_order",
        "_others",
        "_pending_bytes",
        "_pending_bytes_max",
        "_seen_bytes",
        "_spill",
        "_spills",
        "_storage",
        "_thread",
        "fresh",
        "pending",
        "reached",
        "seen",
        "spilled",
    )

    def __init__(
        self,
        storage: Storage,
        thread: bytes,
        known: set[bytes],
        before: Mapping[bytes, bytes] = {},
        others: Sequence[set[bytes]] = (),
        *,
        collected: int = 0,
    ) -> None:
        self._storage = storage
        self._thread = thread
        self._known = known
        self._others = others
        self._before = before
        self._order = list(before)
        self._at = 0
        self._pending_bytes = 0
        self._pending_bytes_max = _PENDING_BYTES_MAX << collected
        self._seen_bytes = 0
        self._is_entered = False
        self._spills: ThreadPoolExecutor | None = None
        self._spill: Future[None] | None = None
        self.pending: dict[bytes, bytes] = {}
        """What is still to be stored with the entry."""
        self.spilled: set[bytes] = set()
        """What has been stored ahead of it."""
        self.fresh: dict[bytes, None] = {}
        """Every blob that is stored for this checkpoint, in order."""
        self.reached: set[bytes] = set()
        """Every blob of this checkpoint that lies among the blobs."""
        self.seen: dict[bytes, bytes] = {}
        """Blobs by their digests, in the order they were put, up to a bound."""

    def put(self, blob: bytes) -> bytes:
        """Take a blob; the codec's `put`."""
        at = self._at
        # The same bytes as at this place before, or at the next: their digest is known.
        for name in self._order[at : at + _LOOK_AHEAD]:
            at += 1
            if self._before[name] == blob:
                self._at = at
                break
        else:
            name = hashlib.sha256(blob).digest()
        self._see(name, blob)
        if name not in self.reached:
            self.reached.add(name)
            if name not in self._known and not any(name in known for known in self._others):
                self.fresh[name] = None
                self.pending[name] = blob
                self._pending_bytes += len(blob)
                if self._pending_bytes > self._pending_bytes_max:
                    self._begin_spill()
        return name

    def again(self, names: Sequence[bytes]) -> bool:
        """Take blobs of the save before as they are, if they may be left out; the codec's memo."""
        if not self._known.issuperset(names):
            return False
        self.reached.update(names)
        before = self._before
        kept = [*filter(before.__contains__, names)] if before else ()
        for name in kept:
            self._see(name, before[name])
        if kept:
            self._at = self._order.index(kept[-1]) + 1
        return True

    def _see(self, name: bytes, blob: bytes) -> None:
        self._seen_bytes += len(blob)
        if self._seen_bytes <= _SEEN_BYTES_MAX:
            self.seen[name] = blob

    def _begin_spill(self) -> None:
        """Let be stored early what would take too much memory; orphans are legal."""
        self._finish_spill()
        blobs, self.pending, self._pending_bytes = self.pending, {}, 0
        self.spilled.update(blobs)
        store = partial(self._storage.put_blobs, self._thread, blobs)
        if not self._is_entered:
            store()  # nobody would wait for it
            return
        if self._spills is None:
            self._spills = ThreadPoolExecutor(1, "sealpoint-blobs")
        try:
            self._spill = self._spills.submit(store)
        except RuntimeError:  # no thread can be started
            store()

    def _finish_spill(self) -> None:
        """Wait for what is being stored, and raise what it raised."""
        spill, self._spill = self._spill, None
        if spill is not None:
            spill.result()

    def __enter__(self) -> Self:
        self._is_entered = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_entered = False
        if self._spills is not None:
            self._spills.shutdown()
            self._spills = None
        if kind is None:
            self._finish_spill()

    def take_root(self, root: bytes) -> bytes | None:
        """The root blob itself if it is small and fresh: it then lies beside the entry.

        A root changes with every save, so there is nothing to share; and a later save must not
        count on it, because it is not among the blobs.
        """
        blob = self.pending.get(root)
        if blob is None or len(blob) > _ROOT_BYTES_MAX:
            return None
        del self.pending[root], self.fresh[root]
        self.reached.discard(root)
        return blob

    def listing(self) -> tuple[tuple[str, ...], str | None]:
        """How the entry names its fresh blobs: one by one, or by a blob that lists them."""
        if len(self.fresh) <= _FRESH_INLINE_MAX:
            return tuple(name.hex() for name in self.fresh), None
        listed = b"".join(self.fresh)
        name = blob_digest(listed)
        self.pending[name] = listed
        return (), name.hex()


class BlobReader:
    """Fetches blobs of one thread and proves each of them.

    Args:
        storage: Where they lie.
        thread: Whose they are.
        bytes_max: The most bytes that one may have.
        where: The checkpoint they belong to, for messages.
        beside: The root's digest, and the root itself if it lies beside the entry.
        seen: Blobs of the state before by their digests: hashed once by this process and kept in
            its memory, they need not be fetched again. A digest has no other content.
    """

    __slots__ = (
        "_bytes_max",
        "_fetched_bytes",
        "_payload",
        "_root",
        "_seen",
        "_storage",
        "_thread",
        "_where",
        "fetched",
        "reached",
    )

    def __init__(
        self,
        storage: Storage,
        thread: bytes,
        bytes_max: int,
        where: str,
        beside: tuple[bytes, bytes | None],
        *,
        seen: Mapping[bytes, bytes] = {},
    ) -> None:
        self._storage = storage
        self._thread = thread
        self._bytes_max = bytes_max
        self._where = where
        self._root, self._payload = beside
        self._seen = seen
        self.reached: set[bytes] = set()
        """What was found among the blobs, and not beside the entry."""
        self._fetched_bytes = 0
        self.fetched: dict[bytes, bytes] = {}
        """Blobs that came from the storage and were proven, by their digests, up to a bound."""

    def again(self, names: Sequence[bytes]) -> bool:
        """Take blobs for found whose content this process has otherwise; the codec's memo."""
        self.reached.update(names)
        return True

    def get_many(self, names: Sequence[bytes]) -> list[bytes]:
        """Several blobs against their digests; the codec's `get_many`."""
        seen, sha256 = self._seen, hashlib.sha256
        asked = [name for name in names if name not in seen]
        found = self._storage.blobs(self._thread, asked, _TOGETHER_BYTES_MAX) if asked else {}
        for name in asked:
            blob = found.get(name)
            if blob is None or sha256(blob).digest() != name:
                found[name] = self.get(name)  # it is long, or this says what is wrong
            else:
                self._keep(blob, name)
        self.reached.update(names)
        return [seen[name] if name in seen else found[name] for name in names]

    def get(self, name: bytes | str, bytes_max: int | None = None) -> bytes:
        """(7) A blob against its digest; the codec's `get`.

        Args:
            name: Its digest.
            bytes_max: Another bound than that for the blobs of a state.

        Raises:
            Missing: It is not in the store.
            Edited: Other bytes are stored in its place.
        """
        if not isinstance(name, bytes):
            raise UsageError("blob: expected 32 bytes")
        if name == self._root and self._payload is not None:
            blob: bytes | None = self._payload
        else:
            self.reached.add(name)
            if name in self._seen:
                return self._seen[name]
            blob = self._storage.blob(self._thread, name, bytes_max or self._bytes_max)
        if blob is None:
            raise Missing(f"{self._where}: blob {name.hex()[:12]} is missing")
        if hashlib.sha256(blob).digest() != name:
            raise Edited(
                f"{self._where}: expected blob {name.hex()[:12]}, found {len(blob)} "
                "bytes of another hash"
            )
        if blob is not self._payload:
            self._keep(blob, name)
        return blob

    def _keep(self, blob: bytes, name: bytes) -> None:
        """Remember a proven blob, as long as there are few: a state may be larger than memory."""
        self._fetched_bytes += len(blob)
        if self._fetched_bytes <= _SEEN_BYTES_MAX:
            self.fetched[name] = blob


def fresh_digests(
    fresh: Iterable[str], fresh_list: str | None, reader: BlobReader
) -> Iterable[bytes]:
    """The digests of the blobs that were stored with a checkpoint."""
    if fresh_list is None:
        return [bytes.fromhex(name) for name in fresh]
    # No blob of the state: a registry's bound on those does not hold for it.
    listed = reader.get(bytes.fromhex(fresh_list), _LISTED_BYTES_MAX)
    return (listed[place : place + _DIGEST_BYTES] for place in range(0, len(listed), _DIGEST_BYTES))


def _never(_names: Sequence[bytes]) -> bool:
    return False


class BlobCache:
    """What is remembered of the newest state of a lane.

    Args:
        memory: What the whole store may remember.
    """

    __slots__ = ("__weakref__", "_memory", "known", "memo", "seen")

    def __init__(self, memory: StateMemory) -> None:
        self._memory = memory
        self.known: set[bytes] = set()
        """Blobs of the newest checkpoint: those that a save may leave out."""
        self.seen: dict[bytes, bytes] = {}
        """Blobs of the state by their digests: what they hold is proven, so a save or load need
        not hash or fetch it again. Those of lists that the memo has are not among them."""
        self.memo = TreeMemo(_never)

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, but for the digests of `known`."""
        return _CACHE_BYTES + sum(map(len, self.seen.values())) + self.memo.size_bytes

    def remember(self, known: set[bytes], seen: dict[bytes, bytes]) -> None:
        """A state was saved or loaded, and is the newest of its lane."""
        for name in self.memo.rolled if seen else ():
            seen.pop(name, None)
        self.known, self.seen = known, seen
        self.memo.again = _never  # what it was told by holds all blobs of a save
        self._memory.hold(self)

    def let_go(self) -> None:
        """Others are used more: what follows is hashed, fetched and encoded as for the first time.

        Another OS thread may be at work with it: what that one has in hand stays as it is.
        """
        self.seen, self.memo = {}, TreeMemo(_never)


class BlobCaches:
    """The caches of the lanes that were used last.

    Args:
        memory: What the whole store may remember.
    """

    def __init__(self, memory: StateMemory) -> None:
        self._memory = memory
        self._all: dict[str, BlobCache] = {}

    def of(self, lane: str) -> BlobCache:
        """The cache of a lane, which is the youngest from here on."""
        cache = self._all.pop(lane, None)
        if cache is None:
            cache = BlobCache(self._memory)
            while len(self._all) >= _LANES_MAX:
                del self._all[next(iter(self._all))]
        self._all[lane] = cache
        return cache

    def known_but(self, lane: str) -> tuple[set[bytes], ...]:
        """What the newest checkpoints of the other lanes hold."""
        return tuple(cache.known for name, cache in self._all.items() if name != lane)

    def take_root(self, blob: bytes, known: set[bytes]) -> bytes | None:
        """The digest of a root that is all of a state, if it is to lie beside its entry.

        Args:
            blob: The root.
            known: What else may be left out; see `BlobWriter.take_root`.
        """
        if len(blob) > _ROOT_BYTES_MAX:
            return None
        root = hashlib.sha256(blob).digest()
        for cache in self._all.values():
            if root in cache.known:
                return None
        return None if root in known else root

    def lose_known(self) -> None:
        """Somebody else has saved: nothing may be left out any more."""
        for cache in self._all.values():
            cache.known = set()

    def forget(self) -> None:
        """Let go of everything."""
        self._all = {}


class PayloadReader:
    """Decodes what entries of a thread hold: states, results, and the worlds of runs.

    Args:
        core: The store.
        chain: The chain of the thread.
        caches: What the handle remembers of its states.
    """

    def __init__(self, core: Core, chain: Chain, caches: BlobCaches) -> None:
        self._core = core
        self._chain = chain
        self._caches = caches

    def blobs(
        self, header: Header, record: Record, body: CheckpointBody | ResultsBody
    ) -> BlobReader:
        """The blobs of an entry."""
        return BlobReader(
            self._core.storage,
            self._chain.thread,
            self._core.registry.limits.blob_bytes_max,
            f"entry {header.seq} of thread {self._chain.name!r}",
            (bytes.fromhex(body.root), record.payload),
            seen=self._caches.of(body.lane).seen,
        )

    def decode(
        self,
        header: Header,
        record: Record,
        body: CheckpointBody | ResultsBody,
        *,
        keep: bool,
        blobs: BlobReader | None = None,
    ) -> Any:
        """(7) the blobs against their digests, (8) only then decode.

        Args:
            header: The header of a verified entry.
            record: What the store has of it.
            body: Its body.
            keep: Whether it is the newest state of its lane, which is remembered.
            blobs: Its blobs, if they were opened already.
        """

        def tell_added(rule: str, fields: tuple[str, ...]) -> None:
            detail = f"{rule}: {', '.join(fields)}"
            entry = link_hash(record.header)
            self._core.emit("fields-added", header.thread, header.seq, entry, detail)

        blobs = self.blobs(header, record, body) if blobs is None else blobs
        cache = self._caches.of(body.lane) if keep else None
        if cache is not None:
            cache.memo.again = blobs.again
        value = self._core.registry.decode_tree(
            bytes.fromhex(body.root),
            blobs.get,
            verified=True,
            get_many=blobs.get_many,
            memo=None if cache is None else cache.memo,
            on_added=tell_added,
        )
        if cache is not None:
            seen = cache.seen
            if blobs.fetched:
                kept = {name: blob for name, blob in seen.items() if name in blobs.reached}
                seen = kept | blobs.fetched
            # Another writer may have listed none of its blobs, and a sweep drops what nobody lists:
            # so after a state by another key the next save lists all of them.
            signer = self._core.parts.signer
            is_own = signer is not None and header.by == signer.key
            cache.remember(blobs.reached if is_own else set(), seen)
        return value

    def is_same(
        self, value: Any, body: CheckpointBody, header: Header, record: Record | None
    ) -> bool:
        """Compare trees; a tree that another version cut differently is built anew first.

        That cannot be done without the record: of a state that was given up only the root is left.
        """
        registry, seed, root = self._core.registry, self._chain.thread, bytes.fromhex(body.root)
        mine = registry.encode_tree(value, blob_digest, seed=seed)
        if mine == root or record is None:
            return mine == root
        stored = self.decode(header, record, body, keep=False)
        return registry.encode_tree(stored, blob_digest, seed=seed) == mine
