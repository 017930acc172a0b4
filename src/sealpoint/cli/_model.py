# SPDX-License-Identifier: Apache-2.0
"""`sealpoint model`: model files, without loading them, and the threads that vouch for them.

No verb here builds a tensor or needs torch. Digests are made of the bytes that are read, and
compared by `sealpoint.models`; what differs is the error that a load would raise.
"""

from itertools import islice
from typing import Any

import click

from sealpoint.cli._amounts import exact_size_text, number_text, size_text
from sealpoint.cli._model_info import hashed, limit_option, save_info
from sealpoint.cli._options import json_option
from sealpoint.cli._references import find_ref, short_metadata, when
from sealpoint.cli._store import Where, store_options
from sealpoint.cli._terminal import (
    Styled,
    columns,
    print_fields,
    print_json,
    print_line,
    print_lines,
    working,
)
from sealpoint.errors import UsageError
from sealpoint.models import ModelFile, SealedFile, open_checkpoint, sealed_files
from sealpoint.store import CheckpointRef

__all__ = ["model"]

_FILES_SHOWN = 20
_ROOT_DIGITS = 12
_METADATA_CHARS_LEAST = 40


@click.group()
def model() -> None:
    """Model files: what is in one, whether a run vouches for it, which ones it saved.

    Nothing is loaded, and torch is not needed.
    """


model.add_command(save_info)


@model.command("verify")
@click.argument("file")
@click.option(
    "--thread",
    metavar="RUN",
    help="The thread of the training run that has to vouch for it; without it, nobody does.",
)
@click.option(
    "--ref",
    "checkpoint",
    metavar="ID",
    help="The checkpoint whose file it has to be, an id or seq:N; without it, the newest.",
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
    where: Where | None,
    as_json: bool,
) -> None:
    """Verify the model file FILE by the thread of its run.

    It has to be, byte for byte, what the newest checkpoint of the thread vouches for: the exit
    status is 0 then, and otherwise that of the error, such as edited, rolled-back or
    file-not-sealed. Without --thread, only the format is checked, and digests are made.
    """
    if where is None or thread is None:
        if checkpoint is not None:
            raise UsageError("--ref: expected --thread, whose checkpoint it names")
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
    if ref is None:
        return None
    return {"id": ref.id, "seq": ref.seq, "time": ref.time.isoformat(), "writer": ref.writer}


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
def list_(run: str, limit: int, *, where: Where, as_json: bool) -> None:
    """List the model files of the thread RUN, newest first.

    Each has a checkpoint that vouches for it. The newest is marked with *: it is the one that
    loads unless another is asked for. No file is looked at.
    """
    with where.reading() as store, working("reading the history"):
        found = sealed_files(store, run)
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


def _file_document(each: SealedFile, newest: CheckpointRef | None) -> dict[str, Any]:
    return {
        **(_checkpoint_document(each.ref) or {}),
        "newest": each.ref == newest,
        "pruned": each.ref.pruned,
        "file": each.file,
        "bytes": each.size,
        "tensors": each.tensors,
        "root": each.root,
        "metadata": each.metadata,
    }


def _file_lines(each: SealedFile, newest: CheckpointRef | None) -> list[Any]:
    ref = each.ref
    mark = Styled("*", "good") if ref == newest else " "
    pruned = "; pruned: nothing vouches for it any more" if ref.pruned else ""
    tensors = number_text(each.tensors, "tensor", "tensors")
    root = each.root[:_ROOT_DIGITS]
    lines: list[Any] = [
        (mark, f" seq {ref.seq}  {when(ref.time)}  {ref.writer}  {ref.id}"),
        f"    {each.file}  {size_text(each.size)}  {tensors}  root {root}{pruned}",
    ]
    if each.metadata:
        room = max(columns() - 4, _METADATA_CHARS_LEAST)
        lines.append(f"    {short_metadata(each.metadata, room)}")
    return lines
