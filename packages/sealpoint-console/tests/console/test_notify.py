# SPDX-License-Identifier: Apache-2.0
"""People are told: in order, at least once, across restarts and crashes, by real receivers."""

import itertools
import json
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealpoint.audit import AuditRecord, Finding
from sealpoint.errors import DirectoryUnusable, StorageUnavailable
from sealpoint.signing import Roster
from sealpoint_console import _outbox
from sealpoint_console._hook_delivery import Pace
from sealpoint_console._notification_events import ConsoleEvent
from sealpoint_console._notifier import Notifier, outbox_path
from sealpoint_console.settings import ConsoleSettings, HookSettings
from tests.console.receiver import Got, Receiver, SlowServer, new_secret, verify, wait_until
from tests.deployment import Deployment
from tests.ledgers import identity, roster
from tests.unit.gate.team import READ, Team

_STORE = "store:00112233445566778899aabbccddeeff"
_ROOT = Path(__file__).parents[4]


class Home:
    """What a console has on the disk, and the consoles that run there one after the other."""

    def __init__(self, path: Path) -> None:
        self.state = path / "state"
        self.secret_file = path / "hook.secret"
        self.secret = new_secret(self.secret_file)
        self._running: list[Notifier] = []

    def hook(self, url: str, name: str = "desk", **settings: Any) -> HookSettings:
        """A webhook of the generic shape."""
        return HookSettings(name=name, url=url, secret_file=str(self.secret_file), **settings)

    def start(self, *hooks: HookSettings, lasting: bool = True, **pace: float) -> Notifier:
        """A console that tells these hooks."""
        made = Notifier(
            ConsoleSettings(
                hooks=hooks,
                origin="https://console.example.com",
                state_dir=self.state if lasting else None,
            ),
            store_id=_STORE,
            namespace="default",
            pace=Pace(**{"first_wait_s": 0.02, "send_s": 2.0, **pace}),
        )
        made.start()
        self._running.append(made)
        return made

    def close(self) -> None:
        """End every console."""
        for each in self._running:
            each.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A place on the disk."""
    made = Home(tmp_path)
    yield made
    made.close()


def _event(number: int = 0, kind: str = "paused", **fields: Any) -> ConsoleEvent:
    return ConsoleEvent(
        id=f"e{number}", kind=kind, time=datetime.now(UTC), page="/threads/0", **fields
    )


def _status(status: int, **headers: str) -> Any:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", "0")
        handler.end_headers()

    return answer


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


# ---------------------------------------------------------------------- sending


def test_an_event_arrives_signed_with_all_that_names_it(home: Home) -> None:
    """The generic shape: what, where, when, by whom, a sentence and a page."""
    with Receiver() as receiver:
        home.start(home.hook(receiver.url)).tell(
            _event(kind="request", thread="v", thread_id="ab", request="cd" * 32, by="worker")
        )
        wait_until(lambda: receiver.got)
    (got,) = receiver.got
    document = got.document

    assert verify(got, home.secret)
    assert got.path == "/hook?room=7"
    assert got.headers["content-type"] == "application/json"
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 10
    assert datetime.fromisoformat(document.pop("time")).tzinfo is not None
    assert document == {
        "id": "e0",
        "kind": "request",
        "store": _STORE,
        "namespace": "default",
        "thread": "v",
        "thread_id": "ab",
        "request": "cd" * 32,
        "by": "worker",
        "page": "https://console.example.com/threads/0",
        "text": "worker asks for approval: request cdcdcdcdcdcd (thread v)",
    }


def test_events_arrive_in_order_though_some_are_refused_at_first(home: Home) -> None:
    """What was not taken is sent again before anything that came later."""
    tries = iter([500, 200, 503, 404, 429, 200])

    def answer(handler: BaseHTTPRequestHandler) -> None:
        _status(next(tries, 200))(handler)

    with Receiver(answer) as receiver:
        notifier = home.start(home.hook(receiver.url))
        for number in range(5):
            notifier.tell(_event(number))
        wait_until(lambda: notifier.status()[0].delivered == 5)

    assert receiver.ids == ["e0", "e0", "e1", "e1", "e1", "e1", "e2", "e3", "e4"]
    (status,) = notifier.status()
    assert (status.waiting, status.dropped, status.error) == (0, 0, "")


def test_waits_grow_and_a_receiver_may_ask_for_more(home: Home) -> None:
    """Each failure doubles the wait; `Retry-After` makes it longer and never endless."""
    answers = iter([_status(500), _status(500), _status(500), _status(429, retry_after="1")])

    def answer(handler: BaseHTTPRequestHandler) -> None:
        next(answers, _status(200))(handler)

    with Receiver(answer) as receiver:
        notifier = home.start(home.hook(receiver.url), first_wait_s=0.05)
        notifier.tell(_event())
        wait_until(lambda: notifier.status()[0].delivered)
    at = [got.at for got in receiver.got]
    waits = [later - earlier for earlier, later in itertools.pairwise(at)]

    assert waits[0] >= 0.05
    assert waits[1] >= 0.1
    assert waits[2] >= 0.2
    assert waits[3] >= 1.0


def test_an_event_that_is_never_taken_is_given_up_and_counted(home: Home) -> None:
    """After its time, and at least one try, the next one has its turn."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        _status(400 if handler.headers["webhook-id"] == "e0" else 200)(handler)

    with Receiver(answer) as receiver:
        notifier = home.start(home.hook(receiver.url), give_up_s=0.2)
        notifier.tell(_event(0))
        notifier.tell(_event(1))
        wait_until(lambda: notifier.status()[0].delivered)

    (status,) = notifier.status()
    assert (status.delivered, status.dropped, status.waiting) == (1, 1, 0)
    assert receiver.ids.count("e0") > 1
    assert receiver.ids[-1] == "e1"


