# SPDX-License-Identifier: Apache-2.0
"""Storage of bytes: the contract, and one module for each backend.

The shared parts of the backends are here too: the checks of arguments, batched scans, and the
packing of small records.
"""

from sealpoint.storage._backend import Backend, OpenStorage, Password
from sealpoint.storage._contract import (
    DIGEST_BYTES,
    SEQ_MAX,
    THREAD_BYTES,
    Record,
    Storage,
    require_append,
    require_blobs,
    require_drop,
)
from sealpoint.storage._record_packing import PACKED_BYTES_MORE, pack, unpack
from sealpoint.storage._row_batches import rising, scan_batches

__all__ = [
    "DIGEST_BYTES",
    "PACKED_BYTES_MORE",
    "SEQ_MAX",
    "THREAD_BYTES",
    "Backend",
    "OpenStorage",
    "Password",
    "Record",
    "Storage",
    "pack",
    "require_append",
    "require_blobs",
    "require_drop",
    "rising",
    "scan_batches",
    "unpack",
]
