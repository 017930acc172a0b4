# SPDX-License-Identifier: Apache-2.0
"""A release as people are shown it: the checkpoint, what is pending on it, and where it stands.

All of it is printed: whoever approves must have been shown what would run. A value whose types this
command does not know is named by its digest and where it lies, and never left out in silence.
"""

from collections.abc import Iterator
from typing import Any

from sealpoint.api import ShownRelease, ShownResult
from sealpoint.cli._json import json_fault, json_lines
from sealpoint.cli._references import when
from sealpoint.cli._render import render
from sealpoint.cli._terminal import Line, Styled
from sealpoint.world import visible

__all__ = ["question_lines", "release_document", "release_lines"]

_ID_DIGITS = 12


def release_document(shown: ShownRelease) -> dict[str, Any]:
    """The JSON form, with the values that are pending."""
    return {
        **shown.release.as_dict(),
        "writer": shown.ref.writer,
        "pending": [
            {
                "lane": each.lane,
                **each.result.as_dict(),
                "value": each.value if _is_json(each) else None,
                "rendering": [] if each.fault else list(render(each.value, everything=True)),
                "fault": each.fault,
            }
            for each in shown.results
        ],
    }


def _is_json(shown: ShownResult) -> bool:
    return shown.fault is None and json_fault(shown.value) is None


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
        words = f" of entry {visible(origin.entry[:_ID_DIGITS])} of thread "
        words += f"{visible(origin.thread[:_ID_DIGITS])}, saved {when(origin.at)}"
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


def _result_lines(shown: ShownResult, target: str) -> Iterator[Line]:
    result = shown.result
    what = "an answer that was given" if result.answers else "results that count as done"
    if result.question is not None:
        what = "a question that it waits with"
    lane = f" of {_lane(shown.lane)}" if shown.lane or target else ""
    path = f" ({visible(result.path)})" if result.path else ""
    yield f"  pending: task {visible(result.task)}{path}{lane}, seq:{result.seq}, {what}:"
    if shown.fault is not None:
        words = f"    NOT SHOWN, entry {result.entry[:_ID_DIGITS]}: {visible(shown.fault)}"
        yield Styled(words, "bad")
        yield Styled("    Name the application's registry: --registry MODULE:OBJECT", "quiet")
        return
    for line in render(shown.value, name="value", everything=True):
        yield f"    {line}"
