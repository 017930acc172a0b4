# SPDX-License-Identifier: Apache-2.0
"""The framing is DSSE's, and no two pairs of type and payload share one."""

from hypothesis import given
from hypothesis import strategies as st

from sealpoint.signing import ENTRY_TYPE, pae


def test_the_published_example_is_framed_as_published() -> None:
    """DSSE's specification gives this example of its pre-authentication encoding."""
    framed = pae(b"http://example.com/HelloWorld", b"hello world")

    assert framed == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_lengths_count_bytes_and_not_characters() -> None:
    """A payload of two characters in four bytes is framed as four."""
    assert pae(b"t", "éé".encode()) == b"DSSEv1 1 t 4 \xc3\xa9\xc3\xa9"
    assert pae(b"", b"") == b"DSSEv1 0  0 "


_parts = st.binary(max_size=6) | st.sampled_from([b" ", b"1 a", b" 1 ", b"0  0 ", b"a 1 b"])


@given(_parts, _parts, _parts, _parts)
def test_different_pairs_are_framed_differently(
    one_type: bytes, one: bytes, other_type: bytes, other: bytes
) -> None:
    """What separates type and payload cannot be imitated inside either."""
    framed_alike = pae(one_type, one) == pae(other_type, other)

    assert framed_alike == ((one_type, one) == (other_type, other))


def test_the_entry_type_carries_its_version() -> None:
    """A signature on another version of the format is none on this one."""
    assert ENTRY_TYPE == b"application/vnd.sealpoint.entry.v1+json"
