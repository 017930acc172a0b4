# SPDX-License-Identifier: Apache-2.0
"""A thread vouches for model files: edited, foreign and older ones are refused."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import sealpoint
from sealpoint.api import Store
from sealpoint.errors import (
    AnchorUnavailable,
    Edited,
    FileNotSealed,
    ModelMalformed,
    ModelUnreadable,
    Paused,
    RolledBack,
    SealpointError,
    StorageUnavailable,
    UnknownThread,
    UsageError,
)
from sealpoint.gate import Thread
from sealpoint_models import load_checkpoint, open_checkpoint, save_checkpoint
from sealpoint_models._draft_file import waiting_path
from sealpoint_models._file_reader import ReadFile
from tests.training import same_state


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory."""
    with sealpoint.open_store("memory:") as opened:
        yield opened


def _state(epoch: int) -> dict[str, Any]:
    return {"epoch": epoch, "weight": torch.full((100,), float(epoch)), "bias": torch.zeros(3)}


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_the_newest_file_of_a_run_loads(store: Store, tmp_path: Path) -> None:
    """What was saved last is what is loaded, and the checkpoint says which file it was."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    ref = save_checkpoint(_state(2), path, store=store, thread="run", metadata={"epoch": 2})
    loaded = load_checkpoint(path, store=store, thread="run")

    assert same_state(loaded, _state(2))
    assert ref is not None
    assert ref.metadata["epoch"] == 2
    assert ref.metadata["model"]["file"] == "last.safetensors"
    assert next(iter(store.thread("run").history())).id == ref.id
    assert [file.name for file in tmp_path.iterdir()] == ["last.safetensors"]


def test_every_edit_of_a_byte_is_refused(store: Store, tmp_path: Path) -> None:
    """Wherever a byte changes, in the length, the header or an element, nothing is loaded."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    genuine = path.read_bytes()
    for at in range(0, len(genuine), 9):
        _flip(path, at)
        with pytest.raises((Edited, FileNotSealed)):
            load_checkpoint(path, store=store, thread="run")
        path.write_bytes(genuine)

    assert same_state(load_checkpoint(path, store=store, thread="run"), _state(1))


def test_an_edited_tensor_is_named(store: Store, tmp_path: Path) -> None:
    """The error says which tensor is not what it was."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    with open_checkpoint(path) as file:
        place = {tensor.name: tensor.begin for tensor in file.tensors}
    _flip(path, place["weight"] + 5)
    with pytest.raises(Edited, match="1 of its tensors changed, such as 'weight'") as caught:
        load_checkpoint(path, store=store, thread="run")
    assert "Do not use this file" in caught.value.hint


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0", bytes])
def test_a_file_of_another_length_is_refused(store: Store, tmp_path: Path, change: Any) -> None:
    """A file that was cut, made longer, or emptied is not the one."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    path.write_bytes(change(path.read_bytes()) if change is not bytes else b"")
    with pytest.raises(FileNotSealed):
        load_checkpoint(path, store=store, thread="run")


def test_a_file_of_another_run_is_refused(store: Store, tmp_path: Path) -> None:
    """A genuine file of another thread is foreign here."""
    mine, other = tmp_path / "mine.safetensors", tmp_path / "other.safetensors"
    save_checkpoint(_state(1), mine, store=store, thread="run")
    save_checkpoint(_state(2), other, store=store, thread="other")
    shutil.copy(other, mine)
    with pytest.raises(FileNotSealed, match="no checkpoint of this thread"):
        load_checkpoint(mine, store=store, thread="run")


def test_an_older_file_is_refused_unless_it_is_asked_for(store: Store, tmp_path: Path) -> None:
    """Putting yesterday's file back is told apart, and is possible on purpose."""
    path, copy = tmp_path / "last.safetensors", tmp_path / "copy.safetensors"
    first = save_checkpoint(_state(1), path, store=store, thread="run")
    shutil.copy(path, copy)
    save_checkpoint(_state(2), path, store=store, thread="run")
    shutil.copy(copy, path)
    assert first is not None
    with pytest.raises(RolledBack, match=first.id) as caught:
        load_checkpoint(path, store=store, thread="run")
    assert f"ref={first.id!r}, --ref seq:{first.seq}" in caught.value.hint

    assert same_state(load_checkpoint(path, store=store, thread="run", ref=first), _state(1))


def test_a_new_file_is_not_taken_for_an_older_checkpoint(store: Store, tmp_path: Path) -> None:
    """Asking for an older checkpoint means its file and no other."""
    path = tmp_path / "last.safetensors"
    first = save_checkpoint(_state(1), path, store=store, thread="run")
    save_checkpoint(_state(2), path, store=store, thread="run")
    with pytest.raises(RolledBack):
        load_checkpoint(path, store=store, thread="run", ref=first)


