# SPDX-License-Identifier: Apache-2.0
"""Sealpoint: a checkpoint store that treats saved agent state as an execution surface.

```python
import sealpoint

with sealpoint.open_store("memory:") as store:
    thread = store.thread("invoice-7")
    thread.save({"messages": ["hello"], "seen": {1, 2, 3}})
    assert thread.load().state == {"messages": ["hello"], "seen": {1, 2, 3}}
```
"""

from sealpoint import aio
from sealpoint.api import Store, init, open_store
from sealpoint.codec import Explanation, Registry
from sealpoint.config import code_of
from sealpoint.errors import SealpointError
from sealpoint.gate import (
    Decision,
    PlannedWorld,
    Policy,
    Request,
    Requests,
    RolloutPlan,
    Rollouts,
    Thread,
)
from sealpoint.limits import Limits
from sealpoint.signing import Attestation, Signer, TrustPin
from sealpoint.store import (
    CheckpointRef,
    Collected,
    Deleted,
    Erasure,
    Event,
    LeftOut,
    Loaded,
    PendingResult,
    Pruning,
    Release,
    ReleasedLane,
    Results,
    ThreadNames,
)
from sealpoint.world import Code, Tool, World, WorldDiff

__all__ = [
    "Attestation",
    "CheckpointRef",
    "Code",
    "Collected",
    "Decision",
    "Deleted",
    "Erasure",
    "Event",
    "Explanation",
    "LeftOut",
    "Limits",
    "Loaded",
    "PendingResult",
    "PlannedWorld",
    "Policy",
    "Pruning",
    "Registry",
    "Release",
    "ReleasedLane",
    "Request",
    "Requests",
    "Results",
    "RolloutPlan",
    "Rollouts",
    "SealpointError",
    "Signer",
    "Store",
    "Thread",
    "ThreadNames",
    "Tool",
    "TrustPin",
    "World",
    "WorldDiff",
    "__version__",
    "aio",
    "code_of",
    "init",
    "open_store",
]

__version__ = "0.6.0"
