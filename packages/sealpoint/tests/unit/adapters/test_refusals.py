# SPDX-License-Identifier: Apache-2.0
"""Errors of subgraphs that nobody was told yet: a bounded number, and none is passed over."""

from sealpoint.adapters.guarded_runs import Refusals
from sealpoint.errors import StorageUnavailable, Superseded
from sealpoint.limits import UNREPORTED_REFUSALS_MAX


def _noted(count: int) -> Refusals:
    made = Refusals()
    for number in range(count):
        made.note(f"thread {number}", "run", Superseded(f"error {number}"))
    return made


def test_a_run_is_told_its_first_error_once() -> None:
    """Neither another run of the thread nor another thread is told it."""
    made = _noted(2)
    made.note("thread 1", "run", Superseded("a later one"))

    assert made.take("thread 1", "another run") is None
    assert made.take("thread 2", "run") is None
    found = made.take("thread 1", "run")
    assert found is not None
    assert found.message == "error 1"
    assert made.take("thread 1", "run") is None


def test_all_are_told_up_to_the_bound() -> None:
    """What is kept has its cause."""
    made = _noted(UNREPORTED_REFUSALS_MAX)

    for number in range(UNREPORTED_REFUSALS_MAX):
        found = made.take(f"thread {number}", "run")
        assert found is not None
        assert found.message == f"error {number}"


def test_beyond_the_bound_the_oldest_is_refused_without_its_cause() -> None:
    """It is not let through, and only once."""
    made = _noted(UNREPORTED_REFUSALS_MAX + 1)

    found = made.take("thread 0", "run")
    assert isinstance(found, StorageUnavailable)
    assert "may not have been saved" in found.message
    assert made.take("thread 0", "run") is None
    newest = made.take(f"thread {UNREPORTED_REFUSALS_MAX}", "run")
    assert isinstance(newest, Superseded)


def test_a_run_that_begins_anew_is_told_nothing_of_those_before() -> None:
    """Neither what is kept nor what had to go."""
    made = _noted(UNREPORTED_REFUSALS_MAX + 1)
    for name in ("thread 0", "thread 5"):
        made.forget(name)
        assert made.take(name, "run") is None


def test_a_run_that_has_ended_takes_no_room() -> None:
    """A service whose guarded runs fail keeps nothing of them."""
    made = Refusals()
    for number in range(UNREPORTED_REFUSALS_MAX + 1):
        made.note("thread", f"run {number}", Superseded("error"))
        made.drop("thread", f"run {number}")

    assert made.take("thread", "run 0") is None
