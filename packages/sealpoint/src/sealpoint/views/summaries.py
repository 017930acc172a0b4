# SPDX-License-Identifier: Apache-2.0
"""Questions and answers in one line, for lists."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sealpoint.views.answer_forms import each_question
from sealpoint.views.asked import APPROVAL, PendingCall, read_question
from sealpoint.views.conversation import fields_of
from sealpoint.views.readable import line_of, plain_of, shorten
from sealpoint.views.replies import decision_lines
from sealpoint.world import visible

__all__ = ["answer_line", "question_line", "shorten_alike"]

_LINE_CHARS_MAX = 2_000


def question_line(question: Any) -> str:
    """Return a question in one line."""
    texts = []
    for id_, value, _ in each_question(question):
        read = read_question(id_, value, {})
        calls = [_call_line(each) for each in read.calls]
        said = [read.text] if read.text and not calls else []
        fields = [] if calls else [_pair(name, each) for name, each in read.rest.items()]
        texts.append(", ".join((*said, *calls, *fields)))
    return _one_line("; ".join(texts))


def answer_line(answer: Any, question: Any = None) -> str:
    """Return an answer in one line, without the ids of the questions."""
    if answer is None:
        return ""
    given = plain_of(answer)
    if type(given) is dict and given.keys() & {"resume", "responses"}:
        rest = dict(given)
        main = rest.pop("resume", rest.pop("responses", None))
        told = fields_of(main).get("decisions", main)
        ids = [id_ for id_, _, _ in each_question(question)]
        if type(told) is dict and ("responses" in given or told.keys() <= {*ids}):
            told = [told[each] for each in sorted(told, key=lambda id_: (*ids, id_).index(id_))]
        parts = list(told) if isinstance(told, list | tuple) else [told]
        texts = [_reply_line(each) for each in parts]
        return _one_line(", ".join((*texts, *(_pair(k, v) for k, v in rest.items() if v))))
    return _one_line(_reply_line(given))


def _reply_line(reply: Any) -> str:
    fields = fields_of(reply)
    if fields.get("type") == f"{APPROVAL}response":
        return "approve" if fields.get("approved") is True else "reject"
    if isinstance(fields.get("type"), str):
        return ", ".join(decision_lines(fields))
    return ", ".join(_pair(*each) for each in fields.items()) if fields else line_of(reply)


def _call_line(call: PendingCall) -> str:
    fields = fields_of(call.arguments) or {"": call.arguments}
    return f"{call.name}({', '.join(_pair(*each) for each in fields.items())})"


def _pair(name: str, value: Any) -> str:
    return f"{name}: {line_of(value)}" if name else line_of(value)


def _one_line(text: str) -> str:
    return visible(" ".join(shorten(text, _LINE_CHARS_MAX).split()))


def shorten_alike(texts: Sequence[str], chars_max: int) -> list[str]:
    """Shorten texts in the middle so that the place where similar ones differ stays visible."""
    order = sorted(range(len(texts)), key=lambda number: texts[number])
    differs = dict.fromkeys(order, 0)
    for one, other in pairwise(order):
        if texts[one] != texts[other]:
            shared = _shared(texts[one], texts[other])
            for each in (one, other):
                differs[each] = max(differs[each], shared)
    return [_around(text, differs[number], chars_max) for number, text in enumerate(texts)]


def _shared(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _around(text: str, place: int, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    head = chars_max // 3
    if place < 2 * head:
        return f"{text[: 2 * head]} … {text[-head:]}"
    start = min(place - 8, len(text) - 2 * head)
    end = start + 2 * head
    return f"{text[:head]} … {text[start:end]}{' …' if end < len(text) else ''}"
