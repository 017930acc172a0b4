# SPDX-License-Identifier: Apache-2.0
"""`sealpoint diff`: what changed between two checkpoints of a thread."""

from collections import Counter
from collections.abc import Iterator

import click

from sealpoint.cli.options import Verb, json_option
from sealpoint.cli.references import find_pair, load
from sealpoint.cli.stores import StoreOptions, shown_registry, shown_registry_options, store_options
from sealpoint.cli.terminal import print_fields, print_json, print_line, print_lines, working
from sealpoint.store import Loaded
from sealpoint.views.changes import Change, compare_checkpoints
from sealpoint.views.documents import diff_document
from sealpoint.views.words import Styled, short_id, when

_LIMIT = 100
_STYLES = {"changed": "warning", "added": "good", "removed": "bad"}


@click.command(cls=Verb)
@click.argument("thread")
@click.argument("older", metavar="[FROM]", required=False)
@click.argument("newer", metavar="[TO]", required=False)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=_LIMIT,
    show_default=True,
    help="How many changes to print at most; 0 prints all. With --json, all are printed.",
)
@shown_registry_options
@store_options("namespace")
@json_option
def diff(
    thread: str,
    older: str | None,
    newer: str | None,
    limit: int,
    registry_reference: str | None,
    *,
    untyped: bool | None,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Show what changed in THREAD from one checkpoint to another.

    FROM and TO are ids or seq:N (or '#N', quoted for the shell). TO is the newest unless given,
    FROM the one before TO. Compares state, metadata and world.
    """
    registry = shown_registry(
        registry_reference, untyped=not as_json if untyped is None else untyped
    )
    with where.reading(registry) as store:
        handle = store.thread(thread)
        first, second = find_pair(handle, older, newer)
        before, after = load(handle, first), load(handle, second)
    with working("comparing"):
        changes = list(compare_checkpoints(before, after, registry.encode))
    if as_json:
        print_json(diff_document(thread, before.ref, after.ref, changes))
    else:
        _print(before, after, changes, limit)


def _print(before: Loaded, after: Loaded, changes: list[Change], limit: int) -> None:
    width = max(len(short_id(ref.id)) for ref in (before.ref, after.ref))
    print_fields(
        [
            (name, f"seq:{ref.seq}  {short_id(ref.id):<{width}}  {when(ref.time)}  {ref.writer}")
            for name, ref in (("from", before.ref), ("to", after.ref))
        ]
    )
    print_line("")
    if not changes:
        print_line("Nothing changed.")
        return
    counts = Counter(str(change.kind) for change in changes)
    print_line(", ".join(f"{counts[kind]:,} {kind}" for kind in _STYLES if counts[kind]))
    shown = changes if limit == 0 else changes[:limit]
    for change in shown:
        print_line("")
        print_lines(_lines(change))
    if len(shown) < len(changes):
        print_line("")
        left = len(changes) - len(shown)
        print_line(Styled(f"... and {left:,} more; --limit 0 shows all.", "quiet"))


def _lines(change: Change) -> Iterator[str | tuple[str | Styled, ...]]:
    note = "" if change.note is None else f"  ({change.note})"
    yield Styled(f"{change.kind:<8}", _STYLES[change.kind]), change.path, Styled(note, "quiet")
    if change.path_before is not None:
        yield (Styled(f"  was at {change.path_before}", "quiet"),)
    if change.old is not None:
        yield (Styled(f"  - {change.old}", "bad" if change.kind == "removed" else ""),)
    if change.new is not None:
        yield (Styled(f"  + {change.new}", "good"),)
