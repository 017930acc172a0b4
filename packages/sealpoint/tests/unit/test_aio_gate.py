# SPDX-License-Identifier: Apache-2.0
"""The async twin of the gate: the same decisions, requests and entries, awaited."""

import asyncio
import inspect
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint import aio, api, errors
from sealpoint.gate import Rollouts, Thread
from tests.faults import places as stored
from tests.unit.api.place import Place

_SMALL = sealpoint.World(tools=["read"])
_WIDE = {"tools": ["read", "shell"]}


def _team(folder: Path) -> Place:
    """A store under the team's policy, with two approvers and a second worker."""
    place = Place(folder)
    sealpoint.init(place.url, policy="strict", **place.directories)
    for name, role in (("second", "writer"), ("ann", "approver"), ("bob", "approver")):
        place.admin.keys.create(name)
        place.admin.keys.add(name, person=name, roles=[role], namespaces=["*"])
    return place


async def _open(stack: AsyncExitStack, place: Place, *names: str) -> list[aio.AsyncStore]:
    options: dict[str, Any] = dict(place.directories)
    return [
        await stack.enter_async_context(aio.open_store(place.url, identity=name, **options))
        for name in names
    ]


def test_it_asks_approves_and_resumes(tmp_path: Path) -> None:
    """A question is saved, an answer is asked for, two people approve, and the run goes on."""
    place = _team(tmp_path)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            worker, ann, bob = await _open(stack, place, "worker", "ann", "bob")
            thread = worker.thread("t")
            await thread.save({"n": 1}, world=_SMALL, question="pay?")
            judged = await thread.judge(world=_WIDE, answer="yes")
            with pytest.raises(errors.NeedsApproval) as needed:
                await thread.resume(world=_WIDE, answer="yes", actor="clerk", deliberate="asked")
            (request,) = await thread.requests()
            await ann.approve(request.short, reason="fine")
            word = await bob.approve(request.id, reason="fine too")
            loaded = await thread.resume(world=_WIDE, answer="yes")

            assert judged.outcome == "needs-approval"
            assert needed.value.request == request
            assert word.statement == request.id
            assert (loaded.state, loaded.question) == ({"n": 1}, "pay?")
            assert (await worker.requests()).requests == ()
            assert (await thread.save({"n": 2})).seq == 7

    asyncio.run(main())


def test_it_denies_and_looks_a_request_up(tmp_path: Path) -> None:
    """A request is found by its first digits; denied, it is closed."""
    place = _team(tmp_path)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            worker, ann, bob = await _open(stack, place, "worker", "ann", "bob")
            thread = worker.thread("t")
            await thread.save({"n": 1}, world=_SMALL)
            with pytest.raises(errors.NeedsApproval):
                await thread.resume(world=_WIDE)
            (request,) = (await ann.requests()).requests
            found = await ann.request(request.short)
            word = await ann.deny(request.id, reason="not that tool")

            assert found == request
            assert word.verdict == "deny"
            assert (await bob.request(request.id)).denied_by == ("ann",)
            with pytest.raises(errors.RequestClosed):
                await bob.relay(word)
            with pytest.raises(errors.NotTrusted):
                await _break_glass_on_another_thread(worker, ann)

    asyncio.run(main())


async def _break_glass_on_another_thread(worker: aio.AsyncStore, ann: aio.AsyncStore) -> None:
    thread = worker.thread("u")
    await thread.save({"n": 1}, world=_SMALL)
    with pytest.raises(errors.NeedsApproval):
        await thread.resume(world=_WIDE)
    (request,) = await thread.requests()
    await ann.break_glass(request.id, reason="nobody is there")


def test_it_relays_a_word_that_was_given_elsewhere(tmp_path: Path) -> None:
    """An approval counts by its own proof, whoever records it, and only once for a person."""
    place = _team(tmp_path)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            worker, ann = await _open(stack, place, "worker", "ann")
            thread = worker.thread("t")
            await thread.save({"n": 1}, world=_SMALL)
            with pytest.raises(errors.NeedsApproval):
                await thread.resume(world=_WIDE)
            (request,) = await thread.requests()
            word = await ann.approve(request.id, reason="fine")

            assert await worker.relay(word) == 4  # where it lies already
            assert (await worker.request(request.id)).approved_by == ("ann",)

    asyncio.run(main())


def test_it_pauses_and_hands_off(tmp_path: Path) -> None:
    """A pause reaches the worker at its next save, and a handoff ends its session."""
    place = _team(tmp_path)
    place.admin.roster.set_pool("pods", ["worker", "second"])

    async def main() -> None:
        async with AsyncExitStack() as stack:
            worker, second, operator = await _open(stack, place, "worker", "second", "operator")
            thread, paused = worker.thread("t"), operator.thread("t")
            await thread.save({"n": 1})
            assert await paused.pause("looks odd") == 3
            with pytest.raises(errors.Paused):
                await thread.save({"n": 2})
            assert await paused.unpause("it was nothing") == 4
            await thread.save({"n": 2})
            assert await thread.handoff(to="second", reason="the night shift") == 6
            with pytest.raises(errors.SealpointError):
                await thread.save({"n": 3})
            loaded = await second.thread("t").resume(world=None)

            assert loaded.state == {"n": 2}

    asyncio.run(main())


