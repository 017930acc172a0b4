# SPDX-License-Identifier: Apache-2.0
"""What is saved comes back: values, types, layouts, and which tensors share memory."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import safetensors
import torch

from sealpoint.errors import (
    EncodeError,
    EncodeLimitExceeded,
    SealpointError,
    TypeNotAllowed,
    ValueNotAllowed,
)
from sealpoint_models import load_checkpoint, open_checkpoint, save_checkpoint
from tests.training import STATES, same_state, save_states


@pytest.mark.parametrize("kind", STATES)
def test_a_state_comes_back_as_it_was(kind: str, tmp_path: Path) -> None:
    """Every kind of state is the same after saving and loading."""
    state = STATES[kind]()
    save_checkpoint(state, tmp_path / "state.safetensors")
    loaded = load_checkpoint(tmp_path / "state.safetensors")

    assert same_state(loaded, state)


@pytest.mark.parametrize("kind", STATES)
def test_the_usual_reader_reads_every_tensor(kind: str, tmp_path: Path) -> None:
    """The file is one that safetensors itself opens, with the same tensors."""
    path = tmp_path / "state.safetensors"
    save_checkpoint(STATES[kind](), path)
    with safetensors.safe_open(path, "pt") as theirs, open_checkpoint(path) as ours:
        assert sorted(theirs.keys()) == sorted(tensor.name for tensor in ours.tensors)
        assert all(
            same_state(theirs.get_tensor(tensor.name), ours.tensor(tensor.name))
            for tensor in ours.tensors
        )


def test_the_tensors_of_a_state_dict_keep_their_names(tmp_path: Path) -> None:
    """Another reader finds a network's tensors under the names that they have."""
    state = STATES["state dict"]()
    save_checkpoint(state, tmp_path / "a.safetensors")
    with safetensors.safe_open(tmp_path / "a.safetensors", "pt") as file:
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)

        assert found.keys() == state.keys()
        assert all(torch.equal(found[name], state[name]) for name in state)
        assert file.metadata()["format"] == "pt"


def test_a_network_takes_its_state_back(tmp_path: Path) -> None:
    """`load_state_dict` accepts what was loaded, versions included."""
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    save_checkpoint(network.state_dict(), tmp_path / "a.safetensors")
    loaded = load_checkpoint(tmp_path / "a.safetensors")
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    other.load_state_dict(loaded, strict=True)

    assert loaded._metadata["1"]["version"] == 2
    assert same_state(other.state_dict(), network.state_dict())


def test_tensors_that_share_memory_share_it_again(tmp_path: Path) -> None:
    """A write through one of them is seen in the others, as before; others are apart."""
    save_checkpoint(STATES["views"](), tmp_path / "a.safetensors")
    loaded = load_checkpoint(tmp_path / "a.safetensors")
    loaded["tied"][0][1, 1] = 77.0
    loaded["overlapping"][0][8] = 88.0
    loaded["apart"][0][0] = 99.0

    assert loaded["tied"][1][1, 1] == 77
    assert loaded["part"][0][0, 1] == 77
    assert loaded["part"][1][1] == 77
    assert loaded["transposed"][1, 1] == 77
    assert loaded["overlapping"][1][0] == 88
    assert loaded["overlapping"][0][0] == 99


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    """Two names for one tensor cost the bytes of one."""
    weight = torch.zeros(1000)
    save_checkpoint({"a": weight, "b": weight, "c": weight[10:20]}, tmp_path / "a.safetensors")

    assert (tmp_path / "a.safetensors").stat().st_size < 6000


def test_a_slice_does_not_bring_its_storage_along(tmp_path: Path) -> None:
    """Only what a state refers to is written."""
    save_checkpoint({"a": torch.zeros(1_000_000)[:10]}, tmp_path / "a.safetensors")

    assert (tmp_path / "a.safetensors").stat().st_size < 2000


def test_memory_formats_are_kept(tmp_path: Path) -> None:
    """A tensor that lies in memory in another order does so again."""
    save_checkpoint(STATES["orders"](), tmp_path / "a.safetensors")
    loaded = load_checkpoint(tmp_path / "a.safetensors")

    assert loaded["channels last"].is_contiguous(memory_format=torch.channels_last)
    assert loaded["transposed"].stride() == (1, 5)
    assert loaded["expanded"].stride() == (0, 0)


def test_loaded_tensors_are_leaves_of_their_own(tmp_path: Path) -> None:
    """They can be trained, changed in place and saved by torch without their neighbours."""
    save_checkpoint({"a": torch.ones(3), "b": torch.ones(500)}, tmp_path / "a.safetensors")
    loaded = load_checkpoint(tmp_path / "a.safetensors")
    loaded["a"].requires_grad_()
    (loaded["a"] * 2).sum().backward()

    assert loaded["a"].is_leaf
    assert not loaded["a"]._is_view()
    assert loaded["a"].untyped_storage().nbytes() == 12
    assert loaded["a"].data_ptr() % 64 == 0


_SAVE = """
import sys
from pathlib import Path
from tests.training import save_states
save_states(Path(sys.argv[1]))
"""


