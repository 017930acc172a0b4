# SPDX-License-Identifier: Apache-2.0
"""The genesis of a thread, as the store shows it: the entry that contains the name.

Nothing here is verified. A name is only a claim until the anchor's slot of that name is found to
belong to this thread, or a reader has verified the entry.
"""

from sealpoint.errors import Missing
from sealpoint.ledger import GenesisBody, Kind, parse_body, parse_header
from sealpoint.storage import Record
from sealpoint.store._entry_reader import EntryReader


def claimed_name(entries: EntryReader, thread: bytes) -> tuple[str, str]:
    """Return the namespace and name that a thread claims; the name is empty if it was erased.

    Raises:
        Missing: The thread has no first entry.
        Edited: Its genesis cannot be read.
    """
    first = entries.read(thread, 0)
    if first is None:
        raise Missing(f"thread {thread.hex()[:12]}: its genesis is missing")
    header = parse_header(first.header)
    record, digest = first, header.body
    if first.body is None:
        found = newest_genesis(entries, thread)
        if found is None:
            return header.ns, ""
        record = found[1]
        digest = parse_header(record.header).body
    body: GenesisBody = parse_body(Kind.GENESIS, digest, record.body or b"")
    return header.ns, body.name


def newest_genesis(entries: EntryReader, thread: bytes) -> tuple[int, Record] | None:
    """Return the genesis that still has its body, with its position: the first or a later one."""
    first = entries.read(thread, 0)
    if first is not None and first.body is not None:
        return 0, first
    for seq, record in entries.scan(thread, 0, descending=True):
        kind = parse_header(record.header).kind
        if kind is Kind.ERASE:
            return None
        if kind is Kind.GENESIS and record.body is not None:
            return seq, record
    return None
