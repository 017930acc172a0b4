# SPDX-License-Identifier: Apache-2.0
"""`sealpoint import agent-framework`: imports the files of a FileCheckpointStorage into a store.

It reports the result of every file; a refused file has its reason and the fix.
"""

from collections import defaultdict
from typing import Any

import click

from sealpoint.cli.options import Verb, dry_run_option, json_option
from sealpoint.cli.stores import (
    StoreOptions,
    chosen_registry,
    import_made,
    registry_option,
    store_options,
)
from sealpoint.cli.terminal import print_json, print_line, print_lines, print_table, working
from sealpoint.errors import FileError
from sealpoint.views.words import Span, Styled, count_text, shown_name
from sealpoint_agent_framework import import_checkpoints

_STYLES = {"imported": "good", "refused": "bad", "left out": "quiet", "already there": "quiet"}


@click.command("agent-framework", cls=Verb)
@click.argument("directory", metavar="DIR")
@click.option(
    "--workflow",
    "workflows",
    multiple=True,
    metavar="MODULE:OBJECT",
    help="A workflow whose types may be in the files, or a function that makes it; its module is "
    "imported. Repeatable.",
)
@registry_option
@click.option(
    "--main",
    metavar="MODULE",
    help="The module that was started as a program, whose types are those of __main__ in the "
    "files.",
)
@dry_run_option
@store_options("identity", "namespace")
@json_option
def agent_framework(
    directory: str,
    workflows: tuple[str, ...],
    registry_reference: str | None,
    main: str | None,
    *,
    dry_run: bool,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Import the files of a FileCheckpointStorage of Microsoft Agent Framework.

    Stop its workers first. The command unpickles and executes nothing in DIR: it builds types of
    the framework, and those that --workflow or --registry allows, from the data in the files, and
    refuses all else. Each run becomes a thread, owned by the identity that imports it. Imported
    checkpoints are marked, and need a reason or approvals before they resume. The exit status is 80
    if a file was refused.
    """
    registry = chosen_registry(registry_reference)
    named = [import_made(each) for each in workflows]
    with (
        where.reading(registry) if dry_run else where.writing(registry=registry) as store,
        working("importing") as report,
    ):
        found = import_checkpoints(
            store,
            directory,
            workflows=named,
            main=main,
            dry_run=dry_run,
            progress=lambda done, total: report(done, total, f"{done:,} of {total:,} files"),
        )
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)
    if found.refused:
        click.get_current_context().exit(FileError.exit_status)


def _print(report: Any) -> None:
    print_table(("file", "fate", "thread"), [_row(each) for each in report.files])
    print_line("")
    told = ", ".join(f"{count:,} {fate}" for fate, count in report.counts.items() if count)
    print_line(f"{count_text(len(report.files), 'file')}: {told or 'nothing to import'}.")
    _print_reasons(report)
    for note in report.notes:
        print_line(Styled(note, "warning"))
    if report.dry_run:
        print_line("Nothing was imported: this was a dry run.")


def _row(found: Any) -> tuple[Span, ...]:
    thread = "-" if found.thread is None else shown_name(found.thread)
    return found.file, Styled(str(found.fate), _STYLES[found.fate]), thread


def _print_reasons(report: Any) -> None:
    """Why files were refused or left out, and other notes; each text once."""
    reasons: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for each in report.files:
        if each.why is not None:
            reasons[each.why, each.hint].append(each.file)
    for (why, hint), files in reasons.items():
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        print_lines(["", f"{files[0]}{more}: {why}"], hang=4)
        if hint is not None:
            print_lines([f"    hint: {hint}"], hang=4)
