# SPDX-License-Identifier: Apache-2.0
"""The rules that decide whether an entry is allowed at its place on a thread.

A signature proves who wrote an entry, and an anchor proves that someone saw it. Neither proves that
the entry was allowed: a member of the roster may run other code. So every reader applies the same
rules, and every writer applies them before it appends. The numbers are those of the list in
docs/security/threat-model.md:

1. The header names the session, the pause and the owner in force, as the entry before it does.
2. The roster and the epoch never decrease.
3. A reserved thread holds only the kinds that it is for.
4. A generation begins with a genesis after an erasure, and nowhere else.
5. The owner's kinds come from the owner, or from a member of the pool that owns the thread.
6. The session's kinds come from the key that opened the session in force.
7. A pause blocks the kinds that it applies to, and only a pause allows a held checkpoint.
8. A handoff comes from the owner, or carries the approval of another person.
9. A checkpoint names the world of its session.
10. The key of an entry has not expired, by the roster that the entry names.

Everything here is pure. `_thread_chain.py` applies the rules entry by entry;
`store/_head_verification.py` applies them to a thread whose lower part it has not read.
"""

from datetime import datetime
from typing import NamedTuple

from sealpoint.errors import Misplaced, NotTrusted
from sealpoint.ledger._cutoffs import counted_attestations
from sealpoint.ledger._entry import Entry, Fence, Header, entry_label
from sealpoint.ledger._entry_bodies import (
    HandoffBody,
    parse_body,
)
from sealpoint.ledger._entry_kinds import KINDS, Kind
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.signing import Action, Role, Roster, Statement, count

RESERVED = "sealpoint:"
"""The prefix of the names of Sealpoint's own threads."""

ROLLOUTS = f"{RESERVED}rollouts"
"""The only such thread so far: the book of rollouts in each namespace."""


class Marks(NamedTuple):
    """The positions that a header names: the session, the pause and the owner in force.

    None of them ever decreases along a thread. An anchor keeps the highest it has seen, so that a
    writer cannot omit a pause, a handoff or a session that precedes its own entry.
    """

    fence: int
    pause: int
    owner: int

    @classmethod
    def of(cls, header: Header) -> "Marks":
        """Return the marks in a header."""
        return cls(header.fence, header.pause, header.owner)

    def after(self, kind: Kind, seq: int) -> "Marks":
        """Return the marks of the next entry, given its kind and its position `seq`."""
        rule = KINDS[kind]
        return Marks(
            seq if rule.sets_fence else self.fence,
            seq if rule.settles_pause else self.pause,
            seq if rule.settles_owner else self.owner,
        )


def check_succession(before: Header, header: Header) -> None:
    """Rules 1 and 2: the marks follow from the entry before, and nothing decreases.

    Raises:
        NotTrusted: A mark or the roster does not follow from the entry before it.
        Misplaced: The epoch decreases.
    """
    where = entry_label(header)
    expected = Marks.of(before).after(header.kind, header.seq)
    if Marks.of(header) != expected:
        marks = zip(("session", "pause", "owner"), Marks.of(header), expected, strict=True)
        what, found, right = next(mark for mark in marks if mark[1] != mark[2])
        raise NotTrusted(
            f"{where}: it names entry {found} for the {what} in force, and that is entry {right}"
        )
    if header.roster < before.roster:
        raise NotTrusted(f"{where}: expected roster {before.roster} or later")
    if header.epoch < before.epoch:
        raise Misplaced(f"{where}: expected epoch {before.epoch} or later, found {header.epoch}")


def check_reserved(header: Header, *, reserved: bool) -> None:
    """Rule 3: a thread of Sealpoint's own holds requests and answers to them, and no state.

    Raises:
        NotTrusted: The thread may not hold this kind.
    """
    if reserved and not KINDS[header.kind].on_reserved:
        raise NotTrusted(
            f"{entry_label(header)}: a {header.kind.word} entry has no place on a thread that "
            "holds requests and no state",
            hint="Find out who uses the key that signed it, and revoke it: sealpoint keys revoke "
            "NAME --reason WHY; sealpoint audit shows the entry.",
        )


