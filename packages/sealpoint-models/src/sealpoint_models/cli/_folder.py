# SPDX-License-Identifier: Apache-2.0
"""`sealpoint model seal`, and the output of `verify` and `list` for folders.

A folder is sealed and verified by `sealpoint_models`; nothing in it is loaded, and torch is not
needed.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from sealpoint.api import Store
from sealpoint.cli.options import Verb, json_option
from sealpoint.cli.references import find_ref
from sealpoint.cli.stores import StoreOptions, store_options
from sealpoint.cli.terminal import print_fields, print_json, print_line, working
from sealpoint.errors import UnknownThread, UsageError
from sealpoint.store import CheckpointRef
from sealpoint.views.words import Styled, count_text, exact_size_text, size_text, when
from sealpoint.world import json_form
from sealpoint_models import (
    SealedFolder,
    seal_file,
    seal_folder,
    sealed_folders,
    verify_folder,
)


@contextmanager
def hashing() -> Iterator[Callable[[int, int], None]]:
    """Show the progress of hashing while the block runs."""
    with working("hashing") as report:
        yield lambda done, total: report(done, total, f"{size_text(done)} of {size_text(total)}")


@click.command("seal", cls=Verb)
@click.argument("path")
@click.option("--thread", metavar="RUN", required=True, help="The thread of the training run.")
@store_options("identity", "namespace")
@json_option
def seal(path: str, *, thread: str, where: StoreOptions, as_json: bool) -> None:
    """Seal the folder or safetensors file PATH in its place, as the newest checkpoint of RUN.

    Hashes every byte, and loads and changes nothing. From then on RUN vouches for PATH, and for the
    exact list of files if it is a folder. No other process may write to it at the same time.
    """
    is_folder = os.path.isdir(path)  # noqa: PTH112 (a text)
    sealing = seal_folder if is_folder else seal_file
    with where.writing() as store, hashing() as progress:
        if os.path.isfile(path):  # noqa: PTH113 (a text)
            _refuse_folders(store, thread)
        ref = sealing(path, store=store, thread=thread, progress=progress)
    described = ref.metadata["model"]
    document = {
        "path": path,
        "thread": thread,
        "checkpoint": json_form(ref, "id", "seq", "time", "writer"),
        "bytes": described["size"],
        "root": described["root"],
    }
    if as_json:
        print_json(document)
        return
    print_line((Styled("Sealed", "good"), f": {path} is the newest checkpoint of {thread}."))
    print_line("")
    print_fields(
        [
            ("checkpoint", ref.id),
            ("seq", str(ref.seq)),
            ("size", exact_size_text(described["size"])),
            ("root", described["root"]),
        ]
    )


def _refuse_folders(store: Store, thread: str) -> None:
    """Refuse a file for a thread of folders, whose newest could not be verified as one any more."""
    try:
        newest = next(sealed_folders(store, thread), None)
    except UnknownThread:
        return
    if newest is not None:
        raise UsageError(
            f"{thread}: expected a thread of files, found folders in it, such as {newest.folder!r}",
            hint="Seal the folder of the file, or name another thread for files.",
        )


def verify_sealed_folder(
    path: str,
    *,
    thread: str | None,
    checkpoint: str | None,
    where: StoreOptions | None,
    as_json: bool,
) -> None:
    """Verify a folder by the thread of its run, and say so.

    Raises:
        UsageError: No thread is named: a folder has no format of its own to check.
    """
    if where is None or thread is None:
        raise UsageError(
            f"{path}: it is a folder, which only a thread can vouch for",
            hint="Name it with --thread RUN; sealpoint model seal makes a checkpoint of a folder.",
        )
    with where.reading() as store, hashing() as progress:
        ref = find_ref(store.thread(thread), checkpoint)
        sealed = verify_folder(path, store=store, thread=thread, ref=ref, progress=progress)
    if as_json:
        print_json(_folder_document(path, thread, sealed))
    else:
        _print_folder(path, thread, sealed, checkpoint)


def _folder_document(path: str, thread: str, sealed: SealedFolder) -> dict[str, Any]:
    return {
        "folder": path,
        "sealed": True,
        "thread": thread,
        "checkpoint": json_form(sealed.ref, "id", "seq", "time", "writer"),
        "bytes": sealed.size,
        "files": sealed.files,
        "root": sealed.root,
    }


def _print_folder(path: str, thread: str, sealed: SealedFolder, asked: str | None) -> None:
    which = "the newest checkpoint" if asked is None else f"checkpoint {asked}"
    print_line((Styled("All good", "good"), f": {path} is what {which} vouches for."))
    print_line("")
    print_fields(
        [
            ("thread", thread),
            ("checkpoint", sealed.ref.id),
            ("seq", str(sealed.ref.seq)),
            ("time", when(sealed.ref.time)),
            ("writer", sealed.ref.writer),
            ("size", exact_size_text(sealed.size)),
            ("files", f"{sealed.files:,}"),
            ("root", sealed.root),
        ]
    )


def folder_document(each: SealedFolder, newest: CheckpointRef | None) -> dict[str, Any]:
    """The description of a folder in `sealpoint model list --json`."""
    return {
        **json_form(each.ref, "id", "seq", "time", "writer"),
        "newest": each.ref == newest,
        "pruned": each.ref.pruned,
        "folder": each.folder,
        "bytes": each.size,
        **json_form(each, "files", "root", "metadata"),
    }


def folder_text(each: SealedFolder) -> str:
    """The description of a folder in `sealpoint model list`: its name, size and files."""
    return f"{each.folder}/  {size_text(each.size)}  {count_text(each.files, 'file')}"
