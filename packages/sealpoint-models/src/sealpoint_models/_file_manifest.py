# SPDX-License-Identifier: Apache-2.0
"""The content of a training run's checkpoint: the digests of one model file.

It is plain data, so that every reader of the store can show it. The root is also in the metadata,
where it is readable without loading the checkpoint.

The module also connects a model file to the thread that vouches for it.

The digests of each saved file are a checkpoint of the run's thread. So files have an order, an
owner and a newest one, and the anchor remembers it: a load detects a changed file, a file of
another run, and an older file in place of the newest.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sealpoint.api import Store
from sealpoint.errors import (
    AnchorUnavailable,
    Edited,
    FileNotSealed,
    ModelMalformed,
    RolledBack,
    SealpointError,
    StorageUnavailable,
    UsageError,
)
from sealpoint.store import CheckpointRef
from sealpoint_models._draft_file import ModelDraft, put_in_place, waiting_path
from sealpoint_models._file_reader import FileDigests

METADATA_KEY = "model"
"""The metadata key of a checkpoint's file."""

FOLDER_FORMAT = "sealpoint.folder.v1"
"""The format name of a folder's checkpoint."""
_FORMAT = "sealpoint.model.v1"
_KEYS = {"format", "size", "header", "tensors"}
_DIGITS = 64


def write_manifest(digests: FileDigests) -> dict[str, Any]:
    """The state of the checkpoint that vouches for a file."""
    return {
        "format": _FORMAT,
        "size": digests.size,
        "header": digests.header.hex(),
        "tensors": {name: digest.hex() for name, digest in digests.tensors.items()},
    }


def write_metadata(digests: FileDigests, file: str) -> dict[str, Any]:
    """The metadata about the file; the name is only for people.

    Raises:
        UsageError: The name is not text.
    """
    return {
        "file": text_name(file),
        "root": digests.root.hex(),
        "size": digests.size,
        "tensors": len(digests.tensors),
    }


def text_name(name: str) -> str:
    """A name of a file or folder, if it is text.

    Raises:
        UsageError: It is bytes that are not UTF-8.
    """
    try:
        name.encode()
    except UnicodeEncodeError as exc:
        raise UsageError(
            f"the file or folder: expected a name in UTF-8, found {name!a}",
            hint="Rename it, and do the same again.",
        ) from exc
    return name


def root_in(metadata: Mapping[str, Any]) -> str | None:
    """The root in a checkpoint's metadata, if it vouches for a model file."""
    found = metadata.get(METADATA_KEY)
    root = found.get("root") if isinstance(found, Mapping) else None
    return root if isinstance(root, str) else None


def metadata_beside(ref: CheckpointRef) -> dict[str, Any]:
    """The metadata of a checkpoint without the description of its file or folder."""
    return {key: value for key, value in ref.metadata.items() if key != METADATA_KEY}


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFile:
    """A model file that a checkpoint vouches for, as its metadata describes it."""

    ref: CheckpointRef
    """The checkpoint."""
    file: str
    """The name of the file when it was saved; only for people."""
    root: str
    """The root of its digests."""
    size: int
    """The number of its bytes."""
    tensors: int
    """The number of its tensors."""
    metadata: dict[str, Any]
    """The other metadata of the checkpoint."""


def sealed_files(store: Store, thread: str) -> Iterator[SealedFile]:
    """The model files that a thread vouches for, newest first; without reading any file.

    Checkpoints of anything else are left out.

    Raises:
        SealpointError: Whatever `Thread.history` raises.
    """
    for ref in store.thread(thread).history():
        match ref.metadata.get(METADATA_KEY):
            case {"file": str(file), "root": str(root), "size": int(size), "tensors": int(tensors)}:
                beside = metadata_beside(ref)
                yield SealedFile(
                    ref=ref, file=file, root=root, size=size, tensors=tensors, metadata=beside
                )
            case _:
                pass


def parse_manifest(state: Any, what: str) -> FileDigests:
    """The digests that a checkpoint holds.

    Args:
        state: The state of the checkpoint.
        what: The name of the checkpoint, for messages.

    Raises:
        ModelMalformed: It is not a checkpoint of a model file.
    """
    try:
        if type(state) is dict and state.keys() == _KEYS and state["format"] == _FORMAT:
            digests = FileDigests(
                size=state["size"],
                header=parse_digest(state["header"]),
                tensors={name: parse_digest(text) for name, text in state["tensors"].items()},
            )
            if type(digests.size) is int and write_manifest(digests) == state:
                return digests
    except (ValueError, TypeError, AttributeError):
        pass
    if type(state) is dict and state.get("format") == FOLDER_FORMAT:
        raise ModelMalformed(
            f"{what}: expected a checkpoint of a model file, found one of a folder",
            hint="Name the folder, and not a file: for sealpoint model verify, open_folder or "
            "load_folder.",
        )
    raise ModelMalformed(
        f"{what}: the checkpoint is not one of a model file",
        hint="Give each training run a thread of its own, which only save_checkpoint writes to.",
    )


