# SPDX-License-Identifier: Apache-2.0
"""Directories of the framework's own file storage: honest ones, and files that somebody forged."""

import asyncio
import base64
import enum
import fractions
import ipaddress
import json
import pathlib
import pickle
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import attrs
import msgspec
from agent_framework import FileCheckpointStorage, WorkflowCheckpoint
from agent_framework._workflows._checkpoint_encoding import encode_checkpoint_value
from pydantic import BaseModel, ConfigDict, PrivateAttr

from sealpoint.codec import Registry
from tests.adapters.agent_framework.payments import Payment, Payments

__all__ = [
    "APPLICATION",
    "allow_all",
    "forge",
    "key_of",
    "paused_run",
    "pickled",
    "replicate",
    "saved",
    "saved_unchecked",
    "stock",
]

_T = TypeVar("_T")


class Colour(enum.Enum):
    """A member by a text, and one by a pair."""

    RED = "red"
    PAIR = (1, "x")


class Level(enum.IntEnum):
    """Members that are numbers."""

    LOW = 1


class Rights(enum.Flag):
    """Members that can be combined."""

    READ = 1
    WRITE = 2


class Point(NamedTuple):
    """Fields in a tuple."""

    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Frozen:
    """A dataclass whose state is a list."""

    a: int
    b: list[str]


@dataclass(slots=True)
class Slotted:
    """A dataclass whose state is in slots."""

    a: int
    b: str = "b"


@dataclass
class Plain:
    """A dataclass with another inside."""

    inner: Slotted
    colour: Colour = Colour.RED
    more: dict[str, Any] = field(default_factory=dict)


@dataclass
class Box(Generic[_T]):
    """Remembers how it was made."""

    held: _T


@attrs.define
class Attrs:
    """With slots."""

    a: int
    b: str = "x"


@attrs.define(slots=False)
class AttrsDict:
    """Without."""

    a: int


class Model(BaseModel):
    """With fields that were given and that were not, extra ones and a private one."""

    model_config = ConfigDict(extra="allow")
    name: str
    size: int = 3
    _hidden: int = PrivateAttr(default=7)


class Struct(msgspec.Struct):
    """Native fields."""

    a: int
    b: str = "b"


APPLICATION = (
    *(Payment, Colour, Level, Rights, Point, Frozen, Slotted, Plain, Box, Attrs, AttrsDict),
    *(Model, Struct),
)
"""The application's types."""


_PYTHON = (
    *(fractions.Fraction, pathlib.PosixPath, pathlib.PurePosixPath, pathlib.PureWindowsPath),
    *(ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network),
    ipaddress.IPv4Interface,
)
"""Types of Python that the framework only loads if it is told."""


def key_of(cls: type) -> str:
    """What the framework calls a type."""
    return f"{cls.__module__}:{cls.__qualname__}"


def allow_all(registry: Registry) -> None:
    """Allow the application's types, as its own registry does."""
    for each in APPLICATION:
        if registry.rule_of(each) is None:
            registry.allow(each, name=f"tests.{each.__name__.lower()}")


def stock(directory: Path) -> FileCheckpointStorage:
    """The framework's own storage, which knows the application's types."""
    types = [key_of(each) for each in (*APPLICATION, *_PYTHON)]
    return FileCheckpointStorage(directory, allowed_checkpoint_types=types)


def saved(directory: Path, **fields: Any) -> WorkflowCheckpoint:
    """A checkpoint that the framework's own storage has saved."""
    fields = {"workflow_name": "orders", "graph_signature_hash": "a" * 64, **fields}
    checkpoint = WorkflowCheckpoint(**fields)
    asyncio.run(stock(directory).save(checkpoint))
    return checkpoint


def saved_unchecked(directory: Path, **fields: Any) -> WorkflowCheckpoint:
    """One that a release has saved which did not look whether it could be loaded again."""
    checkpoint = saved(directory, **{**fields, "pending_request_info_events": {}})
    for name, item in fields.items():
        setattr(checkpoint, name, item)
    text = json.dumps(encode_checkpoint_value(checkpoint.to_dict()))
    (directory / f"{checkpoint.checkpoint_id}.json").write_text(text)
    return checkpoint


def paused_run(directory: Path, shape: str = "graph", amount: int = 42) -> str:
    """A run that waits for an approval, with the framework's own storage.

    Returns:
        The id of the checkpoint that waits.
    """

    async def run() -> str:
        storage = stock(directory)
        await Payments(shape, amount).build().run("bob", checkpoint_storage=storage)
        found = await storage.get_latest(workflow_name="payments")
        assert found is not None
        return found.checkpoint_id

    return asyncio.run(run())


def replicate(directory: Path, lineages: int) -> list[str]:
    """The files of a directory once more under other ids, so many times.

    Returns:
        The names of the files that were added.
    """
    texts = [path.read_text() for path in sorted(directory.glob("*.json"))]
    ids = [json.loads(text)["checkpoint_id"] for text in texts]
    names = []
    for _ in range(lineages):
        renamed = {id_: str(uuid.uuid4()) for id_ in ids}
        for id_, text in zip(ids, texts, strict=True):
            for old, new in renamed.items():
                text = text.replace(f'"{old}"', f'"{new}"')  # noqa: PLW2901
            names.append(f"{renamed[id_]}.json")
            (directory / names[-1]).write_text(text)
    return names


def pickled(data: bytes, key: str = "builtins:dict") -> dict[str, str]:
    """A pickle as it stands in a file."""
    return {"__pickled__": base64.b64encode(data).decode(), "__type__": key}


def forge(directory: Path, item: Any, *, name: str = "", **fields: Any) -> str:
    """A file that somebody else wrote, with `item` in its state.

    Args:
        directory: Where.
        item: What stands in the JSON, or the bytes of a pickle, or an object to be pickled.
        name: The id of its checkpoint.
        fields: What else it says.

    Returns:
        The name of the file.
    """
    id_ = name or str(uuid.uuid4())
    if not isinstance(item, dict | list | str):
        data = item if isinstance(item, bytes) else pickle.dumps(item, protocol=5)
        item = pickled(data)
    document = {
        "workflow_name": "orders",
        "graph_signature_hash": "a" * 64,
        "checkpoint_id": id_,
        "previous_checkpoint_id": None,
        "timestamp": "2026-01-01T00:00:00+00:00",
        "messages": {},
        "state": {"forged": item},
        "pending_request_info_events": {},
        "iteration_count": 0,
        "metadata": {},
        "version": "1.0",
        **fields,
    }
    directory.mkdir(exist_ok=True)
    (directory / f"{id_}.json").write_text(json.dumps(document))
    return f"{id_}.json"
