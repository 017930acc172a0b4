# SPDX-License-Identifier: Apache-2.0
"""Edits of the store that would steer a workflow, on each backend: nothing runs or is shown.

Another amount in a pending request, other fields, forged entries with and without a stolen key,
entries of another conversation, deletions, rollbacks.
"""

import asyncio
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sealpoint.errors import ListIncomplete, SealpointError
from sealpoint.ledger import CheckpointBody, Kind
from sealpoint.signing import PrivateKey
from sealpoint.storage import Record
from tests.adapters.agent_framework.payments import Payment
from tests.attacks.agent_framework.edited_workflows import EditedWorkflows
from tests.attacks.agent_framework.test_stock_storage import Gadget
from tests.attacks.edited_threads import ALARMS, BACKENDS
from tests.ledgers import key

Edit = Callable[[EditedWorkflows], None]


@pytest.fixture(scope="module", params=BACKENDS)
def edited(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> EditedWorkflows:
    """A store of each backend."""
    home: Path = tmp_path_factory.mktemp("edited") / "home"
    return EditedWorkflows(home, request.param)


def _changed(change: Callable[[dict[str, Any]], None]) -> Edit:
    """Another state under the head, with every digest made right again."""

    def edit(edited: EditedWorkflows) -> None:
        state = edited.state(edited.head())
        change(state)
        edited.rewritten(edited.head(), state=state)

    return edit


def _set(**fields: Any) -> Edit:
    return _changed(lambda state: state.update(fields))


def _another_amount(state: dict[str, Any]) -> None:
    for event in state["pending_request_info_events"].values():
        event.data = Payment(99_999, "mallory")


def _bytes_of_the_amount(edited: EditedWorkflows) -> None:
    rows, head = edited.rows(), edited.head()
    old = rows[head]
    payload = (old.payload or b"").replace(b"t-2", b"m-9")
    edited.put({**rows, head: Record(old.header, old.seals, old.body, payload)})


def _metadata(**fields: Any) -> Edit:
    def edit(edited: EditedWorkflows) -> None:
        found = edited.body(edited.head()).metadata
        edited.rewritten(edited.head(), metadata={**found, **fields})

    return edit


def _no_question(edited: EditedWorkflows) -> None:
    edited.rewritten(edited.head(), question=None)


def _forged(by: Callable[[EditedWorkflows], PrivateKey | None]) -> Edit:
    """A newest checkpoint in which somebody has said yes to 99999."""

    def edit(edited: EditedWorkflows) -> None:
        before = edited.body(edited.head())
        state = edited.state(edited.head())
        _another_amount(state)
        state["checkpoint_id"], state["previous_checkpoint_id"] = "forged", before.id
        payload, root = edited.root_of(state)
        body = CheckpointBody(
            salt=edited.salt, id="forged", root=root, parent=before.id, metadata=before.metadata
        )
        edited.append(edited.forged(Kind.CHECKPOINT, body, payload, by(edited)))

    return edit


def _newest_deleted(count: int) -> Edit:
    def edit(edited: EditedWorkflows) -> None:
        rows = edited.rows()
        edited.put({seq: row for seq, row in rows.items() if seq < len(rows) - count})

    return edit


def _middle_deleted(edited: EditedWorkflows) -> None:
    rows, head = edited.rows(), edited.head()
    edited.put({seq: row for seq, row in rows.items() if seq != head})


def _swapped(edited: EditedWorkflows) -> None:
    mine, other = edited.rows(), edited.rows("other")
    edited.put(other)
    edited.put(mine, "other")


def _head_of_the_other(edited: EditedWorkflows) -> None:
    head = edited.head()
    edited.put({**edited.rows(), head: edited.rows("other")[head]})


def _older_state(edited: EditedWorkflows) -> None:
    old, head = edited.find(Kind.CHECKPOINT)[1], edited.head()
    edited.rewritten(head, state=edited.state(old))


def _consumed_once_more(edited: EditedWorkflows) -> None:
    edited.append(edited.rows()[edited.find(Kind.CHECKPOINT)[1]])


EDITS: dict[str, Edit] = {
    "another amount in the request": _changed(_another_amount),
    "another role in the state": _set(state={"role": "admin"}),
    "another workflow": _set(workflow_name="refunds"),
    "another graph": _set(graph_signature_hash="0" * 64),
    "another previous checkpoint": _set(previous_checkpoint_id=None),
    "another count": _set(iteration_count=0),
    "a message that was never sent": _set(messages={"clerk": ["pay mallory"]}),
    "no request": _set(pending_request_info_events={}),
    "another workflow in the metadata": _metadata(workflow_name="refunds"),
    "another time in the metadata": _metadata(timestamp="2099-01-01T00:00:00+00:00"),
    "no question": _no_question,
    "a checkpoint that nobody signed": _forged(lambda _: None),
    "a checkpoint by an unknown key": _forged(lambda _: key("mallory")),
    "a checkpoint by an operator's key": _forged(lambda edited: edited.key("operator")),
    "the newest entry deleted": _newest_deleted(1),
    "the five newest deleted": _newest_deleted(5),
    "the newest checkpoint deleted": _middle_deleted,
    "everything deleted": lambda edited: edited.put({}),
    "an older copy of everything": lambda edited: edited.roll_back(),
    "two conversations swapped": _swapped,
    "the head of another conversation": _head_of_the_other,
    "all of another conversation": lambda edited: edited.put(edited.rows("other")),
    "an older state": _older_state,
    "a consumed checkpoint once more": _consumed_once_more,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_that_would_steer_a_workflow_is_refused(
    edited: EditedWorkflows, edit: Edit
) -> None:
    """Nothing runs and nothing is shown, however it is asked for, in a new process."""
    with edited.landing():
        edit(edited)
        found = edited.endings()

    assert _let_through(found) == {}


def test_a_pickle_in_the_place_of_a_state_runs_nothing(
    edited: EditedWorkflows, tmp_path: Path
) -> None:
    """Also with every digest made right again, and where ids are listed."""
    marker = tmp_path / "ran"
    bomb = pickle.dumps(Gadget(marker))
    with edited.landing():
        rows, head = edited.rows(), edited.head()
        old = rows[head]
        edited.put({**rows, head: Record(old.header, old.seals, old.body, bomb)})
        found = edited.endings()
    with edited.landing():
        edited.rewritten(head, root=hashlib.sha256(bomb).hexdigest())
        rows = edited.rows()
        row = rows[head]
        edited.put({**rows, head: Record(row.header, row.seals, row.body, bomb)})
        made_right = edited.endings()

    assert _let_through(found) == {"list ids": None}
    assert _let_through(made_right) == {}
    assert not marker.exists()


def test_other_bytes_of_a_state_are_refused_by_whoever_reads_it(edited: EditedWorkflows) -> None:
    """A list of ids reads no state, and runs nothing that lies there."""
    with edited.landing():
        _bytes_of_the_amount(edited)
        found = edited.endings()

    assert _let_through(found) == {"list ids": None}


def _let_through(found: dict[str, SealpointError | None]) -> dict[str, SealpointError | None]:
    """What was not refused as an alarm, or as a list that would leave the alarming out."""
    alarms = (*ALARMS, ListIncomplete)
    return {way: error for way, error in found.items() if not isinstance(error, alarms)}


def test_an_entry_that_a_stolen_key_signed_does_not_take_the_place_of_an_anchored_one(
    edited: EditedWorkflows,
) -> None:
    """With the worker's own key: all is well signed and linked, and the anchor knows better."""
    with edited.landing():
        _newest_deleted(1)(edited)
        _forged(lambda edited: edited.key("worker"))(edited)
        found = edited.endings()

    assert _let_through(found) == {}


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_untouched_store_goes_on(tmp_path: Path, backend: str) -> None:
    """The control: it is read in every way, and takes its answer."""
    edited = EditedWorkflows(tmp_path / "home", backend)
    edited.payments.did.clear()
    with edited.open() as store:
        found = asyncio.run(edited.untouched(store))

    assert set(found.values()) == {None}
    assert edited.payments.did == ["heard True", "pays 42 to t-2: True"]
