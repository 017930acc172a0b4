# SPDX-License-Identifier: Apache-2.0
"""All requests of a namespace, in every thread, each verified in its thread.

If the anchored entry of a thread is its newest, and is of a kind that a pause blocks, nothing is
pending there, and the list reads no further. For other threads it reads the newest entries at once,
and for many threads it checks the signatures on all cores. A verified thread is not verified again
while its newest entry has the same bytes; the counted approvals and the expiry are evaluated on
every call.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from sealpoint.anchor import Position
from sealpoint.errors import (
    Erased,
    Forked,
    NotTrusted,
    RolledBack,
    SealpointError,
    Tampered,
    UnknownRequest,
    UnknownThread,
    UsageError,
)
from sealpoint.gate._answers import SignedAnswer, answers_in_force
from sealpoint.gate._policy import Policies, Policy
from sealpoint.gate._requests import (
    Pending,
    Request,
    find_closing,
    make_request,
    read_pending,
)
from sealpoint.gate._rollouts_in_force import RolloutBook
from sealpoint.gate._thread_status import foresee
from sealpoint.ledger import KINDS, ROLLOUTS, Entry, Kind, link_hash, parse_header
from sealpoint.signing import (
    DIGITS_LEAST,
    DIGITS_MAX,
    Action,
    Check,
    PublicKey,
    Roster,
    SignaturePool,
    Signed,
    begins_digest,
)
from sealpoint.store import (
    Chain,
    Core,
    ListedThread,
    NearEntries,
    all_threads,
    thread_slot,
    unknown_threads,
)

_NEAR = 16
"""The list reads this many of a thread's newest entries at once."""

_LISTED_MAX = 10_000
"""The list remembers this many listed requests."""

_FEW = 64
"""Up to this many threads are verified in this process alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The requests of a namespace for approval, oldest first."""

    requests: tuple[Request, ...]
    answers: tuple[SignedAnswer, ...] = ()
    """The answers that people have signed and no run has taken yet, oldest first."""
    failures: tuple[tuple[str, str], ...] = ()
    """The threads that could not be read completely, or that the anchor does not know: id, and the
    message. Some or all of their requests are unknown."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The verified pending state of a thread, with the newest entry that it was verified for."""

    raw: bytes
    hash: bytes
    epoch: int
    """The epoch of the store at that time: a restore voids the requests before it."""
    name: str
    named: bool
    """Whether the genesis confirms the name; otherwise the name is looked up again."""
    pending: Pending

    def is_of(self, raw: bytes, epoch: int, anchored: Position) -> bool:
        """Whether it was verified for this entry and epoch, and the anchor has this entry."""
        return (self.raw, self.epoch, self.hash) == (raw, epoch, anchored.entry)


@dataclass(frozen=True, slots=True)
class _Unverified:
    """A thread, as read, that may have pending requests."""

    slot: bytes
    thread: bytes
    epoch: int
    near: NearEntries | None = None
    """The newest entries, unless the part to verify is too long to be read at once."""
    signed: tuple[Signed, ...] = ()
    """The signatures that its verification will check."""


def split_answers(found: Sequence[Request], failures: Iterable[tuple[str, str]]) -> Requests:
    """Return requests with the signed answers apart from those that ask for approval.

    Args:
        found: The requests, those of a thread in the order of its entries.
        failures: The threads that could not be read.
    """
    asked = [each for each in found if not each.is_answer]
    return Requests(
        requests=tuple(sorted(asked, key=lambda each: (each.asked_at, each.id))),
        answers=tuple(sorted(answers_in_force(found), key=lambda each: (each.at, each.id))),
        failures=tuple(failures),
    )


_Seen = _Known | Sequence[Request] | SealpointError
"""The pending state of a thread, the requests of the book of rollouts, or the error."""
_Looked = tuple[ListedThread, _Seen]


def _lost(name: str, entry: Entry) -> str:
    return (
        f"thread {name!r}: entry {entry.seq} by {entry.writer!r}, a {entry.header.kind.word}, has "
        "lost its body: the store was edited, or its writer left the body out"
    )


