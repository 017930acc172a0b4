# SPDX-License-Identifier: Apache-2.0
"""Import of the framework's file-storage checkpoints into a sealed store.

Nobody can verify that those files are unchanged: the import seals their content at the time of the
import. So nothing in them is executed, each records that it was imported and from which bytes
(`Origin.of_file`, and `imported` in its metadata), and the gate judges a resume from it like a
resume from a copy.

- Only regular files of the directory itself are opened, links are not followed, and files above the
  size limit are not read. The bytes that are judged are the bytes that are saved: a file that
  changed between the two reads is refused.
- A refused file is reported with the reason, and left out; all others are imported.
- A lineage becomes the thread that the storage itself would have created, the newest last.
- A repeated import imports nothing twice, and restores nothing that was deleted since.

`_pickled_values` defines the allowed values.
"""

import base64
import binascii
import heapq
import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum, unique
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from agent_framework import WorkflowCheckpoint

from sealpoint import disk
from sealpoint.adapters.guarded_runs import RunPosition, SaveDraft
from sealpoint.api import Store
from sealpoint.errors import (
    DecodeError,
    EncodeError,
    FileRefused,
    HeadMoved,
    IdReused,
    NeedsApproval,
    NotOwner,
    Paused,
    ReadOnly,
    ResumeRefused,
    SealpointError,
    Superseded,
    UnknownThread,
    UsageError,
)
from sealpoint.ledger import Kind, Origin
from sealpoint.limits import BODY_BYTES_MAX, IMPORT_FILE_BYTES_MAX
from sealpoint.world import visible
from sealpoint_agent_framework._declared_types import allow_types_of
from sealpoint_agent_framework._pickled_values import KnownTypes, PickledValues
from sealpoint_agent_framework._storage import (
    SealedCheckpointStorage,
    metadata_of,
    question_of,
)

IMPORTED = "imported"
"""The key in a checkpoint's metadata that has the SHA-256 of the file it was imported from."""

_SUFFIX = ".json"
_PICKLED, _TYPE = "__pickled__", "__type__"
_GROUP_MAX = 16
_REMOVALS = frozenset(kind.word for kind in (Kind.PRUNE, Kind.DELETE, Kind.ERASE))
_REASON = "more of it is imported from the files of the framework's own storage"
_SHOWN_CHARS_MAX = BODY_BYTES_MAX // 2
_OF_A_FILE = (EncodeError, DecodeError, FileRefused, UsageError)
_OF_A_THREAD = (HeadMoved, IdReused, NeedsApproval, NotOwner, Paused, ResumeRefused, Superseded)


