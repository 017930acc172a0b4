# SPDX-License-Identifier: Apache-2.0
"""`sealpoint model save-info`: what is in a model file, without loading it."""

from collections.abc import Callable
from typing import Any

import click

from sealpoint.cli._amounts import exact_size_text, size_text
from sealpoint.cli._options import json_option
from sealpoint.cli._render import render
from sealpoint.cli._terminal import (
    Styled,
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.models import ModelFile, Tensor, open_checkpoint

__all__ = ["hashed", "limit_option", "save_info"]

_FORMAT = "safetensors"
_TENSORS_SHOWN = 100


def limit_option(shown: int) -> Callable[..., Any]:
    """`--limit`, with how many are listed without it."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=shown,
        show_default=True,
        help="How many to list at most; 0 lists all.",
    )


@click.command("save-info")
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
