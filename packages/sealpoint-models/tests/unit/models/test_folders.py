# SPDX-License-Identifier: Apache-2.0
"""A thread vouches for folders: edited, extended, foreign and older ones are refused."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import sealpoint
from sealpoint.api import Store
from sealpoint.errors import (
    Edited,
    FileNotSealed,
    FormatRefused,
    GlobalNotAllowed,
    ModelLimitExceeded,
    ModelMalformed,
    ModelUnreadable,
    RolledBack,
    UnknownThread,
    UsageError,
)
from sealpoint.limits import MODEL_FOLDER_DEPTH_MAX
from sealpoint_models import (
    load_checkpoint,
    load_folder,
    open_folder,
    save_checkpoint,
    seal_file,
    seal_folder,
    sealed_files,
    sealed_folders,
    verified_copy,
    verify_folder,
)
from sealpoint_models._folder_manifest import parse_folder_manifest, write_folder_manifest
from sealpoint_models._folder_reader import ReadFolder
from tests.training import same_state

_RUN = "run"


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory."""
    with sealpoint.open_store("memory:") as opened:
        yield opened


def _tensors(step: int) -> dict[str, torch.Tensor]:
    return {f"layer.{each}": torch.full((50,), float(step + each)) for each in range(4)}


def _write(path: Path, step: int) -> Path:
    """Write a folder as trainers do: two shards with an index, plain files, a pickle."""
    path.mkdir(parents=True, exist_ok=True)
    tensors = _tensors(step)
    shards = {"model-1.safetensors": [0, 1], "model-2.safetensors": [2, 3]}
    names = {shard: [f"layer.{each}" for each in kept] for shard, kept in shards.items()}
    for shard, kept in names.items():
        save_file({name: tensors[name] for name in kept}, path / shard)
    weights = {name: shard for shard, kept in names.items() for name in kept}
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    (path / "config.json").write_text('{"layers": 4}')
    (path / "empty").write_text("")
    (path / "state").mkdir(exist_ok=True)
    torch.save({"step": step}, path / "state" / "optimizer.pt")
    return path


@pytest.fixture
def folder(store: Store, tmp_path: Path) -> Path:
    """A folder whose second state is sealed; the first is beside it as `older`."""
    path = _write(tmp_path / "run", 1)
    seal_folder(path, store=store, thread=_RUN, metadata={"step": 1})
    shutil.copytree(path, tmp_path / "older")
    seal_folder(_write(path, 2), store=store, thread=_RUN, metadata={"step": 2})
    return path


