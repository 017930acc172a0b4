# SPDX-License-Identifier: Apache-2.0
r"""A request in the form that people read before they answer it: complete, with nothing hidden.

First come the question, the calls, the answer and what differs, as `views.decision` reads them;
then the conversation, the capabilities, the requester's reasons, and last the signed digests. The
capabilities of the run are compared again with the verified checkpoint, and the answer is
checked against its digest. Nothing that would run is left out or masked, and nothing is repeated. A
value with unknown types is shown by its place, and never omitted silently. Invisible characters are
written as `\u{202e}`, and a text of several lines has bars before its lines, so that no text can
imitate another part.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import unified_diff
from enum import StrEnum, unique
from typing import TYPE_CHECKING, Any

from sealpoint.gate import Measure, Request, Status
from sealpoint.signing import Action
from sealpoint.views.conversation import PartKind
from sealpoint.views.decision import AskedQuestion, Decision, read_decision
from sealpoint.views.masking import REVEALED, Masking
from sealpoint.views.readable import TextField
from sealpoint.views.values import json_lines, render, value_lines
from sealpoint.views.words import Line, Styled, count_text, short_hex, shown_name, shown_words, when
from sealpoint.world import MODULES, LeafChange, WorldDiff, visible

if TYPE_CHECKING:  # code that only shows the status of a request does not load them
    from sealpoint.api import ExaminedRequest, ShownRelease, ShownResult

__all__ = [
    "RequestView",
    "Section",
    "SectionKind",
    "WorldChange",
    "measure_text",
    "question_lines",
    "release_lines",
    "request_view",
    "rollout_standing",
    "standing",
]

# The time to align lines grows with both sides; beyond this they are shown as two blocks.
_ALIGNED_MAX = 1_000_000
_MESSAGES_SHOWN = 6
# A permission of the run or of a sub-agent; the slashes in the names of sub-agents are escaped.
_PERMISSION = re.compile(r"(?:agent\.[^/]*/)*permission\.")
_ACTIONS = {Action.RESUME: "resume thread ", Action.HANDOFF: "hand off thread "}
_STATUS_STYLES = {
    Status.OPEN: "warning",
    Status.APPROVED: "good",
    Status.DENIED: "bad",
    Status.EXPIRED: "quiet",
    Status.VOID: "quiet",
}

Hint = Callable[[str], str]
"""Returns advice for the user, given why a value is not known here."""


@unique
class SectionKind(StrEnum):
    """The subject of a section of a request."""

    REASONS = "reasons"
    """Why it needs approval, as the requester says."""
    STATEMENT = "statement"
    """The content that an approval signs."""
    RELEASE = "release"
    """The checkpoint and results that would be resumed."""
    WORLD_DIFF = "world-diff"
    """The capabilities of the run compared with the checkpoint, or of one world with another."""
    WORLD = "world"
    """The capabilities of the run, if they cannot or need not be compared."""
    QUESTION = "question"
    """One question, with its calls."""
    ANSWER = "answer"
    DIFFERENCES = "differences"
    """Points that a person could overlook: about question, calls, answer and capabilities."""
    CONVERSATION = "conversation"
    """The messages that led to the question."""
    STANDING = "standing"
    """The approvals, the denials and the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the display: its title, and fields or lines."""

    kind: SectionKind
    titles: tuple[str, ...]
    note: Line | None = None
    fields: tuple[TextField, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldChange:
    """The capabilities of a run before and after."""

    before: str | None
    """The digest of the world that it resumes from."""
    after: str | None
    diff: WorldDiff
    direction: str
    """The classes with other or more capabilities, and those with fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestView:
    """The complete display of a request for people, made once."""

    request: Request
    title: Line
    sections: tuple[Section, ...]
    """For people: everything, in reading order."""
    release: "ShownRelease | None"
    """The release that would run, reproduced from the thread."""
    decision: Decision | None
    """The question, the calls, the answer and the differences; None for a rollout."""
    worlds: tuple[WorldChange, ...]
    fault: str | None
    """Why the content cannot be trusted; the request then cannot be approved."""

    @property
    def digest(self) -> str:
        """The digest of the signed statement: the same on every machine."""
        return self.request.id

    @property
    def newest(self) -> bool | None:
        """Whether the checkpoint is the newest of its thread; None if nothing would run."""
        return None if self.release is None else self.release.release.newest

    def age(self, now: datetime) -> timedelta | None:
        """Return the time since the state was first saved; None if nothing would run."""
        return None if self.release is None else now - self.release.release.time

    def section(self, kind: SectionKind) -> Section | None:
        """Return the first section of a kind."""
        return next((each for each in self.sections if each.kind is kind), None)