def test_one_tensor_is_verified_without_the_others(store: Store, tmp_path: Path) -> None:
    """A tensor that is whole is read from a file in which another one is not."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    with open_checkpoint(path) as file:
        place = {tensor.name: tensor.begin for tensor in file.tensors}
    _flip(path, place["weight"])
    with open_checkpoint(path, store=store, thread="run") as file:
        assert torch.equal(file.tensor("bias"), torch.zeros(3))
        assert len(file.verify_tensor("bias")) == 32
        with pytest.raises(Edited, match="weight"):
            file.tensor("weight")
        with pytest.raises(Edited, match="weight"):
            file.verify_tensor("weight")
        with pytest.raises(Edited, match="weight"):
            file.digests()
        with pytest.raises(UsageError, match="named 'nobody'"):
            file.tensor("nobody")


def test_a_file_changed_after_it_was_opened_is_refused_or_as_it_was(
    store: Store, tmp_path: Path
) -> None:
    """What is verified and what is loaded are the same bytes."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    with open_checkpoint(path, store=store, thread="run") as file:
        loaded = file.load()
        with path.open("r+b") as changed:
            changed.seek(-4, 2)
            changed.write(b"\xff\xff\xff\xff")
        with pytest.raises(Edited):
            file.load()

    assert same_state(loaded, _state(1))


def test_a_file_that_changes_while_it_is_read_is_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that are wrong once are wrong, also if they are right when somebody looks again."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    genuine, reads = ReadFile.read_into, []

    def flicker(file: ReadFile, memory: memoryview, offset: int) -> None:
        genuine(file, memory, offset)
        reads.append(offset)
        if len(reads) == 3:
            memory[0] ^= 1

    monkeypatch.setattr(ReadFile, "read_into", flicker)
    with pytest.raises(Edited, match="changed while it was read"):
        load_checkpoint(path, store=store, thread="run")


def test_another_store_does_not_vouch_for_a_run(store: Store, tmp_path: Path) -> None:
    """A thread of the same name elsewhere is another one."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    with sealpoint.open_store("memory:") as other, pytest.raises(UnknownThread):
        load_checkpoint(path, store=other, thread="run")


class _Failing:
    """Makes a thread's save fail in a given way, before or after it has saved."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, error: SealpointError, *, saved: bool
    ) -> None:
        genuine = Thread.save

        def save(thread: Thread, state: Any, **options: Any) -> Any:
            if saved:
                ref = genuine(thread, state, **options)
                if isinstance(error, AnchorUnavailable):
                    error.ref = ref
            raise error

        monkeypatch.setattr(Thread, "save", save)


def test_a_save_that_the_store_refuses_leaves_the_old_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the thread does not record does not take the place of what it does."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    with monkeypatch.context() as patch:
        _Failing(patch, Paused("paused"), saved=False)
        with pytest.raises(Paused):
            save_checkpoint(_state(2), path, store=store, thread="run")

    assert same_state(load_checkpoint(path, store=store, thread="run"), _state(1))
    assert [file.name for file in tmp_path.iterdir()] == ["last.safetensors"]


