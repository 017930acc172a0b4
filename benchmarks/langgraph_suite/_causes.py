# SPDX-License-Identifier: Apache-2.0
"""Why a test of the framework failed, in a word, from the exception that ended it.

An error of ours is told by its code, and what the gate refuses by the rules that it was refused
for; anything else by what the test had expected. The rules are read out of the gate's sentences,
because an error carries no more than these.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sealpoint.errors import NeedsApproval, ResumeRefused, SealpointError

__all__ = ["Cause", "cause_of", "rules_of"]

_LINE_CHARS_MAX = 180
_OLDER_OF_SUBGRAPH = "older-checkpoint of a subgraph"
_RULES = {
    "is not the newest of namespace": _OLDER_OF_SUBGRAPH,
    "is not the newest of thread": "older-checkpoint",
    "newer have been deleted": "older-checkpoint",
    "is a copy of one": "older-checkpoint",
    "the tools are not those": "tools",
    "the permissions are not those": "permissions",
    "the model is not that": "model",
    "the prompts are not those": "prompts",
    "the graph is not built as": "topology",
    "other modules of the application": "application",
    "the code is not that": "code",
    "the installed versions are not those": "runtime",
    "what the application declares is not": "other",
    "the run can do less": "narrower-world",
    "the world cannot be compared": "missing-world",
    "a world is declared, and none was": "first-world",
    "no world is declared, and one was": "missing-world",
    "an answer is given": "answer",
    "a question is pending": "answer",
    "the checkpoint is": "old-age",
    "resumed with an answer at": "unknown-outcome",
    "a restore cut": "after-restore",
    "is paused": "paused",
    "is owned by another identity": "not-owner",
    "another session of thread": "busy",
    "a run is under way": "busy",
    "the request was denied": "denied",
    "the request has expired": "expired",
    "no policy is in force": "no-policy",
}
_REMEDIES = ("(pass deliberate", "(approvals needed", "(the policy refuses")
"""How a sentence ends that decides; the others are told beside it."""
_UNKNOWN = "unknown"
_SNAPSHOT = "[- snapshot]"
_MARK = "sealpoint"


class Cause(NamedTuple):
    """Why a test failed."""

    name: str
    line: str
    """What the exception says, shortened to a line."""
    ours: bool
    """Whether it is an error of ours."""


def cause_of(error: BaseException, refused: Iterable[str] = ()) -> Cause:
    """Classify what ended a test.

    Args:
        error: The exception.
        refused: Codes of errors that the saver raised in this test and nobody let out.
    """
    ours = next((each for each in _chain(error) if isinstance(each, SealpointError)), None)
    if ours is not None:
        return Cause(_name(ours), _line(ours), ours=True)
    name = _expectation(error)
    if hidden := ", ".join(sorted(set(refused))):
        name = f"{name} after {hidden}"
    return Cause(name, _line(error), ours=False)


def rules_of(sentences: Iterable[str]) -> list[str]:
    """The rules that a resume was refused for, as far as its sentences tell them."""
    told = list(sentences)
    deciding = [each for each in told if any(remedy in each for remedy in _REMEDIES)]
    found = (
        next((rule for words, rule in _RULES.items() if words in sentence), _UNKNOWN)
        for sentence in deciding or told
    )
    return sorted(set(found))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, what is inside of it, and what it came from."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(each.exceptions)
        waiting.extend(found for found in (each.__cause__, each.__context__) if found is not None)


def _name(error: SealpointError) -> str:
    if isinstance(error, ResumeRefused | NeedsApproval):
        rules = rules_of(error.reasons) or [_UNKNOWN]
        return f"{error.code}: {', '.join(rules)}"
    return error.code


def _expectation(error: BaseException) -> str:
    text, kind = str(error), type(error).__name__
    if kind == "Failed":  # of pytest
        if "DID NOT RAISE" in text:
            return "did not raise"
        return "took too long" if text.startswith("Timeout") else "failed by itself"
    if isinstance(error, AttributeError | TypeError) and "Saver' object" in text:
        return "private parts of the stock saver"
    if isinstance(error, AssertionError):
        if _MARK in text:
            return "a mark in a configuration"
        if _SNAPSHOT in text:
            return "another snapshot"
        return "another message" if text.startswith("Regex pattern") else "another result"
    return kind


def _line(error: BaseException) -> str:
    said = error.message if isinstance(error, SealpointError) else str(error)
    text = " ".join(said.split())
    line = f"{type(error).__name__}: {text}"
    return line if len(line) <= _LINE_CHARS_MAX else f"{line[: _LINE_CHARS_MAX - 3]}..."