def check_generation(header: Header, before: Header, *, erased: bool) -> None:
    """Rule 4: a genesis follows an erasure and begins the next generation.

    Raises:
        Misplaced: It does not, or another kind follows the erasure.
    """
    where, begins = entry_label(header), header.kind is Kind.GENESIS
    if begins != erased:
        raise Misplaced(f"{where}: expected a genesis after an erasure and nowhere else")
    gen = before.gen + begins
    if header.gen != gen:
        raise Misplaced(f"{where}: expected generation {gen}, found {header.gen}")


def check_owner(entry: Entry, owner: str | None, chain: StoreChain) -> None:
    """Rule 5: the writer is the owner. Not checked once an erasure removed the owner's name.

    Raises:
        NotTrusted: The writer is not the owner.
    """
    roster = chain.roster_at(entry.header.roster)
    if roster is None or (owner is not None and not roster.owns(entry.writer, owner)):
        raise NotTrusted(
            f"{entry_label(entry.header)}: expected owner {owner!r}, found {entry.writer!r}"
        )


def check_session(header: Header, fence: Fence) -> None:
    """Rule 6: the key that opened a session signs the entries of the session.

    Raises:
        NotTrusted: Another key signed it, or no session is in force.
    """
    if KINDS[header.kind].in_session and not (fence.is_session and fence.by == header.by):
        raise NotTrusted(f"{entry_label(header)}: expected the key that opened session {fence.seq}")


def check_pause(header: Header, paused: int | None) -> None:
    """Rule 7: a pause blocks the kinds that it applies to, and a held checkpoint needs one.

    Args:
        header: The header of the entry.
        paused: The position of the pause that is in force before it.

    Raises:
        NotTrusted: The entry was written despite a pause, or claims a pause that does not exist.
    """
    rule = KINDS[header.kind]
    if rule.blocked_by_pause and paused is not None:
        raise NotTrusted(
            f"{entry_label(header)}: expected no {header.kind.word} while entry {paused} pauses "
            "the thread"
        )
    if rule.only_paused and paused is None:
        raise NotTrusted(
            f"{entry_label(header)}: a {header.kind.word} entry is only for a paused thread, and "
            "the thread is not paused",
            hint="Find out who uses the key that signed it, and revoke it: sealpoint keys revoke "
            "NAME --reason WHY; sealpoint audit shows what came before the entry.",
        )


def check_handoff(
    entry: Entry,
    body: bytes | None,
    *,
    owner: str | None,
    basis: str,
    now: datetime,
    chain: StoreChain,
) -> bool:
    """Rule 8: the owner hands a thread off, or an operator with another person's approval.

    If an erasure removed the body or the owner's name, this checks nothing more.

    Args:
        entry: The handoff.
        body: Its body.
        owner: The owner of the thread before it.
        basis: The hash of the basis before it, in hexadecimal.
        now: Its time, or the time of the entry before it if that is later: an operator cannot
            revive an approval by setting the clock back.
        chain: The rosters.

    Returns:
        Whether another person has approved it; False: the owner handed the thread off.

    Raises:
        NotTrusted: Its writer may not hand the thread off, or the new owner may not take it.
        Misplaced: The approval that it carries is for something else.
    """
    header = entry.header
    where = entry_label(header)
    roster = chain.roster_at(header.roster)
    if roster is None:
        raise NotTrusted(f"{where}: expected a roster of the store chain, found {header.roster}")
    if body is None or owner is None:
        return False
    parsed: HandoffBody = parse_body(header.kind, header.body, body)
    if not _may_take(parsed.owner, header.ns, roster):
        raise NotTrusted(f"{where}: expected a writer or a pool of writers as the next owner")
    if _may(entry.writer, Role.WRITER, header.ns, roster) and roster.owns(entry.writer, owner):
        return False
    statement = parsed.statement
    if statement is None or not _may(entry.writer, Role.OPERATOR, header.ns, roster):
        raise NotTrusted(
            f"{where}: expected owner {owner!r}, or an operator with approval, found "
            f"{entry.writer!r}"
        )
    _check_binding(statement, entry, parsed.owner, basis, where)
    if statement.expired_at(now):
        raise Misplaced(f"{where}: expected an approval in force, found one that has expired")
    # The roster may be an old one: a key that has ended since does not count under it either.
    counted = counted_attestations(entry, parsed, chain)
    tally = count(counted, statement=statement, roster=roster, now=now)
    if not tally.approved_by or tally.denied_by:
        raise NotTrusted(f"{where}: nobody else than the requester has approved it")
    return True


