# SPDX-License-Identifier: Apache-2.0
"""Files of Lightning: its Trainer with callbacks, precisions and hyperparameters, and Fabric."""

import argparse
import contextlib
import dataclasses
import enum
import functools
from pathlib import Path
from typing import Any

import lightning as fabric_package
import lightning.pytorch as pl
import torch
import torchmetrics
from lightning.pytorch import callbacks
from lightning.pytorch.loggers import CSVLogger
from omegaconf import OmegaConf


class Stage(enum.Enum):
    """Where a run stands."""

    WARM = "warm"
    MAIN = "main"


@dataclasses.dataclass
class Settings:
    """A configuration as programs write one."""

    rate: float = 0.1
    layers: list[int] = dataclasses.field(default_factory=lambda: [4, 4])
    stage: Stage = Stage.MAIN
    root: Path = Path("runs/one")


class Points(pl.LightningDataModule):
    """Data that remembers where it was."""

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.seen = 0 * size

    def train_dataloader(self) -> Any:
        """Points of ones."""
        self.seen += 1
        return _points()

    def state_dict(self) -> dict[str, Any]:
        """Where it is."""
        return {"seen": self.seen, "order": torch.arange(8)}


class Regression(pl.LightningModule):
    """A line through points, with what a module keeps beside its weights."""

    def __init__(self, hparams: Any = None, rate: float = 0.1, schedule: str = "step") -> None:
        super().__init__()
        if hparams is None:
            self.save_hyperparameters("rate", "schedule")
        else:
            self.save_hyperparameters(hparams)
        self.layer = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
        self.error: Any = torchmetrics.MeanSquaredError()
        self.error.persistent(mode=True)
        self.rate = rate
        self.schedule = schedule

    def training_step(self, batch: Any, _: int) -> Any:
        """One step."""
        found = self.layer(batch[0])
        self.error.update(found.float(), torch.zeros_like(found.float()))
        loss = found.square().mean()
        self.log("loss", loss, on_epoch=True)
        return loss

    def configure_optimizers(self) -> Any:
        """An optimizer with a state of its own, and a schedule."""
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.rate)
        kinds: Any = torch.optim.lr_scheduler
        made = {
            "step": lambda: kinds.StepLR(optimizer, 1),
            "lambda": lambda: kinds.LambdaLR(optimizer, lambda epoch: 0.9**epoch),
            "cycle": lambda: kinds.OneCycleLR(optimizer, 0.1, total_steps=20),
            "plateau": lambda: kinds.ReduceLROnPlateau(optimizer),
            "partial": lambda: kinds.LambdaLR(optimizer, functools.partial(pow, 0.5)),
        }[self.schedule]()
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": made, "monitor": "loss", "interval": "epoch"},
        }


class Adversaries(pl.LightningModule):
    """Two optimizers, stepped by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.maker, self.judge = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)

    def training_step(self, batch: Any, _: int) -> None:
        """A step of each."""
        for optimizer in self.optimizers():  # type: ignore[union-attr]
            loss = self.judge(self.maker(batch[0])).square().mean()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()

    def configure_optimizers(self) -> Any:
        """Adam, and SGD with momentum."""
        return [
            torch.optim.Adam(self.maker.parameters(), betas=(0.5, 0.999)),
            torch.optim.SGD(self.judge.parameters(), lr=0.1, momentum=0.9, nesterov=True),
        ]


class Noting(Regression):
    """Puts its settings into each checkpoint."""

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """As programs do it: whatever they have at hand."""
        checkpoint["settings"] = Settings()
        checkpoint["stage"] = Stage.WARM
        checkpoint["root"] = Path("runs/two")


class Failing(Regression):
    """Breaks down in its second epoch."""

    def on_train_epoch_start(self) -> None:
        """Fail."""
        if self.current_epoch == 1:
            raise RuntimeError("out of memory")


def _points() -> Any:
    data = torch.utils.data.TensorDataset(torch.ones(8, 2))
    return torch.utils.data.DataLoader(data, batch_size=4)


def _fit(module: Any, folder: Path, *more: Any, data: Any = None, **options: Any) -> Any:
    torch.manual_seed(0)
    saving = callbacks.ModelCheckpoint(folder, save_last=options.pop("last", False))
    trainer = pl.Trainer(
        max_epochs=options.pop("max_epochs", 2),
        callbacks=[saving, *more],
        accelerator="cpu",
        logger=options.pop("logger", False),
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **options,
    )
    trainer.fit(module, data if data is not None else _points())
    return trainer


def write(folder: Path) -> None:
    """Write all of them."""
    _fit(Regression(), folder / "plain", last=True)
    for schedule in ("lambda", "cycle", "plateau", "partial"):
        _fit(Regression(schedule=schedule), folder / f"schedule-{schedule}")
    _fit(Regression(argparse.Namespace(rate=0.1, layers=[1])), folder / "hparams-namespace")
    _fit(Regression({"rate": 0.1, "data": {"root": "x"}}), folder / "hparams-dict")
    config = OmegaConf.create({"rate": 0.1, "data": {"root": "x", "sizes": [1, 2]}})
    _fit(Regression(config), folder / "hparams-omegaconf")
    _fit(Regression(), folder / "ema", callbacks.EMAWeightAveraging(decay=0.9))
    _fit(Regression(), folder / "swa", callbacks.StochasticWeightAveraging(0.01, 1), max_epochs=3)
    _fit(
        Regression(),
        folder / "callbacks",
        callbacks.EarlyStopping("loss"),
        callbacks.Timer(),
        callbacks.LearningRateMonitor(),
        callbacks.GradientAccumulationScheduler({0: 1, 1: 2}),
        logger=CSVLogger(folder / "callbacks"),
    )
    for precision in ("bf16-mixed", "bf16-true", "64-true"):
        _fit(Regression(), folder / f"precision-{precision}", precision=precision)
    _fit(Adversaries(), folder / "two-optimizers")
    steps = callbacks.ModelCheckpoint(
        folder / "every-step", every_n_train_steps=1, save_top_k=-1, save_weights_only=True
    )
    _fit(Regression(), folder / "every-epoch", steps, gradient_clip_val=0.5)
    _fit(Regression(), folder / "datamodule", data=Points())
    _fit(Noting(), folder / "own-entries")
    with contextlib.suppress(RuntimeError):
        _fit(Failing(), folder / "x", callbacks.OnExceptionCheckpoint(folder / "on-exception"))
    trainer = _fit(Regression(), folder / "callbacks")
    trainer.save_checkpoint(folder / "weights-only" / "w.ckpt", weights_only=True)
    _fabric(folder / "fabric")


def _fabric(folder: Path) -> None:
    fabric = fabric_package.Fabric(accelerator="cpu", precision="bf16-mixed")
    model = torch.nn.Linear(2, 1)
    model, optimizer = fabric.setup(model, torch.optim.Adam(model.parameters()))
    fabric.backward(model(torch.ones(1, 2)).sum())
    optimizer.step()
    state = {"model": model, "optimizer": optimizer, "step": 1, "args": {"rate": 0.1}}
    fabric.save(folder / "fabric.ckpt", state)
