# SPDX-License-Identifier: Apache-2.0
"""What an adapter of the yardstick does with any backend: answer, and make the nine edits.

A record is one checkpoint of a thread: its row, and the root blob of its state, which lies beside
that row if it is small and among the blobs if not. Its slot is the thread and the position that
the row stands at. How rows and blobs are read and written raw, each backend's adapter says.
"""

import hashlib
import json
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agmi.adapters.base import MemoryAdapter, Record  # type: ignore[import-untyped]

from sealpoint.api import Store, init, open_store
from sealpoint.errors import SealpointError

_THREAD = "agmi-thread"
_OTHER = "agmi-thread-b"
_SEEDED = "agmi-seed-"
_TAMPERED = "agmi-TAMP-"


class Row(NamedTuple):
    """An entry as it lies in the store."""

    position: int
    header: bytes
    seals: bytes
    body: bytes
    payload: bytes | None


class LedgerAdapter(MemoryAdapter):  # type: ignore[misc] # as above
    """A store on disk, attacked at rest and read through its own API."""

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
        self._disk.mkdir()
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
        self._write(fields)

    def delete_raw(self, seq: int) -> None:
        """Delete the row at an ordinal."""
        fields = self.read_all_raw()[seq].fields
        self._drop_row(bytes.fromhex(fields["thread"]), fields["position"])

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
        headers = {row.position: row.header for row in self._rows(bytes.fromhex(fields["thread"]))}
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
        self._write({**donor.fields, **slot})

    def read_meta(self, seq: int) -> dict[str, Any]:
        """The metadata in the body of a record."""
        metadata: dict[str, Any] = json.loads(self.read_all_raw()[seq].fields["body"])["metadata"]
        return metadata

    def write_meta(self, seq: int, meta: Mapping[str, Any]) -> None:
        """Other metadata in the body of a record; its state stays."""
        record = self.read_all_raw()[seq]
        body = json.loads(record.fields["body"])
        body["metadata"] = dict(meta)
        self._write({**record.fields, "body": _text(body)})

    def identity_of(self, record: Record) -> str:
        """The slot: thread and position of the row."""
        return f"{record.fields['thread']}/{record.fields['position']}"

    def payload_of(self, record: Record) -> str:
        """The bytes of the state."""
        return str(record.fields["blob"])

    def owner_of(self, record: Record) -> str:
        """The thread that the row belongs to."""
        return str(record.fields["thread"])

    # ------------------------------------------------------------------ what each backend says

    @property
    @abstractmethod
    def _url(self) -> str:
        """Where the store lies, below `disk`."""

    @abstractmethod
    def _threads(self) -> list[bytes]:
        """The ids of all threads."""

    @abstractmethod
    def _rows(self, thread: bytes) -> list[Row]:
        """The rows of a thread, in order."""

    @abstractmethod
    def _put_row(self, thread: bytes, row: Row) -> None:
        """Write a row into its slot, over what is there."""

    @abstractmethod
    def _drop_row(self, thread: bytes, position: int) -> None:
        """Delete the row of a slot."""

    @abstractmethod
    def _blob(self, thread: bytes, digest: bytes) -> bytes:
        """The bytes under a digest."""

    @abstractmethod
    def _put_blob(self, thread: bytes, digest: bytes, data: bytes) -> None:
        """Write bytes under a digest, over what is there."""

    # ------------------------------------------------------------------ records

    @property
    def _disk(self) -> Path:
        if self._folder is None:
            raise RuntimeError("expected setup() first")
        return self._folder / "disk"

    @property
    def _places(self) -> dict[str, Any]:
        folder = self._disk.parent
        return {"config_dir": folder / "config", "state_dir": folder / "state"}

    def _open(self) -> Store:
        return open_store(self._url, **self._places)

    def _read_raw(self, name: str) -> list[Record]:
        found: list[Record] = []
        for thread in self._threads():
            rows = self._rows(thread)
            if not rows or json.loads(rows[0].body).get("name") != name:
                continue
            for row in rows:
                if json.loads(row.header)["kind"] == "checkpoint":
                    found.append(Record(seq=len(found), fields=self._fields(thread, row)))
        return found

    def _fields(self, thread: bytes, row: Row) -> dict[str, Any]:
        root = bytes.fromhex(json.loads(row.body)["root"])
        blob = self._blob(thread, root) if row.payload is None else row.payload
        return {
            "thread": thread.hex(),
            "position": row.position,
            "header": row.header.decode(),
            "seals": row.seals.decode(),
            "body": row.body.decode(),
            "blob": blob.hex(),
            "beside": row.payload is not None,
        }

    def _write(self, fields: Mapping[str, Any]) -> None:
        """Write a row into its slot, and its blob to where the row keeps it."""
        thread, blob = bytes.fromhex(fields["thread"]), bytes.fromhex(fields["blob"])
        header, seals, body = (fields[part].encode() for part in ("header", "seals", "body"))
        payload = blob if fields["beside"] else None
        self._put_row(thread, Row(fields["position"], header, seals, body, payload))
        if payload is None:
            self._put_blob(thread, bytes.fromhex(json.loads(body)["root"]), blob)


def _text(document: Mapping[str, Any]) -> str:
    """JSON as the store spells it, so that only the meaning differs."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
