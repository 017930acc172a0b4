# SPDX-License-Identifier: Apache-2.0
"""Model files as an attacker writes them: any header over any bytes, any structure over tensors."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sealpoint_models._structure_nodes import METADATA, STRUCTURE, TensorNode, write_structure
from sealpoint_models.scan._safetensors import write_header

__all__ = ["entry", "node", "with_header", "with_structure"]

Part = tuple[str, Sequence[int], bytes]
"""Element type, shape and bytes of a tensor."""


def entry(dtype: str, shape: Sequence[Any], begin: int, end: int) -> dict[str, Any]:
    """One tensor in the words of a header."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def with_header(path: Path, header: Mapping[str, Any] | str | bytes, data: bytes) -> Path:
    """A file of a header, given as a value, a text or bytes, and of what follows it."""
    if isinstance(header, Mapping):
        header = json.dumps(header, separators=(",", ":"))
    raw = header.encode() if isinstance(header, str) else header
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)
    return path


def with_structure(path: Path, structure: Any, parts: Mapping[str, Part]) -> Path:
    """A file in the canonical form, with any structure."""
    header = write_header(
        [(name, element, shape) for name, (element, shape, _) in parts.items()],
        {**METADATA, STRUCTURE: write_structure(structure)},
    )
    path.write_bytes(header.raw + b"".join(parts[name][2] for name in header.tensors))
    return path


def node(name: str, dtype: str = "uint8", **fields: Any) -> TensorNode:
    """A node for a tensor of the file, with any fields."""
    given: Any = {"device": "cpu", "requires_grad": False, "parameter": False, **fields}
    return TensorNode(entry=name, dtype=dtype, **given)
