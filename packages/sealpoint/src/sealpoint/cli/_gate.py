# SPDX-License-Identifier: Apache-2.0
"""`sealpoint pause`, `unpause`, `handoff` and `resume`: decide how a thread continues.

`resume` is a dry run: it shows the decision of the gate, and neither writes nor releases anything.
A program resumes with `Thread.resume`.
"""

from typing import Any

import click

from sealpoint.api import ShownRelease, read_release
from sealpoint.cli._input_files import parse_json
from sealpoint.cli._request_display import registry_hint
from sealpoint.cli.options import Verb, json_option, reason_option
from sealpoint.cli.references import find_ref
from sealpoint.cli.stores import (
    StoreOptions,
    chosen_registry,
    declared_world,
    operator_option,
    print_seen_by,
    registry_option,
    store_options,
)
from sealpoint.cli.terminal import print_json, print_line, print_lines, print_table, working
from sealpoint.errors import Conflict, GateRefused, NeedsApproval, UsageError
from sealpoint.gate import Decision, Outcome, Policy, Rule
from sealpoint.store import plain_value
from sealpoint.views.documents import decision_document
from sealpoint.views.requests import measure_text, question_lines, release_lines
from sealpoint.views.words import Styled, shown_words
from sealpoint.world import visible

_OUTCOMES = {
    Outcome.ALLOW: Styled("ALLOWED", "good"),
    Outcome.NEEDS_APPROVAL: Styled("NEEDS APPROVAL", "warning"),
    Outcome.REFUSE: Styled("REFUSED", "bad"),
}
_STATUSES = {
    Outcome.ALLOW: 0,
    Outcome.NEEDS_APPROVAL: NeedsApproval.exit_status,
    Outcome.REFUSE: GateRefused.exit_status,
}


@click.command(cls=Verb)
@click.argument("thread")
@reason_option
@operator_option("The operator whose key signs.")
@store_options("namespace")
@json_option
def pause(thread: str, *, reason: str, signer: str, where: StoreOptions, as_json: bool) -> None:
    """Stop THREAD: nothing is saved and nobody resumes until it is unpaused.

    A running worker, in any process, is refused at its next save. Pausing twice changes nothing.
    """
    with where.writing(signer) as store, working("pausing"):
        handle = store.thread(thread)
        # A pause that a restore lost still holds, and is written again.
        already = handle.standing().paused is not None
        entry = handle.pause(reason)
    if as_json:
        paused = {"thread": thread, "paused": True, "already": already, "entry": entry}
        print_json({**paused, "anchor": where.anchor})
        return
    if already:
        words = f": thread '{visible(thread)}', since entry {entry}; nothing more was written."
        print_line((Styled("Paused already", "warning"), words))
        return
    print_line((Styled("Paused", "good"), f": thread '{visible(thread)}', entry {entry}."))
    print_line("A worker that runs learns it at its next save.")
    print_seen_by(where)


@click.command(cls=Verb)
@click.argument("thread")
@reason_option
@operator_option("The operator whose key signs.")
@store_options("namespace")
@json_option
def unpause(thread: str, *, reason: str, signer: str, where: StoreOptions, as_json: bool) -> None:
    """Let THREAD resume and save again; its session and requests are as they were."""
    with where.writing(signer) as store, working("unpausing"):
        entry = store.thread(thread).unpause(reason)
    if as_json:
        print_json({"thread": thread, "paused": False, "entry": entry})
        return
    print_line((Styled("Unpaused", "good"), f": thread '{visible(thread)}', entry {entry}."))


@click.command(cls=Verb)
@click.argument("thread")
@click.option("--to", required=True, metavar="OWNER", help="The next owner: an identity or a pool.")
@reason_option
@store_options("identity", "namespace")
@json_option
def handoff(thread: str, *, to: str, reason: str, where: StoreOptions, as_json: bool) -> None:
    """Give THREAD to another owner; the current session ends.

    The owner needs no approval. An operator makes a request, which other people approve first: the
    exit status is 71 until they have, and then the same command hands the thread off.
    """
    with where.writing() as store, working("handing off"):
        try:
            entry = store.thread(thread).handoff(to=to, reason=reason)
        except NeedsApproval as error:
            error.hint = (
                "Others approve it first (sealpoint requests shows it); then run this same handoff "
                "command again."
            )
            raise
    if as_json:
        print_json({"thread": thread, "owner": to, "entry": entry})
        return
    owner = f" belongs to '{visible(to)}' from now on, entry {entry}."
    print_line((Styled("Handed off", "good"), f": thread '{visible(thread)}'{owner}"))


