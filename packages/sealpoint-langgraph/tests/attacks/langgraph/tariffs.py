# SPDX-License-Identifier: Apache-2.0
"""A node that uses a function of its module by name."""

from tests.attacks.langgraph.desks import State

__all__ = ["other_tariff", "price", "tariff"]


def tariff() -> int:
    """What a thing costs."""
    return 1


def other_tariff() -> int:
    """What somebody would like it to cost."""
    return 1_000


def price(state: State) -> State:
    """Say what the amount costs."""
    return {"log": [f"{state['amount']} times {tariff()}"]}
