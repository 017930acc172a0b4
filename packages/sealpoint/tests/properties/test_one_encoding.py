# SPDX-License-Identifier: Apache-2.0
"""A value has one encoding: now, again, after a round trip, and in another process."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.application import make_registry
from tests.blobs import Blobs
from tests.effort import examples
from tests.properties.hash_seeded import digests

REGISTRY = make_registry()
_ROOT = Path(__file__).resolve().parents[4]

_PROGRAM = """
from tests.properties.hash_seeded import digests
print(digests())
"""


def _tree(value: Any) -> tuple[bytes, set[bytes]]:
    blobs = Blobs()
    root = REGISTRY.encode_tree(value, blobs.put)
    assert isinstance(root, bytes)
    return root, set(blobs.stored)


@given(strategies.values())
@settings(max_examples=examples(500))
def test_encoding_twice_gives_the_same_bytes(value: Any) -> None:
    """The same value, encoded twice, flat and as a tree, gives the same bytes and blobs."""
    assert REGISTRY.encode(value) == REGISTRY.encode(value)
    assert _tree(value) == _tree(value)


@given(strategies.values())
@settings(max_examples=examples(500))
def test_a_decoded_value_encodes_to_the_bytes_it_came_from(value: Any) -> None:
    """Encoding what was decoded gives the same bytes and the same root."""
    data = REGISTRY.encode(value)
    blobs = Blobs()
    root = REGISTRY.encode_tree(value, blobs.put)

    assert REGISTRY.encode(REGISTRY.decode(data)) == data
    assert _tree(REGISTRY.decode_tree(root, blobs.get))[0] == root


@given(st.lists(strategies.keys(), max_size=6))
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
def test_the_order_in_which_a_set_was_filled_leaves_no_trace(members: list[Any]) -> None:
    """A set filled forwards and one filled backwards have one encoding."""
    forwards = set(members)
    backwards = {*reversed(list(forwards))}

    assert REGISTRY.encode(forwards) == REGISTRY.encode(backwards)
    assert REGISTRY.encode(frozenset(forwards)) == REGISTRY.encode(frozenset(backwards))


def test_another_process_with_another_hash_seed_writes_the_same_bytes() -> None:
    """The seed of Python's string hash, which differs per process, leaves no trace."""
    found = {digests()}
    for seed in ("1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(_ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
            cwd=_ROOT,
        )
        found.add(done.stdout.strip())

    assert len(found) == 1
