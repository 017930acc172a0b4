# SPDX-License-Identifier: Apache-2.0
"""Paths that a trainer takes from a checkpoint or finds on the disk: they lead nowhere else."""

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

import sealpoint
from sealpoint.errors import FormatRefused
from sealpoint_models import load_checkpoint, save_checkpoint
from sealpoint_models.distributed import SealedStorageReader, SealedStorageWriter
from sealpoint_models.lightning import SealedCheckpointIO

pytestmark = pytest.mark.filterwarnings("ignore")


class Point(pl.LightningModule):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch: Any, _: int) -> Any:
        """One step."""
        loss = self.layer(batch[0]).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        """Descent."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


def _train(directory: Path, epochs: int, ckpt_path: Path | None = None) -> None:
    data = torch.utils.data.TensorDataset(torch.ones(4, 2))
    trainer = pl.Trainer(
        max_epochs=epochs,
        plugins=[SealedCheckpointIO()],
        callbacks=[ModelCheckpoint(directory / "kept", monitor="loss", save_last=True)],
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=directory,
    )
    trainer.fit(Point(), torch.utils.data.DataLoader(data), ckpt_path=ckpt_path)


def test_a_checkpoint_does_not_name_a_file_to_be_deleted(tmp_path: Path) -> None:
    """Lightning removes what a loaded checkpoint calls one of the best: never another file."""
    _train(tmp_path, 1)
    _train(tmp_path, 2, tmp_path / "kept" / "last.ckpt")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    victim = tmp_path / "keys"
    victim.write_text("what nobody else may delete")
    state = load_checkpoint(tmp_path / "kept" / "last.ckpt")
    named = str(tmp_path / "kept" / ".." / victim.name)
    for each in state["callbacks"].values():
        each["kth_best_model_path"], each["kth_value"] = named, torch.tensor(99.0)
        each["best_k_models"] = {named: torch.tensor(99.0)}
    save_checkpoint(state, tmp_path / "forged.ckpt")
    with pytest.raises(FormatRefused, match="expected a model file to remove"):
        _train(tmp_path, 3, tmp_path / "forged.ckpt")

    assert victim.exists()


def test_a_link_in_the_place_of_a_distributed_checkpoint_is_moved_aside(tmp_path: Path) -> None:
    """Nothing is written to where it leads."""
    elsewhere, place = tmp_path / "elsewhere", tmp_path / "step-1"
    elsewhere.mkdir()
    place.symlink_to(elsewhere)
    with sealpoint.open_store("memory:") as store:
        save(
            {"w": torch.ones(2)}, storage_writer=SealedStorageWriter(place, store=store, thread="r")
        )
        state = {"w": torch.zeros(2)}
        load(state, storage_reader=SealedStorageReader(place, store=store, thread="r"))

    assert not list(elsewhere.iterdir())
    assert not place.is_symlink()
    assert torch.equal(state["w"], torch.ones(2))
