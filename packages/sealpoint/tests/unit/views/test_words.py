# SPDX-License-Identifier: Apache-2.0
"""Names as people are shown them: no two that differ look the same."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.views.words import shown_name

_PLAIN = (
    "invoice-7",
    "\u00fc-7",
    "na\u00efve",
    "\u0441\u0447\u0435\u0442-7",
    "\u53d1\u7968-7",
    "\u03b1\u03b2\u03b3",
)
_SPELLED = {
    "\u0456nvoice-7": r"(\u{456}nvoice-7)",
    "invo\u0456ce \u2116 7": r"(invo\u{456}ce \u{2116} 7)",
    "\u0430\u0441\u0435": r"(\u{430}\u{441}\u{435})",
    "invoice\u20107": r"(invoice\u{2010}7)",
    "\uff49nvoice": r"(\u{ff49}nvoice)",
    "\U0001d422nvoice": r"(\u{1d422}nvoice)",
    "cafe\u0301": r"(cafe\u{301})",
    "\u0391ccount": r"(\u{391}ccount)",
}


@pytest.mark.parametrize("name", _PLAIN)
def test_names_of_one_script_are_shown_as_they_are(name: str) -> None:
    """Whoever writes in another script than Latin reads it without escapes."""
    assert shown_name(name) == name


@pytest.mark.parametrize("name", ["invoice 7", "a ", " a", "a, b", "a:", "a  5  5  in step"])
def test_a_name_is_quoted_where_its_end_cannot_be_seen(name: str) -> None:
    """A name in a table cannot pass for another name, or for more columns."""
    assert shown_name(name) == f'"{name}"'


@pytest.mark.parametrize(("name", "spelled"), _SPELLED.items(), ids=ascii)
def test_what_may_be_taken_for_another_name_is_spelled_out(name: str, spelled: str) -> None:
    """The name itself, and beside it which characters it really has."""
    shown = shown_name(name)

    assert shown.endswith(spelled)
    assert shown.startswith((name, f'"{name}"'))


def test_what_does_not_show_is_spelled_in_the_name_itself() -> None:
    """Once is enough."""
    assert shown_name("a\u3164") == r"a\u{3164}"


@given(st.text(min_size=1), st.text(min_size=1))
def test_names_that_differ_are_shown_differently(one: str, other: str) -> None:
    """Also those that no store takes: whoever wrote them may have had other code."""
    assert (shown_name(one) == shown_name(other)) == (one == other)


@given(st.text(st.characters(whitelist_categories=("L", "M", "N")), min_size=1))
def test_two_forms_of_a_name_are_told_apart(name: str) -> None:
    """What decomposes is shown with its parts, where it is not composed."""
    for form in ("NFD", "NFKC", "NFKD"):
        other = unicodedata.normalize(form, name)

        assert (shown_name(other) == shown_name(name)) == (other == name)
