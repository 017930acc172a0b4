# SPDX-License-Identifier: Apache-2.0
"""From the watch of a store to people: what happens in a real store reaches a real receiver."""

from collections.abc import Iterator
from dataclasses import replace as replace_finding
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.api import Store, StoreWatch
from sealpoint.audit import AuditRecord, Finding, Report
from sealpoint.errors import SealpointError, StorageUnavailable
from sealpoint.gate import ROLLOUTS
from sealpoint_console._notification_feed import Feed
from sealpoint_console._notifier import Notifier
from sealpoint_console.settings import ConsoleSettings, HookSettings
from tests.console.receiver import Receiver, new_secret, wait_until
from tests.deployment import Deployment, Opened
from tests.unit.gate.team import READ, SHELL, Team


class Console:
    """The part of a console that tells, and the watch that it goes by."""

    def __init__(self, team: Team, receiver: Receiver, home: Path) -> None:
        self.store: Opened = team.world.open(None, read_only=True)
        self.watch: StoreWatch = self.store.watch()
        secret = home / "secret"
        if not secret.exists():
            new_secret(secret)
        hook = HookSettings(name="desk", url=receiver.url, secret_file=str(secret))
        settings = ConsoleSettings(hooks=(hook,), state_dir=home / "state")
        self.notifier = Notifier(settings, store_id=str(self.store.id), namespace="default")
        self.feed = Feed(self.store, self.watch, self.notifier)

    def look(self) -> None:
        """Refresh the watch, and tell what it has found."""
        try:
            self.watch.refresh()
        finally:
            self.feed.look()


@pytest.fixture
def team() -> Iterator[Team]:
    """A team whose worker has saved."""
    made = Deployment()
    crew = Team(made)
    crew.thread(name="v").save({"n": 1}, world=READ)
    crew.thread(name="w").save({"n": 1}, world=READ)
    yield crew
    made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Who is told."""
    with Receiver() as made:
        yield made


@pytest.fixture
def console(team: Team, receiver: Receiver, tmp_path: Path) -> Iterator[Console]:
    """A console that has looked once."""
    made = Console(team, receiver, tmp_path)
    made.notifier.start()
    made.look()
    yield made
    made.notifier.close()


def _told(receiver: Receiver) -> list[tuple[str, str, str]]:
    found = [got.document for got in receiver.got]
    return [(each["kind"], each.get("thread", ""), each.get("by", "")) for each in found]


def test_what_people_do_is_told_with_the_names_of_those_who_did(
    team: Team, receiver: Receiver, console: Console
) -> None:
    """A request, two approvals and a pause, on two threads, in the order of time."""
    request = team.ask(name="v")
    team.approve(request)
    console.look()
    team.thread("operator", "w").pause("a look")
    console.look()
    wait_until(lambda: len(receiver.got) == 4)

    assert _told(receiver) == [
        ("request", "v", "worker"),
        ("approved", "v", "ann"),
        ("approved", "v", "bob"),
        ("paused", "w", "operator"),
    ]
    assert receiver.got[0].document["request"] == request.id


def test_a_proposed_rollout_is_told(team: Team, receiver: Receiver, console: Console) -> None:
    """It is asked on a thread of Sealpoint's own, and people have to approve it all the same."""
    team.ask(name="v")
    proposed = team.store("operator").rollouts.propose([(READ, SHELL)], reason="the new release")
    console.look()
    wait_until(lambda: len(receiver.got) == 2)

    assert [each[:2] for each in _told(receiver)] == [("request", "v"), ("request", ROLLOUTS)]
    assert receiver.got[1].document["request"] == proposed.id


def test_people_whose_approvals_a_deploy_will_void_are_told_before(
    team: Team, receiver: Receiver, console: Console
) -> None:
    """The request that lacks what the rollout accepts is named, with those who approved it."""
    request = team.ask(name="v", answer="yes", world=READ)
    team.approve(request, "ann")
    team.ask(name="w")
    console.look()
    proposed = team.store("operator").rollouts.propose([(READ, SHELL)], reason="the new release")
    console.look()
    wait_until(lambda: len(receiver.got) == 5)
    last = receiver.got[-1].document

    assert [each[:2] for each in _told(receiver)][3:] == [
        ("request", ROLLOUTS),
        ("deploy-voids", "v"),
    ]
    assert receiver.got[3].document["request"] == proposed.id
    assert (last["request"], last["by"], last["approved_by"]) == (request.id, "worker", ["ann"])
    assert "is void; approved by ann" in last["text"]


