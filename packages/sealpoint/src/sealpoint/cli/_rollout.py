# SPDX-License-Identifier: Apache-2.0
"""`sealpoint rollout`: accept a change of the capabilities of runs once, for many threads.

The new world comes from a graph or workflow, which is imported, or from a file that the
application's own pipeline has made. A proposal names the differences between that world and those
that threads resume from, as far as the policy asks about them.
"""

import shlex
from datetime import datetime
from typing import Any

import click
import msgspec

from sealpoint.api import examine
from sealpoint.cli._input_files import write_document
from sealpoint.cli._request_display import print_examined
from sealpoint.cli.options import VerbGroup, json_option, reason_option, time_option
from sealpoint.cli.stores import (
    StoreOptions,
    declared_world,
    graph_world,
    operator_option,
    print_seen_by,
    store_options,
)
from sealpoint.cli.terminal import (
    print_document,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.errors import IntegrityError, UsageError
from sealpoint.gate import PlannedWorld, Request, RolloutPlan, Status
from sealpoint.signing import begins_digest
from sealpoint.views.documents import (
    plan_document,
    request_document,
    rollout_document,
    rollouts_document,
)
from sealpoint.views.requests import measure_text, rollout_standing
from sealpoint.views.words import Styled, count_text, short_hex, shown_name, when
from sealpoint.world import World, json_form, visible

_CLASS_COLUMNS = 12
_STDOUT = "-"


def _world_options(function: Any) -> Any:
    for option in (
        click.option(
            "--world",
            "world_file",
            metavar="FILE",
            help="The new world as JSON, such as rollout world writes; - is standard input.",
        ),
        click.option(
            "--graph",
            metavar="MODULE:OBJECT",
            help="The graph or workflow to run from now on, or a function that makes it; its "
            "module is imported.",
        ),
    ):
        function = option(function)
    return function


def _new_world(graph: str | None, world_file: str | None) -> World:
    found = declared_world(graph, world_file)
    if found is None:
        raise UsageError(
            "rollout: one of --graph and --world is needed, and neither was given",
            hint="Give --graph MODULE:OBJECT, or --world FILE.",
        )
    return found


@click.group(cls=VerbGroup)
def rollout() -> None:
    """Accept a change of capabilities once for many threads."""


@rollout.command("world")
@click.option(
    "--graph",
    required=True,
    metavar="MODULE:OBJECT",
    help="The graph or workflow, or a function that makes it; its module is imported.",
)
@click.option(
    "--output",
    metavar="FILE",
    default=_STDOUT,
    help="The file to write; without it, the command prints the world.",
)
def world_(graph: str, output: str) -> None:
    """Write the world of a graph or workflow as JSON, for plan --world and propose --world."""
    data = msgspec.json.format(graph_world(graph).encode(), indent=2) + b"\n"
    if output == _STDOUT:
        print_document(data)
    else:
        write_document(output, data, "world")


@rollout.command("plan")
@_world_options
@store_options("namespace")
@json_option
def plan(graph: str | None, world_file: str | None, *, where: StoreOptions, as_json: bool) -> None:
    """Show the worlds of all threads, how the new one differs, and what the policy requires.

    Writes nothing. The exit status is 30 if a thread cannot be read, or the anchor does not know
    it: nobody knows which checkpoint it would resume from.
    """
    with where.reading() as store:
        world = _new_world(graph, world_file)
        with working("reading the newest checkpoint of each thread"):
            found = store.rollouts.plan(world)
        namespace, policy = store.namespace, store.policy
    if as_json:
        print_json(plan_document(namespace, found))
    else:
        _print_plan(found, "none" if policy is None else policy.name)
        if asking := [each for each in found.worlds if _asks(each)]:
            words = ["--graph", graph] if graph is not None else ["--world", world_file or _STDOUT]
            if len(asking) > 1:
                words += [word for each in asking for word in ("--from", short_hex(each.digest))]
            line = f"sealpoint rollout propose {shlex.join(words)} --reason WHY"
            print_line(Styled(f"To have it accepted: {line}", "quiet"))
    if found.failed:
        click.get_current_context().exit(IntegrityError.exit_status)


def _asks(world: PlannedWorld) -> bool:
    return not world.left.passes


def _print_plan(found: RolloutPlan, policy: str) -> None:
    print_line((Styled("New world ", "heading"), short_hex(found.world.digest)))
    print_line(
        f"{count_text(found.threads, 'thread')}: {found.same:,} in this world already, "
        f"{found.undeclared:,} without a world, {found.empty:,} without a checkpoint."
    )
    print_line("")
    for each in found.worlds:
        _print_planned(each, policy)
    _print_void(found)
    if not found.worlds:
        print_line("No thread was saved in another world: nothing has to be accepted.")
    if found.failed:
        told = count_text(found.failed, "thread")
        print_line((Styled("NOT READABLE", "bad"), f": {told}, of which nothing is known:"))
        print_table(
            ("thread", "message"),
            [(short_hex(thread), visible(message)) for thread, message in found.failures],
        )


def _print_void(found: RolloutPlan) -> None:
    """Say which requests nobody can use any more once the new world runs."""
    if not found.void:
        return
    approvals = sum(len(each.approved_by) for each in found.void)
    count = count_text(len(found.void), "request")
    line = f": {count} with {count_text(approvals, 'approval')}, once runs declare the new world."
    print_line((Styled("VOID", "warning"), line))
    print_table(
        ("request", "thread", "waiting", "approved by"),
        [
            (
                each.short,
                shown_name(each.thread),
                visible(each.statement.asked_by),
                visible(", ".join(each.approved_by)) or "nobody",
            )
            for each in found.void
        ],
    )
    print_line("Have approved ones resume before you deploy; the others are asked about again.")
    print_line("")


def _print_planned(each: PlannedWorld, policy: str) -> None:
    names = ", ".join(f"'{shown_name(name)}'" for name in each.examples)
    count = count_text(each.threads, "thread")
    such = "" if each.threads <= len(each.examples) else "such as "
    title = Styled(f"World {short_hex(each.digest)}", "heading")
    print_lines([(title, f": {count}, {such}{names}")], hang=2)
    if each.diff is None:
        print_line("  It cannot be read any more, so it cannot be compared: each thread is asked.")
    else:
        print_lines(
            [
                ("  ", Styled(f"{'' if place else name:<{_CLASS_COLUMNS}}", "quiet"), line)
                for name, lines in each.diff.by_class().items()
                for place, line in enumerate(lines)
            ],
            hang=_CLASS_COLUMNS,
        )
        asked = ("  policy '", visible(policy), "' asks for: ", measure_text(each.measure))
        print_line(asked)
        for rollout in each.rollouts:
            some = "all of it" if each.left.passes else "a part of it"
            print_line(f"  rollout {short_hex(rollout)} accepts {some}")
    print_line("")


@rollout.command("propose")
@_world_options
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="WORLD",
    help="A world that threads resume from: the first 8 digits of its digest or more. Repeatable.",
)
@click.option("--all", "everything", is_flag=True, help="All worlds that rollout plan shows.")
@click.option(
    "--back",
    is_flag=True,
    help="Also accept the differences from the new world back to each of these, while both "
    "versions run.",
)
@click.option(
    "--from-requests",
    "requests",
    multiple=True,
    metavar="REQUEST",
    help="Instead of --graph or --world: the changes that open requests wait for, by the first 8 "
    "digits of their ids or more. Repeatable.",
)
@time_option(
    "--until",
    past=False,
    default="14d",
    show_default=True,
    help="When it ends: a day, a time with its zone, or a span such as 14d; 90 days at most.",
)
@reason_option
@operator_option("Whose key signs the request: an operator or a writer.")
@store_options("namespace")
@json_option
def propose(
    graph: str | None,
    world_file: str | None,
    *,
    sources: tuple[str, ...],
    everything: bool,
    back: bool,
    requests: tuple[str, ...],
    until: datetime,
    reason: str,
    signer: str,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Ask people to accept the differences of a new world from each world that you name.

    A rollout holds for these differences in every thread, whatever else is deployed. If the policy
    requires no more than a reason, it holds at once. --from-requests proposes the changes that
    threads already wait for.
    """
    with where.writing(signer) as store:
        if requests:
            _require_alone(graph, world_file, *sources, everything, back)
            with working("reading the requests"):
                asked = [store.request(each) for each in requests]
                made = store.rollouts.propose_for(asked, reason=reason, until=until)
        else:
            world = _new_world(graph, world_file)
            with working("reading the newest checkpoint of each thread"):
                found = store.rollouts.plan(world)
            chosen = _chosen(found, sources, everything=everything)
            pairs = [(before, world) for before in chosen]
            pairs += [(world, before) for before in chosen if back]
            with working("proposing"):
                made = store.rollouts.propose(pairs, reason=reason, until=until)
        examined = examine(store, made)
    if as_json:
        print_json(request_document(made))
        return
    print_examined(examined)
    print_line("")
    if made.status is Status.APPROVED:
        line = f" {made.short}: it holds until {when(made.statement.expires)}."
        print_line((Styled("Rolled out", "good"), line))
        return
    needed = count_text(made.needed, "person has", "people have")
    print_line((Styled("Proposed", "good"), f" rollout {made.short}; {needed} to approve it:"))
    print_line(f"  sealpoint approve {made.short} --identity YOU --reason WHY")


def _require_alone(*others: object) -> None:
    """Refuse other ways to name a change together with `--from-requests`."""
    if any(others):
        raise UsageError(
            "rollout: --from-requests names the changes, and something else was given that does",
            hint="Leave out --graph, --world, --from, --all and --back, or --from-requests.",
        )


def _chosen(found: RolloutPlan, sources: tuple[str, ...], *, everything: bool) -> list[World]:
    """Return the named worlds, or all of them with `--all`, or the only one."""
    readable = {each.digest: each.world for each in found.worlds if each.world is not None}
    asked = {each.digest for each in filter(_asks, found.worlds)}
    asking = {digest: world for digest, world in readable.items() if digest in asked}
    if everything and sources:
        raise UsageError("rollout: --from and --all cannot be combined")
    if sources:
        return [_named_world(readable, text) for text in sources]
    if not everything and len(asking) > 1:
        raise UsageError(
            f"rollout: expected --from with the worlds that are meant, found {len(asking)} to "
            f"choose from: {', '.join(map(short_hex, asking))}",
            hint="sealpoint rollout plan shows what differs in each; --all takes all of them.",
        )
    return list(asking.values())


def _named_world(worlds: dict[str, World], text: str) -> World:
    found = [world for digest, world in worlds.items() if digest.startswith(text)]
    if begins_digest(text) and len(found) == 1:
        return found[0]
    raise UsageError(
        f"--from: {text[:64]!r} does not name one of the worlds that threads are in by its first "
        "8 digits or more",
        hint="sealpoint rollout plan lists them.",
    )


@rollout.command("list")
@click.option("--all", "everything", is_flag=True, help="Also rollouts that have ended.")
@store_options("namespace")
@json_option
def list_(*, everything: bool, where: StoreOptions, as_json: bool) -> None:
    """List the rollouts that hold or wait for approval."""
    with where.reading() as store, working("reading the rollouts"):
        found, namespace = store.rollouts.list(), store.namespace
    living = (Status.OPEN, Status.APPROVED)
    shown = [each for each in found if everything or each.status in living]
    if as_json:
        print_json(rollouts_document(namespace, shown))
        return
    if shown:
        print_table(
            ("rollout", "accepts", "by", "until", "stands", "reason"),
            [_row(each) for each in shown],
        )
        print_line("")
    line = count_text(len(shown), "rollout") + f" in namespace '{visible(namespace)}'"
    ended = len(found) - len(shown)
    print_line(f"{line}; {ended:,} ended, which --all lists." if ended else f"{line}.")


def _row(request: Request) -> tuple[str | Styled, ...]:
    told = request.statement
    return (
        request.short,
        count_text(len(told.differences), "difference"),
        visible(told.asked_by),
        when(told.expires),
        rollout_standing(request),
        visible(told.reason),
    )


@rollout.command("show")
@click.argument("rollout_id", metavar="ROLLOUT")
@store_options("namespace")
@json_option
def show(rollout_id: str, *, where: StoreOptions, as_json: bool) -> None:
    """Show all of a ROLLOUT, named by its id, or its first 8 digits or more."""
    with where.reading() as store, working("reading the rollout"):
        examined = examine(store, store.rollouts.get(rollout_id))
    if as_json:
        print_json(rollout_document(examined.request))
    else:
        print_examined(examined)


@rollout.command("revoke")
@click.argument("rollout_id", metavar="ROLLOUT")
@reason_option
@operator_option("Whose key signs: an approver, or the proposer.")
@store_options("namespace")
@json_option
def revoke(
    rollout_id: str, *, reason: str, signer: str, where: StoreOptions, as_json: bool
) -> None:
    """End a ROLLOUT for good; runs that have already resumed are not stopped."""
    with where.writing(signer) as store:
        with working("revoking"):
            found = store.rollouts.get(rollout_id)
            store.rollouts.revoke(found.id, reason=reason)
        after = store.rollouts.get(found.id)
    if as_json:
        print_json({**json_form(request_document(after)), "anchor": where.anchor})
        return
    print_line((Styled("Revoked", "good"), f" rollout {after.short}, for good."))
    print_seen_by(where)
