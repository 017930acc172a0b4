# SPDX-License-Identifier: Apache-2.0
"""transformers: seals every `checkpoint-N` of a Trainer, and resumes only from a sealed one.

`SealedCheckpoints` is a callback. It seals a folder when the Trainer has saved it. An existing
folder of that name is moved aside first: files that a killed run left or an attacker planted do not
become part of a sealed one. If it cannot be moved, the new folder is not sealed.

The Trainer has no hook before a load, and reads a folder several times, as pickles too. So `resume`
gives it a verified copy, in a directory of this user alone. The callback ends a training that
continues from another step: this reports a forgotten `resume`. It cannot detect a load without
`resume` from a folder that claims exactly that step. The best folder, which the Trainer loads at
its end if it is configured to, is a verified copy as well.
"""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import (
    ExtraMissing,
    FileNotSealed,
    ModelMalformed,
    ModelUnreadable,
    UnknownThread,
    UsageError,
)
from sealpoint.store import CheckpointRef
from sealpoint_models._file_manifest import TrainingRun
from sealpoint_models._folder_manifest import SealedFolder, describe_folder, sealed_folders
from sealpoint_models._sealed_folder import required_run, seal_folder, verified_copy

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer_utils import SaveStrategy
except ModuleNotFoundError as exc:
    raise ExtraMissing(
        "sealpoint_models.transformers: expected transformers, found it missing: "
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
        self._directory: str | os.PathLike[str] | None = None
        self._room: Path | None = None  # where the next folder is saved, if one is
        self._best: str | None = None
        self._best_copy = ExitStack()

    @contextmanager
    def resume(
        self,
        output_dir: str | os.PathLike[str],
        *,
        ref: str | CheckpointRef | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> Iterator[str | None]:
        """The value for `trainer.train(resume_from_checkpoint=...)`, in a `with` block.

        Args:
            output_dir: The directory of the Trainer's folders.
            ref: The checkpoint to go back to; without it the newest one.
            directory: The parent of the copy, as for `verified_copy`; that of the best folder too.

        Yields:
            The path of a verified copy of the folder; None if the run has never saved.

        Raises:
            Edited, RolledBack, FileNotSealed: The folder is not the one that was sealed.
            ModelUnreadable: It does not exist.
            SealpointError: Whatever `Thread.load` raises.
        """
        store, name = self._run.store, self._run.name
        self._directory = directory
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
        if not os.path.lexists(place):
            raise self._missing(Path(output_dir), described)
        with verified_copy(
            place, store=store, thread=name, ref=loaded.ref, directory=directory
        ) as copy:
            self._step = _step_of(copy)
            yield str(copy)

    def _missing(self, parent: Path, gone: SealedFolder) -> ModelUnreadable:
        """Why no checkpoint can be resumed, and which folders exist."""
        hint = "Bring the folder back from a backup."
        for each in sealed_folders(self._run.store, self._run.name):
            if not each.ref.pruned and os.path.lexists(parent / each.folder):
                hint = (
                    f"Bring the folder back; or, if the Trainer deleted it, go back to "
                    f"{each.folder} on purpose: sealed.resume(output_dir, ref={each.ref.id!r})"
                )
                break
        return ModelUnreadable(
            f"{parent / gone.folder}: expected the folder that was sealed last, found nothing",
            hint=hint,
        )

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 (the signature of every event)
        **_: Any,
    ) -> None:
        """Refuse to train from another step than the one that `resume` gave, or the first.

        Raises:
            FileNotSealed: The training begins at another step.
            UsageError: The best folder could not be a verified copy: see `on_log`.
        """
        if args.load_best_model_at_end and args.save_total_limit == 1:
            # The Trainer then deletes all folders except the one that it loaded, which is the copy.
            raise UsageError(
                "save_total_limit: expected 2 or more with load_best_model_at_end, found 1",
                hint="TrainingArguments(save_total_limit=2) keeps the best folder and the last.",
            )
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
        """Move anything at the path of the next folder aside."""
        self._make_room(args, state, control)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Move anything at the path of the next folder aside."""
        self._make_room(args, state, control)

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 (the signature of every event)
        **_: Any,
    ) -> None:
        """Move aside anything that was put there during the evaluation, which may take hours."""
        folder = _folder(args, state)
        if folder == self._room:
            self._move_aside(folder, state)

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 (the signature of every event)
        **_: Any,
    ) -> None:
        """Seal the folder that was saved, once all processes have written to it.

        Raises:
            FileNotSealed: It existed before: something in it would be sealed unseen.
            SealpointError: Whatever `seal_folder` raises.
        """
        _wait_for_everyone()
        folder = _folder(args, state)
        if state.is_world_process_zero:
            if folder != self._room:
                raise FileNotSealed(
                    f"{folder}: expected a new folder, found one that was there before the save",
                    hint="Give the Trainer this callback after those that ask for a save: "
                    "callbacks=[..., sealed].",
                )
            self._room = None  # an evaluation by hand later leaves the folder where it is
            metadata = {"step": state.global_step}
            if state.epoch is not None:
                metadata["epoch"] = round(state.epoch)
            seal_folder(folder, store=self._run.store, thread=self._run.name, metadata=metadata)

    def _make_room(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl
    ) -> None:
        folder = _folder(args, state)
        # Whether an evaluation is the best, and is saved, is known only after it.
        may_be_best = args.save_strategy == SaveStrategy.BEST and control.should_evaluate
        if control.should_save or may_be_best:
            self._move_aside(folder, state)
        # A callback after this one may ask for a save too: then into a place that was free.
        self._room = None if os.path.lexists(folder) else folder

    def _move_aside(self, folder: Path, state: TrainerState) -> None:
        if state.is_world_process_zero and os.path.lexists(folder):
            # Another name than the Trainer looks for when it removes old folders, or resumes.
            folder.rename(folder.with_name(f"unsealed-{state.global_step}-{secrets.token_hex(4)}"))

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 (the signature of every event)
        logs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Have the Trainer load a verified copy of the best folder, if it is about to load it.

        Its last log is the last event before that. `on_train_end` removes the copy.

        Raises:
            Edited, FileNotSealed: The best folder is not the one that was sealed.
        """
        best = state.best_model_checkpoint
        is_last = logs is not None and "train_runtime" in logs
        if not (args.load_best_model_at_end and is_last) or best is None:
            return
        store, name = self._run.store, self._run.name
        folder = Path(best).name
        sealed = (each.ref for each in sealed_folders(store, name) if each.folder == folder)
        ref = next(sealed, None)
        if ref is None:
            raise FileNotSealed(f"{best}: expected the best folder to be one of thread {name!r}")
        copy = verified_copy(best, store=store, thread=name, ref=ref, directory=self._directory)
        state.best_model_checkpoint = str(self._best_copy.enter_context(copy))
        self._best = best

    def on_train_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 (the signature of every event)
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        **_: Any,
    ) -> None:
        """Remove the copy of the best folder."""
        if self._best is not None:
            state.best_model_checkpoint, self._best = self._best, None
        self._best_copy.close()


def _folder(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(args.output_dir or ".", f"checkpoint-{state.global_step}")


def _step_of(folder: Path) -> int:
    """The step of a verified folder."""
    try:
        found = json.loads((folder / _STATE).read_text(encoding="utf-8"))["global_step"]
        return int(found)
    except (OSError, ValueError, TypeError, KeyError) as exc:
        raise ModelMalformed(
            f"{folder.name}: expected a folder of a Trainer, found one without its step",
            hint="Give the Trainer a thread of its own, which only SealedCheckpoints writes to.",
        ) from exc


def _wait_for_everyone() -> None:
    import torch.distributed as dist  # noqa: PLC0415 (an optional dependency)

    if dist.is_available() and dist.is_initialized():
        dist.barrier()
