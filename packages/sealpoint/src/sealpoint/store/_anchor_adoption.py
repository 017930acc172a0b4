# SPDX-License-Identifier: Apache-2.0
"""Adoption: entering threads and stores into an anchor that does not know them.

An operator adopts on purpose, and the adopted chain records it. Adoption is the only way into the
anchor besides genesis. Everything is verified from its first entry before it is trusted. A slot
that the anchor already has is never touched: adoption cannot hide that a store is behind its
anchor, or has diverged from it.
"""

import msgspec

from sealpoint.errors import Forked, Misplaced, NotTrusted, Tampered
from sealpoint.ledger import (
    AdoptBody,
    GenesisBody,
    Kind,
    Place,
    StoreChain,
    Tip,
    begin,
    parse_body,
    verify_entry,
)
from sealpoint.signing import check_reason
from sealpoint.store._anchor_positions import tip_position
from sealpoint.store._append_entries import EntryDraft, append_all, check_rights
from sealpoint.store._genesis import newest_genesis
from sealpoint.store._names import thread_slot
from sealpoint.store._store_chain_writer import append_store_adoption
from sealpoint.store._store_parts import Core
from sealpoint.store._thread_list import all_threads
from sealpoint.store._thread_walk import ThreadWalk
from sealpoint.store._verified_chain import Chain, verified_genesis


def _reason(reason: str) -> str:
    check_reason(reason, "adopt")
    return reason


def adopt_store_chain(core: Core, reason: str) -> bool:
    """Adopt the store chain.

    Returns:
        False if the anchor knew it already.

    Raises:
        NotTrusted: The pinned root did not sign the store chain, or the identity is not an operator
            of all namespaces.
    """
    text = _reason(reason)
    if core.is_anchored():
        core.renewed_trust()
        return False
    chain = core.verified_store_chain()
    core.anchor_store_chain(append_store_adoption(core, chain, text))
    return True


def record_joining(core: Core, reason: str) -> StoreChain:
    """Record that a shared anchor receives the positions that this machine has seen.

    Raises:
        NotTrusted: The identity is not an operator of all namespaces.
    """
    text = _reason(reason)
    return core.written(append_store_adoption(core, core.renewed_trust(), text))


def unanchored_threads(core: Core) -> list[tuple[str, bytes]]:
    """Return name and id of each thread of the namespace that only the store knows.

    Rows without a genuine genesis are not a thread, and do not prevent the adoption of others.
    """
    trust = core.verified_store_chain()
    found = []
    for thread in {each.thread for each in all_threads(core) if each.stored}:
        name = genuine_name(core, trust, thread)
        if name is not None:
            slot = thread_slot(core.parts.secret, core.namespace, name)
            if core.anchor.get(slot) is None:
                found.append((name, thread))
    return sorted(found)


def genuine_name(core: Core, trust: StoreChain, thread: bytes) -> str | None:
    """Return the name in a thread's genesis, if it is genuine and of this namespace, else None."""
    place = Place(core.store_hex, core.namespace, thread.hex())
    try:
        found = newest_genesis(core.storage, thread)
        if found is None or found[1].body is None:
            return None
        seq, record = found
        entry = verify_entry(record.header, record.seals, place=place, seq=seq, chain=trust)
        if seq == 0:
            begin(entry, record.body, trust)
        elif entry.header.kind is not Kind.GENESIS:
            return None
        body: GenesisBody = parse_body(Kind.GENESIS, entry.header.body, found[1].body)
    except (Tampered, NotTrusted):
        return None
    return body.name


def _verified_tip(chain: Chain) -> Tip:
    """Verify every entry of a thread and the name in its genesis, and return the thread's end."""
    walk = ThreadWalk.without_anchor(chain.core, chain.thread, chain.name)
    for _ in walk.steps():
        pass
    genesis, tip = verified_genesis(chain), walk.finish()
    if genesis is None or genesis.name != chain.name or tip is None:
        raise Misplaced(f"thread {chain.name!r}: its genesis has another name")
    return tip


def enter_copy(core: Core, name: str, thread: bytes) -> None:
    """Verify a thread from its genesis and enter it into the new anchor of a copy in memory.

    Nothing is recorded: such an anchor protects only the copy.

    Raises:
        Tampered, NotTrusted: The thread does not verify.
    """
    chain = Chain(core, name)
    chain.bind(thread)
    position = msgspec.structs.replace(tip_position(_verified_tip(chain)), epoch=core.trust().epoch)
    core.anchor.create(chain.slot, position)


def adopt_thread(core: Core, name: str, thread: bytes, reason: str) -> int:
    """Verify a thread from its genesis and adopt it.

    Returns:
        The position of the entry that records it.

    Raises:
        Tampered, NotTrusted: The thread does not verify; nothing is adopted.
        Forked: The anchor already knows a thread of this name.
    """
    text = _reason(reason)
    trust = core.trust()
    chain = Chain(core, name)
    if core.anchor.get(chain.slot) is not None:
        raise Forked(f"thread {name!r}: the anchor knows a thread in its place already")
    chain.bind(thread)
    check_rights(chain, trust, Kind.ADOPT, None)
    tip = _verified_tip(chain)
    chain.move_to(tip, None, ())
    body = AdoptBody(salt=core.salt(), reason=text)
    entry = append_all(chain, [EntryDraft(Kind.ADOPT, body)], blobs={}, follow=False)[-1]
    position = tip_position(chain.tip())
    if core.anchor.create(chain.slot, position) != position:
        raise Forked(
            f"thread {name!r}: another process adopted it at the same time, and not up "
            f"to entry {entry.seq}"
        )
    core.emit("adopted", thread.hex(), entry.seq, entry.hash)
    return entry.seq
