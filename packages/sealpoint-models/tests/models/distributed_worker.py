# SPDX-License-Identifier: Apache-2.0
"""One process of a group that saves or loads a distributed checkpoint; the test starts several.

Arguments: what to do, the folder, whose directory has the store, a file by which the processes
meet, the rank, how many there are, and the number that the weights begin with. What happened is
written beside the file by which they meet.
"""

import json
import os
import warnings
from pathlib import Path
from typing import Any

import blake3  # noqa: F401 # as the next
import torch
import torch._dynamo  # What torch imports when it first saves: here, once for all that are forked.
import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import sealpoint
from sealpoint_models.distributed import SealedStorageReader, SealedStorageWriter

ROWS = 12


class _KilledWriter(SealedStorageWriter):
    """A writer whose process ends where another would seal: all files are there by then."""

    def finish(self, *_args: Any, **_kwargs: Any) -> None:
        """End at once, as on a machine that is taken away."""
        os._exit(9)


def _state(size: int, value: int) -> dict[str, Any]:
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(ROWS * 2, dtype=torch.float32).reshape(ROWS, 2) + value
    return {
        "model": {"weight": distribute_tensor(whole, mesh, [Shard(0)]), "bias": whole[0].clone()},
        "step": value,
        "history": [value, "a"],
    }


def _load(state: dict[str, Any], reader: SealedStorageReader) -> dict[str, Any]:
    try:
        load(state, storage_reader=reader)
    except CheckpointException as exc:
        return {"refused": sorted({type(error).__name__ for error, _ in exc.failures.values()})}
    return {
        "weight": state["model"]["weight"].full_tensor().flatten().tolist(),
        "bias": state["model"]["bias"].tolist(),
        "step": state["step"],
        "history": state["history"],
    }


def places(directory: Path) -> dict[str, Any]:
    """Where the store of a directory has its keys and its anchor."""
    return {"config_dir": directory / "config", "state_dir": directory / "state"}


def url(directory: Path) -> str:
    """The store of a directory."""
    return f"sqlite:///{directory / 'store' / 'runs.db'}"


def main(arguments: list[str]) -> None:
    """Do what one process of the group does."""
    action, folder, meeting = arguments[0], Path(arguments[1]), arguments[2]
    rank, size, value = map(int, arguments[3:])
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    told: dict[str, Any] = {}
    directory = folder.parent
    read_only = action == "load" or rank > 0
    with sealpoint.open_store(url(directory), read_only=read_only, **places(directory)) as store:
        if action == "load":
            told = _load(_state(size, 0), SealedStorageReader(folder, store=store, thread="run-1"))
        else:
            kind = _KilledWriter if action == "kill" else SealedStorageWriter
            save(_state(size, value), storage_writer=kind(folder, store=store, thread="run-1"))
    Path(f"{meeting}-{rank}.json").write_text(json.dumps(told), encoding="utf-8")
    dist.destroy_process_group()
