# SPDX-License-Identifier: Apache-2.0
"""One member of each role does as much as it can for a minute: everybody else goes on.

An operator's pause takes effect within a second, another person's page is there within a second,
and another tenant's save takes at most three times as long as without them. Figures are for two
cores that do nothing else.
"""

import statistics
import time
from pathlib import Path

import pytest

from tests.console import crowd
from tests.console.scene import WORLD, Scene
from tests.effort import in_soak
from tests.postgres_server import shared_server

_SECONDS = 60
_QUIET_SECONDS = 5
_PAGES = ("/", "/requests", "/people")


@pytest.mark.parametrize("backend", [in_soak("sqlite"), in_soak("postgres")])
def test_one_member_of_each_role_keeps_nobody_from_their_work(backend: str, tmp_path: Path) -> None:
    """The worker saves, an approver and an auditor append, others read and pause, all in loops."""
    server = None if backend == "sqlite" else shared_server()
    scene = Scene(tmp_path / "scene", server=server).make()
    with scene.open() as store:
        for name in (crowd.FLOODED, "held"):
            store.thread(name).save({"n": 0}, world=WORLD)
    quiet, loaded, stopped, shown = crowd.times(), crowd.times(), crowd.times(), list[float]()
    with scene.serving() as served, served.client("ann") as ann, served.client("vera") as vera:
        with crowd.crowd(scene, (crowd.tenant, quiet)):
            time.sleep(_QUIET_SECONDS)
        members = (
            *((crowd.answers, "bob"), (crowd.answers, "vera"), (crowd.saves,), (crowd.pauses,)),
            *((crowd.reads,), (crowd.pages, served.origin, vera.headers["cookie"])),
        )
        with crowd.crowd(scene, *members, (crowd.tenant, loaded), (crowd.stops, stopped)):
            ends = time.monotonic() + _SECONDS
            while time.monotonic() < ends:
                for path in _PAGES:
                    begun = time.perf_counter()
                    assert ann.get(path).status_code == 200
                    shown.append(time.perf_counter() - begun)
                time.sleep(0.5)
    saves = statistics.median(loaded) / statistics.median(quiet)
    figures = f"pauses {max(stopped):.2f} s, pages {max(shown):.2f} s, saves {saves:.1f} times"

    assert max(stopped) < 1, figures
    assert max(shown) < 1, figures
    assert saves < 3, figures
