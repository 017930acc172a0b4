# SPDX-License-Identifier: Apache-2.0
"""Folders that a thread vouches for: sealed as one checkpoint, verified as one, read without a gap.

A trainer that writes several files (shards with an index, a configuration, optimizers) writes one
checkpoint. Its folder is sealed in place: the exact list of its files, each with its size and
digests, is the state of one checkpoint of the run's thread. All bytes are hashed, each time: an
attacker who can write there controls the file metadata of the system, such as times, and hashing
costs less than the preceding write.

The order of a verification, numbered below: (1) the thread's newest checkpoint, (2) the list of
names, (3) each file's digests, from its bytes, (4) the list once more. Bytes that are read through
`ModelFolder` are compared in the same read. A caller who has to give a path to a program that reads
it again uses a `verified_copy`: in a directory of this user alone, and verified there.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sealpoint import disk
from sealpoint.api import Store
from sealpoint.errors import (
    FormatRefused,
    ModelError,
    ModelLimitExceeded,
    ModelMalformed,
    SealpointError,
    UsageError,
)
from sealpoint.limits import MODEL_PICKLE_BYTES_MAX
from sealpoint.store import CheckpointRef
from sealpoint_models._device_placement import MapLocation
from sealpoint_models._file_manifest import (
    METADATA_KEY,
    TrainingRun,
    write_manifest,
    write_metadata,
)
from sealpoint_models._file_reader import FileDigests, Progress, ReadFile, unreadable
from sealpoint_models._folder_manifest import (
    FolderSeal,
    SealedFolder,
    describe_folder,
    save_folder_manifest,
)
from sealpoint_models._folder_reader import (
    SAFETENSORS,
    ContentDigest,
    FolderDigests,
    FolderProgress,
    ReadFolder,
    content_digest,
)
from sealpoint_models._model_file import ModelFile, digests_of_file
from sealpoint_models._torch_files import load_pt
from sealpoint_models.scan import Unknown
from sealpoint_models.scan._hidden_code import is_index, names_outside

_FILES_AT_ONCE = 2
"""While one file is being finished, the next one is already read."""
_COPY_BYTES = 1 << 20


def seal_folder(
    path: str | os.PathLike[str],
    *,
    store: Store,
    thread: str,
    metadata: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> CheckpointRef:
    """Seal a folder where it lies, as the newest checkpoint of a run; no file is changed.

    All files in it are first written to the disk, and hashed. Nobody may write to it at the same
    time.

    Args:
        path: The folder.
        store: An open store that vouches for it from now on.
        thread: The thread of the training run in it.
        metadata: A JSON object that the store keeps with the checkpoint, such as the step.
        progress: Called occasionally with the number of bytes done so far, and their total.

    Raises:
        ModelError: The folder holds a special file, a refused name, a file that changed during the
            call, or an index that names files outside; `ModelUnreadable`: it cannot be read.
        SealpointError: Whatever `Thread.save` raises.
    """
    run = required_run(store, thread)
    _check_metadata(metadata)
    with ReadFolder(path) as folder:
        digests = folder.digests(durable=True, progress=progress)
        _check_indices(folder, digests)
    return save_folder_manifest(run, digests, _name_of(path), metadata)


def _name_of(path: str | os.PathLike[str]) -> str:
    """The name of a folder, also where the path ends in two dots."""
    return os.path.basename(os.path.abspath(path))  # noqa: PTH100, PTH119 (Path keeps the dots)


def seal_file(
    path: str | os.PathLike[str],
    *,
    store: Store,
    thread: str,
    metadata: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> CheckpointRef:
    """Seal a safetensors file of any writer in its place, like a file of `save_checkpoint`.

    Args are those of `seal_folder`, and so are errors. `FormatRefused`: it is not safetensors.
    """
    run = required_run(store, thread)
    _check_metadata(metadata)
    with ReadFile(path) as file:
        try:
            digests = digests_of_file(file, progress)
        except (ModelMalformed, ModelLimitExceeded) as exc:
            raise FormatRefused(
                f"{file.what}: expected a safetensors file, found another format",
                hint="Convert it first: sealpoint model convert IN OUT. Or put it into a folder "
                "of its own, as it is, and seal the folder.",
            ) from exc
        try:
            disk.sync(file.fd)
        except OSError as exc:
            raise unreadable(file.what, exc) from exc
    beside = {**(metadata or {}), METADATA_KEY: write_metadata(digests, Path(path).name)}
    return run.store.thread(run.name).save(write_manifest(digests), metadata=beside)


def _check_indices(folder: ReadFolder, digests: FolderDigests) -> None:
    """Refuse an index that makes a program read files outside of the folder."""
    for name, sealed in digests.files.items():
        if not is_index(name):
            continue
        if sealed.size > MODEL_PICKLE_BYTES_MAX:
            raise ModelLimitExceeded(
                f"{folder.what}: expected an index of at most {MODEL_PICKLE_BYTES_MAX} bytes, "
                f"found {sealed.size} in {name!r}"
            )
        with folder.open(name) as file:
            data = file.read(0, min(file.size, sealed.size))
        if _memory_digests(data, sealed, folder.what) != sealed:
            raise folder.changed(name)
        outside = next(names_outside(data), None)
        if outside is not None:
            raise ModelMalformed(
                f"{folder.what}: expected an index of files next to it, found {outside!a} in "
                f"{name!r}",
                hint="Put that file into the folder, and its plain name into the index.",
            )


def required_run(store: Store, thread: str) -> TrainingRun:
    """The run of a caller, who has to name one.

    Raises:
        UsageError: The store or the thread is missing.
    """
    run = TrainingRun.of(store, thread)
    if run is None:
        raise UsageError("store: expected an open store, found None")
    return run


def _check_metadata(metadata: Mapping[str, Any] | None) -> None:
    if metadata is not None and METADATA_KEY in metadata:
        raise UsageError(f"metadata: expected no key {METADATA_KEY!r}, which is ours")


@dataclass(frozen=True, slots=True)
class _SealedPart:
    """The expectation of a thread about one safetensors file of a folder."""

    folder: "ModelFolder"
    digests: FileDigests

    @property
    def ref(self) -> CheckpointRef:
        return self.folder.ref

    def refusal(self, found: FileDigests | None, what: str) -> SealpointError:  # noqa: ARG002
        # The whole folder distinguishes an older one from an edited one; this file alone does not.
        return self.folder.refusal()


class ModelFolder:
    """A sealed folder that is open. `open_folder` makes one; use it in a `with` block.

    Its list of files is the one in the thread. Every read through it is compared with the digests
    of the thread in the same read, and nothing is read a second time.
    """

    def __init__(self, folder: ReadFolder, seal: FolderSeal, what: str | None = None) -> None:
        self._folder = folder
        self._seal = seal
        self._what = what or folder.what
        self._compare_names()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder. Tensors that were loaded stay."""
        self._folder.close()

    @property
    def ref(self) -> CheckpointRef:
        """The checkpoint that vouches for the folder."""
        return self._seal.ref

    @property
    def files(self) -> dict[str, int]:
        """The size of each file, by its path relative to the folder."""
        return {name: each.size for name, each in self._seal.digests.files.items()}

    def read(self, name: str) -> bytes:
        """The bytes of one file.

        Raises:
            UsageError: The folder has no file of this name.
            Edited, RolledBack, FileNotSealed: It differs from the sealed one.
        """
        sealed = self._sealed(name)
        with self._folder.open(name) as file:
            if file.size != sealed.size:
                raise self.refusal()
            data = file.read(0, file.size)
        found = _memory_digests(data, sealed, self._what)
        if found != sealed:
            raise self.refusal()
        return data

    def open(self, name: str) -> ModelFile:
        """One safetensors file, which verifies every read. Errors are those of `read`.

        Raises:
            FormatRefused: It is not safetensors.
        """
        sealed = self._sealed(name)
        if isinstance(sealed, ContentDigest):
            raise FormatRefused(
                f"{self._what}: expected a safetensors file, found another one: {name!r}",
                hint="ModelFolder.load_file reads files of torch.save, and ModelFolder.read bytes.",
            )
        file = self._folder.open(name)
        try:
            return ModelFile(file, _SealedPart(self, sealed))
        except BaseException:
            file.close()
            raise

    def load_file(
        self, name: str, map_location: MapLocation = "cpu", *, unknown: Unknown = "refuse"
    ) -> Any:
        """The result of `load_checkpoint` for one file, safetensors or of `torch.save`.

        A file of `torch.save` is read as a whole, into a file without a name. `map_location` and
        `unknown` are those of `load_checkpoint`: `training_args.bin` of transformers needs
        `unknown="inert"`. Errors are those of `read`, and of `load_checkpoint`.
        """
        if unknown not in ("refuse", "inert"):
            raise UsageError("unknown: expected 'refuse' or 'inert'")
        if isinstance(self._sealed(name), FileDigests):
            with self.open(name) as model:
                return model.load(map_location)
        return load_pt_bytes(self.read(name), f"{self._what}/{name}", map_location, unknown)

    def load(self, map_location: MapLocation = "cpu") -> dict[str, Any]:
        """The tensors of all safetensors files in it, by name; a few files are read at once.

        Raises:
            ModelMalformed: Two of the files have a tensor of the same name.
            Edited, RolledBack, FileNotSealed: A file differs from the sealed one.
        """
        tensors: dict[str, Any] = {}
        names = [name for name in self.files if name.endswith(SAFETENSORS)]
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            for found in pool.map(lambda name: self._tensors_of(name, map_location), names):
                twice = tensors.keys() & found.keys()
                if twice:
                    raise ModelMalformed(
                        f"{self._what}: expected each tensor in one file, found {min(twice)!r} in "
                        "two"
                    )
                tensors |= found
        return tensors

    def _tensors_of(self, name: str, map_location: MapLocation) -> dict[str, Any]:
        with self.open(name) as model:
            if model.has_structure:
                raise FormatRefused(
                    f"{self._what}: expected tensors by name, found a whole state: {name!r}",
                    hint=f"ModelFolder.load_file({name!r}) loads it.",
                )
            found: dict[str, Any] = model.load(map_location)
            return found

    def verify(self, progress: Progress | None = None) -> SealedFolder:
        """Compare every byte of the folder with the digests in the thread.

        Args:
            progress: Called occasionally with the number of bytes done so far, and their total.

        Raises:
            Edited, RolledBack, FileNotSealed: It differs from the sealed one.
        """
        digests = self._seal.digests
        report = FolderProgress(digests.size, progress)
        # (3) Each file's digests.
        for name, sealed in digests.files.items():
            if isinstance(sealed, FileDigests):
                with self.open(name) as model:
                    model.digests(report.of_file)
            else:
                with self._folder.open(name) as file:
                    if file.size != sealed.size or content_digest(file, report.of_file) != sealed:
                        raise self.refusal()
            report.next_file(sealed.size)
        self._compare_names()  # (4)
        described = describe_folder(self.ref)
        if described is None:
            raise ModelMalformed(f"{self._what}: the checkpoint is not one of a folder")
        return described

    def refusal(self) -> SealpointError:
        """The reason why the folder is not the expected one, from all its bytes."""
        folder, seal = self._folder, self._seal
        try:
            size = sum(folder.sizes(folder.names()).values())
            found = folder.digests(sizes=None if seal.is_size(size) else self.files)
        except ModelError as exc:
            return exc
        return seal.refusal(found, self._what)

    def copy_to(self, target: Path) -> None:
        """Copy the files to a new directory, with no more bytes than were sealed.

        Raises:
            Edited, RolledBack, FileNotSealed: A file has another size than was sealed.
            ModelError: It cannot be read or copied.
        """
        try:
            target.mkdir(mode=0o700)
            for name in self._seal.digests.directories:
                (target / name).mkdir(mode=0o700)
            for name, size in self.files.items():
                with self._folder.open(name) as file, (target / name).open("xb") as copy:
                    if file.size != size:
                        raise self.refusal()
                    for at in range(0, size, _COPY_BYTES):
                        copy.write(file.read(at, min(_COPY_BYTES, size - at)))
        except OSError as exc:
            raise unreadable(str(target), exc) from exc

    def _compare_names(self) -> None:
        names = self._folder.names()
        digests = self._seal.digests
        if names != (tuple(digests.files), digests.directories):
            raise self.refusal()

    def _sealed(self, name: str) -> FileDigests | ContentDigest:
        sealed = self._seal.digests.files.get(name)
        if sealed is None:
            raise UsageError(
                f"{self._what}: there is no file named {name!r}",
                hint="ModelFolder.files has their names.",
            )
        return sealed


