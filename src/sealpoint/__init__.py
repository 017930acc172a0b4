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
from sealpoint.errors import SealpointError
from sealpoint.limits import Limits
from sealpoint.signing import TrustPin
from sealpoint.store import (
    CheckpointRef,
    Collected,
    Erasure,
    Event,
    Loaded,
    Pruning,
    Thread,
    ThreadNames,
)

__all__ = [
    "CheckpointRef",
    "Collected",
    "Erasure",
    "Event",
    "Explanation",
    "Limits",
    "Loaded",
    "Pruning",
    "Registry",
    "SealpointError",
    "Store",
    "Thread",
    "ThreadNames",
    "TrustPin",
    "__version__",
    "aio",
    "init",
    "open_store",
]

__version__ = "0.3.0"
