# SPDX-License-Identifier: Apache-2.0
"""The rules of the gate reach a subgraph of a subgraph, and the tasks of the functional API.

All of it under the policy `strict`: what is tested elsewhere for a graph and its subgraphs holds
where asking and paying lie two levels deep, and where they are tasks of an entrypoint.
"""

import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import msgspec
import pytest
from langgraph.types import Command

from sealpoint.errors import HeadMoved, Missing, NeedsApproval, Paused, ResumeRefused, Superseded
from sealpoint.ledger import Kind, parse_body, parse_header
from sealpoint.storage import Record
from sealpoint_langgraph import SealedSaver, deliberately
from tests.attacks.langgraph.desks import DEEP_SHAPES, EITHER_FACE, FACES, Desk, config_of, run
from tests.attacks.langgraph.edited_store import ending
from tests.attacks.langgraph.office import Office
from tests.effort import every_pair

_YES: Any = Command(resume="yes")
_SECONDS = 60
_every_face = pytest.mark.parametrize("face", EITHER_FACE)
_every_save = pytest.mark.parametrize(
    ("desk", "durability", "face"),
    every_pair(product(DEEP_SHAPES, ("sync", "async", "exit"), FACES)),
    indirect=["desk"],
)


@pytest.fixture(params=DEEP_SHAPES)
def desk(request: pytest.FixtureRequest) -> Desk:
    """The question is asked by a subgraph of a subgraph, or by a task of an entrypoint."""
    return Desk(request.param)


def _edited_as(desk: Desk) -> str:
    return "program" if desk.shape == "program" else "plan"


def _paid(office: Office, desk: Desk, thread: str, face: str = "sync") -> Any:
    """A guarded graph whose thread has had its answer and is done."""
    graph = office.waiting(desk, thread)
    office.approve(office.asked(lambda: run(face, graph, _YES, config_of(thread))))
    run(face, graph, _YES, config_of(thread))
    assert desk.ran == ["asked", "pay", "end"]
    desk.ran.clear()
    return graph


