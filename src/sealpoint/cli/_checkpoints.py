# SPDX-License-Identifier: Apache-2.0
"""`sealpoint log` and `sealpoint show`: the checkpoints of a thread."""

import json
import sys
from contextlib import suppress
from itertools import islice
from typing import Any

import click

from sealpoint.api import ShownRelease, read_release
from sealpoint.cli._json import json_fault, parse_json, read_document, write_document
from sealpoint.cli._options import Verb, json_option
from sealpoint.cli._references import (
    find_ref,
    load,
    ref_document,
    short_id,
    short_metadata,
    when,
)
from sealpoint.cli._statement import question_lines, release_document, release_lines
from sealpoint.cli._store import StoreOptions, chosen_registry, registry_option, store_options
from sealpoint.cli._terminal import (
    Styled,
    columns,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_note,
    print_table,
    working,
)
from sealpoint.cli._values import render
from sealpoint.errors import UnknownThread, UsageError
from sealpoint.store import CheckpointRef, Loaded

_LIMIT = 20


@click.command(cls=Verb)
@click.argument("thread")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=_LIMIT,
    show_default=True,
    help="How many to list at most; 0 lists all.",
)
@store_options("namespace")
@json_option
def log(thread: str, limit: int, *, where: StoreOptions, as_json: bool) -> None:
    """List the checkpoints of THREAD, newest first.

    Every link from the newest entry to the listed ones is verified on the way. A checkpoint whose
    state was given up by a prune is marked as pruned.
    """
    with where.reading() as store, working("reading the history"):
        history = store.thread(thread).history()
        refs = list(history if limit == 0 else islice(history, limit))
        more = limit > 0 and next(history, None) is not None
    if as_json:
        document = {"thread": thread, "checkpoints": [ref_document(ref) for ref in refs]}
        print_json({**document, "more": more})
    elif refs:
        _print_log(refs, more=more)
    else:
        print_line("No checkpoints: all that the thread held was erased.")


def _print_log(refs: list[CheckpointRef], *, more: bool) -> None:
    marked = any(ref.pruned for ref in refs)
    headings = ("seq", "time", "writer", "id", *(("state",) if marked else ()))
    rows = [_cells(ref, marked=marked) for ref in refs]
    taken = max((sum(map(len, row)) for row in rows), default=0) + 2 * len(headings)
    print_table(
        (*headings, "metadata"),
        [
            (*row, short_metadata(ref.metadata, columns() - taken))
            for row, ref in zip(rows, refs, strict=True)
        ],
    )
    notes = []
    if more:
        notes.append(f"... and older ones below entry {refs[-1].seq}; --limit 0 lists all.")
    if any(short_id(ref.id) != ref.id for ref in refs):
        notes.append("Random ids are shortened; seq:N names a checkpoint as well.")
    if notes:
        print_lines(["", *(Styled(note, "quiet") for note in notes)])


def _cells(ref: CheckpointRef, *, marked: bool) -> tuple[str, ...]:
    """A checkpoint's row; whether it has its state only where one of the rows has not."""
    state = ("pruned" if ref.pruned else "kept",) if marked else ()
    return (str(ref.seq), when(ref.time), ref.writer, short_id(ref.id), *state)


