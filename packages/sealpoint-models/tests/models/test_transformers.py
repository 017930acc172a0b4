# SPDX-License-Identifier: Apache-2.0
"""A real Trainer saves, rotates and resumes sealed folders, and refuses those that were changed."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import sealpoint
from sealpoint.api import Store
from sealpoint.errors import Edited, FileNotSealed, ModelUnreadable, RolledBack
from sealpoint_models import load_folder, sealed_folders, verify_folder
from sealpoint_models.transformers import SealedCheckpoints

pytestmark = pytest.mark.filterwarnings("ignore")

_RUN = "run-1"


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory."""
    with sealpoint.open_store("memory:") as opened:
        yield opened


def _trainer(path: Path, sealed: SealedCheckpoints, steps: int) -> Trainer:
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
        output_dir=str(path),
        max_steps=steps,
        save_steps=2,
        save_total_limit=2,
        per_device_train_batch_size=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=1,
        logging_strategy="no",
        lr_scheduler_type="constant",
    )
    rows = [{"input_ids": [1, 2, 3], "labels": number % 2} for number in range(16)]
    return Trainer(
        model=BertForSequenceClassification(config),  # type: ignore[no-untyped-call]
        args=arguments,
        train_dataset=rows,
        callbacks=[sealed],
    )


def _train(path: Path, store: Store, steps: int) -> Trainer:
    sealed = SealedCheckpoints(store, _RUN)
    trainer = _trainer(path, sealed, steps)
    with sealed.resume(path) as checkpoint:
        trainer.train(resume_from_checkpoint=checkpoint)
    return trainer


def test_a_trainer_goes_on_from_its_sealed_folder(store: Store, tmp_path: Path) -> None:
    """Folders are sealed and rotated, and a run that stops and goes on ends as one without."""
    first = _train(tmp_path / "a", store, 4)
    second = _train(tmp_path / "a", store, 8)
    with sealpoint.open_store("memory:") as other:
        whole = _train(tmp_path / "b", other, 8)
    listed = [(each.folder, each.metadata["step"]) for each in sealed_folders(store, _RUN)]
    tensors = load_folder(tmp_path / "a" / "checkpoint-8", store=store, thread=_RUN)
    kept = sorted(path.name for path in (tmp_path / "a").iterdir())

    assert whole.model is not None
    assert first.state.global_step == 4
    assert second.state.global_step == 8
    assert listed == [(f"checkpoint-{step}", step) for step in (8, 6, 4, 2)]
    assert kept == ["checkpoint-6", "checkpoint-8"]
    assert all(torch.equal(tensors[name], each) for name, each in whole.model.state_dict().items())


def test_a_changed_folder_is_not_resumed_from(store: Store, tmp_path: Path) -> None:
    """Edited, older and missing folders are refused before the Trainer reads anything."""
    _train(tmp_path, store, 4)
    newest, saved = tmp_path / "checkpoint-4", tmp_path / "saved"
    shutil.copytree(newest, saved)
    with (newest / "training_args.bin").open("ab") as file:
        file.write(b"x")
    with pytest.raises(Edited, match="training_args"):
        _train(tmp_path, store, 6)
    shutil.rmtree(newest)
    with pytest.raises(ModelUnreadable):
        _train(tmp_path, store, 6)
    shutil.copytree(tmp_path / "checkpoint-2", newest)
    with pytest.raises(RolledBack):
        _train(tmp_path, store, 6)
    shutil.rmtree(newest)
    saved.rename(newest)

    assert _train(tmp_path, store, 6).state.global_step == 6


def test_going_back_is_possible_on_purpose(store: Store, tmp_path: Path) -> None:
    """An older checkpoint is resumed from if it is named."""
    _train(tmp_path, store, 4)
    older = list(sealed_folders(store, _RUN))[1]
    sealed = SealedCheckpoints(store, _RUN)
    with sealed.resume(tmp_path, ref=older.ref) as checkpoint:
        assert checkpoint is not None
        assert Path(checkpoint).name == "checkpoint-2"
        _trainer(tmp_path, sealed, 3).train(resume_from_checkpoint=checkpoint)


def test_a_resume_around_the_callback_is_ended(store: Store, tmp_path: Path) -> None:
    """Whoever gives the Trainer a folder of their own does not train."""
    _train(tmp_path, store, 2)
    trainer = _trainer(tmp_path, SealedCheckpoints(store, _RUN), 4)
    with pytest.raises(FileNotSealed, match="expected training from step 0, found step 2"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))


def test_what_lies_in_the_place_of_a_folder_is_not_sealed(store: Store, tmp_path: Path) -> None:
    """A file that was planted where the next folder will be is moved aside."""
    planted: Any = tmp_path / "checkpoint-2"
    planted.mkdir()
    (planted / "adapter_model.bin").write_bytes(b"planted")
    _train(tmp_path, store, 2)

    assert not (planted / "adapter_model.bin").exists()
    assert verify_folder(planted, store=store, thread=_RUN).metadata["step"] == 2
    assert [path.name[:11] for path in tmp_path.glob("unsealed*")] == ["unsealed-2-"]
