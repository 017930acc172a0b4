# SPDX-License-Identifier: Apache-2.0
"""A console that was taken over: an operator's key that writes for people, and relays their words.

It can claim to act for anybody and append whatever its key may. What people sign, it cannot make:
no approval, no broken glass, and none that was given for something else.
"""

from typing import Any

import msgspec
import pytest

from sealpoint.api import verify_bundle
from sealpoint.errors import Forged, NeedsApproval, NoRight, NotTrusted, UsageError
from sealpoint.gate import Request, Status
from sealpoint.ledger import HandoffBody, Kind, PauseBody, ResumeBody, VerdictBody
from sealpoint.signing import Attestation, Role, Verdict, attest
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import identity, key
from tests.unit.gate.team import READ, SHELL


@pytest.fixture
def console(attacked: AttackedTeam) -> AttackedTeam:
    """The team, with a console that has a thread to operate."""
    attacked.world.enrol(identity("console", Role.OPERATOR))
    return attacked


def _glass(who: str, request: Request) -> Attestation:
    return attest(key(who), request.id, Verdict.BREAK_GLASS, "it burns")


def _slip_glass(attacked: AttackedTeam, word: Attestation, **fields: Any) -> None:
    body = VerdictBody(salt=attacked.salt, attestation=word)
    attacked.append(attacked.forged(Kind.BREAK_GLASS, body, "console", **fields))


