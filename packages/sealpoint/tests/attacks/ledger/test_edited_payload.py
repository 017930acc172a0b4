# SPDX-License-Identifier: Apache-2.0
"""The bytes of a state, and whatever lies beside the entries."""

import hashlib
import json
import sqlite3

import pytest

from sealpoint.errors import Edited, Missing
from tests.attacks.ledger.tampered_store import TamperedStore, refused


def _edit_payload(thread: bytes, old: bytes, new: bytes) -> str:
    return (
        f"UPDATE entries SET payload = CAST(replace(payload, x'{old.hex()}', x'{new.hex()}') "  # noqa: S608
        f"AS BLOB) WHERE thread = x'{thread.hex()}' AND instr(payload, x'{old.hex()}')"
    )


def test_an_edited_state_is_refused_by_the_load_that_reads_it(scene: TamperedStore) -> None:
    """Another text of the same length in the newest state: still well encoded, and refused."""
    sql = _edit_payload(scene.thread_id("alpha"), b"alpha says 3", b"alpha lies 3")
    found = refused(scene.after(lambda database: database.execute(sql)))

    assert found == {"load alpha": Edited, "load alpha a-3": Edited}


def test_an_edited_older_state_is_refused_by_its_own_load(scene: TamperedStore) -> None:
    """The newest state stays readable; the edited one does not."""
    sql = _edit_payload(scene.thread_id("alpha"), b"alpha says 0", b"alpha lies 0")
    found = refused(scene.after(lambda database: database.execute(sql)))

    assert found == {"load alpha a-0": Edited, "find alpha": Edited}


def test_a_removed_state_is_missing(scene: TamperedStore) -> None:
    """Without its payload a checkpoint is refused, never empty."""
    found = refused(scene.after(lambda db: db.execute("UPDATE entries SET payload = NULL")))

    assert set(found.values()) == {Missing}
    assert {"load alpha", "load beta", "load beta b-0"} <= set(found)


def test_an_edited_chunk_of_a_large_state_is_refused(scene: TamperedStore) -> None:
    """A state of many blobs with one bit changed in one of them, whichever it is."""
    words = [f"word {number} of many " * 4 for number in range(3000)]
    with scene.open() as store:
        scene.save(store, "alpha", {"words": words}, id="large")
    scene.require_sound()
    with scene.raw() as database:
        query = "SELECT number, digest, data FROM blobs WHERE thread = ?"
        rows = database.execute(query, (scene.thread_id("alpha"),)).fetchall()
        bodies = database.execute("SELECT body FROM entries ORDER BY number").fetchall()
    # The list of new blobs is for the audit; no state reaches it.
    listing = bytes.fromhex(json.loads(bodies[-1][0])["fresh_list"])
    large = [
        (number, data) for number, digest, data in rows if len(data) > 1000 and digest != listing
    ]

    def write(data: bytes, number: int) -> None:
        sql = "UPDATE blobs SET data = ? WHERE number = ?"
        scene.commit(lambda database: database.execute(sql, (data, number)))

    assert len(large) > 10
    for number, data in large[:: len(large) // 8]:
        for edited in (bytes([*data[:500], data[500] ^ 1, *data[501:]]), data[:-1], b""):
            write(edited, number)
            assert refused(scene.read())["load alpha"] is Edited
        write(data, number)
    scene.require_sound()


def test_an_edited_world_is_refused(scene: TamperedStore) -> None:
    """What the run was able to do is bound like the state."""
    edit = (
        "UPDATE blobs SET data = CAST(replace(data, CAST('read_file' AS BLOB), "
        "CAST('shell_run' AS BLOB)) AS BLOB)"
    )
    found = refused(scene.after(lambda database: database.execute(edit)))

    assert found["load alpha"] is Edited
    assert found["load beta b-1"] is Edited


@pytest.mark.parametrize("depth", ["body", "header"])
def test_an_attacker_who_fixes_every_digest_is_refused(scene: TamperedStore, depth: str) -> None:
    """The payload changed, its digest in the body, and the body's digest in the header too."""
    thread = scene.thread_id("alpha")

    def edit(database: sqlite3.Connection) -> None:
        row = "FROM entries WHERE thread = ? ORDER BY seq DESC LIMIT 1"
        header, body, payload = database.execute(
            f"SELECT header, body, payload {row}", (thread,)
        ).fetchone()
        payload = payload.replace(b"alpha says 3", b"alpha lies 3")
        root = json.loads(body)["root"].encode()
        body = body.replace(root, hashlib.sha256(payload).hexdigest().encode())
        if depth == "header":
            old = json.loads(header)["body"].encode()
            header = header.replace(old, hashlib.sha256(body).hexdigest().encode())
        database.execute(
            "UPDATE entries SET header = ?, body = ?, payload = ? WHERE thread = ? AND seq = ?",
            (header, body, payload, thread, json.loads(header)["seq"]),
        )

    found = refused(scene.after(edit))

    assert found["load alpha"] is Edited
    assert found["history alpha"] is Edited


def test_labels_are_hints_that_change_no_read(scene: TamperedStore) -> None:
    """The one side table: emptied, swapped or full of junk, every read tells the truth."""

    def edit(database: sqlite3.Connection) -> None:
        rows = database.execute("SELECT label, thread FROM labels").fetchall()
        database.execute("DELETE FROM labels")
        for (label, _), (_, thread) in zip(rows, reversed(rows), strict=True):
            database.execute("INSERT INTO labels VALUES (?, ?)", (label, thread))
            database.execute("INSERT INTO labels VALUES (?, zeroblob(16))", (label,))

    assert not refused(scene.after(edit))
    scene.commit(lambda database: database.execute("DELETE FROM labels"))
    assert not refused(scene.read())
