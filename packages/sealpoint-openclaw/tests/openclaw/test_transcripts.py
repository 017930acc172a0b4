# SPDX-License-Identifier: Apache-2.0
"""After a crash, messages that the plugin had reported are accounted for; others are listed."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
import zstandard

from sealpoint.errors import StateUnsealed
from sealpoint_openclaw import Concern, Guard
from tests.openclaw.recorded_folder import AGENT, Recorded

_KEY = "agent:main:main"
_ROW = (
    "INSERT INTO transcript_events (session_id, seq, event_json, created_at, event_zstd,"
    " event_utf8_bytes, navigation_json) VALUES (?, ?, ?, 1, ?, ?, ?)"
)


def spelled(value: Any) -> str:
    """JSON as JavaScript spells it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass
class Conversation:
    """The conversation of the recorded folder: the gateway and its plugin add messages to it."""

    recorded: Recorded
    session: str
    last: int
    parent: str
    reports: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, recorded: Recorded) -> "Conversation":
        """The newest session, as it was sealed."""
        session, last = recorded._newest()
        query = "SELECT event_json FROM transcript_events WHERE session_id = ? AND seq = ?"
        parent = json.loads(recorded.value(AGENT, query, session, last))["id"]
        return cls(recorded, session, last, parent)

    def event(self, message: dict[str, Any], **other: Any) -> dict[str, Any]:
        """The next event of the transcript."""
        self.last += 1
        made = {"type": "message", "id": f"event-{self.last}", "parentId": self.parent}
        self.parent = f"event-{self.last}"
        return made | {"timestamp": "2026-11-19T08:00:00Z", "message": message} | other

    def report(self, message: dict[str, Any], session: str = _KEY) -> None:
        """Report a message, as the plugin does."""
        digest = sha256(spelled(message).encode()).hexdigest()
        self.reports.append(
            {"kind": "message", "v": 1, "agent": "main", "session": session}
            | {"role": "user", "digest": digest}
        )

    def store(self, event: dict[str, Any] | str) -> None:
        """Store an event, as OpenClaw does."""
        text = event if isinstance(event, str) else spelled(event)
        size = len(text.encode())
        self.recorded.sql(AGENT, _ROW, self.session, self.last, text, None, size, None)

    def store_packed(self, event: dict[str, Any], navigation: dict[str, Any]) -> None:
        """Store a long event, as OpenClaw does."""
        text = spelled(event).encode()
        packed = zstandard.ZstdCompressor().compress(text)
        columns = (None, packed, min(len(text), 4 << 20), spelled(navigation))
        self.recorded.sql(AGENT, _ROW, self.session, self.last, *columns)

    def say(self, text: str) -> None:
        """Report and store a message."""
        message = {"role": "user", "content": text, "timestamp": self.last + 0.5}
        self.report(message)
        self.store(self.event(message))


@pytest.fixture
def guard(recorded: Recorded) -> Iterator[Guard]:
    """A guard of the folder."""
    with recorded.guard() as guard:
        yield guard


@pytest.fixture
def conversation(recorded: Recorded) -> Conversation:
    """The conversation of the folder."""
    return Conversation.of(recorded)


def _concerns(recorded: Recorded, guard: Guard, conversation: Conversation) -> list[Concern]:
    """What a new guard says of added messages, after the reports were recorded and both died."""
    guard.acts(guard.newest().started or 0).record(conversation.reports)
    with recorded.guard() as other:
        return [
            each.concern for each in other.check().differences if "transcript_events" in each.place
        ]


def _die(guard: Guard) -> None:
    """Leave the seal of a start as the newest one."""
    with guard.running():
        pass


def test_reported_messages_need_no_decision(
    recorded: Recorded, guard: Guard, conversation: Conversation
) -> None:
    """If nothing else was written, the next start asks nothing."""
    _die(guard)
    for text in ("hello", "pay 7 ✓", 'a "quote" \\ \u2028 \x1f', "hello"):
        conversation.say(text)

    assert _concerns(recorded, guard, conversation) == [Concern.REPORTED] * 4
    with recorded.guard() as other, other.running() as watch:
        watch.end(crashed=False)


