# SPDX-License-Identifier: Apache-2.0
"""Real groups of processes save and load sharded checkpoints; torch's own are read as data."""

import io
import json
import multiprocessing
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

import sealpoint
import sealpoint_models
from sealpoint.api import Store
from sealpoint.errors import (
    Edited,
    FileNotSealed,
    ModelMalformed,
    ModelUnreadable,
    RolledBack,
    SealpointError,
    TypeNotAllowed,
    UnknownThread,
    UsageError,
)
from sealpoint_models import sealed_folders, verify_folder
from sealpoint_models.distributed import (
    SafeFileSystemReader,
    SealedStorageReader,
    SealedStorageWriter,
)
from tests.models import distributed_worker as worker

pytestmark = pytest.mark.filterwarnings("ignore")

_RUN = "run-1"
# Forked from a process that has torch already: importing it takes longer than all that is tested.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([worker.__name__])


class _Group:
    """Starts groups of processes that work on one store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._meetings = 0
        (directory / "store").mkdir()
        sealpoint.init(worker.url(directory), **worker.places(directory))

    def run(self, action: str, size: int, folder: str, value: int = 0) -> list[dict[str, Any]]:
        """What each process of a group told; nothing of those that were ended."""
        self._meetings += 1
        meeting = self.directory / f"meeting-{self._meetings}"
        processes = [
            _CONTEXT.Process(
                target=worker.main,
                args=(
                    [
                        *(action, str(self.directory / folder), str(meeting)),
                        *(str(rank), str(size), str(value)),
                    ],
                ),
            )
            for rank in range(size)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        if action != "kill":
            assert [process.exitcode for process in processes] == [0] * size
        told = sorted(self.directory.glob(f"{meeting.name}-*.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in told]


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> _Group:
    """A store in a file, and two checkpoints of a group of two, `step-1` and `step-2`."""
    made = _Group(tmp_path_factory.mktemp("group"))
    made.run("save", 2, "step-1", 1)
    made.run("save", 2, "step-2", 2)
    return made


def _expected(value: int) -> dict[str, Any]:
    numbers = [float(number + value) for number in range(worker.ROWS * 2)]
    return {"weight": numbers, "bias": numbers[:2], "step": value, "history": [value, "a"]}


@pytest.mark.parametrize("size", [2, 1, 3])
def test_a_group_of_any_size_loads_what_two_processes_saved(group: _Group, size: int) -> None:
    """Each process has its part of the newest checkpoint, and the values beside it."""
    told = group.run("load", size, "step-2")

    assert told == [_expected(2)] * size


def test_each_process_wrote_files_of_its_own_and_no_pickle(group: _Group) -> None:
    """The folder holds safetensors files only, of both processes, and is one checkpoint."""
    names = [path.name for path in (group.directory / "step-2").iterdir()]
    where = worker.places(group.directory)
    with sealpoint.open_store(worker.url(group.directory), read_only=True, **where) as store:
        sealed = [each.folder for each in sealed_folders(store, _RUN)]

    assert {"metadata", "rank-00000", "rank-00001"} <= {name.split(".")[0] for name in names}
    assert all(name.endswith(".safetensors") for name in names)
    assert sealed == ["step-2", "step-1"]


def test_every_process_is_told_of_an_older_and_of_a_changed_checkpoint(group: _Group) -> None:
    """All processes refuse, also those whose own part is untouched."""
    copy = group.directory / "copy"
    shutil.copytree(group.directory / "step-2", copy)
    shard = copy / "rank-00001.safetensors"
    raw = bytearray(shard.read_bytes())
    raw[-1] ^= 1
    shard.write_bytes(raw)
    edited = group.run("load", 2, "copy")
    older = group.run("load", 2, "step-1")

    assert edited == [{"refused": ["Edited"]}] * 2
    assert older == [{"refused": ["RolledBack"]}] * 2


def test_a_save_that_is_killed_leaves_the_one_before(tmp_path: Path) -> None:
    """The files are there, nothing vouches for them, and the next save to their place works."""
    group = _Group(tmp_path)
    group.run("save", 1, "step-2", 2)
    group.run("kill", 2, "step-3", 3)
    left = [path.name for path in (tmp_path / "step-3").iterdir()]
    before = group.run("load", 1, "step-2")
    group.run("save", 1, "step-3", 3)
    after = group.run("load", 1, "step-3")

    assert "rank-00001.safetensors" in left
    assert before == [_expected(2)]
    assert after == [_expected(3)]
    assert len(list(tmp_path.glob("step-3.unsealed-*"))) == 1


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory."""
    with sealpoint.open_store("memory:") as opened:
        yield opened


