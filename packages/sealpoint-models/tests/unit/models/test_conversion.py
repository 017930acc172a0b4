# SPDX-License-Identifier: Apache-2.0
"""What a pickle holds is kept by a file of ours, and nothing else becomes of it."""

import argparse
import pickle
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sealpoint.errors import (
    EncodeLimitExceeded,
    GlobalNotAllowed,
    ModelMalformed,
    UsageError,
    ValueNotAllowed,
)
from sealpoint_models import (
    Inert,
    _structure_nodes,
    convert_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from sealpoint_models._device_placement import Placing
from sealpoint_models._state_building import build_state
from sealpoint_models._structure_nodes import InertNode, NamespaceNode
from sealpoint_models.scan._safetensors import write_header

_FORMAT = Path(__file__).parents[5] / "docs/formats/model-file.md"


class Config:
    """A class that no table knows, with a link to what holds it."""

    def __init__(self, parent: Any = None) -> None:
        self.parent = parent
        self.rate = 0.5


def _kept(state: Any, path: Path) -> Any:
    save_checkpoint(state, path)
    return load_checkpoint(path)


def _equal(left: Any, right: Any) -> bool:
    """Whether two states are the same, with types, strides and bits."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        if left.layout is not torch.strided:
            return left.layout == right.layout and torch.equal(left.to_dense(), right.to_dense())
        same = (left.dtype, left.shape, left.stride()) == (right.dtype, right.shape, right.stride())
        return same and torch.equal(left, right) and left.requires_grad == right.requires_grad
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    if isinstance(left, argparse.Namespace | types.SimpleNamespace):
        return _equal(vars(left), vars(right))
    if isinstance(left, dict):
        if getattr(left, "_metadata", None) != getattr(right, "_metadata", None):
            return False
        return [*left] == [*right] and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple | deque):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)


_SHARED = torch.arange(12.0)
_SHAPES: dict[str, Any] = {
    "scalar": torch.tensor(1.5),
    "empty": torch.zeros(0, 3),
    "half": torch.ones(3, dtype=torch.bfloat16),
    "booleans": torch.tensor([True, False]),
    "complex": torch.ones(2, 2, dtype=torch.complex64),
    "transposed": torch.arange(6).reshape(2, 3).t(),
    "shared": [_SHARED, _SHARED[2:5], _SHARED.reshape(3, 4)],
    "parameter": torch.nn.Parameter(torch.ones(2)),
    "sparse": torch.eye(3).to_sparse(),
    "module": torch.nn.BatchNorm1d(3).state_dict(),
    "array": np.arange(6, dtype="<f8").reshape(2, 3),
    "arguments": argparse.Namespace(rate=0.1, weight=torch.ones(1)),
    "simple": types.SimpleNamespace(name="x"),
    "containers": [deque([1, 2], 5), defaultdict(list, a=[1]), Counter("aab"), OrderedDict(b=1)],
    "plain": {"n": None, 1: (2, 3.5), "s": {"x"}, "size": torch.Size([2]), "type": torch.int8},
}


@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "stream"])
@pytest.mark.parametrize("name", _SHAPES)
def test_a_converted_file_holds_what_torch_would_have_loaded(
    tmp_path: Path, name: str, *, is_zip: bool
) -> None:
    """Tensor by tensor, with types, strides and bits, from both wrappings of torch."""
    source, target = tmp_path / "run.pt", tmp_path / "run.safetensors"
    torch.save({"state": _SHAPES[name]}, source, _use_new_zipfile_serialization=is_zip)
    dropped = convert_checkpoint(source, target)
    expected = torch.load(source, weights_only=False)

    assert dropped == ()
    assert _equal(load_checkpoint(target), expected)


def test_tensors_that_share_memory_share_it_in_a_converted_file(tmp_path: Path) -> None:
    """A view stays a view."""
    source, target = tmp_path / "run.pt", tmp_path / "run.safetensors"
    torch.save(_SHAPES["shared"], source)
    convert_checkpoint(source, target)
    whole, part, _ = load_checkpoint(target)
    whole[2] = 99.0

    assert part[0] == 99.0


def test_an_inert_value_is_kept_as_what_it_is(tmp_path: Path) -> None:
    """All of its parts come back, with tensors in them."""
    parts: dict[str, Any] = {
        "arguments": (1, torch.ones(2)),
        "keywords": {"a": 1},
        "state": {"weight": torch.zeros(1)},
        "items": [1, Inert("a.b")],
        "pairs": [("k", 2)],
    }
    kept = _kept([Inert("os.system", made="call", **parts)], tmp_path / "x.safetensors")[0]

    assert type(kept) is Inert
    assert (kept.type, kept.made, kept.keywords, kept.pairs) == (
        "os.system",
        "call",
        {"a": 1},
        [("k", 2)],
    )
    assert _equal((kept.arguments, kept.state), (parts["arguments"], parts["state"]))
    assert (kept.items[0], kept.items[1].type, kept.items[1].made) == (1, "a.b", "name")


def test_a_value_inside_itself_is_refused_with_its_path(tmp_path: Path) -> None:
    """Both ends of the link are named, and nothing is written."""
    config = Inert("app.Config", made="object", state={})
    config.state["parent"] = config
    with pytest.raises(EncodeLimitExceeded) as refused:
        save_checkpoint({"config": config}, tmp_path / "x.safetensors")

    assert """state["config"]["state"]["parent"]""" in refused.value.message
    assert """found state["config"] again""" in refused.value.message
    assert [*tmp_path.iterdir()] == []


def test_a_link_to_what_holds_it_is_dropped_and_said(tmp_path: Path) -> None:
    """Configurations with links to their parent are converted as inert values."""
    config = Config()
    config.parent = [config]
    source, target = tmp_path / "run.pkl", tmp_path / "run.safetensors"
    source.write_bytes(pickle.dumps({"config": config}))
    dropped = convert_checkpoint(source, target, unknown="inert")
    kept = load_checkpoint(target)["config"]

    assert [each.path for each in dropped] == ["""state["config"]["state"]["parent"][0]"""]
    assert """state["config"]""" in dropped[0].reason
    assert kept.state == {"parent": [None], "rate": 0.5}


def test_what_a_file_cannot_hold_is_refused_with_all_paths_or_dropped(tmp_path: Path) -> None:
    """Names, tensors without elements and attributes go where asked, and each is said."""
    source, target = tmp_path / "run.pt", tmp_path / "run.safetensors"
    marked = torch.ones(2)
    marked.note = "x"  # type: ignore[attr-defined]
    state = {"far": torch.ones(1, device="meta"), "marked": marked, "list": [1, Config()]}
    torch.save(state, source)
    with pytest.raises(GlobalNotAllowed):
        convert_checkpoint(source, target)
    with pytest.raises(ValueNotAllowed) as refused:
        convert_checkpoint(source, target, unknown="inert")
    was_there = target.exists()
    dropped = convert_checkpoint(source, target, unknown="drop")
    kept = load_checkpoint(target)

    assert all(f"""state["{name}"]""" in refused.value.message for name in ("far", "marked"))
    assert not was_there
    assert {each.path for each in dropped} == {
        """state["far"]""",
        """state["marked"]["note"]""",
        """state["list"][1]""",
    }
    assert (kept["marked"].tolist(), kept["list"]) == ([1, 1], [1, None])
    with pytest.raises(UsageError):
        convert_checkpoint(source, target, unknown="drop")


_INERT: dict[str, Any] = {
    "type": "os.system",
    "made": "call",
    "arguments": (),
    "keywords": None,
    "state": None,
    "items": [],
    "pairs": [],
}


@pytest.mark.parametrize(
    "node",
    [
        InertNode(**{**_INERT, "type": 1}),
        InertNode(**{**_INERT, "made": "run"}),
        InertNode(**{**_INERT, "arguments": []}),
        InertNode(**{**_INERT, "items": ()}),
        InertNode(**{**_INERT, "pairs": [(1, 2, 3)]}),
        InertNode(**{**_INERT, "pairs": [[1, 2]]}),
        NamespaceNode(kind="os", attributes={}),
        NamespaceNode(kind="types", attributes={1: 2}),  # type: ignore[dict-item]
        NamespaceNode(kind="argparse", attributes=[]),  # type: ignore[arg-type]
    ],
)
def test_nodes_of_other_forms_are_refused(node: Any) -> None:
    """A structure is written by anybody: each field is what it has to be."""
    placing = Placing(torch, "cpu", "x")
    header = write_header([], {})

    with pytest.raises(ModelMalformed):
        build_state(torch, node, header=header, memory={}, placing=placing, what="x")


def test_the_specification_has_every_node_with_its_digest() -> None:
    """Who writes a second reader takes names and digests of shapes from there."""
    text = _FORMAT.read_text(encoding="utf-8")
    rows = dict(re.findall(r"\| `(sealpoint\.model\.[a-z-]+)` \| `([0-9a-f]{16})` ", text))
    rules = [_structure_nodes._REGISTRY.rule_of(cls) for cls in _structure_nodes._NAMES.values()]

    assert rows == {rule.name: rule.label[-8:].hex() for rule in rules if rule}
