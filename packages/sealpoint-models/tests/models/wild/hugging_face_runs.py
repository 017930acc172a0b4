# SPDX-License-Identifier: Apache-2.0
"""Folders of the Trainer of transformers, and of accelerate."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
)


def _train(folder: Path, **options: Any) -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=16,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        max_position_embeddings=8,
    )
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=2,
        save_steps=2,
        per_device_train_batch_size=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        **options,
    )
    rows = [{"input_ids": [1, 2, 3], "labels": number % 2} for number in range(8)]
    model = BertForSequenceClassification(config)  # type: ignore[no-untyped-call]
    Trainer(model=model, args=arguments, train_dataset=rows).train()


class Progress:
    """What a program registers beside its model."""

    def __init__(self) -> None:
        self.best = np.float64(0.25)

    def state_dict(self) -> dict[str, Any]:
        """All of it."""
        return {"best": self.best, "history": np.arange(3.0), "seen": {1, 2}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take it back."""
        self.best = state["best"]


def _accelerate(folder: Path, *, safe: bool) -> None:
    random.seed(1)
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
    data = torch.utils.data.TensorDataset(torch.rand(8, 3))
    loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
    model, optimizer, schedule, loader = accelerator.prepare(model, optimizer, schedule, loader)
    for batch in loader:
        accelerator.backward(model(batch[0]).square().mean())
        optimizer.step()
        schedule.step()
    accelerator.register_for_checkpointing(Progress())
    accelerator.save_state(str(folder), safe_serialization=safe)


def write(folder: Path) -> None:
    """Write all of them."""
    _train(folder / "trainer")
    _train(
        folder / "trainer-cosine",
        lr_scheduler_type="cosine",
        warmup_steps=1,
        optim="adafactor",
        weight_decay=0.1,
        gradient_accumulation_steps=1,
        label_smoothing_factor=0.1,
    )
    _train(folder / "trainer-bf16", bf16=True, lr_scheduler_type="inverse_sqrt", optim="sgd")
    _accelerate(folder / "accelerate", safe=True)
    _accelerate(folder / "accelerate-bin", safe=False)
    made: Any = GPT2LMHeadModel
    model = made(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=16, n_positions=8))
    torch.save(model.state_dict(), folder / "pytorch_model.bin")  # as before 5.0
    torch.save(model.half().state_dict(), folder / "half.bin")
    torch.save(model, folder / "whole.pt")