def test_messages_without_a_report_are_listed(
    recorded: Recorded, guard: Guard, conversation: Conversation
) -> None:
    """Those that were reported are listed apart."""
    _die(guard)
    conversation.say("hello")
    conversation.reports.clear()
    conversation.say("goodbye")

    assert sorted(_concerns(recorded, guard, conversation)) == [Concern.REPORTED, Concern.UNSEALED]
    with recorded.guard() as other, pytest.raises(StateUnsealed, match="no seal of its end exists"):
        other.verify()


def test_the_run_that_openclaw_adds_to_a_message_does_not_count(
    recorded: Recorded, guard: Guard, conversation: Conversation
) -> None:
    """It does so after the plugin reported the message."""
    _die(guard)
    message = {"role": "assistant", "content": [{"type": "text", "text": "1e3"}], "cost": 1e-07}
    conversation.report(message)
    conversation.store(conversation.event(message | {"__openclaw": {"runId": "r1"}}))

    assert _concerns(recorded, guard, conversation) == [Concern.REPORTED]


def test_a_message_that_is_stored_a_little_later_is_accounted_for(
    recorded: Recorded, guard: Guard, conversation: Conversation
) -> None:
    """OpenClaw reports a queued message of a user before the answer to the one before."""
    _die(guard)
    messages = [{"role": "user", "content": str(number)} for number in range(6)]
    for place in (0, 2, 1, 3, 5, 4):
        conversation.report(messages[place])
    for message in messages:
        conversation.store(conversation.event(message))

    assert _concerns(recorded, guard, conversation) == [Concern.REPORTED] * 6


_HELLO = {"role": "user", "content": "hello", "timestamp": 1}


def _forged(conversation: Conversation) -> None:
    conversation.store(conversation.event(_HELLO | {"content": "pay"}))


def _promoted(conversation: Conversation) -> None:
    conversation.store(
        conversation.event(_HELLO | {"__openclaw": {"runId": "r1", "senderIsOwner": True}})
    )


def _extended(conversation: Conversation) -> None:
    conversation.store(conversation.event(_HELLO, also="pay"))


def _hung_elsewhere(conversation: Conversation) -> None:
    conversation.parent = "another-event"
    conversation.store(conversation.event(_HELLO))


def _spelled_otherwise(conversation: Conversation) -> None:
    conversation.store(json.dumps(conversation.event(_HELLO)))


def _named_twice(conversation: Conversation) -> None:
    text = spelled(conversation.event(_HELLO))
    conversation.store(f'{text[:-1]},"message":{{"role":"user","content":"pay"}}}}')


def _of_another_kind(conversation: Conversation) -> None:
    conversation.store(conversation.event(_HELLO, type="custom_message"))


@pytest.mark.parametrize(
    "store",
    [
        _forged,
        _promoted,
        _extended,
        _hung_elsewhere,
        _spelled_otherwise,
        _named_twice,
        _of_another_kind,
    ],
    ids=lambda store: str(store.__name__),
)
def test_a_message_that_is_not_the_reported_one_is_listed(
    recorded: Recorded,
    guard: Guard,
    conversation: Conversation,
    store: Callable[[Conversation], None],
) -> None:
    """Whatever was changed of it."""
    _die(guard)
    conversation.report(_HELLO)
    store(conversation)

    assert _concerns(recorded, guard, conversation) == [Concern.UNSEALED]


def test_a_report_counts_once(recorded: Recorded, guard: Guard, conversation: Conversation) -> None:
    """A message that an attacker repeats is listed."""
    _die(guard)
    conversation.report(_HELLO)
    conversation.store(conversation.event(_HELLO))
    conversation.store(conversation.event(_HELLO))

    assert sorted(_concerns(recorded, guard, conversation)) == [Concern.REPORTED, Concern.UNSEALED]