def _plain(value: int) -> dict[str, Any]:
    return {
        "weight": torch.full((3, 2), float(value)),
        "types": {
            "complex": torch.full((2,), 1 + 2j, dtype=torch.complex128),
            "half": torch.full((2,), 0.5, dtype=torch.bfloat16),
            "flag": torch.ones((), dtype=torch.bool),
            "none": torch.empty(0, 3),
            "turned": torch.arange(6).reshape(2, 3).T,
        },
        "step": value,
        "rates": [0.1, {"a": (1, None)}],
    }


def _save(state: dict[str, Any], folder: Path, store: Store, thread: str = _RUN) -> None:
    save(state, storage_writer=SealedStorageWriter(folder, store=store, thread=thread))


def _refusal(reader: Any, state: dict[str, Any]) -> SealpointError:
    with pytest.raises(CheckpointException) as caught:
        load(state, storage_reader=reader)
    ((error, _),) = caught.value.failures.values()
    assert isinstance(error, SealpointError)
    return error


def test_every_type_comes_back_in_one_process(store: Store, tmp_path: Path) -> None:
    """Tensors of all kinds and nested values are what was saved, and the reference says so."""
    writer = SealedStorageWriter(
        tmp_path / "unused", store=store, thread=_RUN, metadata={"step": 7}
    )
    save(_plain(7), storage_writer=writer, checkpoint_id=tmp_path / "step-7")
    state = _plain(0)
    reader = SealedStorageReader(tmp_path / "unused", store=store, thread=_RUN)
    load(state, storage_reader=reader, checkpoint_id=tmp_path / "step-7")
    sealed = verify_folder(tmp_path / "step-7", store=store, thread=_RUN)

    assert str(state) == str(_plain(7))
    assert writer.ref is not None
    assert writer.ref.id == sealed.ref.id
    assert sealed.metadata == {"step": 7}


def test_an_older_one_is_loaded_by_its_reference(store: Store, tmp_path: Path) -> None:
    """What is refused as the newest loads when its checkpoint is named."""
    first = SealedStorageWriter(tmp_path / "1", store=store, thread=_RUN)
    save(_plain(1), storage_writer=first)
    _save(_plain(2), tmp_path / "2", store)
    state = _plain(0)
    reader = SealedStorageReader(tmp_path / "1", store=store, thread=_RUN, ref=first.ref)
    load(state, storage_reader=reader)
    newest = SealedStorageReader(tmp_path / "1", store=store, thread=_RUN)

    assert state["step"] == 1
    assert isinstance(_refusal(newest, _plain(0)), RolledBack)


@pytest.mark.parametrize("name", ["metadata.safetensors", "rank-00000.values.safetensors"])
def test_changed_metadata_and_values_are_refused(store: Store, tmp_path: Path, name: str) -> None:
    """A load hands the refusal on, wherever in it the change is found."""
    _save(_plain(1), tmp_path / "1", store)
    file = tmp_path / "1" / name
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    reader = SealedStorageReader(tmp_path / "1", store=store, thread=_RUN)

    assert isinstance(_refusal(reader, _plain(0)), Edited)


def test_looking_into_refused_metadata_raises_the_refusal(store: Store, tmp_path: Path) -> None:
    """A caller of its own does not mistake a refused checkpoint for an empty one."""
    _save(_plain(1), tmp_path / "1", store)
    (tmp_path / "1" / "planted").touch()
    metadata = SealedStorageReader(tmp_path / "1", store=store, thread=_RUN).read_metadata()

    with pytest.raises(Edited):
        _ = metadata.state_dict_metadata


