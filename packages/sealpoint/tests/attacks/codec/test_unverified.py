# SPDX-License-Identifier: Apache-2.0
"""Blobs are proven before they are parsed: nothing decodes what was not first verified."""

from typing import Any

import pytest

from sealpoint.codec import _decode
from sealpoint.errors import BlobMismatch
from tests.application import Step, make_registry
from tests.blobs import Blobs

REGISTRY = make_registry()


def test_a_changed_blob_never_reaches_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest of a blob is compared before a byte of it is interpreted."""
    blobs = Blobs()
    root = REGISTRY.encode_tree([Step("a", bytes(50_000))], blobs.put)
    assert isinstance(root, bytes)
    planted = REGISTRY.encode(["planted"])
    parsed: list[Any] = []
    monkeypatch.setattr(_decode, "unpackb", lambda *args, **_: parsed.append(args))
    monkeypatch.setattr(_decode, "leading_extension", parsed.append)

    with pytest.raises(BlobMismatch):
        REGISTRY.decode_tree(root, lambda _: planted)

    assert parsed == []


def test_each_blob_is_read_once() -> None:
    """Checked and used bytes are the same: no blob is asked for twice where it stands once."""
    blobs = Blobs()
    source = [f"element {number}" * 3 for number in range(5000)]
    root = REGISTRY.encode_tree(source, blobs.put)
    asked: list[Any] = []

    def get(name: Any) -> bytes:
        asked.append(name)
        return blobs.get(name)

    REGISTRY.decode_tree(root, get)

    assert len(asked) == len(set(asked)) == len(blobs.stored)


def test_a_store_that_vouches_for_its_blobs_is_not_asked_for_proof() -> None:
    """`verified=True` is the one way to skip the digest, and the caller says it, not data."""
    blobs = Blobs()
    root = REGISTRY.encode_tree([1], blobs.put)
    changed = {root: REGISTRY.encode([2])}

    assert REGISTRY.decode_tree(root, changed.__getitem__, verified=True) == [2]
    with pytest.raises(BlobMismatch):
        REGISTRY.decode_tree(root, changed.__getitem__)