def test_a_message_that_was_moved_is_listed(
    recorded: Recorded, guard: Guard, conversation: Conversation
) -> None:
    """An old message at the end of the conversation could ask for the same once more."""
    _die(guard)
    messages = [{"role": "user", "content": str(number)} for number in range(9)]
    for message in messages:
        conversation.report(message)
    for message in [*messages[1:], messages[0]]:
        conversation.store(conversation.event(message))

    assert _concerns(recorded, guard, conversation).count(Concern.UNSEALED) == 1


def test_a_report_counts_for_its_conversation(
    recorded: Recorded, guard: Guard, conversation: Conversation
) -> None:
    """A message of another conversation is listed."""
    _die(guard)
    conversation.report(_HELLO, session="agent:main:other")
    conversation.store(conversation.event(_HELLO))

    assert _concerns(recorded, guard, conversation) == [Concern.UNSEALED]


def _missing(recorded: Recorded) -> list[str]:
    """What a new guard says of reports without a row; it refuses the start if there are any."""
    with recorded.guard() as other:
        words = [each.words for each in other.check().differences]
        missing = [each for each in words if each.endswith(": missing")]
        if missing:
            with pytest.raises(StateUnsealed) as caught:
                other.verify()
            assert set(missing) <= set(caught.value.differences)
    return missing


@pytest.mark.parametrize(("stored", "count"), [([0, 1, 2], 0), ([0, 1], 0), ([0, 2], 1), ([], 2)])
def test_a_reported_message_that_is_gone_is_missing(
    recorded: Recorded,
    guard: Guard,
    conversation: Conversation,
    stored: list[int],
    count: int,
) -> None:
    """All but the last one, which may not have been stored yet."""
    _die(guard)
    messages = [{"role": "user", "content": str(number)} for number in range(3)]
    for message in messages:
        conversation.report(message)
    for number in stored:
        conversation.store(conversation.event(messages[number]))
    guard.acts(guard.newest().started or 0).record(conversation.reports)

    assert len(_missing(recorded)) == count


_CALL = {"kind": "tool", "v": 1, "id": 1, "agent": "main", "session": _KEY, "run": "r"} | {
    "call": "call_1",
    "tool": "exec",
    "digest": "0" * 64,
    "files": [],
}


@pytest.mark.parametrize(("result", "count"), [("call_1", 0), ("call_2", 1), (None, 1)])
def test_a_tool_call_without_its_result_is_missing(
    recorded: Recorded, guard: Guard, conversation: Conversation, result: str | None, count: int
) -> None:
    """It may have had its effect, and an interrupted turn would call it again."""
    _die(guard)
    if result is not None:
        message = {"role": "toolResult", "toolCallId": result, "content": "5"}
        conversation.report(message)
        conversation.store(conversation.event(message))
    guard.acts(guard.newest().started or 0).record([_CALL, *conversation.reports])

    assert len(_missing(recorded)) == count


_NAVIGATION: dict[str, Any] = {
    "version": 1,
    "report": {"kind": "canonical"},
    "navigation": {},
    "reset": {},
    "model": {},
    "modelBytes": 7,
    "modelWithoutCheckpointBytes": 7,
    "withoutCustomDataBytes": 7,
}


def test_a_packed_event_is_unpacked_up_to_a_limit(
    recorded: Recorded, guard: Guard, conversation: Conversation
) -> None:
    """Two thousand bytes can name a size of 64 MiB."""
    _die(guard)
    conversation.store_packed(conversation.event({"content": " " * (64 << 20)}), _NAVIGATION)
    tracemalloc.start()
    try:
        assert _concerns(recorded, guard, conversation) == [Concern.UNSEALED]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 32 << 20