def _asked_for(attacked: AttackedTeam, actor: str) -> Request:
    """A handoff that the console asks for, as it says for somebody."""
    attacked.thread().save(1, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        attacked.thread("console").handoff(to="spare", reason="gone", actor=actor)
    request = needs.value.request
    assert isinstance(request, Request)
    return request


# ---------------------------------------------------------------------- for whom it acts


def test_whoever_asks_through_a_console_does_not_approve(console: AttackedTeam) -> None:
    """Neither by the verb, nor by a word that the console relays past it."""
    request = _asked_for(console, "ann")
    word = attest(key("ann"), request.id, Verdict.APPROVE, "fine")

    assert console.ending(lambda: console.store("ann").approve(request.id, reason="me")) is NoRight
    assert console.ending(lambda: console.store("console").relay(word)) is NoRight
    with console.landing():
        console.slip(
            Kind.APPROVAL, VerdictBody(salt=console.salt, attestation=word, actor="carl"), "console"
        )
    console.approve(request, "bob")
    (found,) = console.thread("operator").requests()

    assert (found.statement.requester, found.statement.actor) == ("console", "ann")
    assert (found.approved_by, found.status) == (("bob",), Status.OPEN)
    assert any("it is the person who asks" in words for words in found.ignored)


def test_no_reader_takes_a_handoff_that_its_asker_approved(console: AttackedTeam) -> None:
    """Not even where the console puts the word into the entry itself."""
    request = _asked_for(console, "ann")
    word = attest(key("ann"), request.id, Verdict.APPROVE, "fine")
    body = HandoffBody(
        salt=console.salt,
        owner="spare",
        reason="gone",
        statement=request.statement,
        attestations=(word,),
        actor="carl",
    )
    with console.landing():
        console.slip(Kind.HANDOFF, body, "console")

    assert console.ending(lambda: console.fresh("spare").load()) is NotTrusted


def test_a_console_acts_for_nobody_whom_the_roster_does_not_know(console: AttackedTeam) -> None:
    """It is refused before anything is written; an identity is no person."""
    console.world.enrol(msgspec.structs.replace(identity("phone", Role.AUDITOR), person="Zoe"))
    console.thread().save(1, world=READ)
    before = console.everything()
    thread = console.thread("console")
    for actor in ("mallory", "phone", "", "ann\x00", "ANN"):
        for act in (
            lambda actor=actor: thread.pause("odd", actor=actor),
            lambda actor=actor: thread.handoff(to="spare", reason="gone", actor=actor),
        ):
            assert console.ending(act) is UsageError
    with pytest.raises(UsageError) as refused:
        thread.pause("odd", actor="phone")

    assert "is an identity of the person 'Zoe'" in str(refused.value)
    assert console.everything() == before


def test_a_claim_that_nobody_can_check_changes_nothing(console: AttackedTeam) -> None:
    """A pause by the console's key, in the name of somebody unknown, is its own, and is lifted."""
    console.thread().save(1, world=READ)
    with console.landing():
        body = PauseBody(salt=console.salt, reason="odd", actor="\u202enna")
        console.slip(Kind.PAUSE, body, "console")
    told = list(console.store("ann").audit(kind="pause"))

    assert [(each.by, each.actor) for each in told] == [("console", "\u202enna")]
    assert told[0].summary == "paused for \\u{202e}nna, as claimed: odd"
    assert console.thread().paused
    console.fresh("operator").unpause("fine", actor="ann")
    assert not console.thread().paused
    console.check_sound()


# ---------------------------------------------------------------------- broken glass


def test_a_console_does_not_break_the_glass(console: AttackedTeam) -> None:
    """Not with its own key, not in the chief's name, and not by turning another word into one."""
    request = console.waiting("ann")
    own = _glass("console", request)
    forged = msgspec.structs.replace(own, credential=key("chief").key)
    yes = attest(key("chief"), request.id, Verdict.APPROVE, "it burns")
    turned = msgspec.structs.replace(yes, verdict=Verdict.BREAK_GLASS)
    relay = console.store("console").relay

    assert console.ending(lambda: relay(own)) is NoRight
    assert console.ending(lambda: relay(forged)) is Forged
    assert console.ending(lambda: relay(turned)) is Forged
    with console.landing():
        for word in (own, forged, turned):
            _slip_glass(console, word)

    assert console.resumed() is NeedsApproval
    (found,) = console.thread("operator").requests()
    assert (found.status, found.broken_glass, found.broken_glass_by) == (Status.OPEN, None, ())
    assert len(found.ignored) == 3


def test_broken_glass_of_another_request_is_none_of_this(console: AttackedTeam) -> None:
    """Relayed to another thread, or with another digest in it."""
    console.thread(name="u").save(1, world=READ)
    other = console.ask(name="u")
    console.store("chief").break_glass(other.id, reason="it burns")
    request = console.waiting("ann")
    genuine = _glass("chief", other)
    with console.landing():
        _slip_glass(console, genuine)
        _slip_glass(console, msgspec.structs.replace(genuine, statement=request.id))

    assert console.resumed() is NeedsApproval


def test_broken_glass_is_relayed_by_anybody_and_counts_by_its_signer(console: AttackedTeam) -> None:
    """The console writes the entry, the chief has let it pass, and both are told."""
    request = console.waiting()
    word = console.store("chief").attest(request.id, Verdict.BREAK_GLASS, reason="it burns")
    seq = console.store("console").relay(word)

    assert console.store("console").relay(word) == seq
    assert console.fresh().resume(world=SHELL).state == {"n": 2}
    (told,) = console.store("ann").audit(kind="break-glass")
    assert (told.by, told.seq) == ("console", seq)
    assert {"chief", "console"} <= set(told.people)
    console.check_sound()


def test_glass_of_somebody_who_lost_the_mark_is_whole(console: AttackedTeam) -> None:
    """Also if the entry names the roster in which they had it."""
    request = console.waiting("ann")
    word = _glass("chief", request)
    marked = console.store().core.renewed_trust().roster.seq
    console.end("chief")
    keys = (identity("chief-2", Role.OPERATOR).keys[0],)
    console.change("chief", keys=keys, break_glass=False)
    with console.landing():
        _slip_glass(console, word, roster=marked)

    assert console.resumed() is NeedsApproval


@pytest.mark.parametrize("who", ["console", "operator", "ann"])
def test_a_resume_by_glass_that_nobody_might_break_is_found(
    console: AttackedTeam, who: str
) -> None:
    """A stolen worker's key spends the request: audit and bundle say that it was no grant."""
    request = console.waiting()
    told = request.statement
    with console.landing():
        _slip_glass(console, _glass(who, request))
        body = ResumeBody(
            salt=console.salt,
            owner="worker",
            basis=console.find(Kind.CHECKPOINT),
            reason=told.reason,
            checkpoint=told.checkpoint,
            release=told.release,
            world=World.from_dict(SHELL).digest,
            policy=told.policy,
            rules=("tools",),
            request=request.id,
        )
        console.slip(Kind.RESUME, body, "worker")
    store = console.world.open("operator", gated=True)
    codes = {each.code for each in store.verify().findings}
    report = verify_bundle(b"".join(store.export()), console.world.pin)

    assert codes == {"unjustified"}
    assert any("it needed 2 approvals and had 0" in each.message for each in report.findings)
