# SPDX-License-Identifier: Apache-2.0
"""A disk dies, and fifty threads go on from yesterday's copy: every worker in its own process."""

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import sealpoint
from tests.attacks.ledger.raw_editor import ServerEditor
from tests.warm import run_command

_ROOT = Path(__file__).parents[2]
_THREADS = [f"invoice-{number:02}" for number in range(50)]
_WORKERS = 2
_SECONDS_MAX = 120


class Site:
    """A store under the policy `strict`, its keys and its anchor, and copies of all of it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.disk = folder / "site", folder / "disk"
        self.disk.mkdir()
        self.url = url
        self.places = [str(self.folder / "config"), str(self.folder / "state")]
        config, state = self.places
        sealpoint.init(self.url, policy="strict", config_dir=config, state_dir=state)

    def _printed(self, *words: str) -> dict[str, Any]:
        """What a process printed, which ended well."""
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        ended = run_command(words, _ROOT, environment, _SECONDS_MAX, apart=True)
        assert ended.returncode == 0, ended.stderr
        document: dict[str, Any] = json.loads(ended.stdout)
        return document

    def work(self) -> dict[str, Any]:
        """Let every worker go on with its share of the threads, all at once."""
        worker = ("python", "-m", "tests.stories.restore_worker", self.url, *self.places)
        shares = [_THREADS[number::_WORKERS] for number in range(_WORKERS)]
        told: dict[str, Any] = {}
        with ThreadPoolExecutor(_WORKERS) as pool:
            for each in pool.map(lambda share: self._printed(*worker, *share), shares):
                told |= each
        return told

    def accept(self, *options: str) -> dict[str, Any]:
        """Accept the restore from the command line."""
        config, state = self.places
        return self._printed(
            *("sealpoint", "accept-restore", "--reason", "the disk died", "--yes", "--json"),
            *("--store", self.url, "--config-dir", config, "--state-dir", state, *options),
        )

    def copied(self, *folders: Path) -> Callable[[], None]:
        """Copy the store and some directories; what is returned puts the copies back."""
        copies = {each: each.with_name(f"{each.name}-{len(folders)}") for each in folders}
        for folder, copy in copies.items():
            shutil.copytree(folder, copy)
        is_server = self.url.startswith("postgresql:")
        put_rows = ServerEditor(self.disk / "agents").copied() if is_server else None

        def put_back() -> None:
            for folder, copy in copies.items():
                shutil.rmtree(folder)
                shutil.copytree(copy, folder, copy_function=shutil.copy2)
            if put_rows is not None:
                put_rows()

        return put_back

    def findings(self) -> list[str]:
        """What a full verification says."""
        config, state = self.places
        with sealpoint.open_store(self.url, config_dir=config, state_dir=state) as store:
            return [finding.message for finding in store.verify().findings if finding.refuses]


def test_fifty_threads_go_on_after_a_restore_that_released_them(url: str, tmp_path: Path) -> None:
    """All of them, those that were named, or none: as the one who accepted the restore said."""
    site = Site(tmp_path, url)
    assert site.work() == dict.fromkeys(_THREADS, 1)
    put_back = site.copied(site.disk)
    assert site.work() == dict.fromkeys(_THREADS, 2)
    put_back()
    assert site.work() == dict.fromkeys(_THREADS, "rolled-back")
    begin_anew = site.copied(site.disk, site.folder)
    named = _THREADS[:3]

    for options, goes_on in (
        (["--release"], _THREADS),
        ([word for name in named for word in ("--release", name)], named),
        ([], []),
    ):
        begin_anew()
        done = site.accept(*options)
        assert len(done["losses"]) == len(_THREADS)
        assert sorted(each["name"] for each in done["released"]) == goes_on
        refused = dict.fromkeys(_THREADS, "needs-approval")
        assert site.work() == refused | dict.fromkeys(goes_on, 2)
        assert site.findings() == []
