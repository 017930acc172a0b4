# SPDX-License-Identifier: Apache-2.0
"""Store URLs: strict, and one text for each place."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.config import StoreUrl
from sealpoint.errors import ExtraMissing, UrlInvalid


def test_memory_is_one_word() -> None:
    """The store in memory has no path and prints as it is written."""
    url = StoreUrl.parse("memory:")

    assert (url.scheme, url.path, str(url)) == ("memory", None, "memory:")


def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both spellings of one file are one store with one text."""
    home = tmp_path.resolve()
    monkeypatch.chdir(home)
    relative = StoreUrl.parse("sqlite:///data/store.db")
    absolute = StoreUrl.parse(f"sqlite:///{home}/data/store.db")

    assert relative == absolute
    assert relative.scheme == "sqlite"
    assert relative.path == home / "data" / "store.db"
    assert str(relative) == str(absolute) == f"sqlite:///{home}/data/store.db"
    assert StoreUrl.parse(str(relative)) == relative


def test_a_later_change_of_directory_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is relative to where the program was when it was read."""
    monkeypatch.chdir(tmp_path)
    url = StoreUrl.parse("sqlite:///store.db")
    text = str(url)
    monkeypatch.chdir("/")

    assert str(url) == text
    assert url.path == tmp_path.resolve() / "store.db"


def test_spellings_of_one_path_are_one_store(tmp_path: Path) -> None:
    """Dots, doubled slashes and percent-encoding are seen through."""
    (tmp_path / "real").mkdir()
    expected = StoreUrl.parse(f"sqlite:///{tmp_path}/real/store.db")
    paths = [
        *("real/./store.db", "real//store.db", "./real/store.db", "none/../real/store.db"),
        *("real/../real/store.db", "re%61l/st%6Fre.db", "real/store%2edb"),
    ]

    for path in paths:
        assert StoreUrl.parse(f"sqlite:///{tmp_path}/{path}") == expected, path
    assert StoreUrl.parse(f"sqlite://///{tmp_path}/real/store.db") == expected


def test_an_address_is_kept_as_it_was_given_and_says_where_it_leads(tmp_path: Path) -> None:
    """A link to a directory is another address that leads to the same place."""
    home = tmp_path.resolve()
    (home / "real").mkdir()
    (home / "link").symlink_to("real")
    for form in ("sqlite:///{}/store", "file://{}/store"):
        real = StoreUrl.parse(form.format(home / "real"))
        link = StoreUrl.parse(form.format(home / "link"))

        assert link != real
        assert link.path == home / "link" / "store"
        assert str(link) == form.format(home / "link")
        assert Path(link.target()) == Path(real.target()) == real.path == home / "real" / "store"
        assert StoreUrl.parse(form.format(home / "link" / ".." / "link")) == link
    with pytest.raises(UrlInvalid, match="memory: is none"):
        StoreUrl.parse("memory:").target()


def test_going_up_from_a_link_is_refused(tmp_path: Path) -> None:
    """The system goes up from where the link leads; whoever reads the URL does not."""
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/away")

    for form in ("sqlite:///{}/link/../store", "file://{}/link/../store"):
        with pytest.raises(UrlInvalid, match=r"expected no \.\. after a link") as caught:
            StoreUrl.parse(form.format(tmp_path))
        assert caught.value.hint == "Write the path without .. in it."
        StoreUrl.parse(form.format(tmp_path).replace("link/../", ""))


def test_the_last_name_is_never_followed(tmp_path: Path) -> None:
    """Who makes the store a link to another trusted store does not get that one opened."""
    (tmp_path / "other.db").touch()
    before = StoreUrl.parse(f"sqlite:///{tmp_path}/store.db")
    (tmp_path / "store.db").symlink_to("other.db")
    after = StoreUrl.parse(f"sqlite:///{tmp_path}/store.db")

    assert before == after
    assert Path(before.target()) == Path(after.target()) == tmp_path.resolve() / "store.db"
    assert after != StoreUrl.parse(f"sqlite:///{tmp_path}/other.db")


def test_spellings_of_one_directory_are_one_store(tmp_path: Path) -> None:
    """A directory is named from the root; more slashes at its start or end change nothing."""
    home = tmp_path.resolve()
    (home / "real").mkdir()
    expected = StoreUrl.parse(f"file://{home}/real/store")

    assert (expected.scheme, expected.path) == ("file", home / "real" / "store")
    assert str(expected) == f"file://{home}/real/store"
    for text in (
        *(f"file://{home}/real/store/", f"file:////{home}/real/store"),
        *(f"file://{home}/real/./st%6Fre", f"file://{home}/real/../real/store//"),
    ):
        assert StoreUrl.parse(text) == expected, text
    assert StoreUrl.parse(f"sqlite:///{home}/real/store") != expected


def test_a_directory_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Who makes the store a link to another trusted store does not get that one opened."""
    (tmp_path / "other").mkdir()
    (tmp_path / "store").symlink_to("other")
    url = StoreUrl.parse(f"file://{tmp_path}/store")

    assert url != StoreUrl.parse(f"file://{tmp_path}/other")


