# SPDX-License-Identifier: Apache-2.0
r"""A request as people are shown it before they answer: all of it, and nothing that hides.

The fields are those of the statement that is signed. What the run could do is compared anew with
the verified checkpoint, and the answer is held against its digest; the requester's own words come
first and are called so, because there they cannot scroll the rest away. Nothing is left out. What
does not show is written as `\u{202e}`, and text that is folded stands further in than any heading,
so that no text can pass for another part.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Any

from sealpoint.adapters import FRAMEWORKS
from sealpoint.api import ExaminedRequest, ShownRelease, ShownResult
from sealpoint.cli._terminal import Line, Styled, print_line, print_lines
from sealpoint.gate import Measure, Request, Status
from sealpoint.signing import Action
from sealpoint.views.values import json_lines, render, value_lines
from sealpoint.views.words import short_hex, shown_name, shown_words, when
from sealpoint.world import LeafChange, LeafClass, World, WorldDiff, visible

# A release as people are shown it: the checkpoint, what is pending on it, and where it stands.
#
# All of it is printed: whoever approves must have been shown what would run. A value whose types
# this command does not know is named by its digest and where it lies, and never left out in
# silence.


def release_lines(shown: ShownRelease) -> Iterator[Line]:
    """Everything that would be executed, in lines."""
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
        words = f"  newer, and DELETED since: checkpoint {visible(gone.id)}{lane}, seq:{gone.seq}"
        yield Styled(words, "warning")
    for each in release.lanes:
        held = ", held back by a pause" if each.held else ""
        yield f"  with it: {_lane(each.lane)}, checkpoint {visible(each.id)}, seq:{each.seq}{held}"
    if not shown.results:
        yield Styled("  no results of tasks are pending on it", "quiet")
    for pending in shown.results:
        yield from _result_lines(pending, release.lane)


def question_lines(shown: ShownRelease) -> Iterator[Line]:
    """What the run waits for somebody to answer, in lines; none if it waits for nothing."""
    if shown.release.question is not None:
        yield Styled("What the run asks, as it was saved:", "heading")
        yield from json_lines(shown.release.question, "  ")


def _lane(lane: str) -> str:
    return f"lane {visible(lane)}" if lane else "the main lane"


def _registry_hint(fault: str) -> str:
    """What to give so that a state with types of an application or a framework can be read."""
    hint = "Name the application's registry, graph or workflow: --registry MODULE:OBJECT"
    for framework in FRAMEWORKS:
        if any(f"'{name}" in fault for name in framework.types):
            hint += f"; for the types of {framework.name} alone, --registry {framework.registry}"
    return hint


def _result_lines(shown: ShownResult, target: str) -> Iterator[Line]:
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
        yield Styled(f"    {_registry_hint(shown.fault)}", "quiet")
        return
    for line in render(shown.value, name="value", everything=True):
        yield f"    {line}"


def measure_text(measure: Measure) -> Styled:
    """What a rule asks for: the same word in the same colour by every verb."""
    refused = "bad" if measure == Measure.REFUSE else ""
    return Styled(str(measure), "warning" if measure.asks_people else refused)


_LABEL_COLUMNS = 12
# Lines are aligned in a time that grows with both sides; beyond this they are shown as two blocks.
_ALIGNED_MAX = 1_000_000
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


def print_examined(examined: ExaminedRequest) -> None:
    """Print all of a request."""
    request = examined.request
    if request.statement.action is Action.ROLLOUT:
        _print_rollout(examined)
        return
    action = _ACTIONS[request.statement.action]
    print_line((Styled(f"Request to {action}", "heading"), _name(request)))
    print_line("")
    # First, because they may be as long as the requester likes.
    _section("Why it needs approval, in the requester's words, which nobody has verified:")
    print_lines(_words(request.reasons))
    print_line("")
    _section("What is signed by an approval:")
    _fields(_statement_fields(examined))
    _print_release(examined)
    _print_worlds(examined)
    _print_answer(examined)
    _section("How it stands:")
    _fields(_standing_fields(request))


def _print_rollout(examined: ExaminedRequest) -> None:
    """Print all of a request to accept changes of world for many threads."""
    request, told = examined.request, examined.request.statement
    print_line(Styled("Rollout: runs may go on in another world", "heading"))
    print_line("")
    _section("What is signed by an approval:")
    _fields(
        [
            ("id", request.id),
            ("action", str(told.action)),
            ("namespace", visible(told.ns)),
            ("requester", visible(told.requester)),
            ("actor", _actor(told.actor)),
            *_text_fields("reason", told.reason),
            ("until", when(told.expires)),
            ("approvals", f"{told.needed} needed"),
            ("policy", _or_none(told.policy)),
            ("store", told.store),
            ("epoch", str(told.epoch)),
            ("basis", told.basis),
            ("nonce", told.nonce),
            ("version", str(told.v)),
        ]
    )
    worlds = {world.digest: world for world in map(World.from_dict, request.worlds)}
    for before, after in told.pairs:
        print_line("")
        _section(f"From world {before}")
        _section(f"  to world {after}")
        diff = worlds[before].diff(worlds[after])
        print_line(Styled(f"  {_direction(diff)}", "quiet"))
        print_lines(_diff_lines(diff), hang=4)
    print_line("")
    _section("It lets pass nothing else: no answer, no older checkpoint, no pause, no restore.")
    _section("How it stands:")
    _fields(_standing_fields(request))


def rollout_standing(request: Request) -> Styled:
    """The status of a rollout in a few words."""
    words = {Status.APPROVED: "holds", Status.DENIED: "revoked"}
    if request.status in words:
        return Styled(words[request.status], _STATUS_STYLES[request.status])
    return standing(request)


def standing(request: Request) -> Styled:
    """The status in a few words."""
    word = str(request.status)
    if request.status is Status.OPEN:
        word = f"open: {len(request.approved_by)} of {request.needed}"
    return Styled(word, _STATUS_STYLES[request.status])


def _name(request: Request) -> str:
    shown = shown_name(request.thread)
    return shown if shown != request.thread else f"'{shown}'"


def _section(title: str) -> None:
    print_line(Styled(title, "heading"))


def _fields(fields: Sequence[tuple[str, Line]]) -> None:
    """Names and values; what is folded stays in the column of the values."""
    lines: list[Line] = []
    for name, value in fields:
        spans = (value,) if isinstance(value, str | Styled) else value
        lines.append(("  ", Styled(f"{name:<{_LABEL_COLUMNS}}", "quiet"), *spans))
    print_lines(lines, hang=_LABEL_COLUMNS)


def _statement_fields(examined: ExaminedRequest) -> list[tuple[str, Line]]:
    request = examined.request
    told = request.statement
    return [
        ("id", request.id),
        ("action", str(told.action)),
        ("thread", f"{told.thread}, called {_name(request)}"),
        ("namespace", visible(told.ns)),
        ("new owner", _or_none(told.to)),
        ("requester", visible(told.requester)),
        ("actor", _actor(told.actor)),
        *_text_fields("reason", told.reason),
        ("expires", when(told.expires)),
        ("approvals", f"{told.needed} needed"),
        ("checkpoint", _or_none(told.checkpoint)),
        ("release", _or_none(told.release)),
        ("world from", _or_none(told.world_from)),
        ("world to", _or_none(told.world_to)),
        ("answer", _or_none(told.answer)),
        ("basis", told.basis),
        ("policy", _or_none(told.policy)),
        ("store", told.store),
        ("epoch", str(told.epoch)),
        ("generation", str(told.gen)),
        ("nonce", told.nonce),
        ("version", str(told.v)),
    ]


def _standing_fields(request: Request) -> list[tuple[str, Line]]:
    left = max(request.needed - len(request.approved_by), 0)
    approvals = (
        f"{len(request.approved_by)} so far, {left} more needed; {request.needed} of other "
        "persons than the requester"
        if request.needed
        else "none needed: the policy asks for a reason alone"
    )
    fields: list[tuple[str, Line]] = [
        ("status", Styled(str(request.status), _STATUS_STYLES[request.status])),
        ("asked", when(request.asked_at)),
        ("approvals", approvals),
        ("approved by", visible(", ".join(request.approved_by)) or "nobody"),
        ("denied by", visible(", ".join(request.denied_by)) or "nobody"),
    ]
    if request.broken_glass is not None:
        fields += [
            (name, Styled(str(text), "bad"))
            for name, text in _text_fields("break-glass", request.broken_glass)
        ]
    for words in request.ignored:
        fields += _text_fields("not counted", words)
    return fields


def _print_release(examined: ExaminedRequest) -> None:
    if examined.request.statement.checkpoint is None:
        return
    print_line("")
    _section("What would be resumed, as this machine found it on the thread:")
    if examined.fault is not None:
        print_line((Styled("  NOT TO BE BELIEVED: ", "bad"), visible(examined.fault.message)))
    if examined.shown is not None:
        print_lines(release_lines(examined.shown), hang=4)
    elif examined.fault is None:
        print_line(Styled("  NOT FOUND on the thread", "bad"))


def _print_worlds(examined: ExaminedRequest) -> None:
    if examined.fault is not None:
        return
    print_line("")
    told, diff = examined.request.statement, examined.diff
    if diff is not None and diff.same:
        _section("What the run could do is the same as at the checkpoint.")
    elif diff is not None:
        _section("What the run could do, compared with the checkpoint by this machine:")
        print_line(Styled(f"  {_direction(diff)}", "quiet"))
        print_lines(_diff_lines(diff), hang=4)
    elif told.world_to is not None:
        found = "cannot be compared" if told.world_from is not None else "was not declared"
        _section(f"What the run could do; at the checkpoint it {found}:")
        print_lines(json_lines(examined.request.world, "  "))
    elif told.world_from is not None:
        _section("What the run could do is not declared, and it was at the checkpoint.")
    else:
        _section("What the run could do is not declared.")


def _direction(diff: WorldDiff) -> str:
    found = (("other or more", diff.differs), ("less", diff.narrower))
    parts = [f"{words}: {', '.join(sorted(classes))}" for words, classes in found if classes]
    return f"{'; '.join(parts)}; + new, - gone, ~ changed"


def _diff_lines(diff: WorldDiff) -> Iterator[Line]:
    """Every leaf that differs, with its whole value.

    Whether it is new or gone is said by the list that it is in: its value may be null.
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
        if change.leaf_class is LeafClass.CODE:
            continue
        for mark, line in _aligned(value_lines(change.before), value_lines(change.after)):
            yield Styled(f"    {mark} {line}", {"-": "bad", "+": "good"}.get(mark, ""))


