# SPDX-License-Identifier: Apache-2.0
"""Answering a request on a machine without the store, from an export with everything to be shown.

An export is a copy of the request's thread and of the store chain, with the blobs that are needed
to show the request, and without states. It is not trusted: it is loaded into a store in memory,
verified from the first entry on against the reader's own pin, and read like any store. So an
approver sees the same there as here, regardless of what the request claims. The export does not
show what happened after it: whether the request is still open is decided when the answer is
relayed, and again when it is used. The format is docs/formats/request.md.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Literal, Self

import msgspec

from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.api._open import WORKER, remote_key
from sealpoint.api._store import Store
from sealpoint.api._store_location import Directory, StoreLocation, Trust, now, read_pin
from sealpoint.api._why import verify_bundle
from sealpoint.audit import BundleThread, fill_storage
from sealpoint.codec import Registry, tree_blobs
from sealpoint.config import PassphraseSource
from sealpoint.errors import (
    BundleInvalid,
    DecodeError,
    Forked,
    Missing,
    NotTrusted,
    SealpointError,
    UsageError,
)
from sealpoint.gate import Request, SignedAnswer, Status, Thread, why_closed
from sealpoint.ledger import STORE_CHAIN, Kind, ResultsBody, parse_body, parse_header
from sealpoint.limits import BUNDLE_BYTES_MAX, POSITION_LIST_BYTES_MAX, REQUEST_BYTES_MAX
from sealpoint.signing import Attestation, Signer, SigningKey, TrustPin, Verdict
from sealpoint.storage import Record, Storage
from sealpoint.storage.memory import MemoryStorage
from sealpoint.store import (
    BlobReader,
    Chain,
    CheckpointRef,
    Core,
    PendingResult,
    Release,
    StoreParts,
    blob_digest,
    enter_copy,
    shown_position,
)
from sealpoint.world import WorldDiff

# A request with everything that people see of it is made from the thread again, and does not use
# the request's own claims.
#
# The command line and an export show an approver exactly the result of `examine`.


_CLOSED = (Status.DENIED, Status.EXPIRED, Status.VOID)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """Results of a task, with their value if it can be decoded here."""

    lane: str
    result: PendingResult
    value: Any
    fault: str | None
    """Why the value is unknown here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownState:
    """The state of the checkpoint of a lane, if it can be decoded here."""

    lane: str
    state: Any
    fault: str | None
    """Why the state is unknown here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRelease:
    """A release with the values of its pending results."""

    release: Release
    ref: CheckpointRef
    results: tuple[ShownResult, ...]
    states: tuple[ShownState, ...] = ()
    """The states behind the question, if they were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedRequest:
    """A request, with the findings about it here."""

    request: Request
    shown: ShownRelease | None
    """The release that it asks for, made from the thread; None if there is none or on error."""
    diff: WorldDiff | None
    fault: SealpointError | None
    """Why its content is not trustworthy."""
    earlier: tuple[Request, ...] = ()
    """The requests before it for the same checkpoint."""
    signed: SignedAnswer | None = None
    """The answer that a person has signed for the thread as it is."""

    def require_agreeable(self) -> None:
        """Refuse a request that must not be approved, or let pass without approvals.

        A request that shows another state than the one that would run can still be denied.

        Raises:
            NotTrusted: It shows another state than the one that would be signed.
            RequestClosed: It was denied, has expired, or another policy is in force.
        """
        if self.fault is not None:
            raise self.fault
        if self.request.status in _CLOSED:
            raise why_closed(self.request)


def examine(store: Store, request: Request, *, states: bool = False) -> ExaminedRequest:
    """Make the release of a request from its thread, and compare the request with it.

    Args:
        store: The open store.
        request: The request.
        states: Whether to read the states behind its question, too: an export has none.
    """
    shown, diff, fault = None, None, None
    earlier: tuple[Request, ...] = ()
    signed: SignedAnswer | None = None
    if request.statement.checkpoint is not None:
        handle = store.thread(request.thread)
        try:
            shown = read_release(handle, handle.release_of(request), states=states)
            diff = handle.compare(request)
            signed = handle.signed_answer
            earlier = tuple(
                each
                for each in handle.requests()
                if each.asked_at < request.asked_at
                and each.statement.checkpoint == request.statement.checkpoint
            )
        except SealpointError as error:
            fault = error
    return ExaminedRequest(
        request=request, shown=shown, diff=diff, fault=fault, earlier=earlier, signed=signed
    )


