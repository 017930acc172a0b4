# SPDX-License-Identifier: Apache-2.0
"""Rollouts in the histories of the gate: proposed, approved, denied, and attacked in their book."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sealpoint.errors import Moved, SealpointError, UsageError
from sealpoint.gate import ROLLOUTS, Status
from sealpoint.world import World as Declared
from tests.properties.gate_model_scene import names
from tests.properties.gate_model_truth import LEVELS, PERSONS, Accepted, added
from tests.properties.gate_model_work import GateWork
from tests.unit.gate.team import NARROW, READ, SHELL

__all__ = ["GateRollouts"]

_APPROVERS = ("ann", "bob", "bobby", "carl", "twin")


class GateRollouts(GateWork):
    """A team that accepts changes of world for many threads."""

    @rule(
        before=st.sampled_from([READ, READ, NARROW]),
        after=st.sampled_from([SHELL, SHELL, READ]),
        who=st.sampled_from(["operator", "worker", "spare"]),
        hours=st.sampled_from([1, 24]),
        people=st.lists(st.sampled_from(_APPROVERS), max_size=3),
    )
    def propose(self, before: Any, after: Any, who: str, hours: int, people: list[str]) -> None:
        """Somebody proposes a change of worlds, and some people approve it."""
        pair = (Declared.from_dict(before).digest, Declared.from_dict(after).digest)
        store = self.store(who)
        try:
            made = store.rollouts.propose(
                [(before, after)], reason="a release", until=timedelta(hours=hours)
            )
        except UsageError:
            assert LEVELS[pair[1]] <= LEVELS[pair[0]], "not proposed, and it asks for something"
            return
        except Moved:
            stand = (Status.OPEN, Status.APPROVED)
            found = [each for each in store.rollouts.list() if each.status in stand]
            leaves = [{leaf for leaf, _, _ in each.statement.differences} for each in found]
            assert any(added(*pair) <= each for each in leaves), "nothing is in the way"
            self.count("proposed again")
            return
        assert LEVELS[pair[1]] > LEVELS[pair[0]], "proposed, and nothing is asked for"
        self.count("proposed")
        self.book.rollouts[made.id] = Accepted(
            who, added(*pair), self.book.policy, self.book.epoch, made.statement.expires
        )
        for each in people:
            self.word_on(made.id, each, approves=True)

    @precondition(lambda self: self.book.rollouts)
    @rule(place=st.integers(0, 3), who=st.sampled_from(_APPROVERS), approves=st.booleans())
    def say_to_rollout(self, place: int, who: str, approves: bool) -> None:  # noqa: FBT001
        """Somebody approves or revokes a rollout."""
        found = list(self.book.rollouts)
        self.word_on(found[-1 - place % len(found)], who, approves=approves)

    def word_on(self, rollout: str, who: str, *, approves: bool) -> None:
        """Say something to a rollout; whether it counts is for the truth."""
        latest = max((facts.at for facts in self.facts.values() if facts.at), default=None)
        if not approves and latest is not None and self.world.clock < latest:
            return  # whoever revokes looks at the right clock, or the audit would be misled
        found, store = self.book.rollouts[rollout], self.store(who)
        act = store.approve if approves else store.deny
        with suppress(SealpointError):
            act(rollout, reason="looked at")
            mine = PERSONS[who] == PERSONS[found.who]
            if approves and not mine:
                found.yes.add(who)
            elif not approves:
                found.no.add(who)
            self.count("rollout approved" if approves else "rollout revoked")

    @precondition(lambda self: self.book.rollouts)
    @rule(name=names, length=st.integers(1, 4))
    def shorten_the_book(self, name: str, length: int) -> None:
        """Somebody takes away the end of the book: it lets nothing pass until it is put right."""
        facts = self.facts[name]
        rows = self.rows(ROLLOUTS)
        if not facts.rows or facts.newest() is None or len(rows) <= length:
            return
        thread = self.world.thread_id(ROLLOUTS)
        self.editor.put_rows(
            thread, {seq: row for seq, row in rows.items() if seq < len(rows) - length}
        )
        owner = facts.owner
        fresh = self.world.open(owner, gated=True)
        with suppress(SealpointError):
            fresh.thread(name).resume(world=SHELL)
        found = self.learn(name)
        assert not any(body.rollouts for _, body in found), "let pass by a cut book"
        self.reopen()
        self.editor.put_rows(thread, rows)
        self.count("book shortened")
