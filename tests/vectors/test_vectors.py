# SPDX-License-Identifier: Apache-2.0
"""The frozen vectors, our decoder and the second one: three that must agree."""

import ast
import hashlib
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sealpoint import Registry
from sealpoint.errors import DecodeError
from tests.effort import in_soak
from tests.vectors import decoder, generate
from tests.vectors.building import blob_id, shape
from tests.vectors.mutation import Pool
from tests.vectors.rendering import deep_values, render
from tests.vectors.rules import registry

_FOLDER = Path(__file__).parent
_SPECIFICATION = _FOLDER.parents[1] / "docs" / "formats" / "values.md"
_SHARDS = 20
_MUTATIONS = 100_000
_TREE_SHARE = 0.15
_SEED_BYTES_MAX = 240


def _frozen(name: str) -> Any:
    with deep_values():
        return json.loads((_FOLDER / name).read_text(encoding="ascii"))


_RULES = _frozen("rules.json")
_VECTORS: list[dict[str, Any]] = [*_frozen("values.json"), *_frozen("trees.json")]


@pytest.fixture(autouse=True)
def _deep() -> Iterator[None]:
    with deep_values():
        yield


def _tree(vector: dict[str, Any]) -> tuple[bytes, dict[bytes, bytes]]:
    blobs = [bytes.fromhex(blob) for blob in vector["blobs"]]
    return blob_id(blobs[-1]), {blob_id(blob): blob for blob in blobs}


def _digest(rendering: Any) -> str:
    return hashlib.sha256(json.dumps(rendering).encode("ascii")).hexdigest()


def _expected(vector: dict[str, Any], rendering: Any) -> bool:
    """Whether a value is the one that a vector says; of a long one it says only the digest."""
    if "value_sha256" in vector:
        return bool(_digest(rendering) == vector["value_sha256"])
    return bool(rendering == vector["value"])


def _getter(store: dict[bytes, bytes]) -> Any:
    return store.__getitem__


def _ours(vector: dict[str, Any]) -> Any:
    ours = registry(vector.get("limits"))
    if "hex" in vector:
        return ours.decode(bytes.fromhex(vector["hex"]))
    root, store = _tree(vector)
    return ours.decode_tree(root, _getter(store))


def _second(vector: dict[str, Any]) -> Any:
    limits = _RULES["limits"] | vector.get("limits", {})
    if "hex" in vector:
        return decoder.decode(bytes.fromhex(vector["hex"]), _RULES["rules"], limits)
    root, store = _tree(vector)
    return decoder.decode(root, _RULES["rules"], limits, store)


def _faults(decode: Callable[[dict[str, Any]], Any], refusals: Any) -> Iterator[str]:
    """Say of each vector that a decoder does not read as it says what came of it."""
    for vector in _VECTORS:
        name, code = vector["name"], vector.get("error")
        try:
            value = decode(vector)
        except refusals as refused:
            # The second decoder refuses without a code.
            if code is None or getattr(refused, "code", code) != code:
                yield f"{name}: {refused!r}"
        except Exception as error:
            error.add_note(f"vector {name}")
            raise
        else:
            if code is not None or not _expected(vector, render(value)):
                yield f"{name}: expected {code or 'another value'}, found {value!r:.200}"


def test_our_decoder_gives_what_a_vector_says() -> None:
    """A vector gives the value it names, or the error whose code it names."""
    assert _VECTORS
    assert list(_faults(_ours, DecodeError)) == []


def test_second_decoder_gives_what_a_vector_says() -> None:
    """A decoder written from the specification gives the same value, or refuses as well."""
    assert list(_faults(_second, decoder.FAULTS)) == []


def test_a_vector_that_is_not_read_as_it_says_is_named() -> None:
    """The control: a decoder that reads nothing, or refuses nothing, is noticed for each vector."""
    refused = sum("error" in vector for vector in _VECTORS)

    def refuse(vector: dict[str, Any]) -> Any:
        raise DecodeError(f"planted for {vector['name']}")

    assert len(list(_faults(lambda _: "planted", DecodeError))) == len(_VECTORS)
    assert len(list(_faults(refuse, DecodeError))) == len(_VECTORS)
    assert 0 < refused < len(_VECTORS)


def _is_encoded_alike(vector: dict[str, Any]) -> bool:
    """Whether the value of a vector is encoded to its bytes."""
    ours, value = registry(vector.get("limits")), _ours(vector)
    if "hex" in vector:
        return bool(ours.encode(value).hex() == vector["hex"])
    root, store = _tree(vector)
    written: dict[bytes, bytes] = {}

    def put(blob: bytes) -> bytes:
        written[blob_id(blob)] = blob
        return blob_id(blob)

    return ours.encode_tree(value, put) == root and written == store


def test_canonical_vectors_are_encoded_to_the_same_bytes() -> None:
    """A value has one encoding, flat and as a tree."""
    canonical = [vector for vector in _VECTORS if vector.get("canonical")]

    assert canonical
    assert [vector["name"] for vector in canonical if not _is_encoded_alike(vector)] == []


