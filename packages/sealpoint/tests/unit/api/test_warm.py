# SPDX-License-Identifier: Apache-2.0
"""A handle that has proved blobs and still has them: what it returns, and what it does not see."""

import pytest

from sealpoint.errors import Edited, Missing, SealpointError
from tests.unit.api.place import Place

_STATE = {"messages": [f"message {number} " * 40 for number in range(400)]}
_DELETED = "DELETE FROM blobs"
_EDITED = "UPDATE blobs SET data = CAST('x' || substr(data, 2) AS BLOB)"


@pytest.mark.parametrize("warmed", ["by a save", "by a load"])
@pytest.mark.parametrize(
    ("statement", "error"), [(_DELETED, Missing), (_EDITED, Edited)], ids=["deleted", "edited"]
)
def test_damage_that_a_warm_handle_does_not_meet_is_found_by_the_next_cold_read(
    made: Place, statement: str, error: type[SealpointError], warmed: str
) -> None:
    """What the warm handle returns is what was saved; a cold handle and verify refuse the rest."""
    with made.open() as store:
        store.thread("t").save(_STATE)
    with made.open() as store:
        thread = store.thread("t")
        if warmed == "by a save":
            thread.save(_STATE)
        assert thread.load().state == _STATE
        with made.rows() as rows:
            assert rows.execute(statement).rowcount > 100

        assert thread.load().state == _STATE
        assert not store.verify().ok
    with made.open() as store, pytest.raises(error):
        store.thread("t").load()


def test_a_warm_handle_verifies_the_newest_entry_anew(made: Place) -> None:
    """Blobs in memory are no reason to believe an entry that was edited or taken away."""
    with made.open() as store:
        thread = store.thread("t")
        thread.save(_STATE)
        assert thread.load().state == _STATE
        with made.rows() as rows:
            rows.execute("UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = 2")
        with pytest.raises(Edited):
            thread.load()
        with made.rows() as rows:
            rows.execute("DELETE FROM entries WHERE seq = 2")

        with pytest.raises(SealpointError) as caught:
            thread.load()
        assert caught.value.code in {"missing", "rolled-back"}
