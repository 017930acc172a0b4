# SPDX-License-Identifier: Apache-2.0
"""A real Trainer whose output directory somebody else writes to while it trains.

What was planted never becomes part of a sealed folder, and the best folder, which the Trainer
loads at its end, is the one that was sealed.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

import sealpoint
from sealpoint.api import Store
from sealpoint.errors import (
    Edited,
    FileNotSealed,
    ModelMalformed,
    ModelUnreadable,
    UsageError,
)
from sealpoint_models import seal_folder, sealed_folders, verify_folder
from sealpoint_models.transformers import SealedCheckpoints

pytestmark = pytest.mark.filterwarnings("ignore")

_RUN = "run-1"
_EACH_SECOND = {"eval_strategy": "steps", "eval_steps": 2}
_BEST = {**_EACH_SECOND, "save_strategy": "best", "metric_for_best_model": "loss"}


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory."""
    with sealpoint.open_store("memory:") as opened:
        yield opened


class Attacker(TrainerCallback):
    """Does something at an event, each time."""

    def __init__(self, event: str, does: Callable[[Any, Any], object]) -> None:
        def called(_args: Any, state: Any, control: Any, **_: Any) -> None:
            does(state, control)

        setattr(self, event, called)


def _train(path: Path, store: Store, *callbacks: TrainerCallback, **settings: Any) -> Trainer:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=16,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
    )
    arguments = TrainingArguments(
        output_dir=str(path),
        **{"max_steps": 2, "save_steps": 2, "seed": 1, **settings},
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        logging_strategy="no",
    )
    rows = [{"input_ids": [1, 2, 3], "labels": number % 2} for number in range(8)]
    sealed = SealedCheckpoints(store, _RUN)
    trainer = Trainer(
        model=BertForSequenceClassification(config),  # type: ignore[no-untyped-call]
        args=arguments,
        train_dataset=rows,
        eval_dataset=rows,
        callbacks=[sealed, *callbacks],
    )
    with sealed.resume(path) as checkpoint:
        trainer.train(resume_from_checkpoint=checkpoint)
    return trainer


def _plant(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    planted = folder / "pytorch_model.bin"
    planted.write_bytes(b"planted")
    return planted


def test_a_folder_of_the_best_evaluation_has_no_planted_file(store: Store, tmp_path: Path) -> None:
    """What lay in its place is moved aside although nobody knew yet that it would be saved."""
    planted = _plant(tmp_path / "checkpoint-2")
    _train(tmp_path, store, **_BEST)

    assert not planted.exists()
    assert verify_folder(planted.parent, store=store, thread=_RUN).metadata["step"] == 2
    assert len(list(tmp_path.glob("unsealed-2-*"))) == 1


@pytest.mark.parametrize("settings", [_EACH_SECOND, _BEST])
def test_a_file_planted_during_an_evaluation_is_not_sealed(
    store: Store, tmp_path: Path, settings: dict[str, Any]
) -> None:
    """The place of the folder is looked at once more when the evaluation is over."""
    planted = tmp_path / "checkpoint-2" / "pytorch_model.bin"
    attacker = Attacker("on_prediction_step", lambda *_: _plant(planted.parent))
    _train(tmp_path, store, attacker, **settings)

    assert not planted.exists()
    assert verify_folder(planted.parent, store=store, thread=_RUN).metadata["step"] == 2


def test_a_save_that_a_later_callback_asks_for_does_not_seal_a_planted_file(
    store: Store, tmp_path: Path
) -> None:
    """A folder that was there before the save is not sealed."""

    def save(_state: Any, control: Any) -> None:
        control.should_save = True

    _plant(tmp_path / "checkpoint-1")
    with pytest.raises(FileNotSealed, match="there before the save"):
        _train(tmp_path, store, Attacker("on_step_end", save))
    (tmp_path / "free").mkdir()
    _train(tmp_path / "free", store, Attacker("on_step_end", save))

    assert [each.metadata["step"] for each in sealed_folders(store, _RUN)] == [2, 1]


def _swap(folder: Path) -> None:
    if folder.exists():
        file = folder / "model.safetensors"
        save_file({name: torch.ones_like(each) for name, each in load_file(file).items()}, file)


def test_a_best_folder_that_was_changed_is_not_loaded(store: Store, tmp_path: Path) -> None:
    """The Trainer ends before it loads a best folder that is not the sealed one."""
    best = {**_EACH_SECOND, "load_best_model_at_end": True}
    with pytest.raises(Edited):
        _train(
            tmp_path,
            store,
            Attacker("on_save", lambda *_: _swap(tmp_path / "checkpoint-2")),
            **best,
        )


def test_the_best_folder_is_loaded_from_a_copy(store: Store, tmp_path: Path) -> None:
    """Whoever changes the folder at the last moment does not change what is loaded."""
    trainer = _train(
        tmp_path,
        store,
        # This attacker comes after the callback, when the copy was made.
        Attacker("on_log", lambda *_: _swap(tmp_path / "checkpoint-2")),
        **{**_EACH_SECOND, "load_best_model_at_end": True},
    )

    assert trainer.state.best_model_checkpoint == str(tmp_path / "checkpoint-2")
    assert trainer.model is not None
    assert any(each.ne(1).any() for each in trainer.model.parameters())


def test_a_limit_that_would_delete_the_best_folder_is_refused(store: Store, tmp_path: Path) -> None:
    """The Trainer would delete every folder but the copy that it loaded."""
    best = {**_EACH_SECOND, "load_best_model_at_end": True, "save_total_limit": 1}
    with pytest.raises(UsageError, match="save_total_limit"):
        _train(tmp_path, store, **best)


def test_a_folder_of_something_else_is_not_resumed_from(store: Store, tmp_path: Path) -> None:
    """A sealed folder that no Trainer saved is an error of the tree."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    seal_folder(tmp_path / "other", store=store, thread=_RUN)
    with pytest.raises(ModelMalformed, match="expected a folder of a Trainer"):
        _train(tmp_path, store)


def test_a_deleted_newest_folder_names_the_one_to_go_back_to(store: Store, tmp_path: Path) -> None:
    """The hint has the checkpoint of the newest folder that is still there."""
    _train(tmp_path, store, max_steps=4)
    newest, older = sealed_folders(store, _RUN)
    (tmp_path / newest.folder).rename(tmp_path / "gone")
    with pytest.raises(ModelUnreadable) as caught:
        _train(tmp_path, store, max_steps=6)

    assert f"resume(output_dir, ref={older.ref.id!r})" in caught.value.hint
