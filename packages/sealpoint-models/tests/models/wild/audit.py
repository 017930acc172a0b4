# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.models.wild.audit FOLDER`: load every file, and tell what happened meanwhile.

The readings come on standard input as JSON, paths with how each is read. This interpreter has no
trainer imported, and none of the programs; the hook records every event but those of reading the
file itself and, where it is converted, of writing the new one beside it.
"""

import codecs
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from sealpoint.errors import SealpointError
from sealpoint_models import convert_checkpoint, load_checkpoint

_WRITES = frozenset({"os.listdir", "os.rename", "os.chmod", "fcntl.flock"})
_events: list[str] = []
_state: dict[str, Any] = {"path": "", "reading": "", "recording": False}


def _is_expected(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "builtins.id":
        return True
    place = arguments[0] if arguments else None
    if event == "open" and not arguments[2] & 3:
        # For reading: the file, or its descriptor.
        return place == _state["path"] or type(place) is int or _is_written(place)
    return (event in _WRITES or event == "open") and _is_written(place)


def _is_written(place: Any) -> bool:
    beside = type(place) is str and Path(place).is_relative_to(Path(_state["path"]).parent)
    return _state["reading"] == "convert" and (beside or type(place) is int)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _state["recording"]:
        _state["recording"] = False
        if not _is_expected(event, arguments):
            _events.append(f"{event} {ascii(arguments)[:200]}")
        _state["recording"] = True


def _load(path: Path, reading: str) -> dict[str, Any]:
    """Load a file, and say how that ended and what happened."""
    _events.clear()
    error = None
    _state.update(path=str(path), reading=reading, recording=True)
    try:
        if reading == "convert":
            convert_checkpoint(path, path.with_name(f"{path.name}.converted"), force=True)
        elif reading == "inert":
            load_checkpoint(path, safe=True, unknown="inert")
        else:
            load_checkpoint(path, safe=True)
    except SealpointError as exc:
        error = type(exc).__name__
    finally:
        _state["recording"] = False
    return {"error": error, "events": list(_events)}


def _control(path: Path) -> dict[str, Any]:
    """What the hook says of the same file if somebody believes it."""
    _events.clear()
    _state.update(path=str(path), reading="default", recording=True)
    try:
        load_checkpoint(path, safe=False)
    finally:
        _state["recording"] = False
    return {"events": list(_events)}


def main() -> None:
    """Warm up, then load each file and print what was found."""
    warnings.simplefilter("ignore")  # a warning reads the line that it is about
    folder = Path(sys.argv[1])
    readings = json.load(sys.stdin)
    torch.save({"w": torch.ones(2)}, folder / "warm.pt")
    load_checkpoint(folder / "warm.pt")
    codecs.lookup("raw_unicode_escape")  # Python loads a codec when it is used first
    sys.addaudithook(_hook)
    before = set(sys.modules)
    found = {path: _load(folder / path, reading) for path, reading in readings.items()}
    imported = sorted(set(sys.modules) - before)
    control = _control(folder / "torch/modules/module.pt")
    json.dump({"files": found, "imported": imported, "control": control}, sys.stdout)


if __name__ == "__main__":
    main()
