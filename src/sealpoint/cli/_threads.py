# SPDX-License-Identifier: Apache-2.0
"""`sealpoint threads`: the names of all threads, or what such a list would leave out."""

import dataclasses

import click

from sealpoint.cli._names import shown_name
from sealpoint.cli._options import json_option
from sealpoint.cli._store import Where, store_options
from sealpoint.cli._terminal import (
    Styled,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.store import LeftOut, ThreadNames

__all__ = ["threads"]

_ID_DIGITS = 12


@click.command()
@click.option("--partial", is_flag=True, help="List what is there even if something is left out.")
@store_options("namespace")
@json_option
def threads(*, partial: bool, where: Where, as_json: bool) -> None:
    """List the threads of a namespace: all of them, or none.

    Complete means that every thread the anchor knows was found in the store, and that the store
    has no others. If something would be left out, nothing is listed and the exit status is 49;
    --partial lists the rest and says what is left out.
    """
    with where.reading() as store, working("listing threads"):
        found = store.threads(partial=partial)
        names = found.names
    if as_json:
        print_json(
            {
                "namespace": found.namespace,
                "threads": list(names),
                "complete": found.complete,
                "left_out": [dataclasses.asdict(each) for each in found.left_out],
            }
        )
        return
    if names:
        print_line(Styled("thread", "heading"))
        print_lines([shown_name(name) for name in names])
        print_line("")
    count = f"{len(names):,} thread{'' if len(names) == 1 else 's'} in namespace "
    count += f"{found.namespace!r}; "
    if found.complete:
        print_line((count, Styled("complete", "good"), ": the anchor knows no others."))
    else:
        _print_left_out(count, found)


def _print_left_out(count: str, found: ThreadNames) -> None:
    print_line((count, Styled("NOT COMPLETE", "bad"), f", {len(found.left_out):,} left out:"))
    print_line("")
    print_table(("left out", "because"), [_row(each) for each in found.left_out])
    print_line("")
    print_line("To see how anchor and store stand to each other, run: sealpoint anchor show")


def _row(each: LeftOut) -> tuple[str | Styled, Styled]:
    unnamed = Styled(f"(id {each.thread[:_ID_DIGITS]}...)", "quiet")
    name = unnamed if each.name is None else shown_name(each.name)
    if each.anchored:
        return name, Styled("the store lacks what the anchor has seen, or damaged it", "bad")
    return name, Styled("the anchor does not know it: sealpoint anchor adopt", "warning")
