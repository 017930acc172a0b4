# SPDX-License-Identifier: Apache-2.0
"""What a caller of resume asks for is checked before anything is looked at."""

import pytest

from sealpoint.errors import UsageError
from sealpoint.gate._resume_call import ResumeCall
from sealpoint.limits import NAME_BYTES_MAX


def _call(actor: str) -> ResumeCall:
    return ResumeCall.of(None, ref=None, answer=None, actor=actor, deliberate=None)


def test_an_actor_has_a_bound_in_bytes() -> None:
    """One of exactly that length is taken, one byte more is not, and letters may have two."""
    longest = "ä" * (NAME_BYTES_MAX // 2)

    assert _call(longest).actor == longest
    with pytest.raises(UsageError, match=f"at most {NAME_BYTES_MAX} bytes"):
        _call(longest + "a")
