# SPDX-License-Identifier: Apache-2.0
"""Edits of the store that would steer a graph, none of which needs code to run.

Every line of the control plane: forged and replayed answers, hidden questions, forged heads,
rollbacks, other parents, old versions, injected jumps, entries of other threads, other metadata.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from langgraph.types import Command, Send

from sealpoint.ledger import CheckpointBody, Kind, ResultsBody
from sealpoint.signing import PrivateKey
from sealpoint.storage import Record
from tests.attacks.langgraph.desks import EITHER_FACE, FACES, SHAPES, config_of, run
from tests.attacks.langgraph.edited_store import ALARMS, BACKENDS, PLACES, EditedStore, ending
from tests.ledgers import key

Edit = Callable[[EditedStore], None]
_NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(
    scope="module",
    params=PLACES,
)
def edited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> EditedStore:
    """A store of each backend, whose question is asked by the graph or by a subgraph."""
    home: Path = tmp_path_factory.mktemp("edited") / "home"
    return EditedStore(home, *request.param)


# ---------------------------------------------------------------------- answers and questions


def _answer(edited: EditedStore, by: PrivateKey | None) -> None:
    payload, root = edited.root_of([[-4, "__resume__", "yes"]])
    checkpoint = edited.body(edited.head()).id
    body = ResultsBody(
        salt=edited.salt, checkpoint=checkpoint, task=_NOBODY, root=root, answers=True
    )
    edited.append(edited.forged(Kind.RESULTS, body, payload, by))


def _old_answer(edited: EditedStore) -> None:
    (seq,) = edited.find(Kind.RESULTS, answers=True)
    edited.append(edited.rows()[seq])


def _answer_of_another_thread(edited: EditedStore) -> None:
    (seq,) = edited.find(Kind.RESULTS, "other", answers=True)
    edited.append(edited.rows("other")[seq])


def _old_answer_for_this_question(edited: EditedStore) -> None:
    (seq,) = edited.find(Kind.RESULTS, answers=True)
    edited.rewritten(seq, checkpoint=edited.body(edited.head()).id)


def _question_deleted(edited: EditedStore) -> None:
    gone = edited.questions()
    edited.put({seq: row for seq, row in edited.rows().items() if seq not in gone})


def _question_closed_up(edited: EditedStore) -> None:
    gone = edited.questions()
    kept = [row for seq, row in edited.rows().items() if seq not in gone]
    edited.put(dict(enumerate(kept)))


def _question_emptied(edited: EditedStore) -> None:
    for seq in edited.questions():
        edited.rewritten(seq, state=[], question=None)


def _question_by_another_entry(edited: EditedStore) -> None:
    rows = edited.rows()
    for seq in edited.questions():
        rows[seq] = rows[3]
    edited.put(rows)


def _with(row: Record, payload: bytes | None) -> Record:
    return Record(row.header, row.seals, row.body, payload)


def _question_says_another_amount(edited: EditedStore) -> None:
    rows = edited.rows()
    for seq in edited.questions():
        payload = (rows[seq].payload or b"").replace(b"\xa3pay\x02", b"\xa3pay\x01")
        rows[seq] = _with(rows[seq], payload)
    edited.put(rows)


# ---------------------------------------------------------------------- heads and order


def _highest_head(edited: EditedStore, by: PrivateKey | None) -> None:
    state = edited.state(edited.head())
    payload, root = edited.root_of(state | {"channel_values": {"amount": 9_999}})
    body = CheckpointBody(salt=edited.salt, id="ffffffff-ffff-6fff-bfff-ffffffffffff", root=root)
    edited.append(edited.forged(Kind.CHECKPOINT, body, payload, by))


def _newest_deleted(edited: EditedStore, count: int) -> None:
    rows = edited.rows()
    edited.put({seq: row for seq, row in rows.items() if seq < len(rows) - count})


def _another_parent(edited: EditedStore) -> None:
    first = edited.body(edited.find(Kind.CHECKPOINT)[0]).id
    edited.rewritten(edited.head(), parent=first)


def _all_of_another_thread(edited: EditedStore) -> None:
    edited.put(edited.rows("other"))


def _threads_swapped(edited: EditedStore) -> None:
    mine, other = edited.rows(), edited.rows("other")
    edited.put(other)
    edited.put(mine, "other")


def _head_of_another_thread(edited: EditedStore) -> None:
    head = edited.head()
    edited.put({**edited.rows(), head: edited.rows("other")[head]})


def _another_namespace(edited: EditedStore) -> None:
    head = edited.head(None)
    edited.rewritten(head, lane="" if edited.body(head).lane else "desk:elsewhere")


# ---------------------------------------------------------------------- states


def _older_state(edited: EditedStore) -> None:
    rows = edited.rows()
    old, head = edited.find(Kind.CHECKPOINT, lane="")[1], edited.head()
    edited.put({**rows, head: _with(rows[head], rows[old].payload)})


def _older_state_and_its_digest(edited: EditedStore) -> None:
    old, head = edited.find(Kind.CHECKPOINT, lane="")[1], edited.head()
    edited.rewritten(head, state=edited.state(old))


def _state(**changes: object) -> Edit:
    def edit(edited: EditedStore) -> None:
        state = edited.state(edited.head())
        for name, value in changes.items():
            state[name] = {**state[name], **value} if isinstance(value, dict) else value
        edited.rewritten(edited.head(), state=state)

    return edit


def _metadata(**changes: object) -> Edit:
    def edit(edited: EditedStore) -> None:
        found = edited.body(edited.head()).metadata
        edited.rewritten(edited.head(), metadata={**found, **changes})

    return edit


# ---------------------------------------------------------------------- jumps and results


def _results(*writes: tuple[int, str, object], by: PrivateKey | None = None) -> Edit:
    def edit(edited: EditedStore) -> None:
        payload, root = edited.root_of([list(each) for each in writes])
        task, checkpoint = edited.body(edited.questions()[-1]).task, edited.body(edited.head()).id
        body = ResultsBody(salt=edited.salt, checkpoint=checkpoint, task=task, root=root)
        edited.append(edited.forged(Kind.RESULTS, body, payload, by))

    return edit


_JUMP = (0, "branch:to:pay", None)
EDITS: dict[str, Edit] = {
    "an answer that nobody signed": lambda edited: _answer(edited, None),
    "an answer by an unknown key": lambda edited: _answer(edited, key("mallory")),
    "an answer by an operator's key": lambda edited: _answer(edited, edited.key("operator")),
    "an old answer once more": _old_answer,
    "an answer of another thread": _answer_of_another_thread,
    "the question deleted": _question_deleted,
    "the question deleted and the gap closed": _question_closed_up,
    "the question emptied": _question_emptied,
    "another entry for the question": _question_by_another_entry,
    "another amount in the question": _question_says_another_amount,
    "the highest head that nobody signed": lambda edited: _highest_head(edited, None),
    "the highest head by an unknown key": lambda edited: _highest_head(edited, key("mallory")),
    "the highest head by an operator": lambda edited: _highest_head(edited, edited.key("operator")),
    "the newest entry deleted": lambda edited: _newest_deleted(edited, 1),
    "the five newest deleted": lambda edited: _newest_deleted(edited, 5),
    "an older copy of everything": lambda edited: edited.roll_back(),
    "another parent": _another_parent,
    "all of another thread": _all_of_another_thread,
    "two threads swapped": _threads_swapped,
    "the head of another thread": _head_of_another_thread,
    "another namespace": _another_namespace,
    "an older state": _older_state,
    "an older state and its digest": _older_state_and_its_digest,
    "older channel versions": _state(channel_versions={"amount": 1}),
    "nothing seen": _state(versions_seen={"plan": {}}),
    "another amount": _state(channel_values={"amount": 9_999}),
    "a jump in the state": _state(channel_values={"branch:to:pay": None}),
    "another step": _metadata(step=1),
    "another source": _metadata(source="input"),
    "another run": _metadata(run_id="mine"),
    "another user": _metadata(user_id="root"),
    "a jump in the results": _results(_JUMP),
    "a jump by an unknown key": _results(_JUMP, by=key("mallory")),
    "a task in the results": _results((0, "__pregel_tasks", Send("pay", {"amount": 9_999}))),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_that_would_steer_the_graph_is_refused(edited: EditedStore, edit: Edit) -> None:
    """No node runs and nothing is shown, however the graph is called, in a new process."""
    with edited.landing():
        edit(edited)
        found = {face: edited.endings(face) for face in FACES}

    for ways in found.values():
        refused = {way: error for way, error in ways.items() if error and issubclass(error, ALARMS)}
        assert refused == ways


OLD_EDITS: dict[str, Edit] = {
    "an old answer for this question": _old_answer_for_this_question,
    "another state long ago": lambda edited: edited.rewritten(2, state={"channel_values": {}}),
    "another parent long ago": lambda edited: edited.rewritten(2, parent="none"),
}


@pytest.mark.parametrize("edit", OLD_EDITS.values(), ids=OLD_EDITS)
def test_an_edit_of_what_is_long_done_changes_nothing_that_runs(
    edited: EditedStore, edit: Edit
) -> None:
    """What is released does not reach so far back: it stays the truth, and a listing refuses."""
    with edited.landing():
        edit(edited)
        edited.desk.ran.clear()
        with edited.open() as store:
            graph = edited.graph(store)
            shown = graph.get_state(config_of())
            listed = ending(lambda: list(graph.get_state_history(config_of())))

    assert shown.values == edited.truth
    assert shown.interrupts
    assert listed is not None
    assert issubclass(listed, ALARMS)


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_untouched_store_goes_on(tmp_path: Path, backend: str, shape: str, face: str) -> None:
    """The control: the waiting thread takes its answer, pays once, and is as it should be."""
    edited = EditedStore(tmp_path / "home", backend, shape)
    edited.desk.ran.clear()
    with edited.open() as store:
        found = run(face, edited.graph(store), Command(resume="no"), config_of())
        report = store.verify()

    assert edited.desk.ran == ["asked", "pay", "end"]
    assert found["log"][-3:] == ["answer no", "pay 2", "end 2"]
    assert report.ok
