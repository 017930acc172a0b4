# SPDX-License-Identifier: Apache-2.0
"""OpenClaw's folder: where its databases and files are, and an inventory of all of them.

Links are not followed: a link counts by where it leads to, and the target counts only if a
folder of the settings covers it. A file is opened without following links or waiting for a pipe.
Of a file from which Lobster resumes a workflow, each step has a digest of its own as well.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sealpoint.errors import StorageUnavailable, UsageError
from sealpoint_openclaw._classes import DatabaseKind, StateClass, file_class
from sealpoint_openclaw._databases import open_database, read_database
from sealpoint_openclaw._inventory import Database, Digests, Inventory

STATE_DATABASE = "state/openclaw.sqlite"

_AGENT_DATABASES = "agents/*/agent/openclaw-agent.sqlite"
_TEMPORARY = "tmp"
_READ_BYTES = 1 << 20
_STEP_LETTERS_MAX = 80
_STEP = "//step "
"""No path of a file contains this."""
_RESUME_FILE = re.compile(
    r"(?:.*/)?(?:pipeline|workflow)_resume_[^/]*[.]json(?:, step .*)?", re.DOTALL
)


def is_resume_file(name: str) -> bool:
    """Whether Lobster resumes a workflow from a file, or a difference names a step of one."""
    return bool(_RESUME_FILE.fullmatch(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The folder of an OpenClaw gateway, and other folders that it uses."""

    root: Path
    """The state folder: `OPENCLAW_STATE_DIR`, or `~/.openclaw`."""
    others: Mapping[str, Path] = field(default_factory=dict)
    """Folders elsewhere by the names that paths in them begin with, such as `workspace`."""

    def require(self) -> None:
        """Refuse a folder without the databases of OpenClaw.

        Raises:
            UsageError: It holds no such database, or only the files of an older version.
        """
        if (self.root / STATE_DATABASE).is_file():
            return
        if any(self.root.glob("agents/*/sessions/sessions.json")):
            raise UsageError(
                f"{self.root}: OpenClaw keeps its sessions in files here, as before 2026.8",
                hint="Upgrade OpenClaw, start it once, and run this again.",
            )
        raise UsageError(
            f"{self.root}: there is no {STATE_DATABASE} here",
            hint="Start OpenClaw once, or name its state folder: --folder DIR",
        )

    def databases(self) -> dict[str, tuple[Path, DatabaseKind]]:
        """Return every database, by its path from the folder."""
        found = {STATE_DATABASE: (self.root / STATE_DATABASE, DatabaseKind.STATE)}
        for path in [*sorted(self.root.glob(_AGENT_DATABASES)), *self._registered()]:
            if path.is_file():  # SQLite would wait at a pipe for ever
                found.setdefault(self._name(path), (path, DatabaseKind.AGENT))
        return found

    def _registered(self) -> list[Path]:
        """Return the databases of agents that the gateway has on record."""
        with open_database(self.root / STATE_DATABASE) as connection:
            names = {row[1] for row in connection.execute("PRAGMA table_list")}
            if "agent_databases" not in names:
                return []
            rows = connection.execute("SELECT path FROM agent_databases ORDER BY path").fetchall()
        return [self.root / path for (path,) in rows if isinstance(path, str)]

    def _name(self, path: Path) -> str:
        """Return the path of something from the folder, or its whole path if it is elsewhere."""
        if path.is_relative_to(self.root):
            return _text(path.relative_to(self.root))
        return _text(path)

    def path(self, name: str) -> Path:
        """Return the whole path of a file that `files` calls by a name."""
        first, _, rest = name.partition("/")
        return self.others[first] / rest if first in self.others else self.root / name

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield every file and link that counts, by its path from the folder."""
        skipped = {
            path.with_name(f"{path.name}{suffix}")
            for path in (path.resolve() for path, _ in self.databases().values())
            for suffix in ("", "-wal", "-shm")
        }
        inner = {path.resolve() for path in self.others.values()}
        inner.add(self.root.resolve() / _TEMPORARY)
        for prefix, given in [("", self.root), *self.others.items()]:
            root = given.resolve()
            for path in _walk(root, inner if not prefix else frozenset()):
                name = _text(path.relative_to(root))
                name = f"{prefix}/{name}" if prefix else name
                if file_class(name) is not StateClass.IGNORED and path not in skipped:
                    yield name, path

    def inventory(self, digests: Digests, seen: "Seen | None" = None) -> Inventory:
        """Return the inventory of the folder.

        Args:
            digests: Makes the digests.
            seen: The last reading of the running gateway. A file that has the same
                times and size is not read again, and of a history only the newer rows. Without it,
                every row and file is read.

        Raises:
            StorageUnavailable: Something of it cannot be read.
        """
        seen = Seen() if seen is None else seen
        databases = {
            name: seen.database(
                name,
                [path, path.with_name(f"{path.name}-wal")],
                partial(read_database, path, kind, digests),
            )
            for name, (path, kind) in self.databases().items()
        }
        files: dict[str, bytes] = {}
        for name, path in self.files():
            with suppress(FileNotFoundError):  # the gateway has removed it meanwhile
                files |= seen.file(name, path, partial(_file_digests, name, path, digests))
        return Inventory(databases=databases, files=files)


class Seen:
    """The last reading of a running gateway, by the times and sizes of its files.

    A process of the gateway's user could keep those while it changes a file. So this serves only
    seals between a verified start and the end of the gateway, where such a process can do anything.
    """

    def __init__(self) -> None:
        self._databases: dict[str, tuple[list[object], Database]] = {}
        self._files: dict[str, tuple[object, dict[str, bytes]]] = {}

    def database(
        self, name: str, paths: list[Path], read: Callable[[Database | None], Database]
    ) -> Database:
        """Return the inventory of a database, read again where a file of it has changed."""
        stamps = [_stamp(path) for path in paths]
        known = self._databases.get(name)
        if known is not None and known[0] == stamps:
            return known[1]
        database = read(None if known is None else known[1])
        self._databases[name] = stamps, database
        return database

    def file(self, name: str, path: Path, read: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
        """Return the digests of a file, read again if it has changed."""
        stamp = _stamp(path)
        known = self._files.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        found = read()
        self._files[name] = stamp, found
        return found


def _stamp(path: Path) -> object:
    """Return what changes with a file; None if it does not exist."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _walk(root: Path, elsewhere: frozenset[Path] | set[Path]) -> Iterator[Path]:
    """Yield everything but directories, in the order of names."""
    for directory, names, entries in os.walk(root, onerror=_unreadable):
        here = Path(directory)
        names[:] = sorted(name for name in names if (here / name) not in elsewhere)
        links = [name for name in names if (here / name).is_symlink()]
        yield from sorted(here / name for name in [*entries, *links])


