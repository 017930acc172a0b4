# SPDX-License-Identifier: Apache-2.0
"""A thread that somebody keeps changing while it is read: the reading ends all the same."""

from msgspec.structs import replace

from sealpoint.ledger import Kind, encode_header, parse_header
from sealpoint.limits import VERIFY_ROUNDS_MAX
from tests.deployment import Deployment

_ENOUGH = 500


def test_nobody_keeps_a_verification_busy_by_changing_one_thread() -> None:
    """Erasures that nobody made come and go: that is a finding, and the next thread follows."""
    world = Deployment()
    for name in ("a", "b"):
        thread = world.open().thread(name)
        for number in range(3):
            thread.save({"n": number})
    assert world.open().verify().ok
    store, target = world.open(), world.thread_id("a")
    head = max(world.memory._records[target])
    genuine = world.record("a", head)
    header = replace(parse_header(genuine.header), kind=Kind.ERASE)
    scans = 0

    def plant() -> None:
        """Put an erasure that nobody signed further on with each look."""
        nonlocal scans
        scans += 1
        assert scans < _ENOUGH, "the verification does not come to an end"
        _take_away(world, target, head)
        at = head + 1 + scans
        forged = replace(genuine, header=encode_header(replace(header, seq=at)))
        world.put(target, at, forged)
        store.storage.scanning.before = plant

    store.storage.scanning.before = plant
    report = store.verify()
    store.storage.scanning.before = None
    _take_away(world, target, head)

    assert [(each.code, each.name, each.refuses) for each in report.findings] == [
        ("head-moved", "a", True)
    ]
    assert not report.ok
    assert f"in each of {VERIFY_ROUNDS_MAX} rounds" in report.findings[0].message
    assert world.open().verify().ok
    world.close()


def _take_away(world: Deployment, thread: bytes, head: int) -> None:
    for seq in [seq for seq in world.memory._records[thread] if seq > head]:
        world.put(thread, seq, None)
