# SPDX-License-Identifier: Apache-2.0
"""What the attacks take place in."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.attacks.langgraph.desks import SHAPES, Desk
from tests.attacks.langgraph.office import Office

_NUMBERS = count()


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A store of a team."""
    made = Office(tmp_path_factory.mktemp("office") / "home")
    yield made
    made.close()


@pytest.fixture
def thread() -> str:
    """A name that no other test uses."""
    return f"thread-{next(_NUMBERS)}"


@pytest.fixture(params=SHAPES)
def desk(request: pytest.FixtureRequest) -> Desk:
    """The question is asked by the graph, or by a subgraph."""
    return Desk(request.param)


@pytest.fixture
def new_office(tmp_path: Path) -> Iterator[Office]:
    """A store of a team for one test: to verify what many tests have left takes long."""
    made = Office(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A store whose policy asks nobody."""
    made = Office(tmp_path_factory.mktemp("calm") / "home", policy="solo")
    yield made
    made.close()
