# SPDX-License-Identifier: Apache-2.0
"""Writing entries: sign, append by create-if-absent, then advance the anchor.

Steps (4) and (5) of a save (`_thread_writer.py`): store blobs and entries in one durable step, then
update the handle, advance the anchor, return. The handle takes in its own entries first, because
the anchor may fail or show entries that another process wrote next. Before anything is written, the
entries are judged by the same rules that every reader applies. If the outcome of an append is
unknown, the writer reads its position before it signs anything else for it.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256

import msgspec

from sealpoint.anchor import RESERVED_SEQ, Position
from sealpoint.errors import (
    KeyNotInForce,
    Misplaced,
    NoRight,
    NotOwner,
    Paused,
    SealpointError,
    StorageUnavailable,
    Superseded,
    UsageError,
)
from sealpoint.ledger import (
    KINDS,
    Body,
    Entry,
    Fence,
    Header,
    Kind,
    Marks,
    StoreChain,
    Tip,
    accepted_until,
    begin,
    check_key_expiry,
    encode_body,
    encode_header,
    extend,
    require_attestations,
    require_counted,
)
from sealpoint.signing import ENTRY_TYPE, Identity, Roster, encode_seal, pae
from sealpoint.storage import Record
from sealpoint.store._key_expiry import require_unexpired
from sealpoint.store._store_chain_cache import trust_after_advance
from sealpoint.store._unvouched_entries import judge_unvouched
from sealpoint.store._verified_chain import Chain, SessionGrant, lost_pause


class EntryDraft(msgspec.Struct, frozen=True):
    """An entry that does not have a position yet."""

    kind: Kind
    body: Body
    payload: bytes | None = None
    blocked_by_pause: bool = False
    """Whether a pause blocks it although its kind is not blocked, because it answers a question."""


def reserve(chain: Chain, thread: bytes) -> bool:
    """Reserve a thread id for a name, once for all processes that share the anchor.

    Returns:
        False if the name already has another id; the chain is bound to that one.
    """
    position = Position(thread, chain.core.trust().epoch, 0, RESERVED_SEQ, bytes(32))
    found = chain.core.anchor.create(chain.slot, position)
    chain.anchored = found
    if found.reserved and found.thread == thread:
        return True
    chain.bind(found.thread)
    return False


def check_rights(chain: Chain, trust: StoreChain, kind: Kind, owner: str | None) -> Identity:
    """Return the identity that would write an entry of this kind.

    Raises:
        ReadOnly: The store is not open for writing.
        NoRight: The roster does not give its identity the right.
        KeyNotInForce: The key is not in the roster, was revoked, or has expired.
        NotOwner: The thread belongs to another identity.
    """
    core = chain.core
    signer = core.signer()
    if signer.key in trust.roster.expiries:
        newest = None if chain.head is None else chain.tip().time
        require_unexpired(core, trust, signer.key, newest, f"identity {signer.name!r}")
    granted = core.granted(trust)
    found = granted.get((kind, owner))
    if found is None:
        found = granted[kind, owner] = _check_roster(chain, trust, kind, owner)
    return found


def _check_roster(chain: Chain, trust: StoreChain, kind: Kind, owner: str | None) -> Identity:
    """Check the rights in the roster; the result is cached per roster."""
    signer = chain.core.signer()
    roster = trust.roster
    holder = chain.core.holder(trust)
    if signer.key in roster.cutoffs:
        raise KeyNotInForce(
            f"identity {signer.name!r}: its key {signer.key[:12]} was revoked, by roster "
            f"{roster.seq} or before",
            hint="Nothing was saved. If the key was replaced, open the store again with the new "
            "one; sealpoint keys list shows which key is in force.",
        )
    if holder is None:
        raise KeyNotInForce(
            f"identity {signer.name!r}: its key {signer.key[:12]} is not in roster {roster.seq}",
            hint=f"Where the root key is: sealpoint keys add {signer.name} --public-key "
            f"{signer.public} --person WHO --role writer --namespace "
            f"{shlex.quote(chain.core.namespace)}",
        )
    rule = KINDS[kind]
    if not holder[0].may_any(rule.roles, chain.core.namespace):
        found, hint = holder[0].lacking(rule.roles, chain.core.namespace)
        raise NoRight(
            f"identity {holder[0].name!r}: this needs role {rule.roles_text} in namespace "
            f"{chain.core.namespace!r}; it has {found}",
            hint=hint,
        )
    if owner is not None and rule.by_owner and not roster.owns(holder[0].name, owner):
        raise NotOwner(
            f"thread {chain.name!r}: it belongs to {owner!r}, and {holder[0].name!r} wants to "
            "write it",
            hint=f"Open the store as {_owners(roster, owner)}, or use another thread. To give it "
            "away, its owner runs: sealpoint handoff THREAD --to NAME --reason TEXT. Workers that "
            "share threads are a pool: sealpoint keys pool NAME --member IDENTITY.",
        )
    return holder[0]


def _owners(roster: Roster, owner: str) -> str:
    """Describe who can write an owner's threads: the owner, or a member of that pool."""
    members = sorted(roster.members.get(owner, ()))
    return f"a member of the pool {owner!r}, such as {members[0]!r}" if members else repr(owner)


