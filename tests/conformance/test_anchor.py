# SPDX-License-Identifier: Apache-2.0
"""Every anchor of this package passes the suite that third parties are given.

The suite fails an anchor that breaks a promise about how positions rise, or about runs.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint.anchor import Anchor, is_behind
from sealpoint.anchor.local import LocalAnchor
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.anchor.paired import PairedAnchors
from sealpoint.errors import SealpointError
from sealpoint_postgres._url import PostgresUrl
from sealpoint_postgres.anchor import PostgresAnchor
from sealpoint_testing.conformance.anchor import AnchorConformance
from tests.conformance import broken
from tests.postgres_server import PostgresServer


class TestMemoryAnchor(AnchorConformance):
    """The reference implementation."""

    shared = False

    def open(self, place: Path) -> Anchor:
        """Open an anchor that has no place."""
        del place
        return MemoryAnchor()


class TestLocalAnchor(AnchorConformance):
    """The file in the user's state directory."""

    def open(self, place: Path) -> Anchor:
        """Open the anchor in a directory of its own."""
        return LocalAnchor(place / "anchor", store=b"s" * 16, key=b"k" * 32, create=True)


class TestLocalAnchorMadeLate(AnchorConformance):
    """The same file when nobody makes it before the first slot."""

    def open(self, place: Path) -> Anchor:
        """Open the anchor without making anything."""
        return LocalAnchor(place / "anchor", store=b"s" * 16, key=b"k" * 32)


class TestPostgresAnchor(AnchorConformance):
    """Rows of a database that machines share, in a schema of its own for each test."""

    @pytest.fixture(autouse=True)
    def _schema(self, postgres: PostgresServer) -> Iterator[None]:
        self._server = postgres
        self._name = postgres.new_schema()
        yield
        postgres.drop_schema(self._name)

    def open(self, place: Path) -> Anchor:
        """Open the anchor of a store in the same schema each time."""
        del place
        url = PostgresUrl.parse(self._server.url(schema=self._name))
        password = self._server.password
        return PostgresAnchor(url, store=b"s" * 16, password=lambda: password, create=True)


class TestAnchorsTogether(AnchorConformance):
    """Two files as one anchor, beside a store that shows everything."""

    def open(self, place: Path) -> Anchor:
        """Open both."""
        shared, local = (
            LocalAnchor(place / name, store=b"s" * 16, key=b"k" * 32)
            for name in ("shared", "local")
        )
        # There is no store to ask, so positions are compared by number alone.
        return PairedAnchors(
            shared,
            local,
            judge=lambda _, one, other: (other if is_behind(one, other) else one, True),
        )


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (broken.AnyThread, "test_another_thread_is_refused"),
        (broken.AnyThreadLater, "test_another_thread_is_refused"),
        (broken.HoldingNames, "test_reserved_name_gives_way_to_another_thread"),
        (broken.Sideways, "test_another_entry_in_the_same_place_is_refused"),
        (broken.LiftingPauses, "test_pause_stays_what_it_was_under_the_same_mark"),
        (broken.MakingPauses, "test_pause_stays_what_it_was_under_the_same_mark"),
        (broken.OnlyForward, "test_same_entry_may_be_told_more_about"),
        (broken.SharingRuns, "test_one_run_at_a_time_has_a_thread"),
        (broken.SharingRuns, "test_one_os_thread_gets_the_hold"),
        (broken.LookingBeforeHolding, "test_one_os_thread_gets_the_hold"),
        (broken.LookingBeforeHolding, "test_two_runs_never_overlap"),
        (broken.EndingAnyRun, "test_run_that_ends_twice_does_not_end_the_next"),
        (broken.NeverEnding, "test_run_that_ended_leaves_its_thread_to_the_next"),
        (broken.OneRunForAll, "test_runs_of_other_threads_are_independent"),
        (broken.OnlyWithPositions, "test_runs_and_positions_are_independent"),
        (broken.WithoutHolder, "test_run_that_ended_leaves_its_thread_to_the_next"),
        (broken.WithoutHolder, "test_holder_is_told_as_it_was_given"),
    ],
)
def test_broken_anchor_fails_the_suite(kind: type[MemoryAnchor], test: str, tmp_path: Path) -> None:
    """The suite notices an anchor that breaks a promise, in the test that is about it."""

    class Suite(AnchorConformance):
        shared = False

        def open(self, place: Path) -> Anchor:
            del place
            return kind()

    with pytest.raises((AssertionError, SealpointError)):
        getattr(Suite(), test)(tmp_path)
