# SPDX-License-Identifier: Apache-2.0
"""`sealpoint threads`: the names of all threads, and whether the list is complete."""

import click

from sealpoint.cli._options import json_option
from sealpoint.cli._store import Where, store_options
from sealpoint.cli._terminal import Styled, print_json, print_line, print_lines, working

__all__ = ["threads"]


@click.command()
@store_options("namespace")
@json_option
def threads(*, where: Where, as_json: bool) -> None:
    """List the threads of a namespace, provably complete or not.

    Complete means that every thread the anchor knows was found in the store. A thread that only
    the store knows is not listed; see: sealpoint anchor show.
    """
    with where.reading() as store, working("listing threads"):
        found = store.threads()
        namespace = store.namespace
    if as_json:
        print_json(
            {"namespace": namespace, "threads": list(found.names), "complete": found.complete}
        )
        return
    if found.names:
        print_line(Styled("thread", "heading"))
        print_lines(found.names)
        print_line("")
    count = f"{len(found):,} thread{'' if len(found) == 1 else 's'} in namespace {namespace!r}; "
    if found.complete:
        print_line((count, Styled("complete", "good"), ": the anchor knows no others."))
    else:
        print_line(
            (
                count,
                Styled("not provable", "bad"),
                ": the store lacks threads that the anchor knows, or they cannot be read.",
            )
        )
        print_line("To see which, run: sealpoint anchor show")