def read_release(thread: Thread, release: Release, *, states: bool = False) -> ShownRelease:
    """Read the content of a release, as far as the store's registry knows its types.

    Args:
        thread: The thread.
        release: The release.
        states: Whether to read the state of each lane that waits with a question.

    Raises:
        SealpointError: The thread is not what it was when the release was made.
    """
    pending = [(release.lane, result) for result in release.results]
    pending += [(lane.lane, result) for lane in release.lanes for result in lane.results]
    return ShownRelease(
        release=release,
        ref=thread.ref_of(release),
        results=tuple(_read(thread, lane, result) for lane, result in pending),
        states=tuple(_read_states(thread, release)) if states else (),
    )


def _read_states(thread: Thread, release: Release) -> Iterator[ShownState]:
    asking = [lane for lane in release.lanes if any(each.question for each in lane.results)]
    for lane, seq in ((release.lane, release.seq), *((each.lane, each.seq) for each in asking)):
        try:
            state = thread.load(thread.checkpoint_at(seq)).state
        except SealpointError as error:
            yield ShownState(lane=lane, state=None, fault=error.message)
        else:
            yield ShownState(lane=lane, state=state, fault=None)


def _read(thread: Thread, lane: str, result: PendingResult) -> ShownResult:
    try:
        value = thread.read_result(result).value
    except DecodeError as error:
        return ShownResult(lane=lane, result=result, value=None, fault=error.message)
    return ShownResult(lane=lane, result=result, value=value, fault=None)


_ANSWER_BYTES_MAX = 64 * 1024
_SECRET_BYTES = 32


