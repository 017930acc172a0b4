# SPDX-License-Identifier: Apache-2.0
"""Train a model, seal its checkpoints, tamper with the file, and go on from the genuine one."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import TextWrapper
from typing import Any

import torch

import sealpoint
from sealpoint_models import load_checkpoint, save_checkpoint, sealed_files

fit = TextWrapper(80, subsequent_indent=" " * 11).fill
torch.manual_seed(0)
DATA = torch.linspace(-1, 1, 32).reshape(32, 1)


class Trainer:
    """A model on its way, with everything that it takes to go on."""

    def __init__(self) -> None:
        self.model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.step = 0

    def train(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        (self.model(DATA) - DATA.sin()).square().mean().backward()
        self.optimizer.step()
        self.step += 1

    def state(self) -> dict[str, Any]:
        """What is saved."""
        parts = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {"random": torch.get_rng_state(), "step": self.step, **parts}

    def go_on_from(self, state: dict[str, Any]) -> None:
        """Take over what was saved."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        self.step = state["step"]


with TemporaryDirectory() as name, TemporaryDirectory() as home:  # keys and anchor lie apart
    file, older, newest = (Path(name, f"{part}.safetensors") for part in ("run", "old", "new"))
    place = {"config_dir": Path(home, "config"), "state_dir": Path(home, "state")}
    url = f"sqlite:///{name}/runs.db"
    sealpoint.init(url, **place)
    trainer = Trainer()
    with sealpoint.open_store(url, **place) as store:
        for copy in (older, newest):
            trainer.train()
            save_checkpoint(trainer.state(), file, store=store, thread="run-1")
            shutil.copy(file, copy)
        print("A run saved two checkpoints; newest first:")
        for sealed in sealed_files(store, "run-1"):
            print(f"  entry {sealed.ref.seq}  {sealed.tensors} tensors  root {sealed.root[:12]}")

    bit = newest.read_bytes()
    bit = bit[:-1] + bytes([bit[-1] ^ 1])
    for title, data in (("Change one bit.", bit), ("Put the older file back.", older.read_bytes())):
        file.write_bytes(data)
        try:
            with sealpoint.open_store(url, **place) as store:
                load_checkpoint(file, store=store, thread="run-1")
        except sealpoint.SealpointError as error:
            print(
                f"\n{title}\n" + fit(f"  refused  {error.code}: {error.message}".replace(name, ""))
            )

    shutil.copy(newest, file)
    with sealpoint.open_store(url, **place) as store:
        (trainer := Trainer()).go_on_from(load_checkpoint(file, store=store, thread="run-1"))
        trainer.train()
        print(f"\nWith the genuine file, the run goes on: step {trainer.step}.")
