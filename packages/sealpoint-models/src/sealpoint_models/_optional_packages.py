# SPDX-License-Identifier: Apache-2.0
"""The packages that model files need, imported on first use.

Importing `sealpoint_models` needs none of them. Looking into a file needs none either; digests
need blake3, and tensors torch and numpy.
"""

from contextlib import AbstractContextManager
from typing import Any

from sealpoint.errors import ExtraMissing


def _missing(package: str, cause: ModuleNotFoundError) -> Exception:
    if cause.name != package:
        return cause  # an installation that is broken says so itself
    return ExtraMissing(
        f"sealpoint_models: expected {package}, found it missing: pip install 'sealpoint[models]'"
    )


def require_blake3() -> Any:
    """The function that creates hashers.

    Raises:
        ExtraMissing: It is not installed.
    """
    try:
        from blake3 import blake3  # noqa: PLC0415 (an optional dependency)
    except ModuleNotFoundError as exc:
        raise _missing("blake3", exc) from exc
    return blake3


def require_numpy() -> Any:
    """The module. Errors are those of `require_blake3`."""
    try:
        import numpy as np  # noqa: PLC0415 (as above)
    except ModuleNotFoundError as exc:
        raise _missing("numpy", exc) from exc
    return np


def require_torch() -> Any:
    """The module. Errors are those of `require_blake3`."""
    try:
        import torch  # noqa: PLC0415 (as above)
    except ModuleNotFoundError as exc:
        raise _missing("torch", exc) from exc
    return torch


def without_torch_modes(torch: Any) -> AbstractContextManager[Any]:
    """A block in which no default device or other mode of the caller changes what torch makes."""
    block: AbstractContextManager[Any] = torch._C.DisableTorchFunction()  # noqa: SLF001
    return block
