# SPDX-License-Identifier: Apache-2.0
"""First cases for model files: the zoo, saved; files without a structure; and hostile ones."""

import base64
import json
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzz._model_sketch import Part, Sketch, framed, sketch_of
from fuzz._model_zoo import states
from sealpoint_models import save_checkpoint
from sealpoint_models._structure_nodes import (
    METADATA,
    QuantizedNode,
    SparseNode,
    TensorNode,
    write_structure,
)
from sealpoint_models.scan._safetensors import ELEMENT_BITS

__all__ = ["seeds"]


def _saved() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory(prefix="sealpoint-fuzz-") as folder:
        path = Path(folder) / "seed.safetensors"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls some of its layouts and types new
            for state in states():
                save_checkpoint(state, path)
                yield path.read_bytes()


def _plain() -> Iterator[bytes]:
    """Files of another writer: no structure, and any order."""
    for element in ELEMENT_BITS:
        parts = [
            Part(name="a.weight", element=element, shape=(2, 4), data=b"\1"),
            Part(name="b", element=element, shape=(0, 3)),
        ]
        yield bytes(Sketch(parts=parts, metadata={"format": "pt"}, structure=None))
    yield framed(b"{}", b"")
    yield framed(b'{"__metadata__":{}}     ', b"")
    entry = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}
    later = {"data_offsets": [2, 4], "shape": [1, 2], "dtype": "I8"}
    yield framed(json.dumps({"z": later, "a": entry}, indent=1).encode(), b"abcd")


def _hostile() -> Iterator[bytes]:
    """What a reader may trip over, as headers."""
    good = '"dtype":"U8","shape":[1],"data_offsets":[0,1]'
    texts = (
        *(' {"a":{%s}}', '{"a":{%s},"a":{%s}}', '{"a":{%s,"more":1}}', '{"":{%s}}', "[{%s}]"),
        *('{"\\u0000":{%s}}', '{"../../a":{%s}}', '{"\\ud800":{%s}}', '{"a":{%s}}\n', '{"a":{%s}'),
        *('{"__metadata__":{"a":1},"a":{%s}}', '{"__metadata__":[],"a":{%s}}', '{"a":{%s}}\0'),
        *('{"__metadata__":{"\\udc00":"a"},"a":{%s}}', '{"a":{%s}}{}', '{"a":null,"b":{%s}}'),
    )
    for text in texts:
        yield framed(text.replace("%s", good).encode(), b"\1")
    for shape, offsets in (
        *(("[0,4611686018427387904]", "[0,0]"), ("[4611686018427387904,8]", "[0,1]")),
        *(("[-1]", "[0,1]"), ("[1.0]", "[0,1]"), ("[1e0]", "[0,1]"), ("[true]", "[0,1]")),
        *(
            ("[NaN]", "[0,1]"),
            ("[1]", "[1,0]"),
            ("[1]", "[0,1,2]"),
            ("[1]", "[1,2]"),
            ("{}", "[0,1]"),
        ),
        *(("[99999999999999999999]", "[0,1]"), ("[" + "1," * 70 + "1]", "[0,1]"), ("1", "[0,1]")),
    ):
        text = f'{{"a":{{"dtype":"U8","shape":{shape},"data_offsets":{offsets}}}}}'
        yield framed(text.encode(), b"\1")
    for dtype in ('"F128"', "8", '"F4"', '"BOOL"', '"\\ud800"'):
        text = f'{{"a":{{"dtype":{dtype},"shape":[1],"data_offsets":[0,1]}}}}'
        yield framed(text.encode(), b"\2")
    yield framed(b'{"a":' + b"[" * 4000 + b"]" * 4000 + b"}", b"")
    yield framed(b'{"a":' * 3000 + b"{}" + b"}" * 3000, b"")
    yield framed(b"\xef\xbb\xbf{}", b"")
    yield framed(b'{"\xff":1}', b"")
    yield from (
        b"",
        b"\0" * 7,
        b"\0" * 8,
        b"\xff" * 8,
        b"\1" + b"\0" * 7 + b"{",
        b"\2" + bytes(7),
    )


def _lying() -> Iterator[bytes]:
    """Structures whose nodes ask for what is not there, or for too much of it."""
    made: Any = {"device": "cpu", "requires_grad": False, "parameter": False}
    whole = TensorNode(entry="a", dtype="uint8", **made)
    index = TensorNode(entry="i", dtype="int64", **made)
    wide = replace(whole, offset=0, shape=[1 << 26], stride=[0])
    sparse: Any = {"values": whole, "coalesced": False, "requires_grad": False}
    quantized: Any = {"dtype": "quint8", "scale": 0.5, "axis": None, "floating": False}
    structures = (
        replace(wide, shape=[1 << 27]),
        QuantizedNode(elements=wide, zero_point=0, **quantized),
        QuantizedNode(elements=whole, zero_point=256, **quantized),
        SparseNode(layout="sparse_coo", shape=[1], indices=[whole], **sparse),
        SparseNode(layout="sparse_coo", shape=[1], indices=[index], **sparse),
        SparseNode(layout="strided", shape=[1], indices=[index], **sparse),
        SparseNode(
            layout="sparse_coo",
            shape=[1],
            indices=[replace(index, offset=0, shape=[1, 1 << 20], stride=[0, 0])],
            **sparse,
        ),
        QuantizedNode(
            dtype="quint8",
            elements=replace(whole, offset=0, shape=[0, 1 << 16], stride=[1, 1]),
            scale=replace(index, dtype="float64", offset=0, shape=[1 << 16], stride=[0]),
            zero_point=replace(index, offset=0, shape=[1 << 16], stride=[0]),
            axis=1,
            floating=False,
        ),
        [whole, replace(whole, device="cuda:0")],
        [replace(whole, requires_grad=True), replace(whole, offset=9)],
    )
    parts = [
        Part(name="a", element="U8", shape=(1,), data=b"\1"),
        Part(name="i", element="I64", shape=(1, 1), data=bytes(8)),
    ]
    for depth in (200, 254, 300, 1000, 1022, 1100):
        nested = b"\x91" * depth + b"\xc0"
        yield bytes(Sketch(parts=[], metadata=dict(METADATA), structure=nested))
    for structure in structures:
        encoded = base64.b64decode(write_structure([whole, index, structure]))
        yield bytes(Sketch(parts=parts, metadata=dict(METADATA), structure=encoded))


def _without_structure(data: bytes) -> bytes | None:
    sketch: Any = sketch_of(data)
    if sketch is None or not sketch.parts:
        return None
    sketch.structure = None
    return bytes(sketch)


def seeds() -> Iterator[bytes]:
    """All first cases, in a fixed order."""
    for data in _saved():
        yield data
        plain = _without_structure(data)
        if plain is not None:
            yield plain
    yield from _plain()
    yield from _hostile()
    yield from _lying()
