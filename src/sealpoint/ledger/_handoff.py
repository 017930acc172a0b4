# SPDX-License-Identifier: Apache-2.0
"""Who may give a thread to another owner: its owner, or an operator with approval.

What an operator's handoff needs lies in its body: the statement that was approved and at least one
attestation of another person. So every reader can check it where it stands, and a stolen
operator's key takes no thread by itself. How many approvals the policy asks for is the gate's part.
"""

from datetime import datetime

from sealpoint.errors import Misplaced, NotTrusted
from sealpoint.ledger._bodies import HandoffBody, parse_body
from sealpoint.ledger._entry import Entry
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.ledger._words import believed_words
from sealpoint.signing import Action, Role, Roster, Statement, count

__all__ = ["check_handoff"]


def check_handoff(
    entry: Entry,
    body: bytes | None,
    *,
    owner: str | None,
    basis: str,
    now: datetime,
    chain: StoreChain,
) -> None:
    """Judge a handoff; where an erasure took its body or the owner's name, nobody can say more.

    Args:
        entry: The handoff.
        body: Its body.
        owner: Who owns the thread before it.
        basis: The hash of the basis before it, in hexadecimal.
        now: Its time, or that of the entry before it if that is later: an operator who turns the
            clock back revives no approval.
        chain: The rosters.

    Raises:
        NotTrusted: Its writer may not give the thread away, or nobody of this name may take it.
        Misplaced: The approval that it carries is for something else.
    """
    header = entry.header
    where = f"entry {entry.seq} of thread {header.thread[:12]}"
    roster = chain.roster_at(header.roster)
    if roster is None:
        raise NotTrusted(f"{where}: expected a roster of the store chain, found {header.roster}")
    if body is None or owner is None:
        return
    parsed: HandoffBody = parse_body(header.kind, header.body, body)
    if not _may_take(parsed.owner, header.ns, roster):
        raise NotTrusted(f"{where}: expected a writer or a pool of writers as the next owner")
    identity = roster.identity(entry.writer)
    owns = identity is not None and identity.may(Role.WRITER, header.ns)
    if owns and roster.owns(entry.writer, owner):
        return
    statement = parsed.statement
    if statement is None or identity is None or not identity.may(Role.OPERATOR, header.ns):
        raise NotTrusted(
            f"{where}: expected owner {owner!r}, or an operator with approval, found "
            f"{entry.writer!r}"
        )
    _check_binding(statement, entry, parsed.owner, basis, where)
    if now >= statement.expires:
        raise Misplaced(f"{where}: expected an approval in force, found one that has expired")
    # The roster may be an old one: a key that has ended since says no more under it.
    words = believed_words(entry, parsed, chain)
    tally = count(words, statement=statement, roster=roster, now=now)
    if not tally.approved_by or tally.denied_by:
        raise NotTrusted(f"{where}: expected the approval of another person, found none")


def _may_take(owner: str, namespace: str, roster: Roster) -> bool:
    names = roster.members.get(owner, frozenset({owner}))
    holders = [roster.identity(name) for name in names]
    return bool(holders) and all(
        holder is not None and holder.may(Role.WRITER, namespace) for holder in holders
    )


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
