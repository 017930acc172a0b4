# SPDX-License-Identifier: Apache-2.0
"""The adapter of the file backend: raw edits are made on the files, by their description alone."""

import shutil
from pathlib import Path
from struct import Struct

from benchmarks.agmi._ledger import LedgerAdapter, Row

_MAGIC = b"sealpoint group 1\n"
_COUNT = Struct(">H")
_LENGTHS = Struct(">4I")
_ABSENT = 0xFFFFFFFF


class FileAdapter(LedgerAdapter):
    """A store in a directory of files."""

    name = "sealpoint-file"

    def snapshot_store(self) -> dict[str, bytes]:
        """Every file of the store, by its path."""
        return {
            str(path.relative_to(self._path)): path.read_bytes()
            for path in self._path.rglob("*")
            if path.is_file()
        }

    def restore_store(self, token: object) -> None:
        """Put every file back, and nothing else."""
        if not isinstance(token, dict):
            raise TypeError("expected what snapshot_store returned")
        shutil.rmtree(self._path)
        self._path.mkdir(mode=0o700)
        for name, data in token.items():
            _write(self._path / name, data, below=self._path)

    @property
    def _path(self) -> Path:
        return self._disk / "agents"

    @property
    def _url(self) -> str:
        return f"file://{self._path}"

    def _thread(self, thread: bytes) -> Path:
        return self._path / "threads" / thread.hex()[:2] / thread.hex()

    def _threads(self) -> list[bytes]:
        return [bytes.fromhex(path.name) for path in self._path.glob("threads/*/*")]

    def _groups(self, thread: bytes) -> dict[Path, list[Row]]:
        paths = [path for path in self._thread(thread).rglob("*-*") if path.is_file()]
        return {path: _parsed(path) for path in paths if not path.name.startswith("new-")}

    def _rows(self, thread: bytes) -> list[Row]:
        return sorted(row for rows in self._groups(thread).values() for row in rows)

    def _put_row(self, thread: bytes, row: Row) -> None:
        self._drop_row(thread, row.position)
        directory = self._thread(thread)
        # By the digits of the position: how many there are, then each of them but the last.
        digits = f"{row.position:x}"
        for part in (f"{len(digits):02x}", *digits[:-1]):
            directory /= part
        name = f"{row.position:016x}-{row.position:016x}"
        _write(directory / name, _built(row), below=self._path)

    def _drop_row(self, thread: bytes, position: int) -> None:
        """Delete a row; what shared its file gets files of its own."""
        for path, rows in self._groups(thread).items():
            if any(row.position == position for row in rows):
                path.unlink()
                for row in rows:
                    if row.position != position:
                        self._put_row(thread, row)

    def _blob_path(self, thread: bytes, digest: bytes) -> Path:
        return self._thread(thread) / "blobs" / digest.hex()[0] / digest.hex()

    def _blob(self, thread: bytes, digest: bytes) -> bytes:
        return self._blob_path(thread, digest).read_bytes()

    def _put_blob(self, thread: bytes, digest: bytes, data: bytes) -> None:
        _write(self._blob_path(thread, digest), data, below=self._path)


def _parsed(path: Path) -> list[Row]:
    data = path.read_bytes()
    (count,) = _COUNT.unpack_from(data, len(_MAGIC))
    table = len(_MAGIC) + _COUNT.size
    at = table + count * _LENGTHS.size
    rows = []
    for number in range(count):
        parts: list[bytes | None] = []
        for length in _LENGTHS.unpack_from(data, table + number * _LENGTHS.size):
            size = 0 if length == _ABSENT else length
            parts.append(None if length == _ABSENT else data[at : at + size])
            at += size
        header, seals, body, payload = parts
        position = int(path.name[:16], 16) + number
        rows.append(Row(position, header or b"", seals or b"", body or b"", payload))
    return rows


def _built(row: Row) -> bytes:
    parts = (row.header, row.seals, row.body, row.payload)
    lengths = _LENGTHS.pack(*(_ABSENT if part is None else len(part) for part in parts))
    return _MAGIC + _COUNT.pack(1) + lengths + b"".join(part or b"" for part in parts)


def _write(path: Path, data: bytes, *, below: Path) -> None:
    """Write a file, with the modes that the store's own files have."""
    missing = [each for each in path.parents if below in each.parents and not each.exists()]
    for directory in reversed(missing):
        directory.mkdir(mode=0o700)
    path.write_bytes(data)
    path.chmod(0o600)
