# SPDX-License-Identifier: Apache-2.0
"""Deployments to open stores in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment
from tests.effort import BACKENDS


@pytest.fixture(params=BACKENDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    """A store in memory, and in `make soak` in each of the others."""
    made = (
        Deployment() if request.param == "memory" else Deployment(tmp_path, backend=request.param)
    )
    yield made
    made.remove()


@pytest.fixture
def memory() -> Iterator[Deployment]:
    """A store in memory, whose rows can be changed behind everybody's back."""
    made = Deployment()
    yield made
    made.close()