def test_a_sealed_folder_of_something_else_is_refused(store: Store, tmp_path: Path) -> None:
    """That a thread vouches for a folder does not make a distributed checkpoint of it."""
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "config.json").write_text("{}")
    sealpoint_models.seal_folder(tmp_path / "1", store=store, thread=_RUN)
    reader = SealedStorageReader(tmp_path / "1", store=store, thread=_RUN)

    assert isinstance(_refusal(reader, _plain(0)), ModelMalformed)


def test_a_folder_of_another_run_is_refused(store: Store, tmp_path: Path) -> None:
    """A thread does not vouch for what another one sealed."""
    _save(_plain(1), tmp_path / "1", store)
    _save({"other": torch.ones(5)}, tmp_path / "2", store, "run-2")
    reader = SealedStorageReader(tmp_path / "2", store=store, thread=_RUN)

    assert isinstance(_refusal(reader, _plain(0)), FileNotSealed)


def test_a_value_that_would_need_a_pickle_is_refused(store: Store, tmp_path: Path) -> None:
    """An object is refused by its type, and no checkpoint comes about."""
    writer = SealedStorageWriter(tmp_path / "1", store=store, thread=_RUN)
    with pytest.raises(CheckpointException) as caught:
        save({"buffer": io.BytesIO()}, storage_writer=writer)

    assert isinstance(caught.value.failures[0][0], TypeNotAllowed)
    assert writer.ref is None


def test_a_sealed_folder_is_not_written_over(store: Store, tmp_path: Path) -> None:
    """A second save to its place is refused, and it stays the newest."""
    _save(_plain(1), tmp_path / "1", store)
    with pytest.raises(CheckpointException) as caught:
        _save(_plain(2), tmp_path / "1", store)

    assert isinstance(caught.value.failures[0][0], UsageError)
    assert verify_folder(tmp_path / "1", store=store, thread=_RUN).folder == "1"


def test_a_file_that_changed_before_the_seal_is_refused(store: Store, tmp_path: Path) -> None:
    """What is sealed is what the processes wrote, and not what lies there by then."""

    class _Planted(SealedStorageWriter):
        def finish(self, metadata: Metadata, results: Any) -> None:
            file = tmp_path / "1" / "rank-00000.safetensors"
            file.write_bytes(file.read_bytes()[:-1] + b"\x7f")
            super().finish(metadata, results)

    with pytest.raises(CheckpointException) as caught:
        save(_plain(1), storage_writer=_Planted(tmp_path / "1", store=store, thread=_RUN))

    assert isinstance(caught.value.failures[0][0], ModelMalformed)
    with pytest.raises(UnknownThread):
        store.thread(_RUN).load()


def test_what_torch_wrote_is_read_and_sealed(store: Store, tmp_path: Path) -> None:
    """A checkpoint of torch's own writer loads without its pickles, and moves to a thread."""
    save(_plain(4), checkpoint_id=tmp_path / "stock")
    state = _plain(0)
    load(state, storage_reader=SafeFileSystemReader(tmp_path / "stock"))
    _save(state, tmp_path / "sealed", store)

    assert str(state) == str(_plain(4))
    assert verify_folder(tmp_path / "sealed", store=store, thread=_RUN).files == 3


def test_links_to_what_torch_wrote_are_not_followed(tmp_path: Path) -> None:
    """A snapshot of a cache has links only: the hint makes a copy of it that loads."""
    save(_plain(4), checkpoint_id=tmp_path / "stock")
    linked, copy = tmp_path / "linked", tmp_path / "copy"
    linked.mkdir()
    for path in (tmp_path / "stock").iterdir():
        (linked / path.name).symlink_to(path)
    state = _plain(0)
    with pytest.raises(CheckpointException) as caught:
        load(state, storage_reader=SafeFileSystemReader(linked))
    error, _ = caught.value.failures[0]
    shutil.copytree(linked, copy)  # as cp -rL does
    load(state, storage_reader=SafeFileSystemReader(copy))

    assert isinstance(error, ModelUnreadable)
    assert "cp -rL FOLDER COPY" in error.hint
    assert str(state) == str(_plain(4))
