# SPDX-License-Identifier: Apache-2.0
"""Listing the blobs of the frozen trees."""

from sealpoint.codec import tree_blobs
from sealpoint.errors import DecodeError
from tests.blobs import Watched
from tests.vectors import trees
from tests.vectors.rendering import deep_values
from tests.vectors.rules import registry as registry_of


def test_a_frozen_tree_is_listed_as_a_reader_fetches_it() -> None:
    """Vectors that are accepted are listed, and those that are refused end in a decode error."""
    with deep_values():
        vectors = trees.vectors()
    listed = 0
    for vector in vectors:
        registry = registry_of(vector.get("limits"))
        store = Watched()
        names = [store.put(bytes.fromhex(blob)) for blob in vector["blobs"]]
        try:
            found = set(tree_blobs(names[-1], store.get, limits=registry.limits, fetch_all=True))
        except DecodeError:
            assert "error" in vector, vector["name"]
            continue
        asked, store.asked = set(store.asked), []
        assert asked == found
        if "error" not in vector:
            registry.decode_tree(names[-1], store.get)
            assert found == set(store.asked), vector["name"]
            listed += 1

    assert listed > 20
