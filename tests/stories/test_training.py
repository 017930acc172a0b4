# SPDX-License-Identifier: Apache-2.0
"""Training that was stopped goes on, in another process, as if it had never stopped."""

import os
from pathlib import Path

import pytest

from sealpoint_models import load_checkpoint
from tests.stories.trainer import OPTIMIZERS, PRECISIONS
from tests.training import same_state
from tests.warm import run_command

_STEPS = 12
_STOP = 7
_SECONDS_MAX = 240


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """The files of runs that never stopped, that did, and that forgot their random numbers."""
    whole, stopped, forgetful = (
        tmp_path_factory.mktemp(name) for name in ("whole", "stopped", "forgetful")
    )
    _in_a_process(
        f"t.main(Path(sys.argv[1]), 0, {_STEPS}); t.main(Path(sys.argv[2]), 0, {_STOP})",
        whole,
        stopped,
    )
    for file in stopped.iterdir():
        (forgetful / file.name).write_bytes(file.read_bytes())
    _in_a_process(
        f"t.main(Path(sys.argv[1]), {_STOP}, {_STEPS});"
        "torch.set_rng_state = lambda state: None;"
        f"t.main(Path(sys.argv[2]), {_STOP}, {_STEPS})",
        stopped,
        forgetful,
    )
    return whole, stopped, forgetful


def _in_a_process(program: str, *folders: Path) -> None:
    imports = "import sys; from pathlib import Path; import torch;"
    trainer = "from tests.stories import trainer as t;"
    words = ["python", "-c", imports + trainer + program, *map(str, folders)]
    result = run_command(words, Path.cwd(), dict(os.environ), _SECONDS_MAX)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_training_goes_on_bit_for_bit(
    optimizer: str, precision: str, folders: tuple[Path, Path, Path]
) -> None:
    """Every weight, moment, random number and loss is the same, down to the bytes of the file."""
    name = f"{optimizer}-{precision}-{_STEPS}.safetensors"
    whole, stopped = (folder / name for folder in folders[:2])
    state = load_checkpoint(whole)

    assert same_state(load_checkpoint(stopped), state)
    assert whole.read_bytes() == stopped.read_bytes()
    assert len(set(state["losses"])) > _STEPS / 2


def test_a_run_that_forgets_its_random_numbers_is_another_one(
    folders: tuple[Path, Path, Path],
) -> None:
    """The comparison notices when a part of the state is not taken up."""
    name = f"adamw-full-{_STEPS}.safetensors"
    whole, _, forgetful = (folder / name for folder in folders)

    assert forgetful.read_bytes() != whole.read_bytes()
