# SPDX-License-Identifier: Apache-2.0
"""Sealpoint before an outside yardstick: nine edits at rest, T1 to T9, of `agmi-check`.

    agmi-check --adapter sealpoint.testing.agmi:SqliteAdapter

The adapter answers as an application would. `verify` opens the store, loads the head, lists the
history and loads each listed checkpoint; it never calls the audit, and it takes only a
`SealpointError` for a refusal: any other exception escapes and spoils the run. Edits are made with
plain `sqlite3` on the file. Keys and anchor lie in directories of their own, as they must.

A record is one checkpoint of the thread: its row in `entries`, and the root blob of its state,
which lies in that row if it is small and in `blobs` if not. Its slot is the thread and the
position that the row stands at.
"""

import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from sealpoint.api import Store, init, open_store
from sealpoint.errors import SealpointError

try:  # agmi is published without type information
    from agmi.adapters.base import MemoryAdapter, Record  # type: ignore[import-untyped]
    from agmi.check import run  # type: ignore[import-untyped]
except ImportError as exc:  # pragma: no cover - the tests have it
    raise ImportError(
        "sealpoint.testing.agmi needs agmi: pip install agent-memory-integrity"
    ) from exc

__all__ = ["SqliteAdapter", "run_agmi"]

_THREAD = "agmi-thread"
_OTHER = "agmi-thread-b"
_SEEDED = "agmi-seed-"
_TAMPERED = "agmi-TAMP-"

_ROWS = "SELECT seq, header, seals, body, payload FROM entries WHERE thread = ? ORDER BY seq"
_GENESES = "SELECT thread, body FROM entries WHERE seq = 0"
_BLOB = "SELECT data FROM blobs WHERE thread = ? AND digest = ?"
_PUT_BLOB = "INSERT OR REPLACE INTO blobs (thread, digest, data) VALUES (?, ?, ?)"
_PUT_ENTRY = (
    "INSERT INTO entries (header, seals, body, payload, thread, seq) VALUES (?, ?, ?, ?, ?, ?)"
)
_SET_ENTRY = (
    "UPDATE entries SET header = ?, seals = ?, body = ?, payload = ? WHERE thread = ? AND seq = ?"
)
_DROP_ENTRY = "DELETE FROM entries WHERE thread = ? AND seq = ?"