def parse_digest(text: str) -> bytes:
    """The bytes of a digest in hexadecimal; raises `ValueError` for any other text."""
    if len(text) != _DIGITS:
        raise ValueError(text)
    return bytes.fromhex(text)


CHANGED = "Do not use this file: find out who changed it, then bring a good copy back."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """A training run: a thread of a store."""

    store: Store
    name: str

    @classmethod
    def of(cls, store: Store | None, thread: str | None) -> "TrainingRun | None":
        """The run that a caller means, or None without a store.

        Raises:
            UsageError: One of the two is missing.
        """
        if (store is None) != (thread is None):
            raise UsageError("store, thread: expected both or neither of them, found one")
        if store is not None and not isinstance(store, Store):
            raise UsageError(
                f"store: expected an open store, found {type(store).__name__}",
                hint="Open it first: with sealpoint.open_store(url) as store: ...",
            )
        return None if store is None or thread is None else cls(store=store, name=thread)

    def seal(
        self,
        draft: ModelDraft,
        path: Path,
        digests: FileDigests,
        metadata: Mapping[str, Any] | None,
    ) -> CheckpointRef:
        """Record a durable draft as the newest file of the run, and put it in its place.

        Raises:
            SealpointError: Whatever `Thread.save` raises. The old file stands then, unless the
                error is `AnchorUnavailable` with a ref: the entry stands, and so does the file.
        """
        beside = {**(metadata or {}), METADATA_KEY: write_metadata(digests, path.name)}
        waiting = waiting_path(path, digests.root)
        # Another writer of the same state may wait under the same name, for an entry of its own.
        is_shared = os.path.lexists(waiting)
        draft.move_to(waiting)

        def give_up() -> None:
            if not is_shared and draft.is_at(waiting):
                waiting.unlink(missing_ok=True)

        try:
            ref = self.store.thread(self.name).save(write_manifest(digests), metadata=beside)
        except AnchorUnavailable as error:
            if error.ref is not None:
                put_in_place(waiting, path)
            else:
                give_up()
            raise
        except StorageUnavailable:
            raise  # perhaps it was saved: the file waits for whoever finds the entry
        except SealpointError:
            give_up()
            raise
        put_in_place(waiting, path)
        return ref

    def expected(self, ref: str | CheckpointRef | None) -> "Sealed":
        """The expected file: the newest of the run, or that of a checkpoint.

        Raises:
            SealpointError: Whatever `Thread.load` raises.
            ModelMalformed: The checkpoint is not one of a model file.
        """
        loaded = self.store.thread(self.name).load(ref)
        what = f"thread {self.name!r}, {loaded.ref.id}"
        return Sealed(run=self, digests=parse_manifest(loaded.state, what), ref=loaded.ref)

    def rolled_back(self, root: bytes, expected: str, kind: str) -> RolledBack | None:
        """Why an older file or folder of the run is refused; None: it does not belong to the run.

        Args:
            root: The root of its digests.
            expected: The expectation in the message.
            kind: The kind of object, for the hint.
        """
        for ref in self.store.thread(self.name).history():
            if root_in(ref.metadata) == root.hex():
                return RolledBack(
                    f"{expected}, found that of {ref.id} (seq {ref.seq})",
                    hint=f"Bring that {kind} back, or ask for this one: ref={ref.id!r}, "
                    f"--ref seq:{ref.seq}.",
                )
        return None


class Vouched(Protocol):
    """The expectation of a thread about a file, alone or in a folder."""

    @property
    def digests(self) -> FileDigests:
        """The expected digests."""
        ...

    @property
    def ref(self) -> CheckpointRef:
        """The checkpoint with the expectation."""
        ...

    def refusal(self, found: FileDigests | None, what: str) -> SealpointError:
        """Why a file with other digests, or without, is refused; MUST NOT return None."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """The expected file, according to a thread."""

    run: TrainingRun
    digests: FileDigests
    ref: CheckpointRef

    def refusal(self, found: FileDigests | None, what: str) -> SealpointError:
        """The reason why a file is not the one that the run expects.

        Args:
            found: The digests of the file, if it is a model file at all.
            what: The name of the file, for messages.
        """
        expected = f"{what}: expected the file of {self.ref.id} (seq {self.ref.seq})"
        if found is None:
            return FileNotSealed(f"{expected}, found a file that is not safetensors")
        if found == self.digests:
            return Edited(f"{expected}, found that it changed while it was read", hint=CHANGED)
        if (older := self.run.rolled_back(found.root, expected, "file")) is not None:
            return older
        if found.header == self.digests.header:
            changed = [
                name
                for name, digest in self.digests.tensors.items()
                if found.tensors.get(name) != digest
            ]
            if changed:
                return Edited(
                    f"{expected}, found {len(changed)} of its tensors changed, such as "
                    f"{changed[0]!r}",
                    hint=CHANGED,
                )
        return FileNotSealed(f"{expected}, found one that no checkpoint of this thread vouches for")
