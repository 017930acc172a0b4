# SPDX-License-Identifier: Apache-2.0
"""All threads of a store, or an error: a list that leaves some out would look like the whole."""

from sealpoint.api import Store
from sealpoint.errors import RolledBack

__all__ = ["all_threads"]


def all_threads(store: Store) -> tuple[str, ...]:
    """The names of every thread of the store's namespace.

    Raises:
        RolledBack: The store lacks threads that the anchor knows, or they cannot be read.
    """
    found = store.threads()
    if not found.complete:
        raise RolledBack(
            "threads: expected every thread that the anchor knows, found that the store lacks some "
            "or that they cannot be read",
            hint="Run sealpoint anchor show to see which, and bring back the newest copy of the "
            "store; a call that names its thread works for the others.",
        )
    return found.names
