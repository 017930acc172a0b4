# SPDX-License-Identifier: Apache-2.0
"""Lightning: checkpoints without pickle, by Lightning's own interface, sealed with a store.

`SealedCheckpointIO` is a plugin of the Trainer, which writes and reads every checkpoint through it:
`ModelCheckpoint`, `trainer.fit(ckpt_path=...)` and `trainer.test(ckpt_path="best")` work unchanged,
and so do `save` and `load` of Fabric. `load_module` replaces
`LightningModule.load_from_checkpoint`, which does not use the plugin.

A run keeps several files (the last, the best), so a file is accepted if it is the newest saved
under its name; with `newest_only`, if it is the newest of the run. Hyperparameters that are not
plain data are refused when they are saved. Hyperparameters that name code are refused when they are
loaded.
"""

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from sealpoint.api import Store
from sealpoint.errors import (
    ExtraMissing,
    FormatRefused,
    GlobalNotAllowed,
    ModelMalformed,
    UsageError,
)
from sealpoint.store import CheckpointRef
from sealpoint_models._checkpoint import (
    begins_as_pickle,
    is_safetensors,
    load_checkpoint,
    save_checkpoint,
)
from sealpoint_models._device_placement import MapLocation
from sealpoint_models._file_manifest import TrainingRun, sealed_files
from sealpoint_models._file_reader import ReadFile

try:
    from lightning.fabric.plugins import CheckpointIO
except ModuleNotFoundError as exc:
    raise ExtraMissing(
        "sealpoint_models.lightning: expected lightning, found it missing: "
        "pip install 'sealpoint[lightning]'"
    ) from exc

__all__ = ["SealedCheckpointIO", "load_module"]

_M = TypeVar("_M")

_HYPER_PARAMETERS = ("hparams", "module_arguments", "hyper_parameters")
"""The keys of checkpoints; the last is the one of Lightning since 1.0, and takes precedence."""
_NAME = "hparams_name"
_NAMES_OF_CODE = ("_instantiator", "_class_path")
"""The hyperparameters by which Lightning imports code."""


