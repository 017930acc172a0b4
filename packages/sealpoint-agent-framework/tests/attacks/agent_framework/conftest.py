# SPDX-License-Identifier: Apache-2.0
"""What the attacks take place in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.agent_framework.payments import SHAPES, Payments
from tests.attacks.agent_framework.bureau import Bureau


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bureau]:
    """A store of a team."""
    made = Bureau(tmp_path_factory.mktemp("office") / "home")
    yield made
    made.close()


@pytest.fixture
def new_office(tmp_path: Path) -> Iterator[Bureau]:
    """A store of a team for one test: to verify what many tests have left takes long."""
    made = Bureau(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bureau]:
    """A store whose policy asks nobody."""
    made = Bureau(tmp_path_factory.mktemp("calm") / "home", policy="solo")
    yield made
    made.close()


@pytest.fixture(params=SHAPES)
def payments(request: pytest.FixtureRequest) -> Payments:
    """Workflows of each shape."""
    return Payments(request.param)
