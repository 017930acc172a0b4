# SPDX-License-Identifier: Apache-2.0
"""Collecting garbage over a whole store: unfinished sweeps, and blobs of saves that never ended."""

from collections.abc import Callable

from sealpoint.errors import SealpointError
from sealpoint.ledger import STORE_CHAIN
from sealpoint.store._chain import Chain
from sealpoint.store._core import Core
from sealpoint.store._refs import Collected
from sealpoint.store._sweep import Swept, drop_orphans, sweep, would_sweep

__all__ = ["collect"]


def collect(
    core: Core,
    *,
    dry_run: bool = False,
    compact: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Collected:
    """Sweep every thread that the anchor knows, and what belongs to no thread at all."""
    if not dry_run:
        core.signer()
    core.trust()
    slots = [
        (slot, position) for slot, position in core.anchor.slots() if position.thread != STORE_CHAIN
    ]
    swept, failures = Swept(), []
    # A thread that the anchor has seen, and the store has not, is damage: nothing of it is touched.
    seen = {STORE_CHAIN}
    for number, (slot, position) in enumerate(slots, start=1):
        try:
            # A thread that was lost in a restore is one that was never saved.
            if not core.follow_restore(slot, position).reserved:
                seen.add(position.thread)
                chain = Chain.at_slot(core, slot, position.thread)
                chain.refresh()
                swept += would_sweep(chain) if dry_run else sweep(chain)
        except SealpointError as error:
            seen.add(position.thread)
            failures.append((position.thread.hex(), str(error)))
        if progress is not None:
            progress(number, len(slots))
    for thread in core.storage.blob_threads():
        if thread not in seen and core.storage.read(thread, 0) is None:
            swept += drop_orphans(core, thread, dry_run=dry_run)
    if compact and not dry_run:
        core.storage.compact()
    return Collected(
        threads=len(slots),
        blobs=swept.blobs,
        size_bytes=swept.size_bytes,
        failures=tuple(failures),
    )
