# SPDX-License-Identifier: Apache-2.0
"""`sealpoint accept-restore` and `roster`: restoring from a backup, with the losses recorded.

The commands show the losses before anything is accepted. On a terminal they ask a person; without
one they need `--yes`.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sealpoint.api import (
    AcceptedRestore,
    AnchorStanding,
    RestorePlan,
    ThreadOutcome,
    ThreadRestore,
)
from sealpoint.cli._input_files import read_document
from sealpoint.cli.options import Verb, VerbGroup, dry_run_option, json_option, yes_option
from sealpoint.cli.references import thread_text
from sealpoint.cli.stores import StoreOptions, store_options
from sealpoint.cli.terminal import (
    agree,
    print_columns,
    print_fields,
    print_json,
    print_line,
    print_table,
    print_text,
    thread_progress,
    working,
)
from sealpoint.config import replace_file
from sealpoint.errors import UsageError
from sealpoint.limits import ROSTER_COPY_BYTES_MAX
from sealpoint.views.words import Styled, count_text
from sealpoint.world import json_form

_ROWS_MAX = 100
_ALL = "\0"
"""The value of `--release` without a name: a text that cannot be typed."""
_WORDS = {
    ThreadOutcome.BEHIND: Styled("older: its newest entries are gone", "warning"),
    ThreadOutcome.BESIDE: Styled("OTHER: it diverged from what was seen here", "bad"),
    ThreadOutcome.DAMAGED: Styled("whole, and what lies after it does not verify", "warning"),
    ThreadOutcome.ERASED: Styled("erased since: nothing is kept, so it stays erased", "warning"),
    ThreadOutcome.GONE: Styled("GONE: nothing of it is left that verifies", "bad"),
    ThreadOutcome.LEFTOVER: Styled("whole, with entries that an earlier restore cut off"),
    ThreadOutcome.UNSEEN: Styled("never seen by this anchor: kept as it is", "quiet"),
}


@click.command("accept-restore", cls=Verb)
@click.option(
    "--reason",
    required=True,
    metavar="TEXT",
    help="Why; it is recorded, and every reader can see it.",
)
@click.option(
    "--release",
    "released",
    is_flag=False,
    flag_value=_ALL,
    multiple=True,
    metavar="[THREAD]",
    help="Let this thread resume from what is kept of it, without a reason of its own; repeatable. "
    "Without THREAD: all threads that lost something. A paused thread is never released.",
)
@dry_run_option
@yes_option
@click.option(
    "--identity",
    "identities",
    multiple=True,
    metavar="NAME",
    help="An operator who signs instead of the root, if the roster has a quorum; repeatable.",
)
@store_options()
@json_option
def accept_restore_(
    *,
    reason: str,
    released: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    identities: tuple[str, ...],
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Accept a store that was restored from a backup, and record what it lost.

    Stop all workers first. The newest roster must be in the store: sealpoint roster import. Needs
    the root key on this machine, or as many operators as the roster requires. Without --release,
    each thread that lost something needs a reason or approvals before it resumes. A thread whose
    pause was lost stays paused until an operator unpauses it.
    """
    release = _release(released)
    with working("comparing store and anchor") as report:
        plan = where.admin.restore.plan(progress=thread_progress(report))
    nothing = not plan.losses and not plan.leftovers
    goes_on = plan.released(release)
    if not as_json:
        _print_plan(plan, goes_on, releases=bool(release))
    done: AcceptedRestore | None = None
    if not (dry_run or nothing):
        question = "Are all workers stopped, and shall the store be accepted with these losses?"
        if not plan.losses:
            question = "Shall the entries that do not count be taken out of the store?"
        agree(question, "accepted", yes=yes, as_json=as_json)
        with working("accepting the restore") as report:
            done = where.admin.restore.accept(
                plan,
                reason=reason,
                release=release,
                identities=identities,
                progress=thread_progress(report),
            )
    if as_json:
        print_json(_document(plan, goes_on, done, reason))
    elif done is not None:
        _print_done(done, reason)
    elif not nothing:
        print_line("Nothing was accepted: this was a dry run.")


def _release(threads: tuple[str, ...]) -> bool | tuple[str, ...]:
    if _ALL not in threads:
        return threads
    if set(threads) != {_ALL}:
        raise UsageError(
            "accept-restore: --release with names and --release alone cannot be combined",
            hint="Leave out the names to release every thread that lost something.",
        )
    return True


