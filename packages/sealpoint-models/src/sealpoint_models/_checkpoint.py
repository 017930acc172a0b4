# SPDX-License-Identifier: Apache-2.0
"""`load_checkpoint` and `open_checkpoint`: files by their content, closed by default.

`save_checkpoint` writes a whole training state as one canonical safetensors file.
"""

import contextlib
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import FormatRefused, ModelUnreadable, SealpointError, UsageError
from sealpoint.store import CheckpointRef
from sealpoint_models._device_placement import MapLocation
from sealpoint_models._draft_file import (
    ModelDraft,
    put_in_place,
    real_path,
    target_path,
    waiting_path,
)
from sealpoint_models._file_manifest import METADATA_KEY, Sealed, TrainingRun
from sealpoint_models._file_reader import ReadFile
from sealpoint_models._model_file import ModelFile
from sealpoint_models._tensor_entries import entries_of_state, header_of, write_entries
from sealpoint_models._torch_files import load_pt, load_trusted
from sealpoint_models.scan import Unknown
from sealpoint_models.scan._safetensors import LENGTH_BYTES

_ZIP = b"PK\x03\x04"
"""The first bytes of an archive; as a length, they would exceed every header."""

_PICKLE = re.compile(rb"PK\x03\x04|\x80[\x02-\x05]")


class UnsafeLoadWarning(UserWarning):
    """A file was loaded in the way that lets it run code."""


def load_checkpoint(
    path: str | os.PathLike[str],
    map_location: MapLocation = "cpu",
    *,
    safe: bool = True,
    unknown: Unknown = "refuse",
    store: Store | None = None,
    thread: str | None = None,
    ref: str | CheckpointRef | None = None,
) -> Any:
    """Load a model file without running any code in it.

    A safetensors file, by its name or by its bytes, is read by a strict reader: one that
    `save_checkpoint` wrote gives the whole state back, any other one its tensors by name. A file
    of `torch.save`, of today's torch or of one before 1.6, and a bare pickle are read as data: what
    they name is never imported or called, and `torch.load` is not used. There is no other way, and
    no way back to an unsafe one.

    Args:
        path: The file.
        map_location: Where tensors go, as for `torch.load`; None: where they were.
        safe: False: load anything, with the whole of pickle. **Only for files that you trust as you
            trust a program**: such a file can do anything that this process can. Warns once.
        unknown: The treatment of names in a pickle other than those of tensors and plain data:
            `"refuse"` the file, with all of them in the message, or read each as an `Inert`, which
            holds the name as text and the arguments from the pickle.
        store: An open store that has to vouch for the file.
        thread: The thread of the training run in it.
        ref: The checkpoint whose file is meant; without it the newest one.

    Raises:
        ModelError: The file is refused; a `RuntimeError` too.
        ExtraMissing: torch is not installed.
        Edited, RolledBack, FileNotSealed: With a store: the file was changed, is an older one,
            or is not one of this thread.
        SealpointError: With a store, whatever `Thread.load` raises.
    """
    if type(safe) is not bool:
        raise UsageError(f"safe: expected True or False, found {type(safe).__name__}")
    if unknown not in ("refuse", "inert"):
        raise UsageError("unknown: expected 'refuse' or 'inert'")
    if TrainingRun.of(store, thread) is None and ref is not None:
        raise UsageError("ref: expected a store whose checkpoint it is")
    if store is not None:
        if not safe:
            raise UsageError("safe: expected True with a store, found False")
        with open_checkpoint(path, store=store, thread=thread, ref=ref) as model:
            return model.load(map_location)
    with ReadFile(path) as file:
        if is_safetensors(file):
            _refuse_archive(file)
            return ModelFile(file).load(map_location)
        if safe:
            with open(file.fd, "rb", buffering=0, closefd=False) as raw:
                return load_pt(raw, file.size, file.what, map_location, unknown)
    _warn_once()
    return load_trusted(file.path, map_location)


def open_checkpoint(
    path: str | os.PathLike[str],
    *,
    store: Store | None = None,
    thread: str | None = None,
    ref: str | CheckpointRef | None = None,
) -> ModelFile:
    """Open a safetensors file, to look into it or to load one tensor of it.

    Args are those of `load_checkpoint`.

    Raises:
        ModelError: The file is not safetensors, or breaks a rule of the format.
        RolledBack, FileNotSealed: With a store: it is an older file, or not one of this thread.
        SealpointError: With a store, whatever `Thread.load` raises.
    """
    run = TrainingRun.of(store, thread)
    if run is None:
        if ref is not None:
            raise UsageError("ref: expected a store whose checkpoint it is")
        return _opened(path)
    sealed = run.expected(ref)
    return _waiting(real_path(path), sealed, newest=ref is None) or _opened(path, sealed)


