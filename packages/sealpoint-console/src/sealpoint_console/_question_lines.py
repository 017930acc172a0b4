# SPDX-License-Identifier: Apache-2.0
"""The questions of waiting threads, each in a line; read once for each state of a thread."""

from collections.abc import Iterable, Mapping
from typing import Any

from sealpoint.api import Store, examine
from sealpoint.errors import SealpointError
from sealpoint.gate import Request, Status, ThreadPhase, ThreadSummary
from sealpoint.signing import Action
from sealpoint.views.decision import read_decision
from sealpoint.views.summaries import answer_line, question_line, shorten_alike

_KNOWN_MAX = 4_000
_READ_MAX = 200
_EXAMINED_MAX = 25
_CHARS = 120
_WAITING = (ThreadPhase.NEEDS_ANSWER, ThreadPhase.NEEDS_APPROVAL, ThreadPhase.READY)


class QuestionLines:
    """The questions of threads and requests, which pages of lists share."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, object], Any] = {}

    def of_threads(self, threads: Iterable[ThreadSummary]) -> Mapping[str, str]:
        """The questions of those threads that wait, by the ids of the threads."""
        found = {
            each.id: question_line(self._question(each.name, (each.id, each.entries)))
            for each in [each for each in threads if each.phase in _WAITING][:_READ_MAX]
        }
        return _shortened(found)

    def differences_of(self, requests: Iterable[Request]) -> Mapping[str, tuple[str, ...]]:
        """Return the differences that people should look at in open requests, by their ids.

        It takes the states behind a question, so a page reads a few of them; its next look, others.
        """
        found, left = {}, _EXAMINED_MAX
        for each in requests:
            key = ("differences", each.id)
            if each.status is not Status.OPEN or each.statement.action is not Action.RESUME:
                continue
            if key not in self._known and left:
                left -= 1
                self._keep(key, self._differences(each))
            found[each.id] = self._known.get(key, ())
        return found

    def _differences(self, request: Request) -> tuple[str, ...]:
        examined = examine(self._store, request, states=True)
        if examined.fault is not None:
            return ("This request shows something else than its thread.",)
        return read_decision(examined.shown, examined).differences

    def of_requests(self, requests: Iterable[Request]) -> Mapping[str, tuple[str, str]]:
        """The questions and answers of requests, by their ids."""
        asked, answers = {}, {}
        for each in [each for each in requests if each.statement.action is Action.RESUME][
            :_READ_MAX
        ]:
            question = self._question(each.thread, (each.statement.thread, each.id), each)
            asked[each.id] = question_line(question)
            answers[each.id] = answer_line(each.answer, question)
        asked, answers = _shortened(asked), _shortened(answers)
        return {each: (asked[each], answers[each]) for each in asked}

    def _question(self, name: str, key: tuple[str, object], request: Request | None = None) -> Any:
        if key not in self._known:
            try:
                thread = self._store.thread(name)
                self._keep(
                    key,
                    thread.question if request is None else thread.release_of(request).question,
                )
            except SealpointError:
                return None  # its own page says why
        return self._known[key]

    def _keep(self, key: tuple[str, object], found: Any) -> None:
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[key] = found


def approved_threads(requests: Iterable[Request]) -> Mapping[str, Request]:
    """The requests to resume that are approved and not used, by the ids of their threads."""
    return {
        each.statement.thread: each
        for each in requests
        if each.status is Status.APPROVED and each.statement.action is Action.RESUME
    }


def _shortened(lines: Mapping[str, str]) -> dict[str, str]:
    return dict(zip(lines, shorten_alike([*lines.values()], _CHARS), strict=True))
