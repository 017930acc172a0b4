# SPDX-License-Identifier: Apache-2.0
"""Entries, the links between them, and the verified end of a thread.

A header is the small part of an entry that is signed and stays forever: readable JSON with its
fields in a fixed order. Parsing is a round trip: it refuses bytes that the writer would not have
written, so there are no duplicate keys, no spaces, no other spelling of a number or a time, and no
unknown field. Parsing does not check the form of hexadecimal texts, since the code that uses a
header compares each of them with an exact value.

Entry `n` names the hash of entry `n - 1` (prev) and of an older one (skip). Following skips that do
not overshoot leads from any entry to any older one in a logarithmic number of steps, so descent
from a verified head can be proven without reading the whole thread.
"""

import hashlib
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Literal, Self

import msgspec

from sealpoint.errors import Edited, Misplaced, Missing
from sealpoint.ledger._entry_kinds import Kind
from sealpoint.limits import HEADER_BYTES_MAX

FORMAT_VERSION: Literal[3] = 3
UNENCRYPTED: Literal["none"] = "none"

PRINT_BYTES = 4
"""The number of bytes for each position in a table of ids."""

NO_ID = bytes(PRINT_BYTES)
"""The print of a position without a checkpoint."""

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
    """The links of an entry: all that is needed on the path to an older one."""

    seq: int
    prev: str | None
    skip: str | None


class _Earlier(msgspec.Struct):
    """The version of a header in an earlier format, regardless of its other fields."""

    v: Literal[1, 2]


encode_header = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Header).decode
_decode_links = msgspec.json.Decoder(Links).decode
_decode_earlier = msgspec.json.Decoder(_Earlier).decode


@lru_cache(maxsize=128)  # a walk down from a head meets the same entries repeatedly
def parse_header(data: bytes) -> Header:
    """Read a header.

    Raises:
        Edited: The bytes are not exactly the output of `encode_header` for some header.
    """
    if len(data) > HEADER_BYTES_MAX:
        raise Edited(f"entry header: expected at most {HEADER_BYTES_MAX} bytes, found {len(data)}")
    try:
        header = _decode(data)
        # Each time has one spelling: without this check, an offset other than Z would be accepted.
        if header.at.tzinfo is UTC and encode_header(header) == data:
            return header
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        if _is_earlier_version(data):
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
        Edited: The signer of the later one did not name a header.
    """
    try:
        return _decode_links(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise Edited(
            f"entry header: expected the links of one, found {len(data)} bytes without them"
        ) from exc


def _is_earlier_version(data: bytes) -> bool:
    """Whether bytes that are not a header claim to be one of an earlier version."""
    try:
        _decode_earlier(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


@lru_cache(maxsize=128)
def entry_label(header: Header) -> str:
    """Return the name of an entry in messages."""
    return f"entry {header.seq} of thread {header.thread[:12]}"


def link_hash(header: bytes) -> bytes:
    """Return the SHA-256 of the header bytes alone, which identifies an entry in later entries."""
    return hashlib.sha256(header).digest()


def id_print(lane: str, name: str) -> bytes:
    """Return the four bytes that represent a checkpoint's name in a table of ids."""
    digest = hashlib.sha256(f"{name}\0{lane}".encode()).digest()
    return _MARKED[digest[0]] + digest[1:PRINT_BYTES]


@lru_cache(maxsize=1024)
def skip_seq(seq: int) -> int:
    """Return the position that the skip link of `seq` names.

    Every number is a sum of steps of 1, 3, 7, 15, 31 and so on, each the longest that fits into the
    rest. A skip goes back by the last of them.
    """
    rest = seq
    while rest > (step := (1 << ((rest + 1).bit_length() - 1)) - 1):
        rest -= step
    return seq - rest


def next_link(seq: int, target: int) -> int:
    """Return the next position on the path from `seq` down to `target`."""
    skipped = skip_seq(seq)
    return skipped if skipped >= target else seq - 1


def link_to(header: Header | Links, seq: int) -> str | None:
    """Return the hash in an entry's link to `seq`, the next position on a path down."""
    return header.skip if seq == skip_seq(header.seq) else header.prev


class SkipHashes(msgspec.Struct, frozen=True):
    """The hash of an entry, then those along the skips below it, down to genesis: at most 53.

    Made in constant time for each entry: lists of neighboring entries share their lower parts.
    """

    seq: int
    hash: bytes
    below: "SkipHashes | None"
    """The hashes from the entry that its skip names; None at genesis."""

    @property
    def next_below(self) -> "SkipHashes":
        """The hashes from the entry that the skip of the next entry names.

        Two steps of the same length are followed by one across both, as in `skip_seq`.
        """
        below = self.below
        if below is None or below.below is None:
            return self
        return below.below if self.seq - below.seq == below.seq - below.below.seq else self

    def grown(self, entry: bytes) -> "SkipHashes":
        """Return the hashes after one more entry."""
        return SkipHashes(self.seq + 1, entry, self.next_below)


class Entry(msgspec.Struct, frozen=True):
    """An entry with verified bytes, place and signature. Make one with `verified`."""

    raw: bytes
    header: Header
    writer: str
    """The name of the identity that signed."""
    hash: bytes
    """The hash that later entries use for it."""

    @classmethod
    def verified(cls, raw: bytes, header: Header, writer: str) -> Self:
        """Make an entry, after the caller has verified it."""
        return cls(raw, header, writer, link_hash(raw))

    @property
    def seq(self) -> int:
        """Its position."""
        return self.header.seq


class Place(msgspec.Struct, frozen=True):
    """The place where a thread's entries belong."""

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
    """None: the body with the owner is gone, which only a later erasure can justify."""
    is_session: bool
    erased: bool = False
    """Whether the thread is empty; its next generation begins with a genesis."""
    world: str | None = None
    """The digest of the declared capabilities of the session's runs, if any."""


class OwnerEntry(msgspec.Struct, frozen=True):
    """The entry that determines the owner of a thread: a genesis, a handoff or an erasure."""

    seq: int
    hash: bytes
    reserved: bool = False
    """Whether the thread is one of Sealpoint's own, by the name in its genesis."""


class Tip(msgspec.Struct, frozen=True):
    """The verified end of a thread: everything needed to judge or write the next entry."""

    entry: Entry
    skip_hashes: SkipHashes
    fence: Fence
    basis: tuple[int, bytes]
    """Position and hash of the newest entry that changes what a resume would do; until there is
    such an entry, those of the first genesis."""
    time: datetime
    """The newest time, of those that count, since the newest entry of a kind that a pause
    blocks."""
    owner: OwnerEntry
    paused: int | None = None
    """The position of the pause that is in force."""

    @property
    def lacks_owner(self) -> bool:
        """Whether the body that names the owner is missing without an erasure that explains it."""
        return self.fence.owner is None and not self.fence.erased

    def require_owner(self) -> None:
        """Refuse a body that is missing although nothing was erased.

        Call this when no erasure can follow any more, because this is the newest entry.

        Raises:
            Missing: The body that names the owner is gone.
        """
        if self.lacks_owner:
            raise Missing(
                f"entry {self.fence.seq} of thread {self.entry.header.thread[:12]}: its body is "
                "missing"
            )
