# SPDX-License-Identifier: Apache-2.0
"""Messages from the shell: a registry to name, and the hint that names it."""

from pathlib import Path
from typing import Any

from click.testing import CliRunner
from langchain_core.messages import HumanMessage

import sealpoint
from sealpoint.adapters.langgraph import SealedSaver, framework
from sealpoint.cli import main


def test_a_thread_of_messages_is_shown_with_the_registry_that_the_hint_names(
    tmp_path: Path,
) -> None:
    """Without it the types are unknown; with it the state is printed."""
    places: Any = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    (tmp_path / "disk").mkdir()
    url = f"sqlite:///{tmp_path}/disk/agents.db"
    sealpoint.init(url, **places)
    with sealpoint.open_store(url, **places) as store:
        SealedSaver(store)
        store.thread("t").save([HumanMessage("hello there")])
    options = ["--store", url, "--config-dir", str(tmp_path / "config")]
    options += ["--state-dir", str(tmp_path / "state")]
    without = CliRunner().invoke(main, ["load", "t", *options])
    named = "sealpoint.adapters.langgraph.framework:registry"
    shown = CliRunner().invoke(main, ["load", "t", "--registry", named, *options])

    assert without.exit_code != 0
    assert named in " ".join(without.output.split())
    assert shown.exit_code == 0, shown.output
    assert "hello there" in shown.output
    assert framework.registry.decode(framework.registry.encode(HumanMessage("x"))).content == "x"
