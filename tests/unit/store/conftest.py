# SPDX-License-Identifier: Apache-2.0
"""Worlds to open stores in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.effort import BACKENDS
from tests.unit.store.simulator import World


@pytest.fixture(params=BACKENDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store in memory, and in `make soak` in a database and in a directory."""
    made = World() if request.param == "memory" else World(tmp_path, backend=request.param)
    yield made
    made.close()


@pytest.fixture
def memory() -> Iterator[World]:
    """A store in memory, whose rows can be changed behind everybody's back."""
    made = World()
    yield made
    made.close()
