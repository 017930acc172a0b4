# SPDX-License-Identifier: Apache-2.0
"""Recorded OpenClaw folders, sealed by a guard under the policy `solo`."""

from pathlib import Path

import pytest

from tests.openclaw.recorded_folder import Recorded


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """A folder of a gateway that was stopped, for tests that start it."""
    return Recorded.of(tmp_path)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The same, made once: tests compare copies of the folder with its seal."""
    return Recorded.of(tmp_path_factory.mktemp("stopped"))


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A folder whose gateway and guard both died after a turn that nobody sealed."""
    recorded = Recorded.of(tmp_path_factory.mktemp("crashed"))
    recorded.die_running()
    return recorded


@pytest.fixture
def team(recorded: Recorded) -> Recorded:
    """A folder under the policy `strict`, with two people who approve."""
    recorded.give_to_team()
    return recorded
