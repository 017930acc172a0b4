# SPDX-License-Identifier: Apache-2.0
"""`sealpoint threads`: all threads and their states, or what such a list would leave out."""

from collections.abc import Mapping

import click

from sealpoint.api import Store
from sealpoint.cli.options import Verb, json_option
from sealpoint.cli.references import thread_text
from sealpoint.cli.stores import StoreOptions, store_options
from sealpoint.cli.terminal import print_json, print_line, print_lines, print_table, working
from sealpoint.errors import IntegrityError, SealpointError
from sealpoint.gate import ThreadPhase, ThreadSummary
from sealpoint.store import ThreadNames, UnlistedThread
from sealpoint.views.documents import threads_document
from sealpoint.views.summaries import question_line, shorten_alike
from sealpoint.views.words import Styled, count_text, shown_name, when
from sealpoint.world import visible


@click.command(cls=Verb)
@click.option(
    "--partial",
    is_flag=True,
    help="List the threads that are there, even if the list is incomplete.",
)
@click.option(
    "--names", "only_names", is_flag=True, help="Only the names, without verifying the threads."
)
@store_options("namespace")
@json_option
def threads(*, partial: bool, only_names: bool, where: StoreOptions, as_json: bool) -> None:
    """List the threads of a namespace with their states: all of them, or none.

    Complete means that the store has every thread that the anchor knows, and no others. If the list
    is incomplete, the command lists nothing and exits with 30; --partial lists the rest and names
    the threads left out. The exit status is also 30 if a thread does not verify. A thread that a
    restore cut needs a reason or approvals to resume, unless it was released.
    """
    with where.reading() as store, working("listing threads"):
        found = store.threads(partial=partial)
        names = found.names
        summaries = [] if only_names else list(store.overview(partial=partial))
        waiting = [] if as_json else [each for each in summaries if each.phase in _WAITING]
        questions = shorten_alike([_question(store, each.name) for each in waiting], _LINE_CHARS)
        asked = dict(zip((each.name for each in waiting), questions, strict=True))
    unreadable = [each for each in summaries if each.phase is ThreadPhase.UNREADABLE]
    if as_json:
        print_json(threads_document(found, summaries))
    else:
        _print(found, names, summaries, asked)
    if unreadable:
        click.get_current_context().exit(IntegrityError.exit_status)


def _question(store: Store, name: str) -> str:
    try:
        return question_line(store.thread(name).question)
    except SealpointError as error:  # it has changed since, or cannot be read any more
        return visible(error.message)


def _print(
    found: ThreadNames,
    names: tuple[str, ...],
    summaries: list[ThreadSummary],
    asked: Mapping[str, str],
) -> None:
    if summaries:
        questions = ("question",) if asked else ()
        rows = [
            (*_cells(each), *([asked.get(each.name) or "-"] if asked else [])) for each in summaries
        ]
        print_table(("thread", "state", "last change", "owner", "entries", *questions), rows)
        print_line("")
        for each in summaries:
            if each.reason:
                style = "bad" if each.phase is ThreadPhase.UNREADABLE else "quiet"
                words = f"{shown_name(each.name)}: {each.phase}: {visible(each.reason)}"
                print_line(Styled(words, style))
    elif names:
        print_line(Styled("thread", "heading"))
        print_lines([shown_name(name) for name in names])
        print_line("")
    count = f"{count_text(len(names), 'thread')} in namespace {found.namespace!r}; "
    if found.complete:
        print_line((count, Styled("complete", "good"), ": the anchor knows no others."))
    else:
        _print_left_out(count, found)


_WAITING = (ThreadPhase.NEEDS_ANSWER, ThreadPhase.NEEDS_APPROVAL, ThreadPhase.READY)
_LINE_CHARS = 60
_STYLES = {
    ThreadPhase.PAUSED: "warning",
    ThreadPhase.NEEDS_APPROVAL: "warning",
    ThreadPhase.NEEDS_ANSWER: "warning",
    ThreadPhase.READY: "good",
    ThreadPhase.UNREADABLE: "bad",
}


def _cells(each: ThreadSummary) -> tuple[str | Styled, ...]:
    state, style = str(each.phase), _STYLES.get(each.phase, "")
    if each.restored:
        state, style = f"{state}; cut by a restore", "warning"
    return (
        shown_name(each.name),
        Styled(state, style),
        "-" if each.changed is None else when(each.changed),
        visible(each.owner or "-"),
        "-" if each.entries is None else f"{each.entries:,}",
    )


def _print_left_out(count: str, found: ThreadNames) -> None:
    print_line((count, Styled("NOT COMPLETE", "bad"), f", {len(found.left_out):,} left out:"))
    print_line("")
    print_table(("left out", "because"), [_row(each) for each in found.left_out])
    print_line("")
    print_line("To see how anchor and store stand to each other, run: sealpoint anchor show")


def _row(each: UnlistedThread) -> tuple[str | Styled, Styled]:
    name = thread_text(each.name, each.thread)
    if each.anchored:
        return name, Styled("the store lacks what the anchor has seen, or damaged it", "bad")
    return name, Styled("the anchor does not know it: sealpoint anchor adopt", "warning")