def load_pt_bytes(data: bytes, what: str, map_location: MapLocation, unknown: Unknown) -> Any:
    """The result of `load_pt` for bytes that were already read, from a file without a name.

    Raises:
        ModelUnreadable: The temporary directory has no room for it.
        ModelError: It is refused.
    """
    with ExitStack() as opened:
        try:
            nameless = opened.enter_context(tempfile.TemporaryFile(buffering=0))
            disk.write_all(nameless.fileno(), data)
        except OSError as exc:
            raise unreadable(tempfile.gettempdir(), exc) from exc
        return load_pt(nameless, len(data), what, map_location, unknown)


def _memory_digests(
    data: bytes, sealed: FileDigests | ContentDigest, what: str
) -> FileDigests | ContentDigest | None:
    """The digests of a file whose bytes are in memory; None if it has none of this kind."""
    file = MemoryFile(data, what)
    if isinstance(sealed, ContentDigest):
        return content_digest(file)
    try:
        return digests_of_file(file)
    except ModelError:
        return None


class MemoryFile(ReadFile):
    """The bytes of a file that were already read, read again from memory."""

    def __init__(self, data: bytes, what: str) -> None:
        self.path = Path(what)
        self.what = what
        self.fd = -1
        self.size = len(data)
        self._data = memoryview(data)

    def read_into(self, memory: memoryview, offset: int) -> None:
        """Fill a piece of memory from a place in the file."""
        part = self._data[offset : offset + len(memory)]
        if len(part) != len(memory):
            raise ModelMalformed(f"{self.what}: expected more bytes, found the end")
        memory[:] = part