def test_generator_yields_no_diff() -> None:
    """Generating the vectors again gives the frozen files, byte by byte."""
    for name, text in generate.frozen().items():
        frozen = (_FOLDER / name).read_text(encoding="ascii")

        assert text == frozen, f"{name}: run python -m tests.vectors.generate and look at the diff"


def test_vectors_have_names_of_their_own() -> None:
    """A failure names one vector."""
    names = [("blobs" in vector, vector["name"]) for vector in _VECTORS]

    assert len(set(names)) == len(names)


def test_every_tag_and_error_of_decoding_has_a_vector() -> None:
    """No tag of the format and no error of decoding is without a vector."""
    from sealpoint.codec._wire_format import Tag  # noqa: PLC0415 - the only look inside

    seen = "".join(json.dumps(vector.get("value")) for vector in _VECTORS)
    errors = {vector["error"] for vector in _VECTORS if "error" in vector}
    names = {tag.name.lower() for tag in Tag} - {"reference", "big_int", "surrogate_text", "pairs"}
    renamed = {"array_scalar": "scalar"}

    assert errors == {error.code for error in DecodeError.__subclasses__()}
    assert not [name for name in names if f'"{renamed.get(name, name)}"' not in seen]


@pytest.mark.parametrize("name", sorted(_RULES["rules"]))
def test_shape_digest_is_computed_as_specified(name: str) -> None:
    """The shape is two sums over the kind and each field's name and annotation text."""
    rule = _RULES["rules"][name]

    assert shape(rule["kind"], *map(tuple, rule["annotations"])).hex() == rule["shape"]


def test_second_decoder_is_short_and_stands_alone() -> None:
    """It has at most 210 lines and imports the standard library only."""
    text = Path(decoder.__file__).read_text(encoding="utf-8")
    imported: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))

    assert len(text.splitlines()) <= 210
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)


@cache
def _pool() -> tuple[Pool, list[list[bytes]], Registry]:
    seeds = sorted({vector["hex"] for vector in _VECTORS if "hex" in vector})
    # Without the deepest: between 255 and 1,023 levels a reader may accept or refuse.
    short = [bytes.fromhex(seed) for seed in seeds if len(seed) <= 2 * _SEED_BYTES_MAX]
    trees = [
        [bytes.fromhex(blob) for blob in each["blobs"]] for each in _VECTORS if "blobs" in each
    ]
    small = [blobs for blobs in trees if sum(map(len, blobs)) <= _SEED_BYTES_MAX]
    return Pool(short), small, registry()


def _compared(data: bytes, store: dict[bytes, bytes] | None) -> tuple[Any, Any]:
    """What each decoder makes of bytes, or of the tree below a root: a rendering, or refused."""
    _, _, ours = _pool()
    try:
        value = ours.decode(data) if store is None else ours.decode_tree(data, _getter(store))
        first = render(value)
    except DecodeError:
        first = "refused"
    try:
        second = render(decoder.decode(data, _RULES["rules"], _RULES["limits"], store))
    except decoder.FAULTS:
        second = "refused"
    return first, second


@pytest.mark.parametrize("shard", [*range(4), *map(in_soak, range(4, _SHARDS))])
def test_decoders_agree_on_mutations(shard: int) -> None:
    """Both decoders accept the same mutations of the vectors, with the same value."""
    pool, trees, _ = _pool()
    rng = random.Random(shard)  # noqa: S311 - data to test with
    accepted = 0
    for _ in range(_MUTATIONS // _SHARDS):
        if rng.random() < _TREE_SHARE:
            data, store = pool.tree(rng, rng.choice(trees))
        else:
            data, store = pool.mutated(rng), None
        ours, second = _compared(data, store)
        accepted += ours != "refused"

        assert ours == second, (data.hex(), store and [blob.hex() for blob in store.values()])
    assert accepted > _MUTATIONS // _SHARDS // 10


def test_worked_examples_of_the_specification_are_real() -> None:
    """Every hexadecimal example in the specification is the vector it names."""
    text = _SPECIFICATION.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+?)` \| `([0-9a-f ]+)` \|", text, re.MULTILINE)
    frozen = {vector["name"]: vector["hex"] for vector in _VECTORS if "hex" in vector}

    assert len(rows) >= 20
    for name, digits in rows:
        assert frozen[name] == digits.replace(" ", ""), name


def test_worked_tree_of_the_specification_is_real() -> None:
    """The root blob that the specification takes apart is that of the vector of a map."""
    block = _SPECIFICATION.read_text(encoding="utf-8").partition("\nA tree: ")[2].split("```")[1]
    lines = [re.match(r"(?:[0-9a-f]{2,} ?)+", line) for line in block.splitlines()]
    digits = "".join(line[0].replace(" ", "") for line in lines if line is not None)
    roots = [
        vector["blobs"][-1]
        for vector in _VECTORS
        if vector.get("blobs") and vector["name"] == "map"
    ]

    assert [digits] == roots
