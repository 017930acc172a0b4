# SPDX-License-Identifier: Apache-2.0
"""Links where a model file is saved: nobody has a file replaced by planting one.

The attacker may write to the directory of the models, and to nothing else.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sealpoint.errors import ModelError, ModelUnreadable
from sealpoint_models import load_checkpoint, save_checkpoint

_KEPT = b"what the attacker may not write"


class Scene:
    """A directory of models, and a file of the same user elsewhere, such as the anchor."""

    def __init__(self, folder: Path) -> None:
        self.models, self.elsewhere = folder / "models", folder / "state"
        for made in (self.models, self.models / "run", self.elsewhere):
            made.mkdir()
        self.anchor = self.elsewhere / "anchor"
        self.anchor.write_bytes(_KEPT)
        self.path = self.models / "latest.safetensors"


def _straight(scene: Scene) -> None:
    scene.path.symlink_to(scene.anchor)


def _relative(scene: Scene) -> None:
    scene.path.symlink_to("../state/anchor")


def _through_below(scene: Scene) -> None:
    scene.path.symlink_to("run/../../state/anchor")


def _by_a_directory(scene: Scene) -> None:
    (scene.models / "there").symlink_to(scene.elsewhere)
    scene.path.symlink_to("there/anchor")


def _by_a_second_link(scene: Scene) -> None:
    (scene.models / "second").symlink_to(scene.anchor)
    scene.path.symlink_to("second")


def _to_a_name_that_is_free(scene: Scene) -> None:
    scene.path.symlink_to(scene.elsewhere / "new")


def _to_itself(scene: Scene) -> None:
    scene.path.symlink_to(scene.path.name)


@pytest.mark.parametrize(
    "plant",
    [
        *(_straight, _relative, _through_below, _by_a_directory, _by_a_second_link),
        *(_to_a_name_that_is_free, _to_itself),
    ],
)
def test_a_planted_link_has_nothing_replaced(
    tmp_path: Path, plant: Callable[[Scene], None]
) -> None:
    """The save is refused, and every file elsewhere is what it was; without the link it passes."""
    scene = Scene(tmp_path)
    save_checkpoint({"epoch": 1}, scene.path)
    assert load_checkpoint(scene.path) == {"epoch": 1}
    scene.path.unlink()
    plant(scene)
    for call in (partial(save_checkpoint, {"epoch": 2}), load_checkpoint):
        with pytest.raises(ModelError):
            call(scene.path)

    assert scene.anchor.read_bytes() == _KEPT
    assert [file.name for file in scene.elsewhere.iterdir()] == ["anchor"]
    assert scene.path.is_symlink()


@pytest.mark.parametrize("named", ["epoch-1.safetensors", "run/epoch-1.safetensors"])
def test_ones_own_link_is_followed_beside_it_and_below(tmp_path: Path, named: str) -> None:
    """The honest twin: a link that stays in its own directory keeps leading to the newest file."""
    scene = Scene(tmp_path)
    scene.path.symlink_to(named)
    for epoch in (1, 2):
        save_checkpoint({"epoch": epoch}, scene.path)

    assert scene.path.is_symlink()
    assert load_checkpoint(scene.models / named) == load_checkpoint(scene.path) == {"epoch": 2}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs a second user")
def test_a_link_of_somebody_else_is_not_followed(tmp_path: Path) -> None:
    """In a directory where each may replace only their own files, a link is another's request."""
    scene = Scene(tmp_path)
    target = scene.models / "epoch-1.safetensors"
    save_checkpoint({"epoch": 1}, target)
    scene.path.symlink_to(target.name)
    os.lchown(scene.path, 12345, 12345)
    with pytest.raises(ModelUnreadable):
        save_checkpoint({"epoch": 2}, scene.path)

    assert load_checkpoint(target) == {"epoch": 1}
    os.lchown(scene.path, 0, 0)
    save_checkpoint({"epoch": 2}, scene.path)
    assert load_checkpoint(target) == {"epoch": 2}