@pytest.mark.parametrize("text", ["file:agents", "file:./agents", "file:/agents", "file://agents"])
def test_a_relative_directory_is_refused_with_the_way_to_write_it(text: str) -> None:
    """There is no default, and no directory that depends on where a program runs."""
    with pytest.raises(UrlInvalid) as caught:
        StoreUrl.parse(text)

    assert "file:///srv/agents" in caught.value.hint


def test_a_loop_of_links_is_no_crash(tmp_path: Path) -> None:
    """A directory that links to itself cannot be opened later, and is parsed all the same."""
    (tmp_path / "loop").symlink_to("loop")
    url = StoreUrl.parse(f"sqlite:///{tmp_path}/loop/store.db")

    assert url.path is not None
    assert url.path.name == "store.db"
    assert Path(url.target()).name == "store.db"


_SCHEMES = ("file", "sqlite")
_names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1)


@given(st.lists(_names.filter(lambda name: name not in {".", ".."}), min_size=1, max_size=3))
def test_every_path_has_a_url_that_reads_back(names: list[str]) -> None:
    """The text of a URL is plain ASCII and leads to the same file, whatever its name."""
    for scheme in _SCHEMES:
        url = StoreUrl(scheme=scheme, address=str(Path("/no-such-directory").joinpath(*names)))

        assert str(url).isascii()
        assert str(url).isprintable()
        assert StoreUrl.parse(str(url)) == url


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "found no scheme"),
        ("store.db", "found no scheme"),
        ("memory", "found no scheme"),
        ("sqlite", "found no scheme"),
        (":", "the scheme ''"),
        ("Memory:", "the scheme 'Memory'"),
        ("SQLITE:///a", "the scheme 'SQLITE'"),
        (" sqlite:///a", "the scheme ' sqlite'"),
        ("FILE:///a", "the scheme 'FILE'"),
        ("memory: ", "memory: alone"),
        ("memory://", "memory: alone"),
        ("memory:a", "memory: alone"),
        ("sqlite:", "three slashes"),
        ("sqlite:a.db", "three slashes"),
        ("sqlite:/a.db", "three slashes"),
        ("sqlite://a.db", "expected no host, found 'a.db'"),
        ("sqlite://localhost/a.db", "expected no host, found 'localhost'"),
        ("sqlite://", "the path of a file"),
        ("sqlite:///", "the path of a file"),
        ("sqlite:////", "the path of a file"),
        ("sqlite:////a/", "the path of a file"),
        ("sqlite:///a/.", "the path of a file"),
        ("sqlite:///a/..", "the path of a file"),
        ("sqlite:///%2e%2E", "the path of a file"),
        ("sqlite:///a?mode=ro", "found a query"),
        ("sqlite:///a?", "found a query"),
        ("sqlite:///a#b", "found a fragment"),
        ("sqlite:///a%", "two hexadecimal digits"),
        ("sqlite:///a%4", "two hexadecimal digits"),
        ("sqlite:///a%zz", "two hexadecimal digits"),
        ("sqlite:///a%\u0661\u0661", "two hexadecimal digits"),
        ("sqlite:///%2Fetc/a", "a bad escape or an escaped slash"),
        ("sqlite:///a%2fb", "a bad escape or an escaped slash"),
        ("sqlite:///a%00b", "a zero byte"),
        ("sqlite:///a\0b", "a zero byte"),
        ("sqlite:///%ff", "expected UTF-8"),
        ("sqlite:///%c0%af", "expected UTF-8"),
        ("sqlite:///\udcff", "expected UTF-8"),
        ("sqlite:///" + "a" * 8192, "at most 8192 characters, found 8202"),
        ("file", "found no scheme"),
        ("file:", "three slashes after file:"),
        ("file:a", "three slashes after file:"),
        ("file:./a", "three slashes after file:"),
        ("file:/a", "three slashes after file:"),
        ("file://a", "expected no host, found 'a'"),
        ("file://./a", r"expected no host, found '\.'"),
        ("file://localhost/a", "expected no host, found 'localhost'"),
        ("file://", "the path of a directory"),
        ("file:///", "the path of a directory"),
        ("file:////", "the path of a directory"),
        ("file:///a/.", "the path of a directory"),
        ("file:///a/..", "the path of a directory"),
        ("file:///a/../", "the path of a directory"),
        ("file:///a?mode=ro", "found a query"),
        ("file:///a#b", "found a fragment"),
        ("file:///a%2fb", "a bad escape or an escaped slash"),
        ("file:///a%00b", "a zero byte"),
        ("file:///%ff", "expected UTF-8"),
        ("file:///~/a", "expected a path from the root, found"),
    ],
)
def test_another_text_is_refused(text: str, complaint: str) -> None:
    """What would be ignored or guessed is an error that says what was found, with a hint."""
    with pytest.raises(UrlInvalid, match=complaint) as caught:
        StoreUrl.parse(text)

    assert caught.value.hint
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("mark", ["?", "#"])
def test_the_hint_says_how_to_write_a_mark(mark: str) -> None:
    """A file whose name holds a mark can still be reached."""
    with pytest.raises(UrlInvalid) as caught:
        StoreUrl.parse(f"sqlite:///a{mark}b")
    encoded = f"%{ord(mark):02X}"
    url = StoreUrl.parse(f"sqlite:///a{encoded}b")

    assert encoded in caught.value.hint
    assert url.path is not None
    assert url.path.name == f"a{mark}b"


