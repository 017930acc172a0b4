# SPDX-License-Identifier: Apache-2.0
"""Reading foreign files without running or building anything that they name.

`scan_path` and `scan_bytes` report the code that a file would run, and whether it is safe to load.
Below them, `read_archive` reads the zip of a `.pt` file, `run_pickle` turns a pickle into symbols,
and `read_meaning` returns the meaning of the symbols, by a closed table. None of them needs torch
or numpy: tensors are descriptions here, and `sealpoint_models` creates them.
"""

from sealpoint_models.scan._file_scan import scan_bytes, scan_path
from sealpoint_models.scan._known_types import DeviceName, Maker, SizeMeaning, TorchName
from sealpoint_models.scan._numpy_arrays import ArrayMeaning, ArrayScalar, ArrayType
from sealpoint_models.scan._pickle_allowed_calls import (
    KNOWN_NAMES,
    Unknown,
    read_meaning,
)
from sealpoint_models.scan._pickle_machine import UNNAMED
from sealpoint_models.scan._pickle_reader import ANY_PICKLE, OBJECT_PICKLE, run_pickle
from sealpoint_models.scan._pickle_symbols import (
    Call,
    Dict,
    Global,
    Inert,
    List,
    Made,
    Mentions,
    New,
    Node,
    Persistent,
    Program,
    Set,
    Tuple,
    Value,
)
from sealpoint_models.scan._report import RULES, ScanFinding, ScanReport, ScanRule, ScanVerdict
from sealpoint_models.scan._sarif import sarif_document
from sealpoint_models.scan._tensor_sizes import (
    BLOCKED_LAYOUTS,
    BY_ROW_LAYOUTS,
    QUANTIZED,
    TensorBudget,
    compressed_fault,
    contiguous_stride,
    coo_fault,
    quantizer_fault,
)
from sealpoint_models.scan._torch_tensors import (
    DenseTensor,
    QuantizedTensor,
    SparseTensor,
    Tensors,
    TensorStorage,
)
from sealpoint_models.scan._torch_wrappings import FilePlace, Wrapping, read_wrapping, wrapping_kind
from sealpoint_models.scan._torch_zip import read_archive, shown

__all__ = [
    "ANY_PICKLE",
    "BLOCKED_LAYOUTS",
    "BY_ROW_LAYOUTS",
    "KNOWN_NAMES",
    "OBJECT_PICKLE",
    "QUANTIZED",
    "RULES",
    "UNNAMED",
    "ArrayMeaning",
    "ArrayScalar",
    "ArrayType",
    "Call",
    "DenseTensor",
    "DeviceName",
    "Dict",
    "FilePlace",
    "Global",
    "Inert",
    "List",
    "Made",
    "Maker",
    "Mentions",
    "New",
    "Node",
    "Persistent",
    "Program",
    "QuantizedTensor",
    "ScanFinding",
    "ScanReport",
    "ScanRule",
    "ScanVerdict",
    "Set",
    "SizeMeaning",
    "SparseTensor",
    "TensorBudget",
    "TensorStorage",
    "Tensors",
    "TorchName",
    "Tuple",
    "Unknown",
    "Value",
    "Wrapping",
    "compressed_fault",
    "contiguous_stride",
    "coo_fault",
    "quantizer_fault",
    "read_archive",
    "read_meaning",
    "read_wrapping",
    "run_pickle",
    "sarif_document",
    "scan_bytes",
    "scan_path",
    "shown",
    "wrapping_kind",
]
