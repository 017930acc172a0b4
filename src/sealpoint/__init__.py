# SPDX-License-Identifier: Apache-2.0
"""Sealpoint: a checkpoint store that treats saved agent state as an execution surface.

This release holds the ground that everything else stands on, the strict codec:

```python
import sealpoint

registry = sealpoint.Registry()
data = registry.encode({"messages": ["hello"], "seen": {1, 2, 3}})
assert registry.decode(data) == {"messages": ["hello"], "seen": {1, 2, 3}}
```
"""

from sealpoint.codec import Explanation, Registry
from sealpoint.errors import SealpointError
from sealpoint.limits import Limits

__all__ = ["Explanation", "Limits", "Registry", "SealpointError", "__version__"]

__version__ = "0.1.0"
