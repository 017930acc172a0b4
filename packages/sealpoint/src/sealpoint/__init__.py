# SPDX-License-Identifier: Apache-2.0
"""Sealpoint: a checkpoint store that treats saved agent state as an execution surface.

```python
import sealpoint

with sealpoint.open_store("memory:") as store:
    thread = store.thread("invoice-7")
    thread.save({"messages": ["hello"], "seen": {1, 2, 3}})
    assert thread.load().state == {"messages": ["hello"], "seen": {1, 2, 3}}
```

Importing the package loads nothing else: each public name, and each package, is loaded when it is
first used, so that a command or a worker pays for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sealpoint import aio
    from sealpoint.api import Admin, Store, admin, init, open_store
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
        SignedAnswer,
        Standing,
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
        Loaded,
        PendingResult,
        Pruning,
        Release,
        ReleasedLane,
        Results,
        ThreadNames,
        UnlistedThread,
    )
    from sealpoint.world import Code, Tool, World, WorldDiff

__all__ = [
    "Admin",
    "Attestation",
    "CheckpointRef",
    "Code",
    "Collected",
    "Decision",
    "Deleted",
    "Erasure",
    "Event",
    "Explanation",
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
    "SignedAnswer",
    "Signer",
    "Standing",
    "Store",
    "Thread",
    "ThreadNames",
    "Tool",
    "TrustPin",
    "UnlistedThread",
    "World",
    "WorldDiff",
    "__version__",
    "admin",
    "aio",
    "code_of",
    "init",
    "open_store",
]

__version__ = "0.6.0"

# The packages that define the names; lower layers first, so that a name loads only what it needs.
_HOMES = ("errors", "limits", "signing", "codec", "world", "store", "gate", "config", "api")

if not TYPE_CHECKING:  # a type checker would otherwise accept any attribute

    def __getattr__(name: str) -> Any:
        """Load a public name, or a package, on its first use."""
        if name in _HOMES or name == "aio":
            return import_module(f"sealpoint.{name}")
        if name in __all__:
            for home in _HOMES:
                package = import_module(f"sealpoint.{home}")
                if name in package.__all__:
                    value = globals()[name] = getattr(package, name)
                    return value
        message = f"module 'sealpoint' has no attribute {name!r}"
        raise AttributeError(message)

    def __dir__() -> list[str]:
        """Return the public names, loaded or not."""
        return sorted({*globals(), *__all__})
