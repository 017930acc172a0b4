# SPDX-License-Identifier: Apache-2.0
"""Entries, the links between them, and the verified end of a thread.

A header is the small part of an entry that is signed and stays forever: readable JSON in one fixed
order of fields. Parsing is a round trip: bytes that the writer would not have written are refused,
so there are no duplicate keys, no spaces, no other spelling of a number or a time, and no unknown
field. Hexadecimal texts are not checked for their form here, since each is compared with an exact
value by whoever uses the header.

Entry `n` names the hash of entry `n - 1` (prev) and of an older one (skip). Following skips where
they do not overshoot leads from any entry to any older one in a number of steps that grows with the
logarithm, so descent from a verified head is proven without reading the whole thread.
"""

import hashlib
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Literal, Self

import msgspec

from sealpoint.errors import Edited, Misplaced, Missing
from sealpoint.ledger._kinds import Kind
from sealpoint.limits import HEADER_BYTES_MAX

FORMAT_VERSION: Literal[3] = 3
UNENCRYPTED: Literal["none"] = "none"

PRINT_BYTES = 4
"""So much of a table of ids is for one position."""

NO_ID = bytes(PRINT_BYTES)
"""The print of a position where no checkpoint lies."""

_MARKED = [bytes([byte | 1 << 7]) for byte in range(256)]

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry's place, kind and writer. See docs/formats/entry.md for every field."""

    v: Literal[3] = FORMAT_VERSION
    store: str
    epoch: _Count
    ns: str
    thread: str
    gen: _Count
    seq: _Count
    prev: str | None
    skip: str | None
    kind: Kind
    fence: _Count
    pause: _Count
    owner: _Count
    roster: _Count
    at: _Time
    by: str
    enc: Literal["none"] = UNENCRYPTED
    body: str


class Links(msgspec.Struct):
    """Where the links of an entry lead: all that is needed on the way to an older one."""

    seq: int
    prev: str | None
    skip: str | None


class _Earlier(msgspec.Struct):
    """What can be told of a header of an earlier format version, whatever else is in it."""

    v: Literal[1, 2]


encode_header = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Header).decode
_decode_links = msgspec.json.Decoder(Links).decode
_decode_earlier = msgspec.json.Decoder(_Earlier).decode


@lru_cache(maxsize=128)  # on the way from a head downwards the same entries are met repeatedly
def parse_header(data: bytes) -> Header:
    """Read a header.

    Raises:
        Edited: The bytes are not exactly what `encode_header` writes for some header.
    """
    if len(data) > HEADER_BYTES_MAX:
        raise Edited(f"entry header: expected at most {HEADER_BYTES_MAX} bytes, found {len(data)}")
    try:
        header = _decode(data)
        # One instant has one spelling: an offset other than Z would be read back as it is.
        if header.at.tzinfo is UTC and encode_header(header) == data:
            return header
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        if _says_earlier(data):
            raise Edited(
                "entry header: expected format version 3, found an earlier one, which this "
                "release does not read",
                hint="If a version from before the first release wrote the whole store, make a "
                "new store with sealpoint init, and read this one with the version that wrote it. "
                "If not, it was changed: find out who did, then restore a good copy.",
            ) from exc
        raise Edited("entry header: expected the fields of version 3, found other fields") from exc
    raise Edited("entry header: its fields are not in canonical form")