def test_a_dead_hook_holds_up_no_other(home: Home) -> None:
    """One hangs, one refuses connections, and the third is told all the same."""
    with SlowServer() as hanging, Receiver() as receiver:
        notifier = home.start(
            home.hook(hanging.url, "hanging"),
            home.hook(f"http://127.0.0.1:{_free_port()}/", "dead"),
            home.hook(receiver.url, "well"),
        )
        for number in range(3):
            notifier.tell(_event(number))
        wait_until(lambda: len(receiver.got) == 3)
        wait_until(lambda: {each.name: each for each in notifier.status()}["dead"].error)
    found = {each.name: each for each in notifier.status()}

    assert "no connection" in found["dead"].error
    assert found["dead"].waiting == found["hanging"].waiting == 3
    assert found["well"].delivered == 3


def test_each_hook_is_told_what_it_asked_for(home: Home) -> None:
    """A worker's hook gets what resumes it, and nobody else does."""
    with Receiver() as people, Receiver() as worker:
        notifier = home.start(
            home.hook(people.url, "people"),
            home.hook(worker.url, "worker", events=("resume-wanted",)),
        )
        notifier.resume_wanted("ab", "invoice-7", "alice", told=0)
        notifier.tell(_event(1, "paused"))
        wait_until(lambda: people.got and worker.got)
        time.sleep(0.05)

    assert [got.document["kind"] for got in people.got] == ["paused"]
    (got,) = worker.got
    assert got.document["kind"] == "resume-wanted"
    assert (got.document["thread"], got.document["actor"]) == ("invoice-7", "alice")
    assert notifier.tells("resume-wanted")


def test_without_hooks_nothing_is_kept_and_nobody_told(home: Home) -> None:
    """A console that tells nobody makes no file."""
    notifier = home.start()
    notifier.tell(_event())
    notifier.looked({"ab": 1}, lambda _: ())

    assert not notifier.tells("request")
    assert notifier.status() == ()
    assert not home.state.exists()


# ---------------------------------------------------------------------- restarts and crashes


def test_what_waited_is_sent_after_a_restart(home: Home) -> None:
    """The receiver was away while the console ran; the next console finds what is to be sent."""
    port = _free_port()
    hook = home.hook(f"http://127.0.0.1:{port}/")
    first = home.start(hook)
    for number in range(20):
        first.tell(_event(number))
    first.close()
    with Receiver(port=port) as receiver:
        second = home.start(hook)
        wait_until(lambda: second.status()[0].delivered == 20)

    assert receiver.ids == [f"e{number}" for number in range(20)]


def _wait_for(receiver: Receiver, least: int) -> None:
    wait_until(lambda: len(receiver.got) >= least)


def _wait_for_all(notifier: Notifier) -> None:
    wait_until(lambda: not notifier.status()[0].waiting)


