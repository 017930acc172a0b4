# SPDX-License-Identifier: Apache-2.0
"""Save the state of an agent, attack the database behind its back, and see what is refused."""

import shutil
import sqlite3
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import TextWrapper

import sealpoint

fit = TextWrapper(80, subsequent_indent=" " * 11).fill
TURNS = (("user", "Pay invoice 17."), ("agent", "250.00 EUR. Pay?"), ("user", "Yes."))
NEWEST = "(SELECT max(number) FROM entries)"
ATTACKS = {  # what whoever holds the database can always do
    "Raise the payment from 250 to 950.": (
        "UPDATE entries SET payload = CAST(replace(payload, '250.00', '950.00') AS BLOB)"
    ),
    "Say that a bot spoke last, and not the user.": (
        "UPDATE entries SET body = CAST(replace(body, 'user', 'bot') AS BLOB) WHERE number = NEWEST"
    ),
    "Use a genuine signature, of another entry.": (
        "UPDATE entries SET seals = (SELECT seals FROM entries WHERE number = NEWEST - 1) "
        "WHERE number = NEWEST"
    ),
    "Take the answer back: delete the newest entry.": "DELETE FROM entries WHERE number = NEWEST",
    "Replay the newest entry once more, at the end.": (
        "INSERT INTO entries SELECT number + 1, thread, seq + 1, header, seals, body, payload "
        "FROM entries WHERE number = NEWEST"
    ),
    "Put a genuine entry of another thread in its place.": (
        "UPDATE entries SET (header, seals, body) = (SELECT header, seals, body FROM entries "
        "WHERE number = 4) WHERE number = NEWEST"
    ),
    "Put an older copy of the whole file back.": "VACUUM",
}


def run(statement: str) -> None:
    """Run SQL past Sealpoint."""
    with closing(sqlite3.connect(database)) as connection, connection:
        if not connection.execute(statement.replace("NEWEST", NEWEST)).rowcount:
            sys.exit(f"CHANGED NOTHING: {statement}")


with TemporaryDirectory() as disk, TemporaryDirectory() as home:  # an attacker has the disk alone
    database, older, newest = (Path(disk, file) for file in ("agents.db", "older.db", "new.db"))
    place = {"config_dir": Path(home, "config"), "state_dir": Path(home, "state")}
    url = f"sqlite:///{database}"
    sealpoint.init(url, **place)
    state = {"messages": [], "pay": Decimal("250.00"), "seen": {("acme", 17)}}
    for number, turn in enumerate(TURNS, start=1):
        with sealpoint.open_store(url, **place) as store:  # a worker that starts anew each turn
            store.thread("lunch").save({"pay": Decimal("9.50")}, id="order")
            state["messages"].append(turn)
            store.thread("invoice-17").save(state, id=f"turn-{number}", metadata={"by": turn[0]})
        shutil.copy(database, older if number < len(TURNS) else newest)

    with sealpoint.open_store(url, **place) as store:
        print("An agent saved its state after each turn. Its history, newest first:")
        for ref in store.thread("invoice-17").history():
            print(f"  entry {ref.seq}  {ref.id}  signed by {ref.writer}  {ref.metadata}")
        print(fit(f"  loaded   {store.thread('invoice-17').load().state}"))
    print("\nNow somebody who holds the database, and neither the keys nor the anchor, tries:")
    for title, statement in ATTACKS.items():
        shutil.copy(older if statement == "VACUUM" else newest, database)
        run(statement)
        try:
            with sealpoint.open_store(url, **place) as store:
                sys.exit(f"NOT REFUSED: {title} {store.thread('invoice-17').load()}")
        except sealpoint.SealpointError as error:
            print(f"\n{title}\n" + fit(f"  refused  {error.code}: {error.message}"))
    shutil.copy(newest, database)
    with sealpoint.open_store(url, **place) as store:
        print(f"\nWith the newest copy back, {store.verify().entries} entries verify again.")