def test_the_same_state_is_the_same_bytes_in_every_run(tmp_path: Path) -> None:
    """Neither the process nor the order of hashes shows in a file."""
    here, there = (tmp_path / name for name in ("here", "there"))
    for folder in (here, there):
        folder.mkdir()
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SAVE, str(there)],
        check=True,
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
    )
    save_states(here)
    sums = [
        {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
        for folder in (here, there)
    ]

    assert len(sums[0]) > 10
    assert sums[0] == sums[1]


def test_saving_again_what_was_loaded_gives_the_same_bytes(tmp_path: Path) -> None:
    """A file does not drift by being loaded and saved."""
    for kind in STATES:
        save_checkpoint(STATES[kind](), tmp_path / "a.safetensors")
        save_checkpoint(load_checkpoint(tmp_path / "a.safetensors"), tmp_path / "b.safetensors")
        first, second = (tmp_path / f"{name}.safetensors" for name in "ab")

        assert first.read_bytes() == second.read_bytes(), kind


class _Plan:
    pass


def _cycle() -> Any:
    state: dict[str, Any] = {}
    state["self"] = state
    return state


def _with_gradient() -> torch.Tensor:
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    return leaf


def _with_attribute() -> torch.Tensor:
    tensor = torch.ones(2)
    tensor.note = "x"  # type: ignore[attr-defined]
    return tensor


class _Subclass(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (_Plan, TypeNotAllowed, r"state\[\"a\"\]\[0\].*_Plan"),
        (lambda: torch.ones(2).as_subclass(_Subclass), TypeNotAllowed, "_Subclass"),
        (_with_gradient, ValueNotAllowed, "no gradient"),
        (lambda: torch.ones(2, requires_grad=True) * 2, ValueNotAllowed, "a leaf"),
        (_with_attribute, ValueNotAllowed, "without attributes"),
        (lambda: torch.ones(2, device="meta"), ValueNotAllowed, "meta"),
        (lambda: torch.nested.nested_tensor([torch.ones(1)]), ValueNotAllowed, "nested"),
        (_cycle, EncodeLimitExceeded, "inside itself"),
        (lambda: print, TypeNotAllowed, "builtin"),
    ],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_cannot_be_saved_is_refused_with_its_path(
    make: Any, error: type[SealpointError], message: str, tmp_path: Path
) -> None:
    """The old file stands, nothing else is left behind, and the message says where it is."""
    path = tmp_path / "a.safetensors"
    save_checkpoint({"old": torch.ones(1)}, path)
    before = path.read_bytes()
    with pytest.raises(error, match=message) as caught:
        save_checkpoint({"a": [make()]}, path)

    assert "state" in str(caught.value)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.safetensors"]


def _with_hook() -> Any:
    tensor = torch.ones(2, requires_grad=True)
    tensor.register_hook(lambda gradient: gradient)  # type: ignore[no-untyped-call]
    return tensor


def _counter() -> Any:
    counter = Counter(a=1)
    counter.note = 1  # type: ignore[attr-defined]
    return counter


_LOST: dict[str, Any] = {
    "the attribute of a Counter": _counter,
    "the hook of a tensor": _with_hook,
    "that a sparse tensor is a parameter": lambda: torch.nn.Parameter(torch.eye(2).to_sparse()),
    "that a quantized tensor is a parameter": lambda: torch.nn.Parameter(
        torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8), requires_grad=False
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", _LOST)
def test_what_would_be_lost_is_refused(kind: str, tmp_path: Path) -> None:
    """What the file has no place for is not left out without a word."""
    with pytest.raises(ValueNotAllowed, match=r'state\["a"\]: expected'):
        save_checkpoint({"a": _LOST[kind]()}, tmp_path / "a.safetensors")


def _given_back() -> torch.Tensor:
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(0)
    return tensor


def _quantized(scale: float) -> torch.Tensor:
    return torch._make_per_tensor_quantized_tensor(torch.ones(2, dtype=torch.int8), scale, 0)


_UNREADABLE: dict[str, Any] = {
    "memory that was given back": _given_back,
    "no memory at all": lambda: torch._efficientzerotensor((2,)),
    "much of one element": lambda: torch.zeros(1).expand(20_000_000),
    "many dimensions": lambda: torch.zeros(4)[1:2].expand([2, *[1] * 70]),
    "a scale of 0": lambda: _quantized(0.0),
    "an index outside": lambda: torch.sparse_coo_tensor(
        torch.tensor([[9]]), torch.ones(1), (2,), check_invariants=False
    ),
    "a type without elements": lambda: torch.qint8,
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", _UNREADABLE)
def test_what_could_not_be_loaded_is_not_saved(kind: str, tmp_path: Path) -> None:
    """A save that succeeds is one that can be loaded."""
    with pytest.raises(EncodeError, match="expected"):
        save_checkpoint({"a": _UNREADABLE[kind]()}, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


def test_memory_that_was_given_back_is_left_alone(tmp_path: Path) -> None:
    """To look at a tensor does not give it memory that nobody has written to."""
    tensor = _given_back()
    with pytest.raises(ValueNotAllowed, match="it was given back"):
        save_checkpoint(tensor, tmp_path / "a.safetensors")

    assert tensor.untyped_storage().nbytes() == 0


def test_a_key_of_many_digits_is_refused(tmp_path: Path) -> None:
    """Python does not write such a number; the refusal does not need it."""
    with pytest.raises(EncodeLimitExceeded, match="expected ints of at most"):
        save_checkpoint({10**5000: torch.ones(1)}, tmp_path / "a.safetensors")
