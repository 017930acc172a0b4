# SPDX-License-Identifier: Apache-2.0
"""What an entry says, in one line of plain words.

Texts that somebody wrote into a body are made visible: no control character, no turned writing
direction and nothing that prints as nothing comes out of here.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sealpoint.errors import Forged, NotTrusted
from sealpoint.ledger import (
    AdoptBody,
    BreakGlassBody,
    CheckpointBody,
    EraseBody,
    ExpiryBody,
    GenesisBody,
    HandoffBody,
    Kind,
    PauseBody,
    PruneBody,
    RequestBody,
    RestoreBody,
    ResumeBody,
    RootBody,
    RosterBody,
    StoreChain,
    UnpauseBody,
    VerdictBody,
    WritesBody,
)
from sealpoint.signing import Action, Attestation, Identity, Roster, verify_attestation
from sealpoint.world import visible

__all__ = ["NONSENSE", "NOT_RELEASED", "said", "said_on_store_chain", "short", "speaker"]

NOT_RELEASED = "allowed, not known to be released"
"""What is said of a resume that no later entry of its session follows."""

NONSENSE = "(nobody can read what its writer sealed; it counts for nothing)"
"""What is said of an entry about a request whose body is as it was sealed, and is none."""

_SHORT_DIGITS = 12
_TEXT_CHARS_MAX = 500


def short(digest: str | None) -> str:
    """The first digits of a digest, for people to compare."""
    return "none" if digest is None else visible(digest[:_SHORT_DIGITS])


def _shown(text: str) -> str:
    shown = visible(text)
    if len(shown) <= _TEXT_CHARS_MAX:
        return shown
    return f"{shown[:_TEXT_CHARS_MAX]}... and {len(shown) - _TEXT_CHARS_MAX} more characters"


def _because(reason: str | None) -> str:
    return "" if reason is None else f": {_shown(reason)}"


def speaker(word: Attestation, roster: Roster) -> Identity | None:
    """Who said a word, by a roster; None if nobody of it did."""
    try:
        return verify_attestation(word, roster)
    except (Forged, NotTrusted):
        return None


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def said(kind: Kind, body: Any, roster: Roster, *, released: bool = True) -> str:
    """What an entry of a thread says.

    Args:
        kind: Its kind.
        body: Its body; None if it was erased.
        roster: The roster that it was written under.
        released: Of a resume, whether a later entry of its session follows.
    """
    if body is None:
        left = f"; {NOT_RELEASED}" if kind is Kind.RESUME and not released else ""
        return f"(erased){left}"
    if isinstance(body, VerdictBody):
        return _verdict(body, roster)
    if isinstance(body, ResumeBody):
        return _resume(body, released=released)
    if isinstance(body, PruneBody):
        return _prune(body, kind)
    if kind is Kind.HELD:
        return f"held back by the pause: {_checkpoint(body)}"
    return _SAID[type(body)](body)


def _genesis(body: GenesisBody) -> str:
    return f"the thread {_shown(body.name)!r} begins, owned by {_shown(body.owner)}"


def _checkpoint(body: CheckpointBody) -> str:
    lane = f" of lane {_shown(body.lane)}" if body.lane else ""
    again = "" if body.again is None else "; it replaces the one of the same name"
    asked = "" if body.question is None else "; a question is pending"
    world = "" if body.world is None else f"; world {short(body.world)}"
    return f"state {_shown(body.id)}{lane} is saved{again}{world}{_copied(body)}{asked}"


def _writes(body: WritesBody) -> str:
    what = "an answer" if body.answers else f"results of task {short(body.task)}"
    asked = "" if body.question is None else "; a question is pending"
    return f"{what} for state {_shown(body.checkpoint)}{_copied(body)}{asked}"


def _copied(body: CheckpointBody | WritesBody) -> str:
    if body.origin is None:
        return ""
    return f"; copied from entry {short(body.origin.entry)} of thread {short(body.origin.thread)}"


def _resume(body: ResumeBody, *, released: bool) -> str:
    parts = [f"a session of {_shown(body.owner)} begins"]
    if body.checkpoint is not None:
        parts.append(f"from checkpoint entry {short(body.checkpoint)}")
        parts.append(f"release {short(body.release)}")
    if body.rules:
        parts.append(f"rules {', '.join(_shown(rule) for rule in body.rules)}")
    elif body.checkpoint is not None:
        parts.append("no rule applied")
    if body.policy is not None:
        parts.append(f"policy {short(body.policy)}")
    if body.request is not None:
        parts.append(f"spends request {short(body.request)}")
    if body.rollout is not None:
        parts.append(f"by rollout {short(body.rollout.digest)}{_because(body.rollout.reason)}")
    if body.answer is not None:
        parts.append(f"answer {short(body.answer)}")
    if body.actor is not None:
        parts.append(f"for {_shown(body.actor)}, as the caller claims")
    if body.reason is not None:
        parts.append(f"reason given{_because(body.reason)}")
    if not released:
        parts.append(NOT_RELEASED)
    return "; ".join(parts)


def _handoff(body: HandoffBody) -> str:
    if body.statement is None:
        return f"new owner {_shown(body.owner)}{_because(body.reason)}"
    words = f"by an operator, request {short(body.statement.digest)}"
    words += f" with {len(body.attestations)} words of others"
    return f"new owner {_shown(body.owner)}, {words}{_because(body.reason)}"


def _request(body: RequestBody) -> str:
    statement = body.statement
    if statement.action is Action.ROLLOUT:
        count = f"{len(statement.pairs)} change{'' if len(statement.pairs) == 1 else 's'}"
        what = f"asks to roll out {count} of worlds"
    elif statement.action is Action.HANDOFF:
        what = f"asks to hand off to {_shown(statement.to or '')}"
    else:
        what = f"asks to resume from checkpoint entry {short(statement.checkpoint)}"
    until = f"policy {short(statement.policy)}, open until {_time(statement.expires)}"
    return f"request {short(statement.digest)} {what}, {until}{_because(statement.reason)}"


def _verdict(body: VerdictBody, roster: Roster) -> str:
    word = body.attestation
    who = speaker(word, roster)
    by = "nobody of the roster: it does not count" if who is None else _shown(who.name)
    return f"{word.verdict} of request {short(word.statement)} by {by}{_because(word.reason)}"


def _prune(body: PruneBody, kind: Kind = Kind.PRUNE) -> str:
    if kind is Kind.HIDE:
        spans = ", ".join(f"{first} to {last}" for first, last in body.hidden)
        return f"deleted for the application by now: entries {spans}{_because(body.reason)}"
    kept = f", {len(body.kept)} kept" if body.kept else ""
    return f"states before entry {body.before} are given up{kept}{_because(body.reason)}"


_SAID: dict[type, Callable[[Any], str]] = {
    GenesisBody: _genesis,
    CheckpointBody: _checkpoint,
    HandoffBody: _handoff,
    RequestBody: _request,
    WritesBody: _writes,
    PauseBody: lambda body: f"paused{_because(body.reason)}",
    UnpauseBody: lambda body: f"unpaused{_because(body.reason)}",
    ExpiryBody: lambda body: f"request {short(body.request)} has expired",
    BreakGlassBody: lambda body: (
        f"request {short(body.request)} passes without the approvals it needs"
        f"{_because(body.reason)}"
    ),
    EraseBody: lambda body: f"all that the thread held was erased{_because(body.reason)}",
    AdoptBody: lambda body: f"taken into an anchor that did not know it{_because(body.reason)}",
}


# ---------------------------------------------------------------------- the store chain


def said_on_store_chain(body: Any, chain: StoreChain, seq: int) -> str:
    """What an entry of the store chain says.

    Args:
        body: Its body.
        chain: The store chain, which has come at least so far.
        seq: Its position.
    """
    if isinstance(body, RosterBody):
        return _roster(body, chain, seq)
    if isinstance(body, RootBody):
        root = body.root
        keys = f"{root.threshold} of {len(root.keys)} keys have to sign"
        return f"root {root.version}: {keys}{_because(body.reason)}"
    if isinstance(body, RestoreBody):
        lists = (chain.lists.get(each) for each in (body.kept, body.lost, body.released))
        kept, lost, released = map(len, lists)
        what = f"{kept} threads kept, {lost} cut off or lost"
        what += f", {released} of these released" if released else ""
        return f"a restored store was accepted: {what}{_because(body.reason)}"
    return _SAID[type(body)](body)


def _roster(body: RosterBody, chain: StoreChain, seq: int) -> str:
    document = body.roster
    earlier = [each for each in chain.rosters if each.seq < seq]
    if not earlier:
        names = ", ".join(_shown(each.name) for each in document.identities)
        return f"the first roster: {names}{_policies({}, document.policies)}{_because(body.reason)}"
    before = earlier[-1].document
    old = {each.name: each for each in before.identities}
    new = {each.name: each for each in document.identities}
    parts = [f"+{_shown(name)} ({', '.join(new[name].roles)})" for name in new if name not in old]
    parts += [f"-{_shown(name)}" for name in old if name not in new]
    parts += [f"~{_shown(name)}" for name in new if name in old and new[name] != old[name]]
    if before.pools != document.pools:
        parts.append("pools changed")
    if before.restore_quorum != document.restore_quorum:
        parts.append(f"restore quorum {document.restore_quorum}")
    # Earlier rosters no longer have their cuts: all that is known is that there are some.
    if document.cuts:
        parts.append(f"{len(document.cuts)} keys have come to their end")
    what = ", ".join(parts) or "nobody was added"
    return f"roster {seq}: {what}{_policies(before.policies, document.policies)}" + _because(
        body.reason
    )


def _policies(old: dict[str, str], new: dict[str, str]) -> str:
    changed = [
        f"; policy of namespace {_shown(name)} is {short(digest)}"
        for name, digest in sorted(new.items())
        if old.get(name) != digest
    ]
    gone = [f"; no policy for namespace {_shown(name)}" for name in sorted(old.keys() - new.keys())]
    return "".join(changed + gone)