def _unreadable(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):  # the gateway has removed it meanwhile
        return
    raise StorageUnavailable(
        f"{error.filename}: this folder of OpenClaw cannot be read: {error.strerror}",
        hint="Run this as a user who may read all of OpenClaw's folder.",
    ) from error


def _text(path: Path) -> str:
    """Return a path as text; bytes that are no UTF-8 are written so that no two names agree."""
    try:
        text = path.as_posix()
        text.encode()
    except UnicodeEncodeError:
        return f"bytes:{os.fsencode(path).hex()}"
    return f"./{text}" if text.startswith("bytes:") else text


def _file_digests(name: str, path: Path, digests: Digests) -> dict[str, bytes]:
    """Return the digest of a file, of where a link leads, or of the kind of anything else.

    Steps of Lobster follow, by their names.
    """
    digest = digests.file()
    found = path.lstat()
    mode = found.st_mode
    if stat.S_ISLNK(mode):
        digest.update(b"link\0" + os.fsencode(path.readlink()))
        return {name: digest.digest()}
    if not stat.S_ISREG(mode):
        digest.update(b"kind\0" + str(stat.S_IFMT(mode)).encode())
        return {name: digest.digest()}
    digest.update(b"file\0")
    if file_class(name) is StateClass.EXACT:  # which the gateway would skip if it cannot read it
        digest.update(f"{found.st_uid} {mode & (stat.S_IRUSR | stat.S_IXUSR)}\0".encode())
    first = b""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            while data := file.read(_READ_BYTES):
                first = first or data
                digest.update(data)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise StorageUnavailable(
            f"{path}: this file of OpenClaw cannot be read: {exc.strerror}",
            hint="Run this as a user who may read all of OpenClaw's folder.",
        ) from exc
    steps = _steps(first) if is_resume_file(name) else ()
    return {name: digest.digest()} | {
        f"{name}{_STEP}{step}": digests.row([("step", json.dumps(value, sort_keys=True))])
        for step, value in steps
    }


def _steps(data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield each step of a resume file of Lobster; none if it is not one that Lobster wrote."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    found = document if isinstance(document, dict) else {}
    pipeline, results = found.get("pipeline"), found.get("steps")
    for number, step in enumerate(pipeline if isinstance(pipeline, list) else (), start=1):
        name = step.get("name") if isinstance(step, dict) else ""
        yield f"{number} {json.dumps(name)[:_STEP_LETTERS_MAX]}", step
    for name, result in (results if isinstance(results, dict) else {}).items():
        yield json.dumps(name)[:_STEP_LETTERS_MAX], result
