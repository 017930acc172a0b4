# SPDX-License-Identifier: Apache-2.0
"""Which files of a folder, and of the other folders of a gateway, count."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from sealpoint.errors import StateChanged
from sealpoint_openclaw import Folder
from tests.openclaw.recorded_folder import Recorded

_SPY = "agents/spy/agent/openclaw-agent.sqlite"


@pytest.mark.parametrize("name", ["tmp", "logs"])
def test_names_that_the_gateway_uses_for_notes_count_in_other_folders(
    stopped: Recorded, tmp_path: Path, name: str
) -> None:
    """A plugin may keep its code under any name."""
    code = tmp_path / name / "index.js"
    code.parent.mkdir()
    code.write_text("1")
    folder = replace(Folder(root=stopped.folder), others={"plugins": tmp_path})

    assert f"plugins/{name}/index.js" in dict(folder.files())


def test_a_pipe_in_the_place_of_a_database_is_a_file(stopped: Recorded, tmp_path: Path) -> None:
    """SQLite would wait for a process that writes to it."""
    attacked = stopped.copied(tmp_path / "openclaw")
    (attacked.folder / _SPY).parent.mkdir(parents=True)
    os.mkfifo(attacked.folder / _SPY)
    with attacked.guard() as guard, pytest.raises(StateChanged, match=f"file {_SPY}: added"):
        guard.verify()
