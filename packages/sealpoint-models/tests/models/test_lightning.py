# SPDX-License-Identifier: Apache-2.0
"""Lightning itself saves, resumes and removes through the plugin, and bad files are refused."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.fabric import Fabric
from lightning.pytorch.callbacks import ModelCheckpoint

import sealpoint
from sealpoint.api import Store
from sealpoint.errors import (
    Edited,
    FileNotSealed,
    GlobalNotAllowed,
    ModelMalformed,
    RolledBack,
    UsageError,
)
from sealpoint_models import load_checkpoint, save_checkpoint, sealed_files
from sealpoint_models.lightning import SealedCheckpointIO, load_module

# Lightning warns of much that is of no interest for a model of four weights.
pytestmark = pytest.mark.filterwarnings("ignore")

_RUN = "run-1"


class Tiny(pl.LightningModule):
    """A line through points."""

    def __init__(self, width: int = 2, rate: float = 0.1, kill_at: int | None = None) -> None:
        super().__init__()
        self.save_hyperparameters("width", "rate")
        self.layer = torch.nn.Linear(width, 1)
        self.rate = rate
        self.kill_at = kill_at

    def training_step(self, batch: Any, _: int) -> Any:
        """One step, at one of which the process may end."""
        if self.kill_at is not None and self.global_step == self.kill_at:
            signal.raise_signal(signal.SIGKILL)
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self) -> Any:
        """An optimizer with a state of its own, and a schedule."""
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


def train(directory: Path, plugin: SealedCheckpointIO, epochs: int, **options: Any) -> Any:
    """Train for some epochs, each saved, and give what was trained and how far."""
    torch.manual_seed(0)
    module = Tiny(kill_at=options.pop("kill_at", None))
    saving = ModelCheckpoint(directory / "kept" / "deep", save_last=True, save_top_k=1)
    trainer = pl.Trainer(
        max_epochs=epochs,
        plugins=[plugin],
        callbacks=[saving],
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=directory,
    )
    data = torch.utils.data.TensorDataset(torch.ones(8, 2))
    trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=4), **options)
    return trainer, module, saving


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory."""
    with sealpoint.open_store("memory:") as opened:
        yield opened


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_training_goes_on_from_a_sealed_file(store: Store, tmp_path: Path) -> None:
    """A run that stops and goes on ends where a run without a stop ends, and old files go."""
    plugin = SealedCheckpointIO(store, _RUN)
    *_, saving = train(tmp_path / "a", plugin, 2)
    trainer, resumed, _ = train(tmp_path / "a", plugin, 4, ckpt_path=saving.last_model_path)
    _, whole, _ = train(tmp_path / "b", SealedCheckpointIO(), 4)
    kept = {path.name for path in (tmp_path / "a").rglob("*") if path.is_file()}
    newest = next(sealed_files(store, _RUN))

    assert trainer.global_step == 8
    assert torch.equal(resumed.layer.weight, whole.layer.weight)
    assert "last.ckpt" in kept or any(name.startswith("last") for name in kept)
    assert "epoch=0-step=2.ckpt" not in kept
    assert newest.metadata == {"epoch": 3, "global_step": 8}


def test_files_have_no_pickle_and_modules_load_from_them(store: Store, tmp_path: Path) -> None:
    """A file is a safetensors file with the whole state, and a module is made from it."""
    *_, module, saving = train(tmp_path, SealedCheckpointIO(store, _RUN), 1)
    path = Path(saving.last_model_path)
    loaded = load_module(Tiny, path, store=store, thread=_RUN)
    wider = load_module(Tiny, path, store=store, thread=_RUN, rate=0.5)
    state = load_checkpoint(path, store=store, thread=_RUN)

    assert path.read_bytes()[8:9] == b"{"
    assert torch.equal(loaded.layer.weight, module.layer.weight)
    assert wider.rate == 0.5
    assert state["optimizer_states"][0]["state"][0]["step"] == 2


def test_edited_older_and_foreign_files_are_refused(store: Store, tmp_path: Path) -> None:
    """The Trainer does not begin with a file that is not what was saved last under its name."""
    plugin = SealedCheckpointIO(store, _RUN)
    *_, saving = train(tmp_path, plugin, 1)
    last = Path(saving.last_model_path)
    older = shutil.copy(last, tmp_path / "older")
    train(tmp_path, plugin, 2, ckpt_path=last)
    newest = shutil.copy(last, tmp_path / "newest")
    shutil.copy(older, last)
    with pytest.raises(RolledBack):
        train(tmp_path, plugin, 3, ckpt_path=last)
    shutil.copy(newest, last)
    _flip(last)
    with pytest.raises(Edited):
        train(tmp_path, plugin, 3, ckpt_path=last)
    with pytest.raises(Edited):
        load_module(Tiny, last, store=store, thread=_RUN)
    save_checkpoint({"state_dict": {}}, last)
    with pytest.raises(FileNotSealed):
        train(tmp_path, plugin, 3, ckpt_path=last)


