# SPDX-License-Identifier: Apache-2.0
"""Verification of a thread's entries, one by one and from the first to the last.

`verify_entry` verifies one entry on its own: its bytes, its place, and its signature by a key that
the roster and the table allow. `begin` and `extend` verify an entry as the next one of a chain that
is verified so far: its links, and every rule of `_entry_rules.py`. The gate checks how many
approvals the policy requires, and the anchor whether a chain is current.

`Follower` verifies a whole thread, each entry as the next one. It believes nothing without proof:
signature, place, links, fence, owner, pause, cutoffs and body of every entry, as a reader of the
store would check them. It refuses a thread that ends too early. Its caller handles blobs, the
anchor, and keys that have expired since.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from sealpoint.errors import Edited, Forged, Misplaced, Missing, NotTrusted, RolledBack
from sealpoint.ids import KeyId
from sealpoint.ledger._claim_checks import ClaimCheck
from sealpoint.ledger._cutoffs import CutoffCheck, require_attestations, require_counted
from sealpoint.ledger._entry import (
    Entry,
    Fence,
    Header,
    OwnerEntry,
    Place,
    SkipHashes,
    Tip,
    entry_label,
    link_hash,
    parse_header,
)
from sealpoint.ledger._entry_bodies import (
    GenesisBody,
    HandoffBody,
    ResumeBody,
    is_lost,
    parse_body,
    readable_body,
    require_past,
)
from sealpoint.ledger._entry_kinds import KINDS, Kind
from sealpoint.ledger._entry_rules import (
    RESERVED,
    Marks,
    check_generation,
    check_handoff,
    check_key_expiry,
    check_owner,
    check_pause,
    check_reserved,
    check_session,
    check_succession,
    check_world,
    time_at,
)
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.signing import (
    ENTRY_TYPE,
    Check,
    Identity,
    PublicKey,
    Seal,
    Signed,
    pae,
    parse_seals,
)


def verify_entry(
    raw: bytes,
    seals: bytes,
    *,
    place: Place,
    seq: int,
    chain: StoreChain,
    check: Check | None = PublicKey.verify,
) -> Entry:
    """Verify one entry on its own.

    Args:
        raw: The bytes of its header.
        seals: Its seals.
        place: The place where it belongs.
        seq: Its position.
        chain: The rosters.
        check: Checks the signature; a caller that passes another function verifies the signature
            elsewhere. None: do not read the seals, because the signature of a later entry by the
            same key, linked to this one, covers it.

    Raises:
        Edited: The bytes are not an entry.
        Forged: The signature is not by the key that the entry names.
        Misplaced: It is a genuine entry of another place.
        NotTrusted: The key may not write this kind here.
    """
    # (1) bounds and (2) strict parsing
    header = parse_header(raw)
    where = f"entry {seq} of thread {place.thread[:12]}"
    # (3) the signature, by a key that the roster and the table allow for this kind and namespace
    writer = _signer(header, raw, seals, chain, where=where, check=check)
    # (4) the place
    place.check(header, seq)
    entry = Entry.verified(raw, header, writer.name)
    # (3) and (4) again, now that the position is certain: refuse what a restore cut off, and what a
    # key signed after its end
    require_counted(chain, header, entry.hash)
    return entry


def claimed_signatures(raw: bytes, seals: bytes, chain: StoreChain) -> tuple[Signed, ...]:
    """Return the signatures that verifying an entry will need, so that they can be checked ahead.

    This does not affect trust; if the signatures are unknown, the result is empty.
    """
    try:
        seal = parse_seals(seals)[0]
    except Edited:
        return ()
    for roster in reversed(chain.rosters):
        if (holder := roster.holder(seal.key)) is not None:
            return ((holder[1], seal.signature, pae(ENTRY_TYPE, raw)),)
    return ()


def _signer(
    header: Header, raw: bytes, seals: bytes, chain: StoreChain, *, where: str, check: Check | None
) -> Identity:
    """Return the identity that signed, if it may write this kind."""
    seal = None if check is None else _seal(header, seals, where)
    roster = chain.roster_at(header.roster)
    if roster is None:
        raise NotTrusted(f"{where}: expected a roster of the store chain, found {header.roster}")
    holder = roster.holder(KeyId(bytes.fromhex(header.by)) if seal is None else seal.key)
    if holder is None:
        raise NotTrusted(f"{where}: expected a key of roster {roster.seq}, found {header.by[:12]}")
    identity, key = holder
    if check is not None and seal is not None:
        try:
            check(key, seal.signature, pae(ENTRY_TYPE, raw))
        except Forged as exc:
            raise Forged(f"{where}: {exc.message}") from exc
    rule = KINDS[header.kind]
    if not rule.on_threads:
        raise NotTrusted(f"{where}: expected a kind that threads have, found {header.kind.word}")
    if not identity.may_any(rule.roles, header.ns):
        raise NotTrusted(
            f"{where}: expected {rule.roles_text} of namespace {header.ns!r} for a "
            f"{header.kind.word}, found {identity.name!r}"
        )
    return identity


def _seal(header: Header, seals: bytes, where: str) -> Seal:
    """Return the seal of an entry, which must be by the key that the header names."""
    found = parse_seals(seals)
    if len(found) != 1 or found[0].key.raw.hex() != header.by:
        raise Forged(
            f"{where}: expected one signature, by key {header.by[:12]}, found "
            f"{len(found)}, the first by key {found[0].key.raw.hex()[:12]}"
        )
    return found[0]


def begin(entry: Entry, body: bytes | None, chain: StoreChain) -> Tip:
    """Return the tip of a thread that has only its genesis, whose body may be gone.

    Raises:
        Misplaced: It is not a genesis.
        NotTrusted: Its writer gave the thread to an owner that it is not part of, or its key had
            expired.
    """
    header = entry.header
    links = (header.seq, header.gen, header.prev, header.skip, *Marks.of(header))
    if header.kind is not Kind.GENESIS or links != (0, 0, None, None, 0, 0, 0):
        raise Misplaced(
            f"thread {header.thread[:12]}: expected a genesis, found a {header.kind.word}"
        )
    check_key_expiry(header, header.at, chain)
    fence, owner = read_fence(entry, body), read_owner_entry(entry, body)
    check_owner(entry, fence.owner, chain)
    hashes, basis = SkipHashes(0, entry.hash, None), (entry.seq, entry.hash)
    return Tip(entry, hashes, fence, basis, header.at, owner)


def extend(
    tip: Tip, entry: Entry, body: bytes | None, chain: StoreChain, *, parsed: Any = None
) -> Tip:
    """Return the tip after `entry`.

    Args:
        tip: The end of the chain so far.
        entry: The entry, verified on its own.
        body: Its body, if it exists.
        chain: The rosters.
        parsed: The same body, if it was parsed already.

    Raises:
        Misplaced: It does not follow.
        NotTrusted: Its writer may not write it at this point.
    """
    header, before = entry.header, tip.entry.header
    where = f"entry {header.seq} of thread {header.thread[:12]}"
    if header.seq != before.seq + 1:
        raise Misplaced(f"{where}: expected position {before.seq + 1}")
    skip = tip.skip_hashes.next_below.hash
    if header.prev != tip.entry.hash.hex() or header.skip != skip.hex():
        raise Misplaced(
            f"{where}: expected the links {tip.entry.hash.hex()[:12]} and {skip.hex()[:12]}, "
            f"found {str(header.prev)[:12]} and {str(header.skip)[:12]}"
        )
    check_succession(before, header)
    if header.epoch != before.epoch:
        chain.restores.check_first(header, (before.seq, tip.entry.hash), chain.lists)
    check_key_expiry(header, tip.time, chain)
    check_reserved(header, reserved=tip.owner.reserved)
    check_pause(header, tip.paused)
    rule = KINDS[header.kind]
    fence = _fence(tip, entry, body, chain)
    if rule.is_checkpoint and body is not None and fence.owner is not None:
        state = parse_body(header.kind, header.body, body) if parsed is None else parsed
        check_world(entry_label(header), state.world, fence.world)
    return Tip(
        entry,
        tip.skip_hashes.grown(entry.hash),
        fence,
        (header.seq, entry.hash) if rule.moves_basis else tip.basis,
        next_time(header, tip.time),
        read_owner_entry(entry, body) if rule.settles_owner else tip.owner,
        next_pause(header, tip.paused),
    )


def next_time(header: Header, time: datetime) -> datetime:
    """Return the time of a thread after an entry; some kinds of entries do not change it."""
    return header.at if KINDS[header.kind].blocked_by_pause else time_at(header, time)


def next_pause(header: Header, paused: int | None) -> int | None:
    """Return the pause that is in force after an entry; an erasure ends a pause."""
    if not KINDS[header.kind].settles_pause:
        return paused
    return header.seq if header.kind is Kind.PAUSE else None


def read_basis_and_time(
    entries: Iterable[tuple[Header, bytes]],
    known: Mapping[int, tuple[tuple[int, bytes], datetime]] = MappingProxyType({}),
) -> tuple[tuple[int, bytes], datetime]:
    """Find the basis and the time of a thread, from the head of a verified chain downward.

    They are no deeper than the newest entry of a kind that a pause blocks.

    Args:
        entries: Headers, newest first, each with its bytes; it reads no more than necessary.
        known: The basis and the time below some positions, so that none is read twice.

    Raises:
        Missing: They end before both are found.
    """
    basis: tuple[int, bytes] | None = None
    halted, times = False, []
    for header, raw in entries:
        rule = KINDS[header.kind]
        if basis is None and (rule.moves_basis or not header.seq):
            basis = header.seq, link_hash(raw)
        if not halted and rule.tells_time:
            times.append(header.at)
        halted = halted or rule.blocked_by_pause
        if header.seq in known:
            basis_below, time_below = known[header.seq]
            basis = basis_below if basis is None else basis
            times += [] if halted else [time_below]
            halted = True
        if halted and basis is not None:
            return basis, max(times)
    raise Missing("thread: its first entry is missing")


def _fence(tip: Tip, entry: Entry, body: bytes | None, chain: StoreChain) -> Fence:
    """Return the fence from this entry on, after checking the entry under the one in force."""
    header = entry.header
    rule = KINDS[header.kind]
    check_generation(header, tip.entry.header, erased=tip.fence.erased)
    if header.kind is Kind.GENESIS:
        fence = read_fence(entry, body)
        check_owner(entry, fence.owner, chain)
        return fence
    if header.kind is Kind.HANDOFF:
        check_handoff(
            entry,
            body,
            owner=tip.fence.owner,
            basis=tip.basis[1].hex(),
            now=time_at(header, tip.time),
            chain=chain,
        )
        return read_fence(entry, None if tip.fence.owner is None else body)
    if rule.by_owner:
        check_owner(entry, tip.fence.owner, chain)
    check_session(header, tip.fence)
    if not rule.sets_fence:
        return tip.fence
    # If the owner is unknown, it stays unknown until the erasure: an attacker who made the earlier
    # body go missing could have written a later body that names an owner.
    fence = read_fence(entry, None if tip.fence.owner is None else body)
    if fence.owner not in (None, tip.fence.owner):
        raise NotTrusted(
            f"{entry_label(header)}: expected owner {tip.fence.owner!r}, found {fence.owner!r}"
        )
    return fence


def read_fence(entry: Entry, body: bytes | None) -> Fence:
    """Return the fence that an already verified genesis, resume, handoff or erasure set.

    Raises:
        Misplaced: It sets no fence, or it is a resume that names a position ahead of it.
    """
    header = entry.header
    if not KINDS[header.kind].sets_fence or header.fence != header.seq:
        raise Misplaced(f"entry {entry.seq}: expected a fence, found a {header.kind.word}")
    if header.kind is Kind.ERASE:
        return Fence(header.seq, header.by, None, is_session=False, erased=True)
    owner = world = None
    if body is not None:
        parsed: GenesisBody | ResumeBody | HandoffBody = parse_body(header.kind, header.body, body)
        require_past(header, parsed)
        owner = parsed.owner
        world = parsed.world if isinstance(parsed, ResumeBody) else None
    is_session = header.kind is Kind.RESUME
    return Fence(header.seq, header.by, owner, is_session=is_session, world=world)


def read_owner_entry(entry: Entry, body: bytes | None) -> OwnerEntry:
    """Return the owner entry that an already verified genesis, handoff or erasure makes."""
    header, reserved = entry.header, False
    if header.kind is Kind.GENESIS and body is not None:
        genesis: GenesisBody = parse_body(header.kind, header.body, body)
        reserved = genesis.name.startswith(RESERVED)
    return OwnerEntry(entry.seq, entry.hash, reserved)


class ChainStep(NamedTuple):
    """One entry of a thread, verified as the next one."""

    entry: Entry
    body: Any
    """The parsed body; None if an erasure removed it, or it cannot be read."""
    unreadable: bool
    """Whether it has a body that cannot be read, and on which nothing depends."""
    lost: bool
    """Whether nobody knows what its body said, and nothing depends on that; also after an
    erasure."""
    before: Tip | None
    """The end of the thread before it; None for the first entry."""
    tip: Tip
    chain: StoreChain
    """The store chain that it was judged by."""


class Follower:
    """A thread, verified up to some entry.

    Args:
        place: The place where its entries belong.
        chain: The rosters; the caller may replace it by a newer one between entries.
    """

    def __init__(self, place: Place, chain: StoreChain) -> None:
        self.place = place
        self.chain = chain
        self._tip: Tip | None = None
        self._began = 0
        """The epoch of its first entry."""
        self._cutoffs = CutoffCheck()
        self._claims = ClaimCheck()
        self._bare = -1
        self._erased = -1

    def take(self, raw: bytes, seals: bytes, body: bytes | None) -> ChainStep:
        """Verify the next entry.

        Raises:
            Tampered, NotTrusted, Forked: It is not what was written as the next one.
        """
        seq = 0 if self._tip is None else self._tip.entry.seq + 1
        entry = verify_entry(raw, seals, place=self.place, seq=seq, chain=self.chain)
        return self.follow(entry, body)

    def follow(self, entry: Entry, data: bytes | None) -> ChainStep:
        """Take the next entry, which `verify_entry` has verified on its own: the second half.

        Raises:
            Tampered, NotTrusted, Forked: It is not what was written as the next one.
        """
        before, chain = self._tip, self.chain
        # (1) keys that have ended since
        self._cutoffs.follow(entry, data, chain)
        require_attestations(entry, data, chain)
        # (2) the body that the header binds
        rule = KINDS[entry.header.kind]
        body = None if data is None else readable_body(entry.header, data)
        lost = body is None and not rule.needs_body and is_lost(entry.header, data)
        # (3) links, fence, owner, pause
        if before is None:
            tip = begin(entry, data, chain)
            if entry.header.epoch:
                with suppress(Missing, Edited):  # as in `require_kept`
                    chain.restores.check_first(entry.header, None, chain.lists)
        else:
            tip = extend(before, entry, data, chain, parsed=body)
        # (4) its claims about the entries before it
        self._claims.follow(entry.header, body)
        if before is None:
            self._began = entry.header.epoch
        if data is None and rule.needs_body:
            self._bare = entry.seq
        if entry.header.kind is Kind.ERASE:
            self._erased = entry.seq
        self._tip = tip
        unreadable = data is not None and body is None
        return ChainStep(entry, body, unreadable, lost, before, tip, chain)

    def finish(self) -> Tip:
        """Return the end of the thread, when there are no more entries.

        Raises:
            Missing: There is none, or a body is gone without an erasure.
            RolledBack: The thread ends before an entry that the cutoff of a revoked key lists.
        """
        where = f"thread {self.place.thread[:12]}"
        if self._tip is None:
            raise Missing(f"{where}: its genesis is missing")
        if self._bare > self._erased:
            raise Missing(f"entry {self._bare} of {where}: its body is missing")
        self._tip.require_owner()
        self._cutoffs.require_settled(where)
        return self._tip

    def require_kept(self) -> None:
        """Refuse an end before the entry that the newest restore kept; an anchor may know less.

        Raises:
            RolledBack: It does.
            Missing, Edited: The list of kept entries is missing or has changed.
        """
        last = -1 if self._tip is None else self._tip.entry.seq
        try:
            kept = self.chain.kept(bytes.fromhex(self.place.thread))
        except (Missing, Edited):
            # A missing list refuses the threads that it must judge, but no thread that began later.
            if self._began < self.chain.epoch:
                raise
            return
        if kept is not None and kept[0] > last:
            raise RolledBack(
                f"thread {self.place.thread[:12]}: expected entry {kept[0]}, which the newest "
                f"restore kept, found entry {last} to be the last"
            )