def _only_value(change: LeafChange, value: Any) -> Iterator[Line]:
    # A permission is its name; what is there is true. Of code there is but a digest.
    named = value is True and _PERMISSION.match(change.leaf)
    if not named and change.leaf_class is not LeafClass.CODE:
        yield from json_lines(value, "      ")


def _aligned(before: list[str], after: list[str]) -> Iterator[tuple[str, str]]:
    """Every line of both, each once where they are alike; some line of each side is marked."""
    if before == after or len(before) * len(after) > _ALIGNED_MAX:
        yield from (("-", line) for line in before)
        yield from (("+", line) for line in after)
        return
    lines = unified_diff(before, after, n=len(before) + len(after), lineterm="")
    for place, line in enumerate(lines):
        if place > 2:  # noqa: PLR2004 - the names of two files, and the place in them
            yield line[0], line[1:]


def _print_answer(examined: ExaminedRequest) -> None:
    print_line("")
    if examined.shown is not None and examined.shown.release.question is not None:
        print_lines(question_lines(examined.shown))
        print_line("")
    if examined.request.statement.answer is None:
        _section("The run would be given no answer.")
    elif examined.fault is not None:
        _section("What answer the run would be given is not known.")
    else:
        _section("The answer that the run would be given:")
        print_lines(json_lines(examined.request.answer, "  "))
    print_line("")


def _text_fields(name: str, text: str) -> list[tuple[str, Line]]:
    """A text of somebody; if it has several lines, each behind a bar."""
    lines = text.split("\n")
    if len(lines) == 1:
        return [(name, visible(text))]
    return [
        ("" if place else name, f"| {visible(line)}".rstrip()) for place, line in enumerate(lines)
    ]


def _words(texts: Sequence[str]) -> Iterator[Line]:
    if not texts:
        yield Styled("  none", "quiet")
    for text in texts:
        for place, line in enumerate(text.split("\n")):
            yield f"  {' ' if place else '-'} {shown_words(line)}".rstrip()


def _actor(actor: str | None) -> Line:
    """For whom the requester asks."""
    if actor is None:
        return _or_none(None)
    return f"{visible(actor)}, as the requester claims, and cannot approve it"


def _or_none(text: str | None) -> str | Styled:
    return Styled("none", "quiet") if text is None else visible(text)
