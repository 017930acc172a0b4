# SPDX-License-Identifier: Apache-2.0
"""What lies outside of a workflow and outlives it: what was done, said and told, in a file."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent_framework import Agent, Content, Message

from tests.adapters.agent_framework import scripted

__all__ = ["Outside", "Voice", "agent", "call"]

Voice = Callable[[Sequence[Message]], str | Content]
"""What is said to a conversation."""


class Outside:
    """What workflows did, said and were told, in a file that survives whoever wrote it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def note(self, kind: str, what: str) -> None:
        """Write down that something happened."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([kind, what]) + "\n")

    def did(self, what: str) -> None:
        """Write down that something was done that cannot be undone."""
        self.note("did", what)

    def noted(self, kind: str) -> list[str]:
        """Everything of a kind, in its order."""
        if not self._file.exists():
            return []
        lines = map(json.loads, self._file.read_text(encoding="utf-8").splitlines())
        return [what for found, what in lines if found == kind]


def agent(outside: Outside, name: str, voice: Voice, **named: Any) -> Agent[Any]:
    """An agent whose model has a voice, and that it was asked is written down."""

    def reply(messages: Sequence[Message]) -> list[str | Content]:
        said = voice(messages)
        shown = said if isinstance(said, str) else f"{said.name}({said.arguments})"
        outside.did(f"{name} is asked, and says {shown}")
        return [said]

    return scripted.agent(name, reply, instructions=f"You are the {name}.", **named)


def call(name: str, **arguments: Any) -> Content:
    """The call of a tool."""
    return Content.from_function_call(f"call-{name}", name, arguments=arguments)
