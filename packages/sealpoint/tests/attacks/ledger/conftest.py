# SPDX-License-Identifier: Apache-2.0
"""The scene that most attacks take place at."""

from pathlib import Path

import pytest

from tests.attacks.ledger.tampered_store import TamperedStore


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> TamperedStore:
    """Two threads with several checkpoints each, written in several sessions."""
    scene = TamperedStore.make(tmp_path_factory.mktemp("scene"))
    for session in range(2):
        with scene.open() as store:
            for name in ("alpha", "beta"):
                for place in range(2):
                    number = 2 * session + place
                    scene.save(
                        store,
                        name,
                        {"note": f"{name} says {number}", "steps": list(range(number))},
                        id=f"{name[0]}-{number}",
                        metadata={"step": number, "source": "loop"},
                    )
    return scene


@pytest.fixture
def scene(template: TamperedStore, tmp_path: Path) -> TamperedStore:
    """A copy of the template for one test to ruin."""
    return template.copied(tmp_path / "scene")