@unique
class Fate(StrEnum):
    """The result of a file."""

    IMPORTED = "imported"
    PRESENT = "already there"
    REFUSED = "refused"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFate:
    """One file of the directory, and its result."""

    file: str
    fate: Fate
    thread: str | None = None
    checkpoint: str | None = None
    sha256: str | None = None
    why: str | None = None
    """The reason for refusing or skipping a file; for others, additional notes."""
    code: str | None = None
    """The code of the error that refused it."""
    hint: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {name: getattr(self, name) for name in self.__slots__} | {"fate": str(self.fate)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The results of every file of a directory."""

    directory: str
    dry_run: bool
    files: tuple[FileFate, ...]
    """In the order of their names."""
    notes: tuple[str, ...]
    """Notes about the directory."""

    @property
    def counts(self) -> dict[Fate, int]:
        """How many files had each result."""
        found = Counter(each.fate for each in self.files)
        return {fate: found[fate] for fate in Fate}

    @property
    def refused(self) -> tuple[FileFate, ...]:
        """The files that were refused."""
        return tuple(each for each in self.files if each.fate is Fate.REFUSED)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "directory": self.directory,
            "dry_run": self.dry_run,
            "counts": {str(fate): count for fate, count in self.counts.items()},
            "files": [each.as_dict() for each in self.files],
            "notes": list(self.notes),
        }


def import_checkpoints(
    store: Store,
    directory: str | Path,
    *,
    workflows: Iterable[Any] = (),
    main: str | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> ImportReport:
    """Import the checkpoints of a `FileCheckpointStorage` into a store, executing nothing.

    Stop the workers of the old storage first. Files that were imported before a failure of the
    store stay; a repeated import continues from there.

    Args:
        store: An open store, with the rules of the application's types; for a dry run it may be
            open for reading alone.
        directory: The directory of the `FileCheckpointStorage`.
        workflows: Workflows whose types may be in the files, as
            `SealedCheckpointStorage.for_workflow` finds them.
        main: The module that ran as a program, if its types are in the files.
        dry_run: Only report the planned results.
        progress: Called with the number of files read so far, and their total.

    Raises:
        UsageError: The directory is not a directory or cannot be read; or an element of `workflows`
            is not a workflow.
        RuleInvalid: Two types have one name.
        SealpointError: Verification of the store failed, or it cannot be written.
    """
    storage = SealedCheckpointStorage(store)
    for workflow in workflows:
        allow_types_of(workflow, store.registry)
    with _Directory(Path(directory)) as opened:
        run = _Import(storage, opened, KnownTypes(store.registry, main), dry_run=dry_run)
        fates = run.run(progress)
        return ImportReport(
            directory=str(directory),
            dry_run=dry_run,
            files=tuple(fates[name] for name in sorted(fates)),
            notes=tuple(opened.notes()),
        )


class _Directory:
    """An open directory, and the files in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._strangers = 0

    def __enter__(self) -> Self:
        try:
            self._descriptor = disk.open_plain(self._path, disk.DIRECTORY)
        except disk.Unsafe as exc:
            raise UsageError(
                f"{self._path}: {exc}", hint="Give the path of the directory itself."
            ) from exc
        except OSError as exc:
            raise UsageError(
                f"{self._path}: it cannot be read: {exc.strerror or type(exc).__name__}",
                hint="Give the directory that FileCheckpointStorage was made with.",
            ) from exc
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def names(self) -> list[str]:
        """The names of all its files."""
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208 (of what was opened)

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            FileRefused: It is not a regular file, is too large, or cannot be read.
        """
        try:
            with os.fdopen(disk.open_plain(name, disk.FILE, within=self._descriptor), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise disk.Unsafe(f"expected a file, found {disk.kind_of(found)}")
                self._strangers += _is_of_another(found)
                data = file.read(IMPORT_FILE_BYTES_MAX + 1)
        except disk.Unsafe as exc:
            raise FileRefused(str(exc), hint=_LINK_HINT) from exc
        except OSError as exc:
            why = exc.strerror or type(exc).__name__
            raise FileRefused(f"it cannot be read: {why}", hint=_READ_HINT) from exc
        if len(data) > IMPORT_FILE_BYTES_MAX:
            raise FileRefused(f"it is larger than {IMPORT_FILE_BYTES_MAX} bytes")
        return data

    def notes(self) -> Iterator[str]:
        """Notes about access that other users have to it."""
        found = os.fstat(self._descriptor)
        for check in (
            disk.require_owner,
            lambda each: disk.require_mode(each, disk.OTHERS_WRITE),
        ):
            try:
                check(found)
            except disk.Unsafe as exc:
                yield f"{self._path}: {exc}"
        if self._strangers:
            yield f"{self._path}: files of other users in it: {self._strangers}"


_LINK_HINT = "Only files directly in the directory are imported."
_READ_HINT = "See to its permissions, and run it again."


def _is_of_another(found: os.stat_result) -> bool:
    try:
        disk.require_owner(found)
    except disk.Unsafe:
        return True
    return False


class _Header(NamedTuple):
    """The statements of a file about its checkpoint, in plain JSON."""

    file: str
    digest: str
    id: str
    previous: str | None
    workflow: str
    at: datetime


class _Import:
    """One pass over a directory.

    (1) Every file is read, and its header is judged.
    (2) Headers are put in order, lineage by lineage: a checkpoint comes after the one that it
        continues; among those that may come next, the oldest comes first.
    (3) Every file is read again, and refused if it has changed.
    (4) Its values are built from symbols, and its checkpoint is assembled.
    (5) The checkpoint is saved in the thread of the previous one, or begins a thread.
    """

    def __init__(
        self,
        storage: SealedCheckpointStorage,
        directory: _Directory,
        known: KnownTypes,
        *,
        dry_run: bool,
    ) -> None:
        self._storage = storage
        self._directory = directory
        self._known = known
        self._dry_run = dry_run
        self._fates: dict[str, FileFate] = {}
        self._there = {ref.id: (thread, ref) for thread, ref in storage.places.all()}
        self._threads = {id_: thread for id_, (thread, _) in self._there.items()}
        """The thread of each checkpoint, those of this pass included."""
        self._refused: set[str] = set()
        """The ids of checkpoints whose files were refused."""

    def run(self, progress: Callable[[int, int], object] | None) -> dict[str, FileFate]:
        """Process all files, and report the result of each."""
        headers = []
        for name in self._directory.names():  # (1)
            if not name.endswith(_SUFFIX) or name.startswith("."):
                self._note(name, Fate.LEFT_OUT, why="it is not named like a checkpoint")
                continue
            with _Refusing(self, name):
                headers.append(self._header(name))
        for lineage in self._lineages(headers):  # (2)
            self._take_lineage(lineage)
            if progress is not None:
                progress(len(self._fates), len(headers))
        return self._fates

    def refuse(self, file: str, checkpoint: str | None, error: SealpointError) -> None:
        """Leave a file out, and record why."""
        self._refused.add(checkpoint or file.removesuffix(_SUFFIX))
        said = {"why": error.message, "code": error.code, "hint": error.hint}
        self._note(file, Fate.REFUSED, checkpoint=checkpoint, **said)

    def _note(self, file: str, fate: Fate, **said: Any) -> None:
        self._fates[file] = FileFate(file=visible(file), fate=fate, **said)

    # ------------------------------------------------------------------ the order

    def _header(self, name: str) -> _Header:
        data = self._directory.read(name)
        found = _parse(data)
        id_, previous = found.get("checkpoint_id"), found.get("previous_checkpoint_id")
        workflow, at = found.get("workflow_name"), found.get("timestamp")
        if type(id_) is not str or type(workflow) is not str or type(at) is not str:
            raise FileRefused("expected a checkpoint with an id, a workflow and a timestamp")
        if previous is not None and type(previous) is not str:
            raise FileRefused("expected the id of the checkpoint before it")
        if f"{id_}{_SUFFIX}" != name:
            raise FileRefused(
                f"expected the checkpoint that it is named after, found {visible(id_[:80])!r}",
                hint="The storage names every file after its checkpoint: find out who renamed it.",
            )
        return _Header(name, sha256(data).hexdigest(), id_, previous, workflow, _moment(at))

    def _lineages(self, headers: Iterable[_Header]) -> Iterator[list[_Header]]:
        by_id = {each.id: each for each in headers}
        after: dict[str, list[_Header]] = {}
        first = []
        for each in by_id.values():
            if each.previous in by_id:
                after.setdefault(str(each.previous), []).append(each)
            else:
                first.append(each)
        for each in sorted(first, key=_age):
            lineage = _in_order(each, after)
            for met in lineage:
                del by_id[met.id]
            yield lineage
        for id_, each in sorted(by_id.items()):
            self.refuse(each.file, id_, FileRefused("its lineage leads back to itself"))

    # ------------------------------------------------------------------ one lineage

    def _take_lineage(self, lineage: list[_Header]) -> None:
        writes: dict[str, _ThreadWrites] = {}
        for header in lineage:
            with _Refusing(self, header.file, header.id):
                thread = self._thread_of(header)
                self._threads[header.id] = thread
                if not self._is_there(header):
                    if thread not in writes:
                        writes[thread] = _ThreadWrites(self, thread, self._storage.store)
                    self._take(header, writes[thread])
            if header.id in self._refused:
                self._threads.pop(header.id, None)
        for each in writes.values():
            each.flush()

    def _is_there(self, header: _Header) -> bool:
        if header.id not in self._there:
            return False
        thread, ref = self._there[header.id]
        if ref.metadata.get(IMPORTED) != header.digest:
            raise IdReused(
                f"thread {thread!r} has another checkpoint of this id",
                hint="Find out which of the two is meant; what is sealed stays as it is.",
            )
        said = {"checkpoint": header.id, "sha256": header.digest}
        self._note(header.file, Fate.PRESENT, thread=thread, **said)
        return True

    def _thread_of(self, header: _Header) -> str:
        known = self._threads.get(header.id)  # it is there
        if known is None and header.previous is not None:
            known = self._threads.get(header.previous)
        return known or self._storage.places.new_thread(header.workflow, header.id)

    def _take(self, header: _Header, writes: "_ThreadWrites") -> None:
        if writes.has_removals:
            why = f"thread {writes.name!r} has given up checkpoints, which are not brought back"
            self._note(header.file, Fate.LEFT_OUT, checkpoint=header.id, why=why)
            return
        data = self._directory.read(header.file)  # (3)
        if sha256(data).hexdigest() != header.digest:
            raise FileRefused(
                "it changed while it was imported",
                hint="Stop the workers of the old storage, and run it again.",
            )
        checkpoint = _FileValues(self._known).checkpoint(_parse(data))  # (4)
        registry = self._storage.store.registry
        draft = SaveDraft(
            checkpoint.to_dict(),
            checkpoint.checkpoint_id,
            checkpoint.previous_checkpoint_id,
            {**metadata_of(checkpoint), IMPORTED: header.digest},
            None,
            question=question_of(checkpoint, registry),
            origin=Origin.of_file(header.digest, header.at),
        )
        _require_room(draft)
        registry.encode(draft.value)  # what cannot be saved is refused before anything is
        if self._dry_run:
            self.arrived(header, writes.name)
        else:
            writes.add(header, draft)  # (5)

    def arrived(self, header: _Header, thread: str) -> None:
        """Note that a checkpoint is in a thread, or would be in a real run."""
        why = None
        if header.previous in self._refused:
            why = f"checkpoint {header.previous!r} before it was refused: it begins a thread"
        said = {"checkpoint": header.id, "sha256": header.digest, "why": why}
        self._note(header.file, Fate.IMPORTED, thread=thread, **said)


def _require_room(draft: SaveDraft) -> None:
    """Refuse a checkpoint that an entry could not hold, before it blocks others."""
    shown = json.dumps([draft.question, draft.metadata])
    if len(shown) > _SHOWN_CHARS_MAX:
        raise FileRefused(
            f"what it asks people takes {len(shown)} characters, more than {_SHOWN_CHARS_MAX}"
        )


def _age(header: _Header) -> tuple[datetime, str]:
    return header.at, header.id


def _in_order(first: _Header, after: Mapping[str, list[_Header]]) -> list[_Header]:
    """A checkpoint and all its descendants."""
    ordered, ready = [], [(_age(first), first)]
    while ready:
        _, each = heapq.heappop(ready)
        ordered.append(each)
        for following in after.get(each.id, ()):
            heapq.heappush(ready, (_age(following), following))
    return ordered


class _ThreadWrites:
    """The writes to one thread: in one session, in batches."""

    def __init__(self, run: _Import, name: str, store: Store) -> None:
        self.name = name
        self._run = run
        self._thread = store.thread(name)
        self._waiting: list[tuple[_Header, SaveDraft]] = []
        self._position: RunPosition | None = None
        kinds = set(_kinds_of(store, name))
        self.has_removals = not kinds.isdisjoint(_REMOVALS)
        """Whether a missing checkpoint may have existed and been deleted."""
        if kinds:
            # With this position, an existing thread continues deliberately.
            self._position = RunPosition(begins=True, rising=False, deliberate=_REASON)

    def add(self, header: _Header, draft: SaveDraft) -> None:
        """Save a checkpoint, now or with those that follow."""
        if self._position is not None:
            draft.position, self._position = self._position, None
        self._waiting.append((header, draft))
        if len(self._waiting) >= _GROUP_MAX:
            self.flush()

    def flush(self) -> None:
        """Save the waiting checkpoints."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        outcomes = self._thread.adapter.commit([draft for _, draft in waiting])
        for (header, _), outcome in zip(waiting, outcomes, strict=True):
            with _Refusing(self._run, header.file, header.id):
                if isinstance(outcome, SealpointError):
                    raise outcome
                self._run.arrived(header, self.name)


def _kinds_of(store: Store, thread: str) -> Iterator[str]:
    """The kinds of entries in a thread; none if the thread does not exist."""
    with suppress(UnknownThread):
        yield from (record.kind for record in store.audit(thread=thread))


class _Refusing:
    """Turns an error in one file into its result; errors of the store are raised."""

    def __init__(self, run: _Import, file: str, checkpoint: str | None = None) -> None:
        self._run, self._file, self._checkpoint = run, file, checkpoint

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, ReadOnly) or not isinstance(error, (*_OF_A_FILE, *_OF_A_THREAD)):
            return False
        self._run.refuse(self._file, self._checkpoint, error)
        return True