def _may_take(owner: str, namespace: str, roster: Roster) -> bool:
    names = roster.members.get(owner, frozenset({owner}))
    return bool(names) and all(_may(name, Role.WRITER, namespace, roster) for name in names)


def _may(name: str, role: Role, namespace: str, roster: Roster) -> bool:
    identity = roster.identity(name)
    return identity is not None and identity.may(role, namespace)


def _check_binding(statement: Statement, entry: Entry, owner: str, basis: str, where: str) -> None:
    header = entry.header
    for what, found, expected in (
        ("action", statement.action, Action.HANDOFF),
        ("new owner", statement.to, owner),
        ("requester", statement.requester, entry.writer),
        ("store", statement.store, header.store),
        ("namespace", statement.ns, header.ns),
        ("thread", statement.thread, header.thread),
        ("epoch", statement.epoch, header.epoch),
        ("generation", statement.gen, header.gen),
        ("basis", statement.basis, basis),
    ):
        if found != expected:
            raise Misplaced(
                f"{where}: expected an approval for {what} {str(expected)[:40]!r}, "
                f"found one for {str(found)[:40]!r}"
            )


def check_world(where: str, world: str | None, session: str | None) -> None:
    """Rule 9: the capabilities of a run are decided when its session begins, not by a save.

    Args:
        where: The name of the checkpoint in messages.
        world: The world that it names.
        session: The world of its session.

    Raises:
        NotTrusted: They differ.
    """
    if world != session:
        raise NotTrusted(
            f"{where}: it names another world than the session in which it was saved",
            hint="Find out who uses the key that signed it, and revoke it: sealpoint keys revoke "
            "NAME --reason WHY; sealpoint audit shows the entry.",
        )


def time_at(header: Header, time: datetime) -> datetime:
    """Return the time that counts for an entry: when what it records was decided.

    That is its own, or the time of the thread before it if that is later: setting a clock back
    revives nothing. The time of an entry that any member may write does not count, not even for
    itself. The gate, every reader and an audit take the time of an entry from here.

    Args:
        header: The header of the entry.
        time: The time of the thread before it.
    """
    return max(header.at, time) if KINDS[header.kind].tells_time else time


def check_key_expiry(header: Header, time: datetime, chain: StoreChain) -> None:
    """Rule 10: an expired key writes nothing, even if an anchor has seen the entry.

    The roster that the entry names gives the expiry, so that an expiry that is set later does not
    affect earlier entries.

    Args:
        header: The header of the entry.
        time: The time of the thread before it.
        chain: The rosters.

    Raises:
        NotTrusted: The key had expired.
    """
    roster = chain.roster_at(header.roster)
    if roster is not None and roster.key_expired_at(header.by, time_at(header, time)):
        raise NotTrusted(
            f"{entry_label(header)}: the key {header.by[:12]} that signed it had expired when it "
            f"was written, by roster {header.roster}",
            hint="Find out who uses the key, and revoke it: sealpoint keys revoke NAME --reason "
            "WHY; sealpoint audit shows the entry.",
        )
