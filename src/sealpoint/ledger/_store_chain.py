# SPDX-License-Identifier: Apache-2.0
"""The store chain: rosters, signed by the root, in an order that cannot be turned back.

It lies in the store like any thread, under a reserved id, and is verified before anything else,
from the pin alone. Every roster stays known, because an entry is judged by the roster that its
writer saw. For the same reason no right ever shrinks from one roster to the next: a key that lost
it could go on under the older roster. Taking a right away needs a cut, which this version refuses
to read rather than to ignore.
"""

from dataclasses import dataclass, replace

from sealpoint.errors import Forged, Misplaced, NotTrusted, Tampered
from sealpoint.ledger._bodies import RosterBody, parse_body
from sealpoint.ledger._header import Header, parse_header
from sealpoint.ledger._kinds import KINDS, Kind
from sealpoint.ledger._links import link_hash, skip_seq
from sealpoint.signing import ANY_NAMESPACE, ENTRY_TYPE, Roster, TrustPin, pae, parse_seals

__all__ = ["STORE_CHAIN", "StoreChain"]

STORE_CHAIN = bytes(16)
"""The thread id that the store chain has in every store; a drawn id is never this one."""


@dataclass(frozen=True, slots=True)
class StoreChain:
    """The store chain as far as it was verified; without entries it is only the pin."""

    pin: TrustPin
    hashes: tuple[bytes, ...] = ()
    """The hash of every entry: the chain is short, there is one for each change of the roster."""
    rosters: tuple[Roster, ...] = ()
    epoch: int = 0

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
            raise NotTrusted("store chain: expected a roster, found none")
        return self.rosters[-1]

    def roster_at(self, seq: int) -> Roster | None:
        """The roster that lies at a position of the store chain, or None."""
        if self.rosters and self.rosters[-1].seq == seq:
            return self.rosters[-1]
        return next((roster for roster in self.rosters if roster.seq == seq), None)

    def extended(self, raw: bytes, seals: bytes, body: bytes | None) -> "StoreChain":
        """The chain once an entry follows it.

        Raises:
            Tampered: The entry is edited, forged or misplaced.
            NotTrusted: The root did not sign it, or it says what no roster may say.
        """
        seq = self.seq + 1
        header = parse_header(raw)
        self._check_place(header, seq)
        self._check_seals(header, raw, seals)
        if body is None:
            raise Tampered(f"store chain entry {seq}: expected its body, found none")
        parsed = parse_body(header.kind, header.body, body)
        rosters = self.rosters
        if isinstance(parsed, RosterBody):
            rosters = (*rosters, self._roster(parsed, seq))
        return replace(self, hashes=(*self.hashes, link_hash(raw)), rosters=rosters)

    def _check_place(self, header: Header, seq: int) -> None:
        prev = self.hashes[-1].hex() if seq else None
        skip = self.hashes[skip_seq(seq)].hex() if seq else None
        roster = self.rosters[-1].seq if self.rosters else 0
        for what, found, expected in (
            ("store", header.store, self.pin.store.raw.hex()),
            ("chain", (header.thread, header.ns), (STORE_CHAIN.hex(), "")),
            ("position", header.seq, seq),
            ("epoch, generation and fence", (header.epoch, header.gen, header.fence), (0, 0, 0)),
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
        if not rule.judged or not rule.on_store_chain:
            raise NotTrusted(f"{where}: expected a kind of this chain, found {header.kind}")
        found = parse_seals(seals)
        message = pae(ENTRY_TYPE, raw)
        if found[0].key.raw.hex() != header.by:
            raise Forged(f"{where}: expected a signature by key {header.by[:12]}")
        if header.kind is Kind.ROSTER:
            self.pin.root.verify(message, found)
            return
        holder = self.roster.holder(found[0].key)
        if holder is None or rule.role is None or not holder[0].may(rule.role, ANY_NAMESPACE):
            raise NotTrusted(f"{where}: expected {rule.role} of all namespaces")
        if len(found) != 1:
            raise Forged(f"{where}: expected one signature, found {len(found)}")
        holder[1].verify(found[0].signature, message)

    def _roster(self, body: RosterBody, seq: int) -> Roster:
        roster = Roster(body.roster, seq=seq)
        if self.rosters and not roster.covers(self.rosters[-1]):
            raise NotTrusted(f"roster {seq}: expected every earlier right, found one gone")
        return roster


def _shown(found: object) -> str:
    return str(found)[:40]