def test_a_save_without_an_anchor_stands(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry stands, and so does its file."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    with monkeypatch.context() as patch:
        _Failing(patch, AnchorUnavailable("down"), saved=True)
        with pytest.raises(AnchorUnavailable):
            save_checkpoint(_state(2), path, store=store, thread="run")

    assert same_state(load_checkpoint(path, store=store, thread="run"), _state(2))
    assert [file.name for file in tmp_path.iterdir()] == ["last.safetensors"]


@pytest.mark.parametrize("saved", [False, True])
def test_nobody_knows_whether_it_was_saved_and_nothing_is_lost(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, saved: bool
) -> None:
    """The newest file that the thread knows is there, whether or not the entry was written."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    with monkeypatch.context() as patch:
        _Failing(patch, StorageUnavailable("gone"), saved=saved)
        with pytest.raises(StorageUnavailable):
            save_checkpoint(_state(2), path, store=store, thread="run")

    assert same_state(load_checkpoint(path, store=store, thread="run"), _state(2 if saved else 1))
    assert same_state(load_checkpoint(path), _state(2 if saved else 1))


def test_a_waiting_file_that_is_not_the_one_is_left_alone(store: Store, tmp_path: Path) -> None:
    """Whoever puts a file where one would wait gains nothing."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    with open_checkpoint(path) as file:
        root = file.digests().root
    planted = waiting_path(path, root)
    for data in (b"junk", path.read_bytes()[:-1] + b"\xff"):
        planted.write_bytes(data)

        assert same_state(load_checkpoint(path, store=store, thread="run"), _state(1))
        assert same_state(load_checkpoint(path), _state(1))


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_waiting_link_does_not_take_the_place_of_the_file(
    store: Store, tmp_path: Path, link: str
) -> None:
    """A file that somebody else still holds is loaded, but replaces nothing."""
    path, elsewhere = tmp_path / "last.safetensors", tmp_path / "elsewhere"
    save_checkpoint(_state(1), path, store=store, thread="run")
    shutil.copy(path, elsewhere)
    with open_checkpoint(path) as file:
        root = file.digests().root
    before = path.stat().st_ino
    getattr(waiting_path(path, root), link)(elsewhere)

    loaded = load_checkpoint(path, store=store, thread="run")

    assert same_state(loaded, _state(1))
    assert path.lstat().st_ino == before


@pytest.mark.parametrize("names", [[], ["weight"], ["weight", "bias", "more"]])
def test_a_manifest_of_other_tensors_refuses_the_file(
    store: Store, tmp_path: Path, names: list[str]
) -> None:
    """A genuine writer who leaves tensors out, or invents some, vouches for no file."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    manifest = store.thread("run").load().state
    tensors = {name: manifest["tensors"].get(name, "00" * 32) for name in names}
    store.thread("other").save({**manifest, "tensors": tensors})
    with open_checkpoint(path, store=store, thread="other") as file:
        if names != ["weight", "bias", "more"]:
            with pytest.raises((Edited, FileNotSealed)):
                file.load()
        else:
            assert same_state(file.load(), _state(1))


def test_a_thread_of_something_else_vouches_for_no_file(store: Store, tmp_path: Path) -> None:
    """A checkpoint of an agent is not one of a model file."""
    path = tmp_path / "last.safetensors"
    store.thread("agent").save({"messages": []})
    save_checkpoint(_state(1), path)
    with pytest.raises(ModelMalformed, match="is not one of a model file"):
        load_checkpoint(path, store=store, thread="agent")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "sealpoint.model.v2"},
        {"size": True},
        {"size": "1"},
        {"header": "00"},
        {"header": "zz" * 32},
        {"header": None},
        {"header": "AB" * 32},
        {"tensors": []},
        {"tensors": {"a": 1}},
        {"more": 1},
    ],
)
def test_a_manifest_is_exactly_one(store: Store, tmp_path: Path, change: dict[str, Any]) -> None:
    """A checkpoint that is nearly a manifest is none."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    manifest = store.thread("run").load().state
    store.thread("run").save({**manifest, **change})
    with pytest.raises(ModelMalformed, match="is not one of a model file"):
        load_checkpoint(path, store=store, thread="run")


def test_arguments_that_do_not_fit_are_refused(store: Store, tmp_path: Path) -> None:
    """A store needs a thread, a ref a store, and nothing is unsafe with a store."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path)
    for wrong in (
        lambda: load_checkpoint(path, store=store),
        lambda: load_checkpoint(path, thread="run"),
        lambda: load_checkpoint(path, ref="x"),
        lambda: open_checkpoint(path, ref="x"),
        lambda: load_checkpoint(path, safe=False, store=store, thread="run"),
        lambda: save_checkpoint({}, path, store=store),
        lambda: save_checkpoint({}, path, metadata={"a": 1}),
        lambda: save_checkpoint({}, path, store=store, thread="run", metadata={"model": 1}),
    ):
        with pytest.raises(UsageError):
            wrong()


def test_a_file_that_is_not_there_is_said_to_be_missing(store: Store, tmp_path: Path) -> None:
    """With a store and without."""
    path = tmp_path / "last.safetensors"
    save_checkpoint(_state(1), path, store=store, thread="run")
    path.unlink()
    for options in ({}, {"store": store, "thread": "run"}):
        with pytest.raises(ModelUnreadable, match="No such file"):
            load_checkpoint(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["folder", "x" * 300])
def test_a_place_that_takes_no_file_is_found_out_before_the_entry(
    store: Store, tmp_path: Path, name: str
) -> None:
    """No checkpoint vouches for a file that could never be where it belongs."""
    (tmp_path / "folder").mkdir()
    ref = store.thread("run").save({})
    with pytest.raises(ModelUnreadable):
        save_checkpoint(_state(1), tmp_path / name, store=store, thread="run")

    assert store.thread("run").load().ref == ref
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("refused", [0, 1])
def test_two_writers_of_one_state_do_not_take_each_others_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """One of them is refused while the other one waits for its entry, in either order."""
    path = tmp_path / "last.safetensors"
    saves = []
    real = Thread.save

    def save(thread: Any, *arguments: Any, **options: Any) -> Any:
        saves.append(thread)
        number = len(saves) - 1
        if number == 0:
            with contextlib.suppress(Paused, ModelUnreadable):
                save_checkpoint(_state(1), path, store=store, thread="run")
        if number == refused:
            raise Paused("stopped by an operator")
        return real(thread, *arguments, **options)

    monkeypatch.setattr(Thread, "save", save)
    with contextlib.suppress(Paused):
        save_checkpoint(_state(1), path, store=store, thread="run")

    assert len(saves) == 2
    assert same_state(load_checkpoint(path, store=store, thread="run"), _state(1))