def check_digits(text: str, what: str) -> None:
    """Refuse a text that cannot be the first digits of an id.

    Raises:
        UsageError: There are too few digits, or other characters.
    """
    if not begins_digest(text):
        raise UsageError(
            f"{what}: expected {DIGITS_LEAST} to {DIGITS_MAX} digits of its id, found {text[:64]!r}"
        )


def only_one(requests: Iterable[Request], digits: str, what: str) -> Request:
    """Return the one request whose id begins with some digits.

    Raises:
        UsageError: There are too few digits, or other characters.
        UnknownRequest: No request matches, or more than one does.
    """
    check_digits(digits, what)
    found = [each for each in requests if each.id.startswith(digits)]
    if len(found) != 1:
        raise UnknownRequest(f"{what} {digits[:12]}: expected one of this id, found {len(found)}")
    return found[0]


class RequestList:
    """Lists and finds the requests of an open store."""

    def __init__(self, core: Core, policies: Policies, book: RolloutBook) -> None:
        self._core = core
        self._book = book
        self._policies = policies
        self._known: dict[bytes, _Known] = {}
        self._listed: dict[str, str] = {}
        """The most recently listed requests, by id, with the names of their threads."""

    def list(self) -> Requests:
        """Return every request about the current state of its thread, in any status.

        Raises:
            StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
            Tampered, NotTrusted, RolledBack, Forked: The store chain does not verify.
        """
        found, failures = self._read_everything()
        return split_answers(found, failures)

    def _read_everything(self) -> tuple[Sequence[Request], Sequence[tuple[str, str]]]:
        """Return every request of the namespace, answers of people too, and what failed."""
        core = self._core
        found: list[Request] = []
        failures: list[tuple[str, str]] = []
        known: dict[bytes, _Known] = {}
        book = thread_slot(core.parts.secret, core.namespace, ROLLOUTS)
        roster = core.trust().roster
        policy = self._policies.in_force(roster)
        threads = all_threads(core)
        for each, seen in self._read_all([each for each in threads if each.is_begun], book):
            if isinstance(seen, SealpointError):
                failures.append((each.thread.hex(), seen.message))
            elif isinstance(seen, _Known):
                if seen.named:
                    known[each.thread] = seen
                found += self._shown(seen, roster, policy)
                failures += [
                    (each.thread.hex(), _lost(seen.name, entry)) for entry in seen.pending.lost
                ]
            else:
                found += seen
        self._known = known
        failures += [
            (each.thread, f"thread {each.name!r}: expected the anchor to know it")
            for each in unknown_threads(core, threads)
        ]
        self._note(found)
        return found, sorted(failures)

    def _note(self, found: Iterable[Request]) -> None:
        """Remember the requests, so that a later answer can report why a request was closed."""
        listed = self._listed | {each.id: each.thread for each in found}
        self._listed = dict(islice(listed.items(), max(0, len(listed) - _LISTED_MAX), None))

    def _shown(self, seen: _Known, roster: Roster, policy: Policy | None) -> Iterator[Request]:
        """Yield the requests of a thread in their current state."""
        now = self._core.now(seen.pending.time)
        for asked in seen.pending.asked.values():
            # A rollout outside the book allows nothing.
            if asked.body.statement.action is not Action.ROLLOUT:
                yield make_request(asked, seen.name, roster=roster, policy=policy, now=now)

    def find(self, request_id: str, thread: str | None = None) -> Request:
        """Return the one request whose id begins with some digits.

        If the thread of the request is known, only that thread is read. It is known if the caller
        names it, or if a request with this whole id was listed before.

        Raises:
            UsageError: There are too few digits, or other characters.
            UnknownRequest: No request matches, or more than one does.
            Tampered, NotTrusted, RolledBack, Forked: The thread does not verify.
        """
        check_digits(request_id, "request")
        if thread is not None:
            return only_one(self._of_thread(thread), request_id, "request")
        if (listed := self._listed.get(request_id)) is not None:
            with suppress(UnknownRequest, UnknownThread, Erased):  # then all threads are searched
                return only_one(self._of_thread(listed), request_id, "request")
        return only_one(self._read_everything()[0], request_id, "request")

    def _of_thread(self, name: str) -> Sequence[Request]:
        """Return the requests of one thread in their current state, read and verified."""
        if name == ROLLOUTS:
            return self._book.all()
        trust = self._core.trust()
        seen = self._verified(Chain(self._core, name), trust.epoch)
        if not isinstance(seen, _Known):
            return ()
        return list(self._shown(seen, trust.roster, self._policies.in_force(trust.roster)))

    def find_open(self, request_id: str) -> Request:
        """Find a request that a caller is about to answer, and may have listed before.

        Raises:
            RequestClosed: The request was listed before, and its thread has resumed since.
        """
        try:
            return self.find(request_id)
        except UnknownRequest:
            self._refuse_closed(request_id)
            raise

    def _refuse_closed(self, digits: str) -> None:
        """Raise the reason why a request that this store has listed before is closed."""
        for known, thread in self._listed.items():
            if known.startswith(digits):
                chain = Chain(self._core, thread)
                chain.refresh()
                if (closing := find_closing(chain, known)) is not None:
                    raise closing

    def _read_all(self, threads: Sequence[ListedThread], book: bytes) -> Iterator[_Looked]:
        """Yield the pending state or error of each thread; verify many new ones on all cores."""
        looks = ((each, self._look(each, book)) for each in threads)
        if sum(each.thread not in self._known for each in threads) <= _FEW:
            for each, found in looks:
                yield each, self._settle(found, PublicKey.verify)
            return
        with SignaturePool() as pool:
            for (each, found), check in pool.checked(looks, _signed):
                yield each, self._settle(found, check)

    def _look(self, each: ListedThread, book: bytes) -> "_Seen | _Unverified":
        try:
            if each.slot == book:
                return self._book.all()
            return () if each.anchored is None else self._read(each.slot, each.anchored)
        except SealpointError as error:
            return error

    def _read(self, slot: bytes, anchored: Position) -> "_Seen | _Unverified":
        """Read the pending state of a thread; empty if it belongs to another namespace."""
        core, thread, trust = self._core, anchored.thread, self._core.trust()
        newest = list(islice(core.storage.scan(thread, anchored.seq), _NEAR))
        if len(newest) == 1:
            raw, known = newest[0][1].header, self._known.get(thread)
            if known is not None and known.is_of(raw, trust.epoch, anchored):
                return known
            if link_hash(raw) == anchored.entry:
                header = parse_header(raw)
                rule, is_erased = KINDS[header.kind], header.kind is Kind.ERASE
                if header.ns != core.namespace or rule.blocked_by_pause or is_erased:
                    return ()
        if not newest or newest[0][0] != anchored.seq or len(newest) == _NEAR:
            return _Unverified(slot, thread, trust.epoch)
        below = core.storage.scan(thread, max(0, anchored.seq - _NEAR), anchored.seq - 1)
        return _Unverified(slot, thread, trust.epoch, *foresee(core, thread, [*below, *newest]))

    def _settle(self, found: "_Seen | _Unverified", check: Check) -> _Seen:
        """Return the verified pending state of a thread."""
        if not isinstance(found, _Unverified):
            return found
        core, slot, thread, near = self._core, found.slot, found.thread, found.near
        try:
            if near is not None:
                # The entries read at once may be older than the newest anchored entry.
                with suppress(Tampered, RolledBack, Forked, NotTrusted):
                    found_near = Chain.at_slot(core, slot, thread, near, check)
                    return self._verified(found_near, found.epoch)
            return self._verified(Chain.at_slot(core, slot, thread), found.epoch)
        except SealpointError as error:
            return error

    def _verified(self, chain: Chain, epoch: int) -> _Seen:
        # Refresh before trusting the namespace: an edited genesis could otherwise hide a request.
        chain.refresh()
        if chain.place.ns != self._core.namespace:
            return ()
        pending, head = read_pending(chain), chain.verified_head()
        return _Known(head.raw, head.hash, epoch, chain.name, chain.is_named, pending)


def _signed(look: tuple[ListedThread, "_Seen | _Unverified"]) -> tuple[Signed, ...]:
    return look[1].signed if isinstance(look[1], _Unverified) else ()
