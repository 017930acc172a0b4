# SPDX-License-Identifier: Apache-2.0
"""Ending keys: look, stop them, look until nothing changes, write the cutoffs.

A cutoff is final, so it must include everything that an honest worker has saved in the meantime.
The stop is a roster in which the keys have expired: workers refuse to sign, and no reader accepts
from such a key an entry that the anchor has not seen. The entries written until then no longer
change, and are listed. ADR 0008 gives the reasons.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from sealpoint.anchor import Position
from sealpoint.errors import (
    AnchorUnavailable,
    HeadMoved,
    SealpointError,
    StorageUnavailable,
    Unanchored,
)
from sealpoint.ids import KeyId
from sealpoint.ledger import PositionList, StoreChain, carried_attestations, link_hash
from sealpoint.signing import STOPPED, Cutoff, Identity, PrivateKey, RosterDocument
from sealpoint.store._genesis import claimed_name
from sealpoint.store._store_chain_writer import anchored_entry, append_roster
from sealpoint.store._store_parts import Core
from sealpoint.store._thread_list import ListedThread, all_threads
from sealpoint.store._verified_chain import Chain

# The search finds the last entries of some keys in every thread of a store, for the cutoffs that
# end those keys.
#
# A thread's head is verified as for any read. From the head, the links lead down to the newest
# entry that each key signed, or that carries an attestation by it: an approval counts up to there.
# A thread that does not verify is listed with the anchored entry, because entries from before the
# end of the key stay valid once the damage is repaired. A thread that the anchor does not know is
# in no list, so no entry there by such a key will count.


Progress = Callable[[int, int], object]
_Line = tuple[bytes, int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnverifiedThread:
    """A thread that does not verify."""

    thread: str
    """Its id in hexadecimal."""
    name: str
    """Its claimed name, if that could be read."""
    code: str
    """The code of the error that a reader receives."""
    message: str
    kept: int | None
    """The anchored position, up to which entries of an ended key still count; None: none do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUsage:
    """The last positions of some keys, in every thread."""

    positions: Mapping[str, PositionList]
    """For each key, by the digits of its id, the threads that it wrote."""
    heads: PositionList
    """The verified head of every thread."""
    unverified: tuple[UnverifiedThread, ...]

    @property
    def threads(self) -> int:
        """Return how many threads some of the keys wrote, or may have written."""
        lists = list(self.positions.values())
        if len(lists) == 1:
            return len(lists[0])
        return len({thread for made in lists for thread in made.threads()})

    def same_as(self, other: "KeyUsage") -> bool:
        """Whether two searches found the same: the keys wrote nothing in between.

        A thread that verifies in only one of them may be about to change: its worker has written an
        entry that the anchor does not know yet.
        """
        return _outcome(self) == _outcome(other)


def _outcome(usage: KeyUsage) -> tuple[dict[str, bytes], set[tuple[str, str]]]:
    return (
        {key: made.data for key, made in usage.positions.items()},
        {(each.thread, each.code) for each in usage.unverified},
    )


def find_key_usage(
    core: Core,
    keys: frozenset[str],
    before: KeyUsage | None = None,
    progress: Progress | None = None,
) -> KeyUsage:
    """Search every thread.

    Args:
        core: The store. Unless it is read-only, the anchor advances to every verified head.
        keys: The digits of the ids of the keys to find.
        before: An earlier search for the same keys: unchanged threads are not walked again.
        progress: Called regularly with the number of finished threads and the total.

    Raises:
        StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
        Tampered, NotTrusted, RolledBack, Forked: The store chain does not verify.
    """
    return _KeyUsageFinder(core, keys, before).run(progress)


class _KeyUsageFinder:
    def __init__(self, core: Core, keys: frozenset[str], before: KeyUsage | None) -> None:
        self._core = core
        self._before = before
        self._since = _first_rosters(core.renewed_trust(), keys)
        self._found: dict[str, list[_Line]] = {key: [] for key in keys}
        self._heads: list[_Line] = []
        self._unverified: list[UnverifiedThread] = []

    def run(self, progress: Progress | None) -> KeyUsage:
        # Includes threads that the store has lost: they may be restored from a copy.
        threads = all_threads(self._core)
        for number, each in enumerate(threads, start=1):
            self._look(each)
            if progress is not None:
                progress(number, len(threads))
        return KeyUsage(
            positions={key: PositionList.of(lines) for key, lines in self._found.items()},
            heads=PositionList.of(self._heads),
            unverified=tuple(sorted(self._unverified, key=lambda each: (each.name, each.thread))),
        )

    def _look(self, listed: ListedThread) -> None:
        core, thread, slot = self._core, listed.thread, listed.slot
        vouched = listed.least
        try:
            anchored = core.anchor.get(slot) if slot else None
            vouched = vouched if listed.doubles else anchored
            if anchored is None:
                raise Unanchored(
                    f"thread {thread.hex()[:12]}: the store has it, and this machine's anchor "
                    "has no record of it"
                )
            if anchored.reserved and core.storage.read(thread, 0) is None:
                return  # a name that nothing was ever saved under
            chain = Chain.at_slot(core, slot, thread)
            chain.refresh()
            found = self._newest(chain)
        except (StorageUnavailable, AnchorUnavailable):
            raise
        except SealpointError as error:
            self._add_unverified(thread, vouched, error)
            return
        head = chain.verified_head()
        self._heads.append((thread, head.seq, head.hash))
        for key, (seq, entry) in found.items():
            self._found[key].append((thread, seq, entry))

    def _newest(self, chain: Chain) -> dict[str, tuple[int, bytes]]:
        """Return the newest entry that each key signed, or that carries an attestation by it."""
        head = chain.verified_head()
        if self._before is not None and self._before.heads.position(chain.thread) == (
            head.seq,
            head.hash,
        ):
            known = {
                key: made.position(chain.thread) for key, made in self._before.positions.items()
            }
            return {key: place for key, place in known.items() if place is not None}
        found: dict[str, tuple[int, bytes]] = {}
        wanted = dict(self._since)
        for header, record in chain.walk():
            words = carried_attestations(header, record.body)
            for key in {header.by, *(word.credential for word in words)} & wanted.keys():
                del wanted[key]
                found[key] = header.seq, link_hash(record.header)
            # Along a thread the roster never goes back: before its first roster, no key wrote.
            if all(first > header.roster for first in wanted.values()):
                break
        return found

    def _add_unverified(
        self, thread: bytes, anchored: Position | None, error: SealpointError
    ) -> None:
        seen = None if anchored is None else anchored_entry(self._core.trust(), anchored)
        if seen is not None:
            for lines in self._found.values():
                lines.append((thread, *seen))
        self._unverified.append(
            UnverifiedThread(
                thread=thread.hex(),
                name=_claimed_name(self._core, thread),
                code=error.code,
                message=error.message,
                kept=None if seen is None else seen[0],
            )
        )