@pytest.mark.parametrize(
    "text", ["postgresql://me:hunter2@host/db", "sqlite://me:hunter2@host/db", "x:hunter2"]
)
def test_a_password_is_never_shown(text: str) -> None:
    """A URL of something else may hold a password, which no message repeats."""
    with pytest.raises((UrlInvalid, ExtraMissing)) as caught:
        StoreUrl.parse(text)

    assert "hunter2" not in str(caught.value)


def test_a_directory_that_is_gone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path relative to a directory that was removed is relative to nothing."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(UrlInvalid, match="expected a directory with a path"):
        StoreUrl.parse("sqlite:///store.db")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_directory_that_is_not_utf8_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL that could not be written down is none."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    odd.mkdir()
    monkeypatch.chdir(odd)

    with pytest.raises(UrlInvalid, match="UTF-8"):
        StoreUrl.parse("sqlite:///store.db")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_link_to_a_directory_that_is_not_utf8_leads_nowhere(tmp_path: Path) -> None:
    """Where it leads could not be written down."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    odd.mkdir()
    (tmp_path / "link").symlink_to(odd)
    url = StoreUrl.parse(f"sqlite:///{tmp_path}/link/store.db")

    with pytest.raises(UrlInvalid, match="UTF-8"):
        url.target()


def test_a_path_in_a_url_is_absolute() -> None:
    """Whoever makes a URL without parsing one cannot make one that depends on where one is."""
    for scheme in _SCHEMES:
        with pytest.raises(UrlInvalid, match="absolute"):
            StoreUrl(scheme=scheme, address="a")
