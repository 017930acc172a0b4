# SPDX-License-Identifier: Apache-2.0
"""Worlds to open stores in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.store.simulator import World


@pytest.fixture(params=["memory", "sqlite", "file"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store in memory, in a database and in a directory: a claim holds for all of them."""
    made = World() if request.param == "memory" else World(tmp_path, backend=request.param)
    yield made
    made.close()


@pytest.fixture
def memory() -> Iterator[World]:
    """A store in memory, whose rows can be changed behind everybody's back."""
    made = World()
    yield made
    made.close()
