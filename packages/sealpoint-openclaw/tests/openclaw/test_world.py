# SPDX-License-Identifier: Apache-2.0
"""The world of a gateway: every row and plugin is a leaf of its own, and odd names make no gap."""

import json

import pytest

from sealpoint.errors import StateChanged
from tests.openclaw.recorded_folder import STATE, Recorded


def _add_job(recorded: Recorded, store: str, job: str, name: str) -> None:
    recorded.sql(
        STATE,
        "INSERT INTO cron_jobs (store_key, job_id, name, enabled, payload_kind, job_json,"
        " updated_at) VALUES (?, ?, ?, 1, 'agentTurn', ?, 1)",
        *(store, job, name, json.dumps({"payload": {"kind": "agentTurn", "message": job}})),
    )


@pytest.mark.parametrize("name", ["report", "Every morning, read the mail and report it. " * 9])
@pytest.mark.parametrize(
    ("first", "second"),
    [(("s", "approved"), ("s", "evil")), (("s/t", "evil"), ("s", "t/evil"))],
    ids=["another key", "a key that reads the same"],
)
def test_a_row_with_the_name_of_another_is_a_leaf_of_its_own(
    recorded: Recorded, name: str, first: tuple[str, str], second: tuple[str, str]
) -> None:
    """Otherwise the second job would run under the approval of the first."""
    _add_job(recorded, *first, name)
    with recorded.guard() as guard:
        before = guard.read(None)[1]
    _add_job(recorded, *second, name)
    with recorded.guard() as guard:
        after = guard.read(None)[1]

    assert len(after.topology or {}) == len(before.topology or {}) + 1


@pytest.mark.parametrize(
    "text",
    [
        '{"agents":{"defaults":{"model":"\\ud800","heartbeat":{"\\ud800":1e999}}}}',
        '{"tools":{"\\ud800":"\\udfff"}}',
    ],
)
def test_half_a_character_in_a_setting_does_not_hide_what_changed(
    recorded: Recorded, text: str
) -> None:
    """The refusal names the file, and people can accept it."""
    recorded.write("openclaw.json", text)
    with recorded.guard() as guard:
        with pytest.raises(StateChanged, match=r"openclaw\.json"):
            guard.verify()
        guard.accept("odd")

        assert guard.verify().differences == ()
