# SPDX-License-Identifier: Apache-2.0
"""Save and load agent state: threads of checkpoints on a storage, an anchor and a roster."""

from sealpoint.store._adopt import adopt_store_chain, adopt_thread, unanchored_threads
from sealpoint.store._blobs import BlobReader, fresh_digests
from sealpoint.store._chain import Chain
from sealpoint.store._checkpoint_store import CheckpointStore
from sealpoint.store._core import Core, Parts
from sealpoint.store._names import check_name, store_slot
from sealpoint.store._refs import CheckpointRef, Event, Loaded, ThreadNames
from sealpoint.store._roster import append_roster
from sealpoint.store._thread import Thread

__all__ = [
    "BlobReader",
    "Chain",
    "CheckpointRef",
    "CheckpointStore",
    "Core",
    "Event",
    "Loaded",
    "Parts",
    "Thread",
    "ThreadNames",
    "adopt_store_chain",
    "adopt_thread",
    "append_roster",
    "check_name",
    "fresh_digests",
    "store_slot",
    "unanchored_threads",
]
