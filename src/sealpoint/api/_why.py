# SPDX-License-Identifier: Apache-2.0
"""Why something was decided as it was: the rules, the facts and the policy of that time.

Everything is read from the verified thread, and the policy is the one that the decision names.
What an erasure has taken can no longer be told, and is said to be gone.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sealpoint.api._why_report import Why
from sealpoint.api._why_thread import Explaining
from sealpoint.audit import ThreadWalk, store_chain_record
from sealpoint.errors import Tampered, UnknownEntry, UsageError
from sealpoint.gate import Policies
from sealpoint.ledger import STORE_CHAIN, RequestBody, link_hash, parse_body, parse_header
from sealpoint.signing import DIGITS_LEAST, DIGITS_MAX, begins_digest
from sealpoint.storage import Record
from sealpoint.store import Core

__all__ = ["explain_decision"]


class _Found(NamedTuple):
    """Where something lies."""

    walk: ThreadWalk | None
    """Through its thread; None: it is of the store chain."""
    seq: int


def explain_decision(core: Core, policies: Policies, ref: str) -> Why:
    """Explain a request or an entry.

    Args:
        core: The store.
        policies: Its policies.
        ref: The id of a request, the hash of an entry, or the first digits of either.

    Raises:
        UsageError: There are too few digits, or other characters.
        UnknownEntry: There is none of these digits, or more than one.
        Tampered, NotTrusted, RolledBack, Forked, Unanchored: Its thread does not verify.
    """
    if not begins_digest(ref):
        raise UsageError(
            f"why: expected {DIGITS_LEAST} to {DIGITS_MAX} digits of a request's id or an entry's "
            f"hash, found {ref[:64]!r}"
        )
    found = list(_find(core, ref))
    if len(found) != 1:
        raise UnknownEntry(
            f"{ref[:12]}: expected one request or entry of namespace {core.namespace!r} with "
            f"these digits, found {len(found)}"
        )
    walk, seq = found[0]
    if walk is None:
        return _of_store_chain(core, seq)
    return Explaining(core, policies, walk, seq).explain()


def _find(core: Core, ref: str) -> Iterator[_Found]:
    """Find the digits; what is found is verified afterwards, with its whole thread."""
    chain = core.renewed_trust()
    for seq, digest in enumerate(chain.hashes):
        if digest.hex().startswith(ref):
            yield _Found(None, seq)
    for walk in ThreadWalk.each(core):
        for seq, record in core.storage.scan(walk.thread, 0):
            if link_hash(record.header).hex().startswith(ref) or _is_request(record, ref):
                yield _Found(walk, seq)


def _is_request(record: Record, ref: str) -> bool:
    # The word is there in clear, and most entries are no requests.
    if record.body is None or b'"kind":"request"' not in record.header:
        return False
    try:
        header = parse_header(record.header)
        body = parse_body(header.kind, header.body, record.body)
    except Tampered:
        return False
    return isinstance(body, RequestBody) and body.statement.digest.startswith(ref)


def _of_store_chain(core: Core, seq: int) -> Why:
    record = core.storage.read(STORE_CHAIN, seq)
    chain = core.renewed_trust()
    if record is None or link_hash(record.header) != chain.hashes[seq]:
        raise UnknownEntry(f"store chain entry {seq}: expected it as it was verified, found none")
    told = store_chain_record(record, chain, seq)
    return Why(
        subject=told,
        decision=told.summary,
        rules=(),
        facts=(),
        policy=None,
        approvals=(),
        entries=(told,),
        unjustified=(),
    )
