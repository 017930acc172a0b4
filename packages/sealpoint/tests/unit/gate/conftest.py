# SPDX-License-Identifier: Apache-2.0
"""Teams behind the gate."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment
from tests.effort import BACKENDS
from tests.unit.gate.team import Team


@pytest.fixture(params=BACKENDS)
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A team whose store is in memory, and in `make soak` in each of the others."""
    made = (
        Deployment() if request.param == "memory" else Deployment(tmp_path, backend=request.param)
    )
    yield Team(made)
    made.remove()


@pytest.fixture
def memory() -> Iterator[Team]:
    """A team whose store is in memory, for what no backend can change."""
    made = Deployment()
    yield Team(made)
    made.close()
