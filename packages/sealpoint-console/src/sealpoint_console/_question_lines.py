# SPDX-License-Identifier: Apache-2.0
"""The questions of waiting threads, each in a line; read once for each state of a thread."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sealpoint.api import Store, examine
from sealpoint.errors import SealpointError
from sealpoint.gate import Request, Status, ThreadPhase, ThreadSummary
from sealpoint.signing import Action
from sealpoint.views.decision import read_decision
from sealpoint.views.summaries import answer_line, question_line, shorten_alike

_KNOWN_MAX = 4_000
_READ_MAX = 200
_COMPARING_S = 0.5
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

    def differences_of(
        self, requests: Iterable[Request], entries: Callable[[str], object]
    ) -> Mapping[str, tuple[str, ...] | None]:
        """Return the differences that people should look at in open requests, by their ids.

        They are read from the states behind a question, which takes time: a page compares some
        requests, and its next look others.

        Args:
            requests: The requests.
            entries: Returns the length of the thread with an id. A comparison holds until it grows.

        Returns:
            None for a request that is not compared yet.
        """
        until = time.monotonic() + _COMPARING_S
        found: dict[str, tuple[str, ...] | None] = {}
        for each in requests:
            if each.status is not Status.OPEN or each.statement.action is not Action.RESUME:
                continue
            key = (each.id, entries(each.statement.thread))
            found[each.id] = self._known.get(key)
            if key in self._known or time.monotonic() > until:
                continue
            examined = examine(self._store, each, states=True)
            if examined.fault is not None:
                found[each.id] = ("It cannot be compared: its page says why.",)
                continue
            found[each.id] = read_decision(examined.shown, examined).differences
            self._keep(key, found[each.id])
        return found

    def same_as(self, request: Request, others: Iterable[Request]) -> list[Request]:
        """Return the requests whose question and answer read as those of a request do."""
        own = self._lines(request)
        return [each for each in others if any(own) and self._lines(each) == own]

    def of_requests(self, requests: Iterable[Request]) -> Mapping[str, tuple[str, str]]:
        """The questions and answers of requests, by their ids."""
        asked, answers = {}, {}
        for each in [each for each in requests if each.statement.action is Action.RESUME][
            :_READ_MAX
        ]:
            asked[each.id], answers[each.id] = self._lines(each)
        asked, answers = _shortened(asked), _shortened(answers)
        return {each: (asked[each], answers[each]) for each in asked}

    def _lines(self, request: Request) -> tuple[str, str]:
        question = self._question(request.thread, (request.statement.thread, request.id), request)
        return question_line(question), answer_line(request.answer, question)

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
