# SPDX-License-Identifier: Apache-2.0
"""Questions and answers in one line, for lists."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sealpoint.views.answer_forms import each_question
from sealpoint.views.asked import PendingCall, ReadQuestion, read_question
from sealpoint.views.readable import TextField, line_of, named_values, shorten, text_field
from sealpoint.views.replies import answer_fields, split_answer
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
    asked = [read_question(id_, value, {}) for id_, value, _ in each_question(question)]
    asked = asked or [ReadQuestion(None, "", {}, ())]
    replies, rest, effects = split_answer(answer, [each.id for each in asked])
    fields = [
        *(field for each in zip(asked, replies, strict=True) for field in answer_fields(*each)),
        *(text_field(name, value) for name, value in (rest | effects).items()),
    ]
    return _one_line(", ".join(map(_field_line, fields)))


def _field_line(field: TextField) -> str:
    text = " ".join(each.strip() for each in field.lines)
    return f"{field.name}: {text}" if field.name else text


def _call_line(call: PendingCall) -> str:
    given = named_values(call.arguments) if call.arguments else {}
    return f"{call.name}({', '.join(_pair(*each) for each in given.items())})"


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
