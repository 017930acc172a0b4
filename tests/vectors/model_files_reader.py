# SPDX-License-Identifier: Apache-2.0
"""A second reader of docs/formats/model-file.md: headers, canonical order and digests.

It shares nothing with ours but BLAKE3 itself.
"""

import json
from typing import Any

from blake3 import blake3

__all__ = ["read"]

_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("C64", "F64", "I64", "U64"), 64),
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}
_KEYS = {"format", "sealpoint.structure", "sealpoint.version"}
_PIECE = 8 * 1024 * 1024


def _hash(level: str, data: bytes) -> bytes:
    return blake3(data, derive_key_context=f"sealpoint 2026-11 model {level} v1").digest()


def _need(condition: object) -> None:
    if not condition:
        raise ValueError


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _need(len({key for key, _ in pairs}) == len(pairs))
    return dict(pairs)


def read(data: bytes) -> dict[str, Any]:
    """What a file holds: tensors in order, metadata, digests.

    Raises:
        ValueError: It breaks a rule.
    """
    size = int.from_bytes(data[:8], "little")
    _need(len(data) >= 8 and 2 <= size <= 32 << 20 and 8 + size <= len(data))
    body, elements = data[8 : 8 + size], data[8 + size :]
    text = body.rstrip(b" ").decode()
    _need(text[0] == "{" and text[-1] == "}")
    header = json.loads(text, object_pairs_hook=_once)
    metadata = header.pop("__metadata__", {})
    _need(type(metadata) is dict and all(type(value) is str for value in metadata.values()))
    json.dumps([metadata, *header], ensure_ascii=False).encode()
    at, tensors = 0, {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        _need(entry.keys() == {"dtype", "shape", "data_offsets"} and name.isprintable() and name)
        _need("/" not in name or not {"", ".."} & set(name.split("/")))
        begin, end = entry["data_offsets"]
        bits, whole = _BITS[entry["dtype"]], 1
        for side in (*entry["shape"], begin, end):
            _need(type(side) is int and 0 <= side < 1 << 63)
        for side in entry["shape"]:
            whole *= max(side, 1)
        _need(whole <= 1 << 40 and len(entry["shape"]) <= 64)
        wanted = 0 if 0 in entry["shape"] else whole * bits
        _need(begin == at and (end - begin) * 8 == wanted and end <= len(elements))
        at = end
        raw = elements[begin:end]
        _need(entry["dtype"] != "BOOL" or set(raw) <= {0, 1})
        tensors[name] = [entry["dtype"], entry["shape"], raw]
    _need(at == len(elements))
    if "sealpoint.structure" in metadata:
        _need(metadata.keys() == _KEYS and metadata["format"] == "pt")
        _need(metadata["sealpoint.version"] == "1" and _canonical(header, metadata) == body)
    digests = [
        _hash(
            "tensor",
            len(raw).to_bytes(8, "little")
            + b"".join(
                _hash("piece", raw[begin : begin + _PIECE]) for begin in range(0, len(raw), _PIECE)
            ),
        )
        for _, _, raw in tensors.values()
    ]
    top = _hash("header", data[: 8 + size])
    return {
        "tensors": tensors,
        "metadata": metadata,
        "header": top,
        "digests": digests,
        "root": _hash("file", top + b"".join(digests)),
    }


def _canonical(header: dict[str, Any], metadata: dict[str, str]) -> bytes:
    order = sorted(header, key=lambda name: (-_BITS[header[name]["dtype"]], name))
    fields = ("dtype", "shape", "data_offsets")
    whole: dict[str, Any] = {"__metadata__": {key: metadata[key] for key in sorted(metadata)}}
    whole.update({name: {field: header[name][field] for field in fields} for name in order})
    body = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    return body + b" " * (-len(body) % 8)
