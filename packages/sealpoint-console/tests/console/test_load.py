# SPDX-License-Identifier: Apache-2.0
"""One member of each role does as much as it can for a minute: everybody else goes on.

An operator's pause takes effect within a second, another person's page is there within a second,
and another tenant's save takes at most three times as long as without them. On a machine with fewer
cores than members, it may take half as long again as next to members that only compute: no store
can give it a core. Figures are for a machine that does nothing else.
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
_SAVES_COMPARED = 50
_MEMBERS = 6
_PAGES = ("/", "/requests", "/people")


@pytest.mark.parametrize("backend", [in_soak("sqlite"), in_soak("postgres")])
def test_one_member_of_each_role_keeps_nobody_from_their_work(backend: str, tmp_path: Path) -> None:
    """The worker saves, an approver and an auditor append, others read and pause, all in loops."""
    server = None if backend == "sqlite" else shared_server()
    scene = Scene(tmp_path / "scene", server=server).make()
    with scene.open() as store:
        for name in (crowd.FLOODED, "held"):
            store.thread(name).save({"n": 0}, world=WORLD)
    quiet, crowded, loaded, stopped = (crowd.times() for _ in range(4))
    shown: list[float] = []
    with scene.serving() as served, served.client("ann") as ann, served.client("vera") as vera:
        for others, told in ((0, quiet), (_MEMBERS, crowded)):
            with crowd.crowd(scene, *[(crowd.computes,)] * others, (crowd.tenant, told)):
                while len(told) < _SAVES_COMPARED:
                    time.sleep(0.1)
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
    alone, beside, saves = (statistics.median(each) for each in (quiet, crowded, loaded))
    figures = (
        f"pauses {max(stopped):.2f} s, pages {max(shown):.2f} s, saves {saves / alone:.1f} times "
        f"those alone, {saves / beside:.1f} times those next to members that only compute"
    )
    print(figures)  # noqa: T201 # for the record of a soak: pytest -rP shows it

    assert len(members) == _MEMBERS
    assert max(stopped) < 1, figures
    assert max(shown) < 1, figures
    assert saves < max(3 * alone, 1.5 * beside), figures
