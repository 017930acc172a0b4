# SPDX-License-Identifier: Apache-2.0
"""Training that was stopped goes on, in another process, as if it had never stopped."""

import subprocess
import sys
from pathlib import Path

import pytest

from sealpoint.models import load_checkpoint
from tests.stories.trainer import OPTIMIZERS, PRECISIONS
from tests.training import same_state

_STEPS = 12
_STOP = 7


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The files of runs that never stopped, and of runs that did."""
    whole, stopped = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("stopped")
    for folder, first, last in ((whole, 0, _STEPS), (stopped, 0, _STOP), (stopped, _STOP, _STEPS)):
        program = [sys.executable, "-m", "tests.stories.trainer", str(folder)]
        subprocess.run([*program, str(first), str(last)], check=True)
    return whole, stopped


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_training_goes_on_bit_for_bit(
    optimizer: str, precision: str, folders: tuple[Path, Path]
) -> None:
    """Every weight, moment, random number and loss is the same, down to the bytes of the file."""
    name = f"{optimizer}-{precision}-{_STEPS}.safetensors"
    whole, stopped = (folder / name for folder in folders)
    state = load_checkpoint(whole)

    assert same_state(load_checkpoint(stopped), state)
    assert whole.read_bytes() == stopped.read_bytes()
    assert len(set(state["losses"])) > _STEPS / 2


def test_a_run_that_forgets_its_random_numbers_is_another_one(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """The comparison notices when a part of the state is not taken up."""
    program = (
        "import sys; from pathlib import Path; import torch;"
        "from tests.stories import trainer as t;"
        "torch.set_rng_state = lambda state: None;"
        "t.main(Path(sys.argv[1]), 7, 12)"
    )
    for file in folders[1].glob(f"*-{_STOP}.safetensors"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    name = f"adamw-full-{_STEPS}.safetensors"

    assert (tmp_path / name).read_bytes() != (folders[0] / name).read_bytes()
