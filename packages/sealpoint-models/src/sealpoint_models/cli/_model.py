# SPDX-License-Identifier: Apache-2.0
"""`sealpoint model`: model files, without loading them, and the threads that vouch for them.

Only `convert` builds a tensor or needs torch. Digests are made of the bytes that are read, and
compared by `sealpoint_models`; a difference raises the same error as a load.
"""

import heapq
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from sealpoint.api import Store
from sealpoint.cli.options import VerbGroup, json_option, limit_option
from sealpoint.cli.references import find_ref, short_metadata
from sealpoint.cli.stores import StoreOptions, store_options
from sealpoint.cli.terminal import (
    columns,
    print_fields,
    print_json,
    print_line,
    print_lines,
    working,
)
from sealpoint.errors import UsageError
from sealpoint.store import CheckpointRef
from sealpoint.views.words import Styled, count_text, exact_size_text, short_hex, size_text, when
from sealpoint.world import json_form
from sealpoint_models import (
    ModelFile,
    SealedFile,
    SealedFolder,
    open_checkpoint,
    sealed_files,
    sealed_folders,
)
from sealpoint_models.cli._folder import (
    folder_document,
    folder_text,
    hashing,
    seal,
    verify_sealed_folder,
)
from sealpoint_models.cli._inspect_convert import convert, inspect


def hashed(opened: ModelFile) -> tuple[str, dict[str, str]]:
    """The root and the digests of all tensors, from the bytes; with a thread, verified."""
    with hashing() as progress:
        found = opened.digests(progress)
    return found.root.hex(), {name: digest.hex() for name, digest in found.tensors.items()}


_FILES_SHOWN = 20
_METADATA_CHARS_LEAST = 40


@click.group(cls=VerbGroup)
def model() -> None:
    """Inspect, convert, seal, verify and list model files and folders.

    Nothing that a file names is run. Only convert loads a file, and needs torch.
    """


model.add_command(inspect)
model.add_command(convert)
model.add_command(seal)


@model.command("verify")
@click.argument("file", metavar="PATH")
@click.option(
    "--thread",
    metavar="RUN",
    help="The thread of the training run that must vouch for it; without it, no run does.",
)
@click.option(
    "--ref",
    "checkpoint",
    metavar="ID",
    help="The checkpoint whose file it must be, an id or seq:N; without it, the newest.",
)
@click.option("--tensor", metavar="NAME", help="Read and verify only this tensor.")
@store_options("namespace", only_with="thread")
@json_option
def verify(
    file: str,
    *,
    thread: str | None,
    checkpoint: str | None,
    tensor: str | None,
    where: StoreOptions | None,
    as_json: bool,
) -> None:
    """Verify the model file or folder PATH by the thread of its run.

    PATH must be, byte for byte, what the newest checkpoint of the thread vouches for: the exit
    status is then 0, and otherwise that of the error, such as edited, rolled-back or
    file-not-sealed. A folder must have exactly the files that were sealed. Without --thread, the
    command only checks the format of a file, and computes digests.
    """
    if os.path.isdir(file):  # noqa: PTH112 (a text)
        if tensor is not None:
            raise UsageError("--tensor: expected the path of a file, found that of a folder")
        verify_sealed_folder(
            file, thread=thread, checkpoint=checkpoint, where=where, as_json=as_json
        )
        return
    if where is None or thread is None:
        if checkpoint is not None:
            raise UsageError("--ref: it needs --thread, whose checkpoint it names")
        with open_checkpoint(file) as opened:
            _report(file, opened, tensor, thread=None, as_json=as_json)
        return
    with where.reading() as store:
        ref = find_ref(store.thread(thread), checkpoint)
        with open_checkpoint(file, store=store, thread=thread, ref=ref) as opened:
            _report(file, opened, tensor, thread=thread, as_json=as_json, asked=checkpoint)


def _report(
    file: str,
    opened: ModelFile,
    tensor: str | None,
    *,
    thread: str | None,
    as_json: bool,
    asked: str | None = None,
) -> None:
    """Verify what is asked for, and say so."""
    document: dict[str, Any] = {
        "file": file,
        "sealed": thread is not None,
        "thread": thread,
        "checkpoint": _checkpoint_document(opened.ref),
        "bytes": opened.size,
        "tensors": len(opened.tensors),
    }
    if tensor is None:
        root, _ = hashed(opened)
        document |= {"root": root}
    else:
        with working("hashing"):
            digest = opened.verify_tensor(tensor).hex()
        document |= {"tensor": tensor, "digest": digest}
    if as_json:
        print_json(document)
    else:
        _print_verified(document, opened.ref, tensor, asked)


