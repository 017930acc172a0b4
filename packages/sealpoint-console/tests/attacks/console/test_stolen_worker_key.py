# SPDX-License-Identifier: Apache-2.0
"""Somebody with a worker's key, and what people are told of what they write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sealpoint.gate import Status
from sealpoint.ledger import ExpiryBody, Kind, RequestBody, VerdictBody
from sealpoint.signing import Verdict, attest
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.console.receiver import Receiver, wait_until
from tests.console.test_feed import Console
from tests.ledgers import key
from tests.unit.gate.team import READ


@contextmanager
def _told_of(team: AttackedTeam, home: Path) -> Iterator[list[dict[str, Any]]]:
    """What people are told of what is written in the block."""
    told: list[dict[str, Any]] = []
    with Receiver() as receiver:
        console = Console(team, receiver, home)
        console.notifier.start()
        console.look()
        yield told
        console.look()
        wait_until(lambda: receiver.got)
        wait_until(lambda: not console.notifier.status()[0].waiting)
        console.notifier.close()
        told += [each.document for each in receiver.got]


def test_nobody_is_told_of_the_end_of_a_request_that_nobody_made(tmp_path: Path) -> None:
    """Whatever id somebody writes into an expiry, people are told that it is none."""
    team = AttackedTeam(tmp_path, "sqlite")
    team.waiting()
    with _told_of(team, tmp_path) as told:
        team.slip(Kind.EXPIRY, ExpiryBody(salt=team.salt, request="ab" * 32), "worker")

    assert [(each["kind"], each["code"]) for each in told] == [("refused", "not-trusted")]


def test_nobody_is_asked_to_approve_what_does_not_fit_the_thread(tmp_path: Path) -> None:
    """A request that is copied to another thread, or by another writer, leads to no page."""
    team = AttackedTeam(tmp_path, "sqlite")
    team.waiting()
    team.thread(name="other").save({"n": 1}, world=READ)
    (request,) = team.store("operator").requests().requests
    elsewhere = RequestBody(salt=team.salt, statement=request.statement)
    lie = replace(request.statement, requester="operator")
    with _told_of(team, tmp_path) as told:
        team.slip(Kind.REQUEST, elsewhere, "worker", "other")
        team.slip(Kind.REQUEST, RequestBody(salt=team.salt, statement=lie), "worker")

    found = sorted((each["kind"], each["code"], each["thread"]) for each in told)
    assert found == [("refused", "not-trusted", "other"), ("refused", "not-trusted", "t")]
    assert {each["by"] for each in told} == {"worker"}
    assert not any("request" in each or "asks for approval" in each["text"] for each in told)
    trail = [each.summary for each in team.store("operator").audit(kind="request")]
    assert sum("nobody can approve it" in each for each in trail) == 2


def test_a_word_that_is_copied_is_told_once_and_elsewhere_not_at_all(tmp_path: Path) -> None:
    """Ann's genuine approval, again and again on its thread, and on one where nobody asked."""
    team = AttackedTeam(tmp_path, "sqlite")
    team.waiting()
    team.thread(name="other").save({"n": 1}, world=READ)
    (request,) = team.store("operator").requests().requests
    word = attest(key("ann"), request.id, Verdict.APPROVE, "yes")
    body = VerdictBody(salt=team.salt, attestation=word)
    with _told_of(team, tmp_path) as told:
        for _ in range(3):
            team.slip(Kind.APPROVAL, body, "worker")
            team.slip(Kind.APPROVAL, body, "worker", "other")

    found = sorted((each["kind"], each["thread"], each["by"]) for each in told)
    assert found == [("approved", "t", "ann"), ("refused", "other", "worker")]


def test_nobody_is_told_that_a_request_has_expired_which_has_not(tmp_path: Path) -> None:
    """Whoever holds a key can write so; it ends nothing, and people are told that it is none."""
    team = AttackedTeam(tmp_path, "sqlite")
    team.waiting()
    with Receiver() as receiver:
        console = Console(team, receiver, tmp_path)
        console.notifier.start()
        console.look()
        (request,) = team.store("operator").requests().requests
        body = ExpiryBody(salt=team.salt, request=request.id)
        team.slip(Kind.EXPIRY, body, "worker")
        console.look()
        wait_until(lambda: receiver.got)
        console.notifier.close()

    (told,) = (each.document for each in receiver.got)
    assert (told["kind"], told["code"], told["by"]) == ("refused", "not-trusted", "worker")
    assert [each.status for each in team.store("operator").requests().requests] == [Status.OPEN]
