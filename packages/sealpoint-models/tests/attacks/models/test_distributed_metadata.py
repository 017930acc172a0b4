# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of torch's own distributed writer, forged: nothing runs, and nothing is believed."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from sealpoint.errors import (
    GlobalNotAllowed,
    ModelLimitExceeded,
    ModelMalformed,
    ModelUnreadable,
    SealpointError,
)
from sealpoint_models import Inert
from sealpoint_models.distributed import SafeFileSystemReader

pytestmark = pytest.mark.filterwarnings("ignore")


class _Marker:
    """What a pickle makes when it is run."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1

    def __reduce__(self) -> Any:
        return _Marker, ()


def _refusal(folder: Path) -> SealpointError:
    state = {"w": torch.zeros(3), "s": 0}
    with pytest.raises(CheckpointException) as caught:
        load(state, storage_reader=SafeFileSystemReader(folder))
    ((error, _),) = caught.value.failures.values()
    assert isinstance(error, SealpointError)
    return error


def test_code_in_a_value_is_not_run(tmp_path: Path) -> None:
    """A name in a value is refused by default, and inert if the caller says so."""
    save({"w": torch.ones(3), "s": _Marker()}, checkpoint_id=tmp_path / "stock")
    made = _Marker.made
    refused = _refusal(tmp_path / "stock")
    state: dict[str, Any] = {"s": None}
    load(state, storage_reader=SafeFileSystemReader(tmp_path / "stock", unknown="inert"))

    assert isinstance(refused, GlobalNotAllowed)
    assert isinstance(state["s"], Inert)
    assert _Marker.made == made


def _place(metadata: Metadata) -> Any:
    return metadata.storage_data[MetadataIndex("w", [0])]


def _tensor(metadata: Metadata) -> Any:
    return metadata.state_dict_metadata["w"]


@pytest.mark.parametrize(
    ("forge", "expected"),
    [
        (lambda it: setattr(it, "planner_data", os.system), GlobalNotAllowed),
        (lambda it: setattr(it, "storage_meta", _Marker()), GlobalNotAllowed),
        (lambda it: setattr(it, "planner_data", {"w": ("w", 1 << 30)}), ModelLimitExceeded),
        (lambda it: setattr(it, "planner_data", {"w": (0,)}), ModelMalformed),
        (lambda it: setattr(_place(it), "relative_path", "../secret"), ModelMalformed),
        (lambda it: setattr(_place(it), "relative_path", "gone"), ModelUnreadable),
        (lambda it: setattr(_place(it), "length", 1 << 40), ModelMalformed),
        (lambda it: setattr(_place(it), "length", 8), ModelMalformed),
        (lambda it: setattr(_place(it), "offset", -1), ModelMalformed),
        (lambda it: setattr(_place(it), "transform_descriptors", ["zstd"]), ModelMalformed),
        (lambda it: setattr(_tensor(it), "size", torch.Size([1 << 40])), ModelMalformed),
        (lambda it: setattr(_tensor(it), "size", torch.Size([2])), ModelMalformed),
        (lambda it: setattr(_tensor(it), "chunks", []), ModelMalformed),
        (lambda it: setattr(_tensor(it).properties, "layout", torch.sparse_coo), ModelMalformed),
        (lambda it: it.state_dict_metadata.update(x=it.state_dict_metadata["s"]), ModelMalformed),
    ],
)
def test_forged_metadata_are_refused(
    tmp_path: Path, forge: Callable[[Metadata], Any], expected: type[SealpointError]
) -> None:
    """Names, paths, places and sizes that torch does not write are refused before any read."""
    folder = tmp_path / "stock"
    save({"w": torch.ones(3), "s": 1}, checkpoint_id=folder)
    metadata = pickle.loads((folder / ".metadata").read_bytes())
    forge(metadata)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    made = _Marker.made

    assert type(_refusal(folder)) is expected
    assert _Marker.made == made
