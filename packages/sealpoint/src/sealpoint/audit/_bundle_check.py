# SPDX-License-Identifier: Apache-2.0
"""Verifying an evidence bundle with nothing but the pin: no store, no anchor, no network.

The order: (1) the first line and its store; (2) the store chain from the pin's root, and the blobs
that it names; (3) every thread from its genesis, entry by entry, as a reader of the store would
verify it, with each decision judged again if the caller provides a judge; (4) the exporter's
signature over all of it, by the newest roster in the bundle, and nothing after it. The bundle
proves the history up to the last included entry of each thread; later entries may exist, and the
report says so.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO

from sealpoint.audit._bundle import (
    BeginLine,
    BlobLine,
    EndLine,
    EntryLine,
    Line,
    ThreadLine,
    is_text,
    read_lines,
    signed_message,
)
from sealpoint.audit._report import UNJUSTIFIED, Finding, describe_unreadable
from sealpoint.audit._verify import Judge
from sealpoint.errors import BundleInvalid, Edited, IdMalformed, NotTrusted
from sealpoint.ids import KeyId
from sealpoint.ledger import (
    STORE_CHAIN,
    CheckpointBody,
    ExpiryBody,
    Follower,
    GenesisBody,
    Kind,
    Place,
    PositionLists,
    StoreChain,
)
from sealpoint.limits import ROSTER_COPY_BYTES_MAX
from sealpoint.signing import TrustPin
from sealpoint.storage import Record
from sealpoint.storage.memory import MemoryStorage
from sealpoint.world import json_form

_WORLDS_KEPT = 64
_THREAD_DIGITS = 32
_CLAIM = "Each thread is proven up to the entry that is named; later entries may exist."

Worlds = Callable[[str], dict[str, Any] | None]
"""Returns the world of a digest in the bundle, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleThread:
    """How much of a thread's history is proven."""

    name: str
    """Empty if an erasure removed it."""
    thread: str
    """The thread's id in hexadecimal."""
    entries: int
    seq: int
    """The position of the last entry in the bundle."""
    entry: str
    """The hash of that entry."""
    time: datetime
    """Its time, as its writer claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleReport:
    """The facts that a bundle proves, and nothing more."""

    store: str
    """The store's id in hexadecimal."""
    namespace: str
    exported_by: str
    """The identity that signed the bundle."""
    exported_person: str
    exported_at: datetime
    """The export time, as the exporter claims."""
    roster: int
    """The position of the newest roster in the bundle."""
    epoch: int
    threads: tuple[BundleThread, ...]
    entries: int
    """The number of verified entries, including those of the store chain."""
    blobs: int
    """The number of included worlds and parts of states."""
    findings: tuple[Finding, ...]
    """Resumes and handoffs that the policy of their time did not allow, and unreadable entries
    about requests."""
    claim: str = _CLAIM

    @property
    def ok(self) -> bool:
        """Whether every resume and handoff was justified and every entry is readable."""
        return not self.findings

    def as_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {"ok": self.ok, **json_form(self)}


def verify_bundle(
    source: bytes | BinaryIO,
    pin: TrustPin,
    judge: Callable[[Mapping[str, bytes]], Judge] | None = None,
) -> BundleReport:
    """Verify a bundle.

    Args:
        source: Its bytes, or a file that is open for reading bytes.
        pin: The store, its root, and the oldest roster to accept.
        judge: Makes a judge that checks the decisions of one thread again, from the blobs of the
            store chain by digest.

    Raises:
        BundleInvalid: It is not a bundle, or not as it was exported.
        NotTrusted: It belongs to another store, or a signer was not allowed to sign.
        Tampered, Forked: An entry differs from the one that was written.
        RolledBack: Its roster is older than the pin, a cutoff or a restore requires.
    """
    return _Check(pin, judge).run(read_lines(source))


def fill_storage(source: bytes) -> MemoryStorage:
    """Make a store in memory with the content of a bundle that `verify_bundle` has verified."""
    storage = MemoryStorage()
    thread, records, blobs = STORE_CHAIN, list[Record](), dict[bytes, bytes]()
    for line, _, _ in read_lines(source):
        if isinstance(line, EntryLine):
            records.append(_record(line))
        elif isinstance(line, BlobLine):
            blobs[bytes.fromhex(line.digest)] = line.data
        elif isinstance(line, ThreadLine | EndLine):
            storage.append(thread, 0, records, blobs=blobs)
            thread = bytes.fromhex(line.thread) if isinstance(line, ThreadLine) else thread
            records, blobs = [], {}
    return storage


