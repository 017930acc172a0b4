# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: a store on each backend, and a process that traces."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.places import KINDS, Place
from tests.faults.traced import Traced, traced


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A new store, on each backend."""
    return Place(tmp_path, request.param).make()


@pytest.fixture(scope="session")
def tracer() -> Iterator[Traced]:
    """One process that follows the children of all tests."""
    with traced() as running:
        yield running