def open_folder(
    path: str | os.PathLike[str],
    *,
    store: Store,
    thread: str,
    ref: str | CheckpointRef | None = None,
) -> ModelFolder:
    """Open a folder that a thread vouches for, to read its sealed content and nothing else.

    Args:
        path: The folder.
        store: An open store that has to vouch for it.
        thread: The thread of the training run in it.
        ref: The checkpoint whose folder is meant; without it the newest one.

    Raises:
        Edited, RolledBack, FileNotSealed: Its list of files is not the one that was sealed.
        ModelError: It cannot be read, or holds a special file.
        SealpointError: Whatever `Thread.load` raises.
    """
    seal = FolderSeal.of(required_run(store, thread), ref)  # (1)
    folder = ReadFolder(path)
    try:
        return ModelFolder(folder, seal)  # (2)
    except BaseException:
        folder.close()
        raise


def load_folder(
    path: str | os.PathLike[str],
    map_location: MapLocation = "cpu",
    *,
    store: Store,
    thread: str,
    ref: str | CheckpointRef | None = None,
) -> dict[str, Any]:
    """The tensors of all safetensors files of a sealed folder, by name, verified in the same read.

    Args are those of `open_folder`, and of `load_checkpoint`; errors are those of `open_folder`
    and `ModelFolder.load`. Other files of the folder are not read: `open_folder` reads them.
    """
    with open_folder(path, store=store, thread=thread, ref=ref) as folder:
        return folder.load(map_location)