class _Check:
    """The verification of one bundle, line by line."""

    def __init__(self, pin: TrustPin, judge: Callable[[Mapping[str, bytes]], Judge] | None) -> None:
        self._pin = pin
        self._judge = judge
        self._blobs: dict[str, bytes] = {}
        self._chain = StoreChain(
            pin, lists=PositionLists(lambda digest: self._blobs.get(digest.hex()))
        )
        self._threads: list[BundleThread] = []
        self._findings: list[Finding] = []
        self._entries = 0
        self._beside = 0

    def run(self, lines: Iterator[tuple[Line, str, int]]) -> BundleReport:
        # (1) the first line and its store
        begin = next(lines, (None,))[0]
        if not isinstance(begin, BeginLine):
            raise BundleInvalid("bundle: it does not begin with the first line of a bundle")
        if begin.store != self._pin.store.raw.hex():
            raise NotTrusted(
                f"bundle: expected one of store {self._pin.store}, found one of store "
                f"{begin.store[:12]!r}",
                hint="Give the pin of the store that the bundle is of: --trust PIN.",
            )
        # (2) the store chain
        reading = _Reading(lines)
        self._read_store_chain(reading)
        # (3) the threads
        before = STORE_CHAIN.hex()
        while isinstance(line := reading.line, ThreadLine):
            if len(line.thread) != _THREAD_DIGITS or line.thread <= before:
                raise BundleInvalid(
                    f"bundle: expected threads in rising order, found {line.thread[:12]!r} after "
                    f"{before[:12]!r}"
                )
            before = line.thread
            reading.advance()
            self._read_thread(reading, begin, line.thread)
        # (4) the exporter, and nothing after it
        if not isinstance(line, EndLine):
            raise BundleInvalid(
                "bundle: expected a thread or the end of the bundle, found a line of another kind"
            )
        name, person = self._check_end(line, begin, reading)
        reading.advance()
        if reading.line is not None:
            raise BundleInvalid("bundle: there are lines after its end")
        return BundleReport(
            store=begin.store,
            namespace=begin.ns,
            exported_by=name,
            exported_person=person,
            exported_at=line.at,
            roster=self._chain.roster.seq,
            epoch=self._chain.epoch,
            threads=tuple(self._threads),
            entries=self._entries,
            blobs=self._beside,
            findings=tuple(self._findings),
        )

    # ------------------------------------------------------------------ (2) the store chain

    def _read_store_chain(self, reading: "_Reading") -> None:
        while isinstance(line := reading.line, EntryLine):
            record = _record(line)
            self._chain = self._chain.extended(record.header, record.seals, record.body)
            self._entries += 1
            reading.advance()
        self._chain.require_minimum("bundle")
        # Keep only what the signed store chain names.
        expected = [digest.hex() for digest in self._chain.blobs]
        total = 0
        while isinstance(line := reading.line, BlobLine):
            if expected[len(self._blobs) : len(self._blobs) + 1] != [line.digest]:
                break
            total += len(line.data)
            if total > ROSTER_COPY_BYTES_MAX:
                raise BundleInvalid(
                    f"bundle: its lists and policies have more than {ROSTER_COPY_BYTES_MAX} bytes"
                )
            _check_blob(line)
            self._blobs[line.digest] = line.data
            reading.advance()
        if isinstance(line, BlobLine) or len(self._blobs) < len(expected):
            found = "another blob" if isinstance(line, BlobLine) else "no more"
            raise BundleInvalid(
                f"bundle: expected the {len(expected)} lists and policies that its store chain "
                f"names, in order, found {found} after {len(self._blobs)}"
            )

    # ------------------------------------------------------------------ (3) a thread

    def _read_thread(self, reading: "_Reading", begin: BeginLine, thread: str) -> None:
        follower = Follower(Place(begin.store, begin.ns, thread), self._chain)
        judge = None if self._judge is None else self._judge(self._blobs)
        named: str | None = None
        name, count, unjustified = "", 0, list[str]()
        missing = list[str]()
        while isinstance(line := reading.line, EntryLine | BlobLine):
            if isinstance(line, BlobLine):
                _check_blob(line)
                if line.digest != named and not begin.payloads:
                    raise BundleInvalid(
                        f"bundle: expected no states, found blob {line.digest[:12]!r}"
                    )
                self._beside, named = self._beside + 1, None
                reading.advance()
                continue
            record = _record(line)
            step = follower.take(record.header, record.seals, record.body)
            if isinstance(step.body, GenesisBody):
                name = step.body.name
            named = _named_blob(step.body)
            if step.entry.header.kind is Kind.ERASE:
                missing.clear()  # it accounts for them
            if step.unreadable:
                unjustified.append(describe_unreadable(step.entry, record.body))
            elif step.lost:
                missing.append(describe_unreadable(step.entry, None))
            if judge is not None:
                unjustified += judge(step)
            count += 1
            reading.advance()
        head = follower.finish().entry
        follower.require_kept()
        self._entries += count
        self._findings += [
            Finding(code=UNJUSTIFIED, thread=thread, name=name, message=words, refuses=False)
            for words in (*unjustified, *missing)
        ]
        self._threads.append(
            BundleThread(
                name=name,
                thread=thread,
                entries=count,
                seq=head.seq,
                entry=head.hash.hex(),
                time=head.header.at,
            )
        )

    # ------------------------------------------------------------------ (4) the exporter

    def _check_end(self, end: EndLine, begin: BeginLine, reading: "_Reading") -> tuple[str, str]:
        if (end.content, end.lines) != (reading.content, reading.number):
            raise BundleInvalid("bundle: its content is not what was signed")
        roster = self._chain.roster
        try:
            holder = roster.holder(KeyId(bytes.fromhex(end.by)))
            signature = bytes.fromhex(end.signature)
        except (ValueError, IdMalformed) as exc:
            raise BundleInvalid("bundle: its last line has no valid key id and signature") from exc
        if holder is None or not holder[0].covers(begin.ns):
            raise NotTrusted(
                f"bundle: expected a signature by an identity of namespace {begin.ns!r} in roster "
                f"{roster.seq}, found key {end.by[:12]}"
            )
        if roster.key_expired_at(end.by, end.at):
            raise NotTrusted(
                f"bundle: expected a key that has not expired, found {end.by[:12]} of "
                f"{holder[0].name!r}"
            )
        if (signature.hex(), end.by) != (end.signature, holder[1].id.raw.hex()):
            raise BundleInvalid(
                "bundle: its key id or signature is not in lower-case hexadecimal digits"
            )
        holder[1].verify(signature, signed_message(end, begin))
        return holder[0].name, holder[0].person


