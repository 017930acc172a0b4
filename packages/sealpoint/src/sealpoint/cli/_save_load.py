# SPDX-License-Identifier: Apache-2.0
"""`sealpoint save` and `sealpoint load`: a state as JSON, in and out, without loss."""

import json
import sys
from contextlib import suppress
from typing import Any

import click

from sealpoint.cli._input_files import parse_json, read_document, write_document
from sealpoint.cli.options import Verb, json_option
from sealpoint.cli.references import find_ref, load
from sealpoint.cli.stores import StoreOptions, shown_registry, shown_registry_options, store_options
from sealpoint.cli.terminal import (
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_note,
    print_text,
    working,
)
from sealpoint.errors import UnknownThread, UsageError
from sealpoint.views.values import json_fault, render, untyped_json
from sealpoint.views.words import Styled, when
from sealpoint.world import json_form


@click.command(cls=Verb)
@click.argument("thread")
@click.option(
    "--file", metavar="FILE", help="The file with the state, as JSON; - is standard input."
)
@click.option("--id", "checkpoint_id", metavar="ID", help="Your own id for the checkpoint.")
@click.option("--metadata", metavar="JSON", help="A JSON object to save with the state.")
@click.option("--deliberate", metavar="REASON", help="The reason, where the policy requires one.")
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

    Reads --file or standard input. Saving the same document again under the same --id changes
    nothing. The save ends the session of a worker that runs on the thread, as a save by any other
    writer does. Where the policy requires a reason to continue the thread, give it with
    --deliberate.
    """
    if file is None and sys.stdin.isatty():
        raise UsageError(
            "state: standard input is a terminal; give the JSON in --file or through a pipe",
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
            with suppress(UnknownThread):  # a new thread has nothing to resume
                handle.resume(world=None, deliberate=deliberate)
        ref = handle.save(state, id=checkpoint_id, metadata=beside)
    if as_json:
        print_json({"thread": thread, **json_form(ref)})
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
@shown_registry_options
@store_options("namespace")
@json_option
def load_state(
    thread: str,
    checkpoint: str | None,
    output: str | None,
    registry_reference: str | None,
    *,
    untyped: bool | None,
    where: StoreOptions,
    as_json: bool,
) -> None:
    """Print the state of a checkpoint of THREAD as JSON.

    CHECKPOINT is an id or seq:N (or '#N', quoted for the shell); without it, the newest. If JSON
    cannot express the state without loss, the command describes it in words; with --json or
    --output it ends with an error. A value of an unknown type is an object with "type" and
    "fields"; with --json or --output only with --untyped, or if it is of a framework.
    """
    if untyped is None:
        untyped = not as_json and output is None
    with where.reading(shown_registry(registry_reference, untyped=untyped)) as store:
        handle = store.thread(thread)
        loaded = load(handle, find_ref(handle, checkpoint))
    state = untyped_json(loaded.state)
    fault = json_fault(state)
    if fault is not None and (as_json or output is not None):
        raise UsageError(
            fault,
            hint="sealpoint show shows any state; to use it, load it in Python.",
        )
    if output is not None:
        write_document(output, _exact(state).encode(), "--output")
        if as_json:
            print_json({"thread": thread, **json_form(loaded.ref), "output": output})
        else:
            print_fields([("state", output), ("id", loaded.ref.id), ("seq", str(loaded.ref.seq))])
    elif fault is None:
        print_text(_exact(state))
    else:
        print_note((Styled("Not JSON", "warning"), f": {fault}. Shown for people to read:"))
        print_lines(render(loaded.state, everything=True))


def _exact(state: Any) -> str:
    """Encode a state as JSON with all of its characters, so that reading it back gives the same."""
    return json.dumps(state, indent=2) + "\n"