class _Row(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    header: bytes
    seals: bytes
    body: bytes | None
    payload: bytes | None


class _Export(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="sealpoint",
    tag="request",
):
    v: Literal[1] = 1
    store: str
    ns: str
    thread: str
    name: str
    request: str
    chain: tuple[_Row, ...]
    chain_blobs: tuple[bytes, ...]
    entries: tuple[_Row, ...]
    blobs: tuple[bytes, ...]


class _Answer(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="sealpoint",
    tag="answer",
):
    v: Literal[1] = 1
    store: str
    ns: str
    attestation: Attestation


_read_export = msgspec.json.Decoder(_Export).decode
_read_answer = msgspec.json.Decoder(_Answer).decode


class _CopyingStorage(MemoryStorage):
    """Holds a copy of entries, and fetches blobs from the source on first read."""

    def __init__(self, source: Storage) -> None:
        super().__init__()
        self._source = source

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """Return the bytes of a digest, or None; the blob is now part of the copy."""
        found = super().blob(thread, digest, size_bytes_max)
        if found is None:
            found = self._source.blob(thread, digest, size_bytes_max)
            if found is not None:
                self.put_blobs(thread, {digest: found})
        return found

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Return those of the blobs that are stored."""
        found = {each: self.blob(thread, each, size_bytes_max) for each in digests}
        return {digest: data for digest, data in found.items() if data is not None}


def export_request(store: Store, request_id: str) -> bytes:
    """Write everything to be shown of a request, for a person who answers it elsewhere.

    It holds no key and no state. It holds what an approver sees: anyone with the file can read the
    question, the answer, pending results and the capabilities of the run.

    Args:
        store: The open store; reading it is enough.
        request_id: The id of the request, or the first digits of it.

    Raises:
        UnknownRequest: There is no such request, or the thread has moved on.
        NotTrusted: The request shows another state than the thread has.
        UsageError: It is too large to be exported.
    """
    request = store.request(request_id)
    core = store._core  # noqa: SLF001 (of the same package)
    thread = bytes.fromhex(request.statement.thread)
    trust = core.renewed_trust()
    copy = _CopyingStorage(core.storage)
    for chain, last in ((STORE_CHAIN, trust.seq), (thread, None)):
        records = [record for _, record in core.storage.scan(chain, 0, last)]
        copy.append(chain, 0, records, blobs={})
    for digest in trust.blobs:
        copy.blob(STORE_CHAIN, digest, POSITION_LIST_BYTES_MAX)
    # Examined in the copy itself, as it will be elsewhere: what that reads is exported.
    parts = _boxed(
        copy,
        thread,
        core.parts.pin,
        signer=None,
        namespace=core.namespace,
        name=request.thread,
        registry=core.registry,
    )
    with Store(parts) as box:
        examined = examine(box, box.request(request.id))
        if examined.fault is not None:
            raise examined.fault
        shown = _shown_positions(examined)
        _take_values(copy, thread, shown, core.registry)
        data = msgspec.json.encode(
            _Export(
                store=core.store_hex,
                ns=core.namespace,
                thread=thread.hex(),
                name=request.thread,
                request=request.id,
                chain=_rows(copy, STORE_CHAIN, frozenset()),
                chain_blobs=_blobs(copy, STORE_CHAIN),
                entries=_rows(copy, thread, shown),
                blobs=_blobs(copy, thread),
            )
        )
    if len(data) > REQUEST_BYTES_MAX:
        raise UsageError(
            f"request {request.short}: expected an export of at most {REQUEST_BYTES_MAX} bytes, "
            f"found {len(data)}",
            hint="The thread is too long to be carried: answer the request where the store is.",
        )
    return data


def _shown_positions(examined: ExaminedRequest) -> frozenset[int]:
    """Return the positions of the results whose values are shown."""
    shown = examined.shown
    return frozenset() if shown is None else frozenset(each.result.seq for each in shown.results)


def _take_values(copy: Storage, thread: bytes, shown: frozenset[int], registry: Registry) -> None:
    """Copy all blobs of each shown value, even if its types are unknown here."""
    limits = registry.limits
    for seq in sorted(shown):
        record = copy.read(thread, seq)
        if record is None or record.body is None:
            continue
        body: ResultsBody = parse_body(Kind.RESULTS, parse_header(record.header).body, record.body)
        root = bytes.fromhex(body.root)
        reader = BlobReader(
            copy, thread, limits.blob_bytes_max, f"entry {seq}", (root, record.payload)
        )
        for digest in tree_blobs(root, reader.get, limits=limits, fetch_all=True):
            if digest != root or record.payload is None:
                copy.blob(thread, digest, limits.blob_bytes_max)


def _rows(copy: Storage, thread: bytes, with_payload: frozenset[int]) -> tuple[_Row, ...]:
    return tuple(
        _Row(each.header, each.seals, each.body, each.payload if seq in with_payload else None)
        for seq, each in copy.scan(thread, 0)
    )


def _blobs(copy: Storage, thread: bytes) -> tuple[bytes, ...]:
    found = (copy.blob(thread, digest, size) for digest, size in copy.stored_blobs(thread))
    return tuple(data for data in found if data is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRequest:
    """An exported and verified request; use it in a `with` block, or close it."""

    store: Store
    """The thread of the request at the export, in memory: writes to it are lost on close."""
    request: Request
    last: int
    """The position of the newest entry in the export; later entries are unknown here."""

    def examine(self) -> ExaminedRequest:
        """Return everything that people see of it, made from the verified copy."""
        return examine(self.store, self.request)

    def answer(self, verdict: Verdict, *, reason: str) -> bytes:
        """Approve or deny it, as the identity that opened it.

        Returns:
            The input of `relay_answer` where the store is: a signature, and no secret.

        Raises:
            RequestClosed: It was denied or had expired when it was exported, or has expired now.
            NotTrusted: This identity may not, because of its role or because it asked itself.
            UsageError: There is no reason.
        """
        statement = self.request.statement
        attestation = self.store.attest(self.request.id, verdict, reason=reason)
        return msgspec.json.encode(
            _Answer(store=statement.store, ns=statement.ns, attestation=attestation)
        )

    def close(self) -> None:
        """Drop the copy. Closing twice is allowed."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_request(
    data: bytes,
    url: str,
    *,
    identity: str | None = None,
    registry: Registry | None = None,
    trust: Trust | None = None,
    config_dir: Directory = None,
    state_dir: Directory = None,
    read_only: bool = False,
    passphrase: PassphraseSource | None = None,
    signer: Signer | None = None,
    secrets_dir: Directory = None,
    key_fd: int | None = None,
) -> ExportedRequest:
    """Open a request that `export_request` wrote, on a machine without its store.

    The pin and the key are those of this machine; the store itself is not used.

    Args:
        data: The export.
        url: The URL of the store here: its pin and keys are kept under it.
        identity: The identity whose key signs an answer; without it, `worker`.
        registry: The types that may be loaded; without it, plain data and built-ins.
        trust: A pin, instead of the one in the configuration directory, as for `open_store`.
        config_dir: The directory of keys and pin, instead of the user's configuration directory.
        state_dir: As for `open_store`; nothing is read or written there.
        read_only: No key is needed, and nothing can be answered.
        passphrase: The passphrase of the identity's key, as for `open_store`.
        signer: A key that is held elsewhere, as for `open_store`.
        secrets_dir: The directory of a mounted secret, as for `open_store`.
        key_fd: The descriptor of the key, as for `open_store`.

    Raises:
        BundleInvalid: The data is not an exported request.
        NotTrusted: It belongs to another store than the pin, or a signer had no right to sign.
        Tampered, Forked, RolledBack: It is not what was written, or is older than the pin.
        UnknownRequest: The thread in it does not have this request.
        KeyMissing, KeyLocked: The identity's private key is not here, or does not open.
    """
    found: _Export = _parsed(data, REQUEST_BYTES_MAX, _read_export, "exported request")
    location = StoreLocation.find(
        url,
        config_dir=config_dir,
        state_dir=state_dir,
        passphrase=passphrase,
        secrets_dir=secrets_dir,
        key_fd=key_fd,
    )
    pin = location.pin(trust)
    _require_store(found, pin)
    own = None if read_only or signer is not None else location.own_key(identity or WORKER)
    parts = _boxed(
        *_filled(found),
        pin,
        signer=own,
        namespace=found.ns,
        name=found.name,
        registry=Registry() if registry is None else registry,
    )
    if signer is not None:
        parts = replace(parts, signer=remote_key(Core(parts).trust(), signer, identity))
    store = Store(parts)
    try:
        last = len(found.entries) - 1
        return ExportedRequest(store=store, request=store.request(found.request), last=last)
    except BaseException:
        store.close()
        raise