class _Reading:
    """The current line, and the digest and number of the lines before it."""

    def __init__(self, lines: Iterator[tuple[Line, str, int]]) -> None:
        self._lines = lines
        self.line: Line | None = None
        self.content = ""
        self.number = 0
        self.advance()

    def advance(self) -> None:
        """Advance to the next line; None after the last."""
        found = next(self._lines, None)
        if found is None:
            self.line = None
        else:
            self.line, self.content, self.number = found


def _named_blob(body: Any) -> str | None:
    """Return the blob that may follow an entry: a checkpoint's world, or the list of an expiry."""
    if isinstance(body, ExpiryBody):
        return body.positions
    return body.world if isinstance(body, CheckpointBody) else None


def _record(line: EntryLine) -> Record:
    try:
        body = None if line.body is None else line.body.encode()
        header, seals = line.header.encode(), line.seals.encode()
    except UnicodeEncodeError as exc:
        raise Edited("bundle: an entry is not UTF-8") from exc
    if line.raw is None:
        return Record(header, seals, body)
    if body is not None or is_text(line.raw):
        raise BundleInvalid("bundle: a body is not in canonical form")
    return Record(header, seals, line.raw)


def _check_blob(line: BlobLine) -> None:
    if hashlib.sha256(line.data).hexdigest() != line.digest:
        raise BundleInvalid(f"bundle: blob {line.digest[:12]!r} does not have that hash")