class SealedCheckpointIO(CheckpointIO):
    """Writes and reads the checkpoints of a Trainer: `Trainer(plugins=[SealedCheckpointIO(...)])`.

    Args:
        store: An open store that vouches for the files; without it, files are only safe.
        thread: The thread of this training run in it.
        newest_only: Load nothing but the newest file of the whole run, for a run that only ever
            continues from its last checkpoint.
    """

    def __init__(
        self, store: Store | None = None, thread: str | None = None, *, newest_only: bool = False
    ) -> None:
        self._run = TrainingRun.of(store, thread)
        self._newest_only = newest_only

    def save_checkpoint(
        self,
        checkpoint: dict[str, Any],
        path: str | os.PathLike[str],
        storage_options: Any = None,
    ) -> None:
        """Save a checkpoint like `sealpoint_models.save_checkpoint`; directories are created.

        Raises:
            UsageError: Storage options are given, which have no meaning here.
            SealpointError: Whatever `sealpoint_models.save_checkpoint` raises.
        """
        if storage_options is not None:
            raise UsageError(
                f"storage_options: expected None, found {type(storage_options).__name__}"
            )
        place = _local(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if self._run is None:
            save_checkpoint(checkpoint, place)
            return
        progress = {name: checkpoint.get(name) for name in ("epoch", "global_step")}
        metadata = {name: value for name, value in progress.items() if type(value) is int}
        save_checkpoint(
            checkpoint, place, store=self._run.store, thread=self._run.name, metadata=metadata
        )

    def load_checkpoint(
        self,
        path: str | os.PathLike[str],
        map_location: Any = None,
        weights_only: bool | None = None,  # noqa: ARG002, FBT001 (Lightning's own signature)
    ) -> dict[str, Any]:
        """Load a checkpoint like `sealpoint_models.load_checkpoint`.

        Args:
            path: The file.
            map_location: Where tensors go; a function, as Lightning gives it, stands for the CPU.
            weights_only: Ignored: no code in a file runs in any case.

        Raises:
            SealpointError: Whatever `sealpoint_models.load_checkpoint` raises.
        """
        place = "cpu" if map_location is None or callable(map_location) else map_location
        loaded = _loaded(_local(path), self._run, place, newest_only=self._newest_only)
        return dict(loaded)

    def remove_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Remove a model file; its checkpoint stays in the history of the run.

        Raises:
            FormatRefused: It is another file. Checkpoints that Lightning loads name the files to
                remove, by a path that may lead anywhere.
        """
        place = _local(path)
        if not place.exists():
            return
        with ReadFile(place) as file:
            if not (begins_as_pickle(file) or is_safetensors(file)):
                raise FormatRefused(
                    f"{place}: expected a model file to remove, found another one",
                    hint="Find out who wrote the checkpoint that was loaded last: it names this "
                    "file as one of its own.",
                )
        place.unlink(missing_ok=True)


def load_module(
    module: type[_M],
    path: str | os.PathLike[str],
    *,
    store: Store | None = None,
    thread: str | None = None,
    ref: str | CheckpointRef | None = None,
    map_location: MapLocation = "cpu",
    strict: bool = True,
    **arguments: Any,
) -> _M:
    """Make a LightningModule and give it the weights of a checkpoint, running nothing of the file.

    The class is the one that is given here, and never one that the file names.

    Args:
        module: The class.
        path: The file, one of the plugin or of Lightning itself.
        store: An open store that has to vouch for the file.
        thread: The thread of the training run in it.
        ref: The checkpoint whose file is meant; without it the newest one of the file's name.
        map_location: Where tensors go.
        strict: Whether names of weights have to be those of the module.
        arguments: Arguments of the class, in place of the file's hyperparameters.

    Raises:
        GlobalNotAllowed: The hyperparameters name code to import.
        ModelMalformed: It is not a checkpoint of Lightning.
        SealpointError: Whatever `sealpoint_models.load_checkpoint` raises.
    """
    run = TrainingRun.of(store, thread)
    checkpoint = _loaded(_local(path), run, map_location, ref=ref)
    if "state_dict" not in checkpoint:
        raise ModelMalformed(f"{path}: expected a checkpoint of Lightning, found another state")
    given = {**_hyper_parameters(module, checkpoint, str(path)), **arguments}
    made: Any = module(**given)
    made.configure_model()
    made.on_load_checkpoint(checkpoint)
    made.load_state_dict(checkpoint["state_dict"], strict=strict)
    return made  # type: ignore[no-any-return]


def _loaded(
    path: Path,
    run: TrainingRun | None,
    map_location: Any,
    *,
    ref: str | CheckpointRef | None = None,
    newest_only: bool = False,
) -> Mapping[str, Any]:
    if run is None:
        found = load_checkpoint(path, map_location)
    else:
        if ref is None and not newest_only:
            ref = _newest_of_name(run, path.name)
        found = load_checkpoint(path, map_location, store=run.store, thread=run.name, ref=ref)
    if not isinstance(found, Mapping):
        raise ModelMalformed(f"{path}: expected a checkpoint of Lightning, found another state")
    return found


def _newest_of_name(run: TrainingRun, name: str) -> CheckpointRef | None:
    """The newest checkpoint under a name; None, for the newest of all, if there is none."""
    for each in sealed_files(run.store, run.name):
        if each.file == name and not each.ref.pruned:
            return each.ref
    return None


def _hyper_parameters(
    module: type[Any], checkpoint: Mapping[str, Any], what: str
) -> dict[str, Any]:
    """The arguments that the hyperparameters of a checkpoint give to a class."""
    found: dict[str, Any] = {}
    for key in _HYPER_PARAMETERS:
        held = checkpoint.get(key, {})
        if not isinstance(held, Mapping):
            raise ModelMalformed(
                f"{what}: expected hyperparameters by name, found {type(held).__name__}"
            )
        found.update(held)
    for name in _NAMES_OF_CODE:
        if name in found:
            raise GlobalNotAllowed(
                f"{what}: expected hyperparameters that are values, found {name!r}, which names "
                "code to import",
                hint="Save the checkpoint again without it, and say here which class is meant.",
            )
    parameters = inspect.signature(module).parameters
    whole = checkpoint.get(_NAME)
    if isinstance(whole, str) and whole in parameters and whole != "kwargs":
        return {whole: found}
    kinds = {each.kind for each in parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return found
    return {key: value for key, value in found.items() if key in parameters}


def _local(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if "://" in text:
        raise UsageError(
            f"path: expected one of this machine, found a URL: {text!r}",
            hint="Let the Trainer write to a directory, and copy files from there.",
        )
    return Path(text)
