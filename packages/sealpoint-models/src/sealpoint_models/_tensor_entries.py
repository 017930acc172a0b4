# SPDX-License-Identifier: Apache-2.0
"""The tensors of a file to be written: their descriptions, their header, their bytes.

A header that is made here was read again by the reader of files, so that what is written can be
read. Bytes are asked for when they are written, one tensor after the other.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sealpoint_models._draft_file import ModelDraft
from sealpoint_models._file_reader import FileDigests
from sealpoint_models._optional_packages import require_torch, without_torch_modes
from sealpoint_models._state_flattening import TensorEntry, flatten_state
from sealpoint_models._structure_nodes import METADATA, STRUCTURE, write_structure
from sealpoint_models.scan._safetensors import ModelHeader, read_header, write_header


def entries_of_state(state: Any) -> tuple[list[TensorEntry], dict[str, str]]:
    """The tensors of a whole state, and the texts of the header, with its structure.

    Raises:
        TypeNotAllowed, ValueNotAllowed, EncodeLimitExceeded: Something in it cannot be saved.
    """
    torch = require_torch()
    with without_torch_modes(torch):
        structure, entries = flatten_state(torch, sys.modules.get("numpy"), state)
    return entries, {**METADATA, STRUCTURE: write_structure(structure)}


def header_of(entries: Sequence[TensorEntry], texts: Mapping[str, str], what: str) -> ModelHeader:
    """The header of a file of these tensors and texts.

    Raises:
        ModelMalformed, ModelLimitExceeded: It would break a rule of the format.
    """
    header = write_header([(entry.name, entry.element, entry.shape) for entry in entries], texts)
    size = max((tensor.end for tensor in header.tensors.values()), default=len(header.raw))
    read_header(header.raw, size, what)  # what is written can be read
    return header


def write_entries(
    draft: ModelDraft, header: ModelHeader, entries: Sequence[TensorEntry], *, hashing: bool
) -> FileDigests | None:
    """Write a file, durably; its digests, if they are wanted."""
    with without_torch_modes(require_torch()):
        return draft.write(header, {entry.name: entry.source for entry in entries}, hashing=hashing)


def write_file(path: Path, entries: Sequence[TensorEntry], texts: Mapping[str, str]) -> FileDigests:
    """Write a file to its place, durably, and hash what is written.

    Raises:
        ModelUnreadable: It cannot be written.
    """
    header = header_of(entries, texts, str(path))
    with ModelDraft(path) as draft:
        digests = write_entries(draft, header, entries, hashing=True)
        draft.move_to(path)
    return cast("FileDigests", digests)  # which were asked for
