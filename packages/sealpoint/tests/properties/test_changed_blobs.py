# SPDX-License-Identifier: Apache-2.0
"""A tree whose blobs were changed, swapped or lost is refused, whatever the change was."""

import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint.codec._wire_format import BlobId
from sealpoint.errors import BlobMismatch, SealpointError, UsageError
from tests import strategies
from tests.application import Message, Step, make_registry
from tests.blobs import Blobs
from tests.effort import examples

REGISTRY = make_registry()


class Altered:
    """A store of one blob, whatever it is asked for."""

    def __init__(self, blob: bytes) -> None:
        self.blob = blob

    def get(self, _: BlobId) -> bytes:
        """Return the blob."""
        return self.blob


def _state() -> dict[str, Any]:
    """A value with a reference of every stream, index levels and nested references."""
    return {
        "messages": [Message(text=f"message {n} " + "x" * (n % 97)) for n in range(400)],
        "map": {f"key {n}": ["value", n, "y" * (n % 53)] for n in range(400)},
        "bytes": bytes(n * n % 251 for n in range(40_000)),
        "text": "".join(chr(0x100 + n * n % 997) for n in range(30_000)),
        "steps": [[Step(f"step {m}", list(range(40))) for m in range(40)] for _ in range(3)],
        "tuple": tuple(f"member {n}" for n in range(1500)),
    }


STORE = Blobs()
ROOT = REGISTRY.encode_tree(_state(), STORE.put)
NAMES = sorted(STORE.stored)


def _load(changes: dict[bytes, bytes | None]) -> Any:
    stored: dict[bytes, bytes | None] = {**STORE.stored, **changes}

    def get(name: Any) -> bytes:
        blob = stored[name]
        if blob is None:
            raise KeyError(name)
        return blob

    return REGISTRY.decode_tree(ROOT, get)


def test_the_unchanged_tree_loads() -> None:
    """The tree that the other tests change is whole to begin with, and has many blobs."""
    assert REGISTRY.encode(_load({})) == REGISTRY.encode(_state())
    assert len(NAMES) > 50


@given(st.sampled_from(NAMES), st.data())
@settings(max_examples=examples(300))
def test_any_changed_byte_of_any_blob_is_refused(name: bytes, data: st.DataObject) -> None:
    """One byte with another value, anywhere in any blob, is a blob mismatch."""
    blob = STORE.stored[name]
    place = data.draw(st.integers(0, len(blob) - 1))
    flip = data.draw(st.integers(1, 255))
    changed = blob[:place] + bytes((blob[place] ^ flip,)) + blob[place + 1 :]

    with pytest.raises(BlobMismatch):
        _load({name: changed})


def test_every_byte_of_a_small_tree_is_proven() -> None:
    """Each single byte of each blob of a small tree, changed on its own, is refused."""
    blobs = Blobs()
    root = REGISTRY.encode_tree({"a": [1, 2.5, "x"], "b": Step("t", (1, {2}))}, blobs.put)
    (blob,) = blobs.stored.values()

    refused = 0
    for place in range(len(blob)):
        changed = blob[:place] + bytes((blob[place] ^ 0x01,)) + blob[place + 1 :]
        with pytest.raises(BlobMismatch):
            REGISTRY.decode_tree(root, Altered(changed).get)
        refused += 1

    assert refused == len(blob)


@pytest.mark.parametrize("name", NAMES[::7], ids=lambda name: name.hex()[:8])
def test_a_missing_blob_is_refused(name: bytes) -> None:
    """A blob that the store lost is named in the error."""
    with pytest.raises(BlobMismatch, match=name.hex()[:12]):
        _load({name: None})


@given(st.sampled_from(NAMES), st.sampled_from(NAMES))
@settings(max_examples=examples(100))
def test_a_swapped_blob_is_refused(one: bytes, other: bytes) -> None:
    """Two genuine blobs in each other's places are refused."""
    if STORE.stored[one] == STORE.stored[other]:
        return

    with pytest.raises(BlobMismatch):
        _load({one: STORE.stored[other], other: STORE.stored[one]})


@pytest.mark.parametrize("cut", ["empty", "short", "long", "text", "none"])
def test_a_blob_of_another_length_or_type_is_refused(cut: str) -> None:
    """A blob that was cut off, lengthened, or is not bytes at all is refused."""
    name = max(NAMES, key=lambda each: len(STORE.stored[each]))
    blob = STORE.stored[name]
    changed: Any = {
        "empty": b"",
        "short": blob[:-1],
        "long": blob + b"\0",
        "text": blob.decode("latin-1"),
        "none": 7,
    }[cut]

    with pytest.raises(BlobMismatch):
        _load({name: changed})


def test_the_root_of_another_tree_gives_the_other_value_only() -> None:
    """A root names one value: another value's root gives that value."""
    blobs = Blobs()
    one = REGISTRY.encode_tree([1], blobs.put)
    other = REGISTRY.encode_tree([2], blobs.put)

    assert REGISTRY.decode_tree(one, blobs.get) == [1]
    assert REGISTRY.decode_tree(other, blobs.get) == [2]


@pytest.mark.parametrize("root", [b"", b"x" * 31, b"x" * 33, "zz" * 32, "ab" * 31, 7, None])
def test_a_root_that_is_no_digest_is_refused(root: Any) -> None:
    """A root that `encode_tree` cannot have returned is a usage error."""
    with pytest.raises(UsageError):
        REGISTRY.decode_tree(root, STORE.get)


def test_hexadecimal_names_work_in_both_directions() -> None:
    """A store that names blobs by hexadecimal digits is asked by hexadecimal digits."""
    stored: dict[Any, bytes] = {}

    def put(blob: bytes) -> str:
        name = hashlib.sha256(blob).hexdigest()
        stored[name] = blob
        return name

    root = REGISTRY.encode_tree(_state(), put)

    assert isinstance(root, str)
    assert REGISTRY.encode(REGISTRY.decode_tree(root, stored.__getitem__)) == REGISTRY.encode(
        _state()
    )


@pytest.mark.parametrize("name", [None, b"short", "zz" * 32, 7, "ab" * 31])
def test_a_put_that_returns_no_digest_is_a_usage_error(name: Any) -> None:
    """A store that does not answer with a SHA-256 is refused before anything refers to it."""
    with pytest.raises(UsageError):
        REGISTRY.encode_tree(_state(), lambda _: name)


@given(strategies.values(), st.data())
@settings(max_examples=examples(300))
def test_a_hostile_blob_that_hashes_right_is_an_error_or_a_value(
    value: Any, data: st.DataObject
) -> None:
    """Changed blobs under right names, as whoever forges a root can write, stay harmless."""
    blobs = Blobs()
    REGISTRY.encode_tree([value, bytes(20_000)], blobs.put)
    blob = data.draw(st.sampled_from(sorted(blobs.stored.values())))
    place = data.draw(st.integers(0, len(blob) - 1))
    forged = blob[:place] + data.draw(st.binary(max_size=4)) + blob[place + 1 :]
    root = blobs.put(forged)

    try:
        decoded = REGISTRY.decode_tree(root, blobs.get)
    except SealpointError:
        return

    assert REGISTRY.encode(decoded)
