# SPDX-License-Identifier: Apache-2.0
"""`sealpoint log` and `sealpoint show`: the checkpoints of a thread."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import click

from sealpoint.api import ShownRelease, Store, read_release
from sealpoint.audit import TimelineEntry
from sealpoint.cli._request_display import registry_hint
from sealpoint.cli.options import Verb, json_option, limit_option
from sealpoint.cli.references import find_ref, load, short_metadata
from sealpoint.cli.stores import StoreOptions, shown_registry, shown_registry_options, store_options
from sealpoint.cli.terminal import (
    columns,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.store import CheckpointRef, Loaded
from sealpoint.views.documents import checkpoint_document
from sealpoint.views.nodes import finished_nodes, lane_text
from sealpoint.views.requests import question_lines, release_lines
from sealpoint.views.values import render
from sealpoint.views.words import Styled, short_id, when

_LIMIT = 20
_PAGE, _BELOW = 100, 10


@click.command(cls=Verb)
@click.argument("thread")
@limit_option(_LIMIT)
@store_options("namespace")
@json_option
def log(thread: str, limit: int, *, where: StoreOptions, as_json: bool) -> None:
    """List the checkpoints of THREAD, newest first.

    Verifies every link from the newest entry to the listed ones. For a graph, the list names the
    subgraph of each checkpoint as its lane, and the nodes that finished before it. A checkpoint
    whose state was deleted by a prune is marked as pruned.
    """
    with where.reading() as store, working("reading the history"):
        history = store.thread(thread).history()
        refs = list(history if limit == 0 else islice(history, limit))
        more = limit > 0 and next(history, None) is not None
        nodes = {} if as_json or not refs else _finished(store, thread, refs)
    if as_json:
        print_json({"thread": thread, "checkpoints": refs, "more": more})
    elif refs:
        _print_log(refs, nodes, more=more)
    else:
        print_line("No checkpoints: all that the thread held was erased.")


def _finished(store: Store, thread: str, refs: list[CheckpointRef]) -> dict[tuple[str, str], str]:
    """Return the nodes that finished after each checkpoint, as far as the list goes."""
    watch, entries = store.watch(), list[TimelineEntry]()
    while not entries or entries[-1].record.seq > max(refs[-1].seq - _BELOW, 0):
        page = watch.timeline(thread, offset=len(entries), limit=_PAGE)
        entries += page.entries
        if not page.entries:
            break
    return finished_nodes(entries)


def _print_log(
    refs: list[CheckpointRef], nodes: Mapping[tuple[str, str], str], *, more: bool
) -> None:
    marked = any(ref.pruned for ref in refs)
    optional = {"lane": any(ref.lane for ref in refs), "after": bool(nodes), "state": marked}
    shown = [name for name, is_shown in optional.items() if is_shown]
    headings = ("seq", "time", "writer", "id", *shown)
    rows = [_cells(ref, nodes, shown) for ref in refs]
    taken = max((sum(map(len, row)) for row in rows), default=0) + 2 * len(headings)
    print_table(
        (*headings, "metadata"),
        [
            (*row, short_metadata(metadata, columns() - taken))
            for row, metadata in zip(rows, _telling_first(refs), strict=True)
        ],
    )
    notes = []
    if more:
        notes.append(f"... and older ones below entry {refs[-1].seq}; --limit 0 lists all.")
    if any(short_id(ref.id) != ref.id for ref in refs):
        notes.append(
            "Ids are shortened; their first 8 digits name a checkpoint, and so does seq:N."
        )
    if notes:
        print_lines(["", *(Styled(note, "quiet") for note in notes)])


def _telling_first(refs: list[CheckpointRef]) -> list[dict[str, Any]]:
    """Return the metadata of checkpoints; entries that are the same for all come last."""
    first = refs[0].metadata
    same = {
        key
        for key, value in first.items()
        if len(refs) > 1 and all(ref.metadata.get(key) == value for ref in refs)
    }
    return [
        {key: ref.metadata[key] for key in sorted(ref.metadata, key=same.__contains__)}
        for ref in refs
    ]


def _cells(
    ref: CheckpointRef, nodes: Mapping[tuple[str, str], str], shown: list[str]
) -> tuple[str, ...]:
    """Return a checkpoint's row, with those of the optional columns that are shown."""
    optional = {
        "lane": lane_text(ref.lane) or "-",
        "after": nodes.get((ref.lane, ref.parent or ""), "-"),
        "state": "pruned" if ref.pruned else "kept",
    }
    told = (optional[name] for name in shown)
    return (str(ref.seq), when(ref.time), ref.writer, short_id(ref.id), *told)


@click.command(cls=Verb)
@click.argument("thread")
@click.argument("checkpoint", required=False)
@click.option("--full", is_flag=True, help="Print a long state in full.")
@shown_registry_options
@store_options("namespace")
@json_option
def show(
    thread: str,
    checkpoint: str | None,
    registry_reference: str | None,
    *,
    untyped: bool | None,
    full: bool,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Show one checkpoint of THREAD, with its state and types.

    CHECKPOINT is an id or seq:N (or '#N', quoted for the shell); without it, the newest. A state
    with types of the application is shown as plain data, or typed with --registry.
    """
    untyped = not as_json if untyped is None else untyped
    with where.reading(shown_registry(registry_reference, untyped=untyped)) as store:
        handle = store.thread(thread)
        loaded = load(handle, find_ref(handle, checkpoint))
        shown = read_release(handle, handle.release(loaded.ref))
    if as_json:
        print_json(checkpoint_document(thread, loaded, shown))
    else:
        _print(thread, loaded, shown, full=full)


def _print(thread: str, loaded: Loaded, shown: ShownRelease, *, full: bool) -> None:
    ref = loaded.ref
    print_fields(
        [
            ("thread", thread),
            ("id", ref.id),
            ("seq", str(ref.seq)),
            ("time", when(ref.time)),
            ("writer", ref.writer),
        ]
    )
    print_line("")
    lines = list(render(loaded.state, everything=full))
    print_lines(lines)
    for name, value in (("metadata", loaded.metadata or None), ("world", loaded.world)):
        print_line("")
        if value is None:
            print_line(Styled(f"{name}: none", "quiet"))
        else:
            print_lines(render(value, name=name, everything=full))
    print_lines(["", Styled("What would be resumed with it:", "heading")])
    print_lines(release_lines(shown, registry_hint), hang=4)
    if asks := list(question_lines(shown)):
        print_lines(["", *asks])
    if not full and any("... and " in line for line in lines):
        print_line("")
        print_line(Styled("Where it says ... and more, --full shows everything.", "quiet"))
