# SPDX-License-Identifier: Apache-2.0
"""The one place where torch is imported, when somebody first needs it.

Importing `sealpoint.models` does not need torch; using it does. Nothing here looks at what torch
is: `_flag.py` proves what has to hold of it.
"""

from typing import Any

from sealpoint.errors import ExtraMissing

__all__ = ["the_torch"]


def the_torch() -> Any:
    """Torch.

    Raises:
        ExtraMissing: It is not installed.
    """
    try:
        import torch  # noqa: PLC0415 - an optional dependency
    except ImportError as exc:
        raise ExtraMissing(
            "sealpoint.models: expected torch, found it missing: pip install 'sealpoint[models]'"
        ) from exc
    return torch
