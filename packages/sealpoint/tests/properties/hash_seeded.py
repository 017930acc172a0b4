# SPDX-License-Identifier: Apache-2.0
"""Values whose order in memory depends on the seed of Python's string hash, and their encodings."""

import hashlib

from tests.application import Color, Level, Pair, Point, make_registry
from tests.blobs import Blobs


def digests() -> str:
    """Digest the flat encoding and the tree of such a value."""
    registry = make_registry()
    words = {f"word {number}" for number in range(300)}
    mixed = {*words, b"bytes", ("a", "b"), Color.RED, Level.LOW, Point(1, "x"), Pair("p", None)}
    value = {
        "set": words,
        "frozen": frozenset(mixed),
        "nested": frozenset({frozenset(words), frozenset(mixed)}),
        "keys": {frozenset(words): 1},
    }
    root = registry.encode_tree(value, Blobs().put)
    return hashlib.sha256(registry.encode(value)).hexdigest() + str(root)