def _claimed_name(core: Core, thread: bytes) -> str:
    try:
        return claimed_name(core.storage, thread)[1]
    except SealpointError:
        return ""


def _first_rosters(chain: StoreChain, keys: frozenset[str]) -> dict[str, int]:
    """Return for each key the first roster that lists it; 0 if no roster does."""
    found = {}
    for key in keys:
        name = KeyId(bytes.fromhex(key))
        found[key] = next((each.seq for each in chain.rosters if each.attester(name)), 0)
    return found


_LOOKS_MAX = 8

Change = Callable[[RosterDocument], RosterDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedKeys:
    """How some keys ended."""

    roster: int
    """The position of the roster that carries their cutoffs."""
    threads: int
    """The number of threads in which some of their entries still count."""
    unverified: tuple[UnverifiedThread, ...]
    """Threads that did not verify when the positions were recorded."""
    beyond: tuple[UnverifiedThread, ...]
    """Threads that verified then and do not now: an entry came after the cutoff."""


def revoke_keys(
    core: Core,
    keys: frozenset[str],
    roots: Sequence[PrivateKey],
    *,
    change: Change,
    reason: str | None,
    settle: Callable[[], object],
    progress: Progress | None = None,
) -> EndedKeys:
    """End keys for good, and change the roster in the same step.

    It may be repeated if it was interrupted: a key that is already stopped is not stopped again.

    Args:
        core: The store, open for writing.
        keys: The digits of their ids.
        roots: The available root keys.
        change: Makes the next roster from a roster without the keys.
        reason: Why, for the record.
        settle: Called between two searches that differ, to let some time pass.
        progress: Called regularly with the number of finished threads and the total.

    Raises:
        KeyMissing: Too few root keys are available.
        HeadMoved: Another process changes the store chain, or the keys continue to write.
        NotTrusted: The roster would contradict itself.
    """
    # (1) Anchor everything that was saved: after the stop, only anchored entries count.
    usage = find_key_usage(core, keys, None, progress)
    # (2) Stop.
    chain = core.renewed_trust()
    stopped = _stopped(chain.roster.document, keys)
    if stopped != chain.roster.document:
        core.written(append_roster(core, chain, stopped, roots, reason=reason))
    # (3) Search until nothing changes.
    for _ in range(_LOOKS_MAX):
        before, usage = usage, find_key_usage(core, keys, usage, progress)
        if usage.same_as(before):
            break
        settle()
    else:
        raise HeadMoved(
            "keys that are being revoked: they still write",
            hint="Stop the processes that hold these keys, then repeat this.",
        )
    # (4) Write the cutoffs.
    lists = usage.positions
    made = {key: Cutoff(key=key, positions=found.digest.hex()) for key, found in lists.items()}
    chain = core.renewed_trust()
    document = change(_without(chain.roster.document, keys))
    document = msgspec.structs.replace(
        document, cutoffs=(*document.cutoffs, *(made[key] for key in sorted(made)))
    )
    blobs = {found.digest: found.data for found in lists.values()}
    written = append_roster(core, chain, document, roots, reason=reason, blobs=blobs)
    core.written(written)
    # (5) Entries that came in between are refused from now on: report their threads.
    after = find_key_usage(core, keys, usage, progress)
    known = {each.thread for each in usage.unverified}
    return EndedKeys(
        roster=written.roster.seq,
        threads=usage.threads,
        unverified=usage.unverified,
        beyond=tuple(each for each in after.unverified if each.thread not in known),
    )


def _stopped(document: RosterDocument, keys: frozenset[str]) -> RosterDocument:
    """Return the roster in which these keys have expired."""

    def stopped(identity: Identity) -> Identity:
        held = tuple(
            msgspec.structs.replace(key, expires=STOPPED) if key.digits in keys else key
            for key in identity.keys
        )
        return msgspec.structs.replace(identity, keys=held)

    return msgspec.structs.replace(
        document, identities=tuple(stopped(identity) for identity in document.identities)
    )


def _without(document: RosterDocument, keys: frozenset[str]) -> RosterDocument:
    """Return the roster in which no identity holds these keys; the identities stay listed."""
    return msgspec.structs.replace(
        document,
        identities=tuple(
            msgspec.structs.replace(
                identity, keys=tuple(key for key in identity.keys if key.digits not in keys)
            )
            for identity in document.identities
        ),
    )
