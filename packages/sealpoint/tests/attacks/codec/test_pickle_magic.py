# SPDX-License-Identifier: Apache-2.0
"""A pickle in any field is bytes, stays bytes, and is never loaded."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from sealpoint.errors import DecodeError
from tests.application import Message, Money, Open, Pair, Step, make_registry
from tests.blobs import Blobs
from tests.sameness import same
from tests.wire import extension

REGISTRY = make_registry()


class _Planted:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def _pickles(path: Path) -> list[bytes]:
    made = [pickle.dumps(_Planted(path), protocol) for protocol in range(6)]
    zipped = b"PK\x03\x04" + made[-1]
    return [*made, b"\x80\x04" + made[0], zipped, b"\x93NUMPY\x01\x00v\x00" + made[-1]]


def _fields(data: bytes) -> list[Any]:
    """The data in every field that can hold it."""
    return [
        data,
        [data],
        {"key": data},
        {data: "as a key"},
        (data,),
        {data},
        Step("title", data),
        Message(text=data),
        Open.model_validate({"other": data}),
        Pair(data, data),
        Money(1, data),
        {"text": data.decode("latin-1")},
        data.decode("latin-1"),
    ]


def test_a_pickle_in_any_field_stays_what_it_is(tmp_path: Path) -> None:
    """Bytes that begin like a pickle, a zip or an array file come back as the same bytes."""
    planted = tmp_path / "planted"
    for data in _pickles(planted):
        for value in _fields(data):
            blobs = Blobs()

            assert same(value, REGISTRY.decode(REGISTRY.encode(value)))
            root = REGISTRY.encode_tree(value, blobs.put)
            assert same(value, REGISTRY.decode_tree(root, blobs.get))
    assert not planted.exists()


def test_a_pickle_in_place_of_an_encoding_is_refused(tmp_path: Path) -> None:
    """A pickle handed to the decoder as a value, or as any extension's payload, builds nothing."""
    planted = tmp_path / "planted"
    for data in _pickles(planted):
        with pytest.raises(DecodeError):
            REGISTRY.decode(data)
        for tag in range(256):
            try:
                decoded = REGISTRY.decode(extension(tag, data))
            except DecodeError:
                continue
            # Any bytes are some whole number.
            assert tag == 3
            assert type(decoded) is int
    assert not planted.exists()


def test_the_control_pickle_would_have_worked(tmp_path: Path) -> None:
    """The pickles above are live: loading one creates the file."""
    planted = tmp_path / "planted"

    pickle.loads(_pickles(planted)[2])

    assert planted.exists()
