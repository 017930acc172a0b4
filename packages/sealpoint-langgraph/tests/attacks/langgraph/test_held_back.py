# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that a pause held back is what people approve, and no other one runs."""

from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from sealpoint.errors import NeedsApproval, Paused
from sealpoint.gate import Request
from sealpoint_langgraph import guard
from tests.attacks.langgraph.desks import EITHER_FACE, State, config_of, run
from tests.attacks.langgraph.office import Office

_SMALL, _LARGE = 5, 5_000_000


class _Payments:
    """A graph that raises the amount in its first node and pays it in its second."""

    def __init__(self, office: Office, thread: str) -> None:
        self.paid: list[int] = []
        self._office = office
        self._thread = thread
        self.pauses = False

    def _raise_amount(self, state: State) -> State:  # noqa: ARG002 (a node takes the state)
        if self.pauses:
            self._office.operator().thread(self._thread).pause("a look")
        return {"amount": _LARGE}

    def _pay(self, state: State) -> State:
        self.paid.append(state["amount"])
        return {"log": ["paid"]}

    def graph(self, version: str) -> Any:
        """The graph of a release; another version needs approval."""
        built: Any = StateGraph(State)
        built.add_node("raise", self._raise_amount)
        built.add_node("pay", self._pay)
        built.add_edge(START, "raise")
        built.add_edge("raise", "pay")
        return guard(
            built.compile(),
            self._office.saver,
            actor="dev",
            world={"code": {"version": version}},
        )


@pytest.mark.parametrize("face", EITHER_FACE)
def test_people_approve_the_state_that_a_pause_held_back(
    office: Office, thread: str, face: str
) -> None:
    """The request, the release and the record name the amount that is paid."""
    payments = _Payments(office, thread)
    run(face, payments.graph("1"), {"amount": _SMALL}, config_of(thread))
    payments.paid.clear()
    payments.pauses = True
    with pytest.raises(Paused):
        run(face, payments.graph("1"), {"amount": _SMALL}, config_of(thread))
    assert payments.paid == []
    office.operator().thread(thread).unpause("fine")
    with pytest.raises(NeedsApproval) as needs:
        run(face, payments.graph("2"), None, config_of(thread))
    request = needs.value.request
    assert isinstance(request, Request)
    reader = office.process("ann").thread(thread)
    release = reader.release_of(request)
    shown = reader.adapter.snapshot(id=release.id)
    office.approve(request)
    run(face, payments.graph("2"), None, config_of(thread))

    assert release.held
    assert shown is not None
    assert shown.state["channel_values"]["amount"] == _LARGE
    assert payments.paid == [_LARGE]
    assert office.worker.verify().ok


@pytest.mark.parametrize("face", EITHER_FACE)
def test_without_a_pause_the_run_pays_what_it_saved(office: Office, thread: str, face: str) -> None:
    """The control."""
    payments = _Payments(office, thread)
    run(face, payments.graph("1"), {"amount": _SMALL}, config_of(thread))

    assert payments.paid == [_LARGE]
    assert not office.worker.thread(thread).release().held
    assert office.worker.verify().ok