def _print_plan(plan: RestorePlan, released: Sequence[ThreadRestore], *, releases: bool) -> None:
    if not plan.losses and not plan.leftovers:
        print_line("Nothing to accept: the store has everything that the anchor has seen.")
        return
    whole = plan.threads - len(plan.losses) - len(plan.leftovers)
    print_line(
        f"Of {count_text(plan.threads, 'thread')} that the anchor knows, {whole:,} stay whole."
    )
    for heading, threads in (
        ("To be accepted as it is in the store:", plan.losses),
        ("In the way of these threads:", plan.leftovers),
        ("Not known to the anchor of this machine:", plan.unseen),
    ):
        if threads:
            print_line("")
            print_line(Styled(heading, "heading"))
            _print_threads(threads)
    lost = sum(each.lost for each in plan.losses)
    beyond = sum(each.beyond for each in (*plan.losses, *plan.leftovers))
    print_line("")
    if lost:
        print_line(f"Lost for good, also if they come back: {_entries(lost)}.")
    if beyond:
        print_line(f"To be taken out of the store: {_entries(beyond)}.")
    _print_what_is_lost(plan)
    _print_released(released)
    if releases:
        _print_not_released(plan)
    asked = sum(not each.not_released for each in plan.losses) - len(released)
    if asked:
        print_line(
            f"These need a reason, or approvals, to resume: "
            f"{count_text(asked, 'thread')}. --release lets them resume without."
        )


def _print_what_is_lost(plan: RestorePlan) -> None:
    """Print the decisions in the lost entries, as far as the anchor or the store shows them."""
    lossy = [each for each in plan.losses if _loss_lines(each)]
    if lossy:
        print_line("")
        print_line(Styled("What the lost entries decided:", "heading"))
    for each in lossy[:_ROWS_MAX]:
        for line in _loss_lines(each):
            print_line((thread_text(each.name, each.thread), Styled(f": {line}", "warning")))
    if len(lossy) > _ROWS_MAX:
        rest = (
            f"... and {count_text(len(lossy) - _ROWS_MAX, 'thread')} more; --json lists them all."
        )
        print_line(Styled(rest, "quiet"))
    if lossy:
        print_line("")
    if plan.voids_rollouts:
        print_line(
            "This restore loses entries about rollouts, so every rollout is void once it is "
            "accepted. Propose again what you still want: sealpoint rollout propose"
        )


def _loss_lines(thread: ThreadRestore) -> list[str]:
    """Return the losses of a thread other than its states, one sentence each."""
    lines = [_pause_line(thread)] if thread.paused else []
    if thread.lost_handoff is not None:
        lines.append(
            f"the handoff in entry {thread.lost_handoff} is lost. An earlier owner has it again"
        )
    if thread.lost_session is not None:
        lines.append(f"a session that began after what is kept, in entry {thread.lost_session}")
    if thread.decisions:
        named = ", ".join(f"{each.kind} by {each.by} in {each.seq}" for each in thread.decisions)
        lines.append(f"lost decisions that the store still shows: {named}")
    if thread.lost_range is not None and thread.kept is not None:
        first, last = thread.lost_range
        where = f"entry {first}" if first == last else f"entries {first} to {last}"
        what = "revocations of rollouts" if thread.reserved else "requests, approvals and denials"
        lines.append(f"all {what} in {where} are gone")
    return lines


def _pause_line(thread: ThreadRestore) -> str:
    """Describe what happens to a pause that the anchor has seen."""
    if not thread.loses_pause:
        return "it was paused, and what is kept is paused too"
    if thread.kept is None:
        return "it was paused. Nothing of it is kept, so its name is free again"
    name = shlex.quote(thread.name)
    return (
        "it was paused, and the pause is lost. It stays paused until an operator decides: "
        f"sealpoint pause {name} --reason WHY, or sealpoint unpause {name} --reason WHY"
    )


def _print_not_released(plan: RestorePlan) -> None:
    """Print the cut threads that `--release` skips, each with the reason."""
    paused = [each for each in plan.losses if each.is_cut and each.not_released]
    if not paused:
        return
    print_line(Styled("Not released:", "heading"))
    for each in paused[:_ROWS_MAX]:
        print_line((thread_text(each.name, each.thread), f": {each.not_released}"))
    if len(paused) > _ROWS_MAX:
        rest = f"... and {len(paused) - _ROWS_MAX:,} more; --json lists them all."
        print_line(Styled(rest, "quiet"))
    print_line("")


def _print_released(released: Sequence[ThreadRestore]) -> None:
    if not released:
        return
    print_line("")
    print_line(Styled("Released, to resume without a reason of their own:", "heading"))
    shown = released[:_ROWS_MAX]
    print_table(
        ["thread", "resumes from", "lost"],
        [
            [thread_text(each.name, each.thread), f"entry {each.kept}", _lost(each)]
            for each in shown
        ],
    )
    if len(released) > _ROWS_MAX:
        rest = f"... and {len(released) - _ROWS_MAX:,} more; --json lists them all."
        print_line(Styled(rest, "quiet"))
    print_line("")


def _print_threads(threads: Sequence[ThreadRestore]) -> None:
    shown = threads[:_ROWS_MAX]
    print_columns(shown, _COLUMNS, optional=("lost", "taken out"))
    if len(threads) > _ROWS_MAX:
        counts = Counter(each.outcome for each in threads[_ROWS_MAX:])
        rest = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
        print_line(Styled(f"... and {rest}; --json lists them all.", "quiet"))
    for each in shown:
        if each.stopped and each.outcome is not ThreadOutcome.ERASED:
            why = Styled(f": {each.stopped.splitlines()[0]}", "quiet")
            print_line((thread_text(each.name, each.thread), why))


