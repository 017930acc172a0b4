# SPDX-License-Identifier: Apache-2.0
"""The repository is written in plain words; `words.py` lists those to avoid."""

import re
from pathlib import Path

import pytest

from tests.repo._tree import ROOT
from tests.repo.words import ceilings, find, places

_PLAIN = ("first pages", "docs/console", "docs/guides", "docs/models", "--help", "messages")
_TERMS = (
    *("store", "thread", "checkpoint", "anchor", "pin", "roster"),
    *("policy", "world", "session", "request", "rollout", "owner"),
)
_TERM = re.compile(r"^(?P<term>[^\s:|#].*)\n: (?P<text>(?:.+\n)+)", re.MULTILINE)


def _words(text: str) -> list[str]:
    return [place.word for place in find(text, "here")]


def test_no_area_has_more_words_to_avoid_than_it_may() -> None:
    """No area has more words to avoid than `words.toml` says, and none if it is not in there."""
    more = {
        area: [f"{len(found)} of {ceilings().get(area, 0)}", *map(str, found[:20])]
        for area, found in places().items()
        if len(found) > ceilings().get(area, 0)
    }

    assert not more, "python -m tests.repo.words AREA prints every place"


def test_the_counts_of_words_are_lowered_when_they_fall() -> None:
    """`words.toml` says of each area how many words to avoid it has, and names no other area."""
    found = {area: len(there) for area, there in places().items()}
    fewer = {area: found.get(area) for area, most in ceilings().items() if found.get(area) != most}

    assert not fewer, "lower the table: python -m tests.repo.words --write"


@pytest.mark.parametrize("area", _PLAIN)
def test_pages_help_and_messages_are_in_plain_words(area: str) -> None:
    """The first pages, the guides, the help and the messages have no word to avoid."""
    assert places()[area] == ()


def test_the_glossary_has_twelve_terms() -> None:
    """The glossary has the twelve terms that a user learns, each in one or two sentences."""
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    found = {match["term"]: match["text"] for match in _TERM.finditer(page)}

    assert tuple(found) == _TERMS
    for term, text in found.items():
        assert 1 <= len(re.findall(r"[.?](?=\s)", text)) <= 2, term


def test_contributing_names_every_folder_of_tests() -> None:
    """The table of CONTRIBUTING has a row for each folder of tests, and for no other."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `tests/(\w+)/` \|", page, re.MULTILINE)
    folders = {folder for root in _test_roots() for folder in _folders(root)}

    assert rows == sorted(folders)


def _test_roots() -> list[Path]:
    return [ROOT / "tests", *ROOT.glob("packages/*/tests")]


def _folders(root: Path) -> set[str]:
    found = [*root.glob("*/test_*.py"), *root.glob("*/*/test_*.py")]
    return {path.relative_to(root).parts[0] for path in found}


def test_planted_words_are_found() -> None:
    """The patterns find what they look for, and leave plain sentences alone."""
    assert len(_words("Whoever goes on\nwith it is told anew.")) == 4
    assert len(_words("What was dropped is said.\n- Who resumes does not own it.")) == 2
    assert _words("This is no session.")
    assert not _words("What is dropped? There is no session, and it is no longer told apart.")
    assert not _words("A caller resumes the run. The whole store is verified again.")
