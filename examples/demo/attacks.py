# SPDX-License-Identifier: Apache-2.0
"""What somebody does who holds the database, and neither the keys nor the anchor.

Each attack is done to both databases: to the tables of the stock saver, and to those of a sealed
store. Where that needs skill, as forging an entry does, the burglar has it.
"""

import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import ormsgpack

VICTIM, APPROVED = "invoice-18", "invoice-17"
NOBODY = "00000000-0000-0000-0000-000000000000"  # the task that stock answers belong to
ANSWER_SLOT = -4


def sql(database: Path, statement: str, *values: Any) -> list[Any]:
    """Run SQL past everybody."""
    with closing(sqlite3.connect(database)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def forge_stock_approval(database: Path) -> None:
    """One row says that somebody answered yes."""
    sql(
        database,
        "INSERT INTO writes (thread_id, checkpoint_id, task_id, idx, channel, type, value) "
        "SELECT thread_id, max(checkpoint_id), ?, ?, '__resume__', 'msgpack', ? "
        "FROM checkpoints WHERE thread_id = ?",
        *(NOBODY, ANSWER_SLOT, ormsgpack.packb({"approved": True}), VICTIM),
    )


def edit_stock_amount(database: Path) -> None:
    """The call of the tool is edited; the question that people are shown is not."""
    sql(
        database,
        "UPDATE checkpoints SET checkpoint = CAST(replace(checkpoint, '180.00', '980.00') AS BLOB)",
    )


def edit_sealed_amount(database: Path) -> None:
    """The same, where states are kept in `payload`."""
    sql(
        database,
        "UPDATE entries SET payload = CAST(replace(payload, '180.00', '980.00') AS BLOB)",
    )


def forge_sealed_approval(database: Path) -> None:
    """The answer that another thread really got is written into this one, as a good forger would.

    The entry names this thread, this position and this checkpoint, and every hash in it is right.
    What the forger does not have is the key.
    """
    victim = _entries(database, VICTIM)
    donor = next(each for each in _entries(database, APPROVED) if b"__resume__" in each["payload"])
    checkpoint = next(each for each in reversed(victim) if each["kind"] == "checkpoint")
    seq = len(victim)
    body = json.loads(donor["body"]) | {"checkpoint": json.loads(checkpoint["body"])["id"]}
    newest = json.loads(victim[-1]["header"])
    header = json.loads(donor["header"]) | {
        "thread": newest["thread"],
        "seq": seq,
        "prev": sha256(victim[-1]["header"]).hexdigest(),
        "skip": sha256(victim[seq & (seq - 1)]["header"]).hexdigest(),
        "fence": newest["fence"],
        "at": newest["at"],
        "body": sha256(_json(body)).hexdigest(),
    }
    sql(
        database,
        "INSERT INTO entries (thread, seq, header, seals, body, payload) VALUES (?, ?, ?, ?, ?, ?)",
        *(victim[0]["thread"], seq, _json(header), donor["seals"], _json(body), donor["payload"]),
    )


def _entries(database: Path, name: str) -> list[dict[str, Any]]:
    """The entries of a thread, oldest first; the first one tells its name."""
    fields = ("thread", "header", "seals", "body", "payload")
    rows = sql(
        database,
        "SELECT thread, header, seals, body, ifnull(payload, x'') FROM entries WHERE thread = "
        "(SELECT thread FROM entries WHERE seq = 0 AND instr(body, ?)) ORDER BY seq",
        f'"{name}"'.encode(),
    )
    found = [dict(zip(fields, row, strict=True)) for row in rows]
    return [each | {"kind": json.loads(each["header"])["kind"]} for each in found]


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
