# SPDX-License-Identifier: Apache-2.0
"""Loaded once, by the process that `tests.warm` forks from: whatever a command may import."""

import gc
import importlib
import pkgutil
from importlib.util import find_spec
from typing import Any

from sealpoint.codec._scalars import known_zones

_PROGRAM = "sealpoint.__main__"
"""It runs when it is imported."""


def _load(package: Any) -> None:
    """Import all modules of a package; `walk_packages` would import its program, too."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name != _PROGRAM:
            module = importlib.import_module(found.name)
            if found.ispkg:
                _load(module)


# What else a command may import, where it is installed.
for _name in ("langgraph", "numpy", "sealpoint_models"):
    if find_spec(_name):
        importlib.import_module("langgraph.graph" if _name == "langgraph" else _name)

for _name in (
    "sealpoint",
    "sealpoint_langgraph",
    "sealpoint_agent_framework",
    "sealpoint_postgres",
):
    if find_spec(_name):
        _load(importlib.import_module(_name))

# Six hundred files that each process would read when it opens a store.
known_zones()

if find_spec("torch"):
    import torch
    import torch._dynamo  # imported with the first optimizer

    # Threads that wait for a share of a tiny tensor keep the processor busy.
    torch.set_num_threads(1)

# A collection in a child would copy every page that these objects lie in.
gc.collect()
gc.freeze()