class SqliteAdapter(MemoryAdapter):  # type: ignore[misc] # as above
    """A store in an SQLite file, attacked at rest and read through its own API."""

    name = "sealpoint-sqlite"
    detection_point = "read"
    supports_replay = True
    supports_metadata = True
    supports_snapshot = True

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._seeded = 0
        self.refusal: tuple[str, str] | None = None
        """The read that was refused last, and the code of the error."""

    # ------------------------------------------------------------------ lifecycle

    def setup(self) -> None:
        """Make an empty store, with keys and anchor elsewhere."""
        self._folder = Path(tempfile.mkdtemp(prefix="sealpoint-agmi-"))
        self._path.parent.mkdir()
        self._seeded = 0
        init(self._url, **self._places)

    def teardown(self) -> None:
        """Remove everything."""
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def seed(self, n: int) -> None:
        """Save `n` checkpoints."""
        with self._open() as store:
            for _ in range(n):
                self._save(store, _THREAD)

    def seed_other(self, n: int) -> None:
        """Save `n` checkpoints of another thread."""
        with self._open() as store:
            for _ in range(n):
                self._save(store, _OTHER)

    def append_genuine(self) -> None:
        """Save one more checkpoint."""
        self.seed(1)

    def reload(self) -> None:
        """Every call opens the store anew; there is nothing to reload."""

    def _save(self, store: Store, thread: str) -> None:
        number, self._seeded = self._seeded, self._seeded + 1
        store.thread(thread).save(
            {"note": f"{_SEEDED}{number:04}", "step": number}, metadata={"source": "loop"}
        )

    # ------------------------------------------------------------------ the store's own answer

    def verify(self) -> bool:
        """Open, load the head, list the history, load what it lists. Nothing else."""
        self.verify_detail: str | None = None
        self.refusal = None
        read = "open_store()"
        try:
            with self._open() as store:
                thread = store.thread(_THREAD)
                read = "load()"
                thread.load()
                read = "history()"
                for ref in list(thread.history()):
                    read = "load(ref)"
                    thread.load(ref)
        except SealpointError as error:
            self.refusal = (read, error.code)
            self.verify_detail = f"{read} refused: {error.code}"
            return False
        return True

    # ------------------------------------------------------------------ raw edits

    def read_all_raw(self) -> list[Record]:
        """The checkpoints of the thread as they lie in the file."""
        return self._read_raw(_THREAD)

    def read_other_raw(self) -> list[Record]:
        """The checkpoints of the other thread as they lie in the file."""
        return self._read_raw(_OTHER)

    def write_raw(self, record: Record) -> None:
        """Write a record over the slot at its ordinal, or after the tail."""
        slots = self.read_all_raw()
        fields = dict(record.fields)
        if record.seq < len(slots):
            fields["position"] = slots[record.seq].fields["position"]
            self._write(fields, new=False)
        else:
            self._write(fields, new=True)

    def delete_raw(self, seq: int) -> None:
        """Delete the row at an ordinal."""
        fields = self.read_all_raw()[seq].fields
        with closing(self._raw()) as database, database:
            database.execute(_DROP_ENTRY, (bytes.fromhex(fields["thread"]), fields["position"]))

    def mutate_payload(self, record: Record) -> Record:
        """Change what the state says: another text of the same length in the same encoding."""
        blob = bytes.fromhex(record.fields["blob"])
        changed = blob.replace(_SEEDED.encode(), _TAMPERED.encode())
        if changed == blob:
            raise RuntimeError("no seeded text in the blob")
        record.fields["blob"] = changed.hex()
        return record

    def forge_record(self, template: Record) -> Record:
        """A plausible next entry: in order, linked, with its own blob; only the key is lacking."""
        fields = self.mutate_payload(Record(template.seq + 1, dict(template.fields))).fields
        position = fields["position"] + 1
        root = hashlib.sha256(bytes.fromhex(fields["blob"])).hexdigest()
        body = json.loads(fields["body"])
        body.update(id=f"{body['id']}-next", root=root)
        header = json.loads(fields["header"])
        headers = {row[0]: row[1] for row in self._rows(fields["thread"])}
        header.update(
            seq=position,
            prev=hashlib.sha256(headers[position - 1]).hexdigest(),
            skip=hashlib.sha256(headers[position & (position - 1)]).hexdigest(),
            body=hashlib.sha256(_text(body).encode()).hexdigest(),
        )
        fields.update(position=position, header=_text(header), body=_text(body))
        return Record(seq=template.seq + 1, fields=fields)

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        """Copy a genuine record's bytes, blob included, into another slot."""
        victim = self.read_all_raw()[victim_seq].fields
        slot = {key: victim[key] for key in ("thread", "position")}
        self._write({**donor.fields, **slot}, new=False)

    def read_meta(self, seq: int) -> dict[str, Any]:
        """The metadata in the body of a record."""
        metadata: dict[str, Any] = json.loads(self.read_all_raw()[seq].fields["body"])["metadata"]
        return metadata

    def write_meta(self, seq: int, meta: Mapping[str, Any]) -> None:
        """Other metadata in the body of a record; its state stays."""
        record = self.read_all_raw()[seq]
        body = json.loads(record.fields["body"])
        body["metadata"] = dict(meta)
        self._write({**record.fields, "body": _text(body)}, new=False)

    def snapshot_store(self) -> bytes:
        """The file: with the store closed, all of it is in there."""
        return self._path.read_bytes()

    def restore_store(self, token: object) -> None:
        """Put the file back."""
        if not isinstance(token, bytes):
            raise TypeError("expected what snapshot_store returned")
        for side in ("-wal", "-shm"):
            self._path.with_name(self._path.name + side).unlink(missing_ok=True)
        self._path.write_bytes(token)

    def identity_of(self, record: Record) -> str:
        """The slot: thread and position of the row."""
        return f"{record.fields['thread']}/{record.fields['position']}"

    def payload_of(self, record: Record) -> str:
        """The bytes of the state."""
        return str(record.fields["blob"])

    def owner_of(self, record: Record) -> str:
        """The thread that the row belongs to."""
        return str(record.fields["thread"])

    # ------------------------------------------------------------------ the file

    @property
    def _path(self) -> Path:
        if self._folder is None:
            raise RuntimeError("expected setup() first")
        return self._folder / "disk" / "agents.db"

    @property
    def _url(self) -> str:
        return f"sqlite:///{self._path}"

    @property
    def _places(self) -> dict[str, Any]:
        folder = self._path.parent.parent
        return {"config_dir": folder / "config", "state_dir": folder / "state"}

    def _open(self) -> Store:
        return open_store(self._url, **self._places)

    def _raw(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path)

    def _rows(self, thread: str) -> list[tuple[int, bytes, bytes, bytes, bytes | None]]:
        with closing(self._raw()) as database:
            return database.execute(_ROWS, (bytes.fromhex(thread),)).fetchall()

    def _read_raw(self, name: str) -> list[Record]:
        with closing(self._raw()) as database:
            geneses = database.execute(_GENESES).fetchall()
            (thread,) = [at for at, body in geneses if json.loads(body).get("name") == name]
            found: list[Record] = []
            for position, header, seals, body, payload in self._rows(thread.hex()):
                if json.loads(header)["kind"] != "checkpoint":
                    continue
                root = bytes.fromhex(json.loads(body)["root"])
                stored = database.execute(_BLOB, (thread, root)).fetchone()
                blob: bytes = stored[0] if payload is None else payload
                fields = {
                    "thread": thread.hex(),
                    "position": position,
                    "header": header.decode(),
                    "seals": seals.decode(),
                    "body": body.decode(),
                    "blob": blob.hex(),
                    "beside": payload is not None,
                }
                found.append(Record(seq=len(found), fields=fields))
        return found

    def _write(self, fields: Mapping[str, Any], *, new: bool) -> None:
        """Write a row into its slot, and its blob to where the row keeps it."""
        slot = bytes.fromhex(fields["thread"]), fields["position"]
        columns = tuple(fields[column].encode() for column in ("header", "seals", "body"))
        root = bytes.fromhex(json.loads(fields["body"])["root"])
        blob = bytes.fromhex(fields["blob"])
        payload = blob if fields["beside"] else None
        with closing(self._raw()) as database, database:
            database.execute(_PUT_ENTRY if new else _SET_ENTRY, (*columns, payload, *slot))
            if payload is None:
                database.execute(_PUT_BLOB, (slot[0], root, blob))


def _text(document: Mapping[str, Any]) -> str:
    """JSON as the store spells it, so that only the meaning differs."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


class _Noting(SqliteAdapter):
    """Remembers the refusals of a run, one for each edit."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[tuple[str, str] | None] = []

    def teardown(self) -> None:
        """Take down which read refused the edit."""
        self.refusals.append(self.refusal)
        super().teardown()


def run_agmi() -> list[dict[str, str]]:
    """Make all edits, and say for each of them what came of it.

    Returns:
        For each edit its name, the verdict, the read that refused it first, and the code of the
        error; the last two are empty where nothing was refused.
    """
    adapter = _Noting()
    made = []
    for row, refusal in zip(run(adapter), adapter.refusals, strict=True):
        read, code = refusal or ("", "")
        made.append({"edit": row["edit"], "verdict": row["verdict"], "read": read, "code": code})
    return made
