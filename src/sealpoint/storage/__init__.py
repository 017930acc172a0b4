# SPDX-License-Identifier: Apache-2.0
"""Where bytes lie: the contract, and one module for each backend."""

from sealpoint.storage._contract import (
    Record,
    Storage,
    require_append,
    require_blobs,
    require_drop,
)

__all__ = ["Record", "Storage", "require_append", "require_blobs", "require_drop"]
