# SPDX-License-Identifier: Apache-2.0
"""Saves of model files that are killed at one line after the other: `-m tests.faults.model_writer`.

Each writer is a child made by fork that ends itself, by `kill -9`, before the n-th line that a
sealed save executes in `sealpoint_models`. What is found afterwards is printed, one JSON to a line.
"""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import sealpoint
from sealpoint_models import load_checkpoint, save_checkpoint

__all__ = ["main"]

_PACKAGE = f"{os.sep}sealpoint_models{os.sep}"
_THREAD = "run"


def _state(epoch: int) -> dict[str, Any]:
    return {"epoch": epoch, "weights": torch.full((64,), float(epoch))}


class _Place:
    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'disk' / 'runs.db'}"
        self.places: dict[str, Any] = {
            "config_dir": folder / "config",
            "state_dir": folder / "state",
        }
        self.files = folder / "files"
        self.path = self.files / "last.safetensors"

    def open(self) -> Any:
        return sealpoint.open_store(self.url, **self.places)


def _tracing(line_max: int, lines: list[int]) -> Any:
    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if _PACKAGE not in frame.f_code.co_filename:
            return None
        if event == "line":
            lines[0] += 1
            if lines[0] == line_max:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def _write(place: _Place, epoch: int, line: int, done: int) -> None:
    """In a child: save one state, and die at a line of it; 0: say how many lines it has."""
    with place.open() as store:
        store.thread(_THREAD).load()
        lines = [0]
        sys.settrace(_tracing(line, lines))
        save_checkpoint(_state(epoch), place.path, store=store, thread=_THREAD)
        sys.settrace(None)
        os.write(done, json.dumps(lines[0]).encode())


def _child(place: _Place, epoch: int, line: int) -> tuple[int, str]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _write(place, epoch, line, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def main(folder: Path, samples: int) -> None:
    """Kill so many writers: half of them evenly over the lines of a save, half in its last lines.

    The entry is written near the end, and what comes after it is little.
    """
    place = _Place(folder)
    place.files.mkdir(parents=True)
    (folder / "disk").mkdir()
    sealpoint.init(place.url, **place.places)
    with place.open() as store:
        save_checkpoint(_state(0), place.path, store=store, thread=_THREAD)
    lines = int(_child(place, 1, 0)[1])
    epoch = 1
    half = samples // 2
    last = range(lines, 0, -1)[: samples - half]
    for line in (*(1 + number * lines // half for number in range(half)), *last):
        status, said = _child(place, epoch + 1, line)
        with place.open() as store:
            loaded = load_checkpoint(place.path, store=store, thread=_THREAD)
            plain = load_checkpoint(place.path)
            found = loaded["epoch"]
            whole = bool(torch.equal(loaded["weights"], _state(found)["weights"]))
            result = {
                "status": status,
                "line": line,
                "expected": epoch,
                "found": found,
                "plain": plain["epoch"],
                "whole": whole,
                "acknowledged": bool(said),
                "verified": store.verify().ok,
            }
            save_checkpoint(_state(epoch + 2), place.path, store=store, thread=_THREAD)
            epoch += 2
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
