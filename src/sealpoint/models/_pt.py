# SPDX-License-Identifier: Apache-2.0
"""Loading a `.pt` file so that it can give data and nothing else.

What `load_pt` returns was read twice, by two readers that share nothing: first here, as symbols,
held against a closed table and against the bytes that are there; then by torch, under a flag that
was just proven to work, from a view of the file in which what was judged cannot change. Only what
passes both is returned. Nothing is tried a second time in a less strict way.

It refuses files of other formats and of torch before 1.6, whatever is not tensors and plain data,
and what torch's own loader lets through: see the tests in `tests/attacks/models`. It leaves opening
the file, and whether it is the right one, to others.
"""

import functools
import io
import re
from typing import Any

from sealpoint.errors import ModelError, ModelMalformed, SealpointError
from sealpoint.models._extras import plainly, the_torch
from sealpoint.models._flag import proven_load
from sealpoint.models._foreign import HEAD_BYTES, refuse_foreign
from sealpoint.models._loaded import check_loaded
from sealpoint.models._pinned import PinnedView, read_at
from sealpoint.models._placing import Placing
from sealpoint.models._pt_tree import judge_tree
from sealpoint.scan import PICKLE, Archive, read_archive, run_pickle, shown

__all__ = ["load_pt", "load_trusted"]

_STORAGE = "data/"
# What torch writes beside the pickle and the storages. It reads the last three, and trusts them.
_NOTES = {
    "version": re.compile(rb"([1-9]|10)\n?"),
    ".data/serialization_id": re.compile(rb"[0-9]{1,64}"),
    "byteorder": re.compile(rb"little|big"),
    ".format_version": re.compile(rb"1"),
    ".storage_alignment": re.compile(rb"[1-9][0-9]{0,5}"),
}


def load_pt(file: io.FileIO, size: int, what: str, map_location: Any) -> Any:
    """Load a file that `torch.save` wrote.

    Verification, in order: (1) the archive, (2) its pickle as symbols, (3) what these may mean,
    (4) that torch honours `weights_only`; then (5) torch loads it from a view in which structure
    comes from what was checked, and (6) what it built is looked at.

    Args:
        file: A regular file, opened unbuffered; nobody else moves in it meanwhile.
        size: Its size when it was opened.
        what: How to call it in messages.
        map_location: As of `torch.load`.

    Raises:
        FormatRefused: It is in another format, or an older one.
        RecordCompressed: A part of it is compressed.
        RecordMismatch: A part of it has another size than is declared for it.
        GlobalNotAllowed: It names something that is not tensors and plain data.
        SparseInvalid: Indices of a sparse tensor are wrong.
        ModelLimitExceeded: It asks for more than a model file may.
        ModelMalformed: It is damaged, or was made by something else than torch.
        ModelUnreadable: The file cannot be read.
        FlagNotHonoured: The `torch.load` of this process ignores the flag.
        ModelError: Torch cannot put it where `map_location` says.
        UsageError: `map_location` is not a place.
        ExtraMissing: Torch is not installed.
    """
    # (1) The archive: what is not one is named, so that its owner knows what to do.
    refuse_foreign(read_at(file, 0, HEAD_BYTES, what), size, what)
    archive = read_archive(functools.partial(_read, file, what), size, what)
    _check_notes(archive, what)
    # (2) The pickle, without calling or importing anything.
    tree = run_pickle(archive.contents[PICKLE], f"{what}: record {PICKLE!r}")
    # (3) Against the closed table, and the storages that are there.
    storages = {
        name.removeprefix(_STORAGE): record.size
        for name, record in archive.records.items()
        if name.startswith(_STORAGE)
    }
    locations = judge_tree(tree, storages, size, what)
    # (4) The loader that is proven here is the one that is called below.
    torch = the_torch()
    Placing(torch, map_location, what)  # a place, or a mistake of the caller
    load = proven_load(torch)
    mode = getattr(torch.serialization, "_serialization_tls", None)
    if getattr(mode, "skip_data", False):
        raise ModelError(
            f"{what}: expected to load the elements of its tensors, found skip_data in force",
            hint="Load it outside of torch.serialization.skip_data.",
        )
    # (5) Never mapped: what is mapped can change after it was loaded.
    view = PinnedView(file, size, archive.pieces, what)
    try:
        with plainly(torch):
            value = load(view, map_location=map_location, weights_only=True, mmap=False)
    except (SealpointError, Warning, MemoryError):
        raise
    except Exception as exc:
        raise _failure(exc, view, locations, what) from exc
    # (6) What it built.
    with plainly(torch):
        check_loaded(torch, value, what)
    return value


def load_trusted(path: Any, map_location: Any) -> Any:
    """Load a file that may run code: only for files that you wrote yourself, and kept.

    Nothing of what `load_pt` checks is checked. Whoever could write to the file, or to a copy on
    its way here, decides what this process does next.
    """
    the_torch()
    import torch  # noqa: PLC0415 - an optional dependency; imported here by name for scanners to see

    # The one call that is meant to be unsafe; its caller said so by name.
    return torch.load(path, map_location=map_location, weights_only=False)  # nosec B614


def _failure(exc: Exception, view: PinnedView, locations: set[str], what: str) -> ModelError:
    """What torch's error means; its text may hold parts of the file and is not repeated."""
    if view.fault is not None:
        return view.fault
    if isinstance(exc, RuntimeError):
        return ModelError(
            f"{what}: expected torch to load it on the device that map_location names, found a "
            f"failure; its tensors were on {', '.join(sorted(locations)) or 'none'}",
            hint="Say where its tensors shall go, for example with map_location='cpu'.",
        )
    return ModelMalformed(
        f"{what}: expected torch to load what was checked, found {type(exc).__name__}"
    )


def _read(file: io.FileIO, what: str, offset: int, length: int) -> bytes:
    return read_at(file, offset, length, what)


def _check_notes(archive: Archive, what: str) -> None:
    """Check the small records, which torch parses without care."""
    if "version" not in archive.contents:
        raise ModelMalformed(f"{what}: expected a record 'version', found none")
    for name, content in archive.contents.items():
        pattern = _NOTES.get(name)
        if pattern is not None and not pattern.fullmatch(content):
            raise ModelMalformed(
                f"{what}: record {shown(name)}: expected what torch writes there, found other bytes"
            )
