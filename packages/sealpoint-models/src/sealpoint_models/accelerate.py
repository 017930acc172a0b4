# SPDX-License-Identifier: Apache-2.0
"""accelerate: folders of `save_state` are sealed, and `load_state` reads only sealed ones.

`SealedStates` registers hooks of the Accelerator. `save` and `load` replace `save_state` and
`load_state`: accelerate has no hook after a save, and reads a folder again after the hook before a
load, so this class seals the folder after the save, and loads from a verified copy in a directory
of this user alone. The hook stops a direct call of `load_state` unless the folder is the newest
sealed one.

FSDP and DeepSpeed read models before accelerate asks the hook; `load` verifies before them too.
"""

import os
from pathlib import Path
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import ExtraMissing, FileNotSealed, UnknownThread, UsageError
from sealpoint.store import CheckpointRef
from sealpoint_models._file_manifest import TrainingRun
from sealpoint_models._folder_manifest import describe_folder
from sealpoint_models._sealed_folder import (
    required_run,
    seal_folder,
    verified_copy,
    verify_folder,
)

try:
    from accelerate import Accelerator
except ModuleNotFoundError as exc:
    raise ExtraMissing(
        "sealpoint_models.accelerate: expected accelerate, found it missing: "
        "pip install 'sealpoint[accelerate]'"
    ) from exc

__all__ = ["SealedStates"]


class SealedStates:
    """Saves and loads the states of an Accelerator, each folder sealed as one checkpoint.

    Args:
        accelerator: The Accelerator, whose hooks are registered until `close`.
        store: An open store that vouches for the folders. Processes other than the first may have
            opened it for reading.
        thread: The thread of this training run in it.
    """

    def __init__(self, accelerator: Accelerator, *, store: Store, thread: str) -> None:
        self._accelerator = accelerator
        self._run: TrainingRun = required_run(store, thread)
        self._saved: Path | None = None
        self._verified: Path | None = None
        self._handles = [
            accelerator.register_save_state_pre_hook(self._before_save),
            accelerator.register_load_state_pre_hook(self._before_load),
        ]

    def close(self) -> None:
        """Take the hooks away; closing twice is allowed."""
        while self._handles:
            self._handles.pop().remove()

    def save(
        self,
        output_dir: str | os.PathLike[str] | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        **options: Any,
    ) -> CheckpointRef | None:
        """Save the state into an empty folder, and seal it; to be called by all processes.

        Args:
            output_dir: The folder, as for `save_state`; None where accelerate names folders.
            metadata: A JSON object that the store keeps with the checkpoint, such as the step.
            options: Further arguments of `save_state`.

        Returns:
            The checkpoint of the thread, in the main process; None in the others.

        Raises:
            UsageError: The folder is not empty: something in it would be sealed unseen.
            SealpointError: Whatever `seal_folder` raises.
        """
        target = None if output_dir is None else os.fspath(output_dir)
        self._saved = None
        if target is not None:  # else accelerate makes a new one
            self._require_empty(target)
        self._accelerator.save_state(target, **options)
        self._accelerator.wait_for_everyone()
        if not self._accelerator.is_main_process or self._saved is None:
            return None
        return seal_folder(
            self._saved, store=self._run.store, thread=self._run.name, metadata=metadata
        )

    def load(
        self,
        input_dir: str | os.PathLike[str],
        *,
        ref: str | CheckpointRef | None = None,
        directory: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Load a sealed state from a verified copy of its folder; to be called by all processes.

        Args:
            input_dir: The folder.
            ref: The checkpoint whose folder it is; without it the newest one.
            directory: Where the copy is made, as for `verified_copy`.
            options: Further arguments of `load_state`.

        Raises:
            Edited, RolledBack, FileNotSealed: The folder is not the one that was sealed.
            SealpointError: Whatever `verified_copy` raises.
        """
        store, thread = self._run.store, self._run.name
        with verified_copy(
            input_dir, store=store, thread=thread, ref=ref, directory=directory
        ) as copy:
            self._verified = copy
            try:
                self._accelerator.load_state(str(copy), **options)
            finally:
                self._verified = None

    def newest(self, parent: str | os.PathLike[str]) -> Path | None:
        """The newest sealed folder in a directory; None if the run has never saved.

        Raises:
            FileNotSealed: The newest checkpoint of the run is not a folder.
            SealpointError: Whatever `Thread.load` raises.
        """
        try:
            loaded = self._run.store.thread(self._run.name).load()
        except UnknownThread:  # the anchor has never seen this run: it is the first start
            return None
        described = describe_folder(loaded.ref)
        if described is None:
            raise FileNotSealed(
                f"thread {self._run.name!r}: expected checkpoints of folders, found another one"
            )
        return Path(parent, described.folder)

    def _before_save(self, _models: Any, _weights: Any, output_dir: str) -> None:
        self._saved = Path(output_dir)

    def _require_empty(self, output_dir: str) -> None:
        # All processes check before the first of them writes; FSDP writes before the hook.
        held = os.path.lexists(output_dir) and any(Path(output_dir).iterdir())
        self._accelerator.wait_for_everyone()
        if held:
            raise UsageError(
                f"{output_dir}: expected an empty folder, found files in it",
                hint="Save each state into a folder of its own.",
            )

    def _before_load(self, _models: Any, input_dir: str) -> None:
        if self._verified is None or Path(input_dir) != self._verified:
            verify_folder(input_dir, store=self._run.store, thread=self._run.name)
