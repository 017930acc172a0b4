# SPDX-License-Identifier: Apache-2.0
"""The text of the frozen vectors of model files: files that are read, and files that are refused.

What a file holds and why another one is refused is said here, never computed.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from sealpoint_models import open_checkpoint, save_checkpoint

__all__ = ["model_file_vectors"]


def _states() -> Iterator[tuple[str, Any, dict[str, list[Any]]]]:
    """A name, a state, and its tensors in the order of the file: type, shape, bytes."""
    yield "nothing", {}, {}
    yield "plain data", {"epoch": 3, "loss": 0.5, "note": None, 7: (1, 2)}, {}
    yield (
        "two tensors",
        {"weight": torch.tensor([[1.0, 2.0]]), "count": torch.tensor(5)},
        {"count": ["I64", [], "0500000000000000"], "weight": ["F32", [1, 2], "0000803f00000040"]},
    )
    base = torch.tensor([1, 2, 3, 4], dtype=torch.int16)
    yield (
        "shared memory",
        {"a": base, "b": base[1:3], "c": [base]},
        {"a": ["I16", [4], "0100020003000400"]},
    )
    yield (
        "overlapping memory",
        [base[:3], base[1:]],
        {"0": ["I16", [4], "0100020003000400"]},
    )
    yield (
        "another order in memory",
        torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8).t(),
        {"state": ["U8", [2, 2], "01030204"]},
    )
    yield (
        "carried types",
        {"z": torch.tensor([1 + 2j], dtype=torch.complex128)},
        {"z": ["F64", [1, 2], "000000000000f03f0000000000000040"]},
    )
    ordered: Any = OrderedDict(w=torch.tensor([True, False]))
    ordered._metadata = OrderedDict({"": {"version": 1}})
    yield "a state dict", ordered, {"w": ["BOOL", [2], "0100"]}
    yield (
        "sparse",
        torch.sparse_coo_tensor(
            torch.tensor([[0, 2]]),
            torch.tensor([1.0, 2.0]),
            (3,),
            is_coalesced=True,
            check_invariants=True,
        ),
        {
            "state.indices": ["I64", [1, 2], "00000000000000000200000000000000"],
            "state.values": ["F32", [2], "0000803f00000040"],
        },
    )
    yield (
        "names",
        {"a.b": torch.zeros(0), "a": {"b": torch.zeros(0, dtype=torch.int8)}},
        {"a.b": ["F32", [0], ""], "a.b#2": ["I8", [0], ""]},
    )


def _file(header: str, elements: bytes = b"", length: int | None = None) -> str:
    body = header.encode("utf-8", "surrogatepass")
    size = len(body) if length is None else length
    return (size.to_bytes(8, "little") + body + elements).hex()


def _refused() -> Iterator[tuple[str, str, str]]:
    """A name, a file, and the code of the error."""
    good = '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}'
    entry = good[1:-1]
    malformed, limit = "model-malformed", "model-limit"
    yield "empty", "", malformed
    yield "too short for a length", "0000", malformed
    yield "a header past the end", _file(good, b"", 1 << 20), malformed
    yield "a header of gigabytes", _file(good, b"", 1 << 32), limit
    yield "no header", _file("", b"", 0), malformed
    yield "a space first", _file(" " + good, b"\1\2"), malformed
    yield "a line break last", _file(good + "\n", b"\1\2"), malformed
    yield "zeros last", _file(good + "\0", b"\1\2"), malformed
    yield "a mark first", _file("\ufeff" + good, b"\1\2"), malformed
    yield "a list", _file("[]"), malformed
    yield "no JSON", _file("{,}"), malformed
    yield "half a character", _file('{"\ud800":' + good[5:], b"\1\2"), malformed
    yield "half a character, escaped", _file('{"\\ud800":' + good[5:], b"\1\2"), malformed
    yield "one name twice", _file("{" + entry + "," + entry + "}", b"\1\2"), malformed
    yield "a field twice", _file(good.replace('"shape"', '"dtype":"U8","shape"')), malformed
    yield "a field too many", _file(good.replace('"shape"', '"more":1,"shape"')), malformed
    yield "a field too few", _file(good.replace('"dtype":"U8",', "")), malformed
    yield "an unknown type", _file(good.replace("U8", "U9"), b"\1\2"), malformed
    yield "a negative side", _file(good.replace("[2]", "[-2]"), b"\1\2"), malformed
    yield "a broken side", _file(good.replace("[2]", "[2.0]"), b"\1\2"), malformed
    yield "a true side", _file(good.replace("[2]", "[true]"), b"\1\2"), malformed
    yield "not a number", _file(good.replace("[2]", "[NaN]"), b"\1\2"), malformed
    yield "a huge empty shape", _file(good.replace("[2]", "[0,9223372036854775807]")), limit
    yield "a side of 20 digits", _file(good.replace("[2]", "[10000000000000000000]")), malformed
    yield "65 dimensions", _file(good.replace("[2]", str([1] * 65)), b"\1"), limit
    yield "three offsets", _file(good.replace("[0,2]", "[0,1,2]"), b"\1\2"), malformed
    yield "offsets turned round", _file(good.replace("[0,2]", "[2,0]"), b"\1\2"), malformed
    yield "a shape that does not fit", _file(good.replace("[2]", "[3]"), b"\1\2"), malformed
    yield "a hole first", _file(good.replace("[0,2]", "[1,3]"), b"\1\2\3"), malformed
    yield "bytes behind the last", _file(good, b"\1\2\3"), malformed
    yield "bytes missing", _file(good, b"\1"), malformed
    overlap = entry + "," + entry.replace('"a"', '"b"')
    yield "two in one place", _file("{" + overlap + "}", b"\1\2"), malformed
    yield "half a byte", _file(good.replace("U8", "F4").replace("[2]", "[3]"), b"\1"), malformed
    yield "a boolean of 2", _file(good.replace("U8", "BOOL"), b"\1\2"), malformed
    yield "an empty name", _file(good.replace('"a"', '""'), b"\1\2"), malformed
    yield "a name with a zero", _file(good.replace('"a"', '"a\\u0000"'), b"\1\2"), malformed
    yield "a name that leads out", _file(good.replace('"a"', '"../a"'), b"\1\2"), malformed
    yield "metadata of numbers", _file('{"__metadata__":{"a":1}}'), malformed
    yield "metadata in a list", _file('{"__metadata__":["a"]}'), malformed
    structure = '{"__metadata__":{"sealpoint.structure":"%s"}}'
    yield "a structure of nothing", _file(structure % ""), malformed
    yield "a structure of other bytes", _file(structure % "wQ=="), malformed
    yield "a structure in loose base 64", _file(structure % "gB=="), malformed
    yield "a structure without its tensor", _file('{"__metadata__":{"sealpoint.structure":"gA=="},' + entry + "}", b"\1\2"), malformed  # fmt: skip  # noqa: E501 (one line for each)
    yield "not the canonical header", _file(structure % "gA=="), malformed


@cache
def model_file_vectors() -> str:
    """The text of `model_files.json`."""
    accepted: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.safetensors"
        for name, state, tensors in _states():
            save_checkpoint(state, path)
            with open_checkpoint(path) as file:
                digests = file.digests()
            accepted.append(
                {
                    "name": name,
                    "file": path.read_bytes().hex(),
                    "tensors": tensors,
                    "header": digests.header.hex(),
                    "digests": [digest.hex() for digest in digests.tensors.values()],
                    "root": digests.root.hex(),
                }
            )
    refused = [{"name": name, "file": file, "code": code} for name, file, code in _refused()]
    parts = []
    for key, rows in (("accepted", accepted), ("refused", refused)):
        lines = ",\n".join(json.dumps(row) for row in rows)
        parts.append(f'"{key}": [\n{lines}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"
