# SPDX-License-Identifier: Apache-2.0
"""A store under the policy `strict`, with two people who approve, and guarded graphs on it."""

from pathlib import Path
from typing import Any

from sealpoint_langgraph import SealedSaver, guard, world_of
from tests.attacks.langgraph.desks import Desk, config_of
from tests.attacks.team import APPROVERS, Team

__all__ = ["APPROVERS", "Office"]


class Office(Team):
    """The worker has a guarded graph."""

    def __init__(self, home: Path, *, policy: str = "strict", backend: str = "sqlite") -> None:
        super().__init__(home, policy=policy, backend=backend)
        self.saver = SealedSaver(self.worker)

    def guarded(self, desk: Desk, *more: str, saver: SealedSaver | None = None) -> Any:
        """A guarded graph."""
        return guard(desk.builder(*more).compile(), saver or self.saver, actor="dev")

    def waiting(self, desk: Desk, thread: str, amount: int = 2) -> Any:
        """A guarded graph whose thread waits for an answer."""
        graph = self.guarded(desk)
        graph.invoke({"amount": amount}, config_of(thread))
        assert graph.get_state(config_of(thread)).interrupts
        desk.ran.clear()
        return graph

    def world(self, graph: Any) -> Any:
        """What a guarded graph declares."""
        return world_of(graph)