def append(chain: Chain, draft: EntryDraft, *, trust: StoreChain | None = None) -> Entry:
    """Append one entry without blobs; raises as `append_all` does."""
    return append_all(chain, [draft], blobs={}, trust=trust)[-1]


def append_all(
    chain: Chain,
    drafts: Sequence[EntryDraft],
    *,
    blobs: Mapping[bytes, bytes],
    needs: Collection[bytes] = (),
    follow: bool = True,
    trust: StoreChain | None = None,
) -> list[Entry]:
    """Append entries after the verified tip; advance the anchor, unless adoption does that.

    With `trust`, the entries name the roster of that store chain, which a decision used; otherwise
    the newest one.

    Raises:
        HeadMoved: Another writer has written there.
        Paused: The thread is paused, and the pause blocks this kind.
        Missing: A blob that was stored ahead of the entry has been removed.
        StorageUnavailable: Nothing was written.
        AnchorUnavailable: The entries stand, the anchor is behind.
    """
    trust = chain.core.trust() if trust is None else trust
    # (4) admitted, sealed, stored as one group
    tip = None if chain.head is None else chain.tip()
    session_writer = None if tip is None else _admit(chain, trust, tip, drafts)
    entries, records = [], []
    for draft in drafts:
        writer = session_writer
        if writer is None:
            owner = None if tip is None else tip.fence.owner
            writer = check_rights(chain, trust, draft.kind, owner).name
        tip, record = _seal(chain, trust, tip, draft, writer)
        entries.append((tip.entry, draft.body))
        records.append(record)
    if tip is None or not records:
        raise UsageError("append: there is no entry to append")
    _store(chain, entries, records, blobs=blobs, needs=needs)
    # (5) the handle and the anchor
    _advance(chain, trust, tip, entries, records, follow=follow)
    return [entry for entry, _ in entries]


def _admit(chain: Chain, trust: StoreChain, tip: Tip, drafts: Sequence[EntryDraft]) -> str | None:
    """Refuse a tip that does not count, or a pause, before anything is signed.

    Returns:
        The identity that writes all of the drafts, if it was determined once for the current
        session; None: the rights for each draft are checked.
    """
    if chain.unvouched is not None and any(KINDS[draft.kind].by_owner for draft in drafts):
        judge_unvouched(chain)
    newest = tip.entry.header
    counts = newest.epoch == trust.epoch and newest.by not in trust.rosters[-1].cutoffs
    if counts and tip.paused is None:
        grant = chain.grant
        if grant is None or grant.trust is not trust or grant.fence is not tip.fence:
            grant = chain.grant = _grant(chain, trust, tip.fence)
        if grant.writer is not None and {draft.kind for draft in drafts} <= _SAVED:
            return grant.writer
    # Nothing may follow an entry that a restore cut off, or that a key signed after its end.
    require_counted(trust, newest, tip.entry.hash)
    _require_running(chain, trust, tip, drafts)
    return None