# ---------------------------------------------------------------------- what a file holds


class _FileValues:
    """The values of one file."""

    def __init__(self, known: KnownTypes) -> None:
        self._values = PickledValues(known)

    def checkpoint(self, found: Mapping[str, Any]) -> WorkflowCheckpoint:
        """The checkpoint that a file holds.

        Raises:
            FileRefused: It holds something else, or a value that may not be imported.
        """
        fields = {name: self._decoded(item) for name, item in found.items()}
        return cast("WorkflowCheckpoint", self._values.framework_object(WorkflowCheckpoint, fields))

    def _decoded(self, item: Any) -> Any:
        """A value as the storage's own reader returns it, except values that need execution."""
        if type(item) is dict:
            if _PICKLED in item and _TYPE in item:
                return self._unpickled(item)
            return {key: self._decoded(each) for key, each in item.items()}
        if type(item) is list:
            return [self._decoded(each) for each in item]
        return self._values.value(item)

    def _unpickled(self, item: Mapping[str, Any]) -> Any:
        text, key = item[_PICKLED], item[_TYPE]
        if item.keys() != {_PICKLED, _TYPE} or type(text) is not str or type(key) is not str:
            raise FileRefused("expected a pickle and the name of its type")
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as exc:
            raise FileRefused("expected a pickle in base 64") from exc
        if base64.b64encode(data).decode() != text:
            raise FileRefused("expected a pickle in base 64")
        value = self._values.unpickled(data, "pickle")
        if not self._values.is_called(value, key):
            raise FileRefused("expected a pickle of the type that the file says it is")
        return value


def _parse(data: bytes) -> dict[str, Any]:
    """The JSON of a file; the framework also writes NaN and infinities."""
    try:
        found = json.loads(data.decode(), object_pairs_hook=_object)
    except (ValueError, RecursionError) as exc:
        raise FileRefused("expected JSON in UTF-8, no key twice in one object") from exc
    if type(found) is not dict:
        raise FileRefused("expected a JSON object")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError
    return made


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise FileRefused("expected a timestamp in ISO 8601") from exc
