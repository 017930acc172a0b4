# SPDX-License-Identifier: Apache-2.0
"""The store chain: rosters and roots, in an order that cannot be rolled back.

The store keeps it like any thread, under a reserved id. It is verified before anything else, from
the pin alone. All rosters are kept, because an entry is judged by the roster that its writer saw.
For the same reason, no right shrinks from one roster to the next without a cutoff for each key that
had it (`_cutoffs.py`). A roster that changes a policy names a list of the positions of all threads:
an entry beyond it is judged by the new policy, whatever roster it names. The previous root and the
new root both sign a new root, which signs the rosters from there on. A restore ends an epoch and
lists what stays of it (`_restores.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from sealpoint.errors import (
    Forged,
    Misplaced,
    NotTrusted,
    RolledBack,
    Tampered,
)
from sealpoint.ids import KeyId
from sealpoint.ledger._entry import Entry, Header, link_hash, parse_header, skip_seq
from sealpoint.ledger._entry_bodies import RestoreBody, RootBody, RosterBody, readable_body
from sealpoint.ledger._entry_kinds import KINDS, Kind
from sealpoint.ledger._position_lists import PositionLists
from sealpoint.ledger._restores import Restore, Restores
from sealpoint.signing import (
    ANY_NAMESPACE,
    ENTRY_TYPE,
    Identity,
    PublicKey,
    Role,
    Root,
    Roster,
    Seal,
    TrustPin,
    pae,
    parse_seals,
)

STORE_CHAIN = bytes(16)
"""The thread id of the store chain in every store; a drawn id is never this one."""


class _PolicyChange(NamedTuple):
    """A roster that changed a policy, and the list of positions for it."""

    roster: Roster
    positions: str
    """The digest of the list that counts: its own, or a later one for the same policies."""
    epoch: int
    """The epoch in which the list was taken."""


@dataclass(frozen=True, slots=True)
class StoreChain:
    """The verified part of the store chain; without entries it is only the pin."""

    pin: TrustPin
    hashes: tuple[bytes, ...] = ()
    """The hash of every entry; the chain is short, with one entry for each change of the roster."""
    rosters: tuple[Roster, ...] = ()
    """Every roster; only the newest has its cutoffs."""
    roots: tuple[Root, ...] = ()
    """Every root after the one that the pin begins with."""
    settled: int = -1
    """The position of the newest roster or root, which only the root signs."""
    restores: Restores = field(default_factory=Restores)
    lists: PositionLists = field(default_factory=PositionLists, compare=False, repr=False)
    """The source of the lists of cutoffs, restores and changes of policy."""
    epoch: int = field(init=False, compare=False, repr=False)
    """The current epoch, in which entries are written."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epoch", self.restores.epoch)

    @property
    def seq(self) -> int:
        """The position of the newest entry, or -1."""
        return len(self.hashes) - 1

    @property
    def roster(self) -> Roster:
        """The roster in force.

        Raises:
            NotTrusted: The chain has none.
        """
        if not self.rosters:
            raise NotTrusted("store chain: it has no roster")
        return self.rosters[-1]

    @property
    def root(self) -> Root:
        """The root in force."""
        return self.roots[-1] if self.roots else self.pin.root

    @property
    def blobs(self) -> tuple[bytes, ...]:
        """The digests of the blobs that it names: lists and policies, each once and in order."""
        cutoffs = self.rosters[-1].cutoffs.values() if self.rosters else ()
        named = {
            *cutoffs,
            *(digest for each in self.restores.all for digest in each.lists),
            *(digest for roster in self.rosters for digest in roster.document.policies.values()),
            *(change.positions for change in self._policy_changes()),
        }
        return tuple(bytes.fromhex(digest) for digest in sorted(named))

    def require_minimum(self, where: str) -> None:
        """Refuse a chain that ends before the root or the roster that the pin names.

        Raises:
            RolledBack: It does.
        """
        newest, least = self.pin.newest, self.pin.roster_seq_min
        if newest is not None and self.root.version < newest.version:
            raise RolledBack(
                f"{where}: expected root {newest.version}, which the pin names, found root "
                f"{self.root.version}"
            )
        if self.roster.seq < least:
            raise RolledBack(
                f"{where}: expected roster {least} or later, which the pin names, found roster "
                f"{self.roster.seq}"
            )

    def kept(self, thread: bytes) -> tuple[int, bytes] | None:
        """Return the newest entry of a thread that the newest restore kept, with its hash.

        None if it kept nothing of the thread, or there was no restore.

        Raises:
            Missing, Edited: The list is missing or has changed.
        """
        return self.restores.kept(thread, self.lists) if self.epoch else None

    def kept_threads(self) -> Iterator[bytes]:
        """Return every thread of which the newest restore kept something.

        Raises:
            Missing, Edited: The list is missing or has changed.
        """
        return self.lists.get(self.restores.all[-1].kept).threads() if self.epoch else iter(())

    def lost_pause(self, thread: bytes, pause: int, epoch: int | None = None) -> str | None:
        """Describe the restore that lost a thread's pause, if no operator has ended it since.

        Such a thread stays paused, although none of its entries says so. None: no pause was lost.

        Args:
            thread: Its id.
            pause: The mark `pause` of its newest entry, or of the entry that is judged.
            epoch: The epoch of the entry that is judged; without it, the one in force.

        Raises:
            Missing, Edited: A list is missing or has changed.
        """
        if not self.epoch:
            return None
        epoch = self.epoch if epoch is None else epoch
        restore = self.restores.lost_pause(thread, self.lists, pause=pause, epoch=epoch)
        if restore is None:
            return None
        return (
            f"the restore in entry {restore.seq} of the store chain lost the pause, and no "
            "operator has ended it since"
        )

    def policy_at(self, header: Header) -> str | None:
        """Return the digest of the policy that judges an entry of a thread; None: no policy does.

        It is the policy of the roster that the entry names, unless the entry is beyond the
        positions of a later change of policy: then its writer chose the earlier roster too late.

        Args:
            header: The header of a verified entry.

        Raises:
            Missing, Edited: A list is missing or has changed.
        """
        for change in self._policy_changes(header.roster):
            if self._binds(change, header):
                return change.roster.policy_digest(header.ns)
        named = self.roster_at(header.roster)
        return None if named is None else named.policy_digest(header.ns)

    def _policy_changes(self, after: int = -1) -> Iterator["_PolicyChange"]:
        """Yield the changes of policy by the rosters after a position, newest first."""
        listed: Roster | None = None
        for before, roster in zip(self.rosters[-2::-1], self.rosters[::-1], strict=False):
            if roster.seq <= after:
                return
            if listed is None and roster.positions is not None:
                listed = roster
            if listed is not None and before.document.policies != roster.document.policies:
                epoch = sum(restore.seq < listed.seq for restore in self.restores.all)
                yield _PolicyChange(roster, listed.positions or "", epoch)
                listed = None

    def _binds(self, change: "_PolicyChange", header: Header) -> bool:
        """Whether an entry was written after a change of policy, by its position."""
        if header.epoch > change.epoch:
            return True  # a restore may have reassigned positions below the listed one
        last = self.lists.get(change.positions).position(bytes.fromhex(header.thread))
        return last is None or header.seq > last[0]

    def person_of(self, entry: Entry) -> str | None:
        """Return the person who wrote an entry, by the roster that it names."""
        roster = self.roster_at(entry.header.roster)
        identity = None if roster is None else roster.identity(entry.writer)
        return None if identity is None else identity.person

    def roster_at(self, seq: int) -> Roster | None:
        """Return the roster at a position of the store chain, or None."""
        if self.rosters and self.rosters[-1].seq == seq:
            return self.rosters[-1]
        return next((roster for roster in self.rosters if roster.seq == seq), None)

    def extended(self, raw: bytes, seals: bytes, body: bytes | None) -> "StoreChain":
        """Return the chain after one more entry.

        Raises:
            Tampered: The entry is edited, forged or misplaced.
            NotTrusted: The root did not sign it, or its content is not allowed.
        """
        seq = self.seq + 1
        header = parse_header(raw)
        self._check_place(header, seq)
        self._check_seals(header, raw, seals)
        if body is None and KINDS[header.kind].needs_body:
            raise Tampered(f"store chain entry {seq}: its body is missing")
        parsed = readable_body(header, body)
        hashes = (*self.hashes, link_hash(raw))
        if isinstance(parsed, RosterBody):
            rosters = self._with_roster(parsed, seq)
            return replace(self, hashes=hashes, rosters=rosters, settled=seq)
        if isinstance(parsed, RootBody):
            root = self._next_root(parsed, seq)
            root.verify(pae(ENTRY_TYPE, raw), parse_seals(seals))
            return replace(self, hashes=hashes, roots=(*self.roots, root), settled=seq)
        if isinstance(parsed, RestoreBody):
            restore = Restore(seq, parsed.kept, parsed.lost, parsed.released, parsed.paused)
            return replace(self, hashes=hashes, restores=self.restores.then(restore))
        return replace(self, hashes=hashes)

    def _check_place(self, header: Header, seq: int) -> None:
        prev = self.hashes[-1].hex() if seq else None
        skip = self.hashes[skip_seq(seq)].hex() if seq else None
        roster = self.rosters[-1].seq if self.rosters else 0
        epoch = self.epoch + (header.kind is Kind.RESTORE)
        for what, found, expected in (
            ("store", header.store, self.pin.store.raw.hex()),
            ("chain", (header.thread, header.ns), (STORE_CHAIN.hex(), "")),
            ("position", header.seq, seq),
            ("epoch", header.epoch, epoch),
            ("generation", header.gen, 0),
            ("session, pause and owner", (header.fence, header.pause, header.owner), (0, 0, 0)),
            ("previous hash", header.prev, prev),
            ("skip hash", header.skip, skip),
            ("roster", header.roster, roster),
        ):
            if found != expected:
                raise Misplaced(
                    f"store chain entry {seq}: expected another {what} than {_shown(found)}"
                )

    def _check_seals(self, header: Header, raw: bytes, seals: bytes) -> None:
        where = f"store chain entry {header.seq}"
        rule = KINDS[header.kind]
        if not rule.on_store_chain:
            raise NotTrusted(f"{where}: expected a kind of this chain, found {header.kind.word}")
        found = parse_seals(seals)
        message = pae(ENTRY_TYPE, raw)
        if found[0].key.raw.hex() != header.by:
            raise Forged(f"{where}: expected a signature by key {header.by[:12]}")
        if not rule.roles:
            if header.kind is not Kind.RESTORE or not self._has_quorum(header, found, message):
                self.root.verify(message, found)
            return
        holder = self.roster.holder(found[0].key)
        if holder is None or not holder[0].may_any(rule.roles, ANY_NAMESPACE):
            by = header.by[:12] if holder is None else repr(holder[0].name)
            raise NotTrusted(
                f"{where}: expected an entry by role {rule.roles_text} of all namespaces, found "
                f"one by {by}"
            )
        if len(found) != 1:
            raise Forged(f"{where}: expected one signature, found {len(found)}")
        holder[1].verify(found[0].signature, message)

    def _has_quorum(self, header: Header, seals: Sequence[Seal], message: bytes) -> bool:
        """Whether enough persons signed a restore for the roster's quorum; false without one."""
        persons = set()
        for seal in seals:
            holder = self.restorer(seal.key, header.at)
            if holder is not None:
                holder[1].verify(seal.signature, message)
                persons.add(holder[0].person)
        return 0 < self.roster.document.restore_quorum <= len(persons)

    def restorer(self, key: KeyId, at: datetime) -> tuple[Identity, PublicKey] | None:
        """Return the holder of a key that counts for the quorum of a restore; None if it does not.

        The key must belong to an operator of all namespaces, and must not have expired at this
        time.
        """
        holder = self.roster.holder(key)
        if holder is None or self.roster.key_expired_at(key.raw.hex(), at):
            return None
        return holder if holder[0].may(Role.OPERATOR, ANY_NAMESPACE) else None

    def _with_roster(self, body: RosterBody, seq: int) -> tuple[Roster, ...]:
        roster = Roster(body.roster, seq=seq, positions=body.positions)
        roster.follows(self.rosters[-1] if self.rosters else None)
        return (*self.rosters[:-1], *(each.without_cutoffs() for each in self.rosters[-1:]), roster)

    def _next_root(self, body: RootBody, seq: int) -> Root:
        root = Root.parse(body.root)
        if root.version != self.root.version + 1:
            raise NotTrusted(
                f"store chain entry {seq}: expected root {self.root.version + 1}, "
                f"found root {root.version}"
            )
        known = self.pin.newest
        if known is not None and known.version == root.version and known.document != body.root:
            raise NotTrusted(
                f"store chain entry {seq}: root {root.version} is not the one that the pin has"
            )
        return root


def _shown(found: object) -> str:
    return str(found)[:40]
