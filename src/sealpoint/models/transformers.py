# SPDX-License-Identifier: Apache-2.0
"""transformers: every `checkpoint-N` of a Trainer is sealed, and only a sealed one is resumed from.

`SealedCheckpoints` is a callback. It seals a folder when the Trainer has saved it. A folder that
was there before is moved aside first: what a killed run left, or somebody planted, does not
become part of a sealed one.

The Trainer offers no hook in front of a load, and reads a folder several times, as pickles too.
So `resume` gives it a verified copy, in a directory of this user alone. The callback ends a
training that goes on from another step than that: whoever forgot `resume` is told. It cannot see a
load around `resume` from a folder that says it is of that very step.
"""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import ExtraMissing, FileNotSealed, UnknownThread
from sealpoint.models._folder_manifest import describe_folder
from sealpoint.models._manifest import TrainingRun
from sealpoint.models._sealed_folder import required_run, seal_folder, verified_copy
from sealpoint.store import CheckpointRef

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
except ModuleNotFoundError as exc:
    raise ExtraMissing(
        "sealpoint.models.transformers: expected transformers, found it missing: "
        "pip install 'sealpoint[transformers]'"
    ) from exc

__all__ = ["SealedCheckpoints"]

_STATE = "trainer_state.json"


class SealedCheckpoints(TrainerCallback):
    """Seals what a Trainer saves: `Trainer(callbacks=[SealedCheckpoints(store, "run-1")])`.

    Args:
        store: An open store that vouches for the folders. Processes other than the first may have
            opened it for reading.
        thread: The thread of this training run in it.
    """

    def __init__(self, store: Store, thread: str) -> None:
        self._run: TrainingRun = required_run(store, thread)
        self._step = 0

    @contextmanager
    def resume(
        self,
        output_dir: str | os.PathLike[str],
        *,
        ref: str | CheckpointRef | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> Iterator[str | None]:
        """What to give to `trainer.train(resume_from_checkpoint=...)`, in a `with` block.

        Args:
            output_dir: Where the Trainer keeps its folders.
            ref: The checkpoint to go back to; without it the newest one.
            directory: Where the copy is made, as for `verified_copy`.

        Yields:
            The path of a verified copy of the folder; None if the run has never saved.

        Raises:
            Edited, RolledBack, FileNotSealed: The folder is not the one that was sealed.
            ModelUnreadable: It is not there.
            SealpointError: Whatever `Thread.load` raises.
        """
        store, name = self._run.store, self._run.name
        try:
            loaded = store.thread(name).load(ref)
        except UnknownThread:  # the anchor has never seen this run: it is the first start
            self._step = 0
            yield None
            return
        described = describe_folder(loaded.ref)
        if described is None:
            raise FileNotSealed(
                f"thread {name!r}: expected checkpoints of folders, found another one"
            )
        place = Path(output_dir, described.folder)
        with verified_copy(
            place, store=store, thread=name, ref=loaded.ref, directory=directory
        ) as copy:
            self._step = _step_of(copy)
            yield str(copy)

    def on_train_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 (the signature of every event)
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        **_: Any,
    ) -> None:
        """Refuse to train from another step than the one that `resume` gave, or the first."""
        if state.global_step != self._step:
            raise FileNotSealed(
                f"thread {self._run.name!r}: expected training from step {self._step}, found step "
                f"{state.global_step}",
                hint="with sealed.resume(output_dir) as checkpoint: "
                "trainer.train(resume_from_checkpoint=checkpoint)",
            )

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Move what lies in the place of the next folder aside."""
        self._make_room(args, state, control)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Move what lies in the place of the next folder aside."""
        self._make_room(args, state, control)

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 (the signature of every event)
        **_: Any,
    ) -> None:
        """Seal the folder that was saved, once all processes have written to it."""
        _wait_for_everyone()
        if state.is_world_process_zero:
            metadata = {"step": state.global_step}
            if state.epoch is not None:
                metadata["epoch"] = round(state.epoch)
            folder = _folder(args, state)
            seal_folder(folder, store=self._run.store, thread=self._run.name, metadata=metadata)

    def _make_room(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl
    ) -> None:
        folder = _folder(args, state)
        if control.should_save and state.is_world_process_zero and os.path.lexists(folder):
            # Another name than the Trainer looks for when it removes old folders, or resumes.
            folder.rename(folder.with_name(f"unsealed-{state.global_step}-{secrets.token_hex(4)}"))


def _folder(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(args.output_dir or ".", f"checkpoint-{state.global_step}")


def _step_of(folder: Path) -> int:
    """The step that a verified folder was saved at."""
    found = json.loads((folder / _STATE).read_text(encoding="utf-8"))["global_step"]
    return int(found)


def _wait_for_everyone() -> None:
    import torch.distributed as dist  # noqa: PLC0415 (an optional dependency)

    if dist.is_available() and dist.is_initialized():
        dist.barrier()