def request_view(
    examined: "ExaminedRequest", *, hint: Hint | None = None, masking: Masking = REVEALED
) -> RequestView:
    """Make the display of a request.

    Args:
        examined: The result of `sealpoint.api.examine`.
        hint: Returns advice if the types of a pending value are not known.
        masking: The names of values that are hidden in the conversation, and nowhere else.
    """
    request, shown = examined.request, examined.shown
    decision = None
    if request.statement.action is Action.ROLLOUT:
        worlds = _rollout_changes(request)
        title: Line = Styled("Rollout: runs may resume with these differences", "heading")
        sections = _rollout_sections(request, worlds)
    else:
        worlds = _resume_changes(examined)
        action = _ACTIONS[request.statement.action]
        title = (Styled(f"Request to {action}", "heading"), _name(request))
        decision = read_decision(shown, examined, masking=masking)
        sections = _sections(examined, decision, worlds, hint)
    return RequestView(
        request=request,
        title=title,
        sections=tuple(sections),
        release=shown,
        decision=decision,
        worlds=worlds,
        fault=None if examined.fault is None else examined.fault.message,
    )


# The status, in a few words.


def measure_text(measure: Measure) -> Styled:
    """Return the measure that a rule requires: the same word in the same color everywhere."""
    refused = "bad" if measure == Measure.REFUSE else ""
    return Styled(str(measure), "warning" if measure.asks_people else refused)


def standing(request: Request) -> Styled:
    """Return the status in a few words."""
    word = str(request.status)
    if request.status is Status.OPEN:
        word = f"open: {len(request.approved_by)} of {request.needed}"
    return Styled(word, _STATUS_STYLES[request.status])


def rollout_standing(request: Request) -> Styled:
    """Return the status of a rollout in a few words."""
    words = {Status.APPROVED: "holds", Status.DENIED: "revoked"}
    if request.status in words:
        return Styled(words[request.status], _STATUS_STYLES[request.status])
    return standing(request)


# The sections.


def _sections(
    examined: "ExaminedRequest",
    decision: Decision,
    worlds: Sequence[WorldChange],
    hint: Hint | None,
) -> Iterator[Section]:
    request, kinds = examined.request, SectionKind
    for question in decision.questions:
        title = f"{question.asker or 'It'} asks:"
        lines = tuple(_asked_lines(question))
        yield Section(kind=kinds.QUESTION, titles=(title,), lines=lines)
    yield _answer_section(examined, decision)
    if decision.differences:
        found = tuple(Styled(f"  {each}", "warning") for each in decision.differences)
        yield Section(kind=kinds.DIFFERENCES, titles=("What differs:",), lines=found)
    if decision.messages or decision.unread:
        lines = tuple(_message_lines(decision, hint))
        yield Section(kind=kinds.CONVERSATION, titles=("What led to it:",), lines=lines)
    if examined.fault is None:
        yield _world_section(examined, worlds)
    yield Section(kind=kinds.STANDING, titles=("Status:",), fields=_standing_fields(request))
    why = "Why approval was requested (as stated by the requester, not verified):"
    yield Section(kind=kinds.REASONS, titles=(why,), lines=tuple(_words(request.reasons)))
    if request.statement.checkpoint is not None:
        yield _release_section(examined, hint)
    signed = "What an approval signs:"
    yield Section(kind=kinds.STATEMENT, titles=(signed,), fields=_statement_fields(request))


def _rollout_sections(request: Request, worlds: Sequence[WorldChange]) -> Iterator[Section]:
    """Yield the sections of a request to accept changes of world for many threads."""
    signed = "What is signed by an approval:"
    fields = _rollout_fields(request)
    yield Section(kind=SectionKind.STATEMENT, titles=(signed,), fields=fields)
    for each in worlds:
        yield _diff_section(("The differences that it accepts, in every thread:",), each)
    nothing = (
        "It accepts nothing else: no other difference, no answer, no older checkpoint, no pause, "
        "no first run after a restore."
    )
    yield Section(
        kind=SectionKind.STANDING,
        titles=(nothing, "How it stands:"),
        fields=_standing_fields(request),
    )


def _release_section(examined: "ExaminedRequest", hint: Hint | None) -> Section:
    note: Line | None = None
    if examined.fault is not None:
        note = (Styled("  NOT TO BE BELIEVED: ", "bad"), visible(examined.fault.message))
    elif examined.shown is None:
        note = Styled("  NOT FOUND on the thread", "bad")
    return Section(
        kind=SectionKind.RELEASE,
        titles=("What would be resumed, as this machine found it on the thread:",),
        note=note,
        lines=() if examined.shown is None else tuple(release_lines(examined.shown, hint)),
    )


