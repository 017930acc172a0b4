# SPDX-License-Identifier: Apache-2.0
"""A state as a tree: all of it can be reached, every look is bounded, and nothing hides."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import UsageError
from sealpoint.views.tree import Branch, StateTree
from tests.cpu_time import CpuTime

_HOSTILE = "\x1b[2J\u202egnp\u2066\u200b\u3164 <script>\\u{202e}\ud800\r\n\u0301x"
_TEXTS = st.one_of(st.text(max_size=20), st.just(_HOSTILE), st.just("x" * 500))
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), _TEXTS, st.binary(max_size=300)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(_TEXTS, inner, max_size=5),
        st.frozensets(st.one_of(st.integers(), _TEXTS), max_size=5),
        st.tuples(inner, inner),
    ),
    max_leaves=20,
)


@dataclass
class _Plan:
    steps: list[Any]


def _count(branch: Branch) -> int:
    return 1 + sum(map(_count, branch.branches))


def test_a_node_says_where_it_is_what_it_is_and_how_much_it_holds() -> None:
    """Paths are those that errors and differences have; addresses hold nothing of the state."""
    tree = StateTree({"plan": _Plan([1, "two"]), 3: b"abc"})

    assert [(node.at, node.path, node.type) for node in tree.children().nodes] == [
        ("0", 'state["plan"]', f"{__name__}._Plan, 1 field"),
        ("1", "state[3]", "bytes, 3 bytes"),
    ]
    assert tree.node("0.0.1").path == 'state["plan"].steps[1]'
    assert tree.node("0.0.1").as_dict() == {
        "at": "0.0.1",
        "path": 'state["plan"].steps[1]',
        "label": "[1]",
        "type": "str, 3 characters",
        "text": '"two"',
        "whole": True,
        "children": 0,
        "masked": False,
    }


@given(_VALUES)
def test_every_value_is_reached_page_by_page(value: Any) -> None:
    """Members come in pages without a gap, and each has the address that leads to it."""
    tree = StateTree(value)
    reached = []
    waiting = [""]
    while waiting:
        at = waiting.pop()
        reached.append(at)
        offset = 0
        while (page := tree.children(at, offset=offset, limit=2)).nodes:
            assert all(tree.node(node.at) == node for node in page.nodes)
            waiting += [node.at for node in page.nodes]
            offset += len(page.nodes)
            assert page.left == page.total - offset
        assert offset == tree.node(at).children

    assert sorted(reached) == sorted(place.at for place in tree.walk())


@given(_VALUES)
def test_nothing_of_a_hostile_state_hides_or_breaks_out_of_its_line(value: Any) -> None:
    """Every text of a node prints and is short; only a piece of a text has lines."""
    tree = StateTree(value)

    for place in tree.walk():
        node = tree.node(place.at)
        for text in (node.path, node.label, node.type, node.text):
            assert text.isprintable()
            assert not set(text) & set("\u200b\u3164\u202e")
        assert len(node.text) < 6 * 300
        assert tree.text(place.at).text.replace("\n", "").isprintable()


@given(st.text(), st.integers(min_value=1, max_value=5))
def test_a_text_is_given_piece_by_piece_without_a_gap(text: str, size: int) -> None:
    """The pieces of a text add up to it, and each says how much is left."""
    tree = StateTree(text)
    offset = 0
    while offset < len(text):
        piece = tree.text(offset=offset, limit=size)
        assert piece.left == len(text) - offset - piece.chars
        assert piece.chars == min(size, len(text) - offset)
        offset += piece.chars

    assert tree.text().total == len(text)
    assert offset == len(text)


def test_what_is_left_out_of_a_look_is_counted() -> None:
    """A look goes so deep and so wide; each branch says how many members it has besides."""
    tree = StateTree({"wide": list(range(10)), "deep": [[[[1]]]]})
    found = tree.look(depth=2, breadth=3)
    wide, deep = found.branches

    assert (len(wide.branches), wide.left) == (3, 7)
    assert (len(deep.branches), deep.left) == (1, 0)
    assert (len(deep.branches[0].branches), deep.branches[0].left) == (0, 1)


def test_a_wide_state_is_looked_at_without_going_through_all_of_it() -> None:
    """A look at a page of a million members costs what the page costs."""
    tree = StateTree(
        {"items": [{"n": n} for n in range(300_000)], "by": dict.fromkeys(range(300_000))}
    )
    with CpuTime() as cpu_time:
        look = tree.look(breadth=10_000)
        page = tree.children("0", offset=299_999)

    assert _count(look) <= 2_000
    assert [node.text for node in page.nodes] == ['{"n": 299999}']
    assert cpu_time.seconds < 2


def test_a_deep_state_is_looked_at_without_recursion() -> None:
    """However deep a state is, every look at it ends, and its paths stay short."""
    value: Any = "the end"
    for _ in range(5_000):
        value = [value]
    tree = StateTree({"deep": value})
    with CpuTime() as cpu_time:
        look = tree.look(depth=10_000)
        (hit,) = tree.search("the end").hits

    assert _count(look) <= 2_000
    assert " characters ... " in hit.node.path
    assert len(hit.node.path) < 5_000
    assert tree.node(hit.node.at).text == '"the end"'
    assert cpu_time.seconds < 10


def test_megabytes_of_text_and_keys_stay_out_of_a_look() -> None:
    """A node is short whatever it is of; the rest is counted, and given when it is asked for."""
    long = "x" * 4_000_000
    tree = StateTree({long: long, "b": long.encode(), "n": 1 << 13_000_000})
    with CpuTime() as cpu_time:
        page = tree.children()
        (hit,) = tree.search("xxxx", limit=1).hits

    assert all(len(f"{node.as_dict()}") < 2_000 for node in page.nodes)
    assert "more characters" in page.nodes[0].path
    assert page.nodes[0].text.endswith(" ... and 3,999,800 more characters")
    assert not page.nodes[0].whole
    assert tree.text("0", offset=3_999_990).text == "x" * 10
    assert len(hit.excerpt) < 200
    assert cpu_time.seconds < 5


def test_a_search_finds_keys_and_texts_whatever_their_case() -> None:
    """What was found is told with its path and the text around it."""
    tree = StateTree({"Invoice": {"to": "a" * 100 + "INVOICE 7"}, "n": [7, 70], "i": "nothing"})

    found = tree.search("invoice")

    assert [(hit.node.path, hit.where) for hit in found.hits] == [
        ('state["Invoice"]', "key"),
        ('state["Invoice"]["to"]', "text"),
    ]
    assert found.hits[1].excerpt == f"40 characters, then {'a' * 60}INVOICE 7"
    assert found.complete
    assert [hit.node.path for hit in tree.search("7").hits] == [
        'state["Invoice"]["to"]',
        'state["n"][0]',
        'state["n"][1]',
    ]


def test_a_search_says_when_it_did_not_look_at_all() -> None:
    """More hits than were asked for, or more nodes than one search looks at, are not all."""
    tree = StateTree(["word"] * 3)
    wide = StateTree(list(range(110_000)))

    assert (len(tree.search("word", limit=2).hits), tree.search("word", limit=2).complete) == (
        2,
        False,
    )
    assert tree.search("word", limit=3).complete
    assert not wide.search("word").complete


@pytest.mark.parametrize("word", ["", "x" * 201])
def test_a_search_needs_a_word(word: str) -> None:
    """Nothing, or more than a line, is refused."""
    with pytest.raises(UsageError, match="search: expected 1 to 200 characters"):
        StateTree({}).search(word)


@pytest.mark.parametrize(
    "at", ["2", "0.0", "-1", "00", "0.", ".0", "0..0", "\u0660", "1e3", "9" * 11, "0." * 20_000]
)
def test_an_address_that_leads_nowhere_is_refused(at: str) -> None:
    """Whatever somebody puts into an address is an error of ours, and none of Python's."""
    with pytest.raises(UsageError, match="there is nothing"):
        StateTree([1, 2]).node(at)


def test_members_of_a_set_have_an_order() -> None:
    """A set has none of its own, and still an address leads to the same member each time."""
    members = {f"m{n}" for n in range(50)}
    again = {f"m{n}" for n in reversed(range(50))}

    texts = [node.text for node in StateTree(members).children().nodes]

    assert texts == sorted(texts)
    assert texts == [node.text for node in StateTree(again).children().nodes]
