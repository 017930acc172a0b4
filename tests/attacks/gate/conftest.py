# SPDX-License-Identifier: Apache-2.0
"""The team that is raided."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.gate.raid import BACKENDS, Raid


@pytest.fixture(params=BACKENDS)
def raid(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Raid]:
    """A team whose store is in a database and in a directory."""
    made = Raid(tmp_path, request.param)
    yield made
    made.world.close()