def verify_folder(
    path: str | os.PathLike[str],
    *,
    store: Store,
    thread: str,
    ref: str | CheckpointRef | None = None,
    progress: Progress | None = None,
) -> SealedFolder:
    """Verify that a folder is, byte for byte, the one that a run sealed last.

    Anyone who can write to the folder can change it afterwards, before another program reads it:
    `verified_copy`, `open_folder` and `load_folder` leave no such gap.

    Args are those of `open_folder`; `progress` is that of `ModelFolder.verify`.

    Raises:
        Edited, RolledBack, FileNotSealed: It was changed, is an older one, or is not one of this
            thread.
        ModelError: It cannot be read, or holds a special file.
        SealpointError: Whatever `Thread.load` raises.
    """
    with open_folder(path, store=store, thread=thread, ref=ref) as folder:
        return folder.verify(progress)


@contextmanager
def verified_copy(
    path: str | os.PathLike[str],
    *,
    store: Store,
    thread: str,
    ref: str | CheckpointRef | None = None,
    directory: str | os.PathLike[str] | None = None,
) -> Iterator[Path]:
    """A copy of a sealed folder for programs that read paths, in a `with` block.

    It is created in a new directory that only this user can enter, and verified there: a user who
    can write to the folder itself cannot change the copy. It has the name of the folder, and is
    removed at the end of the block.

    Args:
        path: The folder.
        store: An open store that has to vouch for it.
        thread: The thread of the training run in it.
        ref: The checkpoint whose folder is meant; without it the newest one.
        directory: The parent of the copy: it needs as much room as the folder. Without it, the
            temporary directory. Others must not be able to replace its content.

    Raises:
        Edited, RolledBack, FileNotSealed: As `verify_folder`.
        UsageError: Others can rename what is in the directory, or above it.
        ModelError: It cannot be read or copied, or holds a special file.
        SealpointError: Whatever `Thread.load` raises.
    """
    seal = FolderSeal.of(required_run(store, thread), ref)
    name = _name_of(path)
    given = directory or tempfile.gettempdir()
    try:
        place = Path(os.path.realpath(given))
        _refuse_shared(place)
        private = tempfile.mkdtemp(prefix="sealpoint-", dir=place)
    except (OSError, ValueError) as exc:
        raise unreadable(str(given), exc) from exc
    try:
        copy = Path(private, name)
        with ReadFolder(path) as source, ModelFolder(source, seal) as folder:
            folder.copy_to(copy)
        with ReadFolder(copy) as made, ModelFolder(made, seal, str(path)) as folder:
            folder.verify()
        yield copy
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _refuse_shared(place: Path) -> None:
    """Refuse a directory whose subdirectories others can replace."""
    with disk.refusing(UsageError, place):
        disk.require_owner(place.stat(), root_too=True)
    for part in (place, *place.parents):
        found = part.stat()
        if not found.st_mode & stat.S_ISVTX:  # where each renames only what is theirs
            with disk.refusing(UsageError, part):
                disk.require_mode(found, disk.OTHERS_WRITE)
