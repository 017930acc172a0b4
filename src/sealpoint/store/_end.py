# SPDX-License-Identifier: Apache-2.0
"""Ending keys: look, stop them, look until nothing moves, cut.

A cut is final, so it must not miss what an honest worker saved meanwhile. The stop is a roster in
which the keys have expired: workers refuse to sign, and nobody takes from such a key what the
anchor has not seen. What they wrote until then stands still, and is listed. ADR 0008 says why.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from sealpoint.errors import HeadMoved
from sealpoint.signing import STOPPED, Cut, Identity, PrivateKey, PublicKey, RosterDocument
from sealpoint.store._core import Core
from sealpoint.store._roster import append_roster
from sealpoint.store._survey import Doubt, Progress, take_survey

__all__ = ["Ended", "end_keys"]

_LOOKS_MAX = 8

Change = Callable[[RosterDocument], RosterDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How some keys ended."""

    roster: int
    """The position of the roster that carries their cuts."""
    threads: int
    """In how many threads some entries of theirs still count."""
    doubts: tuple[Doubt, ...]
    """Threads that did not verify when the positions were taken."""
    beyond: tuple[Doubt, ...]
    """Threads that verified then and do not now: something came after the cut."""


def end_keys(
    core: Core,
    keys: frozenset[str],
    roots: Sequence[PrivateKey],
    *,
    change: Change,
    reason: str | None,
    settle: Callable[[], object],
    progress: Progress | None = None,
) -> Ended:
    """End keys for good, and change the roster in the same step.

    It may be repeated when it was interrupted: a key that is stopped already is not stopped again.

    Args:
        core: The store, open for writing.
        keys: The digits of their ids.
        roots: The root keys that are here.
        change: Makes of a roster without the keys the one that is to follow.
        reason: Why, for the record.
        settle: Called between two looks that differ, to let some time pass.
        progress: Called now and then with how many threads are done, and how many there are.

    Raises:
        KeyMissing: There are too few root keys here.
        HeadMoved: Somebody else changes the store chain, or the keys go on writing.
        NotTrusted: The roster would contradict itself.
    """
    # (1) The anchor comes to know whatever was saved: after the stop, only that counts.
    survey = take_survey(core, keys, None, progress)
    # (2) Stop.
    chain = core.renewed_trust()
    stopped = _stopped(chain.roster.document, keys)
    if stopped != chain.roster.document:
        core.written(append_roster(core, chain, stopped, roots, reason=reason))
    # (3) Look until nothing moves.
    for _ in range(_LOOKS_MAX):
        before, survey = survey, take_survey(core, keys, survey, progress)
        if survey.agrees(before):
            break
        settle()
    else:
        raise HeadMoved(
            "keys that are being ended: expected them to stop writing, found them to go on",
            hint="Stop the processes that hold these keys, then repeat this.",
        )
    # (4) Cut.
    lists = survey.positions
    made = {key: Cut(key=key, positions=found.digest.hex()) for key, found in lists.items()}
    chain = core.renewed_trust()
    document = change(_without(chain.roster.document, keys))
    document = msgspec.structs.replace(
        document, cuts=(*document.cuts, *(made[key] for key in sorted(made)))
    )
    blobs = {found.digest: found.data for found in lists.values()}
    written = append_roster(core, chain, document, roots, reason=reason, blobs=blobs)
    core.written(written)
    # (5) What came in between is refused from now on: say where.
    after = take_survey(core, keys, survey, progress)
    known = {doubt.thread for doubt in survey.doubts}
    return Ended(
        roster=written.roster.seq,
        threads=survey.threads,
        doubts=survey.doubts,
        beyond=tuple(doubt for doubt in after.doubts if doubt.thread not in known),
    )


def _stopped(document: RosterDocument, keys: frozenset[str]) -> RosterDocument:
    """The roster in which these keys have expired."""

    def stopped(identity: Identity) -> Identity:
        held = tuple(
            msgspec.structs.replace(key, expires=STOPPED) if _id(key.public) in keys else key
            for key in identity.keys
        )
        return msgspec.structs.replace(identity, keys=held)

    return msgspec.structs.replace(
        document, identities=tuple(stopped(identity) for identity in document.identities)
    )


def _without(document: RosterDocument, keys: frozenset[str]) -> RosterDocument:
    """The roster in which nobody holds these keys; identities keep their lines."""
    return msgspec.structs.replace(
        document,
        identities=tuple(
            msgspec.structs.replace(
                identity, keys=tuple(key for key in identity.keys if _id(key.public) not in keys)
            )
            for identity in document.identities
        ),
    )


def _id(public: str) -> str:
    return PublicKey.parse(public).id.raw.hex()
