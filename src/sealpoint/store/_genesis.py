# SPDX-License-Identifier: Apache-2.0
"""The genesis of a thread, as the store shows it: where its name is said.

Nothing here is verified. A name is no more than a claim until the anchor's slot of that name turns
out to be this thread's, or somebody has verified the entry.
"""

from sealpoint.errors import Missing
from sealpoint.ledger import GenesisBody, Kind, parse_body, parse_header
from sealpoint.storage import Record
from sealpoint.store._core import Core

__all__ = ["claimed_name", "newest_genesis"]


def claimed_name(core: Core, thread: bytes) -> tuple[str, str]:
    """The namespace and name that a thread claims; the name is empty if it was erased.

    Raises:
        Missing: The thread has no first entry.
        Edited: Its genesis cannot be read.
    """
    first = core.storage.read(thread, 0)
    if first is None:
        raise Missing(f"thread {thread.hex()[:12]}: expected a genesis, found none")
    namespace = parse_header(first.header).ns
    found = newest_genesis(core, thread)
    if found is None:
        return namespace, ""
    record = found[1]
    digest = parse_header(record.header).body
    body: GenesisBody = parse_body(Kind.GENESIS, digest, record.body or b"")
    return namespace, body.name


def newest_genesis(core: Core, thread: bytes) -> tuple[int, Record] | None:
    """The genesis that still has its body, with its position: the first one or a later one."""
    first = core.storage.read(thread, 0)
    if first is not None and first.body is not None:
        return 0, first
    for seq, record in core.storage.scan(thread, 0, descending=True):
        kind = parse_header(record.header).kind
        if kind is Kind.ERASE:
            return None
        if kind is Kind.GENESIS and record.body is not None:
            return seq, record
    return None
