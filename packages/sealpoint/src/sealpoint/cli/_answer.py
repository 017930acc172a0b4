# SPDX-License-Identifier: Apache-2.0
"""`answer`: a person answers the question of a thread, signed with their key."""

import json
import shlex
from typing import Any

import click

from sealpoint.cli.options import Verb, json_option, optional_reason_option
from sealpoint.cli.stores import StoreOptions, operator_option, store_options
from sealpoint.cli.terminal import (
    ask,
    can_ask,
    print_json,
    print_line,
    working,
)
from sealpoint.errors import UsageError
from sealpoint.gate import SignedAnswer, Thread
from sealpoint.views.answer_forms import (
    FieldKind,
    FormField,
    QuestionForm,
    answer_to,
    questions_of,
    read_answer,
)
from sealpoint.views.values import json_lines
from sealpoint.views.words import Styled, shown_name, when
from sealpoint.world import visible


@click.command(cls=Verb)
@click.argument("thread")
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="JSON",
    help="The answer, as JSON; once for each question, in their order. Without it you are asked.",
)
@click.option("--text", metavar="TEXT", help="The answer to the only question, as text.")
@optional_reason_option
@operator_option("The operator or approver whose key signs.")
@store_options("namespace")
@json_option
def answer(
    thread: str,
    *,
    values: tuple[str, ...],
    text: str | None,
    reason: str | None,
    signer: str,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Answer the question of THREAD, signed with your key.

    Nothing runs here. The worker of the thread takes the answer when it next looks, and the policy
    decides then whether others must approve. Nobody can change your answer; sealpoint deny with its
    id withdraws it until it is taken.
    """
    with where.writing(signer) as store:
        found = store.thread(thread)
        with working("reading the question"):
            question = found.question
        if question is None:
            raise UsageError(
                f"thread {shown_name(thread)!r}: it does not wait for an answer",
                hint=f"See what it does: sealpoint log {shlex.quote(thread)}",
            )
        questions = questions_of(question)
        given = _given(questions, values, text)
        if given is None:
            given = _asked(found, questions, as_json=as_json)
        with working("signing the answer"):
            signed = found.answer(given, reason=reason or "")
    _print(signed, as_json=as_json)


def _given(questions: tuple[QuestionForm, ...], values: tuple[str, ...], text: str | None) -> Any:
    """Return the answer that the options give; None if they give none."""
    if text is None and not values:
        return None
    if text is not None and values:
        raise UsageError("give --value or --text, not both")
    told = [text] if text is not None else [_json(each) for each in values]
    if len(told) != len(questions):
        raise UsageError(
            f"answer: expected {len(questions)} answers, one for each question, found {len(told)}",
            hint="Give --value once for each question, in the order in which they are asked.",
        )
    return answer_to(questions, told)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise UsageError(
            "--value: expected JSON, found another text",
            hint="A text is given by --text, or in double quotes inside of single ones: '\"yes\"'.",
        ) from exc


def _asked(thread: Thread, questions: tuple[QuestionForm, ...], *, as_json: bool) -> Any:
    """Ask a person on the terminal."""
    if as_json or not can_ask():
        raise UsageError(
            "answer: there is no terminal to ask on", hint="Give the answer: --value or --text."
        )
    filled: dict[str, str] = {}
    for place, each in enumerate(questions):
        number = f" ({place + 1} of {len(questions)})" if len(questions) > 1 else ""
        print_line(Styled(f"{shown_name(thread.name)} asks{number}:", "heading"))
        for line in json_lines(each.value, "  "):
            print_line(line)
        _fill(each.form, filled)
    return read_answer(questions, filled)


def _fill(form: FormField, filled: dict[str, str]) -> None:
    """Ask for the value of a field, and of the fields in it."""
    more = "" if form.required else ", empty for none"
    match form.kind:
        case FieldKind.GROUP | FieldKind.ROWS:
            for each in form.fields:
                _fill(each, filled)
        case FieldKind.CHOICE:
            filled[form.name] = _choose(form, [words for words, _ in form.options], more)
        case FieldKind.EITHER:
            filled[form.name] = _choose(form, [each.label for each in form.fields], more)
            if filled[form.name]:
                _fill(form.fields[int(filled[form.name])], filled)
        case _:
            found = ask(f"{form.label}{more}")
            if not found and form.kind is FieldKind.JSON and form.value is not None:
                found = json.dumps(form.value)
            filled[form.name] = found


def _choose(form: FormField, options: list[str], more: str) -> str:
    """Ask for one of several options; returns its number, or an empty text."""
    print_line(f"{visible(form.label)}:")
    for place, words in enumerate(options):
        print_line(f"  {place + 1}  {words}")
    while True:
        found = ask(f"1 to {len(options)}{more}")
        if not found and not form.required:
            return ""
        if found in map(str, range(1, len(options) + 1)):
            return str(int(found) - 1)


def _print(signed: SignedAnswer, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "id": signed.id,
                "thread": signed.thread,
                "person": signed.person,
                "answer": signed.answer,
                "reason": signed.reason,
                "expires": signed.expires.isoformat(),
            }
        )
        return
    line = f" {shown_name(signed.thread)} as {visible(signed.person)}, answer {signed.id[:12]}."
    print_line((Styled("Answered", "good"), line))
    print_line(f"Its worker takes the answer when it next looks, until {when(signed.expires)}.")
