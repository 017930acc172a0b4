# SPDX-License-Identifier: Apache-2.0
"""Reading foreign files without running or building anything that they name.

`read_archive` takes the zip of a `.pt` file apart, `run_pickle` turns a pickle into symbols.
Neither knows torch or a framework: what the symbols may mean is judged in `sealpoint.models`, and
where checkpoints of a framework are imported.
"""

from sealpoint.scan._pickle import (
    OBJECT_PICKLE,
    TORCH_PICKLE,
    Call,
    Dialect,
    Dict,
    Global,
    List,
    New,
    Node,
    Persistent,
    Set,
    Tuple,
    Value,
    run_pickle,
)
from sealpoint.scan._zip import PICKLE, Archive, ZipPiece, ZipRecord, read_archive, shown

__all__ = [
    "OBJECT_PICKLE",
    "PICKLE",
    "TORCH_PICKLE",
    "Archive",
    "Call",
    "Dialect",
    "Dict",
    "Global",
    "List",
    "New",
    "Node",
    "Persistent",
    "Set",
    "Tuple",
    "Value",
    "ZipPiece",
    "ZipRecord",
    "read_archive",
    "run_pickle",
    "shown",
]
