# SPDX-License-Identifier: Apache-2.0
"""`sealpoint model`: model files, without loading them, and the threads that vouch for them.

No verb here builds a tensor or needs torch. Digests are made of the bytes that are read, and
compared by `sealpoint.models`; what differs is the error that a load would raise.
"""

from itertools import islice
from typing import Any

import click

from sealpoint.cli._options import Verb, VerbGroup, json_option, limit_option
from sealpoint.cli._references import find_ref, short_metadata
from sealpoint.cli._store import StoreOptions, store_options
from sealpoint.cli._terminal import (
    columns,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.errors import UsageError
from sealpoint.models import ModelFile, SealedFile, Tensor, open_checkpoint, sealed_files
from sealpoint.store import CheckpointRef
from sealpoint.views.values import render
from sealpoint.views.words import Styled, count_text, exact_size_text, short_hex, size_text, when
from sealpoint.world import json_form

# `sealpoint model save-info`: what is in a model file, without loading it.


_FORMAT = "safetensors"
_TENSORS_SHOWN = 100


@click.command("save-info", cls=Verb)
@click.argument("file")
@limit_option(_TENSORS_SHOWN)
@json_option
def save_info(file: str, limit: int, *, as_json: bool) -> None:
    """Show what is in the model file FILE, without loading it.

    The header is read by the strict rules that a load applies, and every byte is hashed. Who
    wrote the file, this does not say: see sealpoint model verify.
    """
    with open_checkpoint(file) as opened:
        root, digests = hashed(opened)
        document = _info(file, opened, root)
        tensors = opened.tensors
    if as_json:
        described = [_tensor_document(tensor, digests[tensor.name]) for tensor in tensors]
        print_json({**document, "tensors": described})
        return
    print_fields(
        [
            ("file", file),
            ("format", _FORMAT),
            ("holds", _holds(whole=document["training_state"])),
            ("size", exact_size_text(document["bytes"])),
            ("tensors", f"{len(tensors):,}"),
            ("root", root),
        ]
    )
    if document["metadata"]:
        print_line("")
        print_lines(render(document["metadata"], name="metadata"))
    if tensors:
        print_line("")
        print_table(
            ("dtype", "tensors", "bytes"),
            [
                (dtype, f"{each['tensors']:,}", f"{each['bytes']:,}")
                for dtype, each in document["dtypes"].items()
            ],
        )
        print_line("")
        _print_tensors(tensors, len(tensors) if limit == 0 else limit)


def hashed(opened: ModelFile) -> tuple[str, dict[str, str]]:
    """The root and the digests of all tensors, from the bytes; with a thread, verified."""
    with working("hashing") as report:

        def progress(done: int, total: int) -> None:
            report(done, total, f"{size_text(done)} of {size_text(total)}")

        found = opened.digests(progress)
    return found.root.hex(), {name: digest.hex() for name, digest in found.tensors.items()}


def _info(file: str, opened: ModelFile, root: str) -> dict[str, Any]:
    dtypes: dict[str, dict[str, int]] = {}
    for tensor in opened.tensors:
        each = dtypes.setdefault(tensor.element, {"tensors": 0, "bytes": 0})
        each["tensors"] += 1
        each["bytes"] += tensor.size
    return {
        "file": file,
        "format": _FORMAT,
        "training_state": opened.has_structure,
        "bytes": opened.size,
        "root": root,
        "metadata": opened.metadata,
        "dtypes": dtypes,
    }


def _tensor_document(tensor: Tensor, digest: str) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "dtype": tensor.element,
        "shape": list(tensor.shape),
        "bytes": tensor.size,
        "digest": digest,
    }


def _holds(*, whole: bool) -> str:
    if whole:
        return "a whole state, as save_checkpoint was given it"
    return "tensors by name, and no state around them"


def _print_tensors(tensors: tuple[Tensor, ...], most: int) -> None:
    print_table(
        ("name", "dtype", "shape", "bytes"),
        [
            (tensor.name, tensor.element, _shape(tensor.shape), f"{tensor.size:,}")
            for tensor in tensors[:most]
        ],
    )
    if len(tensors) > most:
        more = f"... and {len(tensors) - most:,} more; --limit 0 lists all."
        print_lines(["", Styled(more, "quiet")])


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "scalar"


_FILES_SHOWN = 20
_METADATA_CHARS_LEAST = 40


@click.group(cls=VerbGroup)
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
    where: StoreOptions | None,
    as_json: bool,
) -> None:
    """Verify the model file FILE by the thread of its run.

    It has to be, byte for byte, what the newest checkpoint of the thread vouches for: the exit
    status is 0 then, and otherwise that of the error, such as edited, rolled-back or
    file-not-sealed. Without --thread, only the format is checked, and digests are made.
    """
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
        **json_form(each, "tensors", "root", "metadata"),
    }


def _file_lines(each: SealedFile, newest: CheckpointRef | None) -> list[Any]:
    ref = each.ref
    mark = Styled("*", "good") if ref == newest else " "
    pruned = "; pruned: nothing vouches for it any more" if ref.pruned else ""
    tensors = count_text(each.tensors, "tensor")
    root = short_hex(each.root)
    lines: list[Any] = [
        (mark, f" seq {ref.seq}  {when(ref.time)}  {ref.writer}  {ref.id}"),
        f"    {each.file}  {size_text(each.size)}  {tensors}  root {root}{pruned}",
    ]
    if each.metadata:
        room = max(columns() - 4, _METADATA_CHARS_LEAST)
        lines.append(f"    {short_metadata(each.metadata, room)}")
    return lines
