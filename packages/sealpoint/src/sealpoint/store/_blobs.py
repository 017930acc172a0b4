# SPDX-License-Identifier: Apache-2.0
"""Blobs on their way into and out of the storage.

The name of a blob is the SHA-256 of its stored bytes. A save may omit only the blobs that the
newest checkpoint at the head references, and only if its own key wrote that checkpoint. The
presence of a blob in the storage is not a sufficient reason. A blob that is read is hashed first,
and decoded only after that. A handle caches proven parts of the states that it last saved or
loaded. The cache does not say which state is newest, so a handle with a cache reads the same as one
without.
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
from sealpoint.store._state_cache import StateMemory
from sealpoint.store._store_parts import Core
from sealpoint.store._verified_chain import Chain

_FRESH_INLINE_MAX = 64
_PENDING_BYTES_MAX = 32 * 1024 * 1024
_TOGETHER_BYTES_MAX = 64 * 1024
_ROOT_BYTES_MAX = 2048
_SEEN_BYTES_MAX = STATE_MEMORY_BYTES_MAX // 4  # of one state
_LOOK_AHEAD = 2
_DIGEST_BYTES = 32
_LANES_MAX = 8
_CACHE_BYTES = 512  # the size of an empty cache
_LISTED_BYTES_MAX = 64 * 1024 * 1024


def blob_digest(blob: bytes) -> bytes:
    """Return the name of a blob."""
    return hashlib.sha256(blob).digest()


class BlobWriter:
    """Collects the blobs of one checkpoint; use it in a `with` block while they are put.

    Blobs that would take too much memory are stored ahead of the entry, in a separate OS thread
    while the next blobs are made: one part at a time, and all before the block ends. Outside such a
    block the writer waits for the storage at once.

    Args:
        storage: The storage that receives the blobs.
        thread: The thread that owns the blobs.
        known: The blobs that may be omitted.
        before: Blobs of the previous save by their digests, in order. A state that grew puts mostly
            the same blobs again, and comparing bytes is ten times faster than hashing them.
        others: More blobs that may be omitted: those of other lanes' newest checkpoints.
        collected: How often other processes have collected blobs stored ahead of this entry. Each
            time, the limit for blobs that wait for the entry doubles, so that the save ends even if
            the other processes are busy.
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
        """The blobs to be stored with the entry."""
        self.spilled: set[bytes] = set()
        """The blobs that were stored ahead of the entry."""
        self.fresh: dict[bytes, None] = {}
        """Every blob that is stored for this checkpoint, in order."""
        self.reached: set[bytes] = set()
        """Every blob of this checkpoint that is stored as a blob."""
        self.seen: dict[bytes, bytes] = {}
        """Blobs by their digests, in the order they were put, up to a limit."""

    def put(self, blob: bytes) -> bytes:
        """Add a blob; the codec's `put`."""
        at = self._at
        # The same bytes as at this place before, or at the next, have a known digest.
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
        """Add blobs of the previous save unchanged, if they may be omitted; the codec's memo."""
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
        """Store the pending blobs early, to save memory; unreferenced blobs are legal."""
        self._finish_spill()
        blobs, self.pending, self._pending_bytes = self.pending, {}, 0
        self.spilled.update(blobs)
        store = partial(self._storage.put_blobs, self._thread, blobs)
        if not self._is_entered:
            store()  # no block end would wait for it
            return
        if self._spills is None:
            self._spills = ThreadPoolExecutor(1, "sealpoint-blobs")
        try:
            self._spill = self._spills.submit(store)
        except RuntimeError:  # no OS thread can be started
            store()

    def _finish_spill(self) -> None:
        """Wait for the blobs that are being stored, and raise their error."""
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
        """Return the root blob if it is small and fresh: it is then stored with the entry.

        A root changes with every save, so there is nothing to share. A later save must not omit it,
        because it is not among the blobs.
        """
        blob = self.pending.get(root)
        if blob is None or len(blob) > _ROOT_BYTES_MAX:
            return None
        del self.pending[root], self.fresh[root]
        self.reached.discard(root)
        return blob

    def listing(self) -> tuple[tuple[str, ...], str | None]:
        """Return how the entry names its fresh blobs: one by one, or by a blob that lists them."""
        if len(self.fresh) <= _FRESH_INLINE_MAX:
            return tuple(name.hex() for name in self.fresh), None
        listed = b"".join(self.fresh)
        name = blob_digest(listed)
        self.pending[name] = listed
        return (), name.hex()


