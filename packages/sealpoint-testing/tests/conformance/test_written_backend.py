# SPDX-License-Identifier: Apache-2.0
"""The backend of the guide passes the suite, and an entry point is all it takes to use it."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sealpoint
from sealpoint import _parts
from sealpoint.errors import RolledBack, StorageUnavailable, UrlInvalid, UsageError
from sealpoint_testing.conformance.storage import StorageConformance
from tests.repo._markdown import blocks
from tests.repo._tree import ROOT

_PAGE = ROOT / "docs" / "guides" / "write-a-backend.md"


def _page() -> dict[str, Any]:
    """What the code of the guide defines, each block a module that later ones import."""
    names: dict[str, Any] = {}
    for block in blocks(_PAGE.read_text(encoding="utf-8")):
        if block.language == "python":
            name = block.text.partition("\n")[0].removeprefix("# ").removesuffix(".py")
            module = sys.modules[name] = ModuleType(name)
            exec(compile(block.text, _PAGE.name, "exec"), vars(module))  # noqa: S102 # our own
            names |= vars(module)
    return names


_NAMES = _page()
TestDictStorage: type[StorageConformance] = _NAMES["TestDictStorage"]


@pytest.fixture
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Where keys and anchor lie, while the guide's backend is registered."""
    _NAMES["databases"].clear()
    load = _parts.load

    def find(group: str, name: str) -> Any:
        return _NAMES["BACKEND"] if name == "dict" else load(group, name)

    monkeypatch.setattr(_parts, "load", find)
    return {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}


def test_a_store_that_is_nowhere_on_this_machine_is_made_and_opened(
    directories: dict[str, Any],
) -> None:
    """Nothing else knows the backend."""
    sealpoint.init("dict:agents", **directories)
    with sealpoint.open_store("dict:agents", **directories) as store:
        store.thread("invoice-7").save({"step": 1})
    with sealpoint.open_store("dict:agents", read_only=True, **directories) as store:
        assert store.thread("invoice-7").load().state == {"step": 1}


def test_its_loss_is_noticed(directories: dict[str, Any]) -> None:
    """A store that was here and is vacant was rolled back; one that never was is not there."""
    sealpoint.init("dict:agents", **directories)
    _NAMES["databases"].clear()

    with pytest.raises(RolledBack):
        sealpoint.open_store("dict:agents", **directories)


def test_its_trust_is_moved_to_another_address(directories: dict[str, Any]) -> None:
    """Keys and anchor go along when a store gets another URL, once there is one."""
    sealpoint.init("dict:agents", **directories)
    with pytest.raises(StorageUnavailable, match="there is no store at this place"):
        sealpoint.admin("dict:moved", **directories).trust.move_from("dict:agents")
    databases = _NAMES["databases"]
    databases["moved"] = databases.pop("agents")
    sealpoint.admin("dict:moved", **directories).trust.move_from("dict:agents")

    with sealpoint.open_store("dict:moved", **directories) as store:
        store.thread("invoice-7").save({"step": 1})


def test_it_is_shared_by_no_group_of_users(directories: dict[str, Any]) -> None:
    """A group shares files of one machine, and here are none."""
    with pytest.raises(UsageError, match="on this machine"):
        sealpoint.init("dict:agents", group="root", **directories)


def test_its_url_is_strict(directories: dict[str, Any]) -> None:
    """What the backend does not read is no URL."""
    with pytest.raises(UrlInvalid, match="dict: and a name"):
        sealpoint.open_store("dict:no name", **directories)
