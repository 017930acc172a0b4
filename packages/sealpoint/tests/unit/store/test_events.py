# SPDX-License-Identifier: Apache-2.0
"""Events and log records say what happened in codes and digests, never a name or a payload."""

import logging

import pytest

from sealpoint.errors import IdReused, SealpointError
from sealpoint.ledger import link_hash
from tests.deployment import Deployment

_SECRETS = ["patient-mueller", "the-payload", "the-meta", "the-tool", "the-reason", "the-id"]


def _everything(world: Deployment) -> None:
    store, other = world.open(), world.open()
    thread = store.thread("patient-mueller")
    with pytest.raises(SealpointError):
        thread.load()
    world_ = {"t": "the-tool"}
    thread.save({"k": "the-payload"}, metadata={"m": "the-meta"}, id="the-id", world=world_)
    with pytest.raises(IdReused):
        thread.save("the-payload 2", id="the-id")
    thread.save("the-payload 3", world=world_, parent="the-id")
    thread.load()
    list(thread.history())
    other.thread("patient-mueller").save(1)
    with pytest.raises(SealpointError):
        thread.save("the-payload 4")


def test_events_carry_codes_and_digests_only(
    world: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither an event nor a log record holds a name, an id, metadata or state."""
    caplog.set_level(logging.DEBUG, "sealpoint")
    _everything(world)
    texts = [repr(event) for event in world.events]
    texts += [record.getMessage() for record in caplog.records]
    texts += [repr(record.args) for record in caplog.records]

    assert len(world.events) >= 8
    assert len(caplog.records) >= len(world.events)
    assert not [text for text in texts for secret in _SECRETS if secret in text]


def test_events_name_what_happened(memory: Deployment) -> None:
    """A session, a save, a load and a refusal each have their code, thread and position."""
    _everything(memory)
    thread = memory.thread_id("patient-mueller").hex()
    codes = [event.code for event in memory.events]
    saved = [event for event in memory.events if event.code == "saved"]

    assert codes == [
        "unknown-thread",
        *("session-opened", "saved", "id-reused", "saved", "loaded"),
        *("session-opened", "saved", "superseded"),
    ]
    assert [event.seq for event in saved] == [2, 3, 5]
    assert {event.thread for event in memory.events[1:]} == {thread}
    for event in saved:
        record = memory.record("patient-mueller", event.seq)
        assert event.entry == link_hash(record.header).hex()


def test_refusals_are_warnings_and_the_rest_is_quiet(
    memory: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    """Only what was refused is logged above debug, by the one logger."""
    caplog.set_level(logging.DEBUG)
    _everything(memory)
    loud = [record for record in caplog.records if record.levelno > logging.DEBUG]

    assert {record.name for record in caplog.records} == {"sealpoint"}
    assert {record.levelname for record in loud} == {"WARNING"}
    assert [record.getMessage().split()[1] for record in loud] == [
        "code=unknown-thread",
        "code=id-reused",
        "code=superseded",
    ]


def test_a_store_without_a_listener_is_quiet(memory: Deployment) -> None:
    """Listening is optional."""
    store = memory.open(on_event=None)
    store.thread("t").save(1)

    assert store.thread("t").load().state == 1
    assert memory.events == []
