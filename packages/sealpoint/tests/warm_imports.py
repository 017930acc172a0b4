# SPDX-License-Identifier: Apache-2.0
"""Loaded once, by the process that `tests.warm` forks from: whatever a command may import."""

import gc
import importlib
import pkgutil
from typing import Any

import langgraph.graph  # noqa: F401
import numpy  # noqa: ICN001, F401
import torch  # noqa: F401

import sealpoint

_APART = ("sealpoint.__main__", "sealpoint_agent_framework", "sealpoint_testing")
"""What runs when it is imported, and what few commands need and is slow to import."""


def _load(package: Any) -> None:
    """Import all modules of a package; `walk_packages` would import those that are apart, too."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.name.startswith(_APART):
            module = importlib.import_module(found.name)
            if found.ispkg:
                _load(module)


_load(sealpoint)

# A collection in a child would copy every page that these objects lie in.
gc.collect()
gc.freeze()
