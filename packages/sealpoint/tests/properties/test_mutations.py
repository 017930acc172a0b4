# SPDX-License-Identifier: Apache-2.0
"""Any changed flat encoding gives a typed error or a value of allowed types, nothing else."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sealpoint import Registry
from sealpoint.errors import DecodeError, EncodeLimitExceeded, ValueNotAllowed
from tests import strategies
from tests.allowed import foreign_types
from tests.application import make_registry
from tests.effort import examples
from tests.wire import extension

REGISTRY = make_registry()
BARE = Registry()


@st.composite
def _mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """Change, insert, remove, repeat or move some bytes."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(changed)))
        stop = min(len(changed), start + draw(st.integers(0, 6)))
        how = draw(st.sampled_from(["byte", "tag", "insert", "remove", "repeat", "length", "cut"]))
        if how == "byte" and start < len(changed):
            changed[start] ^= draw(st.integers(1, 255))
        elif how == "tag" and start < len(changed):
            changed[start] = draw(st.integers(0, 34))
        elif how == "insert":
            changed[start:start] = draw(st.binary(max_size=6))
        elif how == "remove":
            del changed[start:stop]
        elif how == "repeat":
            changed[start:start] = changed[start:stop] * draw(st.integers(1, 5))
        elif how == "length" and start < len(changed):
            changed[start] = (changed[start] + draw(st.sampled_from([1, 255, 16, 240]))) % 256
        elif how == "cut":
            del changed[start:]
    return bytes(changed)


def _check(registry: Registry, data: bytes) -> None:
    """Decode hostile bytes; what comes out must be allowed, and must go in again."""
    try:
        decoded = registry.decode(data)
    except DecodeError:
        return
    assert foreign_types(decoded, registry) == set()
    try:
        again = registry.encode(decoded)
    except (EncodeLimitExceeded, ValueNotAllowed) as exc:
        # Only bounds of the encoder's own engine may stand between a value and its bytes.
        assert "depth_max" in str(exc), exc  # noqa: PT017
        return
    assert registry.encode(registry.decode(again)) == again


@given(strategies.values(), st.data())
@settings(max_examples=examples(2000))
def test_a_mutated_encoding_is_an_error_or_an_allowed_value(
    value: Any, data: st.DataObject
) -> None:
    """Changed valid encodings: nothing but a DecodeError or an allowed value comes out."""
    _check(REGISTRY, data.draw(_mutated(REGISTRY.encode(value))))


@given(strategies.values(), st.data())
@settings(max_examples=examples(300))
def test_a_registry_without_rules_builds_no_application_type(
    value: Any, data: st.DataObject
) -> None:
    """The bytes of an application, changed or not, give a bare registry plain values only."""
    encoded = REGISTRY.encode(value)

    _check(BARE, encoded)
    _check(BARE, data.draw(_mutated(encoded)))


@given(st.binary(max_size=64))
@settings(max_examples=examples(1000))
@example(b"")
def test_arbitrary_bytes_are_an_error_or_an_allowed_value(data: bytes) -> None:
    """Bytes that no encoder wrote are no different."""
    _check(REGISTRY, data)


@given(st.integers(0, 255), st.binary(max_size=40))
@settings(max_examples=examples(1500))
def test_an_arbitrary_payload_under_any_tag_is_an_error_or_an_allowed_value(
    tag: int, payload: bytes
) -> None:
    """Every extension tag, with a payload that its encoder would not write."""
    _check(REGISTRY, extension(tag, payload))
    _check(REGISTRY, b"\x91" + extension(tag, payload))


@given(strategies.values())
@settings(max_examples=examples(200))
def test_every_prefix_of_an_encoding_is_refused(value: Any) -> None:
    """An encoding that was cut off anywhere is an error."""
    encoded = REGISTRY.encode(value)
    lengths = range(len(encoded)) if len(encoded) < 300 else range(0, len(encoded), 7)

    for length in lengths:
        with pytest.raises(DecodeError):
            REGISTRY.decode(encoded[:length])


@given(strategies.values(), st.binary(min_size=1, max_size=4))
@settings(max_examples=examples(300))
def test_bytes_after_the_value_are_refused(value: Any, trailing: bytes) -> None:
    """An encoding with anything behind it is an error, whatever stands there."""
    encoded = REGISTRY.encode(value)

    refused = False
    try:
        REGISTRY.decode(encoded + trailing)
    except DecodeError:
        refused = True

    assert refused
