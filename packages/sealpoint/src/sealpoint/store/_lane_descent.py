# SPDX-License-Identifier: Apache-2.0
"""Which work in other lanes comes with a checkpoint of the main lane.

A run continues from one checkpoint of the main lane. That was saved in a session, which had
released an earlier one, and so on down to a session that began from nothing. Work in another lane
comes along if it was saved since that beginning: some session on the way saved it, or its gate
released it. A session that began from nothing released nothing, so earlier work in the lanes is not
part of its own.
"""

from collections.abc import Callable

from sealpoint.errors import NotTrusted
from sealpoint.ledger import Entry, ResumeBody, StoreChain
from sealpoint.store._verified_chain import Chain

_NOTHING = -1


class LaneDescent:
    """The sessions on the way down from a session, as far as they were needed.

    Args:
        chain: The chain of the thread.
        opening: Returns the resume that began a session, verified on its own.
    """

    def __init__(self, chain: Chain, opening: Callable[[int], tuple[Entry, ResumeBody]]) -> None:
        self._chain = chain
        self._opening = opening
        self._before: tuple[StoreChain | None, dict[int, int]] = None, {}
        """By session, the one that saved what it released, with the store chain used: a restore
        makes a new chain."""

    def reaches(self, seq: int, session: int) -> bool:
        """Whether work in a lane at a position comes with what a session saves.

        Raises:
            NotTrusted: A session on the way does not say where the checkpoint lies that it
                released.
        """
        trust = self._chain.trust.get()
        if self._before[0] is not trust:
            self._before = trust, {}
        before = self._before[1]
        while session > seq:
            if session not in before:
                before[session] = self._find_before(session)
            session = before[session]
        return session != _NOTHING

    def _find_before(self, session: int) -> int:
        entry, body = self._opening(session)
        if body.checkpoint is None:
            return _NOTHING
        header = None if body.released is None else self._chain.descend(body.released)[1]
        if header is None or not header.fence < session:
            raise NotTrusted(
                f"entry {entry.seq} of thread {self._chain.name!r}: it does not say where the "
                "checkpoint lies that it released"
            )
        return header.fence