class BlobReader:
    """Fetches blobs of one thread and checks each of them against its digest.

    Args:
        storage: The storage of the blobs.
        thread: The thread that owns the blobs.
        bytes_max: The maximum size of one blob.
        where: The checkpoint they belong to, for messages.
        beside: The root's digest, and the root itself if it is stored with the entry.
        seen: Blobs of the previous state by their digests. This process has hashed them once and
            kept them in memory, so they need not be fetched again. A digest has no other content.
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
        """The names of the blobs that were read as blobs, and not with the entry."""
        self._fetched_bytes = 0
        self.fetched: dict[bytes, bytes] = {}
        """Fetched and checked blobs, by their digests, up to a limit."""

    def again(self, names: Sequence[bytes]) -> bool:
        """Count blobs as read whose content this process already has; the codec's memo."""
        self.reached.update(names)
        return True

    def get_many(self, names: Sequence[bytes]) -> list[bytes]:
        """Return several blobs, checked against their digests; the codec's `get_many`."""
        seen, sha256 = self._seen, hashlib.sha256
        asked = [name for name in names if name not in seen]
        found = self._storage.blobs(self._thread, asked, _TOGETHER_BYTES_MAX) if asked else {}
        for name in asked:
            blob = found.get(name)
            if blob is None or sha256(blob).digest() != name:
                found[name] = self.get(name)  # it is long, or this raises the error
            else:
                self._keep(blob, name)
        self.reached.update(names)
        return [seen[name] if name in seen else found[name] for name in names]

    def get(self, name: bytes | str, bytes_max: int | None = None) -> bytes:
        """(7) Return a blob, checked against its digest; the codec's `get`.

        Args:
            name: Its digest.
            bytes_max: Another limit than that for the blobs of a state.

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
        """Cache a checked blob up to a limit, because a state may be larger than memory."""
        self._fetched_bytes += len(blob)
        if self._fetched_bytes <= _SEEN_BYTES_MAX:
            self.fetched[name] = blob


def fresh_digests(
    fresh: Iterable[str], fresh_list: str | None, reader: BlobReader
) -> Iterable[bytes]:
    """Return the digests of the blobs that were stored with a checkpoint."""
    if fresh_list is None:
        return [bytes.fromhex(name) for name in fresh]
    # The list is not a blob of the state, so a registry's size limit does not apply.
    listed = reader.get(bytes.fromhex(fresh_list), _LISTED_BYTES_MAX)
    return (listed[place : place + _DIGEST_BYTES] for place in range(0, len(listed), _DIGEST_BYTES))


def _never(_names: Sequence[bytes]) -> bool:
    return False


class BlobCache:
    """The cached parts of the newest state of a lane.

    Args:
        memory: The memory budget of the whole store.
    """

    __slots__ = ("__weakref__", "_memory", "known", "memo", "seen")

    def __init__(self, memory: StateMemory) -> None:
        self._memory = memory
        self.known: set[bytes] = set()
        """Blobs of the newest checkpoint, which a save may omit."""
        self.seen: dict[bytes, bytes] = {}
        """Blobs of the state by their digests. Their content is proven, so a save or load need not
        hash or fetch them again. Blobs of lists that the memo holds are not included."""
        self.memo = TreeMemo(_never)

    @property
    def size_bytes(self) -> int:
        """Return its size in memory, without the digests of `known`."""
        return _CACHE_BYTES + sum(map(len, self.seen.values())) + self.memo.size_bytes

    def remember(self, known: set[bytes], seen: dict[bytes, bytes]) -> None:
        """Cache a saved or loaded state, which is the newest of its lane."""
        for name in self.memo.rolled if seen else ():
            seen.pop(name, None)
        self.known, self.seen = known, seen
        self.memo.again = _never  # the method of a save would keep all its blobs in memory
        self._memory.hold(self)

    def let_go(self) -> None:
        """Drop the content, because other caches are used more; the next use starts from empty.

        Another OS thread may be using the cache: the objects that it holds are not changed.
        """
        self.seen, self.memo = {}, TreeMemo(_never)


class BlobCaches:
    """The caches of the most recently used lanes.

    Args:
        memory: The memory budget of the whole store.
    """

    def __init__(self, memory: StateMemory) -> None:
        self._memory = memory
        self._all: dict[str, BlobCache] = {}

    def of(self, lane: str) -> BlobCache:
        """Return the cache of a lane, and make it the most recently used one."""
        cache = self._all.pop(lane, None)
        if cache is None:
            cache = BlobCache(self._memory)
            while len(self._all) >= _LANES_MAX:
                del self._all[next(iter(self._all))]
        self._all[lane] = cache
        return cache

    def known_but(self, lane: str) -> tuple[set[bytes], ...]:
        """Return the blobs of the newest checkpoints of the other lanes."""
        return tuple(cache.known for name, cache in self._all.items() if name != lane)

    def take_root(self, blob: bytes, known: set[bytes]) -> bytes | None:
        """Return the digest of a root that is a whole state, if it is stored with its entry.

        Args:
            blob: The root.
            known: Other blobs that may be omitted; see `BlobWriter.take_root`.
        """
        if len(blob) > _ROOT_BYTES_MAX:
            return None
        root = hashlib.sha256(blob).digest()
        for cache in self._all.values():
            if root in cache.known:
                return None
        return None if root in known else root

    def lose_known(self) -> None:
        """Forget which blobs may be omitted, because another process has saved."""
        for cache in self._all.values():
            cache.known = set()

    def forget(self) -> None:
        """Drop all caches."""
        self._all = {}


class PayloadReader:
    """Decodes the payloads of a thread's entries: states, results, and the worlds of runs.

    Args:
        core: The store.
        chain: The chain of the thread.
        caches: The handle's caches of its states.
    """

    def __init__(self, core: Core, chain: Chain, caches: BlobCaches) -> None:
        self._core = core
        self._chain = chain
        self._caches = caches

    def blobs(
        self, header: Header, record: Record, body: CheckpointBody | ResultsBody
    ) -> BlobReader:
        """Return a reader for the blobs of an entry."""
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
        """(7) Check the blobs against their digests, (8) and only then decode.

        Args:
            header: The header of a verified entry.
            record: The stored record of the entry.
            body: Its body.
            keep: Whether it is the newest state of its lane, which is cached.
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
            # Another writer may have listed none of its blobs, and a sweep drops unlisted blobs. So
            # after
            # a state by another key, the next save lists all of them.
            signer = self._core.parts.signer
            is_own = signer is not None and header.by == signer.key
            cache.remember(blobs.reached if is_own else set(), seen)
        return value

    def is_same(
        self, value: Any, body: CheckpointBody, header: Header, record: Record | None
    ) -> bool:
        """Compare trees; a tree that another version cut differently is rebuilt first.

        Rebuilding needs the record: of a pruned state only the root is left.
        """
        registry, seed, root = self._core.registry, self._chain.thread, bytes.fromhex(body.root)
        mine = registry.encode_tree(value, blob_digest, seed=seed)
        if mine == root or record is None:
            return mine == root
        stored = self.decode(header, record, body, keep=False)
        return registry.encode_tree(stored, blob_digest, seed=seed) == mine