def test_only_the_newest_of_a_run_loads_if_that_is_asked_for(store: Store, tmp_path: Path) -> None:
    """Deleting the newest file does not make a run go on from the one before it."""
    plugin = SealedCheckpointIO(store, _RUN, newest_only=True)
    for epoch in (0, 1):
        checkpoint = {"epoch": epoch, "global_step": epoch, "state_dict": {"w": torch.ones(1)}}
        plugin.save_checkpoint(checkpoint, tmp_path / f"{epoch}.ckpt")

    assert plugin.load_checkpoint(tmp_path / "1.ckpt")["epoch"] == 1
    with pytest.raises(RolledBack):
        plugin.load_checkpoint(tmp_path / "0.ckpt")
    assert SealedCheckpointIO(store, _RUN).load_checkpoint(tmp_path / "0.ckpt")["epoch"] == 0


@pytest.mark.parametrize("key", ["hyper_parameters", "hparams", "module_arguments"])
@pytest.mark.parametrize("name", ["_instantiator", "_class_path"])
def test_hyperparameters_that_name_code_are_refused(tmp_path: Path, key: str, name: str) -> None:
    """What Lightning would import because a file says so is not looked at."""
    path = tmp_path / "bad.ckpt"
    state = {"state_dict": Tiny().state_dict(), key: {"width": 2, name: "os.system"}}
    torch.save(state, path)
    with pytest.raises(GlobalNotAllowed, match=f"found '{name}', which names code"):
        load_module(Tiny, path)


def test_what_is_no_checkpoint_of_lightning_is_refused(tmp_path: Path) -> None:
    """Other states, hyperparameters that are no dict, URLs and options are errors of ours."""
    plain = tmp_path / "plain.safetensors"
    save_checkpoint({"w": torch.ones(1)}, plain)
    with pytest.raises(ModelMalformed, match="expected a checkpoint of Lightning"):
        load_module(Tiny, plain)
    save_checkpoint([torch.ones(1)], plain)
    with pytest.raises(ModelMalformed, match="expected a checkpoint of Lightning"):
        SealedCheckpointIO().load_checkpoint(plain)
    save_checkpoint({"state_dict": {}, "hyper_parameters": [1]}, plain)
    with pytest.raises(ModelMalformed, match="found list"):
        load_module(Tiny, plain)
    with pytest.raises(UsageError, match="found a URL"):
        SealedCheckpointIO().remove_checkpoint("s3://bucket/last.ckpt")
    with pytest.raises(UsageError, match="storage_options"):
        SealedCheckpointIO().save_checkpoint({}, plain, storage_options={})


def test_fabric_loads_what_it_saved(store: Store, tmp_path: Path) -> None:
    """A state of Fabric has the names that its program gave, and goes on from a sealed file."""
    fabric = Fabric(accelerator="cpu", plugins=[SealedCheckpointIO(store, _RUN)])
    layer = torch.nn.Linear(2, 1)
    model, optimizer = fabric.setup(layer, torch.optim.Adam(layer.parameters()))
    weight = layer.weight.detach().clone()
    fabric.save(tmp_path / "state.ckpt", {"model": model, "optimizer": optimizer, "step": 3})
    torch.nn.init.zeros_(layer.weight)
    state = {"model": model, "optimizer": optimizer, "step": 0}
    fabric.load(tmp_path / "state.ckpt", state)

    assert state["step"] == 3
    assert torch.equal(layer.weight, weight)


_KILLED = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import sealpoint
from sealpoint_models.lightning import SealedCheckpointIO
from tests.models.test_lightning import train
with sealpoint.open_store(sys.argv[1]) as store:
    train(Path(sys.argv[2]), SealedCheckpointIO(store, "run-1"), 4, kill_at=5)
"""


def test_a_killed_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed in a step leaves a file from which the run goes on."""
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"SEALPOINT_{name}_DIR", str(tmp_path / name))
    (tmp_path / "store").mkdir()
    url = f"sqlite:///{tmp_path}/store/runs.db"
    sealpoint.init(url)
    words = [sys.executable, "-c", _KILLED, url, str(tmp_path / "out")]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with sealpoint.open_store(url) as store:
        last = tmp_path / "out" / "kept" / "deep" / "last.ckpt"
        trainer, *_ = train(tmp_path / "out", SealedCheckpointIO(store, _RUN), 4, ckpt_path=last)

        assert trainer.global_step == 8
        assert next(sealed_files(store, _RUN)).metadata["global_step"] == 8
