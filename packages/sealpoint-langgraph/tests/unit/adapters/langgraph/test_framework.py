# SPDX-License-Identifier: Apache-2.0
"""Messages from the shell: as plain data, or with a registry to name."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from langchain_core.messages import HumanMessage

import sealpoint
from sealpoint.cli import main
from sealpoint_langgraph import SealedSaver, framework


def test_a_thread_of_messages_is_shown_with_and_without_their_registry(tmp_path: Path) -> None:
    """Without it as plain data with the names of types; with it as the objects they are."""
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
    named = "sealpoint_langgraph.framework:registry"
    shown = CliRunner().invoke(main, ["load", "t", "--registry", named, *options])

    assert without.exit_code == 0, without.output
    (message,) = json.loads(without.output)
    assert message["type"].startswith("langchain.")
    assert message["fields"]["value"][0]["content"] == "hello there"
    assert shown.exit_code == 0, shown.output
    assert "hello there" in shown.output
    assert framework.registry.decode(framework.registry.encode(HumanMessage("x"))).content == "x"
