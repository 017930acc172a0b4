# SPDX-License-Identifier: Apache-2.0
"""Files are written whole or not at all, and read as they are."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch._subclasses.fake_tensor import FakeTensorMode

import sealpoint
from sealpoint.errors import (
    FormatRefused,
    ModelError,
    ModelMalformed,
    ModelUnreadable,
    TypeNotAllowed,
    UsageError,
)
from sealpoint_models import load_checkpoint, open_checkpoint, save_checkpoint
from sealpoint_models._draft_file import ModelDraft
from sealpoint_models._file_reader import PIECE_BYTES
from tests.training import same_state


@pytest.mark.parametrize("call", ["pwrite", "fsync", "open"])
def test_a_disk_that_fails_leaves_the_old_file(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the disk is ours, names the file, and leaves nothing behind."""
    path = tmp_path / "a.safetensors"
    save_checkpoint({"a": torch.ones(3)}, path)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(ModelUnreadable, match="No space left"):
            save_checkpoint({"a": torch.zeros(3)}, path)

    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.safetensors"]


def test_short_writes_and_reads_are_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system call that does a part of its work is repeated for the rest."""
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:100], at))
    monkeypatch.setattr(os, "preadv", lambda fd, parts, at: read(fd, [parts[0][:90]], at))
    state = {"a": torch.arange(1000)}
    save_checkpoint(state, tmp_path / "a.safetensors")

    assert same_state(load_checkpoint(tmp_path / "a.safetensors"), state)


def test_a_file_is_synced_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the file, then the name, then the directory."""
    calls = []
    fsync, replace = os.fsync, Path.replace

    def synced(fd: int) -> None:
        calls.append("directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        fsync(fd)

    def replaced(source: Path, target: Path) -> Path:
        calls.append("name")
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    save_checkpoint({"a": torch.ones(3)}, tmp_path / "a.safetensors")

    assert calls == ["file", "name", "directory"]


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    """As any file that this process makes."""
    save_checkpoint({}, tmp_path / "a.safetensors")
    (tmp_path / "b").touch()

    assert (tmp_path / "a.safetensors").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_tensors_of_several_pieces_come_back(tmp_path: Path) -> None:
    """Tensors are cut for several workers and put together again."""
    state = {
        "long": torch.arange(PIECE_BYTES // 4 + 7, dtype=torch.int32).flip(0),
        "exact": torch.ones(PIECE_BYTES, dtype=torch.uint8),
        "short": torch.ones(3),
    }
    save_checkpoint(state, tmp_path / "a.safetensors")

    assert same_state(load_checkpoint(tmp_path / "a.safetensors"), state)


def test_a_file_that_ends_while_it_is_read_is_refused(tmp_path: Path) -> None:
    """A cut after the header was read is an error, and not a signal."""
    path = tmp_path / "a.safetensors"
    save_checkpoint({"a": torch.ones(3000)}, path)
    with open_checkpoint(path) as file:
        os.truncate(path, path.stat().st_size - 100)
        with pytest.raises(ModelMalformed, match="found the end at"):
            file.load()


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A directory or a pipe is refused at once."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ModelUnreadable):
            load_checkpoint(path)


def test_paths_that_no_system_takes_are_refused(tmp_path: Path) -> None:
    """A path with a NUL is an error of ours."""
    with pytest.raises(ModelUnreadable):
        load_checkpoint(f"{tmp_path}/a\0b")
    with pytest.raises(ModelUnreadable):
        save_checkpoint({}, f"{tmp_path}/a\0b")
    with pytest.raises(ModelUnreadable, match="No such file"):
        save_checkpoint({}, tmp_path / "nowhere" / "a.safetensors")


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_without_a_name_is_refused(path: str) -> None:
    """There is no file to write, and no error of Python's."""
    with sealpoint.open_store("memory:") as store:
        ref = store.thread("run").save({})
        with pytest.raises(ModelUnreadable):
            save_checkpoint({}, path)
        with pytest.raises(ModelUnreadable):
            save_checkpoint({}, path, store=store, thread="run")

        assert store.thread("run").load().ref == ref


def test_a_directory_that_cannot_be_opened_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that may be written to but not read is found out before anything is replaced."""
    path = tmp_path / "a.safetensors"
    save_checkpoint({"a": 1}, path)
    opened = os.open

    def refuse(name: Any, *arguments: Any, **named: Any) -> int:
        if Path(name) == tmp_path:
            raise PermissionError(13, "Permission denied")
        return opened(name, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ModelUnreadable, match="Permission denied"):
        save_checkpoint({"a": 2}, path)

    assert load_checkpoint(path) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.safetensors"]


@pytest.mark.parametrize("name", ["a.safetensors", "a.pt"])
def test_the_default_device_of_the_caller_does_not_matter(name: str, tmp_path: Path) -> None:
    """Files are saved, and loaded where map_location says, whatever device new tensors have."""
    save = save_checkpoint if name == "a.safetensors" else torch.save
    flags = torch.tensor([True, False, True])
    state = {"a": torch.ones(3), "b": torch.eye(2).to_sparse(), "c": flags[:2], "d": flags[1:]}
    with torch.device("meta"):
        save(state, tmp_path / name)
        loaded = load_checkpoint(tmp_path / name)

    assert same_state(loaded, state)


@pytest.mark.parametrize("name", ["a.safetensors", "a.pt"])
def test_no_file_is_loaded_into_tensors_without_memory(name: str, tmp_path: Path) -> None:
    """A mode in which tensors are only described is refused, with an error of ours."""
    save = save_checkpoint if name == "a.safetensors" else torch.save
    save({"a": torch.ones(3)}, tmp_path / name)
    with FakeTensorMode(), pytest.raises(ModelError):
        load_checkpoint(tmp_path / name)


def test_elements_are_not_left_out(tmp_path: Path) -> None:
    """In this mode of torch, its own loader leaves tensors as memory was before; ours is none."""
    torch.save({"a": torch.ones(3)}, tmp_path / "a.pt")
    with torch.serialization.skip_data():
        loaded = load_checkpoint(tmp_path / "a.pt")

    assert loaded["a"].tolist() == [1, 1, 1]


def test_a_file_is_known_by_its_bytes_whatever_its_name(tmp_path: Path) -> None:
    """A safetensors file is read as one; a pickle that is called one is refused."""
    save_checkpoint({"a": torch.ones(3)}, tmp_path / "a.pt")
    torch.save({"a": torch.ones(3)}, tmp_path / "b.safetensors")

    assert same_state(load_checkpoint(tmp_path / "a.pt"), {"a": torch.ones(3)})
    with pytest.raises(ModelError):
        load_checkpoint(tmp_path / "b.safetensors")


@pytest.mark.parametrize(
    "where",
    [
        "cpu",
        torch.device("cpu"),
        None,
        {"cpu": "cpu"},
        {"cuda:0": "cpu"},
        lambda storage, _location: storage,
        lambda _storage, _location: None,
    ],
)
def test_map_location_is_what_torch_takes(where: Any, tmp_path: Path) -> None:
    """A device, its name, a mapping, a function or None."""
    state = {"a": torch.ones(3), "b": torch.ones(2, 3).t()}
    save_checkpoint(state, tmp_path / "a.safetensors")

    assert same_state(load_checkpoint(tmp_path / "a.safetensors", where), state)


def test_tensors_go_where_map_location_says(tmp_path: Path) -> None:
    """Also to a device that holds no elements, with what shares memory still together."""
    base = torch.ones(4)
    save_checkpoint({"a": base, "b": base[1:]}, tmp_path / "a.safetensors")
    loaded = load_checkpoint(tmp_path / "a.safetensors", "meta")

    assert loaded["a"].device.type == loaded["b"].device.type == "meta"


def test_booleans_are_looked_at_before_they_go_where_nobody_can(tmp_path: Path) -> None:
    """A plain file of booleans loads to a device that holds no elements, or is refused."""
    path = tmp_path / "a.safetensors"
    save_file({"a": torch.tensor([True])}, path)
    with open_checkpoint(path) as file:
        assert file.tensor("a", "meta").is_meta
    assert load_checkpoint(path, "meta")["a"].is_meta
    path.write_bytes(path.read_bytes()[:-1] + b"\x02")
    with pytest.raises(ModelMalformed, match="booleans"):
        load_checkpoint(path, "meta")


@pytest.mark.parametrize("where", [3, "nowhere", object()])
def test_a_place_that_is_none_is_refused(where: Any, tmp_path: Path) -> None:
    """With an error about the argument."""
    save_checkpoint({"a": torch.ones(3)}, tmp_path / "a.safetensors")
    with pytest.raises(UsageError, match="map_location"):
        load_checkpoint(tmp_path / "a.safetensors", where)


def test_a_device_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    """The hint says how to load the file here."""
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    save_checkpoint({"a": torch.ones(3)}, tmp_path / "a.safetensors")
    with pytest.raises(ModelError, match="cuda") as caught:
        load_checkpoint(tmp_path / "a.safetensors", "cuda:0")

    assert "cpu" in caught.value.hint


@pytest.mark.parametrize("safe", [None, 0, 1, "", "yes"])
def test_safe_is_a_word_and_not_a_truth(safe: Any, tmp_path: Path) -> None:
    """A setting that is missing or misspelt never makes a load unsafe."""
    torch.save({"a": torch.ones(1)}, tmp_path / "a.pt")
    with pytest.raises(UsageError, match="safe: expected True or False"):
        load_checkpoint(tmp_path / "a.pt", safe=safe)


def test_drafts_of_ended_processes_are_removed_and_others_stay(tmp_path: Path) -> None:
    """A save clears away what a killed one left of the same file, and nothing else."""
    path = tmp_path / "a.safetensors"
    with ModelDraft(path) as living:
        abandoned = living._at.with_name(living._at.name.replace(".draft", "0.draft"))
        other = tmp_path / ".b.safetensors.0123456789abcdef.0.draft"
        abandoned.write_bytes(b"half a file")
        other.write_bytes(b"half of another")
        save_checkpoint({"a": torch.ones(3)}, path)

        assert not abandoned.exists()
        assert other.exists()
        assert living._at.exists()


def test_a_link_leads_to_the_file_that_is_saved(tmp_path: Path) -> None:
    """A link stays one, and what it names is replaced and loaded."""
    real, link = tmp_path / "real" / "a.safetensors", tmp_path / "latest.safetensors"
    real.parent.mkdir()
    link.symlink_to(real)
    with sealpoint.open_store("memory:") as store:
        for epoch in (1, 2):
            save_checkpoint({"epoch": epoch}, link, store=store, thread="run")

        assert load_checkpoint(link, store=store, thread="run") == {"epoch": 2}
    assert link.is_symlink()
    assert load_checkpoint(real) == {"epoch": 2}


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    """What only its owner could read stays so."""
    path = tmp_path / "a.safetensors"
    save_checkpoint({"epoch": 1}, path)
    path.chmod(0o600)
    save_checkpoint({"epoch": 2}, path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """A pipe or a device stays what it is."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelUnreadable, match="not a file, and is not replaced"):
        save_checkpoint({}, tmp_path / "pipe")

    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_an_archive_that_is_called_safetensors_is_named(tmp_path: Path) -> None:
    """The message says what it is, and not how long its header would be."""
    torch.save({"a": torch.ones(1)}, tmp_path / "a.safetensors")
    with pytest.raises(FormatRefused, match=r"an archive as torch\.save writes"):
        load_checkpoint(tmp_path / "a.safetensors")


def test_a_closed_file_says_so(tmp_path: Path) -> None:
    """Reading after closing is a mistake of the caller."""
    save_checkpoint({"a": torch.ones(3)}, tmp_path / "a.safetensors")
    with open_checkpoint(tmp_path / "a.safetensors") as file:
        pass
    with pytest.raises(UsageError, match="found it closed"):
        file.load()


@pytest.mark.parametrize("where", [3, "nowhere", object()])
def test_a_place_that_is_none_is_refused_for_archives_too(where: Any, tmp_path: Path) -> None:
    """The same error for every format."""
    torch.save({"a": torch.ones(1)}, tmp_path / "a.pt")
    with pytest.raises(UsageError, match="map_location"):
        load_checkpoint(tmp_path / "a.pt", where)


def test_a_url_is_not_a_store(tmp_path: Path) -> None:
    """The hint says how to open one."""
    with pytest.raises(UsageError, match="expected an open store") as caught:
        save_checkpoint({}, tmp_path / "a", store="sqlite:///a.db", thread="x")  # type: ignore[arg-type]

    assert "open_store" in caught.value.hint


def test_objects_with_a_state_dict_say_what_to_save(tmp_path: Path) -> None:
    """Saving a module instead of its state is the usual mistake."""
    with pytest.raises(TypeNotAllowed, match="Linear") as caught:
        save_checkpoint({"net": torch.nn.Linear(1, 1)}, tmp_path / "a.safetensors")

    assert "state_dict()" in caught.value.hint
