# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.models.wild FOLDER`: write all files, and hold what we read against the truth.

It prints JSON: for each file how we read it, whether that is what a trusted load gives, whether the
converted file is, and whether `torch.load(weights_only=True)` reads it. Everything is in one
process, because importing the trainers costs more than what they do. The files are our own: loading
them with the whole of pickle is what this program is for.
"""

import contextlib
import io
import json
import pickle
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import torch
from safetensors.torch import load_file

from sealpoint.errors import SealpointError
from sealpoint_models import convert_checkpoint, load_checkpoint
from tests.models.wild import hugging_face_runs, lightning_runs, torch_runs
from tests.models.wild.comparison import Comparison

_PROGRAMS = {"torch": torch_runs, "lightning": lightning_runs, "hugging_face": hugging_face_runs}
_NO_MODELS = frozenset({".json", ".csv", ".yaml", ".md"})


def _trusted(path: Path) -> Any:
    """What a load gives that believes the file."""
    if path.suffix == ".joblib":
        return joblib.load(path)
    if path.suffix in (".npy", ".npz"):
        found = np.load(path, allow_pickle=True)
        return dict(found) if path.suffix == ".npz" else found
    if path.suffix == ".safetensors":
        return load_file(path)
    if path.suffix in (".pkl", "") and not zipfile.is_zipfile(path):
        return pickle.loads(path.read_bytes())  # noqa: S301 (a file of our own)
    return torch.load(path, map_location="cpu", weights_only=False)


def _reading(path: Path) -> tuple[str, Any]:
    """How a file is read, and what is in it."""
    with contextlib.suppress(SealpointError):
        return "default", load_checkpoint(path, safe=True)
    with contextlib.suppress(SealpointError):
        return "inert", load_checkpoint(path, safe=True, unknown="inert")
    target = path.with_name(f"{path.name}.converted")
    with contextlib.suppress(SealpointError):
        convert_checkpoint(path, target)
        return "convert", load_checkpoint(target)
    return "refused", None


def _converted(path: Path, unknown: Any, theirs: Any) -> str:
    """What became of a conversion."""
    target = path.with_name(f"{path.name}.converted")
    try:
        dropped = convert_checkpoint(path, target, unknown=unknown, force=True)
    except SealpointError as error:
        return f"refused: {error.message}"
    left_out = {each.path for each in dropped}
    found = Comparison(left_out).difference(load_checkpoint(target), theirs)
    return "same" if found is None else f"differs: {found}"


def _judged(path: Path) -> dict[str, Any]:
    reading, ours = _reading(path)
    found = {"reading": reading, "weights_only": _reads_weights_only(path)}
    if reading == "refused":
        return found
    comparison, theirs = Comparison(), _trusted(path)
    found["difference"] = comparison.difference(ours, theirs)
    found["tensors"] = comparison.tensors
    found["converted"] = _converted(path, "inert" if reading == "inert" else "refuse", theirs)
    return found


def _reads_weights_only(path: Path) -> bool:
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001 (of whatever kind)
        return False
    return True


def main() -> None:
    """Write, read, compare."""
    folder = Path(sys.argv[1])
    with contextlib.redirect_stdout(io.StringIO()):
        for name, programs in _PROGRAMS.items():
            programs.write(folder / name)
    paths = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in _NO_MODELS
    ]
    names = {str(path.relative_to(folder)): path for path in paths}
    found = {name: _judged(path) for name, path in names.items()}
    json.dump(found, sys.stdout)


warnings.simplefilter("ignore")
main()
