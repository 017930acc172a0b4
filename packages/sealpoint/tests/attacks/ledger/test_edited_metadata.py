# SPDX-License-Identifier: Apache-2.0
"""Everything that is said about a state, in the body, the header and the columns."""

import json
import sqlite3
from typing import Any

import pytest

from sealpoint.errors import Edited, Forged, Missing, NotTrusted, Tampered
from tests.attacks.ledger.tampered_store import TamperedStore, refused

_ROW = "SELECT seq, header, body FROM entries WHERE thread = ? AND seq = ?"


def _text(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"step": 3, "source": "human"}},
        {"metadata": {}},
        {"id": "a-9"},
        {"parent": "a-0"},
        {"world": None},
        {"fresh": []},
        {"salt": "00" * 32},
        {"reason": "because"},
    ],
)
def test_an_edited_body_is_refused(scene: TamperedStore, changes: dict[str, Any]) -> None:
    """Metadata, id, parent, world: nothing in the body can be changed or added."""
    thread = scene.thread_id("alpha")

    def edit(database: sqlite3.Connection) -> None:
        seq, _, body = database.execute(_ROW, (thread, 6)).fetchone()
        database.execute(
            "UPDATE entries SET body = ? WHERE thread = ? AND seq = ?",
            (_text({**json.loads(body), **changes}), thread, seq),
        )

    found = refused(scene.after(edit))

    assert found["load alpha"] is Edited
    assert found["history alpha"] is Edited
    assert found["find alpha"] is Edited


_HEADER_CHANGES: list[dict[str, Any]] = [
    {"v": 1},
    {"v": 2},
    {"store": "00" * 16},
    {"epoch": 1},
    {"ns": "other"},
    {"thread": "00" * 16},
    {"gen": 1},
    {"seq": 99},
    {"prev": "00" * 32},
    {"skip": "00" * 32},
    {"kind": "adopt"},
    {"kind": "pause"},
    {"kind": "unheard-of"},
    {"fence": 5},
    {"pause": 5},
    {"owner": 5},
    {"roster": 7},
    {"at": "2001-01-01T00:00:00Z"},
    {"by": "00" * 32},
    {"enc": "aes"},
    {"body": "00" * 32},
    {"more": 1},
]


@pytest.mark.parametrize("seq", [0, 1, 3, 6])
def test_an_edited_header_is_refused(scene: TamperedStore, seq: int) -> None:
    """Every field of every header, of the newest entry and of older ones."""
    thread = scene.thread_id("alpha")
    with scene.raw() as database:
        _, header, _ = database.execute(_ROW, (thread, seq)).fetchone()
    fields = json.loads(header)

    def write(value: bytes) -> None:
        sql = "UPDATE entries SET header = ? WHERE thread = ? AND seq = ?"
        scene.commit(lambda database: database.execute(sql, (value, thread, seq)))

    for changes in _HEADER_CHANGES:
        scene.require_sound()
        write(_text({**fields, **changes}))
        found = refused(scene.read())
        write(header)

        # What the edited header claims decides which of the refusals it is.
        assert issubclass(found["history alpha"], Tampered | NotTrusted)
        assert seq not in (0, 6) or "load alpha" in found
        assert not [read for read in found if "beta" in read]


def test_edited_columns_are_refused(scene: TamperedStore) -> None:
    """The columns are only an index: a row that was moved to another position is not found."""
    thread = scene.thread_id("alpha")
    sql = "UPDATE entries SET seq = seq + 100 WHERE thread = ? AND seq = 3"
    found = refused(scene.after(lambda database: database.execute(sql, (thread,))))

    assert found["history alpha"] is Missing
    assert issubclass(found["load alpha"], Tampered)


def test_edited_seals_are_refused(scene: TamperedStore) -> None:
    """A signature with one digit changed, on the entry that is loaded."""
    sql = (
        "UPDATE entries SET seals = CAST(replace(CAST(seals AS TEXT), '\"]]', '0\"]]') AS BLOB) "
        "WHERE seq > 2"
    )
    found = refused(scene.after(lambda database: database.execute(sql)))

    assert found["load alpha"] is Edited
    digit = (
        "UPDATE entries SET seals = CAST(substr(CAST(seals AS TEXT), 1, 80) || '0000' || "
        "substr(CAST(seals AS TEXT), 85) AS BLOB)"
    )
    scene.commit(lambda database: database.execute(digit))
    assert issubclass(refused(scene.read())["open"], Forged | Edited)