def _lost(thread: ThreadRestore) -> str:
    least = "at least " if thread.outcome is ThreadOutcome.BESIDE else ""
    return f"{least}{thread.lost:,}" if thread.lost else "-"


def _taken_out(thread: ThreadRestore) -> str:
    stays = thread.outcome is ThreadOutcome.UNSEEN or not thread.beyond
    return "-" if stays else f"{thread.beyond:,}"


_COLUMNS: dict[str, Callable[[ThreadRestore], str | Styled]] = {
    "thread": lambda each: thread_text(each.name, each.thread),
    "what became of it": lambda each: _WORDS[each.outcome],
    "kept up to": lambda each: "nothing" if each.kept is None else f"entry {each.kept}",
    "lost": _lost,
    "taken out": _taken_out,
}


def _entries(count: int) -> str:
    return count_text(count, "entry", "entries")


def _print_done(done: AcceptedRestore, reason: str) -> None:
    if done.entry is None:
        print_line(Styled("Taken out.", "good"))
    else:
        print_line(
            (
                Styled("Accepted", "good"),
                f", with the reason {reason!r}: epoch {done.epoch} begins.",
            )
        )
        fields = [("recorded in", f"entry {done.entry} of the store chain")]
        if done.released:
            fields.append(("released", count_text(len(done.released), "thread")))
        if stay_paused := len(done.plan.paused):
            fields.append(("stay paused", count_text(stay_paused, "thread")))
        print_fields(fields)
    if not done.compacted:
        print_line("The files still hold the removed entries: run sealpoint gc when nobody reads.")
    if done.in_the_way:
        print_line("")
        print_line(Styled("Entries were saved during the restore, and do not count:", "bad"))
        _print_threads(done.in_the_way)
        print_line("Stop the workers, and run this again to take it out of the store.")


def _document(
    plan: RestorePlan,
    released: Sequence[ThreadRestore],
    done: AcceptedRestore | None,
    reason: str,
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "threads": plan.threads,
        "losses": [_thread(each) for each in plan.losses],
        "leftovers": [_thread(each) for each in plan.leftovers],
        "unseen": [_thread(each) for each in plan.unseen],
        "released": [_thread(each) for each in released],
        "not_released": [
            _thread(each) for each in plan.losses if each.is_cut and each.not_released
        ],
        "rollouts_void": plan.voids_rollouts,
        "digest": plan.digest,
        "accepted": done is not None,
        "reason": reason,
    }
    if done is not None:
        found |= {
            **json_form(done, "entry", "epoch", "removed", "compacted"),
            "in_the_way": [_thread(each) for each in done.in_the_way],
        }
    return found


def _thread(thread: ThreadRestore) -> dict[str, Any]:
    return {
        **asdict(thread),
        "lost": thread.lost,
        "lost_range": thread.lost_range,
        "not_released": thread.not_released,
    }


@click.group(cls=VerbGroup)
def roster() -> None:
    """Back up the roster, and put it back into a restored store."""


@roster.command("export")
@click.argument("file", metavar="FILE")
@store_options()
@json_option
def export(file: str, *, where: StoreOptions, as_json: bool) -> None:
    """Write the whole store chain to FILE; - prints it.

    A restored store is accepted only with the newest roster. Sealpoint keeps a copy next to the
    keys; this is one more, for another place. It holds no secret, but it names people: only its
    owner can read the file.
    """
    with working("reading the roster"):
        data = where.admin.roster.export_copy()
    if file == "-":
        if as_json:
            raise UsageError("roster export: with --json it needs a FILE instead of -")
        print_text(data.decode())
        return
    replace_file(Path(file), data)
    if as_json:
        print_json({"file": file, "bytes": len(data)})
    else:
        print_fields([("roster", file), ("size", f"{len(data):,} bytes")])


@roster.command("import")
@click.argument("file", metavar="[FILE]", required=False)
@store_options()
@json_option
def import_(file: str | None, *, where: StoreOptions, as_json: bool) -> None:
    """Add entries of the store chain that the store lacks from FILE; - is standard input.

    Without FILE, from the newest roster that was verified here, which is kept next to the keys.
    Every entry is verified by the pin of this machine. Existing entries do not change.
    """
    data = None
    if file is not None:
        data = read_document(file, "roster export", bytes_max=ROSTER_COPY_BYTES_MAX)
    with working("verifying the roster"):
        count = where.admin.roster.import_copy(data)
        chain = where.admin.anchor.positions()[0]
    behind = chain.standing is AnchorStanding.STORE_BEHIND
    if as_json:
        print_json({"entries": count, "head": chain.head, "anchored": chain.anchored})
        return
    words = f"Put back: {_entries(count)}." if count else "Nothing was missing."
    print_line(Styled(words, "good"))
    if behind:
        print_line(
            f"The anchor has seen entry {chain.anchored} of the store chain, and it still ends at "
            f"entry {chain.head}: a newer roster export is needed."
        )
