# SPDX-License-Identifier: Apache-2.0
"""Limits: positive whole numbers with a unit in their name, checked when a registry is made."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from sealpoint import Limits, Registry
from sealpoint.errors import LimitInvalid
from sealpoint.limits import BLOB_BYTES_LEAST, DECODE_DEPTH_MAX, ENCODE_DEPTH_MAX

_NAMES = [field.name for field in fields(Limits)]


def _with(name: str, value: Any) -> Limits:
    return Limits(**{name: value})


@pytest.mark.parametrize("name", _NAMES)
def test_a_limit_says_what_it_bounds(name: str) -> None:
    """Every limit is called something_max and has a default that is a positive whole number."""
    default = getattr(Limits(), name)

    assert name.endswith("_max")
    assert type(default) is int
    assert default > 0


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("value", [0, -1, 1.5, "9", None, True])
def test_a_limit_that_is_no_positive_whole_number_is_refused(name: str, value: Any) -> None:
    """A registry is not made with a limit that cannot be a bound."""
    with pytest.raises(LimitInvalid, match=name):
        Registry(limits=_with(name, value))


def test_limits_cannot_be_changed_afterwards() -> None:
    """Limits are frozen and given by keyword."""
    limits = Limits()

    with pytest.raises(FrozenInstanceError):
        limits.depth_max = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        Limits(5)  # type: ignore[call-arg]


def test_depth_and_blob_size_have_bounds_of_their_own() -> None:
    """depth_max cannot be raised beyond the engine, nor blob_bytes_max lowered beyond use."""
    with pytest.raises(LimitInvalid, match=str(ENCODE_DEPTH_MAX)):
        Registry(limits=Limits(depth_max=ENCODE_DEPTH_MAX + 1))
    with pytest.raises(LimitInvalid, match=str(BLOB_BYTES_LEAST)):
        Registry(limits=Limits(blob_bytes_max=BLOB_BYTES_LEAST - 1))

    assert Registry(limits=Limits(blob_bytes_max=BLOB_BYTES_LEAST)).limits.fault() is None
    assert ENCODE_DEPTH_MAX < DECODE_DEPTH_MAX


def test_a_registry_tells_the_limits_in_force() -> None:
    """The limits that were given, or the defaults."""
    given = Limits(value_bytes_max=5000)

    assert Registry().limits == Limits()
    assert Registry(limits=given).limits is given