def _checkpoint_document(ref: CheckpointRef | None) -> dict[str, Any] | None:
    return None if ref is None else json_form(ref, "id", "seq", "time", "writer")


def _print_verified(
    document: dict[str, Any], ref: CheckpointRef | None, tensor: str | None, asked: str | None
) -> None:
    what = document["file"] if tensor is None else f"tensor {tensor!r} of {document['file']}"
    fields: list[tuple[str, str]] = []
    if ref is None:
        said = (Styled("Well-formed", "warning"), f": {what}. No thread was asked about it.")
    else:
        which = "the newest checkpoint" if asked is None else f"checkpoint {asked}"
        said = (Styled("All good", "good"), f": {what} is what {which} vouches for.")
        fields += [
            ("thread", document["thread"]),
            ("checkpoint", ref.id),
            ("seq", str(ref.seq)),
            ("time", when(ref.time)),
            ("writer", ref.writer),
        ]
    fields += [("size", exact_size_text(document["bytes"]))]
    if tensor is None:
        fields += [("tensors", f"{document['tensors']:,}"), ("root", document["root"])]
    else:
        fields += [("tensors", f"1 of {document['tensors']:,}; the others were not read")]
        fields += [("digest", document["digest"])]
    print_line(said)
    print_line("")
    print_fields(fields)


@model.command("list")
@click.argument("run")
@limit_option(_FILES_SHOWN)
@store_options("namespace")
@json_option
def list_(run: str, limit: int, *, where: StoreOptions, as_json: bool) -> None:
    """List the model files and folders of the thread RUN, newest first.

    Each has a checkpoint that vouches for it. The newest is marked with *: it is the one that loads
    unless you ask for another. The command reads no file.
    """
    with where.reading() as store, working("reading the history"):
        found = _sealed(store, run)
        files = list(found if limit == 0 else islice(found, limit))
        more = limit > 0 and next(found, None) is not None
        newest = next(store.thread(run).history(), None)
    if as_json:
        listed = [_file_document(each, newest) for each in files]
        print_json({"thread": run, "files": listed, "more": more})
        return
    for each in files:
        print_lines(_file_lines(each, newest), hang=4)
    if not files:
        print_line("No model files: no checkpoint of the thread vouches for one.")
    if more:
        older = f"... and older ones below entry {files[-1].ref.seq}; --limit 0 lists all."
        print_lines(["", Styled(older, "quiet")])


def _sealed(store: Store, run: str) -> Iterator[SealedFile | SealedFolder]:
    """The files and folders of a run, newest first."""
    both = (sealed_files(store, run), sealed_folders(store, run))
    return heapq.merge(*both, key=lambda each: -each.ref.seq)


def _file_document(each: SealedFile | SealedFolder, newest: CheckpointRef | None) -> dict[str, Any]:
    if isinstance(each, SealedFolder):
        return folder_document(each, newest)
    return {
        **(_checkpoint_document(each.ref) or {}),
        "newest": each.ref == newest,
        "pruned": each.ref.pruned,
        "file": each.file,
        "bytes": each.size,
        **json_form(each, "tensors", "root", "metadata"),
    }


def _file_lines(each: SealedFile | SealedFolder, newest: CheckpointRef | None) -> list[Any]:
    ref = each.ref
    mark = Styled("*", "good") if ref == newest else " "
    pruned = "; pruned: nothing vouches for it any more" if ref.pruned else ""
    if isinstance(each, SealedFolder):
        what = folder_text(each)
    else:
        what = f"{each.file}  {size_text(each.size)}  {count_text(each.tensors, 'tensor')}"
    lines: list[Any] = [
        (mark, f" seq {ref.seq}  {when(ref.time)}  {ref.writer}  {ref.id}"),
        f"    {what}  root {short_hex(each.root)}{pruned}",
    ]
    if each.metadata:
        room = max(columns() - 4, _METADATA_CHARS_LEAST)
        lines.append(f"    {short_metadata(each.metadata, room)}")
    return lines