def _world_section(examined: "ExaminedRequest", worlds: Sequence[WorldChange]) -> Section:
    told = examined.request.statement
    lines: Sequence[Line] = ()
    if worlds and not worlds[0].diff.same:
        title = "The run's capabilities, compared with the checkpoint by this machine:"
        return _diff_section((title,), worlds[0])
    if worlds:
        title = "The run's capabilities are the same as at the checkpoint."
    elif told.world_to is not None:
        found = "cannot be compared" if told.world_from is not None else "were not declared"
        title = f"The run's capabilities; those of the checkpoint {found}:"
        lines = json_lines(examined.request.world, "  ")
    elif told.world_from is not None:
        title = "The run's capabilities are not declared, and those of the checkpoint were."
    else:
        title = "The run's capabilities are not declared."
    return Section(kind=SectionKind.WORLD, titles=(title,), lines=tuple(lines))


def _diff_section(titles: tuple[str, ...], change: WorldChange) -> Section:
    return Section(
        kind=SectionKind.WORLD_DIFF,
        titles=titles,
        note=Styled(f"  {change.direction}", "quiet"),
        lines=tuple(_diff_lines(change.diff)),
    )


def _answer_section(examined: "ExaminedRequest", decision: Decision) -> Section:
    lines: list[Line] = []
    if not decision.has_answer:
        known = examined.request.statement.answer is None
        title = "The run would be given no answer." if known else "The answer is not known."
        return Section(kind=SectionKind.ANSWER, titles=(title,))
    for question in decision.questions:
        if question.answer and len(decision.questions) > 1:
            lines.append(f"  to {question.asker or 'the question'}:")
        lines += _field_lines(question.answer)
    lines += _field_lines(decision.answer)
    lines.append(Styled(f"  {decision.answered_by}", "quiet"))
    return Section(kind=SectionKind.ANSWER, titles=("The answer:",), lines=tuple(lines))


def _asked_lines(question: AskedQuestion) -> Iterator[Line]:
    yield from _field_lines((TextField(name="", lines=question.text),))
    yield from _field_lines(question.fields)
    for call in question.calls:
        yield ("  calls ", Styled(call.name, "heading"), " with:" if call.arguments else "")
        yield from _field_lines(call.arguments, "    ")


def _field_lines(fields: Iterable[TextField], indent: str = "  ") -> Iterator[Line]:
    """Yield named values; a text of several lines has bars, so that it imitates nothing else."""
    for field in fields:
        label = Styled(f"{indent}{field.name}:" if field.name else indent[1:], "quiet")
        if len(field.lines) == 1:
            yield label, " ", Styled(field.lines[0], field.style)
        elif field.lines:
            if field.name:
                yield label
            yield from (Styled(f"{indent}  | {line}", field.style) for line in field.lines)


def _message_lines(decision: Decision, hint: Hint | None) -> Iterator[Line]:
    if decision.unread:
        yield Styled(f"  NOT SHOWN: {visible(decision.unread)}", "bad")
        if hint is not None:
            yield Styled(f"  {hint(decision.unread)}", "quiet")
    hidden = decision.earlier + max(0, len(decision.messages) - _MESSAGES_SHOWN)
    if hidden:
        yield Styled(f"  {count_text(hidden, 'earlier message')}", "quiet")
    for message in decision.messages[-_MESSAGES_SHOWN:]:
        yield Styled(f"  {message.author or message.role}:", "heading")
        for part in message.parts:
            if part.kind is not PartKind.DETAILS:
                name = f"{part.kind} {part.name}:".replace("-", " ")
                told = () if part.kind is PartKind.TEXT else (name,)
                yield from (f"    | {line}" for line in (*told, *part.text.split("\n")))


def _name(request: Request) -> str:
    shown = shown_name(request.thread)
    return shown if shown != request.thread else f"'{shown}'"


def _statement_fields(request: Request) -> tuple[TextField, ...]:
    told = request.statement
    return (
        _field("id", request.id),
        _field("action", str(told.action)),
        _field("thread", f"{told.thread}, called {_name(request)}"),
        _named("namespace", told.ns),
        _named("new owner", told.to),
        _named("requester", told.requester),
        _actor(told.actor),
        _text_field("reason", told.reason),
        _field("expires", when(told.expires)),
        _field("approvals", f"{told.needed} needed"),
        _named("checkpoint", told.checkpoint),
        _named("release", told.release),
        _named("world from", told.world_from),
        _named("world to", told.world_to),
        _named("answer", told.answer),
        _field("basis", told.basis),
        _named("policy", told.policy),
        _field("store", told.store),
        _field("epoch", str(told.epoch)),
        _field("generation", str(told.gen)),
        _field("nonce", told.nonce),
        _field("version", str(told.v)),
    )


