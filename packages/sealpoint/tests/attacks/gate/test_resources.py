# SPDX-License-Identifier: Apache-2.0
"""Requests and words that would cost their verifier too much."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from sealpoint.errors import Edited, NeedsApproval, PolicyInvalid, Tampered
from sealpoint.gate import ROLLOUTS
from sealpoint.gate._policy import Policies
from sealpoint.gate._rollouts_in_force import RolloutBook
from sealpoint.ledger import (
    STORE_CHAIN,
    Entry,
    ExpiryBody,
    Header,
    Kind,
    VerdictBody,
    verify_entry,
)
from sealpoint.limits import BODY_BYTES_MAX
from sealpoint.signing import Verdict, attest
from sealpoint.storage import Record
from sealpoint.store import Chain, _store_chain_cache
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.cpu_time import CpuTime
from tests.ledgers import key
from tests.rogue import Rogue
from tests.unit.gate.team import READ, SHELL

_SECONDS_MAX = 20
"""Far more than it takes, on a machine that does other things too."""


def test_many_words_that_do_not_count_cost_little(attacked: AttackedTeam) -> None:
    """Hundreds of attestations without a valid proof, by somebody who may relay."""
    request = attacked.waiting("ann")
    word = attest(key("bob"), request.id, Verdict.APPROVE, "fine")
    with attacked.landing():
        rows = attacked.rows()
        for number in range(500):
            proof = f"{number:0128x}"
            body = VerdictBody(
                salt=attacked.salt, attestation=msgspec.structs.replace(word, proof=proof)
            )
            rows[len(rows)] = attacked.forged(Kind.APPROVAL, body, "officer", rows=rows)
        attacked.editor.put_rows(attacked.world.thread_id("t"), rows)

    with CpuTime() as cpu_time:
        assert attacked.resumed() is NeedsApproval
        assert attacked.thread("operator").requests()[0].approved_by == ("ann",)

    assert cpu_time.seconds < _SECONDS_MAX


def test_a_read_of_the_book_verifies_each_entry_once(
    attacked: AttackedTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many anybody has written into it, and whether it is listed or audited."""
    attacked.thread().save({"n": 1}, world=READ)
    attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="release 42")
    rows = attacked.rows(ROLLOUTS)
    body = ExpiryBody(salt=attacked.salt, request="00" * 32)
    with attacked.landing():
        for _ in range(40):
            made = attacked.forged(Kind.EXPIRY, body, "officer", name=ROLLOUTS, rows=rows)
            rows[len(rows)] = made
        attacked.editor.put_rows(attacked.world.thread_id(ROLLOUTS), rows)
    attacked.store("ann").rollouts.list()  # the anchor follows
    seen = Counter[bytes]()

    def counted(raw: bytes, *args: Any, **named: Any) -> Entry:
        seen[raw] += 1
        return verify_entry(raw, *args, **named)

    monkeypatch.setattr(_store_chain_cache, "verify_entry", counted)
    for read in (RolloutBook.all, RolloutBook.history):
        core = attacked.world.core("ann")
        seen.clear()
        assert read(RolloutBook(core, Policies(core)))

        assert len(seen) > len(rows) - 2
        assert max(seen.values()) == 1


@pytest.mark.parametrize("levels", [600, 100_000])
@pytest.mark.parametrize("field", ["answer", "world"])
def test_a_deep_request_is_refused_as_an_error_of_ours(
    attacked: AttackedTeam, levels: int, field: str
) -> None:
    """Lists in lists in what a stolen writer's key asks for."""
    attacked.waiting()
    body = attacked.rows()[attacked.find(Kind.REQUEST)].body or b""
    deep = b"[" * levels + b"]" * levels
    head, tail = body.rsplit(b'"world":', 1)
    assert tail.startswith(b"{")
    made = {
        "answer": head + b'"answer":' + deep + b',"world":' + tail,
        "world": head + b'"world":{"x":' + deep + b"}}",
    }[field]
    with attacked.landing():
        attacked.slip(Kind.REQUEST, made, "worker")

    ann = attacked.world.open("ann", gated=True)

    assert attacked.resumed() in (NeedsApproval, Edited)
    assert len(ann.requests().requests) + len(ann.requests().failures) == 1


def test_a_body_beyond_its_bound_is_not_parsed(attacked: AttackedTeam) -> None:
    """A request of several megabytes, well sealed."""
    attacked.waiting()
    body = attacked.rows()[attacked.find(Kind.REQUEST)].body or b""
    with attacked.landing():
        head, tail = body.split(b'"statement":', 1)
        padded = head + b'"statement":' + b" " * BODY_BYTES_MAX + tail
        attacked.slip(Kind.REQUEST, padded, "worker")

    assert issubclass(attacked.resumed(), Tampered)
    assert len(attacked.world.open("ann", gated=True).requests().failures) == 1


def test_a_huge_policy_is_not_read(attacked: AttackedTeam) -> None:
    """The blob that the roster names is replaced by one of many megabytes."""
    attacked.waiting("ann", "bob")
    with attacked.landing():
        blobs = attacked.editor.blobs(STORE_CHAIN)
        digest = bytes.fromhex(attacked.digest)
        attacked.editor.put_blobs(STORE_CHAIN, {**blobs, digest: blobs[digest] + b"#" * 8_000_000})

    assert issubclass(attacked.resumed(), (PolicyInvalid, Tampered))


def test_a_hidden_request_is_reported(attacked: AttackedTeam) -> None:
    """A genesis that claims another namespace does not hide a request."""
    attacked.waiting("ann")
    row = attacked.rows()[0]
    with attacked.landing():
        header = row.header.replace(b'"ns":"default"', b'"ns":"billing"')
        attacked.put({0: Record(header, row.seals, row.body)})
    found = attacked.world.open("bob", gated=True).requests()

    assert found.requests == ()
    assert len(found.failures) == 1


def test_a_row_of_handoffs_is_read_once(
    attacked: AttackedTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member hands the thread to its own pool again and again: nobody waits longer for each."""
    attacked.shared("worker", "spare")
    rogue = Rogue(attacked.store("spare").core, "spare")
    reads: list[int] = []
    plain = Chain.walk

    def walk(self: Chain, below: Header | None = None) -> Iterator[tuple[Header, Record]]:
        for header, record in plain(self, below):
            reads.append(header.seq)
            yield header, record

    monkeypatch.setattr(Chain, "walk", walk)
    counts = []
    for _ in range(2):
        for _handoff in range(20):
            rogue.hand_off("pods")
        rogue.anchor()
        reads.clear()
        assert attacked.fresh("ann").load().state == {"n": 1}
        counts.append(len(reads))

    assert counts[1] < 3 * counts[0]