_SAVED = {Kind.CHECKPOINT, Kind.RESULTS}


def _grant(chain: Chain, trust: StoreChain, fence: Fence) -> SessionGrant:
    """Determine once whether a roster lets this key write all entries of a session."""
    signer, writer = chain.core.signer(), None
    stands = fence.is_session and fence.by == signer.key and lost_pause(chain) is None
    # The rights of an expiring key are checked at each entry, which also warns of the expiry.
    if stands and signer.key not in trust.roster.expiries:
        with suppress(SealpointError):  # the check at the entry itself raises it
            check_rights(chain, trust, Kind.RESULTS, fence.owner)
            writer = check_rights(chain, trust, Kind.CHECKPOINT, fence.owner).name
    return SessionGrant(trust, fence, writer)


def _store(
    chain: Chain,
    entries: Sequence[tuple[Entry, Body]],
    records: Sequence[Record],
    *,
    blobs: Mapping[bytes, bytes],
    needs: Collection[bytes],
) -> None:
    """Append sealed entries in one durable step: all of them, or none."""
    first = entries[0][0].header
    label = chain.label if first.kind is Kind.GENESIS else None
    try:
        chain.core.storage.append(
            chain.thread, first.seq, records, blobs=blobs, needs=needs, label=label
        )
    except StorageUnavailable as exc:
        _resolve(chain, first.seq, records, exc)


def _advance(
    chain: Chain,
    trust: StoreChain,
    tip: Tip,
    entries: Sequence[tuple[Entry, Body]],
    records: Sequence[Record],
    *,
    follow: bool,
) -> None:
    """Advance this handle and the anchor to an appended tip."""
    for (entry, _), record in zip(entries, records, strict=True):
        chain.verified.note(entry, record, trust)
    try:
        chain.move_to(tip, records[-1], entries)
        if follow:
            chain.advance_anchor()
            # A key, a policy or an epoch may have ended while the entries were written.
            newest = trust_after_advance(chain.core)
            if newest is not trust:
                _require_standing(chain, newest, tip.entry, records[-1].body)
                for entry, _ in entries:
                    _require_policy(chain, newest, entry)
    except BaseException:
        if chain.observer is not None:
            chain.observer.forget()
        raise


def _require_running(
    chain: Chain, trust: StoreChain, tip: Tip, drafts: Sequence[EntryDraft]
) -> None:
    """Refuse entries that a pause blocks, and entries that need a pause, before signing."""
    stopped = any(draft.blocked_by_pause or KINDS[draft.kind].blocked_by_pause for draft in drafts)
    lost = trust.lost_pause(chain.thread, tip.entry.header.pause) if stopped else None
    if lost is not None:
        raise Paused(f"thread {chain.name!r}: it is paused: {lost}")
    if tip.paused is None:
        for draft in drafts:
            if KINDS[draft.kind].only_paused:
                raise UsageError(
                    f"thread {chain.name!r}: a checkpoint is held back only while the thread is "
                    "paused"
                )
        return
    if not stopped:
        return
    _, header = chain.descend(tip.paused)
    raise Paused(
        f"thread {chain.name!r}: it is paused, by {chain.core.writer(header)!r} in entry "
        f"{tip.paused}"
    )


def _require_standing(chain: Chain, newest: StoreChain, entry: Entry, body: bytes | None) -> None:
    """Judge an entry by a store chain that is newer than the one it was written under.

    An operator who ends a key stops it first and then records the positions that count. So an entry
    that is too late to be counted always meets one of the two here, and is not lost silently.

    Raises:
        NotTrusted: The entry is in the store, and no reader may trust it.
        Superseded: The same, because a restore was accepted without it.
    """
    try:
        newest.restores.check(entry.header, entry.hash, newest.lists)
    except Misplaced as exc:
        raise Superseded(
            f"entry {entry.seq} of thread {chain.name!r}: while it was written, an operator "
            f"accepted a restore that does not keep it: {exc.message}",
            hint="It does not count. Load the thread again and decide again; who accepted "
            "the restore runs sealpoint accept-restore once more, which takes it away.",
        ) from exc
    accepted_until(newest, entry.header, entry.hash)
    require_attestations(entry, body, newest)
    where = f"entry {entry.seq} of thread {chain.name!r}, written while its key was ended"
    require_unexpired(chain.core, newest, entry.header.by, entry.header.at, where)