def _opened(path: str | os.PathLike[str], sealed: Sealed | None = None) -> ModelFile:
    file = ReadFile(path)
    try:
        if sealed is None:
            _refuse_archive(file)
        return ModelFile(file, sealed)
    except BaseException:
        file.close()
        raise


def _refuse_archive(file: ReadFile) -> None:
    if file.read(0, min(len(_ZIP), file.size)) == _ZIP:
        raise FormatRefused(
            f"{file.what}: expected a safetensors file, found an archive as torch.save writes",
            hint="sealpoint model convert IN OUT makes a safetensors file of it, and runs nothing.",
        )


def _waiting(path: Path, sealed: Sealed, *, newest: bool) -> ModelFile | None:
    """The file of a save that ended before it was put in its place; this puts it there.

    One that is not the newest stays where it is: a later save has taken that place.
    """
    waiting = waiting_path(path, sealed.digests.root)
    try:
        file = ReadFile(waiting)
    except SealpointError:
        return None  # nearly always: there is none
    try:
        model = ModelFile(file, sealed)
        model.digests()
    except SealpointError:
        file.close()
        return None
    # A file that others hold by an owner, a link or another name is read, but replaces nothing.
    if newest and file.is_own(waiting):
        with contextlib.suppress(ModelUnreadable):  # this process may only read
            put_in_place(waiting, path)
    return model


def is_safetensors(file: ReadFile) -> bool:
    """Whether a file says so by its name, or begins like one: a length, then a brace."""
    if file.path.suffix.lower() == ".safetensors":
        return True
    start = file.read(0, min(LENGTH_BYTES + 1, file.size))
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    return start[LENGTH_BYTES:] == b"{" and length <= file.size - LENGTH_BYTES


def begins_as_pickle(file: ReadFile) -> bool:
    """Whether a file begins as archives of torch and pickles do, whatever its name says."""
    return _PICKLE.match(file.read(0, min(len(_ZIP), file.size))) is not None


_warned = False


def _warn_once() -> None:
    global _warned  # noqa: PLW0603 (once for each process, whoever calls)
    if not _warned:
        _warned = True
        warnings.warn(
            "load_checkpoint(safe=False): the file can run any code",
            UnsafeLoadWarning,
            stacklevel=3,
        )


def save_checkpoint(
    state: Any,
    path: str | os.PathLike[str],
    *,
    store: Store | None = None,
    thread: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> CheckpointRef | None:
    """Save a training state without pickle, atomically and durably.

    The same state always gives the same bytes. Any reader of safetensors can read the tensors.

    Args:
        state: Nested dicts, lists and tuples of tensors, numpy arrays and plain data: what
            `state_dict()` of modules, optimizers and schedulers gives, states of random number
            generators, and what `load_checkpoint` gave, an `Inert` included.
        path: The file; an existing file is replaced once the new one is on disk. A link is followed
            if it is this user's and leads to a file in the same directory or below it.
        store: An open store that vouches for the file.
        thread: The thread of this training run in it.
        metadata: A JSON object that the store keeps with the checkpoint, such as the epoch.

    Returns:
        The checkpoint of the thread; None without a store.

    Raises:
        TypeNotAllowed, ValueNotAllowed, EncodeLimitExceeded: Something in the state cannot be
            saved; the message has the path to it, and nothing was written.
        ModelUnreadable: The file cannot be written, or the path is another link.
        SealpointError: With a store, whatever `Thread.save` raises; the old file stands.
    """
    run = TrainingRun.of(store, thread)
    if metadata is not None and (run is None or METADATA_KEY in metadata):
        raise UsageError(
            f"metadata: expected a store that keeps it, and no key {METADATA_KEY!r}, which is ours"
        )
    target = target_path(path)
    entries, texts = entries_of_state(state)
    header = header_of(entries, texts, str(target))
    with ModelDraft(target) as draft:
        digests = write_entries(draft, header, entries, hashing=run is not None)
        if run is None or digests is None:
            draft.move_to(target)
            return None
        return run.seal(draft, target, digests, metadata)


def save_new(state: Any, path: str | os.PathLike[str]) -> None:
    """Save a state like `save_checkpoint`, to a path without a file.

    Raises:
        FileExistsError: The path exists, or another process created it in the meantime.
    """
    target = Path(path)
    entries, texts = entries_of_state(state)
    header = header_of(entries, texts, str(target))
    with ModelDraft(target) as draft:
        write_entries(draft, header, entries, hashing=False)
        draft.move_to_free(target)