@click.command(cls=Verb)
@click.argument("thread")
@click.option(
    "--graph",
    metavar="MODULE:OBJECT",
    help="The graph or workflow that would run, or a function that makes it; its module is "
    "imported.",
)
@click.option("--world", metavar="FILE", help="The world of the run, as JSON; - is standard input.")
@click.option(
    "--ref", metavar="CHECKPOINT", help="The checkpoint: an id or seq:N; else the newest."
)
@click.option("--answer", metavar="JSON", help="The answer to a pending question.")
@click.option("--deliberate", metavar="TEXT", help="A reason, as resume takes it.")
@click.option(
    "--as", "other", metavar="NAME", help="The identity that would resume; its key is not needed."
)
@registry_option
@store_options("identity", "namespace")
@json_option
def resume(
    thread: str,
    *,
    graph: str | None,
    world: str | None,
    ref: str | None,
    answer: str | None,
    deliberate: str | None,
    other: str | None,
    registry_reference: str | None,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Show what the gate would decide about a resume of THREAD; a dry run.

    Releases no state, makes no request and records nothing. The exit status is 0 if the gate would
    allow the resume, 71 if others must approve it first, 70 if the gate would refuse it, and 41 if
    it would refuse only because a run is active or another session is too young to be taken over.
    """
    declared = declared_world(graph, world)
    given = None if answer is None else _answer(answer)
    registry = chosen_registry(registry_reference)
    opened = where.writing(None, registry) if other is None else where.reading(registry)
    with opened as store:
        handle = store.thread(thread)
        checkpoint = find_ref(handle, ref)
        with working("judging"):
            decision = handle.judge(
                world=declared,
                ref=checkpoint,
                answer=given,
                deliberate=deliberate,
                identity=other,
            )
            policy = store.policy
            release = decision.release
            shown = None if release is None else read_release(handle, release)
    if as_json:
        print_json({**decision_document(thread, decision, policy, shown), "identity": other})
    else:
        _print(thread, decision, policy, shown, is_named=declared is not None, other=other)
    status = Conflict.exit_status if decision.busy else _STATUSES[decision.outcome]
    click.get_current_context().exit(status)


def _answer(text: str) -> Any:
    found = parse_json(text.encode(errors="surrogateescape"), "--answer")
    if found is None:
        raise UsageError("--answer: null cannot be an answer")
    return plain_value(found, "--answer")


def _print(
    thread: str,
    decision: Decision,
    policy: Policy | None,
    shown: ShownRelease | None,
    *,
    is_named: bool,
    other: str | None,
) -> None:
    by = "" if other is None else f" by '{visible(other)}'"
    name = "no policy" if policy is None else f"policy '{visible(policy.name)}'"
    print_line(
        (_OUTCOMES[decision.outcome], f": resume of thread '{visible(thread)}'{by} under {name}")
    )
    print_line("")
    if decision.ordinary:
        print_line("An ordinary continuation: the owner, the newest checkpoint, nothing new.")
    else:
        print_table(
            ("rule", "asks for", "because"),
            [
                (
                    str(each.rule),
                    measure_text(each.measure),
                    shown_words(each.words),
                )
                for each in decision.reasons
            ],
        )
    if not is_named and any(each.rule is Rule.MISSING_WORLD for each in decision.reasons):
        print_lines(["", "To judge with what would run: --graph MODULE:OBJECT, or --world FILE."])
    if shown is not None:
        print_lines(["", Styled("What would be resumed:", "heading")])
        print_lines(release_lines(shown, registry_hint), hang=4)
        if lines := list(question_lines(shown)):
            print_lines(["", *lines])
    print_lines(["", Styled("A dry run: nothing was recorded, requested or released.", "quiet")])
