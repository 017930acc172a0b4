# SPDX-License-Identifier: Apache-2.0
"""Requests and words that would cost their verifier too much."""

import msgspec
import pytest

from sealpoint.errors import Edited, NeedsApproval, PolicyInvalid, Tampered
from sealpoint.ledger import STORE_CHAIN, Kind, VerdictBody
from sealpoint.limits import BODY_BYTES_MAX
from sealpoint.signing import Verdict, attest
from sealpoint.storage import Record
from tests.attacks.gate.raid import Raid
from tests.ledgers import key
from tests.ruler import Ruler

_SECONDS_MAX = 20
"""Far more than it takes, on a machine that does other things too."""


def test_many_words_that_do_not_count_cost_little(raid: Raid) -> None:
    """Hundreds of attestations without a valid proof, by somebody who may relay."""
    request = raid.waiting("ann")
    word = attest(key("bob"), request.id, Verdict.APPROVE, "fine")
    with raid.landing():
        rows = raid.rows()
        for number in range(500):
            proof = f"{number:0128x}"
            body = VerdictBody(
                salt=raid.salt, attestation=msgspec.structs.replace(word, proof=proof)
            )
            rows[len(rows)] = raid.forged(Kind.APPROVAL, body, "officer", rows=rows)
        raid.burglar.put_rows(raid.world.thread_id("t"), rows)

    with Ruler() as ruler:
        assert raid.resumed() is NeedsApproval
        assert raid.thread("operator").requests()[0].approved_by == ("ann",)

    assert ruler.seconds < _SECONDS_MAX


@pytest.mark.parametrize("levels", [600, 100_000])
@pytest.mark.parametrize("field", ["answer", "world"])
def test_a_deep_request_is_refused_as_an_error_of_ours(raid: Raid, levels: int, field: str) -> None:
    """Lists in lists in what a stolen writer's key asks for."""
    raid.waiting()
    body = raid.rows()[raid.find(Kind.REQUEST)].body or b""
    deep = b"[" * levels + b"]" * levels
    head, tail = body.rsplit(b'"world":', 1)
    assert tail.startswith(b"{")
    made = {
        "answer": head + b'"answer":' + deep + b',"world":' + tail,
        "world": head + b'"world":{"x":' + deep + b"}}",
    }[field]
    with raid.landing():
        raid.slip(Kind.REQUEST, made, "worker")

    ann = raid.world.open("ann", gated=True)

    assert raid.resumed() in (NeedsApproval, Edited)
    assert len(ann.requests().requests) + len(ann.requests().failures) == 1


def test_a_body_beyond_its_bound_is_not_parsed(raid: Raid) -> None:
    """A request of several megabytes, well sealed."""
    raid.waiting()
    body = raid.rows()[raid.find(Kind.REQUEST)].body or b""
    with raid.landing():
        head, tail = body.split(b'"statement":', 1)
        padded = head + b'"statement":' + b" " * BODY_BYTES_MAX + tail
        raid.slip(Kind.REQUEST, padded, "worker")

    assert issubclass(raid.resumed(), Tampered)
    assert len(raid.world.open("ann", gated=True).requests().failures) == 1


def test_a_huge_policy_is_not_read(raid: Raid) -> None:
    """The blob that the roster names is replaced by one of many megabytes."""
    raid.waiting("ann", "bob")
    with raid.landing():
        blobs = raid.burglar.blobs(STORE_CHAIN)
        digest = bytes.fromhex(raid.digest)
        raid.burglar.put_blobs(STORE_CHAIN, {**blobs, digest: blobs[digest] + b"#" * 8_000_000})

    assert issubclass(raid.resumed(), (PolicyInvalid, Tampered))


def test_a_hidden_request_is_reported(raid: Raid) -> None:
    """A genesis that claims another namespace does not hide a request."""
    raid.waiting("ann")
    row = raid.rows()[0]
    with raid.landing():
        header = row.header.replace(b'"ns":"default"', b'"ns":"billing"')
        raid.put({0: Record(header, row.seals, row.body)})
    found = raid.world.open("bob", gated=True).requests()

    assert found.requests == ()
    assert len(found.failures) == 1