def _flip(path: Path, at: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_sealed_folder_verifies_and_loads(store: Store, folder: Path) -> None:
    """What was sealed last verifies, gives its tensors and files, and is described."""
    sealed = verify_folder(folder, store=store, thread=_RUN)
    with open_folder(folder, store=store, thread=_RUN) as opened:
        config = json.loads(opened.read("config.json"))
        state = opened.load_file("state/optimizer.pt")
        shard = opened.load_file("model-1.safetensors")
        read = opened.read("model-2.safetensors")
        sizes = opened.files

    assert (sealed.folder, sealed.files, sealed.metadata) == ("run", 6, {"step": 2})
    assert sealed.size == sum(sizes.values())
    assert sealed.ref.id == next(iter(store.thread(_RUN).history())).id
    assert same_state(load_folder(folder, store=store, thread=_RUN), _tensors(2))
    assert config == {"layers": 4}
    assert state == {"step": 2}
    assert shard.keys() == {"layer.0", "layer.1"}
    assert read == (folder / "model-2.safetensors").read_bytes()


def test_arguments_of_a_trainer_in_a_folder_are_inert(store: Store, folder: Path) -> None:
    """A file of a folder with a class in it is refused, and is data where the caller says so."""
    torch.save(torch.nn.ReLU(), folder / "training_args.bin")
    seal_folder(folder, store=store, thread=_RUN)
    with open_folder(folder, store=store, thread=_RUN) as opened:
        with pytest.raises(GlobalNotAllowed):
            opened.load_file("training_args.bin")
        found = opened.load_file("training_args.bin", unknown="inert")
        with pytest.raises(UsageError, match="unknown"):
            opened.load_file("training_args.bin", unknown="run")  # type: ignore[arg-type]

    assert found.type == "torch.nn.modules.activation.ReLU"
    assert found.state["training"] is True


_EVERY_WAY: list[Callable[..., Any]] = [
    verify_folder,
    lambda path, **run: verified_copy(path, **run).__enter__(),
]


@pytest.mark.parametrize("way", _EVERY_WAY)
@pytest.mark.parametrize(
    "name", ["config.json", "model-2.safetensors", "state/optimizer.pt", "model-1.safetensors"]
)
def test_an_edited_file_is_named(store: Store, folder: Path, name: str, way: Any) -> None:
    """A byte that changed in any file is refused, by every way, and the file is named."""
    _flip(folder / name)
    with pytest.raises(Edited, match=f"1 of its files changed, such as '{name}'"):
        way(folder, store=store, thread=_RUN)


def test_every_way_to_read_refuses_an_edited_file(store: Store, folder: Path) -> None:
    """Nothing of an edited file is handed out, in whatever way it is asked for."""
    for name in ("model-1.safetensors", "config.json", "state/optimizer.pt"):
        _flip(folder / name)
    with open_folder(folder, store=store, thread=_RUN) as opened:
        for name in ("model-1.safetensors", "config.json", "state/optimizer.pt"):
            with pytest.raises(Edited):
                opened.read(name)
            with pytest.raises(Edited):
                opened.load_file(name)
        with pytest.raises(Edited):
            opened.load()
    with pytest.raises(Edited):
        load_folder(folder, store=store, thread=_RUN)


def test_a_header_of_another_length_is_refused(store: Store, folder: Path) -> None:
    """A shard that is no safetensors file any more is an edited one."""
    path = folder / "model-1.safetensors"
    for data in (b"", path.read_bytes()[:-1], b"\xff" * 64):
        path.write_bytes(data)
        with pytest.raises(Edited, match="model-1"):
            verify_folder(folder, store=store, thread=_RUN)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda path: (path / "adapter.bin").write_text("x"), "not sealed, such as 'adapter.bin'"),
        (lambda path: (path / "more").mkdir(), "not sealed, such as 'more'"),
        (lambda path: (path / "empty").unlink(), "missing, such as 'empty'"),
        (lambda path: (path / "empty").rename(path / "state" / "empty"), "state/empty"),
    ],
)
def test_the_list_of_files_is_exact(store: Store, folder: Path, change: Any, told: str) -> None:
    """A file or directory that was added, taken away or moved is refused, and named."""
    change(folder)
    for way in (verify_folder, load_folder, open_folder):
        with pytest.raises(Edited, match=told):
            way(folder, store=store, thread=_RUN)