def _teller(home: Home, url: str, first: int, last: int) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.console.teller", url, str(home.secret_file)),
            *(str(home.state), str(first), str(last)),
        ],
        cwd=_ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "kept\n"
    return process


def test_nothing_is_lost_by_a_process_that_is_killed(home: Home) -> None:
    """Killed in the middle of sending, twice: all arrives, in order, some of it again."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.01)
        _status(200)(handler)

    with Receiver(answer) as receiver:
        for first, last in ((0, 20), (20, 40)):
            with _teller(home, receiver.url, first, last) as process:
                _wait_for(receiver, first // 2 + 5)
                process.send_signal(signal.SIGKILL)
        with _teller(home, receiver.url, 40, 41) as process:
            wait_until(lambda: "e40" in receiver.ids)
            process.communicate(timeout=20)

    seen = list(dict.fromkeys(receiver.ids))
    assert seen == [f"e{number}" for number in range(41)]
    assert len(receiver.ids) <= len(seen) + 2


def test_the_outbox_is_for_one_console_and_for_its_user_alone(home: Home) -> None:
    """A second console of the same store and namespace is refused with words that help."""
    with Receiver() as receiver:
        home.start(home.hook(receiver.url))
        path = outbox_path(home.state, _STORE, "default")
        with pytest.raises(DirectoryUnusable, match="another console"):
            home.start(home.hook(receiver.url))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_is_no_outbox_is_refused(home: Home) -> None:
    """It is neither read nor written over."""
    path = outbox_path(home.state, _STORE, "default")
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_bytes(b"something else" * 1000)
    path.chmod(0o600)
    with pytest.raises(DirectoryUnusable):
        home.start(home.hook("https://localhost:1/"))

    assert path.read_bytes() == b"something else" * 1000


def test_a_link_in_the_place_of_the_outbox_is_refused(home: Home, tmp_path: Path) -> None:
    """Nobody is led elsewhere."""
    path = outbox_path(home.state, _STORE, "default")
    path.parent.mkdir(parents=True, mode=0o700)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DirectoryUnusable):
        home.start(home.hook("https://localhost:1/"))

    assert not (tmp_path / "elsewhere").exists()


def test_the_outbox_is_bounded_and_counts_what_it_gives_up(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest are kept, and the status says how many are gone."""
    monkeypatch.setattr(_outbox, "WAITING_MAX", 5)
    notifier = home.start(home.hook(f"http://127.0.0.1:{_free_port()}/"), first_wait_s=60)
    for number in range(8):
        notifier.tell(_event(number))
    (status,) = notifier.status()

    assert (status.waiting, status.dropped) == (5, 3)


