# SPDX-License-Identifier: Apache-2.0
"""numpy and torch for the tests of the core, which run without them too.

The codec knows their arrays where they are installed. A table has its rows about arrays only then.
That the full run has both is tested by tests/repo/test_environment.py.
"""

from importlib.util import find_spec

import pytest

__all__ = ["ARRAYS", "needs_arrays", "np", "torch"]

ARRAYS = all(map(find_spec, ("numpy", "torch")))
"""Whether both are installed; without them `np` and `torch` are None."""

if ARRAYS:
    import numpy as np
    import torch
else:
    np = torch = None  # type: ignore[assignment]

needs_arrays = pytest.mark.skipif(not ARRAYS, reason="numpy and torch are not installed")
"""A test of arrays in a file that is about more."""
