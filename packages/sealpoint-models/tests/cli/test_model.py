# SPDX-License-Identifier: Apache-2.0
"""`sealpoint model`: what is in a model file, who vouches for it, and which ones a run saved."""

import argparse
import json
import os
import pickle
import random
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
import torch
from click.testing import CliRunner

from sealpoint.cli import main
from sealpoint.errors import ModelMalformed, ModelUnreadable, UsageError, ValueNotAllowed
from sealpoint_models import load_checkpoint, open_checkpoint, save_checkpoint
from sealpoint_models._draft_file import waiting_path
from tests.cli.machine import Machine
from tests.scan.assembler import tarred

_RUN = "run-1"


def _state(step: int) -> dict[str, Any]:
    torch.manual_seed(step)
    return {
        "weight": torch.randn(4, 3),
        "mask": torch.ones(5, dtype=torch.bool),
        "half": torch.zeros(2, dtype=torch.float16),
        "step": step,
    }


def _alone(*arguments: str) -> Any:
    """Run a verb that must succeed and needs no store."""
    result = CliRunner().invoke(main, ["model", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model file that no thread knows."""
    path = tmp_path / "alone.safetensors"
    save_checkpoint(_state(0), path)
    return path


@pytest.fixture
def newest(machine: Machine, tmp_path: Path) -> Path:
    """The newest of two files that a run saved; the other is beside it as `older`."""
    path = tmp_path / "run.safetensors"
    with machine.open() as store:
        for step in (1, 2):
            save_checkpoint(
                _state(step), path, store=store, thread=_RUN, metadata={"epoch": step, "loss": 0.5}
            )
            if step == 1:
                shutil.copy(path, tmp_path / "older.safetensors")
    return path


def _edit(path: Path, at: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def _plain_file(path: Path, name: str) -> Path:
    """A safetensors file of another writer, with one tensor."""
    header = json.dumps({name: {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"abc")
    return path


# ------------------------------------------------------------------ inspect


class _Calls:
    """Something whose pickle calls what it is told to."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize("is_zip", [True, False])
def test_inspect_shows_tensors_values_and_names_of_a_file_of_torch(
    tmp_path: Path, *, is_zip: bool
) -> None:
    """Of both wrappings, with the byte of each name; a name outside of the table comes first."""
    path = tmp_path / "run.pt"
    marker = tmp_path / "marker"
    state = {
        "model": {"weight": torch.zeros(2, 3, dtype=torch.float16)},
        "args": argparse.Namespace(lr=0.5, name="\x1b[2J"),
        "array": np.arange(4, dtype="<i4"),
        "score": np.float32(0.25),
        "code": _Calls(os.mkdir, str(marker)),
    }
    torch.save(state, path, _use_new_zipfile_serialization=is_zip)
    document = json.loads(_alone("inspect", str(path), "--json"))
    values = {each["path"]: each["value"] for each in document["values"]}
    tensors = {each["name"]: (each["dtype"], each["shape"]) for each in document["tensors"]}
    first = document["names"][0]
    data = path.read_bytes()
    begin = data.index(b"\x80\x02}") if is_zip else 0

    assert document["format"] == ("torch-zip" if is_zip else "torch-legacy")
    assert document["loads"] == "inert"
    assert tensors == {"model.weight": ("float16", [2, 3]), "array": ("<i4", [4])}
    assert values['state["args"]["lr"]'] == "0.5"
    assert values['state["args"]["name"]'] == repr("\x1b[2J")
    assert values['state["score"]'] == "0.25 (<f4)"
    assert "a call of 'posix.mkdir'" in values['state["code"]']
    assert (first["name"], first["called"], first["known"]) == ("posix.mkdir", True, False)
    assert data[begin + first["offset"] :].startswith(b"cposix\nmkdir\n")
    assert all(each["known"] for each in document["names"][1:])
    assert not marker.exists()
    assert "pickle would import and call it" in _alone("inspect", str(path))


def test_a_tar_of_the_first_torch_is_refused(tmp_path: Path) -> None:
    """What torch before 0.1.10 wrote is neither shown nor converted, and the hint says a way."""
    old, new = tmp_path / "old.pth.tar", tmp_path / "new.safetensors"
    old.write_bytes(tarred({"pickle": b"N.", "tensors": b"I0\n.", "storages": b"I0\n."}))

    for arguments in (["inspect", str(old)], ["convert", str(old), str(new)]):
        result = CliRunner().invoke(main, ["model", *arguments])
        assert result.exit_code == 80
        assert "found a tar that torch wrote before 0.1.10 (2017)" in result.stderr
        assert "torch.load(FILE, weights_only=False)" in result.stderr
    assert sorted(tmp_path.iterdir()) == [old]


def test_tensors_in_a_pickle_are_inspected_and_converted(tmp_path: Path) -> None:
    """Each has its storage in bytes of its own, which are read and not given to torch."""
    old, new = tmp_path / "old.pkl", tmp_path / "new.safetensors"
    weight = torch.arange(6.0).view(2, 3)
    old.write_bytes(pickle.dumps({"epoch": 3, "weight": weight}))
    document = json.loads(_alone("inspect", str(old), "--json"))
    _alone("convert", str(old), str(new))

    assert (document["format"], document["loads"]) == ("pickle", "data")
    assert [(each["name"], each["shape"]) for each in document["tensors"]] == [("weight", [2, 3])]
    assert all(each["known"] for each in document["names"])
    assert torch.equal(load_checkpoint(new)["weight"], weight)


def test_inspect_shows_the_names_of_a_pickle_that_is_refused(tmp_path: Path) -> None:
    """What stands before a fault is printed, and the exit status is that of the error."""
    path = tmp_path / "broken.pkl"
    path.write_bytes(pickle.dumps(_Calls(os.system, "true"))[:-1] + b"\xff")
    result = CliRunner().invoke(main, ["model", "inspect", str(path), "--json"])
    document = json.loads(result.stdout)

    assert result.exit_code == 80
    assert document["loads"] == "refused"
    assert [each["name"] for each in document["names"]] == ["posix.system"]


def test_inspect_ends_with_values_that_hold_one_another(tmp_path: Path) -> None:
    """A container is gone through once, however often and where it is held."""
    parts: list[dict[str, Any]] = [{} for _ in range(12)]
    for part in parts:
        part.update({str(place): other for place, other in enumerate(parts)})
    path = tmp_path / "knot.pkl"
    path.write_bytes(pickle.dumps(parts))
    document = json.loads(_alone("inspect", str(path), "--json"))

    assert len(document["values"]) == 12 * 12
    assert {"path": "state[1]", "value": 'the same as state[0]["1"]'} in document["values"]


def test_inspect_shows_the_plain_values_of_a_whole_state(tmp_path: Path) -> None:
    """What save_checkpoint kept beside tensors is listed with its path."""
    path = tmp_path / "run.safetensors"
    save_checkpoint({"step": 3, "seen": Counter("aab"), "size": torch.Size([2])}, path)
    values = {
        each["path"]: each["value"]
        for each in json.loads(_alone("inspect", str(path), "--json"))["values"]
    }

    assert values == {
        'state["step"]': "3",
        'state["seen"]["a"]': "2",
        'state["seen"]["b"]': "1",
        'state["size"]': "torch.Size [2]",
    }


def test_info_shows_the_file_its_types_and_its_tensors(file: Path) -> None:
    """Format, size, whether it is a whole state, bytes for each type, and a table of tensors."""
    printed = _alone("inspect", str(file))
    with open_checkpoint(file) as opened:
        root = opened.digests().root.hex()
    lines = [line.split() for line in printed.splitlines()]

    assert ["format", "safetensors"] in lines
    assert ["tensors", "3"] in lines
    assert ["root", root] in lines
    assert "holds    a whole state" in printed
    assert f"{file.stat().st_size:,} bytes" in printed
    assert ["F32", "1", "48"] in lines
    assert ["weight", "F32", "4", "x", "3", "48"] in lines
    assert ["mask", "BOOL", "5", "5"] in lines


def test_info_as_json_has_the_digest_of_every_tensor(file: Path) -> None:
    """One document with what the table shows, and digests."""
    document = json.loads(_alone("inspect", str(file), "--json"))
    with open_checkpoint(file) as opened:
        digests = opened.digests()

    assert set(document) == {
        *("file", "format", "training_state", "loads", "bytes", "root", "metadata", "dtypes"),
        *("tensors", "values", "values_left_out", "names"),
    }
    assert document["format"] == "safetensors"
    assert document["names"] == []
    assert document["training_state"] is True
    assert document["bytes"] == file.stat().st_size
    assert document["root"] == digests.root.hex()
    assert document["dtypes"]["F16"] == {"tensors": 1, "bytes": 4}
    assert document["tensors"][0] == {
        "name": "weight",
        "dtype": "F32",
        "shape": [4, 3],
        "bytes": 48,
        "digest": digests.tensors["weight"].hex(),
    }


def test_info_of_a_file_by_another_writer(tmp_path: Path) -> None:
    """A file without a structure is said to be tensors by name, with its metadata."""
    plain = _plain_file(tmp_path / "plain.safetensors", "x")
    document = json.loads(_alone("inspect", str(plain), "--json"))

    assert document["training_state"] is False
    assert document["metadata"] == {}
    assert "tensors by name" in _alone("inspect", str(plain))


def test_info_of_a_later_version_is_refused(file: Path) -> None:
    """A structure that another version of the format wrote is not taken for one of this version."""
    data = file.read_bytes()
    file.write_bytes(data.replace(b'"sealpoint.version":"1"', b'"sealpoint.version":"2"'))
    result = CliRunner().invoke(main, ["model", "inspect", str(file)])

    assert result.exit_code == 80
    assert "expected the metadata of version 1" in result.stderr


def test_info_says_what_it_leaves_out(tmp_path: Path) -> None:
    """A limit never leaves tensors out silently; 0 leaves out nothing, and JSON never does."""
    path = tmp_path / "many.safetensors"
    save_checkpoint({f"t{n}": torch.zeros(n) for n in range(5)}, path)
    limited = _alone("inspect", str(path), "--limit", "2")

    assert "... and 3 more; --limit 0 lists all." in limited
    assert "t4" not in limited
    assert "t4" in _alone("inspect", str(path), "--limit", "0")
    assert len(json.loads(_alone("inspect", str(path), "--limit", "2", "--json"))["tensors"]) == 5


def test_info_of_a_state_without_tensors(tmp_path: Path) -> None:
    """A state of plain data has no table."""
    path = tmp_path / "plain.safetensors"
    save_checkpoint({"step": 1}, path)
    printed = _alone("inspect", str(path))

    assert "dtype" not in printed


def test_names_from_a_file_never_reach_the_terminal_as_they_are(tmp_path: Path) -> None:
    """Characters that do not print, such as those that turn text around, are made visible."""
    plain = _plain_file(tmp_path / "odd.safetensors", "left\u202etfel\u2028")
    printed = _alone("inspect", str(plain))

    assert "\u202e" not in printed
    assert "\u2028" not in printed
    assert r"left\u{202e}tfel\u{2028}" in printed


def test_info_needs_no_torch(file: Path) -> None:
    """Neither the verbs nor the command line import torch; the command line no blake3 either."""
    code = (
        "import sys\n"
        "from sealpoint.cli import main\n"
        "early = {'torch', 'numpy', 'blake3'} & sys.modules.keys()\n"
        f"main(['model', 'inspect', {str(file)!r}], standalone_mode=False)\n"
        "print(sorted(early), 'torch' in sys.modules)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.splitlines()[-1] == "[] False"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "model-unreadable"),
        (b"", "format-refused model-malformed"),
        (b"\xff" * 64, "format-refused model-limit"),
        (b"PK\x03\x04" + bytes(60), "model-malformed format-refused"),
    ],
)
def test_a_file_that_is_none_is_refused(
    machine: Machine, tmp_path: Path, content: bytes | None, code: str
) -> None:
    """A missing file and bytes of something else end with the status of the error."""
    path = tmp_path / "bad.bin"
    if content is not None:
        path.write_bytes(content)
    for verb, expected in zip(("inspect", "verify"), (code.split() * 2)[:2], strict=True):
        arguments = ["model", verb, str(path)]
        result = CliRunner().invoke(main, [*arguments, "--json"])
        error = json.loads(result.stderr)["error"]

        assert error["code"] == expected
        assert result.exit_code == error["exit_status"]
    if content is None:
        machine.done("save", _RUN, stdin="1")
        assert machine.refused("model", "verify", str(path), "--thread", _RUN)[1] != ""


@pytest.mark.parametrize("name", ["a.joblib", "packed.joblib", "a.npy", "a.npz"])
def test_the_hint_for_a_file_of_arrays_works(tmp_path: Path, name: str) -> None:
    """Files of numpy and joblib are not shown, and what the hint says makes files that are."""
    path, new = tmp_path / name, tmp_path / "new.safetensors"
    array = np.arange(6)
    if name.endswith("joblib"):
        joblib.dump({"a": array}, path, compress=3 if name.startswith("packed") else 0)
    else:
        (np.save if name == "a.npy" else np.savez)(path, array)
    result = CliRunner().invoke(main, ["model", "inspect", str(path), "--json"])
    error = json.loads(result.stderr)["error"]

    assert error["code"] == "format-refused"
    assert error["hint"] == "Make a safetensors file of it: sealpoint model convert IN OUT."
    assert "nothing dropped" in _alone("convert", str(path), str(new))
    assert "safetensors" in _alone("inspect", str(new))


def test_inspect_tells_long_rows_of_numbers_in_one_line(tmp_path: Path) -> None:
    """The state of Python's random numbers is one line, and what lies behind it is seen."""
    path = tmp_path / "random.pt"
    torch.save({"random": random.getstate(), "epoch": 3}, path)
    shown = _alone("inspect", str(path))

    assert "tuple of 625 numbers" in shown
    assert 'state["epoch"]' in shown


def test_inspect_of_a_folder_says_what_takes_one(tmp_path: Path) -> None:
    """A folder is refused with what looks at folders."""
    result = CliRunner().invoke(main, ["model", "inspect", str(tmp_path), "--json"])

    assert "sealpoint scan PATH" in json.loads(result.stderr)["error"]["hint"]


# ------------------------------------------------------------------ convert


def test_convert_says_what_it_dropped_and_replaces_nothing_unasked(tmp_path: Path) -> None:
    """Names are refused, dropped or kept as the caller says, and OUT stays unless forced."""
    source, target = tmp_path / "run.pt", tmp_path / "run.safetensors"
    torch.save({"weight": torch.ones(2), "code": _Calls(os.system, "true")}, source)
    refused = CliRunner().invoke(main, ["model", "convert", str(source), str(target)])
    was_there = target.exists()
    printed = _alone("convert", str(source), str(target), "--unknown", "drop")
    again = CliRunner().invoke(
        main, ["model", "convert", str(source), str(target), "--unknown", "inert"]
    )
    arguments = ("convert", str(source), str(target), "--unknown", "inert", "--force", "--json")
    document = json.loads(_alone(*arguments))
    loaded = load_checkpoint(target)

    assert refused.exit_code == 80
    assert not was_there
    assert "1 value dropped" in printed
    assert """state["code"]""" in printed
    assert "--force" in again.stderr
    assert document["dropped"] == []
    assert loaded["weight"].tolist() == [1, 1]
    assert (loaded["code"].type, loaded["code"].arguments) == ("posix.system", ("true",))


@pytest.mark.parametrize(
    ("state", "unknown", "hint"),
    [
        (_Calls(os.system, "true"), "drop", "--unknown inert"),
        (np.array([None, "a"], dtype=object), "drop", "save it again where it was made"),
        (_Calls(print, np.array([None, "a"], dtype=object)), "inert", "load_checkpoint(path, "),
    ],
)
def test_the_hint_of_a_refused_conversion_is_another_way(
    tmp_path: Path, state: Any, unknown: str, hint: str
) -> None:
    """Nobody is told to do what they did; and the file is named, since there may be many."""
    source, target = tmp_path / "run.pt", tmp_path / "run.safetensors"
    torch.save(state, source)
    arguments = ["model", "convert", str(source), str(target), "--unknown", unknown]
    refused = CliRunner().invoke(main, arguments)

    assert refused.exit_code == ValueNotAllowed.exit_status
    assert refused.stderr.startswith(f"sealpoint: {source}: ")
    assert hint in refused.stderr.partition("hint: ")[2]
    assert f"--unknown {unknown}" not in refused.stderr


def test_a_folder_in_the_place_of_out_is_not_to_be_forced(tmp_path: Path) -> None:
    """The new file has to be named: no option puts one in the place of a folder."""
    source = tmp_path / "run.pt"
    torch.save({"weight": torch.ones(2)}, source)
    refused = CliRunner().invoke(main, ["model", "convert", str(source), str(tmp_path)])

    assert refused.exit_code == UsageError.exit_status
    assert "found a folder" in refused.stderr
    assert "--force" not in refused.stderr


# ------------------------------------------------------------------ verify


def test_the_newest_file_verifies(machine: Machine, newest: Path) -> None:
    """It says which checkpoint vouches for the file, who wrote it, and when."""
    printed = machine.done("model", "verify", str(newest), "--thread", _RUN)
    document = machine.json("model", "verify", str(newest), "--thread", _RUN)
    checkpoint = document["checkpoint"]

    assert printed.startswith(f"All good: {newest} is what the newest checkpoint vouches for.")
    assert checkpoint["id"] in printed
    assert "writer      worker" in printed
    assert set(checkpoint) == {"id", "seq", "time", "writer"}
    assert set(document) == {
        *("file", "sealed", "thread", "checkpoint", "bytes", "tensors", "root")
    }
    assert (document["sealed"], document["thread"], document["tensors"]) == (True, _RUN, 3)
    assert document["root"] in printed


def test_an_edited_file_is_refused(machine: Machine, newest: Path) -> None:
    """One bit of one tensor is enough, and the message names the tensor."""
    _edit(newest)

    assert machine.refused("model", "verify", str(newest), "--thread", _RUN) == (30, "edited")
    assert "'mask'" in machine.run("model", "verify", str(newest), "--thread", _RUN).stderr


def test_an_older_file_is_refused_unless_it_is_asked_for(
    machine: Machine, newest: Path, tmp_path: Path
) -> None:
    """An older file in the newest one's place is a rollback; --ref names it on purpose."""
    older = str(tmp_path / "older.safetensors")
    listed = machine.json("model", "list", _RUN)["files"][1]

    assert machine.refused("model", "verify", older, "--thread", _RUN) == (30, "rolled-back")
    for name in (listed["id"], f"seq:{listed['seq']}"):
        printed = machine.done("model", "verify", older, "--thread", _RUN, "--ref", name)
        assert f"is what checkpoint {name} vouches for." in printed
    refused = machine.refused("model", "verify", str(newest), "--thread", _RUN, "--ref", name)
    assert refused == (30, "rolled-back")


def test_a_foreign_file_is_refused(machine: Machine, newest: Path, file: Path) -> None:
    """A file that this thread never saw is not sealed by it, nor is one of another format."""
    archive = newest.with_name("model.pt")
    torch.save(_state(1), archive)

    for path in (file, archive):
        refused = machine.refused("model", "verify", str(path), "--thread", _RUN)
        assert refused == (80, "file-not-sealed")


def test_one_tensor_is_verified_without_the_others(machine: Machine, newest: Path) -> None:
    """A change elsewhere is not seen, and not claimed; one in the tensor is."""
    _edit(newest)  # the last tensor of the file is the mask
    arguments = ("model", "verify", str(newest), "--thread", _RUN, "--tensor")
    document = machine.json(*arguments, "weight")

    assert "the others were not read" in machine.done(*arguments, "weight")
    assert document["tensor"] == "weight"
    assert "root" not in document
    assert len(document["digest"]) == 64
    assert machine.refused(*arguments, "mask") == (30, "edited")
    assert machine.refused(*arguments, "nothing") == (2, "usage")


def test_without_a_thread_nothing_is_claimed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the format is checked then, and no store is needed."""
    monkeypatch.setenv("SEALPOINT_STORE", "sqlite:////nowhere/at/all.db")
    document = json.loads(_alone("verify", str(file), "--json"))

    assert _alone("verify", str(file)).startswith(f"Well-formed: {file}. No thread was asked")
    assert (document["sealed"], document["thread"], document["checkpoint"]) == (False, None, None)
    assert document["root"] == json.loads(_alone("inspect", str(file), "--json"))["root"]
    result = CliRunner().invoke(main, ["model", "verify", str(file), "--ref", "x"])
    assert result.exit_code == 2


def test_a_thread_without_a_store_is_a_mistake(file: Path) -> None:
    """A thread lies in a store; without one, the hint says how to name it."""
    result = CliRunner().invoke(main, ["model", "verify", str(file), "--thread", _RUN])

    assert result.exit_code == 2
    assert "--store" in result.stderr


def test_a_thread_of_something_else_vouches_for_no_file(machine: Machine, file: Path) -> None:
    """A checkpoint of an agent is no manifest."""
    machine.done("save", "chat", stdin="1")

    refused = machine.refused("model", "verify", str(file), "--thread", "chat")
    assert refused == (80, "model-malformed")
    assert machine.refused("model", "verify", str(file), "--thread", "none")[1] == "unknown-thread"


def test_a_file_that_waits_is_put_in_its_place_and_verified(machine: Machine, newest: Path) -> None:
    """A save that ended between its entry and its file is completed, as by every load."""
    document = machine.json("model", "verify", str(newest), "--thread", _RUN)
    waiting = waiting_path(newest, bytes.fromhex(document["root"]))
    newest.rename(waiting)
    shutil.copy(newest.with_name("older.safetensors"), newest)

    assert machine.json("model", "verify", str(newest), "--thread", _RUN) == document
    assert not waiting.exists()


def test_an_older_file_that_waits_never_replaces_the_newest(machine: Machine, newest: Path) -> None:
    """What waits for an older checkpoint is read when that is asked for, and stays where it is."""
    older = machine.json("model", "list", _RUN)["files"][1]
    waiting = waiting_path(newest, bytes.fromhex(older["root"]))
    shutil.copy(newest.with_name("older.safetensors"), waiting)

    machine.done("model", "verify", str(newest), "--thread", _RUN, "--ref", older["id"])
    machine.done("model", "verify", str(newest), "--thread", _RUN)
    assert waiting.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_a_terminal_gets_no_control_characters_from_data(machine: Machine, tmp_path: Path) -> None:
    """Names that turn text around are made visible where they would do something."""
    plain = _plain_file(tmp_path / "odd.safetensors", "left\u202etfel")
    arguments = ("model", "verify", str(plain), "--tensor")
    found = machine.at_a_terminal(*arguments, "left\u202etfel", columns=200)
    missing = machine.at_a_terminal(*arguments, "\u202enone", columns=200)

    assert (found[0], missing[0]) == (0, 2)
    assert "left\\u202etfel" in found[1]
    assert "\u202e" not in found[1] + missing[1]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_list_fits_a_narrow_terminal(machine: Machine, newest: Path) -> None:
    """What does not fit is folded further in, so that each file stays one record."""
    assert newest.exists()
    status, printed = machine.at_a_terminal("model", "list", _RUN, columns=60)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in printed.splitlines()]

    assert status == 0
    assert max(map(len, lines)) <= 60
    assert [line[:5] for line in lines if not line.startswith("    ")] == ["* seq", "  seq"]


def test_progress_tells_bytes(
    machine: Machine, newest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashing reports how many bytes are done and how many there are, up to all of them."""
    told: list[tuple[int, int, str]] = []

    @contextmanager
    def recording(description: str) -> Iterator[Callable[[int, int, str], None]]:
        assert description == "hashing"
        yield lambda done, total, text: told.append((done, total, text))

    monkeypatch.setattr("sealpoint_models.cli._folder.working", recording)
    machine.done("model", "verify", str(newest), "--thread", _RUN)

    assert told[-1] == (57, 57, "57 bytes of 57 bytes")


# ------------------------------------------------------------------ list


def test_list_has_the_newest_first_and_marks_it(machine: Machine, newest: Path) -> None:
    """Position, time, writer and id, then the file, then what was saved beside it."""
    lines = machine.done("model", "list", _RUN).splitlines()
    document = machine.json("model", "list", _RUN)
    first, second = document["files"]

    assert lines[0].startswith(f"* seq {first['seq']}  ")
    assert lines[0].endswith(f"worker  {first['id']}")
    assert lines[1].strip().startswith("run.safetensors  ")
    assert lines[1].endswith(f"3 tensors  root {first['root'][:12]}")
    assert lines[2] == "    epoch=2 loss=0.5"
    assert lines[3].startswith(f"  seq {second['seq']}  ")
    assert (document["thread"], document["more"]) == (_RUN, False)
    assert (first["newest"], second["newest"]) == (True, False)
    assert set(first) == {
        *("id", "seq", "time", "writer", "newest", "pruned", "file", "bytes", "tensors"),
        *("root", "metadata"),
    }
    assert first["metadata"] == {"epoch": 2, "loss": 0.5}
    assert first["bytes"] == newest.stat().st_size


def test_list_leaves_nothing_out_silently(machine: Machine, newest: Path) -> None:
    """A limit says that there are more."""
    assert newest.exists()
    printed = machine.done("model", "list", _RUN, "--limit", "1")

    assert "... and older ones below entry" in printed
    assert machine.json("model", "list", _RUN, "--limit", "1")["more"] is True
    assert len(machine.json("model", "list", _RUN, "--limit", "0")["files"]) == 2


def test_list_shows_what_was_pruned(machine: Machine, newest: Path) -> None:
    """A checkpoint that was given up stays in the list, and says so."""
    assert newest.exists()
    machine.done("prune", _RUN, "--keep-last", "1", "--reason", "space", "--yes")
    printed = machine.done("model", "list", _RUN)

    assert [each["pruned"] for each in machine.json("model", "list", _RUN)["files"]] == [
        False,
        True,
    ]
    assert printed.count("pruned: nothing vouches for it any more") == 1


def test_list_of_a_thread_without_model_files(machine: Machine) -> None:
    """Other checkpoints are left out, also those whose metadata only look alike."""
    with machine.open() as store:
        store.thread("chat").save(1, metadata={"model": "gpt"})
        store.thread("chat").save(2, metadata={"model": {"root": "x"}})

    assert machine.done("model", "list", "chat").startswith("No model files")
    assert machine.json("model", "list", "chat")["files"] == []
    assert machine.refused("model", "list", "nobody")[1] == "unknown-thread"


def test_metadata_and_file_names_are_made_visible(machine: Machine, tmp_path: Path) -> None:
    """What a writer saved beside a file cannot write to the terminal."""
    path = tmp_path / "a\x1b[31mb.safetensors"
    with machine.open() as store:
        save_checkpoint(_state(1), path, store=store, thread=_RUN, metadata={"by": "\x1b[2J"})
    printed = machine.done("model", "list", _RUN)

    assert r"a\u{1b}[31mb.safetensors" in printed
    assert "\x1b" not in printed
    assert "\x1b" not in machine.done("model", "verify", str(path), "--thread", _RUN)


def test_help_reads_well() -> None:
    """The group names its verbs in the order of use, and says that nothing is loaded."""
    printed = _alone("--help")

    assert "Nothing that a file names is run." in printed
    for verb in ("inspect", "convert", "verify", "list"):
        assert verb in printed


@pytest.fixture
def folder(machine: Machine, tmp_path: Path) -> Path:
    """A folder that a run sealed, by the command line, behind a file of the same run."""
    path = tmp_path / "tuned"
    path.mkdir()
    save_checkpoint(_state(3), path / "model.safetensors")
    (path / "config.json").write_text("{}")
    machine.done("model", "seal", str(path / "model.safetensors"), "--thread", _RUN)
    machine.done("model", "seal", str(path), "--thread", _RUN)
    return path


def test_a_folder_is_sealed_verified_and_listed(machine: Machine, folder: Path) -> None:
    """The verbs know folders as they know files, and JSON says which of the two it is."""
    said = machine.done("model", "verify", str(folder), "--thread", _RUN)
    document = json.loads(machine.done("model", "verify", str(folder), "--thread", _RUN, "--json"))
    listed = json.loads(machine.done("model", "list", _RUN, "--json"))["files"]
    shown = machine.done("model", "list", _RUN)
    again = json.loads(machine.done("model", "seal", str(folder), "--thread", _RUN, "--json"))

    assert "is what the newest checkpoint vouches for" in said
    assert (document["files"], document["root"]) == (2, listed[0]["root"])
    assert [each.get("folder") for each in listed] == ["tuned", None]
    assert [each.get("file") for each in listed] == [None, "model.safetensors"]
    assert listed[0]["newest"]
    assert re.search(r"tuned/ .* 2 files  root", shown)
    assert again["root"] == listed[0]["root"]


def test_a_file_is_not_sealed_into_a_thread_of_folders(machine: Machine, folder: Path) -> None:
    """The folder stays the newest, and the error says what the thread holds."""
    file = ("model", "seal", str(folder / "model.safetensors"))
    refused = machine.run(*file, "--thread", _RUN)
    machine.done(*file, "--thread", "files")

    assert refused.exit_code == 2
    assert f"{_RUN}: expected a thread of files, found folders in it, such as 'tuned'" in (
        refused.stderr
    )
    assert machine.run("model", "verify", str(folder), "--thread", _RUN).exit_code == 0


@pytest.mark.parametrize(
    ("verb", "told"), [("seal", "No such file or directory"), ("verify", "found one of a folder")]
)
def test_a_folder_that_is_gone_is_not_taken_for_a_file(
    machine: Machine, folder: Path, verb: str, told: str
) -> None:
    """Whoever mistypes the name of a folder is not told to use another thread."""
    refused = machine.run("model", verb, str(folder.with_name("tunde")), "--thread", _RUN)

    assert refused.exit_code in {ModelUnreadable.exit_status, ModelMalformed.exit_status}
    assert told in refused.stderr
    assert "thread" not in refused.stderr.partition("hint: ")[2]


def test_json_may_stand_before_the_verb(tmp_path: Path) -> None:
    """`sealpoint --json VERB` is `sealpoint VERB --json`, and refused by verbs without JSON."""
    path = tmp_path / "m.safetensors"
    save_checkpoint(_state(1), path)
    before, after = (
        CliRunner().invoke(main, words)
        for words in (
            ["--json", "model", "inspect", str(path)],
            ["model", "inspect", str(path), "--json"],
        )
    )
    without = CliRunner().invoke(main, ["--json", "rollout", "world", "--graph", "m:g"])

    assert before.exit_code == 0
    assert json.loads(before.stdout) == json.loads(after.stdout)
    assert without.exit_code == 2
    assert "--json" in json.loads(without.stderr)["error"]["message"]


def test_a_changed_folder_ends_with_the_status_of_its_error(machine: Machine, folder: Path) -> None:
    """An edited folder, one without a thread, and a tensor of a folder are errors of their own."""
    (folder / "more.txt").write_text("x")

    assert machine.refused("model", "verify", str(folder), "--thread", _RUN) == (30, "edited")
    assert machine.run("model", "verify", str(folder)).exit_code == 2
    tensor = ("--tensor", "weight", "--thread", _RUN)
    assert machine.run("model", "verify", str(folder), *tensor).exit_code == 2
