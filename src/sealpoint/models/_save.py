# SPDX-License-Identifier: Apache-2.0
"""`save_checkpoint`: a whole training state in one canonical safetensors file."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import UsageError
from sealpoint.models._draft import ModelDraft, target_path
from sealpoint.models._extras import require_torch, without_torch_modes
from sealpoint.models._flatten import flatten_state
from sealpoint.models._manifest import METADATA_KEY, TrainingRun
from sealpoint.models._nodes import METADATA, STRUCTURE, write_structure
from sealpoint.models._safetensors import read_header, write_header
from sealpoint.store import CheckpointRef


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
            `state_dict()` of modules, optimizers and schedulers gives, and states of random
            number generators.
        path: The file; what is there is replaced once the new one is on disk. A link is followed
            if it is this user's and leads to a file beside it or below its directory.
        store: An open store that vouches for the file.
        thread: The thread of this training run in it.
        metadata: A JSON object beside the checkpoint of the store, such as the epoch.

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
    torch = require_torch()
    with without_torch_modes(torch):
        structure, entries = flatten_state(torch, sys.modules.get("numpy"), state)
    header = write_header(
        [(entry.name, entry.element, entry.shape) for entry in entries],
        {**METADATA, STRUCTURE: write_structure(structure)},
    )
    size = max((tensor.end for tensor in header.tensors.values()), default=len(header.raw))
    read_header(header.raw, size, str(target))  # what is written can be read
    sources = {entry.name: entry.source for entry in entries}
    with ModelDraft(target) as draft:
        with without_torch_modes(torch):
            digests = draft.write(header, sources, hashing=run is not None)
        if run is None or digests is None:
            draft.move_to(target)
            return None
        return run.seal(draft, target, digests, metadata)
