# SPDX-License-Identifier: Apache-2.0
"""A place for each test."""

from pathlib import Path

import pytest

from tests.unit.api.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Nothing is there yet."""
    return Place(tmp_path)


@pytest.fixture
def made(place: Place) -> Place:
    """A store that was just made."""
    place.init()
    return place