def test_what_happened_while_no_console_ran_is_told(
    team: Team, receiver: Receiver, console: Console, tmp_path: Path
) -> None:
    """The next one finds it, though its watch has seen nothing before."""
    console.notifier.close()
    team.thread("operator", "w").pause("a look")
    team.thread(name="v").save({"n": 2}, world=READ)
    again = Console(team, receiver, tmp_path)
    again.notifier.start()
    again.look()
    again.look()
    wait_until(lambda: receiver.got)
    again.notifier.close()

    assert _told(receiver) == [("paused", "w", "operator")]


def test_saves_cost_no_read_of_the_trail(
    team: Team, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a thread with an entry that is told is read."""
    read: list[object] = []
    audit = Store.audit

    def noted(store: Store, **which: Any) -> Iterator[AuditRecord]:
        read.append(which["thread"])
        return audit(store, **which)

    monkeypatch.setattr(Store, "audit", noted)
    for number in range(3):
        team.thread(name="v").save({"n": number}, world=READ)
        console.look()
    team.thread("operator", "w").pause("a look")
    console.look()

    assert read == ["w"]


def _wait_for(receiver: Receiver, events: int) -> None:
    wait_until(lambda: len(receiver.got) == events)


def test_a_thread_that_was_tampered_with_is_told_once(
    team: Team, receiver: Receiver, console: Console
) -> None:
    """With the code of the error, and anew when it was mended and comes back."""
    thread = team.world.thread_id("v")
    whole = team.world.record("v", 2)
    team.thread("operator", "v").pause("so that it moves")
    records = (replace(whole, body=b"other"), whole, replace(whole, body=b"other"))
    for told, record in enumerate(records, start=1):
        team.world.put(thread, 2, record)
        console.watch = console.feed._watch = team.world.open(None, read_only=True).watch()
        console.look()
        console.look()
        _wait_for(receiver, told)  # of what waits, alarms are sent first

    assert [each[0] for each in _told(receiver)] == ["unreadable", "paused", "unreadable"]
    assert receiver.got[0].document["code"] == "edited"


def test_a_storage_that_is_away_is_no_tampering(
    team: Team, receiver: Receiver, console: Console
) -> None:
    """Nobody is told of it, and what happened is told when it is back."""
    team.thread("operator", "w").pause("a look")
    console.store.storage.listing.before = _fail
    with pytest.raises(SealpointError):
        console.look()
    assert not receiver.got
    console.look()
    wait_until(lambda: receiver.got)

    assert [each[0] for each in _told(receiver)] == ["paused"]


def _fail() -> None:
    raise StorageUnavailable("away")


def test_the_feed_tells_in_a_thread_of_its_own(
    team: Team, receiver: Receiver, tmp_path: Path
) -> None:
    """Whoever refreshes the watch only says that it has looked."""
    made = Console(team, receiver, tmp_path)
    made.feed.start()
    made.watch.refresh()
    made.feed.wake()
    wait_until(lambda: made.feed._seen is not None)
    team.thread("operator", "w").pause("a look")
    made.watch.refresh()
    made.feed.wake()
    wait_until(lambda: receiver.got)
    made.feed.close()

    assert _told(receiver) == [("paused", "w", "operator")]
    assert made.feed.fault is None


def test_what_a_full_verification_finds_is_told_once_and_again_if_it_comes_back(
    team: Team, receiver: Receiver, console: Console
) -> None:
    """What does not verify, and what no policy allowed; not what is only worth a look."""
    thread = team.world.thread_id("v").hex()
    edited = Finding(code="edited", thread=thread, name="v", message="x")
    unjustified = replace_finding(edited, code="unjustified", refuses=False)
    clock = replace_finding(edited, code="time", refuses=False)
    bad = Report(ok=False, entries=1, findings=(edited, edited, unjustified, clock))
    good = Report(ok=True, entries=1, findings=())
    for report in (bad, bad, good, bad):
        console.feed.verified(report)
        console.look()
    wait_until(lambda: len(receiver.got) == 4)

    kinds = sorted(kind for kind, _, _ in _told(receiver))
    assert kinds == ["unjustified"] * 2 + ["unreadable"] * 2
    assert len({got.document["id"] for got in receiver.got}) == 4
    assert {got.document["page"].rpartition("/")[2] for got in receiver.got} == {thread}
