# SPDX-License-Identifier: Apache-2.0
"""Ten histories of classes that changed, by `Registry.allow` and by `SealedSaver.for_graph`.

The old classes write a store in one process, the new ones read it in another. What is refused is
refused by name, and the code that the refusal prints is run as it is.
"""

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.stories.evolving import HISTORIES
from tests.warm import run_command

_ROOT = Path(__file__).parents[2]
_SECONDS_MAX = 240
_DATACLASS = "from dataclasses import dataclass, field\n"


@dataclass(frozen=True, kw_only=True)
class _History:
    """A class before and after, and how that has to end."""

    old: str
    new: str
    made: str
    declared: str = "Invoice"
    types: str = "{'Invoice': 'invoice'}"
    new_types: str | None = None
    new_declared: str | None = None
    value: str | None = None
    """What comes back by itself."""
    added: str = ""
    """What `on_event` is told."""
    refused: str = ""
    """What the error says changed."""
    after: str = ""
    """What comes back after the printed code was pasted."""

    def module(self, *, new: bool) -> str:
        declared = (self.new_declared if new else None) or self.declared
        types = (self.new_types if new else None) or self.types
        return (
            f"{self.new if new else self.old}\n\nTYPES = {types}\nDECLARED = {declared}\n\n\n"
            f"def make():\n    return {self.made}\n"
        )


def _dataclass(*fields: str, name: str = "Invoice") -> str:
    return f"{_DATACLASS}\n\n@dataclass\nclass {name}:\n" + "".join(f"    {f}\n" for f in fields)


_INNER = (
    "from dataclasses import dataclass\n\n\n@dataclass\nclass Line:\n    text: str\n{more}\n\n"
    "@dataclass\nclass Invoice:\n    lines: list[Line]\n"
)
_GENERIC = (
    "from dataclasses import dataclass\nfrom typing import Generic, TypeVar\n\n"
    "T = TypeVar('T')\n\n\n@dataclass\nclass Invoice(Generic[T]):\n    items: list[T]\n{more}"
)
_MODEL = "from pydantic import BaseModel\n\n\nclass Invoice(BaseModel):\n    number: str\n{more}"
_ATTRS = "import attrs\n\n\n@attrs.define\nclass Invoice:\n    number: str\n    total: {total}\n"
_ENUM = "from enum import Enum\n\n\nclass Invoice(Enum):\n{members}"

_TABLE = {
    "added": _History(
        old=_dataclass("number: str"),
        new=_dataclass(
            "number: str", "currency: str = 'EUR'", "tags: list = field(default_factory=list)"
        ),
        made="Invoice('7')",
        value="Invoice(number='7', currency='EUR', tags=[])",
        added="{name}: currency, tags",
    ),
    "removed": _History(
        old=_dataclass("number: str", "total: int"),
        new=_dataclass("number: str"),
        made="Invoice('7', 12)",
        refused="'total' went",
        after="Invoice(number='7')",
    ),
    "renamed": _History(
        old=_dataclass("number: str"),
        new=_dataclass("number: str", name="Bill"),
        made="Invoice('7')",
        new_declared="Bill",
        new_types="{'Bill': 'invoice'}",
        value="Bill(number='7')",
    ),
    "reordered": _History(
        old=_dataclass("number: str", "total: int"),
        new=_dataclass("total: int", "number: str"),
        made="Invoice(number='7', total=12)",
        value="Invoice(total=12, number='7')",
    ),
    "nested": _History(
        old=_INNER.format(more=""),
        new=_INNER.format(more="    count: int = 1\n"),
        made="Invoice([Line('a'), Line('b')])",
        types="{'Invoice': 'invoice', 'Line': 'line'}",
        value="Invoice(lines=[Line(text='a', count=1), Line(text='b', count=1)])",
        added="{line}: count",
    ),
    "generic": _History(
        old=_GENERIC.format(more=""),
        new=_GENERIC.format(more="    more: T | None = None\n"),
        made="Invoice([1])",
        declared="Invoice[int]",
        value="Invoice(items=[1], more=None)",
        added="{name}: more",
    ),
    "model": _History(
        old=_MODEL.format(more="    total: int\n"),
        new="from decimal import Decimal\n"
        + _MODEL.format(more="    total: Decimal\n    note: str = ''\n"),
        made="Invoice(number='7', total=12)",
        refused="'total' had another annotation, now Decimal",
        after="Invoice(number='7', total=12, note='')",
    ),
    "plain": _History(
        old=_dataclass("number: str", "total: int"),
        new=_dataclass("number: str", "amount: int", "note: str = ''"),
        made="Invoice('7', 12)",
        refused="'total' went; 'amount' is new without a default",
        after="Invoice(number='7', amount=None, note='')",
    ),
    "attributes": _History(
        old=_ATTRS.format(total="int"),
        new=_ATTRS.format(total="str"),
        made="Invoice('7', 12)",
        refused="'total' had another annotation, now str",
        after="Invoice(number='7', total=12)",
    ),
    "members": _History(
        old=_ENUM.format(members="    OPEN = 1\n    DONE = 2\n"),
        new=_ENUM.format(members="    NEW = 0\n    DONE = 2\n"),
        made="list(Invoice)[0]",
        refused="the member 'OPEN' went, inside {name}",
        after="<Invoice.NEW: 0>",
    ),
}


@cache
def _told(door: str) -> Any:
    """What the second process says about every history; both run once for each door."""
    folder = Path(mkdtemp(prefix="sealpoint-evolved-"))
    for age in ("old", "new"):
        (folder / age).mkdir()
        for name, history in _TABLE.items():
            (folder / age / f"shop_{name}.py").write_text(history.module(new=age == "new"))
    told = ""
    for act, age in (("write", "old"), ("read", "new")):
        environment = {
            **os.environ,
            "PYTHONPATH": f"{folder / age}{os.pathsep}{_ROOT}",
            "SEALPOINT_CONFIG_DIR": str(folder / "config"),
            "SEALPOINT_STATE_DIR": str(folder / "state"),
        }
        (folder / "store").mkdir(exist_ok=True)
        url = f"sqlite:///{folder / 'store' / 'shop.db'}"
        words = ["python", "-m", "tests.stories.evolving", act, door, url]
        done = run_command(words, Path.cwd(), environment, _SECONDS_MAX, apart=True)
        assert done.returncode == 0, done.stderr
        told = done.stdout
    return json.loads(told)


@pytest.mark.parametrize("door", ["allow", "graph"])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_class_that_changed_ends_as_documented(name: str, door: str) -> None:
    """It loads by itself and is told, or is refused by name and loads after the printed code."""
    history, told = _TABLE[name], _told(door)[name]
    prefix = "shop" if door == "allow" else f"app.shop_{name}"
    names = {"name": f"{prefix}.invoice", "line": f"{prefix}.line"}
    if name == "renamed" and door == "graph":
        assert told["code"] == "unknown-type"
        assert "'app.shop_renamed.invoice'" in told["message"]
        assert told["after"] == history.value
    elif history.value is not None:
        assert told["value"] == history.value
        assert set(told["events"]) == ({history.added.format(**names)} if history.added else set())
    else:
        rule = f'registry.allow(Invoice, name="{names["name"]}", version=2, upgrade={{1: from_v1}})'

        assert told["code"] == "shape-changed"
        assert told["message"].endswith(": " + history.refused.format(**names))
        assert rule in told["hint"]
        assert told["after"] == history.after
