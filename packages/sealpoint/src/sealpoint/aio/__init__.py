# SPDX-License-Identifier: Apache-2.0
"""The async counterpart of `open_store`: the same store, with methods to await.

A few OS threads of the store do the work, so the event loop never blocks. Calls on one thread take
effect in the order in which they were made, from any loop or OS thread; calls on different threads
run concurrently.
"""

from sealpoint.aio._store import AsyncRollouts, AsyncStore, AsyncThread, Opening, open_store

__all__ = ["AsyncRollouts", "AsyncStore", "AsyncThread", "Opening", "open_store"]
