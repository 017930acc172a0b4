# SPDX-License-Identifier: Apache-2.0
"""`sealpoint prune`, `erase` and `gc`: give up old states, erase a thread, free space.

The commands list what they will remove before they remove anything. On a terminal they ask a
person; without one they need `--yes`, so that no script removes anything by accident.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from sealpoint.cli.options import (
    Verb,
    dry_run_option,
    json_option,
    optional_reason_option,
    time_option,
    yes_option,
)
from sealpoint.cli.references import find_ref
from sealpoint.cli.stores import StoreOptions, operator_option, store_options
from sealpoint.cli.terminal import (
    agree,
    print_json,
    print_line,
    print_table,
    thread_progress,
    working,
)
from sealpoint.errors import IntegrityError
from sealpoint.gate import Thread
from sealpoint.store import CheckpointRef, Collected, Erasure, Pruning
from sealpoint.views.words import Styled, count_text, short_hex, short_id, size_text, when

_ROWS_MAX = 20

_compact_option = click.option(
    "--no-compact",
    "compact",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Leave the files at their size, which is faster.",
)


@click.command(cls=Verb)
@click.argument("thread")
@click.option(
    "--keep-last",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep the newest N checkpoints that still have their state.",
)
@time_option(
    "--keep-since",
    past=True,
    help="Keep what was saved since: 2026-01-31, 2026-01-31T09:30:00Z, or an age such as 30d.",
)
@click.option(
    "--keep", multiple=True, metavar="ID", help="Keep this checkpoint, an id or seq:N; repeatable."
)
@optional_reason_option
@dry_run_option
@yes_option
@_compact_option
@store_options("identity", "namespace")
@json_option
def prune(
    thread: str,
    keep_last: int | None,
    keep_since: datetime | None,
    keep: tuple[str, ...],
    reason: str | None,
    *,
    dry_run: bool,
    yes: bool,
    compact: bool,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Delete the states of older checkpoints of THREAD and free their space.

    A checkpoint stays if any --keep option names it; the newest always stays. A signed entry
    records the others, which are still listed without their states. A worker may keep saving.
    """
    with where.reading() if dry_run else where.writing() as store:
        handle = store.thread(thread)
        named = [_found(handle, each) for each in keep]

        def run(*, dry: bool) -> Pruning:
            with working("looking at the thread" if dry else "pruning"):
                return handle.prune(
                    keep_last=keep_last,
                    keep_since=keep_since,
                    keep=named,
                    reason=reason,
                    dry_run=dry,
                    compact=compact,
                )

        found = run(dry=True)
        nothing = not found.pruned and not found.blobs
        if not as_json:
            _print_plan(found)
        if not (dry_run or nothing):
            agree("Shall they be pruned?", "pruned", yes=yes, as_json=as_json)
            found = run(dry=False)
    done = not (dry_run or nothing)
    if as_json:
        refs = found.pruned
        print_json({"thread": thread, "checkpoints": refs, **_counts(found), "done": done})
    elif done:
        gone = _things(count_text(len(found.pruned), "state"), found)
        print_line((Styled("Pruned", "good"), f": {gone}."))
    elif not nothing:
        print_line("Nothing was pruned: this was a dry run.")


def _print_plan(planned: Pruning) -> None:
    if planned.pruned:
        print_line("To lose their state for good:")
        _print_refs(planned.pruned)
        print_line("")
    elif planned.blobs:
        print_line("Every checkpoint is kept; something that none of them needs can go.")
    else:
        print_line("Nothing to prune: every checkpoint is kept.")
        return
    gone = _things(count_text(len(planned.pruned), "state"), planned)
    print_line(f"{gone} would go.")