def parse_links(data: bytes) -> Links:
    """Read the links of a header whose bytes are proven by the hash in a later one.

    Raises:
        Edited: Whoever signed the later one did not name a header.
    """
    try:
        return _decode_links(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise Edited(
            f"entry header: expected the links of one, found {len(data)} bytes without them"
        ) from exc


def _says_earlier(data: bytes) -> bool:
    """Whether bytes that are not a header say that they are one of an earlier version."""
    try:
        _decode_earlier(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


@lru_cache(maxsize=128)
def link_hash(header: bytes) -> bytes:
    """What an entry is called by the entries after it: the SHA-256 of its header bytes alone."""
    return hashlib.sha256(header).digest()


def id_print(lane: str, name: str) -> bytes:
    """The four bytes by which a table of ids tells of the checkpoints of a name."""
    digest = hashlib.sha256(f"{name}\0{lane}".encode()).digest()
    return _MARKED[digest[0]] + digest[1:PRINT_BYTES]


@lru_cache(maxsize=1024)
def skip_seq(seq: int) -> int:
    """The position that the skip link of `seq` names.

    Every number is a sum of steps of 1, 3, 7, 15, 31 and so on, each the longest that fits in what
    is left. A skip goes back by the last of them.
    """
    rest = seq
    while rest > (step := (1 << ((rest + 1).bit_length() - 1)) - 1):
        rest -= step
    return seq - rest


def next_link(seq: int, target: int) -> int:
    """The next position on the way from `seq` down to `target`."""
    skipped = skip_seq(seq)
    return skipped if skipped >= target else seq - 1


def link_to(header: Header | Links, seq: int) -> str | None:
    """The hash by which an entry names the one at `seq`, the next one on a way down."""
    return header.skip if seq == skip_seq(header.seq) else header.prev


class SkipHashes(msgspec.Struct, frozen=True):
    """The hash of an entry, then those along the skips below it, down to genesis: at most 53.

    Made in constant time for each entry: lists of neighbouring entries share what is below them.
    """

    seq: int
    hash: bytes
    below: "SkipHashes | None"
    """From the entry that its skip names; None at genesis."""

    @property
    def next_below(self) -> "SkipHashes":
        """From the entry that the skip of the next entry names.

        Two steps of one length are followed by one over both, as in `skip_seq`.
        """
        below = self.below
        if below is None or below.below is None:
            return self
        return below.below if self.seq - below.seq == below.seq - below.below.seq else self

    def grown(self, entry: bytes) -> "SkipHashes":
        """The hashes once an entry follows."""
        return SkipHashes(self.seq + 1, entry, self.next_below)


class Entry(msgspec.Struct, frozen=True):
    """An entry whose bytes, place and signature were verified. Make one with `verified`."""

    raw: bytes
    header: Header
    writer: str
    """The name of the identity that signed."""
    hash: bytes
    """What later entries call it."""

    @classmethod
    def verified(cls, raw: bytes, header: Header, writer: str) -> Self:
        """An entry, once somebody has made sure of it."""
        return cls(raw, header, writer, link_hash(raw))

    @property
    def seq(self) -> int:
        """Its position."""
        return self.header.seq


class Place(msgspec.Struct, frozen=True):
    """Where a thread's entries belong."""

    store: str
    ns: str
    thread: str

    def check(self, header: Header, seq: int) -> None:
        """Raise `Misplaced` unless the header was written for this place."""
        here = (self.store, self.ns, self.thread, seq)
        found = (header.store, header.ns, header.thread, header.seq)
        if here == found:
            return
        parts = zip(("store", "namespace", "thread", "position"), here, found, strict=True)
        what, expected, other = next(part for part in parts if part[1] != part[2])
        raise Misplaced(
            f"entry {seq} of thread {self.thread[:12]}: expected {what} {expected!r}, found an "
            f"entry of {what} {other!r}"
        )


class Fence(msgspec.Struct, frozen=True):
    """The session in force, the genesis before the first one, or the erasure after the last."""

    seq: int
    by: str
    owner: str | None
    """None: the body that said so is gone, which only an erasure further on can make right."""
    is_session: bool
    erased: bool = False
    """The thread holds nothing; its next generation begins with a genesis."""
    world: str | None = None
    """The digest of what the runs of the session are able to do, if that was declared."""


class OwnerEntry(msgspec.Struct, frozen=True):
    """The entry that says whose a thread is: a genesis, a handoff or an erasure."""

    seq: int
    hash: bytes
    reserved: bool = False
    """Whether the thread is one of Sealpoint's own, by the name in its genesis."""


class Tip(msgspec.Struct, frozen=True):
    """The verified end of a thread: all that is needed to judge or write the next entry."""

    entry: Entry
    skip_hashes: SkipHashes
    fence: Fence
    basis: tuple[int, bytes]
    """Position and hash of the newest entry that changes what a resume would mean; of the first
    genesis before there is one."""
    time: datetime
    """The newest time since the newest entry that a pause stops, of those that count."""
    owner: OwnerEntry
    paused: int | None = None
    """The position of the pause that is in force."""

    @property
    def lacks_owner(self) -> bool:
        """Whether the body that names the owner is missing, and no erasure says why."""
        return self.fence.owner is None and not self.fence.erased

    def require_owner(self) -> None:
        """Refuse a body that is missing although nothing was erased.

        To be called once no erasure can follow any more, because this is the newest entry.

        Raises:
            Missing: The body that names the owner is gone.
        """
        if self.lacks_owner:
            raise Missing(
                f"entry {self.fence.seq} of thread {self.entry.header.thread[:12]}: its body is "
                "missing"
            )
