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
from tests.attacks.langgraph.desks import FACES, SHAPES, config_of, run
from tests.attacks.langgraph.vault import ALARMS, BACKENDS, Vault, ending
from tests.ledgers import key

Edit = Callable[[Vault], None]
_NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module", params=[(b, s) for b in BACKENDS for s in SHAPES], ids="-".join)
def vault(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """A store of each backend, whose question is asked by the graph or by a subgraph."""
    home: Path = tmp_path_factory.mktemp("vault") / "home"
    return Vault(home, *request.param)


# ---------------------------------------------------------------------- answers and questions


def _answer(vault: Vault, by: PrivateKey | None) -> None:
    payload, root = vault.root_of([[-4, "__resume__", "yes"]])
    checkpoint = vault.body(vault.head()).id
    body = ResultsBody(
        salt=vault.salt, checkpoint=checkpoint, task=_NOBODY, root=root, answers=True
    )
    vault.append(vault.forged(Kind.RESULTS, body, payload, by))


def _old_answer(vault: Vault) -> None:
    (seq,) = vault.find(Kind.RESULTS, answers=True)
    vault.append(vault.rows()[seq])


def _answer_of_another_thread(vault: Vault) -> None:
    (seq,) = vault.find(Kind.RESULTS, "other", answers=True)
    vault.append(vault.rows("other")[seq])


def _old_answer_for_this_question(vault: Vault) -> None:
    (seq,) = vault.find(Kind.RESULTS, answers=True)
    vault.rewritten(seq, checkpoint=vault.body(vault.head()).id)


def _question_deleted(vault: Vault) -> None:
    gone = vault.questions()
    vault.put({seq: row for seq, row in vault.rows().items() if seq not in gone})


def _question_closed_up(vault: Vault) -> None:
    gone = vault.questions()
    kept = [row for seq, row in vault.rows().items() if seq not in gone]
    vault.put(dict(enumerate(kept)))


def _question_emptied(vault: Vault) -> None:
    for seq in vault.questions():
        vault.rewritten(seq, state=[], question=None)


def _question_by_another_entry(vault: Vault) -> None:
    rows = vault.rows()
    for seq in vault.questions():
        rows[seq] = rows[3]
    vault.put(rows)


def _with(row: Record, payload: bytes | None) -> Record:
    return Record(row.header, row.seals, row.body, payload)


def _question_says_another_amount(vault: Vault) -> None:
    rows = vault.rows()
    for seq in vault.questions():
        payload = (rows[seq].payload or b"").replace(b"\xa3pay\x02", b"\xa3pay\x01")
        rows[seq] = _with(rows[seq], payload)
    vault.put(rows)


# ---------------------------------------------------------------------- heads and order


def _highest_head(vault: Vault, by: PrivateKey | None) -> None:
    state = vault.state(vault.head())
    payload, root = vault.root_of(state | {"channel_values": {"amount": 9_999}})
    body = CheckpointBody(salt=vault.salt, id="ffffffff-ffff-6fff-bfff-ffffffffffff", root=root)
    vault.append(vault.forged(Kind.CHECKPOINT, body, payload, by))


def _newest_deleted(vault: Vault, count: int) -> None:
    rows = vault.rows()
    vault.put({seq: row for seq, row in rows.items() if seq < len(rows) - count})


def _another_parent(vault: Vault) -> None:
    first = vault.body(vault.find(Kind.CHECKPOINT)[0]).id
    vault.rewritten(vault.head(), parent=first)


def _all_of_another_thread(vault: Vault) -> None:
    vault.put(vault.rows("other"))


def _threads_swapped(vault: Vault) -> None:
    mine, other = vault.rows(), vault.rows("other")
    vault.put(other)
    vault.put(mine, "other")


def _head_of_another_thread(vault: Vault) -> None:
    head = vault.head()
    vault.put({**vault.rows(), head: vault.rows("other")[head]})


def _another_namespace(vault: Vault) -> None:
    head = vault.head(None)
    vault.rewritten(head, lane="" if vault.body(head).lane else "desk:elsewhere")


# ---------------------------------------------------------------------- states


def _older_state(vault: Vault) -> None:
    rows = vault.rows()
    old, head = vault.find(Kind.CHECKPOINT, lane="")[1], vault.head()
    vault.put({**rows, head: _with(rows[head], rows[old].payload)})


def _older_state_and_its_digest(vault: Vault) -> None:
    old, head = vault.find(Kind.CHECKPOINT, lane="")[1], vault.head()
    vault.rewritten(head, state=vault.state(old))


def _state(**changes: object) -> Edit:
    def edit(vault: Vault) -> None:
        state = vault.state(vault.head())
        for name, value in changes.items():
            state[name] = {**state[name], **value} if isinstance(value, dict) else value
        vault.rewritten(vault.head(), state=state)

    return edit


def _metadata(**changes: object) -> Edit:
    def edit(vault: Vault) -> None:
        found = vault.body(vault.head()).metadata
        vault.rewritten(vault.head(), metadata={**found, **changes})

    return edit


# ---------------------------------------------------------------------- jumps and results


def _results(*writes: tuple[int, str, object], by: PrivateKey | None = None) -> Edit:
    def edit(vault: Vault) -> None:
        payload, root = vault.root_of([list(each) for each in writes])
        task, checkpoint = vault.body(vault.questions()[-1]).task, vault.body(vault.head()).id
        body = ResultsBody(salt=vault.salt, checkpoint=checkpoint, task=task, root=root)
        vault.append(vault.forged(Kind.RESULTS, body, payload, by))

    return edit


_JUMP = (0, "branch:to:pay", None)
EDITS: dict[str, Edit] = {
    "an answer that nobody signed": lambda vault: _answer(vault, None),
    "an answer by an unknown key": lambda vault: _answer(vault, key("mallory")),
    "an answer by an operator's key": lambda vault: _answer(vault, vault.key("operator")),
    "an old answer once more": _old_answer,
    "an answer of another thread": _answer_of_another_thread,
    "the question deleted": _question_deleted,
    "the question deleted and the gap closed": _question_closed_up,
    "the question emptied": _question_emptied,
    "another entry for the question": _question_by_another_entry,
    "another amount in the question": _question_says_another_amount,
    "the highest head that nobody signed": lambda vault: _highest_head(vault, None),
    "the highest head by an unknown key": lambda vault: _highest_head(vault, key("mallory")),
    "the highest head by an operator": lambda vault: _highest_head(vault, vault.key("operator")),
    "the newest entry deleted": lambda vault: _newest_deleted(vault, 1),
    "the five newest deleted": lambda vault: _newest_deleted(vault, 5),
    "an older copy of everything": lambda vault: vault.roll_back(),
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
def test_an_edit_that_would_steer_the_graph_is_refused(vault: Vault, edit: Edit) -> None:
    """No node runs and nothing is shown, however the graph is called, in a new process."""
    with vault.landing():
        edit(vault)
        found = {face: vault.endings(face) for face in FACES}

    for ways in found.values():
        refused = {way: error for way, error in ways.items() if error and issubclass(error, ALARMS)}
        assert refused == ways


OLD_EDITS: dict[str, Edit] = {
    "an old answer for this question": _old_answer_for_this_question,
    "another state long ago": lambda vault: vault.rewritten(2, state={"channel_values": {}}),
    "another parent long ago": lambda vault: vault.rewritten(2, parent="none"),
}


@pytest.mark.parametrize("edit", OLD_EDITS.values(), ids=OLD_EDITS)
def test_an_edit_of_what_is_long_done_changes_nothing_that_runs(vault: Vault, edit: Edit) -> None:
    """What is released does not reach so far back: it stays the truth, and a listing refuses."""
    with vault.landing():
        edit(vault)
        vault.desk.ran.clear()
        with vault.open() as store:
            graph = vault.graph(store)
            shown = graph.get_state(config_of())
            listed = ending(lambda: list(graph.get_state_history(config_of())))

    assert shown.values == vault.truth
    assert shown.interrupts
    assert listed is not None
    assert issubclass(listed, ALARMS)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_untouched_store_goes_on(tmp_path: Path, backend: str, shape: str, face: str) -> None:
    """The control: the waiting thread takes its answer, pays once, and is as it should be."""
    vault = Vault(tmp_path / "home", backend, shape)
    vault.desk.ran.clear()
    with vault.open() as store:
        found = run(face, vault.graph(store), Command(resume="no"), config_of())
        report = store.verify()

    assert vault.desk.ran == ["asked", "pay", "end"]
    assert found["log"][-3:] == ["answer no", "pay 2", "end 2"]
    assert report.ok
