# SPDX-License-Identifier: Apache-2.0
"""Loaded once, by the process that `tests.warm` forks from: whatever a command may import."""

import gc
import importlib
import pkgutil

import langgraph.graph  # noqa: F401
import numpy  # noqa: ICN001, F401
import torch  # noqa: F401

import sealpoint

_APART = ("sealpoint.__main__", "sealpoint.adapters.agent_framework", "sealpoint.testing")
"""What runs when it is imported, and what few commands need and is slow to import."""

for _module in pkgutil.walk_packages(sealpoint.__path__, "sealpoint.", onerror=lambda _: None):
    if not _module.name.startswith(_APART):
        importlib.import_module(_module.name)

# A collection in a child would copy every page that these objects lie in.
gc.collect()
gc.freeze()
