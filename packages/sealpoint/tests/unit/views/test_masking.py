# SPDX-License-Identifier: Apache-2.0
"""Secrets are maskable: by the names of keys, in every view, and in nothing but views."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint import Registry
from sealpoint.codec import UntypedValue
from sealpoint.errors import UsageError
from sealpoint.views.changes import compare
from sealpoint.views.conversation import find_conversations, read_conversation
from sealpoint.views.masking import MASKED, REVEALED, SECRETS, Masking
from sealpoint.views.tree import StateTree
from sealpoint.views.values import render, short_text, whole_text

_SECRET = "hunter-2-hunter"  # noqa: S105 - of nobody
_KEYS = ("password", "api_key", "Authorization", "accessToken")


@pytest.mark.parametrize(
    "name",
    [
        *("password", "DB_PASSWORD", "dbPassword", "api_key", "apiKey", "API-Key", "x-api-key"),
        *("token", "access_token", "refreshToken", "Authorization", "set-cookie", "client secret"),
        *("private_key", "aws_secret_access_key", "\uff50assword", "pass\u200bword"),
    ],
)
def test_a_name_of_a_secret_is_masked_however_it_is_spelt(name: str) -> None:
    """Case, signs between words and forms of letters do not count."""
    assert SECRETS.hides(name)
    assert not REVEALED.hides(name)


@pytest.mark.parametrize("name", ["max_tokens", "tokenizer", "key", "keys", "author", "text", 7])
def test_a_harmless_name_is_shown(name: object) -> None:
    """Numbers of tokens and keys of dicts are no secrets."""
    assert not SECRETS.hides(name)


def test_names_to_mask_are_whole_or_have_a_star_at_an_end() -> None:
    """A name means itself, and a star any other letters."""
    masking = Masking(names=("card", "iban*", "*pin"))

    assert [
        name
        for name in ("card", "cards", "IBAN_nr", "my_iban", "the-pin", "pins")
        if masking.hides(name)
    ] == ["card", "IBAN_nr", "the-pin"]


@pytest.mark.parametrize("name", ["", "*", "**", "a*b", "_-", "*-*"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    """What would mask everything or nothing by mistake is an error."""
    with pytest.raises(UsageError, match="masking: expected the name of a key"):
        Masking(names=(name,))


def _around(value: object) -> st.SearchStrategy[object]:
    return st.recursive(
        st.just(value),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3),
            st.dictionaries(st.text(max_size=3), inner, min_size=1, max_size=3),
            st.builds(
                lambda held: UntypedValue(name="app.thing", version=1, fields={"of": held}), inner
            ),
        ),
        max_leaves=4,
    )


def _all_texts(tree: StateTree) -> str:
    found = []
    for place in tree.walk():
        node = tree.node(place.at)
        found += [node.path, node.type, node.text, tree.text(place.at).text]
    return "\n".join(found)


@given(st.sampled_from(_KEYS), _around({"deep": [_SECRET, {_SECRET: _SECRET}]}))
def test_what_is_masked_is_in_no_view(key: str, inner: object) -> None:
    """Neither a tree nor a line, a text, a difference or a search says anything of it."""
    state = {"shown": 1, "nested": [{key: inner}], key: inner}
    registry = Registry().showing_untyped("")
    tree = StateTree(state, masking=SECRETS)
    changes = list(compare({"shown": 1}, state, registry.encode, masking=SECRETS))
    changes += compare(state, {"shown": 1}, registry.encode, masking=SECRETS)
    changes += compare(state, {**state, key: 2}, registry.encode, masking=SECRETS)

    assert _SECRET not in _all_texts(tree)
    assert _SECRET not in "\n".join(render(state, everything=True, masking=SECRETS))
    assert _SECRET not in short_text(state, 10_000, SECRETS)
    assert _SECRET not in (whole_text(state, 10_000, SECRETS) or "")
    assert _SECRET not in repr([(change, change.lines()) for change in changes])
    assert not tree.search(_SECRET).hits
    assert _SECRET in _all_texts(StateTree(state))


def test_what_is_masked_cannot_be_looked_into() -> None:
    """It counts no members, is one thing, and nothing lies below it."""
    tree = StateTree({"token": {"a": [1, 2]}}, masking=SECRETS)

    assert tree.value("0") is MASKED
    assert (tree.node("0").masked, tree.node("0").children, tree.node("0").text) == (
        True,
        0,
        "masked",
    )
    with pytest.raises(UsageError, match="there is nothing"):
        tree.node("0.0")


def test_a_masked_value_that_changed_is_said_to_have_changed() -> None:
    """Masking is in the words: what is compared are the values."""
    encode = Registry().encode
    before, after = {"password": "a", "token": "t"}, {"password": "b", "token": "t"}
    (change,) = compare(before, after, encode, masking=SECRETS)

    assert change.masked
    assert change.as_dict() == {
        "kind": "changed",
        "path": 'state["password"]',
        "path_before": None,
        "old": None,
        "new": None,
        "note": "masked",
    }


def test_arguments_of_a_call_are_masked_even_where_they_are_a_text() -> None:
    """A framework stores arguments as JSON in a text: they are read for it."""
    content = UntypedValue(
        name="agent_framework.content",
        version=1,
        fields={"type": "function_call", "name": "f", "arguments": '{"token": "hunter-2"}'},
    )
    message = UntypedValue(
        name="agent_framework.message", version=1, fields={"role": "user", "contents": [content]}
    )
    tree = StateTree([message], masking=SECRETS)
    (found,) = find_conversations(tree).found
    (shown,) = read_conversation(tree, found.at)

    assert [part.text for part in shown.parts] == ['arguments: {"token": masked}']