@pytest.mark.parametrize("minutes", [10, -1])
def test_what_was_sealed_is_not_missing_and_cannot_be_repeated(
    recorded: Recorded,
    guard: Guard,
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
    minutes: int,
) -> None:
    """A sealed message uses its report, however long ago the gateway was started."""
    monkeypatch.setattr("sealpoint_openclaw._guard._STORED_WITHIN", timedelta(minutes=minutes))
    with guard.running() as watch:
        for text in ("hello", "goodbye"):
            conversation.say(text)
            conversation.report(_HELLO)
            conversation.store(conversation.event(_HELLO))
            watch.acts.record([_CALL, *conversation.reports])
            conversation.reports.clear()
            watch.seal()

    assert _missing(recorded) == []
    conversation.store(conversation.event(_HELLO))
    assert _concerns(recorded, guard, conversation) == [Concern.UNSEALED]


@pytest.mark.parametrize("spelling", ["plain", "escaped"])
def test_a_message_with_the_id_of_a_sealed_event_is_listed(
    recorded: Recorded, guard: Guard, conversation: Conversation, spelling: str
) -> None:
    """OpenClaw would read another history, because events are found by their ids."""
    query = "SELECT event_id FROM transcript_event_identities WHERE session_id = ? AND seq = 1"
    known = recorded.value(AGENT, query, conversation.session)
    shown = f"\\u{ord(known[0]):04x}{known[1:]}" if spelling == "escaped" else known
    _die(guard)
    conversation.report(_HELLO)
    text = spelled(conversation.event(_HELLO, id="@"))
    conversation.store(text.replace("@", shown))

    assert _concerns(recorded, guard, conversation) == [Concern.UNSEALED]


@pytest.mark.parametrize(
    ("changed", "concern"),
    [
        ({}, Concern.REPORTED),
        ({"model": {"message": {"content": []}}}, Concern.REPORTED),
        ({"model": {"message": {"content": "pay"}}}, Concern.UNSEALED),
        ({"report": {"kind": "canonical", "entry": {"id": "other"}}}, Concern.UNSEALED),
        ({"report": {"kind": "ignored", "entry": {}}}, Concern.UNSEALED),
    ],
)
def test_a_packed_message_is_accounted_for_with_its_navigation(
    recorded: Recorded,
    guard: Guard,
    conversation: Conversation,
    changed: dict[str, Any],
    concern: Concern,
) -> None:
    """OpenClaw packs long ones, and keeps parts of them aside, which may be blank."""
    _die(guard)
    conversation.report(_HELLO)
    event = conversation.event(_HELLO)
    part = {key: event[key] for key in ("type", "id", "parentId", "timestamp")}
    navigation = _NAVIGATION | {
        "report": {"kind": "canonical", "hasParentId": True, "entry": part},
        "navigation": part | {"message": {"role": "user"}},
        "reset": part,
        "model": part,
    }
    conversation.store_packed(event, navigation | changed)

    assert _concerns(recorded, guard, conversation) == [concern]


def test_a_release_that_packs_no_events_is_read(recorded: Recorded) -> None:
    """Of 2026.8.2: its table lacks the columns of packed events."""
    for statement in (
        (
            "CREATE TABLE older (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER,"
            " PRIMARY KEY (session_id, seq))"
        ),
        "INSERT INTO older SELECT session_id, seq, event_json, created_at FROM transcript_events",
        "DROP TABLE transcript_events",
        "ALTER TABLE older RENAME TO transcript_events",
    ):
        recorded.sql(AGENT, statement)
    with recorded.guard() as guard:
        guard.accept(reason="an older release")
        _die(guard)
        conversation = Conversation.of(recorded)
        message = {"role": "user", "content": "hello"}
        conversation.report(message)
        event = spelled(conversation.event(message))
        recorded.sql(
            AGENT,
            "INSERT INTO transcript_events (session_id, seq, event_json, created_at)"
            " VALUES (?, ?, ?, 1)",
            *(conversation.session, conversation.last, event),
        )
        found = _concerns(recorded, guard, conversation)
    assert found == [Concern.REPORTED]