def _apart(act: Callable[[], object]) -> None:
    """Do something in an OS thread of its own, which has nothing of the run that calls."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 # told where it counts
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(_SECONDS)
    assert not thread.is_alive()
    assert failed == []


# ---------------------------------------------------------------------- answers


@_every_face
@pytest.mark.parametrize("value", [_YES, None, {"amount": 3}], ids=["answer", "nothing", "turn"])
def test_nothing_goes_on_that_nobody_approved(
    office: Office, desk: Desk, thread: str, value: Any, face: str
) -> None:
    """A request is all that comes of it; one approval is not two."""
    graph = office.waiting(desk, thread)
    before = office.kinds(thread)
    office.approve(office.asked(lambda: run(face, graph, value, config_of(thread))), "ann")
    with pytest.raises(NeedsApproval):
        run(face, graph, value, config_of(thread))

    assert desk.ran == []
    assert office.kinds(thread) == [*before, "request", "approval"]


@_every_face
def test_what_was_approved_happens_once(
    new_office: Office, desk: Desk, thread: str, face: str
) -> None:
    """The control: it pays, and neither the answer nor its approval is good for another time."""
    graph = _paid(new_office, desk, thread, face)
    with pytest.raises(ResumeRefused, match="it has finished"):
        run(face, graph, _YES, config_of(thread))
    run(face, graph, {"amount": 2}, config_of(thread))
    desk.ran.clear()
    with pytest.raises(NeedsApproval):
        run(face, graph, _YES, config_of(thread))

    assert desk.ran == []
    assert new_office.worker.verify().ok


@_every_face
def test_an_edit_of_a_waiting_thread_needs_approval(
    office: Office, desk: Desk, thread: str, face: str
) -> None:
    """Also in the innermost namespace; nothing of it is kept before."""
    graph, where = office.waiting(desk, thread), config_of(thread)
    shown, before = graph.get_state(where, subgraphs=True), office.kinds(thread)
    places = [(where, _edited_as(desk))]
    if desk.shape == "nested":
        middle = shown.tasks[0].state
        places += [(middle.config, "till"), (middle.tasks[0].state.config, "ask")]
    for place, node in places:
        office.asked(lambda: graph.update_state(place, {"amount": 3}, as_node=node))  # noqa: B023

    assert graph.get_state(where, subgraphs=True) == shown
    assert office.kinds(thread) == [*before, *["request"] * len(places)]
    with pytest.raises(NeedsApproval):
        run(face, graph, None, where)
    assert desk.ran == []


# ---------------------------------------------------------------------- older checkpoints


@_every_face
def test_an_older_checkpoint_needs_approval(
    new_office: Office, desk: Desk, thread: str, face: str
) -> None:
    """To run from it and to edit it; a reason is not enough, and the approved one runs."""
    graph = _paid(new_office, desk, thread)
    before = new_office.kinds(thread)
    older = list(graph.get_state_history(config_of(thread)))[1].config
    for value in (None, {"amount": 3}, _YES):
        with pytest.raises(NeedsApproval):
            run(face, graph, value, deliberately(older, "I want to"))
    with pytest.raises(NeedsApproval):
        graph.update_state(older, {"amount": 3}, as_node=_edited_as(desk))
    assert desk.ran == []
    assert set(new_office.kinds(thread)[len(before) :]) == {"request"}
    new_office.approve(new_office.asked(lambda: run(face, graph, None, older)))
    run(face, graph, None, older)

    assert desk.ran == (["plan"] if desk.shape == "program" else ["end"])
    assert new_office.worker.verify().ok


@_every_face
@pytest.mark.parametrize("level", [1, 2])
def test_an_older_checkpoint_of_either_level_is_an_older_checkpoint(
    office: Office, thread: str, level: int, face: str
) -> None:
    """The graph is the newest and a subgraph is not: a reason is not enough."""
    desk = Desk("nested")
    graph, where = office.waiting(desk, thread), config_of(thread)
    shown = graph.get_state(where, subgraphs=True)
    by_lane = {"": shown.config["configurable"]["checkpoint_id"]}
    for depth in (1, 2):
        shown = shown.tasks[0].state
        found = (shown.parent_config if depth == level else shown.config)["configurable"]
        by_lane[found["checkpoint_ns"]] = found["checkpoint_id"]
    aimed = config_of(thread, checkpoint_ns="", checkpoint_map=by_lane)
    for value in (None, _YES):
        office.approve(office.asked(lambda: run(face, graph, value, where)))  # noqa: B023
        with pytest.raises(NeedsApproval, match="not the newest of namespace"):
            run(face, graph, value, deliberately(aimed, "I want to"))

    assert desk.ran == []


# ---------------------------------------------------------------------- worlds


@_every_face
def test_one_more_step_needs_approval(office: Office, desk: Desk, thread: str, face: str) -> None:
    """Of the innermost subgraph, or one more task: neither an answer nor a turn passes."""
    graph = office.waiting(desk, thread)
    wider = office.guarded(desk, "shell")
    request = office.asked(lambda: run(face, graph, _YES, config_of(thread)))
    office.approve(request)
    assert office.asked(lambda: run(face, wider, _YES, config_of(thread))).id != request.id
    run(face, graph, _YES, config_of(thread))
    desk.ran.clear()
    with pytest.raises(NeedsApproval):
        run(face, wider, {"amount": 3}, config_of(thread))

    assert desk.ran == []
    run(face, graph, {"amount": 3}, config_of(thread))
    assert desk.ran == ["plan"]


# ---------------------------------------------------------------------- pauses


@_every_save
def test_a_pause_stops_the_next_step(
    new_office: Office, desk: Desk, thread: str, durability: str, face: str
) -> None:
    """While the payment is made: what follows waits, and nothing is paid twice."""
    graph, where = new_office.guarded(desk, "shell"), config_of(thread)
    run(face, graph, {"amount": 2}, where)
    new_office.approve(new_office.asked(lambda: run(face, graph, _YES, where)))
    desk.ran.clear()
    paused = new_office.operator().thread(thread)
    desk.during["pay"] = lambda: paused.pause("look at it")
    with pytest.raises(Paused):
        run(face, graph, _YES, where, durability=durability)
    assert desk.ran == ["asked", "pay"]
    # People may approve while it is paused; nobody goes on by it before it is not.
    new_office.approve(new_office.asked(lambda: run(face, graph, None, where)))
    for call in (
        lambda: run(face, graph, None, where),
        lambda: run(face, graph, {"amount": 3}, where),
        lambda: graph.update_state(where, {"amount": 3}, as_node=_edited_as(desk)),
    ):
        assert ending(call) in (ResumeRefused, NeedsApproval)
    assert desk.ran == ["asked", "pay"]
    paused.unpause("looked at it")
    desk.ran.clear()
    run(face, graph, None, where)

    assert sorted(desk.ran) == ["end", "shell"]
    assert new_office.worker.verify().ok


# ---------------------------------------------------------------------- bare, refused and overtaken


@_every_face
@pytest.mark.parametrize("value", [_YES, None, {"amount": 3}], ids=["answer", "nothing", "turn"])
def test_a_bare_saver_is_refused_before_any_step(
    office: Office, desk: Desk, thread: str, value: Any, face: str
) -> None:
    """On a thread that waits, and on a new one; nothing is written, and it may look."""
    office.waiting(desk, thread)
    before = office.kinds(thread)
    bare = desk.builder().compile(checkpointer=SealedSaver(office.worker))
    for where in (config_of(thread), config_of(f"{thread} new")):
        with pytest.raises(ResumeRefused, match="not guarded"):
            run(face, bare, value, where)
        with pytest.raises(ResumeRefused, match="asks for approvals"):
            bare.update_state(where, {"amount": 3}, as_node=_edited_as(desk))

    assert desk.ran == []
    assert office.kinds(thread) == before
    assert bare.get_state(config_of(thread)).interrupts


@pytest.mark.usefixtures("unseen_runs")
@_every_save
def test_a_run_that_was_overtaken_writes_nothing_more(
    new_office: Office, desk: Desk, thread: str, durability: str, face: str
) -> None:
    """Another process answers, approved, while this one pays: its run is refused from there on."""
    graph, where = new_office.waiting(desk, thread), config_of(thread)
    no: Any = Command(resume="no")
    new_office.approve(new_office.asked(lambda: run(face, graph, _YES, where)))
    after: list[Any] = []

    def overtake() -> None:
        with new_office.process() as store:
            others = new_office.guarded(desk, saver=SealedSaver(store))
            for _ in range(5):
                # What the first run still writes in the background voids a request.
                if ending(
                    lambda: new_office.approve(new_office.asked(lambda: others.invoke(no, where)))
                ):
                    continue
                if ending(lambda: others.invoke(no, where)) is None:
                    break
            after.extend((others.get_state(where), new_office.kinds(thread)))

    desk.during["pay"] = lambda: _apart(overtake)
    refused = ending(lambda: run(face, graph, _YES, where, durability=durability))

    assert refused in (Superseded, HeadMoved)
    with new_office.process() as store:
        cold = new_office.guarded(desk, saver=SealedSaver(store)).get_state(where)
    assert [cold, new_office.kinds(thread)] == after
    assert graph.get_state(where) == cold
    assert cold.values["log"][-2:] == ["pay 2", "end 2"]
    assert desk.ran.count("end") == 1
    assert new_office.worker.verify().ok


# ---------------------------------------------------------------------- a handle that is warm


def _current(rows: dict[int, Record]) -> list[int]:
    """Where the newest checkpoint of each namespace lies, and what was added to it."""
    newest: dict[str, list[int]] = {}
    for seq, row in rows.items():
        header = parse_header(row.header)
        if header.kind in (Kind.CHECKPOINT, Kind.RESULTS):
            body: Any = parse_body(header.kind, header.body, row.body or b"")
            if header.kind is Kind.CHECKPOINT:
                newest[body.lane] = []
            newest[body.lane].append(seq)
    return [seq for found in newest.values() for seq in found]


@_every_face
def test_a_warm_handle_runs_nothing_without_a_body_of_what_it_would_run(
    office: Office, desk: Desk, thread: str, face: str
) -> None:
    """Each state, question and result that counts loses its body, behind a graph that showed it."""
    graph, where = office.waiting(desk, thread), config_of(thread)
    office.approve(office.asked(lambda: run(face, graph, _YES, where)))
    graph.get_state(where, subgraphs=True)
    chain = bytes.fromhex(office.worker.thread(thread).id)
    rows = office.editor.rows(chain)
    endings: dict[int, set[Any]] = {}
    for seq in _current(rows):
        now, gone = office.editor.rows(chain), msgspec.structs.replace(rows[seq], body=None)
        office.editor.put_rows(chain, {**now, seq: gone})
        with office.process() as store:
            cold = office.guarded(desk, saver=SealedSaver(store))
            endings[seq] = {
                ending(lambda: run(face, each, _YES, where))  # noqa: B023
                for each in (graph, cold)
            }
        office.editor.put_rows(chain, {**office.editor.rows(chain), seq: rows[seq]})

    assert desk.ran == []
    # What is noticed only after the decision has used the approval up.
    assert all(found <= {Missing, NeedsApproval} for found in endings.values())
    assert all(Missing in found for found in endings.values())
    if ending(lambda: run(face, graph, _YES, where)) is NeedsApproval:
        office.approve(office.asked(lambda: run(face, graph, _YES, where)))
        run(face, graph, _YES, where)
    assert desk.ran == ["asked", "pay", "end"]
