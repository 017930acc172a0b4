# SPDX-License-Identifier: Apache-2.0
"""The content of a training run's checkpoint of a folder: its list of files, and their digests.

It is plain data, so that every reader of the store can show it. The root is also in the metadata,
under the same key as that of a single file, so that an older folder of the run is distinguishable
from a foreign one without loading older checkpoints.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import Edited, FileNotSealed, ModelMalformed, SealpointError
from sealpoint.store import CheckpointRef
from sealpoint_models._file_manifest import (
    FOLDER_FORMAT,
    METADATA_KEY,
    TrainingRun,
    metadata_beside,
    parse_digest,
    text_name,
    write_manifest,
)
from sealpoint_models._file_reader import FileDigests
from sealpoint_models._folder_reader import ContentDigest, FolderDigests, is_folder_name

_KEYS = {"format", "files", "directories"}
_CHANGED = "Do not use this folder: find out who changed it, then bring a good copy back."
_NO_FOLDER = "Seal it first: sealpoint model seal FOLDER --thread RUN, or seal_folder."


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFolder:
    """A folder that a checkpoint vouches for, as its metadata describes it."""

    ref: CheckpointRef
    """The checkpoint."""
    folder: str
    """The name of the folder when it was sealed; only for people."""
    root: str
    """The root of its digests."""
    size: int
    """The total number of bytes of its files."""
    files: int
    """The number of its files."""
    metadata: dict[str, Any]
    """The other metadata of the checkpoint."""


def sealed_folders(store: Store, thread: str) -> Iterator[SealedFolder]:
    """The folders that a thread vouches for, newest first; without reading any folder.

    Checkpoints of anything else are left out.

    Raises:
        SealpointError: Whatever `Thread.history` raises.
    """
    for ref in store.thread(thread).history():
        found = describe_folder(ref)
        if found is not None:
            yield found


def describe_folder(ref: CheckpointRef) -> SealedFolder | None:
    """The folder that a checkpoint vouches for; None if the checkpoint has another content."""
    match ref.metadata.get(METADATA_KEY):
        case {"folder": str(folder), "root": str(root), "size": int(size), "files": int(files)}:
            beside = metadata_beside(ref)
            return SealedFolder(
                ref=ref, folder=folder, root=root, size=size, files=files, metadata=beside
            )
        case _:
            return None


def save_folder_manifest(
    run: TrainingRun, digests: FolderDigests, name: str, metadata: Mapping[str, Any] | None
) -> CheckpointRef:
    """Make a folder of these digests the newest checkpoint of a run.

    Raises:
        UsageError: Its name is not text.
        SealpointError: Whatever `Thread.save` raises.
    """
    described = {
        "folder": text_name(name),
        "root": digests.root.hex(),
        "size": digests.size,
        "files": len(digests.files),
    }
    beside = {**(metadata or {}), METADATA_KEY: described}
    return run.store.thread(run.name).save(write_folder_manifest(digests), metadata=beside)


def write_folder_manifest(digests: FolderDigests) -> dict[str, Any]:
    """The state of the checkpoint that vouches for a folder."""
    files: dict[str, dict[str, Any]] = {}
    for name, each in digests.files.items():
        if isinstance(each, ContentDigest):
            files[name] = {"size": each.size, "digest": each.root.hex()}
        else:
            whole = write_manifest(each)
            files[name] = {key: value for key, value in whole.items() if key != "format"}
    return {"format": FOLDER_FORMAT, "files": files, "directories": list(digests.directories)}


def parse_folder_manifest(state: Any, what: str) -> FolderDigests:
    """The digests that a checkpoint holds.

    Args:
        state: The state of the checkpoint.
        what: The name of the checkpoint, for messages.

    Raises:
        ModelMalformed: It is not a checkpoint of a folder.
    """
    try:
        if type(state) is dict and state.keys() == _KEYS and state["format"] == FOLDER_FORMAT:
            digests = FolderDigests(
                files={name: _part(each) for name, each in state["files"].items()},
                directories=tuple(state["directories"]),
            )
            if _is_ordered(digests) and write_folder_manifest(digests) == state:
                return digests
    except (ValueError, TypeError, AttributeError, KeyError):
        pass
    raise ModelMalformed(f"{what}: the checkpoint is not one of a folder", hint=_NO_FOLDER)


def _part(state: Any) -> FileDigests | ContentDigest:
    size = state["size"]
    if type(size) is not int or size < 0:
        raise ValueError(size)
    if "digest" in state:
        return ContentDigest(size=size, root=parse_digest(state["digest"]))
    tensors = {name: parse_digest(text) for name, text in state["tensors"].items()}
    return FileDigests(size=size, header=parse_digest(state["header"]), tensors=tensors)


def _is_ordered(digests: FolderDigests) -> bool:
    """Whether names could be those of a folder's list, each kind in its order."""
    return all(
        list(names) == sorted(set(names)) and all(map(is_folder_name, names))
        for names in (digests.files, digests.directories)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSeal:
    """The expected folder, according to a thread."""

    run: TrainingRun
    digests: FolderDigests
    ref: CheckpointRef

    @classmethod
    def of(cls, run: TrainingRun, ref: str | CheckpointRef | None) -> "FolderSeal":
        """The expected folder: the newest of a run, or that of a checkpoint.

        Raises:
            SealpointError: Whatever `Thread.load` raises.
            ModelMalformed: The checkpoint is not one of a folder.
        """
        loaded = run.store.thread(run.name).load(ref)
        what = f"thread {run.name!r}, {loaded.ref.id}"
        digests = parse_folder_manifest(loaded.state, what)
        return cls(run=run, digests=digests, ref=loaded.ref)

    def refusal(self, found: FolderDigests, what: str) -> SealpointError:
        """The reason why a folder is not the one that the run expects."""
        expected = f"{what}: expected the folder of {self.ref.id} (seq {self.ref.seq})"
        if found == self.digests:
            return Edited(f"{expected}, found that it changed while it was read", hint=_CHANGED)
        if (older := self.run.rolled_back(found.root, expected, "folder")) is not None:
            return older
        same = sum(found.files.get(name) == each for name, each in self.digests.files.items())
        # Folders of other runs share a file or two, such as a configuration.
        if 2 * same >= len(self.digests.files):
            return Edited(f"{expected}, found {self._difference(found)}", hint=_CHANGED)
        return FileNotSealed(
            f"{expected}, found one that no checkpoint of this thread vouches for",
            hint="Use the folder that this run sealed last: sealpoint model list THREAD.",
        )

    def _difference(self, found: FolderDigests) -> str:
        mine, other = self.digests, found
        changed = [
            name
            for name, each in mine.files.items()
            if name in other.files and other.files[name] != each
        ]
        told = [f"{len(changed)} of its files changed, such as {changed[0]!r}"] if changed else []
        for what, one, two in (
            ("missing", mine, other),
            ("not sealed", other, mine),
        ):
            told += _counted_names(
                what, "file", [name for name in one.files if name not in two.files]
            )
            gone = [name for name in one.directories if name not in two.directories]
            told += _counted_names(what, "folder", gone)
        return " and ".join(told)

    def is_size(self, size: int) -> bool:
        """Whether a folder of this run has so many bytes, so that it may be an older one."""
        folders = sealed_folders(self.run.store, self.run.name)
        return any(each.size == size for each in folders)


def _counted_names(what: str, kind: str, names: list[str]) -> list[str]:
    if not names:
        return []
    return [f"{len(names)} {kind}{'s' if len(names) > 1 else ''} {what}, such as {names[0]!r}"]
