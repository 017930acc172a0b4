# SPDX-License-Identifier: Apache-2.0
"""The team that is attacked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.gate.attacked_team import BACKENDS, AttackedTeam


@pytest.fixture(params=BACKENDS)
def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AttackedTeam]:
    """A team whose store is in a file, in a directory, and in `make soak` on a server."""
    made = AttackedTeam(tmp_path, request.param)
    yield made
    made.world.remove()
