# SPDX-License-Identifier: Apache-2.0
"""Reading foreign model files without running or building anything that they name.

`read_archive` takes the zip of a `.pt` file apart, `run_pickle` turns its pickle into symbols.
Neither knows torch: what the symbols may mean is judged in `sealpoint.models`.
"""

from sealpoint.scan._pickle import (
    Call,
    Dict,
    Global,
    List,
    New,
    Node,
    Persistent,
    Tuple,
    Value,
    run_pickle,
)
from sealpoint.scan._zip import PICKLE, Archive, ZipPiece, ZipRecord, read_archive, shown

__all__ = [
    "PICKLE",
    "Archive",
    "Call",
    "Dict",
    "Global",
    "List",
    "New",
    "Node",
    "Persistent",
    "Tuple",
    "Value",
    "ZipPiece",
    "ZipRecord",
    "read_archive",
    "run_pickle",
    "shown",
]
