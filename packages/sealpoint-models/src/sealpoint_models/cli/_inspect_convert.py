# SPDX-License-Identifier: Apache-2.0
"""`sealpoint model inspect` and `convert`: what is in one model file, and the same without pickle.

Looking into a file loads nothing and needs no torch; converting needs it, and runs nothing. Files
are told apart by their bytes; what a file chose is printed escaped and cut.
"""

from collections.abc import Sequence
from typing import Any

import click

from sealpoint.cli.options import Verb, json_option, limit_option
from sealpoint.cli.terminal import (
    print_fields,
    print_json,
    print_line,
    print_lines,
    print_table,
    working,
)
from sealpoint.views.values import render
from sealpoint.views.words import Styled, count_text, exact_size_text
from sealpoint_models import convert_checkpoint
from sealpoint_models._inspection import (
    Inspection,
    MentionedName,
    TensorSummary,
    inspect_checkpoint,
)
from sealpoint_models.cli._folder import hashing

_ROWS_SHOWN = 100
_LOADS = {
    "data": "yes, as data",
    "inert": 'only with unknown="inert": it names what is not tensors and plain data',
    "refused": "no; what was read before the fault is below",
}


@click.command(cls=Verb)
@click.argument("file")
@limit_option(_ROWS_SHOWN)
@json_option
def inspect(file: str, limit: int, *, as_json: bool) -> None:
    """Show the content of the model file FILE, without loading it.

    For a safetensors file, a file of torch.save or a pickle: its tensors, its plain values, and
    every name that a pickle mentions, with its byte. Imports and calls nothing. If a load refuses
    the file, the command still shows its names, and exits with the status of the error. sealpoint
    scan says whether a file is safe.
    """
    with hashing() as progress:
        found = inspect_checkpoint(file, progress)
    if as_json:
        print_json(_document(file, found))
    else:
        _print(file, found, limit)
    if found.error is not None:
        raise found.error


@click.command(cls=Verb)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--unknown",
    type=click.Choice(["inert", "drop"]),
    help="Keep names that are not of tensors and plain data as inert values, or drop them; without "
    "it, the file is refused.",
)
@click.option("--force", is_flag=True, help="Replace the file at OUT.")
@json_option
def convert(source: str, target: str, *, unknown: Any, force: bool, as_json: bool) -> None:
    """Turn the model file IN into the safetensors file OUT, without running what it names.

    IN is a file of torch.save, a pickle, a .npy, a .npz, a file of joblib or a safetensors file.
    OUT holds the whole state, as save_checkpoint writes it. The command lists the paths that it
    dropped. It needs torch.
    """
    with working("converting"):
        dropped = convert_checkpoint(source, target, unknown=unknown or "refuse", force=force)
    if as_json:
        listed = [{"path": each.path, "reason": each.reason} for each in dropped]
        print_json({"source": source, "target": target, "dropped": listed})
        return
    left = f"{count_text(len(dropped), 'value')} dropped" if dropped else "nothing dropped"
    print_line((Styled("Converted", "good"), f": {target} holds what is in {source}, {left}."))
    _print_rows(("dropped", "because"), [(each.path, each.reason) for each in dropped], limit=0)


def _document(file: str, found: Inspection) -> dict[str, Any]:
    digests = {} if found.digests is None else found.digests.tensors
    return {
        "file": file,
        "format": found.format,
        "training_state": found.is_state,
        "loads": found.loads,
        "bytes": found.size,
        "root": None if found.digests is None else found.digests.root.hex(),
        "metadata": found.metadata,
        "dtypes": _dtypes(found.tensors),
        "tensors": [
            {
                "name": each.name,
                "dtype": each.dtype,
                "shape": list(each.shape),
                "bytes": each.size,
                "digest": digests[each.name].hex() if each.name in digests else None,
            }
            for each in found.tensors
        ],
        "values": [{"path": path, "value": text} for path, text in found.values],
        "values_left_out": found.values_left_out,
        "names": [
            {
                "name": each.name,
                "offset": each.at,
                "called": each.is_called,
                "known": each.reason is not None,
            }
            for each in found.names
        ],
    }


def _dtypes(tensors: Sequence[TensorSummary]) -> dict[str, dict[str, int]]:
    dtypes: dict[str, dict[str, int]] = {}
    for tensor in tensors:
        each = dtypes.setdefault(tensor.dtype, {"tensors": 0, "bytes": 0})
        each["tensors"] += 1
        each["bytes"] += tensor.size
    return dtypes


def _print(file: str, found: Inspection, limit: int) -> None:
    fields = [
        ("file", file),
        ("format", found.format),
        ("holds", _holds(found)),
        ("size", exact_size_text(found.size)),
        ("tensors", f"{len(found.tensors):,}"),
    ]
    if found.digests is not None:
        fields.append(("root", found.digests.root.hex()))
    else:
        unknown = sum(each.reason is None for each in found.names)
        fields.append(("names", f"{len(found.names):,}, {unknown:,} of them not in the table"))
        fields.append(("loads", _LOADS[found.loads]))
    print_fields(fields)
    if found.metadata:
        print_line("")
        print_lines(render(found.metadata, name="metadata"))
    dtypes = _dtypes(found.tensors).items()
    _print_rows(
        ("dtype", "tensors", "bytes"),
        [(dtype, f"{each['tensors']:,}", f"{each['bytes']:,}") for dtype, each in dtypes],
        limit=0,
    )
    _print_rows(
        ("name", "dtype", "shape", "bytes"),
        [
            (tensor.name, tensor.dtype, _shape(tensor.shape), f"{tensor.size:,}")
            for tensor in found.tensors
        ],
        limit=limit,
    )
    _print_rows(("path", "value"), found.values, limit=limit, left_out=found.values_left_out)
    _print_rows(
        ("byte", "name", "what it is"),
        [(f"{each.at:,}", each.name, _reason(each)) for each in found.names],
        limit=limit,
    )


def _print_rows(
    headings: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    *,
    limit: int,
    left_out: int = 0,
) -> None:
    """Print a table, if it has rows, and the number of hidden rows."""
    if not rows:
        return
    listed = rows[:limit] if limit else rows
    print_line("")
    print_table(headings, listed)
    if len(listed) < len(rows):
        more = f"... and {len(rows) - len(listed) + left_out:,} more; --limit 0 lists all."
        print_lines(["", Styled(more, "quiet")])
    elif left_out:
        print_lines(["", Styled(f"... and {left_out:,} more, which are not listed.", "quiet")])


def _holds(found: Inspection) -> str:
    if found.format != "safetensors":
        return "what a pickle describes"
    if found.is_state:
        return "a whole state, as save_checkpoint was given it"
    return "tensors by name, and no state around them"


def _reason(name: MentionedName) -> str:
    if name.reason is not None:
        return name.reason
    return f"not in the table; pickle would import{' and call' if name.is_called else ''} it"


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "scalar"
