# SPDX-License-Identifier: Apache-2.0
"""Answers of people to the question of a thread, each signed by the person who gives it.

An answer is a request of the action `answer` whose one approval is the signature of its actor. It
is bound to the basis of the thread, as every request is: the next run moves the basis, whether it
takes this answer or another, and the answer counts no more. The one that was signed first counts,
so that nobody changes what another person answered. To correct one, deny it first.

A signed answer lets nothing pass that the policy does not let pass. It proves who answered: the
gate records that person as the actor of the resume, and as the one who asks for the approvals that
it may need.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sealpoint.gate._requests import Request, Status

ANSWERED = "answers the question"
"""The reason of a signed answer whose author gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedAnswer:
    """An answer that a person has signed and that no run has taken yet."""

    id: str
    """The digest of its statement."""
    thread: str
    """The name of the thread."""
    person: str
    """The person who answers."""
    identity: str
    """The identity whose key signed."""
    answer: Any = field(hash=False)
    digest: str
    """The digest of the answer, which the statement binds."""
    reason: str
    at: datetime
    """When it was recorded."""
    expires: datetime
    checkpoint: str
    """The hash of the checkpoint whose question it answers."""
    release: str
    """The digest of what would run with it."""

    @property
    def deliberate(self) -> str | None:
        """The reason that the person has written, which shows that the run is intended."""
        return None if self.reason == ANSWERED else self.reason


def answers_in_force(requests: Iterable[Request]) -> Iterator[SignedAnswer]:
    """Yield the signed answers in force: of each thread the one whose signature is the oldest.

    Args:
        requests: Requests about the current state of their threads.
    """
    oldest: dict[str, Request] = {}
    for each in requests:
        if not each.is_answer or each.status is not Status.APPROVED:
            continue
        known = oldest.get(each.thread)
        if known is None or (each.approved_in or 0) < (known.approved_in or 0):
            oldest[each.thread] = each
    for each in oldest.values():
        told = each.statement
        yield SignedAnswer(
            id=each.id,
            thread=each.thread,
            person=told.actor or "",
            identity=each.approved_by[0],
            answer=each.answer,
            digest=told.answer or "",
            reason=told.reason,
            at=each.asked_at,
            expires=told.expires,
            checkpoint=told.checkpoint or "",
            release=told.release or "",
        )