def _require_policy(chain: Chain, newest: StoreChain, entry: Entry) -> None:
    """Refuse a resume or a handoff that was decided by a policy which no longer judges it.

    An audit would judge it by the new policy, because of its position. So its writer learns of the
    change, even if the new policy would allow the same, and decides again. An entry within the
    positions that the change lists is still judged by the earlier policy.

    Raises:
        Superseded: The entry is in the store, and another policy judges it.
    """
    header = entry.header
    if header.kind not in (Kind.RESUME, Kind.HANDOFF):
        return
    named = newest.roster_at(header.roster)
    if named is not None and newest.policy_at(header) != named.policy_digest(header.ns):
        raise Superseded(
            f"entry {entry.seq} of thread {chain.name!r}: the policy changed while this "
            f"{header.kind.word} was written, and the earlier policy had decided it",
            hint="Repeat the call: the new policy decides.",
        )


def _seal(
    chain: Chain, trust: StoreChain, tip: Tip | None, draft: EntryDraft, writer: str
) -> tuple[Tip, Record]:
    """Place a draft after `tip`, and sign it for a writer whose rights were checked."""
    core, rule = chain.core, KINDS[draft.kind]
    signer, body = core.signer(), encode_body(draft.body)
    if tip is None:
        seq, gen, prev, skip, marks, time = 0, 0, None, None, (0, 0, 0), None
    else:
        newest, time = tip.entry.header, tip.time
        seq, gen = newest.seq + 1, newest.gen + tip.fence.erased
        prev, skip = tip.entry.hash.hex(), tip.skip_hashes.next_below.hash.hex()
        marks = newest.fence, newest.pause, newest.owner
        if not rule.in_session:
            marks = Marks(*marks).after(draft.kind, seq)
    header = Header(
        store=core.store_hex,
        epoch=trust.epoch,
        ns=core.namespace,
        thread=chain.place.thread,
        gen=gen,
        seq=seq,
        prev=prev,
        skip=skip,
        kind=draft.kind,
        fence=marks[0],
        pause=marks[1],
        owner=marks[2],
        roster=trust.rosters[-1].seq,
        at=core.now(time),
        by=signer.key,
        body=sha256(body).hexdigest(),
    )
    raw = encode_header(header)
    seals = encode_seal(signer, pae(ENTRY_TYPE, raw))
    entry = Entry(raw, header, writer, sha256(raw).digest())
    record = Record(raw, seals, body, draft.payload)
    if tip is None:
        return begin(entry, body, trust), record
    if rule.in_session and not rule.only_paused:
        session = tip.fence
        if session.is_session and session.by == signer.key:
            # The most frequent entry: its links come from the tip, its rights were checked.
            if signer.key in trust.rosters[-1].expiries:  # it may have expired since then
                check_key_expiry(header, tip.time, trust)
            hashes = tip.skip_hashes.grown(entry.hash)
            basis = seq, entry.hash
            after = Tip(entry, hashes, session, basis, header.at, tip.owner, tip.paused)
            return after, record
    return extend(tip, entry, body, trust), record


def _resolve(
    chain: Chain, first: int, records: Sequence[Record], error: StorageUnavailable
) -> None:
    """After a failed append, read its last position, which shows whether it took effect."""
    last = first + len(records) - 1
    try:
        found = chain.core.storage.read(chain.thread, last)
    except SealpointError:
        raise error from error.__cause__
    if found is None or found.header != records[-1].header:
        raise error
