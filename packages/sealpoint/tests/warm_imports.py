# SPDX-License-Identifier: Apache-2.0
"""Loaded once, by the process that `tests.warm` forks from: whatever a command may import."""

import gc
import importlib
import pkgutil
from typing import Any

import langgraph.graph  # noqa: F401
import numpy  # noqa: ICN001, F401
import torch
import torch._dynamo  # imported with the first optimizer

import sealpoint
import sealpoint_agent_framework
import sealpoint_langgraph
import sealpoint_models  # noqa: F401
import sealpoint_postgres
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


for _package in (sealpoint, sealpoint_langgraph, sealpoint_agent_framework, sealpoint_postgres):
    _load(_package)

# Six hundred files that each process would read when it opens a store.
known_zones()

# Threads that wait for a share of a tiny tensor keep the processor busy.
torch.set_num_threads(1)

# A collection in a child would copy every page that these objects lie in.
gc.collect()
gc.freeze()
