# SPDX-License-Identifier: Apache-2.0
"""Worlds to open stores in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.store.simulator import World


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store in memory, and one in files: a claim holds for both."""
    made = World(tmp_path if request.param == "sqlite" else None)
    yield made
    made.close()


@pytest.fixture
def memory() -> Iterator[World]:
    """A store in memory, whose rows can be changed behind everybody's back."""
    made = World()
    yield made
    made.close()
