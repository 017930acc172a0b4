# SPDX-License-Identifier: Apache-2.0
"""A small training run that stops and goes on.

Everything that decides what comes next is in its state: network, optimizer, scheduler, scaler, the
random numbers of torch, numpy and Python, and the order of the data with the place in it.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sealpoint_models import load_checkpoint, save_checkpoint

__all__ = ["OPTIMIZERS", "PRECISIONS", "Trainer"]

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9, nesterov=True),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=0.01, amsgrad=True),
    "adagrad": lambda weights: torch.optim.Adagrad(weights, lr=0.05),
    "rmsprop": lambda weights: torch.optim.RMSprop(weights, lr=0.01, centered=True),
    "adafactor": lambda weights: torch.optim.Adafactor(weights, lr=0.02),
}
PRECISIONS = {"full": None, "bfloat16": torch.bfloat16, "float16": torch.float16}

_ROWS = 24
_BATCH = 5


class Trainer:
    """One run."""

    def __init__(self, optimizer: str, precision: str) -> None:
        torch.manual_seed(11)
        np.random.seed(12)  # noqa: NPY002 (the state that old programs have)
        random.seed(13)
        last = torch.nn.Linear(24, 2)
        last.weight.data = last.weight.data.t().contiguous().t()  # in another order in memory
        self._network = torch.nn.Sequential(
            torch.nn.Conv1d(1, 4, 3),
            torch.nn.BatchNorm1d(4),
            torch.nn.Flatten(),
            torch.nn.Dropout(0.3),
            last,
        )
        self._optimizer = OPTIMIZERS[optimizer](self._network.parameters())
        kinds = torch.optim.lr_scheduler
        self._scheduler = kinds.SequentialLR(
            self._optimizer,
            [kinds.LinearLR(self._optimizer), kinds.MultiStepLR(self._optimizer, [2, 4])],
            [3],
        )
        self._type = PRECISIONS[precision]
        self._scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
        self._generator = torch.Generator().manual_seed(14)
        self._order = torch.randperm(_ROWS, generator=self._generator)
        self._at = 0
        self._losses: list[float] = []

    def step(self) -> None:
        """One batch."""
        if self._at >= _ROWS:
            self._order = torch.randperm(_ROWS, generator=self._generator)
            self._at = 0
        rows = self._order[self._at : self._at + _BATCH]
        self._at += _BATCH
        noise = np.random.normal(size=8) * random.random()  # noqa: NPY002, S311 (as above)
        data = torch.sin(rows[:, None] + torch.arange(8.0)) + torch.tensor(noise).float()
        self._optimizer.zero_grad()
        with torch.autocast("cpu", dtype=self._type, enabled=self._type is not None):
            loss = self._network(data[:, None]).square().mean()
        self._scaler.scale(loss).backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._scheduler.step()
        self._losses.append(loss.item())

    def state(self) -> dict[str, Any]:
        """All of it."""
        return {
            "network": self._network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "scheduler": self._scheduler.state_dict(),
            "scaler": self._scaler.state_dict(),
            "random": {
                "torch": torch.get_rng_state(),
                "numpy": np.random.get_state(),  # noqa: NPY002 (as above)
                "python": random.getstate(),
            },
            "data": {
                "order": self._order,
                "at": self._at,
                "generator": self._generator.get_state(),
            },
            "losses": self._losses,
        }

    def take_up(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._scheduler.load_state_dict(state["scheduler"])
        self._scaler.load_state_dict(state["scaler"])
        torch.set_rng_state(state["random"]["torch"])
        np.random.set_state(state["random"]["numpy"])  # noqa: NPY002 (as above)
        random.setstate(state["random"]["python"])
        self._order, self._at = state["data"]["order"], state["data"]["at"]
        self._generator.set_state(state["data"]["generator"])
        self._losses = state["losses"]


def _runs() -> Iterator[tuple[str, str]]:
    for optimizer in OPTIMIZERS:
        for precision in PRECISIONS:
            yield optimizer, precision


def main(folder: Path, first: int, last: int) -> None:
    """Train every run from one step to another, from its file to its file."""
    for optimizer, precision in _runs():
        run = Trainer(optimizer, precision)
        name = f"{optimizer}-{precision}"
        if first:
            run.take_up(load_checkpoint(folder / f"{name}-{first}.safetensors"))
        for _ in range(first, last):
            run.step()
        save_checkpoint(run.state(), folder / f"{name}-{last}.safetensors")
