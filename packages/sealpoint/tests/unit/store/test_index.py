# SPDX-License-Identifier: Apache-2.0
"""The index takes entries in their order."""

from sealpoint.ledger import CheckpointBody, parse_header
from sealpoint.store import CheckpointIndex, Key
from tests.deployment import Deployment
from tests.unit.store.laned import put, results, saved


def test_an_index_takes_no_entry_that_is_older_than_its_newest(memory: Deployment) -> None:
    """Who would follow it takes it down again: what was saved last is what is newest."""
    store = memory.open("worker")
    thread = store.thread("t")
    saved(thread, put(1, "1"), results("r", "1"), put(2, "2"))
    rows = dict(store.storage.inner.scan(memory.thread_id("t"), 0))
    headers = {seq: parse_header(row.header) for seq, row in rows.items()}
    index = CheckpointIndex(None)
    body = CheckpointBody(salt="", id="1", root="")

    assert index.follow(headers[4], b"4", body)
    assert not index.follow(headers[2], b"2", body)
    assert not index.follow(headers[4], b"4", body)

    found = index.find(Key("", "1"))
    assert found is not None
    assert found.entry == b"4"
