# SPDX-License-Identifier: Apache-2.0
"""Somebody who can write to a folder, or beside it, while it is sealed, verified or copied."""

import json
import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import sealpoint
from sealpoint.api import Store
from sealpoint.errors import (
    Edited,
    ModelError,
    ModelLimitExceeded,
    ModelMalformed,
    ModelUnreadable,
    SealpointError,
    UsageError,
)
from sealpoint.limits import MODEL_PICKLE_BYTES_MAX
from sealpoint_models import (
    load_folder,
    open_folder,
    seal_folder,
    verified_copy,
    verify_folder,
)
from sealpoint_models._file_reader import ReadFile
from sealpoint_models._folder_reader import ReadFolder
from sealpoint_models.scan import ScanVerdict, scan_bytes, scan_path

_RUN = "run-1"
_TOO_LARGE = 1 << 40
"""A file without bytes of its own, which no disk could hold and nobody reads to the end."""


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory."""
    with sealpoint.open_store("memory:") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, store: Store) -> Path:
    """A folder that was sealed."""
    made = tmp_path / "model"
    made.mkdir()
    save_file({"weight": torch.ones(4)}, made / "model.safetensors")
    (made / "config.json").write_text("{}")
    seal_folder(made, store=store, thread=_RUN)
    return made


@pytest.mark.parametrize("place", ["scratch", "scratch/below"])
def test_no_copy_is_made_where_others_can_put_their_own_in_its_place(
    store: Store, folder: Path, tmp_path: Path, place: str
) -> None:
    """A directory that others write to, or one below it, is refused; a sticky one is not."""
    directory = tmp_path / place
    directory.mkdir(parents=True)
    shared = tmp_path / "scratch"
    shared.chmod(0o777)
    run: dict[str, Any] = {"store": store, "thread": _RUN, "directory": directory}
    with pytest.raises(UsageError, match="only its owner writes"), verified_copy(folder, **run):
        pass
    shared.chmod(0o1777)
    with verified_copy(folder, **run) as copy:
        assert (copy / "config.json").read_text() == "{}"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs a second user")
def test_no_copy_is_made_in_a_directory_of_somebody_else(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    """Its owner could rename whatever is in it."""
    directory = tmp_path / "theirs"
    directory.mkdir()
    os.chown(directory, 12345, 12345)
    run: dict[str, Any] = {"store": store, "thread": _RUN, "directory": directory}
    with pytest.raises(UsageError, match="as its owner"), verified_copy(folder, **run):
        pass


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_without_an_end_is_neither_read_nor_copied(
    store: Store, folder: Path, name: str
) -> None:
    """A file that was made huge is refused at once, by its size."""
    os.truncate(folder / name, _TOO_LARGE)
    run: dict[str, Any] = {"store": store, "thread": _RUN}
    with pytest.raises(Edited, match=f"1 of its files changed, such as '{name}'"):
        verify_folder(folder, **run)
    with pytest.raises(Edited), verified_copy(folder, **run):
        pass
    (folder / "planted").touch()
    os.truncate(folder / "planted", _TOO_LARGE)
    with pytest.raises(SealpointError):
        load_folder(folder, **run)


def test_a_file_that_grows_while_it_is_copied_is_not_copied_on(
    store: Store, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy has the bytes that were sealed, and no more."""

    def read_and_grow(file: ReadFile, offset: int, length: int) -> bytes:
        os.truncate(file.path, _TOO_LARGE)
        return read(file, offset, length)

    read = ReadFile.read
    monkeypatch.setattr(ReadFile, "read", read_and_grow)
    with verified_copy(folder, store=store, thread=_RUN, directory=tmp_path) as copy:
        assert (copy / "config.json").stat().st_size == 2


@pytest.mark.parametrize(
    "named",
    ["/srv/outside.safetensors", "../outside.safetensors", "a/../../x.bin", ".git/x", "C:\\x.bin"],
)
@pytest.mark.parametrize("form", ['{"weight_map": {"w": %s}}', '{"w": %s}'])
@pytest.mark.parametrize("ending", [".index.json", ".index.fp16.json", ".INDEX.JSON"])
def test_an_index_that_names_a_file_outside_is_neither_sealed_nor_safe(
    store: Store, folder: Path, named: str, form: str, ending: str
) -> None:
    """A reader of the folder, or of a verified copy of it, would read that file unverified."""
    text = form % json.dumps(named)
    twice = text.replace("}", ', "w": "model.safetensors"}', 1)
    path = folder / f"model.safetensors{ending}"
    for index in (text, twice):
        path.write_text(index)
        with pytest.raises(ModelMalformed, match="an index of files next to it"):
            seal_folder(folder, store=store, thread=_RUN)

        assert scan_bytes(index.encode(), path.name).verdict is ScanVerdict.DANGEROUS
    path.write_text(form % '"model.safetensors"')
    seal_folder(folder, store=store, thread=_RUN)

    assert scan_bytes(path.read_bytes(), path.name).verdict is ScanVerdict.NOT_READ


def test_an_index_that_is_too_large_to_look_into_is_neither_sealed_nor_safe(
    store: Store, folder: Path
) -> None:
    """Spaces behind it do not keep anybody from looking at the names in it."""
    path = folder / "model.safetensors.index.json"
    path.write_text('{"weight_map": {"w": "../outside.safetensors"}}')
    with path.open("a") as file:
        file.write(" " * MODEL_PICKLE_BYTES_MAX)
    with pytest.raises(ModelLimitExceeded, match="expected an index of at most"):
        seal_folder(folder, store=store, thread=_RUN)

    assert "limit" in {finding.rule for finding in scan_path(path).findings}


@pytest.mark.parametrize(
    "names",
    [
        *(("a.bin", "a\u034f.bin"), ("a.bin", "a\ufe0f.bin"), ("x", "x\u3164")),
        *(("NUL",), ("Aux.json",), ("com1.bin",), ("a\u2028b",)),
    ],
)
def test_names_that_another_system_reads_otherwise_are_not_sealed(
    store: Store, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Names that differ in what is ignored, names of devices and names in two lines are refused."""
    for name in names:
        (tmp_path / name).write_text("x")
    with pytest.raises(ModelError):
        seal_folder(tmp_path, store=store, thread=_RUN)


def test_a_full_disk_is_not_told_as_a_damaged_file(store: Store, folder: Path) -> None:
    """A file of torch.save that finds no room to be read from is whole, and so the error says."""
    torch.save({"weight": torch.ones(4096)}, folder / "optimizer.pt")
    seal_folder(folder, store=store, thread=_RUN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_folder(folder, store=store, thread=_RUN) as opened:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            with pytest.raises(ModelUnreadable):
                opened.load_file("optimizer.pt")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

        assert opened.load_file("optimizer.pt")["weight"].sum() == 4096


def test_threads_that_list_one_folder_at_once_all_see_the_whole_list(tmp_path: Path) -> None:
    """No thread moves another one past a name, or back to it."""
    for number in range(2000):
        (tmp_path / f"{number:04}").touch()
    with ReadFolder(tmp_path) as folder, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: len(folder.names().files), range(40)))

    assert set(found) == {2000}


def test_folders_are_not_counted_as_files(store: Store, folder: Path) -> None:
    """The message says how many files, and how many folders, were not sealed."""
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "planted").touch()
    with pytest.raises(Edited) as caught:
        verify_folder(folder, store=store, thread=_RUN)

    assert "1 file not sealed, such as 'a/planted' and 2 folders not sealed" in str(caught.value)