def _require_store(found: _Export, pin: TrustPin) -> None:
    if pin.store.raw.hex() != found.store:
        raise NotTrusted(
            f"exported request: it is of another store than {pin.store}, which the pin names",
            hint="Name the store that it is of with --store, or import its pin: sealpoint trust "
            "import PIN.",
        )


def _filled(found: _Export) -> tuple[MemoryStorage, bytes]:
    """Return a store in memory with the content of an export, which is not verified yet."""
    storage = MemoryStorage()
    try:
        thread = bytes.fromhex(found.thread)
        for name, rows, blobs in (
            (STORE_CHAIN, found.chain, found.chain_blobs),
            (thread, found.entries, found.blobs),
        ):
            records = [Record(row.header, row.seals, row.body, row.payload) for row in rows]
            storage.append(
                name, 0, records, blobs={blob_digest(data): bytes(data) for data in blobs}
            )
    except (SealpointError, ValueError) as exc:
        raise BundleInvalid(
            "exported request: expected a thread with entries, found none in it"
        ) from exc
    return storage, thread


def _boxed(
    storage: Storage,
    thread: bytes,
    pin: TrustPin,
    *,
    signer: SigningKey | None,
    namespace: str,
    name: str,
    registry: Registry,
) -> StoreParts:
    """Return the parts of a store in memory, with chain and thread verified from the beginning."""
    parts = _memory_parts(storage, pin, signer=signer, namespace=namespace, registry=registry)
    core = Core(parts)
    core.anchor_store_chain()
    enter_copy(core, name, thread)
    return parts


