# SPDX-License-Identifier: Apache-2.0
"""A store whose backend really stores and can be told to fail, to race and to lie.

A `Deployment` is everything that outlives a process: the bytes of the storage, the anchor, the keys
and the clock. Each `open` is a process of its own that looks at it.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from msgspec.structs import replace

from sealpoint.anchor import Anchor, Hold, Holder, Position
from sealpoint.anchor.local import LocalAnchor
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.api import Store
from sealpoint.audit import Progress, Report, verify_store
from sealpoint.codec import Registry
from sealpoint.gate import Thread
from sealpoint.ledger import ResumeBody, StoreChain
from sealpoint.signing import Identity, PrivateKey, Role, RosterDocument, TrustPin
from sealpoint.storage import Record, Storage
from sealpoint.storage.file import FileStorage
from sealpoint.storage.memory import MemoryStorage
from sealpoint.storage.sqlite import SqliteStorage
from sealpoint.store import CommitDraft, Core, Event, SessionStart, StoreParts, append_roster
from sealpoint.store._names import thread_slot
from tests.ledgers import NOW, identity, key, pin, roster
from tests.postgres_server import postgres_storage, schema_of, shared_server

__all__ = ["Deployment", "Opened", "SimulatedAnchor", "SimulatedStorage"]

Hook = Callable[[], object]
_T = TypeVar("_T")

_BACKENDS: dict[str, Callable[..., Storage]] = {
    "file": FileStorage,
    "sqlite": SqliteStorage,
    "postgres": postgres_storage,
}


class _Hooks:
    """Things to do once, before or after a call."""

    def __init__(self) -> None:
        self.before: Hook | None = None
        self.after: Hook | None = None

    def run_before(self) -> None:
        hook, self.before = self.before, None
        if hook is not None:
            hook()

    def run_after(self) -> None:
        hook, self.after = self.after, None
        if hook is not None:
            hook()


def _raise(error: BaseException) -> Hook:
    def hook() -> None:
        raise error

    return hook


class SimulatedStorage:
    """A storage that can be told what to do around the next call."""

    def __init__(self, inner: Storage, *, closes: bool) -> None:
        self.inner = inner
        self._closes = closes
        self.appending = _Hooks()
        self.spilling = _Hooks()
        self.dropping = _Hooks()
        self.truncating = _Hooks()
        self.compacting = _Hooks()
        self.reading = _Hooks()
        self.scanning = _Hooks()
        self.fetching = _Hooks()
        self.listing = _Hooks()
        self.labelling = _Hooks()
        self.offered: list[tuple[bytes, int, bytes]] = []
        """Thread, position and header of everything that was signed and offered."""
        self.groups: list[int] = []
        """How many entries each append held that took effect."""
        self.notes_reads = True
        self.read_positions: list[tuple[bytes, int]] = []
        self.written: set[bytes] = set()
        """The digests of all blobs that were given."""
        self.given: dict[tuple[bytes, bytes], bytes] = {}
        """Those blobs, by thread and digest."""
        self.fetched: set[bytes] = set()
        """The digests of all blobs that were asked for."""
        self.spills = 0
        self.drops = 0
        self.compactions = 0

    def fail(self, error: BaseException, *, after: bool) -> None:
        """Let the next append raise, before or after it has taken effect."""
        if after:
            self.appending.after = _raise(error)
        else:
            self.appending.before = _raise(error)

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        needs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Store, and do what was asked for around it."""
        for number, record in enumerate(records, start=seq):
            self.offered.append((thread, number, record.header))
        self.appending.run_before()
        self.inner.append(thread, seq, records, blobs=blobs, needs=needs, label=label)
        self.groups.append(len(records))
        self._give(thread, blobs)
        self.appending.run_after()

    def alone(self, thread: bytes) -> AbstractContextManager[None]:
        """Let others wait."""
        return self.inner.alone(thread)

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Store blobs."""
        self.inner.put_blobs(thread, blobs)
        self.spills += 1
        self._give(thread, blobs)
        self.spilling.run_after()

    def _give(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        self.written.update(blobs)
        self.given.update({(thread, digest): blob for digest, blob in blobs.items()})

    def drop(
        self,
        thread: bytes,
        head: int,
        *,
        payloads: Sequence[int] = (),
        bodies: Sequence[int] = (),
        blobs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Drop, and do what was asked for around it."""
        self.dropping.run_before()
        self.inner.drop(thread, head, payloads=payloads, bodies=bodies, blobs=blobs, label=label)
        self.drops += 1
        self.dropping.run_after()

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """Take records away, and do what was asked for around it."""
        self.truncating.run_before()
        self.inner.truncate(thread, seq, header)

    def compact(self) -> None:
        """Compact, and do what was asked for around it."""
        self.compacting.run_before()
        self.inner.compact()
        self.compactions += 1

    def read(self, thread: bytes, seq: int) -> Record | None:
        """Read a position."""
        self.reading.run_before()
        self.read_positions.append((thread, seq))
        return self.inner.read(thread, seq)

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """Read headers at positions."""
        self.reading.run_before()
        self.read_positions.extend((thread, seq) for seq in seqs)
        return self.inner.headers(thread, seqs)

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """Read positions in order."""
        self.scanning.run_before()
        for seq, record in self.inner.scan(thread, first, last, descending=descending):
            if self.notes_reads:
                self.read_positions.append((thread, seq))
            yield seq, record

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """Read a blob."""
        self.fetching.run_before()
        self.fetched.add(digest)
        return self.inner.blob(thread, digest, size_bytes_max)

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Read several blobs."""
        self.fetching.run_before()
        self.fetched.update(digests)
        return self.inner.blobs(thread, digests, size_bytes_max)

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """List the blobs of a thread."""
        return self.inner.stored_blobs(thread)

    def version(self) -> tuple[int, int, int] | None:
        """Whether something may have changed."""
        return self.inner.version()

    def blob_threads(self) -> Iterator[bytes]:
        """List the threads that have blobs."""
        return self.inner.blob_threads()

    def heads(self) -> Iterator[tuple[bytes, int]]:
        """List the threads."""
        self.listing.run_before()
        return self.inner.heads()

    def labelled(self, label: bytes) -> list[bytes]:
        """Look a label up."""
        self.labelling.run_before()
        return self.inner.labelled(label)

    def close(self) -> None:
        """Close, unless other processes of the world look at the same memory."""
        if self._closes:
            self.inner.close()


class SimulatedAnchor:
    """An anchor that can be told what to do around the next call."""

    def __init__(self, inner: Anchor, *, closes: bool) -> None:
        self.inner = inner
        self._closes = closes
        self.getting = _Hooks()
        self.creating = _Hooks()
        self.advancing = _Hooks()
        self.listing = _Hooks()
        self.writes = 0

    def fail(self, error: BaseException) -> None:
        """Let the next advance raise, before it has taken effect."""
        self.advancing.before = _raise(error)

    def get(self, slot: bytes) -> Position | None:
        """Read a slot."""
        self.getting.run_before()
        return self.inner.get(slot)

    def create(self, slot: bytes, position: Position) -> Position:
        """Write a slot that is absent."""
        self.creating.run_before()
        self.writes += 1
        return self.inner.create(slot, position)

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Move a slot on."""
        self.advancing.run_before()
        self.writes += 1
        return self.inner.advance(slot, expected, position)

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """List the slots."""
        self.listing.run_before()
        return self.inner.slots()

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Let a run have a thread."""
        return self.inner.hold(slot, holder, instead=instead)

    def holder(self, slot: bytes) -> Holder | None:
        """Whose run has a thread."""
        return self.inner.holder(slot)

    def close(self) -> None:
        """Close, unless other processes of the world look at the same memory."""
        if self._closes:
            self.inner.close()


class _NoGate:
    """Lets every save begin or continue a session, for tests of the store alone."""

    def __init__(self, core: Core, handle: Thread, ungated: set[bytes]) -> None:
        self._core = core
        self._handle = handle
        self._ungated = ungated

    def begin_session(
        self, draft: CommitDraft, owner: str, basis: int, trust: StoreChain
    ) -> SessionStart:
        """A session that nobody has judged."""
        self._ungated.add(self._handle._state.chain.thread)
        body = ResumeBody(salt=self._core.salt(), owner=owner, basis=basis)
        if (world := draft.declared) is not None:
            body = replace(body, world=world.digest, leaves=world.to_dict())
        return SessionStart(body, trust)

    def continue_session(self, draft: CommitDraft) -> None:
        """Any world will do."""


class Opened(Store):
    """A store that shows its simulated parts; its threads are without a gate unless asked for.

    Sessions that began without one record nothing that could be judged again, so where no policy
    is in force and there are some, `verify` judges nobody.
    """

    def __init__(
        self,
        parts: StoreParts,
        storage: SimulatedStorage,
        anchor: SimulatedAnchor,
        *,
        ungated: set[bytes],
        gated: bool = False,
    ) -> None:
        self._gated = gated
        self._ungated = ungated
        super().__init__(parts)
        self._gated_handle = self._checkpoints._new_handle
        self._checkpoints._new_handle = self._handle
        self.storage = storage
        self.anchor = anchor

    def _handle(self, core: Core, name: str) -> Thread:
        handle = self._gated_handle(core, name)
        if not self._gated:
            handle._gate.writer.gate = _NoGate(core, handle, self._ungated)
        return handle

    def verify(self, progress: Callable[[Progress], object] | None = None) -> Report:
        """As the store does, unless there is nothing to judge."""
        if self._ungated and not self.core.trust().roster.document.policies:
            return verify_store(self.core, progress)
        return super().verify(progress)

    @property
    def core(self) -> Core:
        """What all threads share."""
        return self._checkpoints.core


class Deployment:
    """What outlives a process: storage, anchor, keys and clock.

    Args:
        folder: Keep everything in files there; without it, in memory.
        backend: How, if so.
    """

    def __init__(self, folder: Path | None = None, *, backend: str = "sqlite") -> None:
        self.pin: TrustPin = pin()
        self.secret = b"s" * 32
        self.clock = NOW
        self.events: list[Event] = []
        self.folder = folder
        self.backend = backend
        """What its storage is kept in, if it has a folder."""
        self.memory = MemoryStorage()
        self.anchored = MemoryAnchor()
        self._opened: list[Opened] = []
        self._ungated: set[bytes] = set()
        """Threads on which a session began without a gate."""
        self._chain = StoreChain(self.pin)
        self.people: list[Identity] = [identity("worker"), identity("operator", Role.OPERATOR)]
        core = Core(self._parts(None))
        self._enter(core, roster(*self.people))
        core.anchor_store_chain()
        self._release(core)

    def now(self) -> datetime:
        """The clock; it ticks whenever somebody looks."""
        self.clock += timedelta(seconds=1)
        return self.clock

    def _parts(self, signer: PrivateKey | None, **changes: Any) -> StoreParts:
        read_only: bool = changes.get("read_only", False)
        storage: Storage = self.memory
        if self.folder is not None:
            storage = _BACKENDS[self.backend](
                self.folder / "store.db", create=not read_only, read_only=read_only
            )
        anchor = self._anchor(read_only=read_only)
        closes = self.folder is not None
        options: dict[str, Any] = {
            "storage": SimulatedStorage(storage, closes=closes),
            "anchor": SimulatedAnchor(anchor, closes=closes),
            "pin": self.pin,
            "secret": self.secret,
            "signer": signer,
            "registry": Registry(),
            "namespace": "default",
            "read_only": read_only,
            "now": self.now,
            "random_bytes": os.urandom,
            "on_event": self.events.append,
        }
        if "anchor" in changes and closes:
            anchor.close()
        return StoreParts(**(options | changes))

    def _anchor(self, *, read_only: bool) -> Anchor:
        if self.folder is None:
            return self.anchored
        folder = self.folder / "anchor"
        store = self.pin.store.raw
        return LocalAnchor(folder, store=store, key=b"k" * 32, read_only=read_only)

    def open(self, who: str | None = "worker", *, gated: bool = False, **changes: Any) -> Opened:
        """Open the store as an identity; other parts may be given instead of the world's."""
        signer = None if who is None or changes.get("read_only") else key(who)
        parts = self._parts(signer, **changes)
        storage, anchor = parts.storage, parts.anchor
        assert isinstance(storage, SimulatedStorage)
        assert isinstance(anchor, SimulatedAnchor)
        try:
            opened = Opened(parts, storage, anchor, ungated=self._ungated, gated=gated)
        except BaseException:
            storage.close()
            anchor.close()
            raise
        self._opened.append(opened)
        return opened

    def core(self, who: str, **changes: Any) -> Core:
        """The shared parts alone, for what is done to a store from outside."""
        return Core(self._parts(key(who), **changes))

    def using(self, call: Callable[[Core], _T], who: str | None = None, **changes: Any) -> _T:
        """What a call makes of the shared parts, which are released then."""
        core = Core(self._parts(None if who is None else key(who), **changes))
        try:
            return call(core)
        finally:
            self._release(core)

    def enrol(self, *people: Identity) -> None:
        """Enter identities into the roster."""
        self.people += people
        self.change(lambda document: replace(document, identities=tuple(self.people)))

    def apply(self, policy: bytes, namespace: str = "*") -> str:
        """Put a policy in force; what is returned is its digest."""
        digest = sha256(policy)
        policies = {namespace: digest.hexdigest()}
        self.change(
            lambda document: replace(document, policies={**document.policies, **policies}),
            blobs={digest.digest(): policy},
        )
        return digest.hexdigest()

    def change(
        self,
        change: Callable[[RosterDocument], RosterDocument],
        blobs: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """Put a changed roster into force, by the root."""

        def enter(core: Core) -> None:
            chain = core.renewed_trust()
            document = change(chain.roster.document)
            core.written(append_roster(core, chain, document, [key("root")], blobs=blobs or {}))

        self.using(enter)

    def _enter(self, core: Core, document: RosterDocument) -> None:
        self._chain = append_roster(core, self._chain, document, [key("root")])

    def _release(self, core: Core) -> None:
        core.storage.close()
        core.anchor.close()

    def thread_id(self, name: str, namespace: str = "default") -> bytes:
        """The id that the anchor has for a name."""
        position = self.position(name, namespace)
        assert position is not None
        return position.thread

    def slot(self, name: str, namespace: str = "default") -> bytes:
        """The anchor's slot for a name."""
        return thread_slot(self.secret, namespace, name)

    def position(self, name: str, namespace: str = "default") -> Position | None:
        """What the anchor has for a name."""
        anchor = self._anchor(read_only=True)
        try:
            return anchor.get(self.slot(name, namespace))
        finally:
            if self.folder is not None:
                anchor.close()

    # ------------------------------------------------------------------ behind everybody's back

    def record(self, name: str, seq: int) -> Record:
        """The record at a position, in memory."""
        return self.memory._records[self.thread_id(name)][seq]

    def put(self, thread: bytes, seq: int, record: Record | None) -> None:
        """Write, replace or delete a row, in memory."""
        rows = self.memory._records.setdefault(thread, {})
        if record is None:
            del rows[seq]
        else:
            rows[seq] = record
        self.memory._positions[thread] = sorted(rows)
        if not rows:
            del self.memory._records[thread], self.memory._positions[thread]

    def turn_anchor(self, slot: bytes, position: Position) -> None:
        """Put a position into a slot of the anchor, as no call of an anchor would."""
        if self.folder is None:
            self.anchored._positions[slot] = position
            return
        with (
            patch("sealpoint.anchor.local.require_rising"),
            closing(self._anchor(read_only=False)) as anchor,
        ):
            held = anchor.get(slot)
            assert held is not None
            assert anchor.advance(slot, held, position) == position

    def forget(self, name: str) -> None:
        """Lose the anchor's slot of a name, in memory."""
        self.forget_slot(self.slot(name))

    def forget_slot(self, slot: bytes) -> None:
        """Lose a slot of the anchor, in memory."""
        del self.anchored._positions[slot]

    def blobs(self, name: str) -> dict[bytes, bytes]:
        """The blobs of a thread, in memory."""
        thread = self.thread_id(name)
        return {
            digest: blob for (owner, digest), blob in self.memory._blobs.items() if owner == thread
        }

    def put_blob(self, name: str, digest: bytes, blob: bytes | None) -> None:
        """Replace or delete a blob, in memory."""
        place = (self.thread_id(name), digest)
        if blob is None:
            self.memory._forget(place[0], [digest])
        else:
            self.memory._blobs[place] = blob

    def close(self) -> None:
        """Close whatever is still open."""
        for opened in self._opened:
            opened.close()
        self.memory.close()
        self.anchored.close()

    def remove(self) -> None:
        """Close, and leave nothing on a server."""
        self.close()
        if self.folder is not None and self.backend == "postgres":
            shared_server().drop_schema(schema_of(self.folder / "store.db"))
