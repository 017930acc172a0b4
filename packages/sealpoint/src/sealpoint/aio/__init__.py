# SPDX-License-Identifier: Apache-2.0
"""The async twin of `open_store`: the same store, with methods to await.

The work is done by a few OS threads of the store's own, so the event loop is never held up.
Calls on one thread take effect in the order in which they were made, whichever loop or OS thread
made them; calls on different threads run beside each other.
"""

from sealpoint.aio._store import AsyncRollouts, AsyncStore, AsyncThread, Opening, open_store

__all__ = ["AsyncRollouts", "AsyncStore", "AsyncThread", "Opening", "open_store"]