def _memory_parts(
    storage: Storage,
    pin: TrustPin,
    *,
    signer: SigningKey | None,
    namespace: str,
    registry: Registry,
) -> StoreParts:
    return StoreParts(
        storage=storage,
        anchor=MemoryAnchor(),
        pin=pin,
        secret=os.urandom(_SECRET_BYTES),
        signer=signer,
        registry=registry,
        namespace=namespace,
        read_only=False,
        now=now,
        random_bytes=os.urandom,
        on_event=None,
    )


def open_bundle(source: bytes | BinaryIO, trust: Trust) -> Store:
    """Open an evidence bundle to read it: a copy in memory, verified from the beginning.

    `audit` and `why` show the same for it as for the store; of the states, only those in the
    bundle. It shows the time of the export: later entries may exist.

    Args:
        source: The bundle, or a file that is open for reading its bytes.
        trust: The pin of the store, or the path of one.

    Raises:
        BundleInvalid, NotTrusted, Tampered, Forked, RolledBack: As for `verify_bundle`.
    """
    data = source if isinstance(source, bytes) else source.read(BUNDLE_BYTES_MAX + 1)
    pin = read_pin(trust)
    report = verify_bundle(data, pin)
    parts = _memory_parts(
        fill_storage(data), pin, signer=None, namespace=report.namespace, registry=Registry()
    )
    core = Core(parts)
    core.anchor_store_chain()
    for thread in report.threads:
        _enter_proven(core, thread)
    return Store(replace(parts, read_only=True))


def _enter_proven(core: Core, thread: BundleThread) -> None:
    """Record in the anchor of a copy how far a bundle proves a thread.

    So its entries count as seen then: a later expiry of a key does not invalidate them.
    """
    uid = bytes.fromhex(thread.thread)
    entry, epoch = bytes.fromhex(thread.entry), core.trust().epoch
    position = shown_position(core.storage, uid, thread.seq, entry, epoch=epoch)
    if position is None:
        raise Missing(f"bundle: entry {thread.seq} of thread {thread.name!r} is missing")
    # A thread without a name has lost it by an erasure.
    slot = Chain(core, thread.name).slot if thread.name else os.urandom(_SECRET_BYTES)
    if core.anchor.create(slot, position) != position:
        raise Forked(f"bundle: two of its threads are called {thread.name!r}")


def relay_answer(store: Store, data: bytes) -> tuple[Attestation, int]:
    """Record an answer that a person gave elsewhere; its own signature proves it.

    Args:
        store: The open store; any identity of the namespace may relay.
        data: The result of `ExportedRequest.answer`.

    Returns:
        The answer, and the position of the entry that records it.

    Raises:
        BundleInvalid: The data is not an answer.
        NotTrusted: It belongs to another store or namespace, or its signer may not answer this.
        Forged: Its proof is invalid.
        UnknownRequest, RequestClosed: There is no such open request.
    """
    found = _parsed(data, _ANSWER_BYTES_MAX, _read_answer, "answer")
    named = (store.id.raw.hex(), store.namespace)
    if (found.store, found.ns) != named:
        other = "another store" if found.store != named[0] else f"namespace {found.ns!r}"
        raise NotTrusted(
            f"answer: it is to a request of {other}, and this is store {store.id}, namespace "
            f"{store.namespace!r}",
            hint="Relay it where the request was exported: --store and --namespace say where.",
        )
    return found.attestation, store.relay(found.attestation)


def _parsed(data: bytes, bytes_max: int, read: Any, what: str) -> Any:
    try:
        if len(data) <= bytes_max:
            return read(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise BundleInvalid(
            f"{what}: expected it byte for byte as it was written, found "
            f"{len(data)} bytes that were changed or cut"
        ) from exc
    raise BundleInvalid(f"{what}: expected at most {bytes_max} bytes, found {len(data)}")
