# SPDX-License-Identifier: Apache-2.0
"""Damaged files: they are refused, or load as torch loads them, and nothing third.

A change of an honest file hits structure or elements. Where ours loads the file, torch has to give
the same: whatever torch refuses is refused here, with an error of ours and without much memory.
"""

import random
import tracemalloc
from collections import Counter, OrderedDict
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sealpoint.errors import SealpointError
from tests.effort import examples
from tests.pt_files import archive, ours, records_of, saved, stock

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

_MEMORY_MAX = 32 << 20


def _honest() -> list[bytes]:
    linear = torch.nn.Linear(2, 3)
    optimizer = torch.optim.AdamW(linear.parameters())
    linear(torch.ones(2)).sum().backward()
    optimizer.step()
    plain = [1, -5, 2**70, 1.5, "text", b"\xff", None, True, {1, 2}, (3,), 1j, bytearray(b"x")]
    values: list[object] = [
        linear.state_dict(),
        optimizer.state_dict(),
        [plain, OrderedDict(a=1), Counter("aab"), torch.Size([2]), torch.device("cpu")],
        [torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.ones(2, dtype=torch.uint16)],
    ]
    return [saved(value) for value in values]


@pytest.fixture(scope="module", name="honest")
def _honest_files() -> list[bytes]:
    return _honest()


def _shape(value: Any) -> object:
    """What a value is, without its elements: these may be anything, also not a number."""
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, value.shape, value.layout, value.requires_grad
    if isinstance(value, dict):
        return type(value), [(repr(key), _shape(held)) for key, held in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [_shape(held) for held in value]
    return type(value), repr(value)


def _judge(data: bytes) -> bool:
    """Load with ours and compare; say whether it loaded."""
    tracemalloc.start()
    try:
        loaded = ours(data)
    except SealpointError:
        return False
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < _MEMORY_MAX
    assert _shape(loaded) == _shape(stock(data))
    return True


_byte = st.integers(0, 255)
_places = st.tuples(st.integers(0, 3), st.integers(0, 1 << 20), _byte)


@settings(max_examples=examples(400))
@given(place=_places, also=st.none() | st.tuples(st.integers(0, 1 << 20), _byte))
def test_changed_bytes_are_refused_or_loaded_alike(
    honest: list[bytes], place: tuple[int, int, int], also: tuple[int, int] | None
) -> None:
    """One or two bytes of a file are other bytes."""
    index, at, byte = place
    data = bytearray(honest[index])
    data[at % len(data)] = byte
    if also is not None:
        data[also[0] % len(data)] = also[1]

    _judge(bytes(data))


@settings(max_examples=examples(200))
@given(index=st.integers(0, 3), cut=st.integers(0, 1 << 20), length=st.integers(0, 200))
@example(index=0, cut=0, length=0)
def test_cut_files_are_refused(honest: list[bytes], index: int, cut: int, length: int) -> None:
    """Bytes are missing from the middle or the end."""
    data = honest[index]
    at = cut % len(data)

    whole = _judge(data[:at] + data[at + length :])

    assert whole == (length == 0)
    assert not _judge(data[:at])


@settings(max_examples=examples(200))
@given(
    pair=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    places=st.tuples(*[st.integers(0, 1 << 20)] * 2),
    length=st.integers(1, 64),
)
def test_spliced_pickles_are_refused_or_loaded_alike(
    honest: list[bytes], pair: tuple[int, int], places: tuple[int, int], length: int
) -> None:
    """A piece of one pickle stands in another, in an archive that is otherwise right."""
    records = records_of(honest[pair[0]])
    donor = records_of(honest[pair[1]])["data.pkl"]
    program = records["data.pkl"]
    at, source = places[0] % len(program), places[1] % len(donor)
    records["data.pkl"] = program[:at] + donor[source : source + length] + program[at:]

    _judge(archive(records))


@settings(max_examples=examples(300))
@given(
    index=st.integers(0, 3), changes=st.lists(st.tuples(st.integers(0, 4096), _byte), max_size=3)
)
def test_changed_pickles_are_refused_or_loaded_alike(
    honest: list[bytes], index: int, changes: list[tuple[int, int]]
) -> None:
    """Some bytes of the pickle are others, in an archive that is otherwise right."""
    records = records_of(honest[index])
    program = bytearray(records["data.pkl"])
    for at, byte in changes:
        program[at % len(program)] = byte
    records["data.pkl"] = bytes(program)

    assert _judge(archive(records)) or changes


_opcodes = st.lists(st.sampled_from(list(b"()t]e}us.qhNK\x85\x86Rcba"))).map(bytes)


@settings(max_examples=examples(600))
@given(program=st.binary(max_size=200) | _opcodes)
def test_any_program_is_refused_or_loaded_alike(program: bytes) -> None:
    """Bytes that nobody wrote as a pickle, and opcodes in any order."""
    _judge(archive({"data.pkl": b"\x80\x02" + program + b".", "version": b"3\n"}))


def test_every_byte_of_structure_counts(honest: list[bytes]) -> None:
    """A sample of all single bytes: what can change without a refusal is little but elements."""
    chooser = random.Random(7)  # noqa: S311 - a sample, not a secret
    data = honest[0]
    loaded = 0
    for at in chooser.sample(range(len(data)), 300):
        changed = bytearray(data)
        changed[at] ^= 0xFF
        loaded += _judge(bytes(changed))

    # 36 bytes are elements of tensors; few others (a name, a module's version) are free.
    assert loaded < 60
