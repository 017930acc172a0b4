# SPDX-License-Identifier: Apache-2.0
"""Evidence bundles: what is exported verifies with the pin alone, and says how far it goes."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from sealpoint import api
from sealpoint.audit import _bundle as lines_module
from sealpoint.audit import verify_bundle
from sealpoint.errors import (
    BundleInvalid,
    Edited,
    HeadMoved,
    NotTrusted,
    ReadOnly,
    RolledBack,
    UnknownThread,
)
from sealpoint.ledger import Kind, ResumeBody, link_hash
from sealpoint.signing import Role
from sealpoint.store import SessionStart
from sealpoint.world import World as SealedWorld
from tests.deployment import Deployment
from tests.ledgers import identity
from tests.unit.audit.bundles import exported, history, lines_of
from tests.unit.gate.team import Team
from tests.unit.store.ended import expire


@pytest.fixture
def team() -> Iterator[Team]:
    """A team with two threads."""
    made = Deployment()
    crew = Team(made)
    history(crew)
    yield crew
    made.close()


def test_a_bundle_verifies_with_the_pin_alone(team: Team) -> None:
    """Its report names the head of every thread, who exported it, and claims nothing beyond."""
    data = exported(team)
    report = api.verify_bundle(data, team.world.pin)
    heads = {thread.name: thread for thread in report.threads}

    assert report.ok
    assert (report.exported_by, report.namespace) == ("operator", "default")
    assert report.entries == team.world.open(None, read_only=True).verify().entries
    assert set(heads) == {"t", "u"}
    newest = team.world.record("t", heads["t"].seq)
    assert heads["t"].entry == link_hash(newest.header).hex()
    assert "later entries may exist" in report.claim
    assert json.loads(json.dumps(report.as_dict()))["ok"] is True


def test_a_bundle_is_read_as_it_was_although_a_key_has_expired_since(team: Team) -> None:
    """Evidence stays evidence: what was seen while the key was good is told later too."""
    expire(team.world, "worker", team.world.clock + timedelta(hours=1))
    data = exported(team)
    assert team.world.clock + timedelta(hours=1) < datetime.now(UTC)

    with api.open_bundle(data, team.world.pin) as store:
        told = list(store.audit())

    assert {record.thread for record in told} == {"", "t", "u"}
    assert not [record.finding for record in told if record.finding]


def test_a_bundle_can_be_read_from_a_file(team: Team) -> None:
    """It is read line by line, so that it need not fit into memory."""
    data = exported(team)

    assert api.verify_bundle(io.BytesIO(data), team.world.pin) == api.verify_bundle(
        data, team.world.pin
    )


def test_only_the_chosen_threads_are_in_it(team: Team) -> None:
    """A name that nobody saved under is refused."""
    report = api.verify_bundle(exported(team, threads=["u"]), team.world.pin)

    assert [thread.name for thread in report.threads] == ["u"]
    with pytest.raises(UnknownThread):
        exported(team, threads=["nobody"])


def test_states_are_in_it_only_if_asked_for(team: Team) -> None:
    """Without that it holds worlds, and no other blob of a thread."""
    bare, full = exported(team), exported(team, payloads=True)
    report = api.verify_bundle(full, team.world.pin)

    assert b"eHh4" not in bare
    assert b"eHh4" in full
    assert report.blobs > api.verify_bundle(bare, team.world.pin).blobs
    assert len(full) > len(bare) + 40_000


def test_what_was_erased_is_not_in_it(team: Team) -> None:
    """Headers and signatures stay, and verify; the name of the thread is gone."""
    team.thread("officer", "u").erase(reason="asked for")
    data = exported(team)
    report = api.verify_bundle(data, team.world.pin)
    erased = [line for line in lines_of(data) if line["line"] == "entry" and line["body"] is None]

    assert len(erased) == 4
    assert sorted(thread.name for thread in report.threads) == ["", "t"]


def test_a_pruned_thread_can_be_exported(team: Team) -> None:
    """States that were given up are left out."""
    team.thread(name="u").prune(keep_last=1)

    assert api.verify_bundle(exported(team, payloads=True), team.world.pin).ok


def test_a_revoked_key_is_judged_by_its_cut(team: Team) -> None:
    """The lists of the store chain are in the bundle."""
    team.end("spare")
    report = api.verify_bundle(exported(team), team.world.pin)

    assert report.ok
    with pytest.raises(NotTrusted):
        exported(team, "spare")


def test_unjustified_resumes_are_counted_again(team: Team) -> None:
    """A pod without a gate wrote a genuine entry, which no policy allowed."""
    team.world.open("worker").thread("t").save(2)
    report = api.verify_bundle(exported(team), team.world.pin)

    assert not report.ok
    assert [finding.code for finding in report.findings] == ["unjustified"]
    assert report.findings[0].name == "t"
    assert verify_bundle(exported(team), team.world.pin).ok  # nobody was asked to judge


def test_a_reader_without_a_key_cannot_export(team: Team) -> None:
    """Somebody has to say who exported it."""
    with pytest.raises(ReadOnly):
        b"".join(team.world.open(None, read_only=True).export())


def test_an_identity_of_another_namespace_cannot_export(team: Team) -> None:
    """Who has no say here signs nothing about it."""
    team.world.enrol(identity("stranger", Role.AUDITOR, namespaces=("billing",)))

    with pytest.raises(NotTrusted):
        b"".join(team.world.open("stranger").export())


def test_a_thread_that_does_not_verify_is_not_exported(team: Team) -> None:
    """Neither an edited body nor a shortened thread becomes evidence."""
    thread, record = team.world.thread_id("u"), team.world.record("u", 3)
    team.world.put(thread, 3, replace(record, body=b"{}"))
    with pytest.raises(Edited):
        exported(team)
    team.world.put(thread, 3, None)

    with pytest.raises(RolledBack):
        exported(team)


def test_a_roster_that_changes_meanwhile_is_told(team: Team) -> None:
    """What the bundle begins with must be what its threads were written under."""
    pieces = team.store("operator").export()
    next(pieces)
    team.enter(lambda document: replace(document, restore_quorum=1))
    team.fresh(name="u").save([3])

    with pytest.raises(HeadMoved):
        list(pieces)


def test_bounds_are_checked_before_anything_is_parsed(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line or a bundle that is too long is refused as it is read."""
    data = exported(team)
    monkeypatch.setattr(lines_module, "BUNDLE_LINE_BYTES_MAX", 1000)
    with pytest.raises(BundleInvalid, match=r"\(1000 bytes\)"):
        api.verify_bundle(data, team.world.pin)
    monkeypatch.undo()
    monkeypatch.setattr(lines_module, "BUNDLE_BYTES_MAX", 5000)

    with pytest.raises(BundleInvalid, match=r"\(5000\)"):
        api.verify_bundle(data, team.world.pin)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"{}\n", b"[" * 100_000, b'{"line":"bundle"}\n', b"\xff\xfe\n", b"null\n"],
)
def test_what_is_no_bundle_is_refused(data: bytes) -> None:
    """Whatever it is, it is an error of the tree."""
    with pytest.raises(BundleInvalid):
        api.verify_bundle(data, Deployment().pin)


def test_worlds_are_in_a_bundle_and_judged(team: Team) -> None:
    """What an approver was shown can be shown again, and a hidden wider world is found."""
    worlds = [line for line in lines_of(exported(team)) if line["line"] == "blob"]
    newest = team.newest(Kind.CHECKPOINT)
    handle = team.fresh()
    handle.load()
    wider = SealedWorld.of({"tools": [{"name": name} for name in ("read", "shell", "rm")]})
    assert wider is not None
    body = ResumeBody(
        salt="ab" * 32,
        owner="worker",
        basis=handle._state.chain.tip().basis[0],
        checkpoint=next(iter(handle.history())).entry,
        release=handle.release().digest,
        released=handle.release().seq,
        world=wider.digest,
        leaves=wider.to_dict(),
        policy=team.digest,
        rules=("narrower-world",),
    )
    handle._gate.writer.open_session(SessionStart(body, handle._state.core.trust()))
    report = api.verify_bundle(exported(team), team.world.pin)

    assert newest.world is not None
    assert len(worlds) == 2 + 2  # the policy with its positions, and the worlds of the thread
    assert "tools" in report.findings[0].message