@click.command(cls=Verb)
@click.argument("thread")
@click.option(
    "--reason", required=True, metavar="TEXT", help="Why; it is recorded and stays readable."
)
@dry_run_option
@yes_option
@operator_option("The identity whose key signs; it needs the privacy role.")
@store_options("namespace")
@json_option
def erase(
    thread: str,
    reason: str,
    signer: str,
    *,
    dry_run: bool,
    yes: bool,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Remove everything that THREAD ever held from the store and its files.

    States, metadata, ids and the name go; signed headers stay and prove that something was there,
    by whom and when. You cannot undo this. A later save begins a new generation.
    """
    with where.reading() if dry_run else where.writing(signer) as store:
        handle = store.thread(thread)
        with working("looking at the thread"):
            found = handle.erase(reason=reason, dry_run=True)
            refs = list(handle.history())
        nothing = not found.entries and not found.blobs
        if not as_json:
            _print_erasure_plan(refs, found)
        if not (dry_run or nothing):
            question = f"Shall all that thread {thread!r} ever held be erased for good?"
            agree(question, "erased", yes=yes, as_json=as_json)
        if not dry_run:
            # Even if nothing is left: an interrupted erasure may not have compacted.
            with working("erasing"):
                found = handle.erase(reason=reason)
    if as_json:
        counts = {"entries": found.entries, **_counts(found)}
        print_json({"thread": thread, **counts, "done": not dry_run})
    elif dry_run:
        print_line("Nothing was erased: this was a dry run.")
    elif not nothing:
        gone = _things(count_text(found.entries, "body", "bodies"), found)
        print_line((Styled("Erased", "good"), f": {gone}; entry {found.entry} records it."))


def _print_erasure_plan(refs: Sequence[CheckpointRef], planned: Erasure) -> None:
    if not planned.entries and not planned.blobs:
        print_line("Nothing is left to erase: the thread holds nothing.")
        return
    if refs:
        print_line("To be removed for good, with everything else in the thread:")
        _print_refs(refs)
        print_line("")
    gone = _things(count_text(planned.entries, "body", "bodies"), planned)
    print_line(f"{gone} would go.")


@click.command(cls=Verb)
@dry_run_option
@_compact_option
@store_options("identity")
@json_option
def gc(*, dry_run: bool, compact: bool, where: StoreOptions, as_json: bool) -> None:
    """Remove data that no thread needs any more, in all namespaces, and make the files smaller.

    Interrupted prunes and erasures and incomplete saves leave such data behind. A thread that does
    not verify stays as it is, and the exit status is then 30.
    """
    with (
        where.reading() if dry_run else where.writing() as store,
        working("collecting garbage") as report_progress,
    ):
        progress = thread_progress(report_progress)
        found = store.gc(dry_run=dry_run, compact=compact, progress=progress)
    if as_json:
        failures = [{"thread": thread, "message": message} for thread, message in found.failures]
        print_json({**asdict(found), "failures": failures, "done": not dry_run})
    else:
        _print_collected(found, dry_run=dry_run)
    if found.failures:
        click.get_current_context().exit(IntegrityError.exit_status)


def _print_collected(found: Collected, *, dry_run: bool) -> None:
    if found.failures:
        print_table(
            ("left as it is", "because"),
            [(short_hex(thread), message) for thread, message in found.failures],
        )
        print_line("")
    looked = f"{count_text(found.threads, 'thread')} looked at"
    if not found.blobs:
        print_line(f"{looked}: nothing to remove.")
    elif dry_run:
        print_line(f"{looked}: {_blobs(found.blobs, found.size_bytes)} would go.")
    else:
        gone = f": {_blobs(found.blobs, found.size_bytes)}; {looked}."
        print_line((Styled("Removed", "good"), gone))
    if dry_run:
        print_line("Nothing was removed: this was a dry run.")
    if found.failures:
        count = count_text(len(found.failures), "thread does", "threads do")
        print_line((Styled(f"{count} not verify", "bad"), ": sealpoint verify says more."))


def _found(thread: Thread, text: str) -> "CheckpointRef | str":
    found = find_ref(thread, text)
    return text if found is None else found


def _print_refs(refs: Sequence[CheckpointRef]) -> None:
    print_table(
        ("seq", "time", "writer", "id"),
        [(str(ref.seq), when(ref.time), ref.writer, short_id(ref.id)) for ref in refs[:_ROWS_MAX]],
    )
    if len(refs) > _ROWS_MAX:
        more = f"... and {len(refs) - _ROWS_MAX:,} older ones; --json lists all."
        print_line(Styled(more, "quiet"))


def _counts(found: Pruning | Erasure) -> dict[str, Any]:
    return {"blobs": found.blobs, "size_bytes": found.size_bytes, "entry": found.entry}


def _things(first: str, found: Pruning | Erasure) -> str:
    """Return what will be removed, in words; blobs only if there are some."""
    return f"{first} and {_blobs(found.blobs, found.size_bytes)}" if found.blobs else first


def _blobs(count: int, size_bytes: int) -> str:
    return f"{count_text(count, 'blob')} of {size_text(size_bytes)}"