def test_a_flood_by_one_writer_drowns_no_alarm_and_nobody_else(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What there is most of is given up, and alarms are sent before what came first."""
    monkeypatch.setattr(_outbox, "WAITING_MAX", 5)
    notifier = home.start(home.hook(f"http://127.0.0.1:{_free_port()}/"), first_wait_s=60)
    kept = {"paused": "operator", "unreadable": "", "request": "spare"}
    for number, (kind, by) in enumerate(kept.items()):
        notifier.tell(_event(number, kind, by=by))
    for number in range(10, 30):
        notifier.tell(_event(number, "request", by="worker"))
    outbox, sent = notifier._outbox, []
    assert outbox is not None
    while (waiting := outbox.first("desk")) is not None:
        sent.append((waiting.event.kind, waiting.event.by))
        outbox.delivered("desk", waiting.number, 0.0)

    assert sent == [
        *(("unreadable", ""), ("paused", "operator"), ("request", "spare")),
        *[("request", "worker")] * 2,
    ]


def test_what_waits_for_a_hook_that_is_gone_is_forgotten(home: Home) -> None:
    """Taking a hook out of the settings ends it; the others keep what waits for them."""
    dead = f"http://127.0.0.1:{_free_port()}/"
    first = home.start(home.hook(dead, "one"), home.hook(dead, "two"), first_wait_s=60)
    first.tell(_event())
    first.close()
    second = home.start(home.hook(dead, "two"), home.hook(dead, "three"), first_wait_s=60)

    assert {each.name: each.waiting for each in second.status()} == {"two": 1, "three": 0}


# ---------------------------------------------------------------------- what a look has found


class Watched:
    """A store of a team, looked at by a console."""

    def __init__(self) -> None:
        self.team = Team(Deployment())
        self.team.thread(name="v").save({"n": 1}, world=READ)
        self.reads: list[str] = []

    def heads(self) -> dict[str, int]:
        """Where every thread ends."""
        return {self.thread: len(self.team.kinds("v")) - 1}

    def read(self, thread: str) -> Iterator[AuditRecord]:
        """The records of a thread."""
        self.reads.append(thread)
        store = self.team.world.open(None, read_only=True)
        return (record for record in store.audit() if record.thread_id == thread)

    def look(self, notifier: Notifier, **found: Any) -> None:
        """Look once."""
        notifier.looked(self.heads(), self.read, **found)

    @property
    def thread(self) -> str:
        """The id of the thread."""
        return self.team.world.thread_id("v").hex()


@pytest.fixture
def watched() -> Iterator[Watched]:
    """A store that is looked at."""
    made = Watched()
    yield made
    made.team.world.close()


def _kinds(got: list[Got]) -> list[str]:
    return [each.document["kind"] for each in got]


def _pause(watched: Watched) -> None:
    watched.team.thread("operator", "v").pause("a look")


def _unpause(watched: Watched) -> None:
    watched.team.thread("operator", "v").unpause("fine")


def test_the_first_start_tells_nothing_of_the_past(home: Home, watched: Watched) -> None:
    """A console that is new to a store does not tell its history."""
    _pause(watched)
    with Receiver() as receiver:
        notifier = home.start(home.hook(receiver.url))
        notifier.resume_wanted(watched.thread, "v", "alice", told=0)  # before the first look
        watched.look(notifier)
        _unpause(watched)
        watched.look(notifier)
        wait_until(lambda: receiver.got)

    assert _kinds(receiver.got) == ["unpaused"]


def test_a_restart_tells_what_happened_meanwhile_and_nothing_twice(
    home: Home, watched: Watched
) -> None:
    """What was told stays told; what nobody saw is told by the next console."""
    with Receiver() as receiver:
        hook = home.hook(receiver.url)
        first = home.start(hook)
        watched.look(first)
        _pause(watched)
        watched.look(first)
        wait_until(lambda: len(receiver.got) == 1)
        first.close()
        _unpause(watched)
        request = watched.team.ask(name="v")
        watched.team.approve(request)
        for _ in range(2):
            second = home.start(hook)
            watched.look(second)
            watched.look(second)
            _wait_for_all(second)
            second.close()

    assert _kinds(receiver.got) == ["paused", "unpaused", "request", "approved", "approved"]
    assert [got.document["by"] for got in receiver.got][-2:] == ["ann", "bob"]


def test_only_threads_that_may_have_something_to_tell_are_read(
    home: Home, watched: Watched
) -> None:
    """A save moves a thread, and costs no read; what was touched is read once."""
    with Receiver() as receiver:
        notifier = home.start(home.hook(receiver.url))
        watched.look(notifier)
        watched.team.thread(name="v").save({"n": 2}, world=READ)
        watched.look(notifier, touched=())
        _pause(watched)
        watched.look(notifier, touched={watched.thread})
        watched.look(notifier, touched=())
        wait_until(lambda: receiver.got)
        notifier.close()
        again = home.start(home.hook(receiver.url))
        watched.look(again)

    assert watched.reads == [watched.thread]
    assert _kinds(receiver.got) == ["paused"]


def test_a_thread_that_cannot_be_read_now_is_told_later(home: Home, watched: Watched) -> None:
    """Storage that is away for a moment loses no event, though the thread moves no more."""

    def away(_: str) -> Iterator[AuditRecord]:
        raise StorageUnavailable("away")

    with Receiver() as receiver:
        notifier = home.start(home.hook(receiver.url))
        watched.look(notifier)
        _pause(watched)
        notifier.looked(watched.heads(), away, touched={watched.thread})
        watched.look(notifier, touched=())
        wait_until(lambda: receiver.got)

    assert _kinds(receiver.got) == ["paused"]


def test_a_thread_that_was_cut_by_a_restore_is_told_from_there_on(
    home: Home, watched: Watched
) -> None:
    """Positions that come a second time are new entries."""
    with Receiver() as receiver:
        notifier = home.start(home.hook(receiver.url))
        notifier.looked({watched.thread: 50}, watched.read)
        watched.look(notifier)
        _pause(watched)
        watched.look(notifier)
        wait_until(lambda: receiver.got)

    assert _kinds(receiver.got) == ["paused"]


def test_what_does_not_verify_is_told_once_until_it_does_again(
    home: Home, watched: Watched
) -> None:
    """Also at the first start, for it is wrong now; a restart does not tell it again."""
    broken = Finding(code="edited", thread=watched.thread, name="v", message="secret")
    away = replace(broken, code="storage-unavailable")
    with Receiver() as receiver:
        hook = home.hook(receiver.url)
        first = home.start(hook)
        for finding in (broken, broken, away, broken):
            watched.look(first, findings=(finding,))
        first.close()
        second = home.start(hook)
        for findings in ((broken,), (), (broken,)):
            watched.look(second, findings=findings)
        wait_until(lambda: len(receiver.got) == 2 and not second.status()[0].waiting)

    assert _kinds(receiver.got) == ["unreadable"] * 2
    assert len(set(receiver.ids)) == 2
    assert receiver.got[0].document["code"] == "edited"
    assert b"secret" not in receiver.got[0].body


def test_a_thread_that_does_not_verify_is_read_when_it_does(home: Home, watched: Watched) -> None:
    """What was appended meanwhile is told then."""
    broken = Finding(code="edited", thread=watched.thread, name="v", message="x")
    with Receiver() as receiver:
        notifier = home.start(home.hook(receiver.url, events=("paused",)))
        watched.look(notifier)
        _pause(watched)
        watched.look(notifier, touched={watched.thread}, findings=(broken,))
        assert watched.reads == []
        watched.look(notifier, touched=())
        wait_until(lambda: receiver.got)

    assert _kinds(receiver.got) == ["paused"]


def test_a_key_is_told_of_once_though_consoles_come_and_go(home: Home, watched: Watched) -> None:
    """Every look sees that it expires, and people read it once."""
    worker = identity("worker")
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(days=5)
    keys = tuple(msgspec.structs.replace(each, expires=expires) for each in worker.keys)
    due = Roster(roster(msgspec.structs.replace(worker, keys=keys)), seq=0)
    with Receiver() as receiver:
        for _ in range(2):
            notifier = home.start(home.hook(receiver.url))
            watched.look(notifier, roster=due)
            watched.look(notifier, roster=due)
            _wait_for_all(notifier)
            notifier.close()

    (got,) = receiver.got
    assert got.document["identity"] == "worker"
    assert datetime.fromisoformat(got.document["expires"]) == expires


def test_in_memory_everything_works_but_ends_with_the_process(home: Home, watched: Watched) -> None:
    """Without a directory of its own a console tells what it sees."""
    with Receiver() as receiver:
        notifier = home.start(home.hook(receiver.url), lasting=False)
        watched.look(notifier)
        _pause(watched)
        watched.look(notifier)
        wait_until(lambda: receiver.got)

    assert _kinds(receiver.got) == ["paused"]
    assert not home.state.exists()


def test_what_is_told_holds_no_state_no_answer_and_no_reason(
    home: Home, watched: Watched, tmp_path: Path
) -> None:
    """Neither what is sent nor what is kept on the disk."""
    hidden = "4111-1111-1111"
    team = watched.team
    team.thread(name="v").save({"card": hidden}, world=READ)
    with Receiver() as receiver:
        notifier = home.start(home.hook(receiver.url))
        watched.look(notifier)
        request = team.ask(name="v", answer={"card": hidden})
        team.store("ann").approve(request.id, reason=hidden)
        team.thread("operator", "v").pause(hidden)
        watched.look(notifier)
        wait_until(lambda: len(receiver.got) == 3)
        notifier.close()

    assert hidden not in json.dumps([got.document for got in receiver.got])
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or hidden.encode() not in path.read_bytes()


def test_closing_does_not_wait_for_a_receiver_that_hangs(home: Home) -> None:
    """A console ends soon, and what it was sending is sent by the next one."""
    with SlowServer() as hanging:
        notifier = home.start(home.hook(hanging.url), send_s=60)
        notifier.tell(_event())
        wait_until(lambda: hanging.connections)
        begun = time.monotonic()
        notifier.close()

        assert time.monotonic() - begun < 10
    again = home.start(home.hook(f"http://127.0.0.1:{_free_port()}/"))
    assert again.status()[0].waiting == 1