def _rollout_fields(request: Request) -> tuple[TextField, ...]:
    told = request.statement
    return (
        _field("id", request.id),
        _field("action", str(told.action)),
        _named("namespace", told.ns),
        _named("requester", told.requester),
        _actor(told.actor),
        _text_field("reason", told.reason),
        _field("until", when(told.expires)),
        _field("approvals", f"{told.needed} needed"),
        _named("policy", told.policy),
        _field("store", told.store),
        _field("epoch", str(told.epoch)),
        _field("basis", told.basis),
        _field("nonce", told.nonce),
        _field("version", str(told.v)),
    )


def _standing_fields(request: Request) -> tuple[TextField, ...]:
    left = max(request.needed - len(request.approved_by), 0)
    approvals = (
        f"{len(request.approved_by)} so far, {left} more needed; {request.needed} of other "
        "persons than the requester"
        if request.needed
        else "none needed: the policy asks for a reason alone"
    )
    fields = [
        _field("status", str(request.status), _STATUS_STYLES[request.status]),
        _field("asked", when(request.asked_at)),
        _field("approvals", approvals),
        _field("approved by", visible(", ".join(request.approved_by)) or "nobody"),
        _field("denied by", visible(", ".join(request.denied_by)) or "nobody"),
    ]
    if request.broken_glass is not None:
        fields.append(_text_field("break-glass", request.broken_glass, "bad"))
    return (*fields, *(_text_field("not counted", words) for words in request.ignored))


def _field(name: str, text: str, style: str = "") -> TextField:
    return TextField(name=name, lines=(text,), style=style)


def _named(name: str, text: str | None) -> TextField:
    """Return a field with a short text that someone wrote, or none."""
    return TextField(name=name, lines=() if text is None else (visible(text),))


def _actor(actor: str | None) -> TextField:
    """Return a field with the person for whom the requester acts."""
    claimed = "as the requester claims, and cannot approve it"
    return TextField(name="actor", lines=() if actor is None else (f"{visible(actor)}, {claimed}",))


def _text_field(name: str, text: str, style: str = "") -> TextField:
    """Return a field with a text that someone wrote, in its lines."""
    return TextField(name=name, lines=tuple(map(visible, text.split("\n"))), style=style)


def _words(texts: Sequence[str]) -> Iterator[Line]:
    if not texts:
        yield Styled("  none", "quiet")
    for text in texts:
        for place, line in enumerate(text.split("\n")):
            yield f"  {' ' if place else '-'} {shown_words(line)}".rstrip()


# The display of a release: the checkpoint, its pending results, and its status.


def release_lines(shown: "ShownRelease", hint: Hint | None = None) -> Iterator[Line]:
    """Yield everything that would be executed, as lines.

    Args:
        shown: The release.
        hint: Returns advice if the types of a pending value are not known.
    """
    release, ref = shown.release, shown.ref
    newest = "the newest" if release.newest else Styled("NOT the newest", "warning")
    where = f" of lane {visible(release.lane)}" if release.lane else ""
    yield (f"  checkpoint {visible(release.id)}{where}, seq:{release.seq}, ", newest)
    yield f"  saved {when(ref.time)} by {visible(ref.writer)}"
    if release.held:
        yield ("  ", Styled("held back by a pause", "warning"), " when it was saved")
    if release.origin is not None:
        origin = release.origin
        entry, at = visible(short_hex(origin.entry)), when(origin.at)
        if origin.is_file:
            words = f" from a file with the SHA-256 {entry}, which says {at}"
            yield ("  ", Styled("IMPORTED", "warning"), words)
        else:
            words = f" of entry {entry} of thread {visible(short_hex(origin.thread))}, saved {at}"
            yield ("  ", Styled("a COPY", "warning"), words)
    for gone in release.deleted:
        lane = f" of lane {visible(gone.lane)}" if gone.lane else ""
        what = f"checkpoint {visible(gone.id)}{lane}, seq:{gone.seq}"
        if gone.task is None:
            words = f"  newer, and DELETED since: {what}"
        else:
            words = f"  DELETED since: results of task {visible(gone.task)} for {what}"
        yield Styled(words, "warning")
    for each in release.lanes:
        held = ", held back by a pause" if each.held else ""
        yield f"  with it: {_lane(each.lane)}, checkpoint {visible(each.id)}, seq:{each.seq}{held}"
    pending = [each for each in map(_without_question, shown.results) if each is not None]
    if not pending:
        yield Styled("  no results of tasks are pending on it", "quiet")
    for each_result in pending:
        yield from _result_lines(each_result, release.lane, hint)