def test_an_older_folder_is_refused_unless_it_is_asked_for(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    """Putting an older folder back is told apart, and is possible on purpose."""
    older = tmp_path / "older"
    with pytest.raises(RolledBack, match="found that of") as caught:
        load_folder(older, store=store, thread=_RUN)
    first = list(sealed_folders(store, _RUN))[1]

    assert first.ref.id in caught.value.hint
    assert same_state(load_folder(older, store=store, thread=_RUN, ref=first.ref), _tensors(1))
    with pytest.raises(RolledBack):
        verify_folder(folder, store=store, thread=_RUN, ref=first.ref)


def test_one_older_file_is_an_edit(store: Store, folder: Path, tmp_path: Path) -> None:
    """A genuine file of an older folder is not one of the newest."""
    shutil.copy(tmp_path / "older" / "model-1.safetensors", folder)
    with pytest.raises(Edited, match=r"such as 'model-1\.safetensors'"):
        load_folder(folder, store=store, thread=_RUN)


def test_a_folder_of_another_run_is_refused(store: Store, folder: Path, tmp_path: Path) -> None:
    """A genuine folder of another thread is foreign here, although it shares a configuration."""
    other = _write(tmp_path / "other", 7)
    (other / "empty").write_text("not any more")
    seal_folder(other, store=store, thread="other")
    with pytest.raises(FileNotSealed, match="no checkpoint of this thread"):
        verify_folder(other, store=store, thread=_RUN)
    with pytest.raises(UnknownThread):
        verify_folder(folder, store=store, thread="nobody")


@pytest.mark.parametrize(
    "plant",
    [
        lambda path: (path / "link").symlink_to("config.json"),
        lambda path: (path / "out").symlink_to("/"),
        lambda path: os.mkfifo(path / "pipe"),
        lambda path: (path / "CONFIG.json").write_text("x"),
        lambda path: (path / "STATE").mkdir(),
        lambda path: (path / "a\\b").write_text("x"),
        lambda path: (path / "line\nbreak").write_text("x"),
        lambda path: (path / "a\u202etxt.py").write_text("x"),
        lambda path: (path / "ends.").write_text("x"),
        lambda path: Path(os.fsdecode(os.fsencode(path) + b"/\xff")).write_text("x"),
    ],
)
def test_what_is_no_plain_file_is_refused(
    store: Store, folder: Path, tmp_path: Path, plant: Any
) -> None:
    """Links, pipes, names that clash or mislead are neither sealed, verified nor copied."""
    plant(folder)
    for way in (seal_folder, verify_folder, load_folder):
        with pytest.raises(ModelMalformed):
            way(folder, store=store, thread=_RUN)
    copies = tmp_path / "copies"
    copies.mkdir()
    with (
        pytest.raises(ModelMalformed),
        verified_copy(folder, store=store, thread=_RUN, directory=copies),
    ):
        pass

    assert not list(copies.iterdir())


def test_a_link_instead_of_a_file_is_refused(store: Store, folder: Path, tmp_path: Path) -> None:
    """A link to the very same bytes is refused, since they may be others when they are read."""
    path = folder / "config.json"
    shutil.move(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelMalformed, match=r"a symbolic link: 'config\.json'"):
        load_folder(folder, store=store, thread=_RUN)


def test_deep_and_missing_folders_are_refused(store: Store, tmp_path: Path) -> None:
    """Bounds and missing paths are errors that say so."""
    deep = tmp_path / "deep"
    (deep / "/".join("d" * (MODEL_FOLDER_DEPTH_MAX + 2))).mkdir(parents=True)
    with pytest.raises(ModelLimitExceeded):
        seal_folder(deep, store=store, thread=_RUN)
    with pytest.raises(ModelUnreadable):
        seal_folder(tmp_path / "nowhere", store=store, thread=_RUN)
    with pytest.raises(UsageError):
        seal_folder(tmp_path, store=store, thread=_RUN, metadata={"model": 1})


def test_a_folder_that_changes_while_it_is_sealed_is_refused(store: Store, folder: Path) -> None:
    """A trainer that still writes is noticed, and nothing is sealed."""
    count = len(list(store.thread(_RUN).history()))

    def write(_done: int, _total: int) -> None:
        (folder / "late").write_text("x")

    with pytest.raises(ModelMalformed, match="nobody writes to"):
        seal_folder(folder, store=store, thread=_RUN, progress=write)

    assert len(list(store.thread(_RUN).history())) == count


def test_a_copy_is_what_was_sealed_whatever_happens_to_the_folder(
    store: Store, folder: Path
) -> None:
    """The copy has the folder's name, is this user's alone, and goes away."""
    with verified_copy(folder, store=store, thread=_RUN) as copy:
        shutil.rmtree(folder)
        found = {path.name for path in copy.rglob("*")}
        mode = copy.parent.stat().st_mode & 0o777

        assert copy.name == "run"
        assert "optimizer.pt" in found
        assert mode == 0o700
        assert load_checkpoint(copy / "model-1.safetensors").keys() == {"layer.0", "layer.1"}
    assert not copy.parent.exists()


def test_a_path_that_ends_in_dots_is_the_folder_that_it_leads_to(
    store: Store, folder: Path
) -> None:
    """Its name is in the checkpoint, and a copy has it, whatever the path looks like."""
    path = folder / "state" / ".."
    seal_folder(path, store=store, thread=_RUN)

    assert next(sealed_folders(store, _RUN)).folder == "run"
    with verified_copy(path, store=store, thread=_RUN) as copy:
        assert copy.name == "run"


def test_a_name_that_is_no_text_is_to_be_changed(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    """No checkpoint can say such a name; the hint is about the name, and nothing is left behind."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/old\xff"))
    folder.rename(path)
    run: dict[str, Any] = {"store": store, "thread": _RUN}
    file = path / "model-1.safetensors"
    before = sorted(tmp_path.rglob("*"))
    sealing: list[Callable[[], object]] = [
        lambda: seal_folder(path, **run),
        lambda: seal_file(file.rename(path / os.fsdecode(b"\xff.safetensors")), **run),
        lambda: save_checkpoint({"step": 1}, tmp_path / os.fsdecode(b"run\xff"), **run),
    ]
    for seal in sealing:
        with pytest.raises(UsageError, match="expected a name in UTF-8") as told:
            seal()
        assert told.value.hint.startswith("Rename it")
    (path / os.fsdecode(b"\xff.safetensors")).rename(file)

    assert sorted(tmp_path.rglob("*")) == before
    assert verify_folder(path, **run).metadata == {"step": 2}


def test_tensors_of_one_name_in_two_files_are_refused(store: Store, tmp_path: Path) -> None:
    """Which of them is meant would be a guess."""
    path = tmp_path / "twice"
    path.mkdir()
    for name in ("a.safetensors", "b.safetensors"):
        save_file({"w": torch.ones(1)}, path / name)
    seal_folder(path, store=store, thread=_RUN)
    with pytest.raises(ModelMalformed, match="found 'w' in two"):
        load_folder(path, store=store, thread=_RUN)


def test_whole_states_of_a_folder_load_by_name(store: Store, tmp_path: Path) -> None:
    """A file of `save_checkpoint` is no bag of tensors, and is loaded as what it is."""
    path = tmp_path / "states"
    path.mkdir()
    save_checkpoint({"w": torch.ones(1), "step": 1}, path / "state.safetensors")
    seal_folder(path, store=store, thread=_RUN)
    with open_folder(path, store=store, thread=_RUN) as opened:
        assert opened.load_file("state.safetensors")["step"] == 1
        with pytest.raises(FormatRefused, match="a whole state"):
            opened.load()
        with pytest.raises(UsageError, match="no file named"):
            opened.read("other")


def test_files_and_folders_of_one_thread_are_told_apart(store: Store, folder: Path) -> None:
    """Each list has its own kind, and asking for the wrong kind is an error."""
    file = folder.parent / "alone.safetensors"
    save_file(_tensors(1), file)
    seal_file(file, store=store, thread=_RUN, metadata={"step": 3})

    assert [each.metadata["step"] for each in sealed_folders(store, _RUN)] == [2, 1]
    assert [each.file for each in sealed_files(store, _RUN)] == ["alone.safetensors"]
    assert same_state(load_checkpoint(file, store=store, thread=_RUN), _tensors(1))
    with pytest.raises(ModelMalformed, match="not one of a folder"):
        verify_folder(folder, store=store, thread=_RUN)
    with pytest.raises(FormatRefused, match="expected a safetensors file"):
        seal_file(folder / "config.json", store=store, thread=_RUN)
    seal_folder(folder, store=store, thread=_RUN)
    with pytest.raises(ModelMalformed, match="found one of a folder") as told:
        load_checkpoint(file, store=store, thread=_RUN)
    assert "load_folder" in told.value.hint


def test_a_manifest_has_one_spelling(folder: Path) -> None:
    """Other keys, orders, names and digests than a writer writes are refused."""
    with ReadFolder(folder) as opened:
        digests = opened.digests()
    state = write_folder_manifest(digests)
    files = state["files"]
    first = next(iter(files))
    changed: list[Any] = [
        {},
        [],
        {**state, "more": 1},
        {**state, "format": "sealpoint.model.v1"},
        {**state, "files": dict(reversed(files.items()))},
        {**state, "files": {**files, "z/../z": files[first]}},
        {**state, "files": {"/etc": files[first], **files}},
        {**state, "directories": [*state["directories"], *state["directories"]]},
        {**state, "directories": None},
        {**state, "files": {**files, first: {"size": -1, "digest": "0" * 64}}},
        {**state, "files": {**files, first: {"size": 1, "digest": "0" * 63}}},
        {**state, "files": {**files, first: {"size": 1, "digest": "A" * 64}}},
        {**state, "files": {**files, first: {"size": 1}}},
    ]

    assert parse_folder_manifest(state, "it") == digests
    for each in changed:
        with pytest.raises(ModelMalformed):
            parse_folder_manifest(each, "it")
