# SPDX-License-Identifier: Apache-2.0
"""Where bytes lie: the contract, and one module for each backend."""

from sealpoint.storage._contract import Record, Storage

__all__ = ["Record", "Storage"]
