# SPDX-License-Identifier: Apache-2.0
"""Where bytes lie: the contract, and one module for each backend.

What every backend shares is here too: the checks of arguments, batches of what is scanned, and how
small records are packed together.
"""

from sealpoint.storage._backend import Backend, OpenStorage, Password
from sealpoint.storage._batches import rising, scan_batches
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
from sealpoint.storage._packing import PACKED_BYTES_MORE, pack, unpack

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