def test_it_names_the_policy(tmp_path: Path) -> None:
    """The policy in force is the one that the root signed for."""
    place = _team(tmp_path)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            (worker,) = await _open(stack, place, "worker")
            policy = await worker.policy()

            assert policy is not None
            assert (policy.name, str(policy.measure("tools"))) == ("strict", "approve 2")

    asyncio.run(main())


def test_it_audits_explains_and_exports(tmp_path: Path) -> None:
    """What happened is told in order, a decision is explained, and a bundle verifies elsewhere."""
    place = _team(tmp_path)

    async def main() -> bytes:
        async with AsyncExitStack() as stack:
            (operator,) = await _open(stack, place, "operator")
            (worker,) = await _open(stack, place, "worker")
            for number in range(70):
                await worker.thread("t").save(number)
            told = [record.seq async for record in operator.audit(thread="t")]
            (resume,) = [record async for record in operator.audit(kind="resume")]
            why = await operator.why(resume.entry)
            bundle = b"".join([piece async for piece in operator.export(["t"])])

            assert told == list(range(72))
            assert (why.subject, why.unjustified) == (resume, ())
            with pytest.raises(errors.UnknownThread):
                _ = [record async for record in operator.audit(thread="nobody")]
            return bundle

    report = api.verify_bundle(asyncio.run(main()), place.admin.trust.export_pin())

    assert report.ok
    assert [(each.name, each.seq) for each in report.threads] == [("t", 71)]


# What adapters and consoles are built on: they call it from OS threads of their own.
_FOR_OS_THREADS = frozenset({"paused", "question", "signed_answer", "watch"})


def _surface(kind: type) -> dict[str, Any]:
    """The public members of a class, without those for OS threads."""
    names = {name for name in dir(kind) if not name.startswith("_")} - _FOR_OS_THREADS
    return {name: getattr(kind, name) for name in names}


@pytest.mark.parametrize(
    ("kind", "twin"),
    [
        (api.Store, aio.AsyncStore),
        (Thread, aio.AsyncThread),
        (Rollouts, aio.AsyncRollouts),
    ],
)
def test_the_twin_lacks_nothing(kind: type, twin: type) -> None:
    """Every public method and property is there, with the same parameters, and nothing besides."""
    mine, theirs = _surface(kind), _surface(twin)

    assert theirs.keys() == mine.keys()
    for name, member in mine.items():
        if isinstance(member, property):
            assert isinstance(theirs[name], property) or name == "policy"
            continue
        found, expected = (inspect.signature(each).parameters for each in (theirs[name], member))
        assert [(each.name, each.kind, each.default) for each in found.values()] == [
            (each.name, each.kind, each.default) for each in expected.values()
        ], name


def test_a_run_has_its_thread_until_its_block_ends(tmp_path: Path) -> None:
    """However that ends; a task that is cancelled in it is asked about."""
    place = stored.Place(tmp_path).make()

    async def main() -> None:
        async with place.open_async() as first, place.open_async() as second:
            thread, other = first.thread("t"), second.thread("t")
            await thread.save({"n": 1}, question="pay?")
            async with thread.run(world=None, answer="yes") as loaded:
                with pytest.raises(errors.Busy):
                    await other.resume(world=None)
                await thread.save({"n": loaded.state["n"] + 1}, question="and now?")

            async def fail() -> None:
                async with other.run(world=None, answer="yes"):
                    await other.save({"n": 3})
                    raise KeyError

            with pytest.raises(KeyError):
                await fail()
            await thread.load()
            inside = asyncio.Event()

            async def hang() -> None:
                async with thread.run(world=None, answer="yes"):
                    inside.set()
                    await asyncio.sleep(60)

            hanging = asyncio.create_task(hang())
            await inside.wait()
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
            with pytest.raises(errors.ResumeRefused, match="did not come to its end"):
                await other.resume(world=None)

    asyncio.run(main())


def test_it_knows_its_store_and_what_a_request_would_change(tmp_path: Path) -> None:
    """The id, the namespace, the difference of worlds, and words given through the thread."""
    place = _team(tmp_path)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            worker, ann, operator = await _open(stack, place, "worker", "ann", "operator")
            thread = worker.thread("t")
            await thread.save({"n": 1}, world=_SMALL)
            with pytest.raises(errors.NeedsApproval) as needed:
                await thread.resume(world=_WIDE, deliberate="a shell")
            (request,) = await thread.requests()
            diff = await ann.thread("t").compare(request)
            word = await ann.approve(request.id, reason="fine")
            again = await worker.relay(word)
            with pytest.raises(errors.NotTrusted):
                await operator.break_glass(request.id, reason="fire")

            assert (worker.id, worker.namespace) == (ann.id, "default")
            assert diff is not None
            assert diff.lines() == ("+ tool shell",)
            assert again == 4
            assert (needed.value.request.id, needed.value.request.needed) == (request.id, 2)

    asyncio.run(main())
