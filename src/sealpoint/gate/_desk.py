# SPDX-License-Identifier: Apache-2.0
"""All requests of a namespace, in every thread, each verified where it lies.

A thread whose anchored entry is its newest and is one that a pause would have stopped has nothing
pending, and is read no further. What was verified once is not verified again while the thread's
newest entry is the same bytes; who counts and what has expired is asked anew each time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from sealpoint.anchor import Position
from sealpoint.errors import SealpointError, UnknownRequest, UsageError
from sealpoint.gate._pending import Pending, read_pending
from sealpoint.gate._policies import Policies
from sealpoint.gate._requests import Request, make_request
from sealpoint.gate._rollout_book import ROLLOUTS, RolloutBook
from sealpoint.ledger import KINDS, STORE_CHAIN, link_hash, parse_header
from sealpoint.signing import DIGITS_LEAST, DIGITS_MAX, Action, begins_digest
from sealpoint.store import Chain, Core, thread_slot, unknown_threads

__all__ = ["Desk", "Requests", "only_one"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The requests of a namespace, oldest first."""

    requests: tuple[Request, ...]
    failures: tuple[tuple[str, str], ...]
    """The threads that could not be read, or that the anchor does not know: id, and the message.
    What they hold is not known."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What was verified of a thread, and the newest entry that it was verified for."""

    raw: bytes
    epoch: int
    """The epoch of the store then: a restore voids what was asked for before it."""
    name: str
    named: bool
    """Whether the name is what its genesis says; otherwise it is looked up again."""
    pending: Pending


def check_digits(text: str, what: str) -> None:
    """Refuse what cannot be the first digits of an id.

    Raises:
        UsageError: There are too few digits, or other characters.
    """
    if not begins_digest(text):
        raise UsageError(
            f"{what}: expected {DIGITS_LEAST} to {DIGITS_MAX} digits of its id, found {text[:64]!r}"
        )


def only_one(requests: Iterable[Request], digits: str, what: str) -> Request:
    """The one request whose id begins with some digits.

    Raises:
        UsageError: There are too few digits, or other characters.
        UnknownRequest: There is none, or more than one.
    """
    check_digits(digits, what)
    found = [each for each in requests if each.id.startswith(digits)]
    if len(found) != 1:
        raise UnknownRequest(f"{what} {digits[:12]}: expected one of this id, found {len(found)}")
    return found[0]


class Desk:
    """Where the requests of an open store are looked up."""

    def __init__(self, core: Core, policies: Policies, book: RolloutBook) -> None:
        self._core = core
        self._book = book
        self._policies = policies
        self._known: dict[bytes, _Known] = {}

    def list(self) -> Requests:
        """Every request that is about its thread as that is now, whatever became of it.

        Raises:
            StorageUnavailable, AnchorUnavailable: Nobody can look.
            Tampered, NotTrusted, RolledBack, Forked: The store chain cannot be believed.
        """
        core = self._core
        roster = core.trust().roster
        policy = self._policies.in_force(roster)
        found: list[Request] = []
        failures: list[tuple[str, str]] = []
        known: dict[bytes, _Known] = {}
        book = thread_slot(core.parts.secret, core.namespace, ROLLOUTS)
        for slot, anchored in core.anchor.slots():
            if anchored.thread == STORE_CHAIN or anchored.reserved or anchored.erased:
                continue
            if slot == book:
                try:
                    found += self._book.all()
                except SealpointError as error:
                    failures.append((anchored.thread.hex(), error.message))
                continue
            try:
                seen = self._read(slot, anchored)
            except SealpointError as error:
                failures.append((anchored.thread.hex(), error.message))
                continue
            if seen is None:
                continue
            if seen.named:
                known[anchored.thread] = seen
            now = core.now(seen.pending.time)
            found += [
                make_request(asked, seen.name, roster=roster, policy=policy, now=now)
                for asked in seen.pending.asked.values()
                # A rollout that is not in the book lets nothing pass.
                if asked.body.statement.action is not Action.ROLLOUT
            ]
        self._known = known
        failures += [
            (each.thread, f"thread {each.name!r}: expected the anchor to know it")
            for each in unknown_threads(core)
        ]
        found.sort(key=lambda request: (request.asked_at, request.id))
        return Requests(requests=tuple(found), failures=tuple(sorted(failures)))

    def find(self, request_id: str) -> Request:
        """The one request whose id begins with some digits.

        Raises:
            UsageError: There are too few digits, or other characters.
            UnknownRequest: There is none, or more than one.
        """
        check_digits(request_id, "request")
        return only_one(self.list().requests, request_id, "request")

    def _read(self, slot: bytes, anchored: Position) -> _Known | None:
        """What is pending on a thread; None if nothing is, or it is of another namespace."""
        core, thread, epoch = self._core, anchored.thread, self._core.trust().epoch
        newest = [record for _, record in islice(core.storage.scan(thread, anchored.seq), 2)]
        known = self._known.get(thread)
        if len(newest) == 1 and link_hash(newest[0].header) == anchored.entry:
            header = parse_header(newest[0].header)
            if header.ns != core.namespace or KINDS[header.kind].halts:
                return None
            if known is not None and (known.raw, known.epoch) == (newest[0].header, epoch):
                return known
        chain = Chain.at_slot(core, slot, thread)
        # Before its namespace is believed: whoever edits a genesis could hide a request with it.
        chain.refresh()
        if chain.place.ns != core.namespace:
            return None
        pending = read_pending(chain)
        named = thread_slot(core.parts.secret, core.namespace, chain.name) == slot
        return _Known(chain.verified_head().raw, epoch, chain.name, named, pending)
