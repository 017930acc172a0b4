# SPDX-License-Identifier: Apache-2.0
"""A frozen store that can be read: the entries of a vector in a memory storage, and an anchor."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from sealpoint.anchor import Position
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.codec import Registry
from sealpoint.gate import Policies, RolloutBook, Thread
from sealpoint.gate._reviewed_checkpoints import CheckpointLog
from sealpoint.ledger import (
    STORE_CHAIN,
    Kind,
    Place,
    Tip,
    begin,
    extend,
    link_hash,
    parse_body,
    parse_header,
    verify_entry,
)
from sealpoint.signing import TrustPin
from sealpoint.storage import Record
from sealpoint.storage.memory import MemoryStorage
from sealpoint.store import Core, StoreParts
from sealpoint.store._names import thread_slot
from tests.ledgers import NOW
from tests.vectors.ledger import as_bytes

__all__ = ["frozen_core", "frozen_record", "frozen_thread", "walk_thread"]

_SECRET = bytes(32)


def frozen_record(vector: Mapping[str, Any]) -> Record:
    """An entry of a vector."""
    body, payload = vector["body"], vector.get("payload")
    return Record(
        as_bytes(vector["header"]),
        as_bytes(vector["seals"]),
        None if body is None else as_bytes(body),
        None if payload is None else bytes.fromhex(payload),
    )


def frozen_core(
    frozen: Mapping[str, Any], records: Sequence[Record], name: str = "invoice-7"
) -> Core:
    """A store that holds these entries of a thread, all of which the anchor has seen.

    Args:
        frozen: The vectors, with the pin, the store chain and, if there are any, blobs.
        records: The entries, from the first on.
        name: What the thread is called.
    """
    storage, anchor = MemoryStorage(), MemoryAnchor()
    storage.append(STORE_CHAIN, 0, list(map(frozen_record, frozen["store_chain"])), blobs={})
    pin = msgspec.json.format(msgspec.json.encode(frozen["pin"]), indent=2) + b"\n"
    core = Core(
        StoreParts(
            storage=storage,
            anchor=anchor,
            pin=TrustPin.parse(pin),
            secret=_SECRET,
            signer=None,
            registry=Registry(),
            namespace="default",
            read_only=True,
            now=lambda: NOW,
            random_bytes=bytes,
            on_event=None,
        )
    )
    core.anchor_store_chain()
    newest = parse_header(records[-1].header)
    thread = bytes.fromhex(newest.thread)
    blobs = {bytes.fromhex(each): bytes.fromhex(data) for each, data in frozen["blobs"].items()}
    storage.append(thread, 0, list(records), blobs=blobs)
    position = Position(
        *(thread, 0, newest.gen, newest.seq, link_hash(records[-1].header)),
        fence=newest.fence,
        pause=newest.pause,
        owner=newest.owner,
        owner_entry=link_hash(records[newest.owner].header),
        paused=parse_header(records[newest.pause].header).kind is Kind.PAUSE,
    )
    anchor.create(thread_slot(_SECRET, "default", name), position)
    return core


def frozen_thread(
    frozen: Mapping[str, Any], records: Sequence[Record], name: str = "invoice-7"
) -> Thread:
    """The thread of such a store."""
    core = frozen_core(frozen, records, name)
    policies = Policies(core)
    return Thread(core, name, policies, RolloutBook(core, policies))


def walk_thread(core: Core, records: Sequence[Record]) -> tuple[CheckpointLog, Tip]:
    """What an audit remembers of a thread, from its first entry on."""
    log, tip, trust = CheckpointLog(), None, core.trust()
    thread = parse_header(records[0].header).thread
    place = Place(core.store_hex, "default", thread)
    erased = max((seq for seq, each in enumerate(records) if each.body is None), default=-1)
    for seq, record in enumerate(records):
        entry = verify_entry(record.header, record.seals, place=place, seq=seq, chain=trust)
        body = None
        if seq > erased:
            body = parse_body(entry.header.kind, entry.header.body, record.body or b"")
        log.take(entry, body)
        if tip is None:
            tip = begin(entry, record.body, trust)
        else:
            tip = extend(tip, entry, record.body, trust)
    assert tip is not None
    return log, tip