def _without_question(shown: "ShownResult") -> "ShownResult | None":
    """Return a result without the question, which is shown in its own section."""
    if shown.result.question is None or shown.fault is not None:
        return shown
    writes = shown.value if type(shown.value) is list else [shown.value]
    left = [each for each in writes if type(each) is not list or "__interrupt__" not in each]
    return replace(shown, value=left) if left else None


def question_lines(shown: "ShownRelease") -> Iterator[Line]:
    """Yield the questions that the run is waiting for someone to answer, if any."""
    for question in read_decision(shown).questions:
        yield Styled(f"{question.asker or 'It'} asks:", "heading")
        yield from _asked_lines(question)


def _lane(lane: str) -> str:
    return f"lane {visible(lane)}" if lane else "the main lane"


def _result_lines(shown: "ShownResult", target: str, hint: Hint | None) -> Iterator[Line]:
    result = shown.result
    what = "an answer that was given" if result.answers else "results that count as done"
    if result.question is not None:
        what = "a question that it waits with"
    lane = f" of {_lane(shown.lane)}" if shown.lane or target else ""
    path = f" ({visible(result.path)})" if result.path else ""
    yield f"  pending: task {visible(result.task)}{path}{lane}, seq:{result.seq}, {what}:"
    if shown.fault is not None:
        words = f"    NOT SHOWN, entry {short_hex(result.entry)}: {visible(shown.fault)}"
        yield Styled(words, "bad")
        if hint is not None:
            yield Styled(f"    {hint(shown.fault)}", "quiet")
        return
    for line in render(shown.value, name="value", everything=True):
        yield f"    {visible(line)}"


# The capabilities of the run, leaf by leaf.


def _resume_changes(examined: "ExaminedRequest") -> tuple[WorldChange, ...]:
    told, diff = examined.request.statement, examined.diff
    if diff is None or examined.fault is not None:
        return ()
    return (_world_change(told.world_from, told.world_to, diff),)


def _rollout_changes(request: Request) -> tuple[WorldChange, ...]:
    diff = request.differences
    return () if diff is None else (_world_change(None, None, diff),)


def _world_change(before: str | None, after: str | None, diff: WorldDiff) -> WorldChange:
    found = (("other or more", diff.differs), ("less", diff.narrower))
    parts = [f"{words}: {', '.join(sorted(classes))}" for words, classes in found if classes]
    direction = "the same" if diff.same else f"{'; '.join(parts)}; + new, - gone, ~ changed"
    return WorldChange(before=before, after=after, diff=diff, direction=direction)


def _diff_lines(diff: WorldDiff) -> Iterator[Line]:
    """Yield every leaf that differs, with its complete value.

    The list that contains a leaf tells whether it was added or removed: its value may be null.
    """
    words = iter(diff.lines())
    for change in diff.added:
        yield ("  ", Styled(next(words), "warning"))
        yield from _only_value(change, change.after)
    for change in diff.removed:
        yield ("  ", Styled(next(words), "good"))
        yield from _only_value(change, change.before)
    for change in diff.changed:
        yield ("  ", Styled(next(words), "warning"))
        if change.leaf_class in MODULES:
            continue
        for mark, line in _aligned(value_lines(change.before), value_lines(change.after)):
            yield Styled(f"    {mark} {line}", {"-": "bad", "+": "good"}.get(mark, ""))


def _only_value(change: LeafChange, value: Any) -> Iterator[Line]:
    # A permission is just its name, with the value true. For code there is only a digest.
    named = value is True and _PERMISSION.match(change.leaf)
    if not named and change.leaf_class not in MODULES:
        yield from json_lines(value, "      ")


def _aligned(before: list[str], after: list[str]) -> Iterator[tuple[str, str]]:
    """Yield every line of both, with equal lines once; every other line is marked with its side."""
    if before == after or len(before) * len(after) > _ALIGNED_MAX:
        yield from (("-", line) for line in before)
        yield from (("+", line) for line in after)
        return
    lines = unified_diff(before, after, n=len(before) + len(after), lineterm="")
    for place, line in enumerate(lines):
        if place > 2:  # noqa: PLR2004 - the names of two files, and the place in them
            yield line[0], line[1:]
