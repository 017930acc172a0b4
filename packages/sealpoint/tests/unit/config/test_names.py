# SPDX-License-Identifier: Apache-2.0
"""Names of identities are safe as names of files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.config import check_identity_name
from sealpoint.errors import NameInvalid


@pytest.mark.parametrize("name", ["a", "0", "worker", "billing-2", "a.b_c-d", "a..b", "x" * 64])
def test_a_plain_name_is_returned(name: str) -> None:
    """Lower-case letters, digits, dots, underscores and hyphens make a name."""
    assert check_identity_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "-a", "_a", ".a", "A", "aB", "a b", "a/b", "../a", "a\\b", "a\0", "a\n"),
        *("é", "\u0661", "a\u0661", "x" * 65, "a:b", "*", "a~", "\ud800", "\u017f", "\u212a"),
    ],
)
def test_another_name_is_refused(name: str) -> None:
    """Nothing that could leave the directory, hide, or meet another name where case is ignored."""
    with pytest.raises(NameInvalid, match="identity name: expected 1 to 64") as caught:
        check_identity_name(name)

    assert "alice" in caught.value.hint


@given(st.text(max_size=70))
def test_a_name_that_is_accepted_is_one_plain_part_of_a_path(name: str) -> None:
    """Whatever passes has no separator and is no special directory."""
    try:
        check_identity_name(name)
    except NameInvalid:
        return

    assert name.isascii()
    assert name == name.lower()
    assert not set(name) & set("/\\\0:")
    assert not name.startswith(".")


def test_a_long_name_is_not_repeated_whole() -> None:
    """A message has a bound too."""
    with pytest.raises(NameInvalid) as caught:
        check_identity_name("x" * 100_000)

    assert len(caught.value.message) < 300
