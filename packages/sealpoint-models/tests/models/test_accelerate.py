# SPDX-License-Identifier: Apache-2.0
"""A real Accelerator saves and loads sealed folders, and its hooks refuse changed ones."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration

import sealpoint
from sealpoint.api import Store
from sealpoint.errors import Edited, FileNotSealed, RolledBack, UsageError
from sealpoint_models import open_folder, sealed_folders, verify_folder
from sealpoint_models.accelerate import SealedStates

pytestmark = pytest.mark.filterwarnings("ignore")

_RUN = "run-1"


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory."""
    with sealpoint.open_store("memory:") as opened:
        yield opened


class _Training:
    """A model with an optimizer and a schedule, prepared by an Accelerator."""

    def __init__(self, store: Store, project: Path | None = None) -> None:
        torch.manual_seed(0)
        configuration = ProjectConfiguration(
            project_dir=None if project is None else str(project),
            automatic_checkpoint_naming=project is not None,
            total_limit=2,
        )
        self.accelerator = Accelerator(cpu=True, project_config=configuration)
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        self.model, self.optimizer, self.schedule = self.accelerator.prepare(
            model, optimizer, schedule
        )
        self.states = SealedStates(self.accelerator, store=store, thread=_RUN)

    def step(self) -> None:
        """Train for a step."""
        loss = self.model(torch.rand(4, 3)).square().mean()
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()


def test_a_run_goes_on_from_a_sealed_state(store: Store, tmp_path: Path) -> None:
    """Weights, moments, schedule and random numbers come back, and the checkpoint says so."""
    training = _Training(store)
    training.step()
    ref = training.states.save(tmp_path / "one", metadata={"step": 1})
    training.step()
    resumed = _Training(store)
    resumed.states.load(tmp_path / "one")
    resumed.step()

    assert ref is not None
    assert ref.metadata["step"] == 1
    assert torch.equal(resumed.model.weight, training.model.weight)
    assert verify_folder(tmp_path / "one", store=store, thread=_RUN).files >= 4


def test_changed_states_are_refused_by_both_doors(store: Store, tmp_path: Path) -> None:
    """Edited, older and foreign folders are refused by `load`, and by the hook of `load_state`."""
    training = _Training(store)
    one, two, foreign = tmp_path / "one", tmp_path / "two", tmp_path / "foreign"
    training.states.save(one)
    training.step()
    training.states.save(two)
    shutil.copytree(two, foreign)
    for path in foreign.iterdir():
        path.write_bytes(path.read_bytes() + b"x")
    before = training.model.weight.clone()
    for path, error in ((one, RolledBack), (foreign, FileNotSealed)):
        with pytest.raises(error):
            training.states.load(path)
        with pytest.raises(error):
            training.accelerator.load_state(str(path))
    with (two / "random_states_0.pkl").open("ab") as file:
        file.write(b"x")
    for load in (training.states.load, lambda path: training.accelerator.load_state(str(path))):
        with pytest.raises(Edited, match="random_states_0"):
            load(two)
    older = list(sealed_folders(store, _RUN))[1]
    assert torch.equal(training.model.weight, before)
    training.states.load(one, ref=older.ref)

    assert not torch.equal(training.model.weight, before)


def test_folders_that_accelerate_names_are_sealed_and_rotated(store: Store, tmp_path: Path) -> None:
    """With automatic names, each state is sealed where accelerate puts it, and old ones go."""
    training = _Training(store, tmp_path)

    assert training.states.newest(tmp_path / "checkpoints") is None
    for _ in range(3):
        training.step()
        training.states.save()
    newest = training.states.newest(tmp_path / "checkpoints")
    assert newest == tmp_path / "checkpoints" / "checkpoint_2"
    assert sorted(path.name for path in newest.parent.iterdir()) == ["checkpoint_1", "checkpoint_2"]
    training.states.load(newest)
    training.accelerator.load_state()


def test_a_run_whose_newest_is_no_folder_does_not_begin_anew(store: Store, tmp_path: Path) -> None:
    """Only a run that never saved has no newest folder; anything else in its thread is an error."""
    training = _Training(store)
    training.states.save(tmp_path / "one")
    store.thread(_RUN).save({"step": 1})

    with pytest.raises(FileNotSealed, match="expected checkpoints of folders"):
        training.states.newest(tmp_path)


def test_a_folder_with_files_is_not_saved_into(store: Store, tmp_path: Path) -> None:
    """What somebody planted before a save does not become part of a sealed folder."""
    training = _Training(store)
    (tmp_path / "custom_checkpoint_0.pkl").write_bytes(b"planted")
    with pytest.raises(UsageError, match="expected an empty folder"):
        training.states.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["custom_checkpoint_0.pkl"]


def test_closed_states_leave_the_accelerator_alone(store: Store, tmp_path: Path) -> None:
    """After `close`, the Accelerator saves and loads as if nobody had registered a hook."""
    training = _Training(store)
    training.states.close()
    training.states.close()
    training.accelerator.save_state(str(tmp_path))
    training.accelerator.load_state(str(tmp_path))

    assert training.states.newest(tmp_path) is None


def test_files_that_are_written_before_the_hook_are_sealed(store: Store, tmp_path: Path) -> None:
    """FSDP, and hooks of the application, write into the folder before this hook is asked."""
    accelerator = Accelerator(cpu=True)
    accelerator.prepare(torch.nn.Linear(3, 1))
    accelerator.register_save_state_pre_hook(
        lambda _models, _weights, output_dir: Path(output_dir, "adapter.bin").write_bytes(b"x")
    )
    states = SealedStates(accelerator, store=store, thread=_RUN)
    states.save(tmp_path / "one")
    with pytest.raises(UsageError, match="expected an empty folder"):
        states.save(tmp_path / "one")

    with open_folder(tmp_path / "one", store=store, thread=_RUN) as folder:
        assert folder.read("adapter.bin") == b"x"
