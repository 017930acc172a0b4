# SPDX-License-Identifier: Apache-2.0
"""Readers of model files with a fault, for the fuzzer to find.

Each fault shows only for some input, as real ones do: where a tensor has the planted name.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fuzz.model_file_is_read_or_refused import Target
from sealpoint.errors import ModelError
from sealpoint_models import ModelFile
from sealpoint_models._file_reader import ReadFile
from sealpoint_models._structure_nodes import SizeNode

NAME = "scalar"

Fault = Callable[[Any], Any]


def target_with(fault: Fault) -> Target:
    """The claim, over a reader with a fault."""

    def load(file: ReadFile, place: Any) -> Any:
        model = ModelFile(file)
        value = model.load(place)
        planted = any(NAME in tensor.name for tensor in model.tensors)
        return fault(value) if planted else value

    return Target(load)


def raise_runtime_error(_: Any) -> Any:
    """Raise what torch raises."""
    raise RuntimeError("planted")


def open_file(value: Any) -> Any:
    """Open another file."""
    with Path(os.devnull).open("rb"):
        return value


def compile_text(value: Any) -> Any:
    """Compile a text into code."""
    compile("1", "planted", "eval")
    return value


def return_node(value: Any) -> Any:
    """Return an object that only a structure may hold."""
    return [value, SizeNode(sides=[1])]


def return_overlong_view(_: Any) -> Any:
    """Return a tensor over more memory than it has."""
    memory = torch.zeros(8)
    view = memory.as_strided((4,), (2,))
    memory.untyped_storage().resize_(8)
    return view


def return_wide_sparse(_: Any) -> Any:
    """Return a sparse tensor with an index outside of it."""
    indices = torch.tensor([[7]])
    return torch.sparse_coo_tensor(indices, torch.ones(1), (2,), check_invariants=False)


def return_attribute(_: Any) -> Any:
    """Return a tensor that brings something along."""
    found: Any = torch.ones(1)
    found.planted = 1
    return found


def return_much(value: Any) -> Any:
    """Return memory that the file does not have."""
    return [value, torch.zeros(1 << 20)]


def return_objects(_: Any) -> Any:
    """Return an array of objects."""
    return np.array([None])


def ask_for_memory(_: Any) -> Any:
    """Ask for gigabytes, and say so when there are none."""
    try:
        return torch.zeros(1 << 40)
    except RuntimeError as exc:
        raise ModelError("planted: expected memory for its tensors") from exc


def return_unsavable(_: Any) -> Any:
    """Return what loads but cannot be saved."""
    found: Any = OrderedDict(a=1)
    found.planted = 1
    return found


def keep_busy(value: Any) -> Any:
    """Keep the processor busy for longer than a case may."""
    end = time.process_time() + 1.2
    while time.process_time() < end:
        pass
    return value


class Drifting:
    """A fault that gives another value each time."""

    def __init__(self) -> None:
        self._times = 0

    def __call__(self, value: Any) -> Any:
        """Add how often this was called."""
        self._times += 1
        return [value, self._times]
