# SPDX-License-Identifier: Apache-2.0
"""What torch's careful loader reads from what torch saves, ours reads too, and gives the same."""

import io
from collections import Counter, OrderedDict
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pt_files import ours, stock
from tests.training import same_state

_DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32),
    *(torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128),
)
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 80), 1 << 80),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.binary(max_size=8),
)
_KEYS = st.one_of(st.text(max_size=6), st.integers(-300, 70_000))


@st.composite
def _tensors(draw: Any) -> torch.Tensor:
    """A tensor of some type: whole, a part, a transposed one, a parameter."""
    dtype = draw(st.sampled_from(_DTYPES))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    made = torch.arange(max(1, torch.Size(shape).numel())).to(dtype)
    made = made[: torch.Size(shape).numel()].reshape(shape)
    match draw(st.integers(0, 4)):
        case 0 if made.dim():
            made = made[draw(st.integers(0, made.shape[0])) :]
        case 1 if made.dim() > 1:
            made = made.transpose(0, 1)
        case 2 if dtype.is_floating_point:
            return torch.nn.Parameter(made, requires_grad=draw(st.booleans()))
        case 3:
            made = made.unsqueeze(0).expand(2, *made.shape)
        case _:
            pass
    return made


_VALUES = st.recursive(
    st.one_of(_SCALARS, _tensors(), st.just(torch.Size([1, 2])), st.sampled_from(_DTYPES)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(_KEYS, inner, max_size=4),
        st.dictionaries(_KEYS, inner, max_size=4).map(OrderedDict),
        st.dictionaries(_KEYS, st.integers(0, 9), max_size=3).map(Counter),
        inner.map(lambda value: [value, value]),
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(value=_VALUES, protocol=st.sampled_from((2, 3, 4)), is_zip=st.booleans())
def test_what_torch_reads_with_care_is_read_the_same(
    value: Any, protocol: int, *, is_zip: bool
) -> None:
    """For states of tensors and plain data, each protocol and both wrappings."""
    buffer = io.BytesIO()
    torch.save(value, buffer, pickle_protocol=protocol, _use_new_zipfile_serialization=is_zip)
    try:
        theirs = stock(buffer.getvalue())
    except Exception:  # noqa: BLE001 - whatever torch refuses says nothing about us
        return

    assert same_state(ours(buffer.getvalue()), theirs)
