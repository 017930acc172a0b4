# SPDX-License-Identifier: Apache-2.0
"""Scenes and browsers for the tests of the console."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.console.scene import Scene, Served

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A store of a team, which nobody serves yet."""
    return Scene(tmp_path / "scene").make()


@pytest.fixture
def served(scene: Scene) -> Iterator[Served]:
    """The same with a console."""
    with scene.serving() as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium for the tests of a file, whose windows have nothing in common.

    While it is open, an event loop runs in this thread: none of the file can run one of its own.
    """
    with chromium() as browser:
        yield browser


@contextmanager
def chromium() -> Iterator[Browser]:
    """A real Chromium; where there is none, tests are skipped and say so. One has to start."""
    if CHROMIUM is None:
        pytest.skip("no Chromium was found: apt-get install chromium")
    expect.set_options(timeout=20_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            # A container has no user namespaces for a sandbox; only our pages are loaded.
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield browser
        browser.close()