@click.command(cls=Verb)
@click.argument("thread")
@click.argument("checkpoint", required=False)
@click.option("--full", is_flag=True, help="Leave nothing out of a long state.")
@registry_option
@store_options("namespace")
@json_option
def show(
    thread: str,
    checkpoint: str | None,
    registry_reference: str | None,
    *,
    full: bool,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Show one checkpoint of THREAD, with its state and types.

    CHECKPOINT is an id or seq:N (or '#N', quoted for the shell); without it, the newest. A state
    with types of the application needs --registry.
    """
    with where.reading(chosen_registry(registry_reference)) as store:
        handle = store.thread(thread)
        loaded = load(handle, find_ref(handle, checkpoint))
        shown = read_release(handle, handle.release(loaded.ref))
    if as_json:
        print_json(_document(thread, loaded, shown))
    else:
        _print(thread, loaded, shown, full=full)


def _document(thread: str, loaded: Loaded, shown: ShownRelease) -> dict[str, Any]:
    is_json = json_fault(loaded.state) is None
    return {
        "thread": thread,
        **ref_document(loaded.ref),
        "world": loaded.world,
        "state": loaded.state if is_json else None,
        "state_is_json": is_json,
        "rendering": list(render(loaded.state, everything=True)),
        "release": release_document(shown),
    }


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
    for name, value in (("metadata", loaded.metadata or None), ("world", loaded.world)):
        print_line("")
        if value is None:
            print_line(Styled(f"{name}: none", "quiet"))
        else:
            print_lines(render(value, name=name, everything=full))
    print_line("")
    lines = list(render(loaded.state, everything=full))
    print_lines(lines)
    print_lines(["", Styled("What would be resumed with it:", "heading")])
    print_lines(release_lines(shown), hang=4)
    if asks := list(question_lines(shown)):
        print_lines(["", *asks])
    if not full and any("... and " in line for line in lines):
        print_line("")
        print_line(Styled("Where it says ... and more, --full shows everything.", "quiet"))


# ---------------------------------------------------------------------- state
# `sealpoint save` and `sealpoint load`: a state as JSON, in and out, never with a loss.


@click.command(cls=Verb)
@click.argument("thread")
@click.option("--file", metavar="FILE", help="Where the state is, as JSON; - is standard input.")
@click.option("--id", "checkpoint_id", metavar="ID", help="An id of your own for the checkpoint.")
@click.option("--metadata", metavar="JSON", help="A JSON object to keep beside the state.")
@click.option(
    "--deliberate", metavar="REASON", help="Why this is meant, where the policy asks for that."
)
@store_options("identity", "namespace")
@json_option
def save(
    thread: str,
    file: str | None,
    checkpoint_id: str | None,
    metadata: str | None,
    deliberate: str | None,
    *,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Save a JSON document as the newest checkpoint of THREAD.

    It is read from --file or standard input. Saving the same again under the same --id changes
    nothing. A worker that runs on the thread loses its session, as to any other writer. Where the
    policy asks for a reason to go on with the thread, give it with --deliberate.
    """
    if file is None and sys.stdin.isatty():
        raise UsageError(
            "state: expected JSON in --file or on standard input, found a terminal",
            hint="Write: sealpoint save THREAD --file state.json, or --file - to type it.",
        )
    beside = None
    if metadata is not None:
        beside = parse_json(metadata.encode(errors="surrogateescape"), "--metadata")
        if not isinstance(beside, dict):
            raise UsageError(f"--metadata: expected an object, found {type(beside).__name__}")
    state = parse_json(read_document(file or "-", "state"), "state")
    with where.writing() as store, working("saving"):
        handle = store.thread(thread)
        if deliberate is not None:
            with suppress(UnknownThread):  # a new thread is begun, not gone on with
                handle.resume(world=None, deliberate=deliberate)
        ref = handle.save(state, id=checkpoint_id, metadata=beside)
    if as_json:
        print_json({"thread": thread, **ref_document(ref)})
        return
    print_line(Styled("Saved.", "good"))
    print_fields(
        [
            ("thread", thread),
            ("id", ref.id),
            ("seq", str(ref.seq)),
            ("time", when(ref.time)),
            ("writer", ref.writer),
        ]
    )


@click.command("load", cls=Verb)
@click.argument("thread")
@click.argument("checkpoint", required=False)
@click.option("--output", metavar="FILE", help="Write the state to FILE as JSON.")
@registry_option
@store_options("namespace")
@json_option
def load_state(
    thread: str,
    checkpoint: str | None,
    output: str | None,
    registry_reference: str | None,
    *,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Print the state of a checkpoint of THREAD as JSON.

    CHECKPOINT is an id or seq:N (or '#N', quoted for the shell); without it, the newest. A state
    that JSON cannot express without loss is shown in words instead; with --json or --output it
    is an error.
    """
    with where.reading(chosen_registry(registry_reference)) as store:
        handle = store.thread(thread)
        loaded = load(handle, find_ref(handle, checkpoint))
    fault = json_fault(loaded.state)
    if fault is not None and (as_json or output is not None):
        raise UsageError(
            fault,
            hint="sealpoint show shows any state; to use it, load it in Python.",
        )
    if output is not None:
        text = json.dumps(loaded.state, indent=2)
        write_document(output, f"{text}\n".encode(), "--output")
        if as_json:
            print_json({"thread": thread, **ref_document(loaded.ref), "output": output})
        else:
            print_fields([("state", output), ("id", loaded.ref.id), ("seq", str(loaded.ref.seq))])
    elif fault is None:
        print_json(loaded.state)
    else:
        print_note((Styled("Not JSON", "warning"), f": {fault}. Shown for people to read:"))
        print_lines(render(loaded.state, everything=True))
